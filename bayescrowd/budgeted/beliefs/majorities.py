"""One observation from several labels of the same feature: what most of them name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Votes", "first_majority", "majority_shares"]

Votes = Callable[[Int[np.ndarray, "row label"], int], Float[np.ndarray, "row value"]]
"""Turns the labels of each row into one observation, given the number of values."""


def majority_shares(
    labels: Int[np.ndarray, "row label"], n_values: int
) -> Float[np.ndarray, "row value"]:
    """One observation per row, shared evenly by its most frequent labels; zeros if it has none.

    Examples:
        >>> import numpy as np
        >>> majority_shares(np.array([[0, 2, 2], [1, 0, -1]]), 3)
        array([[0. , 0. , 1. ],
               [0.5, 0.5, 0. ]])
    """
    if labels.shape[1] == 1:
        return (labels == np.arange(n_values)).astype(float)
    leads = _leads(labels, n_values)
    return leads / np.maximum(leads.sum(axis=1, keepdims=True), 1)


def first_majority(
    labels: Int[np.ndarray, "row label"], n_values: int
) -> Float[np.ndarray, "row value"]:
    """One observation per row: its most frequent label, or the first of those that tie.

    Examples:
        >>> import numpy as np
        >>> first_majority(np.array([[0, 2, 2], [1, 0, -1]]), 3)
        array([[0., 0., 1.],
               [0., 1., 0.]])
    """
    if labels.shape[1] == 1:
        return (labels == np.arange(n_values)).astype(float)
    leads = np.append(_leads(labels, n_values), np.zeros((len(labels), 1), dtype=bool), axis=1)
    rows = np.arange(len(labels))
    named = labels[rows, leads[rows[:, None], labels].argmax(axis=1)]
    return (named[:, None] == np.arange(n_values)).astype(float)


def _leads(labels: Int[np.ndarray, "row label"], n_values: int) -> Bool[np.ndarray, "row value"]:
    """Which values each row names most often."""
    votes = np.zeros((len(labels), n_values + 1))
    np.add.at(votes, (np.arange(len(labels))[:, None], labels), 1)
    votes = votes[:, :-1]
    most = votes.max(axis=1, keepdims=True)
    return (votes == most) & (most > 0)
