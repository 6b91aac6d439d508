"""Sizes of the five crowds (Zhao and Zucker, table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from bayescrowd.datasets.registry import load_dataset
from bayescrowd.experiments.engine.experiment import Cell, CellId, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.engine.pictures import draw_table

__all__ = ["EXPERIMENT"]

_COLUMNS = ("Classes", "Items", "Workers", "Worker labels")
_PUBLISHED = {
    "bluebird": (2, 108, 39, 4212),
    "rte": (2, 800, 164, 8000),
    "trec": (2, 19033, 762, 88385),
    "dog": (4, 807, 109, 8070),
    "web": (5, 2665, 177, 15567),
}


def _measure(part: str, seed: int) -> dict[CellId, float]:
    ann = load_dataset(part).annotations
    sizes = (ann.n_classes, ann.n_tasks, ann.n_workers, ann.n_labels)
    return {CellId(part, column): float(size) for column, size in zip(_COLUMNS, sizes, strict=True)}


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    return draw_table(outcomes, "Sizes of the crowds")


EXPERIMENT = Experiment(
    name="mi-table1",
    title="Sizes of the five crowds (Zhao and Zucker, table 1)",
    parts=tuple(Part(name, "as loaded", is_random=False) for name in _PUBLISHED),
    cells=tuple(
        Cell(
            id=CellId(name, column),
            part=name,
            published=float(size),
            unit="",
            decimals=0,
            n_items=None,
            reason=None,
        )
        for name, sizes in _PUBLISHED.items()
        for column, size in zip(_COLUMNS, sizes, strict=True)
    ),
    measure=_measure,
    draw=_draw,
)
