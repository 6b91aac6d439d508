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

from typing import Literal

import numpy as np
from jaxtyping import Int

from bayescrowd.aggregation.ebcc_subtypes import (
    RIGHT,
    WRONG,
    SubtypeFits,
    class_prior,
    ebcc_posteriors,
)
from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.row_distributions import mean_rows_of_workers, row_prior
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Seed, Tolerance
from bayescrowd.data.annotations import Annotations

__all__ = ["EBCC"]


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
    priors = class_prior(vote_shares(ann, pairs.fixed)) + posterior.sum(axis=0)
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
