"""Formats of files of judgements: recognised by extension and content, and read as rows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Literal, NamedTuple

from bayescrowd.data.vocabulary import argument, comma_list
from bayescrowd.io.column_names import (
    ExportedLabels,
    find_column,
    guess_note,
    looks_like_header,
)
from bayescrowd.io.file_tables import (
    DelimitedText,
    FileTable,
    JsonArray,
    JsonLines,
    Parquet,
    file_contents,
    parse_json,
)
from bayescrowd.io.judge_tables import (
    is_nested,
    is_wide,
    may_be_wide,
    nested_judgements,
    wide_judgements,
)
from bayescrowd.io.platform_exports import (
    is_mturk,
    is_toloka,
    label_studio_judgements,
    mturk_judgements,
    toloka_judgements,
)

__all__ = ["Columns", "Format", "file_table", "guess_format", "read_rows", "with_names"]

Format = Literal[
    "csv",
    "tsv",
    "jsonl",
    "parquet",
    "json",
    "wide",
    "nested",
    "mturk",
    "label-studio",
    "toloka",
]

_EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_BY_CONTENT = ("", ".txt", ".json")
"""Extensions of files whose format follows from their content."""


class Columns(NamedTuple):
    """Names of columns that the user gives; None if the file has to tell."""

    task: str | None = None
    worker: str | None = None
    label: str | None = None
    names: tuple[str, ...] | None = None
    """Names of all columns of a file without a header."""

    @property
    def roles(self) -> tuple[str | None, str | None, str | None]:
        """The columns of the task, the worker and the label."""
        return self.task, self.worker, self.label


def read_rows(
    path: str | os.PathLike[str], format: Format | None, columns: Columns, *, raw_cells: bool
) -> tuple[str, ExportedLabels]:
    """The file's name in messages and its judgements, one per row.

    Args:
        path: path of the file; '-' is standard input.
        format: format of the file; None to recognise it.
        columns: names of the columns.
        raw_cells: whether to keep the apostrophe before text that a spreadsheet would run.
    """
    source, data = file_contents(path)
    has_header = columns.names is None
    chosen = guess_format(path, source, data, has_header=has_header) if format is None else format
    if not has_header and chosen in ("label-studio", "nested", "mturk", "toloka"):
        raise ValueError(
            f"{source}: {argument('columns')} names the columns of a CSV or TSV file without a "
            f"header; the format {chosen} has names of its own"
        )
    if chosen == "label-studio":
        return source, label_studio_judgements(source, data, *columns.roles)
    if chosen == "nested":
        return source, nested_judgements(source, data, *columns.roles)
    if chosen in ("mturk", "toloka"):
        read = mturk_judgements if chosen == "mturk" else toloka_judgements
        export = _delimited_text(chosen, source, data, raw_cells=raw_cells)
        return source, read(export, *columns.roles)
    container = _container(path, data) if chosen == "wide" else chosen
    table = file_table(container, source, data, raw_cells=raw_cells)
    notes: tuple[str, ...] = ()
    if columns.names is not None:
        table, notes = with_names(table, columns.names)
    is_guessed = format is None and is_wide(table, *columns.roles)
    if chosen == "wide" or is_guessed:
        rows = wide_judgements(table, *columns.roles)
        if is_guessed:
            notes += (_wide_note(source, rows),)
    else:
        rows = _long_rows(table, columns)
    return source, rows._replace(notes=notes + rows.notes)


def with_names(table: FileTable, names: Sequence[str]) -> tuple[FileTable, tuple[str, ...]]:
    """The table with these names of its columns, and what there is to say about its first row.

    Args:
        table: a table of delimited text whose first row was taken for its header.
        names: names of all columns of a file without a header.

    Raises:
        ValueError: the file is not delimited text, has another number of columns, or has a header
            with these names in other places.
    """
    naming = argument("columns")
    if not isinstance(table, DelimitedText):
        raise ValueError(
            f"{table.source}: {naming} names the columns of a CSV or TSV file without a header; "
            "this file is neither"
        )
    named = replace(table, names=tuple(names))
    if not looks_like_header(named.first_row, named.columns):
        return named, ()
    note = (
        f"{table.source}: left out row 1 ({comma_list(named.first_row)}), which is a header; the "
        f"columns have the names that {naming} gives them"
    )
    places = {name.casefold(): place for place, name in enumerate(named.columns)}
    moved = [
        field
        for place, field in enumerate(named.first_row)
        if places.get(field.strip().casefold(), place) != place
    ]
    if moved:
        raise ValueError(
            f"{table.source}: row 1 is a header and has {moved[0]!r} in another place than "
            f"{naming}; leave {naming} out to read the names from the file"
        )
    return replace(named, skips_row_1=True), (note,)


def guess_format(
    path: str | os.PathLike[str], source: str, data: bytes, *, has_header: bool = True
) -> Format:
    """The format according to the extension and the content, or to the content alone.

    A wide table is recognised later, by its columns: here it has the format of its file.

    Args:
        path: path of the file.
        source: name of the file in messages.
        data: content of the file.
        has_header: whether a table of delimited text has a header, by which the exports of
            platforms are recognised.
    """
    extension, guess = _extension(path), _container(path, data)
    if guess == "parquet":
        return guess
    if extension not in (*_EXTENSIONS, *_BY_CONTENT):
        raise ValueError(
            f"{source}: unknown extension {extension!r}; expected {', '.join(_EXTENSIONS)}, "
            f".txt, .json (text also with .gz), or {argument('format')} to name the format"
        )
    if extension in _BY_CONTENT:
        if guess == "json" and not _is_array_of_records(data):
            return "label-studio"
        if guess == "jsonl" and is_nested(data):
            return "nested"
        if guess == "csv" and extension == ".json":
            raise ValueError(f"{source}: expected a JSON array, or one JSON object per line")
    if guess in ("csv", "tsv") and has_header:
        columns = file_table(guess, source, data).columns
        if is_mturk(columns):
            return "mturk"
        if is_toloka(columns):
            return "toloka"
    return guess


def file_table(format: Format, source: str, data: bytes, *, raw_cells: bool = False) -> FileTable:
    """The table in a file, whatever its rows mean."""
    if format == "parquet":
        return Parquet(source, data)
    if format == "jsonl":
        return JsonLines(source, data)
    if format == "json":
        return _json_array(source, data)
    return _delimited_text(format, source, data, raw_cells=raw_cells)


def _container(path: str | os.PathLike[str], data: bytes) -> Format:
    """What kind of table a file holds: its extension decides, or else its first character."""
    if data.startswith(b"PAR1"):
        return "parquet"
    start = data[:4096].lstrip()[:1]
    by_content: Format = "json" if start == b"[" else "jsonl" if start == b"{" else "csv"
    return _EXTENSIONS.get(_extension(path), by_content)


def _extension(path: str | os.PathLike[str]) -> str:
    return PurePath(PurePath(path).name.lower().removesuffix(".gz")).suffix


def _is_array_of_records(data: bytes) -> bool:
    """Whether the first entry of a JSON array is an object other than those of Label Studio."""
    text = data.decode(errors="replace").lstrip()[1:].lstrip()
    try:
        first, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(first, dict):
        return False
    return "annotations" not in first and not {"id", "annotator"} <= first.keys()


def _json_array(source: str, data: bytes) -> JsonArray:
    rows = parse_json(data, source)
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{source}: expected a JSON array with one object per judgement")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ValueError(
                f"{source}: row {number} of the array: found a {type(row).__name__}; expected one "
                "object per judgement"
            )
    return JsonArray(source, rows)


def _delimited_text(format: Format, source: str, data: bytes, *, raw_cells: bool) -> DelimitedText:
    header = re.match(rb"[\r\n]*([^\r\n]*)", data)[1]  # type: ignore[index]
    candidates = {"tsv": "\t", "toloka": "\t,;"}.get(format, ",;\t ")
    delimiter = next((d for d in candidates if d.encode() in header), candidates[0])
    return DelimitedText(source, data, delimiter, raw_cells)


def _long_rows(table: FileTable, columns: Columns) -> ExportedLabels:
    if may_be_wide(table, *columns.roles):
        raise ValueError(
            f"{table.source}: no column for the worker and none for the label; the columns are "
            f"{comma_list(table.columns)}; expected {argument('worker')} and {argument('label')} "
            f"to name them, or {argument('format')} wide if each of the others holds the labels of "
            "one judge"
        )
    task = find_column(table, "task", columns.task)
    worker = find_column(table, "worker", columns.worker)
    label = find_column(table, "label", columns.label)
    is_text = isinstance(table, DelimitedText)
    rows = table.read([task, worker, label])
    found = {"task": task, "worker": worker, "label": label}
    notes = guess_note(table.source, found, columns._asdict())
    return ExportedLabels(rows, task, worker, label, table.row_number, is_text=is_text, notes=notes)


def _wide_note(source: str, rows: ExportedLabels) -> str:
    workers = rows.frame["worker"].unique()
    return (
        f"{source}: read as a wide table with a row per task and the labels of one worker in each "
        f"of the columns {comma_list(workers)} ({argument('format')} names another format)"
    )
