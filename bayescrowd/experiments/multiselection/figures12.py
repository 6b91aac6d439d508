"""Correlation against reliability of attributes (Sabato and Kalai 2013, figures 1 and 2).

The figures show, for each attribute of the photos, its normalised correlation with height and
weight, b/sigma, and its normalised internal variance, v/sigma, from k = 2 judgements of 880 people.
The judgements are not public and the figures have no numbers, so the statement in the text is
checked on a simulated crowd (`bayescrowd.experiments.multiselection.people`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.multiselection.errors import Spread, format_spread, spreads
from bayescrowd.experiments.multiselection.people import ATTRIBUTES, COSTS, draw_people, population
from bayescrowd.selection.repeats.multi_selection import MultiSelection

__all__ = ["EXPERIMENT", "TARGETS"]

N_CROWDS = 50
TARGETS = ("height", "weight")
NOISE = "v/sigma"
_NAMED = ("male", "thin", "overweight", "attractive", "intelligent", "glasses")


def _measure(part: str, seed: int) -> dict[CellId, float]:
    people = draw_people()
    found: dict[CellId, float] = {}
    for target in TARGETS:
        photos = population(target, people)
        rngs = np.random.default_rng(seed).spawn(len(ATTRIBUTES))
        pilot = np.stack([photos.judge(rng, a, 2) for a, rng in enumerate(rngs)], axis=1)
        table = MultiSelection(30, costs=COSTS).fit(pilot, photos.target).attributes_
        sigma = np.sqrt(table["external_variance"])
        for name, place in zip(ATTRIBUTES, table.index, strict=True):
            spread = float(sigma[place]) or 1.0
            found[CellId(name, _column(target))] = float(table["correlation"][place]) / spread
            found[CellId(name, NOISE)] = float(table["internal_variance"][place]) / spread
    return found


def _column(target: str) -> str:
    return f"b/sigma, {target}"


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    found = spreads(outcomes)
    claims = []
    for target in TARGETS:
        # Estimates, in centimetres or kilograms, cannot be compared with shares of yes answers.
        names = [n for n in ATTRIBUTES if not n.startswith("estimated")]
        use = {n: abs(found[CellId(n, _column(target))].mean) for n in names}
        noise = {n: found[CellId(n, NOISE)].mean for n in names}
        middle_use, middle_noise = np.median([*use.values()]), np.median([*noise.values()])
        corners = []
        for is_useful in (True, False):
            for is_stable in (True, False):
                inside = [
                    n
                    for n in names
                    if (use[n] > middle_use) == is_useful and (noise[n] < middle_noise) == is_stable
                ]
                kind = f"{'useful' if is_useful else 'useless'} and "
                corners.append((kind + ("stable" if is_stable else "noisy"), inside))
        claims.append(
            Claim(
                f"{target}: attributes are useful or not and stable or noisy in all combinations",
                all(inside for _, inside in corners),
                "; ".join(
                    f"{kind}: {len(inside)}, such as {_example(inside, found, target)}"
                    for kind, inside in corners
                    if inside
                ),
            )
        )
    return claims


def _example(names: Sequence[str], found: Mapping[CellId, Spread], target: str) -> str:
    name = names[0]
    ours, noise = found[CellId(name, _column(target))], found[CellId(name, NOISE)]
    return f"{name} (b/sigma {format_spread(ours, 2)}, v/sigma {format_spread(noise, 2)})"


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    found = spreads(outcomes)
    figure = Figure(figsize=(11, 4.8), dpi=150, layout="constrained")
    for axes, target in zip(figure.subplots(1, 2), TARGETS, strict=True):
        names = [n for n in ATTRIBUTES if not n.startswith("estimated")]
        use = [found[CellId(n, _column(target))].mean for n in names]
        noise = [found[CellId(n, NOISE)].mean for n in names]
        axes.axvline(0, color="#DDDDDD", linewidth=1, zorder=0)
        axes.scatter(use, noise, s=16, color="#0072B2")
        _name_points(axes, names, use, noise)
        unit = "cm" if target == "height" else "kg"
        axes.set(xlabel=f"b/sigma: correlation with {target} ({unit})", ylim=(0, None))
        axes.set_ylabel("v/sigma: internal variance")
        axes.set_title(f"Simulated crowd, {target}", loc="left", fontsize="medium", weight="bold")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _name_points(
    axes: Axes, names: Sequence[str], use: Sequence[float], noise: Sequence[float]
) -> None:
    for name, x, y in zip(names, use, noise, strict=True):
        if name in _NAMED:
            axes.annotate(name, (x, y), xytext=(4, 3), textcoords="offset points", fontsize="small")


def _cell(id_: CellId) -> Cell:
    return Cell(id_, "crowd", published=None, unit="", decimals=2, n_items=None, reason=None)


EXPERIMENT = Experiment(
    name="multiselection-figures12",
    title="Correlation against reliability of attributes, on a simulated crowd "
    "(Sabato and Kalai, figures 1 and 2)",
    parts=(Part("crowd", "880 people, 39 attributes, k=2", is_random=True),),
    cells=tuple(
        _cell(CellId(name, column))
        for name in ATTRIBUTES
        for column in (NOISE, *map(_column, TARGETS))
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_CROWDS,
    claims=_claims,
    average="mean",
    notes=(
        "The judgements are not public: the crowd, its people and its attributes are simulated.",
        "b/sigma is in centimetres and kilograms, v/sigma in shares of yes answers.",
    ),
)
