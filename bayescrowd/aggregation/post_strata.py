"""Shares that a few known cases make honest: post-stratification by a fit's own probabilities.

Cases (tasks, or labels of one rater) have a claimed probability p that something is true of them.
They are cut into four strata at the quartiles of p. Of n known cases in a stratum, it is true of x.
The share of the stratum has the posterior Beta(a, c) with

    a = s p + b/2 + x,    c = s (1 - p) + (1 - b)/2 + n - x,

where p is now the stratum's mean, s the number of cases that the claim is worth, and b the share
that one would guess without any claim: 1/K for one of K classes. (With 1/2 on a panel with six
classes and ten known cases, 90 % intervals covered 83 % of the true shares; with 1/6, 94 %.)

The share of all cases is sum W e, with W the stratum's size and e = a / (a + c), and its variance
is sum W^2 e (1 - e) / (a + c + 1). The interval is that of the beta distribution with this mean and
variance, which stays between 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import betaincinv

__all__ = [
    "N_STRATA",
    "Share",
    "beta_interval",
    "cut",
    "post_stratified",
    "quartiles",
    "tally",
    "whole_cases",
]

N_STRATA = 4
"""Number of strata."""


class Share(NamedTuple):
    """Shares with their intervals."""

    estimate: Float[np.ndarray, " group"]
    """Estimated share of each group."""
    lower: Float[np.ndarray, " group"]
    """Lower end of each interval."""
    upper: Float[np.ndarray, " group"]
    """Upper end of each interval."""


def quartiles(claimed: Float[np.ndarray, " case"]) -> Float[np.ndarray, " boundary"]:
    """The boundaries between the strata."""
    return np.quantile(claimed, np.arange(1, N_STRATA) / N_STRATA)


def cut(
    claimed: Float[np.ndarray, " case"], boundaries: Float[np.ndarray, " boundary"]
) -> Int[np.ndarray, " case"]:
    """The stratum of each case; equal cases are in the same one."""
    # Rounding must not part cases that are equal but for the order of a sum.
    return np.searchsorted(boundaries + 1e-9, claimed, side="left")


def post_stratified(
    sizes: Float[np.ndarray, "group stratum"],
    claims: Float[np.ndarray, "group stratum"],
    n_known: Float[np.ndarray, "group stratum"],
    n_true: Float[np.ndarray, "group stratum"],
    *,
    strength: float = 1.0,
    guess: float = 0.5,
    level: float = 0.9,
) -> Share:
    """The share of each group, with its interval.

    Args:
        sizes: number of cases of each stratum.
        claims: mean claimed probability of each stratum.
        n_known: number of known cases.
        n_true: number of known cases of which it is true.
        strength: number of cases that a stratum's claim is worth (s).
        guess: the share that one would guess without any claim (b).
        level: probability of the interval.

    Examples:
        >>> import numpy as np
        >>> one = np.ones((1, 4))
        >>> post_stratified(25 * one, 0.5 * one, 5 * one, 5 * one).estimate.round(3)
        array([0.885])
    """
    weight = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)
    a = strength * claims + guess / 2 + n_true
    c = strength * (1 - claims) + (1 - guess) / 2 + n_known - n_true
    e = a / (a + c)
    variance = (weight**2 * e * (1 - e) / (a + c + 1)).sum(axis=1)
    estimate = (weight * e).sum(axis=1)
    return Share(estimate, *beta_interval(estimate, variance, level))


def beta_interval(
    mean: Float[np.ndarray, " group"], variance: Float[np.ndarray, " group"], level: float
) -> tuple[Float[np.ndarray, " group"], Float[np.ndarray, " group"]]:
    """Ends of the central interval of the beta distributions with these moments."""
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    spread = mean * (1 - mean)
    total = np.maximum(spread / np.clip(variance, 1e-12, 0.999 * spread) - 1, 1e-3)
    tails = (1 - level) / 2
    a, c = mean * total, (1 - mean) * total
    # Of a very skewed distribution, the mean can lie outside of the central interval.
    return np.minimum(betaincinv(a, c, tails), mean), np.maximum(betaincinv(a, c, 1 - tails), mean)


def whole_cases(share: Share, n_cases: Int[np.ndarray, " group"]) -> Share:
    """Shares with intervals that end at whole numbers of cases, widened as far as needed.

    Of three cases, it is true of none, one, two or all, and no beta distribution includes the ends.

    Args:
        share: shares with their intervals.
        n_cases: number of cases of each group.

    Examples:
        >>> import numpy as np
        >>> share = Share(np.array([0.5]), np.array([0.3]), np.array([0.76]))
        >>> whole_cases(share, np.array([4]))
        Share(estimate=array([0.5]), lower=array([0.25]), upper=array([1.]))
    """
    n = np.maximum(n_cases, 1)
    # Rounding of a whole number must not widen the interval by a case.
    lower, upper = np.floor(share.lower * n + 1e-6) / n, np.ceil(share.upper * n - 1e-6) / n
    estimate = share.estimate
    return Share(estimate, np.minimum(lower, estimate), np.maximum(upper, estimate))


def tally(
    group: Int[np.ndarray, " case"],
    stratum: Int[np.ndarray, " case"],
    n_groups: int,
    amount: Float[np.ndarray, " case"] | Bool[np.ndarray, " case"] | None = None,
) -> Float[np.ndarray, "group stratum"]:
    """Sum of the amounts, or number of cases, by group and stratum."""
    cell = group.astype(np.int64) * N_STRATA + stratum
    sums = np.bincount(cell, amount, minlength=n_groups * N_STRATA)
    return sums.reshape(n_groups, N_STRATA).astype(float)
