"""Raters who err together: the tasks of a class come in subtypes, some of which mislead.

An item i has a true class ``z_i ~ Categorical(p)`` and, within it, a hidden subtype
``u_i ~ Categorical(rho[z_i])``; worker k answers l to an item of class j and subtype m with
probability ``pi[k, j, m, l]``. Given both, answers are independent. Given the class alone they are
not: on a subtype that misleads, many workers err together. The subtypes are those of Y. Li,
B. Rubinstein and T. Cohn (2019), "Exploiting worker correlation for label aggregation in
crowdsourcing", ICML (EBCC). There the rows of a subtype are free; here they scatter around what
the worker does with the class as a whole, ``c[k, j]``, and around what the subtype does to
everybody, ``e[j, m]``,

    pi[k, j, m] ~ Dirichlet(s c[k, j] + t e[j, m]).

The strengths s and t are fixed numbers of pseudo-labels. With a large s, subtypes do not matter and
the model is that of Dawid and Skene; with a large t, a misleading task misleads all workers alike,
including those with few labels. Learned strengths, tried with a wider prior of the subtypes' rows,
gained 3 to 26 nats of 2,500 to 14,000 on three crowds, let go of the workers' own rows (s near 1),
which tie the subtypes of a class together, and on the two crowds with one mode left an eighth of
the effective draws.

Everything stays conjugate. ``Gamma(a + n) / Gamma(a)``, a factor of the density of counts n with
the rows integrated out, is a sum over numbers of tables of a Chinese restaurant, and each table
belongs to the worker or to the subtype in proportion to ``s c`` and ``t e`` (see
`bayescrowd.posterior.conditionals.task_subtypes`).

Subtypes of a class are exchangeable. The density does not depend on their numbers, and
`bayescrowd.posterior` numbers them in the draws by how often workers are right, the easiest first.
The workers' rows c are expected to be right more often than wrong, which breaks the symmetry of the
true classes, as in `dawid_skene`. Labels alone cannot tell a subtype on which nearly all workers
err from tasks of another class: only gold labels can.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, OpenFraction, Positive, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, PerRow, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables, log_gamma
from bayescrowd.models._crowd_labels import (
    Labels,
    draw_classes,
    log_joint_of_labels,
    row_concentration,
    rows_of_workers,
    sample_labels,
)
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "N_SUBTYPES",
    "Labels",
    "Params",
    "Prior",
    "Simulation",
    "confusion_concentration",
    "label_log_joint",
    "label_posterior",
    "model",
    "pair_prevalence",
    "row_concentrations",
    "shared_concentration",
    "simulate",
    "simulate_labels",
    "subtype_log_joint",
    "worker_accuracy",
]

N_SUBTYPES = 2
"""Number of subtypes of each class; shapes cannot depend on a prior."""


class Params(NamedTuple):
    """Parameters; the field names are the names of the model's sites."""

    prevalence: Float[Array, " cls"]
    """Probability of each true class (p)."""
    weight: Float[Array, "cls subtype"]
    """Weight of each subtype; its share of their sum is its probability in the class (rho)."""
    shared: Float[Array, "cls subtype cls"]
    """What a subtype leads everybody to answer, [true, subtype, observed] (e)."""
    confusion: Float[Array, "worker cls cls"]
    """What a worker tends to answer to a class, [worker, true, observed] (c)."""
    subtype_confusion: Float[Array, "worker cls subtype cls"]
    """Probability of each answer, indexed [worker, true, subtype, observed] (pi)."""


class Prior(NamedTuple):
    """Dirichlet priors, and the strengths of the rows that a worker's row on a subtype follows.

    The workers' own rows have the default prior of `dawid_skene`. So have the subtypes'
    rows: most tasks are not expected to mislead most workers.
    """

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    share: Positive = 2.0
    """Pseudo-items of each subtype: weights are gamma, so that shares are Dirichlet."""
    n_pseudo_labels: PerRow = 8.0
    """Pseudo-labels in each of a worker's own rows."""
    accuracy: OpenFraction = 0.6
    """Share of the pseudo-labels on the diagonal; the wrong classes share the rest evenly."""
    shared_pseudo_labels: Positive = 8.0
    """Pseudo-labels in each subtype's row, of which the same share is on the diagonal."""
    own_strength: Positive = 8.0
    """Pseudo-labels that a worker's own row is worth on each subtype (s)."""
    shared_strength: Positive = 4.0
    """Pseudo-labels that a subtype's row is worth for each worker (t)."""


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
    """State the joint density of parameters and labels, subtypes and true classes summed out.

    Plates: ``prevalence``; ``weight`` and ``shared`` in the plates ``cls``, the true class, and
    ``subtype``; ``confusion`` in the plates ``worker`` and ``cls``; ``subtype_confusion`` in all
    three; the observed ``labels``, one term per item, in the plate ``item``.

    Args:
        labels: the observed labels; with a `label` of None they are drawn in prediction.
        n_items: number of items, including those without a label.
        n_workers: number of workers, including those without a label.
        n_classes: number of classes, at least 2, including those that nobody chose.
        prior: pseudo-counts of the priors, and the strengths.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    subtypes = numpyro.plate("subtype", N_SUBTYPES, dim=-1)
    classes = numpyro.plate("cls", n_classes, dim=-2)
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    with classes, subtypes:
        weight = numpyro.sample("weight", dist.Gamma(prior.share, 1.0))
        shared = numpyro.sample("shared", _shared_prior(prior, n_classes))
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("cls", n_classes, dim=-1):
        confusion = numpyro.sample("confusion", _confusion_prior(prior, n_classes))
    rows = row_concentrations(confusion, shared, prior)
    with numpyro.plate("worker", n_workers, dim=-3), classes, subtypes:
        subtype_confusion = numpyro.sample("subtype_confusion", dist.Dirichlet(rows))
    params = Params(prevalence, weight, shared, confusion, subtype_confusion)
    sample_labels(label_log_joint, simulate_labels, params, labels, n_items=n_items)


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class, subtypes summed out."""
    return logsumexp(subtype_log_joint(params, labels, n_items=n_items), axis=-1)


@validate_arguments
def subtype_log_joint(
    params: Params, labels: Labels, *, n_items: Count
) -> Float[Array, "item cls subtype"]:
    """Log density of each item's labels together with each true class and subtype.

    ``log p_j + log rho[j, m] + sum over the item's labels of log pi[k, j, m, l]``: a pair of a
    class and a subtype plays the part of a class of Dawid and Skene.
    """
    n_workers, n_classes, n_subtypes, _ = params.subtype_confusion.shape
    pairs = params.subtype_confusion.reshape(n_workers, n_classes * n_subtypes, n_classes)
    prevalence = pair_prevalence(params).ravel()
    joint = log_joint_of_labels(prevalence, pairs, labels, n_items=n_items)
    return joint.reshape(n_items, n_classes, n_subtypes)


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
        prior: pseudo-counts of the priors, and the strengths.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    key_weight, key_tables, key_rows, key_labels = jax.random.split(rng_key, 4)
    weight = jnp.exp(log_gamma(key_weight, jnp.full((n_classes, N_SUBTYPES), prior.share)))
    prevalence, shared, confusion = dirichlet_tables(
        key_tables,
        [
            jnp.full(n_classes, prior.prevalence),
            jnp.repeat(shared_concentration(prior, n_classes)[:, None], N_SUBTYPES, axis=1),
            jnp.broadcast_to(
                confusion_concentration(prior, n_classes), (n_workers, n_classes, n_classes)
            ),
        ],
    )
    rows = row_concentrations(confusion, shared, prior)
    (subtype_confusion,) = dirichlet_tables(key_rows, [rows])
    params = Params(prevalence, weight, shared, confusion, subtype_confusion)
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
    """Draw true classes, subtypes and labels given the parameters; known classes stay."""
    key_pair, key_label = jax.random.split(rng_key)
    prevalence = pair_prevalence(params)
    pair = draw_classes(
        key_pair, prevalence.ravel(), n_items=n_items, gold=gold, n_classes=len(prevalence)
    )
    truth, subtype = jnp.divmod(pair, params.weight.shape[1])
    log_rows = jnp.log(params.subtype_confusion)[worker, truth[item], subtype[item]]
    label = jax.random.categorical(key_label, log_rows)
    return Simulation(params=params, truth=truth, labels=Labels(item, worker, label))


@validate_arguments
def confusion_concentration(
    prior: Prior, n_classes: Annotated[int, Whole(2)]
) -> Float[Array, "*worker cls cls"]:
    """Dirichlet concentrations of a worker's own rows, indexed [true, observed]."""
    return row_concentration(rows_of_workers(prior.n_pseudo_labels), prior.accuracy, n_classes)


@validate_arguments
def shared_concentration(
    prior: Prior, n_classes: Annotated[int, Whole(2)]
) -> Float[Array, "cls cls"]:
    """Dirichlet concentrations of the row of each subtype of a class, indexed [true, observed]."""
    return row_concentration(prior.shared_pseudo_labels, prior.accuracy, n_classes)


@validate_arguments
def row_concentrations(
    confusion: Float[Array, "worker cls cls"],
    shared: Float[Array, "cls subtype cls"],
    prior: Prior,
) -> Float[Array, "worker cls subtype cls"]:
    """Dirichlet concentrations of the workers' rows on each subtype (s c + t e)."""
    return prior.own_strength * confusion[:, :, None] + prior.shared_strength * shared


@validate_arguments
def pair_prevalence(params: Params) -> Float[Array, "cls subtype"]:
    """Probability of each pair of a class and one of its subtypes (p rho)."""
    share = params.weight / params.weight.sum(axis=-1, keepdims=True)
    return params.prevalence[:, None] * share


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right in each draw, averaged over the subtypes.

    ``sum over j and m of p_j rho[j, m] pi[k, j, m, j]``.
    """
    share = params.weight / params.weight.sum(axis=-1, keepdims=True)
    return np.einsum("...k,...km,...wkmk->...w", params.prevalence, share, params.subtype_confusion)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _shared_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(shared_concentration(prior, n_classes)[:, None])


def _confusion_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(confusion_concentration(prior, n_classes))


FACTS = Facts(
    subject="labels",
    summary="raters who err together, on tasks of the same subtype",
    has_conditionals=True,
    accuracy=worker_accuracy,
)
