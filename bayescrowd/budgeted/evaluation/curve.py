"""Error against budget: many paired runs of several policies on one labelled table.

In each repeat, every policy meets the same split, the same noise, the same instances in the same
order, and the same order of features, which is drawn anew for each repeat (`paired_runs`).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from tqdm import tqdm

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA
from bayescrowd.budgeted.evaluation.journal import CurveJournal, Row
from bayescrowd.budgeted.evaluation.paired_runs import (
    Factory,
    Problem,
    Split,
    make_policy,
    play_on_split,
    run_on_all_data,
    run_policy,
    split_problem,
)
from bayescrowd.budgeted.evaluation.table_crowd import Noise
from bayescrowd.budgeted.policy import BudgetResult, Policy
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import (
    Count,
    Fraction,
    OpenFraction,
    Positive,
    Seed,
    Whole,
    validate_arguments,
)
from bayescrowd.data.vocabulary import plain

__all__ = ["budget_curve", "curve_run"]


class _Setting(NamedTuple):
    """What all runs share."""

    problem: Problem
    factories: dict[str, Factory]
    budgets: tuple[float, ...]
    sizes: tuple[int, ...]
    model: str
    labels_per_query: int
    noise: Noise
    rate: float
    train_share: float
    seed: int


@validate_arguments
def budget_curve(
    policies: Sequence[type[Policy]] | Mapping[str, Factory],
    table: Any,
    budgets: Iterable[float],
    n_features: Count | Iterable[int],
    *,
    target: Hashable | None = None,
    strength: Positive = 1.0,
    costs: Mapping[Hashable, float] | None = None,
    repeats: Count = 16,
    model: str = "naive_bayes",
    labels_per_query: Count = 1,
    noise: Noise = "none",
    rate: Fraction = 0.0,
    train_share: OpenFraction = 0.8,
    all_data: bool = False,
    seed: Seed = 0,
    n_jobs: Annotated[int, Whole(-1)] = -1,
    journal: str | os.PathLike[str] | None = None,
) -> pd.DataFrame:
    """Measure the test error of policies at several budgets, in paired repeats.

    Args:
        policies: classes of policies; or, by name, callables that make a policy from a space, a
            budget, a number of features and options, such as
            `functools.partial(bc.BLeafs, revisit=True)`.
        table: a `TableDataset`, or a data frame whose column `target` holds the class.
        budgets: what the labels may cost in all, one run for each.
        n_features: how many features the classifier may use; if several, one run for each.
        target: name of the class column of a data frame.
        strength: strength of the priors; see `FeatureSpace`.
        costs: what one label of a feature costs, by name; 1 for features that are not named.
        repeats: number of random splits into training and test rows.
        model: model of the policies that do not have their own.
        labels_per_query: number of labels of the same feature of the same instance per query; test
            rows have as many labels of each feature.
        noise: what wrong labels look like, in training and test; see `simulate_budget`.
        rate: share of wrong labels.
        train_share: share of the rows that are for training.
        all_data: whether to add the reference 'all data', which learns from all training rows,
            whatever the budget.
        seed: seed of the splits, the noise and the policies.
        n_jobs: number of processes; -1 takes all cores, 1 stays in this process.
        journal: file in which every finished run is recorded, and from which the same call
            continues after an interruption; it is created if there is none.

    Returns:
        One row per policy, n_features, budget and repeat with the error, the amount spent and the
        selected features; `curve_means` and `paired_differences` of `curve_tables` summarise it.

    Raises:
        ValueError: table, budgets or sizes do not fit, or the journal belongs to another call.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
        >>> table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
        >>> curve = bc.budget_curve(
        ...     [bc.RoundRobin, bc.TsGreedy], table, [10], 1, target="kind", repeats=2, n_jobs=1
        ... )
        >>> list(curve.columns)
        ['policy', 'n_features', 'budget', 'repeat', 'error', 'spent', 'selected']
        >>> len(curve)
        4
    """
    space = FeatureSpace.from_table(table, target=target, strength=strength, costs=costs)
    setting = _Setting(
        problem=Problem(space, space.code(table, target=target), labels=None),
        factories=_factories(policies),
        budgets=tuple(plain(budget) for budget in budgets),
        sizes=(n_features,) if isinstance(n_features, int) else tuple(map(int, n_features)),
        model=model,
        labels_per_query=labels_per_query,
        noise=noise,
        rate=rate,
        train_share=train_share,
        seed=seed,
    )
    if not setting.factories and not all_data:
        raise ValueError("policies: expected at least one")
    _check(setting)
    names = [*setting.factories, *([ALL_DATA] if all_data else [])]
    jobs = [(repeat, name) for repeat in range(repeats) for name in names]
    book = CurveJournal(journal, _description(setting))
    cells = _cells(setting)
    wanted = [(r, name) for r, name in jobs if any((name, *c, r) not in book.rows for c in cells)]
    with tqdm(
        total=len(jobs),
        initial=len(jobs) - len(wanted),
        desc="budget curve",
        unit="run",
        disable=None,  # silent where nobody watches
    ) as progress:
        for rows in _finished_runs(setting, wanted, n_jobs):
            book.add(rows)
            progress.update()
    found = [book.rows[name, *cell, r] for name in names for cell in cells for r in range(repeats)]
    frame = pd.DataFrame(found, columns=list(Row._fields))
    frame["selected"] = [tuple(names) for names in frame["selected"]]
    return frame


@validate_arguments
def curve_run(
    make: Factory,
    table: Any,
    budget: Positive,
    n_features: Count,
    *,
    repeat: Annotated[int, Whole(0)],
    target: Hashable | None = None,
    strength: Positive = 1.0,
    costs: Mapping[Hashable, float] | None = None,
    model: str = "naive_bayes",
    labels_per_query: Count = 1,
    noise: Noise = "none",
    rate: Fraction = 0.0,
    train_share: OpenFraction = 0.8,
    seed: Seed = 0,
) -> BudgetResult:
    """One run of `budget_curve`, played again to see what is behind its error.

    Args:
        make: the policy: a class, or a callable that makes one, as `budget_curve` takes it.
        table: the table of the curve.
        budget: one of its budgets.
        n_features: one of its numbers of features.
        repeat: number of the repeat, from 0.
        target: as in `budget_curve`, like all further arguments.
        strength: strength of the priors.
        costs: what one label of a feature costs.
        model: model of a policy that does not have its own.
        labels_per_query: number of labels per query.
        noise: what wrong labels look like.
        rate: share of wrong labels.
        train_share: share of the rows that are for training.
        seed: seed of the curve.

    Returns:
        What the policy has learned; `posterior` draws from the model behind it.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> from bayescrowd.budgeted.evaluation.curve import curve_run
        >>> rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
        >>> table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
        >>> curve_run(bc.RoundRobin, table, 10, 1, repeat=3, target="kind").spent
        10.0
    """
    space = FeatureSpace.from_table(table, target=target, strength=strength, costs=costs)
    setting = _Setting(
        problem=Problem(space, space.code(table, target=target), labels=None),
        factories={"": make},
        budgets=(budget,),
        sizes=(n_features,),
        model=model,
        labels_per_query=labels_per_query,
        noise=noise,
        rate=rate,
        train_share=train_share,
        seed=seed,
    )
    _check(setting)
    split = _split(setting, repeat)
    return play_on_split(split, make, budget=budget, n_features=n_features, model=model)


def _factories(policies: Sequence[type[Policy]] | Mapping[str, Factory]) -> dict[str, Factory]:
    if isinstance(policies, Mapping):
        return dict(policies)
    return {policy.__name__: policy for policy in policies}


def _cells(setting: _Setting) -> list[tuple[int, float]]:
    return [(k, b) for k in setting.sizes for b in setting.budgets]


def _check(setting: _Setting) -> None:
    """Raise before the work starts if any run would."""
    if not setting.budgets or not setting.sizes:
        raise ValueError("budgets, n_features: expected at least one of each")
    space = setting.problem.space
    for size in setting.sizes:
        if not 1 <= size <= len(space.features):
            raise ValueError(
                f"n_features={size}: expected 1 to {len(space.features)}, the number of features"
            )
    if ALL_DATA in setting.factories:
        raise ValueError(f"policies: {ALL_DATA!r} is the name of the reference")
    for n_features, budget in _cells(setting):
        for make in setting.factories.values():
            make_policy(
                make,
                space,
                budget,
                n_features,
                model=setting.model,
                labels_per_query=setting.labels_per_query,
                seed=0,
            )


def _finished_runs(
    setting: _Setting, jobs: Sequence[tuple[int, str]], n_jobs: int
) -> Iterator[list[Row]]:
    """The rows of each job, as soon as it is finished."""
    measure = partial(_measure, setting)
    if n_jobs == 1 or len(jobs) <= 1:
        yield from (measure(*job) for job in jobs)
        return
    pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(joblib.delayed(measure)(*job) for job in jobs)


def _measure(setting: _Setting, repeat: int, name: str) -> list[Row]:
    """Run one policy, or the reference, at all budgets and sizes in one repeat."""
    split = _split(setting, repeat)
    if name == ALL_DATA:
        by_size = dict(
            zip(
                setting.sizes,
                run_on_all_data(split, setting.sizes, model=setting.model),
                strict=True,
            )
        )
        runs = [by_size[k] for k, _ in _cells(setting)]
    else:
        make = setting.factories[name]
        runs = [
            run_policy(split, make, budget=b, n_features=k, model=setting.model)
            for k, b in _cells(setting)
        ]
    return [
        Row(name, k, b, repeat, run.error, run.spent, run.selected)
        for (k, b), run in zip(_cells(setting), runs, strict=True)
    ]


def _split(setting: _Setting, repeat: int) -> Split:
    return split_problem(
        setting.problem,
        np.random.SeedSequence([setting.seed, repeat]),
        train_share=setting.train_share,
        n_labels=setting.labels_per_query,
        noise=setting.noise,
        rate=setting.rate,
    )


def _description(setting: _Setting) -> dict[str, Any]:
    """What a journal must agree with; budgets, sizes and repeats may be added later."""
    space, table, _ = setting.problem
    return {
        "table": joblib.hash((table.values, table.target)),
        "policies": {name: repr(make) for name, make in setting.factories.items()},
        "strength": space.strength,
        "costs": list(space.label_costs()),
        "model": setting.model,
        "labels_per_query": setting.labels_per_query,
        "noise": setting.noise,
        "rate": setting.rate,
        "train_share": setting.train_share,
        "seed": setting.seed,
    }
