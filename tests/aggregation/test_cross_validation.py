"""Scores of withheld labels against brute force, and weights by hand."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.cross_validation import MOST_LABELS, model_weights, withheld_scores
from bayescrowd.aggregation.pool import implied_rows
from bayescrowd.aggregation.protocol import vote_shares
from bayescrowd.aggregation.row_models import fit_rows, log_rows
from bayescrowd.aggregation.simple_rows import CoinModel, MeanRowsModel
from bayescrowd.aggregation.symbols import Symbols


@pytest.fixture(scope="module")
def ann():
    return bc.simulate.crowd(30, 6, 3, labels_per_task=4, accuracy=0.7, seed=1).annotations


def fitted(model, ann):
    symbols = Symbols(ann)
    start = vote_shares(ann, symbols.fixed)
    labels = symbols.incidence(3)
    return symbols, fit_rows(model, symbols, labels, start, prior="learned", n_iter=5, tol=0.0)


def posterior_without(ann, symbols, fit, left_out):
    """P(class) of the label's task from its other labels, under the fit's parameters."""
    table = np.exp(log_rows(fit.base, fit.counts, fit.totals, symbols.worker, symbols.label))
    task = ann.task_codes[left_out]
    others = [i for i in np.flatnonzero(ann.task_codes == task) if i != left_out]
    joint = np.exp(fit.log_prior) * np.prod([table[symbols.of_label[i]] for i in others], axis=0)
    return joint / joint.sum()


def test_one_coin_by_brute_force(ann):
    symbols, fit = fitted(CoinModel(), ann)
    table = np.exp(log_rows(fit.base, fit.counts, fit.totals, symbols.worker, symbols.label))
    expected = [
        np.log(posterior_without(ann, symbols, fit, i) @ table[symbols.of_label[i]])
        for i in range(ann.n_labels)
    ]
    np.testing.assert_allclose(withheld_scores(symbols, fit, fit), expected, rtol=1e-9)


def test_rows_lose_the_withheld_label(ann):
    symbols, fit = fitted(MeanRowsModel(strength=2.0), ann)
    expected = []
    for i in range(ann.n_labels):
        own = fit.posterior[ann.task_codes[i]]
        worker, label = ann.worker_codes[i], ann.label_codes[i]
        counts = np.maximum(fit.counts[symbols.of_label[i]] - own, 0)
        total = np.maximum(fit.totals[worker] - own, 0)
        row = (counts + 2.0 * fit.base.crowd[label]) / (total + 2.0)
        expected.append(np.log(posterior_without(ann, symbols, fit, i) @ row))
    np.testing.assert_allclose(withheld_scores(symbols, fit, fit), expected, rtol=1e-9)


def test_shuffled_labels_are_not_foreseen():
    """A label of a decent crowd is foreseen better than its share, a shuffled one is not."""
    data = bc.simulate.crowd(300, 10, 2, labels_per_task=6, accuracy=0.8, seed=0)
    gains = []
    for shuffled in (False, True):
        ann = data.annotations
        if shuffled:
            label = np.random.default_rng(0).permutation(ann.label_codes)
            ann = bc.Annotations.from_codes(
                ann.task_codes, ann.worker_codes, label, tasks=300, workers=10, classes=2
            )
        symbols = Symbols(ann)
        start = vote_shares(ann, symbols.fixed)
        fit = fit_rows(
            CoinModel(), symbols, symbols.incidence(2), start, prior="learned", n_iter=30, tol=1e-4
        )
        score = withheld_scores(symbols, fit, implied_rows(symbols, fit.posterior)).mean()
        share = np.bincount(ann.label_codes) / ann.n_labels
        gains.append(score - (share * np.log(share)).sum())
    assert gains[0] > 0.05
    # Ten accuracies and a prior, learned from 1,800 labels, fit noise by some 11 / 3600 nats.
    assert gains[1] < 0.01


def test_weights_by_hand():
    rng = np.random.default_rng(0)
    best = rng.normal(-0.5, 0.1, 400)
    other = best - rng.normal(0.01, 0.08, 400)
    hopeless = best - 1 - rng.normal(0, 0.1, 400)
    table = model_weights({"a": other, "b": best, "c": hopeless}, {"a": 2.0, "b": 1.0, "c": 1.0})
    difference = best - other
    error = difference.std() / 20
    a = 2 * np.exp(-difference.mean() / error / 4)
    np.testing.assert_allclose(table["weight"], [a / (1 + a), 1 / (1 + a), 0])
    assert table.loc["a", "standard_error"] == pytest.approx(error)
    assert table.loc["b", "below_best"] == 0


def test_more_labels_than_count_do_not_sharpen_the_weights():
    rng = np.random.default_rng(1)
    best, other = rng.normal(-0.5, 0.1, (2, MOST_LABELS)) - [[0.0], [0.002]]
    once = model_weights({"a": best, "b": other}, {"a": 1.0, "b": 1.0})
    thrice = model_weights({"a": np.tile(best, 3), "b": np.tile(other, 3)}, {"a": 1.0, "b": 1.0})
    np.testing.assert_allclose(once, thrice)
