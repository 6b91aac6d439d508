"""Stagewise EM on many features: seconds, peak memory, and the cost of one scan of all pairs.

    python benchmarks/stagewise.py [--features 1000] [--items 20000] [--values 2] [--components 3]
        [--density 1.0] [--iterations 20] [--json results.json]

The table has 5 % informative features; `density` is the share of entries that are present. `scan`
is one scan of all pairs in all components, which is the cost of an iteration. `x reference` is the
speed-up over the sparse products of `bayescrowd.information`, for one component and the first
`--reference-items` items.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import bayescrowd as bc
from bayescrowd.data.features import FeatureTable, as_feature_table
from bayescrowd.information import conditional_mutual_information
from bayescrowd.mixture.pair_information import PairInformation
from bayescrowd.mixture.stagewise_estimator import StagewiseEM


def crowd(arguments: argparse.Namespace) -> FeatureTable:
    data = bc.simulate.sparse_crowd(
        arguments.items,
        arguments.features,
        arguments.values,
        alpha=0.05,
        accuracy=0.7,
        density=None if arguments.density == 1 else arguments.density,
        seed=0,
    )
    return as_feature_table(data.annotations)


def run(arguments: argparse.Namespace) -> dict[str, float]:
    table = crowd(arguments)
    rng = np.random.default_rng(0)
    responsibilities = rng.dirichlet(np.ones(arguments.components), size=table.n_items)
    start = time.perf_counter()
    pairs = PairInformation(table)
    prepared = time.perf_counter()
    pairs.scan(responsibilities)
    scanned = time.perf_counter()
    est = StagewiseEM(arguments.components, n_iter=arguments.iterations, tol=0.0).fit(table)
    fitted = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    few = table.select_items(np.arange(min(arguments.reference_items, table.n_items)))
    ones = np.ones((few.n_items, 1))
    begun = time.perf_counter()
    expected = conditional_mutual_information(few, ones).total
    reference = time.perf_counter() - begun
    begun = time.perf_counter()
    found = PairInformation(few).matrix(ones)
    ours = time.perf_counter() - begun
    return {
        "entries": table.n_entries,
        "prepare": prepared - start,
        "scan": scanned - prepared,
        "fit": fitted - scanned,
        "iterations": est.n_iter_,
        "informative": len(est.informative_),
        "peak GB": memory,
        "x reference": reference / ours,
        "largest difference": float(np.abs(found - expected).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--values", type=int, default=2)
    parser.add_argument("--components", type=int, default=3)
    parser.add_argument("--density", type=float, default=1.0)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--reference-items", type=int, default=1_000)
    parser.add_argument("--json", type=Path, help="file to which the row is also written")
    arguments = parser.parse_args()
    row = run(arguments)
    for name, value in row.items():
        print(f"{name:20} {value:,.3g}")
    if arguments.json:
        arguments.json.write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
