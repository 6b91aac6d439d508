"""Values measured today against those on record, and how a record is written and compared."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bayescrowd import datasets
from bayescrowd.experiments.engine.catalogue import experiment_named
from bayescrowd.experiments.engine.experiment import CellId
from bayescrowd.experiments.engine.journal import UnitJournal
from bayescrowd.experiments.engine.recorded import (
    Recorded,
    experiments_to_record,
    main,
    measured_values,
    moved_cells,
    path_of,
    read_recorded,
    write_recorded,
)
from bayescrowd.experiments.engine.runner import measure_missing

ROOT = Path(__file__).parents[3]

FOLDER = Path(__file__).parents[1] / "recorded"
"""Written by `python -m bayescrowd.experiments.engine.recorded tests/experiments/recorded`."""

EXPERIMENTS = {experiment.name: experiment for experiment in experiments_to_record()}

N_SEEDS = {"bleafs-table1": 1, "bleafs-table2": 1, "mi-table2": 1}
"""Number of seeds in the quick test, so that it takes a few seconds. Tables not named here are
measured with all their seeds; the slow test measures everything."""

DATA = {
    "mi-table1": ("bluebird", "rte", "trec", "dog", "web"),
    "mi-table2": ("bluebird", "rte", "trec", "dog", "web"),
    "spectral-table1": ("bluebird", "rte", "trec", "dog", "web"),
    "stagewise-table1": ("bluebird", "dog"),
    "bleafs-table1": ("nursery",),
    "bleafs-table2": ("breast-cancer",),
}


def of_published_cells(experiment):
    """The parts that measure at least one published number."""
    names = {cell.part for cell in experiment.cells if cell.published is not None}
    return dataclasses.replace(
        experiment,
        parts=tuple(part for part in experiment.parts if part.name in names),
        cells=tuple(cell for cell in experiment.cells if cell.part in names),
    )


def skip_without_data(name):
    for needed in DATA.get(name, ()):
        if not datasets.is_local(needed):
            pytest.skip(f"{needed} is not on this machine")


def moved(experiment, folder, n_seeds):
    skip_without_data(experiment.name)
    journal = UnitJournal(folder / "journal", experiment)
    measure_missing(experiment, journal, n_seeds=n_seeds, n_jobs=1)
    measured = measured_values(experiment, experiment.units(n_seeds), journal.records)
    return moved_cells(experiment, read_recorded(path_of(experiment, FOLDER)), measured)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_published_cells_have_not_moved(name, tmp_path):
    experiment = of_published_cells(EXPERIMENTS[name])
    found = moved(experiment, tmp_path, N_SEEDS.get(name, experiment.n_seeds))
    assert not found, "; ".join(map(str, found))


@pytest.mark.slow
@pytest.mark.parametrize("name", N_SEEDS)
def test_published_cells_have_not_moved_with_all_seeds(name, tmp_path):
    """Measured by the command in a process of its own.

    The quick test calls the same functions with their types checked, which takes several times as
    long as the measurement.
    """
    skip_without_data(name)
    shutil.copy(path_of(EXPERIMENTS[name], FOLDER), tmp_path)
    command = [sys.executable, "-m", "bayescrowd.experiments.engine.recorded", tmp_path, name]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stderr == f"{name}: 0 of {len(EXPERIMENTS[name].cells)} cells moved\n"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_record_covers_all_cells_and_seeds(name):
    experiment = EXPERIMENTS[name]
    recorded = read_recorded(path_of(experiment, FOLDER))
    assert recorded.settings == experiment.settings
    is_random = {part.name: part.is_random for part in experiment.parts}
    assert {id_: len(values) for id_, values in recorded.values.items()} == {
        cell.id: experiment.n_seeds if is_random[cell.part] else 1 for cell in experiment.cells
    }


def test_nothing_else_is_on_record():
    assert {path.stem for path in FOLDER.iterdir()} == set(EXPERIMENTS)


FIXED, DRAWN = CellId("fixed", "a"), CellId("drawn", "a")


@pytest.mark.parametrize(
    ("shift", "n_moved"),
    [
        (0.5, 0),  # one of 200 items
        (0.51, 1),
        (-0.5, 0),
        (-0.51, 1),
        (float("nan"), 1),
    ],
)
def test_one_item_is_rounding_and_two_are_not(toy, shift, n_moved):
    recorded = Recorded(toy.experiment.settings, {FIXED: (10.0,)})
    found = moved_cells(toy.experiment, recorded, {FIXED: {0: 10.0 + shift}})
    assert len(found) == n_moved


def test_values_without_items_must_stay(toy):
    cells = tuple(cell._replace(n_items=None) for cell in toy.experiment.cells)
    experiment = dataclasses.replace(toy.experiment, cells=cells)
    recorded = Recorded(experiment.settings, {FIXED: (10.0,)})
    assert not moved_cells(experiment, recorded, {FIXED: {0: 10.0 + 1e-6}})  # stored digits
    assert moved_cells(experiment, recorded, {FIXED: {0: 10.00001}})


@pytest.mark.parametrize(("n_runs", "n_other", "n_moved"), [(9, 1, 1), (10, 1, 0), (10, 2, 1)])
def test_one_run_in_ten_may_take_another_path(toy, n_runs, n_other, n_moved):
    recorded = Recorded(toy.experiment.settings, {DRAWN: (12.0,) * n_runs})
    now = {seed: 20.0 if seed < n_other else 12.0 for seed in range(n_runs)}
    found = moved_cells(toy.experiment, recorded, {DRAWN: now})
    assert len(found) == n_moved
    if found:
        assert str(found[0]) == (
            f"drawn | a: seed 0 had 12 and has 20 ({n_other} of {n_runs} runs moved)"
        )


def test_record_of_other_settings_or_fewer_seeds_is_refused(toy):
    other = {**toy.experiment.settings, "fixed": "as was"}
    with pytest.raises(ValueError, match="fixed is recorded with 'as was' and now has 'as is'"):
        moved_cells(toy.experiment, Recorded(other, {FIXED: (10.0,)}), {FIXED: {0: 10.0}})
    short = Recorded(toy.experiment.settings, {DRAWN: (12.0, 12.0)})
    with pytest.raises(ValueError, match="recorded with 2 seeds, and seed 2 was measured"):
        moved_cells(toy.experiment, short, {DRAWN: {2: 12.0}})
    with pytest.raises(ValueError, match="recorded with 0 seeds"):
        moved_cells(toy.experiment, short, {FIXED: {0: 12.0}})


def test_record_is_written_and_read_back(toy, tmp_path):
    path = tmp_path / "toy.json"
    measured = {FIXED: {0: 100 / 3}, DRAWN: {1: 2.0, 0: 1.0}}
    write_recorded(path, toy.experiment, measured)
    assert read_recorded(path) == Recorded(
        toy.experiment.settings, {FIXED: (33.333333,), DRAWN: (1.0, 2.0)}
    )
    assert json.loads(path.read_text())["n_seeds"] == 4
    # a cell has a line of its own
    assert '  ["drawn", "a", [1.0, 2.0]]' in path.read_text().splitlines()


def test_command_records_and_says_what_moved(toy, tmp_path, capsys):
    folder = tmp_path / "records"
    main([str(folder), "toy"])
    assert capsys.readouterr().err == "toy: recorded for the first time\n"
    path = path_of(toy.experiment, folder)
    values = dict(read_recorded(path).values)
    assert values[DRAWN] == (14.0, 12.0, 14.0, 14.0)
    main([str(folder), "toy"])
    assert capsys.readouterr().err == "toy: 0 of 3 cells moved\n"
    path.write_text(path.read_text().replace("[10.0]", "[11.0]"))
    main([str(folder), "toy"])
    assert capsys.readouterr().err.splitlines() == [
        "toy: 1 of 3 cells moved",
        "  fixed | a: seed 0 had 11 and has 10 (1 of 1 runs moved)",
    ]
    assert read_recorded(path).values == values


def test_control_a_cell_with_a_reason_that_moves_is_reported():
    """Dog's vote has a reason; if it lost five items, only the record would show it."""
    experiment = experiment_named("spectral-table1")
    id_ = CellId("Dog", "Majority Voting")
    recorded = read_recorded(path_of(experiment, FOLDER))
    (value,) = recorded.values[id_]
    (found,) = moved_cells(experiment, recorded, {id_: {0: value + 100 * 5 / 807}})
    assert found.id == id_
