"""The one-coin model: Dawid and Skene's with a single accuracy per worker.

A. P. Dawid and A. M. Skene (1979), "Maximum likelihood estimation of observer error-rates using
the EM algorithm", Applied Statistics 28(1), with their ``pi[k, j, l]`` tied: an item i has a true
class ``z_i ~ Categorical(p)``; worker k answers correctly with probability ``a_k``, whatever the
class, and otherwise picks one of the other C - 1 classes with equal probability,

    pi[k, j, j] = a_k        pi[k, j, l] = (1 - a_k) / (C - 1)  for l != j.

The accuracies have beta priors, which are conjugate: given the true classes, ``a_k`` is again a
beta, with the worker's right and wrong answers added to `accuracy_concentration`.

One number per worker is learned from few labels, but it cannot show that workers mistake one class
more often than another. With two classes the likelihood does not change when the classes are
swapped and every ``a_k`` becomes ``1 - a_k``; the prior, which expects more right than wrong
answers, breaks that symmetry. With more classes there is none to break.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import softmax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, PerWorker, PerWorkerFraction, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models._crowd_labels import (
    Labels,
    draw_labels,
    log_joint_of_labels,
    sample_labels,
)
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "Labels",
    "Params",
    "Prior",
    "Simulation",
    "accuracy_concentration",
    "confusion",
    "label_log_joint",
    "label_posterior",
    "model",
    "simulate",
    "simulate_labels",
    "worker_accuracy",
]


class Params(NamedTuple):
    """Parameters, as probabilities; the field names are the names of the model's sites."""

    prevalence: Float[Array, " cls"]
    """Probability of each true class (p)."""
    accuracy: Float[Array, " worker"]
    """Probability that the worker's answer is right (a)."""


class Prior(NamedTuple):
    """Dirichlet and beta priors; the defaults are those of `dawid_skene` for one row.

    A diagonal entry of that model's confusion matrices has the beta prior that an accuracy has
    here.
    """

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    n_pseudo_labels: PerWorker = 8.0
    """Pseudo-labels of each worker."""
    accuracy: PerWorkerFraction = 0.6
    """Share of the pseudo-labels that are right."""


class Simulation(NamedTuple):
    """A crowd drawn from the model."""

    params: Params
    """The parameters behind it."""
    truth: Int[Array, " item"]
    """True class of each item."""
    labels: Labels
    """What the workers answered."""


@validate_arguments
def model(
    labels: Labels,
    *,
    n_items: Count,
    n_workers: Count,
    n_classes: Annotated[int, Whole(2)],
    prior: Prior = Prior(),
) -> None:
    """State the joint density of the parameters and the labels, true classes summed out.

    Plates: ``prevalence``; ``accuracy`` in the plate ``worker``; the observed ``labels``, one term
    per item, in the plate ``item``.

    Args:
        labels: the observed labels; with a `label` of None they are drawn in prediction.
        n_items: number of items, including those without a label.
        n_workers: number of workers, including those without a label.
        n_classes: number of classes, at least 2, including those that nobody chose.
        prior: pseudo-counts of the priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    with numpyro.plate("worker", n_workers, dim=-1):
        accuracy = numpyro.sample("accuracy", _accuracy_prior(prior))
    sample_labels(
        label_log_joint, simulate_labels, Params(prevalence, accuracy), labels, n_items=n_items
    )


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j`` plus, for each of the item's labels, ``log a_k`` if it is j and else
    ``log((1 - a_k) / (C - 1))``.
    """
    return log_joint_of_labels(params.prevalence, confusion(params), labels, n_items=n_items)


@validate_arguments
def label_posterior(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Probability of each item's true class given the parameters."""
    return softmax(label_log_joint(params, labels, n_items=n_items), axis=-1)


@validate_arguments
def simulate(
    rng_key: PRNGKeyArray,
    item: Int[Array, " label"],
    worker: Int[Array, " label"],
    *,
    n_items: Count,
    n_workers: Count,
    n_classes: Annotated[int, Whole(2)],
    prior: Prior = Prior(),
) -> Simulation:
    """Draw parameters from the prior, true classes and the labels.

    Args:
        rng_key: the source of randomness.
        item: which item each label is about.
        worker: who gives each label, paired with `item`.
        n_items: number of items.
        n_workers: number of workers.
        n_classes: number of classes, at least 2.
        prior: pseudo-counts of the priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    key_params, key_labels = jax.random.split(rng_key)
    prevalence, coins = dirichlet_tables(
        key_params,
        [
            jnp.full(n_classes, prior.prevalence),
            jnp.broadcast_to(accuracy_concentration(prior), (n_workers, 2)),
        ],
    )
    params = Params(prevalence, accuracy=coins[:, 0])
    return simulate_labels(key_labels, params, item, worker, n_items=n_items)


@validate_arguments
def simulate_labels(
    rng_key: PRNGKeyArray,
    params: Params,
    item: Int[Array, " label"],
    worker: Int[Array, " label"],
    *,
    n_items: Count,
    gold: Int[Array, " item"] | None = None,
) -> Simulation:
    """Draw true classes and labels given the parameters; known classes stay (see `simulate`)."""
    truth, labels = draw_labels(
        rng_key, params.prevalence, confusion(params), item, worker, n_items=n_items, gold=gold
    )
    return Simulation(params=params, truth=truth, labels=labels)


@validate_arguments
def accuracy_concentration(prior: Prior) -> Float[Array, "*worker coin"]:
    """Parameters of the accuracies' beta prior: right, then wrong pseudo-labels.

    They have an axis of workers in front where the prior has.
    """
    accuracy = jnp.asarray(prior.accuracy)
    shares = jnp.stack([accuracy, 1 - accuracy], axis=-1)
    return jnp.asarray(prior.n_pseudo_labels)[..., None] * shares


@validate_arguments
def confusion(params: Params) -> Float[Array, "worker cls cls"]:
    """Confusion matrices that the accuracies stand for, indexed [worker, true, observed]."""
    n_classes = len(params.prevalence)
    right = params.accuracy[:, None, None]
    return jnp.where(jnp.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right in each draw: the parameter ``a`` itself."""
    return np.asarray(params.accuracy)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _accuracy_prior(prior: Prior) -> dist.Beta:
    return dist.Beta(*jnp.moveaxis(accuracy_concentration(prior), -1, 0))


FACTS = Facts(
    subject="labels",
    summary="one accuracy per worker",
    has_conditionals=True,
    accuracy=worker_accuracy,
)
