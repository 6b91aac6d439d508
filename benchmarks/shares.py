"""Coverage and width of intervals of class shares, on crowds with truth.

    python benchmarks/shares.py FOLDER [--crowds NAME ...] [--draws 200] [--json results.json]

FOLDER holds NAME/labels.csv (or .csv.gz) and NAME/truth.csv. Gold is drawn at random from the tasks
with truth, which are the population. The fit is the default's, without gold. Coverage is the share
of intervals, over draws and classes, that hold the true share, in %.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

LEVEL = 0.9


def measure(folder: Path, sizes: list[int], n_draws: int) -> list[dict[str, object]]:
    import bayescrowd as bc
    from bayescrowd.gold.shares import METHODS, share_table

    path = next(folder.glob("labels.csv*"))
    ann = bc.read_annotations(str(path))
    known = ann.code_truth(bc.read_truth(str(folder / "truth.csv"), ann), "truth")
    kept = np.flatnonzero(known >= 0)
    probas = bc.AutoAggregator().fit(ann).probas_.to_numpy()[kept]
    truth = known[kept]
    true = np.bincount(truth, minlength=ann.n_classes) / len(truth)
    rows: list[dict[str, object]] = []
    for n_gold in (size for size in sizes if size < len(truth)):
        for method in METHODS:
            hits, widths = [], []
            for draw in range(n_draws):
                rng = np.random.default_rng([n_gold, draw])
                place = rng.choice(len(truth), n_gold, replace=False)
                ones = np.ones(n_gold)
                found = share_table(probas, place, truth[place], ones, method=method, level=LEVEL)
                hits.append((found["lower"] <= true) & (true <= found["upper"]))
                widths.append(found["upper"] - found["lower"])
            rows.append(
                {
                    "crowd": folder.name,
                    "gold": n_gold,
                    "method": method,
                    "coverage": 100 * float(np.mean(hits)),
                    "width": float(np.mean(widths)),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--crowds", nargs="*", help="names of crowds; by default, all")
    parser.add_argument("--gold", nargs="*", type=int, default=[10, 20, 50, 100])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.crowds or sorted(p.name for p in options.folder.iterdir() if p.is_dir())
    rows = [
        row for name in names for row in measure(options.folder / name, options.gold, options.draws)
    ]
    table = pd.DataFrame(rows)
    for value in ("coverage", "width"):
        print(f"\n{value}")
        wide = table.pivot_table(index=["method", "crowd"], columns="gold", values=value)
        print(wide.round(1 if value == "coverage" else 3).to_string())
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
