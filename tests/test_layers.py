"""Imports go one way: a module may use what stands on its own row or above it.

The graph of all imports, those inside functions and for type checkers among them, has no cycle and
few floors, and no module is long.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = [
    {"_version", "checks", "estimator"},
    {"data"},
    {"io", "datasets", "simulate", "draws", "agreement", "metrics", "information", "iteration"},
    {"saving"},
    {"models"},
    {"aggregation", "mixture"},
    {"gold", "crowdkit"},
    {"panel"},
    {"selection"},
    {"posterior"},
    {"budgeted"},
    {"reports"},
    # "bayescrowd" is the root, with every name
    {"plots", "experiments", "saved_fits", "bayescrowd"},
    {"cli", "__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# An estimator or a policy offers .posterior() by importing the sampler when it is called.
LAZY_EXCEPTIONS = {
    (home, "posterior") for home in ("aggregation", "mixture", "selection", "budgeted")
}


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
        base = absolute_base(node, module)
        dotted = [base]
        if base == "bayescrowd":  # from bayescrowd import simulate, DawidSkene
            dotted = [f"bayescrowd.{alias.name}" for alias in node.names]
            dotted = [name if name.split(".")[1] in RANK else "bayescrowd" for name in dotted]
    parts = [name.split(".") for name in dotted]
    return [part[1] if len(part) > 1 else part[0] for part in parts if part[0] == "bayescrowd"]


def absolute_base(node, module):
    """Name what a `from ... import` statement imports from, its dots resolved."""
    base = node.module or ""
    if not node.level:
        return base
    package = ["bayescrowd", *module.removesuffix(".__init__").split(".")]
    depth = len(package) - node.level + module.endswith(".__init__")
    return ".".join([*package[:depth], *filter(None, [base])])


@pytest.mark.parametrize("module", FILES)
def test_no_backward_import(module):
    assert module.split(".")[0] in RANK, f"give {module} a place in LAYERS"
    assert backward_imports(module, FILES[module].read_text(encoding="utf-8")) == []


def test_every_file_is_read():
    assert {"data.annotations", "models.dawid_skene", "models.__init__"} <= set(FILES)


def test_the_layers_list_only_what_exists():
    assert {module.split(".")[0] for module in FILES} == set(RANK) - {"bayescrowd"}


MOST_FLOORS = 12
LONGEST_MODULE = 450
MOST_LOOSE_MODULES = 8
"""In `bayescrowd/` itself, its `__init__.py` included."""


def import_graph(sources):
    """Map each module to the modules that it imports anywhere, but for the lazy exceptions.

    Args:
        sources: the source of each module, by its name below bayescrowd.
    """
    return {
        module: {
            target
            for node, is_lazy in imports_of(ast.parse(source))
            for target in modules_of(node, module, sources)
            if not (is_lazy and (module.split(".")[0], target.split(".")[0]) in LAZY_EXCEPTIONS)
        }
        for module, source in sources.items()
    }


def modules_of(node, module, sources):
    """Name the modules, below bayescrowd, that an import statement loads; the root is left out."""
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    else:
        base = absolute_base(node, module)
        dotted = [f"{base}.{alias.name}" for alias in node.names] if base else []
    for name in dotted:
        parts = name.split(".")
        if parts[0] == "bayescrowd":
            # The name may be a module, a package, or something that either of them holds.
            found = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
            places = (place for part in found for place in (part, f"{part}.__init__"))
            yield from [place for place in places if place in sources and place != module][:1]


def floors(graph):
    """Number of modules on the longest import path that starts at each module."""
    height = {}
    for module in TopologicalSorter(graph).static_order():
        height[module] = 1 + max((height[target] for target in graph[module]), default=0)
    return height


GRAPH = import_graph({name: path.read_text(encoding="utf-8") for name, path in FILES.items()})


def test_no_module_imports_itself_in_a_circle():
    TopologicalSorter(GRAPH).prepare()


def test_there_are_few_floors():
    height = floors(GRAPH)
    assert {name: n for name, n in height.items() if n > MOST_FLOORS} == {}


def test_control_a_lazy_circle_is_found():
    circle = {
        "data.one": "from bayescrowd.data import two",
        "data.two": "def late():\n    from bayescrowd.data.one import name",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(import_graph(circle)).prepare()
    circle["data.two"] = "if TYPE_CHECKING:\n    from .one import name"
    with pytest.raises(CycleError):
        TopologicalSorter(import_graph(circle)).prepare()


def test_control_floors_are_counted():
    tower = {
        "data.low": "",
        "data.middle": "from bayescrowd.data.low import name",
        "data.high": "import bayescrowd.data.low\nfrom bayescrowd.data import middle",
    }
    assert floors(import_graph(tower)) == {"data.low": 1, "data.middle": 2, "data.high": 3}


def test_modules_are_short():
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}
    assert 120 <= median(lengths.values()) <= 250


def test_few_modules_lie_outside_the_folders():
    assert len(list((ROOT / "bayescrowd").glob("*.py"))) <= MOST_LOOSE_MODULES


def test_every_folder_opens_with_a_map():
    """The docstring of a folder names its rooms; those that bear a model's name follow from it."""
    models = {name.split(".")[1] for name in FILES if name.startswith("models.")}
    missing = {}
    for name, path in FILES.items():
        if path.name == "__init__.py":
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            rooms = {other.stem for other in path.parent.glob("*.py") if other.stem[0] != "_"}
            rooms |= {other.parent.name for other in path.parent.glob("*/__init__.py")}
            if unnamed := sorted(room for room in rooms - models if room not in text):
                missing[name] = unnamed
    assert missing == {}


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
