"""What the experiments on budgeted learning share: problems, policies, runs, claims and pictures.

Every run is one of `bayescrowd.budgeted.evaluation.paired_runs`, with four fifths of the rows for
training as in Nushi et al. 2016. The seed alone decides the split, the noise, the order of the
instances, the order of the features and the policy's own draws, so that runs of several policies
with the same seed are paired, and no policy profits from the order of the columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA
from bayescrowd.budgeted.evaluation.paired_runs import (
    Factory,
    Problem,
    Run,
    run_on_all_data,
    run_policy,
    split_problem,
)
from bayescrowd.budgeted.evaluation.table_crowd import Noise
from bayescrowd.budgeted.policies.baselines import BiasedRobin, RoundRobin, TsGreedy
from bayescrowd.budgeted.policies.bleafs import BLeafs
from bayescrowd.budgeted.policies.lookahead import BudgetedSelection
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.datasets.registry import load_table
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.plots.canvas import BLUE, GREY, PURPLE, tidy
from bayescrowd.plots.policy_lines import line_style

__all__ = [
    "BASELINES",
    "BLEAFS",
    "N_SEEDS",
    "OURS",
    "POLICIES",
    "Comparison",
    "Labelling",
    "close_to",
    "compare_with_best",
    "draw_curve",
    "draw_errors",
    "draw_observations",
    "draw_policy_legend",
    "features_by_number",
    "load_problem",
    "mean_error",
    "measure_run",
    "paired_difference",
    "panel",
    "settings_of",
]

N_SEEDS = 64
"""Number of paired runs; the paper's 16 repeats cannot separate the policies."""

LEAST_SEEDS = 8
"""With fewer seeds than this, standard errors say nothing."""

TRAIN_SHARE = 0.8
"""Share of the rows that are for training, as in the paper."""

BLEAFS, OURS = "B-LEAFS", "BudgetedSelection"

BASELINES = ("RoundRobin", "BiasedRobin", "TsGreedy")
"""The policies with which the paper compares B-LEAFS."""

POLICIES: dict[str, Factory] = {
    "RoundRobin": RoundRobin,
    "BiasedRobin": BiasedRobin,
    "TsGreedy": TsGreedy,
    BLEAFS: BLeafs,
    OURS: BudgetedSelection,
}
"""The paper's four policies, with its settings, and this package's default."""


class Labelling(NamedTuple):
    """How labels come about, and the model that reads them."""

    model: str = "naive_bayes"
    """How labels depend on the class."""
    n_labels: int = 1
    """Number of labels per observation (W), in training and test."""
    noise: Noise = "none"
    """What wrong labels look like, where labels are simulated."""
    rate: float = 0.0
    """Share of wrong labels, where labels are simulated."""


ONE_TRUE_LABEL = Labelling()
"""One label per observation, all of them true, read by naive Bayes."""


@cache
def load_problem(name: str) -> Problem:
    """Load a published table without its incomplete rows; it is read once."""
    table = load_table(name)
    whole = table.features.notna().all(axis=1)
    table = table._replace(features=table.features[whole], target=table.target[whole])
    space = FeatureSpace.from_table(table)
    return Problem(space, space.code(table), labels=None)


def measure_run(
    problem: Problem,
    name: str,
    *,
    budget: float,
    n_features: int,
    seed: int,
    labelling: Labelling = ONE_TRUE_LABEL,
    policies: Mapping[str, Factory] = POLICIES,
) -> Run:
    """Play a policy to its end on the split that the seed decides, and score its classifier.

    Args:
        problem: what to learn.
        name: name of the policy; `ALL_DATA` learns from all labels of the training rows.
        budget: number of labels that may be bought (B), unless the run is on all data.
        n_features: number of features of the classifier (K).
        seed: seed of the split, the noise, the crowd and the policy.
        labelling: how labels come about, and the model that reads them.
        policies: what makes each policy, by name.
    """
    split = split_problem(
        problem,
        np.random.SeedSequence(seed),
        train_share=TRAIN_SHARE,
        n_labels=labelling.n_labels,
        noise=labelling.noise,
        rate=labelling.rate,
    )
    model = labelling.model
    if name == ALL_DATA:
        (run,) = run_on_all_data(split, [n_features], model=model)
        return run
    return run_policy(split, policies[name], budget=budget, n_features=n_features, model=model)


def settings_of(name: str, **particulars: Any) -> str:
    """What a run of a policy depends on, in words, with its defaults written out."""
    settings = ", ".join(f"{option}={value!r}" for option, value in particulars.items())
    options = ""
    if name.startswith(BLEAFS):
        options = " (unless named: midpoint delta, epsilon .05, carry, last draw, no revisit)"
    elif name == OURS:
        options = " (any target, never stops early)"
    return (
        f"{name}{options}, prior strength 1; {TRAIN_SHARE:.0%} of the rows for training; {settings}"
    )


# -- outcomes ---------------------------------------------------------------------------------


def paired_difference(one: Outcome, other: Outcome) -> tuple[float, float]:
    """Mean of the first minus the second over the same seeds, and its standard error."""
    difference = np.array(one.values) - np.array(other.values)
    n = len(difference)
    spread = float(difference.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return float(difference.mean()), spread


class Comparison(NamedTuple):
    """An outcome compared with the best of several others, seed by seed."""

    best: str
    """Name of the other outcome with the lowest mean."""
    difference: float
    """Mean of the outcome minus that of the best."""
    spread: float
    """Standard error of the difference."""

    def __str__(self) -> str:
        return f"{self.difference:+.3f}±{self.spread:.3f}"


def compare_with_best(one: Outcome, others: Mapping[str, Outcome]) -> Comparison:
    """Compare an outcome with the one of the others that has the lowest mean."""
    best = min(others, key=lambda name: others[name].measured)
    return Comparison(best, *paired_difference(one, others[best]))


def close_to(
    text: str,
    outcomes: Sequence[Outcome],
    reference: Sequence[float],
    *,
    n_reference: int = N_SEEDS,
    tolerance: float | None = None,
) -> list[Claim]:
    """Claim that means agree with those of another implementation on splits of its own.

    Args:
        text: what is claimed.
        outcomes: the outcomes here.
        reference: the means of the other implementation, in the same order.
        n_reference: number of splits of the other implementation.
        tolerance: largest difference; two standard errors of the difference if None.

    Returns:
        The claim; none with fewer than `LEAST_SEEDS` seeds, which could not decide it.
    """
    n_seeds = len(outcomes[0].values)
    if n_seeds < LEAST_SEEDS:
        return []
    found, holds = [], True
    both = np.sqrt(1 + n_seeds / n_reference)
    for outcome, expected in zip(outcomes, reference, strict=True):
        allowed = 2 * both * outcome.standard_error if tolerance is None else tolerance
        holds &= bool(abs(outcome.measured - expected) <= allowed)
        found.append(f"{outcome.measured:.3f} and {expected:.3f}")
    return [Claim(text, holds, ", ".join(found))]


def mean_error(id_: CellId, part: str) -> Cell:
    """A cell for the test error of a policy, for which the paper prints no number."""
    return Cell(id_, part, published=None, unit="", decimals=3, n_items=None, reason=None)


def draw_curve(ax: Axes, name: str, points: Sequence[float], outcomes: Sequence[Outcome]) -> None:
    """Draw the mean at each point, with a band of one standard error."""
    style = line_style(name)
    means = np.array([outcome.measured for outcome in outcomes])
    errors = np.nan_to_num([outcome.standard_error for outcome in outcomes])
    ax.plot(points, means, label=name, markersize=4, linewidth=1.4, **style)
    ax.fill_between(
        points, means - errors, means + errors, color=style["color"], alpha=0.15, linewidth=0
    )


def draw_observations(
    ax: Axes, features: Sequence[str], outcomes: Sequence[Outcome], published: Sequence[int]
) -> Axes:
    """Draw the mean observations of each feature beside those of the paper's single run."""
    places = np.arange(len(features))
    ax.bar(places - 0.2, [o.measured for o in outcomes], 0.38, color=BLUE, label="mean here")
    ax.bar(
        places + 0.2, published, 0.38, color=PURPLE, hatch="//", alpha=0.7, label="published run"
    )
    ax.set_xticks(places, list(features))
    ax.legend(frameon=False)
    return tidy(ax, title="Observations by B-LEAFS", xlabel="feature", ylabel="observations")


def draw_errors(ax: Axes, outcomes: Mapping[str, Outcome]) -> Axes:
    """Draw mean errors with standard errors, one row each, beside the published ones."""
    places = np.arange(len(outcomes))
    means = [outcome.measured for outcome in outcomes.values()]
    spread = np.nan_to_num([outcome.standard_error for outcome in outcomes.values()])
    ax.errorbar(means, places, xerr=spread, fmt="o", color=BLUE, ecolor=GREY, label="mean here")
    published = [(o.cell.published, place) for place, o in enumerate(outcomes.values())]
    known = [(error, place) for error, place in published if error is not None]
    if known:
        ax.plot(*zip(*known, strict=True), "x", color=PURPLE, label="published run")
        ax.legend(frameon=False)
    ax.set_yticks(places, list(outcomes))
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    return tidy(ax, title="Test error", xlabel="test error ± standard error", ylabel="")


def draw_policy_legend(figure: Figure) -> None:
    """Draw a legend of all policies and all data, which the panels of a figure share."""
    names = [*POLICIES, ALL_DATA]
    handles = [Line2D([], [], label=name, markersize=4, **line_style(name)) for name in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(names), frameon=False)


def panel(ax: Axes, title: str, xlabel: str) -> Axes:
    """Set the labels and scales of one panel of error curves."""
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color="#EEEEEE")
    return tidy(ax, title=title, xlabel=xlabel, ylabel="test error ± standard error")


def features_by_number(space: FeatureSpace) -> dict[Hashable, str]:
    """What the paper calls each feature (X1, X2, ...), by name."""
    return {name: f"X{place}" for place, name in enumerate(space.names, start=1)}
