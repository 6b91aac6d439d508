"""Slice sampling of many independent scalars at once.

R. M. Neal (2003), "Slice sampling", Annals of Statistics 31(3), section 4: a height under the
density at the current point, an interval around the point that steps out until both ends are below
that height (section 4.1), and uniform proposals that shrink it (section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

__all__ = ["slice_step"]

LogDensity = Callable[[Float[Array, " scalar"]], Float[Array, " scalar"]]

_AT_START, _LOWER, _UPPER, _SHRINK, _FOUND = range(5)
"""Phases of the search for a point in the slice, by the point at which it looks."""


class _Search(NamedTuple):
    """Where the searches for points in the slices stand."""

    n_rounds: Int[Array, ""]
    phase: Int[Array, " scalar"]
    probe: Float[Array, " scalar"]
    height: Float[Array, " scalar"]
    lower: Float[Array, " scalar"]
    upper: Float[Array, " scalar"]


def slice_step(
    rng_key: PRNGKeyArray, x: Float[Array, " scalar"], log_density: LogDensity, *, width: float
) -> Float[Array, " scalar"]:
    """One step of slice sampling for each of several independent scalars at once.

    Args:
        rng_key: the source of randomness.
        x: current values of the scalars.
        log_density: log densities of all scalars, each up to a constant.
        width: first guess of the slices' widths.
    """
    key_height, key_place, key_proposals = jax.random.split(rng_key, 3)
    log_u = jnp.log1p(-jax.random.uniform(key_height, x.shape))
    lower = x - width * jax.random.uniform(key_place, x.shape)
    first = _Search(
        n_rounds=jnp.zeros((), int),
        phase=jnp.full(x.shape, _AT_START),
        probe=x,
        height=x,
        lower=lower,
        upper=lower + width,
    )

    def look(search: _Search) -> _Search:
        """Evaluate the density once for all searches, so that its code is compiled once."""
        n_rounds, phase, probe, height, lower, upper = search
        density = log_density(probe)
        height = jnp.where(phase == _AT_START, density + log_u, height)
        is_inside = density >= height
        lower = jnp.where((phase == _LOWER) & is_inside, lower - width, lower)
        upper = jnp.where((phase == _UPPER) & is_inside, upper + width, upper)
        is_refused = (phase == _SHRINK) & ~is_inside
        lower = jnp.where(is_refused & (probe < x), probe, lower)
        upper = jnp.where(is_refused & (probe >= x), probe, upper)
        is_outside = (phase == _LOWER) | (phase == _UPPER)
        moves_on = (phase == _AT_START) | (is_outside & ~is_inside)
        moves_on = moves_on | ((phase == _SHRINK) & is_inside)
        phase = jnp.where(moves_on, phase + 1, phase)
        u = jax.random.uniform(jax.random.fold_in(key_proposals, n_rounds), x.shape)
        proposal = lower + u * (upper - lower)
        probes = [lower, upper, proposal]
        probe = jnp.select([phase == _LOWER, phase == _UPPER, phase == _SHRINK], probes, probe)
        return _Search(n_rounds + 1, phase, probe, height, lower, upper)

    return jax.lax.while_loop(lambda search: (search.phase < _FOUND).any(), look, first).probe
