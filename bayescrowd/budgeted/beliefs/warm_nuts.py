"""NUTS chains that go on from where they stood when data have been added.

M. D. Hoffman and A. Gelman (2014), "The No-U-Turn Sampler", JMLR 15, as implemented in NumPyro. A
chain is a value: its position, step size and diagonal mass matrix. When an observation is added,
`advance` computes the potential energy and its gradient anew at that position, since both have
changed, and makes `N_DRAWS` transitions. Their draws replace the earlier ones, which are from
another posterior. Step sizes and mass matrices are adapted again whenever the number of
observations has doubled (`needs_adapting`), by `N_ADAPT` transitions whose draws are dropped.

Before the first observation chains need not be run: positions and draws come from the prior.

Data are padded to few different sizes (`n_slots`), since each size is compiled on its own. What
fills them must not change the density of the parameters; see `feature_readings`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from numpyro import handlers
from numpyro.infer.hmc import hmc
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

__all__ = [
    "N_CHAINS",
    "N_KEPT",
    "Chains",
    "Target",
    "advance",
    "draw_from_prior",
    "further_seed",
    "n_slots",
    "needs_adapting",
]

N_CHAINS = 16
"""Number of chains."""

N_DRAWS = 16
"""Number of transitions of each chain after an observation."""

N_KEPT = N_CHAINS * N_DRAWS
"""Number of draws of all chains; the error of a mean is about a 16th of the posterior's spread."""

N_ADAPT = 60
"""Number of transitions that adapt step size and mass matrix before the draws that are kept."""

FEWEST_SLOTS, SLOT_GROWTH = 32, 4
"""Number of readings that there is room for at first, and the factor by which it grows."""

_WITH_VALUE = ("sample", "deterministic")
"""Types of the sites that a draw consists of."""

Read = Callable[[dict[str, Array]], Any]
"""Takes what is needed from the sites of one draw."""


class Chains(NamedTuple):
    """Where NUTS chains stand, and what they have adapted."""

    position: dict[str, Float[Array, "chain ..."]]
    """Unconstrained value of each site."""
    step_size: Float[Array, " chain"]
    """Step size of each chain."""
    inverse_mass: Float[Array, "chain coordinate"]
    """Diagonal of each chain's inverse mass matrix."""


class Target(NamedTuple):
    """The model whose posterior is drawn from; hashable, since programs are compiled for it."""

    model: Callable[..., Any]
    """A function with NumPyro's primitives: (observations, **sizes, **arguments) -> None."""
    read: Read
    """What to keep of the sites of a draw."""


def n_slots(n_readings: int) -> int:
    """Room for this many readings."""
    slots = FEWEST_SLOTS
    while slots < n_readings:
        slots *= SLOT_GROWTH
    return slots


def needs_adapting(n_readings: int) -> bool:
    """Whether chains adapt anew at this number of readings: 1, 2, 4, 8, ..."""
    return n_readings & (n_readings - 1) == 0


def further_seed(n_readings: int, batch: int) -> int:
    """Seed of a further batch of draws after this many readings, the first of which has 1.

    The draws after `n` readings have the seed `n`. Of a million readings and 64 batches no two
    share a seed, and all are below the largest integer of 32 bits.
    """
    return n_readings + (batch << 20)


@partial(jax.jit, static_argnames=("target", "sizes"))
def draw_from_prior(
    seed: int | Int[Array, ""], empty: Any, arguments: dict[str, Any], *, target: Target, sizes: Any
) -> tuple[Chains, Any]:
    """Chains, and what is kept of `N_KEPT` draws, before there are data.

    Args:
        seed: seed of the draws.
        empty: observations that are padding alone.
        arguments: further arguments of the model, such as its prior.
        target: the model.
        sizes: the sizes among the model's arguments.
    """
    keywords = {**sizes._asdict(), **arguments}

    def draw(key: Any) -> tuple[dict[str, Array], Any]:
        seeded = handlers.trace(handlers.seed(target.model, key))
        trace = seeded.get_trace(empty, **keywords)
        latent = {name: site["value"] for name, site in trace.items() if _is_latent(site)}
        position = unconstrain_fn(target.model, (empty,), keywords, latent)
        values = {n: s["value"] for n, s in trace.items() if s["type"] in _WITH_VALUE}
        return position, target.read(values)

    position, kept = jax.vmap(draw)(jax.random.split(jax.random.key(seed), N_KEPT))
    n_coordinates = sum(leaf[0].size for leaf in jax.tree.leaves(position))
    chains = Chains(
        jax.tree.map(lambda leaf: leaf[:N_CHAINS], position),
        jnp.ones(N_CHAINS),
        jnp.ones((N_CHAINS, n_coordinates)),
    )
    return chains, kept


@partial(jax.jit, static_argnames=("target", "sizes"))
def advance(
    seed: int | Int[Array, ""],
    chains: Chains,
    observations: Any,
    arguments: dict[str, Any],
    adapts: bool | Any,
    *,
    target: Target,
    sizes: Any,
) -> tuple[Chains, Any]:
    """The chains after further transitions given the observations, and what is kept of the draws.

    Args:
        seed: seed of the transitions.
        chains: where the chains stand, perhaps with fewer observations.
        observations: all observations so far, padded.
        arguments: further arguments of the model, such as its prior.
        adapts: whether to adapt step sizes and mass matrices first.
        target: the model.
        sizes: the sizes among the model's arguments.
    """
    keywords = {**sizes._asdict(), **arguments}

    def energy_of(position: dict[str, Array]) -> Float[Array, ""]:
        return potential_energy(target.model, (observations,), keywords, position)

    start, transition = hmc(potential_fn=energy_of, algo="NUTS")
    n_dropped = jnp.where(adapts, N_ADAPT, 0)

    def run(key: Any, chain: Chains) -> tuple[Chains, dict[str, Array]]:
        state = start(
            chain.position,
            num_warmup=N_ADAPT,
            step_size=chain.step_size,
            inverse_mass_matrix=chain.inverse_mass,
            rng_key=key,
        )
        # NumPyro adapts while it counts fewer transitions than `num_warmup`
        state = state._replace(i=N_ADAPT - n_dropped)
        kept = jax.tree.map(lambda leaf: jnp.zeros((N_DRAWS, *leaf.shape)), chain.position)

        def move(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, kept = carry
            state = transition(state)
            place = jnp.maximum(i - n_dropped, 0)
            return state, jax.tree.map(lambda to, leaf: to.at[place].set(leaf), kept, state.z)

        state, kept = jax.lax.fori_loop(0, n_dropped + N_DRAWS, move, (state, kept))
        adapted = state.adapt_state
        return Chains(state.z, adapted.step_size, adapted.inverse_mass_matrix), kept

    keys = jax.random.split(jax.random.key(seed), N_CHAINS)
    moved, kept = jax.vmap(run)(keys, chains)
    flat = jax.tree.map(lambda leaf: leaf.reshape(N_KEPT, *leaf.shape[2:]), kept)

    def read(position: dict[str, Array]) -> Any:
        return target.read(
            constrain_fn(
                target.model, (observations,), keywords, position, return_deterministic=True
            )
        )

    return moved, jax.vmap(read)(flat)


def _is_latent(site: dict[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"]
