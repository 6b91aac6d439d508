"""A journal of finished units: what was measured survives whatever ends the run.

One JSON object per line. The first names the experiment, the version of the package and the
settings of every part; each further one is a finished unit with its values. A line is on the disk
before the next unit is handed out. A line that was being written when the machine stopped lacks
its end and is dropped on reading; any other damage is an error. Values of other settings or of
another version are never mixed with new ones: such a journal is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.experiments.experiment import CellId, Experiment, Unit
from bayescrowd.writing import new_file

__all__ = ["Journal", "Record"]

FORMAT = 1


class Record(NamedTuple):
    """A finished unit."""

    values: dict[CellId, float]
    """Measured value of each cell."""
    seconds: float
    """How long it took."""


class Journal:
    """The journal of one experiment, open for adding; `records` holds what it has.

    Args:
        path: the file; made if it is not there.
        experiment: whose journal it is.

    Raises:
        ValueError: the file is damaged, or its values are of another experiment, version or
            settings.
    """

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.records: dict[Unit, Record] = {}
        header = {
            "format": FORMAT,
            "experiment": experiment.name,
            "version": __version__,
            "settings": experiment.settings,
        }
        if not path.exists():
            with new_file(path) as file:
                file.write(_line(header))
        lines, n_bytes = _whole_lines(path)
        if not lines:
            raise ValueError(f"{path}: this is no journal of an experiment")
        _check_header(lines[0], header, path)
        for number, line in enumerate(lines[1:], start=2):
            try:
                unit = Unit(line["part"], line["seed"])
                values = {CellId(row, column): value for row, column, value in line["values"]}
                hash(unit)
            except (KeyError, TypeError, ValueError):
                raise _no_line(path, number) from None
            for value in (*values.values(), line.get("seconds")):
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise ValueError(f"{path}, line {number}: {value!r} is not a number")
            self.records.setdefault(unit, Record(values, line["seconds"]))
        if n_bytes < path.stat().st_size:
            os.truncate(path, n_bytes)  # or the next line would continue the torn one
        self._file = open(path, "ab")  # noqa: SIM115 - closed by __exit__

    def add(self, unit: Unit, values: Mapping[CellId, float], seconds: float) -> None:
        """Record a finished unit; it is on the disk when this returns."""
        line = {
            "part": unit.part,
            "seed": unit.seed,
            "values": [[*id_, value] for id_, value in values.items()],
            "seconds": seconds,
        }
        self._file.write(_line(line))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records[unit] = Record(dict(values), seconds)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"


def _whole_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The objects of the lines that were written to their end, and how many bytes they take."""
    content = path.read_bytes()
    n_bytes = content.rfind(b"\n") + 1
    lines = []
    for number, text in enumerate(content[:n_bytes].split(b"\n")[:-1], start=1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            raise _no_line(path, number) from None
        if not isinstance(line, dict):
            raise _no_line(path, number)
        lines.append(line)
    return lines, n_bytes


def _no_line(path: Path, number: int) -> ValueError:
    return ValueError(f"{path}, line {number}: this is no line of a journal")


def _check_header(found: dict[str, Any], expected: dict[str, Any], path: Path) -> None:
    for key in ("format", "experiment", "version"):
        if found.get(key) != expected[key]:
            raise ValueError(
                f"{path} is of {key} {found.get(key)!r}, and this is {key} {expected[key]!r}"
            )
    if found.get("settings") != expected["settings"]:
        old, new = found.get("settings"), expected["settings"]
        if not isinstance(old, dict):
            raise _no_line(path, 1)
        changed = next(name for name in {**new, **old} if old.get(name) != new.get(name))
        raise ValueError(
            f"{path} was measured with other settings: {changed} had {old.get(changed)!r} and "
            f"has {new.get(changed)!r}"
        )
