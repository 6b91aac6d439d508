"""Rows of confusion matrices from expected counts, with pseudo-counts that hold on every M-step.

A row is P(observed | true) of one worker. Pseudo-counts are the M-step of a Dirichlet prior
with parameters 1 + pseudo: the row is (counts + pseudo) / sum. With `s` pseudo-counts a row:

* flat: s / C on each of the C outcomes;
* diagonal: all s on the right answer;
* pooled: s B, where B is the crowd's mean row. B is a parameter as well. The objective that both
  climb is  log P(labels) - s sum_w KL(B || row_w): for given B the best row is
  (counts + s B) / (n + s), and for given rows the best B is their normalised geometric mean. Each
  M-step takes one turn of both, so the objective cannot fall.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.em import log_floored

__all__ = ["SmoothedRows", "Smoothing", "mean_rows", "smoothed_rows"]

Smoothing = Literal["flat", "diagonal", "pooled"]


class SmoothedRows(NamedTuple):
    """Result of `smoothed_rows`."""

    rows: Float[np.ndarray, "worker cls observed"]
    """P(observed | true) of each worker; sums to one over the last axis."""
    log_rows: Float[np.ndarray, "worker cls observed"]
    """Their logarithms, finite."""
    penalty: float
    """log prior density of the rows up to a constant, nats."""
    centre: Float[np.ndarray, "cls observed"] | None
    """The crowd's mean rows for the next M-step where workers are pooled, else None."""


def smoothed_rows(
    counts: Float[np.ndarray, "worker cls observed"],
    *,
    base: Float[np.ndarray, "cls observed"] | None,
    pseudo_counts: float,
    centre: Float[np.ndarray, "cls observed"] | None,
) -> SmoothedRows:
    """Rows that maximise expected log-likelihood plus log prior.

    A row without counts and pseudo-counts is uniform: nothing is known of it.

    Args:
        counts: expected number of labels.
        base: where a row's pseudo-counts go, summing to one; None pools toward the crowd.
        pseudo_counts: pseudo-counts per row.
        centre: the crowd's mean rows of the M-step before, when pooling; None at the first.

    Examples:
        >>> import numpy as np
        >>> counts = np.array([[[3.0, 1.0], [0.0, 0.0]]])
        >>> smoothed_rows(counts, base=np.full((2, 2), 0.5), pseudo_counts=2.0, centre=None).rows
        array([[[0.66666667, 0.33333333],
                [0.5       , 0.5       ]]])
    """
    pooled = base is None
    if base is None:
        base = mean_rows(counts) if centre is None else centre
    rows = counts + pseudo_counts * base
    # einsum, since NumPy's sum is slow along an axis as short as this one.
    totals = np.einsum("wko->wk", rows)[:, :, None]
    if (totals == 0).any():
        rows = np.where(totals > 0, rows, 1.0)
        totals = np.where(totals > 0, totals, rows.shape[2])
    rows /= totals
    log_rows = log_floored(rows)
    if pseudo_counts == 0:
        return SmoothedRows(rows, log_rows, 0.0, None)
    active = np.einsum("wko->w", counts) > 0
    active_rows = log_rows if active.all() else log_rows[active]
    if not pooled:
        penalty = pseudo_counts * float(np.einsum("ko,wko->", base, active_rows))
        return SmoothedRows(rows, log_rows, penalty, None)
    mean_log = active_rows.mean(axis=0)
    centre = np.exp(mean_log)
    centre /= centre.sum(axis=1, keepdims=True)
    divergence = float((centre * (log_floored(centre) - mean_log)).sum())
    return SmoothedRows(rows, log_rows, -pseudo_counts * len(active_rows) * divergence, centre)


def mean_rows(
    counts: Float[np.ndarray, "worker cls observed"],
) -> Float[np.ndarray, "cls observed"]:
    """The crowd's mean confusion matrix, each label counting once; uniform where nothing is."""
    total = counts.sum(axis=0)
    mass = total.sum(axis=1, keepdims=True)
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), 1.0 / total.shape[1])
