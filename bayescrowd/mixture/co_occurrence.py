"""A list of the symbols that occur together, for features that seldom occur on the same item.

Most of the m (m - 1) / 2 pairs of m workers have no task in common, and such a pair has no
information. `CoOccurrences` lists the pairs of symbols that occur on some item, sorted by their two
features; the weighted counts of all of them, in all components, are then one sparse product with
the responsibilities. Time and memory grow with the number of pairs of entries of an item, summed
over items, and not with the square of the symbols. Nothing is approximated: what is not listed is
zero.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int
from scipy.special import xlogy

from bayescrowd.data.features import FeatureTable

__all__ = ["CoOccurrences"]


class CoOccurrences:
    """The pairs of symbols that occur together on some item of a table.

    Args:
        table: items x discrete features.

    Attributes:
        first: feature i of each pair of features with a common item; i < j, sorted by i, then j.
        second: feature j of each pair.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.data.features import as_feature_table
        >>> nan = np.nan
        >>> table = as_feature_table(np.array([[0, 0, nan], [1, 1, nan], [nan, 1, 0]]))
        >>> met = CoOccurrences(table)
        >>> [(int(i), int(j)) for i, j in zip(met.first, met.second)]
        [(0, 1), (1, 2)]
        >>> met.information(np.ones((3, 1))).round(3)  # 2 log 2 for two equal coins, and nothing
        array([[1.386, 0.   ]])
    """

    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]

    def __init__(self, table: FeatureTable) -> None:
        matrix = table.matrix.copy()
        matrix.sum_duplicates()  # also sorts the symbols of each item
        left, right = _pairs_of_entries(matrix.indptr)
        item = np.repeat(np.arange(table.n_items), np.diff(matrix.indptr))[left]
        feature = table.feature_of_symbol[matrix.indices]
        differ = feature[left] != feature[right]  # two values of one feature are no pair
        left, right, item = left[differ], right[differ], item[differ]
        pair, pair_of_entry = np.unique(
            feature[left].astype(np.int64) * table.n_features + feature[right], return_inverse=True
        )
        self.first, self.second = np.divmod(pair, table.n_features)
        value = matrix.indices - table.feature_offsets[feature]
        n_values = int(np.diff(table.feature_offsets).max())
        cell, cell_of_entry = np.unique(
            (pair_of_entry * n_values + value[left]) * n_values + value[right], return_inverse=True
        )
        # Counts of cells are this matrix times responsibilities.
        self._shown = scipy.sparse.csr_matrix(
            (matrix.data[left] * matrix.data[right], (cell_of_entry, item)),
            shape=(len(cell), table.n_items),
        )
        with_left, right_value = np.divmod(cell, n_values)
        pair_of_cell = with_left // n_values
        self._by_pair = _starts(pair_of_cell)
        self._by_left = _starts(with_left)
        self._pair_of_left = _starts(pair_of_cell[self._by_left])
        with_right = pair_of_cell * n_values + right_value
        self._order = np.argsort(with_right, kind="stable")
        self._by_right = _starts(with_right[self._order])
        self._pair_of_right = _starts(pair_of_cell[self._order][self._by_right])

    def information(
        self, responsibilities: Float[np.ndarray, "item component"]
    ) -> Float[np.ndarray, "component pair"]:
        """Number of items times information of each pair, sum J log [J J.. / (J_a. J_.b)], nats."""
        if len(self.first) == 0:
            return np.zeros((responsibilities.shape[1], 0))
        joint = np.asarray(self._shown @ responsibilities)
        left = np.add.reduceat(joint, self._by_left)
        right = np.add.reduceat(joint[self._order], self._by_right)
        both = np.add.reduceat(joint, self._by_pair)
        information = np.add.reduceat(xlogy(joint, joint), self._by_pair)
        information -= np.add.reduceat(xlogy(left, left), self._pair_of_left)
        information -= np.add.reduceat(xlogy(right, right), self._pair_of_right)
        information += xlogy(both, both)
        return np.maximum(information.T, 0.0)


def _pairs_of_entries(
    offsets: Int[np.ndarray, " item_plus_1"],
) -> tuple[Int[np.ndarray, " entry_pair"], Int[np.ndarray, " entry_pair"]]:
    """Positions of every two entries of the same item, the earlier first."""
    lengths = np.diff(offsets)
    n_later = np.repeat(offsets[1:], lengths) - np.arange(offsets[-1]) - 1
    left = np.repeat(np.arange(offsets[-1], dtype=np.int64), n_later)
    before = np.cumsum(n_later) - n_later
    right = left + 1 + np.arange(len(left)) - np.repeat(before, n_later)
    return left, right


def _starts(sorted_keys: Int[np.ndarray, " key"]) -> Int[np.ndarray, " group"]:
    """Where each run of equal keys begins."""
    if len(sorted_keys) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
