"""iBCC: independent Bayesian classifier combination by variational Bayes.

Kim and Ghahramani 2012, 'Bayesian classifier combination' (their section 2.1), with the variational
algorithm of Simpson, Roberts, Psorakis and Smith 2013, 'Dynamic Bayesian combination of multiple
imperfect classifiers' (their section 3). It is the model of Dawid and Skene with Dirichlet priors,

    class of task i:       z_i ~ tau,      tau ~ Dirichlet(alpha)
    label of worker j:     y_ij ~ v_jk,    v_jk ~ Dirichlet(beta_k) if z_i = k,

and the parameters are integrated out instead of maximised. With q_ik = q(z_i = k), the counts
n_jkl = sum_i q_ik [y_ij = l], and psi the digamma function, an iteration is

    log q_ik = psi(alpha + sum_i q_ik) + sum_j psi(beta + n)_jk,y_ij - psi(sum_l (beta + n)_jkl)

up to a constant of the task. The evidence lower bound, log sum_z exp(E_q log P(labels, z)) -
KL(q(tau, v) || prior), never falls. Iterations run in `em.py`: the table of the E-step has expected
logarithms in the place of logarithms, and only at pairs of a worker and a label that occur.

The defaults of the priors are those of Li, Rubinstein and Cohn 2019, 'Exploiting worker
correlation': alpha = 1, and beta 4 for right labels and 1 for others. Departures: known labels.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from jaxtyping import Float, Int
from scipy.special import digamma, gammaln

from bayescrowd.aggregation.em import EMEstimate, Sweep, floored_log, maximise
from bayescrowd.aggregation.protocol import Aggregation, Aggregator, posterior_under
from bayescrowd.aggregation.row_distributions import (
    dirichlet_rows,
    mean_rows_of_workers,
    row_prior,
)
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Positive, Seed, Tolerance
from bayescrowd.data.annotations import Annotations

__all__ = ["IBCC"]


class IBCC(Aggregator):
    """Bayesian classifier combination: Dawid and Skene's model with its parameters integrated out.

    Args:
        right: parameter of the Dirichlet prior of a row at the right label.
        wrong: parameter of the same prior at each other label.
        class_prior: parameter of the Dirichlet prior of the classes, per class.
        n_iter: largest number of iterations.
        tol: stop when the bound rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        priors_: mean of the distribution of P(class).
        confusions_: means of the distributions of rows. A worker without labels has the mean of
            the others, each with the weight of their labels.
        trace_: evidence lower bound after each iteration, nats; it never falls.

    Examples:
        >>> import bayescrowd as bc
        >>> rows = ["aaa", "bba", "aaa", "bba", "aaa", "bba"]
        >>> ann = bc.Annotations.from_matrix([list(row) for row in rows])
        >>> est = bc.IBCC().fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'a', 'b', 'a', 'b']
        >>> est.confusion_of(0).round(2).loc["a"].to_list()
        [0.87, 0.13]
    """

    def __init__(
        self,
        *,
        right: Positive = 4.0,
        wrong: Positive = 1.0,
        class_prior: Positive = 1.0,
        n_iter: Count = 500,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.right = right
        self.wrong = wrong
        self.class_prior = class_prior
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = WorkerLabelPairs(ann, fixed)
        labels = pairs.labels()
        beta = row_prior(ann.n_classes, self.right, self.wrong)
        result = maximise(
            labels,
            vote_shares(ann, fixed),
            partial(self._update, pairs, beta),
            n_iter=self.n_iter,
            tol=self.tol,
        )
        found = dirichlet_rows(pairs, result.counts, beta)
        total = beta.sum(axis=1)
        seen = (beta.T[pairs.label] + result.counts) / found.totals[pairs.worker]
        scale, base = total / found.totals, beta / total[:, None]
        stranger = mean_rows_of_workers(pairs, seen, scale, base)
        priors = self.class_prior + result.posterior.sum(axis=0)
        priors /= priors.sum()
        # New tasks are judged as those of the fit, by expected logarithms.
        self._expected = SparseRows(
            pairs.keys,
            found.log_rows,
            scale=np.exp(-digamma(found.totals)),
            base=np.exp(digamma(beta)),
            stranger=stranger,
        )
        plain = EMEstimate(np.log(seen), floored_log(priors), 0.0, None)
        return Aggregation(
            result.posterior,
            priors,
            SparseRows(pairs.keys, np.log(seen), scale=scale, base=base, stranger=stranger),
            pairs,
            result.counts,
            labels.sweep(plain, np.empty_like(result.posterior)).log_likelihood,
            result.trace,
            result.converged,
        )

    def _update(
        self,
        pairs: WorkerLabelPairs,
        beta: Float[np.ndarray, "cls observed"],
        sweep: Sweep,
        previous: EMEstimate | None,
    ) -> EMEstimate:
        """Update the distributions of parameters."""
        found = dirichlet_rows(pairs, sweep.counts, beta)
        alpha = np.full(pairs.n_classes, self.class_prior)
        nu = alpha + sweep.class_counts
        log_priors = digamma(nu) - digamma(nu.sum())
        divergence = _dirichlet_constant(nu) - _dirichlet_constant(alpha)
        divergence += float(sweep.class_counts @ log_priors)
        penalty = -divergence - float(found.divergence.sum())
        return EMEstimate(found.log_rows, log_priors, penalty, None)

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        return posterior_under(self._expected, self.priors_.to_numpy(), ann, known)


def _dirichlet_constant(parameters: Float[np.ndarray, " outcome"]) -> float:
    """log of the factor that normalises a Dirichlet density."""
    return float(gammaln(parameters.sum()) - gammaln(parameters).sum())
