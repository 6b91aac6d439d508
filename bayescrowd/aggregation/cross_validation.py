"""How well models foresee labels that are withheld from them, and what weight that earns.

Tasks are withheld by fifths. A model is fitted to the other tasks; then each label l of worker w on
a withheld task t is foreseen from the other labels of the task, with probability

    sum_z q_t^-(z) pi_wz(l),        q_t^-(z) proportional to P(z) prod over others pi_w'z(l'),  (1)

where P and the rows pi are those of the fit, which has not seen the task at all. That the rows have
not is what matters: leaving out a single label and fitting nothing again is cheaper, but the
classes of the worker's other tasks have been fitted to that label, too, and models with many
parameters look far better than they are. On simulated crowds of one-coin workers with 3 labels per
task, confusion matrices then seem to beat the one coin that made the labels, by ten standard
errors; on 64 kinds of crowds the answer had half a point more errors.

A one-coin model foresees labels badly on crowds that prefer one class, however well it finds the
classes: its rows are too poor. It is judged by the rows that its posterior implies, not by its own.

Weights follow the mean difference to the best model in units of its standard error, z,

    weight proportional to  prior weight x exp(z / softness),                                  (2)

the standard error from sums over tasks, whose labels go together. Weights are soft, because
foreseeing labels and finding the truth are but loosely the same thing: within a crowd the rank
correlation of the two over models was .4. For the same reason folds end when `ENOUGH_LABELS` have
been withheld: however surely a model foresees labels better, that it finds the truth better is not
surer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import log_floored
from bayescrowd.aggregation.pool import Member, fit_members, implied_rows
from bayescrowd.aggregation.protocol import vote_shares
from bayescrowd.aggregation.row_models import Fit, log_rows_of_new, state_posterior
from bayescrowd.aggregation.symbols import Symbols
from bayescrowd.aggregation.task_sample import task_folds
from bayescrowd.annotations import Annotations

__all__ = ["Withheld", "foreseen", "model_weights", "withheld_scores"]

N_FOLDS = 5
"""Parts of the tasks, one of which is withheld at a time."""

ENOUGH_LABELS = 10_000
"""Withheld labels after which no further part is."""

SOFTNESS = 3.0
"""Standard errors that divide a weight by e."""

ROUNDING = 1e-9
"""Standard error in nats below which two models foresee alike."""

LEAST_WEIGHT = 0.02
"""Of the largest; models below it are left out."""


class Withheld(NamedTuple):
    """What models foresaw."""

    scores: dict[str, Float[np.ndarray, " label"]]
    """log of equation 1 in nats, for each model."""
    task: Int[np.ndarray, " label"]
    """Task of each withheld label."""


def withheld_scores(
    members: Sequence[Member],
    ann: Annotations,
    fixed: Int[np.ndarray, " item"],
    *,
    n_iter: int,
    tol: float,
) -> Withheld:
    """Fit models without a part of the tasks and let them foresee its labels, part by part.

    Args:
        members: the models.
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        n_iter: most iterations of a fit.
        tol: change of a probability below which a model has settled.
    """
    folds = task_folds(ann, fixed, N_FOLDS)
    scores: dict[str, list[Float[np.ndarray, " label"]]] = {member.name: [] for member in members}
    tasks: list[Int[np.ndarray, " label"]] = []
    for fold in folds if len(folds) > 1 else []:
        rest = np.setdiff1d(np.arange(ann.n_tasks), fold)
        others, held = (ann.select_tasks(ann.tasks[part]) for part in (rest, fold))
        symbols, new = Symbols(others, fixed[rest]), Symbols(held, fixed[fold])
        known = np.where(others.labels_per_worker > 0, np.arange(ann.n_workers), -1)
        fits = fit_members(
            members, symbols, vote_shares(others, symbols.fixed), n_iter=n_iter, tol=tol
        )
        for member in members:
            fit = fits[member.name]
            judged = fit if member.own_rows else implied_rows(symbols, fit.posterior)
            scores[member.name].append(foreseen(fit, judged, symbols, new, known))
        tasks.append(fold[held.task_codes])
        if sum(map(len, tasks)) >= ENOUGH_LABELS:
            break
    if not tasks:
        return Withheld({name: np.empty(0) for name in scores}, np.empty(0, dtype=int))
    return Withheld(
        {name: np.concatenate(parts) for name, parts in scores.items()}, np.concatenate(tasks)
    )


def foreseen(
    fit: Fit, judged: Fit, symbols: Symbols, new: Symbols, known: Int[np.ndarray, " worker"]
) -> Float[np.ndarray, " label"]:
    """log of equation 1 for each label of tasks that a fit has not seen, in nats.

    Args:
        fit: whose posterior of the tasks is judged.
        judged: whose rows foresee: `fit` itself, or the rows that its posterior implies.
        symbols: the pairs of the labels that were fitted.
        new: the pairs of the others.
        known: each worker's place in the fit, -1 for those without labels in it.
    """
    own = log_rows_of_new(fit, symbols, new, known)
    posterior = state_posterior(new, own, fit.log_prior)
    task, symbol = new.task_of_label, new.of_label
    others = log_floored(posterior)[task] - own[symbol]
    others -= others.max(axis=1, keepdims=True)
    np.exp(others, out=others)
    others /= others.sum(axis=1, keepdims=True)
    rows = own if judged is fit else log_rows_of_new(judged, symbols, new, known)
    return log_floored((others * np.exp(rows)[symbol]).sum(axis=1))


def model_weights(withheld: Withheld, prior_weights: Mapping[str, float]) -> pd.DataFrame:
    """Weights by equation 2, with what they come from.

    Args:
        withheld: what the models foresaw; without any label, weights are the prior ones.
        prior_weights: of each model.

    Returns:
        A row per model: score (mean log probability, nats per label), below_best (how much lower
        than the best), standard_error (of that difference), z (the difference in standard errors,
        0 for the best), weight.

    Examples:
        >>> import numpy as np
        >>> a, b = np.log([0.5, 0.5, 0.6, 0.5]), np.log([0.4, 0.5, 0.4, 0.5])
        >>> withheld = Withheld({"a": a, "b": b}, task=np.array([0, 1, 2, 3]))
        >>> model_weights(withheld, {"a": 1.0, "b": 1.0})["weight"].round(2).to_list()
        [0.65, 0.35]
    """
    scores, n_labels = withheld.scores, len(withheld.task)
    means = {name: float(score.mean()) if n_labels else 0.0 for name, score in scores.items()}
    best = max(means, key=lambda name: means[name])
    rows = {}
    for name, score in scores.items():
        below = means[best] - means[name]
        by_task = np.bincount(withheld.task, scores[best] - score - below)
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
