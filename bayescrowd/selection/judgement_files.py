r"""Reading judgements, targets and costs from files: CSV, TSV, JSON lines or Parquet.

Ids are compared as they are written, so that the 7 of one file is the '7' of another.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

import pandas as pd

from bayescrowd.file_tables import (
    DelimitedText,
    FileTable,
    JsonLines,
    Parquet,
    file_contents,
)
from bayescrowd.selection.judgements import Judgements
from bayescrowd.vocabulary import listed, plain

__all__ = ["read_costs", "read_judgements", "read_targets"]

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
) -> Judgements:
    r"""Read a table with a row per judgement.

    Args:
        path: the file; '-' reads standard input.
        object: name of the column of objects; without it the only one with a usual name. The
            other columns likewise.
        attribute: of attributes.
        value: of judgements.
        worker: of workers, which need not be there.

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
    table = _table(path)
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
    path: str | os.PathLike[str], *, object: str | None = None, target: str | None = None
) -> pd.Series:
    """Read a table with a row per object: its target, indexed by the object's id as text."""
    return _by_id(path, ("object", object), ("target", target))


def read_costs(
    path: str | os.PathLike[str], *, attribute: str | None = None, cost: str | None = None
) -> pd.Series:
    """Read a table with a row per attribute: the cost of one judgement, indexed by attribute."""
    costs = _by_id(path, ("attribute", attribute), ("cost", cost))
    numbers = pd.to_numeric(costs, errors="coerce")
    if numbers.isna().any():
        name = numbers.index[numbers.isna()][0]
        raise ValueError(f"{path}: the cost of {name!r} is {plain(costs[name])!r}, no number")
    return numbers


def _by_id(
    path: str | os.PathLike[str], id_: tuple[str, str | None], value: tuple[str, str | None]
) -> pd.Series:
    table = _table(path)
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
    return pd.Series(frame[column].to_numpy(dtype=object), index=pd.Index(ids), name=value[0])


def _table(path: str | os.PathLike[str]) -> FileTable:
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
    return DelimitedText(source, data, delimiter)


def _column(table: FileTable, role: str, given: str | None, *, is_optional: bool = False) -> Any:
    """The column given, else the first usual name of the role."""
    columns = table.columns
    if given is not None:
        if given in columns:
            return given
        raise ValueError(
            f"{table.source}: no column {given!r} for the {role}; the columns are {listed(columns)}"
        )
    simple = {column.strip().casefold(): column for column in reversed(columns)}
    found = next((simple[name] for name in _ROLES[role] if name in simple), None)
    if found is None and not is_optional:
        raise ValueError(
            f"{table.source}: no column for the {role}; the columns are {listed(columns)}; "
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


def _written(value: Any) -> str:
    """An id as text: 7.0 is '7', since integers next to a missing value are floats."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)
