"""The pictures of selection show what they say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

import bayescrowd as bc
from bayescrowd import plots
from bayescrowd.plots.canvas import BLUE, VERMILLION


@pytest.fixture(scope="module")
def data():
    return bc.simulate.sparse_crowd(200, 30, alpha=0.2, accuracy=0.8, seed=0)


def test_score_curve_marks_the_selected(data):
    selector = bc.MutualInformationSelector(6).fit(data.annotations)
    ax = plots.score_curve(selector)
    falling = np.sort(selector.scores_)[::-1]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), falling)
    chosen, left_out = (c.get_offsets()[:, 1] for c in ax.collections)
    np.testing.assert_allclose(chosen, falling[:6])
    np.testing.assert_allclose(left_out, falling[6:])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["selected (6)", "left out (24)"]


def test_score_curve_when_everybody_is_selected(data):
    selector = bc.MutualInformationSelector(30).fit(data.annotations)
    ax = plots.score_curve(selector)
    assert ax.get_title(loc="left") == "30 of 30 selected"
    assert len(ax.collections) == 1


def test_selection_errors_draws_a_line_per_pair(data):
    curve = bc.selection_curve(
        data.annotations,
        data.truth,
        {"score": bc.MutualInformationSelector()},
        {"MV": bc.MajorityVote(), "Wawa": bc.Wawa()},
        sizes=[30, 2, 6],
    )
    ax = plots.selection_errors(curve)
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == {"MV, score", "MV, supervised", "Wawa, score", "Wawa, supervised"}
    shown = lines["Wawa, score"]
    assert list(shown.get_xdata()) == [2, 6, 30]
    expected = curve.query("selector == 'score' and aggregator == 'Wawa'").set_index("n_workers")
    np.testing.assert_allclose(shown.get_ydata(), expected["error"][[2, 6, 30]])
    assert lines["MV, supervised"].get_linestyle() == "--"
    assert lines["MV, score"].get_linestyle() == "-"
    colours = [to_hex(lines[f"{m}, score"].get_color()).upper() for m in ("MV", "Wawa")]
    assert colours == [BLUE, VERMILLION]


def test_selection_errors_needs_the_columns():
    with pytest.raises(ValueError, match="no column 'aggregator'"):
        plots.selection_errors(pd.DataFrame({"error": [0.1]}))


def test_unexplained_pairs_are_those_of_the_mixture(data):
    coins = np.random.default_rng(0).integers(2, size=(80, 3))
    mixture = bc.MDPD(1).fit(
        pd.DataFrame(np.column_stack([coins, coins[:, 1]]), columns=list("abcd"))
    )
    ax = plots.unexplained_pairs(mixture)
    names = [t.get_text() for t in ax.get_xticklabels()]
    assert sorted(names[:2]) == ["b", "d"]
    shown = ax.images[0].get_array()
    assert shown[0, 1] == pytest.approx(mixture.unexplained().loc["b", "d"])
    assert np.ma.getmaskarray(shown)[0, 0] or np.isnan(shown[0, 0])
    assert ax.figure.axes[1].get_ylabel().endswith("nats")


def test_unexplained_pairs_of_many_features_names_some():
    table = np.random.default_rng(0).integers(2, size=(40, 50))
    ax = plots.unexplained_pairs(bc.MDPD(2, n_init=1, n_iter=2000).fit(table))
    assert len(ax.get_xticklabels()) == 17
