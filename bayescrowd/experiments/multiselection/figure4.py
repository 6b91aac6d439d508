"""Test error for height and weight against the budget (Sabato and Kalai 2013, figure 4).

The judgements of the photos are not public, so a crowd of the same size and costs is simulated
(`bayescrowd.experiments.multiselection.people`): 880 people, 37 yes-or-no questions and two
estimates that cost four times as much. 'Estimates only' averages B/4 estimates of height or weight.
The paper prints no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.multiselection.errors import (
    COLOURS,
    METHODS,
    Spread,
    errors_by_budget,
    format_spread,
    held_out_error,
    lead,
    spreads,
)
from bayescrowd.experiments.multiselection.people import ATTRIBUTES, population

__all__ = ["BUDGETS", "EXPERIMENT", "SETTINGS"]

N_SPLITS = 50
BUDGETS = (8, 16, 32, 48, 64, 100)
SETTINGS = {
    "height, 400 people": ("height", 400),
    "weight, 400 people": ("weight", 400),
    "height, 50 people": ("height", 50),
    "weight, 50 people": ("weight", 50),
}
ESTIMATES = "estimates only"
CURVES = (*METHODS, ESTIMATES)


def _measure(part: str, seed: int) -> dict[CellId, float]:
    target, n_training = SETTINGS[part]
    photos = population(target)
    errors = errors_by_budget(
        photos,
        n_training=n_training,
        n_test=len(photos.target),
        k=2,
        budgets=BUDGETS,
        methods=tuple(METHODS),
        seed=(seed,),
    )
    rng = np.random.default_rng((seed, 1))
    order = rng.permutation(len(photos.target))
    place = ATTRIBUTES.index(f"estimated {target}")
    for budget in BUDGETS:
        averages = photos.judge(rng, place, budget // 4).mean(axis=1, keepdims=True)
        errors[ESTIMATES, budget] = held_out_error(
            averages, photos.target, order[:n_training], order[n_training:]
        )
    return {_id(part, method, int(budget)): e for (method, budget), e in errors.items()}


def _id(part: str, method: str, budget: int) -> CellId:
    return CellId(f"{part}, {method}", f"B={budget}")


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    claims = []
    for part in SETTINGS:

        def ahead(one: str, *others: str, part: str = part) -> dict[int, Spread]:
            return {
                b: lead(outcomes, _id(part, one, b), [_id(part, other, b) for other in others])
                for b in BUDGETS
            }

        if "400" in part:
            leads = ahead("Full", "Averages", "Copies", ESTIMATES)
            text = "Full is better than the baselines from B = 16 up"
            holds = all(gap.mean > 0 for budget, gap in leads.items() if budget >= 16)
        else:
            leads = ahead("Scoring", "Full")
            text = "with few training people Scoring is sometimes better than Full"
            holds = any(gap.mean > 0 for gap in leads.values())
        gaps = ", ".join(f"{format_spread(gap)} (B={budget})" for budget, gap in leads.items())
        claims.append(Claim(f"{part}: {text}", holds, f"ahead by {gaps}"))
    return claims


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    found = spreads(outcomes)
    figure = Figure(figsize=(11, 7), dpi=150, layout="constrained")
    grid = figure.subplots(2, 2, sharex=True)
    for axes, part in zip(grid.ravel(), SETTINGS, strict=True):
        for method in CURVES:
            colour, marker, line = COLOURS[method]
            points = [found[_id(part, method, budget)] for budget in BUDGETS]
            axes.errorbar(
                BUDGETS,
                [p.mean for p in points],
                [p.error for p in points],
                color=colour,
                marker=marker,
                linestyle=line,
                markersize=4,
                linewidth=1.3,
                label=method,
            )
        unit = "cm²" if part.startswith("height") else "kg²"
        axes.set_title(f"Simulated: {part}", loc="left", fontsize="medium", fontweight="bold")
        axes.set_ylabel(f"mean squared test error ({unit})")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[1]:
        axes.set_xlabel("budget: an estimate costs 4, a yes-or-no answer 1")
    grid[0, 0].legend(frameon=False, fontsize="small")
    return figure


EXPERIMENT = Experiment(
    name="multiselection-figure4",
    title="Mean squared test error for height (cm²) and weight (kg²), on a simulated crowd "
    "(Sabato and Kalai, figure 4)",
    parts=tuple(
        Part(part, f"simulated crowd, k=2, {n} training people", is_random=True)
        for part, (_, n) in SETTINGS.items()
    ),
    cells=tuple(
        Cell(
            id=_id(part, method, budget),
            part=part,
            published=None,
            unit="",
            decimals=1,
            n_items=None,
            reason=None,
        )
        for part in SETTINGS
        for method in CURVES
        for budget in BUDGETS
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SPLITS,
    claims=_claims,
    average="mean",
    notes=(
        "The judgements are not public: the crowd, its people and its attributes are simulated.",
        "Means ± standard errors over splits; leads are paired by split.",
    ),
)
