"""The one loop: repeat a step until it settles, and keep its trace.

A method states its step, `state -> Step`, and how far that step moved. Everything else is here
once: the limit on iterations, the tolerance, the trace, whether the loop converged, the warning if
it did not, and the reports that move a progress bar.

* `settle` stops when a step changes less than the tolerance.
* `ascend` is for steps that raise an objective: it stops when the objective rises by less.
* `watch_iterations` shows every iteration that runs inside a block to an observer.
* `warn_not_settled`, `warn_not_converged` and `ignore_not_converged` issue or ignore the
  `ConvergenceWarning` of scikit-learn, which is imported only when it is needed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

__all__ = [
    "Course",
    "Iteration",
    "Step",
    "ascend",
    "ignore_not_converged",
    "report_iteration",
    "settle",
    "warn_not_converged",
    "warn_not_settled",
    "watch_iterations",
]

State = TypeVar("State")

# Dataclasses, because beartype cannot read generic named tuples.


@dataclass(frozen=True)
class Step(Generic[State]):
    """The result of one step of a method."""

    state: State
    """Where the next step starts."""
    value: float
    """What the trace records: an objective, or the size of the change."""
    change: float
    """How far the step moved, in the unit of the tolerance; NaN where that is not known."""


@dataclass(frozen=True)
class Course(Generic[State]):
    """Where a loop stopped, and how it got there."""

    state: State
    """The state after the last step."""
    trace: Float[np.ndarray, " iteration"]
    """The value of each step."""
    converged: bool
    """Whether the last step changed less than the tolerance."""


class Iteration(NamedTuple):
    """What an observer learns about an iteration."""

    number: int
    """Number of the iteration in its loop, counted from 1."""
    value: float
    """Entry of the trace."""
    change: float
    """What is compared with the tolerance; NaN where the loop has no such quantity."""
    tol: float
    """The tolerance; 0 for a loop that runs a fixed number of steps."""


Observer = Callable[[Iteration], None]

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


def settle(
    step: Callable[[State], Step[State]], state: State, *, n_iter: int, tol: float
) -> Course[State]:
    """Repeat a step until it changes less than the tolerance.

    Args:
        step: one iteration.
        state: where the first step starts.
        n_iter: largest number of iterations, at least 1.
        tol: stop when `Step.change` is below this; 0 runs all iterations.

    Examples:
        >>> newton = lambda x: Step((x + 2 / x) / 2, x * x - 2, abs(2 / x - x) / 2)
        >>> course = settle(newton, 1.0, n_iter=20, tol=1e-9)
        >>> round(course.state, 6), len(course.trace), course.converged
        (1.414214, 5, True)
    """
    trace: list[float] = []
    converged = False
    while len(trace) < n_iter and not converged:
        taken = step(state)
        state = taken.state
        trace.append(taken.value)
        converged = bool(tol > 0 and taken.change < tol)
        report_iteration(len(trace), taken.value, change=taken.change, tol=tol)
    return Course(state, np.array(trace), converged)


def ascend(
    step: Callable[[State], tuple[State, float]], state: State, *, n_iter: int, tol: float
) -> Course[State]:
    """Repeat a step that raises an objective until it rises by less than the tolerance.

    Args:
        step: one iteration: the next state, and the objective there.
        state: where the first step starts.
        n_iter: largest number of iterations, at least 1.
        tol: stop when the objective rises by less than this; 0 runs all iterations.

    Examples:
        >>> halve = lambda x: (x / 2, 1 - x / 2)
        >>> ascend(halve, 1.0, n_iter=100, tol=0.2).trace
        array([0.5  , 0.75 , 0.875])
    """
    before = math.nan  # the objective before the first step is not known

    def rise(state: State) -> Step[State]:
        nonlocal before
        state, objective = step(state)
        gain, before = objective - before, objective
        return Step(state, objective, gain)

    return settle(rise, state, n_iter=n_iter, tol=tol)


@contextmanager
def watch_iterations(observer: Observer) -> Iterator[None]:
    """Call `observer` after each iteration of every loop that runs inside the block.

    A progress bar needs this, because callers of an estimator do not see its loops, of which there
    may be several.

    Examples:
        >>> seen = []
        >>> with watch_iterations(lambda iteration: seen.append(iteration.value)):
        ...     course = ascend(lambda x: (x / 2, -x), 1.0, n_iter=3, tol=0)
        >>> seen
        [-1.0, -0.5, -0.25]
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def report_iteration(
    number: int, value: float, *, change: float = math.nan, tol: float = 0.0
) -> None:
    """Report an iteration to the observer, if there is one, for loops that stop by other rules."""
    observer = _observer.get()
    if observer is not None:
        observer(Iteration(number, value, change, tol))


def warn_not_settled(
    method: str,
    *,
    n_iter: int,
    tol: float,
    quantity: str = "it",
    unit: str = "",
    hint: str = "",
    stacklevel: int = 2,
) -> None:
    """Warn that a loop used up its iterations.

    Args:
        method: name of the method that stopped.
        n_iter: its limit on iterations.
        tol: its tolerance.
        quantity: what had not settled.
        unit: unit of the tolerance.
        hint: what else a user should know.
        stacklevel: as for `warn_not_converged`; 2 is the line that calls `fit`, if `fit` warns.
    """
    warn_not_converged(
        f"{method} stopped after n_iter={n_iter} iterations before {quantity} settled to "
        f"tol={tol:g}{f' {unit}' if unit else ''}; raise n_iter, or set tol=0 to ask for exactly "
        f"n_iter{f'; {hint}' if hint else ''}",
        stacklevel=stacklevel + 1,
    )


def warn_not_converged(message: str, *, stacklevel: int) -> None:
    """Issue a `sklearn.exceptions.ConvergenceWarning`.

    Args:
        message: what did not converge, and what to do about it.
        stacklevel: the line that the warning points to; 1 is the caller's.
    """
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)


@contextmanager
def ignore_not_converged() -> Iterator[None]:
    """Ignore `sklearn.exceptions.ConvergenceWarning` inside a `with` statement."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
