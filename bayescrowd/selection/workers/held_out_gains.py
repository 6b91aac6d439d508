"""How well the first features of a ranking predict the entries of held-out items.

The model and the ranking come from the other items. Each entry v of feature f is then predicted
from the entries of the first L features of that ranking, other than f, on the same item,

    gain(L) = mean over entries of log [sum_k P_T(k | first L, other than f) P(v | k) / P(v)],  (1)
    P_T(k | entries)  proportional to  P(k) prod P(entry | k)^(1 / T).

Entries of features beyond the first L are predicted but do not predict. The best of a few
temperatures T is taken for each L. Without T, workers who err together make the model
overconfident, and a panel would seem to predict worse with every member, good ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import floored_log

__all__ = ["TEMPERATURES", "HeldOutItems", "path_gains"]

TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 5.0)
"""Divisors of the log-likelihood of the other entries, to choose from (T of equation 1)."""

_BLOCK_CELLS = 2**22
"""Largest number of cells of a temporary array of entries x classes."""


class HeldOutItems(NamedTuple):
    """Items that a model has not seen, and what it says about them."""

    n_items: int
    """Number of items."""
    item: Int[np.ndarray, " entry"]
    """Item of each entry, ascending from 0."""
    feature: Int[np.ndarray, " entry"]
    """Feature of each entry."""
    symbol: Int[np.ndarray, " entry"]
    """Row of `log_rows` that belongs to each entry."""
    log_rows: Float[np.ndarray, "symbol cls"]
    """log P(value | class)."""
    log_prior: Float[np.ndarray, " cls"]
    """log P(class)."""
    posteriors: Float[np.ndarray, "model item cls"]
    """P(class | entries) of each item under each model."""
    scores: Float[np.ndarray, " feature"]
    """Information of each feature on the other items; -inf where it is absent from them."""


def path_gains(
    part: HeldOutItems, sizes: Sequence[int]
) -> Float[np.ndarray, "temperature size item"]:
    """Equation 1 summed over the entries of each item, for the first features of a ranking.

    Args:
        part: the held-out items; their features are ranked by `part.scores`.
        sizes: ascending numbers of features.
    """
    rank = np.empty(len(part.scores), dtype=np.int64)
    rank[np.argsort(-part.scores, kind="stable")] = np.arange(len(rank))
    gains = np.empty((len(TEMPERATURES), len(sizes), part.n_items))
    offsets = np.searchsorted(part.item, np.arange(part.n_items + 1))
    most = max(1, _BLOCK_CELLS // len(part.log_prior))
    first = 0
    while first < part.n_items:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + most, "right")) - 1)
        entries = slice(int(offsets[first]), int(offsets[last]))
        gains[:, :, first:last] = _block_gains(
            part.log_rows[part.symbol[entries]],
            part.log_prior,
            part.item[entries] - first,
            part.feature[entries],
            rank,
            sizes,
            last - first,
        )
        first = last
    return gains


def _block_gains(
    log_rows: Float[np.ndarray, "entry cls"],
    log_prior: Float[np.ndarray, " cls"],
    item: Int[np.ndarray, " entry"],
    feature: Int[np.ndarray, " entry"],
    rank: Int[np.ndarray, " feature"],
    sizes: Sequence[int],
    n_items: int,
) -> Float[np.ndarray, "temperature size item"]:
    rows, rank_of_entry = np.exp(log_rows), rank[feature]
    # If a feature has several values on an item, none of them may help to predict another.
    pairs, pair = np.unique(item.astype(np.int64) * len(rank) + feature, return_inverse=True)
    own = log_rows if len(pairs) == len(pair) else _sums(log_rows, pair, len(pairs))[pair]
    alone = floored_log(rows @ np.exp(log_prior))
    evidence = np.zeros((n_items, len(log_prior)))
    gains, n_before = np.empty((len(TEMPERATURES), len(sizes), n_items)), 0
    for place, size in enumerate(sizes):
        entering = (rank_of_entry >= n_before) & (rank_of_entry < size)
        evidence += _sums(log_rows[entering], item[entering], n_items)
        n_before = size
        said = evidence[item] - np.where((rank_of_entry < size)[:, None], own, 0.0)
        for step, temperature in enumerate(TEMPERATURES):
            others = said / temperature + log_prior
            others = np.exp(others - others.max(axis=1, keepdims=True))
            predicted = (others * rows).sum(axis=1) / others.sum(axis=1)
            gain = floored_log(predicted) - alone
            gains[step, place] = np.bincount(item, gain, minlength=n_items)
    return gains


def _sums(
    values: Float[np.ndarray, "value cls"], group: Int[np.ndarray, " value"], n_groups: int
) -> Float[np.ndarray, "group cls"]:
    ones, place = np.ones(len(group)), np.arange(len(group))
    by_group = scipy.sparse.csr_matrix((ones, (group, place)), shape=(n_groups, len(group)))
    return np.asarray(by_group @ values)
