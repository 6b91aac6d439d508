"""How many of each rater's labels are right, with an interval that holds where raters err together.

The accuracy of a rater is the share of right labels among those that the rater has given. A label
on task i is right with probability p_i, which lies between those of the mixture of the candidates
and of the tempered answer (equation 1 of `blend.py` before and after T): on most crowds the former
promises too much and the latter too little. With n labels, the accuracy has the mean

    m = sum p / n                                                                                (1)

and, if errors of the fit were independent from task to task, the variance sum p (1 - p) / n^2. They
are not: the answer may follow raters who err together, and then all of their labels look right. So
the variance is

    sum p (1 - p) / n^2 + m (1 - m) (s^2 + s_c^2 c + s_a^2 a) + b V,                             (2)

where c is the share of labels by raters who repeat each other (`rater_pairs.py`), a the weight of
the votes in the answer, which rises to 1 where fits contradict each other, and V the variance of
the rater's accuracy over fits under random weights of the raters. The interval is that of the beta
distribution with these moments, widened to whole numbers of right labels: of three labels, none,
one, two or all are right, and a beta distribution would exclude that all are.

The constants were chosen on 16 development crowds and five published ones by the interval score
(Gneiting and Raftery 2007, section 6.2), with every crowd left out once. Truth has no part in an
interval. Where gold labels are known, `gold_report.py` has better intervals of the same accuracy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.post_strata import Share, beta_interval, whole_cases
from bayescrowd.data.annotations import Annotations

__all__ = ["LEVEL", "accuracies_in", "rater_accuracies", "with_intervals"]

LEVEL = 0.9
"""Probability of the intervals."""

MIXTURE_SHARE = 0.6
"""Share of the mixture in p_i; the rest is that of the tempered answer."""

FIT_ERROR = 0.07
"""Standard deviation of the error that the fit makes on any crowd (s), for m (1 - m) = 1."""

CLUSTER_ERROR = 0.2
"""The same where all labels come from raters who repeat each other (s_c)."""

UNDECIDED_ERROR = 0.2
"""The same where labels cannot decide and votes are the answer (s_a)."""

BETWEEN_FITS = 0.125
"""Part of the variance between fits under random weights of the raters (b): other weights change
a fit more than other raters of the same kind would."""


def rater_accuracies(
    ann: Annotations,
    mixed: Float[np.ndarray, "item cls"],
    answer: Float[np.ndarray, "item cls"],
    clusters: Iterable[tuple[Hashable, ...]],
    *,
    vote_weight: float,
    replicated: Float[np.ndarray, "replicate worker"] | None,
) -> Share:
    """Share of right labels of each rater with its interval, equations 1 and 2.

    Args:
        ann: the labels.
        mixed: P(class) by the mixture of the candidates.
        answer: P(class) of the answer, which is tempered.
        clusters: groups of raters who repeat each other.
        vote_weight: weight of the votes in the answer.
        replicated: accuracies under random weights of the raters, if they are known.

    Returns:
        The shares. A rater without labels has that of all labels, and an interval from 0 to 1.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.simulate.crowd(100, 5, accuracy=0.8, seed=1).annotations
        >>> votes = bc.MajorityVote().fit(ann).probas_.to_numpy()
        >>> share = rater_accuracies(ann, votes, votes, [], vote_weight=0, replicated=None)
        >>> bool((share.lower < share.estimate).all())
        True
    """
    task, label, worker = ann.task_codes, ann.label_codes, ann.worker_codes
    right = MIXTURE_SHARE * mixed[task, label] + (1 - MIXTURE_SHARE) * answer[task, label]
    given = np.maximum(ann.labels_per_worker, 1)
    mean = np.bincount(worker, right, ann.n_workers) / given
    variance = np.bincount(worker, right * (1 - right), ann.n_workers) / given**2
    shared = FIT_ERROR**2 + CLUSTER_ERROR**2 * _clustered(ann, clusters)
    variance += mean * (1 - mean) * (shared + UNDECIDED_ERROR**2 * vote_weight)
    if replicated is not None:
        variance += BETWEEN_FITS * np.nan_to_num(replicated.var(axis=0))
    lower, upper = beta_interval(mean, variance, LEVEL)
    share = whole_cases(Share(mean, lower, upper), ann.labels_per_worker)
    return _with_silent(share, ann.labels_per_worker)


def accuracies_in(judges: pd.DataFrame, n_labels: Int[np.ndarray, " worker"]) -> Share:
    """The shares of a gold report; a rater without labels has the share of all labels.

    Args:
        judges: a row per rater: accuracy, lower, upper.
        n_labels: number of labels of each rater.
    """
    columns = (judges[name].to_numpy() for name in ("accuracy", "lower", "upper"))
    return _with_silent(Share(*columns), n_labels)


def with_intervals(quality: pd.DataFrame, share: Share) -> pd.DataFrame:
    """A table of workers with these accuracies, and the ends of their intervals after them."""
    others = quality.drop(columns="accuracy")
    accuracies = dict(zip(("accuracy", "lower", "upper"), share, strict=True))
    return pd.concat([pd.DataFrame(accuracies, index=quality.index), others], axis=1)


def _clustered(ann: Annotations, clusters: Iterable[tuple[Hashable, ...]]) -> float:
    """Share of the labels that come from raters who repeat each other (c)."""
    members = [rater for cluster in clusters for rater in cluster]
    given = ann.labels_per_worker
    return float(given[ann.workers.isin(members)].sum() / max(given.sum(), 1))


def _with_silent(share: Share, n_labels: Int[np.ndarray, " worker"]) -> Share:
    silent = n_labels == 0
    of_all = np.average(np.where(silent, 0.0, share.estimate), weights=n_labels)
    return Share(
        np.where(silent, of_all, share.estimate),
        np.where(silent, 0.0, share.lower),
        np.where(silent, 1.0, share.upper),
    )
