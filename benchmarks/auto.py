"""AutoAggregator against one fit of DawidSkene: seconds, their ratio, memory.

    python benchmarks/auto.py [--cases 0.2M 2M] [--json results.json]

Both run with their defaults on the same `Annotations`: 4 classes, 5 labels per task, 20,000 workers
of unequal accuracy. In `coins`, workers have one accuracy each; in `matrices`, a confusion matrix
each, on which Dawid–Skene converges sooner. Seconds are those of the faster of two fits; CPU
seconds are more reliable on a busy machine. Memory is the growth of the process's peak.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd

SIZES = {"0.2M": 200_000, "2M": 2_000_000}
CROWDS = ("coins", "matrices")
METHODS = ("DawidSkene", "AutoAggregator")


def measure(method: str, crowd: str, n_labels: int) -> dict[str, float]:
    import bayescrowd as bc

    sizes = (n_labels // 5, 20_000, 4)
    if crowd == "coins":
        accuracy = np.random.default_rng(2).uniform(0.4, 0.95, 20_000)
        data = bc.simulate.one_coin_crowd(*sizes, labels_per_task=5, accuracy=accuracy)
    else:
        data = bc.simulate.crowd(*sizes, labels_per_task=5, accuracy=0.75, activity=0.5)
    before = _peak_bytes()
    wall, cpu = [], []
    for _ in range(2):
        start = time.perf_counter(), time.process_time()
        model = getattr(bc, method)().fit(data.annotations)
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return {
        "seconds": min(wall),
        "CPU seconds": min(cpu),
        "MB": (_peak_bytes() - before) / 2**20,
        "error in %": 100 * float((model.labels_ != data.truth).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=SIZES, default=[*SIZES])
    parser.add_argument("--json", type=Path, help="file to which the rows are also written")
    arguments = parser.parse_args()
    rows = []
    for case in arguments.cases:
        for crowd in CROWDS:
            measured = {}
            for method in METHODS:
                # Spawned, so that the memory peak of one method does not hide that of the other.
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    measured[method] = pool.apply(measure, (method, crowd, SIZES[case]))
            for method, row in measured.items():
                ratio = row["CPU seconds"] / measured["DawidSkene"]["CPU seconds"]
                rows.append({"labels": case, "crowd": crowd, "method": method, **row, "x": ratio})
            print(pd.DataFrame(rows[-2:]).to_string(index=False, float_format="%.3g"), flush=True)
    print("\nx = CPU seconds divided by those of DawidSkene")
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g"))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
