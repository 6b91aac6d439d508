"""A journal of finished measurements, from which a killed run continues.

The file is a `bayescrowd.io.journal.LineJournal`: a header, then one line per measurement with what
it depends on. A measurement counts for the same crowd files, method, version and settings only;
others stay in the file and are not used. Failures are not recorded, so that they are tried again.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from jaxtyping import Float

from bayescrowd.experiments.bench.contenders import Contender
from bayescrowd.experiments.bench.crowds import BenchCrowd
from bayescrowd.experiments.bench.measurement import LEAST_PROBABILITY, Measurement
from bayescrowd.io.journal import LineJournal

__all__ = ["BenchJournal"]

FORMAT = 1
"""Version of the layout of the lines; a file of another version is refused."""

Key = tuple[str, str, str, str]


class BenchJournal:
    """Finished measurements, in memory and, if a file is given, on the disk.

    Args:
        path: the file, created if there is none; None keeps the measurements in memory only.

    Raises:
        ValueError: the file is not a journal of a bench, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._found: dict[Key, Measurement] = {}
        header = {"journal": "bench", "format": FORMAT, "least_probability": LEAST_PROBABILITY}
        self._journal = None if path is None else LineJournal(path, header)
        if self._journal is not None:
            for place, line in enumerate(self._journal.lines):
                key, measurement = _read(line, self._journal, place)
                self._found[key] = measurement

    def find(self, contender: Contender, crowd: BenchCrowd) -> Measurement | None:
        """The measurement of this method on this crowd, if there is one."""
        found = self._found.get(_key(contender, crowd))
        return found if found is None or len(found.errors) == len(crowd.truth) else None

    def add(self, contender: Contender, crowd: BenchCrowd, measurement: Measurement) -> None:
        """Record a measurement; it is on the disk when this returns."""
        self._found[_key(contender, crowd)] = measurement
        if self._journal is not None:
            line = {
                "crowd": crowd.name,
                "digest": crowd.digest,
                "method": contender.origin,
                "version": contender.version,
                "settings": contender.settings,
                "error": measurement.error,
                "log_loss": measurement.log_loss,
                "ece": measurement.ece,
                "seconds": measurement.seconds,
                "effective_votes": [_or_none(value) for value in measurement.effective_votes],
                "warnings": measurement.warnings,
                "errors": [_short(value) for value in measurement.errors.tolist()],
                "log_losses": measurement.log_losses.tolist(),
            }
            self._journal.append([line])


def _key(contender: Contender, crowd: BenchCrowd) -> Key:
    # The digest stands for the crowd: a folder may be renamed.
    return crowd.digest, contender.origin, contender.version, contender.settings


def _read(line: dict[str, Any], journal: LineJournal, place: int) -> tuple[Key, Measurement]:
    try:
        key = (line["digest"], line["method"], line["version"], line["settings"])
        low, high = line["effective_votes"]
        measurement = Measurement(
            errors=_numbers(line["errors"]),
            log_losses=_numbers(line["log_losses"]),
            ece=float(line["ece"]),
            seconds=float(line["seconds"]),
            effective_votes=(_or_nan(low), _or_nan(high)),
            warnings=tuple(map(str, line["warnings"])),
        )
    except (KeyError, TypeError, ValueError):
        raise journal.fault(place) from None
    is_sound = len(measurement.errors) == len(measurement.log_losses) > 0
    if not (is_sound and all(isinstance(part, str) for part in key)):
        raise journal.fault(place)
    return key, measurement


def _numbers(values: Any) -> Float[np.ndarray, " task"]:
    numbers = np.array(values, dtype=float)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError("expected a list of finite numbers")
    return numbers


def _short(value: float) -> float | int:
    """Whole numbers without their decimals: almost all errors are 0 or 1."""
    return int(value) if value.is_integer() else value


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
