"""The heaviest subset: exact against enumeration, greedy against exact."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescrowd.selection.workers import subsets
from bayescrowd.selection.workers.subsets import (
    best_subset,
    exact_subset,
    greedy_order,
    improve_by_exchange,
    near_subset,
    subset_information,
)


def random_matrix(n_features, seed, low=0.0):
    values = np.random.default_rng(seed).uniform(low, 1, size=(n_features, n_features))
    matrix = np.triu(values, k=1)
    return matrix + matrix.T


def enumerated(matrix, size):
    """The largest sum over all subsets."""
    return max(
        subset_information(matrix, np.array(members))
        for members in combinations(range(len(matrix)), size)
    )


def trap():
    """The best pair has nobody else; a triangle of others is heavier."""
    matrix = np.zeros((6, 6))
    matrix[0, 1] = 5
    for i, j in combinations((2, 3, 4), 2):
        matrix[i, j] = 4
    return matrix + matrix.T


def test_by_hand():
    matrix = trap()
    assert exact_subset(matrix, 2).tolist() == [0, 1]
    assert exact_subset(matrix, 3).tolist() == [2, 3, 4]
    assert subset_information(matrix, np.array([2, 3, 4])) == 12
    assert greedy_order(matrix)[:2].tolist() == [0, 1]
    assert sorted(greedy_order(matrix)) == [0, 1, 2, 3, 4, 5]


def test_exchange_takes_the_best_swap_until_none_helps():
    # From {0, 2, 3}, worth 4: 0 leaves for 4.
    assert improve_by_exchange(trap(), np.array([0, 2, 3])).tolist() == [2, 3, 4]
    # {0, 1, 2}, worth 5, cannot be left by one exchange: greedy is not exact.
    assert improve_by_exchange(trap(), np.array([0, 1, 2])).tolist() == [0, 1, 2]


@given(st.integers(2, 9), st.integers(0, 10**6), st.data())
@settings(max_examples=60)
def test_exact_is_the_best_of_all(n_features, seed, data):
    size = data.draw(st.integers(1, n_features))
    matrix = random_matrix(n_features, seed, low=data.draw(st.sampled_from([0.0, -1.0])))
    found = exact_subset(matrix, size)
    assert len(set(found.tolist())) == size
    assert subset_information(matrix, found) == pytest.approx(enumerated(matrix, size), abs=1e-9)


@pytest.mark.parametrize("size", [3, 7, 12])
def test_greedy_with_exchange_is_near_the_best(size):
    ratios = []
    for seed in range(10):
        matrix = random_matrix(16, seed)
        near = near_subset(matrix, size)
        exact = subset_information(matrix, exact_subset(matrix, size))
        ratios.append(subset_information(matrix, near) / exact)
    assert max(ratios) <= 1 + 1e-12
    # Seen on these matrices: 0.98 at worst.
    assert min(ratios) > 0.95


def test_exact_is_quick_enough_at_its_limit():
    matrix = random_matrix(subsets.EXACT_FEATURES, 0)
    found = best_subset(matrix, 10)
    assert subset_information(matrix, found) >= subset_information(matrix, near_subset(matrix, 10))


def test_many_features_go_the_greedy_way(monkeypatch):
    matrix = random_matrix(16, 1)
    near, exact = near_subset(matrix, 3), exact_subset(matrix, 3)
    assert best_subset(matrix, 3).tolist() == exact.tolist()
    monkeypatch.setattr(subsets, "EXACT_FEATURES", 15)
    assert best_subset(matrix, 3).tolist() == near.tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_one_coin_workers_are_selected_by_accuracy(n_classes):
    # Equation (3) of Zhao and Zucker: information grows with both accuracies above chance.
    accuracy = np.random.default_rng(n_classes).uniform(1 / n_classes + 0.02, 0.98, 12)
    p, q, k = accuracy[:, None], accuracy[None, :], n_classes
    agree = p * q / k + (1 - p) * (1 - q) / (k * (k - 1))
    rest = 1 - k * agree
    matrix = k * agree * np.log(agree) + rest * np.log(rest / (k * (k - 1))) + np.log(k**2)
    np.fill_diagonal(matrix, 0.0)
    ranked = np.argsort(-accuracy)
    for size in (2, 5, 9):
        assert set(best_subset(matrix, size)) == set(ranked[:size])
        assert set(greedy_order(matrix)[:size]) == set(ranked[:size])
