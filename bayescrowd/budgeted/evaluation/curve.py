"""Error against budget: many paired runs of several policies on one labelled table.

In each repeat a random share of the rows is for training, and every policy meets the same split,
the same noise, the same instances in the same order, and the same order of features, which is drawn
anew for each repeat. What differs between two policies within a repeat is what they asked. The
classes' prior is their frequency among the training rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from jaxtyping import Int
from tqdm import tqdm

from bayescrowd.budgeted.evaluation.journal import CurveJournal, Row
from bayescrowd.budgeted.evaluation.simulation import classification_error, learn_from_all, play
from bayescrowd.budgeted.evaluation.table_crowd import Noise, TableCrowd, noisy_labels
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.space import CodedTable, FeatureSpace
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

__all__ = ["ALL_DATA", "budget_curve", "curve_means", "paired_differences"]

ALL_DATA = "all data"
"""Name of the reference that learns from all labels of all training rows."""

Factory = Callable[..., Policy]


class _Setting(NamedTuple):
    """What all runs share."""

    space: FeatureSpace
    table: CodedTable
    factories: dict[str, Factory]
    budgets: tuple[float, ...]
    sizes: tuple[int, ...]
    model: str
    labels_per_query: int
    noise: Noise
    rate: float
    train_share: float
    seed: int


class _Part(NamedTuple):
    """One repeat: its space, whose prior is the training rows', and its rows."""

    space: FeatureSpace
    crowd: TableCrowd
    train_target: Int[np.ndarray, " row"]
    train_labels: Int[np.ndarray, "row feature label"]
    test_target: Int[np.ndarray, " test"]
    test_labels: Int[np.ndarray, "test feature label"]
    policy_seed: int


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
    """Test error of policies at several budgets, in paired repeats.

    Args:
        policies: classes of policies; or by name what makes one of (space, budget, n_features,
            options), such as `functools.partial(bc.BLeafs, revisit=True)`.
        table: a `TableDataset`, or a data frame whose column `target` holds the class.
        budgets: what the labels may cost in all; one run each.
        n_features: how many features the classifier may use; one run each if several.
        target: the class column of a data frame.
        strength: of the priors; see `FeatureSpace`.
        costs: what one label of a feature costs, by name; 1 for those not named.
        repeats: random splits into training and test rows.
        model: of the policies that do not bring their own.
        labels_per_query: labels of the same feature of the same instance per query; test rows have
            as many labels of each feature.
        noise: what wrong labels look like, in training and test; see `simulate_budget`.
        rate: share of wrong labels.
        train_share: of the rows.
        all_data: also learn from all training rows, whatever the budget; named 'all data'.
        seed: of splits, noise and policies.
        n_jobs: processes; -1 takes all cores, 1 stays in this process.
        journal: file that records every finished run, from which the same call continues after an
            interruption; made if it is not there.

    Returns:
        One row per policy, n_features, budget and repeat: error, spent, and the selected features.
        `curve_means` and `paired_differences` sum it up.

    Raises:
        ValueError: table, budgets or sizes do not fit; or the journal is of another call.

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
        space=space,
        table=space.code(table, target=target),
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
        for rows in _measured(setting, wanted, n_jobs):
            book.add(rows)
            progress.update()
    found = [book.rows[name, *cell, r] for name in names for cell in cells for r in range(repeats)]
    frame = pd.DataFrame(found, columns=list(Row._fields))
    frame["selected"] = [tuple(names) for names in frame["selected"]]
    return frame


def curve_means(curve: pd.DataFrame) -> pd.DataFrame:
    """Mean error of each policy with its standard error over repeats, and the mean spent.

    Returns:
        Indexed by policy, n_features and budget: error, standard_error, spent, repeats.
    """
    groups = curve.groupby(["policy", "n_features", "budget"], sort=False)
    return pd.DataFrame(
        {
            "error": groups["error"].mean(),
            "standard_error": groups["error"].sem(),
            "spent": groups["spent"].mean(),
            "repeats": groups["error"].size(),
        }
    )


def paired_differences(curve: pd.DataFrame, against: str) -> pd.DataFrame:
    """How much less error a policy makes than the others, repeat by repeat.

    Args:
        curve: from `budget_curve`.
        against: the policy that all others are compared with.

    Returns:
        Indexed by policy, n_features and budget: difference, that policy's error less the error
        of `against` in the same repeat, and its standard_error.

    Raises:
        ValueError: there is no such policy.
    """
    wide = curve.pivot(index=["n_features", "budget", "repeat"], columns="policy", values="error")
    if against not in wide:
        raise ValueError(f"against={against!r}: expected one of {', '.join(wide.columns)}")
    others = [name for name in curve["policy"].unique() if name != against]
    differences = wide[others].sub(wide[against], axis=0)
    groups = differences.groupby(level=["n_features", "budget"])
    both = {"difference": groups.mean(), "standard_error": groups.sem()}
    table = pd.concat({name: part.stack() for name, part in both.items()}, axis=1)
    return table.reorder_levels(["policy", "n_features", "budget"]).sort_index()


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
    n_all = len(setting.space.features)
    for size in setting.sizes:
        if not 1 <= size <= n_all:
            raise ValueError(
                f"n_features={size}: expected 1 to {n_all}, the number of features there are"
            )
    if ALL_DATA in setting.factories:
        raise ValueError(f"policies: {ALL_DATA!r} is the name of the reference")
    for n_features, budget in _cells(setting):
        for factory in setting.factories.values():
            _make(setting, factory, setting.space, budget, n_features, seed=0)


def _make(
    setting: _Setting,
    factory: Factory,
    space: FeatureSpace,
    budget: float,
    n_features: int,
    *,
    seed: int,
) -> Policy:
    options: dict[str, Any] = {"labels_per_query": setting.labels_per_query, "seed": seed}
    if "model" not in getattr(factory, "keywords", {}):
        options["model"] = setting.model
    return factory(space, budget, n_features, **options)


def _measured(
    setting: _Setting, jobs: Sequence[tuple[int, str]], n_jobs: int
) -> Iterator[list[Row]]:
    measure = partial(_measure, setting)
    if n_jobs == 1 or len(jobs) <= 1:
        yield from (measure(*job) for job in jobs)
        return
    pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(joblib.delayed(measure)(*job) for job in jobs)


def _measure(setting: _Setting, repeat: int, name: str) -> list[Row]:
    """All budgets and sizes of one policy in one repeat."""
    part = _part(setting, repeat)
    if name == ALL_DATA:
        return _from_all_data(setting, part, repeat)
    return [_run(setting, part, repeat, name, k, b) for k, b in _cells(setting)]


def _run(
    setting: _Setting, part: _Part, repeat: int, name: str, n_features: int, budget: float
) -> Row:
    factory = setting.factories[name]
    policy = _make(setting, factory, part.space, budget, n_features, seed=part.policy_seed)
    part.crowd.restart()
    play(policy, part.crowd)
    classifier = policy.classifier()
    error = classification_error(classifier, part.space, part.test_target, part.test_labels)
    return Row(name, n_features, budget, repeat, error, policy.spent, classifier.features)


def _from_all_data(setting: _Setting, part: _Part, repeat: int) -> list[Row]:
    """One classifier per size, whatever the budget, all of one belief."""
    space = part.space
    classifiers = learn_from_all(
        space, part.train_target, part.train_labels, setting.sizes, model=setting.model
    )
    spent = float(np.sum((part.train_labels >= 0).sum(axis=(0, 2)) * space.label_costs()))
    rows = []
    for n_features, classifier in zip(setting.sizes, classifiers, strict=True):
        error = classification_error(classifier, space, part.test_target, part.test_labels)
        rows += [
            Row(ALL_DATA, n_features, budget, repeat, error, spent, classifier.features)
            for budget in setting.budgets
        ]
    return rows


def _part(setting: _Setting, repeat: int) -> _Part:
    seeds = np.random.SeedSequence([setting.seed, repeat]).spawn(3)
    rng_split, rng_noise, rng_crowd = map(np.random.default_rng, seeds)
    values, target = setting.table
    n_train = round(setting.train_share * len(target))
    order = rng_split.permutation(len(target))
    train, test = order[:n_train], order[n_train:]
    labels = noisy_labels(
        rng_noise,
        values,
        setting.space.n_values,
        n_labels=setting.labels_per_query,
        noise=setting.noise,
        rate=setting.rate,
    )
    space, class_code = _seen_classes(setting.space, target[train])
    crowd = TableCrowd(space, class_code[target[train]], labels[train], rng_crowd)
    return _Part(
        space=space,
        crowd=crowd,
        train_target=class_code[target[train]],
        train_labels=labels[train],
        test_target=class_code[target[test]],
        test_labels=labels[test],
        policy_seed=int(rng_split.integers(2**31)),
    )


def _seen_classes(
    space: FeatureSpace, target: Int[np.ndarray, " row"]
) -> tuple[FeatureSpace, Int[np.ndarray, " cls"]]:
    """The space of the classes among the rows, with their frequencies, and each class's position.

    A class that none of the rows has cannot be learned: its position is -1.
    """
    counts = np.bincount(target, minlength=space.n_classes)
    seen = np.flatnonzero(counts)
    if len(seen) < 2:
        raise ValueError("the training rows have one class only; expected two or more")
    position = np.full(space.n_classes, -1)
    position[seen] = np.arange(len(seen))
    classes = [space.classes[y] for y in seen.tolist()]
    return replace(space, classes=classes, prior=counts[seen] / counts.sum()), position


def _description(setting: _Setting) -> dict[str, Any]:
    """What a journal must agree with; budgets, sizes and repeats may be added to."""
    return {
        "table": joblib.hash((setting.table.values, setting.table.target)),
        "policies": {name: repr(make) for name, make in setting.factories.items()},
        "strength": setting.space.strength,
        "costs": list(setting.space.label_costs()),
        "model": setting.model,
        "labels_per_query": setting.labels_per_query,
        "noise": setting.noise,
        "rate": setting.rate,
        "train_share": setting.train_share,
        "seed": setting.seed,
    }
