"""Pictures of fits: the trace of one, a comparison of several, and the models of the default."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.plots.canvas import BLUE, GREY, axes_or_new, draw_gaps_to_best, tidy

__all__ = ["convergence", "method_comparison", "pool_scores"]


@validate_arguments
def convergence(est: Aggregator, ax: Axes | None = None) -> Axes:
    """The objective after each iteration.

    Args:
        est: a fitted aggregator that iterates.
        ax: where to draw.

    Raises:
        ValueError: the aggregator does not iterate.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> ax = bc.plots.convergence(bc.DawidSkene().fit(data.annotations))
        >>> ax.get_xlabel()
        'iteration'
    """
    if est.n_iter_ == 0:
        raise ValueError(f"{type(est).__name__} does not iterate; there is no trace to draw")
    ax = axes_or_new(ax)
    ax.plot(np.arange(1, est.n_iter_ + 1), est.trace_, color=BLUE, marker="o", markersize=3)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    ax.grid(color="#EEEEEE")
    noun = "iteration" if est.n_iter_ == 1 else "iterations"
    state = "converged" if est.converged_ else "stopped before convergence"
    return tidy(
        ax,
        title=f"{type(est).__name__} {state}: {est.n_iter_} {noun}",
        xlabel="iteration",
        ylabel="objective (nats)",
    )


@validate_arguments
def method_comparison(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    reference: float | None = None,
    reference_name: str = "true model",
) -> Axes:
    """Accuracy of methods, one dot each.

    Args:
        table: indexed by method, with a column `accuracy`; drawn from top to bottom.
        ax: where to draw.
        reference: accuracy to mark by a dashed line, such as that of the true model.
        reference_name: name of that line.

    Raises:
        ValueError: the table has no column `accuracy`.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> table = pd.DataFrame({"accuracy": [0.76, 0.9]}, index=["majority-vote", "dawid-skene"])
        >>> ax = bc.plots.method_comparison(table)
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['majority-vote', 'dawid-skene']
    """
    if "accuracy" not in table:
        raise ValueError(
            f"no column 'accuracy'; the columns are {', '.join(map(repr, table.columns))}"
        )
    ax = axes_or_new(ax)
    accuracy = table["accuracy"].to_numpy(dtype=float)
    rows = np.arange(len(table))
    ax.scatter(accuracy, rows, color=BLUE, s=50, zorder=3)
    for row, value in zip(rows, accuracy, strict=True):
        ax.annotate(
            f"{value:.1%}",
            (value, row),
            xytext=(-7, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},  # over the grid
        )
    known = accuracy if reference is None else np.append(accuracy, reference)
    if reference is not None:
        ax.axvline(reference, color=GREY, linestyle="--", linewidth=1)
        ax.annotate(
            f"{reference_name} {reference:.1%} ",
            (reference, len(table) - 0.4),
            ha="right",
            va="center",
            color=GREY,
            fontsize="small",
        )
    spread = max(float(np.ptp(known)), 0.02)
    ax.set_xlim(known.min() - 0.25 * spread, known.max() + 0.12 * spread)  # room for the numbers
    ax.set_ylim(len(table) - 0.2, -0.7)
    ax.set_yticks(rows, [str(name) for name in table.index])
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], min_n_ticks=1))
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.grid(axis="y", color="#DDDDDD")
    return tidy(ax, title="Methods", xlabel="accuracy (share of right labels)", ylabel="")


@validate_arguments
def pool_scores(est: AutoAggregator, ax: Axes | None = None) -> Axes:
    """How well each model of the default predicts held-out labels, and the weight that it gets.

    Args:
        est: a fitted `AutoAggregator`.
        ax: where to draw.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> ax = bc.plots.pool_scores(bc.AutoAggregator().fit(data.annotations))
        >>> [text.get_text() for text in ax.get_yticklabels()][:2]
        ['one coin, even classes', 'one coin']
    """
    scores = est.scores_
    ax = axes_or_new(ax, (6.8, 1.2 + 0.36 * len(scores)))
    notes = [f"weight {weight:.2f}" if weight > 0 else "left out" for weight in scores["weight"]]
    colours = [GREY] * len(scores)
    draw_gaps_to_best(ax, -scores["below_best"], scores["standard_error"], notes, colours)
    return tidy(
        ax,
        title="Prediction of held-out labels",
        xlabel="difference from the best ± 2 standard errors (nats per label)",
        ylabel="",
    )
