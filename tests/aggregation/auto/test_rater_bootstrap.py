"""Fits under random weights of the raters: weights, a second implementation, and instability."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto import rater_bootstrap
from bayescrowd.aggregation.auto.pool import POOL
from bayescrowd.aggregation.auto.rater_bootstrap import (
    Target,
    bootstrap_raters,
    expected_accuracies,
    rater_weights,
    usual_replicates,
)
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

MODELS = {member.name: (member.model, member.prior) for member in POOL}


@pytest.fixture(scope="module")
def crowd():
    return bc.simulate.crowd(80, 9, 2, labels_per_task=5, accuracy=0.75, seed=1)


def test_weights_are_the_mid_quantiles_of_an_exponential(crowd):
    weights = rater_weights(crowd.annotations, 6, seed=0)
    quantiles = -np.log(1 - (np.arange(9) + 0.5) / 9)
    for row in weights:
        np.testing.assert_allclose(np.sort(row), quantiles / quantiles.mean())
    assert len(np.unique(weights.argmax(axis=1))) > 1
    assert not np.array_equal(weights, rater_weights(crowd.annotations, 6, seed=1))


def test_weights_follow_raters_and_not_their_names(crowd):
    frame = crowd.annotations.to_frame()
    renamed = frame.assign(worker=8 - frame["worker"]).sample(frac=1, random_state=0)
    other = rater_weights(bc.Annotations.from_frame(renamed), 4, seed=0)
    # Sums in another order round differently.
    np.testing.assert_allclose(other[:, ::-1], rater_weights(crowd.annotations, 4, seed=0))


def test_raters_who_cannot_be_told_apart_have_the_same_weight():
    ann = bc.Annotations.from_matrix([list("aab"), list("bba"), list("aaa")])
    weights = rater_weights(ann, 5, seed=0)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])


def one_replicate(ann, weight, n_iter):
    """The rater-weighted fit of Dawid and Skene with mean rows, in loops over labels."""
    n_classes = ann.n_classes
    rows = list(zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True))
    posterior = np.zeros((ann.n_tasks, n_classes))
    for task, worker, label in rows:
        posterior[task, label] += weight[worker]
    posterior /= posterior.sum(axis=1, keepdims=True)
    pairs, each = WorkerLabelPairs(ann), np.arange(n_classes)
    for step in range(n_iter + 1):
        if step < n_iter:
            counts = np.zeros((ann.n_workers, n_classes, n_classes))
            for task, worker, label in rows:
                counts[worker, :, label] += posterior[task]
            of_pairs = counts[pairs.worker, :, pairs.label]
            base = MODELS["own matrices"][0].base(pairs, of_pairs, None)
            table = [base.rows(np.full(n_classes, w), each).T for w in range(ann.n_workers)]
            total = counts.sum(axis=2, keepdims=True)
            pi = (counts + base.strength * np.array(table)) / (total + base.strength)
            prior = (posterior.sum(axis=0) + 1) / (posterior.sum() + n_classes)
        power = weight if step < n_iter else np.ones_like(weight)
        scores = np.tile(np.log(prior), (ann.n_tasks, 1))
        for task, worker, label in rows:
            scores[task] += power[worker] * np.log(pi[worker, :, label])
        posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def test_replicates_agree_with_loops_over_labels(crowd, monkeypatch):
    monkeypatch.setattr(rater_bootstrap, "N_ITER", 4)
    monkeypatch.setattr(rater_bootstrap, "TOL", 0.0)
    ann = crowd.annotations
    weights = rater_weights(ann, 3, seed=5)
    expected = np.array([one_replicate(ann, weight, 4) for weight in weights])
    found = bootstrap_raters([MODELS["own matrices"]], ann, n_replicates=3, seed=5)
    np.testing.assert_allclose(found.mean, expected.mean(axis=0), atol=1e-9)
    variance = expected.var(axis=0).sum(axis=1).mean()
    assert found.instability == pytest.approx(2 * variance)
    of_workers = [expected_accuracies(ann, posterior) for posterior in expected]
    np.testing.assert_allclose(found.accuracies, of_workers)


def test_new_tasks_with_the_same_labels_have_the_same_mean(crowd):
    ann = crowd.annotations
    same = Target(ann, np.arange(ann.n_workers))
    models = [MODELS["pooled"]]
    direct = bootstrap_raters(models, ann, n_replicates=4, seed=0)
    judged = bootstrap_raters(models, ann, n_replicates=4, target=same, seed=0)
    np.testing.assert_allclose(judged.mean, direct.mean, atol=1e-9)


def test_two_camps_are_unstable_and_a_good_crowd_is_not():
    """Three raters answer one thing, three another: whoever weighs more is believed."""
    rng = np.random.default_rng(0)
    truth, other = rng.integers(0, 2, (2, 200))
    camps = np.where(rng.random((200, 6)) < 0.05, 1, 0) ^ np.stack([truth] * 3 + [other] * 3, 1)
    models = [MODELS["pooled"], MODELS["difficulty"]]
    torn = bootstrap_raters(models, bc.Annotations.from_matrix(camps), seed=0)
    easy = bc.simulate.crowd(200, 9, 2, labels_per_task=9, accuracy=0.85, seed=1)
    good = bootstrap_raters(models, easy.annotations, seed=0)
    # Where the camps differ, on half of the tasks, each wins about half of the replicates.
    assert 0.3 < torn.instability < 0.6
    assert good.instability < 0.15


def test_expected_accuracies_by_hand():
    frame = pd.DataFrame({"task": [0, 1, 1], "worker": [0, 0, 1], "label": ["a", "b", "a"]})
    ann = bc.Annotations.from_frame(frame)
    posterior = np.array([[0.9, 0.1], [0.4, 0.6]])
    np.testing.assert_allclose(expected_accuracies(ann, posterior), [0.75, 0.4])


def test_few_raters_have_more_replicates():
    few = bc.Annotations.from_matrix([list("aab"), list("bba")])
    many = bc.simulate.crowd(100, 90, labels_per_task=9, seed=0).annotations
    assert usual_replicates(few) == 32
    assert usual_replicates(many) == 12
