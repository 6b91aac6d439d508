"""A table of discrete features with missing entries, as one sparse matrix of symbols.

A mixture of discrete product distributions sees an item through p features, each with its own
values. Workers are one kind of feature (their label is the value); neurons, survey questions and
language-model judges are others. A *symbol* is a pair (feature, value), and an item is the set of
symbols that it shows. A missing entry shows no symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.columns import as_pandas, code_found, rows_by_label
from bayescrowd.data.vocabulary import comma_list, plain

__all__ = ["FeatureTable", "as_feature_table", "is_long"]


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """Discrete features of items, coded.

    Args:
        offsets: the symbols of item i are at `offsets[i]:offsets[i + 1]`.
        symbols: symbol of each entry; feature f has the symbols
            `feature_offsets[f]:feature_offsets[f + 1]`, one per value.
        feature_offsets: first symbol of each feature, followed by the number of symbols.
        items: the user's item ids.
        features: the user's feature names.
        values: values of each feature, in the order of their symbols.

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
        """The feature to which each symbol belongs."""
        return np.repeat(np.arange(self.n_features), np.diff(self.feature_offsets))

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix:
        """Items x symbols; a feature seen m times on an item divides one count among them."""
        parts = (np.ones(self.n_entries), self.symbols, self.offsets)
        matrix = scipy.sparse.csr_matrix(parts, shape=(self.n_items, self.n_symbols))
        by_feature = scipy.sparse.csr_matrix(
            (np.ones(self.n_entries), self.feature_of_symbol[self.symbols], self.offsets),
            shape=(self.n_items, self.n_features),
        )
        by_feature.sum_duplicates()
        if by_feature.nnz == self.n_entries:
            return matrix
        feature = self.feature_of_symbol[self.symbols]
        seen = np.asarray(by_feature[self.item_of_entry, feature]).ravel()
        matrix.data = 1.0 / seen
        matrix.sum_duplicates()
        return matrix

    @cached_property
    def observed_share(self) -> Float[np.ndarray, " feature"]:
        """Share of the items on which each feature is present."""
        present = self.matrix.sum(axis=0).A1
        totals = np.add.reduceat(present, self.feature_offsets[:-1])
        return totals / self.n_items

    @cached_property
    def item_of_entry(self) -> Int[np.ndarray, " entry"]:
        """The item to which each entry belongs."""
        return np.repeat(np.arange(self.n_items), np.diff(self.offsets))

    @cached_property
    def counts(self) -> Float[np.ndarray, " symbol"]:
        """How often each symbol occurs."""
        return np.bincount(self.symbols, minlength=self.n_symbols).astype(float)

    def select_features(self, positions: Int[np.ndarray, " kept"]) -> FeatureTable:
        """The table of the features at these positions, in the table's order, with all items.

        Examples:
            >>> import numpy as np
            >>> table = as_feature_table(np.array([[0, 1, 0], [1, 1, 0]]))
            >>> table.select_features(np.array([2, 0]))
            FeatureTable(2 items, 2 features, 3 symbols, 4 entries)
        """
        if len(positions) == 0:
            raise ValueError("no feature is selected; expected at least one")
        kept = np.zeros(self.n_features, dtype=bool)
        kept[positions] = True
        sizes = np.diff(self.feature_offsets)
        first = np.concatenate([[0], np.cumsum(sizes[kept])])
        moved = np.full(self.n_symbols, -1, dtype=np.int64)
        moved[kept[self.feature_of_symbol]] = np.arange(first[-1])
        return self._with_symbols(
            moved[self.symbols],
            first,
            self.features[kept],
            tuple(self.values[f] for f in np.flatnonzero(kept)),
        )

    def select_items(self, positions: Int[np.ndarray, " kept"]) -> FeatureTable:
        """The table of the items at these positions, in the given order, with all features."""
        starts, lengths = self.offsets[positions], np.diff(self.offsets)[positions]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return FeatureTable(
            offsets,
            self.symbols[entries],
            self.feature_offsets,
            self.items[positions],
            self.features,
            self.values,
        )

    def recode(self, features: pd.Index, values: tuple[pd.Index, ...]) -> FeatureTable:
        """The same entries with the features and values of another table.

        Raises:
            ValueError: a feature, or a value that occurs, is not in the other table.

        Examples:
            >>> import pandas as pd
            >>> old = as_feature_table(pd.DataFrame({"q1": ["no", "yes"], "q2": [1, 2]}))
            >>> new = as_feature_table(pd.DataFrame({"q1": ["yes"]}))
            >>> new.recode(old.features, old.values).symbols
            array([1])
        """
        same = len(values) == len(self.values) and features.equals(self.features)
        if same and all(a is b for a, b in zip(self.values, values, strict=True)):
            return self
        first = np.concatenate([[0], np.cumsum([len(v) for v in values])])
        places = features.get_indexer(self.features)
        moved = np.full(self.n_symbols, -1, dtype=np.int64)
        for f, place in enumerate(places):
            if place < 0:
                raise ValueError(
                    f"feature {plain(self.features[f])!r} is not one of those fitted, "
                    f"{comma_list(features)}"
                )
            code = values[place].get_indexer(self.values[f])
            symbols = slice(self.feature_offsets[f], self.feature_offsets[f + 1])
            moved[symbols] = np.where(code >= 0, first[place] + code, -1)
        unknown = np.flatnonzero(moved[self.symbols] < 0)
        if len(unknown):
            symbol = self.symbols[unknown[0]]
            f = self.feature_of_symbol[symbol]
            value = self.values[f][symbol - self.feature_offsets[f]]
            raise ValueError(
                f"value {plain(value)!r} of feature {plain(self.features[f])!r} is not one of "
                f"those fitted, {comma_list(values[places[f]])}"
            )
        return self._with_symbols(moved[self.symbols], first, features, values)

    def _with_symbols(
        self,
        symbols: Int[np.ndarray, " entry"],
        feature_offsets: Int[np.ndarray, " feature_plus_1"],
        features: pd.Index,
        values: tuple[pd.Index, ...],
    ) -> FeatureTable:
        """The table with these symbols; entries whose symbol is negative are dropped."""
        rows = symbols >= 0
        counts = np.bincount(self.item_of_entry[rows], minlength=self.n_items)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return FeatureTable(offsets, symbols[rows], feature_offsets, self.items, features, values)

    def __repr__(self) -> str:
        return (
            f"FeatureTable({self.n_items:,} items, {self.n_features:,} features, "
            f"{self.n_symbols:,} symbols, {self.n_entries:,} entries)"
        )


def as_feature_table(data: Any) -> FeatureTable:
    """Make a table of features from the forms in which users have it.

    Args:
        data: a FeatureTable; Annotations (tasks are items, workers features, classes values), or
            a pandas table with just the columns task, worker and label, which is read as
            Annotations; a table or a 2-D array with one row per item and one column per feature,
            in which None, NaN and blank text are missing.

    Raises:
        ValueError: the table is empty, or a feature has no value at all.
        TypeError: `data` has another form.
    """
    if isinstance(data, FeatureTable):
        return data
    if is_long(data):
        data = Annotations.from_frame(data)
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
    data = as_pandas(data, "features", "Annotations, a table or a 2-D array with one row per item")
    if data.size == 0:
        raise ValueError("the table is empty; expected items x features")
    where = rows_by_label(data.index)
    columns = [code_found(data[name], name, where) for name in data.columns]
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


def is_long(data: Any) -> bool:
    """Whether `data` is a table of labels, with just the columns task, worker and label."""
    return isinstance(data, pd.DataFrame) and {*data.columns} == {"task", "worker", "label"}
