"""CPU time of budgeted learning with the access path model, step by step.

    python benchmarks/access_path.py [--features 20] [--observations 200] [--labels 5]

`run` plays whole runs of policies on a simulated table: 3 values per feature, 2 classes, 3
informative features of 20, 30 % of the labels wrong. A step is a question with its labels: ask,
answer, tell; `warm` is the fastest run of a policy. Policies share compiled code, so that only the
very first run, `cold`, includes compilation. Under the printed delta of B-LEAFS nothing is ever
credible: it checks nothing and spends the whole budget, while the midpoint checks after every
answer. `step` observes an answer about one feature and draws, while the other features have either
no answers or many: both must cost the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.evaluation.simulation import play
from bayescrowd.budgeted.evaluation.table_crowd import TableCrowd, noisy_labels

N_INFORMATIVE = 3
N_ROWS = 4_000
NOISE = 0.3


def simulated_table(n_features: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N_ROWS)
    columns = {}
    for f in range(n_features):
        rows = rng.dirichlet(np.full(3, 0.5), size=2)
        if f >= N_INFORMATIVE:
            rows[1] = rows[0]
        above = rng.random((N_ROWS, 1)) > rows.cumsum(axis=1)[kind, :-1]
        columns[f"x{f}"] = np.array(["low", "mid", "high"])[above.sum(axis=1)]
    return pd.DataFrame(columns | {"kind": np.where(kind == 1, "one", "other")})


def run_seconds(make: Callable[..., bc.BLeafs], table: pd.DataFrame, repeats: int) -> list[float]:
    """CPU seconds per step of each run, including the computation of the result."""
    space = bc.FeatureSpace.from_table(table, target="kind")
    coded = space.code(table, target="kind")
    seconds = []
    for seed in range(repeats):
        policy, rng = make(space, seed=seed), np.random.default_rng(seed)
        labels = noisy_labels(
            rng,
            coded.values,
            space.n_values,
            n_labels=policy.labels_per_query,
            noise="uniform",
            rate=NOISE,
        )
        crowd = TableCrowd(space, coded.target, labels, rng)
        start = time.process_time()
        play(policy, crowd)
        result = policy.result()
        seconds.append((time.process_time() - start) / len(result.history))
    return seconds


def step_seconds(
    n_features: int, n_labels: int, n_of_others: int, n_steps: int = 200, repeats: int = 5
) -> float:
    """CPU seconds to observe an answer about the first feature and draw; best of the repeats."""
    values = {f"x{f}": ["low", "mid", "high"] for f in range(n_features)}
    space = bc.FeatureSpace(classes=["one", "other"], features=values)
    rng = np.random.default_rng(1)
    best = np.inf
    for _ in range(repeats):
        belief = AccessPathBelief(space, n_labels)
        for f in range(1, n_features):
            for _ in range(n_of_others):
                said = tuple(rng.integers(0, 3, n_labels))
                belief = belief.observe(f, int(rng.integers(2)), said)
        labels = rng.integers(0, 3, (n_steps, n_labels)).tolist()
        start = time.process_time()
        for step in range(n_steps):
            belief = belief.observe(0, step % 2, tuple(labels[step]))
            belief.draw(rng)
        best = min(best, (time.process_time() - start) / n_steps)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--observations", type=int, default=200)
    parser.add_argument("--labels", type=int, default=5)
    parser.add_argument("--selected", type=int, default=3, help="number of features to select")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    table = simulated_table(args.features)
    shared = {
        "budget": args.observations * args.labels,
        "n_features": args.selected,
        "labels_per_query": args.labels,
        "model": "access_path",
    }
    policies = {
        "TsGreedy": partial(bc.TsGreedy, **shared),
        "BLeafs": partial(bc.BLeafs, delta="printed", **shared),
        "BLeafs, midpoint": partial(bc.BLeafs, **shared),
        "BiasedRobin": partial(bc.BiasedRobin, **shared),
        "BudgetedSelection": partial(bc.BudgetedSelection, **shared),
    }
    print(f"run: {args.features} features, {args.observations} observations x {args.labels} labels")
    for name, make in policies.items():
        first, *warm = run_seconds(make, table, 1 + args.repeats)
        cold = f", {first * 1e3:.2f} ms cold" if name == "TsGreedy" else ""
        print(f"  {name:<18} {min(warm) * 1e3:6.2f} ms per step warm{cold}")
    for n in (0, args.observations):
        step = step_seconds(args.features, args.labels, n, repeats=2)
        print(f"step: {step * 1e3:.2f} ms, with {n} answers about each of the other features")


if __name__ == "__main__":
    main()
