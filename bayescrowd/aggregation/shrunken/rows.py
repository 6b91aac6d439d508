"""EM for models whose workers' rows are pulled toward a base: one loop for all of them.

The hidden state of a task is its class, or its class and a level of difficulty; state z belongs to
class `z % n_classes`. Worker w answers l to a task in state z with probability

    pi_wzl = (n_wzl + s B_wzl) / (n_wz + s),                                                   (1)

where n are the expected counts of w's labels, B_wz is a base that the model supplies and s is its
strength in pseudo-labels; s = inf leaves the base alone. (1) is the posterior mean of a row with
the prior Dirichlet(s B_wz). Models differ in the base only:

* `baselines.py`: an accuracy per worker (s = inf), or the crowd's mean row;
* `empirical_bayes.py`: an accuracy per worker and class that the crowd regularises;
* `worker_types.py`: the mean of a few types' rows.

An iteration takes the base and (1) from the expected counts, then P(state | labels) of each task.
The start is the share of votes. The class prior is uniform, the share of each class among the
labels, or learned with one pseudo-task a class; a learned one may collapse to a single class on
crowds with two or three labels per task, a uniform one and the shares cost most on rare classes.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import (
    LOG_FLOOR,
    EMEstimate,
    Incidence,
    Sweep,
    floored_log,
)
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.iteration import Step, settle

__all__ = [
    "CLASS_PRIORS",
    "Base",
    "ClassPrior",
    "Counted",
    "Fit",
    "RowModel",
    "by_class",
    "fit_rows",
    "log_rows",
    "log_rows_of_new",
    "spread_over_levels",
    "state_posterior",
]

ClassPrior = Literal["shares", "learned", "uniform"]
CLASS_PRIORS = get_args(ClassPrior)


@runtime_checkable
class Base(Protocol):
    """What workers' rows are pulled toward; the parameters of a model."""

    @property
    def strength(self) -> float:
        """Pseudo-labels that the base is worth in each row (s); inf: nothing else counts."""
        ...

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """Probability of the label by that worker in each state (B); worker -1 is a stranger."""
        ...


@runtime_checkable
class RowModel(Protocol):
    """A model: how the base follows from expected counts."""

    @property
    def n_levels(self) -> int:
        """Levels of difficulty; there are so many states per class."""
        ...

    def base(
        self, pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol state"], previous: Any
    ) -> Base:
        """The base after another iteration; `previous` is the base before, None at first."""
        ...


@runtime_checkable
class Counted(Protocol):
    """What is known of workers' rows: a base and the counts beside it."""

    @property
    def base(self) -> Base:
        """What the rows are pulled toward."""
        ...

    @property
    def counts(self) -> Float[np.ndarray, "symbol state"]:
        """Expected counts of the pairs."""
        ...

    @property
    def totals(self) -> Float[np.ndarray, "worker state"]:
        """Their sums by worker."""
        ...


class Fit(NamedTuple):
    """A fitted model."""

    base: Base
    """Its parameters."""
    counts: Float[np.ndarray, "symbol state"]
    """Expected counts behind the rows (n)."""
    totals: Float[np.ndarray, "worker state"]
    """Their sums by worker."""
    log_prior: Float[np.ndarray, " state"]
    """log P(state)."""
    posterior: Float[np.ndarray, "item state"]
    """P(state | labels) of each task."""
    trace: Float[np.ndarray, " iteration"]
    """log P(labels) under the parameters of each iteration, nats; it may fall."""
    converged: bool
    """Whether the last iteration changed no probability by the tolerance."""


def fit_rows(
    model: RowModel,
    pairs: WorkerLabelPairs,
    labels: Incidence,
    start: Float[np.ndarray, "item state"],
    *,
    prior: ClassPrior,
    n_iter: int,
    tol: float,
) -> Fit:
    """Run EM from a posterior.

    Args:
        model: the model.
        pairs: the pairs of a worker and a label.
        labels: `pairs.incidence`, with as many states as `start`.
        start: P(state) of each task to start from.
        prior: the classes' prior.
        n_iter: most iterations, at least 1.
        tol: stop when no P(state | labels) changes by this much; 0 runs all iterations.
    """
    class_shares = _class_shares(pairs, prior)
    before, after = start, np.empty_like(start)
    sweep = Sweep(labels.counts(start), start.sum(axis=0), float("nan"))
    counts = totals = log_prior = np.empty(0)

    # The tables are no part of the state: the loop would keep old ones while new ones are made.
    def step(base: Base | None) -> Step[Base | None]:
        nonlocal before, after, sweep, counts, totals, log_prior
        counts = sweep.counts[: len(pairs)]
        totals = pairs.by_worker(counts)
        base = model.base(pairs, counts, base)
        log_prior = _log_prior(sweep.class_counts, class_shares, pairs.n_classes)
        table = log_rows(base, counts, totals, pairs.worker, pairs.label)
        sweep = labels.sweep(EMEstimate(_with_known(table, pairs), log_prior, 0.0, None), after)
        change = float(np.abs(after - before).max())
        before, after = after, (np.empty_like(start) if before is start else before)
        return Step(base, sweep.log_likelihood, change)

    course = settle(step, None, n_iter=n_iter, tol=tol)
    assert course.state is not None  # one iteration at least
    return Fit(course.state, counts, totals, log_prior, before, course.trace, course.converged)


def log_rows(
    base: Base,
    counts: Float[np.ndarray, "pair state"],
    totals: Float[np.ndarray, "worker state"],
    worker: Int[np.ndarray, " pair"],
    label: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "pair state"]:
    """Equation 1 in logs for pairs of a worker and a label; worker -1 is a stranger."""
    rows = base.rows(worker, label)
    if np.isinf(base.strength):
        return floored_log(rows)
    given = np.concatenate([totals, np.zeros((1, totals.shape[1]))])[worker]
    return floored_log((counts + base.strength * rows) / (given + base.strength))


def log_rows_of_new(
    fit: Counted, pairs: WorkerLabelPairs, new: WorkerLabelPairs, known: Int[np.ndarray, " worker"]
) -> Float[np.ndarray, "symbol state"]:
    """Equation 1 in logs for the pairs of other labels.

    Args:
        fit: the fit.
        pairs: the pairs of its labels.
        new: the pairs of the others.
        known: each of the others' workers' place in the fit, -1 for a stranger.
    """
    worker = known[new.worker]
    place = pairs.find(worker, new.label)
    counts = np.where(place[:, None] >= 0, fit.counts[place], 0.0)
    return log_rows(fit.base, counts, fit.totals, worker, new.label)


def state_posterior(
    pairs: WorkerLabelPairs,
    table: Float[np.ndarray, "symbol state"],
    log_prior: Float[np.ndarray, " state"],
) -> Float[np.ndarray, "item state"]:
    """P(state | labels) of each task, given log P(label | state) of the pairs."""
    posterior = np.empty((pairs.n_tasks, len(log_prior)))
    estimate = EMEstimate(_with_known(table, pairs), log_prior, 0.0, None)
    pairs.incidence(len(log_prior)).sweep(estimate, posterior)
    return posterior


def spread_over_levels(
    posterior: Float[np.ndarray, "item cls"], n_levels: int
) -> Float[np.ndarray, "item state"]:
    """A start for several levels: tasks on which votes agree are easy, the first level.

    The chance that two votes agree, scaled so that guessing is 0, is the mean of a binomial
    distribution over the levels.
    """
    if n_levels == 1:
        return posterior
    n_classes = posterior.shape[1]
    agreement = ((posterior**2).sum(axis=1) * n_classes - 1) / (n_classes - 1)
    easy = np.clip(agreement, 0.1, 0.9)[:, None]
    steps = np.arange(n_levels)
    ways = np.cumprod(np.concatenate([[1.0], (n_levels - steps[1:]) / steps[1:]]))
    level = ways * easy ** (n_levels - 1 - steps) * (1 - easy) ** steps
    return (level[:, :, None] * posterior[:, None, :]).reshape(len(posterior), -1)


def by_class(
    values: Float[np.ndarray, "row state"], n_classes: int
) -> Float[np.ndarray, "row cls"]:
    """Levels summed out."""
    if values.shape[1] == n_classes:
        return values
    return values.reshape(len(values), -1, n_classes).sum(axis=1)


def _class_shares(pairs: WorkerLabelPairs, prior: ClassPrior) -> Float[np.ndarray, " cls"] | None:
    """The classes' fixed prior; None if it is learned."""
    if prior == "learned":
        return None
    given = np.bincount(pairs.label[pairs.of_label], minlength=pairs.n_classes)
    return given / given.sum() if prior == "shares" else np.full(len(given), 1.0 / len(given))


def _log_prior(
    state_counts: Float[np.ndarray, " state"],
    class_shares: Float[np.ndarray, " cls"] | None,
    n_classes: int,
) -> Float[np.ndarray, " state"]:
    levels = state_counts.reshape(-1, n_classes) + 1.0
    if class_shares is None:
        return floored_log((levels / levels.sum()).ravel())
    return floored_log((class_shares * levels / levels.sum(axis=0)).ravel())


def _with_known(
    table: Float[np.ndarray, "symbol state"], pairs: WorkerLabelPairs
) -> Float[np.ndarray, "all state"]:
    """The table with a row per class for tasks whose truth is known to be that class."""
    n_classes = pairs.n_classes
    same = np.arange(n_classes)[:, None] == np.arange(table.shape[1]) % n_classes
    return np.concatenate([table, np.where(same, 0.0, LOG_FLOOR)])
