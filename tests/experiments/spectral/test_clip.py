import pandas as pd
import pytest

from bayescrowd.experiments.engine.label_errors import CROWDS
from bayescrowd.experiments.spectral.clip import EXPERIMENT, N_UPDATES, THRESHOLDS, raise_entries


def opt_wins_at_a_tenth(row, threshold, seed):
    if "MV-D&S" in row:
        return 20.0
    return 19.0 if threshold == "0.1" and "10 updates" in row else 21.0


def test_raise_entries_by_hand():
    rows = pd.DataFrame({"a": [0.9, 0.0], "b": [0.1, 1.0]})
    found = raise_entries(rows, 0.25)
    assert found.to_numpy().ravel() == pytest.approx([0.9 / 1.15, 0.25 / 1.15, 0.2, 0.8])
    assert rows.loc[1, "a"] == 0.0


def test_claim_holds_where_some_threshold_wins(made_up):
    claims = EXPERIMENT.claims(made_up(EXPERIMENT, opt_wins_at_a_tenth))
    assert [claim.holds for claim in claims] == [True] * len(CROWDS)
    assert claims[0].evidence == "Opt-D&S 19.00 % at 0.1, MV-D&S 20.00 % at 1e-06"


def test_control_a_tie_is_no_win(made_up):
    claims = EXPERIMENT.claims(made_up(EXPERIMENT, lambda row, threshold, seed: 20.0))
    assert [claim.holds for claim in claims] == [False] * len(CROWDS)


def test_every_curve_has_every_threshold():
    assert len(EXPERIMENT.cells) == len(CROWDS) * 2 * len(N_UPDATES) * len(THRESHOLDS)
    assert {cell.id.column for cell in EXPERIMENT.cells} == {f"{t:g}" for t in THRESHOLDS}


def test_picture_has_a_panel_per_crowd_and_four_curves_in_each(made_up):
    figure = EXPERIMENT.draw(made_up(EXPERIMENT, opt_wins_at_a_tenth))
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
