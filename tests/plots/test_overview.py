"""Several pictures in one figure: which ones, and what the title says."""

import pytest

import bayescrowd as bc


@pytest.fixture(scope="module")
def data():
    return bc.simulate.crowd(100, 12, spammers=0.25, seed=0)


@pytest.fixture(scope="module")
def default(data):
    return bc.aggregate(data.annotations)


def titles(fig):
    return [ax.get_title(loc="left") for ax in fig.axes]


def test_the_title_counts_what_is_drawn(data, default):
    fig = bc.plots.aggregation_overview(default, truth=data.truth)
    flagged = (default.worker_quality_["flag"] != "").sum()
    sure = (default.probas_.max(axis=1) >= 0.95).sum()
    right = (default.labels_ == data.truth).mean()
    assert fig.get_suptitle() == (
        f"{flagged} of 12 workers flagged, {sure} of 100 labels at least 95% sure, {right:.1%} "
        "right where the truth is known"
    )
    assert titles(fig)[0] == "12 workers"
    assert titles(fig)[1].endswith("of 100 labels are at least 95% sure")
    assert titles(fig)[2] == "Is 80% sure 80% right?"


def test_without_truth_the_default_shows_its_models(default):
    fig = bc.plots.aggregation_overview(default)
    assert titles(fig)[2] == "Prediction of held-out labels"
    assert fig.get_suptitle().endswith("labels at least 95% sure")


def test_other_methods_have_two_pictures_without_truth(data):
    est = bc.DawidSkene().fit(data.annotations)
    assert len(bc.plots.aggregation_overview(est).axes) == 2
    assert len(bc.plots.aggregation_overview(est, truth=data.truth.to_dict()).axes) == 3
