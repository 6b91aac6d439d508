"""Text that a spreadsheet would run as a formula, made harmless in a way that reading undoes.

Excel, LibreOffice and Google Sheets take a cell of a CSV file for a formula if it begins with
=, +, - or @ (also in full width, and after a tab or a line break). Names chosen by a crowd must not
run in a requester's spreadsheet, so such text is written with an apostrophe in front; text that
already has apostrophes before such a character gets one more, so that taking off one apostrophe
gives back every text exactly. Numbers stay as they are, in columns of numbers and as text: -1 is a
number to a spreadsheet, and not a formula.
"""

from __future__ import annotations

import re

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["quoted", "quoted_table", "unquoted", "unquoted_column"]

_STARTS = r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_RUNS = re.compile(f"'*{_STARTS}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_QUOTED = re.compile(f"'+{_STARTS}")


def quoted(text: str) -> str:
    """The text as it stands in a CSV file for people.

    Examples:
        >>> [quoted(text) for text in ("=1+1", "'=1+1", "-1", "-1+1", "it's")]
        ["'=1+1", "''=1+1", '-1', "'-1+1", "it's"]
    """
    return f"'{text}" if _RUNS.match(text) and not _NUMBER.fullmatch(text) else text


def unquoted(text: str) -> str:
    """The text that `quoted` was given.

    Examples:
        >>> [unquoted(text) for text in ("'=1+1", "''=1+1", "-1", "'tis")]
        ['=1+1', "'=1+1", '-1', "'tis"]
    """
    return text[1:] if _QUOTED.match(text) else text


def quoted_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with every text in its cells and its header `quoted`."""
    columns = [_quoted_column(frame.iloc[:, place]) for place in range(frame.shape[1])]
    header = [quoted(name) if isinstance(name, str) else name for name in frame.columns]
    return pd.concat(columns, axis=1).set_axis(header, axis=1) if columns else frame


def _quoted_column(column: pd.Series) -> pd.Series:
    if not pd.api.types.is_string_dtype(column.dtype) and not isinstance(
        column.dtype, pd.CategoricalDtype
    ):
        return column  # object counts as text here
    distinct = {value for value in column.drop_duplicates() if isinstance(value, str)}
    changed = {text: quoted(text) for text in distinct if quoted(text) != text}
    if not changed:
        return column
    return column.astype(object).map(lambda value: changed.get(value, value))


def unquoted_column(column: pa.Array) -> pa.Array:
    """A column of distinct values and indices with every text `unquoted`."""
    values = column.dictionary
    if not pa.types.is_large_string(values.type) or not pc.any(pc.starts_with(values, "'")).as_py():
        return column
    texts = pa.array([unquoted(text) for text in values.to_pylist()], type=values.type)
    # Another program may have written the same text with and without an apostrophe.
    return (
        pa.DictionaryArray.from_arrays(column.indices, texts).cast(texts.type).dictionary_encode()
    )
