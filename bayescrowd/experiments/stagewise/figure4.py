"""How the informative set grows, and what it leaves unexplained (Zhao and Zucker, SL, figure 4).

The figure shows, for one draw of figure 3's crowd, the conditional information of the first 30
workers after 0, 3, 5 and 7 iterations. These are the informative workers, ordered from the most
accurate to the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bayescrowd.data.features import as_feature_table
from bayescrowd.experiments.engine.experiment import (
    Cell,
    CellId,
    Claim,
    Experiment,
    Part,
    settings_of,
)
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.stagewise.crowds import figure3_crowd, stagewise_em
from bayescrowd.mixture.pair_information import PairInformation
from bayescrowd.plots.stagewise import information_map

__all__ = ["EXPERIMENT", "ITERATIONS", "Snapshot", "snapshots"]

ITERATIONS = (0, 3, 5, 7)
N_SHOWN = 30
N_SEEDS = 20

BEST_FIVE, FIRST_EIGHT = "best 5 workers in S", "first 8 of S among the best 15"
SIZE, MEAN, LARGEST = "size of S", "mean information, first 30", "largest information, first 30"


class Snapshot(NamedTuple):
    """Stagewise EM after some iterations."""

    iteration: int
    """Number of iterations."""
    information: pd.DataFrame
    """I(Xi; Xj | Y) of all pairs of workers, in nats."""
    informative: list[int]
    """The workers of S, in the order in which they entered."""


def snapshots(seed: int) -> list[Snapshot]:
    """The states of one draw that the figure shows."""
    ann = figure3_crowd(seed).annotations
    pairs = PairInformation(as_feature_table(ann))
    out = []
    for iteration in ITERATIONS:
        responsibilities, informative = np.ones((ann.n_tasks, 1)), []
        if iteration > 0:  # three components need two iterations
            est = stagewise_em(3, n_iter=iteration, predict_with="informative").fit(ann)
            responsibilities = est.responsibilities_.to_numpy()
            informative = [int(worker) for worker in est.informative_]
        information = pd.DataFrame(pairs.matrix(responsibilities), ann.workers, ann.workers)
        out.append(Snapshot(iteration, information, informative))
    return out


def _measure(part: str, seed: int) -> dict[CellId, float]:
    values: dict[CellId, float] = {}
    for shot in snapshots(seed):
        shown = shot.information.to_numpy()[:N_SHOWN, :N_SHOWN]
        column = str(shot.iteration)
        values[CellId(SIZE, column)] = len(shot.informative)
        values[CellId(BEST_FIVE, column)] = len(set(shot.informative) & set(range(5)))
        values[CellId(FIRST_EIGHT, column)] = sum(worker < 15 for worker in shot.informative[:8])
        values[CellId(MEAN, column)] = shown.sum() / (N_SHOWN * (N_SHOWN - 1))
        values[CellId(LARGEST, column)] = shown.max()
    return values


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    values = {outcome.cell.id: np.array(outcome.values) for outcome in outcomes}
    last = str(ITERATIONS[-1])
    five, eight, size = (values[CellId(row, last)] for row in (BEST_FIVE, FIRST_EIGHT, SIZE))
    share = eight / np.minimum(size, 8)
    before, after = values[CellId(MEAN, "0")], values[CellId(MEAN, last)]
    return [
        Claim(
            f"the 5 most informative workers are in S within {last} iterations",
            bool((five == 5).all()),
            f"{five.mean():.1f} of them on average; all 5 in {(five == 5).sum()} of {len(five)} "
            "draws",
        ),
        Claim(
            "the first 8 members of S are all among the 15 best workers",
            bool((share == 1).all()),
            f"{100 * share.mean():.0f} % of them on average; all in {(share == 1).sum()} of "
            f"{len(share)} draws",
        ),
        Claim(
            "the information that the informative workers still share falls",
            bool((after < before / 2).all()),
            f"mean over pairs from {1000 * before.mean():.1f} to {1000 * after.mean():.1f} "
            "thousandths of a nat",
        ),
    ]


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the first 30 workers above and those in S below, for seed 0."""
    shots = snapshots(0)
    largest = float(shots[0].information.to_numpy().max())
    figure = Figure(figsize=(12, 6), dpi=150, layout="constrained")
    panels = figure.subplots(2, len(shots))
    for (above, below), shot in zip(panels.T, shots, strict=True):
        shown = shot.information.iloc[:N_SHOWN, :N_SHOWN]
        information_map(shown, above, largest=largest, title=f"t = {shot.iteration}")
        if not shot.informative:
            below.set_axis_off()
            continue
        members = shot.information.loc[shot.informative, shot.informative]
        information_map(members, below, largest=largest, title=f"S at t = {shot.iteration}")
    return figure


EXPERIMENT = Experiment(
    name="stagewise-figure4",
    title="Growth of the informative set (Zhao and Zucker, stagewise EM, figure 4)",
    parts=(Part("draw", settings_of(stagewise_em(3)), is_random=True),),
    cells=tuple(
        Cell(
            id=CellId(row, str(iteration)),
            part="draw",
            published=None,
            unit="nats" if row in (MEAN, LARGEST) else "workers",
            decimals=4 if row in (MEAN, LARGEST) else 0,
            n_items=None,
            reason=None,
        )
        for row in (SIZE, BEST_FIVE, FIRST_EIGHT, MEAN, LARGEST)
        for iteration in ITERATIONS
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=("Columns are iterations. The picture shows seed 0.",),
)
