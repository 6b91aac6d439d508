"""GLAD and MACE against crowd-kit's, on the same labels in one run.

    python benchmarks/glad_mace.py [--cases bluebird rte dog 1M] [--json results.json]

Both sides run the same number of iterations without stopping rules: 5 of GLAD, where crowd-kit's
M-step takes at most 25 conjugate-gradient steps, and 50 of MACE from a single start, as in the
paper. `seconds` is the time of one call `fit(frame)` in a separate process after imports; ours is
the median of five calls. `objective` is computed here from each side's parameters by one formula:
log-likelihood plus log prior density for GLAD, log-likelihood for MACE by EM (smoothing 0.01 / K on
both sides), nothing for variational Bayes. In the second row of each method, `settled`, ours runs
until it converges.

Workers and labels are renumbered in order of first appearance, because crowd-kit 1.4.2's MACE
otherwise confuses workers. crowd-kit is left out above `--peer-limit` labels. The extra `benchmark`
is required; the published data sets need `BAYESCROWD_DATA` or a network.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

GLAD_ITERATIONS = 5
MACE_ITERATIONS = 50
METHODS = ("GLAD", "MACE em", "MACE vb")
SYNTHETIC = {"0.1M": 100_000, "1M": 1_000_000}


def labels_of(case: str) -> tuple[pd.DataFrame, pd.Series]:
    """Labels and truth as integers; workers and classes are numbered by first appearance."""
    from bayescrowd import load_dataset, simulate

    if case in SYNTHETIC:
        n_tasks = SYNTHETIC[case] // 5
        accuracy = np.random.default_rng(2).uniform(0.4, 0.95, 5_000)
        data: Any = simulate.one_coin_crowd(
            n_tasks, 5_000, 4, labels_per_task=5, accuracy=accuracy, seed=0
        )
    else:
        data = load_dataset(case)
    ann = data.annotations
    class_order = pd.unique(pd.Series(ann.label_codes))
    truth = pd.Series(ann.code_truth(data.truth, "truth"))
    truth = truth[truth >= 0].map({code: place for place, code in enumerate(class_order)})
    frame = pd.DataFrame(
        {
            "task": ann.task_codes,
            "worker": pd.factorize(ann.worker_codes)[0],
            "label": pd.factorize(ann.label_codes)[0],
        }
    )
    return frame, truth.dropna()


def measure_ours(case: str, method: str) -> dict[str, float]:
    import bayescrowd as bc

    frame, truth = labels_of(case)
    if method == "GLAD":
        fixed = bc.GLAD(n_iter=GLAD_ITERATIONS, tol=0.0)
        settled = bc.GLAD()
    else:
        options = {"method": method[-2:], "smoothing": 0.01}
        fixed = bc.MACE(n_iter=MACE_ITERATIONS, tol=0.0, **options)
        settled = bc.MACE(n_iter=1_000, **options)
    row: dict[str, float] = {"labels": len(frame)}
    for name, model in (("", fixed), ("settled ", settled)):
        row[f"{name}seconds"] = statistics.median(
            _seconds(lambda model=model: model.fit(frame)) for _ in range(5)
        )
        row[f"{name}iterations"] = model.n_iter_
        row[f"{name}error"] = bc.metrics.error_rate(model.probas_, truth)
        if method == "GLAD":
            log_easiness = -np.log(model.difficulties_.to_numpy())
            objective = glad_objective(frame, model.abilities_.to_numpy(), log_easiness)
        else:
            objective = mace_objective(
                frame, model.competences_.to_numpy(), model.strategies_.to_numpy()
            )
        row[f"{name}objective"] = objective if method != "MACE vb" else float("nan")
    return row


def measure_crowd_kit(case: str, method: str) -> dict[str, float]:
    from crowdkit.aggregation import GLAD, MACE

    from bayescrowd import metrics

    frame, truth = labels_of(case)
    warnings.simplefilter("ignore")  # thousands of warnings from pandas
    if method == "GLAD":
        model = GLAD(n_iter=GLAD_ITERATIONS, tol=-np.inf)
        seconds = _seconds(lambda: model.fit(frame))
        alphas, betas = model.alphas_.sort_index(), model.betas_.sort_index()
        objective = glad_objective(frame, alphas.to_numpy(), betas.to_numpy())
    else:
        model = MACE(n_restarts=1, n_iter=MACE_ITERATIONS, method=method[-2:])
        seconds = _seconds(lambda: model.fit(frame))
        objective = mace_objective(frame, model.spamming_[:, 1], model.thetas_)
    return {
        "seconds": seconds,
        "error": metrics.error_rate(model.probas_, truth),
        "objective": objective if method != "MACE vb" else float("nan"),
    }


def glad_objective(frame: pd.DataFrame, abilities: np.ndarray, log_easiness: np.ndarray) -> float:
    """Log-likelihood plus log density of the N(1, 1) priors, up to a constant."""
    n_classes = frame["label"].max() + 1
    x = abilities[frame["worker"]] * np.exp(log_easiness)[frame["task"]]
    scores = _by_class(frame, x + np.log(n_classes - 1), len(log_easiness), n_classes)
    evidence = np.logaddexp.reduce(scores - np.log(n_classes), axis=1).sum()
    all_wrong = np.logaddexp(0, x).sum() + len(frame) * np.log(n_classes - 1)
    penalty = ((abilities - 1) ** 2).sum() / 2 + ((log_easiness - 1) ** 2).sum() / 2
    return float(evidence - all_wrong - penalty)


def mace_objective(frame: pd.DataFrame, competences: np.ndarray, strategies: np.ndarray) -> float:
    """Log-likelihood."""
    n_tasks, n_classes = frame["task"].max() + 1, frame["label"].max() + 1
    spam = (1 - competences)[frame["worker"]] * strategies[frame["worker"], frame["label"]]
    log_ratio = np.log1p(competences[frame["worker"]] / spam)
    scores = _by_class(frame, log_ratio, n_tasks, n_classes) - np.log(n_classes)
    return float(np.logaddexp.reduce(scores, axis=1).sum() + np.log(spam).sum())


def _by_class(frame: pd.DataFrame, values: np.ndarray, n_tasks: int, n_classes: int) -> np.ndarray:
    cell = frame["task"].to_numpy().astype(np.int64) * n_classes + frame["label"].to_numpy()
    return np.bincount(cell, values, minlength=n_tasks * n_classes).reshape(n_tasks, n_classes)


def run(case: str, method: str, peer_limit: int) -> list[dict[str, float | str]]:
    ours = _in_own_process(measure_ours, case, method)
    names = ("iterations", "seconds", "objective", "error")
    first: dict[str, float | str] = {"case": case, "method": method, "labels": ours["labels"]}
    second: dict[str, float | str] = first | {"method": f"{method}, settled"}
    first |= {name: ours[name] for name in names}
    second |= {name: ours[f"settled {name}"] for name in names}
    for row in (first, second):
        work = float(row["labels"]) * float(row["iterations"])
        row["ns/label/iteration"] = 1e9 * float(row["seconds"]) / work
    if ours["labels"] <= peer_limit:
        peer = _in_own_process(measure_crowd_kit, case, method)
        for row in (first, second):
            row |= {f"crowd-kit {name}": peer[name] for name in names[1:]}
            row["x faster"] = round(peer["seconds"] / float(row["seconds"]), 1)
    return [first, second]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=["bluebird", "rte", "dog", "1M"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--peer-limit", type=int, default=20_000, help="largest number of labels for crowd-kit"
    )
    parser.add_argument("--json", type=Path, help="file to which the rows are also written")
    arguments = parser.parse_args()
    rows = []
    for case in arguments.cases:
        for method in arguments.methods:
            rows += run(case, method, arguments.peer_limit)
            print(case, method, "done", flush=True)
    print("\nx faster = seconds of crowd-kit at the fixed number of iterations / ours")
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.7g", na_rep="-"))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _in_own_process(
    measure: Callable[[str, str], dict[str, float]], case: str, method: str
) -> dict[str, float]:
    # Spawned, so that nothing is imported, compiled or cached beforehand.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (case, method))


if __name__ == "__main__":
    main()
