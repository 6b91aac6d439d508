"""Tables over features that differ in their number of values, and formulas of models of features.

A table is an array whose first axis is the feature and whose last axes are as wide as the widest
feature; it holds zeros beyond a feature's last value. Features of one width form a block without
padding: blocks are what a density can be stated for, tables are what an index can be looked up in.

The formulas are those of B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and
feature selection under budget constraints in crowdsourcing", HCOMP: ``theta_y`` is the prevalence
of the classes, ``theta_yi`` the table ``conditional`` of the values given the class.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayescrowd.models._summed_out import SummedOut, sample_classes

__all__ = [
    "block",
    "by_width",
    "conditional_sites",
    "draw_values",
    "log_joint_of_readings",
    "log_probability",
    "sample_conditional",
    "sample_observations",
    "table",
    "uniform_concentration",
    "value_mask",
]


def by_width(n_values: tuple[int, ...]) -> dict[int, Int[np.ndarray, " member"]]:
    """Indices of the features of each number of values, both ascending."""
    widths = np.array(n_values)
    return {int(width): np.flatnonzero(widths == width) for width in np.unique(widths)}


def value_mask(n_values: tuple[int, ...]) -> Bool[Array, "feature value"]:
    """Whether the feature has the value."""
    return jnp.arange(max(n_values)) < jnp.array(n_values)[:, None]


def block(
    table: Float[Array, "feature ..."],
    members: Int[np.ndarray, " member"],
    width: int,
    *,
    n_axes: int,
) -> Float[Array, "member ..."]:
    """The features of one width, the last `n_axes` axes cut to it."""
    return table[members][(..., *(slice(width),) * n_axes)]


def table(
    blocks: Mapping[int, Float[Array, "..."]], n_values: tuple[int, ...], *, n_axes: int
) -> Float[Array, "feature ..."]:
    """One table of the blocks of every width, their last `n_axes` axes padded with zeros."""
    members = by_width(n_values)
    padded = []
    for width in members:
        filling = [(0, max(n_values) - width)] * n_axes
        unpadded = [(0, 0)] * (blocks[width].ndim - n_axes)
        padded.append(jnp.pad(blocks[width], unpadded + filling))
    order = np.concatenate(list(members.values()))
    return jnp.concatenate(padded)[np.argsort(order)]


def log_probability(probability: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logarithm, minus infinity with gradient zero where the probability is zero."""
    is_positive = probability > 0
    return jnp.where(is_positive, jnp.log(jnp.where(is_positive, probability, 1.0)), -jnp.inf)


def uniform_concentration(
    n_pseudo_items: Any, *, n_classes: int, n_values: tuple[int, ...]
) -> Float[Array, "feature cls value"]:
    """Dirichlet concentrations of the values given the class, zero beyond a feature's last value.

    Args:
        n_pseudo_items: number of pseudo-items of each value, a number, [feature] or
            [feature, cls, value].
        n_classes: number of classes.
        n_values: number of values of each feature.
    """
    shape = (len(n_values), n_classes, max(n_values))
    items = jnp.reshape(n_pseudo_items, (*jnp.shape(n_pseudo_items), 1, 1)[:3])
    return jnp.broadcast_to(jnp.where(value_mask(n_values)[:, None], items, 0.0), shape)


def sample_conditional(
    concentration: Float[Array, "feature cls value"], *, n_values: tuple[int, ...]
) -> Float[Array, "feature cls value"]:
    """State the sites of the values given the class, one per width, and stack them in a table."""
    classes = numpyro.plate("cls", concentration.shape[1], dim=-1)
    blocks = {}
    for width, members in by_width(n_values).items():
        rows = dist.Dirichlet(block(concentration, members, width, n_axes=1))
        with numpyro.plate(f"feature_{width}", len(members), dim=-2), classes:
            blocks[width] = numpyro.sample(f"conditional_{width}", rows)
    return numpyro.deterministic("conditional", table(blocks, n_values, n_axes=1))


def conditional_sites(
    conditional: Float[Array, "feature cls value"], *, n_values: tuple[int, ...]
) -> dict[str, Float[Array, "..."]]:
    """Values of the sites of `sample_conditional` that give this table, by name."""
    return {
        f"conditional_{width}": block(conditional, members, width, n_axes=1)
        for width, members in by_width(n_values).items()
    }


def sample_observations(
    log_joint: Callable[..., Float[Array, "item cls"]],
    simulate: Callable[..., Any],
    params: Any,
    observations: Any,
    *,
    item: Int[Array, " label"],
    last: Int[Array, " label"],
    n_items: int,
) -> None:
    """State what is known of the items, one term per item, in the plate ``item``.

    The site ``target`` has the known classes, and the site ``labels`` the values or labels given
    them, with the unknown classes summed out.

    Args:
        log_joint: the model's `label_log_joint`.
        simulate: the model's `simulate_labels`.
        params: the model's `Params`.
        observations: the model's `Observations`; None for the target or the last field stands for
            what is to be predicted.
        item: index of each label's item.
        last: largest possible value of each label.
        n_items: number of items.
    """
    with numpyro.plate("item", n_items, dim=-1):
        target, log_given = sample_classes("target", params.prevalence, observations.target)
        of_labels = SummedOut(
            log_joint,
            simulate,
            params,
            observations._replace(target=target),
            item=item,
            n_items=n_items,
            last=last,
            log_given=log_given,
        )
        numpyro.sample("labels", of_labels, obs=observations[-1])


def log_joint_of_readings(
    prevalence: Float[Array, " cls"],
    log_reading: Float[Array, "reading cls"],
    item: Int[Array, " reading"],
    target: Int[Array, " item"],
    *,
    n_items: int,
) -> Float[Array, "item cls"]:
    """Log density of all that is known of each item together with each class.

    Args:
        prevalence: probability of each class.
        log_reading: log probability of each reading given each class.
        item: index of each reading's item.
        target: class of each item, or -1 where it is not known; other classes than a known one
            have the density zero.
        n_items: number of items.
    """
    log_readings = jax.ops.segment_sum(log_reading, item, num_segments=n_items)
    is_possible = (target[:, None] < 0) | (target[:, None] == jnp.arange(len(prevalence)))
    return jnp.where(is_possible, jnp.log(prevalence) + log_readings, -jnp.inf)


def draw_values(
    rng_key: PRNGKeyArray,
    prevalence: Float[Array, " cls"],
    conditional: Float[Array, "feature cls value"],
    item: Int[Array, " reading"],
    feature: Int[Array, " reading"],
    *,
    n_items: int,
    target: Int[Array, " item"] | None,
) -> tuple[Int[Array, " item"], Int[Array, " reading"]]:
    """Draw the classes that are not known, then the value of each pair of an item and a feature."""
    key_truth, key_value = jax.random.split(rng_key)
    truth = jax.random.categorical(key_truth, jnp.log(prevalence), shape=(n_items,))
    if target is not None:
        truth = jnp.where(target >= 0, target, truth)
    value = jax.random.categorical(key_value, jnp.log(conditional)[feature, truth[item]])
    return truth, value
