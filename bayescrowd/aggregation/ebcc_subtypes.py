"""Variational Bayes of EBCC: subtypes of tasks, from several random starts side by side.

The equations are those of `ebcc`, which has the estimator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import digamma, gammaln

from bayescrowd.aggregation.em import EMEstimate, Incidence
from bayescrowd.aggregation.row_distributions import dirichlet_rows, row_prior
from bayescrowd.aggregation.task_sample import fingerprints, hashed_uniforms
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import Step, settle

__all__ = ["RIGHT", "WRONG", "SubtypeFits", "class_prior", "ebcc_posteriors"]

SUBTYPE_CONCENTRATION = 0.1
"""Sum of the parameters of the prior of a class's subtypes (a); the authors' value."""

RIGHT, WRONG = 4.0, 1.0
"""Parameters of the prior of right and of wrong labels (beta); the authors' values."""

LEAST_CLASS_PRIOR = 0.01
"""Least parameter of the prior of a class (alpha), for classes that nobody chose."""

EMPTY = 1e-10
"""A subtype with fewer expected tasks than this is empty."""

GROUP_ENTRIES = 1 << 20
"""Starts run side by side as long as a table of (tasks + pairs) x states has fewer entries."""


class SubtypeFits(NamedTuple):
    """Where the starts ended."""

    posteriors: Float[np.ndarray, "start item cls"]
    """P(class) of each task."""
    bounds: Float[np.ndarray, " start"]
    """Evidence lower bound, nats."""
    traces: list[Float[np.ndarray, " _iteration"]]
    """Evidence lower bound of each start after each of its iterations."""
    converged: Bool[np.ndarray, " start"]
    """Whether the start settled."""
    seen: Float[np.ndarray, "start symbol cls"]
    """P(label | class) of the pairs of a worker and a label that occur, the mean over subtypes."""
    scale: Float[np.ndarray, "start worker cls"]
    """Factor of the prior's rows at labels that a worker has not given, the mean over subtypes."""


def ebcc_posteriors(
    ann: Annotations,
    pairs: WorkerLabelPairs,
    *,
    n_subtypes: int,
    n_starts: int,
    n_iter: int = 500,
    tol: float = 1e-3,
    seed: int = 0,
) -> SubtypeFits:
    """Fit the model from several random starts.

    Args:
        ann: the labels.
        pairs: the pairs of a worker and a label in `ann`, with known classes of tasks.
        n_subtypes: number of subtypes of a class.
        n_starts: number of starts; start s is the same whatever their number is.
        n_iter: largest number of iterations of a start.
        tol: a start stops when no P(class) changes by more than this; 0 runs n_iter.
        seed: seed of the starts.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.simulate.one_coin_crowd(50, 7, 2, seed=0).annotations
        >>> fits = ebcc_posteriors(ann, WorkerLabelPairs(ann), n_subtypes=2, n_starts=3)
        >>> fits.posteriors.shape, fits.bounds.shape
        ((3, 50, 2), (3,))
    """
    shares = vote_shares(ann, pairs.fixed)
    width = n_subtypes * ann.n_classes * (ann.n_tasks + len(pairs))
    size = max(1, GROUP_ENTRIES // width)
    parts = []
    for first in range(0, n_starts, size):
        starts = np.arange(first, min(first + size, n_starts))
        r = _random_starts(ann, pairs, shares, n_subtypes, starts, seed)
        parts.append(_Group(ann, pairs, shares, r).run(n_iter, tol))
    return SubtypeFits(
        np.concatenate([part.posteriors for part in parts]),
        np.concatenate([part.bounds for part in parts]),
        [trace for part in parts for trace in part.traces],
        np.concatenate([part.converged for part in parts]),
        np.concatenate([part.seen for part in parts]),
        np.concatenate([part.scale for part in parts]),
    )


class _Group:
    """Starts that run side by side; states are ordered by start, subtype and class.

    Most subtypes become empty after a few iterations. The empty subtypes of a class have the same
    distributions, and so the same responsibilities: one state stands for all of them, the last
    subtype, whose multiplicity is their number.
    """

    def __init__(
        self,
        ann: Annotations,
        pairs: WorkerLabelPairs,
        shares: Float[np.ndarray, "item cls"],
        r: Float[np.ndarray, "item start subtype cls"],
    ) -> None:
        self.ann, self.pairs = ann, pairs
        self.alpha = class_prior(shares)
        self.beta = row_prior(pairs.n_classes, RIGHT, WRONG)
        self.known = np.flatnonzero(pairs.fixed >= 0)
        n_starts, self.n_subtypes = r.shape[1:3]
        self.r, self.active = r, np.arange(n_starts)
        self.labels = self._incidence()
        self.posteriors = np.repeat(shares[None], n_starts, axis=0)
        self.traces: list[list[float]] = [[] for _ in range(n_starts)]
        self.converged = np.zeros(n_starts, dtype=bool)
        self.seen = np.empty((n_starts, len(pairs), pairs.n_classes))
        self.scale = np.empty((n_starts, pairs.n_workers, pairs.n_classes))

    def run(self, n_iter: int, tol: float) -> SubtypeFits:
        """Iterate until all starts have settled."""
        settle(lambda _: self._step(tol), None, n_iter=n_iter, tol=tol)
        self._keep(np.arange(len(self.active)))
        return SubtypeFits(
            self.posteriors,
            np.array([trace[-1] for trace in self.traces]),
            [np.array(trace) for trace in self.traces],
            self.converged,
            self.seen,
            self.scale,
        )

    def _step(self, tol: float) -> Step[None]:
        """Update the parameters of the active starts, then the distributions of their tasks."""
        self._merge_empty()
        estimate, divergence = self._parameters()
        r = self.labels.scores(estimate).reshape(self.r.shape)
        if len(self.known):
            other = self.pairs.fixed[self.known, None] != np.arange(self.pairs.n_classes)
            r[self.known] += np.where(other, -np.inf, 0.0)[:, None, None]
        log_evidence = _normalise(r.reshape(len(r), len(self.active), -1))
        self.r = r
        posteriors = _sum_subtypes(r).transpose(1, 0, 2)
        change = np.abs(posteriors - self.posteriors[self.active]).max(axis=(1, 2))
        self.posteriors[self.active] = posteriors
        for start, bound in zip(self.active, log_evidence - divergence, strict=True):
            self.traces[start].append(float(bound))
        best = max(trace[-1] for trace in self.traces)
        settled = np.flatnonzero(change < tol)
        self.converged[self.active[settled]] = True
        if 0 < len(settled) < len(self.active):
            self._keep(settled)
            self._drop(settled)
        return Step(None, best, float(change.max()))

    def _parameters(self) -> tuple[EMEstimate, Float[np.ndarray, " active"]]:
        """The table of the next E-step, and the divergence of all parameters from their priors."""
        shape, alike = self.r.shape[1:], self._multiplicity
        flat = self.r.reshape(len(self.r), -1)
        repeats = np.broadcast_to(alike[:, None], shape).reshape(-1)
        found = dirichlet_rows(self.pairs, self.labels.counts(flat) / repeats, self.beta)
        state_counts = flat.sum(axis=0).reshape(shape)
        log_prior, divergence = _state_priors(state_counts, alike, self.alpha)
        divergence += (found.divergence * repeats).reshape(len(self.active), -1).sum(axis=1)
        return EMEstimate(found.log_rows, log_prior.reshape(-1), 0.0, None), divergence

    @property
    def _multiplicity(self) -> Float[np.ndarray, " subtype"]:
        """Number of subtypes that each state stands for."""
        n_states = self.r.shape[2]
        return np.append(np.ones(n_states - 1), self.n_subtypes - n_states + 1.0)

    def _merge_empty(self) -> None:
        """Let one state stand for the empty subtypes of each class."""
        state_counts = self.r.sum(axis=0)
        n_needed = 1 + int((state_counts > EMPTY).sum(axis=1).max())
        if n_needed >= self.r.shape[2]:
            return
        order = np.argsort(-state_counts, axis=1, kind="stable")
        r = np.take_along_axis(self.r, order[None], axis=2)
        last = _sum_subtypes(r[:, :, n_needed - 1 :])[:, :, None]
        self.r = np.concatenate([r[:, :, : n_needed - 1], last], axis=2)
        self.labels = self._incidence()

    def _incidence(self) -> Incidence:
        """The labels as tasks x pairs, for the states of the active starts."""
        return Incidence(
            self.ann.task_offsets,
            self.pairs.of_label,
            n_symbols=len(self.pairs),
            n_classes=int(np.prod(self.r.shape[1:])),
        )

    def _keep(self, places: Int[np.ndarray, " some"]) -> None:
        """Record the mean rows of some of the active starts: sums over subtypes of P(m | k) v."""
        pairs, alike = self.pairs, self._multiplicity[:, None]
        r, total = self.r[:, places], self.beta.sum(axis=1)
        counts = self.labels.counts(r.reshape(len(r), -1)).reshape(len(pairs), *r.shape[1:])
        weights = SUBTYPE_CONCENTRATION / self.n_subtypes * alike + r.sum(axis=0)
        weights /= weights.sum(axis=1, keepdims=True)
        given = pairs.by_worker(counts.reshape(len(pairs), -1)).reshape(-1, *r.shape[1:])
        share = weights / (total + given / alike)
        seen = _sum_subtypes(
            (self.beta.T[pairs.label, None, None] + counts / alike) * share[pairs.worker]
        )
        self.seen[self.active[places]] = seen.transpose(1, 0, 2)
        self.scale[self.active[places]] = total * _sum_subtypes(share).transpose(1, 0, 2)

    def _drop(self, places: Int[np.ndarray, " some"]) -> None:
        """Go on without some of the active starts."""
        self.active = np.delete(self.active, places)
        self.r = np.delete(self.r, places, axis=1)
        self.labels = self._incidence()


def _random_starts(
    ann: Annotations,
    pairs: WorkerLabelPairs,
    shares: Float[np.ndarray, "item cls"],
    n_subtypes: int,
    starts: Int[np.ndarray, " start"],
    seed: int,
) -> Float[np.ndarray, "item start subtype cls"]:
    """Vote shares, divided among subtypes by uniform Dirichlet draws.

    Tasks with the same fingerprint have the mean of their draws: which of them has which draw would
    depend on ids, and only the mean matters where they have the same labels.
    """
    found = fingerprints(ann, pairs.fixed, n_rounds=1)
    _, group, size = np.unique(found.task, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    first = np.cumsum(size) - size
    rank = np.empty(len(group), dtype=np.uint64)
    rank[order] = np.arange(len(group)) - np.repeat(first, size)
    keys = (found.task + rank)[:, None] + found.cls
    numbers = (starts[:, None] * n_subtypes + np.arange(n_subtypes)).reshape(-1)
    draws = -np.log(hashed_uniforms(keys.reshape(-1), numbers, seed))
    draws = draws.reshape(len(group), ann.n_classes, len(starts), n_subtypes)
    draws /= draws.sum(axis=3, keepdims=True)
    if len(size) < len(group):
        means = np.add.reduceat(draws[order], first, axis=0) / size[:, None, None, None]
        draws = means[group]
    draws *= shares[:, :, None, None]
    return np.ascontiguousarray(draws.transpose(0, 2, 3, 1))


def class_prior(shares: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, " cls"]:
    """Parameters of the prior of classes (alpha)."""
    return np.maximum(shares.sum(axis=0), LEAST_CLASS_PRIOR)


def _state_priors(
    state_counts: Float[np.ndarray, "start subtype cls"],
    alike: Float[np.ndarray, " subtype"],
    alpha: Float[np.ndarray, " cls"],
) -> tuple[Float[np.ndarray, "start subtype cls"], Float[np.ndarray, " start"]]:
    """Log weights of states, and the divergence of tau and pi from their priors.

    Args:
        state_counts: expected number of tasks of each state.
        alike: number of subtypes that a state stands for.
        alpha: parameters of the prior of classes.
    """
    repeats = alike[:, None]
    a = SUBTYPE_CONCENTRATION / alike.sum()
    eta, class_counts = a + state_counts / repeats, state_counts.sum(axis=1)
    eta_total, nu = SUBTYPE_CONCENTRATION + class_counts, alpha + class_counts
    log_pi = digamma(eta) - digamma(eta_total)[:, None]
    log_tau = digamma(nu) - digamma(nu.sum(axis=1, keepdims=True))
    divergence = (state_counts * log_pi).sum(axis=(1, 2)) + (class_counts * log_tau).sum(axis=1)
    divergence += (gammaln(eta_total) - gammaln(SUBTYPE_CONCENTRATION)).sum(axis=1)
    divergence -= (repeats * (gammaln(eta) - gammaln(a))).sum(axis=(1, 2))
    divergence += gammaln(nu.sum(axis=1)) - gammaln(alpha.sum())
    divergence -= (gammaln(nu) - gammaln(alpha)).sum(axis=1)
    return log_pi + log_tau[:, None] + np.log(repeats), divergence


def _normalise(scores: Float[np.ndarray, "item start state"]) -> Float[np.ndarray, " start"]:
    """Softmax over states in place; return the sums over tasks of the log normalisers."""
    # A loop over the few states: reductions along short axes take several times as long.
    largest = scores[:, :, 0].copy()
    for state in range(1, scores.shape[2]):
        np.maximum(largest, scores[:, :, state], out=largest)
    scores -= largest[:, :, None]
    np.exp(scores, out=scores)
    total = scores[:, :, 0].copy()
    for state in range(1, scores.shape[2]):
        total += scores[:, :, state]
    scores /= total[:, :, None]
    return largest.sum(axis=0) + np.log(total).sum(axis=0)


def _sum_subtypes(
    values: Float[np.ndarray, "row start subtype cls"],
) -> Float[np.ndarray, "row start cls"]:
    """Sums over subtypes, by a loop for the same reason."""
    total = values[:, :, 0].copy()
    for subtype in range(1, values.shape[2]):
        total += values[:, :, subtype]
    return total
