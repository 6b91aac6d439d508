"""Every public name resolves, type checkers see the same names, and importing stays light."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bayescrowd

ROOT = Path(__file__).parents[1]
PACKAGES = [import_module(f"bayescrowd{end}") for end in ("", ".models", ".plots")]
HEAVY = ["jax", "numpyro", "arviz", "numpy", "scipy", "pandas", "pyarrow", "sklearn", "matplotlib"]


def names_for_type_checkers(source):
    """Map each name imported below ``if TYPE_CHECKING`` to its module."""
    names = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                names |= {alias.asname: line.module for alias in line.names}
    return names


@pytest.mark.parametrize("name", bayescrowd.__all__)
def test_public_name_resolves(name):
    assert getattr(bayescrowd, name) is not None
    assert name in dir(bayescrowd)


@pytest.mark.parametrize("name", import_module("bayescrowd.plots").__all__)
def test_picture_is_a_function_that_loads_on_first_use(name):
    assert getattr(bayescrowd.plots, name).__name__ == name
    assert name in dir(bayescrowd.plots)


def test_a_picture_loads_no_others():
    loaded = modules_after("from bayescrowd.plots import worker_map")
    assert "bayescrowd.plots.workers" in loaded
    assert not {"bayescrowd.plots.budget", "bayescrowd.plots.posterior", "jax"} & loaded


@pytest.mark.parametrize("name", import_module("bayescrowd.models").__all__)
def test_model_is_a_module(name):
    module = getattr(bayescrowd.models, name)
    assert module.__name__ == f"bayescrowd.models.{name}"
    assert {"model", "simulate", "label_log_joint"} <= set(dir(module))
    assert name in dir(bayescrowd.models)


def test_every_model_is_found():
    files = {path.stem for path in (ROOT / "models").glob("*.py") if path.stem[0] != "_"}
    assert files == set(bayescrowd.models.__all__)


@pytest.mark.parametrize("module", PACKAGES)
def test_type_checkers_see_what_python_sees(module):
    seen = names_for_type_checkers(Path(module.__file__).read_text(encoding="utf-8"))
    lazy = dict(getattr(module, "_NAMES", {}))
    submodules = getattr(module, "_SUBMODULES", () if lazy else module.__all__)
    assert seen == lazy | dict.fromkeys(submodules, module.__name__)


def test_star_import_brings_every_name():
    namespace = {}
    exec("from bayescrowd import *", namespace)
    assert set(bayescrowd.__all__) <= set(namespace)


@pytest.mark.parametrize("module", PACKAGES)
def test_unknown_name_is_an_attribute_error(module):
    with pytest.raises(
        AttributeError, match=f"module '{module.__name__}' has no attribute 'Dawid'"
    ):
        module.Dawid  # noqa: B018


@pytest.mark.parametrize("module", [package.__name__ for package in PACKAGES])
def test_importing_loads_nothing_heavy(module):
    loaded = modules_after(f"import {module}")
    assert module in loaded
    assert not loaded.intersection(HEAVY)


def test_control_a_heavy_import_is_noticed():
    assert "numpy" in modules_after("import numpy")


def modules_after(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())
