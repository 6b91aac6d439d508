"""Simulated panels of judges who err together.

In the model of Dawid and Skene (1979), the labels of a task are independent given its class. The
judges of a panel, such as language models, break that in four ways, and `panel` simulates each:

- **Clusters.** The judges of a cluster repeat each other: judge j names the cluster's shared
  verdict on the task with probability `copying`, and a verdict of its own otherwise.
- **Confounders.** On a misleading task, a shared attribute (length, style, a false premise) pulls
  towards one wrong class, the lure: a verdict is formed as if the lure were the true class, with
  probability `pull`. With a pull above one half, most judges err together.
- **Hard tasks.** On a hard task, every verdict is a uniform guess.
- **Position bias.** Instead of its verdict, a judge names the class that it is shown first.
  With `swapped=True` each judge labels the tasks in both orders, as the raters 'judge0/plain' and
  'judge0/swap', which share the judge's verdict and see the classes in opposite orders.

A verdict on a task of true class k is formed in these steps, and a cluster's verdict likewise, with
the mean confusion matrix and the mean pull of its judges: if the task is hard, guess; otherwise see
the class s, which is the lure if the confounder pulls and k if not, and draw from row s of the
confusion matrix. The probability that two judges of a cluster, all with the same matrix, both copy
is the product of their `copying`; without hard or misleading tasks this is exactly the correlation
of their errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.checks.parameters import (
    Count,
    Fraction,
    Positive,
    Real,
    Seed,
    Whole,
    validate_arguments,
)
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.dataset import CrowdParameters, Dataset
from bayescrowd.simulate.assignment import Vector, bounded_vector, judged_pairs, make_design
from bayescrowd.simulate.confusions import (
    dirichlet_confusions,
    normalise_confusions,
    one_coin_confusions,
    prevalence_of,
)
from bayescrowd.simulate.labels import split_streams

__all__ = ["panel"]

ALONE = "alone"
"""Kind of a judge who belongs to no cluster."""


@validate_arguments
def panel(
    n_tasks: Count,
    n_workers: Count,
    n_classes: Annotated[int, Whole(2)] = 2,
    *,
    clusters: Sequence[Annotated[int, Whole(2)]] = (),
    copying: Fraction | Vector = 0.8,
    misleading: Fraction | Vector = 0.0,
    pull: Fraction | Vector = 0.8,
    hard: Fraction = 0.0,
    position_bias: Fraction | Vector = 0.0,
    swapped: bool = False,
    labels_per_task: Count | None = None,
    density: Fraction | Vector | None = None,
    mask: Bool[np.ndarray, "task worker"] | None = None,
    activity: Annotated[float, Real(0, 10)] | Vector = 0.0,
    prevalence: Vector | None = None,
    confusions: Float[np.ndarray, "judge cls cls"] | None = None,
    accuracy: Fraction | Vector = 0.8,
    concentration: Positive = 12.0,
    seed: Seed = 0,
) -> Dataset:
    """Draw a panel of judges who repeat each other or are misled together.

    Args:
        n_tasks: number of tasks, with ids 0, 1, ...
        n_workers: number of judges, with ids 0, 1, ...; if `swapped`, each is two raters.
        n_classes: number of classes, labelled 0, 1, ...
        clusters: sizes of the clusters. The first judges form the first cluster, the next ones the
            second, and so on; the judges that remain are alone.
        copying: probability that a judge of a cluster names the cluster's verdict: one number, or
            one per judge.
        misleading: fraction of the tasks that are misleading: one number, or one per true class.
            The lure of such a task is uniform over the other classes.
        pull: probability that a misleading task pulls a judge to the lure: one number, or one per
            judge.
        hard: fraction of the tasks that are hard. A task is hard or misleading, never both:
            `misleading` is a fraction of the tasks that are not hard.
        position_bias: probability that a rater names the class in the first position without
            judging: one number, or one per judge. The classes are shown in their order, and to
            '/swap' raters in the opposite order.
        swapped: whether each judge labels in both orders, as two raters.
        labels_per_task: number of different raters per task, as for `crowd`.
        density: probability that a rater labels a task, as for `crowd`: 0.9 leaves out a tenth.
        mask: which rater labels which task, as for `crowd`.
        activity: how unequally labels are spread over the raters, as for `crowd`.
        prevalence: probability of each class; uniform by default.
        confusions: probabilities [judge, seen, named] of the judges' own verdicts.
        accuracy: each judge's probability of naming the class it sees; or one number, the mean of
            random matrices as for `crowd`.
        concentration: sum of the Dirichlet parameters of a row of these matrices.
        seed: seed of every random choice.

    Returns:
        The data set, with the truth of every task. The confusion matrices in its `parameters` are
        each rater's P(label | true class) over all tasks, with copies, lures, guesses and position
        bias; their kinds are 'cluster 0', 'cluster 1', ... and 'alone'.

    Raises:
        ValueError: an argument is out of range or contradicts another.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(200, 6, clusters=[3], copying=0.9, misleading=0.2, seed=1)
        >>> data.parameters.kinds.tolist()
        ['cluster 0', 'cluster 0', 'cluster 0', 'alone', 'alone', 'alone']
        >>> pair = bc.simulate.panel(50, 1, position_bias=0.3, swapped=True)
        >>> pair.annotations.workers.to_list()
        ['judge0/plain', 'judge0/swap']
    """
    n_orders = 2 if swapped else 1
    design = make_design(n_tasks, n_orders * n_workers, labels_per_task, density, mask, activity)
    cluster = _cluster_of_judge(clusters, n_workers)
    streams = split_streams(seed)
    own = _matrices(confusions, accuracy, concentration, n_workers, n_classes, streams.worker)
    sources = _with_clusters(
        _Sources(own, _per_judge("pull", pull, n_workers)), cluster, len(clusters)
    )
    copies = np.where(cluster < 0, 0.0, _per_judge("copying", copying, n_workers))
    shares = _per_class("misleading", misleading, n_classes)
    bias = np.repeat(_per_judge("position_bias", position_bias, n_workers), n_orders)
    is_swapped = np.arange(len(bias)) % n_orders == 1
    favourite = np.where(is_swapped, n_classes - 1, 0)
    prior = prevalence_of(prevalence, n_classes)
    truth = streams.truth.choice(n_classes, n_tasks, p=prior)
    tasks = _draw_tasks(truth, hard, shares, n_classes, streams.truth)

    blocks = list(judged_pairs(design, streams.design))
    task = np.concatenate([block[0] for block in blocks]) if blocks else np.empty(0, np.int32)
    if len(task) == 0:
        raise ValueError("the density or the mask leaves no judged pair; expected at least one")
    worker = np.concatenate([block[1] for block in blocks])
    judge = worker // n_orders
    verdict = _verdicts(task, judge, cluster, copies, tasks, sources, streams.label)
    is_biased = streams.label.random(len(task)) < bias[worker]
    label = np.where(is_biased, favourite[worker], verdict).astype(np.int32)
    for column in (task, worker, label):
        column.flags.writeable = False

    marginal = _marginal_confusions(sources, cluster, copies, hard, shares)
    marginal = np.repeat(marginal, n_orders, axis=0)
    weight = bias[:, None, None]
    marginal = (1 - weight) * marginal + weight * np.eye(n_classes)[favourite][:, None, :]
    kinds = np.array([ALONE if g < 0 else f"cluster {g}" for g in cluster])
    annotations = Annotations(  # in order and within the vocabularies by construction
        task,
        worker,
        label,
        pd.RangeIndex(n_tasks, name="task"),
        _rater_ids(n_workers, swapped),
        pd.RangeIndex(n_classes, name="class"),
    )
    return Dataset(
        annotations=annotations,
        truth=pd.Series(truth, index=annotations.tasks, name="truth"),
        description=(
            f"Simulated: judges who err together, {len(clusters)} clusters; {hard:.0%} of the "
            "tasks are hard."
        ),
        name="panel",
        source="bayescrowd.simulate",
        parameters=CrowdParameters(prior, marginal, np.repeat(kinds, n_orders)),
    )


class _Sources(NamedTuple):
    """What forms a verdict: the judges, and after them the clusters."""

    confusions: Float[np.ndarray, "source cls cls"]
    """Probability [source, seen, named]."""
    pull: Float[np.ndarray, " source"]
    """Probability that a misleading task shows the source its lure."""


class _Tasks(NamedTuple):
    """What the verdicts on a task depend on."""

    truth: Int[np.ndarray, " task"]
    """True class."""
    lure: Int[np.ndarray, " task"]
    """Class to which the task pulls; the true class if it does not mislead."""
    is_hard: Bool[np.ndarray, " task"]
    """Whether verdicts are guesses."""


def _draw_tasks(
    truth: Int[np.ndarray, " task"],
    hard: float,
    misleading: Float[np.ndarray, " cls"],
    n_classes: int,
    rng: np.random.Generator,
) -> _Tasks:
    step = rng.integers(1, n_classes, size=len(truth))
    misleads = rng.random(len(truth)) < misleading[truth]
    lure = np.where(misleads, (truth + step) % n_classes, truth)
    return _Tasks(truth, lure, rng.random(len(truth)) < hard)


def _verdicts(
    task: Int[np.ndarray, " label"],
    judge: Int[np.ndarray, " label"],
    cluster: Int[np.ndarray, " judge"],
    copies: Float[np.ndarray, " judge"],
    tasks: _Tasks,
    sources: _Sources,
    rng: np.random.Generator,
) -> Int[np.ndarray, " label"]:
    """The verdict behind each label: one per judge and task, whatever the order."""
    n_judges, n_sources = len(cluster), len(sources.pull)
    pairs, row = np.unique(task.astype(np.int64) * n_judges + judge, return_inverse=True)
    task_of_pair, judge_of_pair = np.divmod(pairs, n_judges)
    is_copy = rng.random(len(pairs)) < copies[judge_of_pair]
    source = np.where(is_copy, n_judges + cluster[judge_of_pair], judge_of_pair)
    # Judges who copy the same cluster on the same task meet in one verdict.
    formed, place = np.unique(task_of_pair * n_sources + source, return_inverse=True)
    named = _form_verdicts(*np.divmod(formed, n_sources), tasks, sources, rng)
    return named[place][row]


def _form_verdicts(
    task: Int[np.ndarray, " verdict"],
    source: Int[np.ndarray, " verdict"],
    tasks: _Tasks,
    sources: _Sources,
    rng: np.random.Generator,
) -> Int[np.ndarray, " verdict"]:
    is_pulled = rng.random(len(task)) < sources.pull[source]
    seen = np.where(is_pulled, tasks.lure[task], tasks.truth[task])
    cumulative = np.cumsum(sources.confusions, axis=2)
    # The last value becomes exactly one: a class of probability zero must never be drawn.
    cumulative /= cumulative[:, :, -1:]
    uniform = rng.random(len(task))
    named = np.zeros(len(task), dtype=np.int64)
    for boundary in np.moveaxis(cumulative[:, :, :-1], 2, 0):
        named += boundary[source, seen] <= uniform
    guess = rng.integers(sources.confusions.shape[2], size=len(task))
    return np.where(tasks.is_hard[task], guess, named)


def _marginal_confusions(
    sources: _Sources,
    cluster: Int[np.ndarray, " judge"],
    copies: Float[np.ndarray, " judge"],
    hard: float,
    misleading: Float[np.ndarray, " cls"],
) -> Float[np.ndarray, "judge cls cls"]:
    """P(verdict | true class) of each judge over all tasks."""
    n_classes, n_judges = len(misleading), len(cluster)
    lures = (1 - np.eye(n_classes)) / (n_classes - 1)
    pulled = sources.pull[:, None, None] * misleading[:, None]
    seen = (1 - pulled) * np.eye(n_classes) + pulled * lures
    verdict = (1 - hard) * seen @ sources.confusions + hard / n_classes
    shared = verdict[np.where(cluster < 0, 0, n_judges + cluster)]
    return (1 - copies)[:, None, None] * verdict[:n_judges] + copies[:, None, None] * shared


def _with_clusters(
    judges: _Sources, cluster: Int[np.ndarray, " judge"], n_clusters: int
) -> _Sources:
    """The judges, and after them the clusters, each the mean of its judges."""
    members = [np.flatnonzero(cluster == g) for g in range(n_clusters)]
    matrices = [judges.confusions[rows].mean(axis=0, keepdims=True) for rows in members]
    pulls = [judges.pull[rows].mean(keepdims=True) for rows in members]
    return _Sources(
        np.concatenate([judges.confusions, *matrices]), np.concatenate([judges.pull, *pulls])
    )


def _cluster_of_judge(sizes: Sequence[int], n_judges: int) -> Int[np.ndarray, " judge"]:
    """Cluster of each judge, -1 for those who are alone."""
    n_members = sum(sizes)
    if n_members > n_judges:
        raise ValueError(
            f"clusters={list(sizes)} have {n_members} judges in all; expected at most {n_judges} "
            "(n_workers)"
        )
    cluster = np.full(n_judges, -1)
    cluster[:n_members] = np.repeat(np.arange(len(sizes)), list(sizes))
    return cluster


def _matrices(
    confusions: Float[np.ndarray, "judge cls cls"] | None,
    accuracy: float | Vector,
    concentration: float,
    n_judges: int,
    n_classes: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "judge cls cls"]:
    if confusions is not None:
        return normalise_confusions(np.asarray(confusions, float), n_judges, n_classes)
    if isinstance(accuracy, int | float | np.number):
        return dirichlet_confusions(n_judges, n_classes, float(accuracy), concentration, rng)
    right = bounded_vector("accuracy", accuracy, n_judges, "judge", low=0, high=1)
    return one_coin_confusions(right, n_classes)


def _rater_ids(n_judges: int, swapped: bool) -> pd.Index:
    if not swapped:
        return pd.RangeIndex(n_judges, name="worker")
    names = [f"judge{j}/{order}" for j in range(n_judges) for order in ("plain", "swap")]
    return pd.Index(names, name="worker")


def _per_judge(name: str, value: float | Vector, n_judges: int) -> Float[np.ndarray, " judge"]:
    if isinstance(value, int | float | np.number):
        return np.full(n_judges, float(value))
    return bounded_vector(name, value, n_judges, "judge", low=0, high=1)


def _per_class(name: str, value: float | Vector, n_classes: int) -> Float[np.ndarray, " cls"]:
    if isinstance(value, int | float | np.number):
        return np.full(n_classes, float(value))
    return bounded_vector(name, value, n_classes, "class", low=0, high=1)
