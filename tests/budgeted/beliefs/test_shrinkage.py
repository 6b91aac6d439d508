"""The prior that learns how much classes differ: its formulas term by term, and its draws."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from bayescrowd.budgeted.beliefs.shrinkage import POOLED, SYMMETRIC, ShrunkBelief, explain
from bayescrowd.budgeted.space import FeatureSpace

WIDTHS = np.array([3, 5, 2])


def log_dirichlet_multinomial(counts, concentration):
    total, n = concentration.sum(), counts.sum()
    ratio = gammaln(counts + concentration) - gammaln(concentration)
    return gammaln(total) - gammaln(total + n) + ratio.sum()


def term_by_term(c):
    """Weights and means of one feature, term by term."""
    n_classes, v = c.shape
    n_y, n_x = c.sum(axis=1), c.sum(axis=0)
    m = (n_x + 1) / (n_x.sum() + v)
    rows = np.array(
        [
            [log_dirichlet_multinomial(c[y], np.full(v, a)) for a in SYMMETRIC]
            for y in range(n_classes)
        ]
    )
    log_h0 = (logsumexp(rows, axis=1) - np.log(4)).sum()
    w = np.exp(rows - logsumexp(rows, axis=1, keepdims=True))
    mean_0 = np.array(
        [
            sum(w[y, i] * (c[y] + a) / (n_y[y] + v * a) for i, a in enumerate(SYMMETRIC))
            for y in range(n_classes)
        ]
    )
    fitted = (n_x * np.log(m)).sum() - log_dirichlet_multinomial(n_x, np.ones(v))
    log_hs = [
        sum(log_dirichlet_multinomial(c[y], s * v * m) for y in range(n_classes)) - fitted
        for s in POOLED
    ]
    log_weights = np.log([1 / 2, 1 / 6, 1 / 6, 1 / 6]) + np.array([log_h0, *log_hs])
    weights = np.exp(log_weights - logsumexp(log_weights))
    mean = weights[0] * mean_0
    for weight, s in zip(weights[1:], POOLED, strict=True):
        mean = mean + weight * (c + s * v * m) / (n_y[:, None] + s * v)
    return weights, mean


@pytest.mark.parametrize("dtype", [np.int64, float])
def test_against_the_formulas(dtype):
    counts = np.random.default_rng(1).integers(0, 12, (3, 2, 4, 5))
    counts *= (np.arange(5) < WIDTHS[:, None])[:, None, None]
    found = explain(counts.astype(dtype), WIDTHS)
    for f, v in enumerate(WIDTHS):
        for d in range(2):
            weights, mean = term_by_term(counts[f, d, :, :v].astype(float))
            np.testing.assert_allclose(found.hypothesis[f, d], weights, rtol=1e-9)
            np.testing.assert_allclose(found.mean[f, d, :, :v], mean, rtol=1e-9)
            assert (found.mean[f, d, :, v:] == 0).all()


def test_fractional_counts_follow_the_same_formulas():
    counts = np.array([[[2.5, 1.0, 0.5], [0.0, 3.5, 1.0]]])
    weights, mean = term_by_term(counts[0])
    found = explain(counts, np.array([3]))
    np.testing.assert_allclose(found.hypothesis[0], weights, rtol=1e-9)
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-9)


def test_rows_are_uniform_without_answers_and_pooled_if_classes_are_alike():
    np.testing.assert_allclose(explain(np.zeros((1, 2, 4)), np.array([4])).mean, 0.25)
    alike = explain(np.array([[[20, 10], [20, 10]]]), np.array([2])).hypothesis[0, 0]
    apart = explain(np.array([[[30, 0], [0, 30]]]), np.array([2])).hypothesis[0, 0]
    assert alike < 0.5 < 0.99 < apart


SPACE = FeatureSpace(classes=["a", "b"], features={"x": [0, 1, 2], "y": [0, 1]})


def learned():
    belief = ShrunkBelief(SPACE)
    for feature, cls, value in [(0, 0, 1), (0, 0, 1), (0, 1, 2), (1, 1, 0), (0, 1, 1), (0, 0, 1)]:
        belief = belief.observe(feature, cls, (value,))
    return belief


def test_observing_is_explaining_the_counts():
    counts = np.zeros((2, 2, 3), dtype=int)
    counts[0, 0, 1], counts[0, 1] = 3, [0, 1, 1]
    counts[1, 1, 0] = 1
    np.testing.assert_allclose(learned().mean(), explain(counts, np.array([3, 2])).mean, rtol=1e-12)


def test_a_belief_stays_what_it_was_whenever_it_is_read():
    first = learned()
    before = first.observe(1, 0, (1,))
    after = before.observe(0, 1, (2,)).observe(1, 0, (0,))
    late = after.mean().copy()  # weighs the features of all three observations at once
    np.testing.assert_allclose(first.mean(), learned().mean(), rtol=1e-12)
    np.testing.assert_allclose(before.mean()[0], first.mean()[0], rtol=1e-12)
    steps = learned()
    for feature, cls, value in [(1, 0, 1), (0, 1, 2), (1, 0, 0)]:
        steps = steps.observe(feature, cls, (value,))
        steps.mean()  # weighs them one by one
    np.testing.assert_allclose(late, steps.mean(), rtol=1e-12)
    assert (after.mean() == late).all()


def test_draws_average_to_the_mean():
    rng = np.random.default_rng(0)
    belief = learned()
    assert belief.draw(rng).shape == (2, 2, 3)
    draws = belief._draw_rows(rng, range(2), 3_000)
    np.testing.assert_allclose(draws.sum(axis=-1), 1)
    # a probability's standard deviation is at most .5: four standard errors
    np.testing.assert_allclose(draws.mean(axis=1), belief.mean(), atol=4 * 0.5 / np.sqrt(3_000))


def test_imagined_futures_are_a_martingale():
    """What one expects to believe tomorrow is what one believes today, apart from the fitted m."""
    rng = np.random.default_rng(0)
    belief = learned()
    futures = belief.imagine(rng, [0, 1], np.full((2, 2), 4.0), 4_000)
    assert futures.shape == (2, 4_000, 2, 3)
    np.testing.assert_allclose(futures.sum(axis=-1), 1)
    # measured: .006 off, since m and its penalty are fitted, not averaged over
    np.testing.assert_allclose(futures.mean(axis=1), belief.mean(), atol=0.03)


def test_imagined_numbers_of_answers_are_right_on_average():
    rng = np.random.default_rng(0)
    belief = ShrunkBelief(FeatureSpace(classes=["a", "b"], features={"x": [0, 1]}))
    few = belief.imagine(rng, [0], np.array([[0.0, 0.0]]), 50)
    np.testing.assert_allclose(few, 0.5)  # no answers, no change
    many = belief.imagine(rng, [0], np.array([[400.0, 0.0]]), 300)
    assert many[0, :, 0].std() > 0.2  # class a becomes known, whatever its row is
    assert many[0, :, 1].std() < many[0, :, 0].std()


def test_tied_labels_share_an_observation():
    belief = ShrunkBelief(SPACE).observe(1, 0, (0, 1)).observe(1, 0, (1, 1))
    counts = np.zeros((1, 2, 2))
    counts[0, 0] = [0.5, 1.5]
    np.testing.assert_allclose(belief.mean()[1, :, :2], explain(counts, np.array([2])).mean[0])


def test_the_mode_is_that_of_the_most_probable_hypothesis():
    # classes apart: each row on its own, c + a - 1 with its own a; 0 for a value never seen
    apart = ShrunkBelief(FeatureSpace(classes=["a", "b"], features={"x": [0, 1, 2]}))
    apart = apart.observe_all(np.array([0] * 20 + [1] * 20), np.array([[[0]]] * 20 + [[[1]]] * 20))
    mode = apart.reader(0, np.arange(3), "map").channel
    np.testing.assert_allclose(mode, [[1, 0, 0], [0, 1, 0]])
    # six classes alike: rows are drawn to the pooled frequencies
    counts = np.array([[4, 3, 2, 1]] * 5 + [[3, 4, 1, 2]])
    cells = np.repeat(np.arange(24), counts.ravel())
    alike = ShrunkBelief(FeatureSpace(classes=list("abcdef"), features={"x": [0, 1, 2, 3]}))
    alike = alike.observe_all(cells // 4, (cells % 4)[:, None, None])
    weights, _ = term_by_term(counts.astype(float))
    assert weights.argmax() == 3
    pooled = (counts.sum(axis=0) + 1) / 64
    excess = counts + POOLED[2] * 4 * pooled - 1
    expected = excess / excess.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(alike.reader(0, np.arange(4), "map").channel, expected)
