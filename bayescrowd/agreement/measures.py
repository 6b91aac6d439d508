"""Percent agreement, Fleiss' kappa, Gwet's AC1 and Krippendorff's alpha.

Every measure is 1 - D / E, with an observed disagreement D and an expected one E. With p_i the
share of the pairs of labels of task i that agree, q_k the share of class k among the labels of the
compared tasks, and pi_k the mean over all labelled tasks of its share in the task,

    percent agreement    D = 1 - mean_i p_i    E = 1
    Fleiss' kappa        D as above            E = 1 - sum_k q_k^2             (Fleiss 1971)
    Gwet's AC1           D as above            E = 1 - sum_k pi_k (1 - pi_k) / (K - 1)
    Krippendorff's alpha                                        (Krippendorff 2011, section C)
        D = sum_i sum_{c, k} n_ic n_ik d(c, k) / ((n_i - 1) n)
        E = sum_{c, k} n_c n_k d(c, k) / ((n - 1) n)

where n_ic counts the labels c of task i and d is the squared distance of two classes. AC1 is that
of Gwet (2008, "Computing inter-rater reliability and its variance in the presence of high
agreement"), for any number of labels per task as in his Handbook of Inter-Rater Reliability (2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bayescrowd.agreement.class_scale import ClassScale, Metric, class_scale
from bayescrowd.agreement.task_sums import TaskSums, task_units
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.annotations import as_annotations

__all__ = [
    "MEASURES",
    "agreement_of",
    "disagreements",
    "fleiss_kappa",
    "gwet_ac1",
    "krippendorff_alpha",
    "percent_agreement",
]

MEASURES = ("percent_agreement", "fleiss_kappa", "gwet_ac1", "krippendorff_alpha")
"""Names of the measures, in the order in which they are computed and shown."""


@validate_arguments
def percent_agreement(data: Any) -> float:
    """Fraction (0 to 1) of the pairs of labels of a task that agree, averaged over tasks.

    This is the observed agreement of Fleiss (1971), for any number of labels per task.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two labels.

    Examples:
        All three pairs of labels of the first task agree, and one of the three of the second:

        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a", "a"], ["a", "a", "b"]])
        >>> round(bc.agreement.percent_agreement(ann), 4)
        0.6667
    """
    return _measure(data, "percent_agreement")


@validate_arguments
def fleiss_kappa(data: Any) -> float:
    """Agreement beyond chance, (observed - chance) / (1 - chance), of Fleiss (1971).

    Observed agreement is `percent_agreement`; chance agreement is the sum of the squared shares of
    the classes among all labels. Fleiss assumed the same number of labels for every task; the same
    two quantities are used if the numbers differ, but `krippendorff_alpha` is designed for that
    case. The result is 1 for perfect agreement, 0 on average for independent labels, and NaN
    (undefined) if only one class was used.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two labels.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a"], ["b", "b"], ["a", "b"]])
        >>> round(bc.agreement.fleiss_kappa(ann), 4)
        0.3333
    """
    return _measure(data, "fleiss_kappa")


@validate_arguments
def gwet_ac1(data: Any) -> float:
    """Agreement beyond chance of Gwet (2008), which stays high where one class is rare.

    If nearly all labels are of one class, kappa and alpha can be close to 0 although the workers
    agree nearly everywhere. AC1 takes only labels of tasks that are hard to tell for labels by
    chance: its chance agreement is at most 1 / K for K classes, and smaller if one class prevails.
    Classes that nobody chose count if they are among the declared classes. Tasks with one label
    enter the shares of the classes.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two labels.

    Examples:
        The workers agree on 18 of 20 tasks, nearly always on 'no':

        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["no", "no"]] * 18 + [["no", "yes"], ["yes", "no"]])
        >>> round(bc.agreement.gwet_ac1(ann), 3), round(bc.agreement.fleiss_kappa(ann), 3)
        (0.89, -0.053)
    """
    return _measure(data, "gwet_ac1")


@validate_arguments
def krippendorff_alpha(
    data: Any, *, metric: Metric = "nominal", order: Sequence[Any] | None = None
) -> float:
    """Krippendorff's alpha, 1 - observed / expected disagreement.

    Any number of labels per task is allowed (Krippendorff, "Computing Krippendorff's
    alpha-reliability", 2011). The result is 1 for perfect agreement, 0 on average for labels at
    random, negative for systematic disagreement, and NaN (undefined) if only one class was used.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        metric: how far two classes are apart. 'nominal': equally far; 'ordinal': by the number of
            labels between them; 'interval': by the difference of the classes, which are numbers.
        order: the classes from the lowest to the highest, for 'ordinal'. By default, classes that
            are numbers are ordered by number, and others stay in the order in which `data` declares
            them, unless it is the alphabetical one, which is refused.

    Raises:
        ValueError: no task has two labels, or the classes do not fit the metric.

    Examples:
        Grades 1 and 2 are closer to each other than 1 and 3:

        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([[1, 1], [2, 3], [3, 3], [1, 2]])
        >>> round(bc.agreement.krippendorff_alpha(ann), 4)
        0.3333
        >>> round(bc.agreement.krippendorff_alpha(ann, metric="interval"), 4)
        0.7083
    """
    return _measure(data, "krippendorff_alpha", metric, order)


def disagreements(
    sums: TaskSums, scale: ClassScale
) -> tuple[Float[np.ndarray, "draw measure"], Float[np.ndarray, "draw measure"]]:
    """D and E of every measure in the order of `MEASURES`; NaN where a measure is undefined."""
    n = sums.labels.sum(axis=-1)
    n_classes = sums.labels.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = 1 - sums.agreement / sums.n_compared
        shares = sums.labels / n[..., None]
        mean_shares = sums.shares / sums.n_labelled[..., None]
        one_class = sums.labels.max(axis=-1) == n
        kappa = np.where(one_class, np.nan, 1 - np.square(shares).sum(axis=-1))
        # One declared class is 0 / 0: nothing can be said about chance.
        gwet = 1 - (mean_shares * (1 - mean_shares)).sum(axis=-1) / np.float64(n_classes - 1)
        gwet = np.where(sums.n_compared > 0, gwet, np.nan)
        apart = _observed_distance(sums, scale) / n
        alpha = np.where(one_class, np.nan, _expected_distance(sums, scale) / n)
    everywhere = np.where(sums.n_compared > 0, 1.0, np.nan)
    return (
        np.stack([observed, observed, observed, apart], axis=-1),
        np.stack([everywhere, kappa, gwet, alpha], axis=-1),
    )


def agreement_of(sums: TaskSums, scale: ClassScale) -> Float[np.ndarray, "draw measure"]:
    """Every measure, 1 - D / E, in the order of `MEASURES`; NaN where it is undefined."""
    observed, expected = disagreements(sums, scale)
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - observed / expected


def _observed_distance(sums: TaskSums, scale: ClassScale) -> Float[np.ndarray, " draw"]:
    if scale.metric != "ordinal":
        return sums.disagreement[..., 0]
    places, (first, second) = scale.places(sums.labels), sums.pairs
    gaps = np.square(places[..., first] - places[..., second])
    return (sums.disagreement * gaps).sum(axis=-1)


def _expected_distance(sums: TaskSums, scale: ClassScale) -> Float[np.ndarray, " draw"]:
    n = sums.labels.sum(axis=-1)
    if scale.metric == "nominal":
        return (n**2 - np.square(sums.labels).sum(axis=-1)) / (n - 1)
    places = scale.places(sums.labels)
    mean = (sums.labels * places).sum(axis=-1) / n
    spread = (sums.labels * np.square(places - mean[..., None])).sum(axis=-1)
    return 2 * n * spread / (n - 1)


def _measure(
    data: Any, name: str, metric: Metric = "nominal", order: Sequence[Any] | None = None
) -> float:
    annotations = as_annotations(data)
    scale = class_scale(annotations.classes, metric, order)
    units = task_units(annotations, scale, np.random.default_rng(0))
    total = units.total()
    if total.n_compared == 0:
        raise ValueError("no task has two labels; expected at least one, to measure agreement")
    return float(agreement_of(total, scale)[0, MEASURES.index(name)])
