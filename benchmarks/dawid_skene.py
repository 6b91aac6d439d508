"""Dawid–Skene EM against crowd-kit's, on the same labels in one run.

    python benchmarks/dawid_skene.py [--cases bluebird trec 0.5M 5M 20M] [--json results.json]

Every measurement is a whole call `fit(frame)` with 20 iterations in a separate process: `first` is
the first call in the process, `again` the fastest of the following calls, `coded` the fastest on
labels that are already `Annotations`. `memory` is the growth of the process's peak in units of
three int32 columns of the labels. crowd-kit is timed in the same way (its first call) and left out
above `--peer-limit` labels. The extra `benchmark` is required; `trec` and `bluebird` need
`BAYESCROWD_DATA` or a network.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

N_ITER = 20
SYNTHETIC = {"0.5M": 500_000, "5M": 5_000_000, "20M": 20_000_000}


def synthetic(n_labels: int) -> pd.DataFrame:
    """4 classes, 5 labels per task, 20,000 workers of unequal accuracy, rows in random order."""
    from bayescrowd import simulate

    accuracy = np.random.default_rng(2).uniform(0.4, 0.95, 20_000)
    crowd = simulate.one_coin_crowd(
        n_labels // 5, 20_000, 4, labels_per_task=5, accuracy=accuracy, seed=0
    )
    ann = crowd.annotations
    order = np.random.default_rng(1).permutation(ann.n_labels)
    columns = {"task": ann.task_codes, "worker": ann.worker_codes, "label": ann.label_codes}
    return pd.DataFrame({name: codes[order] for name, codes in columns.items()})


def labels_of(case: str) -> pd.DataFrame:
    if case in SYNTHETIC:
        return synthetic(SYNTHETIC[case])
    from bayescrowd import load_dataset

    return load_dataset(case).annotations.to_frame()


def measure_ours(case: str) -> dict[str, float]:
    import bayescrowd as bc

    frame = labels_of(case)
    estimator = bc.DawidSkene(n_iter=N_ITER, tol=0.0)
    before = _peak_bytes()
    first = _seconds(lambda: estimator.fit(frame))
    memory = (_peak_bytes() - before) / (12 * len(frame))
    repeats = 5 if len(frame) < 10**6 else 2
    again = min(_seconds(lambda: estimator.fit(frame)) for _ in range(repeats))
    ann = bc.Annotations.from_frame(frame)
    coded = min(_seconds(lambda: estimator.fit(ann)) for _ in range(repeats))
    return {
        "labels": len(frame),
        "first": first,
        "again": again,
        "coded": coded,
        "memory": memory,
    }


def measure_crowd_kit(case: str) -> dict[str, float]:
    from crowdkit.aggregation import DawidSkene

    frame = labels_of(case)
    before = _peak_bytes()
    first = _seconds(lambda: DawidSkene(n_iter=N_ITER, tol=0.0).fit(frame))
    return {"first": first, "memory": (_peak_bytes() - before) / (12 * len(frame))}


def run(case: str, peer_limit: int) -> dict[str, float | str]:
    row: dict[str, float | str] = {"case": case}
    row.update(_in_own_process(measure_ours, case))
    if row["labels"] <= peer_limit:
        peer = _in_own_process(measure_crowd_kit, case)
        row["crowd-kit"] = peer["first"]
        for name in ("first", "again", "coded"):
            row[f"x {name}"] = peer["first"] / float(row[name])
    row["ns/label/iteration"] = 1e9 * float(row["coded"]) / (N_ITER * float(row["labels"]))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=["bluebird", "trec", *SYNTHETIC])
    parser.add_argument(
        "--peer-limit", type=int, default=5_000_000, help="largest number of labels for crowd-kit"
    )
    parser.add_argument("--json", type=Path, help="file to which the rows are also written")
    arguments = parser.parse_args()
    rows = []
    for case in arguments.cases:
        rows.append(run(case, arguments.peer_limit))
        print(pd.DataFrame([rows[-1]]).to_string(index=False, float_format="%.3g"), flush=True)
    print("\nseconds; x = seconds of crowd-kit / ours; memory in units of three int32 columns")
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g", na_rep="-"))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _in_own_process(measure: Callable[[str], dict[str, float]], case: str) -> dict[str, float]:
    # Spawned, so that nothing is imported, compiled or cached beforehand.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (case,))


if __name__ == "__main__":
    main()
