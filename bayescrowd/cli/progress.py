"""Progress on standard error when that is a terminal, and silence when it is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["iterations", "stage", "steps"]


@contextmanager
def stage(description: str) -> Iterator[None]:
    """Say what is being done while the block runs."""
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
def iterations(description: str, n_labels: int) -> Iterator[None]:
    """Count the iterations of EM that run inside the block, with the objective per label."""
    from tqdm import tqdm

    from bayescrowd.aggregation.em import observed

    with tqdm(
        desc=description,
        bar_format="{desc}: {n_fmt} iterations in {elapsed}, {rate_fmt}{postfix}",
        unit="it",
        file=sys.stderr,
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def count(iteration: int, objective: float) -> None:
            bar.set_postfix_str(f"{objective / n_labels:.6f} nats per label", refresh=False)
            bar.update()

        with observed(count):
            yield


@contextmanager
def steps(description: str, n_steps: int) -> Iterator[None]:
    """Count the steps of a loop that runs inside the block, with the time that is left."""
    from tqdm import tqdm

    from bayescrowd.aggregation.em import observed

    with tqdm(
        desc=description,
        total=n_steps,
        unit_scale=True,
        file=sys.stderr,
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def count(step: int, objective: float) -> None:
            bar.update()

        with observed(count):
            yield
