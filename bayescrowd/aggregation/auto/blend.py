"""How the default combines its candidates, so that raters who err together cannot carry it away.

The pool (`pool.py`) takes errors as independent given the class, or given the class and a level of
difficulty. Where raters err together it can be surely wrong: a group of raters who repeat each
other looks like a group of experts. Four candidates answer in different ways,

    P  the average of the pool,
    F  the mean over fits under random weights of the raters (`rater_bootstrap.py`),
    E  subtypes of tasks, which let errors depend: EBCC, averaged over starts (`ebcc.py`),
    B  a weighted average of the votes, which hardly ever leaves them: BWA (`bwa.py`),

and the answer is the tempered mixture with the smoothed votes V = (votes + 1/K) / (n + 1),

    P(class)  proportional to  ((1 - a) Q + a V)^(1 / T),                                       (1)
    Q = L P + (1 - L) (w_P P + w_F F + w_E E + w_B B).                                          (2)

How far the pool is relied on alone, L, follows from the number of raters R, because one rater among
four decides more than one among a hundred, and from the held-out labels: g is the number of
standard errors by which the pool's model with hard tasks predicts them better than its best model
without, and dependent errors show there,

    L = R^2 / (R^2 + R_L^2) / (1 + exp(s (g - g_0))).                                           (3)

For the same reason w_P grows with the number of raters, from nothing. Where the fits under random
weights contradict each other, labels alone cannot tell who is right, and the votes decide: a rises
to 1 with the instability D of the replicates,

    a = max(a_0 + (1 - a_0) clip((D - D_0) / d, 0, 1), n_0 / (n_0 + n)).                        (4)

The second term keeps the votes where there are hardly any labels (n in all) to learn from: of three
tasks, a model may put all into one class.

The temperature goes from 1.4 + 0.07 g, between 1 and 1.8, at L = 1 to 1.8 at L = 0. Where errors
are independent, as in simulated crowds, g is far below 0 and the best temperature is about 1.1.

The constants were chosen on 16 development crowds and panels, five published ones and 72 subsets of
them with fewer raters, labels or tasks, by error and log loss; where these are flat, toward the
cautious side. Crowds of one kind can be of either luck: of two panels of judges that look alike to
every measure of the labels, the pool is right on one and wrong on the other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

__all__ = ["Blend", "blend_for", "pool_reliance", "smoothed_votes"]

MANY_RATERS = 8.0
"""Number of raters at which the pool is relied on half as much as it would be by many (R_L)."""

GAIN, GAIN_SLOPE = 2.8, 3.0
"""Gain of the model with hard tasks at which the pool is half relied on (g_0), and slope (s)."""

MANY_FOR_POOL = 160.0
"""Number of raters at which the pool has half its weight beside the other candidates."""

WEIGHTS = {"pool": 1.0, "rater bootstrap": 0.1, "EBCC": 0.3, "BWA": 0.15}
"""Weights of the candidates among very many raters, before they are scaled to sum to one."""

VOTE_WEIGHT = 0.05
"""Weight of the votes where fits agree with each other (a_0)."""

FEW_LABELS = 40.0
"""Number of labels at which the votes have half of the say (n_0)."""

UNSTABLE, UNSTABLE_WIDTH = 0.44, 0.13
"""Instability at which the votes gain weight (D_0), and the distance to where they decide (d)."""

ALONE_TEMPERATURE, ALONE_TEMPERATURE_PER_GAIN = 1.4, 0.07
"""Temperature at L = 1 where hard tasks change nothing, and its rise per standard error of gain."""

TOGETHER_TEMPERATURE = 1.8
"""Temperature at L = 0."""


class Blend(NamedTuple):
    """Weights of the candidates, and what becomes of their mixture."""

    weights: dict[str, float]
    """Weight of each candidate in Q; they sum to one."""
    vote_weight: float
    """Weight of the smoothed votes (a)."""
    temperature: float
    """Temperature of the answer (T)."""

    def shares(self, present: Collection[str]) -> dict[str, float]:
        """Weights of the candidates that are there.

        BWA stands in for EBCC, since it is the other one that stays near the votes; otherwise,
        absent candidates leave their weight to all others.
        """
        weights = dict(self.weights)
        if "BWA" in present and "EBCC" not in present:
            weights["BWA"] += weights.pop("EBCC")
        weights = {name: weight for name, weight in weights.items() if name in present}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    def mix(
        self, candidates: dict[str, Float[np.ndarray, "item cls"]]
    ) -> Float[np.ndarray, "item cls"]:
        """Equation 2, with the candidates that are there."""
        mixed = np.zeros_like(candidates["pool"])
        for name, weight in self.shares(candidates).items():
            mixed += weight * candidates[name]
        return mixed

    def with_votes(
        self, mixed: Float[np.ndarray, "item cls"], votes: Float[np.ndarray, "item cls"]
    ) -> Float[np.ndarray, "item cls"]:
        """The mixture with the smoothed votes, before it is tempered."""
        return (1 - self.vote_weight) * mixed + self.vote_weight * votes

    def temper(self, mixed: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
        """Equation 1, given the mixture with the votes."""
        warm = mixed ** (1 / self.temperature)
        return warm / warm.sum(axis=1, keepdims=True)


def blend_for(n_raters: int, n_labels: int, gain: float, instability: float) -> Blend:
    """Weights by equations 2 to 4.

    Args:
        n_raters: number of raters with labels (R).
        n_labels: number of labels (n).
        gain: standard errors by which hard tasks improve the prediction of held-out labels (g).
        instability: how far fits under random weights of the raters contradict each other (D);
            NaN if it was not measured.

    Examples:
        >>> alone, together = blend_for(200, 5000, -4.0, 0.05), blend_for(8, 5000, 9.0, 0.3)
        >>> round(alone.weights["pool"], 2), round(together.weights["pool"], 2)
        (1.0, 0.0)
        >>> blend_for(8, 5000, 9.0, 0.7).vote_weight
        1.0
    """
    reliance = pool_reliance(n_raters, gain)
    others = WEIGHTS | {"pool": WEIGHTS["pool"] * _share_of_many(n_raters, MANY_FOR_POOL)}
    total = sum(others.values())
    weights = {name: (1 - reliance) * weight / total for name, weight in others.items()}
    weights["pool"] += reliance
    contradiction = 0.0
    if not np.isnan(instability):
        contradiction = float(np.clip((instability - UNSTABLE) / UNSTABLE_WIDTH, 0.0, 1.0))
    alone = ALONE_TEMPERATURE + ALONE_TEMPERATURE_PER_GAIN * gain
    alone = float(np.clip(alone, 1.0, TOGETHER_TEMPERATURE))
    return Blend(
        weights,
        max(
            VOTE_WEIGHT + (1 - VOTE_WEIGHT) * contradiction,
            FEW_LABELS / (FEW_LABELS + n_labels),
        ),
        reliance * alone + (1 - reliance) * TOGETHER_TEMPERATURE,
    )


def pool_reliance(n_raters: int, gain: float) -> float:
    """Equation 3."""
    return float(_share_of_many(n_raters, MANY_RATERS) * expit(GAIN_SLOPE * (GAIN - gain)))


def smoothed_votes(votes: Int[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """Shares of the votes with one more vote that is spread over all classes (V)."""
    smoothed = votes + 1.0 / votes.shape[1]
    return smoothed / smoothed.sum(axis=1, keepdims=True)


def _share_of_many(n_raters: int, half: float) -> float:
    return n_raters**2 / (n_raters**2 + half**2)
