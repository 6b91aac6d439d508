"""A classifier beside a crowd: the default with and without it, CROWDLAB, and the classifier alone.

    python benchmarks/predictions.py [--seeds 4] [--only base confused]

The setting is that of CROWDLAB (Goh, Tkachenko and Mueller 2022, 'Utilizing supervised models to
infer consensus labels and their quality from data with multiple annotators'): few labels per task,
raters of very different quality, and out-of-sample probabilities of a classifier. Data are
simulated instead of CIFAR-10H, so that accuracy and calibration of the classifier can be chosen:
its features are N(s e_z, 1) for the true class z, its logits s times the features, which is
calibrated, times a sharpness. Errors in % and log losses (nats) are means over seeds, with
probabilities of at least 1e-12; ties count half.

CROWDLAB's formula is written from the paper's description, with the clipping of weights at 1e-6 of
the authors' program.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from scipy.special import softmax

import bayescrowd as bc

BASE = {
    "n_tasks": 500,
    "n_workers": 60,
    "n_classes": 5,
    "per_task": 2.5,
    "accuracy": 0.7,
    "model": 0.75,
    "sharpness": 1.0,
    "confused": 0.0,
    "hard": 0.0,
}
"""Sizes; mean accuracy of raters and of the classifier; how often the classifier confuses each
class with one other, whatever its features; share of tasks that are hard for everybody."""

SCENARIOS = {
    "base": {},
    "good model": {"model": 0.92},
    "bad model": {"model": 0.45},
    "useless and sure": {"model": 0.3, "sharpness": 3.0},
    "over-confident": {"sharpness": 3.0},
    "under-confident": {"sharpness": 0.3},
    "confused": {"model": 0.9, "confused": 0.25},
    "one label per task": {"per_task": 1.0},
    "five labels per task": {"per_task": 5.0},
    "ten classes": {"n_classes": 10, "n_workers": 100, "accuracy": 0.6, "model": 0.8},
    "two classes": {"n_classes": 2, "model": 0.8},
    "hard tasks": {"hard": 0.4},
    "good crowd": {"accuracy": 0.9},
    "sixty tasks": {"n_tasks": 60, "n_workers": 12},
}


def simulate(
    rng: np.random.Generator, s: dict[str, float]
) -> tuple[bc.Annotations, pd.Series, pd.DataFrame]:
    """Labels, truth and probabilities."""
    n_tasks, n_workers, k = int(s["n_tasks"]), int(s["n_workers"]), int(s["n_classes"])
    shares = rng.dirichlet(np.full(k, 5.0))
    truth = rng.choice(k, n_tasks, p=shares)
    # Raters differ, the busy ones do most, and all confuse the same classes.
    ability = rng.beta(6 * s["accuracy"], 6 * (1 - s["accuracy"]), n_workers)
    activity = rng.dirichlet(np.full(n_workers, 0.7))
    confusions = rng.dirichlet(np.full(k, 0.6), k) + 1e-3
    np.fill_diagonal(confusions, 0.0)
    confusions /= confusions.sum(axis=1, keepdims=True)
    is_hard = rng.random(n_tasks) < s["hard"]
    n_labels = np.clip(1 + rng.poisson(s["per_task"] - 1, n_tasks), 1, n_workers)
    rows = []
    for task in range(n_tasks):
        for worker in rng.choice(n_workers, n_labels[task], replace=False, p=activity):
            right = ability[worker]
            if is_hard[task]:
                right = 1 / k + 0.35 * (right - 1 / k)
            others = rng.choice(k, p=confusions[truth[task]])
            rows.append((task, worker, truth[task] if rng.random() < right else others))
    ann = bc.Annotations.from_codes(*np.array(rows).T, tasks=n_tasks, workers=n_workers, classes=k)
    signal = signal_for(s["model"], shares)
    seen = np.where(rng.random(n_tasks) < s["confused"], confusions.argmax(axis=1)[truth], truth)
    strength = np.where(is_hard, 0.5 * signal, signal)[:, None]
    features = strength * np.eye(k)[seen] + rng.normal(size=(n_tasks, k))
    probas = softmax(s["sharpness"] * (signal * features + np.log(shares)), axis=1)
    return ann, pd.Series(truth), pd.DataFrame(probas)


def signal_for(accuracy: float, shares: np.ndarray) -> float:
    """Size of the signal at which the classifier is right this often, by bisection."""
    rng, k = np.random.default_rng(0), len(shares)
    truth, noise = rng.choice(k, 4000, p=shares), rng.normal(size=(4000, k))
    low, high = 0.05, 12.0
    for _ in range(25):
        signal = (low + high) / 2
        guess = (signal * (signal * np.eye(k)[truth] + noise) + np.log(shares)).argmax(axis=1)
        low, high = (signal, high) if (guess == truth).mean() < accuracy else (low, signal)
    return signal


def crowdlab(ann: bc.Annotations, predictions: pd.DataFrame) -> np.ndarray:
    """CROWDLAB's probabilities; NaN where no task has two labels to compare."""
    model, k, n_labels = predictions.to_numpy(), ann.n_classes, ann.labels_per_task
    several = n_labels > 1
    if not several.any():
        return np.full(model.shape, np.nan)
    consensus = (ann.votes + 1e-3 * model).argmax(axis=1)  # the classifier breaks ties
    likelihood = (ann.votes[several, consensus[several]] / n_labels[several]).mean()
    most_common = np.bincount(ann.label_codes).argmax()
    chance_error = max((consensus[several] != most_common).mean(), 1e-6)
    agreeing = ann.votes[ann.task_codes, ann.label_codes] - 1
    possible = n_labels[ann.task_codes] - 1
    agreed = np.bincount(ann.worker_codes, agreeing, minlength=ann.n_workers)
    n_pairs = np.bincount(ann.worker_codes, possible, minlength=ann.n_workers)
    agreement = np.where(n_pairs > 0, agreed / np.maximum(n_pairs, 1), 0.0)
    agreement = np.where(n_pairs > 0, agreement, agreement[n_pairs > 0].mean())
    weights = np.maximum(1 - (1 - agreement) / chance_error, 1e-6)
    model_error = (model.argmax(axis=1) != consensus)[several].mean()
    model_weight = max(1 - model_error / chance_error, 1e-6) * np.sqrt(n_labels.mean())
    by_label = np.full((ann.n_labels, k), (1 - likelihood) / (k - 1))
    by_label[np.arange(ann.n_labels), ann.label_codes] = likelihood
    weight = weights[ann.worker_codes]
    total, sums = np.full(ann.n_tasks, model_weight), model_weight * model
    np.add.at(total, ann.task_codes, weight)
    np.add.at(sums, ann.task_codes, weight[:, None] * by_label)
    return sums / total[:, None]


def score(probas: np.ndarray, truth: pd.Series) -> tuple[float, float]:
    if np.isnan(probas).any():
        return np.nan, np.nan
    table = pd.DataFrame(probas, index=truth.index)
    losses = bc.metrics.task_losses(table, truth, least=1e-12)
    return 100 * losses["error"].mean(), losses["log_loss"].mean()


def measure(scenario: dict[str, float], seed: int) -> dict[str, tuple[float, float]]:
    ann, truth, predictions = simulate(np.random.default_rng([seed, 12]), BASE | scenario)
    plain, with_model = bc.aggregate(ann), bc.aggregate(ann, predictions=predictions)
    probas = {
        "without": plain.probas_.to_numpy(),
        "with": with_model.probas_.to_numpy(),
        "CROWDLAB": crowdlab(ann, predictions),
        "alone": predictions.to_numpy(),
    }
    found = {name: score(values, truth) for name, values in probas.items()}
    return found | {"strength": (with_model.prediction_strength_, np.nan)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=SCENARIOS, default=list(SCENARIOS))
    options = parser.parse_args()
    for name in options.only:
        runs = [measure(SCENARIOS[name], seed) for seed in range(options.seeds)]
        means = {key: np.mean([run[key] for run in runs], axis=0) for key in runs[0]}
        strength = means.pop("strength")[0]
        cells = [f"{key} {error:5.1f} % {loss:.3f}" for key, (error, loss) in means.items()]
        print(f"{name:21}", " | ".join(cells), f"| strength {strength:.2f}", flush=True)


if __name__ == "__main__":
    main()
