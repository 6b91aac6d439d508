"""Dawid and Skene's model with workers of a few types.

An item i has a true class ``z_i ~ Categorical(p)``; worker k answers l to an item of class j with
probability ``pi[k, j, l]``. A worker is of type ``g_k ~ Categorical(rho)``, and the rows of the
workers of a type scatter around the type's,

    pi[k, j] ~ Dirichlet(s T[g_k, j]),

where the number ``s`` of pseudo-labels is fixed. A type is learned from all its workers, so that
spammers, careless workers and experts are told apart after few labels. The estimator of the same
model is `bayescrowd.WorkerTypes`; the community models of Venanzi et al. (2014), "Community-based
Bayesian aggregation models for crowdsourcing", WWW, have normal logits in place of Dirichlet rows.

The types are summed out: the density of a worker's rows is a mixture, `TypedRows`. Types are
exchangeable, and chains may number them differently; the workers' rows and the labels do not depend
on their numbers. A type's row is expected to be right more often than wrong, which breaks the
symmetry of the true classes.
"""

from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from bayescrowd.checks.parameters import Count, OpenFraction, Positive, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables, log_gamma
from bayescrowd.models._crowd_labels import (
    Labels,
    draw_labels,
    log_joint_of_labels,
    mean_accuracy,
    row_concentration,
    sample_labels,
)
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "Labels",
    "Params",
    "Prior",
    "Simulation",
    "TypedRows",
    "confusion_concentration",
    "label_log_joint",
    "label_posterior",
    "model",
    "simulate",
    "simulate_labels",
    "type_log_joint",
    "worker_accuracy",
]


N_TYPES = 3
"""Number of types, the default of `bayescrowd.WorkerTypes`; shapes cannot depend on a prior."""


class Params(NamedTuple):
    """Parameters; the field names are the names of the model's sites."""

    prevalence: Float[Array, " cls"]
    """Probability of each true class (p)."""
    weight: Float[Array, " type"]
    """Weight of each type; its share of their sum is the type's probability (rho)."""
    types: Float[Array, "type cls cls"]
    """The types' confusion matrices, indexed [type, true, observed] (T)."""
    confusion: Float[Array, "worker cls cls"]
    """Probability of each answer, indexed [worker, true, observed] (pi)."""


class Prior(NamedTuple):
    """Dirichlet priors and the types' strength."""

    prevalence: PerClass = 3.0
    """Pseudo-items of each class."""
    share: Positive = 2.0
    """Pseudo-workers of each type: weights are gamma, so that shares are Dirichlet."""
    n_pseudo_labels: Positive = 4.0
    """Pseudo-labels in each row of a type's matrix."""
    accuracy: OpenFraction = 0.6
    """Share of these pseudo-labels on the diagonal; the wrong classes share the rest evenly."""
    strength: Positive = 8.0
    """Pseudo-labels that a type is worth in each row of a worker (s)."""


class TypedRows(dist.Distribution):
    """A worker's rows, one per true class, the worker's type summed out.

    The rows are a batch, so that they keep one axis per plate. They depend on each other through
    the type: the density of each row is its density given the rows before it, and the densities of
    a worker's rows add up to that of the mixture.

    Args:
        share: probability of each type.
        concentration: Dirichlet concentrations of the rows of a worker of each type.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "share": constraints.simplex,
        "concentration": constraints.independent(constraints.positive, 3),
    }
    support = constraints.simplex

    def __init__(
        self,
        share: Float[Array, " type"],
        concentration: Float[Array, "type cls observed"],
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.share, self.concentration = share, concentration
        _, *rows, observed = concentration.shape
        super().__init__(tuple(rows), (observed,), validate_args=validate_args)

    @property
    def mean(self) -> Float[Array, "cls observed"]:
        """The types' mean rows, averaged over the types."""
        total = self.concentration.sum(axis=-1, keepdims=True)
        return jnp.tensordot(self.share, self.concentration / total, axes=1)

    def sample(
        self, key: PRNGKeyArray | None, sample_shape: tuple[int, ...] = ()
    ) -> Float[Array, "*draw cls observed"]:
        """Draw a type, then all rows of a worker of this type."""
        assert key is not None
        key_type, key_rows = jax.random.split(key)
        member = jax.random.categorical(key_type, jnp.log(self.share), shape=sample_shape)
        return dist.Dirichlet(self.concentration[member]).sample(key_rows)

    @validate_sample  # type: ignore[untyped-decorator]
    def log_prob(self, value: Any, intermediates: Any = None) -> Float[Array, "*draw cls"]:
        """Log density of each row given the rows before it."""
        of_type = dist.Dirichlet(self.concentration).log_prob(value[..., None, :, :])
        so_far = jnp.cumsum(of_type, axis=-1) + jnp.log(self.share)[:, None]
        return jnp.diff(logsumexp(so_far, axis=-2), axis=-1, prepend=0.0)


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
    """State the joint density of the parameters and the labels, types and true classes summed out.

    Plates: ``prevalence``; ``weight`` in the plate ``type``; ``types`` in the plates ``type`` and
    ``cls``, the true class; ``confusion`` in the plates ``worker`` and ``cls``; the observed
    ``labels``, one term per item, in the plate ``item``.

    Args:
        labels: the observed labels; with a `label` of None they are drawn in prediction.
        n_items: number of items, including those without a label.
        n_workers: number of workers, including those without a label.
        n_classes: number of classes, at least 2, including those that nobody chose.
        prior: pseudo-counts of the priors, and the strength of the types.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    with numpyro.plate("type", N_TYPES, dim=-1):
        weight = numpyro.sample("weight", _weight_prior(prior))
    share = weight / weight.sum()
    with numpyro.plate("type", N_TYPES, dim=-2), numpyro.plate("cls", n_classes, dim=-1):
        types = numpyro.sample("types", _types_prior(prior, n_classes))
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("cls", n_classes, dim=-1):
        of_types = TypedRows(share, confusion_concentration(types, prior))
        confusion = numpyro.sample("confusion", of_types)
    params = Params(prevalence, weight, types, confusion)
    sample_labels(label_log_joint, simulate_labels, params, labels, n_items=n_items)


@validate_arguments
def label_log_joint(params: Params, labels: Labels, *, n_items: Count) -> Float[Array, "item cls"]:
    """Log density of each item's labels together with each true class.

    ``log p_j + sum over the item's labels of log pi[k, j, l]``: given the workers' rows their types
    say nothing more.
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
        prior: pseudo-counts of the priors, and the strength of the types.
    """
    check_prior(prior, cls=n_classes, worker=n_workers)
    key_weight, key_types, key_member, key_confusion, key_labels = jax.random.split(rng_key, 5)
    weight = jnp.exp(log_gamma(key_weight, jnp.full(N_TYPES, prior.share)))
    rows = _type_concentration(prior, n_classes)
    prevalence, types = dirichlet_tables(
        key_types,
        [
            jnp.full(n_classes, prior.prevalence),
            jnp.broadcast_to(rows, (N_TYPES, n_classes, n_classes)),
        ],
    )
    member = dist.Categorical(weight / weight.sum()).sample(key_member, (n_workers,))
    (confusion,) = dirichlet_tables(key_confusion, [confusion_concentration(types[member], prior)])
    params = Params(prevalence, weight, types, confusion)
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
def type_log_joint(
    share: Float[Array, " type"],
    types: Float[Array, "type cls cls"],
    counts: Float[Array, "worker cls cls"],
    prior: Prior = Prior(),
) -> Float[Array, "worker type"]:
    """Log density of each worker's counts together with each type, rows integrated out.

    A worker of type g whose labels on items of known class have the counts n[k, j, l] has, up to
    the order of the labels, the Dirichlet-multinomial density with parameters ``s T[g, j]`` in
    each row.

    Args:
        share: probability of each type.
        types: the types' confusion matrices.
        counts: labels, indexed [worker, true, observed].
        prior: the prior, of which only the strength of the types is used.
    """
    concentration = confusion_concentration(types, prior)[:, None]
    rows = jax.scipy.special.gammaln(counts + concentration).sum(axis=-1)
    rows -= jax.scipy.special.gammaln(concentration).sum(axis=-1)
    rows += jax.scipy.special.gammaln(prior.strength)
    rows -= jax.scipy.special.gammaln(counts.sum(axis=-1) + prior.strength)
    return jnp.log(share) + rows.sum(axis=-1).T


@validate_arguments
def confusion_concentration(
    types: Float[Array, "*batch cls cls"], prior: Prior
) -> Float[Array, "*batch cls cls"]:
    """Dirichlet concentrations of the rows of workers of these types (s T)."""
    return prior.strength * types


@validate_arguments
def worker_accuracy(params: Params) -> Float[np.ndarray, "*draw worker"]:
    """Probability that a worker's label is right in each draw; see `dawid_skene`."""
    return mean_accuracy(params.prevalence, params.confusion)


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


def _weight_prior(prior: Prior) -> dist.Gamma:
    return dist.Gamma(prior.share, 1.0)


def _type_concentration(prior: Prior, n_classes: int) -> Float[Array, "cls cls"]:
    return row_concentration(prior.n_pseudo_labels, prior.accuracy, n_classes)


def _types_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(_type_concentration(prior, n_classes))


FACTS = Facts(
    subject="labels",
    summary="confusion matrices drawn from a few types of workers",
    has_conditionals=False,
    accuracy=worker_accuracy,
)
