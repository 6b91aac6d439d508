"""Tables of features, and workers' readings of them, coded for the models of features.

Users have either a table with a row per item and a column per feature, or a long table that says
who read which value of which feature of which item. In both, the class of an item may be known or
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Int

from bayescrowd.data.columns import as_pandas, refuse_repeats, require_columns
from bayescrowd.data.features import as_feature_table
from bayescrowd.data.table_dataset import TableDataset
from bayescrowd.data.vocabulary import (
    Where,
    code_ids,
    code_labels,
    comma_list,
    plain,
    vocabulary_of,
)
from bayescrowd.models import access_path, naive_bayes

__all__ = ["SHARED", "FeatureData", "Groups", "code_readings", "code_table"]

Groups = str | Mapping[Any, Any] | pd.Series
"""What workers share: 'shared', 'worker', or the group of each worker; see `code_readings`."""

SHARED = "all"
"""Name of the group that all workers are in when they share their confusion matrices."""


class FeatureData(NamedTuple):
    """Observations of features and the user's names of everything."""

    observations: naive_bayes.Observations | access_path.Observations
    """What the model is conditioned on."""
    tasks: pd.Index
    """Ids of the items."""
    classes: pd.Index
    """The classes, in the order of their codes."""
    features: pd.Index
    """Names of the features."""
    values: tuple[pd.Index, ...]
    """Values of each feature, in the order of their codes."""
    groups: pd.Index
    """Groups of workers; empty if features were read without noise."""
    task_code: Int[np.ndarray, " judgement"]
    """Item of each judgement."""
    feature_code: Int[np.ndarray, " judgement"]
    """Feature of each judgement."""
    worker_code: Int[np.ndarray, " judgement"]
    """Worker of each judgement; 0 where no workers are named."""

    @property
    def n_values(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(values) for values in self.values)


def code_table(
    data: Any, target: pd.Series | None, classes: Sequence[Any] | int | None
) -> FeatureData:
    """Code a table of items x features for `naive_bayes`.

    Args:
        data: a table indexed by item, or the result of `load_table`, which includes the target;
            None, NaN and blank text are missing.
        target: class of each item by id, missing where unknown.
        classes: the classes in order, or their number; needed if the target does not show them.

    Raises:
        ValueError: the table is empty, a feature has no value, an id is listed twice, or neither
            target nor classes are given.
        TypeError: `data` is not a table.
    """
    if isinstance(data, TableDataset):
        target = data.target if target is None else target
        data = data.features
    data = as_pandas(
        data,
        "features",
        "a table with a row per item and a column per feature, or the result of load_table",
    )
    for columns in ({"task", "worker", "label"}, {"item", "feature", "value"}):
        if columns <= {*data.columns}:
            raise TypeError(
                f"the table has the columns {', '.join(sorted(columns))} and a row per judgement; "
                "naive_bayes expects a row per item and a column per feature"
            )
    table = as_feature_table(data)
    refuse_repeats(table.items, "item")
    tasks, target_codes, classes_found = _with_target(table.items, target, classes)
    feature = table.feature_of_symbol[table.symbols]
    value = table.symbols - table.feature_offsets[feature]
    observations = naive_bayes.Observations(
        *(jnp.asarray(codes) for codes in (target_codes, table.item_of_entry, feature, value))
    )
    return FeatureData(
        observations=observations,
        tasks=tasks,
        classes=classes_found,
        features=table.features,
        values=table.values,
        groups=pd.Index([]),
        task_code=table.item_of_entry,
        feature_code=feature,
        worker_code=np.zeros(table.n_entries, dtype=int),
    )


def code_readings(
    data: Any,
    target: pd.Series | None,
    classes: Sequence[Any] | int | None,
    groups: Groups,
) -> FeatureData:
    """Code a long table of judgements about features for `access_path`.

    Args:
        data: a table with the columns item, feature and value, and worker unless `groups` is
            'shared'; rows with a missing value are left out.
        target: class of each item by id, missing where unknown.
        classes: the classes in order, or their number; needed if the target does not show them.
        groups: 'shared' if all workers share one confusion matrix per feature, 'worker' if each
            worker has their own, or the group of each worker.

    Raises:
        ValueError: a column is missing or empty, or a worker has no group.
        TypeError: `data` is not a table.
    """
    frame = _long_frame(data)
    where = Where()
    every_value, vocabulary = code_labels(frame["value"].astype(object), "value", None, where)
    frame = frame[every_value >= 0]
    every_value = every_value[every_value >= 0]
    if len(frame) == 0:
        raise ValueError("column 'value' has no value at all; expected at least one judgement")
    item, tasks = code_ids(frame["item"], "item", "item", where)
    feature, features = code_ids(frame["feature"], "feature", "feature", where)
    value, values = _values_of_features(feature, every_value, vocabulary, len(features))
    pair = item.astype(np.int64) * len(features) + feature
    read_pair, reading = np.unique(pair, return_inverse=True)
    worker, workers = _workers(frame)
    group, group_names = _groups(worker, workers, groups)
    tasks, target_codes, classes_found = _with_target(tasks, target, classes)
    parts = (
        target_codes,
        read_pair // len(features),
        read_pair % len(features),
        reading,
        group,
        value,
    )
    return FeatureData(
        observations=access_path.Observations(*map(jnp.asarray, parts)),
        tasks=tasks,
        classes=classes_found,
        features=features,
        values=values,
        groups=group_names,
        task_code=item,
        feature_code=feature,
        worker_code=worker,
    )


def _long_frame(data: Any) -> pd.DataFrame:
    expected = "a table with the columns item, feature, worker and value"
    frame = as_pandas(data, "readings", expected).rename(columns={"task": "item"})
    require_columns(frame, ("item", "feature", "value"), Where())
    return frame.reset_index(drop=True)


def _values_of_features(
    feature: Int[np.ndarray, " judgement"],
    code: Int[np.ndarray, " judgement"],
    vocabulary: pd.Index,
    n_features: int,
) -> tuple[Int[np.ndarray, " judgement"], tuple[pd.Index, ...]]:
    """Codes within each feature's own values, which are in the order of the whole vocabulary."""
    symbols, symbol = np.unique(feature * len(vocabulary) + code, return_inverse=True)
    owner = symbols // len(vocabulary)
    first = np.searchsorted(owner, np.arange(n_features))
    values = tuple(
        vocabulary[symbols[owner == f] % len(vocabulary)].rename(None) for f in range(n_features)
    )
    return symbol - first[feature], values


def _workers(frame: pd.DataFrame) -> tuple[Int[np.ndarray, " judgement"], pd.Index | None]:
    if "worker" not in frame.columns:
        return np.zeros(len(frame), dtype=int), None
    return code_ids(frame["worker"], "worker", "worker", Where())


def _groups(
    worker: Int[np.ndarray, " judgement"], workers: pd.Index | None, groups: Groups
) -> tuple[Int[np.ndarray, " judgement"], pd.Index]:
    if isinstance(groups, str):
        if groups not in ("shared", "worker"):
            raise ValueError(
                f"groups={groups!r}: expected 'shared', 'worker' or the group of each worker"
            )
        if groups == "shared":
            return np.zeros(len(worker), dtype=int), pd.Index([SHARED])
    if workers is None:
        raise ValueError("there is no column 'worker', which groups of workers need")
    if isinstance(groups, str):
        return worker, workers
    group_of = pd.Series(groups).reindex(workers)
    if group_of.isna().any():
        alone = plain(group_of.index[group_of.isna()][0])
        raise ValueError(f"groups: worker {alone!r} has no group; expected one for each worker")
    codes, names = code_ids(group_of.reset_index(drop=True), "groups", "group", Where())
    return codes[worker], names


def _with_target(
    tasks: pd.Index, target: pd.Series | None, classes: Sequence[Any] | int | None
) -> tuple[pd.Index, Int[np.ndarray, " item"], pd.Index]:
    """The items, including those that only the target names, their classes' codes, the classes."""
    declared = None if classes is None else list(vocabulary_of(classes, "class"))
    if target is None or target.isna().all():
        if declared is None or len(declared) < 2:
            raise ValueError(
                "no class is known: pass target, the class of some items, or two or more classes"
            )
        return tasks, np.full(len(tasks), -1), pd.Index(declared)
    refuse_repeats(target.index, "item", "target: ")
    if declared is None and isinstance(target.dtype, pd.CategoricalDtype):
        declared = list(target.dtype.categories)
    codes, found = code_labels(target, str(target.name or "target"), declared, Where())
    place = tasks.get_indexer(target.index)
    if (place < 0).all():
        raise ValueError(
            f"target and table have no item in common: {plain(target.index[0])!r} of the target is "
            f"not one of {comma_list(tasks, most=3)}"
        )
    both = tasks.append(target.index[place < 0])
    of_task = np.full(len(both), -1)
    of_task[both.get_indexer(target.index)] = codes
    return both, of_task, found
