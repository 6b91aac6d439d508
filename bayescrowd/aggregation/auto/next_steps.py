"""What to try next after a fit of the default, as one sentence with a call or command that exists.

The first of these that applies is named: gold that narrows a wide interval, workers who are
flagged, raters who repeat each other, tasks that are not settled, and else the posterior, which
says how sure the rest is. Where labels alone cannot decide, the alarm already asks for gold.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity

__all__ = ["next_step"]

WIDE_INTERVAL = 0.1
"""Width of the interval of the accuracy from which on further gold is worth its price."""

MANY_UNSETTLED = 0.1
"""Share of tasks below 95 % from which on further labels are suggested."""

SETTLED = 0.95
"""Probability of its label from which on a task counts as settled."""


def next_step(
    ann: Annotations,
    probas: pd.DataFrame,
    quality: pd.DataFrame,
    *,
    n_in_clusters: int,
    needs_gold: bool,
    accuracy: pd.Series | None,
) -> str:
    """What to try next.

    Args:
        ann: the labels.
        probas: P(class) of each task.
        quality: the table of the workers.
        n_in_clusters: number of raters who repeat others.
        needs_gold: whether labels alone cannot decide.
        accuracy: estimate, lower and upper end of the accuracy by gold labels; None without gold.

    Returns:
        A sentence, empty where the alarm has said it.

    Examples:
        >>> import bayescrowd as bc
        >>> est = bc.MajorityVote()
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("abb"), list("aaa")])
        >>> probas, quality = est.fit(ann).probas_, est.worker_quality_
        >>> next_step(ann, probas, quality, n_in_clusters=0, needs_gold=True, accuracy=None)
        ''
    """
    if accuracy is None and needs_gold:
        return ""
    if accuracy is not None and accuracy["upper"] - accuracy["lower"] > WIDE_INTERVAL:
        return (
            "Next: bayescrowd.suggest_gold(est, 20, gold=gold) names further tasks whose truth "
            "would narrow this interval."
        )
    flagged = int((quality["flag"] != "").sum())
    if flagged:
        each = "the flagged worker has" if flagged == 1 else f"the {flagged:,} flagged workers have"
        return (
            f"Next: check what {each} answered (worker_quality_, or --workers FILE on the command "
            "line) before you buy more labels there."
        )
    if n_in_clusters:
        return (
            f"Next: bayescrowd.panel_report(data), or bayescrowd panel FILE, says what it would "
            f"cost to drop some of the {quantity(n_in_clusters, 'rater')} who repeat others."
        )
    certainty = probas.to_numpy().max(axis=1)
    unsettled = int((certainty < SETTLED).sum())
    if unsettled > MANY_UNSETTLED * len(certainty):
        labels = f"{np.mean(ann.labels_per_task):.3g} labels on average"
        return (
            f"Next: ask for more labels of the {quantity(unsettled, 'task')} below {SETTLED:.0%} "
            f"(tasks have {labels}), the least certain first: probas_.max(axis=1).nsmallest(20)."
        )
    return (
        "Next: bayescrowd.sample_posterior('dawid_skene', data), or bayescrowd posterior FILE, "
        "draws how sure the shares of the classes and the workers' accuracies are."
    )
