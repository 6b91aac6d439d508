"""The engine of paired runs: a labelled table, one random split of it, and runs on that split.

A split decides which rows are for training, what the crowd answers about each of them, the order in
which it takes them, and the seed of the policies. Every policy that runs on it meets the same
questions and answers, so two runs differ only in what was asked. The classes' prior is their
frequency among the training rows. Policies are scored on the remaining rows, as is the reference
that learns from all labels of the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.budgeted.beliefs.naive_bayes import Belief, PointEstimate
from bayescrowd.budgeted.beliefs.options import BELIEFS, BeliefOptions
from bayescrowd.budgeted.classifier import Classifier
from bayescrowd.budgeted.evaluation.table_crowd import Noise, TableCrowd, noisy_labels
from bayescrowd.budgeted.information_gain import greedy
from bayescrowd.budgeted.policy import BudgetResult, Policy
from bayescrowd.budgeted.space import CodedTable, FeatureSpace

__all__ = [
    "Factory",
    "Problem",
    "Run",
    "Split",
    "classification_error",
    "learn_from_all",
    "make_policy",
    "play",
    "play_on_split",
    "run_on_all_data",
    "run_policy",
    "split_problem",
]

Factory = Callable[..., Policy]
"""Makes a policy from a space, a budget, a number of features and options."""


class Problem(NamedTuple):
    """A labelled table to be learned under a budget."""

    space: FeatureSpace
    """Its features and classes."""
    table: CodedTable
    """Its rows, in the space's codes."""
    labels: Int[np.ndarray, "row feature label"] | None
    """Workers' labels of each cell, -1 for none; None if labels are simulated from the values."""


class Split(NamedTuple):
    """A problem divided into training and test rows.

    Positions of classes are those in `space`; a class without training rows has the position -1.
    """

    space: FeatureSpace
    """The classes that occur among the training rows, with their frequencies as prior."""
    crowd: TableCrowd
    """Answers from the training rows."""
    train_target: Int[np.ndarray, " row"]
    """Class of each training row."""
    train_labels: Int[np.ndarray, "row feature label"]
    """Labels of the training rows."""
    test_target: Int[np.ndarray, " test"]
    """Class of each test row."""
    test_labels: Int[np.ndarray, "test feature label"]
    """Labels of the test rows."""
    policy_seed: int
    """The seed that every policy gets."""


class Run(NamedTuple):
    """The outcome of one run."""

    error: float
    """Share of test rows that are classified wrongly."""
    spent: float
    """What the labels cost."""
    selected: tuple[Hashable, ...]
    """The features that the classifier uses, in the order in which they were selected."""
    observations: dict[Hashable, int]
    """Number of observations of each feature; empty for the reference."""


def split_problem(
    problem: Problem,
    seeds: np.random.SeedSequence,
    *,
    train_share: float,
    n_labels: int,
    noise: Noise = "none",
    rate: float = 0.0,
) -> Split:
    """Split a problem at random and make a crowd that answers from the training rows.

    Args:
        problem: what to learn.
        seeds: the source of all randomness: split, noise, order of the instances, policies' seed.
        train_share: share of the rows that are for training.
        n_labels: number of labels per cell, in training and test.
        noise: what wrong labels look like, where labels are simulated; see `noisy_labels`.
        rate: share of wrong labels, where labels are simulated.

    Raises:
        ValueError: the training rows have a single class.
    """
    rng_split, rng_noise, rng_crowd = map(np.random.default_rng, seeds.spawn(3))
    values, target = problem.table
    labels = problem.labels
    if labels is None:
        labels = noisy_labels(
            rng_noise, values, problem.space.n_values, n_labels=n_labels, noise=noise, rate=rate
        )
    labels = labels[:, :, :n_labels]
    order = rng_split.permutation(len(target))
    n_train = round(train_share * len(target))
    train, test = order[:n_train], order[n_train:]
    space, position = _trained_classes(problem.space, target[train])
    train_target = position[target[train]]
    return Split(
        space=space,
        crowd=TableCrowd(space, train_target, labels[train], rng_crowd),
        train_target=train_target,
        train_labels=labels[train],
        test_target=position[target[test]],
        test_labels=labels[test],
        policy_seed=int(rng_split.integers(2**31)),
    )


def run_policy(
    split: Split,
    make: Factory,
    *,
    budget: float,
    n_features: int,
    model: str = "naive_bayes",
) -> Run:
    """Play a policy to its end on a split, and score its classifier.

    Args:
        split: what to learn.
        make: makes the policy.
        budget: what the labels may cost in all.
        n_features: how many features the classifier may use.
        model: how labels depend on the class, unless `make` has its own model.
    """
    result = play_on_split(split, make, budget=budget, n_features=n_features, model=model)
    return Run(
        error=_test_error(split, result.classifier),
        spent=result.spent,
        selected=result.selected,
        observations={name: int(n) for name, n in result.spending["observations"].items()},
    )


def play_on_split(
    split: Split,
    make: Factory,
    *,
    budget: float,
    n_features: int,
    model: str = "naive_bayes",
) -> BudgetResult:
    """Play a policy to its end on a split; see `run_policy`."""
    policy = make_policy(
        make,
        split.space,
        budget,
        n_features,
        model=model,
        labels_per_query=split.train_labels.shape[2],
        seed=split.policy_seed,
    )
    split.crowd.restart()
    play(policy, split.crowd)
    return policy.result()


def run_on_all_data(split: Split, sizes: Sequence[int], *, model: str = "naive_bayes") -> list[Run]:
    """Learn from all labels of the training rows: one run per number of features.

    Args:
        split: what to learn.
        sizes: how many features each classifier may use.
        model: how labels depend on the class.
    """
    classifiers = learn_from_all(
        split.space, split.train_target, split.train_labels, sizes, model=model
    )
    n_labels = (split.train_labels >= 0).sum(axis=(0, 2))
    spent = float(np.sum(n_labels * split.space.label_costs()))
    return [
        Run(_test_error(split, classifier), spent, classifier.features, {})
        for classifier in classifiers
    ]


def make_policy(
    make: Factory,
    space: FeatureSpace,
    budget: float,
    n_features: int,
    *,
    model: str,
    labels_per_query: int,
    seed: int,
) -> Policy:
    """Make a policy, with `model` unless `make` is a partial that has its own."""
    options: dict[str, Any] = {"labels_per_query": labels_per_query, "seed": seed}
    if "model" not in getattr(make, "keywords", {}):
        options["model"] = model
    return make(space, budget, n_features, **options)


def play(policy: Policy, crowd: TableCrowd, *, batch: int = 1) -> None:
    """Ask and answer until the policy stops, with up to `batch` open queries at a time."""
    while queries := policy.ask_batch(batch):
        for query in queries:
            reply = crowd.reply(query.feature, query.target, query.n_labels)
            if reply is None:
                policy.exhausted(query)
            else:
                policy.tell(query, *reply)


def learn_from_all(
    space: FeatureSpace,
    target: Int[np.ndarray, " row"],
    labels: Int[np.ndarray, "row feature label"],
    sizes: Sequence[int],
    *,
    model: str = "naive_bayes",
    estimate: PointEstimate = "mean",
) -> list[Classifier]:
    """The classifiers learned from all labels of a table, which no budget can be expected to beat.

    The features are selected greedily, by information gain at the posterior mean.

    Args:
        space: classes and features.
        target: class of each row.
        labels: labels of each cell, -1 for none.
        sizes: numbers of features; one classifier is made for each.
        model: how labels depend on the class.
        estimate: the parameters of the classifiers: the posterior's mean or mode.
    """
    belief: Belief = BELIEFS[model](space, BeliefOptions(labels.shape[2]))
    belief = belief.observe_all(target, labels)
    ranked = greedy(space.class_prior, belief.mean(), belief.n_outcomes, max(sizes))
    names = space.names
    readers = [belief.reader(f, np.arange(space.n_values[f]), estimate) for f in ranked]
    by_name = {names[f]: reader for f, reader in zip(ranked, readers, strict=True)}
    return [Classifier(space, dict(list(by_name.items())[:size])) for size in sizes]


def classification_error(
    classifier: Classifier,
    space: FeatureSpace,
    target: Int[np.ndarray, " row"],
    labels: Int[np.ndarray, "row feature label"],
) -> float:
    """Share of rows whose most probable class is wrong; tied classes share a row equally.

    Args:
        classifier: the classifier to score.
        space: the space in whose codes the rows are.
        target: true class of each row, -1 for a class that the space does not have.
        labels: labels of each cell.
    """
    by_name: Mapping[Hashable, Int[np.ndarray, "row label"]] = {
        name: labels[:, f] for f, name in enumerate(space.features)
    }
    probas: Float[np.ndarray, "row cls"] = classifier.probabilities(by_name)
    position = {name: y for y, name in enumerate(classifier.classes)}
    columns = np.array([position[name] for name in space.classes])
    leads = probas >= probas.max(axis=1, keepdims=True) - 1e-12
    right = leads[np.arange(len(target)), columns[target]] / leads.sum(axis=1) * (target >= 0)
    return float(1 - right.mean())


def _test_error(split: Split, classifier: Classifier) -> float:
    return classification_error(classifier, split.space, split.test_target, split.test_labels)


def _trained_classes(
    space: FeatureSpace, target: Int[np.ndarray, " row"]
) -> tuple[FeatureSpace, Int[np.ndarray, " cls"]]:
    """The space of the classes that occur in `target`, and each class's position in it or -1."""
    counts = np.bincount(target, minlength=space.n_classes)
    seen = np.flatnonzero(counts)
    if len(seen) < 2:
        raise ValueError("the training rows have a single class; expected two or more")
    position = np.full(space.n_classes, -1)
    position[seen] = np.arange(len(seen))
    classes = [space.classes[y] for y in seen.tolist()]
    return replace(space, classes=classes, prior=None, class_counts=counts[seen]), position
