"""Coverage and width of the intervals of raters' accuracy, on crowds with truth.

    python benchmarks/rater_intervals.py [FOLDER] [--published]

The folder has NAME/labels.csv.gz and NAME/truth.csv for each crowd; by default, it is `crowds` in
the folder that BAYESCROWD_DATA names. A rater's true accuracy is the share of right labels on the
tasks with truth; raters count equally. Beside all raters, those with ten labels or more on such
tasks are shown, and the coverage of a naive interval: the estimate plus or minus 1.645 binomial
standard errors. The goal is a coverage between 80 and 97 %.

Where only some of a rater's labels have truth, the share among these differs from that among all by
chance, which the interval does not claim to hold: the column `truth` has the share of labels with
truth, and such crowds are expected to have a lower coverage.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import bayescrowd as bc
from bayescrowd.data.annotations import Annotations
from bayescrowd.experiments.bench.crowds import read_crowds

PUBLISHED = ("bluebird", "rte", "trec", "dog", "web")
"""Published crowds that the package loads by name."""

ENOUGH = 10
"""Least number of labels with truth of the raters in the second figures."""

GOAL = (0.8, 0.97)
"""Wanted coverage of the 90 % intervals."""


def measure(ann: Annotations, truth: pd.Series) -> dict[str, float]:
    """Coverage and width on one crowd; truth is used for scoring only."""
    quality = bc.aggregate(ann).worker_quality_
    frame = ann.to_frame()
    frame = frame[frame["task"].isin(truth.index)]
    is_right = frame["label"] == frame["task"].map(truth)
    by_worker = is_right.groupby(frame["worker"])
    table = quality.join(pd.DataFrame({"true": by_worker.mean(), "n_true": by_worker.size()}))
    table = table[table["n_true"] > 0]
    spread = np.sqrt(table["accuracy"] * (1 - table["accuracy"]) / table["n_labels"])
    table = table.assign(
        holds=(table["lower"] <= table["true"] + 1e-9) & (table["true"] <= table["upper"] + 1e-9),
        naive=(table["accuracy"] - table["true"]).abs() <= 1.645 * spread,
        width=table["upper"] - table["lower"],
    )
    enough = table[table["n_true"] >= ENOUGH]
    return {
        "raters": len(table),
        "labels": float(table["n_labels"].median()),
        "truth": len(frame) / ann.n_labels,
        "bias": float((table["accuracy"] - table["true"]).mean()),
        "coverage": float(table["holds"].mean()),
        "width": float(table["width"].mean()),
        "coverage 10+": float(enough["holds"].mean()),
        "width 10+": float(enough["width"].mean()),
        "naive": float(table["naive"].mean()),
    }


def main() -> None:
    """Measure every crowd, and print the table beside the goal."""
    parser = argparse.ArgumentParser(description="coverage of the intervals of raters' accuracy")
    parser.add_argument("folder", nargs="?", type=Path, help="folder with one folder per crowd")
    parser.add_argument("--published", action="store_true", help="add the published crowds")
    args = parser.parse_args()
    folder = args.folder
    if folder is None:
        if "BAYESCROWD_DATA" not in os.environ:
            sys.exit("name a folder of crowds, or set BAYESCROWD_DATA")
        folder = Path(os.environ["BAYESCROWD_DATA"], "crowds")
    crowds = [(crowd.name, crowd.annotations, crowd.truth) for crowd in read_crowds(folder)]
    if args.published:
        loaded = [(name, bc.load_dataset(name)) for name in PUBLISHED]
        crowds += [(name, data.annotations, data.truth) for name, data in loaded]
    rows = {}
    for name, ann, truth in crowds:
        rows[name] = measure(ann, truth)
        print(f"{name}: coverage {rows[name]['coverage']:.3f}", file=sys.stderr, flush=True)
    table = pd.DataFrame(rows).T
    print(pd.concat([table, table.mean().to_frame("mean").T]).round(3).to_string())
    low, high = GOAL
    mean = table["coverage"].mean()
    state = "reached" if low <= mean <= high else "missed"
    n_below = int((table["coverage"] < low).sum())
    print(f"mean coverage {mean:.3f}, goal {low} to {high}: {state}; {n_below} crowds below {low}")


if __name__ == "__main__":
    main()
