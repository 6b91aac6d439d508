"""Scores of labels and probabilities against the truth; agreement is in `bayescrowd.agreement`.

Predictions are matched with the truth by task id. A prediction is a table of probabilities,
tasks x classes, or a Series of labels. Three conventions hold in every function:

- Ties are not broken. If the probabilities of t classes are within a relative 1e-9 of the
  largest, each of them is chosen with probability 1/t: a score is the expectation over that
  choice and never depends on the order of rows or classes.
- A task whose truth is known but which has no prediction (no row, or a row of NaN) is answered by a
  uniform guess among the K classes: its expected error is (K - 1) / K, its probabilities are 1 / K.
- A predicted task whose truth is unknown is ignored.

The truth need not match the prediction exactly. If a task's true class is not among the classes of
the prediction, every answer is wrong: that class has probability 0. A `TruthWarning` counts such
tasks and those that the prediction does not list.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.agreement.measures import (
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    percent_agreement,
)
from bayescrowd.checks.parameters import Count, Fraction, OpenFraction, validate_arguments
from bayescrowd.data.predictions import (
    TIE_TOLERANCE,
    ScoredTasks,
    match_prediction,
    match_probas,
)
from bayescrowd.data.truth import Truth, known_labels

__all__ = [
    "Scores",
    "accuracy",
    "brier_score",
    "confusion_table",
    "error_rate",
    "expected_calibration_error",
    "fleiss_kappa",
    "gwet_ac1",
    "krippendorff_alpha",
    "log_loss",
    "macro_f1",
    "percent_agreement",
    "reliability_curve",
    "score_table",
    "task_losses",
    "wilson_interval",
]

RESOLUTION = float(np.finfo(float).eps)
"""Smaller probabilities count as this one in logarithms: 2.2e-16."""

N_BINS = 15
"""Number of bins of the reliability curve, as in Guo, Pleiss, Sun and Weinberger (2017)."""


class Scores(NamedTuple):
    """Scores of one table of probabilities against a truth."""

    n: int
    """Number of tasks whose truth is known."""
    accuracy: float
    """Expected fraction of correct labels."""
    macro_f1: float
    """Mean of the F1 scores of the classes."""
    brier: float
    """Brier score, 0 to 2; lower is better."""
    log_loss: float
    """Mean negative log probability of the truth, in nats; lower is better."""
    ece: float
    """Expected calibration error, 0 to 1; lower is better."""


@validate_arguments
def score_table(probas: pd.DataFrame, truth: Truth) -> Scores:
    """All scores of a table of probabilities.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"cat": [0.9, 0.4], "dog": [0.1, 0.6]}, index=["t1", "t2"])
        >>> scores = bc.metrics.score_table(probas, pd.Series({"t1": "cat", "t2": "cat"}))
        >>> scores.n, scores.accuracy, round(scores.brier, 3)
        (2, 0.5, 0.37)
    """
    aligned = match_probas(probas, truth)
    return Scores(
        n=len(aligned.truth),
        accuracy=float(aligned.correct.mean()),
        macro_f1=_macro_f1(aligned),
        brier=_brier_score(aligned),
        log_loss=_log_loss(aligned),
        ece=_calibration_error(_reliability_curve(aligned, N_BINS)),
    )


@validate_arguments
def task_losses(
    probas: pd.DataFrame, truth: Truth, *, least: OpenFraction = RESOLUTION
) -> pd.DataFrame:
    """Error and log loss of each task whose truth is known, in the order of the truth.

    Means over tasks are `error_rate` and, with the default of `least`, `log_loss`. Differences
    between two methods on the same tasks are paired, and so have a smaller standard error than
    either method by itself.

    Args:
        probas: probabilities, tasks x classes.
        truth: true class by task.
        least: probabilities of the true class below this are raised to it.

    Returns:
        Indexed by task: `error`, the probability that the label is wrong, and `log_loss`, in nats.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.5, 1.0], "b": [0.5, 0.0]}, index=["t1", "t2"])
        >>> bc.metrics.task_losses(probas, pd.Series({"t1": "a", "t2": "b"}), least=1e-6).round(2)
            error  log_loss
        t1    0.5      0.69
        t2    1.0     13.82
    """
    aligned = match_probas(probas, truth)
    of_truth = _entry_of_truth(aligned.probas, aligned.truth)
    losses = {
        "error": 1.0 - aligned.correct,
        "log_loss": -np.log(np.maximum(of_truth, least)),
    }
    return pd.DataFrame(losses, index=known_labels(truth, "truth").index)


@validate_arguments
def error_rate(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> float:
    """Expected fraction of wrong labels.

    A task whose truth is among t tied classes costs 1 - 1/t, and a task without a prediction
    costs (K - 1) / K.

    Args:
        prediction: probabilities, tasks x classes, or labels by task.
        truth: true class by task.
        classes: the K classes, if the prediction is a Series of labels. By default, the categories
            of a categorical Series, or else the classes found in the prediction and the truth.

    Raises:
        ValueError: no task of the truth is predicted, a task is listed twice, or a row does not
            hold probabilities.

    Warns:
        TruthWarning: some tasks of the truth are not in the prediction, or have a class that is
            not among its classes.

    Examples:
        A certain, correct answer costs 0, a tie of two classes 1/2, a missing prediction 2/3:

        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> nan = float("nan")
        >>> probas = pd.DataFrame({"a": [1, 0.5, nan], "b": [0, 0.5, nan], "c": [0, 0, nan]})
        >>> round(bc.metrics.error_rate(probas, pd.Series(["a", "b", "b"])), 4)
        0.3889
    """
    return 1.0 - accuracy(prediction, truth, classes=classes)


@validate_arguments
def accuracy(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> float:
    """Expected fraction of correct labels, 1 - `error_rate`.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> bc.metrics.accuracy(pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "a"]))
        0.6666666666666666
    """
    return float(match_prediction(prediction, truth, classes).correct.mean())


@validate_arguments
def confusion_table(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> pd.DataFrame:
    """Expected number of tasks by true class (rows) and decided class (columns).

    A tie is split evenly among its classes and a task without a prediction among all classes, so
    that entries need not be whole numbers; they sum to the number of tasks whose truth is known.
    The arguments are those of `error_rate`.

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
    aligned = match_prediction(prediction, truth, classes)
    return pd.DataFrame(
        _expected_counts(aligned),
        index=aligned.classes.rename("truth"),
        columns=aligned.classes.rename("decided"),
    )


@validate_arguments
def macro_f1(
    prediction: pd.DataFrame | pd.Series, truth: Truth, *, classes: Sequence[Any] | None = None
) -> float:
    """Mean over classes of F1, computed from the expected counts of `confusion_table`.

    The F1 of a class is twice the number of its tasks that are decided correctly, divided by the
    sum of the number of its tasks and the number of tasks decided as this class. A class that is
    neither true nor decided for any task is left out of the mean. With ties, this is the F1 of the
    expected counts, not the expectation of F1. The arguments are those of `error_rate`.

    Examples:
        Both classes have an F1 of 2/3:

        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> bc.metrics.macro_f1(pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "a"]))
        0.6666666666666666
    """
    return _macro_f1(match_prediction(prediction, truth, classes))


@validate_arguments
def brier_score(probas: pd.DataFrame, truth: Truth) -> float:
    """Mean squared distance between the probabilities and the truth, summed over all classes.

    The score ranges from 0 (certain and correct) to 2 (certain and wrong), as Brier (1950) defined
    it; a uniform guess among K classes scores 1 - 1/K. For two classes, it is twice the score that
    considers only one class.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.8], "b": [0.2]})
        >>> round(bc.metrics.brier_score(probas, pd.Series(["a"])), 9)
        0.08
    """
    return _brier_score(match_probas(probas, truth))


@validate_arguments
def log_loss(probas: pd.DataFrame, truth: Truth) -> float:
    """Mean negative log probability of the true class, in nats.

    The loss is at least 0; a uniform guess among K classes has a loss of log K. Probabilities below
    2.2e-16, the resolution of floating-point numbers, are raised to that value, so that one certain
    mistake costs 36 nats rather than infinity.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.5], "b": [0.5]})
        >>> round(bc.metrics.log_loss(probas, pd.Series(["a"])), 6)
        0.693147
    """
    return _log_loss(match_probas(probas, truth))


@validate_arguments
def expected_calibration_error(
    probas: pd.DataFrame, truth: Truth, *, n_bins: Count = N_BINS
) -> float:
    """Mean gap between confidence and accuracy over the bins of the `reliability_curve`.

    Bins are weighted by their numbers of tasks (Guo et al. 2017, eq. 3). The error ranges from 0
    (of the labels with a confidence of 80 %, 80 % are correct) to 1.

    Examples:
        Four labels with 75 % confidence, three of them correct, are calibrated:

        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.75] * 4, "b": [0.25] * 4})
        >>> bc.metrics.expected_calibration_error(probas, pd.Series(list("aaab")))
        0.0
    """
    return _calibration_error(reliability_curve(probas, truth, n_bins=n_bins))


@validate_arguments
def reliability_curve(
    probas: pd.DataFrame, truth: Truth, *, n_bins: Count = N_BINS
) -> pd.DataFrame:
    """Accuracy of the decided labels as a function of their confidence.

    The confidence of a label is its probability. Bins are equally wide and closed on the right,
    (0, 1/n], (1/n, 2/n], ...; empty bins are left out.

    Args:
        probas: probabilities, tasks x classes.
        truth: true class by task.
        n_bins: number of bins between 0 and 1.

    Returns:
        One row per bin that contains tasks: `lower` and `upper` edge, mean `confidence`, expected
        `accuracy`, and the number of tasks `n`.

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
    return _reliability_curve(match_probas(probas, truth), n_bins)


@validate_arguments
def wilson_interval(
    share: Fraction, n: Count, *, level: OpenFraction = 0.95
) -> tuple[float, float]:
    """Interval for the probability behind a share of n cases, such as an accuracy.

    The interval is the one of Wilson (1927): the probabilities from which the share is at most z
    standard errors away. It stays between 0 and 1, also for shares of 0 and 1.

    Args:
        share: observed share.
        n: number of cases.
        level: probability of the interval.

    Returns:
        Lower and upper end.

    Examples:
        >>> import bayescrowd as bc
        >>> [round(end, 3) for end in bc.metrics.wilson_interval(0.8, 10)]
        [0.49, 0.943]
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    # Rounding must not leave the share outside, nor the interval leave 0 to 1.
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


def _expected_counts(aligned: ScoredTasks) -> Float[np.ndarray, "cls decided"]:
    """Expected number of tasks by true and decided class."""
    table = np.zeros((len(aligned.classes), len(aligned.classes)))
    np.add.at(table, aligned.truth, aligned.decisions)
    return table


def _macro_f1(aligned: ScoredTasks) -> float:
    table = _expected_counts(aligned)
    total = table.sum(axis=0) + table.sum(axis=1)
    present = total > 0
    return float(np.mean(2 * np.diag(table)[present] / total[present]))


def _brier_score(aligned: ScoredTasks) -> float:
    squares = np.square(aligned.probas).sum(axis=1)
    return float(np.mean(squares - 2 * _entry_of_truth(aligned.probas, aligned.truth) + 1))


def _log_loss(aligned: ScoredTasks) -> float:
    of_truth = _entry_of_truth(aligned.probas, aligned.truth)
    return float(-np.log(np.maximum(of_truth, RESOLUTION)).mean())


def _calibration_error(curve: pd.DataFrame) -> float:
    gap = (curve["accuracy"] - curve["confidence"]).abs()
    return float((curve["n"] * gap).sum() / curve["n"].sum())


def _reliability_curve(aligned: ScoredTasks, n_bins: int) -> pd.DataFrame:
    confidence = aligned.probas.max(axis=1)
    edges = np.linspace(0, 1, n_bins + 1)
    # Rounding may lift a confidence above 1, or above the edge that it should equal.
    bins = np.searchsorted(edges[1:-1], confidence - TIE_TOLERANCE)
    tasks = pd.DataFrame({"confidence": confidence, "accuracy": aligned.correct, "bin": bins})
    grouped = tasks.groupby("bin")
    curve = grouped[["confidence", "accuracy"]].mean()
    curve.insert(0, "lower", edges[curve.index])
    curve.insert(1, "upper", edges[curve.index + 1])
    curve["n"] = grouped.size()
    return curve.reset_index(drop=True)


def _entry_of_truth(
    values: Float[np.ndarray, "item cls"], truth: Int[np.ndarray, " item"]
) -> Float[np.ndarray, " item"]:
    """Entry of each task for its true class."""
    return values[np.arange(len(truth)), truth]
