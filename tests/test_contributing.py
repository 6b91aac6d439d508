"""CONTRIBUTING's lists are true: a newcomer works after the files that its list names are changed.

Each list is read from CONTRIBUTING.md. A copy of the package gets a dummy by way of these files
alone, and a fresh process uses the dummy through public names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HEADING = "## How to add something\n"
NAMES = {"NAME": "dummy", "PAPER": "mi"}
"""What the names in capitals are replaced by."""


def read_lists(text: str) -> dict[str, list[str]]:
    """The files of each numbered list, in order, by the heading above it."""
    sections = text.partition(HEADING)[2].split("\n### ")[1:]
    return {
        section.partition("\n")[0]: re.findall(r"^\d+\. `([^`]+)`", section, flags=re.MULTILINE)
        for section in sections
    }


LISTS = read_lists(TEXT)
KINDS = (
    "An aggregator",
    "A model without conditionals",
    "A model with conditionals",
    "A policy",
    "An experiment",
)


def path_of(file: str) -> str:
    for name, replacement in NAMES.items():
        file = file.replace(name, replacement)
    return file


# The lists


def test_there_is_a_list_for_everything() -> None:
    assert tuple(LISTS) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_has_at_most_four_files_the_changelog_among_them(kind: str) -> None:
    files = LISTS[kind]
    assert 1 < len(files) <= 4
    assert len(set(files)) == len(files)
    assert files[-1] == "CHANGELOG.md"


@pytest.mark.parametrize("kind", KINDS)
def test_old_files_exist_and_new_files_go_where_others_are(kind: str) -> None:
    for file in LISTS[kind]:
        path = ROOT / path_of(file)
        assert path.exists() == ("NAME" not in file), file
        assert list(path.parent.glob("*.py")) or path.parent == ROOT, file


# The dummies

AGGREGATOR = '''
"""A dummy: the vote."""

from bayescrowd.aggregation.majority import MajorityVote


class Dummy(MajorityVote):
    """The vote under another name."""
'''

MODEL = '''
"""A dummy: the one-coin model under another name."""

from bayescrowd.models._facts import Facts
from bayescrowd.models.one_coin import (
    Labels,
    Params,
    Prior,
    Simulation,
    label_log_joint,
    label_posterior,
    model,
    simulate,
    simulate_labels,
    worker_accuracy,
)

FACTS = Facts(
    subject="labels",
    summary="one dummy per worker",
    has_conditionals={has_conditionals},
    accuracy=worker_accuracy,
)
'''

CONDITIONALS = '''
"""Conditionals of the dummy."""

from bayescrowd.posterior.conditionals import one_coin

CONDITIONALS = one_coin.CONDITIONALS
'''

POLICY = '''
"""A dummy: a policy with a seed of its own."""

from typing import Any

from bayescrowd import RoundRobin
from bayescrowd.budgeted.space import FeatureSpace


class Dummy(RoundRobin):
    """All features in turn under another name."""

    def __init__(
        self, space: FeatureSpace, budget: float, n_features: int, *, seed: int = 7, **options: Any
    ) -> None:
        super().__init__(space, budget, n_features, seed=seed, **options)
'''

EXPERIMENT = '''
"""A dummy: one cell."""

from matplotlib.figure import Figure

from bayescrowd.experiments.engine.experiment import Cell, CellId, Experiment, Part

ID = CellId("row", "column")


def measure(part, seed):
    return {ID: 0.5}


def draw(outcomes):
    return Figure()


EXPERIMENT = Experiment(
    name="dummy",
    title="A dummy",
    parts=(Part("part", "none", is_random=False),),
    cells=(Cell(ID, "part", 0.5, "", 1, None, None),),
    measure=measure,
    draw=draw,
)
'''


def lines_below(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    """Edits that put a line below the first occurrence of another one."""
    return [(line, f"{line}\n{new}") for line, new in pairs]


def export_of(module: str) -> list[tuple[str, str]]:
    return lines_below(
        ("if TYPE_CHECKING:", f"    from {module} import Dummy as Dummy"),
        ("_NAMES = {", f'    "Dummy": "{module}",'),
    )


EXPORT_OF_MODEL = lines_below(
    ("if TYPE_CHECKING:", "    from bayescrowd.models import dummy as dummy"),
)
ENTRY = '    Published("dummy", "bayescrowd", "Test", "a dummy", module=f"{_HOME}.mi.dummy"),'

CHANGES: dict[str, dict[str, str | list[tuple[str, str]]]] = {
    "An aggregator": {
        "bayescrowd/aggregation/dummy.py": AGGREGATOR,
        "bayescrowd/__init__.py": export_of("bayescrowd.aggregation.dummy"),
    },
    "A model without conditionals": {
        "models/dummy.py": MODEL.replace("{has_conditionals}", "False"),
        "models/__init__.py": EXPORT_OF_MODEL,
    },
    "A model with conditionals": {
        "models/dummy.py": MODEL.replace("{has_conditionals}", "True"),
        "bayescrowd/posterior/conditionals/dummy.py": CONDITIONALS,
        "models/__init__.py": EXPORT_OF_MODEL,
    },
    "A policy": {
        "bayescrowd/budgeted/policies/dummy.py": POLICY,
        "bayescrowd/__init__.py": export_of("bayescrowd.budgeted.policies.dummy"),
    },
    "An experiment": {
        "bayescrowd/experiments/mi/dummy.py": EXPERIMENT,
        "bayescrowd/experiments/engine/catalogue.py": lines_below(("_ENTRIES = [", ENTRY)),
    },
}
"""For each file, what a new one contains, or what is put in place of what in an old one."""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the sources; `bayescrowd/models` is a link to `models`, as in the checkout."""
    for folder in ("bayescrowd", "models"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=skip)
    return tmp_path


def add_dummy(house: Path, kind: str) -> None:
    """Change the files that the list names, and no other."""
    changes = CHANGES[kind]
    assert {*changes} <= {path_of(file) for file in LISTS[kind]}
    for file, change in changes.items():
        path = house / file
        if isinstance(change, str):
            assert not path.exists()
            path.write_text(change.lstrip(), encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        for old, new in change:
            assert f"\n{old}\n" in text, (file, old)
            text = text.replace(f"\n{old}\n", f"\n{new}\n", 1)
        path.write_text(text, encoding="utf-8")


PRELUDE = """
import json
from importlib.util import module_from_spec, spec_from_file_location
import bayescrowd as bc
from bayescrowd.cli import main

def discovered(path, name):
    spec = spec_from_file_location("contract", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return [found.__name__ for found in getattr(module, name)]
"""
"""Public names, and what a contract test finds by export."""


def run(house: Path, code: str) -> dict[str, Any]:
    """Run code in a process that sees the copy; returns the JSON of its last line, and the rest."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + dedent(code)],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *output, found = done.stdout.splitlines()
    return {"output": "\n".join(output), **json.loads(found)}


LABELS = "task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n"


def test_an_aggregator_works_by_its_list(house: Path) -> None:
    add_dummy(house, "An aggregator")
    (house / "labels.csv").write_text(LABELS)
    found = run(
        house,
        f"""
        codes = [main(["aggregate", "--help"])]
        codes += [main(["aggregate", "labels.csv", "--method", "dummy"])]
        ann = bc.Annotations.from_matrix([["x", "x", "y"], ["y", None, "y"]])
        print(json.dumps({{
            "codes": codes,
            "home": bc.__file__,
            "labels": bc.Dummy().fit(ann).labels_.to_list(),
            "classes": discovered({str(ROOT / "tests/test_contract.py")!r}, "AGGREGATORS"),
        }}))
        """,
    )
    assert found["home"] == str(house / "bayescrowd/__init__.py")
    assert found["labels"] == ["x", "y"]
    assert found["codes"] == [0, 0]
    assert "  dummy             The vote under another name\n" in found["output"]
    assert "\ndummy: " in found["output"]
    assert "Dummy" in found["classes"]


SAMPLING = """
crowd = bc.simulate.crowd(20, 5, accuracy=0.8, seed=0).annotations
options = {"chains": 1, "draws": 40, "warmup": 20, "predictive": False, "progress": False}
post = bc.sample_posterior("dummy", crowd, **options)
codes = [main([command, "--help"]) for command in ("posterior", "compare")]
print(json.dumps({
    "codes": codes,
    "method": post.attrs["method"],
    "models": list(bc.models.catalogue("labels")),
    "workers": len(bc.worker_posterior(post)),
    "compared": list(bc.compare({"dummy": post}).index),
}))
"""


@pytest.mark.parametrize(
    ("kind", "method"),
    [("A model with conditionals", "gibbs"), ("A model without conditionals", "nuts")],
)
def test_a_model_works_by_its_list(house: Path, kind: str, method: str) -> None:
    add_dummy(house, kind)
    found = run(house, SAMPLING)
    assert found["method"] == method
    assert "dummy" in found["models"]
    assert found["workers"] == 5
    assert found["compared"] == ["dummy"]
    assert found["codes"] == [0, 0]
    line = "  dummy                     one dummy per worker\n"
    assert found["output"].count(line) == 2


def test_a_policy_works_by_its_list(house: Path) -> None:
    add_dummy(house, "A policy")
    rows = "".join(f"{i % 2},{i % 3},{'ab'[i % 2]}\n" for i in range(60))
    (house / "pilot.csv").write_text("x,y,kind\n" + rows)
    found = run(
        house,
        f"""
        space = bc.FeatureSpace(classes=["a", "b"], features={{"x": [0, 1], "y": [0, 1]}})
        policy = bc.Dummy(space, budget=6, n_features=1)
        while (query := policy.ask()) is not None:
            policy.tell(query, int(query.target == "a") if query.feature == "x" else 0)
        options = ["--target", "kind", "--budget", "10", "--features", "1", "--repeats", "2"]
        codes = [main(["budget", "simulate", "--help"])]
        codes += [
            main(["budget", "simulate", "pilot.csv", *options, "--jobs", "1", "--policy", name])
            for name in ("dummy", "Dummy")
        ]
        print(json.dumps({{
            "codes": codes,
            "selected": list(policy.result().selected),
            "classes": discovered({str(ROOT / "tests/budgeted/test_policy.py")!r}, "POLICIES"),
        }}))
        """,
    )
    assert found["selected"] == ["x"]
    assert found["codes"] == [0, 0, 0]
    assert "  dummy                All features in turn under another name\n" in str(
        found["output"]
    )
    assert "Dummy" in found["classes"]


def test_an_experiment_works_by_its_list(house: Path) -> None:
    add_dummy(house, "An experiment")
    found = run(
        house,
        """
        codes = [main(["reproduce", "list"]), main(["reproduce", "dummy", "--jobs", "1"])]
        print(json.dumps({"codes": codes}))
        """,
    )
    assert found["codes"] == [0, 0]
    assert "dummy                     available         Test: a dummy" in found["output"]
    assert "1 of 1 published cells match." in found["output"]
    assert (house / "reproduce/dummy.png").exists()


def test_control_a_dummy_that_is_not_exported_is_not_found(house: Path) -> None:
    (house / "bayescrowd/aggregation/dummy.py").write_text(AGGREGATOR.lstrip(), encoding="utf-8")
    (house / "labels.csv").write_text(LABELS)
    code = 'print(json.dumps({"code": main(["aggregate", "labels.csv", "--method", "dummy"])}))'
    assert run(house, code)["code"] == 2


# Habits


def test_hooks_and_workflow_do_what_ci_does() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    tools = r"(?:ruff|mypy) [^\n]+"
    run_by_ci = re.findall(rf'^start "[^"]+" \$env/({tools})', script, flags=re.MULTILINE)
    assert run_by_ci
    assert re.findall(rf"entry: \.venv-bayescrowd/bin/({tools})", hooks) == run_by_ci
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"- run: (.+)", workflow) == [".ci/run"]


def test_commands_name_files_and_markers_that_exist() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)["tool"]
    assert any(mark.startswith("slow:") for mark in settings["pytest"]["ini_options"]["markers"])
    named = re.findall(r"`((?:bayescrowd|models|tests)/[\w/.]+)`", TEXT)
    assert named
    assert not [
        file for file in named if not re.search("NAME|PAPER", file) and not (ROOT / file).exists()
    ]
