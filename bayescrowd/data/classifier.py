"""Probabilities of a classifier, matched with the labels of a crowd.

A table of probabilities, tasks x classes, becomes one more rater, who gives each predicted task its
most probable class. Tasks that only the classifier has seen join the others. A row in which several
classes lead gives no label; its probabilities are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.checks.parameters import as_numbers, validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.predictions import check_probas
from bayescrowd.data.vocabulary import comma_list, quote

__all__ = ["CLASSIFIER", "Classified", "add_classifier"]

CLASSIFIER = "predictions"
"""The classifier's id among the workers."""

SAME = 1e-9
"""Classes whose probabilities differ by less than this lead together."""


class Classified(NamedTuple):
    """Labels of a crowd and of a classifier."""

    annotations: Annotations
    """The labels of both; the classifier is the last worker."""
    probas: Float[np.ndarray, "item cls"]
    """The classifier's probabilities, NaN for tasks that it has not predicted."""
    leading: Int[np.ndarray, " item"]
    """The classifier's label of each task, -1 where it gives none."""
    is_labelled: Bool[np.ndarray, " item"]
    """Whether the crowd has labelled the task."""


@validate_arguments
def add_classifier(ann: Annotations, predictions: pd.DataFrame) -> Classified:
    """Make a classifier one more rater.

    Args:
        ann: the labels of the crowd.
        predictions: probabilities with a row per task and a column per class; tasks may be absent
            or have a row of NaN.

    Raises:
        ValueError: a row does not hold probabilities, a task is listed twice, or tasks or classes
            have nothing in common with those of the crowd.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "b"], ["b", "b"]])
        >>> predictions = pd.DataFrame({"a": [0.9, 0.2], "b": [0.1, 0.8]}, index=[0, 7])
        >>> both = add_classifier(ann, predictions)
        >>> both.annotations
        Annotations(6 labels: 3 tasks, 3 workers, 2 classes)
        >>> both.leading.tolist(), both.is_labelled.tolist()
        ([0, -1, 1], [True, True, False])
    """
    values = as_numbers("predictions", predictions)
    predictions = pd.DataFrame(values, index=predictions.index, columns=predictions.columns)
    check_probas(predictions)
    predictions = predictions[~np.isnan(values).all(axis=1)]
    _check_ids(ann, predictions)
    ann = ann.with_classes(predictions.columns)
    further = predictions.index[~predictions.index.isin(ann.tasks)]
    tasks = ann.tasks.append(further).rename(ann.tasks.name)
    place = tasks.get_indexer(predictions.index)
    probas = np.zeros((len(tasks), ann.n_classes))
    probas[:, ann.classes.get_indexer(predictions.columns)] = np.nan
    probas[place[:, None], ann.classes.get_indexer(predictions.columns)] = predictions.to_numpy()
    probas[np.isnan(probas).any(axis=1)] = np.nan
    leading = _leading(probas)
    labelled = np.flatnonzero(leading >= 0)
    codes = (
        np.concatenate([ann.task_codes, labelled]),
        np.concatenate([ann.worker_codes, np.full(len(labelled), ann.n_workers)]),
        np.concatenate([ann.label_codes, leading[labelled]]),
    )
    workers = ann.workers.append(pd.Index([CLASSIFIER])).rename(ann.workers.name)
    both = Annotations.from_codes(*codes, tasks=tasks, workers=workers, classes=ann.classes)
    is_labelled = np.zeros(len(tasks), dtype=bool)
    is_labelled[: ann.n_tasks] = ann.labels_per_task > 0
    return Classified(replace(both, n_dropped=ann.n_dropped), probas, leading, is_labelled)


def _check_ids(ann: Annotations, predictions: pd.DataFrame) -> None:
    """Raise if tasks, classes or workers do not fit together."""
    if not predictions.index.is_unique:
        twice = predictions.index[predictions.index.duplicated()][0]
        raise ValueError(f"predictions list task {quote(twice)} twice; expected it once")
    labelled = ann.tasks[ann.labels_per_task > 0]
    if not predictions.index.isin(labelled).any():
        found = f" (such as {quote(predictions.index[0])})" if len(predictions) else ""
        raise ValueError(
            f"predictions: none of the {len(predictions):,} predicted tasks{found} is among the "
            f"{len(labelled):,} tasks with labels (such as {quote(labelled[0])})"
        )
    if not predictions.columns.isin(ann.classes).any():
        raise ValueError(
            f"predictions have the columns {comma_list(predictions.columns)}; expected the classes "
            f"{comma_list(ann.classes)}"
        )
    if CLASSIFIER in ann.workers:
        raise ValueError(
            f"a worker is named {CLASSIFIER!r}, which is the name of the predictions among the "
            "workers; expected another id"
        )


def _leading(probas: Float[np.ndarray, "item cls"]) -> Int[np.ndarray, " item"]:
    filled = np.where(np.isnan(probas), 0.0, probas)
    largest = filled.max(axis=1, keepdims=True)
    is_alone = (filled >= largest - SAME).sum(axis=1) == 1
    return np.where(is_alone, filled.argmax(axis=1), -1)
