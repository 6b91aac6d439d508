"""How good labels are, how far their probabilities can be trusted, how well workers agree.

Predictions are compared with a truth by task id. A prediction is a table of probabilities,
tasks x classes, or a Series of labels. Three conventions hold in every function:

- A tie is not broken. If the probabilities of t classes are within a relative 1e-9 of the
  largest, each of them is decided with a chance of 1/t: a score is the expectation over a fair
  choice, and never depends on the order of rows or classes.
- A task of the truth without a prediction (no row, or a row of NaN) is answered by a fair guess
  among the K classes: it costs an expected error of (K - 1) / K and has probabilities 1 / K.
- A predicted task without a truth plays no role.

A truth need not fit exactly. Where it has a class that the prediction does not know, every answer
is wrong: that class has probability 0. A `TruthWarning` counts such tasks, and those that the
prediction does not list at all.

Agreement takes no truth: it is computed from the labels alone, `Annotations` or a table with the
columns task, worker and label. Of tasks with fewer than two
judgements it cannot say anything, and leaves them out; repeated judgements of one worker count
as judgements of different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.annotations import as_annotations
from bayescrowd.parameters import Count, checked
from bayescrowd.truth import Truth, known_labels, warn_of_classes, warn_of_truth
from bayescrowd.vocabulary import natural_key

__all__ = [
    "Scores",
    "accuracy",
    "brier_score",
    "confusion_table",
    "error_rate",
    "expected_calibration_error",
    "fleiss_kappa",
    "krippendorff_alpha",
    "log_loss",
    "macro_f1",
    "percent_agreement",
    "reliability_curve",
    "score_table",
]

TIE_TOLERANCE = 1e-9
"""Relative distance from the largest probability within which classes are tied."""

N_BINS = 15
"""Bins of the reliability curve, as in Guo, Pleiss, Sun and Weinberger (2017)."""


class Scores(NamedTuple):
    """Scores of one table of probabilities against a truth."""

    n: int
    """Number of tasks with a truth."""
    accuracy: float
    """Expected fraction of right labels."""
    macro_f1: float
    """Mean F1 of the classes."""
    brier: float
    """Brier score, 0 to 2; small is good."""
    log_loss: float
    """Mean negative log probability of the truth, in nats; small is good."""
    ece: float
    """Expected calibration error, 0 to 1; small is good."""


@checked
def score_table(probas: pd.DataFrame, truth: Truth) -> Scores:
    """All scores of one table of probabilities at once.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"cat": [0.9, 0.4], "dog": [0.1, 0.6]}, index=["t1", "t2"])
        >>> scores = bc.metrics.score_table(probas, pd.Series({"t1": "cat", "t2": "cat"}))
        >>> scores.n, scores.accuracy, round(scores.brier, 3)
        (2, 0.5, 0.37)
    """
    aligned = _align_probas(probas, truth)
    return Scores(
        n=len(aligned.truth),
        accuracy=float(_right(aligned).mean()),
        macro_f1=_macro_f1(aligned),
        brier=_brier_score(aligned),
        log_loss=_log_loss(aligned),
        ece=_calibration_error(_reliability_curve(aligned, N_BINS)),
    )


@checked
def error_rate(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> float:
    """Expected fraction of wrong labels.

    A task whose truth is among t tied classes costs 1 - 1/t, a task without prediction
    (K - 1) / K.

    Args:
        prediction: probabilities, tasks x classes, or labels by task.
        truth: true class by task.
        classes: the K classes of labels; without it those of a categorical Series, else those
            that occur in prediction or truth. A table of probabilities has them as columns.

    Raises:
        ValueError: no task of the truth is predicted, a task stands twice, or rows are no
            probabilities.

    Warns:
        TruthWarning: tasks of the truth are not listed in the prediction, or their class is none
            of its classes; how many.

    Examples:
        A sure right answer costs 0, a tie of two 1/2, and a task without prediction 2/3:

        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> nan = float("nan")
        >>> probas = pd.DataFrame({"a": [1, 0.5, nan], "b": [0, 0.5, nan], "c": [0, 0, nan]})
        >>> round(bc.metrics.error_rate(probas, pd.Series(["a", "b", "b"])), 4)
        0.3889
    """
    return 1.0 - accuracy(prediction, truth, classes=classes)


@checked
def accuracy(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> float:
    """Expected fraction of right labels, 1 - `error_rate`.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> bc.metrics.accuracy(pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "a"]))
        0.6666666666666666
    """
    return float(_right(_align(prediction, truth, classes)).mean())


@checked
def confusion_table(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> pd.DataFrame:
    """Expected number of tasks by true class (rows) and decided class (columns).

    Ties are shared among their classes and tasks without a prediction among all, so that the
    entries need not be whole; they sum to the number of tasks with a truth. The arguments are
    those of `error_rate`.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> labels, truth = pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "a"])
        >>> bc.metrics.confusion_table(labels, truth)  # doctest: +NORMALIZE_WHITESPACE
        decided    a    b
        truth
        a        1.0  1.0
        b        0.0  1.0
    """
    aligned = _align(prediction, truth, classes)
    return pd.DataFrame(
        _expected_counts(aligned),
        index=aligned.classes.rename("truth"),
        columns=aligned.classes.rename("decided"),
    )


@checked
def macro_f1(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> float:
    """Mean over classes of F1, computed from the expected counts of `confusion_table`.

    F1 of a class is 2 * (truly and decidedly of it) / (truly of it + decidedly of it). A class
    neither true nor decided anywhere has none and is left out of the mean. With ties this is
    F1 of the expected counts, not the expectation of F1. The arguments are those of
    `error_rate`.

    Examples:
        Class a has F1 2/3, class b too:

        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> bc.metrics.macro_f1(pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "a"]))
        0.6666666666666666
    """
    return _macro_f1(_align(prediction, truth, classes))


@checked
def brier_score(probas: pd.DataFrame, truth: Truth) -> float:
    """Mean squared distance between the probabilities and the truth, summed over all classes.

    From 0 (sure and right) to 2 (sure and wrong), as Brier (1950) defined it; a fair guess
    among K classes has 1 - 1/K. For two classes it is twice the score that looks at one class
    only.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.8], "b": [0.2]})
        >>> round(bc.metrics.brier_score(probas, pd.Series(["a"])), 9)
        0.08
    """
    return _brier_score(_align_probas(probas, truth))


@checked
def log_loss(probas: pd.DataFrame, truth: Truth) -> float:
    """Mean negative log probability of the true class, in nats.

    From 0 up; a fair guess among K classes has log K. A probability below 2.2e-16, the
    resolution of floating-point numbers, counts as that, so that one sure mistake costs 36 nats
    and not infinity.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.5], "b": [0.5]})
        >>> round(bc.metrics.log_loss(probas, pd.Series(["a"])), 6)
        0.693147
    """
    return _log_loss(_align_probas(probas, truth))


@checked
def expected_calibration_error(
    probas: pd.DataFrame, truth: Truth, *, n_bins: Count = N_BINS
) -> float:
    """Mean gap between confidence and accuracy over the bins of the `reliability_curve`.

    Bins are weighted by their tasks (Guo et al. 2017, eq. 3). From 0 (of labels said to be 80 %
    sure, 80 % are right) to 1.

    Examples:
        Four labels at 75 % confidence, three of them right, are calibrated:

        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.75] * 4, "b": [0.25] * 4})
        >>> bc.metrics.expected_calibration_error(probas, pd.Series(list("aaab")))
        0.0
    """
    return _calibration_error(reliability_curve(probas, truth, n_bins=n_bins))


@checked
def reliability_curve(
    probas: pd.DataFrame, truth: Truth, *, n_bins: Count = N_BINS
) -> pd.DataFrame:
    """Accuracy of the decided labels by their confidence.

    The confidence of a label is its probability. Bins are equally wide and closed on the right,
    (0, 1/n], (1/n, 2/n], ...; empty ones are left out.

    Args:
        probas: probabilities, tasks x classes.
        truth: true class by task.
        n_bins: number of bins from 0 to 1.

    Returns:
        One row per bin with tasks: `lower` and `upper` edge, mean `confidence`, expected
        `accuracy`, and number of tasks `n`.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.75] * 3 + [1.0], "b": [0.25] * 3 + [0.0]})
        >>> curve = bc.metrics.reliability_curve(probas, pd.Series(list("aaba")), n_bins=5)
        >>> curve[["upper", "confidence", "n"]]
           upper  confidence  n
        0    0.8        0.75  3
        1    1.0        1.00  1
    """
    return _reliability_curve(_align_probas(probas, truth), n_bins)


def percent_agreement(data: Any) -> float:
    """Fraction (0 to 1) of pairs of judgements of one task that agree, averaged over tasks.

    The observed agreement of Fleiss (1971), with any number of judgements per task.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two judgements.

    Examples:
        All three pairs of the first task agree, one of three of the second:

        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a", "a"], ["a", "a", "b"]])
        >>> bc.metrics.percent_agreement(ann)
        0.6666666666666666
    """
    counts = _pairable(data)
    n = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return float(np.mean(agreeing / (n * (n - 1))))


def fleiss_kappa(data: Any) -> float:
    """Agreement beyond chance, (observed - chance) / (1 - chance), of Fleiss (1971).

    Observed is `percent_agreement`, chance the sum of squares of the classes' shares of all
    judgements. Fleiss had the same number of judgements for every task; with different numbers
    the same two quantities are taken, and `krippendorff_alpha` is the measure made for that.
    1 is perfect, 0 what independent judgements give, NaN (undefined) if only one class was used.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two judgements.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a"], ["b", "b"], ["a", "b"]])
        >>> round(bc.metrics.fleiss_kappa(ann), 4)
        0.3333
    """
    counts = _pairable(data)
    shares = counts.sum(axis=0) / counts.sum()
    chance = np.square(shares).sum()
    if shares.max() == 1:
        return float("nan")
    return float((percent_agreement(data) - chance) / (1 - chance))


def krippendorff_alpha(data: Any) -> float:
    """Krippendorff's alpha for nominal data, 1 - observed / expected disagreement.

    Takes any number of judgements per task (Krippendorff, "Computing Krippendorff's
    alpha-reliability", 2011, section C). 1 is perfect, 0 what chance gives, negative is
    systematic disagreement, NaN (undefined) if only one class was used.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.

    Raises:
        ValueError: no task has two judgements.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a"], ["b", "b"], ["a", "b"]])
        >>> round(bc.metrics.krippendorff_alpha(ann), 4)
        0.4444
    """
    counts = _pairable(data)
    per_task = counts.sum(axis=1)
    per_class = counts.sum(axis=0)
    n = counts.sum()
    # Each task's pairs of different classes, over its number of other judgements: together as
    # many coincidences as there are judgements.
    observed = ((per_task**2 - np.square(counts).sum(axis=1)) / (per_task - 1)).sum()
    expected = (n**2 - np.square(per_class).sum()) / (n - 1)
    if expected == 0:
        return float("nan")
    return float(1 - observed / expected)


class _Aligned(NamedTuple):
    """Predictions and truth of the tasks that have a truth."""

    probas: Float[np.ndarray, "item cls"]
    """Probabilities; those of a fair guess where there is no prediction."""
    truth: Int[np.ndarray, " item"]
    """Position of the true class in `classes`."""
    classes: pd.Index
    """Those of the prediction, then those of the truth that it does not know."""


def _align_probas(probas: pd.DataFrame, truth: Truth) -> _Aligned:
    if not isinstance(probas, pd.DataFrame):
        raise TypeError(
            f"probabilities came as {type(probas).__name__}; expected a DataFrame, tasks x classes"
        )
    return _align(probas, truth)


def _align(
    prediction: pd.DataFrame | pd.Series, truth: Truth, classes: Sequence[Any] | None = None
) -> _Aligned:
    known = _known_truth(truth)
    if isinstance(prediction, pd.DataFrame):
        if classes is not None:
            raise ValueError("classes go with labels; a table of probabilities has its columns")
        probas = _checked_probas(prediction)
    elif isinstance(prediction, pd.Series):
        probas = _one_hot(prediction, known, classes)
    else:
        raise TypeError(
            f"the prediction came as {type(prediction).__name__}; expected a DataFrame of "
            "probabilities, tasks x classes, or a Series of labels"
        )
    if not probas.index.is_unique:
        twice = probas.index[probas.index.duplicated()][0]
        raise ValueError(f"task {_shown(twice)} of the prediction stands twice")
    rows = probas.index.get_indexer(known.index)
    if (rows < 0).all():
        raise ValueError(
            "no task of the truth is predicted: the truth has tasks such as "
            f"{_shown(known.index[0])}, the prediction such as {_shown(probas.index[0])}"
        )
    _report_mismatch(known, probas, rows)
    values = probas.to_numpy(dtype=float)[rows]
    values[rows < 0] = np.nan
    values = np.where(np.isnan(values), 1 / values.shape[1], values)
    others = [c for c in pd.unique(known) if c not in probas.columns]
    columns = probas.columns.append(pd.Index(sorted(others, key=natural_key), dtype=object))
    return _Aligned(
        probas=np.pad(values, ((0, 0), (0, len(others)))),
        truth=columns.get_indexer(pd.Index(known)),
        classes=columns if others else probas.columns,
    )


def _report_mismatch(
    known: pd.Series, probas: pd.DataFrame, rows: Int[np.ndarray, " item"]
) -> None:
    """Warn of tasks that the prediction does not list, and of classes that it does not have."""
    n_absent = int((rows < 0).sum())
    if n_absent:
        warn_of_truth(
            f"{n_absent:,} of {len(known):,} truth tasks "
            f"{'has no prediction and counts' if n_absent == 1 else 'have no prediction and count'}"
            f" as a fair guess (such as {_shown(known.index[int(np.argmax(rows < 0))])})"
        )
    warn_of_classes(known[~known.isin(probas.columns)], len(known), "truth", "wrong")


def _known_truth(truth: Truth) -> pd.Series:
    known = known_labels(truth, "truth")
    if len(known) == 0:
        raise ValueError("the truth is empty; expected the true class of at least one task")
    return known


def _checked_probas(probas: pd.DataFrame) -> pd.DataFrame:
    if probas.shape[0] == 0 or probas.shape[1] < 2:
        raise ValueError(
            f"the table of probabilities has shape {probas.shape}; expected tasks x classes with "
            "at least one task and two classes"
        )
    if not probas.columns.is_unique:
        twice = probas.columns[probas.columns.duplicated()][0]
        raise ValueError(f"class {_shown(twice)} of the table of probabilities stands twice")
    values = probas.to_numpy(dtype=float)
    empty = np.isnan(values).all(axis=1)
    # Wide enough for sums of many single-precision numbers.
    fine = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 1e-4)
    bad = np.flatnonzero(~(empty | fine))
    if len(bad):
        raise ValueError(
            f"row of task {_shown(probas.index[bad[0]])} is {values[bad[0]]}; expected "
            "probabilities that sum to 1, or NaN throughout"
        )
    return probas


def _one_hot(labels: pd.Series, truth: pd.Series, classes: Sequence[Any] | None) -> pd.DataFrame:
    """Labels as certain probabilities; NaN throughout where the label is missing."""
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
            f"label of task {_shown(labels.index[unknown[0]])} is "
            f"{_shown(labels.iloc[unknown[0]])}, which is none of the classes "
            f"{', '.join(map(_shown, vocabulary))}"
        )
    certain = np.vstack([np.eye(len(vocabulary)), np.full(len(vocabulary), np.nan)])
    return pd.DataFrame(certain[codes], index=labels.index, columns=vocabulary)


def _decisions(probas: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """Chance of each class under a fair choice among those tied for the largest probability."""
    tied = probas >= probas.max(axis=1, keepdims=True) * (1 - TIE_TOLERANCE)
    return tied / tied.sum(axis=1, keepdims=True)


def _expected_counts(aligned: _Aligned) -> Float[np.ndarray, "cls decided"]:
    """Expected number of tasks by true and decided class."""
    table = np.zeros((len(aligned.classes), len(aligned.classes)))
    np.add.at(table, aligned.truth, _decisions(aligned.probas))
    return table


def _macro_f1(aligned: _Aligned) -> float:
    table = _expected_counts(aligned)
    total = table.sum(axis=0) + table.sum(axis=1)
    present = total > 0
    return float(np.mean(2 * np.diag(table)[present] / total[present]))


def _brier_score(aligned: _Aligned) -> float:
    squares = np.square(aligned.probas).sum(axis=1)
    return float(np.mean(squares - 2 * _of_truth(aligned.probas, aligned.truth) + 1))


def _log_loss(aligned: _Aligned) -> float:
    right = _of_truth(aligned.probas, aligned.truth)
    return float(-np.log(np.maximum(right, np.finfo(float).eps)).mean())


def _calibration_error(curve: pd.DataFrame) -> float:
    gap = (curve["accuracy"] - curve["confidence"]).abs()
    return float((curve["n"] * gap).sum() / curve["n"].sum())


def _reliability_curve(aligned: _Aligned, n_bins: int) -> pd.DataFrame:
    confidence = aligned.probas.max(axis=1)
    edges = np.linspace(0, 1, n_bins + 1)
    # Rounding may lift a confidence above 1, or one that equals an edge above it.
    bins = np.searchsorted(edges[1:-1], confidence - TIE_TOLERANCE)
    tasks = pd.DataFrame({"confidence": confidence, "accuracy": _right(aligned), "bin": bins})
    grouped = tasks.groupby("bin")
    curve = grouped[["confidence", "accuracy"]].mean()
    curve.insert(0, "lower", edges[curve.index])
    curve.insert(1, "upper", edges[curve.index + 1])
    curve["n"] = grouped.size()
    return curve.reset_index(drop=True)


def _right(aligned: _Aligned) -> Float[np.ndarray, " item"]:
    """Chance that each task's label is right."""
    return _of_truth(_decisions(aligned.probas), aligned.truth)


def _of_truth(
    values: Float[np.ndarray, "item cls"], truth: Int[np.ndarray, " item"]
) -> Float[np.ndarray, " item"]:
    """Each task's entry of its true class."""
    return values[np.arange(len(truth)), truth]


def _pairable(data: Any) -> Float[np.ndarray, "item cls"]:
    """Votes of the tasks with at least two judgements, as floats: their squares may be large."""
    annotations = as_annotations(data)
    counts = annotations.votes[annotations.labels_per_task >= 2].astype(float)
    if len(counts) == 0:
        raise ValueError("no task has two judgements: agreement cannot be measured")
    return counts


def _shown(value: Any) -> str:
    """A value as the user typed it, in a message."""
    return repr(value.item() if isinstance(value, np.generic) else value)
