"""Numeric judgements: objects differ, and so do the judgements of one object.

The normal model behind S. Sabato and A. Kalai (2013), "Feature multi-selection among subjective
features", ICML, section 2. An item i, their object, has values of its attributes, on which its
target depends; a judgement of attribute a is the item's value with noise of its own,

    value_i ~ Normal(mean, Sigma)        target_i ~ Normal(mean_y + w'(value_i - mean), s)
    x_i[a](j) ~ Normal(value_i[a], v[a]).

The target is known without noise, and comes last in vectors of attributes and target. Values are
summed out: the mean judgement of n is normal around the item's value with variance ``v[a]/n``, and
the squared deviations from it are a gamma variable.

The priors are conjugate given the values. The precision ``Sigma^-1`` is a Wishart whose scale has a
prior of its own, which gives each standard deviation between items a half-t prior with two degrees
of freedom and each correlation a uniform one (A. Huang and M. P. Wand (2013), "Simple marginally
noninformative prior distributions for covariance matrices", Bayesian Analysis 8(2), nu = 2). The
coefficients w are normal with a common variance that is learned, whatever the residual variance s:
a single Wishart for values and target together would tie them, and would understate how well
attributes explain a target that they explain well. Variances are inverse gamma, means normal. All
are meant for attributes and targets in units of their own standard deviation.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Positive, validate_arguments
from bayescrowd.models._facts import Facts
from bayescrowd.models._summed_out import SummedOut

__all__ = [
    "DEGREES",
    "FACTS",
    "LabelPosterior",
    "Observations",
    "Params",
    "Prior",
    "Simulation",
    "joint_covariance",
    "label_log_joint",
    "label_posterior",
    "model",
    "simulate",
    "simulate_labels",
]

DEGREES = 2.0
"""Degrees of freedom of the half-t priors (Huang and Wand's nu): correlations are uniform."""


class Observations(NamedTuple):
    """What is known: each item's target and the workers' judgements.

    In `model`, a `target` or `value` of None stands for what is to be predicted.
    """

    target: Float[Array, " item"] | Any
    """Target of each item."""
    item: Int[Array, " judgement"]
    """Index of the item, 0..n_items-1."""
    attribute: Int[Array, " judgement"]
    """Index of the attribute, 0..n_attributes-1; an item may have several judgements of it."""
    value: Float[Array, " judgement"] | Any
    """The judgement."""


class Params(NamedTuple):
    """Parameters; the field names are the names of the model's sites."""

    scale: Float[Array, " attribute"]
    """Scale of the prior on each attribute's variance (Huang and Wand's a)."""
    precision: Float[Array, "attribute attribute"]
    """Inverse of the covariance between items (Sigma^-1)."""
    mean: Float[Array, " joint"]
    """Mean over items, with the target last."""
    internal_variance: Float[Array, " attribute"]
    """Variance of a judgement around the item's value (v)."""
    coefficient_variance: Float[Array, ""]
    """Variance of the coefficients' prior."""
    coefficient: Float[Array, " attribute"]
    """Regression coefficients of the target on the attributes' values (w)."""
    residual_variance: Float[Array, ""]
    """Variance of the target given the values (s)."""


class Prior(NamedTuple):
    """Weak priors for attributes and targets in units of their standard deviation."""

    spread: Positive = 2.5
    """Scale of the half-t priors of the standard deviations between items."""
    mean: Positive = 10.0
    """Standard deviation of the means."""
    n_pseudo: Positive = 1.0
    """Pseudo-observations behind each inverse gamma variance."""
    pseudo_variance: Positive = 0.1
    """Variance of the pseudo-observations; low, since judges may agree and targets be explained."""


class Simulation(NamedTuple):
    """Judgements drawn from the model."""

    params: Params
    """The parameters behind them."""
    truth: Float[Array, "item joint"]
    """Values of the items' attributes, with the target last."""
    observations: Observations
    """What is seen of them."""


class LabelPosterior(NamedTuple):
    """What an item's judgements say about its target."""

    mean: Float[Array, " item"]
    """The best prediction."""
    variance: Float[Array, " item"]
    """Its expected squared error."""


@validate_arguments
def model(
    observations: Observations, *, n_items: Count, n_attributes: Count, prior: Prior = Prior()
) -> None:
    """State the joint density of the parameters, judgements and targets, values summed out.

    Plates: ``scale``, ``internal_variance`` and ``coefficient`` in the plate ``attribute``;
    ``mean`` in the plate ``joint``, the attributes with the target last; ``precision``,
    ``coefficient_variance`` and ``residual_variance``; the observed targets in ``target`` and
    judgements in ``labels``, one term per item, in the plate ``item``.

    Args:
        observations: targets and judgements. With a `target` or `value` of None, these are drawn
            in prediction.
        n_items: number of items, including those without a judgement.
        n_attributes: number of attributes, including those without a judgement.
        prior: scales of the priors.
    """
    with numpyro.plate("joint", n_attributes + 1, dim=-1):
        mean = numpyro.sample("mean", dist.Normal(0.0, prior.mean))
    coefficient_variance = numpyro.sample("coefficient_variance", _variance_prior(prior))
    residual_variance = numpyro.sample("residual_variance", _variance_prior(prior))
    with numpyro.plate("attribute", n_attributes, dim=-1):
        scale = numpyro.sample("scale", _scale_prior(prior))
        internal_variance = numpyro.sample("internal_variance", _variance_prior(prior))
        common = dist.Normal(0.0, jnp.sqrt(coefficient_variance))
        coefficient = numpyro.sample("coefficient", common)
    precision = numpyro.sample("precision", _precision_prior(scale))
    params = Params(
        scale,
        precision,
        mean,
        internal_variance,
        coefficient_variance,
        coefficient,
        residual_variance,
    )
    of_target = dist.Normal(mean[-1], jnp.sqrt(joint_covariance(params)[-1, -1]))
    with numpyro.plate("item", n_items, dim=-1):
        target = numpyro.sample("target", of_target, obs=observations.target)
        of_labels = SummedOut(
            label_log_joint,
            simulate_labels,
            params,
            observations._replace(target=target),
            item=observations.item,
            n_items=n_items,
            last=None,
            log_given=of_target.log_prob(target),
        )
        numpyro.sample("labels", of_labels, obs=observations.value)


@validate_arguments
def label_log_joint(
    params: Params, observations: Observations, *, n_items: Count
) -> Float[Array, " item"]:
    """Log density of each item's judgements together with its target.

    With n judgements of mean m and squared deviations s of an attribute,
    ``log N((m, target); mean, Sigma + Diag(v/n, 0))`` over the attributes with n > 0, plus, for
    each of them, ``-(n-1)/2 log(2 pi v) - log(n)/2 - s/(2v)``.
    """
    seen = _summaries(observations, n_items, len(params.internal_variance))
    within = jnp.where(
        seen.number > 0,
        -0.5 * (seen.number - 1) * jnp.log(2 * math.pi * params.internal_variance)
        - 0.5 * jnp.log(jnp.maximum(seen.number, 1.0))
        - 0.5 * seen.squares / params.internal_variance,
        0.0,
    )
    factor, centred, is_seen = _seen_moments(params, seen, observations.target)
    white = solve_triangular(factor, centred[..., None], lower=True)[..., 0]
    log_scale = jnp.log(jnp.diagonal(factor, axis1=1, axis2=2))
    between = -0.5 * white**2 - log_scale - 0.5 * math.log(2 * math.pi) * is_seen
    return within.sum(axis=1) + between.sum(axis=1)


@validate_arguments
def label_posterior(
    params: Params, observations: Observations, *, n_items: Count
) -> LabelPosterior:
    """Each item's target given its judgements; the targets among the observations are not used."""
    seen = _summaries(observations, n_items, len(params.internal_variance))
    factor, centred, _ = _seen_moments(params, seen, jnp.zeros(n_items))
    own, centred = factor[:, :-1, :-1], centred[:, :-1]
    covariance = joint_covariance(params)
    with_target = jnp.where(seen.number > 0, covariance[-1, :-1], 0.0)
    weights = jax.vmap(lambda f, c: cho_solve((f, True), c))(own, with_target)
    return LabelPosterior(
        mean=params.mean[-1] + (weights * centred).sum(axis=1),
        variance=covariance[-1, -1] - (weights * with_target).sum(axis=1),
    )


@validate_arguments
def simulate(
    rng_key: PRNGKeyArray,
    item: Int[Array, " judgement"],
    attribute: Int[Array, " judgement"],
    *,
    n_items: Count,
    n_attributes: Count,
    prior: Prior = Prior(),
) -> Simulation:
    """Draw parameters from the prior, items' values and targets, and the judgements.

    Args:
        rng_key: the source of randomness.
        item: which item each judgement is about.
        attribute: which of its attributes is judged, paired with `item`.
        n_items: number of items.
        n_attributes: number of attributes.
        prior: scales of the priors.
    """
    keys = jax.random.split(rng_key, 8)
    key_scale, key_precision, key_mean, key_internal, *key_target, key_labels = keys
    scale = _scale_prior(prior).sample(key_scale, (n_attributes,))
    coefficient_variance = _variance_prior(prior).sample(key_target[0])
    common = dist.Normal(0.0, jnp.sqrt(coefficient_variance))
    params = Params(
        scale=scale,
        precision=_precision_prior(scale).sample(key_precision),
        mean=dist.Normal(0.0, prior.mean).sample(key_mean, (n_attributes + 1,)),
        internal_variance=_variance_prior(prior).sample(key_internal, (n_attributes,)),
        coefficient_variance=coefficient_variance,
        coefficient=common.sample(key_target[1], (n_attributes,)),
        residual_variance=_variance_prior(prior).sample(key_target[2]),
    )
    return simulate_labels(key_labels, params, item, attribute, n_items=n_items)


@validate_arguments
def simulate_labels(
    rng_key: PRNGKeyArray,
    params: Params,
    item: Int[Array, " judgement"],
    attribute: Int[Array, " judgement"],
    *,
    n_items: Count,
    target: Float[Array, " item"] | None = None,
) -> Simulation:
    """Draw values, targets and judgements given the parameters (see `simulate`).

    Given a target, the values are drawn from their normal distribution given the target: those of
    an item with another target, moved along the regression on it (Matheron's rule).
    """
    key_truth, key_noise = jax.random.split(rng_key)
    covariance = joint_covariance(params)
    truth = dist.MultivariateNormal(params.mean, covariance).sample(key_truth, (n_items,))
    if target is not None:
        slope = covariance[-1] / covariance[-1, -1]
        truth = truth + (target - truth[:, -1])[:, None] * slope
    spread = jnp.sqrt(params.internal_variance)[attribute]
    value = truth[item, attribute] + spread * jax.random.normal(key_noise, item.shape)
    return Simulation(params, truth, Observations(truth[:, -1], item, attribute, value))


@validate_arguments
def joint_covariance(params: Params) -> Float[Array, "joint joint"]:
    """Covariance between items of the attributes' values, with the target last."""
    values = jnp.linalg.inv(params.precision)
    across = values @ params.coefficient
    own = params.residual_variance + params.coefficient @ across
    return jnp.block([[values, across[:, None]], [across[None], own[None, None]]])


class _Summaries(NamedTuple):
    """Sufficient statistics of the judgements."""

    number: Float[Array, "item attribute"]
    mean: Float[Array, "item attribute"]
    squares: Float[Array, "item attribute"]


def _summaries(observations: Observations, n_items: int, n_attributes: int) -> _Summaries:
    cell = observations.item * n_attributes + observations.attribute
    n_cells = n_items * n_attributes
    count = jax.ops.segment_sum(jnp.ones_like(observations.value), cell, n_cells)
    mean = jax.ops.segment_sum(observations.value, cell, n_cells) / jnp.maximum(count, 1.0)
    # deviations from the mean: squares of large numbers would cancel in float32
    squares = jax.ops.segment_sum((observations.value - mean[cell]) ** 2, cell, n_cells)
    return _Summaries(*(s.reshape(n_items, n_attributes) for s in (count, mean, squares)))


def _seen_moments(
    params: Params, seen: _Summaries, target: Float[Array, " item"]
) -> tuple[
    Float[Array, "item joint joint"], Float[Array, "item joint"], Float[Array, "item joint"]
]:
    """Cholesky factor of each item's covariance, deviations from the mean, and what is seen.

    An attribute that is not judged has variance 1, no covariance and no deviation: it drops out.
    """
    is_seen = jnp.concatenate([seen.number > 0, jnp.ones((len(target), 1), dtype=bool)], axis=1)
    noise = params.internal_variance / jnp.maximum(seen.number, 1.0)
    noise = jnp.concatenate([noise, jnp.zeros((len(target), 1))], axis=1)
    covariance = joint_covariance(params)
    both = is_seen[:, :, None] & is_seen[:, None, :]
    diagonal = jnp.where(is_seen, noise, 1.0)[:, :, None] * jnp.eye(noise.shape[1])
    factor = jnp.linalg.cholesky(jnp.where(both, covariance, 0.0) + diagonal)
    value = jnp.concatenate([seen.mean, target[:, None]], axis=1)
    return factor, jnp.where(is_seen, value - params.mean, 0.0), is_seen.astype(value.dtype)


def _scale_prior(prior: Prior) -> dist.InverseGamma:
    return dist.InverseGamma(0.5, 1 / prior.spread**2)


def _precision_prior(scale: Float[Array, " attribute"]) -> dist.Wishart:
    concentration = DEGREES + len(scale) - 1
    return dist.Wishart(concentration, scale_tril=jnp.diag(jnp.sqrt(scale / (2 * DEGREES))))


def _variance_prior(prior: Prior) -> dist.InverseGamma:
    half = prior.n_pseudo / 2
    return dist.InverseGamma(half, half * prior.pseudo_variance)


FACTS = Facts(
    subject="numbers",
    summary="numeric judgements of objects, each with noise of its own",
    has_conditionals=False,
    accuracy=None,
)
