r"""Reading judgements, targets and costs from files: CSV, TSV, JSON lines or Parquet.

Ids are compared as they are written, so that the 7 of one file is the '7' of another.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from bayescrowd.data.judgements import Judgements
from bayescrowd.data.vocabulary import comma_list, plain
from bayescrowd.io.file_tables import (
    DelimitedText,
    FileTable,
    JsonLines,
    Parquet,
    file_contents,
)

__all__ = ["read_costs", "read_judgements", "read_targets"]

MOST_SHOWN = 60
"""Characters of a wrong entry that a message repeats."""

_ROLES = {
    "object": ("object", "item", "task", "instance", "id"),
    "attribute": ("attribute", "feature", "question"),
    "value": ("value", "judgement", "judgment", "rating", "answer", "response"),
    "worker": ("worker", "annotator", "rater", "judge", "user"),
    "target": ("target", "y", "truth", "value"),
    "cost": ("cost", "price"),
}
"""Usual names of a column, best first."""


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
        object: name of the column of objects; without it the only one with a usual name. The
            other columns likewise.
        attribute: of attributes.
        value: of judgements.
        worker: of workers, which need not be there.
        raw_cells: keep the apostrophe before text of a CSV or TSV file that a spreadsheet would
            run.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is absent or a judgement is no number; the message names file, row
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
        frame[name] = frame[name].map(_written, na_action="ignore")
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
        object: name of the column of objects; without it the only one with a usual name.
        target: of targets.
        objects: those that need a target. Of others it may be blank.
        raw_cells: as for `read_judgements`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is absent, an object is listed twice, or a target is missing or no
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
        attribute: name of the column of attributes; without it the only one with a usual name.
        cost: of costs.
        attributes: those of the judgements, each of which needs a cost; there may be no others.
        raw_cells: as for `read_judgements`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is absent, an attribute is unknown or listed twice, or a cost is
            missing or no number above 0; the message names file, row, column and value.
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
                f"{costs.place(place, costs.key)}: {costs.numbers.index[place]!r} is no attribute "
                f"of the judgements; expected one of {comma_list(attributes)}"
            )
        _check_complete(costs, attributes, "attribute")
    return costs.numbers


class _Numbers(NamedTuple):
    """A column of numbers by id, and where it came from."""

    numbers: pd.Series
    """NaN where the entry is blank."""
    entries: pd.Series
    """As they are in the file."""
    table: FileTable
    key: str
    """Name of the column of ids."""
    column: str
    """Name of the column of numbers."""
    expected: str
    """What an entry has to be."""

    def place(self, position: int, column: str) -> str:
        return f"{self.table.source}: row {self.table.row_number(position)}, column {column!r}"

    def refuse(self, position: int) -> NoReturn:
        entry = self.entries.iloc[position]
        text = "a blank" if _is_blank(entry) else repr(plain(entry))
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
        raise ValueError(
            f"{self.place(position, self.column)}: expected {self.expected}, not {shown}"
        )


def _check_complete(found: _Numbers, wanted: pd.Index, role: str) -> None:
    """Raise ValueError unless every id that is wanted has a number."""
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
    missing = frame[key].isna().to_numpy()
    if missing.any():
        row = table.row_number(int(missing.argmax()))
        raise ValueError(f"{table.source}: row {row}, column {key!r}: the {id_[0]} is missing")
    ids = frame[key].map(_written)
    if ids.duplicated().any():
        position = int(ids.duplicated().to_numpy().argmax())
        raise ValueError(
            f"{table.source}: row {table.row_number(position)}: {id_[0]} {ids[position]!r} is "
            "listed twice"
        )
    entries = pd.Series(frame[column].to_numpy(dtype=object), index=pd.Index(ids), name=value[0])
    numbers = pd.to_numeric(entries, errors="coerce").astype(float)
    found = _Numbers(numbers, entries, table, key, column, expected)
    is_right = np.isfinite(numbers.to_numpy()) | entries.map(_is_blank).to_numpy(dtype=bool)
    if not is_right.all():
        found.refuse(int(is_right.argmin()))
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
    """The column given, else the first usual name of the role."""
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
    """These columns as Python objects, missing ones None or NaN."""
    read = table.read(names)
    if isinstance(read, pd.DataFrame):
        return read[list(dict.fromkeys(names))].copy()
    columns = {name: pd.Series(read[name].to_pylist(), dtype=object) for name in names}
    return pd.DataFrame(columns)


def _is_blank(entry: Any) -> bool:
    return not entry.strip() if isinstance(entry, str) else bool(pd.isna(entry))


def _written(value: Any) -> str:
    """An id as text: 7.0 is '7', since integers next to a missing value are floats."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)
