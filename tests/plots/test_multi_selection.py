"""The pictures of multi-selection show what they say."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd import plots


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(80, 4))
    spread = np.array([0.2, 1.0, 1.0, 2.0])
    return truth[:, :, None] + spread[:, None] * rng.normal(size=(80, 4, 2)), truth @ [2, 1, 1, 0]


def test_losses_are_those_of_the_path(data):
    est = bc.MultiSelection(budget=6).fit(*data)
    ax = plots.repeat_losses(est)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), est.projected_loss_)
    assert ax.get_legend() is None
    post = est.posterior(*data, draws=20, warmup=5, chains=1)
    ax = plots.repeat_losses(est, posterior=post)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), post.loss_curve()["mean"])
    assert len(ax.get_legend().get_texts()) == 3
    with_costs = bc.MultiSelection(budget=6, costs=[2, 1, 1, 1]).fit(*data)
    assert plots.repeat_losses(with_costs).get_xlabel() == "budget: cost of an object"


def test_an_infeasible_projection_is_shaded_and_not_drawn(data):
    values, y = data
    double = np.concatenate([values, values], axis=1)  # every attribute twice
    with pytest.warns(UserWarning, match="projected loss is negative"):
        est = bc.MultiSelection(budget=12, method="scoring").fit(double, y)
    start = est.projected_loss_.index[est.projected_loss_.isna()][0]
    ax = plots.repeat_losses(est)
    assert np.isnan(ax.lines[0].get_ydata()[start:]).all()
    assert (ax.lines[0].get_ydata()[:start] > 0).all()
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] == "projection infeasible"
    assert ax.patches[0].get_x() == start
    assert ax.patches[0].get_width() == 12 - start


def test_attribute_map_places_every_attribute(data):
    est = bc.MultiSelection(budget=3).fit(*data)
    ax = plots.attribute_map(est)
    shown = np.concatenate([c.get_offsets() for c in ax.collections])
    assert sorted(shown[:, 0]) == pytest.approx(sorted(est.reliability_))
    named = [text.get_text() for text in ax.texts]
    assert f"{est.selected_.idxmax()} × {est.selected_.max()}" in named
    assert len(named) <= len(est.selected_)
