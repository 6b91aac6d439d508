"""The values of the published tables as they were last recorded, and which have moved since.

A published cell shows how far this package is from a paper, not whether its results are the same
as yesterday. A *record* holds every value of an experiment, seed by seed, with the settings it was
measured with: one JSON file per experiment that has a published number.

    python -m bayescrowd.experiments.engine.recorded FOLDER            # all of them
    python -m bayescrowd.experiments.engine.recorded FOLDER mi-table2  # one

measures them from scratch, reports what has moved, and writes the files.

A value that counts items has moved if it is more than one item away from the recorded one: on
another machine sums are rounded differently, and a task whose classes are almost tied may change
its label. Any other value has moved if it differs at all. In a random part such a tie may also send
a whole run down another path (another partition, another question to ask), so one run in ten may
move; with fewer than ten runs, none may. Between linear algebra for Haswell and for Nehalem, which
lacks AVX, none of 8,449 values moved at all; nor did any of the 173 that were also measured for
Skylake with AVX-512.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bayescrowd.experiments.engine.catalogue import CATALOGUE, experiment_named
from bayescrowd.experiments.engine.experiment import Cell, CellId, Experiment, Unit
from bayescrowd.experiments.engine.journal import Record, UnitJournal
from bayescrowd.experiments.engine.runner import measure_missing
from bayescrowd.io.writing import new_file

__all__ = [
    "Moved",
    "Recorded",
    "experiments_to_record",
    "main",
    "measured_values",
    "moved_cells",
    "path_of",
    "read_recorded",
    "write_recorded",
]

DECIMALS = 6
"""Number of decimals stored; the rounding amounts to a hundred-thousandth of an item or less."""

ROUNDING = 2 * 10.0**-DECIMALS
"""Tolerance for values that count no items: the rounding of the record, and sums taken in another
order."""

SHARE_OF_RUNS = 0.1
"""Share of the runs of a random part that may take another path on another machine."""


class Recorded(NamedTuple):
    """The recorded values of an experiment."""

    settings: dict[str, str]
    """The settings of each part, by name of the part."""
    values: dict[CellId, tuple[float, ...]]
    """The values of each cell with seeds 0, 1, ...; a single one if nothing is random."""


class Moved(NamedTuple):
    """A cell that no longer has its recorded values."""

    id: CellId
    """The cell."""
    n_runs: int
    """Number of runs compared."""
    seeds: tuple[int, ...]
    """The seeds whose value has moved."""
    recorded: float
    """The recorded value with the first of these seeds."""
    measured: float
    """The value now measured with that seed."""

    def __str__(self) -> str:
        return (
            f"{self.id}: seed {self.seeds[0]} had {self.recorded:g} and has {self.measured:g} "
            f"({len(self.seeds)} of {self.n_runs} runs moved)"
        )


def experiments_to_record() -> list[Experiment]:
    """The experiments with at least one published number, in catalogue order."""
    runnable = [entry.name for entry in CATALOGUE.values() if entry.module is not None]
    experiments = map(experiment_named, runnable)
    return [e for e in experiments if any(cell.published is not None for cell in e.cells)]


def path_of(experiment: Experiment, folder: Path) -> Path:
    """The file that holds an experiment's record."""
    return folder / f"{experiment.name}.json"


def measured_values(
    experiment: Experiment, units: Iterable[Unit], records: Mapping[Unit, Record]
) -> dict[CellId, dict[int, float]]:
    """Values by cell and seed, from the records of the given units."""
    values: dict[CellId, dict[int, float]] = {}
    for unit in units:
        for id_, value in records[unit].values.items():
            values.setdefault(id_, {})[unit.seed] = value
    return {cell.id: values[cell.id] for cell in experiment.cells if cell.id in values}


def moved_cells(
    experiment: Experiment, recorded: Recorded, measured: Mapping[CellId, Mapping[int, float]]
) -> list[Moved]:
    """The measured cells whose values have moved, as the module defines it.

    Raises:
        ValueError: the record has other settings, or lacks a cell or a seed.
    """
    cells = {cell.id: cell for cell in experiment.cells}
    moved = []
    for id_, values in measured.items():
        part = cells[id_].part
        if recorded.settings.get(part) != experiment.settings[part]:
            raise ValueError(
                f"{experiment.name}: {part} is recorded with {recorded.settings.get(part)!r} and "
                f"now has {experiment.settings[part]!r}; record it again"
            )
        known = recorded.values.get(id_, ())
        if max(values) >= len(known):
            raise ValueError(
                f"{experiment.name}: {id_} is recorded with {len(known)} seeds, and seed "
                f"{max(values)} was measured; record it again"
            )
        slack = _slack(cells[id_])
        # Written so that NaN counts as moved.
        seeds = [seed for seed, value in values.items() if not abs(value - known[seed]) <= slack]
        if len(seeds) > SHARE_OF_RUNS * len(values):
            first = seeds[0]
            moved.append(Moved(id_, len(values), tuple(seeds), known[first], values[first]))
    return moved


def _slack(cell: Cell) -> float:
    return ROUNDING if cell.n_items is None else 100 / cell.n_items + ROUNDING


def read_recorded(path: Path) -> Recorded:
    """Read a record."""
    content = json.loads(path.read_text(encoding="utf-8"))
    values = {CellId(row, column): tuple(runs) for row, column, runs in content["values"]}
    return Recorded(content["settings"], values)


def write_recorded(
    path: Path, experiment: Experiment, measured: Mapping[CellId, Mapping[int, float]]
) -> None:
    """Write a record with one line per part and per cell, so that a diff shows which have moved."""
    head = {
        "experiment": experiment.name,
        "n_seeds": experiment.n_seeds,
        "settings": experiment.settings,
    }
    runs = {
        id_: [round(by_seed[s], DECIMALS) for s in sorted(by_seed)]
        for id_, by_seed in measured.items()
    }
    lines = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    cells = ",\n".join(f"  {_json([*id_, values])}" for id_, values in runs.items())
    with new_file(path, overwrite=True) as file:
        file.write(f'{lines},\n "values": [\n{cells}\n ]\n}}\n'.encode())


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure experiments from scratch and write their records."""
    parser = argparse.ArgumentParser(
        prog="python -m bayescrowd.experiments.engine.recorded",
        description="Record the values that the published tables measure today.",
    )
    parser.add_argument("folder", type=Path, help="folder of the records")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="experiments (default: all with published numbers)",
    )
    args = parser.parse_args(argv)
    experiments = [experiment_named(name) for name in args.names] or experiments_to_record()
    args.folder.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        path = path_of(experiment, args.folder)
        units = experiment.units(experiment.n_seeds)
        with TemporaryDirectory() as folder:
            journal = UnitJournal(Path(folder) / "journal", experiment)
            measure_missing(experiment, journal, n_seeds=experiment.n_seeds, n_jobs=1)
        measured = measured_values(experiment, units, journal.records)
        _say_what_moved(experiment, path, measured)
        write_recorded(path, experiment, measured)


def _say_what_moved(
    experiment: Experiment, path: Path, measured: Mapping[CellId, Mapping[int, float]]
) -> None:
    if not path.exists():
        print(f"{experiment.name}: recorded for the first time", file=sys.stderr)
        return
    # What has moved is of interest even if settings or cells are new.
    before = read_recorded(path)._replace(settings=experiment.settings)
    common = {
        id_: {seed: value for seed, value in values.items() if seed < len(before.values[id_])}
        for id_, values in measured.items()
        if id_ in before.values
    }
    moved = moved_cells(experiment, before, common)
    print(f"{experiment.name}: {len(moved)} of {len(measured)} cells moved", file=sys.stderr)
    for each in moved:
        print(f"  {each}", file=sys.stderr)


if __name__ == "__main__":
    main()
