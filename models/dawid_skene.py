"""Dawid and Skene's model: every worker has a confusion matrix of their own.

A. P. Dawid and A. M. Skene (1979), "Maximum likelihood estimation of observer error-rates using
the EM algorithm", Applied Statistics 28(1). An item i has a true class ``z_i ~ Categorical(p)``,
and worker k answers l to an item of class j with probability ``pi[k, j, l]``. Given the
parameters, an item's class has the posterior of their eq. 2.5, and the classes summed out leave
the likelihood of their eq. 2.7.

Departures: the paper maximises the likelihood, whereas here the parameters have Dirichlet priors;
and a worker may label any number of items any number of times.

The likelihood is the same under every renaming of the true classes. The prior breaks that
symmetry: it expects a worker to be right more often than wrong (`Prior`).
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
from bayescrowd.checks.priors import PerClass, PerRow, PerRowFraction, Rows, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models._crowd_labels import (
    Labels,
    draw_labels,
    log_joint_of_labels,
    mean_accuracy,
    row_concentration,
    rows_of_workers,
    sample_labels,
)
from bayescrowd.models._crowd_labels import (
    keep_gold as keep_gold,  # for the conditionals
)
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "Labels",
    "Params",
    "Prior",
    "Simulation",
    "confusion_concentration",
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
    """Probability of each true class (p in the paper)."""
    confusion: Float[Array, "worker cls cls"]
    """Probability of each answer, indexed [worker, true, observed] (pi in the paper)."""


class Prior(NamedTuple):
    """Dirichlet priors; the defaults are those of the R package rater.

    J. M. Pullin, L. C. Gurrin and D. Vukcevic, "Statistical models of repeated categorical
    rating: the R package rater", arXiv:2010.09335: 3 pseudo-items per class, and 8 pseudo-labels
    per row of a confusion matrix, of which 60 % are right. A field may be an array: a `prevalence`
    for each class; the others for each worker, or for each worker and true class.
    """

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    n_pseudo_labels: PerRow = 8.0
    """Pseudo-labels in each row of a worker's confusion matrix."""
    accuracy: PerRowFraction = 0.6
    """Share of the pseudo-labels on the diagonal; the wrong classes share the rest evenly."""
    confusion: Rows = None
    """Pseudo-labels of each answer, indexed [true, observed] or [worker, true, observed], in place
    of `n_pseudo_labels` and `accuracy`."""


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

    Plates: ``prevalence``; ``confusion`` in the plates ``worker`` and ``cls``, the true class; the
    observed ``labels``, one term per item, in the plate ``item``.

    Args:
        labels: the observed labels; with a `label` of None they are drawn in prediction.
        n_items: number of items, including those without a label.
        n_workers: number of workers, including those without a label.
        n_classes: number of classes, at least 2, including those that nobody chose.
        prior: pseudo-counts of the Dirichlet priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("cls", n_classes, dim=-1):
        confusion = numpyro.sample("confusion", _confusion_prior(prior, n_classes))
    sample_labels(
        label_log_joint, simulate_labels, Params(prevalence, confusion), labels, n_items=n_items
    )


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j + sum over the item's labels of log pi[k, j, l]``, the logarithm of the numerator
    of eq. 2.5. Its logsumexp over classes is the item's marginal log-likelihood; an item without
    labels has the logarithm of the prevalence.
    """
    return log_joint_of_labels(params.prevalence, params.confusion, labels, n_items=n_items)


@validate_arguments
def label_posterior(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Probability of each item's true class given the parameters (eq. 2.5)."""
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
        prior: pseudo-counts of the Dirichlet priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    key_params, key_labels = jax.random.split(rng_key)
    rows = confusion_concentration(prior, n_classes)
    prevalence, confusion = dirichlet_tables(
        key_params,
        [
            jnp.full(n_classes, prior.prevalence),
            jnp.broadcast_to(rows, (n_workers, n_classes, n_classes)),
        ],
    )
    params = Params(prevalence, confusion)
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
        rng_key, params.prevalence, params.confusion, item, worker, n_items=n_items, gold=gold
    )
    return Simulation(params=params, truth=truth, labels=labels)


@validate_arguments
def confusion_concentration(
    prior: Prior, n_classes: Annotated[int, Whole(2)]
) -> Float[Array, "*worker cls cls"]:
    """Dirichlet concentrations of a confusion matrix's rows, indexed [true, observed].

    They have an axis of workers in front where the prior has.
    """
    if prior.confusion is not None:
        return jnp.asarray(prior.confusion)
    n_pseudo_labels, accuracy = map(rows_of_workers, (prior.n_pseudo_labels, prior.accuracy))
    return row_concentration(n_pseudo_labels, accuracy, n_classes)


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability of a right label, ``sum over j of p_j pi[k, j, j]``, of each worker and draw."""
    return mean_accuracy(params.prevalence, params.confusion)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _confusion_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(confusion_concentration(prior, n_classes))


FACTS = Facts(
    subject="labels",
    summary="a confusion matrix per worker",
    has_conditionals=True,
    accuracy=worker_accuracy,
)
