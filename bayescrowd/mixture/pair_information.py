"""The largest entry of the conditional mutual information, searched repeatedly on one table.

Stagewise EM asks in every iteration which two features still depend on each other within a
component. Nearly all of its cost is the weighted co-occurrences A' diag(r_k) A of the matrix A of
items x symbols, for every component k. `PairInformation` prepares one table for many such searches:

* A feature that is never missing has one redundant symbol: the indicator of its most frequent value
  is one minus the others. Only the others and a column of ones enter the product: A = B E gives
  A' diag(r_k) A = E' (B' diag(r_k) B) E. For binary features this is a quarter of the work.
* The products are symmetric and are computed as such, which is half the work.
* The responsibilities of an item sum to one, so that the products sum to B' B, which never changes.
  The product of the heaviest component follows from the others (K - 1 products instead of K).
* Where few features occur on the same item, the products are nearly empty, and only what occurs is
  counted (`co_occurrence.py`).

The cheaper way is chosen. Dense products need K + 1 square tables of symbols and time that is
quadratic in their number; `scan_cost` estimates the cost beforehand.

An entry is the information of two features on the items that have both, times the share of such
items. It does not include what co-occurrences of *missing* entries say, because the mixture does
not model which entries are missing. (`bayescrowd.information.conditional_mutual_information`
follows the papers, which compare with the marginals over all items; the two agree on complete
features.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int
from scipy.special import chdtri, xlogy

from bayescrowd.data.features import FeatureTable
from bayescrowd.mixture.co_occurrence import CoOccurrences

__all__ = ["PairInformation", "Scan", "ScanCost", "scan_cost"]

_BLOCK_CELLS = 2**21
"""Largest number of cells of a block of rows, a few of which fit the cache."""

_DENSE_ITEMS = 2_048
"""Number of items per dense product, which keeps the weighted copy small."""

_CELL_SECONDS = 4e-8
"""Seconds per component and cell of a dense table of symbols: logarithms and sums (measured)."""

_PRODUCT_SECONDS = 1e-10
"""Seconds per component, item and cell of a dense product (measured)."""

_LISTED_SECONDS = 3e-8
"""Seconds per component and listed co-occurrence (measured)."""

_LISTED_BYTES = 100
"""Bytes per listed co-occurrence while the list is made: six arrays of integers, and sorting."""

_ROUNDING = 1e-9
"""Entries that differ by less than this fraction are equal, and the first of them is taken."""


class ScanCost(NamedTuple):
    """What a scan of all pairs of a table will take."""

    is_listed: bool
    """Whether co-occurrences are listed; if not, they are counted in dense tables."""
    n_pairs: int
    """Number of co-occurrences of two entries if they are listed, else of pairs of features."""
    memory: int
    """Memory in bytes."""
    seconds: float
    """Time of one scan on a core of about 2024, correct to a factor of three."""


class Scan(NamedTuple):
    """Result of a scan of all pairs."""

    first: int
    """Feature i of the largest entry."""
    second: int
    """Feature j of the largest entry, after i."""
    component: int
    """Component k of the largest entry."""
    value: float
    """The largest entry I(Xi; Xj | Y = k), nats; 0 if there is none."""
    max_norm: float
    """Largest I(Xi; Xj | Y), the mean over components, nats."""
    total: float
    """Sum of I(Xi; Xj | Y) over all pairs, which the mixture leaves unexplained, nats."""


class PairInformation:
    """A table of features, ready for repeated scans of its pairs.

    Args:
        table: items x discrete features.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from bayescrowd.data.features import as_feature_table
        >>> table = as_feature_table(
        ...     pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 0, 1, 1]})
        ... )
        >>> scan = PairInformation(table).scan(np.ones((4, 1)))
        >>> (scan.first, scan.second, scan.component), round(scan.value, 3)
        ((0, 2, 0), 0.693)
    """

    def __init__(self, table: FeatureTable) -> None:
        self.n_items, self.n_features = table.n_items, table.n_features
        self._offsets = table.feature_offsets
        self._n_seen = _n_values(table)
        self._listed = CoOccurrences(table) if scan_cost(table, 2).is_listed else None
        if self._listed is None:
            base, self._expansion = _reduce(table)
            self._base = base.toarray()
            self._unweighted = self._product(np.ones(self.n_items))

    def scan(
        self, responsibilities: Float[np.ndarray, "item component"], *, level: float = 0.0
    ) -> Scan:
        """Find the largest entry over all pairs and components.

        Args:
            responsibilities: P(component | item); rows sum to one.
            level: an entry counts only if independent features would show as large an entry with at
                most this probability, over all pairs and components together; 0 counts all entries.
        """
        weights = responsibilities.sum(axis=0)
        critical = self._critical_values(len(weights), level)
        best, entry = 0.0, (0, 0, 0)
        max_norm = total = 0.0
        for first, second, information in self._blocks(responsibilities):
            mean = information.sum(axis=0) / self.n_items
            max_norm = max(max_norm, float(mean.max(initial=0.0)))
            total += float(mean.sum())
            if level > 0:
                # For independent features, twice the information times the items is chi-square.
                needed = critical[self._n_seen[first] * self._n_seen[second]]
                information[2 * information < needed] = 0.0
            # A component without items has no information either.
            information /= np.maximum(weights, np.finfo(float).tiny)[:, None]
            largest = float(information.max(initial=0.0))
            if largest > best * (1 + _ROUNDING):
                found = int(np.argmax(information >= largest * (1 - _ROUNDING)))
                component, place = np.unravel_index(found, information.shape)
                best = largest
                entry = (int(first[place]), int(second[place]), int(component))
        return Scan(*entry, best, max_norm, total)

    def matrix(
        self, responsibilities: Float[np.ndarray, "item component"]
    ) -> Float[np.ndarray, "feature feature"]:
        """I(Xi; Xj | Y) of all pairs, nats; zero on the diagonal."""
        out = np.zeros((self.n_features, self.n_features))
        for first, second, information in self._blocks(responsibilities):
            out[first, second] = information.sum(axis=0) / self.n_items
        return out + out.T

    def _blocks(
        self, responsibilities: Float[np.ndarray, "item component"]
    ) -> Iterator[
        tuple[
            Int[np.ndarray, " pair"],
            Int[np.ndarray, " pair"],
            Float[np.ndarray, "component pair"],
        ]
    ]:
        """Features i < j of pairs in order, and items times information in each component."""
        if self._listed is not None:
            yield (
                self._listed.first,
                self._listed.second,
                self._listed.information(responsibilities),
            )
            return
        products = self._products(responsibilities)
        n_symbols = int(self._offsets[-1])
        per_feature = max(1, n_symbols // self.n_features)
        step = max(1, _BLOCK_CELLS // (n_symbols * per_feature))
        for start in range(0, self.n_features, step):
            rows = slice(start, min(start + step, self.n_features))
            columns = slice(start, self.n_features)
            first, second = np.nonzero(_above_diagonal(rows, columns))
            information = np.stack(
                [self._information(product, rows, columns)[first, second] for product in products]
            )
            yield first + start, second + start, information

    def _information(
        self, product: Float[np.ndarray, "base base"], rows: slice, columns: slice
    ) -> Float[np.ndarray, "row column"]:
        """sum J log [J J.. / (J_a. J_.b)] over the co-occurrences J of each two features."""
        row_symbols = slice(self._offsets[rows.start], self._offsets[rows.stop])
        column_symbols = slice(self._offsets[columns.start], self._offsets[columns.stop])
        joint = self._expansion[:, row_symbols].T @ product @ self._expansion[:, column_symbols]
        np.maximum(joint, 0.0, out=joint)  # differences of sums may round below zero
        by_row = self._offsets[rows] - row_symbols.start
        by_column = self._offsets[columns] - column_symbols.start
        left = np.add.reduceat(joint, by_column, axis=1)
        right = np.add.reduceat(joint, by_row, axis=0)
        both = np.add.reduceat(left, by_row, axis=0)
        information = np.add.reduceat(
            np.add.reduceat(xlogy(joint, joint), by_column, axis=1), by_row, axis=0
        )
        information -= np.add.reduceat(xlogy(left, left), by_row, axis=0)
        information -= np.add.reduceat(xlogy(right, right), by_column, axis=1)
        information += xlogy(both, both)
        return np.maximum(information, 0.0)

    def _products(
        self, responsibilities: Float[np.ndarray, "item component"]
    ) -> list[Float[np.ndarray, "base base"]]:
        """B' diag(r_k) B of each component; that of the heaviest follows from the others."""
        n_components = responsibilities.shape[1]
        heaviest = int(responsibilities.sum(axis=0).argmax())
        products = {
            k: self._product(responsibilities[:, k]) for k in range(n_components) if k != heaviest
        }
        rest = self._unweighted.copy()
        for product in products.values():
            rest -= product
        products[heaviest] = rest
        return [products[k] for k in range(n_components)]

    def _product(self, weights: Float[np.ndarray, " item"]) -> Float[np.ndarray, "base base"]:
        roots = np.sqrt(np.maximum(weights, 0.0))
        total = np.zeros((self._base.shape[1],) * 2)
        for first in range(0, self.n_items, _DENSE_ITEMS):
            items = slice(first, first + _DENSE_ITEMS)
            part = self._base[items] * roots[items, None]
            total += part.T @ part  # NumPy computes half of it, because it is symmetric
        return total

    def _critical_values(self, n_components: int, level: float) -> Float[np.ndarray, " product"]:
        """Chi-square quantiles, indexed by the product of the numbers of values of two features."""
        if level <= 0:
            return np.zeros(0)
        n_tests = n_components * self.n_features * (self.n_features - 1) / 2
        sizes = np.unique(self._n_seen)
        out = np.zeros(int(sizes[-1]) ** 2 + 1)
        for a in sizes:
            for b in sizes:
                # a and b do not follow from their product: of 2 x 6 and 3 x 4, take the stricter.
                freedom = max((a - 1) * (b - 1), 1)
                out[a * b] = max(out[a * b], float(chdtri(freedom, level / n_tests)))
        return out


def scan_cost(table: FeatureTable, n_components: int) -> ScanCost:
    """Estimate what one scan of a table takes in the cheaper way.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.data.features import as_feature_table
        >>> crowd = as_feature_table(np.random.default_rng(0).integers(2, size=(1000, 100)))
        >>> cost = scan_cost(crowd, 3)
        >>> cost.is_listed, cost.n_pairs, round(cost.memory / 1e6, 1)
        (False, 4950, 1.1)
    """
    lengths = np.diff(table.offsets).astype(float)
    n_listed = float((lengths * (lengths - 1)).sum() / 2)
    listed_seconds = n_components * n_listed * _LISTED_SECONDS
    # One value of each complete feature need not be counted.
    n_base = table.n_symbols + 1 - int((table.observed_share > 1 - _ROUNDING).sum())
    cells = float(table.n_symbols) ** 2 / 2
    products = float(table.n_items) * float(n_base) ** 2 / 2
    seconds = n_components * (cells * _CELL_SECONDS + products * _PRODUCT_SECONDS)
    memory = 8 * ((n_components + 1) * n_base**2 + table.n_items * n_base)
    if listed_seconds < seconds:
        return ScanCost(True, int(n_listed), int(n_listed * _LISTED_BYTES), listed_seconds)
    n_pairs = table.n_features * (table.n_features - 1) // 2
    return ScanCost(False, n_pairs, memory, seconds)


def _n_values(table: FeatureTable) -> Int[np.ndarray, " feature"]:
    """Number of values that each feature takes in the table."""
    occurs = np.bincount(table.symbols, minlength=table.n_symbols) > 0
    return np.maximum(np.add.reduceat(occurs.astype(np.int64), table.feature_offsets[:-1]), 1)


def _reduce(
    table: FeatureTable,
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csc_matrix]:
    """B and E with A = B E, where B lacks the most frequent value of every complete feature."""
    matrix = table.matrix
    totals = np.asarray(matrix.sum(axis=0)).ravel()
    kept = np.ones(table.n_symbols, dtype=bool)
    complete = np.flatnonzero(table.observed_share > 1 - _ROUNDING)
    starts, ends = table.feature_offsets[complete], table.feature_offsets[complete + 1]
    spared = np.array(
        [a + int(totals[a:b].argmax()) for a, b in zip(starts, ends, strict=True)], dtype=np.int64
    )
    kept[spared] = False
    ones = scipy.sparse.csr_matrix(np.ones((table.n_items, 1)))
    base = scipy.sparse.hstack([matrix[:, kept], ones], format="csr")
    place = np.cumsum(kept) - 1  # of a kept symbol in B
    n_kept = int(kept.sum())
    entries = [
        (place[kept], np.flatnonzero(kept), 1.0),
        (np.full(len(spared), n_kept), spared, 1.0),
    ]
    for symbol, a, b in zip(spared, starts, ends, strict=True):
        others = np.setdiff1d(np.arange(a, b), symbol)
        entries.append((place[others], np.full(len(others), symbol), -1.0))
    row, column = (np.concatenate([entry[axis] for entry in entries]) for axis in (0, 1))
    value = np.concatenate([np.full(len(entry[0]), entry[2]) for entry in entries])
    expansion = scipy.sparse.csc_matrix((value, (row, column)), shape=(n_kept + 1, table.n_symbols))
    return base, expansion


def _above_diagonal(rows: slice, columns: slice) -> Bool[np.ndarray, "row column"]:
    return np.arange(rows.start, rows.stop)[:, None] < np.arange(columns.start, columns.stop)
