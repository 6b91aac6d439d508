"""EM for models whose workers' rows are pulled toward a base: one loop for all of them.

Rows follow from expected counts and a base by equation 1 of `base.py`. Models differ only in how
the base follows from the counts:

* `baselines.py`: an accuracy per worker (s = inf), or the crowd's mean row;
* `ability.py`: an accuracy per worker and class that the crowd regularises;
* `type_mixture.py`: the mean of the rows of a few types of workers.

An iteration computes the base and the rows from the expected counts, then P(state | labels) of each
task. EM starts from the shares of votes. The class prior is uniform, the share of each class among
the labels, or learned with one pseudo-task per class. A learned prior may collapse to a single
class on crowds with two or three labels per task; a uniform prior and the shares cost most where
classes are rare.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.em import EMEstimate, Incidence, Sweep, floored_log
from bayescrowd.aggregation.shrunken.base import Base, Fit, log_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.iteration import Step, settle

__all__ = ["ClassPrior", "RowModel", "fit_rows", "spread_over_levels"]

ClassPrior = Literal["shares", "learned", "uniform"]


@runtime_checkable
class RowModel(Protocol):
    """A model: how the base follows from expected counts."""

    @property
    def n_levels(self) -> int:
        """Number of levels of difficulty, which is the number of states per class."""
        ...

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: Any,
    ) -> Base:
        """The base of the next iteration; `previous` is the base before it, None at first."""
        ...


def fit_rows(
    model: RowModel,
    pairs: WorkerLabelPairs,
    labels: Incidence,
    start: Float[np.ndarray, "item state"],
    *,
    prior: ClassPrior,
    n_iter: int,
    tol: float,
    worker_weights: Float[np.ndarray, " worker"] | None = None,
) -> Fit:
    """Run EM from a posterior.

    Args:
        model: the model.
        pairs: the pairs of a worker and a label that occur.
        labels: `pairs.incidence`, with as many states as `start`.
        start: P(state) of each task to start from.
        prior: the prior of the classes.
        n_iter: largest number of iterations, at least 1.
        tol: stop when every P(state | labels) changes by less than this; 0 runs all iterations.
        worker_weights: how often the evidence of each worker's labels counts while EM iterates; the
            posterior that is returned counts every label once. None for once throughout.
    """
    class_shares = _class_shares(pairs, prior)
    before, after = start, np.empty_like(start)
    sweep = Sweep(labels.counts(start), start.sum(axis=0), float("nan"))
    counts = totals = log_prior = np.empty(0)

    # The tables are not part of the state, or the loop would keep old ones while making new ones.
    def step(base: Base | None) -> Step[Base | None]:
        nonlocal before, after, sweep, counts, totals, log_prior
        counts = sweep.counts[: len(pairs)]
        totals = pairs.by_worker(counts)
        base = model.base(pairs, counts, base)
        log_prior = _log_prior(sweep.class_counts, class_shares, pairs.n_classes)
        table = log_rows(base, counts, totals, pairs.worker, pairs.label)
        if worker_weights is not None:
            table *= worker_weights[pairs.worker][:, None]
        sweep = labels.sweep(EMEstimate(pairs.with_truth(table), log_prior, 0.0, None), after)
        change = float(np.abs(after - before).max())
        before, after = after, (np.empty_like(start) if before is start else before)
        return Step(base, sweep.log_likelihood, change)

    course = settle(step, None, n_iter=n_iter, tol=tol)
    assert course.state is not None  # one iteration at least
    if worker_weights is not None:
        table = log_rows(course.state, counts, totals, pairs.worker, pairs.label)
        labels.sweep(EMEstimate(pairs.with_truth(table), log_prior, 0.0, None), before)
    return Fit(course.state, counts, totals, log_prior, before, course.trace, course.converged)


def spread_over_levels(
    posterior: Float[np.ndarray, "item cls"], n_levels: int
) -> Float[np.ndarray, "item state"]:
    """A start for several levels: tasks on which votes agree are easy, which is the first level.

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


def _class_shares(pairs: WorkerLabelPairs, prior: ClassPrior) -> Float[np.ndarray, " cls"] | None:
    """The fixed prior of the classes; None if it is learned."""
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
