"""What the experiments on budgeted learning share: tables, policies, one run, curves drawn.

A run splits a table at random, four fifths for training as in Nushi et al. 2016, plays one policy
against a crowd that answers from the training rows, and counts errors on the test rows. The seed
decides the split, the noise, the order of the instances and the policy's own draws, and it alone:
runs of several policies with one seed are paired. The order of the features is drawn anew for each
seed, so that no policy profits from the order of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bayescrowd.budgeted.classifier import Classifier
from bayescrowd.budgeted.evaluation.simulation import classification_error, learn_from_all, play
from bayescrowd.budgeted.evaluation.table_crowd import Noise, TableCrowd, noisy_labels
from bayescrowd.budgeted.policies.baselines import BiasedRobin, RoundRobin, TsGreedy
from bayescrowd.budgeted.policies.bleafs import BLeafs
from bayescrowd.budgeted.policies.lookahead import BudgetedSelection
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.space import CodedTable, FeatureSpace
from bayescrowd.datasets.registry import load_table
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.plots.budget import line_style
from bayescrowd.plots.canvas import BLUE, GREY, PURPLE, tidy

__all__ = [
    "ALL_DATA",
    "BLEAFS",
    "N_SEEDS",
    "OURS",
    "POLICIES",
    "RIVALS",
    "Problem",
    "Run",
    "all_data_run",
    "best_of",
    "close_to",
    "draw_curve",
    "draw_errors",
    "draw_observations",
    "features_by_number",
    "legend_of",
    "loaded_problem",
    "mean_error",
    "paired",
    "panel",
    "policy_run",
    "settings_of",
]

N_SEEDS = 64
"""The paper repeats 16 times, which cannot separate the policies."""

LEAST_SEEDS = 8
"""With fewer, standard errors say nothing."""

TRAIN_SHARE = 0.8

ALL_DATA = "all data"
BLEAFS, OURS = "B-LEAFS", "BudgetedSelection"
RIVALS = ("RoundRobin", "BiasedRobin", "TsGreedy")

POLICIES: dict[str, Callable[..., Policy]] = {
    "RoundRobin": RoundRobin,
    "BiasedRobin": BiasedRobin,
    "TsGreedy": TsGreedy,
    BLEAFS: BLeafs,
    OURS: BudgetedSelection,
}
"""The paper's four, with its settings, and this package's default."""


class Problem(NamedTuple):
    """A labelled table to be learned under budget."""

    space: FeatureSpace
    """Its features and classes."""
    table: CodedTable
    """Its rows, in the space's codes."""
    labels: Int[np.ndarray, "row feature label"] | None
    """What workers said of each cell, -1 for nothing; None if labels are simulated from values."""


class Run(NamedTuple):
    """What one policy came to."""

    error: float
    """Share of test rows classified wrongly."""
    spent: float
    """Labels bought."""
    selected: tuple[Hashable, ...]
    """The features that the classifier uses, the first chosen first."""
    observations: dict[Hashable, int]
    """Observations of each feature; empty for all data."""


class _Split(NamedTuple):
    """A problem, divided; positions of classes are those of `space`, -1 for one not trained on."""

    space: FeatureSpace
    train_target: Int[np.ndarray, " row"]
    train_labels: Int[np.ndarray, "row feature label"]
    test_target: Int[np.ndarray, " test"]
    test_labels: Int[np.ndarray, "test feature label"]
    crowd_rng: np.random.Generator
    policy_seed: int


@cache
def loaded_problem(name: str) -> Problem:
    """A published table without its incomplete rows, read once."""
    table = load_table(name)
    whole = table.features.notna().all(axis=1)
    table = table._replace(features=table.features[whole], target=table.target[whole])
    space = FeatureSpace.from_table(table)
    return Problem(space, space.code(table), labels=None)


def policy_run(
    problem: Problem,
    make: Callable[..., Policy],
    *,
    budget: float,
    n_features: int,
    seed: int,
    model: str = "naive_bayes",
    n_labels: int = 1,
    noise: Noise = "none",
    rate: float = 0.0,
) -> Run:
    """Play a policy to its end, and score its classifier.

    Args:
        problem: what to learn.
        make: makes the policy.
        budget: labels that may be bought (B).
        n_features: features of the classifier (K).
        seed: of everything.
        model: how labels depend on the class.
        n_labels: labels per observation (W), in training and test.
        noise: what wrong labels look like, where labels are simulated.
        rate: share of wrong labels.
    """
    split = _split(problem, seed, n_labels=n_labels, noise=noise, rate=rate)
    policy = make(
        split.space,
        budget,
        n_features,
        model=model,
        labels_per_query=n_labels,
        seed=split.policy_seed,
    )
    crowd = TableCrowd(split.space, split.train_target, split.train_labels, split.crowd_rng)
    play(policy, crowd)
    result = policy.result()
    observations = result.spending["observations"]
    return Run(
        error=_error(split, result.classifier),
        spent=result.spent,
        selected=result.selected,
        observations={name: int(n) for name, n in observations.items()},
    )


def all_data_run(
    problem: Problem,
    *,
    n_features: int,
    seed: int,
    model: str = "naive_bayes",
    n_labels: int = 1,
    noise: Noise = "none",
    rate: float = 0.0,
) -> Run:
    """Learn from all labels of the training rows; the features are selected greedily."""
    split = _split(problem, seed, n_labels=n_labels, noise=noise, rate=rate)
    (classifier,) = learn_from_all(
        split.space, split.train_target, split.train_labels, [n_features], model=model
    )
    return Run(
        error=_error(split, classifier),
        spent=float((split.train_labels >= 0).sum()),
        selected=classifier.features,
        observations={},
    )


def _error(split: _Split, classifier: Classifier) -> float:
    return classification_error(classifier, split.space, split.test_target, split.test_labels)


def _split(problem: Problem, seed: int, *, n_labels: int, noise: Noise, rate: float) -> _Split:
    rng_split, rng_noise, rng_crowd = map(
        np.random.default_rng, np.random.SeedSequence(seed).spawn(3)
    )
    values, target = problem.table
    labels = problem.labels
    if labels is None:
        labels = noisy_labels(
            rng_noise, values, problem.space.n_values, n_labels=n_labels, noise=noise, rate=rate
        )
    order = rng_split.permutation(len(target))
    n_train = round(TRAIN_SHARE * len(target))
    train, test = order[:n_train], order[n_train:]
    counts = np.bincount(target[train], minlength=problem.space.n_classes)
    seen = np.flatnonzero(counts)
    position = np.full(len(counts), -1)
    position[seen] = np.arange(len(seen))
    classes = [problem.space.classes[y] for y in seen.tolist()]
    return _Split(
        space=replace(problem.space, classes=classes, prior=counts[seen] / counts.sum()),
        train_target=position[target[train]],
        train_labels=labels[train, :, :n_labels],
        test_target=position[target[test]],
        test_labels=labels[test, :, :n_labels],
        crowd_rng=rng_crowd,
        policy_seed=int(rng_split.integers(2**31)),
    )


def settings_of(name: str, **particulars: Any) -> str:
    """What a run of a policy depends on, in words, defaults written out."""
    told = ", ".join(f"{option}={value!r}" for option, value in particulars.items())
    options = ""
    if name.startswith(BLEAFS):
        options = " (unless named: midpoint delta, epsilon .05, carry, last draw, no revisit)"
    elif name == OURS:
        options = " (any target, never stops early)"
    return f"{name}{options}, prior strength 1; {TRAIN_SHARE:.0%} of the rows for training; {told}"


# -- what came out ----------------------------------------------------------------------------


def paired(one: Outcome, other: Outcome) -> tuple[float, float]:
    """Mean of the first less the second over the same seeds, and its standard error."""
    difference = np.array(one.values) - np.array(other.values)
    n = len(difference)
    spread = float(difference.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return float(difference.mean()), spread


def best_of(outcomes: Mapping[str, Outcome]) -> str:
    """Name of the least mean."""
    return min(outcomes, key=lambda name: outcomes[name].measured)


def close_to(
    text: str,
    outcomes: Sequence[Outcome],
    reference: Sequence[float],
    *,
    n_reference: int = N_SEEDS,
    tolerance: float | None = None,
) -> list[Claim]:
    """Whether means agree with those of another implementation on splits of its own.

    Args:
        text: what is claimed.
        outcomes: the means here.
        reference: those of the other one, in the same order.
        n_reference: splits of the other one.
        tolerance: largest difference; two standard errors of the difference if None.

    Returns:
        The claim; nothing with fewer than `LEAST_SEEDS` seeds, which could not decide it.
    """
    n_seeds = len(outcomes[0].values)
    if n_seeds < LEAST_SEEDS:
        return []
    told, holds = [], True
    both = np.sqrt(1 + n_seeds / n_reference)
    for outcome, expected in zip(outcomes, reference, strict=True):
        allowed = 2 * both * outcome.standard_error if tolerance is None else tolerance
        holds &= bool(abs(outcome.measured - expected) <= allowed)
        told.append(f"{outcome.measured:.3f} and {expected:.3f}")
    return [Claim(text, holds, ", ".join(told))]


def mean_error(id_: CellId, part: str) -> Cell:
    """A cell for the test error of a policy, of which the paper prints no number."""
    return Cell(id_, part, published=None, unit="", decimals=3, n_items=None, reason=None)


def draw_curve(ax: Axes, name: str, points: Sequence[float], outcomes: Sequence[Outcome]) -> None:
    """A mean per point, with a band of one standard error."""
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
    """Mean observations of each feature beside those of the paper's single run."""
    places = np.arange(len(features))
    ax.bar(places - 0.2, [o.measured for o in outcomes], 0.38, color=BLUE, label="mean here")
    ax.bar(
        places + 0.2, published, 0.38, color=PURPLE, hatch="//", alpha=0.7, label="published run"
    )
    ax.set_xticks(places, list(features))
    ax.legend(frameon=False)
    return tidy(ax, title="Observations by B-LEAFS", xlabel="feature", ylabel="observations")


def draw_errors(ax: Axes, outcomes: Mapping[str, Outcome]) -> Axes:
    """Mean errors with standard errors, one row each, and published ones where there are any."""
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


def legend_of(names: Sequence[str]) -> list[Line2D]:
    """Handles for a legend that several panels share."""
    return [Line2D([], [], label=name, markersize=4, **line_style(name)) for name in names]


def panel(ax: Axes, title: str, xlabel: str) -> Axes:
    """Words and scales of one panel of error curves."""
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color="#EEEEEE")
    return tidy(ax, title=title, xlabel=xlabel, ylabel="test error ± standard error")


def features_by_number(space: FeatureSpace) -> dict[Hashable, str]:
    """X1, X2, ... as the paper calls the features, by name."""
    return {name: f"X{place}" for place, name in enumerate(space.names, start=1)}
