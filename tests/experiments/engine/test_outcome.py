import math

import pytest

from bayescrowd.experiments.engine.cells import Cell, CellId
from bayescrowd.experiments.engine.outcome import Outcome

CELL = Cell(CellId("Bird", "MV"), "Bird, MV", 24.07, "%", 2, 108, "one run")


def outcome(*values, verdict="matches"):
    return Outcome(CELL, "as is", values, values[0], None, verdict)


def test_spread_and_standard_error_by_hand():
    found = outcome(1.0, 2.0, 3.0, 4.0, 10.0)
    assert found.spread == (1.0, 2.0, 4.0, 10.0)
    # squared deviations from 4: 9 + 4 + 1 + 0 + 36 = 50
    assert found.standard_error == pytest.approx(math.sqrt(50 / 4 / 5))


def test_a_single_run_has_no_standard_error():
    assert math.isnan(outcome(1.0).standard_error)
    assert outcome(1.0).spread == (1.0,) * 4


def test_only_differences_are_explained():
    assert outcome(20.0, 30.0).explanation is None
    found = outcome(20.0, 30.0, verdict="differs by -4.4 items")
    assert found.explanation == "within the 2 runs; one run"
