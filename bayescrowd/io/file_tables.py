"""Tables in files: delimited text, JSON and Parquet, read by column and without loss.

Delimited text has no types. Every field is read as text; a column becomes integers only if all its
values are written as Python writes 64-bit integers, so that '007' stays text; and only an empty
field is missing, so that 'NA', 'None' and 'null' are ordinary text. The apostrophe that `cells.py`
puts before text that a spreadsheet would run is removed. JSON and Parquet keep their types.

Rows are numbered as a spreadsheet or an editor numbers them: the header of a delimited file is
row 1, and blank lines count. A file with errors may be read a second time to locate the first of
them; a file without errors is read once.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from bayescrowd.data.text import quantity
from bayescrowd.data.vocabulary import argument
from bayescrowd.io.cells import unquote_column

__all__ = [
    "DelimitedText",
    "FileTable",
    "JsonArray",
    "JsonLines",
    "Parquet",
    "arrow_copy",
    "file_contents",
    "integers_if_canonical",
    "parse_json",
]

_BLOCK_SIZE = 1 << 22
"""Bytes that Arrow parses at a time; larger blocks were slower."""

_EXPECTED_TEXT = "expected text in UTF-8: save the file again in this encoding ('CSV UTF-8')"

_SAMPLE = 1_000
"""Number of JSON lines whose keys form the list of columns."""


def file_contents(path: str | os.PathLike[str]) -> tuple[str, bytes]:
    """The file's name in messages and its unpacked bytes; the path '-' is standard input."""
    source = "standard input" if path == "-" else os.fspath(path)
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{source}: there is no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{source}: this is a folder; expected a file") from None
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
            raise ValueError(f"{source}: truncated or damaged gzip file ({fault})") from None
    data = _as_utf8(data, source)
    if not data or data.isspace():
        raise ValueError(f"{source}: the file is empty; expected a header and rows")
    if data.startswith(b"PK\x03\x04"):
        raise ValueError(
            f"{source}: this is a zip archive, such as an Excel workbook; expected a table, such "
            "as the sheet saved as CSV (UTF-8)"
        )
    return source, data


def _as_utf8(data: bytes, source: str) -> bytes:
    """The text in UTF-8 without a byte order mark; bytes without such a mark are left as they are.

    UTF-16 is what spreadsheets save as 'Unicode text'.
    """
    if data.startswith(codecs.BOM_UTF8):
        return data.removeprefix(codecs.BOM_UTF8)
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the former begins like UTF-16
        raise ValueError(f"{source}: this is UTF-32 text; {_EXPECTED_TEXT}")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode()
        except UnicodeDecodeError as fault:
            raise ValueError(
                f"{source}: truncated or damaged UTF-16 text ({fault.reason} at byte "
                f"{fault.start:,})"
            ) from None
    start = data[:64]  # every other byte of Latin text in UTF-16 is zero
    if len(start) > 3 and any(start[::2]) != any(start[1::2]):
        raise ValueError(f"{source}: this is UTF-16 text without its mark; {_EXPECTED_TEXT}")
    return data


def arrow_copy(data: bytes) -> pa.Buffer:
    """A copy of the bytes in Arrow's own memory, for Arrow's readers.

    The threads of a reader may release their input late, even while Python shuts down. Releasing
    memory of a Python object requires the interpreter's lock, and a thread that requests the lock
    at that moment crashes the process.
    """
    buffer = pa.allocate_buffer(len(data))
    np.frombuffer(buffer, dtype=np.uint8)[:] = np.frombuffer(data, dtype=np.uint8)
    return buffer


@dataclass(frozen=True)
class DelimitedText:
    r"""A table of delimited text, quoted as in RFC 4180, with a header or with given names.

    Args:
        source: name of the file in messages.
        data: content of the file, in UTF-8 without a byte order mark.
        delimiter: character between fields.
        raw_cells: whether to keep the apostrophe before text that a spreadsheet would run.
        names: names of all columns of a file without a header; None if row 1 is the header.
        skips_row_1: whether row 1 is left out although the columns are named, being a header.

    Examples:
        >>> from bayescrowd.io.file_tables import DelimitedText
        >>> table = DelimitedText("x.csv", b"task,worker,label\n7,007,NA\n8,008,\n", ",")
        >>> table.read(["task", "worker", "label"]).to_pydict()
        {'task': [7, 8], 'worker': ['007', '008'], 'label': ['NA', None]}
    """

    source: str
    data: bytes = field(repr=False)
    delimiter: str
    raw_cells: bool = False
    names: tuple[str, ...] | None = None
    skips_row_1: bool = False

    @cached_property
    def first_row(self) -> list[str]:
        """The fields of the first row, which is the header unless the columns have given names."""
        try:
            _, fields = next(self._records())
        except csv.Error as fault:
            raise ValueError(
                f"{self.source}: row 1 is not the header of a table ({fault})"
            ) from None
        for text in fields:
            self._refuse_undecodable(text, 1, None)
        return fields

    @cached_property
    def columns(self) -> list[str]:
        """The given names of the columns, or the fields of the header."""
        if self.names is None:
            return self.first_row
        if len(self.first_row) != len(self.names):
            raise ValueError(
                f"{self.source}: row 1 has {quantity(len(self.first_row), 'field')}, but "
                f"{argument('columns')} names {quantity(len(self.names), 'column')}; expected a "
                "name for each field"
            )
        return list(self.names)

    def read(self, names: Sequence[str]) -> pa.Table:
        """These columns, dictionary-encoded."""
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if self.columns.count(name) > 1:
                place = "row 1" if self.names is None else argument("columns")
                raise ValueError(
                    f"{self.source}: {place}: two columns are named {name!r}; expected one"
                )
        if self.data.count(b'"') % 2:
            self._refuse_open_quote()
        try:
            table = self._parse(wanted)
        except pa.ArrowInvalid as fault:
            self._refuse_rows(wanted)
            raise ValueError(f"{self.source}: {str(fault).splitlines()[0][:200]}") from None
        if self.skips_row_1:
            table = table.slice(1)
        columns = {name: integers_if_canonical(table[name]) for name in wanted}
        if not self.raw_cells:
            columns = {name: unquote_column(column) for name, column in columns.items()}
        return pa.table(columns)

    def row_number(self, position: int) -> int:
        """Number of the row at a position, counting a header as row 1 and blank lines too."""
        n_before = position + (self.names is None or self.skips_row_1)
        try:
            return next(islice(self._records(), n_before, None))[0]
        except csv.Error:  # a field beyond the csv module's limit; assume that no line is blank
            return n_before + 1

    def _parse(self, names: list[str], block_size: int = _BLOCK_SIZE) -> pa.Table:
        """These columns as text, with null for empty fields."""
        try:
            return pyarrow.csv.read_csv(
                pa.BufferReader(arrow_copy(self.data)),
                read_options=pyarrow.csv.ReadOptions(
                    block_size=block_size,
                    column_names=self.names,
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=b'"' in self.data
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.large_string()),
                    include_columns=names,
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid as fault:
            whole = min(len(self.data), 2**31 - 1)
            if "straddling" not in str(fault) or block_size >= whole:
                raise
            return self._parse(names, whole)  # a row is longer than two blocks

    def _records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Rows with their numbers; bytes that are not UTF-8 become lone surrogates."""
        text = io.TextIOWrapper(
            io.BytesIO(self.data), encoding="utf-8", errors="surrogateescape", newline=""
        )
        reader = csv.reader(text, delimiter=self.delimiter, strict=strict)
        for number, fields in enumerate(reader, 1):
            if fields:
                yield number, fields

    def _refuse_rows(self, names: list[str]) -> None:
        """Raise for the first row of wrong length or, in these columns, with bytes not in UTF-8."""
        places = {self.columns.index(name): name for name in names}
        with contextlib.suppress(csv.Error):  # a field beyond the limit: no row can be named
            for number, fields in self._records():
                if len(fields) != len(self.columns):
                    head = "the header" if self.names is None else argument("columns")
                    raise ValueError(
                        f"{self.source}: row {number} does not match {head}: expected "
                        f"{len(self.columns)} fields, found {len(fields)}"
                    )
                for place, name in places.items():
                    self._refuse_undecodable(fields[place], number, name)
            if number == 1:
                raise ValueError(f"{self.source}: the table has no rows below its header")

    def _refuse_undecodable(self, field: str, number: int, column: str | None) -> None:
        if stray := re.search("[\udc80-\udcff]", field):
            place = f"row {number}" + (f", column {column!r}" if column is not None else "")
            raise ValueError(
                f"{self.source}: {place}: byte 0x{ord(stray[0]) & 0xFF:02x} is not UTF-8; "
                f"{_EXPECTED_TEXT}"
            )

    def _refuse_open_quote(self) -> None:
        """Raise if a quoted field runs to the end of the file, since it then contains rows."""
        last = 0
        try:
            for number, _ in self._records(strict=True):
                last = number
        except csv.Error as fault:
            if "unexpected end" in str(fault):
                raise ValueError(
                    f"{self.source}: row {last + 1}: a quoted field is never closed"
                ) from None


@dataclass(frozen=True)
class JsonLines:
    """A table with one JSON object per line; a key that an object lacks is a missing value."""

    source: str
    data: bytes = field(repr=False)

    @cached_property
    def columns(self) -> list[str]:
        """The keys of the first 1,000 objects."""
        objects = islice(self._objects(), _SAMPLE)
        return list(dict.fromkeys(key for _, row in objects for key in row))

    @cached_property
    def all_columns(self) -> list[str]:
        """The keys of all objects."""
        return list(dict.fromkeys(key for _, row in self._objects() for key in row))

    def read(self, names: Sequence[str]) -> pd.DataFrame:
        """The values of these keys, in columns of Python objects."""
        values: dict[str, list[Any]] = {name: [] for name in names}
        for _, row in self._objects():
            for name, column in values.items():
                column.append(row.get(name))
        return pd.DataFrame(values, dtype=object)

    def row_number(self, position: int) -> int:
        """Number of the line at a position, counting blank lines too."""
        return next(islice(self._lines(), position, None))[0]

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(io.BytesIO(self.data), 1):
            if not line.isspace():
                yield number, line

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in self._lines():
            row = parse_json(line.rstrip(), f"{self.source}: row {number}")
            if not isinstance(row, dict):
                raise ValueError(
                    f"{self.source}: row {number}: found a {type(row).__name__}; expected one "
                    "JSON object per line"
                )
            yield number, row


@dataclass(frozen=True)
class Parquet:
    """A table in a Parquet file, including an index that pandas wrote."""

    source: str
    data: bytes = field(repr=False)

    @cached_property
    def columns(self) -> list[str]:
        """The names in the file's schema."""
        return list(self._file.schema_arrow.names)

    def read(self, names: Sequence[str]) -> pa.Table:
        """These columns with their types."""
        try:
            return self._file.read(columns=list(dict.fromkeys(names)))
        except (pa.ArrowException, OSError) as fault:
            raise self._damage(fault) from None

    def row_number(self, position: int) -> int:
        """Number of the row at a position, counting from 1."""
        return position + 1

    @cached_property
    def _file(self) -> Any:
        from pyarrow.parquet import ParquetFile  # other formats are read without it

        try:
            return ParquetFile(pa.BufferReader(arrow_copy(self.data)))
        except (pa.ArrowException, OSError) as fault:
            raise self._damage(fault) from None

    def _damage(self, fault: Exception) -> ValueError:
        reason = str(fault).splitlines()[0]
        return ValueError(f"{self.source}: truncated or damaged Parquet file ({reason})")


@dataclass(frozen=True)
class JsonArray:
    """A table of parsed, flat JSON objects; a key that an object lacks is a missing value."""

    source: str
    objects: list[dict[str, Any]] = field(repr=False)

    @cached_property
    def columns(self) -> list[str]:
        """The keys of all objects."""
        return list(dict.fromkeys(key for row in self.objects for key in row))

    def read(self, names: Sequence[str]) -> pd.DataFrame:
        """The values of these keys, in columns of Python objects."""
        values = {name: [row.get(name) for row in self.objects] for name in names}
        return pd.DataFrame(values, dtype=object)

    def row_number(self, position: int) -> int:
        """Number of the object at a position, counting from 1."""
        return position + 1


FileTable = DelimitedText | JsonLines | JsonArray | Parquet
"""Every table has `source`, `columns`, `read(names)` and `row_number(position)`."""


def parse_json(text: bytes, place: str, *, unique_keys: bool = False) -> Any:
    """Parse JSON; error messages begin with `place`.

    Args:
        text: the JSON text.
        place: name of the file, and of the row where it has rows.
        unique_keys: whether to refuse a key that an object holds twice, of which the last value
            counts otherwise.
    """
    try:
        return json.loads(text.decode(), object_pairs_hook=_unique if unique_keys else None)
    except _RepeatedKeyError as fault:
        raise ValueError(
            f"{place}: an object holds the key {fault.args[0]!r} twice; expected it once"
        ) from None
    except UnicodeDecodeError as fault:
        stray = text[fault.start]
        raise ValueError(
            f"{place}: byte 0x{stray:02x} is not UTF-8; expected JSON in UTF-8"
        ) from None
    except json.JSONDecodeError as fault:
        line = f"line {fault.lineno}, " if b"\n" in text else ""
        raise ValueError(
            f"{place}: invalid JSON at {line}character {fault.colno} ({fault.msg})"
        ) from None
    except RecursionError:
        raise ValueError(f"{place}: arrays or objects are nested too deeply to be read") from None
    except ValueError:  # Python refuses very long integers, which take quadratic time
        raise ValueError(
            f"{place}: an integer has more than {sys.get_int_max_str_digits():,} digits; expected "
            "a shorter integer, or text in quotes"
        ) from None


class _RepeatedKeyError(Exception):
    """A JSON object holds a key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def integers_if_canonical(column: pa.ChunkedArray) -> pa.Array:
    """The column, dictionary-encoded, as integers if writing those gives the same text."""
    try:
        integers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        integers = None
    is_canonical = integers is not None and integers.cast(column.type).equals(column)
    return (integers if is_canonical else column).combine_chunks().dictionary_encode()
