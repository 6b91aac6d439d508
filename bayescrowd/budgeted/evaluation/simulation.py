"""One run of a policy against a crowd that answers from a labelled table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from bayescrowd.budgeted.evaluation.paired_runs import play
from bayescrowd.budgeted.evaluation.table_crowd import (
    Noise,
    TableCrowd,
    assign_workers,
    check_classes,
    noisy_labels,
)
from bayescrowd.budgeted.policy import BudgetResult, Policy
from bayescrowd.checks.parameters import Count, Fraction, Seed, validate_arguments

__all__ = ["simulate_budget"]


@validate_arguments
def simulate_budget(
    policy: Policy,
    table: Any,
    *,
    target: Hashable | None = None,
    noise: Noise | None = "none",
    rate: Fraction = 0.0,
    worker_rates: Sequence[Fraction] | None = None,
    seed: Seed = 0,
    batch: Count = 1,
) -> BudgetResult:
    """Run a policy to its end, with answers from a labelled table.

    Each query is answered for an instance of its class, drawn at random among those whose feature
    has not been labelled yet. Every class of the space needs at least one instance.

    Args:
        policy: a policy that has not asked anything yet, or one to be continued.
        table: a `TableDataset`, or a data frame whose column `target` holds the class. Missing
            cells are never asked about.
        target: name of the class column of a data frame.
        noise: what wrong labels look like: any other value ('uniform'), or always the value that
            follows the true one ('biased'). With 'none' or None, all labels are true.
        rate: share of wrong labels.
        worker_rates: share of wrong labels of each of several workers, who take turns at random and
            are named 'worker 1', 'worker 2', ... to the policy; instead of `rate`.
        seed: seed of the crowd, which decides the instances and the noise.
        batch: number of queries that are open at a time.

    Raises:
        ValueError: the table does not fit the policy's space, or there are fewer workers than
            labels per query; nothing has been asked then.

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
    workers, rates = None, rate
    if worker_rates is not None:
        if rate:
            raise ValueError(f"rate={rate} and worker_rates: expected one of the two")
        shape = (*coded.values.shape, policy.labels_per_query)
        workers = assign_workers(rng, shape, len(worker_rates))
        rates = np.array(worker_rates)[workers]
    labels = noisy_labels(
        rng,
        coded.values,
        space.n_values,
        n_labels=policy.labels_per_query,
        noise=noise or "none",
        rate=rates,
    )
    play(policy, TableCrowd(space, coded.target, labels, rng, workers), batch=batch)
    return policy.result()
