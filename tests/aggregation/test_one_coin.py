"""One-coin Dawid–Skene against sums on paper, a numerical optimum and Dawid–Skene itself."""

from math import log

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import bayescrowd as bc

# Shares of the votes: (2/3, 1/3, 0), (0, 1, 0), (1/3, 1/3, 1/3).
PAPER = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("abc")])


def accuracies(model):
    """Diagonal of each worker's matrix, after checking that the matrix is a one-coin matrix."""
    n_classes = len(model.classes_)
    matrices = model.confusions_.to_numpy().reshape(-1, n_classes, n_classes)
    right = matrices[:, 0, 0]
    wrong = (1 - right) / (n_classes - 1)
    expected = np.where(np.eye(n_classes) == 1, right[:, None, None], wrong[:, None, None])
    np.testing.assert_allclose(matrices, expected, rtol=1e-9, atol=1e-12)
    return right


def one_coin_log_likelihood(ann, priors, right):
    """log P(labels), task by task."""
    total = 0.0
    for task in range(ann.n_tasks):
        joint = np.array(priors, dtype=float)
        for row in range(ann.task_offsets[task], ann.task_offsets[task + 1]):
            worker, label = ann.worker_codes[row], ann.label_codes[row]
            chance = np.full(ann.n_classes, (1 - right[worker]) / (ann.n_classes - 1))
            chance[label] = right[worker]
            joint *= chance
        total += log(joint.sum())
    return total


# By hand.


def test_one_iteration_by_hand():
    model = bc.OneCoinDawidSkene(pseudo_counts=0.0, n_iter=1, tol=0.0).fit(PAPER)
    # Each worker's labels carry these shares: a, b, a; a, b, b; b, b, c.
    right = np.array([2 / 3 + 1 + 1 / 3, 2 / 3 + 1 + 1 / 3, 1 / 3 + 1 + 1 / 3]) / 3
    np.testing.assert_allclose(accuracies(model), right, rtol=1e-12)
    np.testing.assert_allclose(model.priors_, [1 / 3] * 3, rtol=1e-12)
    # Task 2, 'abc': odds a/(1 - a) decide between the answers; the coins' wrong sides have
    # (1 - a) / 2 each.
    joint = np.array(
        [
            right[0] * (1 - right[1]) / 2 * (1 - right[2]) / 2,
            (1 - right[0]) / 2 * right[1] * (1 - right[2]) / 2,
            (1 - right[0]) / 2 * (1 - right[1]) / 2 * right[2],
        ]
    )
    np.testing.assert_allclose(model.probas_.loc[2], joint / joint.sum(), rtol=1e-9)
    expected = one_coin_log_likelihood(PAPER, [1 / 3] * 3, right)
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("smoothing", "right"),
    [
        ("flat", [(2 + 1) / 6, (2 + 1) / 6, (5 / 3 + 1) / 6]),
        ("diagonal", [5 / 6, 5 / 6, (5 / 3 + 3) / 6]),
        # Of all nine labels 17/3 are right.
        ("pooled", [(2 + 17 / 9) / 6, (2 + 17 / 9) / 6, (5 / 3 + 17 / 9) / 6]),
    ],
)
def test_three_pseudo_counts_by_hand(smoothing, right):
    model = bc.OneCoinDawidSkene(smoothing=smoothing, pseudo_counts=3.0, n_iter=1, tol=0.0)
    np.testing.assert_allclose(accuracies(model.fit(PAPER)), right, rtol=1e-12)


def test_learned_prior_by_hand():
    model = bc.OneCoinDawidSkene(prior="learned", n_iter=1, tol=0.0).fit(PAPER)
    np.testing.assert_allclose(model.priors_, [3 / 9, 5 / 9, 1 / 9], rtol=1e-12)


# Closed form.


def test_accuracies_maximise_the_expected_log_likelihood():
    """The M-step is Dawid and Skene's, restricted to one-coin matrices."""
    data = bc.simulate.crowd(60, 4, 3, labels_per_task=3, seed=5)
    ann = data.annotations
    before = bc.OneCoinDawidSkene(pseudo_counts=0.0, n_iter=3, tol=0.0).fit(ann)
    after = bc.OneCoinDawidSkene(pseudo_counts=0.0, n_iter=4, tol=0.0).fit(ann)
    posterior = before.probas_.to_numpy()
    for worker in range(4):
        rows = np.flatnonzero(ann.worker_codes == worker)
        shares = posterior[ann.task_codes[rows], ann.label_codes[rows]]

        def loss(right, shares=shares):
            return -(shares * log(right) + (1 - shares) * log((1 - right) / 2)).sum()

        best = minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded").x
        assert accuracies(after)[worker] == pytest.approx(best, abs=1e-4)  # the optimiser's


@pytest.mark.parametrize("n_iter", [1, 2, 25])
def test_equals_dawid_skene_where_the_classes_mirror_each_other(n_iter):
    # Each task has a twin with the labels exchanged: both classes are judged equally well.
    frame = bc.simulate.crowd(40, 5, 2, accuracy=0.7, seed=1).annotations.to_frame()
    twins = frame.assign(task=frame["task"] + 40, label=1 - frame["label"])
    both = pd.concat([frame, twins], ignore_index=True)
    options = {"pseudo_counts": 0.0, "n_iter": n_iter, "tol": 0.0}
    one_coin = bc.OneCoinDawidSkene(**options).fit(both)
    full = bc.DawidSkene(**options).fit(both)
    np.testing.assert_allclose(one_coin.probas_, full.probas_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(one_coin.trace_, full.trace_, rtol=1e-10)
    np.testing.assert_allclose(one_coin.confusions_, full.confusions_, rtol=1e-8)
    # Control: without the twins the two models differ.
    assert (
        abs(
            bc.OneCoinDawidSkene(**options).fit(frame).log_likelihood_
            - bc.DawidSkene(**options).fit(frame).log_likelihood_
        )
        > 0.01
    )


def test_log_likelihood_is_the_models():
    data = bc.simulate.one_coin_crowd(50, 6, 4, labels_per_task=3, seed=2)
    model = bc.OneCoinDawidSkene(prior="learned").fit(data.annotations)
    expected = one_coin_log_likelihood(data.annotations, model.priors_, accuracies(model))
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-10)


# Starts.


def test_random_starts_with_two_classes_side_with_the_crowd(monkeypatch):
    data = bc.simulate.one_coin_crowd(200, 7, accuracy=0.8, seed=3)

    def right_shares():
        models = [
            bc.OneCoinDawidSkene(init="random", seed=seed).fit(data.annotations)
            for seed in range(8)
        ]
        for model in models:
            expected = one_coin_log_likelihood(data.annotations, [0.5, 0.5], accuracies(model))
            assert model.log_likelihood_ == pytest.approx(expected, rel=1e-9)
        return np.array([(model.labels_ == data.truth).mean() for model in models])

    assert (right_shares() > 0.9).all()
    # Control: without the alignment some starts end with everything turned round.
    monkeypatch.setattr(bc.OneCoinDawidSkene, "_interchangeable", lambda self, n_classes: False)
    assert (right_shares() < 0.1).any()


# Recovery.


def test_recovers_accuracies():
    right = np.linspace(0.55, 0.95, 9)
    data = bc.simulate.one_coin_crowd(2000, 9, 3, accuracy=right, seed=7)
    model = bc.OneCoinDawidSkene().fit(data.annotations)
    standard_error = np.sqrt(right * (1 - right) / 2000)
    # Nine errors; the truth is open for a task in a hundred, which hardly adds to them.
    assert np.abs((accuracies(model) - right) / standard_error).max() < 4
    shuffled = data.annotations.to_frame()
    shuffled["label"] = np.random.default_rng(0).permutation(shuffled["label"].to_numpy())
    control = bc.OneCoinDawidSkene(n_iter=20, tol=0.0).fit(shuffled)
    assert np.abs((accuracies(control) - right) / standard_error).max() > 20


def test_few_labels_per_worker_favour_one_number_over_a_matrix():
    # 100 workers with 12 labels each and four classes: 12 numbers a worker are too many.
    data = bc.simulate.one_coin_crowd(300, 100, 4, labels_per_task=4, accuracy=0.65, seed=0)
    errors = [
        (model.fit(data.annotations).labels_ != data.truth).mean()
        for model in (bc.OneCoinDawidSkene(), bc.DawidSkene(pseudo_counts=0.0))
    ]
    # Standard error of the difference of two shares near 0.2 of 300 tasks.
    assert errors[1] - errors[0] > 2 * np.sqrt(2 * 0.2 * 0.8 / 300)


# Published.


def test_expected_labels_on_rte(published):
    data = published("rte")
    model = bc.OneCoinDawidSkene().fit(data.annotations)
    # Between Dawid–Skene's 7.25 and the majority's 10.31.
    assert 0.07 < (model.labels_[data.truth.index] != data.truth).mean() < 0.08
