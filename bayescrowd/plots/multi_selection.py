"""Pictures of multi-selection: loss against budget, and a map of the attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.plots.canvas import BLUE, GREY, ORANGE, axes_or_new, tidy
from bayescrowd.selection.repeats.selector import RepeatSelector

if TYPE_CHECKING:
    from bayescrowd.posterior.repeats import RepeatPosterior

__all__ = ["attribute_map", "repeat_losses"]

MOST_NAMED = 12
"""Largest number of attributes that are named, those asked for most often."""


@validate_arguments
def repeat_losses(
    selector: RepeatSelector, ax: Axes | None = None, *, posterior: RepeatPosterior | None = None
) -> Axes:
    """Loss against budget: projected from the moments and, with draws, its uncertainty.

    Budgets whose projection is infeasible are shaded and have no projected loss.

    Args:
        selector: a fitted selector.
        ax: where to draw.
        posterior: posterior of the same judgements; adds its mean with a 90 % band.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(100, 3))
        >>> pilot = truth[:, :, None] + rng.normal(size=(100, 3, 2))
        >>> est = bc.MultiSelection(budget=10).fit(pilot, truth.sum(axis=1))
        >>> bc.plots.repeat_losses(est).get_xlabel()
        'budget: judgements of an object'
    """
    ax = axes_or_new(ax)
    loss = selector.projected_loss_
    if posterior is not None:
        curve = posterior.loss_curve()
        ax.fill_between(
            curve.index.to_numpy(float),
            curve["lower"].to_numpy(),
            curve["upper"].to_numpy(),
            color=ORANGE,
            alpha=0.25,
            linewidth=0,
            step="post",
            label="90 % interval",
        )
        ax.step(curve.index, curve["mean"], where="post", color=ORANGE, label="posterior mean")
    ax.step(
        loss.index, loss, where="post", color=BLUE, linestyle="--", label="projected from moments"
    )
    ax.set_ylim(bottom=0)
    ax.set_xlim(0, float(loss.index[-1]))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    is_infeasible = loss.isna()
    if is_infeasible.any():
        start = float(loss.index[is_infeasible][0])
        ax.axvspan(
            start, float(loss.index[-1]), color=GREY, alpha=0.15, label="projection infeasible"
        )
    if posterior is not None or is_infeasible.any():
        ax.legend(frameon=False)
    has_costs = selector.costs is not None
    return tidy(
        ax,
        title=f"{len(selector.selected_)} attributes asked for, "
        f"{int(selector.selected_.sum())} judgements",
        xlabel="budget: cost of an object" if has_costs else "budget: judgements of an object",
        ylabel="expected squared error",
    )


@validate_arguments
def attribute_map(selector: RepeatSelector, ax: Axes | None = None) -> Axes:
    """Attributes by reliability and correlation with the target; the more asked for, the larger.

    Args:
        selector: a fitted selector.
        ax: where to draw.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(100, 3))
        >>> pilot = truth[:, :, None] + rng.normal(size=(100, 3, 2))
        >>> est = bc.MultiSelection(budget=10).fit(pilot, truth.sum(axis=1))
        >>> bc.plots.attribute_map(est).get_title(loc="left")
        '3 of 3 attributes asked for'
    """
    ax = axes_or_new(ax)
    table = selector.attributes_
    spread = np.sqrt(table["external_variance"].where(table["external_variance"] > 0))
    strength = (table["correlation"] / spread).fillna(0.0)
    times = selector.selected_.reindex(table.index, fill_value=0)
    ax.axhline(0, color="#DDDDDD", linewidth=1, zorder=0)
    left_out = times == 0
    if left_out.any():
        ax.scatter(
            table["reliability"][left_out],
            strength[left_out],
            s=22,
            color=GREY,
            marker="x",
            linewidth=1,
            label=f"left out ({left_out.sum()})",
        )
    asked = table.index[~left_out]
    ax.scatter(
        table["reliability"][asked],
        strength[asked],
        s=20 + 120 * times[asked] / max(times.max(), 1),
        color=BLUE,
        alpha=0.7,
        linewidth=0,
        label=f"asked for ({len(asked)})",
    )
    for name in times[asked].sort_values(ascending=False, kind="stable").index[:MOST_NAMED]:
        _name(ax, f"{name} × {times[name]}", table.loc[name, "reliability"], strength[name])
    ax.set_xlim(-0.03, 1.03)
    ax.margins(y=0.12)
    ax.legend(frameon=False)
    return tidy(
        ax,
        title=f"{len(asked)} of {len(table)} attributes asked for",
        xlabel="reliability of a single judgement",
        ylabel="correlation with the target (b/σ)",
    )


def _name(ax: Axes, text: str, x: Any, y: Any) -> None:
    """Write a name beside a point, unless another name is in the way."""
    figure_points = ax.transData.transform((float(x), float(y)))
    for other in ax.texts:
        distance = np.abs(ax.transData.transform(other.xy) - figure_points)  # type: ignore[attr-defined]
        if distance[1] < 18 and distance[0] < 110:
            return
    side = -1 if float(x) > 0.75 else 1
    ax.annotate(
        text,
        (float(x), float(y)),
        xytext=(7 * side, 4),
        textcoords="offset points",
        fontsize="small",
        ha="right" if side < 0 else "left",
    )
