"""Cost of the spectral start of Dawid–Skene EM, in units of EM iterations on the same labels.

    python benchmarks/spectral.py [--cases 0.1M 1M] [--repeats 5] [--json results.json]

`start` is one call of `spectral_start` on `Annotations`, including its random partition;
`iteration` is one EM iteration of `DawidSkene` from that start: the difference between two runs
divided by the difference of their iterations, so that the set-up is not counted. Both are CPU
times of all threads, the smallest of the repeats; `ratio` is the first divided by the second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import bayescrowd as bc
from bayescrowd.aggregation.spectral.method_of_moments import spectral_start
from bayescrowd.aggregation.spectral.worker_groups import random_groups, worker_units
from bayescrowd.aggregation.task_sample import FOLD_ROUNDS, fingerprints

CASES = {"0.1M": (20_000, 500), "1M": (200_000, 5_000)}
"""Numbers of tasks and workers; each task has five labels, and there are four classes."""

SHORT, LONG = 2, 12


def synthetic(case: str) -> bc.Annotations:
    n_tasks, n_workers = CASES[case]
    return bc.simulate.crowd(
        n_tasks, n_workers, 4, labels_per_task=5, accuracy=0.7, spammers=0.2, seed=0
    ).annotations


def run(case: str, repeats: int) -> dict[str, float | str]:
    ann = synthetic(case)
    rng = np.random.default_rng(0)

    def start() -> np.ndarray:
        units = worker_units(ann, fingerprints(ann, n_rounds=FOLD_ROUNDS).worker)
        return spectral_start(rng, ann, random_groups(rng, units), clip=0.1).confusions

    init = start()

    def em(n_iter: int) -> Callable[[], object]:
        return lambda: bc.DawidSkene(init=init, n_iter=n_iter, tol=0.0).fit(ann)

    seconds = {"start": start, "short": em(SHORT), "long": em(LONG)}
    least = {name: _shortest_time(call, repeats) for name, call in seconds.items()}
    iteration = (least["long"] - least["short"]) / (LONG - SHORT)
    return {
        "case": case,
        "labels": ann.n_labels,
        "start": least["start"],
        "iteration": iteration,
        "ratio": least["start"] / iteration,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file to which the rows are also written")
    arguments = parser.parse_args()
    rows = [run(case, arguments.repeats) for case in arguments.cases]
    print("CPU seconds; ratio = start / iteration")
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g"))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _shortest_time(call: Callable[[], object], repeats: int) -> float:
    def once() -> float:
        before = time.process_time()
        call()
        return time.process_time() - before

    return min(once() for _ in range(repeats))


if __name__ == "__main__":
    main()
