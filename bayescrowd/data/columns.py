"""Columns of users' tables: checked, coded and read as numbers, in one way for all tables.

A missing entry is None, NaN or blank text, and has the code -1. Values that are found in a column
are put in natural sort order, in which 'c2' comes before 'c10', so that no order of rows changes
their codes. Messages name row, column and value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.data.vocabulary import Where, comma_list, natural_key, plain

__all__ = [
    "as_pandas",
    "code_found",
    "code_known",
    "constant_columns",
    "factorize_column",
    "is_blank",
    "parse_numbers",
    "refuse_missing",
    "refuse_repeats",
    "require_columns",
    "rows_by_label",
]


def as_pandas(data: Any, what: str, expected: str) -> pd.DataFrame:
    """A table of any data frame library as a pandas table.

    Args:
        data: the table.
        what: what messages call the data, in the plural.
        expected: what the data may be, in words.

    Raises:
        TypeError: `data` is not a table.
    """
    if isinstance(data, pd.DataFrame):
        return data
    try:
        table = nw.from_native(data)
    except TypeError:
        raise TypeError(f"{what} came as {type(data).__name__}; expected {expected}") from None
    eager = table.collect() if isinstance(table, nw.LazyFrame) else table
    return eager.to_pandas()


def require_columns(frame: pd.DataFrame, names: Iterable[Hashable], where: Where) -> None:
    """Raise ValueError unless the table has a column of each name."""
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{where.prefix}there is no column {name!r}; the columns are "
                f"{comma_list(frame.columns)}"
            )


def rows_by_label(index: pd.Index) -> Where:
    """Where messages name rows by their labels in an index instead of their numbers."""

    def label(position: int) -> Any:
        return repr(plain(index[position]))

    return Where(row_number=label)


def constant_columns(frame: pd.DataFrame, where: Where) -> list[Hashable]:
    """Names of the columns with a single value or none, which tell no two rows apart.

    Raises:
        ValueError: an entry is not text, a number or a truth value.

    Examples:
        >>> frame = pd.DataFrame({"veil": ["white", None], "cap": ["red", "brown"]})
        >>> constant_columns(frame, Where())
        ['veil']
    """
    found = {name: factorize_column(frame[name], name, where)[1] for name in frame.columns}
    return [n for n, values in found.items() if sum(not is_blank(v) for v in values) < 2]


def code_found(
    column: pd.Series, name: Hashable, where: Where
) -> tuple[Int[np.ndarray, " row"], pd.Index]:
    """Codes into the values that the column holds, and these values in natural order.

    Args:
        column: the values.
        name: name of the column in messages.
        where: how messages name a row.

    Raises:
        ValueError: an entry is not text, a number or a truth value, or all are missing.

    Examples:
        >>> codes, values = code_found(pd.Series(["c10", "c2", None, "c2"]), "kind", Where())
        >>> codes.tolist(), values.tolist()
        ([1, 0, -1, 0], ['c2', 'c10'])
    """
    codes, found = factorize_column(column, name, where)
    order = [place for place in range(len(found)) if not is_blank(found[place])]
    if not order:
        raise ValueError(f"{where.prefix}column {name!r} has no value at all")
    order.sort(key=lambda place: natural_key(plain(found[place])))
    rank = np.full(len(found) + 1, -1, dtype=np.int64)  # the last is for missing entries
    rank[order] = np.arange(len(order))
    return rank[codes], found.take(order)


def code_known(
    column: pd.Series,
    name: Hashable,
    where: Where,
    *,
    code_of: Callable[[Any], int | None],
    expected: Iterable[Any],
) -> Int[np.ndarray, " row"]:
    """Codes of a column whose possible values are known.

    Args:
        column: the values.
        name: name of the column in messages.
        where: how messages name a row.
        code_of: the code of a value; None if it is not one of those known.
        expected: the known values, for messages.

    Raises:
        ValueError: an entry is not one of the known values.

    Examples:
        >>> codes = {"no": 0, "yes": 1}
        >>> column = pd.Series(["yes", None, "no"])
        >>> code_known(column, "wet", Where(), code_of=codes.get, expected=codes).tolist()
        [1, -1, 0]
    """
    rows, found = factorize_column(column, name, where)
    codes = np.full(len(found) + 1, -1, dtype=np.int64)  # the last is for missing entries
    for place, value in enumerate(found):
        code = code_of(plain(value))
        if code is None and not is_blank(value):
            row = where.row(int(np.argmax(rows == place)))
            raise ValueError(
                f"{row}, column {name!r}: {comma_list([value])} is not one of "
                f"{comma_list(expected)}"
            )
        codes[place] = -1 if code is None else code
    return codes[rows]


def refuse_missing(column: pd.Series, name: Hashable, role: str, where: Where) -> None:
    """Raise ValueError if an entry is missing; messages call the entries by their role."""
    codes, found = factorize_column(column, name, where)
    # The last is for entries without a code.
    missing = np.flatnonzero(np.array([*map(is_blank, found), True])[codes])
    if len(missing):
        raise ValueError(
            f"{where.row(int(missing[0]))}, column {name!r}: the {role} is missing "
            f"({len(missing):,} in all)"
        )


def refuse_repeats(ids: pd.Index, role: str, place: str = "") -> None:
    """Raise ValueError if an id is listed twice; `place` is put in front of the message."""
    if not ids.is_unique:
        twice = plain(ids[ids.duplicated()][0])
        raise ValueError(f"{place}{role} {twice!r} is listed twice")


def parse_numbers(
    column: pd.Series,
) -> tuple[Float[np.ndarray, " row"], Bool[np.ndarray, " row"]]:
    """Numbers, NaN where missing, and whether each entry is neither a finite number nor missing.

    Examples:
        >>> numbers, is_wrong = parse_numbers(pd.Series([1, "2", " ", "high"]))
        >>> numbers.tolist(), is_wrong.tolist()
        ([1.0, 2.0, nan, nan], [False, False, False, True])
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    is_wrong = ~np.isfinite(numbers) & column.notna().to_numpy()
    doubtful = np.flatnonzero(is_wrong)
    is_wrong[doubtful] = [not is_blank(entry) for entry in column.iloc[doubtful]]
    return numbers, is_wrong


def is_blank(entry: Any) -> bool:
    """Whether an entry is missing: None, NaN or text without a visible character."""
    if isinstance(entry, str):
        return not entry.strip()
    return bool(pd.api.types.is_scalar(entry) and pd.isna(entry))


def factorize_column(
    column: pd.Series, name: Hashable, where: Where
) -> tuple[Int[np.ndarray, " row"], pd.Index]:
    """Codes and distinct values, in the order in which they occur.

    Raises:
        ValueError: an entry is not text, a number or a truth value.
    """
    try:
        codes, found = pd.factorize(column, use_na_sentinel=True)
    except TypeError:
        row, bad = next((i, v) for i, v in enumerate(column) if not isinstance(v, Hashable))
        raise ValueError(
            f"{where.row(row)}, column {name!r}: found a {type(bad).__name__}; expected text, a "
            "number or a truth value"
        ) from None
    return codes, pd.Index(found)
