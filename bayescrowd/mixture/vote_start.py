"""Components and votes: which component is which class, and which start explains more.

Stagewise EM needs workers who have labelled the same tasks. Where few have, the pairs that it looks
at are noise, and it can end far from any vote without showing it. The likelihood does show it if
like is compared with like: P(class | task) of the stages and the shares of votes are both followed
by one M-step on all workers, and both by EM until it settles. The first comparison shows which
start explains the labels better, the second whether EM makes up for a worse start. (To compare the
stages with settled EM from votes would say nothing: the stages use few workers and always lose,
even where they are right.)

Log-likelihoods in nats, errors in per cent:

    crowd                        one M-step           settled              stages  votes
                                 stages    votes      stages    votes
    300 x 100, 3 labels a task   -1153.2   -821.5     -704.4    -664.5     77.0    17.0
    trec                        -37810.8 -36036.2   -34749.8  -34751.7     46.5    34.9
    web                         -17633.9 -18612.4   -17296.2  -17235.5     30.4    26.9
    dog, 52 workers              -4528.5  -4866.2    -4452.7   -4446.2     17.1    17.9
    5 experts of 100            -87103.0 -87486.4   -87047.3  -87047.9     25.3    57.6
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.aggregation.em import EMEstimate, EMResult, Incidence, Sweep, maximise
from bayescrowd.aggregation.votes import shares
from bayescrowd.data.annotations import Annotations

__all__ = [
    "MARGIN",
    "StartComparison",
    "WorseThanVotesWarning",
    "compare_starts",
    "match_votes",
    "n_used",
]

MARGIN = 1e-3
"""Likelihoods that differ by less than this, in nats per label, are taken as equal."""


class WorseThanVotesWarning(UserWarning):
    """A mixture explains the labels worse than the mixture started from votes."""


class StartComparison(NamedTuple):
    """Log-likelihoods of the same labels under the same model, in nats."""

    fitted: float
    """Log-likelihood of the fit: one M-step after the stages, or settled if it is refined."""
    votes: float
    """Log-likelihood of the same after the shares of votes."""
    fitted_maximum: float
    """Log-likelihood where EM on all workers settles from the stages."""
    votes_maximum: float
    """Log-likelihood where EM on all workers settles from the votes."""
    n_labels: int
    """Number of labels."""

    @property
    def is_worse(self) -> bool:
        """Whether the votes are the better start by more than `MARGIN` nats per label."""
        margin = MARGIN * self.n_labels
        return (
            self.fitted < self.votes - margin or self.fitted_maximum < self.votes_maximum - margin
        )


def compare_starts(
    labels: Incidence,
    fitted: EMResult,
    votes: Float[np.ndarray, "item cls"],
    m_step: Callable[[Sweep, EMEstimate | None], EMEstimate],
    *,
    refine: bool,
    n_iter: int,
    tol: float,
) -> tuple[StartComparison, EMResult]:
    """Compare a mixture with the one started from votes in the same way, and return the latter.

    Args:
        labels: the data.
        fitted: the mixture, after one iteration from the stages or settled.
        votes: share of each class among the labels of each task.
        m_step: the M-step of the mixture.
        refine: whether `fitted` has settled.
        n_iter: largest number of iterations of EM until it settles.
        tol: EM has settled when an iteration gains less than this, in nats per label.

    Returns:
        The comparison, and the mixture started from votes.
    """
    best = maximise(labels, votes, m_step, n_iter=n_iter, tol=tol)
    if refine:
        fitted_best, from_votes = fitted, best
    else:
        fitted_best = maximise(labels, fitted.posterior, m_step, n_iter=n_iter, tol=tol)
        from_votes = maximise(labels, votes, m_step, n_iter=1, tol=0.0)
    comparison = StartComparison(
        fitted.log_likelihood,
        from_votes.log_likelihood,
        fitted_best.log_likelihood,
        best.log_likelihood,
        labels.n_labels,
    )
    return comparison, from_votes


def match_votes(
    posterior: Float[np.ndarray, "item component"], ann: Annotations
) -> Int[np.ndarray, " cls"]:
    """The component of each class, so that components agree with votes as much as possible.

    The assignment maximises the covariance of responsibilities and vote shares, summed over
    classes. With plain products, workers who always give one class would draw the largest
    component to it.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aaa"), list("aab"), list("bba")])
        >>> match_votes(np.array([[0.0, 1.0], [0.2, 0.8], [1.0, 0.0]]), ann)
        array([1, 0])
    """
    covariance = (posterior - posterior.mean(axis=0)).T @ shares(ann.votes.astype(float))
    return np.argsort(linear_sum_assignment(covariance, maximize=True)[1])


def n_used(ann: Annotations) -> int:
    """Number of components to grow: one for each class that occurs."""
    return max(2, int((ann.votes.sum(axis=0) > 0).sum()))
