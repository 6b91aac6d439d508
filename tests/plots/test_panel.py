"""Pictures of panels show the numbers of the report, with and without gold."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import bayescrowd as bc
from bayescrowd import plots


@pytest.fixture(scope="module")
def data():
    return bc.simulate.panel(
        150, 5, clusters=[3], copying=1.0, accuracy=[0.8] * 5, prevalence=[0.3, 0.7], seed=1
    )


@pytest.fixture(scope="module")
def report(data):
    return bc.panel_report(data.annotations, data.truth.iloc[:20], most_dropped=0)


@pytest.fixture(scope="module")
def bare(report):
    return bc.panel_report(report.estimator, most_dropped=0)


def test_agreement_is_drawn_with_clusters_in_frames(report):
    ax = plots.panel_agreement(report)
    shown = ax.images[0].get_array()
    expected = report.agreement.to_numpy(copy=True)
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_array_equal(np.ma.filled(shown, np.nan), expected)
    frames = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert [(f.get_x(), f.get_width()) for f in frames] == [
        *((-0.5, len(c)) for c in report.dependence.clusters[:1])
    ]
    assert ax.texts[0].get_text() == f"{100 * expected[0, 1]:.0f}"


def test_accuracies_are_sorted_and_the_panel_is_marked(report):
    ax = plots.panel_accuracies(report)
    dots = next(line for line in ax.get_lines() if line.get_marker() == "o")
    expected = np.sort(report.accuracies["accuracy"].to_numpy())[::-1]
    np.testing.assert_allclose(dots.get_xdata(), expected)
    own = [line for line in ax.get_lines() if line.get_label() == "the panel's labels"]
    assert own[0].get_xdata()[0] == pytest.approx(report.gold_report.accuracy["estimate"])


def test_shares_of_one_class_by_all_methods(report):
    ax = plots.panel_shares(report, positive=0)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:4] == ["post-stratified", "PPI++", "Rogan–Gladen", "gold alone"]
    dot = next(line for line in ax.get_lines() if line.get_marker() == "o")
    assert dot.get_xdata()[0] == pytest.approx(report.shares.shares.loc[0, "share"])
    with pytest.raises(ValueError, match="positive is 9; expected one of the classes 0, 1"):
        plots.panel_shares(report, positive=9)


def test_without_gold_nothing_has_an_interval(bare):
    ax = plots.panel_shares(bare)
    assert len(ax.collections) == 0
    assert "no interval without gold" in ax.get_xlabel()
    with pytest.raises(ValueError, match="accuracies need gold"):
        plots.panel_accuracies(bare)
    with pytest.raises(ValueError, match="no costs of dropping judges"):
        plots.panel_dropping(bare)


def test_overview_has_four_pictures_with_and_without_gold(report, bare, tmp_path):
    for one in (report, bare):
        figure = plots.panel_overview(one)
        assert len(figure.axes) == 4
        figure.savefig(tmp_path / "panel.png")
    given = Figure()
    assert plots.panel_overview(bare, fig=given) is given
    assert "Accuracies need gold." in [text.get_text() for text in given.axes[1].texts]


def test_many_judges_and_many_classes():
    rng = np.random.default_rng(0)
    names = [f"a rather long name of a judge/{i}" for i in range(40)]
    matrix = pd.DataFrame(rng.integers(0, 4, (30, 40)), columns=names)
    report = bc.panel_report(bc.Annotations.from_matrix(matrix), most_dropped=0)
    ax = plots.panel_agreement(report)
    assert len(ax.get_yticks()) <= 30
    assert len(ax.texts) == 0
    shares = plots.panel_shares(report)
    assert [label.get_text() for label in shares.get_yticklabels()] == ["0", "1", "2", "3"]
