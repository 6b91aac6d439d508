"""Categorical draws by inversion: one uniform number for each draw.

`jax.random.categorical` adds Gumbel noise to every category, which takes as many random numbers
as there are categories.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.nn import softmax
from jaxtyping import Array, Float, Int, PRNGKeyArray

__all__ = ["draw_categories"]


def draw_categories(
    rng_key: PRNGKeyArray, log_weights: Float[Array, "*batch category"]
) -> Int[Array, "*batch"]:
    """One category per row of weights, which need not be normalised.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> log_weights = jnp.log(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
        >>> draw_categories(jax.random.key(0), log_weights).tolist()
        [0, 1]
    """
    cumulative = jnp.cumsum(softmax(log_weights, axis=-1), axis=-1)
    u = jax.random.uniform(rng_key, log_weights.shape[:-1]) * cumulative[..., -1]
    # The total is left out of the comparison, so that rounding cannot name a category too many.
    return (u[..., None] >= cumulative[..., :-1]).sum(axis=-1)
