"""Pictures of tasks: how certain the labels are, and how often they are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayescrowd import metrics
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import Count, validate_arguments
from bayescrowd.plots.canvas import BLUE, GREY, ORANGE, VERMILLION, axes_or_new, tidy

__all__ = ["draw_uncertainty", "label_uncertainty", "reliability"]

SURE = 0.95
"""Labels that are at least this probable are called sure."""

_STYLES = [(BLUE, "o", "-"), (ORANGE, "s", "-."), (VERMILLION, "v", ":")]


@validate_arguments
def label_uncertainty(est: Aggregator, ax: Axes | None = None, *, n_bins: Count = 20) -> Axes:
    """Histogram of the probability of each task's label, from a fair guess to certainty.

    Args:
        est: a fitted aggregator.
        ax: where to draw.
        n_bins: number of bars.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> ax = bc.plots.label_uncertainty(bc.DawidSkene().fit(data.annotations))
        >>> round(sum(bar.get_height() for bar in ax.patches))
        100
    """
    return draw_uncertainty(est.probas_, axes_or_new(ax), n_bins)


def draw_uncertainty(probas: pd.DataFrame, ax: Axes, n_bins: int) -> Axes:
    """Draw the histogram of the probability of each task's label."""
    largest = probas.to_numpy().max(axis=1)
    edges = np.linspace(1 / probas.shape[1], 1, n_bins + 1)
    # Rounding may push a fair guess or a certainty out of the outermost bars.
    ax.hist(
        np.clip(largest, edges[0], edges[-1]), bins=edges.tolist(), color=BLUE, edgecolor="white"
    )
    ax.set_yscale("symlog", linthresh=10)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.grid(axis="y", color="#EEEEEE")
    sure = (largest >= SURE).mean()
    return tidy(
        ax,
        title=f"{sure:.0%} of {len(largest):,} labels are at least {SURE:.0%} sure",
        xlabel="probability of the label",
        ylabel="tasks (logarithmic above 10)",
    )


@validate_arguments
def reliability(
    probas: pd.DataFrame | Mapping[str, pd.DataFrame],
    truth: pd.Series | Mapping[Any, Any],
    ax: Axes | None = None,
    *,
    n_bins: Count = 10,
) -> Axes:
    """Accuracy of labels by their probability: on the diagonal, 80 % sure means 80 % right.

    Each dot is a bin of `metrics.reliability_curve`; the bars are Wilson's 95 % intervals.

    Args:
        probas: probabilities, tasks x classes; or one such table per method, by name.
        truth: true class by task.
        ax: where to draw.
        n_bins: number of bins from 0 to 1.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> probas = pd.DataFrame({"a": [0.9, 0.8, 0.3], "b": [0.1, 0.2, 0.7]})
        >>> ax = bc.plots.reliability(probas, pd.Series(["a", "a", "b"]))
        >>> ax.get_xlabel()
        'probability of the label'
    """
    tables = {"": probas} if isinstance(probas, pd.DataFrame) else dict(probas)
    ax = axes_or_new(ax, (4.8, 4.4))
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    for i, (name, table) in enumerate(tables.items()):
        curve = metrics.reliability_curve(table, truth, n_bins=n_bins)
        accuracy = curve["accuracy"].to_numpy()
        shares = np.clip(accuracy, 0.0, 1.0)  # means, which may exceed 1 by rounding
        bins = zip(shares.tolist(), curve["n"].tolist(), strict=True)
        low, high = np.transpose([metrics.wilson_interval(share, n) for share, n in bins])
        error = metrics.expected_calibration_error(table, truth)
        colour, marker, line = _STYLES[i % len(_STYLES)]
        ax.errorbar(
            curve["confidence"],
            accuracy,
            yerr=np.maximum([accuracy - low, high - accuracy], 0.0),
            color=colour,
            marker=marker,
            linestyle=line,
            capsize=2,
            label=f"{name}: off by {error:.1%} on average" if name else f"off by {error:.1%}",
        )
    fewest = 1 / next(iter(tables.values())).shape[1]
    ax.set_xlim(max(0.0, fewest - 0.05), 1.03)
    ax.set_ylim(0, 1.03)
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.grid(color="#EEEEEE")
    ax.legend(loc="lower right", fontsize="small")
    return tidy(
        ax,
        title="Is 80% sure 80% right?",
        xlabel="probability of the label",
        ylabel="share of right labels",
    )
