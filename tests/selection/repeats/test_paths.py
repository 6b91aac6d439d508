"""Repeat paths: the printed algorithm, enumeration, and what they must never do."""

import itertools

import numpy as np
import pytest

from bayescrowd.selection.repeats.moments import nearest_psd
from bayescrowd.selection.repeats.paths import (
    Steps,
    best_path,
    explained_variance,
    greedy_path,
    measurement_noise,
    repeated_steps,
)


def noise_table(internal, most):
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.asarray(internal, dtype=float)[:, None] / np.arange(most + 1)
    table[:, 0] = np.inf
    return table


def problem(seed, d, most, n_targets=1):
    """Sigma of any rank, correlations in its range, internal variances from small to large."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, rng.integers(1, 2 * d + 1))) * rng.uniform(0.3, 2, size=(d, 1))
    covariance = root @ root.T / root.shape[1]
    correlation = covariance @ rng.normal(size=(d, n_targets))
    return covariance, correlation, noise_table(rng.gamma(1.0, 2.0, size=d), most)


def printed_objective(covariance, correlation, noise, repeats):
    """Line 12 of algorithm 1, with the pseudo-inverse of the submatrix."""
    asked = np.flatnonzero(repeats)
    matrix = covariance[np.ix_(asked, asked)] + np.diag(noise[asked, repeats[asked]])
    b = correlation[asked]
    return float(np.sum(b * (np.linalg.pinv(matrix, hermitian=True) @ b)))


def printed_path(covariance, correlation, noise, budget):
    """Lines 14 to 18 of algorithm 1."""
    repeats = np.zeros(len(covariance), dtype=int)
    path, values = [repeats.copy()], [0.0]
    for _ in range(budget):
        found = []
        for i in range(len(covariance)):
            repeats[i] += 1
            found.append(printed_objective(covariance, correlation, noise, repeats))
            repeats[i] -= 1
        repeats[int(np.argmax(found))] += 1
        path.append(repeats.copy())
        values.append(max(found))
    return np.array(path), np.array(values)


def all_vectors(costs, budget):
    ranges = [range(int(budget // cost) + 1) for cost in costs]
    return [r for r in itertools.product(*ranges) if np.dot(r, costs) <= budget]


def enumerated(covariance, correlation, noise, costs, budget):
    """The largest value of the printed objective; rows of zeros do not disturb the inverse."""
    vectors = np.array(all_vectors(costs, budget))
    asked = (vectors > 0).astype(float)
    at_repeats = np.where(vectors > 0, noise[np.arange(len(covariance)), vectors], 0.0)
    matrix = asked[:, :, None] * covariance * asked[:, None, :]
    matrix = matrix + at_repeats[:, :, None] * np.eye(len(covariance))
    b = asked[:, :, None] * correlation
    return float((b * (np.linalg.pinv(matrix, hermitian=True) @ b)).sum(axis=(1, 2)).max())


# By hand


def test_two_attributes_by_hand():
    """sigma^2 = 1 each, uncorrelated; b = (2, 1), v = (1, 1): f = 4/(1+1/r1) + 1/(1+1/r2)."""
    noise = noise_table([1, 1], 4)
    path = greedy_path(np.eye(2), np.array([[2.0], [1]]), repeated_steps(noise, 1.0), budget=4)
    # 2; then 8/3 - 2 = 2/3 against 1/2; then 1/2 against 3 - 8/3 = 1/3; then 1/3 against 1/6
    assert path.repeats.tolist() == [[0, 0], [1, 0], [2, 0], [2, 1], [3, 1]]
    np.testing.assert_allclose(path.explained, [0, 2, 8 / 3, 19 / 6, 3.5], rtol=1e-12)
    assert path.spent.tolist() == [0, 1, 2, 3, 4]


def test_measurement_noise_of_means_is_the_internal_variance():
    np.testing.assert_allclose(measurement_noise(noise_table([2.0], 5)), np.full((1, 5), 2.0))
    exact = measurement_noise(noise_table([0.0], 3))  # the first judgement says everything
    np.testing.assert_array_equal(exact, [[0, np.inf, np.inf]])


# Reference: the algorithm as printed


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_targets", [1, 3])
def test_rank_one_updates_follow_the_printed_algorithm(seed, n_targets):
    d, budget = 7, 25
    covariance, correlation, noise = problem(seed, d, budget, n_targets)
    repeats, values = printed_path(covariance, correlation, noise, budget)
    path = greedy_path(covariance, correlation, repeated_steps(noise, 1.0), budget=budget)
    np.testing.assert_array_equal(path.repeats, repeats)
    np.testing.assert_allclose(path.explained, values, rtol=1e-8)


def test_long_paths_keep_to_the_printed_objective():
    """After 3,000 steps, many times the block of kept columns, nothing has drifted."""
    covariance, correlation, noise = problem(4, 5, 3_000)
    path = greedy_path(covariance, correlation, repeated_steps(noise, 1.0), budget=3_000)
    assert path.repeats.shape == (3_001, 5)
    np.testing.assert_array_equal(path.repeats.sum(axis=1), np.arange(3_001))
    for step in (63, 64, 65, 130, 1_000, 3_000):
        expected = printed_objective(covariance, correlation, noise, path.repeats[step])
        assert path.explained[step] == pytest.approx(expected, rel=1e-9)


def test_scoring_is_the_sum_of_equation_1():
    covariance, correlation, noise = problem(3, 6, 10)
    diagonal = np.diag(np.diag(covariance))
    path = greedy_path(diagonal, correlation, repeated_steps(noise, 1.0), budget=10)
    for repeats, explained in zip(path.repeats, path.explained, strict=True):
        asked = repeats > 0
        terms = correlation[asked, 0] ** 2 / (
            np.diag(covariance)[asked] + noise[asked, repeats[asked]]
        )
        assert explained == pytest.approx(terms.sum(), rel=1e-12)


def test_noise_that_is_not_that_of_means():
    covariance, correlation, noise = problem(5, 4, 12)
    rng = np.random.default_rng(0)
    noise[:, 1:] *= np.cumprod(rng.uniform(0.7, 1.0, size=(4, 12)), axis=1)
    path = greedy_path(covariance, correlation, repeated_steps(noise, 1.0), budget=12)
    for repeats, explained in zip(path.repeats[1:], path.explained[1:], strict=True):
        expected = printed_objective(covariance, correlation, noise, repeats)
        assert explained == pytest.approx(expected, rel=1e-9)


def test_explained_variance_is_the_printed_objective():
    covariance, correlation, noise = problem(1, 5, 6)
    repeats = np.array([0, 2, 1, 0, 5])
    found = explained_variance(covariance, correlation, noise[np.arange(5), repeats])
    assert float(found) == pytest.approx(
        printed_objective(covariance, correlation, noise, repeats), rel=1e-10
    )


# Singular problems


def test_collinear_attributes_without_noise_gain_nothing_twice():
    truth = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    correlation = truth @ np.array([[1.0], [0.0], [1.0]])
    noise = noise_table([0.0, 0.0, 0.0], 6)
    path = greedy_path(truth, correlation, repeated_steps(noise, 1.0), budget=6)
    assert path.repeats[-1].tolist() == [1, 0, 1]
    assert path.explained[-1] == pytest.approx(3.0)  # all of w' Sigma w


def test_constant_attribute_is_never_bought():
    covariance = np.diag([0.0, 1.0])
    path = greedy_path(
        covariance,
        np.array([[0.0], [1.0]]),
        repeated_steps(noise_table([0.0, 1.0], 5), 1.0),
        budget=5,
    )
    assert path.repeats[-1].tolist() == [0, 5]


def test_nothing_is_bought_where_nothing_correlates():
    path = greedy_path(
        np.eye(2), np.zeros((2, 1)), repeated_steps(noise_table([1, 1], 3), 1.0), budget=3
    )
    assert path.repeats.tolist() == [[0, 0]]


# Lemma 3.3 and optima


@pytest.mark.parametrize("seed", range(20))
def test_scoring_is_optimal_for_unit_costs(seed):
    """Lemma 3.3, against all repeat vectors."""
    covariance, correlation, noise = problem(seed, 4, 6)
    diagonal = np.diag(np.diag(covariance))
    path = greedy_path(diagonal, correlation, repeated_steps(noise, 1.0), budget=6)
    best = enumerated(diagonal, correlation, noise, np.ones(4), 6)
    assert path.explained[-1] == pytest.approx(best, rel=1e-10)


def test_full_reaches_most_of_the_optimum():
    """At least 98 % on average, and no draw far below; the paper promises no bound."""
    shares = []
    for seed in range(30):
        covariance, correlation, noise = problem(seed, 4, 6)
        path = greedy_path(covariance, correlation, repeated_steps(noise, 1.0), budget=6)
        best = enumerated(covariance, correlation, noise, np.ones(4), 6)
        shares.append(path.explained[-1] / best)
    assert np.mean(shares) > 0.995
    assert min(shares) > 0.9
    assert np.mean(np.array(shares) > 0.98) > 0.9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_diagonal", [True, False])
def test_exact_search_is_the_optimum_of_every_budget(seed, is_diagonal):
    covariance, correlation, noise = problem(seed, 3, 9)
    if is_diagonal:
        covariance = np.diag(np.diag(covariance))
    costs = np.array([1.0, 4.0, 1.5])
    path = best_path(covariance, correlation, noise, costs, budget=9)
    assert path.spent[0] == 0
    assert (np.diff(path.spent) > 0).all()
    np.testing.assert_allclose(path.repeats @ costs, path.spent)
    for budget in (1, 3.5, 5, 9):
        best = enumerated(covariance, correlation, noise, costs, budget)
        place = np.searchsorted(path.spent, budget + 1e-9, side="right") - 1
        assert path.explained[place] == pytest.approx(best, rel=1e-9)


def test_exact_search_refuses_what_it_cannot_do():
    covariance, correlation, noise = problem(0, 12, 30)
    with pytest.raises(ValueError, match=r"would look through .* repeat vectors"):
        best_path(covariance, correlation, noise, np.ones(12), budget=30)
    with pytest.raises(ValueError, match="round the costs"):
        best_path(np.eye(2), np.ones((2, 1)), noise[:2], np.array([1.0, np.pi]), budget=30)


# Costs


def test_cost_benefit_against_gain():
    """A judgement that explains 3 at cost 4, and ones that explain 1 each at cost 1."""
    covariance = np.diag([1.0, 1, 1, 1, 1])
    correlation = np.sqrt([[3.0], [1], [1], [1], [1]])
    noise = np.tile([np.inf, 0, 0], (5, 1)).astype(float)
    steps = repeated_steps(noise, np.array([4.0, 1, 1, 1, 1]))
    by_cost = greedy_path(covariance, correlation, steps, budget=4)
    assert by_cost.repeats[-1].tolist() == [0, 1, 1, 1, 1]
    by_gain = greedy_path(covariance, correlation, steps, budget=4, per_cost=False)
    assert by_gain.repeats[-1].tolist() == [1, 0, 0, 0, 0]


def test_what_is_too_dear_for_the_rest_is_passed_over():
    steps = repeated_steps(noise_table([1.0, 1.0], 9), np.array([4.0, 1.0]))
    path = greedy_path(np.eye(2), np.array([[9.0], [1.0]]), steps, budget=9)
    assert path.repeats[-1].tolist() == [2, 1]
    assert path.spent.tolist() == [0, 4, 8, 9]


@pytest.mark.parametrize("budget", [0.3, 0.7])
def test_costs_of_a_tenth_fill_the_budget(budget):
    steps = repeated_steps(noise_table([1.0], 9), 0.1)
    path = greedy_path(np.eye(1), np.ones((1, 1)), steps, budget=budget)
    assert path.repeats[-1, 0] == round(budget / 0.1)


def test_unit_costs_change_nothing_when_scaled():
    covariance, correlation, noise = problem(2, 5, 10)
    one = greedy_path(covariance, correlation, repeated_steps(noise, 1.0), budget=10)
    seven = greedy_path(covariance, correlation, repeated_steps(noise, 7.0), budget=70)
    np.testing.assert_array_equal(one.repeats, seven.repeats)


def test_steps_end_where_they_are_infinite():
    column = np.array([[0, 1], [2, 3]])
    steps = Steps(column, np.array([[0.0, 0.0], [0.0, np.inf]]), np.ones(2))
    path = greedy_path(np.eye(4), np.ones((4, 1)), steps, budget=9)
    assert path.repeats[-1].tolist() == [2, 1]


# Rounding


def test_nearest_psd_is_nearest():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(5, 5))
    matrix = (matrix + matrix.T) / 2
    rounded = nearest_psd(matrix)
    assert np.linalg.eigvalsh(rounded).min() > -1e-12
    distance = np.linalg.norm(rounded - matrix)
    # Higham: the distance is the norm of the negative eigenvalues; other psd matrices are farther
    negative = np.minimum(np.linalg.eigvalsh(matrix), 0)
    assert distance == pytest.approx(np.linalg.norm(negative))
    for _ in range(50):
        root = rng.normal(size=(5, 5)) * 0.1
        assert np.linalg.norm(nearest_psd(rounded + root + root.T) - matrix) >= distance


def test_a_psd_matrix_stays():
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(nearest_psd(matrix), matrix)
