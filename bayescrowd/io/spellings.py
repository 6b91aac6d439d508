"""Labels that differ only in case or in the blanks around them: reported, and merged on request.

'Cat', 'cat' and 'cat ' are three classes to a machine and one to the people who typed them. Nobody
but the user knows: some labels differ in case on purpose. So they stay apart, with a warning that
counts them, unless the user asks to merge them. The most frequent spelling then wins, without the
blanks around it; of equally frequent ones, the one that occurs first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.columns import factorize_column, is_blank
from bayescrowd.data.vocabulary import Where, argument, plain, quote
from bayescrowd.io.column_names import ExportedLabels
from bayescrowd.io.file_tables import integers_if_canonical

__all__ = [
    "SpellingWarning",
    "merge_spellings",
    "warn_of_known_spellings",
    "warn_of_spellings",
]

_MOST_SHOWN = 5
"""Number of classes whose spellings a message lists."""


class SpellingWarning(UserWarning):
    """Labels differ only in case or in the blanks around them and count as different classes."""


def warn_of_spellings(annotations: Annotations, source: str) -> None:
    """Warn of classes that differ only in case or surrounding blanks, if there are any."""
    groups = _groups(annotations.classes)
    if not groups:
        return
    counts = np.bincount(annotations.label_codes, minlength=annotations.n_classes)
    place = {plain(name): code for code, name in enumerate(annotations.classes)}
    listed = [
        ", ".join(_counted(name, int(counts[place[name]])) for name in names) for names in groups
    ]
    warnings.warn(
        f"{source}: labels that differ only in case or surrounding blanks count as different "
        f"classes: {_list(listed)}; {argument('tidy')} merges them",
        SpellingWarning,
        stacklevel=2,
    )


def warn_of_known_spellings(counts: Mapping[str, int], classes: Iterable[Any], source: str) -> None:
    """Warn of known labels that differ from a class only in case or surrounding blanks.

    Args:
        counts: number of occurrences of each known label that is no class.
        classes: the classes.
        source: name of the file in messages.
    """
    spelled = {_key(name): name for name in classes if isinstance(name, str)}
    listed = [
        f"{_counted(text, n)}, where the class is {quote(spelled[_key(text)])}"
        for text, n in counts.items()
        if _key(text) in spelled
    ]
    if listed:
        warnings.warn(
            f"{source}: labels that differ from a class only in case or surrounding blanks count "
            f"as classes that nobody chose: {_list(listed)}; {argument('tidy')} merges them",
            SpellingWarning,
            stacklevel=2,
        )


def merge_spellings(
    source: str, rows: ExportedLabels, classes: Iterable[Any] | None
) -> ExportedLabels:
    """The rows with one spelling of each label, and with a note on what was merged.

    Args:
        source: name of the file in messages.
        rows: labels from a file; those that are not text stay as they are.
        classes: classes whose spelling wins over any other; None if none are given. Of those that
            differ only in case or surrounding blanks, none wins and none changes.
    """
    column = _pandas_column(rows.frame, rows.label)
    codes, values = factorize_column(column, rows.label, Where(source, rows.row_number))
    found = [plain(value) for value in values]
    counts = np.bincount(codes[codes >= 0], minlength=len(found))
    spelling = _spellings(found, counts.tolist(), [] if classes is None else list(classes))
    merged = [_respelled(value, spelling) for value in found]
    if merged == found:
        return rows
    order, is_ordered = found, False
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        order, is_ordered = list(column.dtype.categories), True
    distinct = list(dict.fromkeys(_respelled(plain(value), spelling) for value in order))
    place = {value: position for position, value in enumerate(distinct)}
    # factorize codes a missing label as -1, which picks the last entry
    new_codes = np.array([*(place[value] for value in merged), -1])[codes]
    if rows.is_text and all(isinstance(value, str) for value in distinct):
        texts = pa.chunked_array([pa.array(distinct, pa.large_string())])
        distinct = integers_if_canonical(texts).dictionary_decode().to_pylist()
    labels = pd.Categorical.from_codes(new_codes, categories=pd.Index(distinct), ordered=is_ordered)
    note = f"{source}: merged labels that differ only in case or surrounding blanks: "
    return rows._replace(
        frame=_with_column(rows.frame, rows.label, labels),
        notes=(*rows.notes, note + _list(_merged(found, counts.tolist(), merged))),
    )


def _key(text: str) -> str:
    """What the spellings of a label have in common."""
    return text.strip().casefold()


def _groups(classes: Iterable[Any]) -> list[list[str]]:
    """The classes that share a key with another, together with it."""
    by_key: dict[str, list[str]] = {}
    for name in classes:
        if isinstance(name, str):
            by_key.setdefault(_key(name), []).append(name)
    return [names for names in by_key.values() if len(names) > 1]


def _spellings(
    found: Sequence[Any], counts: Sequence[int], classes: Sequence[Any]
) -> dict[str, str]:
    """The spelling of each key that wins; a key that several classes share is left out."""
    frequency: dict[str, dict[str, int]] = {}
    for value, count in zip(found, counts, strict=True):
        if isinstance(value, str) and not is_blank(value):
            of_key = frequency.setdefault(_key(value), {})
            of_key[value.strip()] = of_key.get(value.strip(), 0) + count
    winner = {key: max(texts, key=lambda text: texts[text]) for key, texts in frequency.items()}
    declared = {_key(name): name for name in classes if isinstance(name, str)}
    shared = {_key(names[0]) for names in _groups(classes)}
    return {key: text for key, text in (winner | declared).items() if key not in shared}


def _respelled(value: Any, spelling: Mapping[str, str]) -> Any:
    return spelling.get(_key(value), value) if isinstance(value, str) else value


def _merged(found: Sequence[Any], counts: Sequence[int], merged: Sequence[Any]) -> list[str]:
    """What was merged into what, for each label that was."""
    kept = {value: n for value, n, new in zip(found, counts, merged, strict=True) if value == new}
    into: dict[Any, list[str]] = {}
    for value, count, new in zip(found, counts, merged, strict=True):
        if value != new:
            into.setdefault(new, []).append(_counted(value, count))
    return [
        f"{', '.join(others)} into {_counted(new, kept[new]) if new in kept else quote(new)}"
        for new, others in into.items()
    ]


def _counted(label: str, count: int) -> str:
    return f"{quote(label)} ({count:,})"


def _list(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - _MOST_SHOWN:,} more" if len(parts) > _MOST_SHOWN else ""
    return "; ".join(parts[:_MOST_SHOWN]) + more


def _pandas_column(frame: Any, column: str) -> pd.Series:
    return frame[column].to_pandas() if isinstance(frame, pa.Table) else frame[column]


def _with_column(frame: Any, name: str, values: pd.Categorical) -> Any:
    if isinstance(frame, pa.Table):
        return frame.set_column(frame.column_names.index(name), name, pa.array(values))
    return frame.assign(**{name: values})
