"""Labels of a crowd, and the formulas that models with confusion matrices share.

Given a confusion matrix per worker, labels have the density of A. P. Dawid and A. M. Skene (1979),
"Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied Statistics
28(1), whatever the matrices follow from: ``p`` is the prevalence of the classes, ``pi[k, j, l]``
the probability that worker k answers l to an item of class j.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

__all__ = [
    "Labels",
    "draw_labels",
    "keep_gold",
    "log_joint_of_labels",
    "mean_accuracy",
    "row_concentration",
]


class Labels(NamedTuple):
    """Observed labels, one entry per label; an item nobody labelled has no entry."""

    item: Int[Array, " label"]
    """Index of the item, 0..n_items-1."""
    worker: Int[Array, " label"]
    """Index of the worker, 0..n_workers-1."""
    label: Int[Array, " label"]
    """Class that the worker chose, 0..n_classes-1."""
    gold: Int[Array, " item"] | None = None
    """True class of each item if it is known, else -1. None if no class is known."""


def keep_gold(
    log_joint: Float[Array, "item part"], labels: Labels, *, n_classes: int
) -> Float[Array, "item part"]:
    """Minus infinity for the classes that an item is known not to have, as `Labels.gold` says.

    Args:
        log_joint: log density of each item's labels together with each true class. The classes may
            be divided into equally many parts each, listed class by class.
        labels: the observed labels.
        n_classes: number of classes.
    """
    if labels.gold is None:
        return log_joint
    of_class = jnp.arange(log_joint.shape[1]) // (log_joint.shape[1] // n_classes)
    gold = labels.gold[:, None]
    return jnp.where((gold < 0) | (gold == of_class), log_joint, -jnp.inf)


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
    return keep_gold(log_joint, labels, n_classes=confusion.shape[-1])


def draw_labels(
    rng_key: PRNGKeyArray,
    prevalence: Float[Array, " cls"],
    confusion: Float[Array, "worker cls cls"],
    item: Int[Array, " label"],
    worker: Int[Array, " label"],
    *,
    n_items: int,
) -> tuple[Int[Array, " item"], Labels]:
    """Draw the true class of each item, then the label of each pair of an item and a worker."""
    key_truth, key_label = jax.random.split(rng_key)
    truth = jax.random.categorical(key_truth, jnp.log(prevalence), shape=(n_items,))
    label = jax.random.categorical(key_label, jnp.log(confusion)[worker, truth[item]])
    return truth, Labels(item, worker, label)


def row_concentration(
    n_pseudo_labels: Any, accuracy: Any, n_classes: int
) -> Float[Array, "cls cls"]:
    """Dirichlet concentrations of rows in favour of right answers, indexed [true, observed].

    Args:
        n_pseudo_labels: number of pseudo-labels in each row, a number or JAX's tracer of one.
        accuracy: share of the pseudo-labels on the diagonal, likewise; the wrong classes share the
            rest evenly.
        n_classes: number of classes.
    """
    right = n_pseudo_labels * accuracy
    wrong = n_pseudo_labels * (1 - accuracy) / (n_classes - 1)
    return jnp.where(jnp.eye(n_classes, dtype=bool), right, wrong)


def mean_accuracy(prevalence: Any, confusion: Any) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right: ``sum over j of p_j pi[k, j, j]``.

    Args:
        prevalence: arrays [..., cls] with any leading axes, such as chains and draws.
        confusion: arrays [..., worker, true, observed] with the same leading axes.
    """
    return np.einsum("...k,...wkk->...w", prevalence, confusion)
