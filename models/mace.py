"""MACE: every worker either knows the answer or spams with a habit of their own.

D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013), "Learning whom to trust with MACE",
NAACL-HLT, figure 1. An item i has a true class ``T_i ~ Categorical(p)``. Each label has a coin
``S_ik ~ Bernoulli(1 - theta_k)``: worker k of competence ``theta_k`` knows the class and says it if
``S_ik = 0``; otherwise the answer is drawn from the worker's strategy ``xi_k``, whatever the class.
With the coins summed out, worker k answers l to an item of class j with probability

    pi[k, j, l] = theta_k [l = j] + (1 - theta_k) xi[k, l],

which is Dawid and Skene's model with C numbers per worker in place of C (C - 1).

Given classes and coins all priors are conjugate: the number of known and of spammed labels adds to
`competence_concentration`, the spammed labels of each class add to the strategy's pseudo-labels.
The coins are independent given the classes, with the probabilities of `knowing_given_truth`.

A competence is never below zero, so nobody is wrong on purpose and renaming the true classes
changes the likelihood; only where all competences vanish are the classes not determined.

Departure: the paper's classes are equally frequent, whereas here their prevalence is learned; a
large `Prior.prevalence` recovers the paper's model.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import softmax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, PerStrategy, PerWorker, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models._crowd_labels import (
    Labels,
    draw_classes,
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
    "competence_concentration",
    "confusion",
    "knowing_given_truth",
    "knowing_posterior",
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
    competence: Float[Array, " worker"]
    """Probability that the worker knows the class (theta)."""
    strategy: Float[Array, "worker cls"]
    """Probability of each answer when spamming (xi)."""


class Prior(NamedTuple):
    """Dirichlet and beta priors, of the form that the paper's section 2.3 proposes.

    Competence and strategy have the values of the estimator `bayescrowd.MACE`, the prevalence has
    that of `dawid_skene`.
    """

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    knowing: PerWorker = 0.5
    """Pseudo-labels that a worker knew; below 1, competences tend to the extremes."""
    spamming: PerWorker = 0.5
    """Pseudo-labels that a worker spammed."""
    strategy: PerStrategy = 10.0
    """Pseudo-labels of each class in a worker's strategy."""


class Simulation(NamedTuple):
    """A crowd drawn from the model."""

    params: Params
    """The parameters behind it."""
    truth: Int[Array, " item"]
    """True class of each item."""
    knew: Bool[Array, " label"]
    """Whether the worker knew the class (S = 0), label by label."""
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
    """State the joint density of the parameters and the labels, classes and coins summed out.

    Plates: ``prevalence``; ``competence`` and ``strategy`` in the plate ``worker``; the observed
    ``labels``, one term per item, in the plate ``item``.

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
        competence = numpyro.sample("competence", _competence_prior(prior))
        strategy = numpyro.sample("strategy", _strategy_prior(prior, n_classes))
    sample_labels(
        label_log_joint,
        simulate_labels,
        Params(prevalence, competence, strategy),
        labels,
        n_items=n_items,
    )


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class, coins summed out.

    ``log p_j + sum over the item's labels of log(theta_k [l = j] + (1 - theta_k) xi[k, l])``.
    """
    return log_joint_of_labels(params.prevalence, confusion(params), labels, n_items=n_items)


@validate_arguments
def label_posterior(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Probability of each item's true class given the parameters."""
    return softmax(label_log_joint(params, labels, n_items=n_items), axis=-1)


@validate_arguments
def knowing_given_truth(
    params: Params, labels: Labels, truth: Int[Array, " item"]
) -> Float[Array, " label"]:
    """Probability that each label was known, given the parameters and the true classes.

    ``theta_k / (theta_k + (1 - theta_k) xi[k, l])`` where the label is right; a wrong label was
    spammed.
    """
    return jnp.where(truth[labels.item] == labels.label, _knowing_given_right(params, labels), 0.0)


@validate_arguments
def knowing_posterior(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, " label"]:
    """Probability that each label was known, given the parameters and all labels.

    Given the class, the item's other labels say nothing more about the coin, so this is the
    probability that the label is right times the probability that a right label was known.
    """
    right = label_posterior(params, labels, n_items=n_items)[labels.item, labels.label]
    return right * _knowing_given_right(params, labels)


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
    """Draw parameters from the prior, true classes, coins and the labels.

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
    prevalence, coins, strategy = dirichlet_tables(
        key_params,
        [
            jnp.full(n_classes, prior.prevalence),
            jnp.broadcast_to(competence_concentration(prior), (n_workers, 2)),
            jnp.full((n_workers, n_classes), prior.strategy),
        ],
    )
    params = Params(prevalence, competence=coins[:, 0], strategy=strategy)
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
    """Draw true classes, coins and labels given the parameters; known classes stay."""
    key_truth, key_coin, key_spam = jax.random.split(rng_key, 3)
    truth = draw_classes(key_truth, params.prevalence, n_items=n_items, gold=gold)
    knew = jax.random.bernoulli(key_coin, params.competence[worker])
    spam = jax.random.categorical(key_spam, jnp.log(params.strategy)[worker])
    labels = Labels(item, worker, jnp.where(knew, truth[item], spam))
    return Simulation(params=params, truth=truth, knew=knew, labels=labels)


@validate_arguments
def competence_concentration(prior: Prior) -> Float[Array, "*worker coin"]:
    """Parameters of the competences' beta prior: known, then spammed pseudo-labels.

    They have an axis of workers in front where the prior has.
    """
    return jnp.stack(jnp.broadcast_arrays(prior.knowing, prior.spamming), axis=-1)


@validate_arguments
def confusion(params: Params) -> Float[Array, "worker cls cls"]:
    """Confusion matrices with the coins summed out, indexed [worker, true, observed]."""
    knowing = params.competence[:, None, None] * jnp.eye(len(params.prevalence))
    return knowing + _spamming(params)[:, None, :]


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right in each draw: known, or spammed and lucky.

    ``theta_k + (1 - theta_k) sum over j of p_j xi[k, j]``.
    """
    lucky = np.einsum("...k,...wk->...w", params.prevalence, params.strategy)
    return np.asarray(params.competence + (1 - params.competence) * lucky)


def _spamming(params: Params) -> Float[Array, "worker cls"]:
    """Probability of spamming with each answer: (1 - theta_k) xi[k, l]."""
    return (1 - params.competence)[:, None] * params.strategy


def _knowing_given_right(params: Params, labels: Labels) -> Float[Array, " label"]:
    knowing = params.competence[labels.worker]
    spamming = _spamming(params)[labels.worker, labels.label]
    right = knowing + spamming
    # a label that has no probability was neither known nor spammed
    return jnp.where(right > 0, knowing / jnp.where(right > 0, right, 1.0), 0.0)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _competence_prior(prior: Prior) -> dist.Beta:
    return dist.Beta(*jnp.moveaxis(competence_concentration(prior), -1, 0))


def _strategy_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    shape = jnp.broadcast_shapes(jnp.shape(prior.strategy), (n_classes,))
    return dist.Dirichlet(jnp.full(shape, prior.strategy))


FACTS = Facts(
    subject="labels",
    summary="workers who know the answer or spam",
    has_conditionals=True,
    accuracy=worker_accuracy,
)
