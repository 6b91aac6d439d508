"""Which chains are in one mode, and whether they stay there.

Two chains are in one mode if they agree about everything that the chains as a whole disagree about
(pairwise R-hat at most `APART_RHAT`), directly or by way of other chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from bayescrowd.posterior.convergence import (
    APART_RHAT,
    convergence_of,
    entries_to_watch,
    is_at_rest,
)

__all__ = ["are_at_rest", "group_chains", "stay_apart"]

MOST_COMPARED = 50
"""Number of entries, the worst ones, in which pairs of chains are compared."""

MOST_DRIFT = 0.25
"""Share of the distance between modes by which the halves of a chain that stays may differ. Those
of a chain that creeps from one to the other differ by half of it."""


def group_chains(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]],
) -> Int[np.ndarray, " chain"]:
    """Number the groups of chains that agree, in the order of their first chains."""
    compared = _telling_entries(variables)
    n_chains = len(compared)
    group = np.arange(n_chains)
    for first in range(n_chains):
        for other in range(first + 1, n_chains):
            pair = convergence_of(compared[[first, other]]).rhat
            if group[first] != group[other] and (pair <= APART_RHAT).all():
                group[group == group[other]] = group[first]
    return np.unique(group, return_inverse=True)[1]


def are_at_rest(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]],
    mode_of_chain: Int[np.ndarray, " chain"],
) -> Bool[np.ndarray, " mode"]:
    """Whether the chains of each mode are at rest in everything that is watched."""
    watched = [entries_to_watch(values) for values in variables]
    return np.array(
        [
            all(is_at_rest(values[mode_of_chain == mode]) for values in watched)
            for mode in range(mode_of_chain.max() + 1)
        ]
    )


def stay_apart(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]],
    mode_of_chain: Int[np.ndarray, " chain"],
) -> bool:
    """Whether all chains stay in their modes, as far as the modes differ.

    Between any two modes, in most of the entries that tell modes apart, no chain drifts from one
    half to the other by more than `MOST_DRIFT` of their distance. That is less than to be at rest:
    inside its mode a chain may be too slow to be weighed.
    """
    telling = _telling_entries(variables)
    half = telling.shape[1] // 2
    drift = np.abs(telling[:, -half:].mean(axis=1) - telling[:, :half].mean(axis=1)).max(axis=0)
    means = [
        telling[mode_of_chain == mode].mean(axis=(0, 1)) for mode in range(mode_of_chain.max() + 1)
    ]
    return all(
        (drift <= MOST_DRIFT * np.abs(one - other)).mean() >= 0.5
        for one, other in combinations(means, 2)
    )


def _telling_entries(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]],
) -> Float[np.ndarray, "chain draw entry"]:
    """The entries about which the chains as a whole disagree most."""
    watched = np.concatenate([entries_to_watch(values) for values in variables], axis=-1)
    rhat = np.nan_to_num(convergence_of(watched).rhat, nan=0.0)
    worst = np.argsort(-rhat, kind="stable")[:MOST_COMPARED]
    return np.asarray(watched[:, :, worst[rhat[worst] > APART_RHAT]])
