"""Columns as integer codes into a vocabulary whose order does not depend on that of the rows.

Missing values (None, NaN, empty text) have the code -1. Ids are in ascending order; classes are in
the order that the user gives, or else in natural sort order, in which 'c2' comes before 'c10'.

No two ids or classes print alike, because neither a file nor a message could distinguish them: a
column that holds both 1 and '1' is read as text, with a warning. Text that files cannot hold
(a NUL character, half of a surrogate pair) is refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

__all__ = [
    "MAX_INFERRED_CLASSES",
    "Where",
    "argument",
    "code_ids",
    "code_labels",
    "comma_list",
    "natural_key",
    "options_in_messages",
    "plain",
    "quote",
    "refuse_indistinct",
    "refuse_shared_column",
    "sorted_ids",
    "text_of",
    "vocabulary_of",
]

MAX_INFERRED_CLASSES = 1_000
"""A column with more distinct labels than this is refused unless `classes` lists them."""

_NAMES_OPTIONS: ContextVar[bool] = ContextVar("_NAMES_OPTIONS", default=False)


@contextmanager
def options_in_messages() -> Iterator[None]:
    """Inside the `with` block, messages name command-line options instead of arguments."""
    token = _NAMES_OPTIONS.set(True)
    try:
        yield
    finally:
        _NAMES_OPTIONS.reset(token)


def argument(name: str, option: str | None = None) -> str:
    """The name of an argument in messages: `name=`, or inside `options_in_messages` its option.

    Args:
        name: name of the argument in Python.
        option: name of the option on the command line; by default `--name`.

    Examples:
        >>> argument("task")
        'task='
        >>> with options_in_messages():
        ...     argument("task"), argument("label", "--truth-columns")
        ('--task', '--truth-columns')
    """
    if _NAMES_OPTIONS.get():
        return option or f"--{name.replace('_', '-')}"
    return f"{name}="


class Where(NamedTuple):
    """How messages name a place in the input."""

    source: str | None = None
    """Name of the file; None if there is no file."""
    row_number: Callable[[int], int] | None = None
    """Function from a row's position to its number; None if rows are counted from 1."""

    @property
    def prefix(self) -> str:
        """Beginning of a message: the file's name and a colon, if there is a file."""
        return f"{self.source}: " if self.source else ""

    def row(self, position: int) -> str:
        """The row at a position, as messages name it."""
        number = position + 1 if self.row_number is None else self.row_number(position)
        return f"{self.prefix}row {number}"


def code_ids(
    values: pd.Series, column: str, role: str, where: Where
) -> tuple[Int[np.ndarray, " label"], pd.Index]:
    """Codes into the sorted ids; a missing id raises ValueError."""
    codes, ids = _factorize(values, column, where)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        raise ValueError(
            f"{where.row(int(missing[0]))}, column {column!r}: missing {role} id "
            f"({len(missing):,} in all); expected a task and a worker for every judgement"
        )
    order, vocabulary = sorted_ids(ids, role)
    return order[codes], vocabulary


def code_labels(
    values: pd.Series, column: str, classes: Sequence[Any] | None, where: Where
) -> tuple[Int[np.ndarray, " label"], pd.Index]:
    """Codes into the classes, -1 where the label is missing."""
    declared = classes
    if declared is None and isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        declared = list(values.dtype.categories)
    codes, found = _factorize(values, column, where)
    if declared is not None:
        vocabulary = vocabulary_of([plain(c) for c in declared], "class")
        if _is_read_as_text(values, found):  # the user may give the class as 1 or as '1'
            to_class = pd.Index([text_of(c) for c in vocabulary]).get_indexer(found)
        else:
            to_class = vocabulary.get_indexer(found)
        unknown = np.flatnonzero(to_class < 0)
        if len(unknown):
            row = int(np.flatnonzero(np.isin(codes, unknown))[0])
            others = [found[int(k)] for k in unknown if k != codes[row]]
            nor = f"; nor are the labels {comma_list(others)}" if others else ""
            raise ValueError(
                f"{where.row(row)}, column {column!r}: label {quote(found[codes[row]])} is not "
                f"one of the classes {comma_list(vocabulary)}{nor}"
            )
    else:
        _refuse_non_classes(found, codes, column, where)
        natural = sorted(range(len(found)), key=lambda i: natural_key(plain(found[i])))
        vocabulary = pd.Index(found.take(natural), name="class")
        to_class = np.empty(len(found), dtype=np.int64)
        to_class[natural] = np.arange(len(found))
    if len(vocabulary) < 2 and len(found):
        raise ValueError(
            f"{where.prefix}column {column!r} holds one class only ({quote(vocabulary[0])}); "
            f"expected at least two ({argument('classes')} also declares classes that nobody chose)"
        )
    # A missing label has the code -1, which picks the appended -1.
    return np.append(to_class, -1)[codes].astype(np.int32), vocabulary


def _refuse_non_classes(
    found: pd.Index, codes: Int[np.ndarray, " label"], column: str, where: Where
) -> None:
    if pd.api.types.is_float_dtype(found.dtype) and len(found):
        fractional = np.flatnonzero(~_is_whole(found))
        row = int(np.flatnonzero(np.isin(codes, fractional))[0])
        raise ValueError(
            f"{where.row(row)}, column {column!r}: label {found[codes[row]]} is not a whole "
            "number; expected names of classes, as text or as integers"
        )
    if len(found) > MAX_INFERRED_CLASSES:
        examples = ", ".join(quote(v) for v in found[:3])
        raise ValueError(
            f"{where.prefix}column {column!r} holds {len(found):,} distinct labels ({examples}, "
            f"...); expected at most {MAX_INFERRED_CLASSES:,} classes: is this the right column? "
            f"({argument('classes')} allows more)"
        )


def _factorize(
    values: pd.Series, column: str, where: Where
) -> tuple[Int[np.ndarray, " label"], pd.Index]:
    """Codes and distinct values; None, NaN and empty text get the code -1."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        numbers = values.to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < 2 * len(numbers) and high < 2**63:
            return _code_dense_integers(numbers, low, high)
    try:
        codes, found = pd.factorize(values, use_na_sentinel=True)
    except TypeError:
        row, bad = next((i, v) for i, v in enumerate(values) if not isinstance(v, Hashable))
        raise ValueError(
            f"{where.row(row)}, column {column!r}: found a {type(bad).__name__}; expected text, "
            "a number, True or False"
        ) from None
    # Checked here, because pandas cannot make an index of text with half of a surrogate pair.
    if not pd.api.types.is_numeric_dtype(values.dtype) and (fault := _unwritable(found)):
        position, text, reason = fault
        raise ValueError(
            f"{where.row(int(np.argmax(codes == position)))}, column {column!r}: {quote(text)} "
            f"holds {reason}; expected text that a file can hold"
        )
    if values.dtype == object and pd.api.types.infer_dtype(values).startswith("mixed"):
        codes, found = _code_mixed(values, codes, found, column, where)
    ids = pd.Index(found)
    if isinstance(ids, pd.CategoricalIndex):
        ids = ids.categories.take(ids.codes)
    if ids.dtype != pd.Index(["text"]).dtype and not isinstance(ids.dtype, np.dtype):
        ids = ids.astype(object)  # from a nullable or Arrow dtype; missing values are gone by now
    if ids.dtype == object:
        ids = ids.infer_objects()
    if pd.api.types.is_float_dtype(ids.dtype) and _is_whole(ids).all():
        ids = ids.astype(np.int64)  # integers next to a missing value arrive as floats
    if pd.api.types.is_string_dtype(ids.dtype):  # object counts as text here
        if ids.dtype == object:
            blank = np.array([isinstance(v, str) and not v.strip() for v in ids], dtype=bool)
        else:
            blank = np.asarray(ids.str.strip() == "", dtype=bool)
        if blank.any():
            kept = np.flatnonzero(~blank)
            renumbered = np.full(len(ids) + 1, -1, dtype=np.int64)
            renumbered[kept] = np.arange(len(kept))
            codes, ids = renumbered[codes], ids.take(kept)
    return codes, ids


def _code_mixed(
    values: pd.Series,
    codes: Int[np.ndarray, " label"],
    found: Any,
    column: str,
    where: Where,
) -> tuple[Int[np.ndarray, " label"], Any]:
    """Codes of values of several types; all are read as text if two of them print alike."""
    kinds = values.map(_kind, na_action="ignore")
    texts = values.map(text_of, na_action="ignore")
    for key in (texts, pd.Series(codes, index=values.index).where(values.notna())):
        first = kinds.groupby(key).transform("first")
        clash = np.flatnonzero((kinds != first) & values.notna())
        if len(clash):
            one, other = (
                values.iloc[int(np.argmax(key == key.iloc[clash[0]]))],
                values.iloc[clash[0]],
            )
            warnings.warn(
                f"{where.row(int(clash[0]))}, column {column!r}: {other!r} looks like {one!r}, "
                "which has another type; the whole column is read as text",
                stacklevel=2,
            )
            return pd.factorize(texts, use_na_sentinel=True)
    return codes, found


def _is_read_as_text(values: pd.Series, found: pd.Index) -> bool:
    """Whether `_factorize` has converted values that were not all text to text."""
    is_text = all(isinstance(v, str) for v in found)
    return is_text and values.dtype == object and pd.api.types.infer_dtype(values) != "string"


def _kind(value: Any) -> str:
    """Number, truth value, text, ...: within a kind, different values print differently."""
    if isinstance(value, bool | np.bool_):
        return "truth value"
    return "number" if isinstance(value, int | float | np.number) else type(value).__name__


def text_of(value: Any) -> str:
    """The text of a value; 7.0 becomes '7', since integers next to a missing value are floats."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def refuse_indistinct(ids: pd.Index, name: str) -> None:
    """Raise unless all ids print differently and consist of text that files can hold."""
    if not ids.is_unique:
        raise ValueError(f"{name} {plain(ids[ids.duplicated()][0])!r} is listed twice")
    if not pd.api.types.is_string_dtype(ids.dtype):  # object counts as text here
        return
    texts = pd.Index([text_of(value) for value in ids], dtype=object)
    if not texts.is_unique:
        second = int(np.argmax(texts.duplicated()))
        first = int(np.argmax(texts == texts[second]))
        raise ValueError(
            f"{name} {plain(ids[first])!r} and {name} {plain(ids[second])!r} are written alike; "
            "expected names that differ when written to a file"
        )
    if fault := _unwritable(ids):
        _, text, reason = fault
        raise ValueError(f"{name} {quote(text)} holds {reason}; expected text that a file can hold")


def _unwritable(values: Iterable[Any]) -> tuple[int, str, str] | None:
    """Position of the first text that files cannot hold, the text, and the reason."""
    for position, text in enumerate(values):
        if isinstance(text, str):
            if "\0" in text:
                return position, text, "a NUL character"
            if not text.isascii() and re.search("[\ud800-\udfff]", text):
                return position, text, "half of a surrogate pair"
    return None


def _code_dense_integers(
    numbers: Int[np.ndarray, " label"], low: int, high: int
) -> tuple[Int[np.ndarray, " label"], pd.Index]:
    """Codes of integers by counting instead of hashing, several times faster on long columns."""
    shifted = numbers.astype(np.int64) - low
    present = np.zeros(high - low + 1, dtype=bool)
    present[shifted] = True
    rank = np.cumsum(present, dtype=np.int64) - 1
    return rank[shifted], pd.Index(np.flatnonzero(present) + low, dtype=numbers.dtype)


def _is_whole(numbers: pd.Index) -> Bool[np.ndarray, " id"]:
    """Whether each float represents exactly one integer."""
    values = numbers.to_numpy()
    return (values == np.floor(values)) & (np.abs(values) < 2**53)


def natural_key(value: Any) -> tuple[str, list[tuple[int, Any]], str]:
    """Sort key in which runs of digits compare as numbers: 'c2' before 'c10'."""
    if not isinstance(value, str):
        return ("", [(0, value)], "")
    parts = re.split(r"([0-9]+)", value)
    key = [_digits_key(p) if p.isdecimal() else (1, p.casefold()) for p in parts if p]
    return ("text", key, value)


def _digits_key(digits: str) -> tuple[int, tuple[int, str]]:
    """Sort key by length, then by text, which orders numbers of any length without parsing them."""
    significant = digits.lstrip("0")
    return 0, (len(significant), significant)


def sorted_ids(ids: pd.Index, role: str) -> tuple[Int[np.ndarray, " id"], pd.Index]:
    """Rank of each id and the ids in ascending order."""
    try:
        order = ids.argsort()
    except TypeError:  # ids of several types
        order = np.array(sorted(range(len(ids)), key=lambda i: natural_key(plain(ids[i]))))
    rank = np.empty(len(ids), dtype=np.int32)
    rank[order] = np.arange(len(ids), dtype=np.int32)
    return rank, pd.Index(ids.take(order), name=role)


def vocabulary_of(ids: int | Sequence[Any] | pd.Index, name: str) -> pd.Index:
    """The ids as an index without repeats; n stands for 0, ..., n - 1."""
    if isinstance(ids, int | np.integer):
        return pd.RangeIndex(int(ids), name=name)
    index = pd.Index(ids, name=name)
    refuse_indistinct(index, name)
    return index


def refuse_shared_column(roles: Iterable[tuple[str, str]], where: Where) -> None:
    """Raise if one column is named for two roles; `roles` holds pairs of column and role."""
    taken: dict[str, str] = {}
    for column, role in roles:
        if column in taken:
            raise ValueError(
                f"{where.prefix}column {column!r} is named for the {taken[column]} and for the "
                f"{role}; expected a column of its own for each"
            )
        taken[column] = role


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python value, as the user typed it; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def quote(value: Any, most: int = 100) -> str:
    """A value in quotes for a message, cut short if it is longer than `most` characters.

    Examples:
        >>> quote("cat"), quote("9" * 5000, most=10)
        ("'cat'", "'999999...")
    """
    text = repr(plain(value))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def comma_list(values: Iterable[Any], most: int = 8) -> str:
    """The first few values in quotes, for a message."""
    texts = [quote(value) for value in values]
    more = f", ... ({len(texts):,} in all)" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
