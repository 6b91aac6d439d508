"""Numeric judgements of objects' attributes, targets of the objects and costs of the attributes.

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), section 2: an
object o has attributes a, and any number of workers judge each of them by a number: x[a](1),
x[a](2), ... The number of judgements may differ between objects and between attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.data.columns import (
    as_pandas,
    code_found,
    parse_numbers,
    refuse_missing,
    refuse_repeats,
    require_columns,
)
from bayescrowd.data.vocabulary import Where, code_ids, comma_list, plain

__all__ = [
    "ROUNDING",
    "Costs",
    "Judgements",
    "as_judgements",
    "class_target",
    "costs_by_attribute",
    "numeric_target",
]

Costs = pd.Series | Mapping[Any, float] | Sequence[float] | np.ndarray | None
"""Cost of one judgement of each attribute, by name or in the attributes' order."""

ROUNDING = 64 * float(np.finfo(float).eps)
"""Differences below this share of the largest magnitude are taken for rounding errors.

Means are computed in two passes and are then right to a few units in the last place, however many
numbers they average. Columns that users computed themselves, such as 0.1 + 0.2 beside 0.3, differ
by about as much. Data in which as few as three digits of sixteen vary stay clear of it.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Judgements:
    """Judgements sorted by object and attribute.

    Args:
        object_codes: object of each judgement.
        attribute_codes: attribute of each judgement.
        values: the judgements.
        objects: the user's object ids.
        attributes: the user's attribute names.

    Examples:
        >>> import numpy as np
        >>> two_judges = np.array([[[1.0, 3.0], [5.0, np.nan]], [[2.0, 2.0], [4.0, 6.0]]])
        >>> judgements = as_judgements(two_judges)
        >>> judgements
        Judgements(7 judgements: 2 objects, 2 attributes)
        >>> judgements.means
        array([[2., 5.],
               [2., 5.]])
    """

    object_codes: Int[np.ndarray, " judgement"]
    attribute_codes: Int[np.ndarray, " judgement"]
    values: Float[np.ndarray, " judgement"]
    objects: pd.Index
    attributes: pd.Index

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        object: str = "object",
        attribute: str = "attribute",
        value: str = "value",
        worker: str | None = None,
        *,
        source: str | None = None,
        row_number: Callable[[int], int] | None = None,
    ) -> Judgements:
        """Read a long table (pandas, polars, pyarrow, ...) with a row per judgement.

        Args:
            frame: the table; rows without a value are left out.
            object: name of the column of object ids.
            attribute: name of the column of attribute names.
            value: name of the column of judgements, numbers or truth values.
            worker: name of the column of worker ids; if given, the judgements of an attribute of
                an object are in the order of the workers instead of the rows.
            source: name put in front of error messages, such as the file's.
            row_number: the number of the row at a position, for messages.

        Raises:
            ValueError: a column is absent, an id is missing, or a judgement is not a finite
                number; the message names row and column.
        """
        where = Where(source, row_number)
        table = as_pandas(
            frame,
            "judgements",
            "an array objects x attributes x k or a table with the columns object, attribute and "
            "value",
        )
        require_columns(
            table, [object, attribute, value, *([] if worker is None else [worker])], where
        )
        if len(table) == 0:
            raise ValueError(f"{where.prefix}the table has no rows; expected one per judgement")
        values = _finite_numbers(table[value], lambda i: f"{where.row(i)}, column {value!r}")
        rows = np.flatnonzero(~np.isnan(values))
        if len(rows) == 0:
            raise ValueError(f"{where.prefix}column {value!r} holds no judgement at all")
        if worker is not None:
            by_worker, _ = code_ids(table[worker], worker, "worker", where)
            rows = rows[np.argsort(by_worker[rows], kind="stable")]
        refuse_missing(table[object], object, "object", where)
        refuse_missing(table[attribute], attribute, "attribute", where)
        object_codes, objects = code_ids(table[object], object, "object", where)
        attribute_codes, attributes = code_ids(table[attribute], attribute, "attribute", where)
        return _sort_judgements(
            object_codes[rows], attribute_codes[rows], values[rows], objects, attributes
        )

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return len(self.objects)

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.attributes)

    @property
    def n_judgements(self) -> int:
        """Number of judgements."""
        return len(self.values)

    @cached_property
    def cells(self) -> Int[np.ndarray, " judgement"]:
        """Position of each judgement's entry in an objects x attributes table; it never falls."""
        return self.object_codes.astype(np.int64) * self.n_attributes + self.attribute_codes

    @cached_property
    def counts(self) -> Int[np.ndarray, "object attribute"]:
        """Number of judgements of each attribute of each object."""
        return self._table(np.bincount(self.cells, minlength=self.n_objects * self.n_attributes))

    @cached_property
    def magnitudes(self) -> Float[np.ndarray, " attribute"]:
        """Largest absolute value of each attribute, which is the scale of its rounding errors."""
        largest = np.zeros(self.n_attributes)
        np.maximum.at(largest, self.attribute_codes, np.abs(self.values))
        return largest

    @cached_property
    def means(self) -> Float[np.ndarray, "object attribute"]:
        """Mean judgement; NaN where there is none."""
        first = self._cell_means(self.values)
        # The second pass removes the rounding error of a long sum.
        return first + self._cell_means(self.values - first.ravel()[self.cells])

    @cached_property
    def medians(self) -> Float[np.ndarray, "object attribute"]:
        """Median judgement; NaN where there is none."""
        counts = self.counts.ravel()
        ascending = self.values[np.lexsort((self.values, self.cells))]
        first = np.cumsum(counts) - counts
        present = counts > 0
        low, high = ((first + (counts - 1) // 2)[present], (first + counts // 2)[present])
        medians = np.full(len(counts), np.nan)
        medians[present] = (ascending[low] + ascending[high]) / 2
        return self._table(medians)

    @cached_property
    def deviations(self) -> Float[np.ndarray, " judgement"]:
        """Judgement minus the mean of its attribute and object; rounding errors are 0."""
        deviations = self.values - self.means.ravel()[self.cells]
        is_rounding = np.abs(deviations) <= ROUNDING * self.magnitudes[self.attribute_codes]
        return np.where(is_rounding, 0.0, deviations)

    @cached_property
    def squared_deviations(self) -> Float[np.ndarray, "object attribute"]:
        """Sum of squared deviations from the mean judgement; 0 where there is none."""
        return self._cell_sums(self.deviations**2)

    def first(self, n_judgements: int) -> Float[np.ndarray, "object attribute copy"]:
        """The first `n_judgements` of each attribute of each object; NaN where there are fewer."""
        counts = self.counts.ravel()
        place = np.arange(self.n_judgements) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = place < n_judgements
        filled = np.full((len(counts), n_judgements), np.nan)
        filled[self.cells[kept], place[kept]] = self.values[kept]
        return filled.reshape(self.n_objects, self.n_attributes, n_judgements)

    def select_attributes(self, names: pd.Index) -> Judgements:
        """The judgements of these attributes, in the given order, with all objects."""
        place = names.get_indexer(self.attributes)[self.attribute_codes]
        rows = np.flatnonzero(place >= 0)
        codes = self.object_codes[rows], place[rows]
        return _sort_judgements(*codes, self.values[rows], self.objects, names, keep_objects=True)

    def _cell_sums(
        self, values: Float[np.ndarray, " judgement"]
    ) -> Float[np.ndarray, "object attribute"]:
        n_cells = self.n_objects * self.n_attributes
        sums = np.bincount(self.cells, values, minlength=n_cells)
        return self._table(sums.astype(float, copy=False))  # sums of no judgements are integers

    def _cell_means(
        self, values: Float[np.ndarray, " judgement"]
    ) -> Float[np.ndarray, "object attribute"]:
        with np.errstate(invalid="ignore"):
            return self._cell_sums(values) / self.counts

    def _table(self, flat: np.ndarray) -> np.ndarray:
        return flat.reshape(self.n_objects, self.n_attributes)

    def __repr__(self) -> str:
        return (
            f"Judgements({self.n_judgements:,} judgements: {self.n_objects:,} objects, "
            f"{self.n_attributes:,} attributes)"
        )


def as_judgements(data: Any) -> Judgements:
    """Make judgements from the forms in which users have them.

    Args:
        data: `Judgements`; a long table with the columns object, attribute, value and optionally
            worker; or an array objects x attributes x k with NaN where a judgement is missing
            (objects x attributes if there is one judgement of each).

    Raises:
        ValueError: a judgement is not a finite number, or there are no judgements.
        TypeError: `data` has another form.
    """
    if isinstance(data, Judgements):
        return data
    if isinstance(data, list | tuple | np.ndarray):
        return _judgements_of_array(np.asarray(data))
    worker = "worker" if "worker" in getattr(data, "columns", ()) else None
    return Judgements.from_frame(data, worker=worker)


def numeric_target(y: Any, judgements: Judgements) -> Float[np.ndarray, " object"]:
    """The target of each object, in the objects' order.

    Args:
        y: a Series or mapping from object to number; a sequence in the objects' order if the
            judgements came as an array.
        judgements: the judgements of these objects.

    Raises:
        ValueError: an object has no target, or one that is not a finite number.
    """
    target = _target_series(y, judgements)
    values = _finite_numbers(target, lambda i: f"y of object {plain(judgements.objects[i])!r}")
    if (bad := np.flatnonzero(np.isnan(values))).size:
        raise ValueError(
            f"y: the target of object {plain(judgements.objects[bad[0]])!r} is missing "
            f"({len(bad):,} in all); expected a number for every object that was judged"
        )
    return values


def class_target(y: Any, judgements: Judgements) -> tuple[Int[np.ndarray, " object"], np.ndarray]:
    """The class of each object, in the objects' order, as codes into the classes.

    Args:
        y: a Series or mapping from object to class; a sequence in the objects' order if the
            judgements came as an array.
        judgements: the judgements of these objects.

    Raises:
        ValueError: an object has no class, or all have the same.
    """
    codes, classes = code_found(_target_series(y, judgements), "y", Where())
    if (bad := np.flatnonzero(codes < 0)).size:
        raise ValueError(
            f"y: the class of object {plain(judgements.objects[bad[0]])!r} is missing "
            f"({len(bad):,} in all); expected a class for every object that was judged"
        )
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({plain(classes[0])!r}); expected at least two")
    return codes, np.asarray(classes)


def costs_by_attribute(costs: Costs, attributes: pd.Index) -> Float[np.ndarray, " attribute"]:
    """Cost of one judgement of each attribute; 1 each if `costs` is None.

    Raises:
        ValueError: an attribute has no cost, a cost is not above 0, or there is no such attribute.
    """
    if costs is None:
        return np.ones(len(attributes))
    if isinstance(costs, Mapping):
        costs = pd.Series(dict(costs))
    if not isinstance(costs, pd.Series):
        if np.shape(costs) != (len(attributes),):
            given = "x".join(map(str, np.shape(costs)))
            raise ValueError(
                f"costs: {given} given for {len(attributes)} attributes; expected one for each"
            )
        costs = pd.Series(costs, index=attributes)
    refuse_repeats(costs.index, "attribute", "costs: ")
    unknown = costs.index.difference(attributes, sort=False)
    if len(unknown):
        raise ValueError(
            f"costs: {plain(unknown[0])!r} is not an attribute of the judgements; expected "
            f"{comma_list(attributes)}"
        )
    absent = attributes.difference(costs.index, sort=False)
    if len(absent):
        raise ValueError(
            f"costs: attribute {plain(absent[0])!r} has none; expected a cost for each"
        )
    values = _finite_numbers(
        costs.reindex(attributes), lambda i: f"costs of attribute {plain(attributes[i])!r}"
    )
    wrong = np.flatnonzero(~(values > 0))
    if len(wrong):
        raise ValueError(
            f"costs: {values[wrong[0]]:g} for attribute {plain(attributes[wrong[0]])!r}; expected "
            "a number above 0"
        )
    return values


def _judgements_of_array(array: np.ndarray) -> Judgements:
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            f"judgements: an array of shape {array.shape}; expected objects x attributes x k"
        )
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(float)
        except (TypeError, ValueError) as fault:
            raise ValueError(f"judgements: {fault}; expected numbers") from None
    values = array.astype(float)
    if np.isinf(values).any():
        place = tuple(map(int, np.argwhere(np.isinf(values))[0]))
        raise ValueError(f"judgements: entry {place} is infinite; expected finite numbers or NaN")
    present = np.nonzero(~np.isnan(values))
    if len(present[0]) == 0:
        raise ValueError("judgements: all entries are NaN; expected at least one number")
    objects = pd.RangeIndex(array.shape[0], name="object")
    attributes = pd.RangeIndex(array.shape[1], name="attribute")
    return _sort_judgements(
        present[0], present[1], values[present], objects, attributes, keep_objects=True
    )


def _sort_judgements(
    object_codes: Int[np.ndarray, " judgement"],
    attribute_codes: Int[np.ndarray, " judgement"],
    values: Float[np.ndarray, " judgement"],
    objects: pd.Index,
    attributes: pd.Index,
    *,
    keep_objects: bool = False,
) -> Judgements:
    """Sort the judgements; objects without judgements are dropped unless `keep_objects`."""
    if not keep_objects:
        present = np.bincount(object_codes, minlength=len(objects)) > 0
        object_codes = (np.cumsum(present) - 1)[object_codes]
        objects = objects[present]
    order = np.lexsort((attribute_codes, object_codes))
    return Judgements(
        object_codes[order].astype(np.int64),
        attribute_codes[order].astype(np.int64),
        values[order],
        objects,
        attributes,
    )


def _finite_numbers(column: pd.Series, place: Callable[[int], str]) -> Float[np.ndarray, " row"]:
    """The column as floats, NaN where missing; `place` names an entry in messages."""
    numbers, is_wrong = parse_numbers(column)
    if is_wrong.any():
        position = int(np.argmax(is_wrong))
        entry = plain(column.iloc[position])
        raise ValueError(f"{place(position)}: {entry!r} is not a finite number")
    return numbers


def _target_series(y: Any, judgements: Judgements) -> pd.Series:
    """Targets in the objects' order, missing where `y` has none."""
    if isinstance(y, Mapping):
        y = pd.Series(dict(y))
    is_numbered = isinstance(judgements.objects, pd.RangeIndex)
    if isinstance(y, pd.Series) and not (is_numbered and len(y) == judgements.n_objects):
        refuse_repeats(y.index, "object", "y: ")
        return y.reindex(judgements.objects)
    if not is_numbered:
        raise TypeError(
            f"y came as {type(y).__name__}; with a table of judgements, expected a Series or a "
            "mapping from object to target"
        )
    values = pd.Series(np.asarray(y).ravel() if np.ndim(y) == 2 else np.asarray(y))
    if len(values) != judgements.n_objects:
        raise ValueError(
            f"y has {len(values)} targets for {judgements.n_objects} objects; expected one for each"
        )
    return values
