"""A journal of finished runs: a long comparison continues where it was interrupted.

One JSON object per line: first the settings, then a line per finished run, on the disk before the
next is handed out. A last line without its end, torn when the machine stopped, is dropped. Runs
with other settings are never mixed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.writing import new_file

__all__ = ["CurveJournal", "Row"]

Key = tuple[str, int, float, int]


class Row(NamedTuple):
    """One run."""

    policy: str
    """Name of the policy."""
    n_features: int
    """How many features the classifier may use."""
    budget: float
    """What the labels may cost."""
    repeat: int
    """Number of the split."""
    error: float
    """Share of test rows classified wrongly."""
    spent: float
    """What the labels cost."""
    selected: tuple[Hashable, ...]
    """The features that the classifier uses."""


class CurveJournal:
    """Finished runs, in a file if there is one; `rows` holds them by policy, size, budget, repeat.

    Args:
        path: the file, made if it is not there; None keeps the runs in memory only.
        settings: what the runs have in common.

    Raises:
        ValueError: the file is no such journal, or one of other settings.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, Any]) -> None:
        self.rows: dict[Key, Row] = {}
        self._path = None if path is None else Path(path)
        header = {"journal": "budget curve", "version": __version__, **settings}
        if self._path is not None:
            if not self._path.exists():
                with new_file(self._path) as file:
                    file.write(_line(header))
            self._read(self._path, header)

    def add(self, rows: Iterable[Row]) -> None:
        """Record runs; they are on the disk when this returns."""
        lines = []
        for row in rows:
            self.rows[row[:4]] = row
            lines.append(_line(row._asdict()))
        if self._path is not None:
            with open(self._path, "ab") as file:
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())

    def _read(self, path: Path, header: dict[str, Any]) -> None:
        content = path.read_bytes()
        n_whole = content.rfind(b"\n") + 1
        lines = content[:n_whole].splitlines()
        found = _parsed(lines[0], path, 1) if lines else {}
        for name, value in header.items():
            if found.get(name) != json.loads(json.dumps(value)):
                raise ValueError(
                    f"{path} is of another comparison: {name} was {found.get(name)!r} and is "
                    f"{value!r}"
                )
        for number, text in enumerate(lines[1:], start=2):
            line = _parsed(text, path, number)
            try:
                row = Row(**{**line, "selected": tuple(line["selected"])})
            except (KeyError, TypeError):
                raise ValueError(f"{path}, line {number}: this is no line of a journal") from None
            _check_row(row, path, number)
            self.rows[row[:4]] = row
        if n_whole < len(content):
            os.truncate(path, n_whole)  # or the next line would continue the torn one


def _check_row(row: Row, path: Path, number: int) -> None:
    """Refuse values of a wrong type, which would only fail where they are averaged."""
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
            told = "text" if kinds == (str,) else "a number"
            raise ValueError(f"{path}, line {number}: {name} is {value!r}; expected {told}")
    if not all(isinstance(name, Hashable) for name in row.selected):
        raise ValueError(f"{path}, line {number}: this is no line of a journal")


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"


def _parsed(text: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        raise ValueError(f"{path}, line {number}: this is no line of a journal")
    return line
