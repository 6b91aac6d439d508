"""What random gold labels change on crowds with truth: error and log loss, beside the goals.

    python benchmarks/gold.py FOLDER [--crowds NAME ...] [--gold 20 50] [--draws 20]

FOLDER holds NAME/labels.csv (or .csv.gz) and NAME/truth.csv. For each draw, gold is taken at random
from the tasks with truth, and the answer is scored on the others, with probabilities of at least
1e-4 in the log loss. Without gold, the same tasks are scored. By default, the crowds are the panels
of the development crowds.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

PANELS = (
    "cebab_stars",
    "civilcomments",
    "framing",
    "lesion",
    "llmbar",
    "llmbar_vanilla",
    "triviaqa_judges",
)

GOALS = {20: (22.0, 0.545), 50: (20.2, 0.50)}
"""Mean error in % and log loss by number of gold tasks."""

LEAST = 1e-4


def measure(folder: Path, sizes: list[int], n_draws: int) -> list[dict[str, object]]:
    import bayescrowd as bc
    from bayescrowd.aggregation.auto.gold_tilt import fit_tilt

    path = next(folder.glob("labels.csv*"))
    ann = bc.read_annotations(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # truth of tasks without labels, and of unchosen classes
        truth = bc.read_truth(str(folder / "truth.csv"), ann)
        # As `fit` does with gold, a class that nobody chose becomes one.
        ann = ann.with_classes(truth)
        plain = bc.AutoAggregator().fit(ann).probas_
    fixed = ann.code_truth(truth, "truth")
    known = np.flatnonzero(fixed >= 0)
    rows: list[dict[str, object]] = []
    for n_gold in sizes:
        for draw in range(n_draws):
            rng = np.random.default_rng([n_gold, draw])
            gold = rng.choice(known, n_gold, replace=False)
            given = np.full(ann.n_tasks, -1, dtype=fixed.dtype)
            given[gold] = fixed[gold]
            tilt = fit_tilt(plain.to_numpy(), ann, given)
            tilted = pd.DataFrame(
                tilt.apply(plain.to_numpy(), ann), index=plain.index, columns=plain.columns
            )
            rest = truth.drop(ann.tasks[gold])
            row: dict[str, object] = {"crowd": folder.name, "gold": n_gold, "draw": draw}
            for name, probas in (("plain", plain), ("gold", tilted)):
                losses = bc.metrics.task_losses(probas.loc[rest.index], rest, least=LEAST)
                row[f"{name} error"] = 100 * losses["error"].mean()
                row[f"{name} log loss"] = losses["log_loss"].mean()
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--crowds", nargs="*", default=PANELS, help="names of crowds")
    parser.add_argument("--gold", nargs="*", type=int, default=[20, 50])
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    rows = [
        row
        for name in options.crowds
        for row in measure(options.folder / name, options.gold, options.draws)
    ]
    table = pd.DataFrame(rows).drop(columns="draw").groupby(["gold", "crowd"]).mean()
    print(table.round(4).to_string())
    for n_gold in options.gold:
        part = table.loc[n_gold]
        error, log_loss = part["gold error"].mean(), part["gold log loss"].mean()
        rise = (part["gold error"] - part["plain error"]).max()
        loss = (part["gold log loss"] - part["plain log loss"]).max()
        print(
            f"{n_gold} gold: error {error:.2f} %, log loss {log_loss:.4f}; worst crowd against no "
            f"gold {rise:+.2f} points, {loss:+.4f} nats"
        )
        if n_gold in GOALS:
            print(f"  goals: {GOALS[n_gold][0]} %, {GOALS[n_gold][1]}; at most +1, +0.02")


if __name__ == "__main__":
    main()
