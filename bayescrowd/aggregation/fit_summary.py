"""A fit on one line for a terminal, and as a small table with bars for a notebook."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table
from bayescrowd.data.text import quantity, shorten

__all__ = ["SURE", "html_of_fit", "share_of_sure", "summary_of_fit"]

SURE = 0.95
"""Probability from which on a label counts as sure."""

N_EXTREMES = 3
"""Workers with the highest accuracy that a table shows, and as many with the lowest."""


def share_of_sure(probas: pd.DataFrame) -> float:
    """Share of the tasks whose label is at least 95 % sure."""
    return float((probas.to_numpy().max(axis=1) >= SURE).mean())


def summary_of_fit(ann: Annotations, probas: pd.DataFrame, quality: pd.DataFrame) -> str:
    """What a fit has found, in a few words.

    Args:
        ann: the labels of the fit.
        probas: P(class) of each task.
        quality: the table of the workers.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb")])
        >>> est = bc.MajorityVote().fit(ann)
        >>> summary_of_fit(ann, est.probas_, est.worker_quality_)
        '2 tasks of 2 classes, 6 labels by 3 workers; 50% of the labels at least 95% sure'
    """
    given = f"{quantity(ann.n_labels, 'label')} by {quantity(ann.n_workers, 'worker')}"
    classes = quantity(ann.n_classes, "class", "classes")
    found = f"{share_of_sure(probas):.0%} of the labels at least {SURE:.0%} sure"
    flagged = int((quality["flag"] != "").sum())
    flags = f", {quantity(flagged, 'worker')} flagged" if flagged else ""
    return f"{quantity(ann.n_tasks, 'task')} of {classes}, {given}; {found}{flags}"


def html_of_fit(
    caption: str,
    ann: Annotations,
    labels: pd.Series,
    probas: pd.DataFrame,
    quality: pd.DataFrame,
    *,
    note: str = "",
) -> str:
    """The same as tables: how the tasks spread over the classes, and the best and worst workers.

    Args:
        caption: what stands above the tables.
        ann: the labels of the fit.
        labels: most probable class of each task.
        probas: P(class) of each task.
        quality: the table of the workers.
        note: what stands below the tables.
    """
    counts = pd.Index(probas.columns).get_indexer(pd.Index(labels))
    share = np.bincount(counts, minlength=probas.shape[1]) / len(labels)
    order = np.argsort(-share, kind="stable")[:MOST_ROWS]
    classes = [[probas.columns[k], Bar(share[k], f"{share[k]:.1%}")] for k in order]
    ranked = quality.sort_values("accuracy", ascending=False, kind="stable")
    shown = ranked
    if len(ranked) > 2 * N_EXTREMES:
        shown = pd.concat([ranked.head(N_EXTREMES), ranked.tail(N_EXTREMES)])
    workers = [
        [worker, Bar(accuracy, f"{accuracy:.2f}"), f"{n_labels:,}", flag]
        for worker, accuracy, n_labels, flag in zip(
            shown.index, shown["accuracy"], shown["n_labels"], shown["flag"], strict=True
        )
    ]
    few = len(shown) < len(ranked)
    extremes = f"The best and the worst {N_EXTREMES} of {len(ranked):,} workers. " if few else ""
    return notebook_table(
        caption,
        ["class", "share of the tasks"],
        classes,
        note=first_rows(probas.shape[1], "class", "classes"),
    ) + notebook_table(
        "",
        ["worker", "accuracy (estimated)", "labels", "flag"],
        workers,
        note=shorten(f"{extremes}{note}", 1000),
    )
