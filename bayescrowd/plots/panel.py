"""Pictures of a panel of judges: who repeats whom, who is right how often, shares of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.text import quantity, shorten, shorten_middle
from bayescrowd.panel.findings import PanelReport
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
from bayescrowd.plots.tasks import draw_uncertainty

__all__ = [
    "panel_accuracies",
    "panel_agreement",
    "panel_dropping",
    "panel_overview",
    "panel_shares",
]

MOST_WRITTEN = 12
"""Most judges whose agreement is written into the cells."""

MOST_NAMED = 30
"""Most judges, or classes, that are named beside a picture."""

_METHODS = {
    "post-stratified": "post-stratified",
    "ppi": "PPI++",
    "rogan-gladen": "Rogan–Gladen",
    "gold-only": "gold alone",
}


@validate_arguments
def panel_agreement(report: PanelReport, ax: Axes | None = None) -> Axes:
    """Heat map of how often two judges agree; clusters stand side by side, in frames.

    Args:
        report: a report on a panel.
        ax: where to draw.

    Raises:
        ValueError: there are more than 2,000 judges.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(100, 5, clusters=[3], seed=0)
        >>> report = bc.panel_report(data.annotations, most_dropped=0)
        >>> bc.plots.panel_agreement(report).images[0].get_array().shape
        (5, 5)
    """
    matrix = report.agreement
    n = len(matrix)
    ax = axes_or_new(ax, (6.4, 5.6))
    values = matrix.to_numpy(copy=True)
    np.fill_diagonal(values, np.nan)
    known = values[np.isfinite(values)]
    least = np.floor(10 * known.min()) / 10 if len(known) else 0.0
    image = ax.imshow(values, cmap="Blues", vmin=min(least, 0.9), vmax=1.0)
    if n <= MOST_WRITTEN:
        _write_shares(ax, values, least)
    else:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, format=PercentFormatter(xmax=1))
        bar.set_label("share of shared tasks on which two judges agree")
    start = 0
    for cluster in report.dependence.clusters:
        corner, size = (start - 0.5, start - 0.5), len(cluster)
        ax.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=VERMILLION, linewidth=1.8))
        start += size
    named = _named_places(n)
    small = "x-small" if n > MOST_WRITTEN else "small"
    ax.set_yticks(
        named, [f"{shorten_middle(matrix.index[i], 30)}  {i + 1}" for i in named], fontsize=small
    )
    few = named[:: max(1, int(np.ceil(len(named) / MOST_WRITTEN)))]
    ax.set_xticks(few, [str(i + 1) for i in few], fontsize=small)
    ax.tick_params(length=0)
    ax.set_facecolor("#F2F2F2")
    low, high = report.dependence.effective_votes
    title = (
        f"{report.dependence.n_votes:.3g} verdicts per task: worth {low:.1f} to {high:.1f} votes"
    )
    groups = quantity(len(report.dependence.clusters), "cluster")
    tidy(ax, title=title, xlabel=f"judge ({groups} framed)", ylabel="")
    ax.spines[:].set_visible(False)
    return ax


@validate_arguments
def panel_accuracies(report: PanelReport, ax: Axes | None = None) -> Axes:
    """Accuracy of each judge with its interval, and that of the panel's labels.

    Args:
        report: a report on a panel with gold.
        ax: where to draw.

    Raises:
        ValueError: the report has no gold.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(100, 5, clusters=[3], seed=0)
        >>> report = bc.panel_report(data.annotations, data.truth.iloc[:20], most_dropped=0)
        >>> bc.plots.panel_accuracies(report).get_xlabel()
        'accuracy (90% intervals, 20 gold labels)'
    """
    if report.accuracies is None or report.gold_report is None:
        raise ValueError("the report has no gold; expected one with it, since accuracies need gold")
    table = report.accuracies.dropna().sort_values("accuracy", ascending=False, kind="stable")
    ax = axes_or_new(ax, (6.0, 1.6 + 0.28 * min(len(table), MOST_NAMED)))
    own = report.gold_report.accuracy
    ax.axvspan(own["lower"], own["upper"], color=GREEN, alpha=0.15, linewidth=0)
    ax.axvline(own["estimate"], color=GREEN, linewidth=1.5, label="the panel's labels")
    ax.axvline(
        1 / report.annotations.n_classes, color=GREY, linestyle=":", linewidth=1, label="guessing"
    )
    _draw_intervals(ax, table, "accuracy", np.arange(len(table)), BLUE, "o", "judge")
    _name_rows(ax, [shorten_middle(name, 30) for name in table.index])
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.legend(loc="lower right", fontsize="small")
    xlabel = f"accuracy ({report.level:.0%} intervals, {quantity(report.n_gold, 'gold label')})"
    return tidy(ax, title="How often judges are right", xlabel=xlabel, ylabel="")


@validate_arguments
def panel_dropping(report: PanelReport, ax: Axes | None = None) -> Axes:
    """Share of the labels that change without each judge, and under another seed.

    Args:
        report: a report on a panel with the costs of dropping judges.
        ax: where to draw.

    Raises:
        ValueError: the report has no such costs.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(60, 4, accuracy=[0.8] * 4, seed=0)
        >>> report = bc.panel_report(data.annotations, most_dropped=2)
        >>> len(bc.plots.panel_dropping(report).patches)
        2
    """
    if report.dropping is None:
        raise ValueError(
            "the report has no costs of dropping judges; expected most_dropped above 0 and at "
            "least two judges"
        )
    table, by_chance = report.dropping.table, report.dropping.by_chance
    ax = axes_or_new(ax, (6.0, 1.6 + 0.28 * min(len(table), MOST_NAMED)))
    ax.barh(np.arange(len(table)), table["changed"], color=BLUE, height=0.7)
    ax.axvline(
        by_chance, color=VERMILLION, linestyle="--", linewidth=1, label="all judges, another seed"
    )
    _name_rows(ax, [shorten_middle(name, 30) for name in table.index])
    ax.set_xlim(0, max(1.1 * float(table["changed"].max()), 1.5 * by_chance, 0.01))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=1))
    ax.legend(loc="lower right", fontsize="small")
    return tidy(ax, title="What a judge's absence changes", xlabel="labels that change", ylabel="")


@validate_arguments
def panel_shares(report: PanelReport, ax: Axes | None = None, *, positive: Any = None) -> Axes:
    """Shares of the classes with their intervals, beside what the panel claims.

    Args:
        report: a report on a panel. Without gold, there are no intervals to draw.
        ax: where to draw.
        positive: the class whose share is drawn by all methods; by default the last of two classes.
            Of more classes, all are drawn by the first method.

    Raises:
        ValueError: `positive` is no class.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(100, 5, clusters=[3], seed=0)
        >>> report = bc.panel_report(data.annotations, data.truth.iloc[:20], most_dropped=0)
        >>> bc.plots.panel_shares(report, positive=1).get_xlabel()
        'share of 1 (90% intervals, 20 gold labels)'
    """
    classes = report.claimed.index
    if positive is not None and positive not in classes:
        listed = ", ".join(str(name) for name in classes[:8])
        raise ValueError(f"positive is {positive!r}; expected one of the classes {listed}")
    if positive is None and len(classes) == 2:
        positive = classes[-1]
    is_one = positive is not None
    n_rows = 7 if is_one else min(len(classes), MOST_NAMED)
    ax = axes_or_new(ax, (6.0, 2.0 + 0.34 * n_rows))
    if is_one:
        _draw_one_share(ax, report, positive)
    else:
        _draw_all_shares(ax, report)
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.set_xlim(-0.02, 1.02)
    gold = quantity(report.n_gold, "gold label")
    note = f"{report.level:.0%} intervals, {gold}" if report.n_gold else "no interval without gold"
    what = f"share of {shorten(positive, 20)}" if is_one else "share of each class"
    title = (
        "What gold says, and what the panel claims" if report.n_gold else "What the panel claims"
    )
    return tidy(ax, title=title, xlabel=f"{what} ({note})", ylabel="")


@validate_arguments
def panel_overview(
    report: PanelReport, *, positive: Any = None, fig: Figure | SubFigure | None = None
) -> Figure | SubFigure:
    """A panel in four pictures: agreement, judges, shares, and how sure the labels are.

    Judges are drawn by their accuracy with gold, and without it by what their absence changes.

    Args:
        report: a report on a panel.
        positive: class whose share is drawn; see `panel_shares`.
        fig: where to draw; by default a new figure outside pyplot.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(100, 5, clusters=[3], seed=0)
        >>> report = bc.panel_report(data.annotations, data.truth.iloc[:20], most_dropped=0)
        >>> len(bc.plots.panel_overview(report).axes)
        4
    """
    if fig is None:
        fig = Figure(figsize=(14, 10), dpi=110, layout="constrained")
    (top_left, top_right), (low_left, low_right) = fig.subplots(2, 2, height_ratios=[1.7, 1])
    if report.has_matrix:
        panel_agreement(report, top_left)
    else:
        _say(top_left, "Agreement", "Too many judges for a picture of all pairs.")
    if report.accuracies is not None:
        panel_accuracies(report, top_right)
    elif report.dropping is not None:
        panel_dropping(report, top_right)
    else:
        _say(top_right, "How often judges are right", "Accuracies need gold.")
    panel_shares(report, low_left, positive=positive)
    draw_uncertainty(report.open_probas, low_right, 20)
    ann = report.annotations
    alarm = "labels alone cannot tell who is right" if report.alarm.buy_gold else "no alarm"
    gold = quantity(report.n_gold, "gold label") if report.n_gold else "no gold"
    fig.suptitle(
        f"{quantity(len(report.judges), 'judge')}, {quantity(ann.n_tasks, 'task')}, "
        f"{quantity(ann.n_labels, 'verdict')}, {gold}: {alarm}",
        fontsize="large",
    )
    return fig


def _draw_one_share(ax: Axes, report: PanelReport, positive: Any) -> None:
    """The share of one class by all methods, and as the panel claims it."""
    names: list[str] = []
    if report.shares is not None:
        tables = {report.shares.method: report.shares.shares, **report.shares.beside}
        table = pd.DataFrame({name: shares.loc[positive] for name, shares in tables.items()}).T
        _draw_intervals(ax, table.iloc[:1], "share", np.arange(1), BLUE, "o", None)
        _draw_intervals(ax, table.iloc[1:], "share", np.arange(1, len(table)), GREY, "s", None)
        names += [_METHODS[str(name)] for name in table.index]
    claimed = report.claimed.loc[positive]
    kinds = ["probabilities", "labels", "votes"]
    ax.plot(claimed[kinds], len(names) + np.arange(3), "D", color=ORANGE, markersize=6)
    if names:
        ax.axhline(len(names) - 0.5, color=PALE, linewidth=0.8)
    _name_rows(ax, [*names, "claimed: probabilities", "claimed: labels", "claimed: verdicts"])


def _draw_all_shares(ax: Axes, report: PanelReport) -> None:
    """The share of each class by the first method, and as the panel claims it."""
    claimed = report.claimed.iloc[:MOST_NAMED]
    rows = np.arange(len(claimed))
    if report.shares is not None:
        table = report.shares.shares.reindex(claimed.index)
        name = _METHODS[report.shares.method]
        _draw_intervals(ax, table, "share", rows - 0.15, BLUE, "o", name)
    for column, colour, marker, name in (
        ("probabilities", ORANGE, "D", "claimed: probabilities"),
        ("votes", PURPLE, "^", "claimed: verdicts"),
    ):
        ax.plot(claimed[column], rows + 0.2, marker, color=colour, markersize=5, label=name)
    _name_rows(ax, [shorten(name, 24) for name in claimed.index])
    ax.legend(loc="best", fontsize="small")


def _draw_intervals(
    ax: Axes,
    table: pd.DataFrame,
    column: str,
    rows: np.ndarray,
    colour: str,
    marker: str,
    label: str | None,
) -> None:
    centre = table[column].to_numpy(dtype=float)
    low, high = (table[end].to_numpy(dtype=float) for end in ("lower", "upper"))
    ax.errorbar(
        centre,
        rows,
        xerr=np.maximum([centre - low, high - centre], 0.0),
        fmt=marker,
        color=colour,
        capsize=2 if len(table) <= MOST_NAMED else 0,
        markersize=5 if len(table) <= MOST_NAMED else 2.5,
        elinewidth=1,
        label=label,
        zorder=3,
    )


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows from top to bottom, a few of many."""
    places = _named_places(len(names))
    size = "small" if len(names) <= 20 else "x-small"
    ax.set_yticks(places, [names[i] for i in places], fontsize=size)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color="#EEEEEE")


def _named_places(n: int) -> np.ndarray:
    return np.arange(0, n, max(1, int(np.ceil(n / MOST_NAMED))))


def _write_shares(ax: Axes, values: np.ndarray, least: float) -> None:
    for i, j in np.argwhere(np.isfinite(values)):
        is_dark = values[i, j] > least + 0.6 * (1 - least)
        colour = "white" if is_dark else "black"
        text = f"{100 * values[i, j]:.0f}"
        ax.text(j, i, text, ha="center", va="center", fontsize="small", color=colour)


def _say(ax: Axes, title: str, words: str) -> None:
    """A picture that cannot be drawn, and why."""
    ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes, color=GREY)
    ax.set_xticks([])
    ax.set_yticks([])
    tidy(ax, title=title, xlabel="", ylabel="")
