import numpy as np
import pytest

from bayescrowd.experiments.engine.cells import Cell, CellId
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.multiselection import errors
from bayescrowd.experiments.multiselection.errors import (
    Population,
    Spread,
    format_spread,
    held_out_error,
    lead,
)


def test_later_judgements_begin_with_the_pilot():
    drawn = []

    def judge(rng, attribute, number):
        drawn.append((attribute, number))
        return rng.normal(size=(6, number))

    crowd = errors._Crowd(Population(np.arange(6.0), judge, 2, None), np.random.default_rng(0), 2)
    first = crowd.judgements(0, 2)
    np.testing.assert_array_equal(crowd.judgements(0, 5)[:, :2], first)
    assert drawn == [(0, 2)] * 3
    averages = crowd.averages(np.array([3, 0]))
    np.testing.assert_allclose(averages[:, 0], crowd.judgements(0, 3).mean(axis=1))


def test_held_out_error_by_hand():
    # The line through (0, 1) and (1, 3) predicts 5 at 2, where the target is 7.
    averages, target = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 7.0])
    found = held_out_error(averages, target, np.array([0, 1]), np.array([2]))
    assert found == pytest.approx(4.0)


def test_lead_is_paired_by_split():
    def outcome(name, *values):
        cell = Cell(CellId(name, "B=1"), name, None, "", 1, None, None)
        return Outcome(cell, "as is", values, values[0], None, "no published number")

    outcomes = [outcome("a", 1.0, 2.0), outcome("b", 3.0, 4.0), outcome("c", 9.0, 9.0)]
    one, *others = (each.cell.id for each in outcomes)
    assert lead(outcomes, one, others) == Spread(2.0, 0.0)
    assert format_spread(Spread(2.04, 0.5)) == "2.0 ± 0.50"
