"""The alarm: where labels alone cannot tell who is right, gold labels have to.

Nothing in the labels says whether the raters who outvote the others, or those who outsmart them,
are right. Two signs show that it matters: fits under other weights of the raters contradict each
other, or the answer leaves the majority vote on many tasks. Among the development panels, the
second went with the crowds on which some model was far worse than the vote.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.auto.blend import UNSTABLE
from bayescrowd.aggregation.votes import leading_shares
from bayescrowd.data.annotations import Annotations

__all__ = ["ADVICE", "Alarm", "raise_alarm", "vote_disagreement"]

BUY_GOLD_DISAGREEMENT = 0.2
"""Where the answer differs from the votes on more than this share of the tasks, gold is needed."""

ADVICE = (
    "Labels alone cannot tell who is right: buy gold labels for some 20 tasks, which "
    "bayescrowd.suggest_gold chooses, and pass them as gold."
)
"""What to do about the alarm."""


class Alarm(NamedTuple):
    """Whether labels alone can decide, judged without gold."""

    buy_gold: bool
    """Whether gold labels are needed."""
    disagreement: float
    """Share of tasks on which the answer differs from the majority vote."""
    instability: float
    """How far fits under random weights of the raters contradict each other, NaN if unknown."""
    reason: str
    """The sign that raised the alarm, in words; empty if none did."""


def raise_alarm(
    answer: Float[np.ndarray, "item cls"],
    ann: Annotations,
    *,
    instability: float,
    vote_weight: float,
) -> Alarm:
    """Judge whether gold labels are needed.

    Args:
        answer: P(class) of each task by the default without gold.
        ann: the labels.
        instability: how far fits under random weights of the raters contradict each other.
        vote_weight: share of the votes in the answer.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bba"), list("aaa")])
        >>> against = np.array([[0.4, 0.6], [0.3, 0.7], [0.9, 0.1]])
        >>> alarm = raise_alarm(against, ann, instability=0.1, vote_weight=0.05)
        >>> alarm.buy_gold, alarm.reason
        (True, 'The answer differs from the majority vote on 33% of the tasks.')
    """
    disagreement, reason = vote_disagreement(answer, ann), ""
    if instability > UNSTABLE:
        reason = (
            "Fits under other weights of the raters contradict each other (instability "
            f"{instability:.2f}), so that votes have {vote_weight:.0%} of the say."
        )
    elif disagreement > BUY_GOLD_DISAGREEMENT:
        reason = f"The answer differs from the majority vote on {disagreement:.0%} of the tasks."
    return Alarm(bool(reason), disagreement, float(instability), reason)


def vote_disagreement(answer: Float[np.ndarray, "item cls"], ann: Annotations) -> float:
    """Share of tasks whose label is not among those with the most votes."""
    labelled = ann.labels_per_task > 0
    leading = leading_shares(ann.votes[labelled].astype(float))
    label = answer[labelled].argmax(axis=1)
    return float((leading[np.arange(len(label)), label] == 0).mean())
