"""Confusion rows that are pulled toward a base, and what a fit of them holds.

The hidden state of a task is its class, or its class and a level of difficulty; state z belongs to
class `z % n_classes`. Worker w answers l to a task in state z with probability

    pi_wzl = (n_wzl + s B_wzl) / (n_wz + s),                                                   (1)

where n are the expected counts of w's labels, B_wz is the base and s is its strength in
pseudo-labels; s = inf leaves the base alone. (1) is the posterior mean of a row with the prior
Dirichlet(s B_wz).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.em import floored_log

__all__ = ["Base", "Counted", "Fit", "by_class", "is_right", "log_rows", "log_rows_at"]


@runtime_checkable
class Base(Protocol):
    """What workers' rows are pulled toward; the parameters of a model."""

    @property
    def strength(self) -> float:
        """Pseudo-labels that the base is worth in each row (s); inf if nothing else counts."""
        ...

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """Probability that the worker gives the label in each state (B); -1 is a new worker."""
        ...


@runtime_checkable
class Counted(Protocol):
    """What determines workers' rows: a base, and the counts of their labels."""

    @property
    def base(self) -> Base:
        """What the rows are pulled toward."""
        ...

    @property
    def counts(self) -> Float[np.ndarray, "symbol state"]:
        """Expected counts of the pairs (worker, label) that occur (n)."""
        ...

    @property
    def totals(self) -> Float[np.ndarray, "worker state"]:
        """Sums of the counts by worker."""
        ...


class Fit(NamedTuple):
    """A fitted model."""

    base: Base
    """The model's parameters."""
    counts: Float[np.ndarray, "symbol state"]
    """Expected counts behind the rows (n)."""
    totals: Float[np.ndarray, "worker state"]
    """Sums of the counts by worker."""
    log_prior: Float[np.ndarray, " state"]
    """log P(state)."""
    posterior: Float[np.ndarray, "item state"]
    """P(state | labels) of each task."""
    trace: Float[np.ndarray, " iteration"]
    """log P(labels) under the parameters of each iteration, nats; it may fall."""
    converged: bool
    """Whether the last iteration changed every probability by less than the tolerance."""


def log_rows(
    base: Base,
    counts: Float[np.ndarray, "pair state"],
    totals: Float[np.ndarray, "worker state"],
    worker: Int[np.ndarray, " pair"],
    label: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "pair state"]:
    """Logarithm of equation 1 for pairs of a worker and a label; worker -1 is a new worker."""
    rows = base.rows(worker, label)
    if np.isinf(base.strength):
        return floored_log(rows)
    given = np.concatenate([totals, np.zeros((1, totals.shape[1]))])[worker]
    return floored_log((counts + base.strength * rows) / (given + base.strength))


def log_rows_at(
    fit: Counted,
    place: Int[np.ndarray, " pair"],
    worker: Int[np.ndarray, " pair"],
    label: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "pair state"]:
    """Logarithm of equation 1 for any pairs of a worker and a label.

    Args:
        fit: the fit.
        place: position of each pair among those of the fit, -1 where it does not occur.
        worker: the worker's code in the fit, -1 for a new worker.
        label: the label of each pair.
    """
    counts = np.where(place[:, None] >= 0, fit.counts[place], 0.0)
    return log_rows(fit.base, counts, fit.totals, worker, label)


def is_right(
    label: Int[np.ndarray, " pair"], n_classes: int, n_states: int
) -> Bool[np.ndarray, "pair state"]:
    """Whether the label names the class of each state."""
    return label[:, None] == np.arange(n_states) % n_classes


def by_class(
    values: Float[np.ndarray, "row state"], n_classes: int
) -> Float[np.ndarray, "row cls"]:
    """Sums over the levels of each class."""
    if values.shape[1] == n_classes:
        return values
    return values.reshape(len(values), -1, n_classes).sum(axis=1)
