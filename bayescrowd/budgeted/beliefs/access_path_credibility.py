"""Credibility of a feature of the access path model: equation 1 under the joint posterior.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, equation 1, for theta_yi and theta_zij alike. The paper prints
it for counts that are known. Here the hidden values z of the readings are not, and neither are the
counts: the posterior of a parameter is a mixture of Beta distributions, one for each assignment of
values. A state of a Gibbs chain is such an assignment, so that the mass near the mean is an average
of incomplete Beta functions over states (Rao and Blackwell), around the mean over states.

**Names of the hidden values.** The likelihood is the same under every renaming of z, and chains may
name values differently, or one chain may change its mind; the means of theta_yi would then be means
over names. Prediction and information gain need no names, and the credibility must not depend on
them either: each state's values are renamed before anything is averaged, such that the parameters
vary least between states,

    min over names  sum over states  sum over rows r, values x of  w_r (E theta_r^x - mean_r^x)^2,

where rows of both tables count with the weights w that they have in equation 1. The search
alternates between means and names (each state's are a linear assignment), like k-means, and starts
from the names in one of the states. Renaming the values of a chain leaves the result as it is.

The channel P(labels | y) is the other quantity that needs no names, but not the one that the paper
speaks of: where labels are guesses, the channel is known after a few readings, while nothing is
known of the values behind them. There names mean little, and choosing them for the least variance
makes the mass somewhat larger: .21 to .22 instead of .10 to .12 for three values, with two thirds
of the labels wrong and 200 readings of five labels.

**Monte-Carlo error.** Chains are independent: the spread of their averages gives the standard
error, with each state's influence on the mean around which mass is counted. Where it is too large,
the chains run on. (Names are chosen for the states at hand, which adds about .003 where labels are
guesses and the standard error does not cover. The chains of a table of thousands of rows, learned
at once, are not quite independent, but then hardly differ.) `required` turns the estimate into a
sequential test: the chains stop as soon as it is clear on which side of the required credibilities
the estimates are (`is_clear`).

Incomplete Beta functions are those of Peizer and Pratt (1968, "A normal approximation for binomial,
F, beta, and other common, related tail probabilities, I", Journal of the American Statistical
Association 63, equation 2.24a), which take a thirtieth of the time. They err by
at most .005, where a concentration is near one, and the mass of a table by about .001. Where a
concentration is below one, they are computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.special import betainc, betaln, ndtr

from bayescrowd.budgeted.beliefs.credibility import (
    Credibility,
    Measure,
    is_clear,
    known_intervals,
    table_credibility,
)
from bayescrowd.posterior.conditionals.access_path_feature import draw_dirichlet
from bayescrowd.posterior.conditionals.access_path_sweep import Tables

__all__ = ["align", "joint_credibility"]

FEWEST_STATES, MOST_STATES = 8, 512
"""Number of further states of each chain that are looked at first, and at most in all."""

N_QUICK_STATES, QUICK_MARGIN = 2, 0.05
"""Number of states for a quick no, and how far below what is required they must be."""

N_STARTS, MOST_SEARCHED = 16, 64
"""Number of states that the search for names starts from, and of those that it looks at before it
names all of them."""

MOST_STEPS = 50
"""Largest number of steps from each start."""

MOST_PERMUTED = 5
"""Number of values up to which all renamings are tried at once, 120 of five values."""

N_HDI_DRAWS = 8_192
"""Number of draws for highest-density intervals, spread evenly over the states."""

_NEAR_ONE = 1e-3
"""Distance from 1 below which a difference quotient is replaced by its series."""


def joint_credibility(
    rng: np.random.Generator,
    states: Iterator[Tables],
    class_prior: Float[np.ndarray, " cls"],
    *,
    epsilon: float,
    measure: Measure,
    required: tuple[float, float] | None = None,
) -> Credibility:
    """How well both tables of a feature are known.

    Args:
        rng: the source of randomness of the draws for 'hdi'.
        states: states of independent chains: the concentrations of both tables given the values,
            along a leading axis of chains. Only as many are taken as the error needs.
        class_prior: probability of each class.
        epsilon: half-width of the interval around the mean, for 'interval'.
        measure: measure of concentration; see the module `credibility`.
        required: credibilities of the two tables, if only the comparison with them matters. The
            result is then no more exact than the comparison needs, and may be an upper bound.

    Examples:
        >>> import numpy as np
        >>> confusion = np.tile([[90.0, 10.0], [5.0, 45.0]], (32, 1, 1))
        >>> states = iter([Tables(np.full((32, 1, 2), 50.0), confusion)])
        >>> rng = np.random.default_rng(0)
        >>> found = joint_credibility(rng, states, np.ones(1), epsilon=0.05, measure="interval")
        >>> round(found.conditional, 2), round(found.confusion, 2), round(found.error, 6)
        (0.68, 0.85, 0.0)
    """
    kept = [next(states)]
    if required is not None and measure != "hdi":
        most = _most_credible(kept[0], class_prior, epsilon=epsilon, measure=measure)
        if most.conditional < required[0] or most.confusion < required[1]:
            return most
    while True:
        stacked = Tables(*(np.concatenate(rows) for rows in zip(*kept, strict=True)))
        known, errors = _estimate(
            rng,
            # a first look for a comparison may do with names that are not quite the best
            align(stacked, class_prior, n_starts=1 if required and len(kept) == 1 else N_STARTS),
            class_prior,
            len(kept[0].conditional),
            epsilon=epsilon,
            measure=measure,
        )
        # few states may have been named by chance; a comparison that is clear may do with them
        is_first_look = len(kept) == 1 and required is None
        if (is_clear(known, errors, required) and not is_first_look) or len(kept) > MOST_STATES:
            break
        more = list(islice(states, FEWEST_STATES if len(kept) == 1 else len(kept)))
        if not more:
            break
        kept += more
    conditional, confusion = known.tolist()
    return Credibility(conditional, confusion, float(errors[known.argmin()]))


def _most_credible(
    states: Tables, class_prior: Float[np.ndarray, " cls"], *, epsilon: float, measure: Measure
) -> Credibility:
    """About the highest credibility that chains may have, for a quick no.

    Each state has most mass around its own mean, apart from its skewness: what chains disagree on
    lowers the credibility further. A few states suffice, with a margin for the others.
    """
    every = -(-len(states.conditional) // N_QUICK_STATES)
    known = []
    for rows in states:
        few = rows[::every]
        weights = class_prior if rows is states.conditional else np.ones(few.shape[1])
        even = np.tile(weights / (weights.sum() * len(few)), len(few))
        table = few.reshape(-1, few.shape[-1])
        known.append(table_credibility(table, even, epsilon=epsilon, measure=measure))
    return Credibility(known[0] + QUICK_MARGIN, known[1] + QUICK_MARGIN, 0.0)


def align(
    states: Tables, class_prior: Float[np.ndarray, " cls"], *, n_starts: int = N_STARTS
) -> Tables:
    """The same states with hidden values renamed such that the tables vary least between them.

    Args:
        states: concentrations of both tables, along a leading axis of states.
        class_prior: probability of each class.
        n_starts: number of states that the search starts from.

    Examples:
        >>> import numpy as np
        >>> conditional = np.array([[[9.0, 1.0]], [[2.0, 9.0]]])
        >>> confusion = np.array([[[8.0, 2.0], [1.0, 9.0]], [[1.0, 9.0], [8.0, 2.0]]])
        >>> align(Tables(conditional, confusion), np.ones(1)).conditional[1].tolist()
        [[9.0, 2.0]]
    """
    conditional, confusion = states
    # a column per hidden value: all that goes by its name
    columns = np.concatenate(
        [
            _row_means(conditional) * np.sqrt(class_prior)[:, None],
            _row_means(confusion).swapaxes(1, 2) / np.sqrt(conditional.shape[-1]),
        ],
        axis=1,
    )
    found = _best_names(columns, columns[0])
    if n_starts > 1:
        few = columns[:: -(-len(columns) // MOST_SEARCHED)]
        ends = [_best_names(few, start) for start in few[:: -(-len(few) // n_starts)]]
        # the same names in another order have the same height
        different = {round(names.height, 9): names.mean for names in ends}
        others = [_best_names(columns, mean) for mean in different.values()]
        found = max([found, *others], key=lambda names: names.height)
    order = found.order
    return Tables(
        np.take_along_axis(conditional, order[:, None, :], axis=2),
        np.take_along_axis(confusion, order[:, :, None], axis=1),
    )


class Names(NamedTuple):
    """Names of the hidden values of some states."""

    order: Int[np.ndarray, "state value"]
    """Order of each state's values."""
    mean: Float[np.ndarray, "row value"]
    """Mean of the columns in that order."""

    @property
    def height(self) -> float:
        """The square of the mean.

        The squares of the columns are the same in every order: the variance is least where this is
        largest.
        """
        return float((self.mean * self.mean).sum())


def _best_names(
    columns: Float[np.ndarray, "state row value"], mean: Float[np.ndarray, "row value"]
) -> Names:
    """Names and their mean by turns, from a mean to begin with."""
    order = _nearest_order(columns, mean)
    for _ in range(MOST_STEPS):
        mean = np.take_along_axis(columns, order[:, None, :], axis=2).mean(axis=0)
        found = _nearest_order(columns, mean)
        if (found == order).all():
            break
        order = found
    return Names(order, mean)


def _nearest_order(
    columns: Float[np.ndarray, "state row value"], reference: Float[np.ndarray, "row value"]
) -> Int[np.ndarray, "state value"]:
    """The order of each state's values in which its columns are nearest to those of a reference."""
    # squares do not depend on the order: the nearest columns are those that overlap most
    overlap = reference.T @ columns  # name by value
    n_values = overlap.shape[-1]
    if n_values <= MOST_PERMUTED:
        orders = _permutations(n_values)
        return orders[overlap[:, np.arange(n_values), orders].sum(axis=-1).argmax(axis=-1)]
    # where every name has a best value of its own, no other assignment is better
    order = overlap.argmax(axis=-1)
    is_one_to_one = (np.sort(order, axis=-1) == np.arange(n_values)).all(axis=-1)
    for state in np.flatnonzero(~is_one_to_one):
        order[state] = linear_sum_assignment(overlap[state], maximize=True)[1]
    return order


@lru_cache(maxsize=8)
def _permutations(n_values: int) -> Int[np.ndarray, "order value"]:
    return np.array(list(permutations(range(n_values))))


def _row_means(rows: Float[np.ndarray, "*row value"]) -> Float[np.ndarray, "*row value"]:
    return rows / rows.sum(axis=-1, keepdims=True)


def _estimate(
    rng: np.random.Generator,
    aligned: Tables,
    class_prior: Float[np.ndarray, " cls"],
    n_chains: int,
    *,
    epsilon: float,
    measure: Measure,
) -> tuple[Float[np.ndarray, " table"], Float[np.ndarray, " table"]]:
    """Credibility of both tables and their standard errors; states are in the order of sweeps."""
    states = np.concatenate(aligned, axis=1)
    n_rows, n_values = states.shape[1:]
    weights = np.zeros((2, n_rows))
    weights[0, : len(class_prior)] = class_prior / n_values
    weights[1, len(class_prior) :] = 1 / n_values**2
    if measure == "interval":
        known, influence = _near_mean(states, epsilon)
    elif measure == "variance":
        means = _row_means(states)
        spread = means * (1 - means) / (states.sum(axis=-1, keepdims=True) + 1)
        influence = 1 - 4 * (spread + (means - means.mean(axis=0)) ** 2)
        known = influence.mean(axis=0)
    else:
        n_repeats = -(-N_HDI_DRAWS // len(states))
        known, influence = known_intervals(draw_dirichlet(rng, np.tile(states, (n_repeats, 1, 1))))
    by_chain = influence.reshape(-1, n_chains, n_rows, n_values).sum(axis=3).mean(axis=0)
    errors = (by_chain @ weights.T).std(axis=0, ddof=1) / np.sqrt(n_chains)
    return weights @ known.sum(axis=1), errors


def _near_mean(
    states: Float[np.ndarray, "state row value"], epsilon: float
) -> tuple[Float[np.ndarray, "row value"], Float[np.ndarray, "state row value"]]:
    """Mass near the mean of the mixture, and each state's influence on it."""
    total = states.sum(axis=-1, keepdims=True)
    a, b, means = states, total - states, states / total
    mean = means.mean(axis=0)
    ends = np.stack([mean - epsilon, mean + epsilon])[:, None]
    below, above = _beta_cdf(a, b, ends)
    mass = above - below
    # a higher mean moves both ends of the interval that are inside (0, 1)
    low, high = _beta_density(a, b, ends).mean(axis=1)
    return mass.mean(axis=0), mass + (high - low) * (means - mean)


def _beta_cdf(
    a: Float[np.ndarray, "state row value"],
    b: Float[np.ndarray, "state row value"],
    x: Float[np.ndarray, "end 1 row value"],
) -> Float[np.ndarray, "end state row value"]:
    """P(Beta(a, b) <= x) by Peizer and Pratt; exactly if a concentration is below one."""
    if min(a.min(), b.min()) < 1:
        return betainc(a, b, np.clip(x, 0, 1))
    x = np.clip(x, 1e-12, 1 - 1e-12)
    rest = 1 - x
    n, s, t = a + b - 1, a - 0.5, b - 0.5
    above = s + 1 / 6 - (n + 1 / 3) * x
    above += 0.02 * (rest / a - x / b + (rest - 0.5) / (n + 1))
    spread = 1 + rest * _deviance_term(s / (n * x)) + x * _deviance_term(t / (n * rest))
    return ndtr(-above * np.sqrt(spread / ((n + 1 / 6) * x * rest)))


def _deviance_term(ratio: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """(1 - r^2 + 2 r log r) / (1 - r)^2, and (1 - r) / 3 near r = 1."""
    away = 1 - ratio
    is_near = np.abs(away) < _NEAR_ONE
    away[is_near] = 1
    found = (1 - ratio * ratio + 2 * ratio * np.log(ratio)) / (away * away)
    found[is_near] = (1 - ratio[is_near]) / 3
    return found


def _beta_density(
    a: Float[np.ndarray, "state row value"],
    b: Float[np.ndarray, "state row value"],
    x: Float[np.ndarray, "end 1 row value"],
) -> Float[np.ndarray, "end state row value"]:
    """Density of Beta(a, b) at points, zero outside (0, 1)."""
    is_inside = (x > 0) & (x < 1)
    inside = np.where(is_inside, x, 0.5)
    log_density = (a - 1) * np.log(inside) + (b - 1) * np.log1p(-inside) - betaln(a, b)
    return np.where(is_inside, np.exp(log_density), 0.0)
