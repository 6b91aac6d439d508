"""One method on one crowd: error, log loss, calibration and seconds.

Scores follow the conventions of `bayescrowd.metrics`: ties and tasks without a prediction count
their expected error. Probabilities of the true class below `LEAST_PROBABILITY` are raised to it, so
that one certain mistake costs 13.8 nats. The same holds for a task whose true class nobody chose:
no method gives that class a probability, so that each of them pays 13.8 nats and a whole error.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.text import shorten
from bayescrowd.data.vocabulary import comma_list
from bayescrowd.experiments.bench.contenders import Contender
from bayescrowd.experiments.bench.crowds import BenchCrowd
from bayescrowd.metrics import expected_calibration_error, task_losses

__all__ = ["LEAST_PROBABILITY", "Failure", "Measurement", "measure"]

LEAST_PROBABILITY = 1e-6
"""Smaller probabilities of the true class count as this one in the log loss."""


class Measurement(NamedTuple):
    """What a method achieved on a crowd."""

    errors: Float[np.ndarray, " task"]
    """Probability that each task's label is wrong, in the order of the truth."""
    log_losses: Float[np.ndarray, " task"]
    """Log loss of each task, in nats."""
    ece: float
    """Expected calibration error."""
    seconds: float
    """Seconds that the fit took, once; a first fit also imports and compiles what it needs."""
    effective_votes: tuple[float, float]
    """Bracket of the effective number of votes per task, by this method's posterior."""
    warnings: tuple[str, ...]
    """What the fit and its scoring warned of."""

    @property
    def error(self) -> float:
        """Expected share of wrong labels."""
        return float(self.errors.mean())

    @property
    def log_loss(self) -> float:
        """Mean log loss, in nats."""
        return float(self.log_losses.mean())


class Failure(NamedTuple):
    """Why a method has no result on a crowd."""

    reason: str
    """Kind of the error and its message, on one line."""


def measure(contender: Contender, crowd: BenchCrowd) -> Measurement | Failure:
    """Fit a method to the labels of a crowd and score it against the truth.

    Whatever the method raises becomes a `Failure`: one method that fails does not end a comparison.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            method = contender.kind()
            start = time.perf_counter()
            probas = _fit(method, crowd)
            seconds = time.perf_counter() - start
            _check_classes(probas, crowd)
            losses = task_losses(probas, crowd.truth, least=LEAST_PROBABILITY)
            ece = expected_calibration_error(probas, crowd.truth)
        except Exception as fault:  # a method of the user's own may raise anything
            return Failure(shorten(f"{type(fault).__name__}: {fault}".rstrip(": "), 300))
    return Measurement(
        errors=losses["error"].to_numpy(),
        log_losses=losses["log_loss"].to_numpy(),
        ece=ece,
        seconds=seconds,
        effective_votes=_effective_votes(method),
        warnings=tuple(dict.fromkeys(shorten(w.message, 300) for w in caught)),
    )


def _fit(method: Any, crowd: BenchCrowd) -> Any:
    """What the method gives as probabilities; a class of the user's own may give anything."""
    if isinstance(method, Aggregator):
        return method.fit(crowd.annotations).probas_
    table = crowd.annotations.to_frame()
    if hasattr(method, "fit_predict_proba"):
        return method.fit_predict_proba(table)
    fitted = method.fit(table)
    return (method if fitted is None else fitted).probas_


def _check_classes(probas: Any, crowd: BenchCrowd) -> None:
    """Refuse columns that are no classes of the crowd, such as 'yes' where the class is 1."""
    if not isinstance(probas, pd.DataFrame):
        raise TypeError(
            f"probabilities came as {type(probas).__name__}; expected a DataFrame, tasks x classes"
        )
    classes = crowd.annotations.classes
    unknown = [name for name in probas.columns if name not in classes]
    if unknown:
        raise ValueError(
            f"the probabilities have the columns {comma_list(unknown)}; expected the classes "
            f"{comma_list(classes)}"
        )


def _effective_votes(method: Any) -> tuple[float, float]:
    dependence = getattr(method, "dependence_", None)
    return (math.nan, math.nan) if dependence is None else dependence.effective_votes
