import dataclasses

import pytest

from bayescrowd.experiments.engine.experiment import CellId
from bayescrowd.experiments.engine.journal import UnitJournal
from bayescrowd.experiments.engine.runner import measure_missing

ALL = ["drawn 0", "drawn 1", "drawn 2", "fixed 0"]


def run(toy, path, n_jobs=1):
    journal = UnitJournal(path, toy.experiment)
    measure_missing(toy.experiment, journal, n_seeds=3, n_jobs=n_jobs)
    return {unit: record.values for unit, record in journal.records.items()}


def test_every_unit_is_measured_once(toy, tmp_path):
    values = run(toy, tmp_path / "journal")
    assert toy.calls() == ALL
    assert set(values) == set(toy.experiment.units(3))


def test_nothing_is_measured_twice(toy, tmp_path):
    first = run(toy, tmp_path / "journal")
    toy.calls()
    assert run(toy, tmp_path / "journal") == first
    assert toy.calls() == []


def test_the_number_of_processes_does_not_matter(toy, tmp_path):
    alone = run(toy, tmp_path / "alone")
    toy.calls()
    assert run(toy, tmp_path / "together", n_jobs=2) == alone
    assert toy.calls() == ALL


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_units_finished_before_an_error_are_kept(toy, tmp_path, n_jobs):
    toy.obstruct("fail", "drawn-1")
    with pytest.raises(ValueError, match="no data for drawn"):
        run(toy, tmp_path / "journal", n_jobs)
    done = [call for call in toy.calls() if call != "drawn 1"]
    toy.clear()
    run(toy, tmp_path / "journal")
    again = toy.calls()
    assert "drawn 1" in again
    if n_jobs == 1:  # with two, one may have been under way
        assert sorted(done + again) == ALL


def test_values_of_other_cells_are_refused(toy, tmp_path):
    experiment = dataclasses.replace(
        toy.experiment, measure=lambda part, seed: {CellId(part, "z"): 1.0}
    )
    journal = UnitJournal(tmp_path / "journal", experiment)
    with pytest.raises(ValueError, match="returned values for other cells than its own"):
        measure_missing(experiment, journal, n_seeds=1, n_jobs=1)
    assert journal.records == {}


def test_progress_is_silent_where_nobody_watches(toy, tmp_path, capsys):
    run(toy, tmp_path / "journal")
    assert capsys.readouterr() == ("", "")
