"""Dawid–Skene with rows that the crowd regularises, its hyperparameters learned (empirical Bayes).

Worker w answers a task in state z correctly with a probability that depends on a common intercept
and on the worker's own ability,

    logit p_wz = c_z + b_w,          b_w ~ N(0, v).                                            (1)

Ability counts for every class at once, so it is known after few labels. The base of w's row puts
p_wz on the right answer and shares the rest as the crowd errs,

    B_wzl = p_wz if l is z's class, else (1 - p_wz) o_zl,    o_zl: the crowd's share of l among
                                                             the wrong answers in state z,     (2)

and the row itself is Dirichlet(s B_wz): its posterior mean is equation 1 of `base.py`. The rows of
workers with few labels are close to their base, those of workers with many to their own
frequencies. A state is a class, or a class and a level of difficulty with intercepts of its own,
which lets errors gather on some tasks.

Hyperparameters come from the labels. Given expected counts, c and b take Newton steps on the
penalised likelihood of (1), and v is the mean of b^2 plus the variance from the curvature (EM with
a Laplace approximation), kept between 0.01 and 6. Where s is learned, every fifth iteration chooses
the best of a grid under the Dirichlet-multinomial likelihood of all workers' counts and a
log-normal prior around 6.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, gammaln, logit

from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.shrunken.base import Counted, Fit, by_class, is_right, log_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Positive

__all__ = [
    "AbilityBase",
    "EmpiricalBayesModel",
    "ability_rows",
    "choose_strength",
    "implied_rows",
    "row_evidence",
]

STRENGTHS = (*(2.0**e for e in range(-1, 8)), np.inf)
"""Strengths to choose from, in pseudo-labels."""

FIRST_STRENGTH = 4.0
"""Strength before the first choice, where it is learned."""

USUAL_STRENGTH = 6.0
"""Median of the log-normal prior of a strength that is learned."""

STRENGTH_INTERVAL = 5
"""EM chooses the strength again after this many iterations, where it is learned."""

IMPLIED_UPDATES = 5
"""Updates of the abilities from given classes, before the strength is chosen once."""

VARIANCE_BOUNDS = (0.01, 6.0)
"""Smallest and largest variance of the abilities, in squared logits."""


class AbilityBase(NamedTuple):
    """Parameters of equations 1 and 2."""

    intercept: Float[np.ndarray, " state"]
    """Log odds that a worker of average ability answers correctly (c)."""
    ability: Float[np.ndarray, " worker"]
    """Ability of each worker, in logits (b)."""
    variance: float
    """Variance of the abilities (v)."""
    wrong: Float[np.ndarray, "cls state"]
    """Share of each answer among the crowd's wrong answers (o); zero for the right answer."""
    strength: float
    """Pseudo-labels that the base is worth in each row (s)."""
    n_updates: int
    """Number of updates so far."""

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """Equation 2."""
        ability = np.append(self.ability, 0.0)[worker]
        right = expit(self.intercept + ability[:, None])
        return np.where(is_right(label, *self.wrong.shape), right, (1 - right) * self.wrong[label])


class EmpiricalBayesModel(NamedTuple):
    """The model of this module."""

    n_levels: int = 1
    """Number of levels of difficulty."""
    strength: Positive | Literal["learned"] = "learned"
    """Pseudo-labels that the base is worth in each row."""

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: AbilityBase | None,
    ) -> AbilityBase:
        """The next update; a learned strength is chosen again every `STRENGTH_INTERVAL` of them."""
        base = self.update(pairs, counts, previous)
        if self.strength == "learned" and base.n_updates % STRENGTH_INTERVAL == 0:
            base = choose_strength(base, pairs, counts)
        return base

    def update(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: AbilityBase | None,
    ) -> AbilityBase:
        """Newton steps for the abilities, and the crowd's errors; the strength stays."""
        right_counts = np.where(is_right(pairs.label, pairs.n_classes, counts.shape[1]), counts, 0)
        right, total = pairs.by_worker(right_counts), pairs.by_worker(counts)
        if previous is None:
            previous = self._first_base(right, total, pairs.n_classes)
        intercept, ability, variance = _abilities(right, total, previous)
        return previous._replace(
            intercept=intercept,
            ability=ability,
            variance=variance,
            wrong=_wrong_answers(pairs, counts),
            n_updates=previous.n_updates + 1,
        )

    def _first_base(
        self,
        right: Float[np.ndarray, "worker state"],
        total: Float[np.ndarray, "worker state"],
        n_classes: int,
    ) -> AbilityBase:
        share = (right.sum(axis=0) + 1) / (total.sum(axis=0) + 2)
        return AbilityBase(
            intercept=logit(share),
            ability=np.zeros(len(right)),
            variance=1.0,
            wrong=np.zeros((n_classes, right.shape[1])),
            strength=FIRST_STRENGTH if self.strength == "learned" else float(self.strength),
            n_updates=0,
        )


def choose_strength(
    base: AbilityBase, pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol state"]
) -> AbilityBase:
    """The base with the best strength of the grid, given expected counts."""
    rows, totals = base.rows(pairs.worker, pairs.label), pairs.by_worker(counts)
    scores = [
        row_evidence(counts, totals, rows, strength)
        # inf has the prior of the value that would come next in the grid.
        - 0.5 * np.log(min(strength, 2 * STRENGTHS[-2]) / USUAL_STRENGTH) ** 2
        for strength in STRENGTHS
    ]
    return base._replace(strength=STRENGTHS[int(np.argmax(scores))])


def ability_rows(pairs: WorkerLabelPairs, found: Counted) -> SparseRows:
    """The rows of a fit with one state per class.

    Wrong answers that a worker has not given are as probable as the crowd's errors make them.

    Args:
        pairs: the pairs (worker, label) of the fit.
        found: the fit, whose base is an `AbilityBase`.
    """
    base = found.base
    assert isinstance(base, AbilityBase)
    share = np.ones_like(found.totals)
    if np.isfinite(base.strength):
        share = base.strength / (found.totals + base.strength)
    right = expit(base.intercept + base.ability[:, None])
    strange = expit(base.intercept)
    log_seen = log_rows(base, found.counts, found.totals, pairs.worker, pairs.label)
    return SparseRows(
        pairs.keys,
        log_seen,
        scale=share * (1 - right),
        base=base.wrong.T,
        stranger=np.diag(strange) + (1 - strange)[:, None] * base.wrong.T,
        diagonal=share * right,
    )


def implied_rows(pairs: WorkerLabelPairs, posterior: Float[np.ndarray, "item cls"]) -> Fit:
    """The rows of workers, pooled by ability, that given classes of the tasks imply."""
    counts = pairs.incidence(posterior.shape[1]).counts(posterior)[: len(pairs)]
    model = EmpiricalBayesModel()
    base = model.update(pairs, counts, None)
    for _ in range(IMPLIED_UPDATES - 1):
        base = model.update(pairs, counts, base)
    base = choose_strength(base, pairs, counts)
    share = posterior.mean(axis=0)
    return Fit(
        base=base,
        counts=counts,
        totals=pairs.by_worker(counts),
        log_prior=np.log(np.maximum(share, np.finfo(float).tiny)),
        posterior=by_class(posterior, pairs.n_classes),
        trace=np.empty(0),
        converged=True,
    )


def row_evidence(
    counts: Float[np.ndarray, "symbol state"],
    total: Float[np.ndarray, "worker state"],
    rows: Float[np.ndarray, "symbol state"],
    strength: float,
) -> float:
    """log Dirichlet-multinomial density of the counts with parameters strength x rows, nats."""
    if np.isinf(strength):
        return float((counts * floored_log(rows)).sum())
    pseudo = np.maximum(strength * rows, np.finfo(float).tiny)
    given = (gammaln(counts + pseudo) - gammaln(pseudo)).sum()
    return float(given + (gammaln(strength) - gammaln(total + strength)).sum())


def _abilities(
    right: Float[np.ndarray, "worker state"],
    total: Float[np.ndarray, "worker state"],
    start: AbilityBase,
) -> tuple[Float[np.ndarray, " state"], Float[np.ndarray, " worker"], float]:
    """Two Newton steps for each of b and c, then v."""
    intercept, ability, variance = start.intercept, start.ability, start.variance
    # einsum, because NumPy's sum is slow where one axis is as short as that of the states.
    n_right, n_right_c = np.einsum("ws->w", right), np.einsum("ws->s", right)
    for _ in range(2):
        chance = expit(intercept + ability[:, None])
        expected = total * chance
        slope = n_right - np.einsum("ws->w", expected) - ability / variance
        curvature = np.einsum("ws,ws->w", expected, 1 - chance) + 1 / variance
        ability = ability + np.clip(slope / curvature, -1, 1)
        chance = expit(intercept + ability[:, None])
        expected = total * chance
        # Half a right pseudo-label, half a wrong one: without errors the odds would be infinite.
        slope_c = n_right_c - np.einsum("ws->s", expected) + 0.5 - expit(intercept)
        curvature_c = np.einsum("ws,ws->s", expected, 1 - chance) + 0.25
        intercept = intercept + np.clip(slope_c / curvature_c, -1, 1)
    active = total.sum(axis=1) > 0
    square = (ability**2 + 1 / curvature)[active].mean()
    return intercept, ability, float(np.clip(square, *VARIANCE_BOUNDS))


def _wrong_answers(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol state"]
) -> Float[np.ndarray, "cls state"]:
    crowd = pairs.by_label(counts) + 1.0 / pairs.n_classes
    n_classes, n_states = crowd.shape
    crowd[np.arange(n_states) % n_classes, np.arange(n_states)] = 0.0
    return crowd / crowd.sum(axis=0)
