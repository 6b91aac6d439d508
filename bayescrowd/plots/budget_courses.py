"""Pictures of one run of a policy: what was bought, and what became known by it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.special import betaincinv

from bayescrowd.budgeted.beliefs.credibility import table_credibility
from bayescrowd.budgeted.beliefs.credibility_thresholds import delta_of, thresholds
from bayescrowd.budgeted.beliefs.majorities import first_majority
from bayescrowd.budgeted.policies.bleafs import BLeafs
from bayescrowd.budgeted.policy import BudgetResult
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import OpenFraction, validate_arguments
from bayescrowd.data.text import quantity, shorten
from bayescrowd.data.vocabulary import comma_list
from bayescrowd.plots.canvas import GREY, PALE, axes_or_new, tidy
from bayescrowd.plots.policy_lines import COLOURS, DASHES

__all__ = ["credibility_course", "posterior_course", "spending_course"]


@validate_arguments
def spending_course(result: BudgetResult, ax: Axes | None = None) -> Axes:
    """Draw the observations of each feature as the budget is spent, selected features in colour.

    Args:
        result: the result of a policy.
        ax: axes to draw on.

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
        title=f"{quantity(len(history), 'observation')}: {result.stopped}",
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
    """Draw how P(feature = value | class) became known: posterior mean and interval by class.

    The posterior is that of naive Bayes, with the space's priors. A class without answers has no
    interval, which would be the prior's.

    Args:
        result: the result of a policy.
        space: the policy's space.
        feature: the feature whose parameters are drawn.
        ax: axes to draw on.
        value: a value of the feature; the first one if None.
        probability: probability of the intervals.

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
        raise ValueError(
            f"there is no feature {feature!r}; expected one of {comma_list(space.names)}"
        )
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
        colour = COLOURS[number % len(COLOURS)]
        if row[-1].any():
            low, high = betaincinv(a, b, tail), betaincinv(a, b, 1 - tail)
            ax.fill_between(
                rows.spent, low, high, step="post", color=colour, alpha=0.13, linewidth=0
            )
        dashes = DASHES[1:][number % 7]
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
    """Draw the credibility of each feature over time, as a share of what B-LEAFS requires.

    Thresholds depend on a feature's number of values, which is why shares are drawn. A feature may
    be selected once its share is 1.

    Args:
        policy: B-LEAFS with the naive Bayes model, after some answers.
        ax: axes to draw on.

    Raises:
        ValueError: nothing was bought, or the policy has another model.

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
    required = 1 - delta_of(policy.delta, limits)
    shares = {}
    by_feature = _counts_over_time(history, space)
    spent = np.concatenate([[0.0], history["spent"].to_numpy(dtype=float)])
    for name, threshold in zip(space.names, required.tolist(), strict=True):
        rows = by_feature[name]
        known = [
            table_credibility(
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
    """Observations of one feature, before the first of them and after each of them."""

    spent: Float[np.ndarray, " time"]
    """What had been spent on all features."""
    counts: Float[np.ndarray, "cls time value"]
    """Number of observations of each value."""


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
    """Draw a step line per feature; those not selected are pale and share a name."""
    others = [name for name in lines if name not in selected]
    for number, name in enumerate(others):
        label = f"not selected ({len(others)})" if number == 0 else None
        ax.step(spent, lines[name], where="post", color=PALE, linewidth=0.9, label=label)
    for place, name in enumerate(selected):
        colour, dashes = COLOURS[place % len(COLOURS)], DASHES[1:][place % 7]
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
        raise ValueError("nothing was bought yet, so there is no course to draw")
    return result.history
