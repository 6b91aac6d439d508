"""Credibility of a parameter and the thresholds of B-LEAFS (Nushi et al. 2016, figure 4).

The figure shows two beta distributions around one half, and the mass within epsilon = .05 of the
mean: the more observations, the more mass. Their parameters are not printed; here the mass is shown
against the number of observations of a binary feature and one class, half of them positive. The
thresholds that the paper derives from B/N and B/K observations are computed for nursery with
B = 200 and K = 4: they show that the printed rule (delta_U - delta_L) / 2 cannot be meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import beta

from bayescrowd.budgeted.beliefs.credibility import table_credibility
from bayescrowd.budgeted.beliefs.credibility_thresholds import (
    Delta,
    Thresholds,
    delta_of,
    thresholds,
)
from bayescrowd.experiments.bleafs.runs import load_problem
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.plots.canvas import BLUE, ORANGE, tidy

__all__ = ["EXPERIMENT", "OBSERVATIONS", "mass"]

EPSILON = 0.05
"""Half width of the interval around the mean."""

OBSERVATIONS = (0, 8, 18, 38, 98, 198, 398, 998)
"""Numbers of observations at which the credibility is measured."""

SHOWN = (8, 98)
"""The two numbers of observations that are drawn, as Beta(5, 5) and Beta(50, 50)."""

BUDGET, N_FEATURES = 200, 4
_GROWTH, _LIMITS = "binary feature", "thresholds on nursery"
_RULES: tuple[Delta, ...] = ("lower", "upper", "midpoint", "printed")


def mass(n: int) -> float:
    """Mass within epsilon of the mean after n observations, half of them positive, prior Dir(1).

    Examples:
        >>> round(mass(0), 3)  # the uniform distribution
        0.1
    """
    return table_credibility(np.full((1, 2), 1 + n / 2), np.ones(1), epsilon=EPSILON)


def _limits() -> Thresholds:
    space = load_problem("nursery").space
    return thresholds(space, budget=BUDGET, n_features=N_FEATURES, epsilon=EPSILON)


def _measure(part: str, seed: int) -> dict[CellId, float]:
    if part == _GROWTH:
        return {CellId("credibility", f"n={n}"): mass(n) for n in OBSERVATIONS}
    limits = _limits()
    return {
        CellId(f"delta, {rule}", f"X{place}"): value
        for rule in _RULES
        for place, value in enumerate(delta_of(rule, limits).tolist(), start=1)
    }


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    found = {outcome.cell.id: outcome.measured for outcome in outcomes}
    few, many = (found[CellId("credibility", f"n={n}")] for n in SHOWN)
    rows = {rule: [v for id_, v in found.items() if id_.row == f"delta, {rule}"] for rule in _RULES}
    return [
        Claim(
            "of two distributions with the same mean, the one with more observations has more mass "
            "within epsilon of it",
            few < many,
            f"Beta(5, 5) {few:.3f}, Beta(50, 50) {many:.3f}",
        ),
        Claim(
            "delta_U is the tighter requirement",
            all(u < low for u, low in zip(rows["upper"], rows["lower"], strict=True)),
            f"X1: {rows['upper'][0]:.3f} against {rows['lower'][0]:.3f}",
        ),
        Claim(
            "delta = (delta_U - delta_L) / 2 can be satisfied",
            min(rows["printed"]) > 0,
            f"it is {min(rows['printed']):.3f} to {max(rows['printed']):.3f}, and credibility is "
            "at most 1: the midpoint (delta_L + delta_U) / 2 must be meant",
        ),
    ]


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    figure = Figure(figsize=(10, 3.8), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    places = np.linspace(0, 1, 501)
    for n, colour, dashes in zip(SHOWN, (ORANGE, BLUE), ("--", "-"), strict=True):
        a = 1 + n / 2
        density = beta.pdf(places, a, a)
        near = np.abs(places - 0.5) <= EPSILON
        label = f"Beta({a:g}, {a:g}): {mass(n):.2f} within ±{EPSILON}"
        left.plot(places, density, color=colour, linestyle=dashes, label=label)
        left.fill_between(places[near], density[near], color=colour, alpha=0.25, linewidth=0)
    left.set_ylim(0, 11)
    left.legend(frameon=False, fontsize="small", loc="upper left")
    tidy(left, title="Two parameters around .5", xlabel="parameter", ylabel="density")
    numbers = np.arange(0, 1001, 10)
    right.plot(numbers, [mass(int(n)) for n in numbers], color=BLUE)
    right.set_ylim(0, 1)
    right.grid(axis="y", color="#EEEEEE")
    tidy(right, title="Mass near the mean", xlabel="observations", ylabel="credibility")
    return figure


def _cell(row: str, column: str, part: str) -> Cell:
    return Cell(CellId(row, column), part, None, "", 3, None, None)


EXPERIMENT = Experiment(
    name="bleafs-figure4",
    title="Credibility of parameters within ±.05 (Nushi et al. 2016, figure 4 and equation 1)",
    parts=(
        Part(_GROWTH, f"Dir(1) prior, n observations, epsilon={EPSILON}", is_random=False),
        Part(
            _LIMITS,
            f"nursery, B={BUDGET}, K={N_FEATURES}, prior strength 1, epsilon={EPSILON}",
            is_random=False,
        ),
    ),
    cells=(
        *(_cell("credibility", f"n={n}", _GROWTH) for n in OBSERVATIONS),
        *(
            _cell(f"delta, {rule}", f"X{place}", _LIMITS)
            for rule in _RULES
            for place in range(1, 9)
        ),
    ),
    measure=_measure,
    draw=_draw,
    claims=_claims,
    notes=("The parameters of the figure's two distributions are not printed.",),
)
