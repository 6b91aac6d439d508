"""Opt-D&S: Dawid–Skene EM from confusion matrices found by the method of moments.

Zhang, Chen, Zhou and Jordan 2014, 'Spectral methods meet EM: a provably optimal algorithm for
crowdsourcing', algorithm 1. The workers are cut into three groups. Z_g is the group's votes per
task and class (eq. 1), a view of the truth y that is independent of the other two given y:
E[Z_g | y = h] is column h of C_g, and P(y = h) = w_h. With M_ab = mean of Z_a Z_b' over tasks,

    M_cb M_ab^-1 = C_c C_a^-1   carries view a to view c               (eqs. 2a, 2b)
    M2 = sum_h w_h mu_h mu_h',  M3 = sum_h w_h mu_h x mu_h x mu_h      (eqs. 2c, 2d)

where mu_h are the columns of C_c and M2, M3 are means of products of the carried views. M2 whitens
M3 into an orthogonal tensor whose eigenvectors (`orthogonal_tensor.py`) give C_c and w. A worker's
matrix follows from the mean product of their labels with the other groups' votes (eq. 3):

    [observed, true] = normalise( (mean of z_i Z_a') (W C_a')^-1 )

Three views give three sets of columns in three orders. Taking each column for the class of its
largest entry fails for groups that err; here the columns of view a are matched by the Hungarian
method to M_ac (W C_c')^-1, the same matrix as seen from view c. Other departures: in eq. 3 'a' is
both other groups together; random groups have about equally many labels; hidden classes are named
by gold where there is some, else so that most labels agree with EM's result.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.em import log_floored
from bayescrowd.aggregation.orthogonal_tensor import symmetrised, tensor_power
from bayescrowd.aggregation.protocol import (
    Aggregation,
    Aggregator,
    confusion_frame,
    estimate_of,
    incidence,
)
from bayescrowd.aggregation.smoothing import Smoothing
from bayescrowd.annotations import Annotations

__all__ = [
    "DegenerateMoments",
    "SpectralDawidSkene",
    "SpectralStart",
    "random_groups",
    "spectral_start",
]

N_GROUPS = 3

_MAX_DRAWS = 10
"""A random partition with degenerate moments is drawn again, so often in all."""

_MAX_CLASSES = 100
"""Third moments have n_classes ** 3 entries, and the power method visits all of them per step."""

_SINGULAR = 1e-10
"""Singular values below this share of the largest are zero."""


class SpectralStart(NamedTuple):
    """Where EM starts."""

    confusions: Float[np.ndarray, "worker cls observed"]
    """P(observed | true) of each worker, no entry zero."""
    priors: Float[np.ndarray, " cls"]
    """P(class), the mean over the three views."""


class DegenerateMoments(ValueError):
    """The moments of this partition do not determine confusion matrices."""


class SpectralDawidSkene(Aggregator):
    """Dawid–Skene EM from a spectral start (opt-D&S of Zhang et al. 2014).

    The start needs no majority that is right: where many workers are careless in the same way,
    EM from a majority vote ends in a poor maximum and this one does not. It needs three groups of
    workers who each tell all classes apart, and enough tasks labelled by all three. Where a random
    partition's moments are degenerate it is drawn again; where all are (fewer than three workers,
    a class that nobody uses, groups without common tasks), EM starts from the majority vote, and a
    `ConvergenceWarning` says so.

    Args:
        partition: 'random', or worker -> one of three groups, for every worker.
        n_partitions: number of random partitions; EM runs from each, the highest objective wins.
        clip: lower threshold on the entries of the starting matrices, below one half. Estimates of
            workers with few labels err by more than the default; with 0.01 one seed of 20 on the
            set web ends at 33 % error, with the default the worst is 17 %.
        prior: class prior in EM, 'learned', or 'uniform' as in the paper (eq. 4), which costs
            dearly where classes are unequal.
        smoothing: where the pseudo-counts of a confusion row go; see `DawidSkene`.
        pseudo_counts: how many per row; 0 is the paper's. The default, one label spread evenly,
            has median errors of 10.2, 7.1, 29.5 and 15.7 % on bluebird, rte, trec and dog over
            20 seeds.
        zeros: what a label of probability zero does; see `DawidSkene`.
        n_iter: most EM iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: partitions, starts of the power method, ties.

    Attributes:
        start_: 'spectral', or 'majority' where the moments were degenerate.
        partition_: group 0, 1 or 2 of each worker; None if `start_` is 'majority'.
        initial_confusions_: what EM started from, indexed like `confusions_`; None if `start_` is
            'majority'.
        trace_: log-likelihood plus log prior density after each iteration, nats.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(300, 12, 3, spammers=0.3, seed=0)
        >>> est = bc.SpectralDawidSkene(seed=1).fit(crowd.annotations)
        >>> est.start_
        'spectral'
        >>> bool((est.labels_ == crowd.truth).mean() > 0.95)
        True
    """

    _model_name = "dawid_skene"

    def __init__(
        self,
        *,
        partition: str | pd.Series | Mapping[Any, Any] = "random",
        n_partitions: int = 1,
        clip: float = 0.1,
        prior: Literal["learned", "uniform"] = "learned",
        smoothing: Smoothing = "flat",
        pseudo_counts: float = 1.0,
        zeros: Literal["floor", "skip"] = "floor",
        n_iter: int = 200,
        tol: float = 1e-7,
        seed: int = 0,
    ) -> None:
        self.partition = partition
        self.n_partitions = n_partitions
        self.clip = clip
        self.prior = prior
        self.smoothing = smoothing
        self.pseudo_counts = pseudo_counts
        self.zeros = zeros
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        self._check_parameters()
        starts, trouble = self._starts(ann)
        if not starts:
            warnings.warn(
                f"EM starts from the majority vote, not from a spectral estimate: {trouble}",
                ConvergenceWarning,
                stacklevel=3,
            )
            self.start_ = "majority"
            self.partition_ = self.initial_confusions_ = None
            return self._em("majority")._aggregate(ann, fixed)
        has_gold = bool((fixed >= 0).any())
        if has_gold:
            starts = [(groups, _named_by_gold(start, ann, fixed)) for groups, start in starts]
        runs = [self._em(start.confusions)._aggregate(ann, fixed) for _, start in starts]
        best = max(range(len(runs)), key=lambda run: runs[run].trace[-1])
        groups, start = starts[best]
        found = runs[best]
        if not has_gold and (self.smoothing != "diagonal" or self.pseudo_counts == 0):
            found, start = _named_by_crowd(found, start)
        self.start_ = "spectral"
        self.partition_ = pd.Series(groups, index=ann.workers, name="group")
        self.initial_confusions_ = confusion_frame(start.confusions, ann)
        return found

    def _starts(
        self, ann: Annotations
    ) -> tuple[list[tuple[Int[np.ndarray, " worker"], SpectralStart]], str]:
        """Groups and starts of the partitions asked for, and why others were given up."""
        found: list[tuple[Int[np.ndarray, " worker"], SpectralStart]] = []
        given = None if isinstance(self.partition, str) else _given_groups(self.partition, ann)
        n_draws = 1 if given is not None else self.n_partitions * _MAX_DRAWS
        trouble = ""
        for draw in range(n_draws):
            # Draw d of seed r is the same whatever n_partitions is.
            rng = np.random.default_rng([self.seed, draw])
            groups = random_groups(rng, ann) if given is None else given
            try:
                found.append((groups, spectral_start(rng, ann, groups, clip=self.clip)))
            except DegenerateMoments as error:
                trouble = str(error)
            if len(found) == self.n_partitions:
                break
        return found, trouble

    def _em(self, init: str | np.ndarray) -> DawidSkene:
        return DawidSkene(
            init=init,
            prior=self.prior,
            smoothing=self.smoothing,
            pseudo_counts=self.pseudo_counts,
            zeros=self.zeros,
            n_iter=self.n_iter,
            tol=self.tol,
            seed=self.seed,
        )

    def _check_parameters(self) -> None:
        self._em("majority")._check_parameters()
        if isinstance(self.partition, str) and self.partition != "random":
            raise ValueError(f"partition={self.partition!r}: expected 'random' or worker -> group")
        if self.n_partitions < 1:
            raise ValueError(f"n_partitions={self.n_partitions}: expected at least 1")
        if self.n_partitions > 1 and not isinstance(self.partition, str):
            raise ValueError(f"n_partitions={self.n_partitions}: expected 1 for a given partition")
        if not 0 < self.clip < 0.5:
            raise ValueError(f"clip={self.clip}: expected a number between 0 and 0.5")


def random_groups(rng: np.random.Generator, ann: Annotations) -> Int[np.ndarray, " worker"]:
    """Three random groups of workers with about equally many labels.

    Workers are ranked by their number of labels and each three neighbours drawn into different
    groups. Ranks are settled by what workers said and not by their names or order.
    """
    marks = np.random.default_rng(0).random(ann.n_tasks * ann.n_classes)
    shown = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    content = np.bincount(ann.worker_codes, marks[shown], minlength=ann.n_workers)
    ranked = np.lexsort((content, ann.labels_per_worker))[::-1]
    n_triples = -(-ann.n_workers // N_GROUPS)
    draws = rng.permuted(np.tile(np.arange(N_GROUPS), (n_triples, 1)), axis=1).ravel()
    groups = np.empty(ann.n_workers, dtype=np.int64)
    groups[ranked] = draws[: ann.n_workers]
    return groups


def spectral_start(
    rng: np.random.Generator,
    ann: Annotations,
    groups: Int[np.ndarray, " worker"],
    *,
    clip: float,
) -> SpectralStart:
    """Confusion matrices by the method of moments (algorithm 1).

    Args:
        rng: starts of the power method.
        ann: the labels.
        groups: group 0, 1 or 2 of each worker.
        clip: lower threshold on the entries of the matrices.

    Raises:
        DegenerateMoments: the moments of these groups do not determine the matrices.
    """
    n_classes = ann.n_classes
    if n_classes > _MAX_CLASSES:
        raise DegenerateMoments(
            f"third moments of {n_classes} classes are too large; at most {_MAX_CLASSES}"
        )
    views = [_view(ann, groups, group) for group in range(N_GROUPS)]
    votes = [view.votes for view in views]
    if not all(vote.any() for vote in votes):
        raise DegenerateMoments("three groups of workers with labels are needed")
    pair_moments = _pair_moments(votes)
    third_moment = _third_moment(votes)
    factors = [_factors_of_view(rng, c, pair_moments, third_moment) for c in range(N_GROUPS)]
    columns, priors = _aligned(factors, pair_moments)
    confusions = np.empty((ann.n_workers, n_classes, n_classes))
    for group, view in enumerate(views):
        mine = groups == group
        others = [other for other in range(N_GROUPS) if other != group]
        expected = sum(columns[other] for other in others) * priors
        inverse = _inverse(expected.T, "the votes of two groups together")
        products = view.labels.T @ sum(votes[other] for other in others) / ann.n_tasks
        confusions[mine] = (products.reshape(-1, n_classes, n_classes) @ inverse)[mine]
    # Per label of the worker, so that `clip` means the same for the busy and the rare.
    share = np.maximum(ann.labels_per_worker, 1)[:, None, None] / ann.n_tasks
    clipped = np.maximum(confusions / share, clip)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return SpectralStart(np.ascontiguousarray(clipped.transpose(0, 2, 1)), priors / priors.sum())


class _View(NamedTuple):
    """What one group of workers says."""

    votes: Float[np.ndarray, "item cls"]
    """Z_g of eq. 1 times the size of the group: labels per task and class."""
    labels: scipy.sparse.csr_matrix
    """Items x (worker, label) symbols, with a one per label of the group."""


def _view(ann: Annotations, groups: Int[np.ndarray, " worker"], group: int) -> _View:
    rows = np.flatnonzero(groups[ann.worker_codes] == group)
    tasks, labels = ann.task_codes[rows].astype(np.int64), ann.label_codes[rows]
    shape = (ann.n_tasks, ann.n_classes)
    votes = np.bincount(tasks * ann.n_classes + labels, minlength=shape[0] * shape[1])
    symbols = ann.worker_codes[rows].astype(np.int64) * ann.n_classes + labels
    offsets = np.concatenate([[0], np.cumsum(np.bincount(tasks, minlength=ann.n_tasks))])
    incidences = scipy.sparse.csr_matrix(
        (np.ones(len(rows)), symbols, offsets), shape=(ann.n_tasks, ann.n_workers * ann.n_classes)
    )
    return _View(votes.reshape(shape).astype(float), incidences)


def _pair_moments(
    votes: list[Float[np.ndarray, "item cls"]],
) -> dict[tuple[int, int], Float[np.ndarray, "cls cls"]]:
    """M_ab: mean over tasks of Z_a Z_b', for all a other than b."""
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
    """C_c and w, the hidden classes in any order."""
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
    found = tensor_power(rng, symmetrised(whitened))
    if found.values.min() <= 0:
        raise DegenerateMoments("the third moment has no positive factor for some class")
    # values = w ** -1/2, and vectors = whitening' mu / values.
    columns = (basis * np.sqrt(spectrum)) @ (found.vectors * found.values)
    return columns, found.values**-2.0


def _aligned(
    factors: list[tuple[Float[np.ndarray, "cls hidden"], Float[np.ndarray, " hidden"]]],
    pair_moments: dict[tuple[int, int], Float[np.ndarray, "cls cls"]],
) -> tuple[list[Float[np.ndarray, "cls hidden"]], Float[np.ndarray, " hidden"]]:
    """Columns of all groups in one order, named so that most votes are right, and mean priors."""
    reference, reference_priors = factors[0]
    columns, priors = [reference], [reference_priors]
    inverse = _inverse((reference * reference_priors).T, "the votes of one group")
    for group in range(1, N_GROUPS):
        own, own_priors = factors[group]
        seen = _summing_to_one(pair_moments[group, 0] @ inverse)
        distance = (seen[:, :, None] - _summing_to_one(own)[:, None, :]) ** 2
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


def _summing_to_one(columns: Float[np.ndarray, "cls hidden"]) -> Float[np.ndarray, "cls hidden"]:
    sums = columns.sum(axis=0)
    return columns / np.where(sums != 0, sums, 1.0)


def _named_by_gold(
    start: SpectralStart, ann: Annotations, fixed: Int[np.ndarray, " item"]
) -> SpectralStart:
    """Name the hidden classes by the tasks whose class is known; the crowd weighs one nat."""
    known = np.flatnonzero(fixed >= 0)
    scores = incidence(ann).scores(estimate_of(log_floored(start.confusions), start.priors))[known]
    scores -= scores.max(axis=1, keepdims=True)
    evidence = np.zeros((ann.n_classes, ann.n_classes))
    np.add.at(evidence, fixed[known], scores)
    crowd = np.einsum("who,w->oh", start.confusions, ann.labels_per_worker / ann.n_labels)
    hidden = linear_sum_assignment(evidence + crowd * start.priors, maximize=True)[1]
    return SpectralStart(start.confusions[:, hidden], start.priors[hidden])


def _named_by_crowd(found: Aggregation, start: SpectralStart) -> tuple[Aggregation, SpectralStart]:
    """Name the hidden classes so that most labels agree with them."""
    hidden = linear_sum_assignment(found.crowd_counts.T, maximize=True)[1]
    return found.renamed(hidden), SpectralStart(start.confusions[:, hidden], start.priors[hidden])


def _given_groups(
    partition: str | pd.Series | Mapping[Any, Any], ann: Annotations
) -> Int[np.ndarray, " worker"]:
    """The user's groups as 0, 1, 2, in the order of their names."""
    given = pd.Series(partition)
    positions = given.index.get_indexer(ann.workers)
    if (positions < 0).any():
        missing = ann.workers[int(np.flatnonzero(positions < 0)[0])]
        raise ValueError(f"partition names no group for worker {missing!r}")
    codes, names = pd.factorize(given.to_numpy()[positions], sort=True)
    if len(names) != N_GROUPS or (codes < 0).any():
        raise ValueError(f"partition has {len(names)} groups of these workers; expected {N_GROUPS}")
    return codes.astype(np.int64)
