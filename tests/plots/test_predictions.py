"""Pictures of predictions: what they count, which band they draw, and what their titles say."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstwobign

import bayescrowd as bc
from bayescrowd import plots
from bayescrowd.plots.predictions import _half_width
from bayescrowd.posterior.container import assemble, dataset_of


def container(predicted, observed, classes=None):
    """A container of predictions (chain, draw, judgement) and observations of labels."""
    share = np.zeros((*np.shape(predicted)[:2], 2 if classes is None else len(classes)))
    dims, ids = ("chain", "draw", "cls"), {"cls": classes}
    if classes is None:
        dims, ids = ("chain", "draw", "number"), {}
    groups = {
        "posterior": dataset_of({"prevalence": (dims, share)}, coords=ids),
        "posterior_predictive": dataset_of({"label": (("chain", "draw", "judgement"), predicted)}),
        "observed_data": dataset_of({"label": (("judgement",), observed)}),
    }
    return assemble(groups)


def test_shares_by_hand():
    """Four draws of four labels: label 0 has shares 0, 1/4, 1/2, 3/4, and 3/4 was observed."""
    predicted = [[[1, 1, 1, 1], [0, 1, 1, 1]], [[0, 0, 1, 1], [0, 0, 0, 1]]]
    ax = plots.label_shares(container(predicted, [0, 0, 0, 1], ["no", "yes"]), probability=0.4)
    (bars,) = (c for c in ax.collections if c.get_label() == "predicted")
    ends = [segment[:, 0].tolist() for segment in bars.get_segments()]
    # quantiles .3 and .7 of four values, to the outer side: the 1st and the 4th
    assert ends == [[0.0, 0.75], [0.25, 1.0]]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["no", "yes"]
    dots = np.concatenate([c.get_offsets() for c in ax.collections if c is not bars])
    assert dots.tolist() == [[0.75, 0], [0.25, 1]]
    assert ax.get_title(loc="left") == "The model predicts the shares of 2 labels"


def test_shares_outside_are_named_and_rare_labels_left_out():
    rng = np.random.default_rng(0)
    predicted = rng.integers(4, size=(2, 50, 400))
    observed = np.repeat([0, 1, 2, 3], [300, 40, 35, 25])
    ax = plots.label_shares(container(predicted, observed), most=2)
    title = "Shares of 4 of 4 labels lie outside the predictions (2 shown)"
    assert ax.get_title(loc="left") == title
    # without names of the classes, codes stand for the labels
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "1"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["predicted", "observed, outside"]


def test_a_code_means_another_value_in_another_feature():
    """Two classes and two features of two values: codes are not classes."""
    space = bc.FeatureSpace(classes=["p", "q"], features={"a": ["x", "y"], "b": ["v", "w"]})
    policy = bc.RoundRobin(space, 8, 1)
    said = {"a": ["x", "x", "x", "y"], "b": ["w", "w", "w", "w"]}
    while (query := policy.ask()) is not None:
        policy.tell(query, said[query.feature].pop())
    post = policy.posterior(chains=1, draws=100, progress=False)
    ax = plots.label_shares(post)
    names = [t.get_text() for t in ax.get_yticklabels()]
    dots = np.concatenate([c.get_offsets() for c in ax.collections[1:]])
    found = {names[int(row)]: share for share, row in dots}
    assert found == {"a=x": 3 / 8, "a=y": 1 / 8, "b=w": 4 / 8, "b=v": 0}


def test_the_band_holds_uniform_places_as_often_as_it_says():
    """4,000 sets of other uniform numbers: shares within 4 standard errors of both simulations."""
    n = 200
    half = _half_width(n, 0.9)
    at = np.arange(1, 100) / 100
    places = np.sort(np.random.default_rng(1).random((4000, n)), axis=1)
    gap = np.stack([np.searchsorted(row, at, side="right") / n - at for row in places])
    inside = (np.abs(gap) <= half * np.sqrt(at * (1 - at) / n)).all(axis=1).mean()
    assert abs(inside - 0.9) < 4 * np.sqrt(2 * 0.9 * 0.1 / 4000)
    # Kolmogorov's band has one width everywhere; this one is wider in the middle.
    assert half / 2 > kstwobign.ppf(0.9)


def lopsided_crowd():
    """Workers whose errors all go to the last class, which one number per worker cannot say."""
    rng = np.random.default_rng(1)
    truth = rng.choice(3, p=[0.4, 0.3, 0.3], size=600)
    confusion = np.array([[0.7, 0.02, 0.28], [0.02, 0.7, 0.28], [0.02, 0.28, 0.7]])
    task, worker = np.divmod(np.arange(3000), 5)
    label = (rng.random(3000)[:, None] > confusion[truth[task]].cumsum(axis=1)).sum(axis=1)
    return pd.DataFrame({"task": task, "worker": worker, "label": np.minimum(label, 2)})


@pytest.mark.parametrize(("model", "is_right"), [("dawid_skene", True), ("one_coin", False)])
def test_the_title_says_whether_the_model_is_right(model, is_right):
    post = bc.sample_posterior(
        *(model, lopsided_crowd()), chains=2, draws=200, warmup=100, log_likelihood=False
    )
    ax = plots.loo_pit(post)
    title = "Labels lie where" if is_right else "Labels are not where"
    assert ax.get_title(loc="left").startswith(title)
    drawn_at, gap = ax.lines[1].get_data()
    places = bc.loo_pit(post)
    np.testing.assert_allclose(gap[30], (places <= drawn_at[30]).mean() - drawn_at[30])


def test_containers_without_predictions_are_refused():
    alone = assemble({"posterior": dataset_of({"a": (("chain", "draw"), np.zeros((2, 9)))})})
    with pytest.raises(ValueError, match="posterior_predictive"):
        plots.label_shares(alone)
    with pytest.raises(ValueError, match="expected one of"):
        plots.loo_pit(alone)
