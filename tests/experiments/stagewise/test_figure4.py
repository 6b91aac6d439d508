import pytest

from bayescrowd.experiments.engine.experiment import CellId
from bayescrowd.experiments.stagewise.figure4 import EXPERIMENT


def test_settings():
    (part,) = EXPERIMENT.parts
    assert part.settings.startswith("StagewiseEM(")
    assert "seed" not in part.settings


def test_claims(claims):
    def value(row, column, seed):
        return {
            "size of S": 10,
            "best 5 workers in S": 5,
            "first 8 of S among the best 15": 8,
        }.get(row, 0.01 if column == "7" else 0.1)

    assert all(claim.holds for claim in claims(EXPERIMENT, value).values())
    fewer = claims(EXPERIMENT, lambda row, column, seed: 4)
    # All four members of S are among the best 15.
    assert [claim.holds for claim in fewer.values()] == [False, True, False]


@pytest.mark.slow
def test_it_is_measured_and_drawn():
    values = EXPERIMENT.measure("draw", 0)
    assert set(values) == {cell.id for cell in EXPERIMENT.cells}
    assert values[CellId("size of S", "0")] == 0
    assert values[CellId("size of S", "7")] >= values[CellId("size of S", "3")] >= 3
    rows = ("mean information, first 30", "largest information, first 30")
    for row in rows:
        assert values[CellId(row, "7")] < values[CellId(row, "0")] / 2
    figure = EXPERIMENT.draw([])
    assert sum(axes.get_title(loc="left").startswith("S at") for axes in figure.axes) == 3
