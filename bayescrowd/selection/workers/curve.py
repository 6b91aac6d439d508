"""How many workers are enough: the error of labels against the number of selected workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.annotations import Annotations, as_annotations
from bayescrowd.metrics import error_rate
from bayescrowd.selection.workers.mutual_information import MutualInformationSelector

__all__ = ["selection_curve", "supervised_ranking"]


@validate_arguments
def selection_curve(
    data: Any,
    truth: pd.Series | Mapping[Any, Any],
    selectors: Mapping[str, MutualInformationSelector],
    aggregators: Mapping[str, Aggregator],
    *,
    sizes: Iterable[int] | None = None,
    supervised: bool = True,
) -> pd.DataFrame:
    """Label error against the number of workers.

    A task that no selected worker has labelled is answered by a fair guess: it costs (K - 1) / K.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        truth: true class by task, which scores the labels and ranks the workers of 'supervised'.
        selectors: selectors by name; their `n_features` has no effect.
        aggregators: aggregators by name; each is fitted to the labels of the selected workers.
        sizes: numbers of workers to select; None takes all from 1 to everybody.
        supervised: also select workers by their errors, which needs the truth and shows what is
            within reach.

    Returns:
        One row per selector, aggregator and size: selector, aggregator, n_workers, error.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.sparse_crowd(300, 20, alpha=0.25, accuracy=0.8, seed=1)
        >>> curve = bc.selection_curve(
        ...     data.annotations,
        ...     data.truth,
        ...     {"score": bc.MutualInformationSelector()},
        ...     {"MV": bc.MajorityVote()},
        ...     sizes=[5, 20],
        ... )
        >>> curve.round(2)
             selector aggregator  n_workers  error
        0       score         MV          5   0.05
        1       score         MV         20   0.30
        2  supervised         MV          5   0.05
        3  supervised         MV         20   0.30
    """
    from sklearn.base import clone

    ann = as_annotations(data)
    numbers = list(range(1, ann.n_workers + 1) if sizes is None else sizes)
    if not numbers or min(numbers) < 1 or max(numbers) > ann.n_workers:
        raise ValueError(f"sizes: expected numbers from 1 to {ann.n_workers} workers")
    paths: dict[str, list[pd.Index]] = {}
    for name, selector in selectors.items():
        fitted = clone(selector).set_params(n_features=1).fit(ann)
        paths[name] = [fitted.members(size) for size in numbers]
    if supervised:
        ranking = supervised_ranking(ann, truth)
        paths["supervised"] = [ranking[:size] for size in numbers]
    rows = [
        (name, method, size, _error_of_workers(ann, workers, aggregator, truth))
        for name, path in paths.items()
        for method, aggregator in aggregators.items()
        for size, workers in zip(numbers, path, strict=True)
    ]
    return pd.DataFrame(rows, columns=["selector", "aggregator", "n_workers", "error"])


def supervised_ranking(data: Any, truth: pd.Series | Mapping[Any, Any]) -> pd.Index:
    """Workers ranked by the error of each alone on all tasks with a truth, the least error first.

    A task that the worker has not labelled counts as a guess, so that a worker with a single, right
    label does not come first.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        truth: true class by task.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "b", "a"], ["b", "a", None]])
        >>> supervised_ranking(ann, {0: "a", 1: "b"}).to_list()
        [0, 2, 1]
    """
    ann = as_annotations(data)
    known = ann.code_truth(truth, name="truth", unchosen="wrong")
    task, worker = ann.task_codes, ann.worker_codes
    is_known = known != -1
    scored = is_known[task]
    # Repeated labels of one worker on a task share one vote.
    pair = task.astype(np.int64) * ann.n_workers + worker
    repeats = np.unique(pair, return_inverse=True, return_counts=True)
    share = 1.0 / repeats[2][repeats[1]]
    right = scored & (ann.label_codes == known[task])
    n_right = np.bincount(worker, share * right, minlength=ann.n_workers)
    n_scored = np.bincount(worker, share * scored, minlength=ann.n_workers)
    expected = n_right + (is_known.sum() - n_scored) / ann.n_classes
    return ann.workers.take(np.argsort(-expected, kind="stable"))


def _error_of_workers(
    ann: Annotations, workers: pd.Index, aggregator: Aggregator, truth: Any
) -> float:
    from sklearn.base import clone

    try:
        selected = ann.select_workers(workers)
    except ValueError:  # none of these workers has a label
        return 1 - 1 / ann.n_classes
    probas = clone(aggregator).fit_predict_proba(selected)
    probas.loc[selected.labels_per_task == 0] = np.nan  # scored as a fair guess
    return error_rate(probas, truth)
