"""Smoothed rows against sums on paper and against a numerical optimiser."""

from math import log

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

import bayescrowd as bc
from bayescrowd.aggregation.em import LOG_FLOOR
from bayescrowd.aggregation.smoothing import mean_rows, smoothed_rows

COUNTS = np.array([[[3.0, 1.0], [0.0, 2.0]], [[1.0, 3.0], [2.0, 0.0]]])
FLAT = np.full((2, 2), 0.5)


def random_counts(seed, n_workers=4, n_classes=3):
    return np.random.default_rng(seed).gamma(0.7, 3.0, size=(n_workers, n_classes, n_classes))


def best_on_simplex(objective, n):
    """The maximiser of a concave function of probabilities, found without derivatives of ours."""
    found = minimize(lambda logits: -objective(softmax(logits)), np.zeros(n), method="BFGS")
    return softmax(found.x)


def divergence(centre, rows):
    """sum_w KL(centre || row_w)."""
    return sum((centre * np.log(centre / row)).sum() for row in rows)


# By hand.


def test_flat_by_hand():
    smoothed = smoothed_rows(COUNTS, base=FLAT, pseudo_counts=2.0, centre=None)
    expected = np.array([[[4, 2], [1, 3]], [[2, 4], [3, 1]]]) / [[[6], [4]], [[6], [4]]]
    np.testing.assert_allclose(smoothed.rows, expected, rtol=1e-12)
    np.testing.assert_allclose(smoothed.log_rows, np.log(expected), rtol=1e-12)
    # One pseudo-count on each of the eight entries.
    assert smoothed.penalty == pytest.approx(
        2 * (log(4 / 6) + log(2 / 6) + log(3 / 4) + log(1 / 4)), rel=1e-12
    )
    assert smoothed.centre is None


def test_diagonal_by_hand():
    smoothed = smoothed_rows(COUNTS, base=np.eye(2), pseudo_counts=1.0, centre=None)
    expected = [[[4 / 5, 1 / 5], [0, 1]], [[2 / 5, 3 / 5], [2 / 3, 1 / 3]]]
    np.testing.assert_allclose(smoothed.rows, expected, rtol=1e-12)
    assert smoothed.penalty == pytest.approx(
        log(4 / 5) + log(1) + log(2 / 5) + log(1 / 3), rel=1e-12
    )


def test_pooled_by_hand():
    # All labels together: rows (4, 4) and (2, 2), hence pseudo-counts (1, 1).
    smoothed = smoothed_rows(COUNTS, base=None, pseudo_counts=2.0, centre=None)
    expected = np.array([[[4, 2], [1, 3]], [[2, 4], [3, 1]]]) / [[[6], [4]], [[6], [4]]]
    np.testing.assert_allclose(smoothed.rows, expected, rtol=1e-12)
    np.testing.assert_allclose(smoothed.centre, FLAT, rtol=1e-12)
    # KL of (1/2, 1/2) from (2/3, 1/3) is log(9/8)/2, from (1/4, 3/4) log(4/3)/2; two workers.
    assert smoothed.penalty == pytest.approx(-2 * (log(9 / 8) + log(4 / 3)), rel=1e-12)


def test_pooled_takes_the_centre_it_is_given():
    centre = np.array([[0.75, 0.25], [0.5, 0.5]])
    smoothed = smoothed_rows(COUNTS, base=None, pseudo_counts=4.0, centre=centre)
    np.testing.assert_allclose(smoothed.rows[0], [[6 / 8, 2 / 8], [2 / 6, 4 / 6]], rtol=1e-12)
    np.testing.assert_allclose(smoothed.rows[1], [[4 / 8, 4 / 8], [4 / 6, 2 / 6]], rtol=1e-12)
    # Geometric means of 3/4, 1/2 and of 1/4, 1/2 are as sqrt(3) to 1.
    np.testing.assert_allclose(smoothed.centre[0], np.array([3**0.5, 1]) / (1 + 3**0.5), rtol=1e-12)


def test_without_pseudo_counts_rows_are_shares_and_unknown_rows_uniform():
    counts = np.array([[[3.0, 1.0], [0.0, 0.0]]])
    smoothed = smoothed_rows(counts, base=None, pseudo_counts=0.0, centre=None)
    np.testing.assert_array_equal(smoothed.rows, [[[0.75, 0.25], [0.5, 0.5]]])
    assert (smoothed.penalty, smoothed.centre) == (0.0, None)


def test_logarithm_of_an_impossible_label_is_finite():
    smoothed = smoothed_rows(COUNTS, base=None, pseudo_counts=0.0, centre=None)
    assert smoothed.rows[0, 1, 0] == 0
    assert smoothed.log_rows[0, 1, 0] == LOG_FLOOR


def test_mean_rows_by_hand():
    counts = np.array([[[3.0, 1.0], [0, 0]], [[1.0, 3.0], [0, 0]], [[8.0, 0.0], [0, 0]]])
    np.testing.assert_array_equal(mean_rows(counts), [[0.75, 0.25], [0.5, 0.5]])


# Closed form: each half of the pooled M-step is an optimum given the other half.

# BFGS stops at a gradient of 1e-5; a Hessian of order one leaves as much in the solution.
BFGS_ERROR = 1e-4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pseudo_counts", [0.5, 5.0])
def test_rows_are_optimal_given_the_centre(seed, pseudo_counts):
    counts = random_counts(seed)
    centre = np.random.default_rng([seed, 1]).dirichlet(np.ones(3), size=3)
    rows = smoothed_rows(counts, base=None, pseudo_counts=pseudo_counts, centre=centre).rows
    for worker in range(len(counts)):
        for true in range(3):
            count, mean = counts[worker, true], centre[true]
            best = best_on_simplex(
                lambda row, count=count, mean=mean: (
                    (count * np.log(row)).sum() - pseudo_counts * divergence(mean, [row])
                ),
                3,
            )
            np.testing.assert_allclose(rows[worker, true], best, atol=BFGS_ERROR)


@pytest.mark.parametrize("seed", range(4))
def test_centre_is_optimal_given_the_rows(seed):
    smoothed = smoothed_rows(random_counts(seed), base=None, pseudo_counts=2.0, centre=None)
    for true in range(3):
        rows = smoothed.rows[:, true]
        best = best_on_simplex(lambda centre, rows=rows: -divergence(centre, rows), 3)
        np.testing.assert_allclose(smoothed.centre[true], best, atol=BFGS_ERROR)


@pytest.mark.parametrize("seed", range(4))
def test_penalty_is_the_divergence_from_the_new_centre(seed):
    smoothed = smoothed_rows(random_counts(seed), base=None, pseudo_counts=2.0, centre=None)
    expected = -2.0 * sum(divergence(smoothed.centre[k], smoothed.rows[:, k]) for k in range(3))
    assert smoothed.penalty == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("pooled", [True, False])
def test_a_worker_without_labels_weighs_nothing(pooled):
    base = None if pooled else FLAT
    smoothed = smoothed_rows(COUNTS, base=base, pseudo_counts=3.0, centre=None)
    silent = np.concatenate([COUNTS, np.zeros((5, 2, 2))])
    with_silent = smoothed_rows(silent, base=base, pseudo_counts=3.0, centre=None)
    np.testing.assert_array_equal(with_silent.rows[:2], smoothed.rows)
    assert with_silent.penalty == pytest.approx(smoothed.penalty, rel=1e-12)
    if pooled:
        np.testing.assert_allclose(with_silent.centre, smoothed.centre, rtol=1e-12)


# Limits.


@pytest.mark.parametrize("seed", range(3))
def test_many_pseudo_counts_give_everybody_the_crowds_matrix(seed):
    counts = random_counts(seed)
    smoothed = smoothed_rows(counts, base=None, pseudo_counts=1e9, centre=None)
    # A row of n labels is n / (n + s) away.
    distance = counts.sum(axis=2).max() / 1e9
    assert np.abs(smoothed.rows - mean_rows(counts)).max() <= distance
    assert np.abs(smoothed.centre - mean_rows(counts)).max() <= distance


@pytest.mark.parametrize("seed", range(3))
def test_few_pseudo_counts_give_the_shares(seed):
    counts = random_counts(seed)
    shares = counts / counts.sum(axis=2, keepdims=True)
    smoothed = smoothed_rows(counts, base=None, pseudo_counts=1e-9, centre=None)
    assert np.abs(smoothed.rows - shares).max() <= 1e-9 / counts.sum(axis=2).min()


def test_the_estimator_in_the_limit_has_one_matrix_for_all():
    data = bc.simulate.crowd(200, 6, 3, labels_per_task=4, seed=1)
    model = bc.DawidSkene(pseudo_counts=1e9).fit(data.annotations)
    matrices = model.confusions_.to_numpy().reshape(6, 3, 3)
    assert np.ptp(matrices, axis=0).max() < 800 / 1e9  # at most 800 labels in a row


def test_counts_are_not_changed():
    before = COUNTS.copy()
    for base in (None, FLAT, np.eye(2)):
        smoothed_rows(COUNTS, base=base, pseudo_counts=1.0, centre=None)
    np.testing.assert_array_equal(COUNTS, before)
