"""Every method on crowds of 82 kinds: error, log loss, calibration, regret.

    python benchmarks/crowds.py [--half held-back] [--seeds 4] [--crowds hard] [--methods ...]

Crowds are public ones as they are, thinned to few labels per task, with workers left out, with
classes merged, two classes only, or tasks of a class left out until it is rare; and simulated ones
(`crowd_designs.py`). Seeds come in two halves: what `AutoAggregator` is made of was chosen on the
development half, the held-back half is for judging it. The public crowds themselves have no seed
and count in the development half only.

The regret of a method on a crowd is its error minus the least error of majority vote, one-coin and
Dawid–Skene there, which one would have to know the truth to choose. On a crowd of 108 tasks three
points are three tasks. So `worst design`, the largest mean over the seeds of one design, stands
beside `worst regret`, and `surely > 3`, the number of crowds whose regret is above 3 points by two
standard errors (of the paired difference over the crowd's tasks), beside `regret > 3`. Two minutes
per seed and half.
Public crowds need `BAYESCROWD_DATA` or a network; `--simulated` does without.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from crowd_designs import PUBLIC, SIMULATED, Crowd, public_crowds, public_variants

import bayescrowd as bc
from bayescrowd.experiments.methods import exported_methods

FIRST_SEED = {"development": 0, "held-back": 3000}
"""Seeds from 1000 and 2000 on were held back, too, until they served to choose the pool."""
SIMPLE = ("MajorityVote", "OneCoinDawidSkene", "DawidSkene")


def crowds(
    half: str, n_seeds: int, *, simulated_only: bool
) -> Iterator[tuple[str, str, int, Crowd]]:
    """Kind, name, seed and crowd."""
    if half == "development" and not simulated_only:
        for name, crowd in public_crowds().items():
            yield "public", name, 0, crowd
    for seed in range(FIRST_SEED[half], FIRST_SEED[half] + n_seeds):
        for kind, designs in SIMULATED.items():
            for name, draw in designs.items():
                yield kind, name, seed, draw(seed)
        if not simulated_only:
            for (kind, name), crowd in public_variants(seed).items():
                yield kind, name, seed, crowd


def measure(method: str, crowd: Crowd) -> tuple[dict[str, float], np.ndarray]:
    """Error and calibration error in %, log loss in nats, seconds; and which tasks are wrong."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether an iteration settled is not the question here
        probas = getattr(bc, method)().fit(crowd.annotations).probas_
    seconds = time.perf_counter() - start
    row = {
        "error": 100 * bc.metrics.error_rate(probas, crowd.truth),
        "log loss": bc.metrics.log_loss(probas, crowd.truth),
        "ECE": 100 * bc.metrics.expected_calibration_error(probas, crowd.truth),
        "seconds": seconds,
    }
    return row, wrong_tasks(probas, crowd.truth)


def wrong_tasks(probas: pd.DataFrame, truth: pd.Series) -> np.ndarray:
    """1 where the label of a task is wrong, a part of it where classes tie."""
    of_task = probas.loc[truth.index].to_numpy()
    is_largest = of_task == of_task.max(axis=1, keepdims=True)
    true_class = probas.columns.get_indexer(truth)
    return 1 - is_largest[np.arange(len(truth)), true_class] / is_largest.sum(axis=1)


def results(
    halves: list[str],
    methods: list[str],
    n_seeds: int,
    kept: Callable[[str], bool],
    *,
    simulated_only: bool,
) -> pd.DataFrame:
    """A row per half, crowd and method."""
    rows = []
    for half in halves:
        for kind, name, seed, crowd in crowds(half, n_seeds, simulated_only=simulated_only):
            if not kept(f"{kind}: {name}"):
                continue
            of_crowd = {method: measure(method, crowd) for method in methods}
            best = min(SIMPLE, key=lambda method: of_crowd[method][0]["error"])
            best_row, best_wrong = of_crowd[best]
            for method, (row, wrong) in of_crowd.items():
                key = {"half": half, "kind": kind, "crowd": name, "seed": seed, "method": method}
                regret = row["error"] - best_row["error"]
                error = 100 * float((wrong - best_wrong).std()) / np.sqrt(len(wrong))
                rows.append({**key, **row, "regret": regret, "standard error": error})
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per method, best first."""
    of_method = rows.groupby("method")
    kinds = rows.pivot_table(index="method", columns="kind", values="error", sort=False)
    table = of_method[["error", "log loss", "ECE"]].mean().join(kinds.add_prefix("error "))
    table["mean regret"] = of_method["regret"].mean()
    table["worst regret"] = of_method["regret"].max()
    designs = rows.groupby(["method", "kind", "crowd"])["regret"].mean()
    table["worst design"] = designs.groupby("method").max()
    table["regret > 3"] = of_method["regret"].apply(lambda regret: int((regret > 3).sum()))
    sure = rows["regret"] - 2 * rows["standard error"] > 3
    table["surely > 3"] = sure.groupby(rows["method"]).sum()
    table["seconds"] = of_method["seconds"].sum()
    best = (
        rows[rows["method"].isin(SIMPLE)]
        .groupby(["half", "kind", "crowd", "seed"])["error"]
        .min()
        .mean()
    )
    table.loc["(best simple, by truth)", "error"] = best
    return table.sort_values("error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=[*FIRST_SEED, "both"], default="held-back")
    parser.add_argument("--seeds", type=int, default=4, help="per half")
    parser.add_argument("--crowds", default="", help="only those with this in kind or name")
    parser.add_argument("--methods", nargs="+", default=exported_methods())
    parser.add_argument("--simulated", action="store_true", help="no public crowds")
    parser.add_argument("--each", action="store_true", help="print a row per crowd, too")
    parser.add_argument("--json", type=Path, help="write all rows here as well")
    args = parser.parse_args()
    halves = list(FIRST_SEED) if args.half == "both" else [args.half]
    methods = [*dict.fromkeys([*SIMPLE, *args.methods])]
    rows = results(
        halves, methods, args.seeds, lambda name: args.crowds in name, simulated_only=args.simulated
    )
    if rows.empty:
        parser.error(f"--crowds {args.crowds!r}: no crowd has this in its name; see {PUBLIC}")
    for half in halves:
        of_half = rows[rows["half"] == half]
        n_crowds = len(of_half.groupby(["kind", "crowd", "seed"]))
        print(f"\n{half} half: {n_crowds} crowds; error, ECE and regret in %, log loss in nats")
        print(summary(of_half).to_string(float_format="%.2f", na_rep=""))
        if args.each:
            each = of_half.pivot_table(
                index=["kind", "crowd", "seed"], columns="method", values="error", sort=False
            )
            print(each.to_string(float_format="%.1f"))
    if args.json:
        args.json.write_text(json.dumps(rows.to_dict("records"), indent=1))


if __name__ == "__main__":
    main()
