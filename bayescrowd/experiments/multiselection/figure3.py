"""Test error on CT slices against the budget, and k against m (Sabato and Kalai 2013, figure 3).

Every eight adjacent histogram bins form one attribute, and a judgement of it is the value of one of
the eight bins, drawn at random. The first panel compares all algorithms at k = 2. In the second,
the number of training judgements per attribute, k times the number of objects m, is held fixed, and
the budget is 30. The paper prints no numbers.

The full table of 53,500 slices is used if it is on this machine, else its first 682 rows, else a
simulated stand-in; the title says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from bayescrowd.datasets import ct_slices
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.multiselection.errors import (
    COLOURS,
    METHODS,
    Population,
    Spread,
    errors_by_budget,
    format_spread,
    lead,
    spreads,
)

__all__ = ["BUDGETS", "EXPERIMENT", "KS", "PRODUCTS", "slices", "stand_in"]

N_SPLITS = 50
N_TRAINING, MOST_TEST = 300, 5_000
BUDGETS = (4, 8, 16, 30, 50, 80)
PRODUCTS = (240, 360, 600)
KS = (2, 3, 4, 6, 8)
TRADE_OFF_BUDGET = 30
N_BINS = 8

STAND_IN = "simulated stand-in"
SOURCE = next((n for n in (ct_slices.FULL, ct_slices.EXCERPT) if ct_slices.is_local(n)), STAND_IN)
TOP = "algorithms"


@cache
def slices(source: str) -> Population:
    """The slices as objects that a crowd can judge."""
    if source == STAND_IN:
        bins, target = stand_in()
    else:
        table = ct_slices.load_ct_slices(source)
        bins = table.features.drop(columns="patientId").to_numpy()
        target = table.target.to_numpy()
    grouped = bins.reshape(len(bins), -1, N_BINS)

    def judge(rng: np.random.Generator, attribute: int, number: int) -> np.ndarray:
        picked = rng.integers(N_BINS, size=(len(grouped), number))
        return np.take_along_axis(grouped[:, attribute], picked, axis=1)

    return Population(target, judge, grouped.shape[1], None)


def stand_in() -> tuple[Float[np.ndarray, "object bin"], Float[np.ndarray, " object"]]:
    """Simulated bins and positions of slices; each bin is dense along a stretch of the axis."""
    rng = np.random.default_rng(0)
    target = rng.uniform(0, 90, size=2_000)
    centre = np.repeat(rng.uniform(-10, 100, size=48), N_BINS) + rng.normal(0, 12, size=384)
    width = rng.uniform(8, 40, size=384)
    body = rng.normal(0, 4, size=(len(target), 1))
    shape = np.exp(-(((target[:, None] + body - centre) / width) ** 2))
    return np.clip(shape + rng.normal(0, 0.15, size=shape.shape), 0, 1), target


def _measure(part: str, seed: int) -> dict[CellId, float]:
    population = slices(SOURCE)
    if part == TOP:
        errors = errors_by_budget(
            population,
            n_training=N_TRAINING,
            n_test=MOST_TEST,
            k=2,
            budgets=BUDGETS,
            methods=tuple(METHODS),
            seed=(seed,),
        )
        return {CellId(method, f"B={budget:g}"): e for (method, budget), e in errors.items()}
    product = int(part.removeprefix("m k = "))
    found = {}
    for k in KS:
        errors = errors_by_budget(
            population,
            n_training=product // k,
            n_test=MOST_TEST,
            k=k,
            budgets=(TRADE_OFF_BUDGET,),
            methods=("Full", "Scoring"),
            seed=(seed, k),
        )
        for (method, _), error in errors.items():
            found[CellId(f"{method}, {part}", f"k={k}")] = error
    return found


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    def at(method: str, budget: int) -> CellId:
        return CellId(method, f"B={budget}")

    baselines = {b: [at("Averages", b), at("Copies", b)] for b in BUDGETS}
    of_full = {b: lead(outcomes, at("Full", b), baselines[b]) for b in BUDGETS}
    over_scoring = {b: lead(outcomes, at("Full", b), [at("Scoring", b)]) for b in BUDGETS}
    of_scoring = {b: lead(outcomes, at("Scoring", b), baselines[b]) for b in BUDGETS}
    small_k = {}
    for product in PRODUCTS:
        for method in ("Full", "Scoring"):
            row = f"{method}, m k = {product}"
            others = [CellId(row, f"k={k}") for k in KS if k > 2]
            small_k[row] = lead(outcomes, CellId(row, "k=2"), others)
    return [
        Claim(
            "Full is better than Averages and Copies at every budget from 16 up",
            all(gap.mean > 0 for budget, gap in of_full.items() if budget >= 16),
            f"ahead of the better one by {_list_leads(of_full)}",
        ),
        Claim(
            "Scoring is usually somewhat worse than Full",
            sum(gap.mean > 0 for gap in over_scoring.values()) > len(BUDGETS) / 2,
            f"Full is ahead by {_list_leads(over_scoring)}",
        ),
        Claim(
            "with small budgets Scoring is sometimes worse than the baselines",
            any(gap.mean < 0 for budget, gap in of_scoring.items() if budget <= 16),
            f"ahead of the better one by {_list_leads(of_scoring)}",
        ),
        Claim(
            "a small k is preferable",
            all(gap.mean > -2 * gap.error for gap in small_k.values()),
            "k = 2 is ahead of the best other k by "
            + ", ".join(f"{format_spread(gap)} ({row})" for row, gap in small_k.items()),
        ),
    ]


def _list_leads(leads: Mapping[int, Spread]) -> str:
    return ", ".join(f"{format_spread(gap)} (B={budget})" for budget, gap in leads.items())


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    found = spreads(outcomes)
    figure = Figure(figsize=(10.5, 4.2), dpi=150, layout="constrained")
    top, bottom = figure.subplots(1, 2)
    for method in METHODS:
        colour, marker, line = COLOURS[method]
        points = [found[CellId(method, f"B={budget}")] for budget in BUDGETS]
        top.errorbar(
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
    top.set(xlabel="budget: judgements of an object", ylabel="mean squared test error")
    for place, product in enumerate(PRODUCTS):
        for method in ("Full", "Scoring"):
            colour, marker, _ = COLOURS[method]
            points = [found[CellId(f"{method}, m k = {product}", f"k={k}")] for k in KS]
            bottom.errorbar(
                KS,
                [p.mean for p in points],
                [p.error for p in points],
                color=colour,
                marker=marker,
                linestyle=("-", "--", ":")[place],
                markersize=4,
                linewidth=1.3,
                label=f"{method}, {product}",
            )
    bottom.set(xlabel="k: judgements of an attribute of a training object", xticks=KS)
    bottom.set_ylabel(f"mean squared test error, budget {TRADE_OFF_BUDGET}")
    for axes, title in ((top, SOURCE), (bottom, "objects times judgements held fixed")):
        axes.set_ylim(bottom=0)
        axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
    top.legend(frameon=False, fontsize="small", ncols=2)
    bottom.legend(frameon=False, fontsize="small", ncols=2, loc="upper left")
    return figure


_PARTS = (
    Part(
        TOP,
        f"{SOURCE}; k=2, {N_TRAINING} training objects, at most {MOST_TEST} test objects",
        is_random=True,
    ),
    *(
        Part(f"m k = {product}", f"{SOURCE}; budget {TRADE_OFF_BUDGET}", is_random=True)
        for product in PRODUCTS
    ),
)


_STAND_IN_NOTE = (
    f"This is not the full table ({SOURCE}), so errors are not on the level of figure 3; "
    "bayescrowd.load_table('ct-slices') downloads the full table."
)


def _cell(id_: CellId, part: str) -> Cell:
    return Cell(id_, part, published=None, unit="", decimals=1, n_items=None, reason=None)


EXPERIMENT = Experiment(
    name="multiselection-figure3",
    title=f"Mean squared test error on CT slices ({SOURCE}; Sabato and Kalai, figure 3)",
    parts=_PARTS,
    cells=(
        *(_cell(CellId(m, f"B={b}"), TOP) for m in METHODS for b in BUDGETS),
        *(
            _cell(CellId(f"{method}, m k = {product}", f"k={k}"), f"m k = {product}")
            for product in PRODUCTS
            for method in ("Full", "Scoring")
            for k in KS
        ),
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SPLITS,
    claims=_claims,
    average="mean",
    notes=(
        "Means ± standard errors over splits; leads are paired by split.",
        "The paper prints no numbers and does not say how many objects it trains on.",
        *([] if SOURCE == ct_slices.FULL else [_STAND_IN_NOTE]),
    ),
)
