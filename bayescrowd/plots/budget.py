"""Pictures of budgeted learning: error curves, what was bought, what became known of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from scipy.special import betaincinv

from bayescrowd.budgeted.beliefs.credibility import credibility, delta_of, thresholds
from bayescrowd.budgeted.beliefs.naive_bayes import first_majority
from bayescrowd.budgeted.evaluation.curve import ALL_DATA, curve_means
from bayescrowd.budgeted.evaluation.planning import BudgetPlan
from bayescrowd.budgeted.policies.bleafs import BLeafs
from bayescrowd.budgeted.policy import BudgetResult
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import Count, OpenFraction, validate_arguments
from bayescrowd.data.text import shorten
from bayescrowd.data.vocabulary import comma_list
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

__all__ = [
    "budget_curves",
    "budget_plan",
    "credibility_course",
    "line_style",
    "posterior_course",
    "spending_course",
]

_COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, "#56B4E9", "#000000", "#8C564B")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ("-", "-", "--", "-.", ":", "--", "-.", ":")

_PLACES = {
    "budgetedselection": 0,
    "bleafs": 1,
    "tsgreedy": 2,
    "biasedrobin": 3,
    "roundrobin": 4,
    "explorethencommit": 5,
    "bleafsrevisit": 6,
    "posteriormean": 7,
}
"""Policies look the same in every picture, however they are spelt."""

PALE = "#BBBBBB"


def line_style(name: str, place: int = 0) -> dict[str, Any]:
    """Colour, marker and dashes of a policy's line.

    Args:
        name: of the policy.
        place: of the line among all, for policies that have no look of their own.

    Examples:
        >>> from bayescrowd.plots.budget import line_style
        >>> line_style("all data")["linestyle"]
        '--'
    """
    if name == ALL_DATA:
        return {"color": GREY, "marker": "none", "linestyle": "--"}
    place = _PLACES.get(name.replace("-", "").lower(), place) % len(_COLOURS)
    return {"color": _COLOURS[place], "marker": _MARKERS[place], "linestyle": _DASHES[place]}


@validate_arguments
def budget_curves(
    curve: pd.DataFrame, ax: Axes | None = None, *, n_features: Count | None = None
) -> Axes:
    """Mean test error against the budget, with bands of one standard error.

    Args:
        curve: what `budget_curve` returns.
        ax: where to draw.
        n_features: which of several sizes of the classifier to draw; not needed with one.

    Raises:
        ValueError: a column is absent, or the size is not in the table.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("TsGreedy", 2, b, r, 0.5 - b / 300) for b in (50, 100) for r in (0, 1)]
        >>> columns = ["policy", "n_features", "budget", "repeat", "error"]
        >>> curve = pd.DataFrame(rows, columns=columns).assign(spent=50)
        >>> bc.plots.budget_curves(curve).get_title(loc="left")
        'Error with 2 features, mean of 2 repeats'
    """
    absent = {"policy", "n_features", "budget", "repeat", "error", "spent"} - {*curve.columns}
    if absent:
        raise ValueError(f"no column {min(absent)!r}; expected the table of budget_curve")
    sizes = curve["n_features"].unique().tolist()
    if n_features is None and len(sizes) > 1:
        raise ValueError(f"n_features: expected one of {', '.join(map(str, sizes))}")
    size = sizes[0] if n_features is None else n_features
    if size not in sizes:
        raise ValueError(f"n_features={size}: expected one of {', '.join(map(str, sizes))}")
    ax = axes_or_new(ax, (6.6, 4.2))
    means = curve_means(curve[curve["n_features"] == size]).droplevel("n_features")
    for place, name in enumerate(means.index.unique("policy")):
        part = means.loc[name].sort_index()
        style = line_style(str(name), place)
        if name == ALL_DATA:
            best, spread = part[["error", "standard_error"]].fillna(0).iloc[0]
            ax.axhline(best, linewidth=1.2, label=name, **style)
            ax.axhspan(best - spread, best + spread, color=style["color"], alpha=0.12, linewidth=0)
            continue
        spread = part["standard_error"].fillna(0)
        ax.plot(part.index, part["error"], linewidth=1.5, markersize=4.5, label=name, **style)
        low, high = part["error"] - spread, part["error"] + spread
        ax.fill_between(part.index, low, high, color=style["color"], alpha=0.12, linewidth=0)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.grid(axis="y", color="#EEEEEE")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
    n_repeats = int(means["repeats"].max())
    return tidy(
        ax,
        title=f"Error with {_counted(size, 'feature')}, mean of {_counted(n_repeats, 'repeat')}",
        xlabel="budget (cost of labels)",
        ylabel="test error ± standard error",
    )


@validate_arguments
def budget_plan(plan: BudgetPlan, ax: Axes | None = None, *, within: OpenFraction) -> Axes:
    """How far a policy's error lies above that of all data, and where it comes within reach.

    Args:
        plan: what `plan_budget` returns.
        ax: where to draw.
        within: the tolerance of the plan.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> columns = {"gap": [0.1, 0.0], "standard_error": 0.01, "monotone": [0.1, 0.0]}
        >>> gaps = pd.DataFrame(columns, index=pd.Index([50, 100], name="budget"))
        >>> plan = BudgetPlan("reached", 80.0, 70.0, 95.0, "", 0.2, gaps)
        >>> bc.plots.budget_plan(plan, within=0.04).get_title(loc="left")
        'Within 0.04 of the best: about 80'
    """
    ax = axes_or_new(ax)
    gaps = plan.gaps
    ax.errorbar(
        gaps.index,
        gaps["gap"],
        gaps["standard_error"],
        fmt="o",
        color=BLUE,
        capsize=3,
        label="mean ± standard error",
    )
    ax.plot(gaps.index, gaps["monotone"], color=BLUE, linewidth=1.2, label="made monotone")
    ax.axhline(within, color=GREY, linestyle="--", linewidth=1, label=f"within {within:g}")
    ax.axhline(0, color=PALE, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xticks(gaps.index.to_list(), [f"{budget:g}" for budget in gaps.index])
    ax.minorticks_off()
    title = {
        "reached": f"Within {within:g} of the best: about {plan.budget:.0f}",
        "not reached": f"Not within {within:g} of the best",
        "pilot too small": "The pilot is too small to tell",
    }[plan.verdict]
    if plan.verdict == "reached":
        upper = min(plan.upper, float(gaps.index[-1]))
        ax.axvspan(max(plan.lower, float(gaps.index[0])), upper, color=ORANGE, alpha=0.2)
        ax.axvline(plan.budget, color=ORANGE, linewidth=1.5, label="answer, 90 % interval")
    ax.legend(frameon=False, fontsize="small")
    return tidy(
        ax,
        title=title,
        xlabel="budget (cost of labels, logarithmic)",
        ylabel="error above that of all data",
    )


@validate_arguments
def spending_course(result: BudgetResult, ax: Axes | None = None) -> Axes:
    """Observations of each feature as the budget is spent; the selected features in colour.

    Args:
        result: of a policy.
        ax: where to draw.

    Raises:
        ValueError: nothing was bought.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
        >>> table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
        >>> space = bc.FeatureSpace.from_table(table, target="kind")
        >>> policy = bc.RoundRobin(space, budget=10, n_features=1)
        >>> result = bc.simulate_budget(policy, table, target="kind")
        >>> bc.plots.spending_course(result).get_ylabel()
        'observations of the feature'
    """
    history = _history(result)
    ax = axes_or_new(ax)
    spent = np.concatenate([[0.0], history["spent"].to_numpy(dtype=float)])
    names = result.spending.index
    asked = history["feature"].to_numpy()[:, None] == names.to_numpy(dtype=object)
    counts = np.concatenate([np.zeros((1, len(names))), np.cumsum(asked, axis=0)])
    lines = dict(zip(names, counts.T, strict=True))
    _draw_by_feature(ax, spent, lines, result.selected)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    return tidy(
        ax,
        title=f"{_counted(len(history), 'observation')}: {result.stopped}",
        xlabel="spent (cost of labels)",
        ylabel="observations of the feature",
    )


@validate_arguments
def posterior_course(
    result: BudgetResult,
    space: FeatureSpace,
    feature: Hashable,
    ax: Axes | None = None,
    *,
    value: Hashable | None = None,
    probability: OpenFraction = 0.89,
) -> Axes:
    """How P(feature = value | class) became known: posterior mean and interval, class by class.

    The posterior is that of naive Bayes, with the space's priors. A class that no answer was about
    has no interval drawn: it would be the prior's.

    Args:
        result: of a policy.
        space: the policy's.
        feature: whose parameters to draw.
        ax: where to draw.
        value: of the feature; the first one if None.
        probability: of the intervals.

    Raises:
        ValueError: nothing was bought, or there is no such feature or value.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
        >>> table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
        >>> space = bc.FeatureSpace.from_table(table, target="kind")
        >>> policy = bc.RoundRobin(space, budget=10, n_features=1)
        >>> result = bc.simulate_budget(policy, table, target="kind")
        >>> bc.plots.posterior_course(result, space, "colour", value="red").get_ylabel()
        "P(colour = 'red' | class)"
    """
    if feature not in space.features:
        raise ValueError(f"no feature {feature!r}; expected one of {comma_list(space.names)}")
    history = _history(result)
    place = 0 if value is None else space.code_of(feature, value)
    value = space.features[feature][place]
    ax = axes_or_new(ax)
    rows = _counts_over_time(history, space)[feature]
    tail = (1 - probability) / 2
    for number, (name, row) in enumerate(zip(space.classes, rows.counts, strict=True)):
        concentration = space.strength + row
        a = concentration[:, place]
        b = concentration.sum(axis=1) - a
        colour = _COLOURS[number % len(_COLOURS)]
        if row[-1].any():
            low, high = betaincinv(a, b, tail), betaincinv(a, b, 1 - tail)
            ax.fill_between(
                rows.spent, low, high, step="post", color=colour, alpha=0.13, linewidth=0
            )
        dashes = _DASHES[1:][number % 7]
        label = f"{name} ({int(row[-1].sum())})"
        ax.step(rows.spent, a / (a + b), where="post", color=colour, linestyle=dashes, label=label)
    ax.set_ylim(0, 1)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
    return tidy(
        ax,
        title=f"Posterior of {feature}, {probability:.0%} intervals",
        xlabel="spent (cost of labels)",
        ylabel=f"P({feature} = {value!r} | class)",
    )


@validate_arguments
def credibility_course(policy: BLeafs, ax: Axes | None = None) -> Axes:
    """Credibility of each feature as a share of what B-LEAFS demands of it, over time.

    Thresholds depend on the number of a feature's values, so that shares are drawn: a feature may
    be selected once it is at one.

    Args:
        policy: B-LEAFS with the naive Bayes model, after some answers.
        ax: where to draw.

    Raises:
        ValueError: nothing was bought, or the model is another one.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
        >>> table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
        >>> policy = bc.BLeafs(bc.FeatureSpace.from_table(table, target="kind"), 30, 1)
        >>> result = bc.simulate_budget(policy, table, target="kind")
        >>> bc.plots.credibility_course(policy).get_ylabel()
        'credibility / threshold'
    """
    if policy.model != "naive_bayes":
        raise ValueError(f"model={policy.model!r}: expected a policy with the naive Bayes model")
    result, space = policy.result(), policy.space
    history = _history(result)
    ax = axes_or_new(ax)
    limits = thresholds(
        space,
        budget=policy.budget,
        n_features=policy.n_features,
        labels_per_query=policy.labels_per_query,
        epsilon=policy.epsilon,
        measure=policy.measure,
    )
    demanded = 1 - delta_of(policy.delta, limits)
    shares = {}
    by_feature = _counts_over_time(history, space)
    spent = np.concatenate([[0.0], history["spent"].to_numpy(dtype=float)])
    for name, threshold in zip(space.names, demanded.tolist(), strict=True):
        rows = by_feature[name]
        known = [
            credibility(
                space.strength + counts,
                space.class_prior,
                epsilon=policy.epsilon,
                measure=policy.measure,
            )
            for counts in rows.counts.swapaxes(0, 1)
        ]
        at = np.searchsorted(rows.spent, spent, side="right") - 1
        shares[name] = np.array(known)[at] / threshold
    ax.axhline(1, color=GREY, linestyle="--", linewidth=1)
    _draw_by_feature(ax, spent, shares, result.selected)
    ax.set_ylim(bottom=0)
    return tidy(
        ax,
        title=f"Credible at 1: {result.stopped}",
        xlabel="spent (cost of labels)",
        ylabel="credibility / threshold",
    )


class _Counts(NamedTuple):
    """What was seen of one feature, after each of its observations and before the first."""

    spent: Float[np.ndarray, " time"]
    """What had been spent on all features."""
    counts: Float[np.ndarray, "cls time value"]
    """Observations of each value."""


def _counts_over_time(history: pd.DataFrame, space: FeatureSpace) -> dict[Hashable, _Counts]:
    found = {}
    position = {name: y for y, name in enumerate(space.classes)}
    for name, values in space.features.items():
        part = history[history["feature"] == name]
        steps = np.zeros((len(part) + 1, space.n_classes, len(values)))
        for step, (target, answers) in enumerate(
            zip(part["target"], part["answers"], strict=True), start=1
        ):
            labels = np.array([[space.code_of(name, answer) for answer in answers]])
            steps[step, position[target]] = first_majority(labels, len(values))[0]
        spent = np.concatenate([[0.0], part["spent"].to_numpy(dtype=float)])
        found[name] = _Counts(spent, np.cumsum(steps, axis=0).swapaxes(0, 1))
    return found


def _draw_by_feature(
    ax: Axes,
    spent: Float[np.ndarray, " time"],
    lines: dict[Hashable, Float[np.ndarray, " time"]],
    selected: Sequence[Hashable],
) -> None:
    """A step line per feature; those not selected are pale and share a name."""
    others = [name for name in lines if name not in selected]
    for number, name in enumerate(others):
        label = f"not selected ({len(others)})" if number == 0 else None
        ax.step(spent, lines[name], where="post", color=PALE, linewidth=0.9, label=label)
    for place, name in enumerate(selected):
        colour, dashes = _COLOURS[place % len(_COLOURS)], _DASHES[1:][place % 7]
        ax.step(
            spent,
            lines[name],
            where="post",
            color=colour,
            linestyle=dashes,
            linewidth=1.8,
            label=shorten(name, 20),
        )
    ax.set_xlim(0, float(spent[-1]) * 1.01)
    ax.grid(axis="y", color="#EEEEEE")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")


def _history(result: BudgetResult) -> pd.DataFrame:
    if result.history.empty:
        raise ValueError("nothing was bought yet: there is no course to draw")
    return result.history


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
