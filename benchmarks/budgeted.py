"""Cost of a step (ask, then tell) of every policy, amortised over whole runs.

    python benchmarks/budgeted.py [--budget 400] [--features 4] [--repeats 5] [--table nursery]

`ms` is the CPU time per query in the fastest of several runs; `first` is that of the first run in
the process, including compilation and imports. `late / early` compares the last quarter of the
queries with the second: a step must not become slower as answers accumulate. (Up to 200 answers
`BudgetedSelection` computes its gains the more often per query the less budget is left; from then
on with less effort.) Data sets need `BAYESCROWD_DATA` or a
network; `--table simulated` does not, and has 20 features with 3 values each and 4 classes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

import bayescrowd as bc
from bayescrowd.budgeted.evaluation.table_crowd import TableCrowd
from bayescrowd.budgeted.policy import Policy

POLICIES = [bc.RoundRobin, bc.BiasedRobin, bc.TsGreedy, bc.BLeafs, bc.BudgetedSelection]


def simulated_table(n_rows: int = 5_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 4, n_rows)
    channels = rng.dirichlet(np.ones(3), (20, 4))
    above = rng.random((20, n_rows, 1)) > channels.cumsum(axis=-1)[:, target, :-1]
    values = above.sum(axis=-1)
    return pd.DataFrame({f"x{f:02d}": values[f] for f in range(20)} | {"class": target})


def run(policy: Policy, crowd: TableCrowd) -> np.ndarray:
    """CPU time at the start and after every query."""
    times = [time.process_time()]
    while (query := policy.ask()) is not None:
        answers = crowd.answer(query.feature, query.target, query.n_labels)
        if answers is None:
            policy.exhausted(query)
        else:
            policy.tell(query, answers)
        times.append(time.process_time())
    return np.array(times)


def measure(kind: type[Policy], space, coded, budget: int, n_features: int, repeats: int) -> dict:
    labels = coded.values[:, :, None]
    runs = []
    for seed in range(repeats + 1):
        crowd = TableCrowd(space, coded.target, labels, np.random.default_rng(seed))
        runs.append(run(kind(space, budget, n_features, seed=seed), crowd))
    per_query = [(times[-1] - times[0]) / (len(times) - 1) for times in runs]
    quarters = [np.diff(times[[i * (len(times) // 4) for i in range(4)] + [-1]]) for times in runs]
    early, late = np.median([(part[1], part[3]) for part in quarters[1:]], axis=0)
    return {
        "policy": kind.__name__,
        "queries": len(runs[-1]) - 1,
        "ms": 1e3 * min(per_query[1:]),
        "first": 1e3 * per_query[0],
        "late / early": late / early,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table", default="nursery")
    arguments = parser.parse_args()
    if arguments.table == "simulated":
        table, target = simulated_table(), "class"
    else:
        table, target = bc.load_table(arguments.table), None
    space = bc.FeatureSpace.from_table(table, target=target)
    coded = space.code(table, target=target)
    rows = [
        measure(kind, space, coded, arguments.budget, arguments.features, arguments.repeats)
        for kind in POLICIES
    ]
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
