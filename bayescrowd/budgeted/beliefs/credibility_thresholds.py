"""How credible a feature must be before B-LEAFS selects it: the rules for delta.

A feature is credible once its credibility is at least 1 - delta (B. Nushi, A. Singla, A. Krause and
D. Kossmann 2016, "Learning and feature selection under budget constraints in crowdsourcing",
HCOMP).

Thresholds follow the paper's guideline: delta_L is 1 - q_i after B/N observations, RoundRobin's
share, and delta_U after B/K, with all values equally frequent. Since q_i rises with the number of
observations, delta_U < delta_L, and the printed (delta_U - delta_L) / 2 is negative: nothing is
ever credible. The midpoint (delta_L + delta_U) / 2 is what the text means.

With several noisy labels per observation the guideline counts observations, B/(N W) and B/(K W), as
if each showed its value. The paper is silent on this, and applies one delta to the parameters of
features and crowd alike. There is no better number to compute in advance: how much a reading tells
depends on the noise, which is not known before it has been bought. So the guideline is a lower
limit of what is spent: a feature that is credible by it after n readings of certain values needs
more readings of uncertain ones.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from bayescrowd.budgeted.beliefs.credibility import Measure, table_credibility
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import OpenFraction

__all__ = ["Delta", "Requirement", "Thresholds", "delta_of", "thresholds"]

Delta = Literal["midpoint", "upper", "lower", "printed"]
"""Rules for delta, given delta_L and delta_U."""

Requirement = Delta | OpenFraction
"""How far below 1 a credibility may be: by a rule, or a number."""


class Thresholds(NamedTuple):
    """1 - credibility of each feature at two spending levels, before any answer."""

    lower: Float[np.ndarray, " feature"]
    """After B/N observations (delta_L)."""
    upper: Float[np.ndarray, " feature"]
    """After B/K observations (delta_U)."""


def thresholds(
    space: FeatureSpace,
    *,
    budget: float,
    n_features: int,
    labels_per_query: int = 1,
    epsilon: float = 0.05,
    measure: Measure = "interval",
) -> Thresholds:
    """delta_L and delta_U of every feature, from B/N and B/K observations.

    An observation costs `labels_per_query` labels of the feature.
    """
    prices = space.label_costs() * labels_per_query
    shares = {"lower": budget / len(prices), "upper": budget / n_features}
    found = {}
    for name, share in shares.items():
        found[name] = np.array(
            [
                1 - _expected_credibility(space, v, share / price, epsilon=epsilon, measure=measure)
                for v, price in zip(space.n_values, prices, strict=True)
            ]
        )
    return Thresholds(lower=found["lower"], upper=found["upper"])


def delta_of(delta: Requirement, limits: Thresholds) -> Float[np.ndarray, " feature"]:
    """The threshold of each feature by a rule; a number is the threshold of all features.

    Raises:
        ValueError: `delta` is neither a number nor a known rule.
    """
    rules = {
        "midpoint": (limits.lower + limits.upper) / 2,
        "lower": limits.lower,
        "upper": limits.upper,
        "printed": (limits.upper - limits.lower) / 2,
    }
    if isinstance(delta, str):
        if delta not in rules:
            raise ValueError(
                f"delta={delta!r}: expected a number or one of {', '.join(get_args(Delta))}"
            )
        return rules[delta]
    return np.full(len(limits.lower), float(delta))


def _expected_credibility(
    space: FeatureSpace, n_values: int, n: float, *, epsilon: float, measure: Measure
) -> float:
    """Credibility after n observations in the classes' shares, all values equally frequent."""
    rows = space.strength + n * space.class_prior[:, None] / n_values * np.ones(n_values)
    return table_credibility(rows, space.class_prior, epsilon=epsilon, measure=measure)
