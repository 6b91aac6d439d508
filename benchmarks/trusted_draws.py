"""Can the draws of ordinary crowds be trusted at the defaults of `sample_posterior`?

    python benchmarks/trusted_draws.py [CROWD ...] [--models A,B,...] [--most-labels 30000]

Samples every model on every crowd of the folder `crowds` of BAYESCROWD_DATA and on the five
published crowds, as far as they have fewer than `--most-labels` labels, and prints R-hat, the
smallest effective sample size, which variable is worst, how many sweeps lie behind a kept draw,
CPU seconds of the process including compilation, and whether `diagnose` trusts the draws: 'yes',
'misfit' (right for a model that does not fit), 'modes' (the verdict names them, with their weights
where they are known), 'moving' (the verdict says that chains have not settled, and between which
classes) or 'no'.

Before sampling went on until chains agree, with 1,000 draws of four chains (worst R-hat / smallest
ESS): hierarchical_dawid_skene 1.76 / 6 on cf_amt, 1.73 / 6 on reuters, 2.22 / 5 on lesion, 1.04 /
87 on music, 1.02 / 69 on dog, 1.01 / 201 on cebab_stars; mace 1.06 / 123 on music, 1.05 / 84 on
zencrowd_in, 1.05 / 96 on zencrowd_us, 1.04 / 107 on rte, 1.03 / 154 on bluebird; dawid_skene 1.01 /
184 on reuters, 1.02 / 251 on zencrowd_in.

Since then: hierarchical_dawid_skene 1.005 / 645 on cf_amt, where chains jump out of a mode that
lies 30 nats lower, 1.005 / 575 on music, 1.008 / 595 on cebab_stars, 1.010 / 484 on zencrowd_in,
1.005 / 1,903 on framing, 1.007 / 552 on d_product; mace 1.007 / 596 on music, 1.005 / 596 on
zencrowd_in, 1.006 / 704 on d_product, 1.005 / 1,192 on lesion, 1.003 / 1,826 on sp_amt, 1.008 /
1,500 on web, 1.002 / 1,493 on bluebird, 1.007 / 690 on rte; dawid_skene 1.006 / 447 on reuters,
1.007 / 966 on zencrowd_in, 1.008 / 837 on d_product; one_coin 1.005 / 1,371 on d_product, 1.004 /
1,286 on web. Most of them are right for a model that does not fit.

With exchanges of names that the prior hardly tells apart, in draws named as the labels suggest:
hierarchical_dawid_skene 1.005 / 694 on lesion (1.51 / 7 without). Going on for twice as long: 1.003
/ 908 on cf_amt, where half of that gave 328 to 645 by the seed. CPU seconds, on two cores that
other jobs kept busy: 67 on lesion and 126 on cf_amt, which chains in threads share.

Not cured: hierarchical_dawid_skene 1.68 / 7 on reuters, where one of four chains still moves
between two readings of the classes when sampling gives up (90 CPU seconds; the verdict says so and
names the classes), 1.29 / 11 on web, and 1.009 / 294 on dog; dawid_skene 1.05 / 33 on web.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import bayescrowd as bc

MODELS = ("dawid_skene", "one_coin", "mace", "hierarchical_dawid_skene")
PUBLISHED = ("bluebird", "dog", "rte", "trec", "web")


def crowds(names: list[str], most_labels: int) -> Iterator[tuple[str, bc.Annotations]]:
    """Names and labels of the crowds that are small enough."""
    folder = Path(os.environ["BAYESCROWD_DATA"], "crowds")
    for name in names or [
        *sorted(path.parent.name for path in folder.glob("*/labels.csv.gz")),
        *PUBLISHED,
    ]:
        path = folder / name / "labels.csv.gz"
        if path.exists():
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            labels = bc.Annotations.from_frame(table)
        else:
            labels = bc.load_dataset(name).annotations
        if labels.n_labels < most_labels:
            yield name, labels


def measure(model: str, labels: bc.Annotations) -> dict[str, object]:
    """Sample one model at the defaults and judge the draws."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of alignment, which the diagnosis repeats
        post = bc.sample_posterior(model, labels, predictive=False, progress=False)
    seconds = time.process_time() - started
    found = bc.diagnose(post)
    ess = found.table[["ess_bulk", "ess_tail"]].min(axis=1)
    trusted = "yes" if found.is_trustworthy else "no"
    if found.verdict.startswith("These draws are right"):
        trusted = "misfit"
    elif any(words in found.verdict for words in ("chains hardly leave", "chains stay in")):
        trusted = "modes"
    elif "chains have not settled" in found.verdict:
        trusted = "moving"
    return {
        "R-hat": found.rhat,
        "ESS": ess.min(),
        "worst": ess.idxmin(),
        "thin": post.attrs["thin"],
        "CPU s": seconds,
        "trusted": trusted,
    }


def main() -> None:
    """Measure, and print a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("crowds", nargs="*", help="names of crowds; default: all")
    parser.add_argument("--models", default=",".join(MODELS), help="names separated by commas")
    parser.add_argument("--most-labels", type=int, default=30_000)
    args = parser.parse_args()
    for name, labels in crowds(args.crowds, args.most_labels):
        for model in args.models.split(","):
            row = {"crowd": name, "labels": labels.n_labels, "model": model}
            row |= measure(model, labels)
            print(
                pd.DataFrame([row]).to_string(index=False, header=False, float_format="%.3f"),
                flush=True,
            )


if __name__ == "__main__":
    main()
