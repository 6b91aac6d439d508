"""Tables over features that differ in their number of values.

A table is an array whose first axis is the feature and whose last axes are as wide as the widest
feature; it holds zeros beyond a feature's last value. Features of one width form a block without
padding: blocks are what a density can be stated for, tables are what an index can be looked up in.
"""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

__all__ = ["block", "by_width", "log_probability", "table", "value_mask"]


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
