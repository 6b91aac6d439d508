"""The default and its rivals on a folder of development crowds, beside the goals.

    python benchmarks/development_crowds.py [FOLDER] [--journal FILE] [--methods A,B,...]

The folder has NAME/labels.csv.gz and NAME/truth.csv for each crowd; by default, it is `crowds` in
the folder that BAYESCROWD_DATA names. `bayescrowd bench` prints every table; this prints the goals:
mean error, mean log loss, and the crowds that are more than 3 points worse than the majority vote.

The log loss depends on the smallest probability that it admits. The goals admit 1e-4, since with
that value the recorded means of Dawid–Skene (1.45), one coin (1.26) and the first default (.587)
come out; `bayescrowd bench` admits 1e-6, which is harder on methods that are sure and wrong. Both
are printed. `SmoothedVote` is the fair rival in log loss, since bare shares of votes are 0 or 1 on
many tasks.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bayescrowd.experiments.bench.comparison import Comparison
from bayescrowd.experiments.bench.contenders import exported_contender, own_contender
from bayescrowd.experiments.bench.crowds import read_crowds
from bayescrowd.experiments.bench.measurement import Measurement
from bayescrowd.experiments.bench.running import run_bench
from bayescrowd.experiments.methods import exported_methods

GOALS = {"error": 0.194, "log loss (1e-4)": 0.52, "worse": 0}
"""Goals of the default on the sixteen development crowds."""

GOAL_LEAST = 1e-4
"""Smallest probability that the log loss of the goals admits."""

RIVALS = ("MajorityVote", "OneCoinDawidSkene", "DawidSkene", "IBCC", "BWA", "EBCC")
"""Methods to compare with, as far as they are exported."""


class SmoothedVote:
    """Shares of votes with one more vote, spread evenly over the classes."""

    def fit_predict_proba(self, table: pd.DataFrame) -> pd.DataFrame:
        """(votes + 1/K) / (all votes + 1), tasks x classes."""
        votes = pd.crosstab(table["task"], table["label"])
        return (votes + 1 / votes.shape[1]).div(votes.sum(axis=1) + 1, axis=0)


def log_losses(found: Comparison, least: float) -> pd.Series:
    """Mean log loss of each method over crowds, with this smallest probability."""
    crowds = found.scores("error").dropna().index  # as for the other means: no method failed
    measured = {
        method: [
            np.minimum(result.log_losses, -np.log(least)).mean()
            for crowd in crowds
            if isinstance(result := found.results[crowd, method], Measurement)
        ]
        for method in found.method_names
    }
    return pd.DataFrame(measured).mean()


def main() -> None:
    """Measure, and print the means beside the goals."""
    parser = argparse.ArgumentParser(description="the default and its rivals beside the goals")
    parser.add_argument("folder", nargs="?", type=Path, help="folder with one folder per crowd")
    parser.add_argument("--journal", type=Path, help="file that keeps finished measurements")
    parser.add_argument("--methods", help="names separated by commas")
    args = parser.parse_args()
    folder = args.folder
    if folder is None:
        if "BAYESCROWD_DATA" not in os.environ:
            sys.exit("name a folder of crowds, or set BAYESCROWD_DATA")
        folder = Path(os.environ["BAYESCROWD_DATA"], "crowds")
    exported = exported_methods()
    names = args.methods.split(",") if args.methods else [n for n in RIVALS if n in exported]
    contenders = [
        *map(exported_contender, names),
        own_contender("development_crowds:SmoothedVote"),
    ]
    found = run_bench(read_crowds(folder), contenders, journal=args.journal)
    table = pd.DataFrame(
        {
            "error": found.means("error"),
            "log loss (1e-4)": log_losses(found, GOAL_LEAST),
            "log loss (1e-6)": found.means("log_loss"),
            "ECE": found.means("ece"),
            "seconds": found.means("seconds"),
            "worse": found.worse_than_vote()["n_worse"],
            "surely worse": found.worse_than_vote()["n_surely_worse"],
        }
    ).loc[found.method_names]
    print(table.round(4).to_string())
    for (crowd, method), reason in found.failures.items():
        print(f"{method} failed on {crowd}: {reason}")
    print()
    for name, goal in GOALS.items():
        value = table.loc[found.reference, name]
        state = "reached" if value <= goal else "missed"
        print(f"{found.reference}, {name}: {value:.4g}, goal {goal}: {state}")


if __name__ == "__main__":
    main()
