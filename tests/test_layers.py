"""Imports go one way: a module may use what stands on its own row or above it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = [
    {"_version", "checks", "estimator"},
    {"data"},
    {"io", "datasets", "simulate", "draws", "agreement", "metrics", "information", "iteration"},
    {"models"},
    {"aggregation", "mixture"},
    {"selection"},
    {"posterior"},
    {"budgeted"},
    {"plots", "experiments", "bayescrowd"},  # "bayescrowd" is the root, with every name
    {"cli", "__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# An estimator offers .posterior() by importing the sampler when it is called.
LAZY_EXCEPTIONS = {(home, "posterior") for home in ("aggregation", "mixture", "selection")}


def source_files():
    """Map each module's dotted name, below bayescrowd, to its file."""
    files = {}
    for top, prefix in ((ROOT / "bayescrowd", ()), (ROOT / "models", ("models",))):
        for path in sorted(top.rglob("*.py")):
            parts = prefix + path.relative_to(top).with_suffix("").parts
            # the link bayescrowd/models is read where it leads, and the root may name everything
            if parts != ("__init__",) and (prefix or parts[0] != "models"):
                files[".".join(parts)] = path
    return files


FILES = source_files()


def backward_imports(module, source):
    """Say which imports of a module, named below bayescrowd, break the order."""
    home = module.split(".")[0]
    found = []
    for node, is_lazy in imports_of(ast.parse(source)):
        for target in targets_of(node, module):
            if target not in RANK:
                found.append(f"{module}:{node.lineno}: {target} has no place in LAYERS")
            elif RANK[target] > RANK[home] and not (is_lazy and (home, target) in LAZY_EXCEPTIONS):
                found.append(f"{module}:{node.lineno}: {home} may not import {target}")
    return found


def imports_of(node, *, is_lazy=False):
    """Yield every import statement and whether it stands inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, is_lazy
        else:
            inside = is_lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports_of(child, is_lazy=inside)


def targets_of(node, module):
    """Name the first-level modules of bayescrowd that an import statement reaches."""
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        if node.level:
            package = ["bayescrowd", *module.removesuffix(".__init__").split(".")]
            depth = len(package) - node.level + module.endswith(".__init__")
            base = ".".join([*package[:depth], *filter(None, [base])])
        dotted = [base]
        if base == "bayescrowd":  # from bayescrowd import simulate, DawidSkene
            dotted = [f"bayescrowd.{alias.name}" for alias in node.names]
            dotted = [name if name.split(".")[1] in RANK else "bayescrowd" for name in dotted]
    parts = [name.split(".") for name in dotted]
    return [part[1] if len(part) > 1 else part[0] for part in parts if part[0] == "bayescrowd"]


@pytest.mark.parametrize("module", FILES)
def test_no_backward_import(module):
    assert module.split(".")[0] in RANK, f"give {module} a place in LAYERS"
    assert backward_imports(module, FILES[module].read_text(encoding="utf-8")) == []


def test_every_file_is_read():
    assert {"data.annotations", "models.dawid_skene", "models.__init__"} <= set(FILES)


BACKWARD = [
    ("data.annotations", "import bayescrowd.io.reading"),
    ("data.annotations", "from bayescrowd.io.reading import read_annotations"),
    ("data.annotations", "from ..io.reading import read_annotations"),
    ("data.annotations", "from .. import metrics"),
    ("data.annotations", "import bayescrowd"),
    ("models.dawid_skene", "from bayescrowd.aggregation import em"),
    ("models.dawid_skene", "from ..aggregation import em"),
    ("models.__init__", "from ..aggregation import em"),
    ("aggregation.em", "from bayescrowd import plots"),
    ("aggregation.em", "from bayescrowd import DawidSkene"),
    ("aggregation.em", "from bayescrowd.posterior import sample"),
    ("aggregation.em", "def draw():\n    from bayescrowd.plots import curve"),
    ("datasets.registry", "def draw():\n    from bayescrowd.posterior import sample"),
    ("datasets.registry", "if TYPE_CHECKING:\n    from bayescrowd.aggregation import em"),
    ("plots.curve", "import bayescrowd.cli"),
    ("plots.curve", "import bayescrowd.helpers"),
]


@pytest.mark.parametrize(("module", "source"), BACKWARD)
def test_control_backward_import_is_found(module, source):
    assert len(backward_imports(module, source)) == 1


FORWARD = [
    ("io.reading", "from bayescrowd.data.annotations import Annotations"),
    ("io.reading", "from bayescrowd.datasets.registry import Dataset"),
    ("models.one_coin", "from bayescrowd.models.dawid_skene import Labels"),
    ("models.one_coin", "from .dawid_skene import Labels"),
    ("models.__init__", "from .dawid_skene import Labels"),
    ("aggregation.em", "class Em:\n    def posterior(self):\n        import bayescrowd.posterior"),
    ("aggregation.em", "import numpy as np"),
    ("experiments.table", "import bayescrowd as bc"),
    ("cli", "from bayescrowd import __version__, simulate"),
    ("cli", "from bayescrowd._version import __version__"),
]


@pytest.mark.parametrize(("module", "source"), FORWARD)
def test_control_forward_import_passes(module, source):
    assert backward_imports(module, source) == []
