"""The share of each class among all tasks, for users: a fit without gold, and what gold says.

`shares` has the methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import OpenFraction, Seed, validate_arguments
from bayescrowd.data.annotations import as_annotations
from bayescrowd.data.text import quantity
from bayescrowd.data.truth import Truth, known_labels, warn_of_tasks
from bayescrowd.estimator import check_is_fitted
from bayescrowd.gold.shares import METHODS, Method, Prevalence, share_table

__all__ = ["prevalence"]


@validate_arguments
def prevalence(
    data: Any,
    gold: Truth,
    *,
    method: Method = "post-stratified",
    level: OpenFraction = 0.9,
    seed: Seed = 0,
    weights: Truth | None = None,
) -> Prevalence:
    """Estimate the share of each class among all tasks, such as a system's pass rate.

    Args:
        data: `Annotations`, a table with the columns task, worker and label, to which the default
            method is fitted, or a fitted aggregator. Gold plays no part in that fit: where a given
            one has used gold, it is repeated without.
        gold: task -> label of tasks that were chosen at random.
        method: 'post-stratified', 'ppi', 'rogan-gladen' or 'gold-only'.
        level: probability of the intervals.
        seed: seed of the fit.
        weights: task -> weight of the gold tasks, such as those of `suggest_gold`; a gold task
            without one has the weight 1. By default, all weigh the same.

    Raises:
        ValueError: no gold task is among the tasks, or a weight is not above 0.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(500, 8, accuracy=0.75, seed=1)
        >>> found = bc.prevalence(crowd.annotations, crowd.truth.sample(50, random_state=0))
        >>> true = crowd.truth.value_counts(normalize=True).sort_index()
        >>> ((found.shares.lower < true) & (true < found.shares.upper)).all().item()
        True
    """
    est = _fit_without_gold(data, seed)
    known = known_labels(gold, "gold")
    place = est.probas_.index.get_indexer(known.index)
    warn_of_tasks(known.index[place < 0], len(known), "gold")
    known = known[place >= 0]
    place = place[place >= 0]
    if len(known) == 0:
        raise ValueError("no gold task is among the tasks of the labels; expected at least one")
    # A class that nobody chose has no probability under the fit, and a share all the same.
    wider = est._annotations.with_classes(pd.unique(known))
    probas = est.probas_.reindex(columns=wider.classes, fill_value=0.0).to_numpy()
    truth = wider.classes.get_indexer(pd.Index(known.to_numpy()))
    weight = _weights(weights, known.index)
    tables: dict[str, pd.DataFrame] = {
        name: pd.DataFrame(
            share_table(probas, place, truth, weight, method=name, level=level),
            index=wider.classes,
        )
        for name in METHODS
    }
    shares = tables.pop(method)
    words = [
        f"{name}: {row.share:.1%} ({row.lower:.1%} to {row.upper:.1%})"
        for name, row in shares.iterrows()
    ]
    summary = (
        f"Shares by {quantity(len(known), 'gold label')} of {quantity(len(probas), 'task')}, "
        f"{level:.0%} intervals, {method}: {', '.join(words)}."
    )
    return Prevalence(shares, method, level, len(known), tables, summary)


def _fit_without_gold(data: Any, seed: int) -> Aggregator:
    if not isinstance(data, Aggregator):
        return AutoAggregator(seed=seed).fit(as_annotations(data))
    check_is_fitted(data)
    if data._has_gold:
        return type(data)(**data.get_params()).fit(data._annotations)
    return data


def _weights(weights: Truth | None, tasks: pd.Index) -> Float[np.ndarray, " gold"]:
    if weights is None:
        return np.ones(len(tasks))
    given = known_labels(weights, "weights").reindex(tasks).fillna(1.0).to_numpy(dtype=float)
    if not (np.isfinite(given) & (given > 0)).all():
        raise ValueError("a weight of the gold is not above 0; expected finite numbers above 0")
    return given
