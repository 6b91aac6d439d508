"""The access path model: naive Bayes whose features are read by noisy workers.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 3. An item has a class ``Y ~ Categorical(theta_y)``,
and its feature i has a value ``Z_i ~ Categorical(theta_yi)`` that nobody sees. Asked about it,
worker j answers ``X_ij ~ Categorical(theta_zij)``: a reading is one ``Z_i`` with all the workers'
labels of it. The priors are ``theta_y ~ Dirichlet(alpha)``, ``theta_yi ~ Dirichlet(beta_yi)`` and
``theta_zij ~ Dirichlet(gamma_zij)``. Workers come in groups, and a group has one confusion matrix
per feature: a single group shares it among all workers, a group for each worker gives everyone
their own. With `Prior.pooling` the first group has the shared matrix, and those of the others are
partially pooled toward it, ``theta_zij ~ Dirichlet(pooling theta_zi1)`` for j > 1: the extension to
workers' own parameters that the paper names.

Given the class, a reading's value is summed out,

    P(labels of the reading | y) = sum over z of theta_yi[z] prod over its labels of theta_zij[x].

The priors are conjugate: given classes and values, each row is again a Dirichlet, with the counts
of items, values or labels added to its concentrations. Given the classes, the values of all
readings are independent, with the probabilities of `value_given_label`.

The likelihood is the same under every renaming of a feature's values ``z``, in ``theta_yi`` and
``theta_zij`` alike. The prior breaks that symmetry: it expects a worker to be right more often than
wrong (`Prior`). Where it does not decide, only what is the same under renaming, such as
`label_log_joint`, may be averaged over draws.

Departure: the paper's ``gamma`` is uniform, which breaks no symmetry.

Features may differ in their number of values. Tables hold zeros beyond a feature's last value and
are stated by one site per number of values, as in `naive_bayes`.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.nn import softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Positive, Whole, validate_arguments
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
    "confusion_concentration",
    "label_log_joint",
    "label_posterior",
    "model",
    "simulate",
    "simulate_labels",
    "sites",
    "value_given_label",
    "value_log_joint",
    "value_posterior",
]


class Observations(NamedTuple):
    """What is known: classes of items, and workers' labels of readings of their features.

    In `model`, a `target` or `label` of None stands for what is to be predicted.
    """

    target: Int[Array, " item"] | Any
    """Class of each item, 0..n_classes-1, or -1 where it is not known."""
    item: Int[Array, " reading"]
    """Index of the reading's item, 0..n_items-1."""
    feature: Int[Array, " reading"]
    """Index of the reading's feature; each feature of an item has at most one reading."""
    reading: Int[Array, " label"]
    """Index of the reading that the label is about."""
    group: Int[Array, " label"]
    """Group of the worker who gave it, 0..n_groups-1."""
    label: Int[Array, " label"] | Any
    """Value that the worker chose, 0..n_values[feature]-1."""


class Params(NamedTuple):
    """Parameters, as probabilities; the field names are the names of the model's sites."""

    prevalence: Float[Array, " cls"]
    """Probability of each class (theta_y)."""
    conditional: Float[Array, "feature cls value"]
    """Probability of each value given the class (theta_yi), zero beyond the feature's last."""
    confusion: Float[Array, "feature group value value"]
    """Probability of each answer, indexed [feature, group, true, observed] (theta_zij)."""


class Prior(NamedTuple):
    """Dirichlet priors: uniform for classes and values, in favour of right answers for workers.

    Four pseudo-labels on the diagonal and one beside it keep the names of the values on data where
    a uniform prior leaves them open; both invert the answers of workers who are mostly wrong.
    """

    prevalence: Positive = 1.0
    """Pseudo-items of each class (alpha)."""
    conditional: Positive = 1.0
    """Pseudo-items of each value in a row (beta)."""
    right: Positive = 4.0
    """Pseudo-labels of the right value in each row of a confusion matrix (gamma, z = x)."""
    wrong: Positive = 1.0
    """Pseudo-labels of each wrong value (gamma, z != x)."""
    pooling: Positive | None = None
    """Pseudo-labels with which the rows of each group after the first are drawn toward those of the
    first, whose prior alone is gamma then; None gives all groups independent rows."""


class Simulation(NamedTuple):
    """A table and its crowd drawn from the model."""

    params: Params
    """The parameters behind it."""
    truth: Int[Array, " item"]
    """Class of each item."""
    value: Int[Array, " reading"]
    """Value of each reading."""
    observations: Observations
    """The labels, with every class known; replace `target` to hide some."""


@validate_arguments
def model(
    observations: Observations,
    *,
    n_items: Count,
    n_groups: Count,
    n_classes: Annotated[int, Whole(2)],
    n_values: tuple[Count, ...],
    prior: Prior = Prior(),
) -> None:
    """State the joint density of the parameters and all that is known, values summed out.

    Plates: ``prevalence``; for each number of values v, ``conditional_v`` in the plates
    ``feature_v`` and ``cls``, and ``confusion_v`` in the plates ``feature_v``, ``group`` and
    ``value_v``, the true value (with pooling, the first group's in ``shared_v`` and the others' in
    ``confusion_v``); all of them together in ``conditional`` and ``confusion``; the
    observed classes in ``target`` and labels in ``labels``, values and unknown classes summed out,
    one term per item, in the plate ``item``.

    Args:
        observations: classes, readings and labels. With a `target` or `label` of None, these are
            drawn in prediction.
        n_items: number of items, including those without a reading.
        n_groups: number of groups of workers; 1 shares the confusion matrices of a feature.
        n_classes: number of classes, at least 2.
        n_values: number of values of each feature, at least 1.
        prior: pseudo-counts of the Dirichlet priors.
    """
    prevalence = numpyro.sample("prevalence", _prevalence_prior(prior, n_classes))
    params = Params(
        prevalence,
        _sample_conditional(prior, n_classes=n_classes, n_values=n_values),
        _sample_confusion(prior, n_groups=n_groups, n_values=n_values),
    )
    _feature_tables.sample_observations(
        label_log_joint,
        simulate_labels,
        params,
        observations,
        item=observations.item[observations.reading],
        last=jnp.array(n_values)[observations.feature[observations.reading]] - 1,
        n_items=n_items,
    )


@validate_arguments
def label_log_joint(
    params: Params, observations: Observations, *, n_items: Count
) -> Float[Array, "item cls"]:
    """Log density of all that is known of each item together with each class.

    ``log theta_y + sum over the item's readings of log P(labels of the reading | y)``; minus
    infinity for the classes that the item is known not to have. Its logsumexp over classes is the
    item's log-likelihood.
    """
    log_reading = logsumexp(value_log_joint(params, observations), axis=-1)
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
def value_log_joint(
    params: Params, observations: Observations
) -> Float[Array, "reading cls value"]:
    """Log density of each reading's labels together with each value, given each class.

    ``log theta_yi[z] + sum over the reading's labels of log theta_zij[x]``; minus infinity beyond
    the feature's last value.
    """
    log_conditional = _feature_tables.log_probability(params.conditional)
    log_confusion = _feature_tables.log_probability(params.confusion)
    feature = observations.feature[observations.reading]
    log_answer = log_confusion[feature, observations.group, :, observations.label]
    log_answers = jax.ops.segment_sum(
        log_answer, observations.reading, num_segments=len(observations.item)
    )
    return log_conditional[observations.feature] + log_answers[:, None, :]


@validate_arguments
def value_given_label(
    params: Params, observations: Observations, label: Int[Array, " item"]
) -> Float[Array, "reading value"]:
    """Probability of each reading's value given the parameters and the class of every item."""
    log_joint = value_log_joint(params, observations)
    own_class = label[observations.item]
    return softmax(log_joint[jnp.arange(len(own_class)), own_class], axis=-1)


@validate_arguments
def value_posterior(
    params: Params, observations: Observations, *, n_items: Count
) -> Float[Array, "reading value"]:
    """Probability of each reading's value given the parameters and all that is known.

    Given the class, a value depends on its own labels alone, so this averages the posteriors given
    each class over the posterior of the class.
    """
    label = label_posterior(params, observations, n_items=n_items)[observations.item, :, None]
    given_label = softmax(value_log_joint(params, observations), axis=-1)
    # a class that cannot have given these labels has no posterior of the value
    return jnp.where(label > 0, label * given_label, 0.0).sum(axis=1)


@validate_arguments
def simulate(
    rng_key: PRNGKeyArray,
    item: Int[Array, " reading"],
    feature: Int[Array, " reading"],
    reading: Int[Array, " label"],
    group: Int[Array, " label"],
    *,
    n_items: Count,
    n_groups: Count,
    n_classes: Annotated[int, Whole(2)],
    n_values: tuple[Count, ...],
    prior: Prior = Prior(),
) -> Simulation:
    """Draw parameters from the prior, classes, values and labels.

    Args:
        rng_key: the source of randomness.
        item: which item each reading is about.
        feature: which of its features is read, paired with `item`.
        reading: which reading each label is about.
        group: group of the worker who gives it, paired with `reading`.
        n_items: number of items.
        n_groups: number of groups of workers.
        n_classes: number of classes, at least 2.
        n_values: number of values of each feature, at least 1.
        prior: pseudo-counts of the Dirichlet priors.
    """
    key_params, key_labels = jax.random.split(rng_key)
    key_own = jax.random.fold_in(key_params, 1)
    rows = confusion_concentration(prior, n_values=n_values)
    params = Params(
        *dirichlet_tables(
            key_params,
            [
                jnp.full(n_classes, prior.prevalence),
                conditional_concentration(prior, n_classes=n_classes, n_values=n_values),
                jnp.repeat(rows[:, None], n_groups if prior.pooling is None else 1, axis=1),
            ],
        )
    )
    if prior.pooling is not None and n_groups > 1:
        own = jnp.repeat(prior.pooling * params.confusion, n_groups - 1, axis=1)
        (own,) = dirichlet_tables(key_own, [own])
        params = params._replace(confusion=jnp.concatenate([params.confusion, own], axis=1))
    return simulate_labels(key_labels, params, item, feature, reading, group, n_items=n_items)


@validate_arguments
def simulate_labels(
    rng_key: PRNGKeyArray,
    params: Params,
    item: Int[Array, " reading"],
    feature: Int[Array, " reading"],
    reading: Int[Array, " label"],
    group: Int[Array, " label"],
    *,
    n_items: Count,
    target: Int[Array, " item"] | None = None,
) -> Simulation:
    """Draw classes, values and labels given the parameters (see `simulate`).

    Classes that `target` knows are kept; it is -1 where a class is to be drawn.
    """
    key_value, key_label = jax.random.split(rng_key)
    truth, value = _feature_tables.draw_values(
        key_value,
        params.prevalence,
        params.conditional,
        item,
        feature,
        n_items=n_items,
        target=target,
    )
    log_answer = jnp.log(params.confusion)[feature[reading], group, value[reading]]
    label = jax.random.categorical(key_label, log_answer)
    return Simulation(
        params=params,
        truth=truth,
        value=value,
        observations=Observations(truth, item, feature, reading, group, label),
    )


@validate_arguments
def conditional_concentration(
    prior: Prior, *, n_classes: Annotated[int, Whole(2)], n_values: tuple[Count, ...]
) -> Float[Array, "feature cls value"]:
    """Dirichlet concentrations of the values given the class; zero where there is no value."""
    return _feature_tables.uniform_concentration(
        prior.conditional, n_classes=n_classes, n_values=n_values
    )


@validate_arguments
def confusion_concentration(
    prior: Prior, *, n_values: tuple[Count, ...]
) -> Float[Array, "feature value value"]:
    """Dirichlet concentrations of every group's rows, indexed [feature, true, observed].

    They are zero beyond a feature's last value.
    """
    pseudo_labels = jnp.where(jnp.eye(max(n_values), dtype=bool), prior.right, prior.wrong)
    has_value = _feature_tables.value_mask(n_values)
    return jnp.where(has_value[:, :, None] & has_value[:, None, :], pseudo_labels, 0.0)


@validate_arguments
def sites(
    params: Params, *, n_values: tuple[Count, ...], prior: Prior = Prior()
) -> dict[str, Float[Array, "..."]]:
    """Values of the model's random sites at these parameters, by name."""
    conditional = _feature_tables.conditional_sites(params.conditional, n_values=n_values)
    n_shared = 0 if prior.pooling is None else 1
    parts = {"shared": params.confusion[:, :n_shared], "confusion": params.confusion[:, n_shared:]}
    confusion = {
        f"{name}_{width}": _feature_tables.block(groups, members, width, n_axes=2)
        for name, groups in parts.items()
        if groups.shape[1] > 0
        for width, members in _feature_tables.by_width(n_values).items()
    }
    return {"prevalence": params.prevalence, **conditional, **confusion}


def _sample_conditional(
    prior: Prior, *, n_classes: int, n_values: tuple[int, ...]
) -> Float[Array, "feature cls value"]:
    concentration = conditional_concentration(prior, n_classes=n_classes, n_values=n_values)
    return _feature_tables.sample_conditional(concentration, n_values=n_values)


def _sample_confusion(
    prior: Prior, *, n_groups: int, n_values: tuple[int, ...]
) -> Float[Array, "feature group value value"]:
    """State the sites of the confusion matrices and stack them."""
    concentration = confusion_concentration(prior, n_values=n_values)
    n_own = n_groups if prior.pooling is None else n_groups - 1
    blocks = {}
    for width, members in _feature_tables.by_width(n_values).items():
        rows = dist.Dirichlet(
            _feature_tables.block(concentration, members, width, n_axes=2)[:, None]
        )
        features = numpyro.plate(f"feature_{width}", len(members), dim=-3)
        parts = []
        with features, numpyro.plate(f"value_{width}", width, dim=-1):
            if prior.pooling is not None:
                parts.append(numpyro.sample(f"shared_{width}", rows))
                rows = dist.Dirichlet(prior.pooling * parts[0])
            if n_own > 0:
                with numpyro.plate("group", n_own, dim=-2):
                    parts.append(numpyro.sample(f"confusion_{width}", rows))
        blocks[width] = jnp.concatenate(parts, axis=1)
    return numpyro.deterministic("confusion", _feature_tables.table(blocks, n_values, n_axes=2))


def _prevalence_prior(prior: Prior, n_classes: int) -> dist.Dirichlet:
    return dist.Dirichlet(jnp.full(n_classes, prior.prevalence))


FACTS = Facts(
    subject="features",
    summary="naive Bayes whose features are read by noisy workers",
    has_conditionals=True,
    accuracy=None,
)
