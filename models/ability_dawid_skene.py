"""Dawid and Skene's model with rows that worker ability and the crowd's errors regularise.

An item i has a true class ``z_i ~ Categorical(p)``; worker k answers l to an item of class j with
probability ``pi[k, j, l]``. The workers' rows scatter around bases that ability makes,

    logit a[k, j] = c[j] + b[k],               b[k] ~ Normal(0, v)
    B[k, j, j] = a[k, j],                      B[k, j, l] = (1 - a[k, j]) o[j, l]  for l != j
    pi[k, j] ~ Dirichlet(s B[k, j]).

``c`` is how easy the classes are, ``b`` how able the workers are, ``o`` what the crowd takes a
class for when it errs, and ``s`` the number of pseudo-labels that a base is worth: workers with few
labels are judged by their ability, which all classes share, and those with many by their own rows.
The estimator of the same model is `bayescrowd.EmpiricalBayesDawidSkene`.

Unlike in `hierarchical_dawid_skene`, workers differ in ability even where their rows are pooled
firmly. The rows are conjugate given their bases (`confusion_concentration`); the rest is not. The
prior means of ``c`` lie above zero, which breaks the symmetry of the true classes.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import sigmoid, softmax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Positive, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, PerClassFinite, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models._crowd_labels import (
    Labels,
    draw_labels,
    log_joint_of_labels,
    mean_accuracy,
    sample_labels,
)
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "Labels",
    "Params",
    "Prior",
    "Simulation",
    "base",
    "confusion_concentration",
    "label_log_joint",
    "label_posterior",
    "model",
    "simulate",
    "simulate_labels",
    "worker_accuracy",
]


class Params(NamedTuple):
    """Parameters; the field names are the names of the model's sites."""

    prevalence: Float[Array, " cls"]
    """Probability of each true class (p)."""
    easiness: Float[Array, " cls"]
    """Log odds of a right answer by a worker of middling ability (c)."""
    spread: Float[Array, ""]
    """Standard deviation of the abilities, in logits (square root of v)."""
    ability: Float[Array, " worker"]
    """Ability of each worker, in logits (b)."""
    mistaken: Float[Array, "cls cls"]
    """What a class is taken for, [true, observed]; o is this without the diagonal, scaled."""
    strength: Float[Array, ""]
    """Pseudo-labels that a base is worth in each row (s)."""
    confusion: Float[Array, "worker cls cls"]
    """Probability of each answer, indexed [worker, true, observed] (pi)."""


class Prior(NamedTuple):
    """Dirichlet, normal and log-normal priors.

    The median worker is right with probability 0.73; 90 % of strengths lie between 1.2 and 31
    pseudo-labels.
    """

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    easiness: PerClassFinite = 1.0
    """Mean log odds of a right answer."""
    easiness_scale: PerClass = 1.0
    """Standard deviation of the classes' log odds."""
    spread: Positive = 1.0
    """Scale of the half-normal prior of the abilities' standard deviation."""
    mistaken: Positive = 1.0
    """Pseudo-labels of each answer in what a class is taken for."""
    strength: Positive = 6.0
    """Median strength, in pseudo-labels."""
    log_strength_scale: Positive = 1.0
    """Standard deviation of the logarithm of the strength."""


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

    Plates: ``prevalence``, ``spread`` and ``strength``; ``easiness`` and ``mistaken`` in the plate
    ``cls``, the true class; ``ability`` in the plate ``worker``; ``confusion`` in both; the
    observed ``labels``, one term per item, in the plate ``item``.

    Args:
        labels: the observed labels; with a `label` of None they are drawn in prediction.
        n_items: number of items, including those without a label.
        n_workers: number of workers, including those without a label.
        n_classes: number of classes, at least 2, including those that nobody chose.
        prior: means, scales and pseudo-counts of the priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    workers = numpyro.plate("worker", n_workers, dim=-2)
    classes = numpyro.plate("cls", n_classes, dim=-1)
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    spread = numpyro.sample("spread", dist.HalfNormal(prior.spread))
    strength = numpyro.sample("strength", _strength_prior(prior))
    with classes:
        easiness = numpyro.sample("easiness", _easiness_prior(prior))
        mistaken = numpyro.sample("mistaken", _mistaken_prior(prior, n_classes))
    with numpyro.plate("worker", n_workers, dim=-1):
        ability = numpyro.sample("ability", dist.Normal(0.0, spread))
    concentration = confusion_concentration(easiness, ability, mistaken, strength)
    with workers, classes:
        confusion = numpyro.sample("confusion", dist.Dirichlet(concentration))
    params = Params(prevalence, easiness, spread, ability, mistaken, strength, confusion)
    sample_labels(label_log_joint, simulate_labels, params, labels, n_items=n_items)


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j + sum over the item's labels of log pi[k, j, l]``: given the workers' rows,
    their bases say nothing more.
    """
    return log_joint_of_labels(params.prevalence, params.confusion, labels, n_items=n_items)


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
        prior: means, scales and pseudo-counts of the priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    keys = jax.random.split(rng_key, 7)
    key_easiness, key_spread, key_ability, key_rows = keys[:4]
    key_strength, key_confusion, key_labels = keys[4:]
    easiness = _easiness_prior(prior).expand((n_classes,)).sample(key_easiness)
    spread = dist.HalfNormal(prior.spread).sample(key_spread)
    ability = spread * jax.random.normal(key_ability, (n_workers,))
    prevalence, mistaken = dirichlet_tables(
        key_rows,
        [
            jnp.full(n_classes, prior.prevalence),
            jnp.full((n_classes, n_classes), prior.mistaken),
        ],
    )
    strength = _strength_prior(prior).sample(key_strength)
    rows = confusion_concentration(easiness, ability, mistaken, strength)
    (confusion,) = dirichlet_tables(key_confusion, [rows])
    params = Params(
        prevalence=prevalence,
        easiness=easiness,
        spread=spread,
        ability=ability,
        mistaken=mistaken,
        strength=strength,
        confusion=confusion,
    )
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
def base(
    easiness: Float[Array, " cls"],
    ability: Float[Array, " worker"],
    mistaken: Float[Array, "cls cls"],
) -> Float[Array, "worker cls cls"]:
    """What the workers' rows scatter around, indexed [worker, true, observed] (B)."""
    is_right = jnp.eye(len(easiness), dtype=bool)
    wrong = jnp.where(is_right, 0.0, mistaken)
    wrong = wrong / wrong.sum(axis=-1, keepdims=True)
    right = sigmoid(easiness + ability[:, None])[:, :, None]
    return jnp.where(is_right, right, (1 - right) * wrong)


@validate_arguments
def confusion_concentration(
    easiness: Float[Array, " cls"],
    ability: Float[Array, " worker"],
    mistaken: Float[Array, "cls cls"],
    strength: Float[Array, ""],
) -> Float[Array, "worker cls cls"]:
    """Dirichlet concentrations of the workers' rows, [worker, true, observed] (s B)."""
    return strength * base(easiness, ability, mistaken)


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right in each draw; see `dawid_skene`."""
    return mean_accuracy(params.prevalence, params.confusion)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _easiness_prior(prior: Prior) -> dist.Normal:
    return dist.Normal(prior.easiness, prior.easiness_scale)


def _mistaken_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.mistaken))


def _strength_prior(prior: Prior) -> dist.LogNormal:
    return dist.LogNormal(jnp.log(prior.strength), prior.log_strength_scale)


FACTS = Facts(
    subject="labels",
    summary="confusion matrices drawn around each worker's ability",
    has_conditionals=False,
    accuracy=worker_accuracy,
)
