"""M-MSR: worker skills from pairwise agreement, by robust rank-one matrix completion.

Ma and Olshevsky 2020, 'Adversarial crowdsourcing through robust rank-one matrix completion'. In the
one-coin model with K classes, let s_w = (K p_w - 1) / (K - 1) be worker w's accuracy p_w scaled so
that guessing is 0. Two workers agree on a share C_vw of their common tasks that has mean

    E[(K C_vw - 1) / (K - 1)] = s_v s_w

so the skills form a rank-one matrix that is observed at the pairs with common tasks. Some entries
are corrupt because some workers do not follow the model. The Matrix-Mean-Subsequence-Reduced
algorithm fits u_v u'_w to the sizes |X_vw| of the entries by turns: each u_v becomes the mean of
|X_vw| / u'_w over its neighbours w, without the F largest of those that exceed the present u_v and
the F smallest of those below it (the paper's algorithm 1). Signs come from the signs of X, and
labels from the vote with weights log((K - 1) p_w / (1 - p_w)), which is the posterior of the
one-coin model.

Departures from the paper. The start is the same for all workers, not random, so that the answer
does not depend on their order. By default, trimming depends on each worker's own number of
neighbours; the paper's program takes the smallest number for all, so that one worker with three
neighbours switches all trimming off. Signs are those of the leading eigenvector of the signed
agreement, found by power iteration that starts with trust in everybody, instead of the paper's
graph with an extra vertex per positive entry. A worker who shares no task with anybody gets the
mean skill instead of none.

The pairs come from products of sparse matrices. Their number, and with it the cost, is at most the
sum over tasks of the squared number of labels.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.protocol import (
    Aggregation,
    Aggregator,
)
from bayescrowd.aggregation.smoothing import crowd_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import CoinRows
from bayescrowd.checks.parameters import Count, Seed, Tolerance, Whole
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import Course, Step, settle

__all__ = ["MMSR", "WorkerPairs", "agreement", "complete"]

_SIGN_ITERATIONS = 200
"""Number of power iterations for the signs of the skills."""


class WorkerPairs(NamedTuple):
    """Ordered pairs of different workers with common tasks, grouped by the first worker."""

    first: Int[np.ndarray, " pair"]
    """First worker of each pair, ascending."""
    second: Int[np.ndarray, " pair"]
    """Second worker of each pair."""
    n_common: Float[np.ndarray, " pair"]
    """Number of pairs of labels that the two gave to the same task."""
    value: Float[np.ndarray, " pair"]
    """(K C - 1) / (K - 1), where C is the share of these pairs of labels that agree (X)."""
    offsets: Int[np.ndarray, " worker_plus_1"]
    """Pairs with first worker w are those from `offsets[w]` up to `offsets[w + 1]`."""

    @property
    def degree(self) -> Int[np.ndarray, " worker"]:
        """Number of workers with whom each worker shares a task."""
        return np.diff(self.offsets)


class Factors(NamedTuple):
    """A rank-one matrix, u_v u'_w."""

    u: Float[np.ndarray, " worker"]
    """One factor, the sizes |s_w|; it has no meaning for workers without neighbours."""
    other: Float[np.ndarray, " worker"]
    """The other factor, of the same norm."""


class MMSR(Aggregator):
    """Robust rank-one completion of the workers' agreement, then a weighted vote.

    It is made for crowds in which a minority of workers do not follow the one-coin model, or
    conspire: where a quarter of a simulated crowd tell the same lies, its errors are 4.8 %, those
    of a vote 21 % and those of one-coin EM 18 %. The other workers must follow the model: errors on
    bluebird, rte, trec, dog and web are 28.7, 7.2, 36.4, 17.5 and 30.4 %. Known labels (`gold`)
    decide only their own tasks; skills come from agreement.

    Args:
        trim: how many of the largest and of the smallest neighbours each worker leaves out: a
            number, 'own' for half of the worker's number of neighbours minus one, or 'common' for
            half of the smallest number of neighbours of any worker minus one, as in the paper's
            program.
        n_iter: largest number of iterations.
        tol: stop when no skill changes by more than this; 0 runs n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        skills_: s of each worker, in [-1 / (K - 1), 1]; 0 is guessing. A worker who shares no task
            with another has the mean over labels.
        probas_: the posterior of the one-coin model under these skills and a uniform class prior.
        trace_: largest change of a skill in each iteration.

    Examples:
        >>> import bayescrowd as bc
        >>> accuracy = [0.9, 0.9, 0.9, 0.7, 0.7, 0.7, 0.2]  # skills 0.8, 0.4, -0.6
        >>> crowd = bc.simulate.one_coin_crowd(500, 7, 2, accuracy=accuracy, seed=0)
        >>> est = bc.MMSR().fit(crowd.annotations)
        >>> est.skills_.round(1).to_list()
        [0.8, 0.8, 0.8, 0.5, 0.5, 0.4, -0.6]
        >>> float((est.labels_ == crowd.truth).mean().round(2))
        0.98
    """

    def __init__(
        self,
        *,
        trim: Annotated[int, Whole(0)] | Literal["own", "common"] = "own",
        n_iter: Count = 1_000,
        tol: Tolerance = 1e-6,
        seed: Seed = 0,
    ) -> None:
        self.trim = trim
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = agreement(ann)
        resolution = min(1.0 / np.sqrt(ann.n_tasks), 0.5)
        completion = complete(
            pairs,
            trim=_trimmed_neighbours(pairs, self.trim),
            floor=resolution,
            n_iter=self.n_iter,
            tol=self.tol,
        )
        skills = _clip(completion.state.u * _signs(pairs), ann.n_classes, resolution)
        skills = _fill(skills, pairs, ann)
        self.skills_ = pd.Series(skills, index=ann.workers, name="skill")
        return _weighted_vote(ann, fixed, skills, completion)


def agreement(ann: Annotations) -> WorkerPairs:
    """How much each pair of workers agrees, scaled so that guessing is 0.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aa"), list("bb"), list("ab"), list("bb")])
        >>> agreement(ann).value
        array([0.5, 0.5])
    """
    n_classes = ann.n_classes
    ones = np.ones(ann.n_labels)
    cell = ann.task_codes.astype(np.int64) * n_classes + ann.label_codes
    shape = (ann.n_workers, ann.n_tasks * n_classes)
    answers = scipy.sparse.csr_matrix((ones, (ann.worker_codes, cell)), shape=shape)
    shape = (ann.n_workers, ann.n_tasks)
    tasks = scipy.sparse.csr_matrix((ones, (ann.worker_codes, ann.task_codes)), shape=shape)
    common = (tasks @ tasks.T).tocsr()
    common.setdiag(0)
    common.eliminate_zeros()
    common.sort_indices()
    first = np.repeat(np.arange(ann.n_workers), np.diff(common.indptr))
    second = common.indices.astype(np.int64)
    agreed = np.zeros(0)
    if len(first):  # SciPy cannot take no entries
        agreed = np.asarray((answers @ answers.T)[first, second]).ravel()
    value = (n_classes * agreed / common.data - 1) / (n_classes - 1)
    return WorkerPairs(first, second, common.data, value, common.indptr.astype(np.int64))


def complete(
    pairs: WorkerPairs, *, trim: Int[np.ndarray, " worker"], floor: float, n_iter: int, tol: float
) -> Course[Factors]:
    """Sizes |s| such that |s_v s_w| fits the sizes of most entries.

    Args:
        pairs: the entries.
        trim: how many neighbours each worker leaves out at either end.
        floor: lower bound of the sizes, by which the algorithm divides; the paper takes one over
            the square root of the number of tasks.
        n_iter: largest number of iterations.
        tol: stop when no size changes by more than this.
    """
    size = np.abs(pairs.value)

    def refine(factors: Factors) -> Step[Factors]:
        u = factors.u
        other = _trimmed_means(pairs, size / u[pairs.second], factors.other, trim)
        other = np.maximum(other, floor)
        moved = np.maximum(_trimmed_means(pairs, size / other[pairs.second], u, trim), floor)
        # Only the product is determined: give both factors the same norm.
        balance = np.sqrt(np.linalg.norm(moved) / np.linalg.norm(other))
        moved, other = moved / balance, other * balance
        change = float(np.abs(moved - u).max())
        return Step(Factors(moved, other), change, change)

    ones = np.ones(len(pairs.degree))
    return settle(refine, Factors(ones, ones), n_iter=n_iter, tol=tol)


def _trimmed_neighbours(
    pairs: WorkerPairs, trim: int | Literal["own", "common"]
) -> Int[np.ndarray, " worker"]:
    degree = pairs.degree
    if trim == "own":
        return np.maximum(degree // 2 - 1, 0)
    if trim == "common":
        trim = max(int(degree[degree > 0].min(initial=degree.max())) // 2 - 1, 0)
    return np.full(len(degree), int(trim))


def _trimmed_means(
    pairs: WorkerPairs,
    values: Float[np.ndarray, " pair"],
    present: Float[np.ndarray, " worker"],
    trim: Int[np.ndarray, " worker"],
) -> Float[np.ndarray, " worker"]:
    """Mean of each worker's values without the extremes; the present value if none are left."""
    n_workers = len(present)
    here = present[pairs.first]
    below = np.minimum(np.bincount(pairs.first, values < here, minlength=n_workers), trim)
    above = np.minimum(np.bincount(pairs.first, values > here, minlength=n_workers), trim)
    ascending = values[np.lexsort((values, pairs.first))]  # within each worker
    rank = np.arange(len(values)) - pairs.offsets[pairs.first]
    kept = (rank >= below[pairs.first]) & (rank < (pairs.degree - above)[pairs.first])
    n_kept = np.bincount(pairs.first, kept, minlength=n_workers)
    total = np.bincount(pairs.first, np.where(kept, ascending, 0.0), minlength=n_workers)
    return np.where(n_kept > 0, total / np.maximum(n_kept, 1), present)


def _signs(pairs: WorkerPairs) -> Float[np.ndarray, " worker"]:
    """1 for workers who agree with most, -1 for those who contradict them.

    They are the signs of the leading eigenvector of the agreement, weighted by the number of common
    labels. Power iteration from ones finds it in every connected part of the crowd at once, with
    the sign under which most of that part is trusted.
    """
    n_workers = len(pairs.degree)
    weight = pairs.n_common * pairs.value
    signed = scipy.sparse.csr_matrix(
        (weight, pairs.second, pairs.offsets), shape=(n_workers, n_workers)
    )
    total = np.bincount(pairs.first, np.abs(weight), minlength=n_workers)
    total = np.where(total > 0, total, 1.0)
    vector = np.ones(n_workers)
    for _ in range(_SIGN_ITERATIONS):
        # Adding the vector shifts the eigenvalues, which lie in [-1, 1], above 0.
        vector = vector + (signed @ vector) / total
        vector /= np.abs(vector).max()
    return np.where(vector >= 0, 1.0, -1.0)


def _clip(
    skills: Float[np.ndarray, " worker"], n_classes: int, resolution: float
) -> Float[np.ndarray, " worker"]:
    """Skills kept away from certainty by what the number of tasks can resolve."""
    return np.clip(skills, -1.0 / (n_classes - 1) + resolution, 1.0 - resolution)


def _fill(
    skills: Float[np.ndarray, " worker"], pairs: WorkerPairs, ann: Annotations
) -> Float[np.ndarray, " worker"]:
    """Give workers without neighbours the mean skill over labels, or 1/2 if nobody has any."""
    weight = np.where(pairs.degree > 0, ann.labels_per_worker, 0)
    mean = float(skills @ weight / weight.sum()) if weight.any() else 0.5
    return np.where(pairs.degree > 0, skills, mean)


def _weighted_vote(
    ann: Annotations,
    fixed: Int[np.ndarray, " item"],
    skills: Float[np.ndarray, " worker"],
    completion: Course[Factors],
) -> Aggregation:
    """The posterior of the one-coin model, with its rows."""
    n_classes = ann.n_classes
    pairs = WorkerLabelPairs(ann, fixed)
    right = (skills * (n_classes - 1) + 1)[:, None] / n_classes
    wrong = (1.0 - right) / (n_classes - 1)
    flat = np.full((n_classes, n_classes), 1.0 / n_classes)
    coins = CoinRows(right, wrong, stranger=flat, silent=pairs.silent)
    posterior = np.empty((ann.n_tasks, n_classes))
    table = floored_log(coins.at(pairs.worker, pairs.label))
    sweep = pairs.labels().sweep(EMEstimate(table, floored_log(flat[0]), 0.0, None), posterior)
    stranger = crowd_rows(pairs, sweep.counts)
    return Aggregation(
        posterior,
        flat[0],
        CoinRows(right, wrong, stranger=stranger, silent=pairs.silent),
        pairs,
        sweep.counts,
        sweep.log_likelihood,
        completion.trace,
        completion.converged,
    )
