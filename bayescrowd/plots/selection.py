"""Pictures of selection: scores, errors by number of workers, and unexplained pairs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.text import shorten
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    VERMILLION,
    axes_or_new,
    tidy,
)
from bayescrowd.selection.workers.mutual_information import MutualInformationSelector

__all__ = ["score_curve", "selection_errors", "unexplained_pairs"]

MAX_NAMED_FEATURES = 20
"""With more features than this, only every second, third, ... feature is named along the axes."""

_COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE)
_DASHES = ("-", ":", "-.")


@validate_arguments
def score_curve(selector: MutualInformationSelector, ax: Axes | None = None) -> Axes:
    """Scores in decreasing order, with the selected ones marked.

    Args:
        selector: a fitted selector.
        ax: where to draw.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.sparse_crowd(200, 20, alpha=0.25, accuracy=0.8, seed=1)
        >>> ax = bc.plots.score_curve(bc.MutualInformationSelector(5).fit(data.annotations))
        >>> ax.get_title(loc="left")
        '5 of 20 selected'
    """
    ax = axes_or_new(ax)
    scores = selector.scores_.sort_values(ascending=False, kind="stable")
    rank = np.arange(1, len(scores) + 1)
    is_selected = scores.index.isin(selector.selected_)
    ax.plot(rank, scores, color=PALE, linewidth=1, zorder=1)
    size = 22 if len(scores) <= 100 else 8
    for chosen, colour, marker, name in (
        (True, BLUE, "o", "selected"),
        (False, GREY, "x", "left out"),
    ):
        members = is_selected == chosen
        if members.any():
            ax.scatter(
                rank[members],
                scores[members],
                s=size,
                color=colour,
                marker=marker,
                linewidth=1,
                label=f"{name} ({members.sum():,})",
                zorder=2,
            )
    ax.axhline(0, color="#DDDDDD", linewidth=1, zorder=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, loc="upper right")
    return tidy(
        ax,
        title=f"{len(selector.selected_):,} of {len(scores):,} selected",
        xlabel="rank by score",
        ylabel=(
            "information of one value about the class (nats)"
            if selector.estimator == "class"
            else "information shared with all others (nats)"
        ),
    )


@validate_arguments
def selection_errors(curve: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Label error against the number of workers; a colour per aggregator, a line per selector.

    Args:
        curve: the result of `selection_curve`.
        ax: where to draw.

    Raises:
        ValueError: a column is absent.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> curve = pd.DataFrame(
        ...     {"selector": "score", "aggregator": "MV", "n_workers": [1, 2], "error": [0.3, 0.2]}
        ... )
        >>> bc.plots.selection_errors(curve).get_xlabel()
        'number of workers'
    """
    absent = {"selector", "aggregator", "n_workers", "error"} - {*curve.columns}
    if absent:
        raise ValueError(f"no column {min(absent)!r}; expected the table of selection_curve")
    ax = axes_or_new(ax)
    methods = list(dict.fromkeys(curve["aggregator"]))
    # The supervised ranking is dashed, as in the paper.
    selectors = [name for name in dict.fromkeys(curve["selector"]) if name != "supervised"]
    dashes_of = {name: _DASHES[place % 3] for place, name in enumerate(selectors)}
    for (method, selector), part in curve.groupby(["aggregator", "selector"], sort=False):
        dashes = dashes_of.get(selector, "--")
        part = part.sort_values("n_workers")
        ax.plot(
            part["n_workers"],
            part["error"],
            color=_COLOURS[methods.index(method) % len(_COLOURS)],
            linestyle=dashes,
            linewidth=1.3,
            label=f"{method}, {selector}",
        )
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.legend(frameon=False, fontsize="small")
    return tidy(
        ax, title="Selected workers", xlabel="number of workers", ylabel="share of wrong labels"
    )


@validate_arguments
def unexplained_pairs(mixture: MDPD, ax: Axes | None = None) -> Axes:
    """A heat map of the information that pairs of features share beyond their component.

    Features that share much come first. Where the mixture explains the data, the map is even and
    pale; `MDPD.goodness_of_fit` says how much information to expect by chance.

    Args:
        mixture: a fitted mixture.
        ax: where to draw.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> table = np.random.default_rng(0).integers(2, size=(50, 4))
        >>> ax = bc.plots.unexplained_pairs(bc.MDPD(1).fit(table))
        >>> ax.get_title(loc="left")[:20]
        'Not explained: 0.04 '
    """
    ax = axes_or_new(ax, (5.4, 4.6))
    pairs = mixture.unexplained()
    order = np.argsort(-pairs.to_numpy().sum(axis=1), kind="stable")
    shown = pairs.to_numpy()[np.ix_(order, order)]
    np.fill_diagonal(shown, np.nan)
    largest = np.nanmax(shown) if len(shown) > 1 else 1.0
    image = ax.imshow(shown, cmap="Blues", vmin=0, vmax=max(float(largest), 1e-12))
    ax.set_facecolor("#EEEEEE")  # shows on the diagonal
    ax.figure.colorbar(image, ax=ax, label="I(feature; other | component), nats")
    named = range(0, len(order), math.ceil(len(order) / MAX_NAMED_FEATURES))
    names = [shorten(pairs.index[order[place]], 12) for place in named]
    slanted = sum(map(len, names)) > 30
    ax.set_xticks(named, names, rotation=90 if slanted else 0)
    ax.set_yticks(named, names)
    ax.tick_params(length=0, labelsize="small")
    component = "component" if mixture.n_components == 1 else "components"
    tidy(
        ax,
        title=f"Not explained: {mixture.lack_of_fit_:.2f} nats, {mixture.n_components} {component}",
        xlabel="feature",
        ylabel="other feature",
    )
    ax.spines[:].set_visible(False)
    return ax
