"""The subset of features with the most information among themselves.

Zhao and Zucker's heuristic (a), the arg max over subsets of size L of the sum of the pairwise
mutual information, is the heaviest-subgraph problem, which is NP-hard. `near_subset` finds a subset
that no exchange of two features improves; `exact_subset` finds the best subset of few features.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

__all__ = [
    "best_subset",
    "exact_subset",
    "greedy_order",
    "improve_by_exchange",
    "near_subset",
    "subset_information",
]

EXACT_FEATURES = 20
"""Largest number of features for which the best subset is found exactly.

20 features take at most some tenths of a second.
"""


def subset_information(
    matrix: Float[np.ndarray, "feature feature"], members: Int[np.ndarray, " member"]
) -> float:
    """Sum of the information over the pairs of a subset, nats."""
    return float(matrix[np.ix_(members, members)].sum() / 2)


def best_subset(
    matrix: Float[np.ndarray, "feature feature"], size: int
) -> Int[np.ndarray, " member"]:
    """The subset of a given size with the most information: exact for few features, else greedy.

    Args:
        matrix: mutual information, symmetric with a zero diagonal.
        size: number of features, at least 1.

    Examples:
        >>> import numpy as np
        >>> matrix = np.array([[0, 3, 0, 0], [3, 0, 0, 0], [0, 0, 0, 2], [0, 0, 2, 0]], dtype=float)
        >>> best_subset(matrix, 2)
        array([0, 1])
    """
    if len(matrix) <= EXACT_FEATURES:
        return exact_subset(matrix, size)
    return near_subset(matrix, size)


def near_subset(
    matrix: Float[np.ndarray, "feature feature"], size: int
) -> Int[np.ndarray, " member"]:
    """The better of two subsets, improved from the greedy one and from the largest scores."""
    by_score = np.argsort(-matrix.sum(axis=1), kind="stable")
    found = [
        improve_by_exchange(matrix, order[:size]) for order in (greedy_order(matrix), by_score)
    ]
    return max(found, key=lambda members: subset_information(matrix, members))


def greedy_order(
    matrix: Float[np.ndarray, "feature feature"],
) -> Int[np.ndarray, " feature"]:
    """Features in an order in which each adds most to those before, after the best pair."""
    n_features = len(matrix)
    if n_features < 2:
        return np.arange(n_features)
    ranked = np.where(np.triu(np.ones_like(matrix), k=1) > 0, matrix, -np.inf)
    first, second = np.unravel_index(int(ranked.argmax()), ranked.shape)
    order = [int(first), int(second)]
    gain = matrix[first] + matrix[second]
    gain[order] = -np.inf
    while len(order) < n_features:
        best = int(gain.argmax())
        order.append(best)
        gain = gain + matrix[best]  # stays -inf for features in the order
        gain[best] = -np.inf
    return np.array(order)


def improve_by_exchange(
    matrix: Float[np.ndarray, "feature feature"], members: Int[np.ndarray, " member"]
) -> Int[np.ndarray, " member"]:
    """Exchange a member for an outsider, the best exchange first, until none helps."""
    inside = np.zeros(len(matrix), dtype=bool)
    inside[members] = True
    slack = 1e-12 * max(float(np.abs(matrix).max()), 1.0)  # rounding must not go in circles
    while True:
        own, others = np.flatnonzero(inside), np.flatnonzero(~inside)
        if len(own) == 0 or len(others) == 0:
            return own
        worth = matrix[:, own].sum(axis=1)
        gain = worth[others][None, :] - worth[own][:, None] - matrix[np.ix_(own, others)]
        out, new = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[out, new] <= slack:
            return own
        inside[own[out]], inside[others[new]] = False, True


def exact_subset(
    matrix: Float[np.ndarray, "feature feature"], size: int
) -> Int[np.ndarray, " member"]:
    """The best subset by branch and bound; `near_subset` is the first bound.

    Branches decide one feature at a time, those with high scores first. A branch with members S
    that needs r more features cannot exceed I(S) plus the sum, over the r best undecided features
    c, of I(c, S) plus half of the r - 1 largest values of c among the undecided features.
    """
    order = np.argsort(-matrix.sum(axis=1), kind="stable")
    weights = matrix[np.ix_(order, order)]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    found = rank[near_subset(matrix, size)]
    best = subset_information(weights, found)
    # The undecided features are a tail of the order: sort every tail of every row once.
    tails = [np.sort(weights[first:, first:], axis=1)[:, ::-1] for first in range(len(order))]

    def branch(first: int, members: list[int], value: float, worth: np.ndarray) -> None:
        nonlocal best, found
        lacking = size - len(members)
        if lacking == 0:
            if value > best + 1e-12:
                best, found = value, np.array(members)
            return
        if len(order) - first < lacking:
            return
        among = tails[first][:, : lacking - 1].sum(axis=1) / 2
        optimistic = np.sort(worth[first:] + among)[::-1][:lacking].sum()
        if value + optimistic <= best + 1e-12:
            return
        branch(first + 1, [*members, first], value + worth[first], worth + weights[first])
        branch(first + 1, members, value, worth)

    branch(0, [], 0.0, np.zeros(len(order)))
    return np.sort(order[found])
