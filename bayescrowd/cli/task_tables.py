"""The table with one row per task that `aggregate` writes, and its beginning as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayescrowd.cli.text import align
from bayescrowd.data.text import shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations

__all__ = ["first_tasks", "task_table"]


def task_table(
    labels: pd.Series, probas: pd.DataFrame, ann: Annotations, *, every_class: bool
) -> pd.DataFrame:
    """Label, certainty and number of votes of each task.

    Args:
        labels: most probable class of each task.
        probas: P(class) of each task.
        ann: the labels.
        every_class: whether to add a column with the probability of each class.
    """
    import numpy as np
    import pandas as pd
    from scipy.special import entr

    values = probas.to_numpy()
    table = pd.DataFrame(
        {
            "task": probas.index,
            "label": labels.array,
            "probability": values.max(axis=1),
            "entropy": entr(values).sum(axis=1),
            # Tasks that a classifier alone has seen come last.
            "n_votes": np.pad(ann.labels_per_task, (0, len(values) - ann.n_tasks)),
        }
    )
    if every_class:
        columns = {f"probability:{c}": values[:, k] for k, c in enumerate(probas.columns)}
        table = table.assign(**columns)
    return table


def first_tasks(tasks: pd.DataFrame) -> str:
    """The first rows of `task_table` as text."""
    rows = [["task", "label", "probability", "entropy", "votes"]]
    for row in tasks.head(5).itertuples(index=False):
        rows.append(
            [
                shorten(row.task, 32),
                shorten(row.label, 32),
                f"{row.probability:.4f}",
                f"{row.entropy:.4f}",
                f"{row.n_votes:,}",
            ]
        )
    return (
        f"first tasks (entropy in nats; --out FILE writes all {len(tasks):,})\n"
        f"{align(rows, left=(0, 1))}"
    )
