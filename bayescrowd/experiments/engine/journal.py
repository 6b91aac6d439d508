"""A journal of finished units: what was measured survives whatever ends the run.

The file is a `bayescrowd.io.journal.LineJournal`. Its header names the experiment, the version of
the package and the settings of every part; each further line is a finished unit with its values.
Values measured with other settings or by another version are never mixed with new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.experiments.engine.experiment import CellId, Experiment, Unit
from bayescrowd.io.journal import LineJournal

__all__ = ["Record", "UnitJournal"]

FORMAT = 1
"""Version of the layout of the lines; a file of another version is rejected."""


class Record(NamedTuple):
    """A finished unit."""

    values: dict[CellId, float]
    """Measured value of each cell."""
    seconds: float
    """How long the measurement took."""


class UnitJournal:
    """The journal of one experiment; `records` holds the finished units.

    Args:
        path: the file; created if there is none.
        experiment: the experiment whose units are recorded.

    Raises:
        ValueError: the file is damaged, or its values belong to another experiment, version or
            settings.
    """

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.records: dict[Unit, Record] = {}
        self._journal = LineJournal(
            path,
            {
                "format": FORMAT,
                "experiment": experiment.name,
                "version": __version__,
                "settings": experiment.settings,
            },
        )
        for place, line in enumerate(self._journal.lines):
            unit, record = _unit_and_record(line, self._journal, place)
            self.records.setdefault(unit, record)

    def add(self, unit: Unit, values: Mapping[CellId, float], seconds: float) -> None:
        """Record a finished unit; it is on the disk when this returns."""
        line = {
            "part": unit.part,
            "seed": unit.seed,
            "values": [[*id_, value] for id_, value in values.items()],
            "seconds": seconds,
        }
        self._journal.append([line])
        self.records[unit] = Record(dict(values), seconds)


def _unit_and_record(line: dict[str, Any], journal: LineJournal, place: int) -> tuple[Unit, Record]:
    try:
        unit = Unit(line["part"], line["seed"])
        values = {CellId(row, column): value for row, column, value in line["values"]}
        hash(unit)
    except (KeyError, TypeError, ValueError):
        raise journal.fault(place) from None
    for value in (*values.values(), line.get("seconds")):
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise journal.fault(place, f"{value!r} is not a number")
    return unit, Record(values, line["seconds"])
