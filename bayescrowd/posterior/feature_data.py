"""Tables of features, and workers' readings of them, coded for the models of features.

Users have either a table with a row per item and a column per feature, or a long table of who read
which feature of which item as what. Either way the class of an item may be known or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import narwhals as nw
import numpy as np
import pandas as pd
from jaxtyping import Int

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
"""'shared', 'worker', or the group of each worker."""

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
    """Groups of workers; of none, if features were read without noise."""
    task_code: Int[np.ndarray, " judgement"]
    """Item of each judgement."""
    feature_code: Int[np.ndarray, " judgement"]
    """Feature that it is about."""
    worker_code: Int[np.ndarray, " judgement"]
    """Who gave it; 0 where nobody is named."""

    @property
    def n_values(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(values) for values in self.values)


def code_table(
    data: Any, target: pd.Series | None, classes: Sequence[Any] | int | None
) -> FeatureData:
    """Code a table of items x features for `naive_bayes`; None or NaN where missing.

    Args:
        data: a pandas table indexed by item, or what `load_table` returns, target included.
        target: class of items by id, missing where unknown.
        classes: the classes in their order, or how many there are, if the target does not tell.

    Raises:
        ValueError: the table is empty, a feature has no value, an id occurs twice, or the classes
            are not told by anything.
        TypeError: it is no table.
    """
    if isinstance(data, TableDataset):
        target = data.target if target is None else target
        data = data.features
    if not isinstance(data, pd.DataFrame):
        raise TypeError(
            f"features came as {type(data).__name__}; expected a pandas table with a row per item "
            "and a column per feature, or the result of load_table"
        )
    for columns in ({"task", "worker", "label"}, {"item", "feature", "value"}):
        if columns <= {*data.columns}:
            raise TypeError(
                f"the table has the columns {', '.join(sorted(columns))}, a row per judgement; "
                "naive_bayes expects a row per item and a column per feature"
            )
    table = as_feature_table(data)
    _refuse_repeats(table.items, "item")
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
        target: class of items by id, missing where unknown.
        classes: the classes in their order, or how many there are, if the target does not tell.
        groups: 'shared' if all workers have one confusion matrix per feature, 'worker' if each has
            their own, or the group of each worker.

    Raises:
        ValueError: a column is missing or empty, or a worker has no group.
        TypeError: it is no table.
    """
    frame = _long_frame(data)
    where = Where()
    every_value, vocabulary = code_labels(frame["value"].astype(object), "value", None, where)
    frame = frame[every_value >= 0]
    every_value = every_value[every_value >= 0]
    if len(frame) == 0:
        raise ValueError("the table has no value in it; expected at least one judgement")
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
    try:
        table = nw.from_native(data, eager_only=True)
    except TypeError:
        raise TypeError(
            f"readings came as {type(data).__name__}; expected a table with the columns item, "
            "feature, worker and value"
        ) from None
    frame = table.to_pandas().rename(columns={"task": "item"})
    missing = [name for name in ("item", "feature", "value") if name not in frame.columns]
    if missing:
        raise ValueError(
            f"column {missing[0]!r} is missing; expected item, feature, worker and value, found "
            f"{comma_list(frame.columns)}"
        )
    return frame.reset_index(drop=True)


def _values_of_features(
    feature: Int[np.ndarray, " judgement"],
    code: Int[np.ndarray, " judgement"],
    vocabulary: pd.Index,
    n_features: int,
) -> tuple[Int[np.ndarray, " judgement"], tuple[pd.Index, ...]]:
    """Codes within each feature's own values, which keep the order that all values have."""
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
        raise ValueError("column 'worker' is missing, which groups of workers need")
    if isinstance(groups, str):
        return worker, workers
    group_of = pd.Series(groups).reindex(workers)
    if group_of.isna().any():
        alone = plain(group_of.index[group_of.isna()][0])
        raise ValueError(f"groups: worker {alone!r} has none; expected a group for each worker")
    codes, names = code_ids(group_of.reset_index(drop=True), "groups", "group", Where())
    return codes[worker], names


def _with_target(
    tasks: pd.Index, target: pd.Series | None, classes: Sequence[Any] | int | None
) -> tuple[pd.Index, Int[np.ndarray, " item"], pd.Index]:
    """The items, those that only the target names included, their classes' codes, the classes."""
    declared = None if classes is None else list(vocabulary_of(classes, "class"))
    if target is None or target.isna().all():
        if declared is None or len(declared) < 2:
            raise ValueError(
                "no class is known: give target, the class of some items, or classes, two at least"
            )
        return tasks, np.full(len(tasks), -1), pd.Index(declared)
    _refuse_repeats(target.index, "item of the target")
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


def _refuse_repeats(ids: pd.Index, role: str) -> None:
    if not ids.is_unique:
        raise ValueError(f"{role} {plain(ids[ids.duplicated()][0])!r} occurs twice in the index")
