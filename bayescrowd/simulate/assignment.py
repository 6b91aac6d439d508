"""Which worker judges which task in a simulated crowd.

There are four designs: a fixed number of different workers per task, a probability for each pair
of a task and a worker, an explicit mask of pairs, or every pair. `judged_pairs` yields the pairs
in blocks and in ascending order, each at most once, in time proportional to their number: twenty
million of them take seconds and no more memory than they fill.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from bayescrowd.checks.parameters import Count, Fraction, validate_arguments
from bayescrowd.checks.parameters import Real as Range

__all__ = [
    "TINY",
    "Design",
    "Vector",
    "bounded_vector",
    "judged_pairs",
    "make_design",
]

BLOCK = 1 << 20
"""Number of pairs drawn at a time, so that little memory is needed beyond the result."""

TINY = 1e-12
"""Replaces zero where a positive number is needed."""

Vector = Sequence[float] | Real[np.ndarray, " _"]
"""One number per class or per worker."""

Pairs = tuple[Int[np.ndarray, " label"], Int[np.ndarray, " label"]]
"""Task and worker of each judged pair."""


class Design(NamedTuple):
    """Who judges what; at most one of `labels_per_task`, `rates` and `mask` is set."""

    n_tasks: int
    """Number of tasks."""
    n_workers: int
    """Number of workers."""
    labels_per_task: int | None
    """Number of different workers per task."""
    rates: Float[np.ndarray, " worker"] | None
    """Each worker's probability of judging a task."""
    mask: Bool[np.ndarray, "task worker"] | None
    """The judged pairs."""
    activity: float | Float[np.ndarray, " worker"]
    """Exponent of the workers' weights, or the weights themselves."""


@validate_arguments
def make_design(
    n_tasks: Count,
    n_workers: Count,
    labels_per_task: Count | None,
    density: Fraction | Vector | None,
    mask: Bool[np.ndarray, "task worker"] | None,
    activity: Annotated[float, Range(0, 10)] | Vector,
) -> Design:
    """A design from the arguments that describe it.

    Args:
        n_tasks: number of tasks.
        n_workers: number of workers.
        labels_per_task: number of different workers per task.
        density: probability of each pair, or one probability per worker.
        mask: the judged pairs. Without any of the three every pair is judged; more than one is an
            error.
        activity: exponent of the workers' weights or the weights themselves; only with
            `labels_per_task`.

    Raises:
        ValueError: arguments contradict each other or are out of range.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.simulate.assignment import judged_pairs, make_design
        >>> all_pairs = make_design(2, 3, None, None, None, activity=0)
        >>> [task], [worker] = zip(*judged_pairs(all_pairs, np.random.default_rng(0)))
        >>> task, worker
        (array([0, 0, 0, 1, 1, 1], dtype=int32), array([0, 1, 2, 0, 1, 2], dtype=int32))
    """
    mask = None if mask is None else np.asarray(mask)  # lists of rows are welcome, too
    given = {"labels_per_task": labels_per_task, "density": density, "mask": mask}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} were given; expected at most one of them")
    if labels_per_task is not None and not 1 <= labels_per_task <= n_workers:
        raise ValueError(f"labels_per_task={labels_per_task} is outside 1..{n_workers} (n_workers)")
    if mask is not None and mask.shape != (n_tasks, n_workers):
        raise ValueError(
            f"mask has shape {mask.shape}; expected tasks x workers, {(n_tasks, n_workers)}"
        )
    return Design(
        n_tasks=n_tasks,
        n_workers=n_workers,
        labels_per_task=labels_per_task,
        rates=_rates(density, n_workers),
        mask=mask,
        activity=_activity(activity, n_workers, labels_per_task),
    )


def judged_pairs(design: Design, rng: np.random.Generator) -> Iterator[Pairs]:
    """Tasks and workers of all judged pairs, block by block, in ascending order."""
    if design.labels_per_task is not None:
        return _fixed_pairs(design, design.labels_per_task, design.activity, rng)
    if design.rates is not None:
        return _bernoulli_pairs(design, design.rates, rng)
    if design.mask is not None:
        return _masked_pairs(design, design.mask)
    return _bernoulli_pairs(design, np.ones(design.n_workers), rng)


def bounded_vector(
    name: str, values: Vector, n: int, what: str, *, low: float, high: float
) -> Float[np.ndarray, " n"]:
    """The values as an array of n finite numbers from `low` to `high`.

    Raises:
        ValueError: there are not n values, or one is outside the range.
    """
    array = np.asarray(values, dtype=float)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected one number per {what}, {n}")
    bad = np.flatnonzero(~((array >= low) & (array <= high) & np.isfinite(array)))
    if len(bad):
        raise ValueError(f"{name} of {what} {bad[0]} is {array[bad[0]]}; expected {low} to {high}")
    return array


def _fixed_pairs(
    design: Design,
    labels_per_task: int,
    activity: float | Float[np.ndarray, " worker"],
    rng: np.random.Generator,
) -> Iterator[Pairs]:
    weights = _worker_weights(activity, design.n_workers, rng)
    # A draw is new with at least this probability, so that redrawing needs at most
    # labels_per_task / fresh draws per task on average; keys always need one per worker.
    fresh = 1 - np.sort(weights)[::-1][: labels_per_task - 1].sum()
    redraw = labels_per_task <= fresh * design.n_workers
    draw = _workers_by_redrawing if redraw else _workers_by_keys
    n_rows = max(1, BLOCK // (labels_per_task if redraw else design.n_workers))
    for first in range(0, design.n_tasks, n_rows):
        n = min(n_rows, design.n_tasks - first)
        workers = draw(n, labels_per_task, weights, rng)
        tasks = np.arange(first, first + n, dtype=np.int32)
        yield np.repeat(tasks, labels_per_task), workers.ravel()


def _worker_weights(
    activity: float | Float[np.ndarray, " worker"], n_workers: int, rng: np.random.Generator
) -> Float[np.ndarray, " worker"]:
    if isinstance(activity, np.ndarray):
        weights = activity
    elif activity == 0:
        weights = np.ones(n_workers)
    else:
        weights = (rng.permutation(n_workers) + 1.0) ** -activity
    return weights / weights.sum()


def _workers_by_redrawing(
    n: int, k: int, weights: Float[np.ndarray, " worker"], rng: np.random.Generator
) -> Int[np.ndarray, "task k"]:
    """The first k different workers of an endless stream of draws, for each of n tasks."""
    # With weights, choice searches their cumulative sums, which is slower than plain integers.
    unequal = None if weights.min() == weights.max() else weights

    def draw(size: int) -> Int[np.ndarray, " draw"]:
        return rng.choice(len(weights), size, p=unequal).astype(np.int32)

    workers = np.sort(draw(n * k).reshape(n, k), axis=1)
    unfinished = np.flatnonzero(_repeats(workers).any(axis=1))
    while len(unfinished):
        rows = workers[unfinished]
        repeats = _repeats(rows)
        rows[repeats] = draw(int(repeats.sum()))
        rows.sort(axis=1)
        workers[unfinished] = rows
        unfinished = unfinished[_repeats(rows).any(axis=1)]
    return workers


def _repeats(ascending: Int[np.ndarray, "task k"]) -> Bool[np.ndarray, "task k"]:
    repeats = np.zeros(ascending.shape, dtype=bool)
    np.equal(ascending[:, 1:], ascending[:, :-1], out=repeats[:, 1:])
    return repeats


def _workers_by_keys(
    n: int, k: int, weights: Float[np.ndarray, " worker"], rng: np.random.Generator
) -> Int[np.ndarray, "task k"]:
    """The workers of the k smallest exponential keys, of rates `weights`, for each of n tasks.

    The distribution is the same as by redrawing (Efraimidis and Spirakis 2006).
    """
    keys = rng.standard_exponential((n, len(weights))) / weights
    smallest = np.argpartition(keys, k - 1, axis=1)[:, :k]
    return np.sort(smallest.astype(np.int32), axis=1)


def _bernoulli_pairs(
    design: Design, rates: Float[np.ndarray, " worker"], rng: np.random.Generator
) -> Iterator[Pairs]:
    """Jump from judged pair to judged pair by geometric gaps: pairs not judged cost nothing.

    The gaps are those of the highest rate; a pair of a worker with a lower rate is kept with the
    ratio of the two as its probability.
    """
    highest = float(rates.max())
    if highest == 0:
        return
    n_pairs = design.n_tasks * design.n_workers
    expected = n_pairs * highest
    size = int(min(BLOCK, expected + 5 * math.sqrt(expected) + 1))
    last = -1
    while last < n_pairs:
        gaps = np.minimum(rng.geometric(highest, size), n_pairs + 1)
        pairs = last + np.cumsum(gaps)
        last = int(pairs[-1])
        task, worker = np.divmod(pairs[pairs < n_pairs], design.n_workers)
        if rates.min() < highest:
            kept = rng.random(len(worker)) * highest < rates[worker]
            task, worker = task[kept], worker[kept]
        yield task.astype(np.int32), worker.astype(np.int32)


def _masked_pairs(design: Design, mask: Bool[np.ndarray, "task worker"]) -> Iterator[Pairs]:
    n_rows = max(1, BLOCK // design.n_workers)
    for first in range(0, design.n_tasks, n_rows):
        task, worker = np.nonzero(mask[first : first + n_rows])
        yield (task + first).astype(np.int32), worker.astype(np.int32)


def _rates(density: float | Vector | None, n_workers: int) -> Float[np.ndarray, " worker"] | None:
    if density is None:
        return None
    if isinstance(density, int | float | np.number):
        return np.full(n_workers, float(density))
    return bounded_vector("density", density, n_workers, "worker", low=0, high=1)


def _activity(
    activity: float | Vector, n_workers: int, labels_per_task: int | None
) -> float | Float[np.ndarray, " worker"]:
    equal = isinstance(activity, int | float | np.number) and activity == 0
    if labels_per_task is None and not equal:
        raise ValueError(
            "activity needs labels_per_task; without it, expected one density for each worker"
        )
    if isinstance(activity, int | float | np.number):
        return float(activity)
    return bounded_vector("activity", activity, n_workers, "worker", low=TINY, high=math.inf)
