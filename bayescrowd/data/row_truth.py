"""Labels and truth in the form in which scikit-learn hands them on: a matrix X and y, by row.

scikit-learn cuts X and y into the same rows and passes y as the second argument of `fit` and
`score`. So a matrix, tasks x workers, is read as labels here, and truth by row is told from truth
by task: the former is for scoring and never reaches a fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescrowd.data.annotations import Annotations, as_annotations
from bayescrowd.data.truth import Truth, known_labels
from bayescrowd.data.vocabulary import text_of

__all__ = ["gold_of", "labels_of", "truth_by_task"]

ROLES, JUDGED = {"task", "worker", "label"}, {"worker", "label"}
"""Columns, and levels of the index, of a table with a row per label: no matrix has any of them."""

MOST_LABELS = 20
"""A table with more distinct entries than this is taken for a matrix only under known classes."""


def labels_of(data: Any, classes: pd.Index | None = None) -> Annotations:
    """The labels of a table, a matrix or `Annotations`.

    Args:
        data: `Annotations`; a table with the columns task, worker and label; an array with a row
            per task and a column per worker; or such a matrix as a DataFrame, which is recognised
            by entries that its columns share.
        classes: the classes, if they are known.

    Examples:
        >>> labels_of(np.array([[0.0, 1.0], [1.0, np.nan]]))
        Annotations(3 labels: 2 tasks, 2 workers, 2 classes)
    """
    if _is_matrix(data, classes):
        return Annotations.from_matrix(data, None if classes is None else list(classes))
    return as_annotations(data, classes=classes)


def gold_of(data: Any, y: Any, gold: Truth | None) -> Truth | None:
    """The known labels that a fit may use: those of `gold`, or of `y` if these are by task.

    Args:
        data: the labels.
        y: the second argument of `fit`: known labels by task, or what scikit-learn passes, the
            truth of each row, which is not used.
        gold: known labels by task.

    Raises:
        TypeError: there are known labels in `y` and in `gold`, or `y` is neither.

    Examples:
        >>> matrix = np.array([[0, 1], [1, 1]])
        >>> gold_of(matrix, np.array([0, 1]), None) is None
        True
        >>> gold_of(Annotations.from_matrix(matrix), {0: 1}, None)
        {0: 1}
    """
    if y is None or _is_matrix(data, None) or _is_by_row(data, y):
        return gold
    if gold is not None:
        raise TypeError("gold was given twice: as the second argument and by its name")
    return y  # checked where it is used, under the name of gold


def truth_by_task(data: Any, y: Any, classes: pd.Index | None = None) -> Truth:
    """Truth by task, from truth by task or by row of `data`.

    Args:
        data: the labels.
        y: true class by task, or of each row.
        classes: the classes, if they are known.

    Raises:
        ValueError: y has another length than there are rows, or two classes for one task.

    Examples:
        >>> truth_by_task(np.array([[0, 1], [1, 1]]), [1, 0]).to_dict()
        {0: 1, 1: 0}
    """
    if _is_matrix(data, classes):
        rows = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(len(data))
        has_tasks = isinstance(y, pd.Series) and isinstance(data, pd.DataFrame)
        return y if isinstance(y, Mapping) or has_tasks else _in_rows(y, rows, "the matrix")
    if isinstance(data, pd.DataFrame) and _is_by_row(data, y):
        tasks = data["task"] if "task" in data else data.index.get_level_values("task")
        return known_labels(_in_rows(y, pd.Index(tasks), "the table"), "truth")
    return y


def _in_rows(y: Any, rows: pd.Index, what: str) -> pd.Series:
    values = np.asarray(y)
    if values.shape != (len(rows),):
        raise ValueError(
            f"y has the shape {values.shape}, but {what} has {len(rows):,} rows; expected the true "
            "class of each row"
        )
    return pd.Series(values, index=rows)


def _is_by_row(data: Any, y: Any) -> bool:
    """Whether y is a list or an array, or a Series with the same index as the table."""
    if isinstance(y, pd.Series):
        return isinstance(data, pd.DataFrame) and y.index.equals(data.index)
    return isinstance(y, np.ndarray | list)


def _is_matrix(data: Any, classes: pd.Index | None) -> bool:
    """Whether the data are a matrix, tasks x workers."""
    if isinstance(data, np.ndarray):
        return data.ndim == 2
    if not isinstance(data, pd.DataFrame):
        return False
    # The index of a matrix may well be named 'task'.
    is_long = not ROLES.isdisjoint(data.columns) or not JUDGED.isdisjoint(data.index.names)
    if is_long or data.shape[1] < 2:
        return False
    by_column = [
        {text_of(x) for x in data.iloc[:, k].dropna().unique()} for k in range(data.shape[1])
    ]
    found = set().union(*by_column)
    if classes is not None:
        return found <= {text_of(x) for x in classes}
    shared = {x for x in found if sum(x in column for column in by_column) > 1}
    most = all(2 * len(column & shared) >= len(column) for column in by_column)
    return 0 < len(found) <= MOST_LABELS and most
