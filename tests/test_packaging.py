"""A wheel and a source archive, built and installed as a stranger would, hold the whole package."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from bayescrowd import __version__

ROOT = Path(__file__).parents[1]
SOURCES = ["pyproject.toml", "README.md", "LICENSE", "bayescrowd", "models"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Build the source archive and, from it, the wheel."""
    checkout = copy_checkout(tmp_path_factory.mktemp("checkout"))
    return build(checkout, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def environment(archives, tmp_path_factory):
    """Install the wheel into an environment that borrows the dependencies of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name == "posix")
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "borrowed.pth").write_text("\n".join(borrowed), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    run([*pip, "install", "--no-deps", "--no-index", *map(str, archives["wheel"])], cwd=folder)
    return folder, python


def copy_checkout(folder):
    """Copy what a build reads, so that it leaves nothing behind in the checkout."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skip)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


def build(checkout, dist):
    # Without isolation: the test extra brings setuptools, and no network is needed.
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), "."], cwd=checkout)
    return {"sdist": list(dist.glob("*.tar.gz")), "wheel": list(dist.glob("*.whl"))}


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def tree_packages(root):
    """Name every folder with an __init__.py, as it is imported."""
    found = {
        ".".join(path.parent.relative_to(root).parts)
        for path in (root / "bayescrowd").rglob("__init__.py")
        if "models" not in path.relative_to(root).parts
    }
    models = {
        path.parent.relative_to(root).parts for path in (root / "models").rglob("__init__.py")
    }
    return found | {".".join(("bayescrowd", *parts)) for parts in models}


def tree_files():
    """Name every source file, as it must stand in a wheel."""
    package = {path.relative_to(ROOT) for path in (ROOT / "bayescrowd").rglob("*.py")}
    package = {path for path in package if path.parts[1] != "models"}
    models = {path.relative_to(ROOT) for path in (ROOT / "models").rglob("*.py")}
    return {path.as_posix() for path in package | {Path("bayescrowd") / path for path in models}}


def test_packages_listed_are_the_packages_in_the_tree():
    with open(ROOT / "pyproject.toml", "rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]
    assert listed == sorted(listed)
    assert set(listed) == tree_packages(ROOT)


def test_package_imports_only_what_it_depends_on():
    """An import that only the test extra brings would fail on a user's machine."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        requirements = tomllib.load(file)["project"]["dependencies"]
    promised = {"bayescrowd", *(re.match(r"[\w-]+", line)[0] for line in requirements)}
    distributions = packages_distributions()
    for path in [*(ROOT / "bayescrowd").rglob("*.py"), *(ROOT / "models").rglob("*.py")]:
        for name in top_level_imports(path) - sys.stdlib_module_names - {"bayescrowd"}:
            assert promised.intersection(distributions[name]), f"{path.name} imports {name}"


def top_level_imports(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_control_a_forgotten_package_is_noticed(tmp_path):
    for folder in ("bayescrowd", "bayescrowd/forgotten", "models"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    expected = {"bayescrowd", "bayescrowd.forgotten", "bayescrowd.models"}
    assert tree_packages(tmp_path) == expected


def test_models_is_a_link_to_the_folder():
    link = ROOT / "bayescrowd" / "models"
    assert link.is_symlink()
    assert os.readlink(link) == os.path.join("..", "models")


def test_wheel_holds_every_source_file_and_nothing_else(archives):
    (wheel,) = archives["wheel"]
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name for name in names if name.endswith(".py")} == tree_files()
    assert "bayescrowd/py.typed" in names
    templates = (ROOT / "bayescrowd" / "reports" / "templates").iterdir()
    assert {f"bayescrowd/reports/templates/{path.name}" for path in templates} <= names
    assert {name.split("/")[0] for name in names} == {"bayescrowd"}


def test_source_archive_holds_models_and_licence(archives):
    (sdist,) = archives["sdist"]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "bayescrowd/py.typed", "models/dawid_skene.py"} <= names


def test_wheel_is_right_from_a_checkout_without_links(archives, tmp_path):
    """Where links are off, git leaves a text file with the link's target."""
    (tmp_path / "checkout").mkdir()
    checkout = copy_checkout(tmp_path / "checkout")
    (checkout / "bayescrowd" / "models").unlink()
    (checkout / "bayescrowd" / "models").write_text("../models", encoding="utf-8")
    (unlinked,) = build(checkout, tmp_path / "dist")["wheel"]
    (wheel,) = archives["wheel"]
    assert zipfile.ZipFile(unlinked).namelist() == zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize("module", ["bayescrowd", "bayescrowd.models"])
def test_installed_wheel_imports_outside_the_checkout(environment, module):
    folder, python = environment
    code = f"import {module}; print({module}.__file__)"
    file = Path(run([str(python), "-I", "-c", code], cwd=folder))
    assert file.is_relative_to(folder)


def test_installed_model_imports_outside_the_checkout(environment):
    folder, python = environment
    code = "import bayescrowd as bc; print(bc.models.dawid_skene.model.__module__)"
    name = run([str(python), "-I", "-c", code], cwd=folder)
    assert name == "bayescrowd.models.dawid_skene"


def test_installed_command_tells_its_version(environment):
    folder, python = environment
    told = run([str(python.with_name("bayescrowd")), "--version"], cwd=folder)
    assert told.split()[-1] == __version__


def test_installed_package_is_typed(environment):
    folder, _ = environment
    assert len(list(folder.rglob("bayescrowd/py.typed"))) == 1
