"""What the pictures share: axes, colours, the look of an axis."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "VERMILLION", "axes_or_new", "tidy"]

# Okabe and Ito, "Color universal design", 2008.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#595959"  # seven to one against white: readable as text


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (6.0, 4.2)) -> Axes:
    """The axes given, else those of a new figure of this size in inches, outside pyplot."""
    if ax is not None:
        return ax
    return Figure(figsize=size, dpi=150, layout="constrained").subplots()


def tidy(ax: Axes, *, title: str, xlabel: str, ylabel: str) -> Axes:
    """Title and labels, without the frame's upper and right lines."""
    ax.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax
