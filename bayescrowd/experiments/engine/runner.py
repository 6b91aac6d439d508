"""Run the units of an experiment that are not in the journal yet, on several cores.

Every unit has its own seed and shares nothing with the others, so the outcome does not depend on
the number of processes, on the order in which they finish, or on interruptions.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import NamedTuple

from tqdm import tqdm

from bayescrowd.experiments.engine.experiment import CellId, Experiment, Unit
from bayescrowd.experiments.engine.journal import UnitJournal

__all__ = ["measure_missing"]


class _Measured(NamedTuple):
    """A unit that has just been measured."""

    unit: Unit
    values: dict[CellId, float]
    seconds: float


def measure_missing(
    experiment: Experiment, journal: UnitJournal, *, n_seeds: int, n_jobs: int
) -> None:
    """Measure every unit that the journal lacks, and record each as soon as it is measured.

    Args:
        experiment: what to measure.
        journal: where to record it.
        n_seeds: number of seeds (0, 1, ...) for the random parts.
        n_jobs: number of processes; 1 measures in the current process.

    Raises:
        ValueError: a part returned values for other cells than its own.
    """
    units = experiment.units(n_seeds)
    missing = [unit for unit in units if unit not in journal.records]
    cells = {
        part.name: {cell.id for cell in experiment.cells if cell.part == part.name}
        for part in experiment.parts
    }
    progress = tqdm(
        total=len(units),
        initial=len(units) - len(missing),
        desc=experiment.name,
        unit="unit",
        disable=None,  # silent where standard error is no terminal
    )
    measure = partial(_measure, experiment.measure)
    with progress:
        for measured in _results(measure, missing, min(n_jobs, len(missing))):
            if set(measured.values) != cells[measured.unit.part]:
                raise ValueError(
                    f"{experiment.name}: part {measured.unit.part!r} returned values for other "
                    "cells than its own"
                )
            journal.add(*measured)
            progress.update()


def _measure(measure: Callable[[str, int], Mapping[CellId, float]], unit: Unit) -> _Measured:
    start = time.perf_counter()
    values = {id_: float(value) for id_, value in measure(*unit).items()}
    return _Measured(unit, values, time.perf_counter() - start)


def _results(
    measure: Callable[[Unit], _Measured], units: Iterable[Unit], n_jobs: int
) -> Iterator[_Measured]:
    """The measured units, in the order in which they are ready."""
    if n_jobs <= 1:
        yield from map(measure, units)
        return
    # spawn: forking a process whose libraries run threads can deadlock.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_end_with_parent)
    try:
        futures = [pool.submit(measure, unit) for unit in units]
        for future in as_completed(futures):
            yield future.result()
    finally:  # after an error or Ctrl-C, do not start what is still waiting
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Make a new process end at Ctrl-C without a traceback, and when its parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
