import dataclasses

import pytest

from bayescrowd.experiments.engine.experiment import CellId
from bayescrowd.experiments.engine.journal import UnitJournal
from bayescrowd.experiments.engine.label_errors import CROWDS, loaded_crowd
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.engine.results import outcomes_of
from bayescrowd.experiments.engine.runner import measure_missing
from bayescrowd.experiments.mi.figure3 import EXPERIMENT, SHARES, _id, n_workers_at
from bayescrowd.experiments.mi.selection import mutual_information_ranking


@pytest.fixture
def bird(tmp_path, crowd):
    """The votes on the smallest crowd, both rankings, and the scores."""
    crowd("bluebird")
    names = ("Bird, selected, MV", "Bird, supervised, MV", "Bird, score")
    experiment = dataclasses.replace(
        EXPERIMENT,
        parts=tuple(part for part in EXPERIMENT.parts if part.name in names),
        cells=tuple(cell for cell in EXPERIMENT.cells if cell.part in names),
    )
    journal = UnitJournal(tmp_path / "journal", experiment)
    measure_missing(experiment, journal, n_seeds=1, n_jobs=1)
    found = outcomes_of(experiment, journal.records, 1)
    return {outcome.cell.id: outcome.measured for outcome in found}


def test_numbers_of_workers(crowd):
    for each in CROWDS:
        crowd(each.name)
        assert n_workers_at(each.title, 100) == loaded_crowd(each.name).annotations.n_workers
        numbers = [n_workers_at(each.title, share) for share in SHARES]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 1


def test_curves_of_the_smallest_crowd(bird):
    # Everybody: 26 of 108 items; six workers: 11.
    assert bird[CellId("Bird, selected, MV", "100%")] == pytest.approx(100 * 26 / 108)
    assert bird[CellId("Bird, supervised, MV", "100%")] == pytest.approx(100 * 26 / 108)
    assert bird[CellId("Bird, selected, MV", "15%")] == pytest.approx(100 * 11 / 108)
    scores = mutual_information_ranking("bluebird")
    shown = [bird[_id("Bird, score", share)] for share in SHARES]
    assert shown == sorted(shown, reverse=True)
    assert shown[-1] == pytest.approx(scores.min())
    assert shown[0] == pytest.approx(scores.max())


def test_parts():
    assert len(EXPERIMENT.parts) == 5 * 7
    assert {p.name.split(", ")[-1] for p in EXPERIMENT.parts if p.is_random} == {"OPT-D&S"}


def test_picture_and_claims(tmp_path):
    falling = {f"{share:g}%": 30 - 10 * place / len(SHARES) for place, share in enumerate(SHARES)}
    made_up = [
        Outcome(cell, "made up", (value, value + 1), value, None, "no published number")
        for cell in EXPERIMENT.cells
        for value in [falling[cell.id.column]]
    ]
    figure = EXPERIMENT.draw(made_up)
    figure.savefig(tmp_path / "figure.png")
    assert len(figure.axes) == 10
    claims = EXPERIMENT.claims(made_up)
    assert len(claims) == 7
    # Errors that fall until the last worker leave nothing to gain; both rankings are the same.
    assert [claim.holds for claim in claims] == [False] * 5 + [True] * 2
