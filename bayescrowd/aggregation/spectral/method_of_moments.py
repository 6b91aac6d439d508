"""Confusion matrices by the method of moments: algorithm 1 of Zhang, Chen, Zhou and Jordan (2014).

The formulas and the departures from the paper are in `estimator.py`, which runs EM from the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.aggregation.spectral.orthogonal_tensor import symmetrise, tensor_power
from bayescrowd.aggregation.spectral.worker_groups import N_GROUPS, group_votes
from bayescrowd.checks.memory import check_fits
from bayescrowd.data.annotations import Annotations

__all__ = ["DegenerateMoments", "SpectralStart", "spectral_start"]

_MAX_CLASSES = 100
"""Largest number of classes; each step of the power method reads n_classes ** 3 entries."""

_MATRIX_TABLES = 4
"""Number of tables of all workers' matrices that are in memory at a time (measured)."""

_SINGULAR = 1e-10
"""Singular values below this fraction of the largest count as zero."""


class SpectralStart(NamedTuple):
    """Where EM starts."""

    confusions: Float[np.ndarray, "worker cls observed"]
    """P(observed | true) of each worker, without zeros."""
    priors: Float[np.ndarray, " cls"]
    """P(class), the mean over the three views."""


class DegenerateMoments(ValueError):
    """The moments of this partition do not determine confusion matrices."""


def spectral_start(
    rng: np.random.Generator,
    ann: Annotations,
    groups: Int[np.ndarray, " worker"],
    *,
    clip: float,
) -> SpectralStart:
    """Confusion matrices by the method of moments (algorithm 1).

    Args:
        rng: source of the starts of the power method.
        ann: the labels.
        groups: group 0, 1 or 2 of each worker.
        clip: lower threshold on the entries of the matrices.

    Raises:
        DegenerateMoments: the moments of these groups do not determine the matrices.
        ValueError: the matrices of all workers do not fit into memory.
    """
    n_classes = ann.n_classes
    if n_classes > _MAX_CLASSES:
        raise DegenerateMoments(
            f"third moments of {n_classes} classes are too large; expected at most {_MAX_CLASSES}"
        )
    votes = group_votes(ann, groups)
    if not all(vote.any() for vote in votes):
        raise DegenerateMoments("fewer than three groups of workers have labels")
    pair_moments = _pair_moments(votes)
    third_moment = _third_moment(votes)
    factors = [_factors_of_view(rng, c, pair_moments, third_moment) for c in range(N_GROUPS)]
    columns, priors = _align(factors, pair_moments)
    check_fits(
        _MATRIX_TABLES * 8.0 * ann.n_workers * n_classes**2,
        f"starting matrices of {ann.n_workers:,} workers and {n_classes:,} classes",
        "DawidSkene starts from votes and does without a table of them",
    )
    confusions = np.empty((ann.n_workers, n_classes, n_classes))
    for group in range(N_GROUPS):
        mine = groups == group
        others = [other for other in range(N_GROUPS) if other != group]
        expected = sum(columns[other] for other in others) * priors
        inverse = _inverse(expected.T, "the votes of two groups together")
        rest = sum(votes[other] for other in others)
        products = _labels_of(group, groups, ann).T @ rest / ann.n_tasks
        confusions[mine] = (products.reshape(-1, n_classes, n_classes) @ inverse)[mine]
    # Per label of the worker, so that `clip` means the same for workers with many and few labels.
    share = np.maximum(ann.labels_per_worker, 1)[:, None, None] / ann.n_tasks
    clipped = np.maximum(confusions / share, clip)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return SpectralStart(np.ascontiguousarray(clipped.transpose(0, 2, 1)), priors / priors.sum())


def _labels_of(
    group: int, groups: Int[np.ndarray, " worker"], ann: Annotations
) -> scipy.sparse.csr_matrix:
    """Items x (worker, label) symbols, with a one per label of the group."""
    rows = np.flatnonzero(groups[ann.worker_codes] == group)
    tasks, labels = ann.task_codes[rows], ann.label_codes[rows]
    symbols = ann.worker_codes[rows].astype(np.int64) * ann.n_classes + labels
    offsets = np.concatenate([[0], np.cumsum(np.bincount(tasks, minlength=ann.n_tasks))])
    shape = (ann.n_tasks, ann.n_workers * ann.n_classes)
    return scipy.sparse.csr_matrix((np.ones(len(rows)), symbols, offsets), shape=shape)


def _pair_moments(
    votes: list[Float[np.ndarray, "item cls"]],
) -> dict[tuple[int, int], Float[np.ndarray, "cls cls"]]:
    """M_ab, the mean over tasks of Z_a Z_b', for all a other than b."""
    return {
        (a, b): votes[a].T @ votes[b] / len(votes[a])
        for a in range(N_GROUPS)
        for b in range(N_GROUPS)
        if a != b
    }


def _third_moment(votes: list[Float[np.ndarray, "item cls"]]) -> Float[np.ndarray, "cls cls cls"]:
    """Mean over tasks of Z_0 x Z_1 x Z_2."""
    first, second, third = votes
    slices = [(first * share[:, None]).T @ second for share in third.T]
    return np.stack(slices, axis=2) / len(first)


def _factors_of_view(
    rng: np.random.Generator,
    c: int,
    pair_moments: dict[tuple[int, int], Float[np.ndarray, "cls cls"]],
    third_moment: Float[np.ndarray, "cls cls cls"],
) -> tuple[Float[np.ndarray, "cls hidden"], Float[np.ndarray, " hidden"]]:
    """C_c and w, with the hidden classes in any order."""
    a, b = (group for group in range(N_GROUPS) if group != c)
    what = "the common votes of two groups"
    from_a = pair_moments[c, b] @ _inverse(pair_moments[a, b], what)  # eq. 2a
    from_b = pair_moments[c, a] @ _inverse(pair_moments[b, a], what)  # eq. 2b
    second = from_a @ pair_moments[a, c]  # eq. 2c; the inverses cancel against M_ab
    spectrum, basis = np.linalg.eigh((second + second.T) / 2)
    if spectrum[0] <= _SINGULAR * spectrum[-1]:
        raise DegenerateMoments(
            "the second moment is not positive definite: the labels are too few or too noisy to "
            f"tell {len(spectrum)} classes apart"
        )
    whitening = basis / np.sqrt(spectrum)
    whitened = np.einsum(  # eq. 2d, seen through the whitening
        "ijk,ix,jy,kz->xyz",
        third_moment.transpose(a, b, c),
        from_a.T @ whitening,
        from_b.T @ whitening,
        whitening,
        optimize=True,
    )
    found = tensor_power(rng, symmetrise(whitened))
    if found.values.min() <= 0:
        raise DegenerateMoments("the third moment has no positive factor for some class")
    # values = w ** -1/2, and vectors = whitening' mu / values.
    columns = (basis * np.sqrt(spectrum)) @ (found.vectors * found.values)
    return columns, found.values**-2.0


def _align(
    factors: list[tuple[Float[np.ndarray, "cls hidden"], Float[np.ndarray, " hidden"]]],
    pair_moments: dict[tuple[int, int], Float[np.ndarray, "cls cls"]],
) -> tuple[list[Float[np.ndarray, "cls hidden"]], Float[np.ndarray, " hidden"]]:
    """Columns of all groups in the order in which most votes are right, and the mean priors."""
    reference, reference_priors = factors[0]
    columns, priors = [reference], [reference_priors]
    inverse = _inverse((reference * reference_priors).T, "the votes of one group")
    for group in range(1, N_GROUPS):
        own, own_priors = factors[group]
        seen = _normalise_columns(pair_moments[group, 0] @ inverse)
        distance = (seen[:, :, None] - _normalise_columns(own)[:, None, :]) ** 2
        order = linear_sum_assignment(distance.sum(axis=0))[1]
        columns.append(own[:, order])
        priors.append(own_priors[order])
    mean_priors = np.mean(priors, axis=0)
    joint = sum(columns) * mean_priors
    order = linear_sum_assignment(joint, maximize=True)[1]
    return [column[:, order] for column in columns], mean_priors[order]


def _inverse(matrix: Float[np.ndarray, "row column"], what: str) -> Float[np.ndarray, "column row"]:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if not sizes[-1] > _SINGULAR * sizes[0]:
        raise DegenerateMoments(
            f"the moments of {what} have rank {int((sizes > _SINGULAR * sizes[0]).sum())}, below "
            f"the {len(sizes)} classes"
        )
    return np.linalg.inv(matrix)


def _normalise_columns(columns: Float[np.ndarray, "cls hidden"]) -> Float[np.ndarray, "cls hidden"]:
    sums = columns.sum(axis=0)
    return columns / np.where(sums != 0, sums, 1.0)
