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

from bayescrowd.models._summed_out import SummedOut

__all__ = [
    "Labels",
    "draw_labels",
    "log_joint_of_labels",
    "mean_accuracy",
    "row_concentration",
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


def log_joint_of_labels(
    prevalence: Float[Array, " cls"],
    confusion: Float[Array, "worker cls observed"],
    labels: Labels,
    *,
    n_items: int,
) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j + sum over the item's labels of log pi[k, j, l]``, the logarithm of the numerator of
    eq. 2.5.
    """
    log_answer = jnp.log(confusion)[labels.worker, :, labels.label]
    log_answers = jax.ops.segment_sum(log_answer, labels.item, num_segments=n_items)
    return jnp.log(prevalence) + log_answers


def sample_labels(
    log_joint: Callable[..., Float[Array, "item cls"]],
    simulate: Callable[..., Any],
    params: Any,
    labels: Labels,
    *,
    n_items: int,
) -> None:
    """State the labels as the observed site ``labels``, one term per item, in the plate ``item``.

    Args:
        log_joint: the model's `label_log_joint`.
        simulate: the model's `simulate_labels`.
        params: the model's `Params`.
        labels: the observed labels, or who labels what if `labels.label` is None.
        n_items: number of items.
    """
    of_labels = SummedOut(
        log_joint,
        simulate,
        params,
        labels,
        item=labels.item,
        n_items=n_items,
        last=len(params.prevalence) - 1,
    )
    with numpyro.plate("item", n_items, dim=-1):
        numpyro.sample("labels", of_labels, obs=labels.label)


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
