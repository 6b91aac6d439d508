"""A journal of finished runs, from which an interrupted comparison continues.

The file is a `bayescrowd.io.journal.LineJournal`: a header with the settings, then one line per
finished run. Runs with different settings are never mixed.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.io.journal import LineJournal

__all__ = ["CurveJournal", "Row"]

Key = tuple[str, int, float, int]


class Row(NamedTuple):
    """One run."""

    policy: str
    """Name of the policy."""
    n_features: int
    """How many features the classifier may use."""
    budget: float
    """What the labels may cost in all."""
    repeat: int
    """Number of the split."""
    error: float
    """Share of test rows that are classified wrongly."""
    spent: float
    """What the labels cost."""
    selected: tuple[Hashable, ...]
    """The features that the classifier uses."""


class CurveJournal:
    """Finished runs, in memory and, if a file is given, on the disk.

    Args:
        path: the file, created if there is none; None keeps the runs in memory only.
        settings: what the runs have in common.

    Attributes:
        rows: the runs by policy, number of features, budget and repeat.

    Raises:
        ValueError: the file is not a journal of a budget curve, or has different settings.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, Any]) -> None:
        self.rows: dict[Key, Row] = {}
        header = {"journal": "budget curve", "version": __version__, **settings}
        self._journal = None if path is None else LineJournal(path, header)
        if self._journal is not None:
            for place, line in enumerate(self._journal.lines):
                row = _row_of(line, self._journal, place)
                self.rows[row[:4]] = row

    def add(self, rows: Iterable[Row]) -> None:
        """Record runs; they are on the disk when this returns."""
        new = {row[:4]: row for row in rows}
        self.rows.update(new)
        if self._journal is not None:
            self._journal.append(row._asdict() for row in new.values())


def _row_of(line: dict[str, Any], journal: LineJournal, place: int) -> Row:
    """The run on a line, with its types checked: a wrong one would fail only on averaging."""
    try:
        row = Row(**{**line, "selected": tuple(line["selected"])})
    except (KeyError, TypeError):
        raise journal.fault(place) from None
    expected: dict[str, tuple[type, ...]] = {
        "policy": (str,),
        "n_features": (int,),
        "budget": (int, float),
        "repeat": (int,),
        "error": (int, float),
        "spent": (int, float),
    }
    for name, kinds in expected.items():
        value = getattr(row, name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            kind = "text" if kinds == (str,) else "a number"
            raise journal.fault(place, f"{name} is {value!r}; expected {kind}")
    if not all(isinstance(name, Hashable) for name in row.selected):
        raise journal.fault(place)
    return row
