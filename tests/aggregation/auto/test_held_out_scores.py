"""Scores of held-out labels against brute force, and weights by hand."""

from functools import partial

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto import held_out_scores
from bayescrowd.aggregation.auto.held_out_scores import (
    HeldOut,
    label_log_probabilities,
    model_weights,
    score_held_out_labels,
)
from bayescrowd.aggregation.auto.pool import POOL, fit_predictors
from bayescrowd.aggregation.shrunken.ability import implied_rows
from bayescrowd.aggregation.shrunken.baselines import CoinModel, MeanRowsModel
from bayescrowd.aggregation.shrunken.rows import fit_rows
from bayescrowd.aggregation.task_sample import task_folds
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs


@pytest.fixture(scope="module")
def ann():
    return bc.simulate.crowd(30, 6, 3, labels_per_task=4, accuracy=0.7, seed=1).annotations


def fitted(model, ann, fixed=None):
    pairs = WorkerLabelPairs(ann, fixed)
    start = vote_shares(ann, pairs.fixed)
    labels = pairs.incidence(ann.n_classes)
    fit = fit_rows(model, pairs, labels, start, prior="learned", n_iter=5, tol=0.0)
    return pairs, fit


def score_pool(members, ann, fixed, *, n_iter, tol):
    fit_models = partial(fit_predictors, members, n_iter=n_iter, tol=tol)
    return score_held_out_labels(fit_models, ann, fixed)


def brute_force(pairs, fit, row_of, new, gold=None):
    """log P(label | the task's other labels) of each label, one by one."""
    scores = []
    for i, task in enumerate(new.task_codes):
        others = [j for j in np.flatnonzero(new.task_codes == task) if j != i]
        joint = np.exp(fit.log_prior)
        if gold is not None and gold[task] >= 0:
            joint = (np.arange(3) == gold[task]).astype(float)
        for j in others:
            joint = joint * row_of(new.worker_codes[j], new.label_codes[j])
        row = row_of(new.worker_codes[i], new.label_codes[i])
        scores.append(np.log(joint @ row / joint.sum()))
    return scores


@pytest.mark.parametrize("has_gold", [False, True])
def test_unseen_tasks_by_brute_force(ann, has_gold):
    others = ann.select_tasks(ann.tasks[:20])
    # The last worker has labelled none of those that are fitted.
    others = others.select_workers(others.workers[:5])
    held = ann.select_tasks(ann.tasks[20:])
    others = bc.Annotations.from_codes(
        *(others.task_codes, others.worker_codes, others.label_codes),
        tasks=others.tasks,
        workers=ann.workers,
        classes=ann.classes,
    )
    pairs, fit = fitted(MeanRowsModel(strength=2.0), others)
    known = np.array([0, 1, 2, 3, 4, -1])
    gold = np.full(10, -1, dtype=np.int32)
    if has_gold:
        gold[[0, 3]] = [2, 1]

    def row_of(worker, label):
        place = np.flatnonzero((pairs.worker == worker) & (pairs.label == label))
        counts = fit.counts[place[0]] if len(place) else np.zeros(3)
        return (counts + 2.0 * fit.base.crowd[label]) / (fit.totals[worker] + 2.0)

    scores = label_log_probabilities(fit, fit, pairs, WorkerLabelPairs(held, gold), known)
    np.testing.assert_allclose(scores, brute_force(pairs, fit, row_of, held, gold), rtol=1e-9)


def test_a_coin_is_judged_by_the_rows_that_its_posterior_implies(ann):
    others, held = ann.select_tasks(ann.tasks[:20]), ann.select_tasks(ann.tasks[20:])
    pairs, fit = fitted(CoinModel(), others)
    judged = implied_rows(pairs, fit.posterior)
    known = np.arange(6)
    scores = label_log_probabilities(fit, judged, pairs, WorkerLabelPairs(held), known)
    expected = []
    for i, task in enumerate(held.task_codes):
        joint = np.exp(fit.log_prior)
        for j in np.flatnonzero(held.task_codes == task):
            if j != i:
                right = fit.base.accuracy[held.worker_codes[j]]
                is_right = np.arange(3) == held.label_codes[j]
                joint = joint * np.where(is_right, right, (1 - right) / 2)
        worker, label = held.worker_codes[[i]], held.label_codes[[i]]
        place = pairs.find(worker, label)
        counts = np.where(place >= 0, judged.counts[place], 0.0)[0]
        strength = judged.base.strength
        row = counts + strength * judged.base.rows(worker, label)[0]
        row = row / (judged.totals[worker[0]] + strength)
        expected.append(np.log(joint @ row / joint.sum()))
    assert np.isfinite(judged.base.strength)
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


def test_every_label_is_held_out_once(ann):
    fixed = np.full(30, -1, dtype=np.int32)
    held_out = score_pool(POOL[:2], ann, fixed, n_iter=5, tol=0.0)
    np.testing.assert_array_equal(np.sort(held_out.task), np.sort(ann.task_codes))
    fold = task_folds(ann, fixed, held_out_scores.N_FOLDS)[0]
    rest = np.setdiff1d(np.arange(30), fold)
    pairs, fit = fitted(CoinModel(), ann.select_tasks(ann.tasks[rest]))
    held = WorkerLabelPairs(ann.select_tasks(ann.tasks[fold]))
    expected = label_log_probabilities(
        fit, implied_rows(pairs, fit.posterior), pairs, held, np.arange(6)
    )
    np.testing.assert_allclose(held_out.scores[POOL[1].name][: len(expected)], expected)


def test_no_more_labels_than_enough_are_held_out(ann, monkeypatch):
    monkeypatch.setattr(held_out_scores, "ENOUGH_LABELS", 40)
    held_out = score_pool(POOL[:1], ann, np.full(30, -1), n_iter=2, tol=0.0)
    assert len(held_out.task) == 48  # two of five parts of 30 tasks with four labels each


def test_one_task_leaves_nothing_to_predict_from():
    ann = bc.Annotations.from_matrix([list("aab")])
    held_out = score_pool(POOL, ann, np.array([-1]), n_iter=2, tol=0.0)
    assert len(held_out.task) == 0
    table = model_weights(held_out, {member.name: 1.0 for member in POOL})
    np.testing.assert_allclose(table["weight"], 1 / len(POOL))


def test_shuffled_labels_are_not_label_log_probabilities():
    """A label of a decent crowd is predicted better than its share, a shuffled one is not."""
    data = bc.simulate.crowd(300, 10, 2, labels_per_task=6, accuracy=0.8, seed=0)
    gains = []
    for shuffled in (False, True):
        ann = data.annotations
        if shuffled:
            label = np.random.default_rng(0).permutation(ann.label_codes)
            ann = bc.Annotations.from_codes(
                ann.task_codes, ann.worker_codes, label, tasks=300, workers=10, classes=2
            )
        held_out = score_pool(POOL, ann, np.full(300, -1), n_iter=30, tol=1e-4)
        share = np.bincount(ann.label_codes) / ann.n_labels
        by_chance = (share * np.log(share)).sum()
        gains.append([score.mean() - by_chance for score in held_out.scores.values()])
    assert min(gains[0]) > 0.05
    assert max(gains[1]) < 0


def test_the_model_that_made_the_labels_predicts_them_best():
    """Three labels per task by one-coin workers: matrices have too much to learn from them."""
    data = bc.simulate.one_coin_crowd(
        900, 80, 4, labels_per_task=3, activity=1.0, accuracy=0.65, seed=1
    )
    scores = score_pool(POOL, data.annotations, np.full(900, -1), n_iter=50, tol=1e-4)
    table = model_weights(scores, {member.name: 1.0 for member in POOL})
    z = -table["below_best"] / table["standard_error"]
    assert z["own matrices"] < -3
    assert table.loc[["one coin, even classes", "one coin"], "weight"].sum() > 0.3


def test_weights_by_hand():
    rng = np.random.default_rng(0)
    best = rng.normal(-0.5, 0.1, 400)
    other = best - rng.normal(0.01, 0.08, 400)
    hopeless = best - 1 - rng.normal(0, 0.1, 400)
    held_out = HeldOut({"a": other, "b": best, "c": hopeless}, np.arange(400))
    table = model_weights(held_out, {"a": 2.0, "b": 1.0, "c": 1.0})
    difference = best - other
    error = difference.std() / 20
    a = 2 * np.exp(-difference.mean() / error / held_out_scores.SOFTNESS)
    np.testing.assert_allclose(table["weight"], [a / (1 + a), 1 / (1 + a), 0])
    assert table.loc["a", "standard_error"] == pytest.approx(error)
    assert table.loc["b", "below_best"] == 0


def test_labels_of_a_task_count_as_one():
    """Each label four times over, in the same task: the standard error stays."""
    rng = np.random.default_rng(1)
    best, other = rng.normal(-0.5, 0.1, (2, 500)) - [[0.0], [0.002]]
    once = model_weights(HeldOut({"a": best, "b": other}, np.arange(500)), {"a": 1.0, "b": 1.0})
    repeated = HeldOut(
        {"a": np.repeat(best, 4), "b": np.repeat(other, 4)}, np.repeat(np.arange(500), 4)
    )
    np.testing.assert_allclose(once, model_weights(repeated, {"a": 1.0, "b": 1.0}))
