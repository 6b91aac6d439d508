"""EBCC: classes have subtypes of tasks, so that the errors of workers on a task may depend.

Li, Rubinstein and Cohn 2019, 'Exploiting worker correlation for label aggregation in crowdsourcing'
(ICML), the enhanced Bayesian classifier combination. A task of class k is of one of M subtypes,
and each worker has a row of label probabilities per class and subtype (their figure 2):

    class of task i:       z_i ~ tau,               tau ~ Dirichlet(alpha)
    subtype of task i:     g_i ~ pi_k,              pi_k ~ Dirichlet(a / M, ..., a / M)
    label of worker j:     y_ij ~ v_jkm,            v_jkm ~ Dirichlet(beta_k)

Given class and subtype labels are independent; given the class alone they are not. Mean-field
variational Bayes (their section 4.1) alternates the distributions of parameters and of tasks. With
r_ikm = q(z_i = k, g_i = m) and psi the digamma function,

    eta_km = a / M + sum_i r_ikm,    nu_k = alpha_k + sum_im r_ikm,
    mu_jkml = beta_kl + sum_i r_ikm [y_ij = l],
    log r_ikm = psi(nu_k) + psi(eta_km) - psi(sum_m eta_km)
                + sum_j psi(mu_jkm,y_ij) - psi(sum_l mu_jkml) + constant.

The constants are the authors': a = 0.1, beta_kl = 4 if l = k else 1, and alpha_k the sum of vote
shares of class k. A start divides the vote shares among the subtypes by draws from a uniform
Dirichlet distribution. Starts end in different places; the paper runs 40 and takes the one with the
highest evidence lower bound,

    ELBO = sum_i log sum_km (unnormalised r_ikm) - KL(q(tau, pi, v) || prior).

All starts run side by side: a state of `em.py` is a start with a subtype and a class, and one
sparse product serves all of them. A start that has settled leaves the product.

Departures from the paper: draws are tied to fingerprints of tasks and classes, so that they do not
depend on ids; answers may be averaged over starts; known labels rule out the states of other
classes; the bound includes the constants of the priors, which the authors' program leaves out.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import digamma, gammaln

from bayescrowd.aggregation.em import EMEstimate, Incidence, floored_log
from bayescrowd.aggregation.ibcc import dirichlet_rows, mean_rows_of_workers, row_prior
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.task_sample import fingerprints, hashed_uniforms
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Seed, Tolerance
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import Step, settle

__all__ = ["EBCC", "SubtypeFits", "ebcc_posteriors"]

SUBTYPE_CONCENTRATION = 0.1
"""Sum of the parameters of the prior of a class's subtypes (a); the authors' value."""

RIGHT, WRONG = 4.0, 1.0
"""Parameters of the prior of right and of wrong labels (beta); the authors' values."""

LEAST_CLASS_PRIOR = 0.01
"""Least parameter of the prior of a class (alpha), for classes that nobody chose."""

EMPTY = 1e-10
"""A subtype with fewer expected tasks than this is empty."""

GROUP_ENTRIES = 1 << 25
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


class EBCC(Aggregator):
    """Bayesian classifier combination with subtypes of tasks, for workers who err together.

    Args:
        n_subtypes: number of subtypes of a class (M). Subtypes that are not needed become empty.
        n_starts: number of random starts; the paper has 40.
        combine: 'best' takes the start with the highest evidence lower bound, as the paper does;
            'average' takes the mean over all starts.
        n_iter: largest number of iterations of a start.
        tol: a start stops when no P(class) changes by more than this; 0 runs n_iter.
        seed: seed of the starts and of the draw that breaks ties.

    Attributes:
        bounds_: evidence lower bound of each start, nats.
        confusions_: P(observed | true), the mean over subtypes and over the starts that count.
        trace_: evidence lower bound of the best start after each iteration, nats; it never falls.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.one_coin_crowd(100, 10, 2, accuracy=0.8, seed=0)
        >>> est = bc.EBCC(n_subtypes=3, n_starts=4).fit(data.annotations)
        >>> bool((est.labels_ == data.truth).mean() > 0.9), len(est.bounds_)
        (True, 4)
    """

    def __init__(
        self,
        *,
        n_subtypes: Count = 10,
        n_starts: Count = 10,
        combine: Literal["best", "average"] = "best",
        n_iter: Count = 500,
        tol: Tolerance = 1e-3,
        seed: Seed = 0,
    ) -> None:
        self.n_subtypes = n_subtypes
        self.n_starts = n_starts
        self.combine = combine
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = WorkerLabelPairs(ann, fixed)
        fits = ebcc_posteriors(
            ann,
            pairs,
            n_subtypes=self.n_subtypes,
            n_starts=self.n_starts,
            n_iter=self.n_iter,
            tol=self.tol,
            seed=self.seed,
        )
        best = int(np.argmax(fits.bounds))
        kept = np.array([best]) if self.combine == "best" else np.arange(self.n_starts)
        self.bounds_ = fits.bounds
        return _describe(fits, kept, best, ann, pairs)


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


def _describe(
    fits: SubtypeFits,
    kept: Int[np.ndarray, " kept"],
    best: int,
    ann: Annotations,
    pairs: WorkerLabelPairs,
) -> Aggregation:
    """The mean over the starts that are kept."""
    beta = row_prior(pairs.n_classes, RIGHT, WRONG)
    base = beta / beta.sum(axis=1, keepdims=True)
    seen, scale = fits.seen[kept].mean(axis=0), fits.scale[kept].mean(axis=0)
    stranger = mean_rows_of_workers(pairs, seen, scale, base)
    posterior = fits.posteriors[kept].mean(axis=0)
    priors = _class_prior(vote_shares(ann, pairs.fixed)) + posterior.sum(axis=0)
    priors /= priors.sum()
    labels = pairs.labels()
    plain = EMEstimate(np.log(seen), floored_log(priors), 0.0, None)
    return Aggregation(
        posterior,
        priors,
        SparseRows(pairs.keys, np.log(seen), scale=scale, base=base, stranger=stranger),
        pairs,
        labels.counts(posterior),
        labels.sweep(plain, np.empty_like(posterior)).log_likelihood,
        fits.traces[best],
        bool(fits.converged[kept].all()),
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
        self.alpha = _class_prior(shares)
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


def _class_prior(shares: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, " cls"]:
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
