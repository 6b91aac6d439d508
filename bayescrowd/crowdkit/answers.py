"""crowd-kit's table of labels as codes, and what all classes of this folder share.

crowd-kit sorts tasks, workers and classes as pandas does ('c10' < 'c2') and takes a single class,
so that vocabularies are made here rather than by `Annotations.from_frame`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.votes import TIE
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity
from bayescrowd.estimator import ParameterMixin

__all__ = [
    "Answers",
    "CrowdKitAggregator",
    "distinct_answers",
    "first_leaders",
    "leading_labels",
    "proba_frame",
    "read_answers",
]

_COLUMNS = ["task", "worker", "label"]

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="CrowdKitAggregator")


class CrowdKitAggregator(ParameterMixin, ABC):
    """Base of the classes that answer for the tasks of the fit alone.

    Attributes:
        labels_: class of each task, a Series named agg_label.
        probas_: P(class) of each task, tasks x classes.
    """

    labels_: pd.Series
    probas_: pd.DataFrame

    @abstractmethod
    def fit(self: Itself, data: pd.DataFrame) -> Itself:
        """Learn from labels, a table with the columns task, worker and label."""

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Fit and return `labels_`."""
        return self.fit(data).labels_

    def fit_predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Fit and return `probas_`."""
        return self.fit(data).probas_

    def _is_empty(self, answers: Answers) -> bool:
        """Whether there are no labels, so that the results are empty; then it sets them."""
        if answers.ann.n_labels:
            return False
        self.probas_ = proba_frame(np.empty((0, 0)), answers.ann)
        self.labels_ = leading_labels(self.probas_)
        return True

    def _refuse_changed(self, **defaults: Any) -> None:
        """Raise if a parameter that has no meaning here differs from its default in crowd-kit."""
        for name, default in defaults.items():
            value = getattr(self, name)
            if value is not default and not (isinstance(value, type(default)) and value == default):
                raise ValueError(
                    f"{name} was set, but means nothing to {type(self).__name__} of "
                    f"bayescrowd.crowdkit; expected its default, {default!r}"
                )


class Answers(NamedTuple):
    """A table of labels, coded."""

    ann: Annotations
    """The labels, with all vocabularies in pandas' sort order."""
    frame: pd.DataFrame
    """The rows with a label."""

    def seen_first(self, column: str) -> pd.Index:
        """Tasks, workers or labels in the order in which the table names them."""
        return pd.Index(pd.unique(self.frame[column]), name=column)

    @property
    def pairs_seen_first(self) -> pd.MultiIndex:
        """The pairs of a worker and a label, in that order."""
        return pd.MultiIndex.from_frame(self.frame[["worker", "label"]].drop_duplicates())


def read_answers(data: pd.DataFrame) -> Answers:
    """Code a table of labels.

    Raises:
        KeyError: a column is absent, as in crowd-kit.
        ValueError: a task or a worker is missing.
    """
    absent = [name for name in _COLUMNS if name not in data.columns]
    if absent:
        raise KeyError(
            f"the table of labels has no column {absent[0]!r}; expected task, worker and label"
        )
    frame = data[_COLUMNS].dropna(subset=["label"])
    for name in ("task", "worker"):
        if n_missing := int(frame[name].isna().sum()):
            raise ValueError(
                f"column {name!r}: {quantity(n_missing, 'row')} without a {name}; expected an id"
            )
    task, tasks = _sorted_codes(frame["task"])
    worker, workers = _sorted_codes(frame["worker"])
    label, classes = _sorted_codes(frame["label"])
    order = np.lexsort((label, worker, task))
    ann = Annotations(task[order], worker[order], label[order], tasks, workers, classes)
    return Answers(ann, frame)


def _sorted_codes(column: pd.Series) -> tuple[Int[np.ndarray, " label"], pd.Index]:
    codes, names = pd.factorize(column, sort=True)
    index = pd.Index(names, name=column.name)
    if isinstance(index.dtype, pd.CategoricalDtype):  # such an index refuses ids of other tables
        index = index.astype(index.categories.dtype)
    return codes.astype(np.int32), index


def distinct_answers(ann: Annotations) -> Bool[np.ndarray, " label"]:
    """Whether each label is the first of its kind: same task, worker and class."""
    codes = np.stack([ann.task_codes, ann.worker_codes, ann.label_codes])
    differs = (codes[:, 1:] != codes[:, :-1]).any(axis=0)
    return np.concatenate([np.ones(min(ann.n_labels, 1), dtype=bool), differs])


def proba_frame(probas: Float[np.ndarray, "item cls"], ann: Annotations) -> pd.DataFrame:
    """P(class) as a table, tasks x classes."""
    return pd.DataFrame(probas, index=ann.tasks, columns=ann.classes)


def leading_labels(scores: pd.DataFrame) -> pd.Series:
    """The first of the classes with the largest score on each task."""
    if scores.empty:
        return pd.Series([], index=scores.index, dtype=object, name="agg_label")
    labels = scores.columns.take(first_leaders(scores.to_numpy()))
    return pd.Series(labels.array, index=scores.index, name="agg_label")


def first_leaders(scores: Float[np.ndarray, "item cls"]) -> Int[np.ndarray, " item"]:
    """Position of the first class whose score is within rounding of the largest."""
    if scores.size == 0:
        return np.zeros(len(scores), dtype=np.int64)
    return (scores >= scores.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
