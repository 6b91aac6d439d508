"""Text that a spreadsheet would run as a formula, made harmless in a way that reading undoes.

Excel, LibreOffice and Google Sheets treat a cell of a CSV file as a formula if it begins with
=, +, - or @ (also in full width, and after a tab or a line break). Names chosen by a crowd must not
run in a requester's spreadsheet, so such text is written with an apostrophe in front. Text that
already has apostrophes before such a character gets one more, so that removing one apostrophe
restores every text exactly. Numbers stay as they are, even in columns of text: to a spreadsheet, -1
is a number and not a formula.
"""

from __future__ import annotations

import re

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["quote_table", "quote_text", "unquote_column", "unquote_text"]

_STARTS = r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_RUNS = re.compile(f"'*{_STARTS}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_QUOTED = re.compile(f"'+{_STARTS}")


def quote_text(text: str) -> str:
    """The text as written to CSV files, with an apostrophe in front if a spreadsheet would run it.

    Examples:
        >>> [quote_text(text) for text in ("=1+1", "'=1+1", "-1", "-1+1", "it's")]
        ["'=1+1", "''=1+1", '-1', "'-1+1", "it's"]
    """
    return f"'{text}" if _RUNS.match(text) and not _NUMBER.fullmatch(text) else text


def unquote_text(text: str) -> str:
    """The text from which `quote_text` made its argument.

    Examples:
        >>> [unquote_text(text) for text in ("'=1+1", "''=1+1", "-1", "'tis")]
        ['=1+1', "'=1+1", '-1', "'tis"]
    """
    return text[1:] if _QUOTED.match(text) else text


def quote_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with `quote_text` applied to all text in its cells and its header."""
    columns = [_quote_column(frame.iloc[:, place]) for place in range(frame.shape[1])]
    header = [quote_text(name) if isinstance(name, str) else name for name in frame.columns]
    return pd.concat(columns, axis=1).set_axis(header, axis=1) if columns else frame


def _quote_column(column: pd.Series) -> pd.Series:
    if not pd.api.types.is_string_dtype(column.dtype) and not isinstance(
        column.dtype, pd.CategoricalDtype
    ):
        return column  # `is_string_dtype` also accepts object
    distinct = {value for value in column.drop_duplicates() if isinstance(value, str)}
    changed = {text: quote_text(text) for text in distinct if quote_text(text) != text}
    if not changed:
        return column
    return column.astype(object).map(lambda value: changed.get(value, value))


def unquote_column(column: pa.Array) -> pa.Array:
    """A dictionary-encoded column with `unquote_text` applied to all its text."""
    values = column.dictionary
    if not pa.types.is_large_string(values.type) or not pc.any(pc.starts_with(values, "'")).as_py():
        return column
    texts = pa.array([unquote_text(text) for text in values.to_pylist()], type=values.type)
    # Another program may have written one text both with and without an apostrophe.
    return (
        pa.DictionaryArray.from_arrays(column.indices, texts).cast(texts.type).dictionary_encode()
    )
