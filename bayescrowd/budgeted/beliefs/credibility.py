"""How well a feature's parameters are known: Nushi et al. 2016, equation 1.

    q_i = sum over y of P(y) / v  sum over values x of  P(|theta_yi^x - mean| <= epsilon),

where ``theta_yi^x`` is Beta(a_x, a_0 - a_x), the marginal of the Dirichlet row. B-LEAFS takes a
feature in once ``q_i >= 1 - delta``. The paper allows other measures of concentration; all three
here lie in [0, 1] and rise with the number of observations:

* 'interval': the paper's equation;
* 'variance': 1 - 4 times the mean variance of a parameter (1/4 is the largest there is);
* 'hdi': 1 - the mean width of the parameters' 95 % highest-density intervals.

Where a posterior is known by draws alone, of whatever model and sampler, the mass near the mean of
a parameter is the share of its draws that are near their mean (`draws_credibility`). The standard
error comes from batch means. What one draw contributes is the influence function of the measure, in
which the mean around which mass is counted, and the ends of an interval, are estimates from the
same draws:

* 'interval': 1(|theta - mean| <= epsilon) + (f(mean + epsilon) - f(mean - epsilon)) (theta - mean),
  where the densities f are shares of draws around the interval's ends;
* 'variance': -4 (theta - mean)^2;
* 'hdi': -(.95 - 1(theta inside)) / f, where f is the density at the interval's ends, from the
  widths of intervals with slightly more and slightly less mass.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, betaincinv

__all__ = [
    "Credibility",
    "Estimate",
    "Measure",
    "batch_error",
    "draws_credibility",
    "is_clear",
    "known_intervals",
    "rows_credibility",
    "table_credibility",
]

Measure = Literal["interval", "variance", "hdi"]
"""How the concentration of parameters is measured."""

HDI_MASS = 0.95
"""Probability inside a highest-density interval."""

MOST_ERROR = 0.008
"""Standard error at which an estimate is exact enough: below .01 even where the error is
underestimated by a fifth."""

N_ERRORS_ABOVE, N_ERRORS_BELOW = 3.0, 1.0
"""Number of standard errors above and below what is required at which a comparison is decided."""

_GOLDEN = (np.sqrt(5) - 1) / 2
"""The factor by which a step of golden-section search narrows the bracket."""

_N_GOLDEN = 30
"""Number of steps of that search; they find the tail below the interval to 1e-8."""

_MORE_MASS = 0.02
"""By how much intervals with more or less mass differ, for the density at an interval's ends."""


class Credibility(NamedTuple):
    """How well the parameters of a feature are known, 0 to 1."""

    conditional: float
    """Of its values given the class (theta_yi)."""
    confusion: float
    """Of the labels given its value (theta_zij); 1 where a model has no such parameters, of which
    nothing is left to be known."""
    error: float
    """Monte-Carlo standard error of the smaller of the two; 0 for a closed form."""

    @property
    def least(self) -> float:
        """The smaller of the two."""
        return min(self.conditional, self.confusion)


class Estimate(NamedTuple):
    """A number that was computed from draws."""

    value: float
    """The number."""
    error: float
    """Its Monte-Carlo standard error."""


def table_credibility(
    concentration: Float[np.ndarray, "row value"],
    weights: Float[np.ndarray, " row"],
    *,
    epsilon: float = 0.05,
    measure: Measure = "interval",
) -> float:
    """How well the Dirichlet rows of a feature are known, 0 to 1.

    Args:
        concentration: Dirichlet concentrations of each row, all above 0.
        weights: weight of each row, summing to 1: P(y) for rows given the class.
        epsilon: half-width of the interval around the mean, for 'interval'.
        measure: measure of concentration; see the module.

    Examples:
        >>> import numpy as np
        >>> few, many = np.array([[3.0, 2.0]]), np.array([[60.0, 40.0]])
        >>> one = np.ones(1)
        >>> round(table_credibility(few, one), 3), round(table_credibility(many, one), 3)
        (0.172, 0.693)
    """
    total = concentration.sum(axis=1, keepdims=True)
    a, b = concentration, total - concentration
    mean = a / total
    if measure == "interval":
        high, low = np.minimum(mean + epsilon, 1), np.maximum(mean - epsilon, 0)
        known = betainc(a, b, high) - betainc(a, b, low)
    elif measure == "variance":
        known = 1 - 4 * mean * (1 - mean) / (total + 1)
    else:
        known = 1 - _hdi_width(a, b)
    return float(weights @ known.sum(axis=1)) / known.shape[1]


def draws_credibility(
    draws: Float[np.ndarray, "draw row value"],
    weights: Float[np.ndarray, " row"],
    *,
    epsilon: float = 0.05,
    measure: Measure = "interval",
) -> Estimate:
    """How well the rows of a feature are known, 0 to 1, from draws of their posterior.

    Draws may be correlated with those before them, as those of Markov chains are: keep them in
    their order, one chain after the other. Where a model has hidden values that could be renamed,
    the draws must have been aligned.

    Args:
        draws: probabilities of each row, by draw; at least four draws.
        weights: weight of each row, summing to 1: P(y) for rows given the class.
        epsilon: half-width of the interval around the mean, for 'interval'.
        measure: measure of concentration; see the module.

    Raises:
        ValueError: there are fewer than four draws.

    Examples:
        >>> import numpy as np
        >>> draws = np.random.default_rng(0).dirichlet([60.0, 40.0], size=(4_000, 1))
        >>> found = draws_credibility(draws, np.ones(1))  # the closed form gives .693
        >>> round(found.value, 2), found.error < 0.01
        (0.7, True)
    """
    n = len(draws)
    if n < 4:
        raise ValueError(f"{n} draws: expected at least 4")
    if measure == "interval":
        known, influence = _near_mean(draws, epsilon)
    elif measure == "variance":
        influence = 1 - 4 * (draws - draws.mean(axis=0)) ** 2 * n / (n - 1)
        known = influence.mean(axis=0)
    else:
        known, influence = known_intervals(draws)
    series = influence.mean(axis=2) @ weights
    return Estimate(float(weights @ known.mean(axis=1)), batch_error(series, round(np.sqrt(n))))


def batch_error(series: Float[np.ndarray, " draw"], n_batches: int) -> float:
    """Standard error of the mean of a series, from the means of batches of consecutive entries.

    Batches differ in length by one entry at most; there are at least two.
    """
    batches = np.array([batch.mean() for batch in np.array_split(series, max(n_batches, 2))])
    return float(batches.std(ddof=1) / np.sqrt(len(batches)))


def is_clear(
    known: Float[np.ndarray, " table"],
    errors: Float[np.ndarray, " table"],
    required: tuple[float, float] | None,
) -> bool:
    """Whether errors are small, or the comparison with what is required is clear without that.

    A feature that is taken for credible too early is never asked about again, while one that is not
    goes on and is tested after the next answer. Therefore it takes `N_ERRORS_ABOVE` standard errors
    to say yes and `N_ERRORS_BELOW` to say no.

    Args:
        known: estimates of the credibility of values given the class, and of labels given values.
        errors: their standard errors.
        required: what the two are compared with, if only the comparison matters.

    Examples:
        >>> import numpy as np
        >>> known, errors = np.array([0.80, 1.0]), np.array([0.02, 0.0])
        >>> [is_clear(known, errors, (least, 1.0)) for least in (0.7, 0.75, 0.85)]
        [True, False, True]
    """
    is_exact = errors <= MOST_ERROR
    if required is None or is_exact.all():
        return bool(is_exact.all())
    above = known - required
    is_short = above < np.where(is_exact, 0, -N_ERRORS_BELOW * errors)
    is_reached = above >= np.where(is_exact, 0, N_ERRORS_ABOVE * errors)
    return bool(is_short.any() or is_reached.all())


def rows_credibility(
    concentration: Float[np.ndarray, "cls value"],
    prior: Float[np.ndarray, " cls"],
    *,
    epsilon: float,
    measure: Measure,
) -> Credibility:
    """The credibility of a model whose only parameters are Dirichlet rows given the class."""
    known = table_credibility(concentration, prior, epsilon=epsilon, measure=measure)
    return Credibility(known, 1.0, 0.0)


def _hdi_width(
    a: Float[np.ndarray, "row value"], b: Float[np.ndarray, "row value"]
) -> Float[np.ndarray, "row value"]:
    """Width of the narrowest interval with `HDI_MASS` of Beta(a, b): golden-section search."""

    def width(tail: Float[np.ndarray, "row value"]) -> Float[np.ndarray, "row value"]:
        return betaincinv(a, b, np.minimum(tail + HDI_MASS, 1)) - betaincinv(a, b, tail)

    low, high = np.zeros_like(a), np.full_like(a, 1 - HDI_MASS)
    for _ in range(_N_GOLDEN):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        shrink_right = width(left) <= width(right)
        low, high = np.where(shrink_right, low, left), np.where(shrink_right, right, high)
    return width((low + high) / 2)


def _near_mean(
    draws: Float[np.ndarray, "draw row value"], epsilon: float
) -> tuple[Float[np.ndarray, "row value"], Float[np.ndarray, "draw row value"]]:
    """Mass near the mean, and each draw's influence on it."""
    away = draws - draws.mean(axis=0)
    is_near = np.abs(away) <= epsilon

    def density(end: float) -> Float[np.ndarray, "row value"]:
        return np.asarray((np.abs(away - end) <= epsilon / 2).mean(axis=0) / epsilon)

    slope = density(epsilon) - density(-epsilon)
    return is_near.mean(axis=0), is_near + slope * away


def known_intervals(
    draws: Float[np.ndarray, "draw row value"],
) -> tuple[Float[np.ndarray, "row value"], Float[np.ndarray, "draw row value"]]:
    """1 - width of the narrowest interval that holds 95 % of the draws, and each draw's influence.

    Influences have a mean of about zero over the draws.
    """
    ordered = np.sort(draws, axis=0)
    low, high = _narrowest(ordered, HDI_MASS)
    narrow, wide = (_narrowest(ordered, HDI_MASS + more) for more in (-_MORE_MASS, _MORE_MASS))
    per_mass = (wide[1] - wide[0] - narrow[1] + narrow[0]) / (2 * _MORE_MASS)
    is_inside = (draws >= low) & (draws <= high)
    return 1 - (high - low), (is_inside - HDI_MASS) * per_mass


def _narrowest(
    ordered: Float[np.ndarray, "draw row value"], mass: float
) -> tuple[Float[np.ndarray, "row value"], Float[np.ndarray, "row value"]]:
    """Ends of the narrowest interval that holds this share of the sorted draws."""
    n = len(ordered)
    n_steps = min(int(np.ceil(mass * n)), n - 1)
    width = ordered[n_steps:] - ordered[: n - n_steps]
    first = width.argmin(axis=0)[None]
    low = np.take_along_axis(ordered, first, axis=0)[0]
    return low, np.take_along_axis(ordered, first + n_steps, axis=0)[0]
