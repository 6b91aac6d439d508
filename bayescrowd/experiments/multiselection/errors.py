"""Test errors of multi-selection and its baselines when judgements can be drawn at will.

The procedure is that of Sabato and Kalai 2013, section 4: the repeats are chosen from k judgements
of each attribute of the training objects; further judgements are drawn until every attribute has
its chosen number; the averages predict the target by least squares with an intercept; the test
objects are judged equally often.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.data.judgements import Costs
from bayescrowd.experiments.engine.experiment import CellId
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.selection.repeats.averages import Averages, Copies
from bayescrowd.selection.repeats.multi_selection import MultiSelection
from bayescrowd.selection.repeats.selector import InfeasibleProjectionWarning, RepeatSelector

__all__ = [
    "COLOURS",
    "METHODS",
    "Population",
    "Spread",
    "chosen_repeats",
    "errors_by_budget",
    "format_spread",
    "held_out_error",
    "lead",
    "spreads",
]

METHODS: dict[str, Callable[[float, Costs], RepeatSelector]] = {
    "Full": lambda budget, costs: MultiSelection(budget, costs=costs),
    "Scoring": lambda budget, costs: MultiSelection(budget, method="scoring", costs=costs),
    "Averages": lambda budget, costs: Averages(budget, costs=costs),
    "Copies": lambda budget, costs: Copies(budget, costs=costs),
}
COLOURS = {
    "Full": ("#0072B2", "o", "-"),
    "Scoring": ("#009E73", "s", "--"),
    "Averages": ("#D55E00", "^", "-."),
    "Copies": ("#CC79A7", "D", ":"),
    "estimates only": ("#595959", "x", "-"),
}
"""Colour, marker and line style of each method."""


class Population(NamedTuple):
    """Objects with their target, and a crowd that judges them."""

    target: Float[np.ndarray, " object"]
    """The value to be predicted for each object."""
    judge: Callable[[np.random.Generator, int, int], Float[np.ndarray, "object copy"]]
    """(rng, attribute, number of judgements) -> judgements of all objects."""
    n_attributes: int
    """Number of attributes."""
    costs: Costs
    """Cost of one judgement of each attribute."""


class Spread(NamedTuple):
    """A mean over splits with its standard error."""

    mean: float
    """The mean over the splits."""
    error: float
    """The standard error of the mean."""


def chosen_repeats(
    method: str,
    pilot: Float[np.ndarray, "object attribute copy"],
    target: Float[np.ndarray, " object"],
    costs: Costs,
    budgets: Sequence[float],
) -> dict[float, Int[np.ndarray, " attribute"]]:
    """How often a method asks about each attribute, for each budget."""
    with warnings.catch_warnings():
        # Errors are measured on test objects; the projected loss plays no part.
        warnings.simplefilter("ignore", InfeasibleProjectionWarning)
        if costs is None:
            fitted = METHODS[method](max(budgets), None).fit(pilot, target)
            return {budget: fitted.repeats_at(budget).to_numpy() for budget in budgets}
        # With costs, the path of a budget is not the beginning of a larger budget's path.
        return {
            budget: METHODS[method](budget, costs).fit(pilot, target).repeats_.iloc[-1].to_numpy()
            for budget in budgets
        }


def errors_by_budget(
    population: Population,
    *,
    n_training: int,
    n_test: int,
    k: int,
    budgets: Sequence[float],
    methods: Sequence[str],
    seed: tuple[int, ...],
) -> dict[tuple[str, float], float]:
    """Mean squared test error of each method and budget on one split."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(population.target))
    training, test = order[:n_training], order[n_training:][:n_test]
    crowd = _Crowd(population, rng, k)
    pilot = np.stack([crowd.judgements(a, k) for a in range(population.n_attributes)], axis=1)
    errors = {}
    for method in methods:
        repeats = chosen_repeats(
            method, pilot[training], population.target[training], population.costs, budgets
        )
        for budget, vector in repeats.items():
            averages = crowd.averages(vector)
            errors[method, budget] = held_out_error(averages, population.target, training, test)
    return errors


class _Crowd:
    """Judgements of all objects, drawn on first request and the same for all methods."""

    def __init__(self, population: Population, rng: np.random.Generator, k: int) -> None:
        self._population = population
        self._k = k
        self._rngs = rng.spawn(population.n_attributes)
        self._drawn: dict[int, np.ndarray] = {}

    def judgements(self, attribute: int, number: int) -> Float[np.ndarray, "object copy"]:
        drawn = self._drawn.get(attribute)
        if drawn is None or drawn.shape[1] < number:
            # Drawn k at a time, so that the first ones do not depend on how many are requested.
            have = 0 if drawn is None else drawn.shape[1]
            more = [
                self._population.judge(self._rngs[attribute], attribute, self._k)
                for _ in range(-(-(number - have) // self._k))
            ]
            drawn = np.concatenate([*([] if drawn is None else [drawn]), *more], axis=1)
            self._drawn[attribute] = drawn
        return drawn[:, :number]

    def averages(
        self, repeats: Int[np.ndarray, " attribute"]
    ) -> Float[np.ndarray, "object member"]:
        asked = np.flatnonzero(repeats)
        columns = [self.judgements(int(a), int(repeats[a])).mean(axis=1) for a in asked]
        n_objects = len(self._population.target)
        return np.stack(columns, axis=1) if columns else np.zeros((n_objects, 0))


def held_out_error(
    averages: Float[np.ndarray, "object member"],
    target: Float[np.ndarray, " object"],
    training: Int[np.ndarray, " trained"],
    test: Int[np.ndarray, " tested"],
) -> float:
    """Mean squared error of least squares with an intercept on the test objects."""
    design = np.column_stack([np.ones(len(averages)), averages])
    weights = np.linalg.lstsq(design[training], target[training], rcond=None)[0]
    return float(((design[test] @ weights - target[test]) ** 2).mean())


def spreads(outcomes: Sequence[Outcome]) -> Mapping[CellId, Spread]:
    """Mean and standard error of every cell over the splits."""
    return {
        outcome.cell.id: Spread(float(np.mean(outcome.values)), outcome.standard_error)
        for outcome in outcomes
    }


def lead(outcomes: Sequence[Outcome], one: CellId, others: Sequence[CellId]) -> Spread:
    """By how much, paired by split, one cell lies below the other cell with the lowest mean."""
    values = {outcome.cell.id: np.array(outcome.values) for outcome in outcomes}
    gap = values[min(others, key=lambda other: values[other].mean())] - values[one]
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
    return Spread(float(gap.mean()), float(error))


def format_spread(spread: Spread, decimals: int = 1) -> str:
    """A mean with its standard error, as text."""
    return f"{spread.mean:.{decimals}f} ± {spread.error:.{decimals + 1}f}"
