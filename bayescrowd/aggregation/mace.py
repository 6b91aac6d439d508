"""MACE: workers either know the answer or spam according to a strategy of their own.

Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013, 'Learning whom to trust with MACE'. Worker w knows
the class of a task with probability theta_w, the competence, and then reports it; otherwise the
label is drawn from the worker's strategy xi_w, whatever the class (their figure 1):

    P(l | k) = theta_w [l = k] + (1 - theta_w) xi_wl

This is a Dawid–Skene model with K parameters per worker instead of K (K - 1), so EM runs in
`em.py`: the E-step is Dawid and Skene's, and the counts N_wkl that it returns suffice for the
M-step. A right label was known with probability theta_w / (theta_w + (1 - theta_w) xi_wl), a wrong
label was spammed:

    knowing_wl = N_wll theta_w / (theta_w + (1 - theta_w) xi_wl)
    spammed_wl = sum_k N_wkl - knowing_wl

* Method 'em': theta and xi are the shares of known labels and of each spammed label, with a little
  smoothing (the paper's section 2.2). The objective is log-likelihood plus log prior density.
* Method 'vb': beta and Dirichlet distributions q over theta and xi (section 2.3). The E-step takes
  exp(E_q log theta) for theta, and so on. The objective is the evidence lower bound,
  log sum_z prod exp(E_q log P(label, z)) - KL(q || prior), a bound on the marginal likelihood.

Departures from the paper: the first start is from vote shares, not from random parameters, and the
class prior may be learned.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import digamma, gammaln

from bayescrowd.aggregation.em import EMEstimate, EMResult, Incidence, Sweep, floored_log, maximise
from bayescrowd.aggregation.protocol import Aggregation, Aggregator, posterior_under
from bayescrowd.aggregation.smoothing import crowd_rows
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import CoinRows
from bayescrowd.checks.parameters import Count, NonNegative, Positive, Seed, Tolerance
from bayescrowd.data.annotations import Annotations

__all__ = ["MACE", "Tallies", "Weights", "tallies"]


class Tallies(NamedTuple):
    """Expected numbers of labels, from the E-step."""

    knowing: Float[np.ndarray, "worker coin"]
    """Number of labels that were spammed, and of labels that were known."""
    strategy: Float[np.ndarray, "worker cls"]
    """Number of spammed labels by class."""


class Weights(NamedTuple):
    """What the E-step takes for probabilities; under 'vb' they sum to less than one."""

    knowing: Float[np.ndarray, "worker coin"]
    """Weights of spamming and of knowing."""
    strategy: Float[np.ndarray, "worker cls"]
    """Weight of each class when spamming."""
    penalty: float
    """log prior density up to a constant, or minus the divergence from the prior, nats."""


class MACE(Aggregator):
    """MACE: competence and spamming strategy of each worker.

    Errors on bluebird, rte, trec, dog and web are 13.9, 7.4, 29.1, 17.0 and 16.2 % with
    'vb', and 11.1, 7.1, 29.6, 16.7 and 16.8 % with 'em'.

    Args:
        method: 'vb', variational Bayes, which the paper recommends, or 'em'.
        n_init: number of starts: the first from vote shares, the others from random posteriors.
            The highest objective wins. On bluebird, rte, dog and web ten random starts raise it
            by at most 0.3 nats.
        prior: class prior, 'uniform' (the paper's) or 'learned'.
        smoothing: 'em' adds this number, divided by the number of classes, to each expected count.
        competence_prior: both parameters of the beta prior of competences under 'vb'.
        strategy_prior: parameter of the Dirichlet prior of strategies under 'vb', per class.
        n_iter: largest number of iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the random starts and of the draw that breaks ties.

    Attributes:
        competences_: probability that each worker knows the class (theta); under 'vb' its mean. A
            worker without labels has the mean over labels.
        strategies_: xi, P(label | spamming) of each worker, workers x classes.
        probas_: P(class | labels); under 'vb' the variational distribution.
        log_likelihood_: log P(labels) under priors_ and confusions_, nats.
        trace_: objective after each iteration, nats; it never falls.

    Examples:
        >>> import bayescrowd as bc
        >>> rows = ["aaa", "bba", "aaa", "bba", "aaa", "bba"]
        >>> ann = bc.Annotations.from_matrix([list(row) for row in rows])
        >>> est = bc.MACE(method="em").fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'a', 'b', 'a', 'b']
        >>> est.competences_.round(1).to_list()
        [1.0, 1.0, 0.0]
        >>> est.strategies_.loc[2].round(1).to_list()
        [1.0, 0.0]
    """

    _model_name = "mace"

    def __init__(
        self,
        *,
        method: Literal["vb", "em"] = "vb",
        n_init: Count = 1,
        prior: Literal["learned", "uniform"] = "uniform",
        smoothing: NonNegative = 0.1,
        competence_prior: Positive = 0.5,
        strategy_prior: Positive = 10.0,
        n_iter: Count = 200,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.method = method
        self.n_init = n_init
        self.prior = prior
        self.smoothing = smoothing
        self.competence_prior = competence_prior
        self.strategy_prior = strategy_prior
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = WorkerLabelPairs(ann, fixed)
        labels = pairs.labels()
        results = (self._run(pairs, labels, ann, start) for start in range(self.n_init))
        best = max(results, key=lambda result: result.trace[-1])
        return self._describe(best, pairs, labels, ann)

    def _run(
        self, pairs: WorkerLabelPairs, labels: Incidence, ann: Annotations, start: int
    ) -> EMResult:
        posterior = vote_shares(ann, pairs.fixed)
        if start > 0:
            # Start s of seed r is the same whatever n_init is.
            rng = np.random.default_rng([self.seed, start])
            posterior = rng.dirichlet(np.ones(ann.n_classes), size=ann.n_tasks)
        m_step = partial(self._m_step, pairs)
        return maximise(labels, posterior, m_step, n_iter=self.n_iter, tol=self.tol)

    def _m_step(
        self, pairs: WorkerLabelPairs, sweep: Sweep, previous: EMEstimate | None
    ) -> EMEstimate:
        n_classes = len(sweep.class_counts)
        found = tallies(pairs, sweep.counts, None if previous is None else previous.parameters)
        weights = self._weights(found)
        priors = sweep.class_counts / sweep.class_counts.sum()
        if self.prior == "uniform":
            priors = np.full(n_classes, 1.0 / n_classes)
        table = _chances(weights, pairs.worker, pairs.label)
        return EMEstimate(floored_log(table), floored_log(priors), weights.penalty, weights)

    def _weights(self, found: Tallies) -> Weights:
        if self.method == "em":
            return _shares(found, self.smoothing / found.strategy.shape[1])
        return _variational_weights(found, self.competence_prior, self.strategy_prior)

    def _describe(
        self, result: EMResult, pairs: WorkerLabelPairs, labels: Incidence, ann: Annotations
    ) -> Aggregation:
        crowd, silent = crowd_rows(pairs, result.counts), pairs.silent
        means = weights = result.estimate.parameters
        log_likelihood = result.log_likelihood
        if self.method == "vb":
            means = self._means(tallies(pairs, result.counts, weights))
            table = floored_log(_chances(means, pairs.worker, pairs.label))
            plain = EMEstimate(table, result.estimate.log_prior, 0.0, None)
            log_likelihood = labels.sweep(plain, np.empty_like(result.posterior)).log_likelihood
        competences = means.knowing[:, 1]
        mean = competences[ann.worker_codes].mean()
        self.competences_ = pd.Series(
            np.where(silent, mean, competences), index=ann.workers, name="competence"
        )
        self.strategies_ = pd.DataFrame(means.strategy, index=ann.workers, columns=ann.classes)
        self._weighted_rows = CoinRows(*_right_and_wrong(weights), stranger=crowd, silent=silent)
        priors = np.exp(result.estimate.log_prior)
        return Aggregation(
            result.posterior,
            priors / priors.sum(),
            CoinRows(*_right_and_wrong(means), stranger=crowd, silent=silent),
            pairs,
            result.counts,
            log_likelihood,
            result.trace,
            result.converged,
        )

    def _means(self, found: Tallies) -> Weights:
        """Means of the variational distributions."""
        knowing = _normalise(found.knowing + self.competence_prior)
        return Weights(knowing, _normalise(found.strategy + self.strategy_prior), 0.0)

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        return posterior_under(self._weighted_rows, self.priors_.to_numpy(), ann, known)


def tallies(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"], weights: Weights | None
) -> Tallies:
    """Expected numbers of labels known and spammed.

    Args:
        pairs: the pairs of a worker and a label that occur.
        counts: expected number of labels of each pair, by true class.
        weights: weights of the E-step; None before the first E-step, when everybody knows as often
            as they spam, and spams all classes equally.
    """
    n_workers, n_classes = pairs.n_workers, pairs.n_classes
    worker, label = pairs.worker, pairs.label
    right = counts[np.arange(len(pairs)), label]
    if weights is None:
        known = right * (n_classes / (n_classes + 1))
    else:
        knows = weights.knowing[worker, 1]
        says = knows + weights.knowing[worker, 0] * weights.strategy[worker, label]
        known = right * np.where(says > 0, knows / np.where(says > 0, says, 1.0), 0.0)
    spammed = np.maximum(counts.sum(axis=1) - known, 0.0)  # no -1e-17 from rounding
    coins = [np.bincount(worker, labels, minlength=n_workers) for labels in (spammed, known)]
    strategy = np.zeros((n_workers, n_classes))
    strategy[worker, label] = spammed
    return Tallies(np.stack(coins, axis=1), strategy)


def _chances(
    weights: Weights, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, "pair cls"]:
    """P(label | class) of pairs of a worker and a label."""
    spammed = weights.knowing[worker, 0] * weights.strategy[worker, label]
    chances = np.repeat(spammed[:, None], weights.strategy.shape[1], axis=1)
    chances[np.arange(len(label)), label] += weights.knowing[worker, 1]
    return chances


def _right_and_wrong(
    weights: Weights,
) -> tuple[Float[np.ndarray, "worker cls"], Float[np.ndarray, "worker cls"]]:
    """Probability that each worker gives each label to a task of its class, and of another."""
    wrong = weights.knowing[:, :1] * weights.strategy
    return wrong + weights.knowing[:, 1:], wrong


def _shares(found: Tallies, pseudo_counts: float) -> Weights:
    """Smoothed shares, and the log density of the Dirichlet prior that smoothing stands for."""
    knowing = _normalise(found.knowing + pseudo_counts)
    strategy = _normalise(found.strategy + pseudo_counts)
    labelled = found.knowing.sum(axis=1) > 0
    log_density = floored_log(knowing[labelled]).sum() + floored_log(strategy[labelled]).sum()
    return Weights(knowing, strategy, pseudo_counts * float(log_density))


def _variational_weights(found: Tallies, competence_prior: float, strategy_prior: float) -> Weights:
    """exp of the expected log parameters, and minus the divergence of q from the prior."""
    log_knowing, knowing_divergence = _expected_log(found.knowing, competence_prior)
    log_strategy, strategy_divergence = _expected_log(found.strategy, strategy_prior)
    penalty = -knowing_divergence - strategy_divergence
    return Weights(np.exp(log_knowing), np.exp(log_strategy), penalty)


def _expected_log(
    counts: Float[np.ndarray, "worker outcome"], prior: float
) -> tuple[Float[np.ndarray, "worker outcome"], float]:
    """E_q log p for q = Dirichlet(prior + counts), and the sum of KL(q || Dirichlet(prior))."""
    n_outcomes = counts.shape[1]
    updated = counts + prior
    total = updated.sum(axis=1, keepdims=True)
    log_p = digamma(updated) - digamma(total)
    log_normaliser = gammaln(total[:, 0]) - gammaln(updated).sum(axis=1)
    log_prior_normaliser = gammaln(n_outcomes * prior) - n_outcomes * gammaln(prior)
    divergence = log_normaliser - log_prior_normaliser + (counts * log_p).sum(axis=1)
    return log_p, float(divergence.sum())


def _normalise(rows: Float[np.ndarray, "worker outcome"]) -> Float[np.ndarray, "worker outcome"]:
    """Rows scaled to sum to one; empty rows become uniform."""
    total = rows.sum(axis=1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])
