"""The common EM loop against loops over labels and against Dawid–Skene's own estimator."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.shrunken.ability import EmpiricalBayesModel
from bayescrowd.aggregation.shrunken.base import by_class
from bayescrowd.aggregation.shrunken.baselines import CoinModel, MeanRowsModel
from bayescrowd.aggregation.shrunken.rows import fit_rows, spread_over_levels
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs


@pytest.fixture(scope="module")
def ann():
    return bc.simulate.crowd(60, 8, 3, labels_per_task=5, accuracy=0.75, seed=2).annotations


def run(model, ann, prior, n_iter, tol=0.0):
    pairs = WorkerLabelPairs(ann)
    start = spread_over_levels(vote_shares(ann, pairs.fixed), model.n_levels)
    labels = pairs.incidence(start.shape[1])
    return fit_rows(model, pairs, labels, start, prior=prior, n_iter=n_iter, tol=tol)


def test_without_pooling_it_is_dawid_and_skene(ann):
    fit = run(MeanRowsModel(strength=1e-12), ann, "uniform", 9)
    model = bc.DawidSkene(prior="uniform", pseudo_counts=0.0, n_iter=9, tol=0.0).fit(ann)
    # 1e-12 pseudo-labels stand for none.
    np.testing.assert_allclose(fit.posterior, model.probas_, atol=1e-6)
    assert fit.trace[-1] == pytest.approx(model.log_likelihood_, rel=1e-6)


def test_one_coin_by_loops(ann):
    fit = run(CoinModel(), ann, "learned", 2)
    posterior = ann.votes / ann.votes.sum(axis=1, keepdims=True)
    for _ in range(2):
        right, total = np.zeros(8), np.zeros(8)
        for task, worker, label in zip(
            ann.task_codes, ann.worker_codes, ann.label_codes, strict=True
        ):
            right[worker] += posterior[task, label]
            total[worker] += 1
        accuracy = (right + 2 * right.sum() / total.sum()) / (total + 2)
        prior = (posterior.sum(axis=0) + 1) / (60 + 3)
        log_joint = np.tile(np.log(prior), (60, 1))
        for task, worker, label in zip(
            ann.task_codes, ann.worker_codes, ann.label_codes, strict=True
        ):
            log_joint[task] += np.log((1 - accuracy[worker]) / 2)
            log_joint[task, label] += np.log(accuracy[worker] / ((1 - accuracy[worker]) / 2))
        joint = np.exp(log_joint)
        posterior = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fit.posterior, posterior, rtol=1e-9)
    assert fit.trace[-1] == pytest.approx(np.log(joint.sum(axis=1)).sum(), rel=1e-12)


def test_fixed_priors(ann):
    shares = np.bincount(ann.label_codes) / ann.n_labels
    for prior, expected in (("uniform", np.full(3, 1 / 3)), ("shares", shares)):
        fit = run(MeanRowsModel(), ann, prior, 3)
        np.testing.assert_allclose(np.exp(fit.log_prior), expected)
        # With levels, the classes keep their shares.
        fit = run(EmpiricalBayesModel(2), ann, prior, 3)
        np.testing.assert_allclose(by_class(np.exp(fit.log_prior)[None], 3)[0], expected)


def test_stops_when_nothing_changes(ann):
    fit = run(MeanRowsModel(), ann, "learned", 500, tol=1e-4)
    assert fit.converged
    before = run(MeanRowsModel(), ann, "learned", len(fit.trace) - 1)
    earlier = run(MeanRowsModel(), ann, "learned", len(fit.trace) - 2)
    assert np.abs(fit.posterior - before.posterior).max() < 1e-4
    assert np.abs(before.posterior - earlier.posterior).max() >= 1e-4
    assert not run(MeanRowsModel(), ann, "learned", 2, tol=1e-4).converged


def test_levels_of_the_start_by_hand():
    votes = np.array([[1.0, 0.0], [0.5, 0.5], [0.75, 0.25]])
    two = spread_over_levels(votes, 2)
    # Two votes agree with probability 1, 1/2, 5/8: 1, 0, 1/4 above chance, kept within .1 and .9.
    easy = np.array([0.9, 0.1, 0.25])[:, None]
    np.testing.assert_allclose(two, np.hstack([easy * votes, (1 - easy) * votes]))
    three = spread_over_levels(votes, 3)
    np.testing.assert_allclose(by_class(three, 2), votes)
    np.testing.assert_allclose(three[1, ::2], [0.005, 0.09, 0.405])


def test_an_easy_level_is_easier():
    data = bc.simulate.crowd(400, 15, 2, labels_per_task=8, accuracy=0.9, seed=0)
    hard = bc.simulate.with_hard_items(data, share=0.4, pull=0.5, seed=0)
    base = run(EmpiricalBayesModel(2, np.inf), hard.annotations, "learned", 50).base
    easy, difficult = base.intercept.reshape(2, 2)
    assert (easy > difficult).all()
