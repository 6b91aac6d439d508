"""Running an experiment: what is not in the journal yet, on several cores.

Every unit has its own seed and nothing in common with the others, so that the outcome does not
depend on the number of processes, on the order in which they finish, or on interruptions.
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

from bayescrowd.experiments.experiment import CellId, Experiment, Unit
from bayescrowd.experiments.journal import Journal

__all__ = ["measure_missing"]


class _Measured(NamedTuple):
    """A unit that has just been measured."""

    unit: Unit
    values: dict[CellId, float]
    seconds: float


def measure_missing(experiment: Experiment, journal: Journal, *, n_seeds: int, n_jobs: int) -> None:
    """Measure every unit that the journal lacks, and record each as soon as it is there.

    Args:
        experiment: what to measure.
        journal: where to record.
        n_seeds: seeds 0, 1, ... of the random parts.
        n_jobs: processes; 1 measures in this one.

    Raises:
        ValueError: a part's values are not those of its cells.
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
        disable=None,  # silent where nobody watches
    )
    measure = partial(_measure, experiment.measure)
    with progress:
        for measured in _results(measure, missing, min(n_jobs, len(missing))):
            if set(measured.values) != cells[measured.unit.part]:
                raise ValueError(
                    f"{experiment.name}: part {measured.unit.part!r} gave other cells than its own"
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
    # spawn: forking a process whose libraries run threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_end_with_parent)
    try:
        futures = [pool.submit(measure, unit) for unit in units]
        for future in as_completed(futures):
            yield future.result()
    finally:  # an error or Ctrl-C: what has not started never will
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """In a new process: end at Ctrl-C without a traceback, and when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
