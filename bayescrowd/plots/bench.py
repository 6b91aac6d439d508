"""Pictures of methods measured side by side on several crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.text import shorten
from bayescrowd.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    axes_or_new,
    tidy,
)

__all__ = ["bench_differences", "bench_scores"]

_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, GREY)
_MARKERS = "osD^vP*X<>h"


@validate_arguments
def bench_scores(
    scores: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str = "Error",
    xlabel: str = "error (%)",
) -> Axes:
    """A measure of each method on each crowd, and below them the means.

    The means are over the crowds on which every method has a value.

    Args:
        scores: crowds x methods; NaN where a method failed, which is not drawn.
        ax: where to draw.
        title: title of the picture.
        xlabel: the measure and its unit.

    Raises:
        ValueError: there is no crowd or no method, or a column holds no numbers.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> scores = pd.DataFrame({"MajorityVote": [30.0, 10.0], "DawidSkene": [20.0, 12.0]})
        >>> ax = bc.plots.bench_scores(scores.set_axis(["birds", "dogs"]))
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['birds', 'dogs', 'mean']
    """
    _check(scores)
    ax = axes_or_new(ax, (6.0, 1.4 + 0.34 * len(scores)))
    table = scores.set_axis([str(name) for name in scores.index])
    table.loc["mean"] = scores.dropna().mean()
    rows = np.arange(len(table))
    for place, method in enumerate(table.columns):
        ax.plot(table[method], rows, linestyle="none", zorder=3, **_look(place, method))
    return _finish(ax, list(table.index), title, xlabel)


@validate_arguments
def bench_differences(
    difference: pd.DataFrame,
    standard_error: pd.DataFrame,
    reference: str,
    ax: Axes | None = None,
) -> Axes:
    """How much larger each method's error is than that of a reference, with two standard errors.

    The last row is the mean over crowds, with its standard error over crowds.

    Args:
        difference: paired differences in points, crowds x methods.
        standard_error: their standard errors over tasks, in points.
        reference: name of the method that was subtracted.
        ax: where to draw.

    Raises:
        ValueError: there is no crowd or no method, a column holds no numbers, or tables differ in
            their crowds or methods.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> gap = pd.DataFrame({"DawidSkene": [-2.0, 1.0], "Wawa": [0.0, 0.0]})
        >>> ax = bc.plots.bench_differences(gap, gap.abs() / 4, "Wawa")
        >>> ax.get_xlabel()
        "error minus Wawa's (points, ± 2 se)"
    """
    _check(difference)
    _check(standard_error)
    if not (
        standard_error.index.equals(difference.index)
        and standard_error.columns.equals(difference.columns)
    ):
        raise ValueError(
            "the tables of differences and standard errors do not match; expected the same crowds "
            "and methods in both"
        )
    ax = axes_or_new(ax, (6.0, 1.4 + 0.34 * len(difference)))
    table = difference.set_axis([str(name) for name in difference.index])
    errors = standard_error.set_axis(table.index)
    n_crowds = difference.notna().sum().clip(lower=1)
    errors.loc["mean"] = difference.std(ddof=1) / np.sqrt(n_crowds)
    table.loc["mean"] = difference.mean()
    ax.axvline(0, color=GREY, linestyle="--", linewidth=1)
    others = [method for method in table.columns if method != reference]
    shifts = np.linspace(-0.3, 0.3, len(others)) if len(others) > 1 else np.zeros(len(others))
    for method, shift in zip(others, shifts, strict=True):
        ax.errorbar(
            table[method],
            np.arange(len(table)) + shift,
            xerr=2 * errors[method].fillna(0),
            linestyle="none",
            elinewidth=1,
            zorder=3,
            **_look(list(table.columns).index(method), method),
        )
    xlabel = f"error minus {reference}'s (points, ± 2 se)"
    return _finish(ax, list(table.index), "Paired differences", xlabel)


def _check(table: pd.DataFrame) -> None:
    if table.empty:
        raise ValueError(
            f"the table has shape {table.shape}; expected at least one crowd and one method"
        )
    for method in table.columns:
        if not pd.api.types.is_numeric_dtype(table[method].dtype):
            raise ValueError(f"column {method!r} holds no numbers; expected one per crowd")


def _look(place: int, method: object) -> dict[str, Any]:
    """Colour and marker of a method: no two of the first 66 share both."""
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 5,
        "alpha": 0.85,
        "label": shorten(method, 28),
    }


def _finish(ax: Axes, names: list[str], title: str, xlabel: str) -> Axes:
    ax.set_yticks(range(len(names)), [shorten(name, 24) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.axhline(len(names) - 1.5, color=GREY, linewidth=0.8)  # the mean stands apart
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color="#EEEEEE")
    return tidy(ax, title=title, xlabel=xlabel, ylabel="")
