"""KOS: message passing between tasks and workers for binary labels.

Karger, Oh and Shah 2014, 'Budget-optimal task allocation for reliable crowdsourcing systems', the
iterative algorithm. With A_tw = +1 or -1 for worker w's label on task t, messages run along labels:

    task to worker:  x_tw = sum of A_tv y_tv over the other workers v of the task
    worker to task:  y_tw = sum of A_sw x_sw over the other tasks s of the worker

and the answer is the sign of sum_w A_tw y_tw. A message leaves out the label that it travels on, so
that nobody is confirmed by an echo. Departures from the paper:

* The first y are 1, the mean of the paper's N(1, 1) (`init="random"`), so that an answer does not
  depend on the order of workers even where messages do not settle.
* Each round divides the messages by their root mean square, because they grow geometrically and
  would overflow; no sign changes.
* The sign of the answer is the one that agrees with most labels; the paper leaves it to the start.

Messages of noisy labels may never settle: with n tasks, 'one worker is unlike the others' is a mode
of eigenvalue 1 - n, which can outgrow that of the truth and alternates in sign. A warning says so.

`variant="svd"` is what the error table of Zhang, Chen, Zhou and Jordan (2014, 'Spectral methods
meet EM') calls KOS: the signs of the leading left singular vector of the signed labels, from which
each worker's mean over all tasks, labelled or not, is subtracted. The centred matrix is dense and
is never formed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.aggregation.eigenvectors import gram_operator, leading_eigenvector
from bayescrowd.aggregation.ordinal import CutScores, OrdinalAggregator, Pairs, linear_scores
from bayescrowd.checks.parameters import Count, Seed, Tolerance
from bayescrowd.iteration import Course, Step, settle

__all__ = ["KOS", "Messages", "pass_messages"]


class Messages(NamedTuple):
    """The messages of one round."""

    to_task: Float[np.ndarray, "pair cut"]
    """y: what each worker's other tasks say about the worker, with a mean square of one."""
    to_worker: Float[np.ndarray, "pair cut"]
    """x: what each task's other workers say about the task, in the scale of the round before."""


class KOS(OrdinalAggregator):
    """Message passing of Karger, Oh and Shah, or the centred SVD that a known table calls KOS.

    The method is binary; more than two classes are treated as ordered and decided cut by cut.
    `probas_` is 1 for the class found (see `bayescrowd.aggregation.ordinal`). Known labels (`gold`)
    decide their own tasks; they do not enter the messages.

    Args:
        variant: 'messages', the algorithm of the paper, or 'svd', the centred singular vector.
        init: the first messages, 'ones' or 'random', drawn from N(1, 1).
        n_iter: largest number of rounds of messages.
        tol: stop when the messages' root mean square change is below this; 0 runs n_iter.
        seed: seed of random first messages and of the draw that breaks ties.

    Attributes:
        weights_: reliability of each worker, workers x cuts, scaled so that the largest is 1; the
            cut named c asks whether a class is above c. New tasks are decided by these weights.
        trace_: change of the messages in each round; empty for 'svd'.

    Examples:
        >>> import bayescrowd as bc
        >>> rows = [list("aaab"), list("bbbb"), list("aaab"), list("bbba")]
        >>> ann = bc.Annotations.from_matrix(rows)
        >>> bc.KOS().fit_predict(ann).to_list()
        ['a', 'b', 'a', 'b']
        >>> bc.KOS(variant="svd").fit_predict(ann).to_list()
        ['a', 'b', 'a', 'b']
    """

    _unsettled_hint = "if messages only alternate, the labels are too few or too noisy for KOS"

    def __init__(
        self,
        *,
        variant: Literal["messages", "svd"] = "messages",
        init: Literal["ones", "random"] = "ones",
        n_iter: Count = 200,
        tol: Tolerance = 1e-6,
        seed: Seed = 0,
    ) -> None:
        self.variant = variant
        self.init = init
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _score(self, pairs: Pairs) -> CutScores:
        return _by_svd(pairs) if self.variant == "svd" else self._by_messages(pairs)

    def _by_messages(self, pairs: Pairs) -> CutScores:
        first = np.ones(pairs.signs.shape)
        if self.init == "random":
            first = np.random.default_rng(self.seed).normal(1.0, 1.0, first.shape)
        course = pass_messages(pairs, first, n_iter=self.n_iter, tol=self.tol)
        messages = course.state
        by_task = _adder(pairs.tasks, len(pairs.offsets) - 1)
        by_worker = _adder(pairs.workers, pairs.n_workers)
        scores = by_task @ (pairs.signs * messages.to_task)
        weights = by_worker @ (pairs.signs * messages.to_worker)
        agreement = (scores * (by_task @ pairs.signs)).sum(axis=0)
        turn = np.where(agreement < 0, -1.0, 1.0)
        offsets = np.zeros(len(turn))
        return CutScores(turn * scores, turn * weights, offsets, course.trace, course.converged)


def pass_messages(
    pairs: Pairs, first: Float[np.ndarray, "pair cut"], *, n_iter: int, tol: float
) -> Course[Messages]:
    """Run rounds of messages until they settle.

    Args:
        pairs: the labels.
        first: the first messages from workers to tasks.
        n_iter: largest number of rounds, at least 1.
        tol: stop when the messages' root mean square change is below this; 0 runs n_iter.
    """
    by_task = _adder(pairs.tasks, len(pairs.offsets) - 1)
    by_worker = _adder(pairs.workers, pairs.n_workers)

    def exchange(messages: Messages) -> Step[Messages]:
        before = messages.to_task
        to_worker = _from_others(by_task, pairs.tasks, pairs.signs * before)
        to_task = _unit(_from_others(by_worker, pairs.workers, pairs.signs * to_worker))
        change = float(np.sqrt(((to_task - before) ** 2).mean(axis=0)).max())
        return Step(Messages(to_task, to_worker), change, change)

    start = Messages(_unit(first), np.zeros_like(first))
    return settle(exchange, start, n_iter=n_iter, tol=tol)


def _from_others(
    adder: scipy.sparse.csr_matrix,
    node: Int[np.ndarray, " pair"],
    values: Float[np.ndarray, "pair cut"],
) -> Float[np.ndarray, "pair cut"]:
    """Sum of the values at each pair's node, without the pair's own value."""
    return (adder @ values)[node] - values


def _adder(node: Int[np.ndarray, " pair"], n_nodes: int) -> scipy.sparse.csr_matrix:
    """A matrix nodes x pairs with a one where the pair belongs to the node."""
    ones, order = np.ones(len(node)), np.argsort(node, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=n_nodes))])
    return scipy.sparse.csr_matrix((ones, order, offsets), shape=(n_nodes, len(node)))


def _unit(messages: Float[np.ndarray, "pair cut"]) -> Float[np.ndarray, "pair cut"]:
    """Messages scaled to a mean square of one per cut; zeros stay zeros."""
    size = np.sqrt((messages**2).mean(axis=0))
    return messages / np.where(size > 0, size, 1.0)


def _by_svd(pairs: Pairs) -> CutScores:
    weights = np.empty((pairs.n_workers, pairs.signs.shape[1]))
    offsets = np.empty(pairs.signs.shape[1])
    for cut, signs in enumerate(pairs.signs.T):
        signed = pairs.matrix(signs)
        vector = leading_eigenvector(gram_operator(signed, centred=True))
        # Take the sign under which most of the squared reliability is positive.
        mass = (vector[vector > 0] ** 2).sum()
        weights[:, cut] = vector if mass >= 0.5 else -vector
        offsets[cut] = (signed @ weights[:, cut]).mean()
    scores = linear_scores(pairs, weights, offsets)
    return CutScores(scores, weights, offsets, np.empty(0), True)
