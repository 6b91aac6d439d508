"""Categorical draws by inversion, which needs one uniform number per draw.

`jax.random.categorical` adds Gumbel noise to every category, which needs one random number per
category.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.uniforms import draw_uniforms

__all__ = ["draw_categories"]

_Carry = tuple[Float[Array, "*batch"], Int[Array, "*batch"]]


def draw_categories(
    rng_key: PRNGKeyArray, log_weights: Float[Array, "*batch category"]
) -> Int[Array, "*batch"]:
    """Draw one category per row of weights, which need not be normalised.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> log_weights = jnp.log(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
        >>> draw_categories(jax.random.key(0), log_weights).tolist()
        [0, 1]
    """
    by_category = jnp.moveaxis(log_weights, -1, 0)
    weights = jnp.exp(by_category - by_category.max(axis=0))
    u = draw_uniforms(rng_key, log_weights.shape[:-1]) * weights.sum(axis=0)

    def pass_by(carry: _Carry, weight: Float[Array, "*batch"]) -> tuple[_Carry, None]:
        cumulative, category = carry
        cumulative = cumulative + weight
        return (cumulative, category + (u >= cumulative)), None

    # The total is not compared, so that rounding cannot lead beyond the last category.
    start = (jnp.zeros_like(u), jnp.zeros(u.shape, int))
    return jax.lax.scan(pass_by, start, weights[:-1])[0][1]
