"""The command line offers what the package exports, and finds it without importing it."""

import inspect
import subprocess
import sys

import pytest

import bayescrowd as bc
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.budgeted.policy import Policy
from bayescrowd.cli.arguments import METHODS
from bayescrowd.cli.budget_runs import POLICIES
from bayescrowd.cli.exports import command_name, exported_classes, summary_of


def exported_subclasses(base):
    found = {name: getattr(bc, name) for name in bc.__all__ if name[0].isupper()}
    return {name for name, c in found.items() if inspect.isclass(c) and issubclass(c, base)}


def test_methods_are_the_exported_aggregators():
    offered = [method.estimator for method in METHODS.values()]
    assert sorted(offered) == sorted(exported_subclasses(Aggregator))


def test_policies_are_those_exported_and_variants_of_them():
    offered = [offer.policy for offer in POLICIES.values() if not offer.options]
    assert sorted(offered) == sorted(exported_subclasses(Policy))
    assert {offer.policy for offer in POLICIES.values()} == set(offered)


@pytest.mark.parametrize(
    ("folder", "base"), [("aggregation", Aggregator), ("budgeted.policies", Policy)]
)
def test_classes_of_a_folder_are_of_its_kind(folder, base):
    names = exported_classes(folder)
    assert names
    assert set(names) <= exported_subclasses(base)
    for name in names:
        assert summary_of(name) == getattr(bc, name).__doc__.splitlines()[0].removesuffix(".")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Wawa", "wawa"), ("MMSR", "mmsr"), ("TsGreedy", "ts-greedy"), ("EigenRatio", "eigen-ratio")],
)
def test_command_names(name, expected):
    assert command_name(name) == expected


def test_summaries_are_read_without_importing():
    code = (
        "import sys; from bayescrowd.cli.exports import *; "
        "[summary_of(name) for name in exported_classes('aggregation')]; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "sklearn"} & set(run.stdout.split())
