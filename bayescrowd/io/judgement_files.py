r"""Reading judgements, targets and costs from files: CSV, TSV, JSON lines or Parquet.

Ids are compared as they are written, so that 7 in one file is the same as '7' in another.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn

import pandas as pd

from bayescrowd.data.columns import is_blank, parse_numbers, refuse_missing
from bayescrowd.data.judgements import Judgements
from bayescrowd.data.text import shorten
from bayescrowd.data.vocabulary import Where, comma_list, plain, text_of
from bayescrowd.io.file_tables import (
    DelimitedText,
    FileTable,
    JsonLines,
    Parquet,
    file_contents,
)

__all__ = ["read_costs", "read_judgements", "read_targets"]

MOST_SHOWN = 60
"""Number of characters of a wrong entry that a message repeats."""

_ROLES = {
    "object": ("object", "item", "task", "instance", "id"),
    "attribute": ("attribute", "feature", "question"),
    "value": ("value", "judgement", "judgment", "rating", "answer", "response"),
    "worker": ("worker", "annotator", "rater", "judge", "user"),
    "target": ("target", "y", "truth", "value"),
    "cost": ("cost", "price"),
}
"""Usual names of the column of each role, best first."""


def read_judgements(
    path: str | os.PathLike[str],
    *,
    object: str | None = None,
    attribute: str | None = None,
    value: str | None = None,
    worker: str | None = None,
    raw_cells: bool = False,
) -> Judgements:
    r"""Read a table with a row per judgement.

    Args:
        path: the file; '-' reads standard input.
        object: name of the column of objects; by default, here and below, the first column with a
            usual name.
        attribute: name of the column of attributes.
        value: name of the column of judgements.
        worker: name of the column of workers, which is optional.
        raw_cells: whether to keep the apostrophe before text of a CSV or TSV file that a
            spreadsheet would run.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is absent, or a judgement is not a number; the message names file, row
            and column.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "judgements.csv"
        >>> _ = path.write_text("object,attribute,value\n7,tall,1\n7,tall,0\n8,tall,1\n")
        >>> read_judgements(path)
        Judgements(3 judgements: 2 objects, 1 attributes)
    """
    table = _table(path, raw_cells=raw_cells)
    names = [
        _column(table, role, given)
        for role, given in (("object", object), ("attribute", attribute), ("value", value))
    ]
    workers = _column(table, "worker", worker, is_optional=True)
    frame = _frame(table, [*names, *([] if workers is None else [workers])])
    for name in {*names[:2]}:
        frame[name] = frame[name].map(text_of, na_action="ignore")
    own, asked, judged = names
    return Judgements.from_frame(
        frame, own, asked, judged, workers, source=table.source, row_number=table.row_number
    )


def read_targets(
    path: str | os.PathLike[str],
    *,
    object: str | None = None,
    target: str | None = None,
    objects: pd.Index | None = None,
    raw_cells: bool = False,
) -> pd.Series:
    """Read a table with a row per object: its target, a number, indexed by the object's id as text.

    Args:
        path: the file; '-' reads standard input.
        object: name of the column of objects; by default the first column with a usual name.
        target: name of the column of targets; by default the first column with a usual name.
        objects: objects that need a target; the target of others may be blank.
        raw_cells: see `read_judgements`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is absent, an object is listed twice, or a target is missing or not a
            finite number; the message names file, row, column and value.
    """
    targets = _by_id(
        path, ("object", object), ("target", target), "a finite number", raw_cells=raw_cells
    )
    if objects is not None:
        _check_complete(targets, objects, "object that was judged")
    return targets.numbers


def read_costs(
    path: str | os.PathLike[str],
    *,
    attribute: str | None = None,
    cost: str | None = None,
    attributes: pd.Index | None = None,
    raw_cells: bool = False,
) -> pd.Series:
    """Read a table with a row per attribute: the cost of one judgement, indexed by attribute.

    Args:
        path: the file; '-' reads standard input.
        attribute: name of the column of attributes; by default the first column with a usual name.
        cost: name of the column of costs; by default the first column with a usual name.
        attributes: attributes of the judgements, each of which needs a cost; no others may have
            one.
        raw_cells: see `read_judgements`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is absent, an attribute is unknown or listed twice, or a cost is
            missing or not above 0; the message names file, row, column and value.
    """
    costs = _by_id(
        path, ("attribute", attribute), ("cost", cost), "a number above 0", raw_cells=raw_cells
    )
    wrong = ~(costs.numbers > 0).to_numpy()
    if wrong.any():
        costs.refuse(int(wrong.argmax()))
    if attributes is not None:
        unknown = ~costs.numbers.index.isin(attributes)
        if unknown.any():
            place = int(unknown.argmax())
            raise ValueError(
                f"{costs.place(place, costs.key)}: {costs.numbers.index[place]!r} is not an "
                f"attribute of the judgements; expected one of {comma_list(attributes)}"
            )
        _check_complete(costs, attributes, "attribute")
    return costs.numbers


class _Numbers(NamedTuple):
    """A column of numbers by id, and where it came from."""

    numbers: pd.Series
    """The numbers by id, NaN where the entry is blank."""
    entries: pd.Series
    """The entries as they are in the file."""
    table: FileTable
    """The file."""
    key: str
    """Name of the column of ids."""
    column: str
    """Name of the column of numbers."""
    expected: str
    """What an entry must be, in words."""

    def place(self, position: int, column: str) -> str:
        return f"{self.table.source}: row {self.table.row_number(position)}, column {column!r}"

    def refuse(self, position: int) -> NoReturn:
        entry = self.entries.iloc[position]
        text = "a blank" if is_blank(entry) else shorten(repr(plain(entry)), MOST_SHOWN)
        raise ValueError(
            f"{self.place(position, self.column)}: expected {self.expected}, not {text}"
        )


def _check_complete(found: _Numbers, wanted: pd.Index, role: str) -> None:
    """Raise ValueError unless every wanted id has a number."""
    missing = wanted[found.numbers.reindex(wanted).isna()]
    if len(missing) == 0:
        return
    name, first = found.numbers.name, plain(missing[0])
    row = found.numbers.index.get_indexer(pd.Index([missing[0]], dtype=object))[0]
    where = found.table.source if row < 0 else found.place(int(row), found.column)
    raise ValueError(
        f"{where}: the {name} of {role.split()[0]} {first!r} is missing ({len(missing):,} in all); "
        f"expected {found.expected} for every {role}"
    )


def _by_id(
    path: str | os.PathLike[str],
    id_: tuple[str, str | None],
    value: tuple[str, str | None],
    expected: str,
    *,
    raw_cells: bool,
) -> _Numbers:
    table = _table(path, raw_cells=raw_cells)
    key = _column(table, *id_)
    column = _column(table, *value)
    frame = _frame(table, [key, column])
    refuse_missing(frame[key], key, id_[0], Where(table.source, table.row_number))
    ids = frame[key].map(text_of)
    if ids.duplicated().any():
        position = int(ids.duplicated().to_numpy().argmax())
        raise ValueError(
            f"{table.source}: row {table.row_number(position)}: {id_[0]} {ids[position]!r} is "
            "listed twice"
        )
    entries = pd.Series(frame[column].to_numpy(dtype=object), index=pd.Index(ids), name=value[0])
    numbers, is_wrong = parse_numbers(entries)
    by_id = pd.Series(numbers, index=entries.index, name=entries.name)
    found = _Numbers(by_id, entries, table, key, column, expected)
    if is_wrong.any():
        found.refuse(int(is_wrong.argmax()))
    return found


def _table(path: str | os.PathLike[str], *, raw_cells: bool) -> FileTable:
    source, data = file_contents(path)
    extension = PurePath(PurePath(path).name.lower().removesuffix(".gz")).suffix
    if data.startswith(b"PAR1"):
        return Parquet(source, data)
    if extension in (".jsonl", ".ndjson") or data[:4096].lstrip().startswith(b"{"):
        return JsonLines(source, data)
    if extension not in ("", ".csv", ".tsv", ".tab", ".txt"):
        raise ValueError(
            f"{source}: unknown extension {extension!r}; expected .csv, .tsv, .jsonl (also with "
            ".gz) or .parquet"
        )
    header = data.lstrip(b"\r\n").split(b"\n", 1)[0]
    candidates = "\t" if extension in (".tsv", ".tab") else ",;\t"
    delimiter = next((d for d in candidates if d.encode() in header), candidates[0])
    return DelimitedText(source, data, delimiter, raw_cells)


def _column(table: FileTable, role: str, given: str | None, *, is_optional: bool = False) -> Any:
    """The given column, or else the first column with a usual name of the role."""
    columns = table.columns
    if given is not None:
        if given in columns:
            return given
        raise ValueError(
            f"{table.source}: no column {given!r} for the {role}; the columns are "
            f"{comma_list(columns)}"
        )
    simple = {column.strip().casefold(): column for column in reversed(columns)}
    found = next((simple[name] for name in _ROLES[role] if name in simple), None)
    if found is None and not is_optional:
        raise ValueError(
            f"{table.source}: no column for the {role}; the columns are {comma_list(columns)}; "
            f"expected one of {', '.join(_ROLES[role])}, or the option that names it"
        )
    return found


def _frame(table: FileTable, names: list[str]) -> pd.DataFrame:
    """These columns as Python objects; missing entries are None or NaN."""
    read = table.read(names)
    if isinstance(read, pd.DataFrame):
        return read[list(dict.fromkeys(names))].copy()
    columns = {name: pd.Series(read[name].to_pylist(), dtype=object) for name in names}
    return pd.DataFrame(columns)
