"""Pictures of stagewise EM: its course, and the dependence of features that remains."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bayescrowd.checks.parameters import as_numbers, validate_arguments
from bayescrowd.mixture.stagewise_estimator import StagewiseEM
from bayescrowd.plots.canvas import BLUE, GREY, ORANGE, axes_or_new, tidy

__all__ = ["information_map", "stagewise_course"]

_QUANTITIES = {
    "log_likelihood": ("Log-likelihood", "nats per item"),
    "max_information": ("Largest conditional information", "nats"),
    "n_informative": ("Informative features", "number"),
}

_MOST_TICKS = 12
"""Largest number of features that are named along an axis."""


@validate_arguments
def stagewise_course(
    est: StagewiseEM,
    quantity: Literal["log_likelihood", "max_information", "n_informative"],
    ax: Axes | None = None,
    *,
    reference: float | None = None,
    reference_name: str = "true model",
) -> Axes:
    """One panel of the course of a fit, as in figure 3 of Zhao and Zucker (SL).

    Iterations that split a component are marked.

    Args:
        est: a fitted `StagewiseEM`.
        quantity: the column of its `history_` to draw; the log-likelihood is drawn per item.
        ax: where to draw.
        reference: value to mark by a dashed line, such as that of the true model.
        reference_name: name of that line.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.mixture.stagewise_estimator import StagewiseEM
        >>> crowd = bc.simulate.sparse_crowd(300, 20, alpha=0.3, accuracy=0.8, seed=0)
        >>> ax = stagewise_course(StagewiseEM(3).fit(crowd.annotations), "n_informative")
        >>> ax.get_ylabel()
        'number'
    """
    if quantity not in _QUANTITIES:
        raise ValueError(f"quantity={quantity!r}: expected one of {', '.join(_QUANTITIES)}")
    ax = axes_or_new(ax, (4.6, 3.4))
    course = est.history_[quantity].to_numpy(dtype=float)
    if quantity == "log_likelihood":
        course = course / len(est.responsibilities_)
    iterations = np.arange(len(course))
    is_split = est.history_["is_split"].to_numpy(dtype=bool)
    ax.plot(iterations, course, color=BLUE, marker="o", markersize=3)
    ax.plot(
        iterations[is_split],
        course[is_split],
        linestyle="none",
        marker="D",
        color=ORANGE,
        label="a component is split",
    )
    if reference is not None:
        ax.axhline(reference, color=GREY, linestyle="--", linewidth=1, label=reference_name)
    ax.legend(frameon=False, fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(color="#EEEEEE")
    title, unit = _QUANTITIES[quantity]
    return tidy(ax, title=title, xlabel="iteration", ylabel=unit)


@validate_arguments
def information_map(
    information: pd.DataFrame,
    ax: Axes | None = None,
    *,
    largest: float | None = None,
    title: str = "Information left unexplained",
) -> Axes:
    """Heat map of the conditional information of pairs of features; the diagonal is blank.

    Args:
        information: features x features in nats, such as `MDPD.unexplained()`.
        ax: where to draw.
        largest: value of the darkest colour, so that maps can be compared; by default the largest
            entry of this one.
        title: title of the picture.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> ax = information_map(pd.DataFrame(np.array([[0.0, 0.2], [0.2, 0.0]])))
        >>> ax.get_xlabel()
        'feature'
    """
    ax = axes_or_new(ax, (5.0, 4.4))
    values = as_numbers("information", information).copy()
    np.fill_diagonal(values, np.nan)
    top = float(np.nanmax(values, initial=0.0)) if largest is None else largest
    image = ax.imshow(values, cmap="viridis_r", vmin=0.0, vmax=max(top, 1e-12))
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="nats")
    places = np.unique(np.linspace(0, len(values) - 1, _MOST_TICKS).round().astype(int))
    names = [str(information.index[place]) for place in places]
    ax.set_xticks(places, names, rotation=90, fontsize="x-small")
    ax.set_yticks(places, names, fontsize="x-small")
    return tidy(ax, title=title, xlabel="feature", ylabel="feature")
