"""How well models predict held-out labels, and what weight that earns them.

Tasks are held out one fifth at a time. The models are fitted to the other tasks; then each label l
of worker w on a held-out task t is predicted from the other labels of the task, with probability

    sum_z q_t^-(z) pi_wz(l),        q_t^-(z) proportional to P(z) prod over others pi_w'z(l'),  (1)

where P and the rows pi are those of the fit, which has not seen the task at all. It matters that
the rows have not seen it. Leaving out a single label without fitting again is cheaper, but the
classes of the worker's other tasks have been fitted to that label, too, and models with many
parameters look far better than they are. On simulated crowds of one-coin workers with 3 labels per
task, confusion matrices then seem to beat the one coin that made the labels, by ten standard
errors; on 64 kinds of crowds the answer had half a point more errors.

A one-coin model predicts labels badly on crowds that prefer one class, however well it finds the
classes: its rows are too poor. It is judged by the rows that its posterior implies, not by its own.

Weights follow the mean difference to the best model in units of its standard error, z,

    weight proportional to  prior weight x exp(z / softness),                                  (2)

with the standard error from sums over tasks, since labels of the same task are correlated. Weights
are soft, because predicting labels and finding the truth are only loosely related: within a crowd
the rank correlation of the two over models was .4. For the same reason no further fold is held out
once there are `ENOUGH_LABELS`: however certain it is that one model predicts labels better, it is
no more certain that it finds the truth better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.shrunken.base import Counted, Fit, by_class, log_rows_at
from bayescrowd.aggregation.task_sample import task_folds
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = [
    "FitModels",
    "HeldOut",
    "label_log_probabilities",
    "log_rows_of_new",
    "model_weights",
    "posterior_of_new",
    "score_held_out_labels",
]

N_FOLDS = 5
"""Number of parts into which the tasks are split; one is held out at a time."""

ENOUGH_LABELS = 10_000
"""Stop adding folds once this many labels have been held out."""

SOFTNESS = 3.0
"""A model this many standard errors behind the best has its weight divided by e."""

ROUNDING = 1e-9
"""Two models whose difference has a standard error below this, in nats, predict equally well."""

LEAST_WEIGHT = 0.02
"""Models below this share of the largest weight are left out."""

FitModels = Callable[
    [WorkerLabelPairs, Float[np.ndarray, "item cls"]], Mapping[str, tuple[Fit, Fit]]
]
"""Fits models to labels, starting from the shares of votes.

Returns, for each model by name, its fit and the fit whose rows predict labels, which may differ.
"""


class HeldOut(NamedTuple):
    """How models predicted the held-out labels."""

    scores: dict[str, Float[np.ndarray, " label"]]
    """Logarithm of equation 1, in nats, for each model; empty if nothing could be held out."""
    task: Int[np.ndarray, " label"]
    """Task of each held-out label."""


def score_held_out_labels(
    fit_models: FitModels, ann: Annotations, fixed: Int[np.ndarray, " item"]
) -> HeldOut:
    """Hold out one part of the tasks at a time, and let models fitted to the rest predict it.

    Args:
        fit_models: fits all models to labels.
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
    """
    folds = task_folds(ann, fixed, N_FOLDS)
    scores: dict[str, list[Float[np.ndarray, " label"]]] = {}
    tasks: list[Int[np.ndarray, " label"]] = []
    for fold in folds if len(folds) > 1 else []:
        rest = np.setdiff1d(np.arange(ann.n_tasks), fold)
        others, held = (ann.select_tasks(ann.tasks[part]) for part in (rest, fold))
        pairs, new = WorkerLabelPairs(others, fixed[rest]), WorkerLabelPairs(held, fixed[fold])
        known = np.where(others.labels_per_worker > 0, np.arange(ann.n_workers), -1)
        fits = fit_models(pairs, vote_shares(others, pairs.fixed))
        for name, (fit, judged) in fits.items():
            score = label_log_probabilities(fit, judged, pairs, new, known)
            scores.setdefault(name, []).append(score)
        tasks.append(fold[held.task_codes])
        if sum(map(len, tasks)) >= ENOUGH_LABELS:
            break
    if not tasks:
        return HeldOut({}, np.empty(0, dtype=int))
    return HeldOut(
        {name: np.concatenate(parts) for name, parts in scores.items()}, np.concatenate(tasks)
    )


def label_log_probabilities(
    fit: Fit,
    judged: Fit,
    pairs: WorkerLabelPairs,
    new: WorkerLabelPairs,
    known: Int[np.ndarray, " worker"],
) -> Float[np.ndarray, " label"]:
    """Logarithm of equation 1 for each label of tasks that a fit has not seen, in nats.

    Args:
        fit: gives the posterior of the tasks.
        judged: gives the rows that predict: `fit` itself, or the rows that its posterior implies.
        pairs: the pairs of the labels that were fitted.
        new: the pairs of the held-out labels.
        known: each worker's place in the fit, -1 for those without labels in it.
    """
    own = log_rows_of_new(fit, pairs, new, known)
    posterior = new.state_posterior(own, fit.log_prior)
    task, symbol = new.task_of_label, new.of_label
    others = floored_log(posterior)[task] - own[symbol]
    others -= others.max(axis=1, keepdims=True)
    np.exp(others, out=others)
    others /= others.sum(axis=1, keepdims=True)
    rows = own if judged is fit else log_rows_of_new(judged, pairs, new, known)
    return floored_log((others * np.exp(rows)[symbol]).sum(axis=1))


def log_rows_of_new(
    fit: Counted, pairs: WorkerLabelPairs, new: WorkerLabelPairs, known: Int[np.ndarray, " worker"]
) -> Float[np.ndarray, "symbol state"]:
    """Logarithm of the probability of the pairs of other labels, in each state.

    Args:
        fit: the fit.
        pairs: the pairs of its labels.
        new: the pairs of the other labels.
        known: place in the fit of each worker of the other labels, -1 for a new worker.
    """
    worker = known[new.worker]
    return log_rows_at(fit, pairs.find(worker, new.label), worker, new.label)


def posterior_of_new(
    fit: Fit, pairs: WorkerLabelPairs, new: WorkerLabelPairs, known: Int[np.ndarray, " worker"]
) -> Float[np.ndarray, "item cls"]:
    """P(class) of tasks that a fit has not seen; the arguments are those of `log_rows_of_new`."""
    posterior = new.state_posterior(log_rows_of_new(fit, pairs, new, known), fit.log_prior)
    return by_class(posterior, new.n_classes)


def model_weights(held_out: HeldOut, prior_weights: Mapping[str, float]) -> pd.DataFrame:
    """Weights by equation 2, with what they come from.

    Args:
        held_out: the models' scores; if nothing was held out, weights are the prior ones.
        prior_weights: weight of each model before the evidence.

    Returns:
        A row per model: score (mean log probability, nats per label), below_best (how much lower
        than the best), standard_error (of that difference), z (the difference in standard errors,
        0 for the best), weight.

    Examples:
        >>> import numpy as np
        >>> a, b = np.log([0.5, 0.5, 0.6, 0.5]), np.log([0.4, 0.5, 0.4, 0.5])
        >>> held_out = HeldOut({"a": a, "b": b}, task=np.array([0, 1, 2, 3]))
        >>> model_weights(held_out, {"a": 1.0, "b": 1.0})["weight"].round(2).to_list()
        [0.65, 0.35]
    """
    n_labels = len(held_out.task)
    scores = {name: held_out.scores.get(name, np.empty(0)) for name in prior_weights}
    means = {name: float(score.mean()) if n_labels else 0.0 for name, score in scores.items()}
    best = max(means, key=lambda name: means[name])
    rows = {}
    for name, score in scores.items():
        below = means[best] - means[name]
        by_task = np.bincount(held_out.task, scores[best] - score - below)
        error = float(np.sqrt((by_task**2).sum())) / max(n_labels, 1)
        z = -below / error if error > ROUNDING else 0.0
        rows[name] = {
            "score": means[name],
            "below_best": below,
            "standard_error": error,
            "z": z,
            "weight": prior_weights[name] * np.exp(z / SOFTNESS),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
    weight = table["weight"].where(table["weight"] >= LEAST_WEIGHT * table["weight"].max(), 0.0)
    return table.assign(weight=weight / weight.sum())
