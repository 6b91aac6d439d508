"""Checks every call of the package against its annotated types and array shapes.

A run can write down how long its tests took, and another leave out the long ones:

    pytest --write-seconds=FILE
    pytest --leave-out-long=FILE

`.ci/run` does so for its second Python. The seconds are measured rather than marked, so that nobody
keeps a list. Tests of the package as a whole, which stand directly in this folder, are always run,
but for those of the contract that every estimator and policy keeps.

With BAYESCROWD_TYPE_CHECKS=0 in the environment, types are not checked. `.ci/run` does so where it
measures coverage and for the tests marked slow, whose many small calls would take twice the time.
"""

import gc
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import hypothesis
import jaxtyping
import pytest

FOLDER = Path(__file__).parent

LONG = 0.25
"""Seconds from which on a test is left out by --leave-out-long."""

os.environ.setdefault("MPLBACKEND", "agg")
# There is a process per core already: more threads for small matrices only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Compiling takes a good part of the suite's time: what one process has compiled, the others read,
# and so does a run on another Python.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(FOLDER.parent / ".pytest_cache/jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

if "bayescrowd" in sys.modules:
    raise RuntimeError("bayescrowd was imported before the hook that checks its types")
HAS_TYPE_CHECKS = os.environ.get("BAYESCROWD_TYPE_CHECKS", "1") != "0"
if HAS_TYPE_CHECKS:
    # As for static checkers (PEP 484), an int will do where a float is asked for.
    jaxtyping.install_import_hook(
        "bayescrowd", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
    )

# Compilation makes the first example slow, and a test must not depend on the day's seed.
hypothesis.settings.register_profile("bayescrowd", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("bayescrowd")


N_TESTS = pytest.StashKey[int]()
"""Number of tests that this process has run."""

TESTS_BETWEEN_LOOKS = 10
"""Tests between two looks at the memory maps."""

MOST_MAPS = 20_000
"""Memory maps above which compiled programs are forgotten."""


seconds: dict[str, float] = defaultdict(float)
"""How long each test took, by its id; filled where the reports of all workers arrive."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("bayescrowd")
    group.addoption("--write-seconds", metavar="FILE", help="write how long each test took")
    group.addoption(
        "--leave-out-long",
        metavar="FILE",
        help=f"run only tests that took less than {LONG} seconds in the run that wrote the file",
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the time of a test without that of its fixtures, which others may share."""
    if report.when == "call":
        seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file, once and not by every worker."""
    if (path := session.config.getoption("--write-seconds")) and not hasattr(
        session.config, "workerinput"
    ):
        Path(path).write_text(json.dumps(seconds, indent=0), encoding="utf-8")


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Forget compiled programs before the operating system refuses to map any more of them.

    A program of XLA takes up to two hundred memory maps, of which Linux allows a process 65,530;
    beyond that it is aborted. What is still needed is read from the cache on disk.
    """
    item.session.stash[N_TESTS] = n_tests = item.session.stash.get(N_TESTS, 0) + 1
    maps = Path("/proc/self/maps")
    if n_tests % TESTS_BETWEEN_LOOKS or "jax" not in sys.modules or not maps.exists():
        return
    if maps.read_bytes().count(b"\n") > MOST_MAPS:
        sys.modules["jax"].clear_caches()
        gc.collect()


def is_of_whole_package(item: pytest.Item) -> bool:
    """Whether a test is of the package as a whole; the contract is of each estimator and policy."""
    return item.path.parent == FOLDER and item.path.name != "test_contract.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long tests, and the tests of type checks where types are not checked."""
    path = config.getoption("--leave-out-long")
    took = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    left_out = {
        item
        for item in items
        if (took.get(item.nodeid, 0) >= LONG and not is_of_whole_package(item))
        or (item.get_closest_marker("types") and not HAS_TYPE_CHECKS)
    }
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def development_crowd():
    """Reads a crowd of the folder `crowds` of BAYESCROWD_DATA, or skips the test without it.

    Returns a function of the crowd's name, which returns its annotations and truth.
    """
    import pandas as pd

    import bayescrowd as bc

    folder = Path(os.environ.get("BAYESCROWD_DATA", "")) / "crowds"
    read = {}

    def load(name):
        files = [folder / name / file for file in ("labels.csv.gz", "truth.csv")]
        if "BAYESCROWD_DATA" not in os.environ or not all(file.is_file() for file in files):
            pytest.skip(f"crowds/{name} is not in the folder that BAYESCROWD_DATA names")
        if name not in read:
            labels, truth = (pd.read_csv(file) for file in files)
            ann = bc.Annotations.from_frame(labels)
            read[name] = ann, truth.set_index("task")["label"]
        return read[name]

    return load
