"""Playing a policy against a crowd made from a labelled table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.budgeted.beliefs.naive_bayes import Belief, PointEstimate
from bayescrowd.budgeted.classifier import Classifier
from bayescrowd.budgeted.evaluation.table_crowd import (
    Noise,
    TableCrowd,
    check_classes,
    noisy_labels,
)
from bayescrowd.budgeted.information_gain import greedy
from bayescrowd.budgeted.policy import BELIEFS, BudgetResult, Policy
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import Count, Fraction, Seed, validate_arguments

__all__ = ["classification_error", "learn_from_all", "play", "simulate_budget"]


@validate_arguments
def simulate_budget(
    policy: Policy,
    table: Any,
    *,
    target: Hashable | None = None,
    noise: Noise | None = "none",
    rate: Fraction = 0.0,
    seed: Seed = 0,
    batch: Count = 1,
) -> BudgetResult:
    """Run a policy to its end, with answers from a labelled table.

    Each query is answered for an instance of its class, drawn at random among those whose feature
    has not been labelled yet. A class of the space needs at least one instance.

    Args:
        policy: a policy that has not asked anything yet, or one to be continued.
        table: a `TableDataset`, or a data frame whose column `target` holds the class. Missing
            cells are never asked for.
        target: the class column of a data frame.
        noise: what wrong labels look like: any other value ('uniform'), always the value that
            follows the true one ('biased'); 'none' (or None): all labels are true.
        rate: share of wrong labels.
        seed: of the crowd: which instances, which noise.
        batch: queries that are open at a time.

    Raises:
        ValueError: the table does not fit the policy's space; nothing is asked then.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
        >>> table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
        >>> space = bc.FeatureSpace.from_table(table, target="kind")
        >>> policy = bc.BLeafs(space, budget=30, n_features=1)
        >>> result = bc.simulate_budget(policy, table, target="kind")
        >>> result.selected
        ('colour',)
    """
    space = policy.space
    coded = space.code(table, target=target)
    check_classes(space, coded)
    rng = np.random.default_rng(seed)
    labels = noisy_labels(
        rng,
        coded.values,
        space.n_values,
        n_labels=policy.labels_per_query,
        noise=noise or "none",
        rate=rate,
    )
    play(policy, TableCrowd(space, coded.target, labels, rng), batch=batch)
    return policy.result()


def play(policy: Policy, crowd: TableCrowd, *, batch: int = 1) -> None:
    """Ask and answer until the policy stops."""
    while queries := policy.ask_batch(batch):
        for query in queries:
            answers = crowd.answer(query.feature, query.target, query.n_labels)
            if answers is None:
                policy.exhausted(query)
            else:
                policy.tell(query, answers)


def learn_from_all(
    space: FeatureSpace,
    target: Int[np.ndarray, " row"],
    labels: Int[np.ndarray, "row feature label"],
    sizes: Sequence[int],
    *,
    model: str = "naive_bayes",
    estimate: PointEstimate = "mean",
) -> list[Classifier]:
    """The classifiers that all labels of a table give: what no budget can be expected to beat.

    The features are selected greedily, by information gain at the posterior mean.

    Args:
        space: classes and features.
        target: class of each row.
        labels: labels of each cell, -1 for none.
        sizes: numbers of features, a classifier each.
        model: how labels depend on the class.
        estimate: of the parameters.
    """
    belief: Belief = BELIEFS[model](space, labels.shape[2]).observe_all(target, labels)
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
    """Share of rows whose most probable class is wrong; equally probable ones share a row.

    Args:
        classifier: what to score.
        space: whose codes the rows are in.
        target: true class of each row, -1 for one that the space does not have.
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
