"""How well the workers of a crowd agree with each other; no truth is needed.

Agreement is computed from the labels alone: `Annotations`, or a table with the columns task, worker
and label. Tasks with fewer than two labels say nothing about agreement and are left out. Repeated
labels by one worker count like labels by different workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from bayescrowd.data.annotations import as_annotations

__all__ = ["fleiss_kappa", "krippendorff_alpha", "percent_agreement"]


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
        >>> bc.agreement.percent_agreement(ann)
        0.6666666666666666
    """
    counts = _votes_on_repeated_tasks(data)
    n = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return float(np.mean(agreeing / (n * (n - 1))))


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
    counts = _votes_on_repeated_tasks(data)
    shares = counts.sum(axis=0) / counts.sum()
    chance = np.square(shares).sum()
    if shares.max() == 1:
        return float("nan")
    return float((percent_agreement(data) - chance) / (1 - chance))


def krippendorff_alpha(data: Any) -> float:
    """Krippendorff's alpha for nominal data, 1 - observed / expected disagreement.

    Any number of labels per task is allowed (Krippendorff, "Computing Krippendorff's
    alpha-reliability", 2011, section C). The result is 1 for perfect agreement, 0 on average for
    labels at random, negative for systematic disagreement, and NaN (undefined) if only one class
    was used.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two labels.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a"], ["b", "b"], ["a", "b"]])
        >>> round(bc.agreement.krippendorff_alpha(ann), 4)
        0.4444
    """
    counts = _votes_on_repeated_tasks(data)
    per_task = counts.sum(axis=1)
    per_class = counts.sum(axis=0)
    n = counts.sum()
    # A task's pairs of different classes are divided by its number of labels minus one, so that all
    # coincidences sum to the number of labels.
    observed = ((per_task**2 - np.square(counts).sum(axis=1)) / (per_task - 1)).sum()
    expected = (n**2 - np.square(per_class).sum()) / (n - 1)
    if expected == 0:
        return float("nan")
    return float(1 - observed / expected)


def _votes_on_repeated_tasks(data: Any) -> Float[np.ndarray, "item cls"]:
    """Votes on the tasks with at least two labels, as floats because their squares may be large."""
    annotations = as_annotations(data)
    counts = annotations.votes[annotations.labels_per_task >= 2].astype(float)
    if len(counts) == 0:
        raise ValueError("no task has two labels; expected at least one, to measure agreement")
    return counts
