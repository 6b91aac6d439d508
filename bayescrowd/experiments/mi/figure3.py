"""Label error against the number of workers, and the workers' scores (Zhao and Zucker, figure 3).

The upper panels show the label error of three methods on the best workers by mutual information
(solid) and by their own error (dashed), which requires the truth; the lower panels show the scores
in falling order. Points lie at the same shares of every crowd's workers. The settings are those of
`selection.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayescrowd.experiments.engine.experiment import (
    Cell,
    CellId,
    Claim,
    Experiment,
    Part,
    settings_of,
)
from bayescrowd.experiments.engine.label_errors import CROWDS
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.mi.selection import (
    AUTHORS_N_SCORED,
    METHODS,
    RANDOM,
    authors_truth,
    crowd_named,
    error_of,
    mutual_information_ranking,
    top_workers,
    truth_ranking,
)

__all__ = ["EXPERIMENT", "SHARES", "n_workers_at"]

N_SEEDS = 5
"""Number of runs of OPT-D&S. The paper has 20; five take about three minutes on one core."""

SHARES = (2.5, 5.0, 7.5, 10.0, 12.5, 15.0, *np.arange(20.0, 96.0, 5.0).tolist(), 97.5, 100.0)
"""Shares of a crowd's workers at which errors are measured, in per cent."""

_N_WORKERS = {"Bird": 39, "RTE": 164, "TREC": 762, "Dog": 109, "Web": 177}
_SELECTORS = ("selected", "supervised")
_COLOURS = {"OPT-D&S": "#1f5a96", "MV": "#c2571a", "MV+EM": "#3b7d3a"}


def n_workers_at(title: str, share: float) -> int:
    """The number of workers that make up a share of the crowd in per cent, at least one."""
    return max(1, round(share / 100 * _N_WORKERS[title]))


def _measure(part: str, seed: int) -> dict[CellId, float]:
    title, selector, *method = part.split(", ")
    name = crowd_named(title)
    scores = mutual_information_ranking(name)
    if selector == "score":
        return {
            _id(part, share): float(scores.iloc[n_workers_at(title, share) - 1]) for share in SHARES
        }
    ranking = scores.index if selector == "selected" else truth_ranking(name)
    truth = authors_truth(name)
    values: dict[int, float] = {}
    for number in {n_workers_at(title, share) for share in SHARES}:
        labels = top_workers(name, ranking, number)
        values[number] = error_of(METHODS[method[0]](seed), labels, truth)
    return {_id(part, share): values[n_workers_at(title, share)] for share in SHARES}


def _id(part: str, share: float) -> CellId:
    return CellId(part, f"{share:g}%")


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}

    def curve(title: str, selector: str, method: str) -> np.ndarray:
        part = f"{title}, {selector}, {method}"
        return np.array([measured[_id(part, share)] for share in SHARES])

    claims = []
    for crowd in CROWDS:
        found = []
        for method in METHODS:
            errors = curve(crowd.title, "selected", method)
            best = int(errors.argmin())
            number = n_workers_at(crowd.title, SHARES[best])
            found.append((method, errors[best], number, errors[-1]))
        claims.append(
            Claim(
                f"{crowd.title}: selection can improve all three methods",
                holds=all(least < full for _, least, _, full in found),
                evidence=", ".join(
                    f"{method} {full:.2f} to {least:.2f} % with {number}"
                    for method, least, number, full in found
                ),
            )
        )
    for title in ("Bird", "Dog"):
        few = [place for place, share in enumerate(SHARES) if share <= 25]
        distance = {
            method: float(
                (curve(title, "selected", method) - curve(title, "supervised", method))[few].mean()
            )
            for method in METHODS
        }
        listed = ", ".join(f"{method} {value:+.2f}" for method, value in distance.items())
        claims.append(
            Claim(
                f"{title}: with few workers, selection without truth stays close to that with it",
                holds=all(value < 2.5 for value in distance.values()),
                evidence=f"{listed} points on average, up to a quarter of the workers",
            )
        )
    return claims


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    by_id = {outcome.cell.id: outcome for outcome in outcomes}
    figure = Figure(figsize=(14, 5.6), dpi=150, layout="constrained")
    above, below = figure.subplots(2, len(CROWDS), height_ratios=(2, 1))
    for axes, lower, crowd in zip(above, below, CROWDS, strict=True):
        numbers = [n_workers_at(crowd.title, share) for share in SHARES]
        for method, colour in _COLOURS.items():
            for selector in _SELECTORS:
                part = f"{crowd.title}, {selector}, {method}"
                curve = [by_id[_id(part, share)] for share in SHARES]
                _draw_curve(axes, numbers, curve, colour, solid=selector == "selected")
        part = f"{crowd.title}, score"
        heights = [by_id[_id(part, share)].measured for share in SHARES]
        lower.plot(numbers, heights, color="#333333", linewidth=1.2)
        axes.set(title=crowd.title, ylim=(0, None))
        lower.set(xlabel="number of workers", ylim=(min(0, *heights), None))
        for each in (axes, lower):
            each.spines[["top", "right"]].set_visible(False)
    above[0].set_ylabel("label error in %")
    below[0].set_ylabel("score (nats)")
    handles = [Line2D([], [], color=colour, label=name) for name, colour in _COLOURS.items()]
    handles += [
        Line2D([], [], color="#555555", label="by mutual information"),
        Line2D([], [], color="#555555", linestyle="--", label="by own error (supervised)"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def _draw_curve(
    axes: Axes, numbers: Sequence[int], curve: Sequence[Outcome], colour: str, *, solid: bool
) -> None:
    style = "-" if solid else "--"
    axes.plot(numbers, [o.measured for o in curve], style, color=colour, linewidth=1.2)
    if solid and len(curve[0].values) > 1:
        quartiles = np.array([outcome.spread[1:3] for outcome in curve])
        axes.fill_between(numbers, *quartiles.T, color=colour, alpha=0.2, linewidth=0)


def _part(title: str, selector: str, method: str) -> Part:
    ranked = "mutual information (score, paper)" if selector == "selected" else "own error"
    settings = f"{settings_of(METHODS[method](0))} on the best workers by {ranked}"
    return Part(f"{title}, {selector}, {method}", settings, is_random=method in RANDOM)


_PARTS = tuple(
    part
    for crowd in CROWDS
    for part in (
        *(_part(crowd.title, selector, m) for selector in _SELECTORS for m in METHODS),
        Part(f"{crowd.title}, score", "paper's estimator, summed over all others", is_random=False),
    )
)

EXPERIMENT = Experiment(
    name="mi-figure3",
    title="Label error (%) against the share of workers (Zhao and Zucker, figure 3)",
    parts=_PARTS,
    cells=tuple(
        Cell(
            id=_id(part.name, share),
            part=part.name,
            published=None,
            unit="nats" if part.name.endswith("score") else "%",
            decimals=2,
            n_items=(
                None
                if part.name.endswith("score")
                else AUTHORS_N_SCORED[part.name.partition(",")[0]]
            ),
            reason=None,
        )
        for part in _PARTS
        for share in SHARES
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=(
        "The best numbers of workers are found with the truth; they cannot be chosen without it.",
        "Web: its 12 tasks without a truth count as class 1, as in the paper.",
    ),
)
