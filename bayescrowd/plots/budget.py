"""Pictures of error against budget."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA, check_curve, curve_means
from bayescrowd.budgeted.evaluation.planning import BudgetPlan
from bayescrowd.checks.parameters import Count, OpenFraction, validate_arguments
from bayescrowd.data.text import quantity
from bayescrowd.plots.canvas import BLUE, GREY, ORANGE, PALE, axes_or_new, tidy
from bayescrowd.plots.policy_lines import line_style

__all__ = ["budget_curves", "budget_plan"]


@validate_arguments
def budget_curves(
    curve: pd.DataFrame, ax: Axes | None = None, *, n_features: Count | None = None
) -> Axes:
    """Draw mean test error against the budget, with bands of one standard error.

    Args:
        curve: the table that `budget_curve` returns.
        ax: axes to draw on.
        n_features: number of features of the classifiers to draw; needed if the table has several.

    Raises:
        ValueError: a column is absent, or the table has no such number of features.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("TsGreedy", 2, b, r, 0.5 - b / 300) for b in (50, 100) for r in (0, 1)]
        >>> columns = ["policy", "n_features", "budget", "repeat", "error"]
        >>> curve = pd.DataFrame(rows, columns=columns).assign(spent=50)
        >>> bc.plots.budget_curves(curve).get_title(loc="left")
        'Error with 2 features, mean of 2 repeats'
    """
    check_curve("curve", curve, {"policy", "n_features", "budget", "repeat", "error", "spent"})
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
        title=f"Error with {quantity(size, 'feature')}, mean of {quantity(n_repeats, 'repeat')}",
        xlabel="budget (cost of labels)",
        ylabel="test error ± standard error",
    )


@validate_arguments
def budget_plan(plan: BudgetPlan, ax: Axes | None = None, *, within: OpenFraction) -> Axes:
    """Draw how far a policy's error lies above that of all data, and where that is little enough.

    Args:
        plan: the plan that `plan_budget` returns.
        ax: axes to draw on.
        within: the tolerance of the plan.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> columns = {"gap": [0.1, 0.0], "standard_error": 0.01, "monotone": [0.1, 0.0]}
        >>> gaps = pd.DataFrame(columns, index=pd.Index([50, 100], name="budget"))
        >>> from bayescrowd.budgeted.evaluation.planning import BudgetPlan
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
