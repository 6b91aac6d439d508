"""Worker abilities and item difficulties: the model of GLAD.

J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009), "Whose vote should count more:
optimal integration of labels from labelers of unknown expertise", NIPS. An item i has a true class
``Z_i ~ Categorical(p)``. Worker k of ability ``alpha_k`` answers an item of easiness
``beta_i = exp(b_i) > 0``, the inverse of its difficulty, correctly with probability

    sigma(alpha_k beta_i) = 1 / (1 + exp(-alpha_k beta_i))                             (eq. 1)

and otherwise picks one of the other C - 1 classes with equal probability. Abilities and log
easinesses are normal: the likelihood is logistic, so only the prevalence is conjugate.

Multiplying abilities by a constant and dividing easinesses by it leaves the likelihood unchanged;
the priors fix the scale. With two classes, so does negating abilities and swapping the classes; the
prior mean of the abilities, which lies above zero, breaks that symmetry, weakly when there are few
workers.

Departure: the paper fixes the prevalence, whereas here it is learned. A model with one number per
worker may put every item in the commoner class; a large `Prior.prevalence` holds the classes to
equal shares.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import log_sigmoid, softmax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.special import expit

from bayescrowd.checks.parameters import Count, Finite, Positive, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, PerWorker, PerWorkerFinite, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models._crowd_labels import Labels, draw_classes, keep_gold, sample_labels
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "Labels",
    "Params",
    "Prior",
    "Simulation",
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
    ability: Float[Array, " worker"]
    """Ability of each worker (alpha); 0 is as often right as wrong, and below 0 is worse."""
    log_easiness: Float[Array, " item"]
    """Log easiness of each item (b = log beta), minus the logarithm of its difficulty."""


class Prior(NamedTuple):
    """A Dirichlet and two normal priors; the normal ones are the paper's (section 3.1).

    The prevalence has the default of `dawid_skene`.
    """

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    ability: PerWorkerFinite = 1.0
    """Mean ability."""
    ability_scale: PerWorker = 1.0
    """Standard deviation of the abilities."""
    log_easiness: Finite = 1.0
    """Mean log easiness."""
    log_easiness_scale: Positive = 1.0
    """Standard deviation of the log easinesses."""


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

    Plates: ``prevalence``; ``ability`` in the plate ``worker``; ``log_easiness`` in the plate
    ``item``, and so are the observed ``labels``, one term per item.

    Args:
        labels: the observed labels; with a `label` of None they are drawn in prediction.
        n_items: number of items, including those without a label.
        n_workers: number of workers, including those without a label.
        n_classes: number of classes, at least 2, including those that nobody chose.
        prior: means, scales and pseudo-counts of the priors.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    with numpyro.plate("worker", n_workers, dim=-1):
        ability = numpyro.sample("ability", _ability_prior(prior))
    with numpyro.plate("item", n_items, dim=-1):
        log_easiness = numpyro.sample("log_easiness", _log_easiness_prior(prior))
    params = Params(prevalence, ability, log_easiness)
    sample_labels(label_log_joint, simulate_labels, params, labels, n_items=n_items)


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j`` plus, for each of the item's labels, ``log sigma(x)`` if it is j and else
    ``log(sigma(-x) / (C - 1))``, where ``x = alpha_k beta_i``.
    """
    log_answer = _log_answer(params, labels.item, labels.worker, labels.label)
    log_answers = jax.ops.segment_sum(log_answer, labels.item, num_segments=n_items)
    log_joint = jnp.log(params.prevalence) + log_answers
    return keep_gold(log_joint, labels.gold, n_classes=len(params.prevalence))


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
    key_prevalence, key_ability, key_easiness, key_labels = jax.random.split(rng_key, 4)
    (prevalence,) = dirichlet_tables(key_prevalence, [jnp.full(n_classes, prior.prevalence)])
    params = Params(
        prevalence=prevalence,
        ability=_ability_prior(prior).expand((n_workers,)).sample(key_ability),
        log_easiness=_log_easiness_prior(prior).sample(key_easiness, (n_items,)),
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
    key_truth, key_label = jax.random.split(rng_key)
    truth = draw_classes(key_truth, params.prevalence, n_items=n_items, gold=gold)
    label = jax.random.categorical(key_label, _log_answer(params, item, worker, truth[item]))
    return Simulation(params=params, truth=truth, labels=Labels(item, worker, label))


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right in each draw, averaged over the items (eq. 1)."""
    easiness = np.exp(params.log_easiness)
    return np.asarray(expit(params.ability[..., None] * easiness[..., None, :]).mean(axis=-1))


def _log_answer(
    params: Params,
    item: Int[Array, " label"],
    worker: Int[Array, " label"],
    cls: Int[Array, " label"],
) -> Float[Array, "label cls"]:
    """Log probability of each answer to an item of class `cls`.

    Right and wrong are symmetric, so this is also that of the answer `cls` under each true class.
    """
    n_classes = len(params.prevalence)
    logit = (params.ability[worker] * jnp.exp(params.log_easiness)[item])[:, None]
    log_wrong = log_sigmoid(-logit) - jnp.log(n_classes - 1)
    return jnp.where(cls[:, None] == jnp.arange(n_classes), log_sigmoid(logit), log_wrong)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _ability_prior(prior: Prior) -> dist.Normal:
    return dist.Normal(prior.ability, prior.ability_scale)


def _log_easiness_prior(prior: Prior) -> dist.Normal:
    return dist.Normal(prior.log_easiness, prior.log_easiness_scale)


FACTS = Facts(
    subject="labels",
    summary="worker ability and task difficulty (GLAD)",
    has_conditionals=False,
    accuracy=worker_accuracy,
)
