import pandas as pd
import pytest

from bayescrowd.experiments.journal import Record
from bayescrowd.experiments.label_errors import CROWDS
from bayescrowd.experiments.outcome import outcomes_of
from bayescrowd.experiments.spectral_clip import EXPERIMENT, N_UPDATES, THRESHOLDS, lifted


def outcomes(error):
    """Made-up errors: `error(row, threshold)`."""
    records = {}
    for unit in EXPERIMENT.units(1):
        ids = [cell.id for cell in EXPERIMENT.cells if cell.part == unit.part]
        records[unit] = Record({id_: error(id_.row, float(id_.column)) for id_ in ids}, 1.0)
    return outcomes_of(EXPERIMENT, records, 1)


def opt_wins_at_a_tenth(row, threshold):
    if "MV-D&S" in row:
        return 20.0
    return 19.0 if threshold == 0.1 and "10 updates" in row else 21.0


def test_lifted_by_hand():
    rows = pd.DataFrame({"a": [0.9, 0.0], "b": [0.1, 1.0]})
    found = lifted(rows, 0.25)
    assert found.to_numpy().ravel() == pytest.approx([0.9 / 1.15, 0.25 / 1.15, 0.2, 0.8])
    assert rows.loc[1, "a"] == 0.0


def test_claim_holds_where_some_threshold_wins():
    claims = EXPERIMENT.claims(outcomes(opt_wins_at_a_tenth))
    assert [claim.holds for claim in claims] == [True] * len(CROWDS)
    assert claims[0].evidence == "Opt-D&S 19.00 % at 0.1, MV-D&S 20.00 % at 1e-06"


def test_control_a_tie_is_no_win():
    claims = EXPERIMENT.claims(outcomes(lambda row, threshold: 20.0))
    assert [claim.holds for claim in claims] == [False] * len(CROWDS)


def test_every_curve_has_every_threshold():
    assert len(EXPERIMENT.cells) == len(CROWDS) * 2 * len(N_UPDATES) * len(THRESHOLDS)
    assert {cell.id.column for cell in EXPERIMENT.cells} == {f"{t:g}" for t in THRESHOLDS}


def test_picture_has_a_panel_per_crowd_and_four_curves_in_each():
    figure = EXPERIMENT.draw(outcomes(opt_wins_at_a_tenth))
    assert [axes.get_title() for axes in figure.axes] == [crowd.title for crowd in CROWDS]
    assert {len(axes.lines) for axes in figure.axes} == {4}


@pytest.mark.parametrize("method", ["Opt-D&S", "MV-D&S"])
def test_bluebird(method, crowd):
    """EM ends at 11 to 12 errors of 108 from either start, and a vote at 26."""
    crowd("bluebird")
    values = EXPERIMENT.measure(f"Bird, {method}, 0.01", 0)
    assert {id_.row for id_ in values} == {
        f"Bird, {method}, 1 update",
        f"Bird, {method}, 10 updates",
    }
    assert all(100 * 11 / 108 - 1e-9 <= error <= 100 * 13 / 108 for error in values.values())
