"""Simulated crowds whose truth and whose workers are known.

Every crowd is drawn from the model of Dawid and Skene (1979). Task t has the true class k with
probability prevalence[k]; worker w gives a task of class k the label l with probability
confusions[w, k, l]; given the truth, labels are independent. The simulators differ in the origin of
the matrices: `crowd` mixes honest workers, spammers and adversaries, `one_coin_crowd` gives each
worker one accuracy, `full_confusion_crowd` gives each worker a separate matrix, and `sparse_crowd`
hides a few informative workers among many uninformative ones (Zhao and Zucker, "Stagewise learning
for sparse clustering of discretely-valued data", section 4).

All of them offer the same designs of who judges what, of which at most one may be chosen:

- `labels_per_task=5`: five different workers per task, drawn with probabilities that `activity`
  may make long-tailed;
- `density=0.1`: each worker judges each task with this probability, or with one probability per
  worker;
- `mask=`: exactly the pairs marked in a boolean array, tasks x workers;
- none of these: every worker judges every task.

A worker judges a task at most once. Truth, matrices, design and labels have separate random
streams: two calls that differ only in the design have the same truth and the same workers.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float

from bayescrowd.checks.parameters import (
    Count,
    Fraction,
    Positive,
    Real,
    Seed,
    Whole,
    validate_arguments,
)
from bayescrowd.data.dataset import CrowdParameters, Dataset
from bayescrowd.simulate.assignment import TINY, Vector, bounded_vector, make_design
from bayescrowd.simulate.confusions import (
    HONEST,
    INFORMATIVE,
    UNINFORMATIVE,
    dirichlet_confusions,
    normalise_confusions,
    one_coin_confusions,
    prevalence_of,
    replace_by_spammers,
)
from bayescrowd.simulate.labels import draw_dataset, split_streams

__all__ = [
    "crowd",
    "full_confusion_crowd",
    "one_coin_crowd",
    "sparse_crowd",
]


@validate_arguments
def crowd(
    n_tasks: Count,
    n_workers: Count,
    n_classes: Annotated[int, Whole(2)] = 2,
    *,
    labels_per_task: Count | None = None,
    density: Fraction | Vector | None = None,
    mask: Bool[np.ndarray, "task worker"] | None = None,
    activity: Annotated[float, Real(0, 10)] | Vector = 0.0,
    prevalence: Vector | None = None,
    confusions: Float[np.ndarray, "worker cls cls"] | None = None,
    accuracy: Fraction = 0.7,
    concentration: Positive = 12.0,
    spammers: Fraction = 0.0,
    adversaries: Fraction = 0.0,
    seed: Seed = 0,
) -> Dataset:
    """Draw a crowd of honest workers, spammers and adversaries.

    An honest worker's matrix has independent Dirichlet rows with mean `accuracy` on the diagonal
    and the rest spread evenly. Half of the spammers answer uniformly at random, and each of the
    others always gives the same randomly chosen class. An adversary sees what an honest worker
    sees and names the next class instead. Who is a spammer or an adversary is random.

    Args:
        n_tasks: number of tasks, with ids 0, 1, ...
        n_workers: number of workers, with ids 0, 1, ...
        n_classes: number of classes, labelled 0, 1, ...
        labels_per_task: number of different workers who judge each task.
        density: probability that a worker judges a task: one number, or one per worker.
        mask: which worker judges which task. At most one of `labels_per_task`, `density` and
            `mask` may be given; without them, every worker judges every task.
        activity: how unequally labels are spread over the workers, given `labels_per_task`. The
            r-th most active worker is drawn with weight r**-activity: 0 makes all workers equal, 1
            gives a long tail. Alternatively, one positive weight per worker.
        prevalence: probability of each class; uniform by default.
        confusions: probabilities [worker, true, observed] of the honest workers, used instead of
            random matrices; spammers and adversaries still replace some of them.
        accuracy: mean diagonal of an honest worker's matrix. The default lies among the mean
            accuracies of the workers of the public crowds bluebird, rte, trec and dog (0.64,
            0.84, 0.65, 0.71; workers with at least 20 judged tasks of known truth).
        concentration: sum of the Dirichlet parameters of a row; the larger it is, the more similar
            the workers are. Matching the spread of the same workers' accuracies gives 10, 13, 17
            and 39.
        spammers: fraction of the workers who are spammers.
        adversaries: fraction of the workers who are adversaries.
        seed: seed of every random choice.

    Returns:
        The data set, with the truth of every task and the true `parameters`.

    Raises:
        ValueError: an argument is out of range or contradicts another.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(
        ...     200, 20, 3, labels_per_task=5, prevalence=[0.7, 0.2, 0.1], spammers=0.2, seed=1
        ... )
        >>> data.annotations
        Annotations(1,000 labels: 200 tasks, 20 workers, 3 classes)
        >>> data.parameters.confusions.shape, int((data.parameters.kinds == "honest").sum())
        ((20, 3, 3), 16)
    """
    design = make_design(n_tasks, n_workers, labels_per_task, density, mask, activity)
    streams = split_streams(seed)
    if confusions is None:
        matrices = dirichlet_confusions(
            n_workers, n_classes, accuracy, concentration, streams.worker
        )
    else:
        matrices = normalise_confusions(np.asarray(confusions, float), n_workers, n_classes)
    matrices, kinds = replace_by_spammers(matrices, spammers, adversaries, streams.worker)
    return draw_dataset(
        "crowd",
        "Simulated: honest workers with confusion matrices of their own, spammers, adversaries.",
        CrowdParameters(prevalence_of(prevalence, n_classes), matrices, kinds),
        design,
        streams,
    )


@validate_arguments
def full_confusion_crowd(
    n_tasks: Count,
    n_workers: Count,
    n_classes: Annotated[int, Whole(2)] = 2,
    *,
    labels_per_task: Count | None = None,
    density: Fraction | Vector | None = None,
    mask: Bool[np.ndarray, "task worker"] | None = None,
    activity: Annotated[float, Real(0, 10)] | Vector = 0.0,
    prevalence: Vector | None = None,
    confusions: Float[np.ndarray, "worker cls cls"] | None = None,
    accuracy: Fraction = 0.7,
    concentration: Positive = 12.0,
    seed: Seed = 0,
) -> Dataset:
    """Draw a crowd of honest workers with separate confusion matrices, given or random.

    The arguments are those of `crowd`, which does the work.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> perfect = np.eye(2)
        >>> coin = np.full((2, 2), 0.5)
        >>> data = bc.simulate.full_confusion_crowd(100, 2, confusions=np.stack([perfect, coin]))
        >>> first = data.annotations.select_workers([0]).to_frame().set_index("task")["label"]
        >>> bool((first == data.truth).all())
        True
    """
    data = crowd(
        n_tasks,
        n_workers,
        n_classes,
        labels_per_task=labels_per_task,
        density=density,
        mask=mask,
        activity=activity,
        prevalence=prevalence,
        confusions=confusions,
        accuracy=accuracy,
        concentration=concentration,
        seed=seed,
    )
    return data._replace(
        name="full_confusion_crowd",
        description="Simulated: honest workers with confusion matrices of their own.",
    )


@validate_arguments
def one_coin_crowd(
    n_tasks: Count,
    n_workers: Count,
    n_classes: Annotated[int, Whole(2)] = 2,
    *,
    labels_per_task: Count | None = None,
    density: Fraction | Vector | None = None,
    mask: Bool[np.ndarray, "task worker"] | None = None,
    activity: Annotated[float, Real(0, 10)] | Vector = 0.0,
    prevalence: Vector | None = None,
    accuracy: Fraction | Vector = 0.7,
    concentration: Positive = 12.0,
    seed: Seed = 0,
) -> Dataset:
    """Draw a crowd in which each worker is right with one probability, whatever the true class.

    A wrong label is equally likely to be any of the other classes.

    Args:
        n_tasks: number of tasks, with ids 0, 1, ...
        n_workers: number of workers, with ids 0, 1, ...
        n_classes: number of classes, labelled 0, 1, ...
        labels_per_task: number of different workers per task, as for `crowd`.
        density: probability that a worker judges a task, as for `crowd`.
        mask: which worker judges which task, as for `crowd`.
        activity: how unequally labels are spread over the workers, as for `crowd`.
        prevalence: probability of each class; uniform by default.
        accuracy: each worker's probability of the true label; or one number, the mean of the
            beta distribution from which these probabilities are drawn.
        concentration: sum of the two parameters of that beta distribution.
        seed: seed of every random choice.

    Returns:
        The data set, with the truth of every task and the true `parameters`.

    Raises:
        ValueError: an argument is out of range or contradicts another.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.one_coin_crowd(50, 3, density=0.5, accuracy=[0.9, 0.8, 0.5])
        >>> data.parameters.confusions[1].round(3)
        array([[0.8, 0.2],
               [0.2, 0.8]])
    """
    design = make_design(n_tasks, n_workers, labels_per_task, density, mask, activity)
    streams = split_streams(seed)
    if isinstance(accuracy, int | float | np.number):
        right = streams.worker.beta(
            # A beta distribution needs positive parameters, even for a mean of 0 or 1.
            max(concentration * accuracy, TINY),
            max(concentration * (1 - accuracy), TINY),
            n_workers,
        )
    else:
        right = bounded_vector("accuracy", accuracy, n_workers, "worker", low=0, high=1)
    return draw_dataset(
        "one_coin_crowd",
        "Simulated: each worker is right with one probability, whatever the true class.",
        CrowdParameters(
            prevalence_of(prevalence, n_classes),
            one_coin_confusions(right, n_classes),
            np.full(n_workers, HONEST),
        ),
        design,
        streams,
    )


@validate_arguments
def sparse_crowd(
    n_tasks: Count = 1000,
    n_workers: Count = 100,
    n_classes: Annotated[int, Whole(2)] = 3,
    *,
    alpha: Fraction,
    accuracy: Fraction | Vector = 0.6,
    labels_per_task: Count | None = None,
    density: Fraction | Vector | None = None,
    mask: Bool[np.ndarray, "task worker"] | None = None,
    activity: Annotated[float, Real(0, 10)] | Vector = 0.0,
    prevalence: Vector | None = None,
    seed: Seed = 0,
) -> Dataset:
    """Draw an alpha-sparse crowd: a few informative workers among many uninformative ones.

    The first ceil(alpha * n_workers) workers are one-coin workers. Each of the others labels at
    random with probabilities that do not depend on the true class; the paper calls these
    probabilities "unknown", and here they are drawn uniformly from the simplex. The defaults are
    those of the paper's figure 5; figure 3 has `alpha=0.3, accuracy=np.linspace(0.7, 0.45, 30)`.

    Args:
        n_tasks: number of tasks, with ids 0, 1, ...
        n_workers: number of workers, with ids 0, 1, ...
        n_classes: number of classes, labelled 0, 1, ...
        alpha: fraction of informative workers.
        accuracy: probability that an informative worker gives the true label: one number for all,
            or one per informative worker.
        labels_per_task: number of different workers per task, as for `crowd`.
        density: probability that a worker judges a task, as for `crowd`.
        mask: which worker judges which task, as for `crowd`.
        activity: how unequally labels are spread over the workers, as for `crowd`.
        prevalence: probability of each class; uniform by default.
        seed: seed of every random choice.

    Returns:
        The data set, with the truth of every task and the true `parameters`.

    Raises:
        ValueError: an argument is out of range or contradicts another.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.sparse_crowd(alpha=0.05)
        >>> data.annotations
        Annotations(100,000 labels: 1,000 tasks, 100 workers, 3 classes)
        >>> (data.parameters.kinds == "informative").nonzero()[0]
        array([0, 1, 2, 3, 4])
    """
    design = make_design(n_tasks, n_workers, labels_per_task, density, mask, activity)
    streams = split_streams(seed)
    # In floating point, 0.07 * 100 is slightly above 7: without rounding, ceil would return 8.
    n_informative = math.ceil(round(alpha * n_workers, 9))
    if isinstance(accuracy, int | float | np.number):
        right = np.full(n_informative, float(accuracy))
    else:
        right = bounded_vector(
            "accuracy", accuracy, n_informative, "informative worker", low=0, high=1
        )
    habits = streams.worker.dirichlet(np.ones(n_classes), n_workers - n_informative)
    matrices = np.concatenate(
        [one_coin_confusions(right, n_classes), np.repeat(habits[:, None, :], n_classes, axis=1)]
    )
    return draw_dataset(
        "sparse_crowd",
        f"Simulated: {n_informative} informative workers, {n_workers - n_informative} who are not.",
        CrowdParameters(
            prevalence_of(prevalence, n_classes),
            matrices,
            np.repeat([INFORMATIVE, UNINFORMATIVE], [n_informative, n_workers - n_informative]),
        ),
        design,
        streams,
    )
