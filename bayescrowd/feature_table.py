"""A table of discrete features with missing entries, as one sparse matrix of symbols.

A mixture of discrete product distributions sees an item through p features, each with values of
its own; workers are one kind of feature (their label is the value), neurons, survey questions and
language-model judges are others. A *symbol* is a pair (feature, value), and an item is the set of
symbols that it shows. A missing entry shows no symbol: it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.annotations import Annotations
from bayescrowd.vocabulary import natural_key, plain

__all__ = ["FeatureTable", "as_feature_table"]


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """Items x discrete features, coded.

    Args:
        offsets: the symbols of item i stand at `offsets[i]:offsets[i + 1]`.
        symbols: symbol of each entry; feature f has the symbols
            `feature_offsets[f]:feature_offsets[f + 1]`, one per value.
        feature_offsets: first symbol of each feature, and the number of symbols.
        items: the users' item ids.
        features: the users' feature names.
        values: the values of each feature, in the order of their symbols.

    Examples:
        >>> import pandas as pd
        >>> table = as_feature_table(pd.DataFrame({"q1": ["yes", "no", None], "q2": [3, 1, 2]}))
        >>> table
        FeatureTable(3 items, 2 features, 5 symbols, 5 entries)
        >>> [list(v) for v in table.values]
        [['no', 'yes'], [1, 2, 3]]
    """

    offsets: Int[np.ndarray, " item_plus_1"]
    symbols: Int[np.ndarray, " entry"]
    feature_offsets: Int[np.ndarray, " feature_plus_1"]
    items: pd.Index
    features: pd.Index
    values: tuple[pd.Index, ...]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def n_symbols(self) -> int:
        """Number of (feature, value) pairs."""
        return int(self.feature_offsets[-1])

    @property
    def n_entries(self) -> int:
        """Number of entries that are not missing."""
        return len(self.symbols)

    @cached_property
    def feature_of_symbol(self) -> Int[np.ndarray, " symbol"]:
        """The feature each symbol belongs to."""
        return np.repeat(np.arange(self.n_features), np.diff(self.feature_offsets))

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix:
        """Items x symbols; a feature seen m times on an item shares one count among its symbols."""
        parts = (np.ones(self.n_entries), self.symbols, self.offsets)
        matrix = scipy.sparse.csr_matrix(parts, shape=(self.n_items, self.n_symbols))
        by_feature = scipy.sparse.csr_matrix(
            (np.ones(self.n_entries), self.feature_of_symbol[self.symbols], self.offsets),
            shape=(self.n_items, self.n_features),
        )
        by_feature.sum_duplicates()
        if by_feature.nnz == self.n_entries:
            return matrix
        rows = np.repeat(np.arange(self.n_items), np.diff(self.offsets))
        seen = np.asarray(by_feature[rows, self.feature_of_symbol[self.symbols]]).ravel()
        matrix.data = 1.0 / seen
        matrix.sum_duplicates()
        return matrix

    @cached_property
    def observed_share(self) -> Float[np.ndarray, " feature"]:
        """Share of the items on which each feature is present."""
        present = self.matrix.sum(axis=0).A1
        totals = np.add.reduceat(present, self.feature_offsets[:-1])
        return totals / self.n_items

    def select_features(self, positions: Int[np.ndarray, " kept"]) -> FeatureTable:
        """The table of these features (positions, ascending); all items stay."""
        kept = np.zeros(self.n_features, dtype=bool)
        kept[positions] = True
        sizes = np.diff(self.feature_offsets)
        new_offsets = np.concatenate([[0], np.cumsum(sizes[kept])])
        shift = np.zeros(self.n_features, dtype=np.int64)
        shift[kept] = new_offsets[:-1] - self.feature_offsets[:-1][kept]
        feature = self.feature_of_symbol[self.symbols]
        entries = kept[feature]
        counts = np.add.reduceat(
            np.append(entries, False), np.minimum(self.offsets[:-1], len(entries))
        )
        counts = np.where(np.diff(self.offsets) > 0, counts, 0)
        return FeatureTable(
            np.concatenate([[0], np.cumsum(counts)]),
            (self.symbols + shift[feature])[entries],
            new_offsets,
            self.items,
            self.features[kept],
            tuple(v for v, k in zip(self.values, kept, strict=True) if k),
        )

    def __repr__(self) -> str:
        return (
            f"FeatureTable({self.n_items:,} items, {self.n_features:,} features, "
            f"{self.n_symbols:,} symbols, {self.n_entries:,} entries)"
        )


def as_feature_table(data: Any) -> FeatureTable:
    """A table of features from what users have.

    Args:
        data: a FeatureTable; Annotations (items are tasks, features workers, values classes);
            a pandas table or a 2-D array with one row per item and one column per feature,
            None or NaN where missing.

    Raises:
        ValueError: the table is empty or a feature has no value at all.
        TypeError: `data` is none of these.
    """
    if isinstance(data, FeatureTable):
        return data
    if isinstance(data, Annotations):
        n_classes = data.n_classes
        return FeatureTable(
            data.task_offsets,
            data.worker_codes.astype(np.int64) * n_classes + data.label_codes,
            np.arange(data.n_workers + 1, dtype=np.int64) * n_classes,
            data.tasks,
            data.workers,
            (data.classes,) * data.n_workers,
        )
    if isinstance(data, np.ndarray) and data.ndim == 2:
        data = pd.DataFrame(data)
    if not isinstance(data, pd.DataFrame):
        raise TypeError(
            f"features came as {type(data).__name__}; expected Annotations, a pandas table or a "
            "2-D array with one row per item"
        )
    if data.size == 0:
        raise ValueError("the table is empty; expected items x features")
    columns = [_coded(data[name], str(name)) for name in data.columns]
    sizes = [len(values) for _, values in columns]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    codes = np.stack([codes for codes, _ in columns], axis=1)
    present = codes >= 0
    return FeatureTable(
        np.concatenate([[0], np.cumsum(present.sum(axis=1))]),
        (codes + starts[:-1])[present],
        starts,
        data.index,
        data.columns,
        tuple(values for _, values in columns),
    )


def _coded(column: pd.Series, name: str) -> tuple[Int[np.ndarray, " item"], pd.Index]:
    codes, found = pd.factorize(column, use_na_sentinel=True)
    values = pd.Index(found)
    if len(values) == 0:
        raise ValueError(f"feature {name!r} has no value at all")
    order = sorted(range(len(values)), key=lambda i: natural_key(plain(values[i])))
    rank = np.empty(len(values) + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(len(values)), -1
    return rank[codes], values.take(order)
