"""The share of each class among all tasks, with an interval that a few gold labels make honest.

A panel's own share of 'pass' can be far off, and its certainty says nothing about it. Gold labels
of randomly chosen tasks are unbiased, but few. Each method here joins the two:

* post-stratified: `post_strata`, tasks in quartiles of the fit's probability of the class.
* ppi: prediction-powered inference with power tuning. With y the gold, f the fit's probability and
  lambda = cov(y, f) / ((1 + n / N) var f), the share is mean(y - lambda f) + lambda mean(f of all),
  its variance var(y - lambda f) / n + lambda^2 var(f) / N. Angelopoulos, Duchi and Zrnic (2023),
  PPI++: Efficient Prediction-Powered Inference, section 6.
* rogan-gladen: the share q of tasks that the fit gives the class, corrected by its sensitivity and
  specificity on the gold, (q + spec - 1) / (sens + spec - 1). Rogan and Gladen (1978).
* gold-only: the beta posterior of the gold alone, from Jeffreys' prior.

With more than two classes, each is taken against the rest, and the shares are scaled to sum to one.
Gold that was not drawn uniformly carries weights (inverse inclusion probabilities, such as those of
`suggest_gold`): n labels with weights w count as (sum w)^2 / sum w^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri

from bayescrowd.aggregation.post_strata import (
    Share,
    beta_interval,
    cut,
    post_stratified,
    quartiles,
    tally,
)

__all__ = ["METHODS", "Method", "Prevalence", "share_table"]

Method = Literal["post-stratified", "ppi", "rogan-gladen", "gold-only"]

METHODS: tuple[Method, ...] = ("post-stratified", "ppi", "rogan-gladen", "gold-only")
"""All methods, the default first."""


@dataclass(frozen=True, eq=False)
class Prevalence:
    """The share of each class.

    Args:
        shares: per class: share, and lower and upper end of its interval.
        method: how they were found.
        level: probability of the intervals.
        n_gold: number of gold tasks.
        beside: tables of the other methods.
        summary: the shares in words.
    """

    shares: pd.DataFrame
    method: Method
    level: float
    n_gold: int
    beside: dict[str, pd.DataFrame]
    summary: str


def share_table(
    probas: Float[np.ndarray, "item cls"],
    place: Int[np.ndarray, " gold"],
    truth: Int[np.ndarray, " gold"],
    weight: Float[np.ndarray, " gold"],
    *,
    method: Method,
    level: float,
) -> dict[str, Float[np.ndarray, " cls"]]:
    """Share, lower and upper of each class.

    Args:
        probas: P(class) of all tasks by a fit without gold.
        place: positions of the gold tasks.
        truth: their classes.
        weight: their weights.
        method: see `prevalence`.
        level: probability of the intervals.
    """
    n_classes = probas.shape[1]
    called = np.eye(n_classes, dtype=bool)[probas.argmax(axis=1)]
    found: list[Share] = []
    for k in range(n_classes):
        hit = truth == k
        if method == "post-stratified":
            found.append(_post_stratified(probas, k, place, hit, weight, level))
        elif method == "ppi":
            found.append(_ppi(probas[:, k], place, hit, weight, level))
        elif method == "rogan-gladen":
            found.append(_rogan_gladen(called[:, k], place, hit, weight, level))
        else:
            found.append(_gold_only(hit, weight, level))
    estimate, lower, upper = (np.concatenate(column) for column in zip(*found, strict=True))
    share = estimate / max(estimate.sum(), 1e-300) if estimate.sum() > 0 else estimate
    return {
        "share": share,
        "lower": np.minimum(lower, share),
        "upper": np.maximum(upper, share),
    }


def _post_stratified(
    probas: Float[np.ndarray, "item cls"],
    k: int,
    place: Int[np.ndarray, " gold"],
    hit: Bool[np.ndarray, " gold"],
    weight: Float[np.ndarray, " gold"],
    level: float,
) -> Share:
    claimed, guess = probas[:, k], 1 / probas.shape[1]
    stratum = cut(claimed, quartiles(claimed))
    nobody, of_gold = np.zeros(len(claimed), dtype=np.int64), stratum[place]
    sizes = tally(nobody, stratum, 1)
    claims = tally(nobody, stratum, 1, claimed) / np.maximum(sizes, 1)
    group = nobody[: len(place)]
    total = tally(group, of_gold, 1, weight)
    squares = tally(group, of_gold, 1, weight**2)
    n_known = total**2 / np.maximum(squares, 1e-300)
    n_true = n_known * tally(group, of_gold, 1, weight * hit) / np.maximum(total, 1e-300)
    return post_stratified(sizes, claims, n_known, n_true, guess=guess, level=level)


def _ppi(
    claimed: Float[np.ndarray, " item"],
    place: Int[np.ndarray, " gold"],
    hit: Bool[np.ndarray, " gold"],
    weight: Float[np.ndarray, " gold"],
    level: float,
) -> Share:
    y, f, w = hit.astype(float), claimed[place], weight / weight.sum()
    n, n_all = 1 / (w**2).sum(), len(claimed)
    spread = claimed.var()
    covariance = (w * (y - w @ y) * (f - w @ f)).sum()
    power = covariance / ((1 + n / n_all) * spread) if spread > 0 else 0.0
    rest = y - power * f
    estimate = w @ rest + power * claimed.mean()
    # Of one label, nothing is known about the spread but that it is at most that of a coin.
    spread_of_rest = (w * (rest - w @ rest) ** 2).sum() * n / (n - 1) if n > 1 else 0.25
    return _normal(estimate, spread_of_rest / n + power**2 * spread / n_all, level)


def _rogan_gladen(
    called: Bool[np.ndarray, " item"],
    place: Int[np.ndarray, " gold"],
    hit: Bool[np.ndarray, " gold"],
    weight: Float[np.ndarray, " gold"],
    level: float,
) -> Share:
    w = weight * (weight.sum() / (weight**2).sum())
    right = called[place] == hit
    n_hit, n_miss = (w * hit).sum(), (w * ~hit).sum()
    # Half a case of either kind keeps the rates away from 0 and 1.
    sensitivity = ((w * (right & hit)).sum() + 0.5) / (n_hit + 1)
    specificity = ((w * (right & ~hit)).sum() + 0.5) / (n_miss + 1)
    informed = sensitivity + specificity - 1
    if informed < 0.05:  # calls that say next to nothing leave the share open
        return Share(*(np.array([value]) for value in (0.5, 0.0, 1.0)))
    called_share = called.mean()
    estimate = float(np.clip((called_share + specificity - 1) / informed, 0, 1))
    variance = (
        called_share * (1 - called_share) / len(called)
        + estimate**2 * sensitivity * (1 - sensitivity) / (n_hit + 1)
        + (1 - estimate) ** 2 * specificity * (1 - specificity) / (n_miss + 1)
    ) / informed**2
    return _normal(estimate, variance, level)


def _gold_only(
    hit: Bool[np.ndarray, " gold"], weight: Float[np.ndarray, " gold"], level: float
) -> Share:
    n = weight.sum() ** 2 / (weight**2).sum()
    x = n * (weight * hit).sum() / weight.sum()
    mean = np.array([(x + 0.5) / (n + 1)])
    lower, upper = beta_interval(mean, mean * (1 - mean) / (n + 2), level)
    return Share(np.array([x / n]), np.minimum(lower, x / n), np.maximum(upper, x / n))


def _normal(estimate: float, variance: float, level: float) -> Share:
    half = ndtri((1 + level) / 2) * np.sqrt(max(variance, 0.0))
    ends = np.clip([estimate, estimate - half, estimate + half], 0, 1)
    return Share(ends[:1], ends[1:2], ends[2:])
