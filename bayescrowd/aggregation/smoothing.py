"""Rows of confusion matrices from expected counts, with pseudo-counts in every M-step.

A row is P(observed | true) of one worker. Pseudo-counts are the M-step of a Dirichlet prior
with parameters 1 + pseudo: the row is (counts + pseudo) / sum. With `s` pseudo-counts per row:

* flat: s / C on each of the C outcomes;
* diagonal: all s on the right answer;
* pooled: s B, where B is the crowd's mean row. B is a parameter as well. The common objective is
  log P(labels) - s sum_w KL(B || row_w): for given B the best row is (counts + s B) / (n + s), and
  for given rows the best B is their normalised geometric mean. Each M-step updates both once, so
  the objective cannot fall.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.em import LOG_FLOOR, floored_log
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import blocks

__all__ = [
    "SmoothedPairs",
    "SmoothedRows",
    "Smoothing",
    "crowd_rows",
    "mean_rows",
    "pulled_log_rows",
    "smoothed_pairs",
    "smoothed_rows",
]

Smoothing = Literal["flat", "diagonal", "pooled"]


class SmoothedRows(NamedTuple):
    """Result of `smoothed_rows`."""

    rows: Float[np.ndarray, "worker cls observed"]
    """P(observed | true) of each worker; the last axis sums to one."""
    log_rows: Float[np.ndarray, "worker cls observed"]
    """Finite logarithms of the rows."""
    penalty: float
    """log prior density of the rows up to a constant, nats."""
    centre: Float[np.ndarray, "cls observed"] | None
    """The crowd's mean rows for the next M-step where workers are pooled, else None."""


class SmoothedPairs(NamedTuple):
    """Result of `smoothed_pairs`."""

    log_rows: Float[np.ndarray, "symbol cls"]
    """log P(label | class) of the pairs that occur; finite."""
    scale: Float[np.ndarray, "worker cls"]
    """Factor of the base in the probabilities of labels that the worker has not given."""
    base: Float[np.ndarray, "cls observed"]
    """What rows are pulled toward."""
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

    A row without counts and pseudo-counts is uniform, because nothing is known about it.

    Args:
        counts: expected number of labels.
        base: distribution of a row's pseudo-counts; None pools toward the crowd.
        pseudo_counts: pseudo-counts per row.
        centre: the crowd's mean rows of the previous M-step, if pooling; None at first.

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
    # einsum, because NumPy's sum is slow along an axis as short as this one.
    totals = np.einsum("wko->wk", rows)[:, :, None]
    if (totals == 0).any():
        rows = np.where(totals > 0, rows, 1.0)
        totals = np.where(totals > 0, totals, rows.shape[2])
    rows /= totals
    log_rows = floored_log(rows)
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
    divergence = float((centre * (floored_log(centre) - mean_log)).sum())
    return SmoothedRows(rows, log_rows, -pseudo_counts * len(active_rows) * divergence, centre)


def smoothed_pairs(
    pairs: WorkerLabelPairs,
    counts: Float[np.ndarray, "symbol cls"],
    *,
    base: Float[np.ndarray, "cls observed"] | None,
    pseudo_counts: float,
    centre: Float[np.ndarray, "cls observed"] | None,
    out: Float[np.ndarray, "symbol cls"] | None = None,
) -> SmoothedPairs:
    """The result of `smoothed_rows` for the pairs of a worker and a label that occur.

    A label that a worker has not given has the probability s B_kl / (n_wk + s), so that sums over
    all labels need no table of workers x classes^2 entries.

    Args:
        pairs: the pairs.
        counts: expected number of labels of each pair.
        base: as for `smoothed_rows`.
        pseudo_counts: as for `smoothed_rows`.
        centre: as for `smoothed_rows`.
        out: array to write the logarithms to; None makes a new one.
    """
    n_classes = pairs.n_classes
    pooled = base is None
    if base is None:
        base = crowd_rows(pairs, counts) if centre is None else centre
    totals = pairs.by_worker(counts)
    if pseudo_counts == 0:
        uniform = np.full((n_classes, n_classes), 1.0 / n_classes)
        log_rows, scale = pulled_log_rows(
            pairs, counts, totals, base=uniform, strength=0.0, out=out
        )
        return SmoothedPairs(log_rows, scale, uniform, 0.0, None)
    log_rows, scale = pulled_log_rows(
        pairs, counts, totals, base=base, strength=pseudo_counts, out=out
    )
    total_log, n_active = _sum_logs(pairs, log_rows, totals, base, pseudo_counts)
    if not pooled:
        penalty = pseudo_counts * float((base * total_log).sum())
        return SmoothedPairs(log_rows, scale, base, penalty, None)
    mean_log = total_log / n_active
    centre = np.exp(mean_log)
    centre /= centre.sum(axis=1, keepdims=True)
    divergence = float((centre * (floored_log(centre) - mean_log)).sum())
    return SmoothedPairs(log_rows, scale, base, -pseudo_counts * n_active * divergence, centre)


def pulled_log_rows(
    pairs: WorkerLabelPairs,
    counts: Float[np.ndarray, "symbol cls"],
    totals: Float[np.ndarray, "worker cls"],
    *,
    base: Float[np.ndarray, "cls observed"],
    strength: float,
    out: Float[np.ndarray, "symbol cls"] | None = None,
) -> tuple[Float[np.ndarray, "symbol cls"], Float[np.ndarray, "worker cls"]]:
    """Logarithm of (counts + s B) / (n + s) for the pairs that occur, and s / (n + s).

    A row without counts is the base, with or without pseudo-counts. The logarithms are written to
    `out` if it is given.
    """
    # Without pseudo-counts, an empty row gets one.
    added = np.where(totals > 0, 0.0, 1.0) if strength == 0 else np.full((1, 1), strength)
    given = totals + added
    pseudo = np.ascontiguousarray(base.T) * (strength if strength > 0 else 1.0)
    log_rows = np.empty(counts.shape) if out is None else out
    for part in blocks(len(counts), counts.shape[1]):
        worker = pairs.worker[part]
        # take with clip is twice as fast as an index for rows as short as these.
        rows = pseudo.take(pairs.label[part], axis=0, mode="clip")
        if strength == 0:
            rows *= added.take(worker, axis=0, mode="clip")
        rows += counts[part]
        rows /= given.take(worker, axis=0, mode="clip")
        log_rows[part] = floored_log(rows)
    return log_rows, added / given


def _sum_logs(
    pairs: WorkerLabelPairs,
    log_rows: Float[np.ndarray, "symbol cls"],
    totals: Float[np.ndarray, "worker cls"],
    base: Float[np.ndarray, "cls observed"],
    strength: float,
) -> tuple[Float[np.ndarray, "cls observed"], int]:
    """Sum of the log rows of the workers with labels, and the number of these workers.

    The entry of a label that a worker has not given is log(s B_kl) - log(n_wk + s).
    """
    log_given = np.log(totals + strength)
    silent = pairs.silent
    log_given[silent] = 0.0
    n_active = int((~silent).sum())
    n_seen = np.bincount(pairs.label, minlength=pairs.n_classes)
    log_base = floored_log(strength * base)
    seen_given = pairs.by_label_of_workers(log_given).T
    # einsum, because NumPy's sum is slow where the other axis is as short as this one.
    all_given = np.einsum("wk->k", log_given)[:, None]
    unseen = (n_active - n_seen) * log_base - (all_given - seen_given)
    # As in the table, no log is below the floor; a base that is next to it stays there.
    is_floored = log_base - np.log(pairs.labels_per_worker.max() + strength) < LOG_FLOOR
    unseen = np.where(is_floored, (n_active - n_seen) * LOG_FLOOR, unseen)
    return pairs.by_label(log_rows).T + unseen, n_active


def crowd_rows(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
) -> Float[np.ndarray, "cls observed"]:
    """`mean_rows` of the counts of pairs."""
    return mean_rows(pairs.by_label(counts).T[None])


def mean_rows(
    counts: Float[np.ndarray, "worker cls observed"],
) -> Float[np.ndarray, "cls observed"]:
    """The crowd's mean confusion matrix, with equal weights of labels; empty rows are uniform."""
    total = counts.sum(axis=0)
    mass = total.sum(axis=1, keepdims=True)
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), 1.0 / total.shape[1])
