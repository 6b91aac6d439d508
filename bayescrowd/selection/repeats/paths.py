"""Repeat vectors along a budget: the Full and the Scoring algorithm, with costs.

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), algorithm 1. The
value of a repeat vector r is

    obj(r) = b' (Sigma + Diag(v / r))^+ b      over the attributes with r > 0             (line 12)

and the algorithm adds the judgement that raises it most, until the budget is spent. Scoring is the
same with the diagonal of Sigma alone (line 8).

The paper decomposes a matrix for each candidate at each step. Here nothing is decomposed: obj(r) is
the variance of the target that r noisy measurements of jointly distributed quantities explain, and
measurements can be added one after the other. Let C be the covariance of the quantities and c their
covariance with the target, given the measurements so far. One more judgement of a, the first or the
tenth, adds

    gain = c[a]^2 / (C[a, a] + v[a]),

and the outer product of column a of C with itself, divided by C[a, a] + v[a], is subtracted from C:
a column of a pivoted Cholesky factor. Columns are subtracted in blocks, so that a step costs d
squared, however many came before it. Where C[a, a] + v[a] vanishes, the judgement says nothing new
and gains nothing, as with the pseudo-inverse.

For averages other than the mean, whose variance s[r] is not v / r, the next judgement counts as a
measurement with the variance 1 / (1/s[r+1] - 1/s[r]), which for the mean is v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.iteration import report_iteration

__all__ = [
    "MOST_ENUMERATED",
    "RepeatPath",
    "Search",
    "Steps",
    "best_path",
    "explained_variance",
    "generalised_inverse",
    "greedy_path",
    "measurement_noise",
    "repeated_steps",
]

Search = Literal["cost-benefit", "gain", "exact"]

VANISHING = 1e-11
"""A measurement whose variance has fallen to this share of its first value says nothing new.

The first value is a variance of the data or exactly 0, never a rounding error: see `moments.py`.
"""

BLOCK = 64
"""Number of columns of the Cholesky factor that are subtracted from the covariance at a time."""

MOST_ENUMERATED = 200_000
"""Largest number of repeat vectors that the exact search looks through."""

MOST_UNITS = 10_000
"""Largest number of units of cost in the budget of an exact search."""


class RepeatPath(NamedTuple):
    """Repeat vectors with what they cost and explain; the first one asks for nothing."""

    repeats: Int[np.ndarray, "step attribute"]
    """Number of judgements of each attribute."""
    spent: Float[np.ndarray, " step"]
    """Cost of the judgements."""
    explained: Float[np.ndarray, " step"]
    """Variance of the target that the judgements explain (obj)."""


class Steps(NamedTuple):
    """What can be bought: the next judgement of each attribute."""

    column: Int[np.ndarray, "attribute repeat"]
    """Row of the covariance that the attribute's first, second, ... judgement measures."""
    noise: Float[np.ndarray, "attribute repeat"]
    """Variance of that measurement; infinite if there is no such judgement."""
    cost: Float[np.ndarray, " attribute"]
    """Cost of one judgement."""


def greedy_path(
    covariance: Float[np.ndarray, "row row"],
    correlation: Float[np.ndarray, "row target"],
    steps: Steps,
    *,
    budget: float,
    per_cost: bool = True,
) -> RepeatPath:
    """Buy the judgement with the largest gain until the budget is spent or nothing is gained.

    Judgements that cost more than the rest of the budget are passed over.

    Args:
        covariance: covariance of what is measured, positive semidefinite.
        correlation: covariance with each target; gains are summed over targets.
        steps: what can be bought.
        budget: the most that may be spent.
        per_cost: whether to compare gains per unit of cost; if not, the gains themselves.

    Examples:
        Of two equally good attributes, the second has no noise; then the first is bought twice:

        >>> import numpy as np
        >>> steps = repeated_steps(np.array([[np.inf, 1, 1 / 2, 1 / 3], [np.inf, 0, 0, 0]]), 1.0)
        >>> greedy_path(np.eye(2), np.ones((2, 1)), steps, budget=3).repeats.tolist()
        [[0, 0], [0, 1], [1, 1], [2, 1]]
    """
    n_attributes, most = steps.noise.shape
    attribute = np.arange(n_attributes)
    variance = np.diag(covariance).copy()
    initial = variance
    residual = correlation.copy()
    repeats = np.zeros(n_attributes, dtype=np.int64)
    current, factor, n_taken = covariance, np.empty((len(variance), BLOCK)), 0
    bought: list[int] = []
    spent, explained = [0.0], [0.0]
    least_gain = -1.0
    slack = 1e-9 * budget  # costs of 0.1 add up to a little more than their sum
    while True:
        column = steps.column[attribute, np.minimum(repeats, most - 1)]
        noise = np.where(
            repeats < most, steps.noise[attribute, np.minimum(repeats, most - 1)], np.inf
        )
        total = variance[column] + noise
        is_new = (total > VANISHING * (initial[column] + noise)) & np.isfinite(noise)
        squares = (residual[column] ** 2).sum(axis=1)
        gain = np.where(is_new, squares / np.where(is_new, total, 1.0), 0.0)
        if least_gain < 0:
            least_gain = 1e-13 * float(gain.max())
        gain[spent[-1] + steps.cost > budget + slack] = 0.0
        best = int(np.argmax(gain / steps.cost if per_cost else gain))
        if gain[best] <= least_gain:
            break
        taken = column[best]
        if n_taken == BLOCK:
            current, n_taken = current - factor @ factor.T, 0
        known = factor[:, :n_taken]
        scale = math.sqrt(total[best])
        factor[:, n_taken] = (current[taken] - known @ known[taken]) / scale
        new = factor[:, n_taken]
        n_taken += 1
        residual -= np.outer(new, residual[taken] / scale)
        variance = np.maximum(variance - new**2, 0.0)  # `initial` stays
        repeats[best] += 1
        bought.append(best)
        spent.append(spent[-1] + float(steps.cost[best]))
        explained.append(explained[-1] + float(gain[best]))
        report_iteration(len(bought), explained[-1])
    path = np.zeros((len(bought) + 1, n_attributes), dtype=np.int64)
    path[np.arange(1, len(path)), bought] = 1
    return RepeatPath(np.cumsum(path, axis=0, out=path), np.array(spent), np.array(explained))


def repeated_steps(
    noise: Float[np.ndarray, "attribute repeat"],
    costs: Float[np.ndarray, " attribute"] | float,
) -> Steps:
    """Steps in which every judgement of an attribute measures the same quantity.

    Args:
        noise: variance of the average of 0, 1, 2, ... judgements.
        costs: cost of one judgement.
    """
    measured = measurement_noise(noise)
    column = np.broadcast_to(np.arange(len(noise))[:, None], measured.shape)
    return Steps(column, measured, np.broadcast_to(costs, len(noise)).astype(float))


def measurement_noise(
    noise: Float[np.ndarray, "attribute repeat"],
) -> Float[np.ndarray, "attribute step"]:
    """Variance of the measurement that turns an average of r judgements into one of r + 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = 1.0 / noise
        rise = np.diff(precision, axis=1)
        added = 1.0 / rise
    added[np.isinf(precision[:, 1:])] = 0.0
    # If there is no noise, or no less than before, another judgement adds nothing.
    added[np.isinf(precision[:, :-1]) | (rise <= 0)] = np.inf
    return added


def best_path(
    covariance: Float[np.ndarray, "attribute attribute"],
    correlation: Float[np.ndarray, "attribute target"],
    noise: Float[np.ndarray, "attribute repeat"],
    costs: Float[np.ndarray, " attribute"],
    *,
    budget: float,
) -> RepeatPath:
    """The best repeat vector for every budget, which need not contain that of a smaller budget.

    For a diagonal covariance it is found by dynamic programming, also for many attributes; else by
    looking through all vectors. Of equally good vectors the cheapest is taken. The arguments are
    those of `greedy_path` and `repeated_steps`.

    Raises:
        ValueError: there are too many vectors, or the costs have no common unit.
    """
    unit = _unit(costs, budget)
    units = np.rint(costs / unit).astype(int)
    n_units = math.floor(budget / unit + 1e-9)
    if np.array_equal(covariance, np.diag(np.diag(covariance))):
        repeats, explained = _best_separable(covariance, correlation, noise, units, n_units)
    else:
        repeats, explained = _best_enumerated(covariance, correlation, noise, units, n_units)
    spent = repeats @ units
    # A budget that buys nothing better keeps the vector of the smaller budget.
    rising = np.flatnonzero(np.diff(np.maximum.accumulate(explained), prepend=-1.0) > 0)
    return RepeatPath(repeats[rising], spent[rising] * unit, explained[rising])


def explained_variance(
    covariance: Float[np.ndarray, "*#batch attribute attribute"],
    correlation: Float[np.ndarray, "*#batch attribute target"],
    noise: Float[np.ndarray, "*#batch attribute"],
) -> Float[np.ndarray, "*batch"] | np.floating:
    """obj(r) by its definition; attributes whose noise is infinite are left out.

    Examples:
        >>> import numpy as np
        >>> float(explained_variance(np.eye(2), np.ones((2, 1)), np.array([1.0, np.inf])))
        0.5
    """
    is_asked = np.isfinite(noise)
    both = is_asked[..., :, None] & is_asked[..., None, :]
    matrix = np.where(both, covariance, 0.0)
    diagonal = np.where(is_asked, noise, 1.0)
    matrix = matrix + diagonal[..., :, None] * np.eye(noise.shape[-1])
    asked = np.where(is_asked[..., None], correlation, 0.0)
    return (asked * (generalised_inverse(matrix) @ asked)).sum(axis=(-2, -1))


def generalised_inverse(
    matrix: Float[np.ndarray, "*batch row row"],
) -> Float[np.ndarray, "*batch row row"]:
    """Inverse of a positive semidefinite matrix, or its pseudo-inverse if it is singular.

    What vanishes is judged in units of the rows' own standard deviations. Compared with the largest
    eigenvalue, an attribute in metres would vanish beside one in micrometres.

    Examples:
        >>> import numpy as np
        >>> generalised_inverse(np.diag([1e8, 1e-8, 0.0])).diagonal()
        array([1.e-08, 1.e+08, 0.e+00])
    """
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    units = scale[..., :, None] * scale[..., None, :]
    return np.asarray(np.linalg.pinv(matrix / units, rcond=VANISHING, hermitian=True) / units)


def _best_separable(
    covariance: Float[np.ndarray, "attribute attribute"],
    correlation: Float[np.ndarray, "attribute target"],
    noise: Float[np.ndarray, "attribute repeat"],
    units: Int[np.ndarray, " attribute"],
    n_units: int,
) -> tuple[Int[np.ndarray, "budget attribute"], Float[np.ndarray, " budget"]]:
    """The best repeats and their value for each budget, by the knapsack recursion."""
    value = np.zeros(n_units + 1)
    choice = np.zeros((len(units), n_units + 1), dtype=np.int64)
    budgets = np.arange(n_units + 1)
    strength = (correlation**2).sum(axis=1)
    for attribute, unit in enumerate(units):
        total = covariance[attribute, attribute] + noise[attribute]
        gains = np.where(total > 0, strength[attribute] / np.where(total > 0, total, 1.0), 0.0)
        options = np.full((n_units // unit + 1, n_units + 1), -np.inf)
        for times in range(min(len(options), len(gains))):
            rest = budgets[unit * times :] - unit * times
            options[times, unit * times :] = value[rest] + gains[times]
        choice[attribute] = options.argmax(axis=0)
        value = options.max(axis=0)
    repeats = np.zeros((n_units + 1, len(units)), dtype=np.int64)
    left = budgets.copy()
    for attribute in reversed(range(len(units))):
        repeats[:, attribute] = choice[attribute, left]
        left -= repeats[:, attribute] * units[attribute]
    return repeats, value


def _best_enumerated(
    covariance: Float[np.ndarray, "attribute attribute"],
    correlation: Float[np.ndarray, "attribute target"],
    noise: Float[np.ndarray, "attribute repeat"],
    units: Int[np.ndarray, " attribute"],
    n_units: int,
) -> tuple[Int[np.ndarray, "budget attribute"], Float[np.ndarray, " budget"]]:
    vectors = np.array(list(_vectors(units, n_units)))
    attribute = np.arange(len(units))
    explained = np.concatenate(
        [
            explained_variance(covariance[None], correlation[None], noise[attribute, part])
            for part in np.array_split(vectors, max(1, len(vectors) // 5_000))
        ]
    )
    spent = vectors @ units
    order = np.lexsort((-explained, spent))
    firsts = order[np.unique(spent[order], return_index=True)[1]]
    return vectors[firsts], explained[firsts]


def _vectors(units: Int[np.ndarray, " attribute"], n_units: int) -> Iterator[tuple[int, ...]]:
    """All repeat vectors within the budget."""
    ways = np.zeros(n_units + 1)  # number of vectors with exactly this cost
    ways[0] = 1
    for unit in units:
        for spent in range(unit, n_units + 1):
            ways[spent] += ways[spent - unit]
    if ways.sum() > MOST_ENUMERATED:
        raise ValueError(
            f"search='exact' would look through {ways.sum():.3g} repeat vectors; it can look "
            f"through {MOST_ENUMERATED:,}: take fewer attributes, a smaller budget, "
            "method='scoring' or another search"
        )

    def extensions(place: int, left: int) -> Iterator[tuple[int, ...]]:
        if place == len(units):
            yield ()
            return
        for repeats in range(left // int(units[place]) + 1):
            for rest in extensions(place + 1, left - repeats * int(units[place])):
                yield (repeats, *rest)

    yield from extensions(0, n_units)


def _unit(costs: Float[np.ndarray, " attribute"], budget: float) -> float:
    """The largest amount of which all costs are multiples."""
    fractions = [Fraction(float(cost)).limit_denominator(1_000) for cost in costs]
    denominator = math.lcm(*(f.denominator for f in fractions))
    unit = Fraction(math.gcd(*(int(f * denominator) for f in fractions)), denominator)
    is_near = np.allclose([float(f) for f in fractions], costs, rtol=1e-9, atol=0)
    if not is_near or budget / float(unit) > MOST_UNITS:
        raise ValueError(
            f"search='exact' counts costs in a common unit, at most {MOST_UNITS:,} in the budget: "
            "round the costs"
        )
    return float(unit)
