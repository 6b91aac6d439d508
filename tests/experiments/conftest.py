"""A small experiment, written as a module that other processes can import."""

import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from bayescrowd import datasets
from bayescrowd.experiments import catalogue

SOURCE = """
import os
import pathlib
import signal

import numpy as np
from matplotlib.figure import Figure

from bayescrowd.experiments.experiment import Cell, CellId, Claim, Experiment, Part

FOLDER = pathlib.Path(__file__).parent


def cell(row, column, published, reason=None):
    return Cell(CellId(row, column), row, published, "%", 2, 200, reason)


def measure(part, seed):
    with open(FOLDER / "calls.txt", "a") as file:
        print(part, seed, file=file)
    if (FOLDER / f"stop-{part}-{seed}").exists():
        raise KeyboardInterrupt
    if (FOLDER / f"fail-{part}-{seed}").exists():
        raise ValueError(f"no data for {part}")
    if (FOLDER / f"kill-{part}-{seed}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if part == "fixed":
        return {CellId("fixed", "a"): 10.0, CellId("fixed", "b"): 20.0}
    draw = np.random.default_rng(seed).integers(20, 30)
    return {CellId("drawn", "a"): draw / 2}


def claims(outcomes):
    least = min(outcome.measured for outcome in outcomes)
    return [Claim("a is below 5 %", least < 5, f"{least:.2f} %")]


EXPERIMENT = Experiment(
    name="toy",
    title="A toy",
    parts=(Part("fixed", "as is", is_random=False), Part("drawn", "one draw", is_random=True)),
    cells=(
        cell("fixed", "a", 10.0),
        cell("fixed", "b", 19.0, "a misprint"),
        cell("drawn", "a", 13.0),
    ),
    measure=measure,
    draw=lambda outcomes: Figure(),
    n_seeds=4,
    claims=claims,
    notes=("Toys are not real.",),
)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The toy, in the catalogue under its name: its experiment, folder, calls and obstacles."""
    folder = tmp_path / "module"
    folder.mkdir()
    module = f"toy_{tmp_path.name}"
    (folder / f"{module}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    entry = catalogue.Published("toy", "bayescrowd", "Nowhere", "nothing", module=module)
    monkeypatch.setitem(catalogue.CATALOGUE, "toy", entry)

    def calls():
        """Units measured since the last look, sorted."""
        path = folder / "calls.txt"
        lines = sorted(path.read_text().splitlines()) if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    yield SimpleNamespace(
        experiment=import_module(module).EXPERIMENT,
        module=module,
        folder=folder,
        out=tmp_path / "out",
        calls=calls,
        obstruct=lambda how, unit: (folder / f"{how}-{unit}").touch(),
        clear=lambda: [path.unlink() for path in folder.glob("*-*")],
    )
    del sys.modules[module]


@pytest.fixture
def crowd():
    """Skip the test unless the named public crowd is on this machine; tests download nothing."""

    def need(name):
        if not datasets.is_local(name):
            pytest.skip(f"{name} is not on this machine")

    return need
