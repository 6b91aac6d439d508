"""Progress on standard error if that is a terminal, and nothing if it is not."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["iterations", "stage", "steps"]


@contextmanager
def stage(description: str) -> Iterator[None]:
    """Show a description while the `with` block runs."""
    from tqdm import tqdm

    with tqdm(
        desc=description,
        bar_format="{desc} ...",
        file=sys.stderr,
        leave=False,
        disable=not sys.stderr.isatty(),
    ):
        yield


@contextmanager
def iterations(description: str) -> Iterator[None]:
    """Count the iterations that run inside the `with` block and show the change of the last one."""
    from tqdm import tqdm

    from bayescrowd.iteration import Iteration, watch_iterations

    with tqdm(
        desc=description,
        bar_format="{desc}: {n_fmt} iterations in {elapsed}, {rate_fmt}{postfix}",
        unit="it",
        file=sys.stderr,
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def count(iteration: Iteration) -> None:
            if not math.isnan(iteration.change):
                change, tol = f"{iteration.change:.2g}", f"{iteration.tol:.2g}"
                bar.set_postfix_str(f"change {change}, stops below {tol}", refresh=False)
            bar.update()

        with watch_iterations(count):
            yield


@contextmanager
def steps(description: str, n_steps: int) -> Iterator[None]:
    """Count the steps of a loop that runs inside the `with` block and show the remaining time."""
    from tqdm import tqdm

    from bayescrowd.iteration import Iteration, watch_iterations

    with tqdm(
        desc=description,
        total=n_steps,
        unit_scale=True,
        file=sys.stderr,
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def count(iteration: Iteration) -> None:
            bar.update()

        with watch_iterations(count):
            yield
