"""Columns found by their usual names, such as task, item or question_id for the task.

A name that only suggests its role, such as image for the task, is a guess: `guess_note` says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bayescrowd.data.vocabulary import argument, comma_list, quote

__all__ = [
    "COLUMN_NAMES",
    "ExportedLabels",
    "find_column",
    "guess_note",
    "is_known_label",
    "looks_like_header",
    "usual_columns",
]

COLUMN_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "task": (
        ("task",),
        ("item", "question", "hit", "example", "instance", "object"),
        ("image", "picture", "photo", "clip", "video", "audio", "document", "doc", "sentence"),
        ("unit", "text", "tweet", "post", "page", "pair", "sample", "record", "case", "subject"),
        ("id",),
    ),
    "worker": (
        ("worker",),
        ("annotator", "rater", "observer", "performer", "labeler", "labeller", "coder", "user"),
        ("judge",),
        ("turker", "crowdworker", "contributor", "participant", "respondent", "username"),
        ("reviewer", "assessor", "grader", "evaluator"),
    ),
    "label": (
        ("label",),
        ("answer", "response", "rating", "class", "judgment", "judgement"),
        ("verdict",),
        ("value", "annotation", "choice", "category", "vote", "tag", "grade", "score", "decision"),
    ),
    "truth": (
        ("truth", "gold", "truelabel", "groundtruth", "goldlabel", "trueclass", "correctanswer"),
        ("label",),
        ("class", "answer"),
        ("correct", "expected", "target", "value", "rating", "response", "verdict", "category"),
    ),
}
"""Usual column names for each role, best first, compared without case, '_', '-', ' ' and 'id'.

A name that is 'id' and nothing else is compared as it is.
"""

_PLAIN = {role: {role} for role in COLUMN_NAMES} | {"truth": {"truth", "gold", "label"}}
"""Names that state the role of their column, so that taking it for that role is no guess."""


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
    """Name of the column of worker ids; empty for known labels, which no worker gave."""
    label: str
    """Name of the column of labels."""
    row_number: Callable[[int], int]
    """The row number in the file of the row at a position in the table."""
    is_text: bool = False
    """Whether the labels come from a file without types, in which integers are text."""
    blank_is_unasked: bool = False
    """Whether a missing label means that the worker was never asked, not that none was given."""
    notes: tuple[str, ...] = ()
    """What was guessed in order to read the file, in sentences for the user."""


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
    naming = _naming(role, option)
    if given is not None:
        if given in columns:
            return given
        raise ValueError(
            f"{table.source}: no column {given!r} for the {role}; the columns are "
            f"{comma_list(columns)}"
        )
    for names in COLUMN_NAMES[role]:
        found = [column for column in columns if _simplify(column) in names]
        if len(set(found)) < len(found):
            raise ValueError(
                f"{table.source}: two columns are named {found[0]!r}; expected one for the {role}"
            )
        if len(found) > 1:
            raise ValueError(
                f"{table.source}: the {role} may be in any of the columns {comma_list(found)}; "
                f"choose one with {naming}"
            )
        if found:
            return found[0]
    expected = ", ".join(name for names in COLUMN_NAMES[role][:2] for name in names)
    hint = f", or {naming} to name it"
    if role != "truth" and not usual_columns(columns, *COLUMN_NAMES):
        hint = f", {naming} to name it, or {argument('columns')} if the file has no header"
    raise ValueError(
        f"{table.source}: no column for the {role}; the columns are {comma_list(columns)}; "
        f"expected one of {expected}{hint}"
    )


def guess_note(
    source: str,
    found: Mapping[str, str],
    given: Mapping[str, str | None],
    option: str | None = None,
) -> tuple[str, ...]:
    """A sentence that says which columns were guessed; nothing if none was.

    Args:
        source: name of the file in messages.
        found: the column of each role, a key of `COLUMN_NAMES`.
        given: the column that the user named for each role, if any.
        option: name of the command-line option for the columns; by default `--role` of each.

    Examples:
        >>> found = {"task": "image", "worker": "worker_id", "label": "value"}
        >>> guess_note("x.csv", found, {})
        ("x.csv: took column 'image' for the task and 'value' for the label (task= and label= \
name others)",)
    """
    guessed = {
        role: column
        for role, column in found.items()
        if given.get(role) is None and _simplify(column) not in _PLAIN[role]
    }
    if not guessed:
        return ()
    taken = [f"{quote(column)} for the {role}" for role, column in guessed.items()]
    naming = list(dict.fromkeys(_naming(role, option) for role in guessed))
    verb = "names" if len(naming) == 1 else "name"
    others = "another" if len(guessed) == 1 else "others"
    return (f"{source}: took column {_and(taken)} ({_and(naming)} {verb} {others})",)


def looks_like_header(fields: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the first row of a file whose columns have given names is a header after all.

    It is if a field repeats the name of its own column, or if two are usual names of columns.
    """
    own = [_simplify(field) == _simplify(name) for field, name in zip(fields, names, strict=False)]
    is_named = any(same and field.strip() for same, field in zip(own, fields, strict=False))
    return is_named or len(usual_columns(fields, *COLUMN_NAMES)) > 1


def usual_columns(columns: Iterable[str], *roles: str) -> list[str]:
    """The columns whose name is usual for one of the roles (`COLUMN_NAMES`)."""
    usual = {name for role in roles for names in COLUMN_NAMES[role] for name in names}
    return [column for column in columns if _simplify(column) in usual]


def is_known_label(column: str) -> bool:
    """Whether a column bears a name that only known labels have, such as truth or gold."""
    return _simplify(column) in COLUMN_NAMES["truth"][0]


def _simplify(column: str) -> str:
    """A name without case, separators and a final 'id': 'Worker ID' becomes 'worker'."""
    name = re.sub(r"[_\-\s]", "", column).casefold()
    return name.removesuffix("id") or name


def _naming(role: str, option: str | None) -> str:
    """What names the column of a role, in messages."""
    return argument("label" if role == "truth" else role, option)


def _and(parts: Sequence[str]) -> str:
    """The parts as a list in words."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
