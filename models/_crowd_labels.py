"""Labels of a crowd, and the formulas that models with confusion matrices share.

Given a confusion matrix per worker, labels have the density of A. P. Dawid and A. M. Skene (1979),
"Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied Statistics
28(1), whatever the matrices follow from: ``p`` is the prevalence of the classes, ``pi[k, j, l]``
the probability that worker k answers l to an item of class j.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.models._summed_out import SummedOut, sample_classes

__all__ = [
    "Labels",
    "draw_classes",
    "draw_labels",
    "keep_gold",
    "log_joint_of_labels",
    "mean_accuracy",
    "row_concentration",
    "rows_of_workers",
    "sample_labels",
]


class Labels(NamedTuple):
    """Observed labels, one entry per label; an item nobody labelled has no entry.

    In the models' `model`, a `label` of None stands for labels to be predicted.
    """

    item: Int[Array, " label"]
    """Index of the item, 0..n_items-1."""
    worker: Int[Array, " label"]
    """Index of the worker, 0..n_workers-1."""
    label: Int[Array, " label"] | Any
    """Class that the worker chose, 0..n_classes-1."""
    gold: Int[Array, " item"] | None = None
    """True class of each item if it is known, else -1. None if no class is known."""


def keep_gold(
    log_joint: Float[Array, "item part"], gold: Int[Array, " item"] | None, *, n_classes: int
) -> Float[Array, "item part"]:
    """Minus infinity for the classes that an item is known not to have.

    Args:
        log_joint: log density of each item's labels together with each true class. The classes may
            be divided into equally many parts each, listed class by class.
        gold: the known classes, see `Labels`.
        n_classes: number of classes.
    """
    if gold is None:
        return log_joint
    of_class = jnp.arange(log_joint.shape[1]) // (log_joint.shape[1] // n_classes)
    is_possible = (gold[:, None] < 0) | (gold[:, None] == of_class)
    return jnp.where(is_possible, log_joint, -jnp.inf)


def log_joint_of_labels(
    prevalence: Float[Array, " cls"],
    confusion: Float[Array, "worker cls observed"],
    labels: Labels,
    *,
    n_items: int,
) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j + sum over the item's labels of log pi[k, j, l]``, the logarithm of the numerator of
    eq. 2.5, or minus infinity for the classes that the item is known not to have.
    """
    log_answer = jnp.log(confusion)[labels.worker, :, labels.label]
    log_answers = jax.ops.segment_sum(log_answer, labels.item, num_segments=n_items)
    log_joint = jnp.log(prevalence) + log_answers
    return keep_gold(log_joint, labels.gold, n_classes=confusion.shape[-1])


def sample_labels(
    log_joint: Callable[..., Float[Array, "item cls"]],
    simulate: Callable[..., Any],
    params: Any,
    labels: Labels,
    *,
    n_items: int,
) -> None:
    """State the labels as the observed site ``labels``, one term per item, in the plate ``item``.

    Known classes are an observed site ``gold`` in front of them, and the labels are given these.

    Args:
        log_joint: the model's `label_log_joint`.
        simulate: the model's `simulate_labels`.
        params: the model's `Params`.
        labels: the observed labels, or who labels what if `labels.label` is None.
        n_items: number of items.
    """
    log_given = None
    with numpyro.plate("item", n_items, dim=-1):
        if labels.gold is not None:
            _, log_given = sample_classes("gold", params.prevalence, labels.gold)
        of_labels = SummedOut(
            log_joint,
            simulate,
            params,
            labels,
            item=labels.item,
            n_items=n_items,
            last=len(params.prevalence) - 1,
            log_given=log_given,
        )
        numpyro.sample("labels", of_labels, obs=labels.label)


def draw_classes(
    rng_key: PRNGKeyArray,
    prevalence: Float[Array, " part"],
    *,
    n_items: int,
    gold: Int[Array, " item"] | None = None,
    n_classes: int | None = None,
) -> Int[Array, " item"]:
    """Draw the true class of each item, unless it is known.

    Where `prevalence` is that of equally many parts of each class, `n_classes` is the number of
    classes, and parts are drawn.
    """
    logits = jnp.log(prevalence)
    if gold is not None:
        rows = jnp.broadcast_to(logits, (n_items, len(prevalence)))
        logits = keep_gold(rows, gold, n_classes=n_classes or len(prevalence))
    return jax.random.categorical(rng_key, logits, shape=(n_items,))


def draw_labels(
    rng_key: PRNGKeyArray,
    prevalence: Float[Array, " cls"],
    confusion: Float[Array, "worker cls cls"],
    item: Int[Array, " label"],
    worker: Int[Array, " label"],
    *,
    n_items: int,
    gold: Int[Array, " item"] | None = None,
) -> tuple[Int[Array, " item"], Labels]:
    """Draw the classes that are not known, then the label of each pair of an item and a worker."""
    key_truth, key_label = jax.random.split(rng_key)
    truth = draw_classes(key_truth, prevalence, n_items=n_items, gold=gold)
    label = jax.random.categorical(key_label, jnp.log(confusion)[worker, truth[item]])
    return truth, Labels(item, worker, label)


def row_concentration(
    n_pseudo_labels: Any, accuracy: Any, n_classes: int
) -> Float[Array, "*worker cls cls"]:
    """Dirichlet concentrations of rows in favour of right answers, indexed [true, observed].

    Args:
        n_pseudo_labels: number of pseudo-labels in each row, or an array that is broadcast against
            [..., true, observed], such as that of `rows_of_workers`.
        accuracy: share of the pseudo-labels on the diagonal, likewise; the wrong classes share the
            rest evenly.
        n_classes: number of classes.
    """
    right = n_pseudo_labels * accuracy
    wrong = n_pseudo_labels * (1 - accuracy) / (n_classes - 1)
    return jnp.where(jnp.eye(n_classes, dtype=bool), right, wrong)


def rows_of_workers(value: Any) -> Any:
    """A prior's field [worker] or [worker, true] with the axes of rows; a number as it is."""
    n_axes = jnp.ndim(value)
    return jnp.reshape(value, (*jnp.shape(value), *(1,) * (3 - n_axes))) if n_axes else value


def mean_accuracy(prevalence: Any, confusion: Any) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right: ``sum over j of p_j pi[k, j, j]``.

    Args:
        prevalence: arrays [..., cls] with any leading axes, such as chains and draws.
        confusion: arrays [..., worker, true, observed] with the same leading axes.
    """
    return np.einsum("...k,...wkk->...w", prevalence, confusion)
