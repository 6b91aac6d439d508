"""Naive Bayes: a class, and categorical features that are independent given the class.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 2. An item has a class ``Y ~ Categorical(theta_y)``,
and its feature i has a value ``X_i ~ Categorical(theta_yi)``, read without noise. The priors are
``theta_y ~ Dirichlet(alpha)`` and ``theta_yi ~ Dirichlet(beta_yi)``. The class of an item may be
known or not, and so may each of its features; what is not known is summed out.

The priors are conjugate: given the classes, each row is again a Dirichlet, with the counts of items
or values added to its concentrations (the paper's example goes from Dir(3, 2, 5) to Dir(3, 3, 5)).

Features may differ in their number of values. Tables indexed [feature, cls, value] hold zeros
beyond a feature's last value. The density is stated by one site per number of values,
``conditional_2`` for all features of two values and so on, and ``conditional`` is the table of
them: the cost of tracing grows with the number of different widths, not of features.

Where no class is known, the density is the same under every renaming of the classes: a mixture's
components have no names, and nothing here breaks that symmetry.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.nn import softmax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Whole, validate_arguments
from bayescrowd.checks.priors import PerClass, PerFeatureRow, check_prior
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models import _feature_tables
from bayescrowd.models._facts import Facts

__all__ = [
    "FACTS",
    "Observations",
    "Params",
    "Prior",
    "Simulation",
    "conditional_concentration",
    "label_log_joint",
    "label_posterior",
    "model",
    "simulate",
    "simulate_labels",
    "sites",
]


class Observations(NamedTuple):
    """What is known: classes of items and, one entry per reading, values of their features.

    In `model`, a `target` or `value` of None stands for what is to be predicted.
    """

    target: Int[Array, " item"] | Any
    """Class of each item, 0..n_classes-1, or -1 where it is not known."""
    item: Int[Array, " reading"]
    """Index of the item, 0..n_items-1."""
    feature: Int[Array, " reading"]
    """Index of the feature; each feature of an item has at most one reading."""
    value: Int[Array, " reading"] | Any
    """Value of the feature, 0..n_values[feature]-1."""


class Params(NamedTuple):
    """Parameters, as probabilities; the field names are the names of the model's sites."""

    prevalence: Float[Array, " cls"]
    """Probability of each class (theta_y)."""
    conditional: Float[Array, "feature cls value"]
    """Probability of each value given the class (theta_yi), zero beyond the feature's last."""


class Prior(NamedTuple):
    """Uniform Dirichlet priors, as in the paper.

    The paper does not state their strength; with 3 pseudo-items and more, its data are classified
    worse than with 1.
    """

    prevalence: PerClass = 1.0
    """Pseudo-items of each class (alpha)."""
    conditional: PerFeatureRow = 1.0
    """Pseudo-items of each value in a row (beta)."""


class Simulation(NamedTuple):
    """A table drawn from the model."""

    params: Params
    """The parameters behind it."""
    truth: Int[Array, " item"]
    """Class of each item."""
    observations: Observations
    """The readings, with every class known; replace `target` to hide some."""


@validate_arguments
def model(
    observations: Observations,
    *,
    n_items: Count,
    n_classes: Annotated[int, Whole(2)],
    n_values: tuple[Count, ...],
    prior: Prior = Prior(),
) -> None:
    """State the joint density of the parameters and all that is known.

    Plates: ``prevalence``; for each number of values v, ``conditional_v`` in the plates
    ``feature_v`` and ``cls``, all of them together in ``conditional``; the observed classes in
    ``target`` and values in ``labels``, unknown classes summed out, one term per item, in the plate
    ``item``.

    Args:
        observations: classes and readings. With a `target` or `value` of None, these are drawn in
            prediction.
        n_items: number of items, including those without a reading.
        n_classes: number of classes, at least 2.
        n_values: number of values of each feature, at least 1.
        prior: pseudo-counts of the Dirichlet priors.
    """
    check_prior(prior, cls=n_classes, feature=len(n_values), value=max(n_values))
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    concentration = conditional_concentration(prior, n_classes=n_classes, n_values=n_values)
    conditional = _feature_tables.sample_conditional(concentration, n_values=n_values)
    _feature_tables.sample_observations(
        label_log_joint,
        simulate_labels,
        Params(prevalence, conditional),
        observations,
        item=observations.item,
        last=jnp.array(n_values)[observations.feature] - 1,
        n_items=n_items,
    )


@validate_arguments
def label_log_joint(
    params: Params, observations: Observations, *, n_items: Count
) -> Float[Array, "item cls"]:
    """Log density of all that is known of each item together with each class.

    ``log theta_y + sum over the item's readings of log theta_yi[x]``; minus infinity for the
    classes that the item is known not to have. Its logsumexp over classes is the item's
    log-likelihood.
    """
    log_conditional = _feature_tables.log_probability(params.conditional)
    log_reading = log_conditional[observations.feature, :, observations.value]
    return _feature_tables.log_joint_of_readings(
        params.prevalence, log_reading, observations.item, observations.target, n_items=n_items
    )


@validate_arguments
def label_posterior(
    params: Params, observations: Observations, *, n_items: Count
) -> Float[Array, "item cls"]:
    """Probability of each item's class given the parameters; 0 and 1 where it is known."""
    return softmax(label_log_joint(params, observations, n_items=n_items), axis=-1)


@validate_arguments
def simulate(
    rng_key: PRNGKeyArray,
    item: Int[Array, " reading"],
    feature: Int[Array, " reading"],
    *,
    n_items: Count,
    n_classes: Annotated[int, Whole(2)],
    n_values: tuple[Count, ...],
    prior: Prior = Prior(),
) -> Simulation:
    """Draw parameters from the prior, classes and values.

    Args:
        rng_key: the source of randomness.
        item: which item each reading is about.
        feature: which of its features is read, paired with `item`.
        n_items: number of items.
        n_classes: number of classes, at least 2.
        n_values: number of values of each feature, at least 1.
        prior: pseudo-counts of the Dirichlet priors.
    """
    check_prior(prior, cls=n_classes, feature=len(n_values), value=max(n_values))
    key_params, key_labels = jax.random.split(rng_key)
    prevalence, conditional = dirichlet_tables(
        key_params,
        [
            jnp.full(n_classes, prior.prevalence),
            conditional_concentration(prior, n_classes=n_classes, n_values=n_values),
        ],
    )
    return simulate_labels(
        key_labels, Params(prevalence, conditional), item, feature, n_items=n_items
    )


@validate_arguments
def simulate_labels(
    rng_key: PRNGKeyArray,
    params: Params,
    item: Int[Array, " reading"],
    feature: Int[Array, " reading"],
    *,
    n_items: Count,
    target: Int[Array, " item"] | None = None,
) -> Simulation:
    """Draw classes and values given the parameters (see `simulate`).

    Classes that `target` knows are kept; it is -1 where a class is to be drawn.
    """
    truth, value = _feature_tables.draw_values(
        rng_key,
        params.prevalence,
        params.conditional,
        item,
        feature,
        n_items=n_items,
        target=target,
    )
    observations = Observations(target=truth, item=item, feature=feature, value=value)
    return Simulation(params=params, truth=truth, observations=observations)


@validate_arguments
def conditional_concentration(
    prior: Prior, *, n_classes: Annotated[int, Whole(2)], n_values: tuple[Count, ...]
) -> Float[Array, "feature cls value"]:
    """Dirichlet concentrations of the values given the class; zero where there is no value."""
    return _feature_tables.uniform_concentration(
        prior.conditional, n_classes=n_classes, n_values=n_values
    )


@validate_arguments
def sites(params: Params, *, n_values: tuple[Count, ...]) -> dict[str, Float[Array, "..."]]:
    """Values of the model's random sites at these parameters, by name."""
    blocks = _feature_tables.conditional_sites(params.conditional, n_values=n_values)
    return {"prevalence": params.prevalence, **blocks}


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


FACTS = Facts(
    subject="features",
    summary="features that are independent given the class",
    has_conditionals=True,
    accuracy=None,
)
