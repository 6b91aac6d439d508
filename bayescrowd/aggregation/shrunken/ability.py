"""Dawid–Skene with rows that the crowd regularises, its hyperparameters learned (empirical Bayes).

Worker w answers rightly to a task in state z with a probability that a common intercept and the
worker's own ability make up,

    logit p_wz = c_z + b_w,          b_w ~ N(0, v).                                            (1)

Ability counts for every class at once, so it is known after few labels. The base of w's row puts
p_wz on the right answer and shares the rest as the crowd errs,

    B_wzl = p_wz if l is z's class, else (1 - p_wz) o_zl,    o_zl: the crowd's share of l among
                                                             the wrong answers in state z,     (2)

and the row itself is Dirichlet(s B_wz): its posterior mean is equation 1 of `rows.py`.
Workers with few labels have their base, those with many their own frequencies. A state is a class,
or a class and a level of difficulty with intercepts of its own, which lets the errors of a task go
together.

Hyperparameters come from the labels. Given expected counts, c and b take Newton steps of the
penalised likelihood of (1), v is the mean of b^2 plus the curvature's variance (EM with a Laplace
approximation), kept within 0.01 and 6, and where s is learned, it is every fifth iteration the best
of a grid under the Dirichlet-multinomial likelihood of all workers' counts and a log-normal prior
around 6.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, gammaln, logit

from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.shrunken.baselines import is_right
from bayescrowd.aggregation.shrunken.rows import Counted, Fit, by_class, log_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Positive

__all__ = [
    "AbilityBase",
    "EmpiricalBayesModel",
    "ability_rows",
    "implied_rows",
    "row_evidence",
]

STRENGTHS = (*(2.0**e for e in range(-1, 8)), np.inf)
"""Pseudo-labels to choose from."""

FIRST_STRENGTH = 4.0
"""Before the first choice."""

STRENGTH_INTERVAL = 5
"""The strength is chosen anew in every fifth iteration, where it is learned.

`implied_rows` makes as many updates from the counts alone, the last of which chooses it.
"""

VARIANCE_BOUNDS = (0.01, 6.0)
"""Of the abilities, in squared logits."""


class AbilityBase(NamedTuple):
    """Parameters of equations 1 and 2."""

    intercept: Float[np.ndarray, " state"]
    """Log odds of a right answer by a worker of middling ability (c)."""
    ability: Float[np.ndarray, " worker"]
    """Of each worker, in logits (b)."""
    variance: float
    """Of the abilities (v)."""
    wrong: Float[np.ndarray, "cls state"]
    """Share of each answer among the crowd's wrong ones (o); zero at the right one."""
    strength: float
    """Pseudo-labels of the base in each row (s)."""
    age: int
    """Iterations so far."""

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """Equation 2."""
        ability = np.append(self.ability, 0.0)[worker]
        right = expit(self.intercept + ability[:, None])
        return np.where(is_right(label, *self.wrong.shape), right, (1 - right) * self.wrong[label])


class EmpiricalBayesModel(NamedTuple):
    """The model; see the module."""

    n_levels: int = 1
    """Levels of difficulty."""
    strength: Positive | Literal["learned"] = "learned"
    """Pseudo-labels of the base in each row."""

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: AbilityBase | None,
    ) -> AbilityBase:
        """Newton steps for abilities, the crowd's errors, and now and then the strength."""
        right_counts = np.where(is_right(pairs.label, pairs.n_classes, counts.shape[1]), counts, 0)
        right, total = pairs.by_worker(right_counts), pairs.by_worker(counts)
        if previous is None:
            previous = self._first_base(right, total, pairs.n_classes)
        intercept, ability, variance = _abilities(right, total, previous)
        base = previous._replace(
            intercept=intercept,
            ability=ability,
            variance=variance,
            wrong=_wrong_answers(pairs, counts),
            age=previous.age + 1,
        )
        if self.strength == "learned" and base.age % STRENGTH_INTERVAL == 0:
            base = base._replace(strength=_best_strength(base, pairs, counts, total))
        return base

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
            age=0,
        )


def ability_rows(pairs: WorkerLabelPairs, found: Counted) -> SparseRows:
    """The rows of a fit with a state per class: wrong answers not given are shared as the crowd's.

    Args:
        pairs: the pairs of the fit's labels.
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
    """Workers' rows, pooled by ability, that given classes of the tasks imply."""
    counts = pairs.incidence(posterior.shape[1]).counts(posterior)[: len(pairs)]
    model = EmpiricalBayesModel()
    base = None
    for _ in range(STRENGTH_INTERVAL):
        base = model.base(pairs, counts, base)
    assert base is not None  # one update at least
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
    # einsum, since NumPy's sum is slow where one axis is as short as that of states.
    n_right, n_right_c = np.einsum("ws->w", right), np.einsum("ws->s", right)
    for _ in range(2):
        chance = expit(intercept + ability[:, None])
        expected = total * chance
        slope = n_right - np.einsum("ws->w", expected) - ability / variance
        curvature = np.einsum("ws,ws->w", expected, 1 - chance) + 1 / variance
        ability = ability + np.clip(slope / curvature, -1, 1)
        chance = expit(intercept + ability[:, None])
        expected = total * chance
        # A pseudo-label, half right: an answer that nobody contradicts has finite odds.
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


def _best_strength(
    base: AbilityBase,
    pairs: WorkerLabelPairs,
    counts: Float[np.ndarray, "symbol state"],
    total: Float[np.ndarray, "worker state"],
) -> float:
    rows = base.rows(pairs.worker, pairs.label)
    scores = [
        row_evidence(counts, total, rows, strength)
        # inf stands where the grid would go on
        - 0.5 * np.log(min(strength, 2 * STRENGTHS[-2]) / 6) ** 2
        for strength in STRENGTHS
    ]
    return STRENGTHS[int(np.argmax(scores))]
