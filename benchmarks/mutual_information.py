"""The matrix of pairwise mutual information: seconds and peak memory.

    python benchmarks/mutual_information.py [--cases small large] [--estimators paper ...]

`large` has 2,000 workers, 200,000 tasks, 1,000,000 labels and 4 classes. Every measurement is a
whole call `pairwise_mutual_information(annotations)` in a separate process; `peak` is the largest
resident memory of that process, including the labels and the libraries.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from pathlib import Path
from typing import get_args

import pandas as pd

from bayescrowd.information import Estimator

SIZES = {"small": (20_000, 200), "medium": (100_000, 1_000), "large": (200_000, 2_000)}
"""Numbers of tasks and workers; each task has five labels."""


def measure(case: str, estimator: Estimator) -> dict[str, float | str]:
    import bayescrowd as bc

    n_tasks, n_workers = SIZES[case]
    data = bc.simulate.crowd(n_tasks, n_workers, 4, labels_per_task=5, activity=0.5, seed=0)
    before = _peak_gigabytes()
    start = time.perf_counter()
    matrix = bc.pairwise_mutual_information(data.annotations, estimator)
    seconds = time.perf_counter() - start
    assert matrix.shape == (n_workers, n_workers)
    return {
        "case": case,
        "estimator": estimator,
        "workers": n_workers,
        "labels": data.annotations.n_labels,
        "seconds": seconds,
        "peak GB": _peak_gigabytes(),
        "of it before": before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--estimators", nargs="+", default=list(get_args(Estimator)))
    parser.add_argument("--json", type=Path, help="file to which the rows are also written")
    arguments = parser.parse_args()
    rows = []
    for case in arguments.cases:
        for estimator in arguments.estimators:
            # Spawned, so that the peak belongs to this measurement alone.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(measure, (case, estimator)))
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g"))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
