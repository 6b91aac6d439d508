"""Axes, colours and the look that all pictures share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PALE",
    "PURPLE",
    "VERMILLION",
    "axes_or_new",
    "draw_gaps_to_best",
    "tidy",
]

# Okabe and Ito, "Color universal design", 2008.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#595959"  # contrast of seven to one with white: readable as text
PALE = "#BBBBBB"  # for what stands in the background


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (6.0, 4.2)) -> Axes:
    """The given axes, or those of a new figure outside pyplot of `size` inches."""
    if ax is not None:
        return ax
    return Figure(figsize=size, dpi=150, layout="constrained").subplots()


def tidy(ax: Axes, *, title: str, xlabel: str, ylabel: str) -> Axes:
    """Set title and labels, and remove the upper and right lines of the frame."""
    ax.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax


def draw_gaps_to_best(
    ax: Axes,
    difference: pd.Series,
    standard_error: pd.Series,
    notes: Sequence[str],
    colours: Sequence[str],
) -> None:
    """Draw how far each model falls short of the best, with two standard errors and a note."""
    rows = np.arange(len(difference))
    ax.axvline(0, color=GREY, linestyle="--", linewidth=1)
    ax.errorbar(
        difference, rows, xerr=2 * standard_error, fmt="o", color=BLUE, capsize=3, markersize=6
    )
    for row, note, colour in zip(rows, notes, colours, strict=True):
        ax.annotate(
            note,
            (1.02, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
            color=colour,
        )
    ax.set_yticks(rows, [str(name) for name in difference.index])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.grid(axis="y", color="#EEEEEE")
