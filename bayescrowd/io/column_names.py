"""Columns found by their usual names, such as task, item or question_id for the task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bayescrowd.data.vocabulary import argument, comma_list

__all__ = ["COLUMN_NAMES", "ExportedLabels", "find_column", "is_known_label", "usual_columns"]

COLUMN_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "task": (("task",), ("item", "question", "hit", "example", "instance", "object")),
    "worker": (
        ("worker",),
        ("annotator", "rater", "observer", "performer", "labeler", "labeller", "coder", "user"),
        ("judge",),
    ),
    "label": (
        ("label",),
        ("answer", "response", "rating", "class", "judgment", "judgement"),
        ("verdict",),
    ),
    "truth": (
        ("truth", "gold", "truelabel", "groundtruth", "goldlabel"),
        ("label",),
        ("class", "answer"),
    ),
}
"""Usual column names for each role, best first, compared without case, '_', '-', ' ' and 'id'."""


@runtime_checkable
class NamedColumns(Protocol):
    """What is known about the columns of any table in a file."""

    @property
    def source(self) -> str:
        """Name of the file in messages."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        ...


class ExportedLabels(NamedTuple):
    """A table of judgements and the names of its columns."""

    frame: Any
    """Table of pandas or pyarrow with one row per judgement."""
    task: str
    """Name of the column of task ids."""
    worker: str
    """Name of the column of worker ids."""
    label: str
    """Name of the column of labels."""
    row_number: Callable[[int], int]
    """The row number in the file of the row at a position in the table."""
    is_text: bool = False
    """Whether the labels come from a file without types, in which integers are text."""
    blank_is_unasked: bool = False
    """Whether a missing label means that the worker was never asked, not that none was given."""


def find_column(
    table: NamedColumns, role: str, given: str | None = None, *, option: str | None = None
) -> str:
    """The given column, or else the only one with a usual name for its role (`COLUMN_NAMES`).

    Args:
        table: table in which to find the column.
        role: key of `COLUMN_NAMES`.
        given: column named by the user, if any.
        option: name of the command-line option for the column; by default `--role`.

    Raises:
        ValueError: there is no such column, or more than one.
    """
    columns = table.columns
    naming = argument("label" if role == "truth" else role, option)
    if given is not None:
        if given in columns:
            return given
        raise ValueError(
            f"{table.source}: no column {given!r} for the {role}; the columns are "
            f"{comma_list(columns)}"
        )
    for names in COLUMN_NAMES[role]:
        found = [column for column in columns if _simplify(column) in names]
        if len(found) > 1:
            raise ValueError(
                f"{table.source}: the {role} may be in any of the columns {comma_list(found)}; "
                f"choose one with {naming}"
            )
        if found:
            return found[0]
    expected = ", ".join(name for names in COLUMN_NAMES[role] for name in names)
    raise ValueError(
        f"{table.source}: no column for the {role}; the columns are {comma_list(columns)}; "
        f"expected one of {expected}, or {naming} to name it"
    )


def usual_columns(columns: Iterable[str], *roles: str) -> list[str]:
    """The columns whose name is usual for one of the roles (`COLUMN_NAMES`)."""
    usual = {name for role in roles for names in COLUMN_NAMES[role] for name in names}
    return [column for column in columns if _simplify(column) in usual]


def is_known_label(column: str) -> bool:
    """Whether a column bears a name that only known labels have, such as truth or gold."""
    return _simplify(column) in COLUMN_NAMES["truth"][0]


def _simplify(column: str) -> str:
    """A name without case, separators and a final 'id': 'Worker ID' becomes 'worker'."""
    return re.sub(r"[_\-\s]", "", column).casefold().removesuffix("id")
