"""What the default's answer rests on, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.aggregation.auto.alarm import ADVICE, Alarm
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.classifier import CLASSIFIER, Classified

__all__ = ["why_answer", "why_predictions"]

MUCH_CARE = 0.25
"""From this share of the answer on, `why_` names the methods that allow for shared errors."""

FEW_LABELS, MANY_LABELS = 40, 200
"""Median labels per worker below which `why_` speaks of few, and above which of many."""


def why_answer(
    scores: pd.DataFrame,
    weights: pd.Series,
    ann: Annotations,
    together: str,
    alarm: Alarm,
    *,
    pool: Sequence[Any],
) -> str:
    """What the answer rests on, how far raters err together, and what to do about it.

    Args:
        scores: how well each model of the pool predicts held-out labels.
        weights: share of the answer of each model and of the other methods.
        ann: the labels.
        together: how far raters err together, in words.
        alarm: whether labels alone can decide.
        pool: the models, `bayescrowd.aggregation.auto.pool.POOL`.
    """
    sentences = [_why_models(scores, ann, pool), together]
    careful = weights.drop([member.name for member in pool] + ["votes"]).sum()
    if careful > MUCH_CARE:
        sentences.append(
            f"Raters seem to err together: {careful:.0%} of the answer comes from methods that "
            "allow for it (fits under other weights of the raters, EBCC, BWA)."
        )
    if alarm.buy_gold:
        sentences += [alarm.reason, ADVICE]
    return " ".join(sentence for sentence in sentences if sentence)


def why_predictions(
    classified: Classified, answer: Float[np.ndarray, "item cls"], strength: float
) -> str:
    """What the predictions are worth."""
    used = np.flatnonzero(classified.is_labelled & (classified.leading >= 0))
    right = f"{answer[used, classified.leading[used]].mean():.0%}" if len(used) else "none"
    return (
        f"The predictions take part as one more rater ({CLASSIFIER!r}), right on about {right} of "
        f"the tasks with labels; their probabilities count with strength {strength:.2f} (1 if they "
        "are calibrated, less if they are over-confident)."
    )


def _why_models(scores: pd.DataFrame, ann: Annotations, pool: Sequence[Any]) -> str:
    families = [member.family for member in pool]
    by_family = scores["weight"].groupby(families, sort=False).sum().sort_values(ascending=False)
    leading = [f"{name} ({share:.0%})" for name, share in by_family.items() if share >= 0.1]
    per_worker = ann.labels_per_worker[ann.labels_per_worker > 0]
    median = float(np.median(per_worker))
    amount = "Few" if median < FEW_LABELS else "Many" if median > MANY_LABELS else "Enough"
    found = f"{amount} labels per worker (median {median:,.0f}): the answer averages models with "
    found += f"{', '.join(leading)}."
    if not (scores["standard_error"] > 0).any():  # a single task, or equal predictions
        return f"{found} Held-out labels say nothing about the models."
    best = next(member for member in pool if member.name == scores["score"].idxmax())
    return f"{found} Held-out labels are predicted best if {best.story}."
