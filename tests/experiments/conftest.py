"""A small experiment, written as a module that other processes can import."""

import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bayescrowd import datasets
from bayescrowd.experiments.engine import catalogue
from bayescrowd.experiments.engine.journal import Record
from bayescrowd.experiments.engine.results import outcomes_of

SOURCE = """
import os
import pathlib
import signal

import numpy as np
from matplotlib.figure import Figure

from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part

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
    """The toy experiment, listed in the catalogue, with its folder, calls and obstacles."""
    folder = tmp_path / "module"
    folder.mkdir()
    module = f"toy_{tmp_path.name}"
    (folder / f"{module}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    entry = catalogue.Published("toy", "bayescrowd", "Nowhere", "nothing", module=module)
    monkeypatch.setitem(catalogue.CATALOGUE, "toy", entry)

    def calls():
        """Units measured since the last call, sorted."""
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


@pytest.fixture(scope="session")
def made_up():
    """Outcomes of an experiment with the values `value(row, column, seed)`."""

    def outcomes(experiment, value, n_seeds=3):
        records = {
            unit: Record(
                {
                    cell.id: float(value(*cell.id, unit.seed))
                    for cell in experiment.cells
                    if cell.part == unit.part
                },
                1.0,
            )
            for unit in experiment.units(n_seeds)
        }
        return outcomes_of(experiment, records, n_seeds)

    return outcomes


@pytest.fixture
def claims(made_up):
    """The claims of an experiment about the values `value(row, column, seed)`, by their text."""

    def judge(experiment, value):
        return {claim.text: claim for claim in experiment.claims(made_up(experiment, value))}

    return judge


@pytest.fixture
def drawn(made_up):
    """The picture of an experiment whose values are 10, 11, ... by seed."""

    def draw(experiment):
        figure = experiment.draw(made_up(experiment, lambda row, column, seed: 10 + seed))
        FigureCanvasAgg(figure).draw()
        return figure

    return draw


@pytest.fixture
def crowd():
    """Skip the test unless the named public crowd is on this machine; tests download nothing."""

    def need(name):
        if not datasets.is_local(name):
            pytest.skip(f"{name} is not on this machine")

    return need
