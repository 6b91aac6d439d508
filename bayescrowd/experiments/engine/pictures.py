"""Pictures that several experiments share."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.engine.verdict import DIFFERS, kind_of

__all__ = ["draw_table"]

# Pale enough for black text, and distinct to colour-blind readers.
_COLOURS = {"matches": "#d5ebd3", "differs": "#fbdcb0", "differs, with a reason": "#e4e0d4"}
_UNPUBLISHED = "#ffffff"

_CELL_WIDTH = 1.3
"""Width of a cell in inches."""

_NAME_SIZE = 9
"""Size of the row names in points."""


def draw_table(outcomes: Sequence[Outcome], title: str) -> Figure:
    """Draw the published table, with the measured value above the published one in each cell."""
    rows = list(dict.fromkeys(outcome.cell.id.row for outcome in outcomes))
    columns = list(dict.fromkeys(outcome.cell.id.column for outcome in outcomes))
    left = -max(0.75, 0.15 + _longest(rows) / _CELL_WIDTH)
    width = _CELL_WIDTH * (len(columns) - left) + 0.62
    figure = Figure(figsize=(width, 0.62 * len(rows) + 1.7), dpi=150)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    axes.set_axis_off()
    axes.set_xlim(left, len(columns))
    axes.set_ylim(len(rows) + 0.75, -1.35)
    axes.text(left, -1.15, title, fontsize=10, fontweight="bold", va="center")
    axes.text(left, -0.8, "bold: measured; below it: published", fontsize=8, va="center")
    for place, column in enumerate(columns):
        axes.text(place + 0.5, -0.3, column, ha="center", va="center", fontsize=9)
    for place, row in enumerate(rows):
        axes.text(-0.1, place + 0.5, row, ha="right", va="center", fontsize=_NAME_SIZE)
    for outcome in outcomes:
        cell = outcome.cell
        x, y = columns.index(cell.id.column), rows.index(cell.id.row)
        colour = _COLOURS.get(_shading(outcome), _UNPUBLISHED)
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=2))
        axes.text(
            x + 0.5,
            y + 0.36,
            f"{outcome.measured:.{cell.decimals}f}",
            ha="center",
            va="center",
            fontsize=10,
            fontweight="bold",
        )
        published = "–" if cell.published is None else f"{cell.published:.{cell.decimals}f}"
        axes.text(x + 0.5, y + 0.72, published, ha="center", va="center", fontsize=8, color="#444")
    _draw_legend(axes, left, len(rows))
    return figure


def _shading(outcome: Outcome) -> str:
    """What the colour of a cell stands for."""
    kind = kind_of(outcome.verdict)
    return f"{kind}, with a reason" if kind == DIFFERS and outcome.cell.reason else kind


def _longest(names: Sequence[str]) -> float:
    """Width of the longest name, in inches."""
    points = [TextPath((0, 0), name, size=_NAME_SIZE).get_extents().width for name in names]
    return float(max(points)) / 72


def _draw_legend(axes: Axes, left: float, n_rows: int) -> None:
    x = left  # starts at the left edge: a table of two columns has no other room for it
    for kind, colour in _COLOURS.items():
        axes.add_patch(Rectangle((x, n_rows + 0.3), 0.16, 0.26, facecolor=colour))
        axes.text(x + 0.22, n_rows + 0.43, kind, va="center", fontsize=8)
        x += 0.42 + 0.05 * len(kind)
