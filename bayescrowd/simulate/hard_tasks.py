"""Hard tasks, on which many workers err together.

In the model of Dawid and Skene (1979), the labels of a task are independent given its class. In
real crowds they are not: some tasks mislead most of the workers who judge them. `with_hard_items`
adds such tasks to a simulated crowd. A hard task of class k has a lure, which is another class, and
a pull, the probability that a worker sees the lure instead of k; the label is then drawn from the
row of the worker's confusion matrix for the class that the worker saw. The pull of a task is one
beta draw shared by all workers who judge it, and `expertise` weakens it for better workers:

    logit P(w is misled by t) = logit pull_t - expertise * (skill of w),

where the skill is the worker's standardised accuracy.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.special import expit, logit

from bayescrowd.checks.parameters import Fraction, Positive, Seed, validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.dataset import Dataset
from bayescrowd.simulate.assignment import TINY, Vector, bounded_vector

__all__ = ["with_hard_items"]


@validate_arguments
def with_hard_items(
    data: Dataset,
    *,
    share: Fraction | Vector = 0.25,
    pull: Fraction = 0.5,
    concentration: Positive = 6.0,
    lures: Float[np.ndarray, "cls cls"] | None = None,
    expertise: float = 0.0,
    seed: Seed = 0,
) -> Dataset:
    """Make some tasks of a simulated crowd hard, so that workers err together on them.

    Args:
        data: a crowd with its truth and its parameters, from `bayescrowd.simulate`.
        share: fraction of the tasks that are hard: one number, or one per true class.
        pull: mean probability that a worker sees the lure of a hard task.
        concentration: sum of the two parameters of the beta distribution of the pulls.
        lures: probability [true, lure] of each lure, with zeros on the diagonal; by default,
            uniform over the other classes.
        expertise: by how much a standard deviation of accuracy lowers the logit of a worker's
            probability of being misled.
        seed: seed of every random choice made here.

    Returns:
        The crowd with the same truth, workers and judged pairs, and new labels on its hard tasks.
        The confusion matrices in its parameters apply to the other tasks.

    Raises:
        ValueError: the crowd has no parameters, or an argument is out of range.

    Examples:
        >>> import bayescrowd as bc
        >>> rare = [0.9, 0.1]
        >>> easy = bc.simulate.crowd(1000, 20, labels_per_task=5, prevalence=rare, accuracy=0.9)
        >>> hard = bc.simulate.with_hard_items(easy, share=[0.3, 0.0], pull=0.5)
        >>> votes = [bc.MajorityVote().fit(data.annotations).probas_ for data in (easy, hard)]
        >>> [round(bc.metrics.error_rate(p, easy.truth), 2) for p in votes]
        [0.02, 0.17]
    """
    if data.truth is None or data.parameters is None:
        raise ValueError(f"the parameters of {data.name!r} are unknown; expected a simulated crowd")
    ann = data.annotations
    n_classes = ann.n_classes
    shares = _shares(share, n_classes)
    key_task, key_label = np.random.SeedSequence(seed).spawn(2)
    rng_task, rng_label = np.random.default_rng(key_task), np.random.default_rng(key_label)
    truth = ann.code_truth(data.truth, "truth")
    is_hard = rng_task.random(ann.n_tasks) < shares[truth]
    lure = _draw_classes(_lure_probabilities(lures, n_classes)[truth], rng_task)
    pulls = rng_task.beta(
        max(concentration * pull, TINY), max(concentration * (1 - pull), TINY), ann.n_tasks
    )
    skill = _skill(data.parameters.confusions, data.parameters.prevalence)
    misled = _misled_rows(ann, is_hard, pulls, expertise * skill, rng_label)
    label = ann.label_codes.copy()
    task, worker = ann.task_codes[misled], ann.worker_codes[misled]
    label[misled] = _draw_classes(data.parameters.confusions[worker, lure[task]], rng_label)
    return data._replace(
        annotations=Annotations.from_codes(
            ann.task_codes,
            ann.worker_codes,
            label,
            tasks=ann.tasks,
            workers=ann.workers,
            classes=ann.classes,
        ),
        truth=pd.Series(data.truth),
        description=f"{data.description} {is_hard.mean():.0%} of the tasks mislead.",
    )


def _misled_rows(
    ann: Annotations,
    is_hard: Bool[np.ndarray, " task"],
    pulls: Float[np.ndarray, " task"],
    resistance: Float[np.ndarray, " worker"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " misled"]:
    """Positions of the labels whose worker saw the lure."""
    chance = expit(logit(pulls)[ann.task_codes] - resistance[ann.worker_codes])
    return np.flatnonzero(is_hard[ann.task_codes] & (rng.random(ann.n_labels) < chance))


def _skill(
    confusions: Float[np.ndarray, "worker cls cls"], prevalence: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, " worker"]:
    accuracy = np.einsum("wkk,k->w", confusions, prevalence)
    return (accuracy - accuracy.mean()) / max(float(accuracy.std()), TINY)


def _draw_classes(
    rows: Float[np.ndarray, "row cls"], rng: np.random.Generator
) -> Int[np.ndarray, " row"]:
    """One class for each row of probabilities."""
    cumulative = np.cumsum(rows, axis=1)
    uniform = rng.random((len(rows), 1)) * cumulative[:, -1:]
    return (cumulative <= uniform).sum(axis=1)


def _shares(share: float | Vector, n_classes: int) -> Float[np.ndarray, " cls"]:
    if isinstance(share, int | float | np.number):
        return np.full(n_classes, float(share))
    return bounded_vector("share", share, n_classes, "class", low=0, high=1)


def _lure_probabilities(
    lures: Float[np.ndarray, "true lure"] | None, n_classes: int
) -> Float[np.ndarray, "cls cls"]:
    if lures is None:
        return (1 - np.eye(n_classes)) / (n_classes - 1)
    lures = np.asarray(lures, dtype=float)  # nested lists are accepted too
    if lures.shape != (n_classes, n_classes):
        raise ValueError(
            f"lures have shape {lures.shape}; expected true x lure, {(n_classes, n_classes)}"
        )
    sums = lures.sum(axis=1)
    bad = np.flatnonzero(
        (np.abs(sums - 1) > 1e-6) | (lures < 0).any(axis=1) | (lures.diagonal() > 0)
    )
    if len(bad):
        raise ValueError(
            f"lures of class {bad[0]} are {lures[bad[0]]}; expected probabilities of the other "
            "classes that sum to 1"
        )
    return lures
