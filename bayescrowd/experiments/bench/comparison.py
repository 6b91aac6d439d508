"""All measurements of a bench as tables, with paired differences and their standard errors.

Two methods are compared on the same tasks. On one crowd of n tasks, the standard error of the mean
difference is the standard deviation of the tasks' differences over sqrt(n). Over C crowds, it is
the standard deviation of the crowds' differences over sqrt(C): crowds count alike, whatever their
size. Where there is one task or one crowd only, it is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from bayescrowd.experiments.bench.contenders import Contender
from bayescrowd.experiments.bench.crowds import BenchCrowd
from bayescrowd.experiments.bench.measurement import Failure, Measurement

__all__ = ["BASELINE", "MARGIN", "MEASURES", "Comparison", "Measure"]

Measure = Literal["error", "log_loss", "ece", "seconds"]
MEASURES: tuple[Measure, ...] = ("error", "log_loss", "ece", "seconds")
"""What is measured of each method on each crowd."""

BASELINE = "MajorityVote"
"""Method that no other should be much worse than."""

MARGIN = 0.03
"""A method whose error exceeds that of the vote by more than this has failed on a crowd."""


class Comparison(NamedTuple):
    """Methods on crowds."""

    crowds: tuple[BenchCrowd, ...]
    """The crowds, in the order of their names."""
    contenders: tuple[Contender, ...]
    """The methods."""
    results: Mapping[tuple[str, str], Measurement | Failure]
    """What was found, by the names of crowd and method."""
    reference: str
    """Name of the method to which the others are compared."""

    @property
    def crowd_names(self) -> list[str]:
        """Names of the crowds."""
        return [crowd.name for crowd in self.crowds]

    @property
    def method_names(self) -> list[str]:
        """Names of the methods."""
        return [contender.name for contender in self.contenders]

    @property
    def failures(self) -> dict[tuple[str, str], str]:
        """Reasons of failures, by crowd and method."""
        return {
            place: result.reason
            for place, result in self.results.items()
            if isinstance(result, Failure)
        }

    def scores(self, measure: Measure) -> pd.DataFrame:
        """One measure of every method, crowds x methods; NaN where the method failed."""
        return self._table(lambda crowd, method: self._value(crowd, method, measure))

    def means(self, measure: Measure) -> pd.Series:
        """Mean over the crowds on which every method succeeded, so that means compare."""
        return self.scores(measure).dropna().mean()

    def differences(
        self, measure: Literal["error", "log_loss"], to: str | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Paired differences to a method, crowds x methods, and their standard errors over tasks.

        Args:
            measure: what to compare.
            to: name of the method to subtract; by default, the reference.
        """
        other = self.reference if to is None else to
        pairs = {
            (crowd, method): _paired(
                self.results[crowd, method], self.results[crowd, other], measure
            )
            for crowd in self.crowd_names
            for method in self.method_names
        }
        return (
            self._table(lambda crowd, method: pairs[crowd, method][0]),
            self._table(lambda crowd, method: pairs[crowd, method][1]),
        )

    def mean_differences(self, measure: Measure) -> pd.DataFrame:
        """Mean difference of each method to the reference, and its standard error over crowds.

        Returns:
            Indexed by method: `difference`, `standard_error`, and `n_crowds`, the number of crowds
            on which both methods succeeded.
        """
        scores = self.scores(measure)
        gaps = scores.sub(scores[self.reference], axis=0)
        n_crowds = gaps.notna().sum()
        return pd.DataFrame(
            {
                "difference": gaps.mean(),
                "standard_error": gaps.std(ddof=1) / np.sqrt(n_crowds.clip(lower=1)),
                "n_crowds": n_crowds,
            }
        )

    def worse_than_vote(self) -> pd.DataFrame:
        """On how many crowds each method's error is more than 3 points above the vote's.

        Returns:
            Indexed by method: `n_worse`, the crowds where the difference is above 3 points and
            above two of its standard errors; `n_surely_worse`, those where it is above 3 points by
            two standard errors.
        """
        gap, error = self.differences("error", BASELINE)
        is_worse = (gap > MARGIN) & (gap > 2 * error)
        return pd.DataFrame(
            {"n_worse": is_worse.sum(), "n_surely_worse": (gap - 2 * error > MARGIN).sum()}
        )

    def effective_votes(self) -> pd.DataFrame:
        """Votes per labelled task and the bracket of their effective number, by the reference.

        Returns:
            Indexed by crowd: `n_votes`, `low`, `high`; NaN where the reference has no bracket.
        """
        rows = {}
        for crowd in self.crowds:
            per_task = crowd.annotations.labels_per_task
            result = self.results[crowd.name, self.reference]
            bracket = (
                result.effective_votes if isinstance(result, Measurement) else (np.nan, np.nan)
            )
            rows[crowd.name] = (float(per_task[per_task > 0].mean()), *bracket)
        return pd.DataFrame.from_dict(rows, orient="index", columns=["n_votes", "low", "high"])

    def rows(self) -> pd.DataFrame:
        """One row per crowd and method, for files.

        Differences are to the reference, `_se` is a standard error over the crowd's tasks, and
        `vote_error_difference` is to the majority vote. Where a method failed, its numbers are NaN
        and `failure` has the reason, which is None elsewhere.
        """
        table = pd.DataFrame({m: self.scores(m).stack(future_stack=True) for m in MEASURES})
        compared: tuple[tuple[str, Literal["error", "log_loss"], str], ...] = (
            ("error_difference", "error", self.reference),
            ("log_loss_difference", "log_loss", self.reference),
            ("vote_error_difference", "error", BASELINE),
        )
        for name, measure, other in compared:
            gap, error = self.differences(measure, other)
            table[name] = gap.stack(future_stack=True)
            table[f"{name}_se"] = error.stack(future_stack=True)
        table = table.reset_index()
        places = zip(table["crowd"], table["method"], strict=True)
        table["failure"] = pd.Series([self.failures.get(place) for place in places], dtype=object)
        return table

    def _value(self, crowd: str, method: str, measure: Measure) -> float:
        result = self.results[crowd, method]
        return float(getattr(result, measure)) if isinstance(result, Measurement) else np.nan

    def _table(self, value: Callable[[str, str], float]) -> pd.DataFrame:
        return pd.DataFrame(
            [[value(crowd, method) for method in self.method_names] for crowd in self.crowd_names],
            index=pd.Index(self.crowd_names, name="crowd"),
            columns=pd.Index(self.method_names, name="method"),
            dtype=float,
        )


def _paired(
    one: Measurement | Failure,
    other: Measurement | Failure,
    measure: Literal["error", "log_loss"],
) -> tuple[float, float]:
    """Mean of the tasks' differences, and its standard error."""
    if isinstance(one, Failure) or isinstance(other, Failure):
        return np.nan, np.nan
    name = "errors" if measure == "error" else "log_losses"
    gaps = getattr(one, name) - getattr(other, name)
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    return float(gaps.mean()), float(error)
