"""Every method on 82 kinds of crowds: error, log loss, calibration, regret.

    python benchmarks/crowds.py [--half held-back] [--seeds 4] [--crowds hard] [--methods ...]

The crowds are public ones, as they are or modified (few labels per task, workers dropped, classes
merged, two classes only, one class made rare), and simulated ones (`crowd_designs.py`). There are
two halves of seeds: the components of `AutoAggregator` were chosen on the development half, and the
held-back half is for evaluating it. Unmodified public crowds have no seed and belong to the
development half only.

The regret of a method on a crowd is its error minus the smallest error of majority vote, one-coin
and Dawid–Skene, a choice that requires the truth. On a crowd of 108 tasks, three points are three
tasks. Therefore `worst regret` is accompanied by `worst design`, the largest mean over the seeds of
one design, and `regret > 3` by `surely > 3`, the number of crowds whose regret exceeds 3 points by
two standard errors (of the paired difference over the crowd's tasks). Each seed of a half takes two
minutes. Public crowds need `BAYESCROWD_DATA` or a network; `--simulated` does not.
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
from crowd_designs import SIMULATED, Crowd, public_crowds, public_variants

import bayescrowd as bc
from bayescrowd.experiments.methods import exported_methods

FIRST_SEED = {"development": 0, "held-back": 3000}
"""First seed of each half; those from 1000 and 2000 were held back until they chose the pool."""
SIMPLE = ("MajorityVote", "OneCoinDawidSkene", "DawidSkene")


def every_crowd(
    half: str, n_seeds: int, *, simulated_only: bool
) -> Iterator[tuple[str, str, int, Crowd]]:
    """Yield the kind, name and seed of each crowd, and the crowd."""
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
    """Error and calibration error in %, log loss in nats, seconds; and the error on each task."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence does not matter here
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
    """Error on each task: 1 if its label is wrong, a fraction if classes tie."""
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
    """Table with one row per half, crowd and method."""
    rows = []
    for half in halves:
        for kind, name, seed, crowd in every_crowd(half, n_seeds, simulated_only=simulated_only):
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
    """Table with one row per method, best first."""
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
    parser.add_argument("--seeds", type=int, default=4, help="number of seeds per half")
    parser.add_argument(
        "--crowds", default="", help="only crowds with this text in their kind or name"
    )
    parser.add_argument("--methods", nargs="+", default=exported_methods())
    parser.add_argument("--simulated", action="store_true", help="no public crowds")
    parser.add_argument("--each", action="store_true", help="also print one row per crowd")
    parser.add_argument("--json", type=Path, help="file to which all rows are also written")
    args = parser.parse_args()
    halves = list(FIRST_SEED) if args.half == "both" else [args.half]
    methods = [*dict.fromkeys([*SIMPLE, *args.methods])]
    rows = results(
        halves, methods, args.seeds, lambda name: args.crowds in name, simulated_only=args.simulated
    )
    if rows.empty:
        parser.error(f"--crowds {args.crowds!r}: no crowd has this in its kind or name")
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
