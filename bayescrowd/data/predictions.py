"""Predictions matched with known true classes, ready to be scored.

A prediction is a table of probabilities, tasks x classes, or a Series of labels. A task whose truth
is known but which has no prediction (no row, or a row of NaN) gets uniform probabilities. A
predicted task whose truth is unknown is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.data.truth import Truth, known_labels, warn_of_classes, warn_of_truth
from bayescrowd.data.vocabulary import comma_list, natural_key, quote

__all__ = ["TIE_TOLERANCE", "ScoredTasks", "check_probas", "match_prediction", "match_probas"]

TIE_TOLERANCE = 1e-9
"""Classes within this relative distance of the largest probability are tied."""


class ScoredTasks(NamedTuple):
    """Predictions and true classes of the tasks whose truth is known."""

    probas: Float[np.ndarray, "item cls"]
    """Predicted probabilities, uniform for tasks without a prediction."""
    truth: Int[np.ndarray, " item"]
    """Position of the true class in `classes`."""
    classes: pd.Index
    """The classes of the prediction, followed by those that occur only in the truth."""

    @property
    def decisions(self) -> Float[np.ndarray, "item cls"]:
        """Probability of each class under a uniform choice among those tied for the largest."""
        tied = self.probas >= self.probas.max(axis=1, keepdims=True) * (1 - TIE_TOLERANCE)
        return tied / tied.sum(axis=1, keepdims=True)

    @property
    def correct(self) -> Float[np.ndarray, " item"]:
        """Probability that each task's label is correct."""
        return self.decisions[np.arange(len(self.truth)), self.truth]


def match_probas(probas: pd.DataFrame, truth: Truth) -> ScoredTasks:
    """`match_prediction`, restricted to tables of probabilities."""
    if not isinstance(probas, pd.DataFrame):
        raise TypeError(
            f"probabilities came as {type(probas).__name__}; expected a DataFrame, tasks x classes"
        )
    return match_prediction(probas, truth)


def match_prediction(
    prediction: pd.DataFrame | pd.Series, truth: Truth, classes: Sequence[Any] | None = None
) -> ScoredTasks:
    """Match a prediction with the truth by task id.

    Args:
        prediction: probabilities, tasks x classes, or labels by task.
        truth: true class by task.
        classes: the classes, if the prediction is a Series of labels. By default, the categories
            of a categorical Series, or else the classes found in the prediction and the truth.

    Raises:
        ValueError: no task of the truth is predicted, a task is listed twice, or a row does not
            hold probabilities.

    Warns:
        TruthWarning: some tasks or classes of the truth are unknown to the prediction.
    """
    known = _known_truth(truth)
    if isinstance(prediction, pd.DataFrame):
        if classes is not None:
            raise ValueError(
                "classes= was given with a table of probabilities, whose columns are its classes; "
                "expected it with a Series of labels only"
            )
        check_probas(prediction)
        probas = prediction
    elif isinstance(prediction, pd.Series):
        probas = _one_hot(prediction, known, classes)
    else:
        raise TypeError(
            f"the prediction came as {type(prediction).__name__}; expected a DataFrame of "
            "probabilities, tasks x classes, or a Series of labels"
        )
    if not probas.index.is_unique:
        twice = probas.index[probas.index.duplicated()][0]
        raise ValueError(f"the prediction lists task {quote(twice)} twice; expected it once")
    rows = probas.index.get_indexer(known.index)
    if (rows < 0).all():
        raise ValueError(
            "no task of the truth is predicted: the truth has tasks such as "
            f"{quote(known.index[0])}, the prediction has tasks such as {quote(probas.index[0])}"
        )
    _warn_of_mismatch(known, probas, rows)
    values = probas.to_numpy(dtype=float)[rows]
    values[rows < 0] = np.nan
    values = np.where(np.isnan(values), 1 / values.shape[1], values)
    others = [c for c in pd.unique(known) if c not in probas.columns]
    columns = probas.columns.append(pd.Index(sorted(others, key=natural_key), dtype=object))
    return ScoredTasks(
        probas=np.pad(values, ((0, 0), (0, len(others)))),
        truth=columns.get_indexer(pd.Index(known)),
        classes=columns if others else probas.columns,
    )


def _warn_of_mismatch(
    known: pd.Series, probas: pd.DataFrame, rows: Int[np.ndarray, " item"]
) -> None:
    """Warn of tasks and classes of the truth that the prediction lacks."""
    n_absent = int((rows < 0).sum())
    if n_absent:
        warn_of_truth(
            f"{n_absent:,} of {len(known):,} truth tasks "
            f"{'has no prediction and counts' if n_absent == 1 else 'have no prediction and count'}"
            f" as a uniform guess (such as {quote(known.index[int(np.argmax(rows < 0))])})"
        )
    warn_of_classes(known[~known.isin(probas.columns)], len(known), "truth", "wrong")


def _known_truth(truth: Truth) -> pd.Series:
    known = known_labels(truth, "truth")
    if len(known) == 0:
        raise ValueError("the truth is empty; expected the true class of at least one task")
    return known


def check_probas(probas: pd.DataFrame) -> None:
    """Raise unless every row of a table holds probabilities or only NaN."""
    if probas.shape[0] == 0 or probas.shape[1] < 2:
        raise ValueError(
            f"the table of probabilities has shape {probas.shape}; expected tasks x classes with "
            "at least one task and two classes"
        )
    if not probas.columns.is_unique:
        twice = probas.columns[probas.columns.duplicated()][0]
        raise ValueError(
            f"two columns of the table of probabilities are named {quote(twice)}; expected one "
            "column per class"
        )
    values = probas.to_numpy(dtype=float)
    empty = np.isnan(values).all(axis=1)
    # The tolerance allows for the rounding of sums of many single-precision numbers.
    fine = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 1e-4)
    bad = np.flatnonzero(~(empty | fine))
    if len(bad):
        raise ValueError(
            f"the row of task {quote(probas.index[bad[0]])} is {values[bad[0]]}; expected "
            "probabilities that sum to 1, or only NaN"
        )


def _one_hot(labels: pd.Series, truth: pd.Series, classes: Sequence[Any] | None) -> pd.DataFrame:
    """Labels as probabilities of 0 and 1, with a row of NaN where the label is missing."""
    if classes is not None:
        vocabulary = pd.Index(classes)
    elif isinstance(labels.dtype, pd.CategoricalDtype):
        vocabulary = labels.cat.categories
    else:
        found = pd.Index(pd.concat([labels.dropna(), truth]).unique())
        vocabulary = pd.Index(sorted(found, key=natural_key))
    codes = vocabulary.get_indexer(pd.Index(labels))
    unknown = np.flatnonzero((codes < 0) & labels.notna().to_numpy())
    if len(unknown):
        raise ValueError(
            f"the label of task {quote(labels.index[unknown[0]])} is "
            f"{quote(labels.iloc[unknown[0]])}, which is not one of the classes "
            f"{comma_list(vocabulary)}"
        )
    certain = np.vstack([np.eye(len(vocabulary)), np.full(len(vocabulary), np.nan)])
    return pd.DataFrame(certain[codes], index=labels.index, columns=vocabulary)
