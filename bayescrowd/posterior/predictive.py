"""Draws from a model's prior, and data of new items drawn from prior and posterior.

A design says who judges what: the arrays that a model's `simulate` takes after the key. New items
have new classes; they are judged by as many workers as the observed ones.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray

from bayescrowd.posterior.chains import AnySizes

__all__ = ["N_PREDICTIVE", "evenly_spaced", "posterior_predictive", "prior_predictive"]

N_PREDICTIVE = 100
"""Draws of labels from the prior and from the posterior, enough for checks at the 1 % level."""

Design = tuple[Int[Array, " _"], ...]


def prior_predictive(
    rng_key: PRNGKeyArray, design: Design, prior: Any, *, model: ModuleType, sizes: AnySizes
) -> tuple[dict[str, np.ndarray], Int[np.ndarray, "draw judgement"]]:
    """Parameters by site, and judgements, of `N_PREDICTIVE` draws."""
    keys = jax.random.split(rng_key, N_PREDICTIVE)
    params, judgements = _simulate_prior(keys, design, prior, model=model, sizes=sizes)
    return {name: np.asarray(field) for name, field in params.items()}, np.asarray(judgements)


def posterior_predictive(
    rng_key: PRNGKeyArray,
    design: Design,
    params: dict[str, np.ndarray],
    *,
    model: ModuleType,
    n_items: int,
) -> Int[np.ndarray, "chain draw judgement"]:
    """Judgements with each of the parameters, arrays [chain, draw, ...]."""
    n_chains, n_draws = next(iter(params.values())).shape[:2]
    flat = {
        name: jnp.asarray(field).reshape(n_chains * n_draws, *field.shape[2:])
        for name, field in params.items()
    }
    keys = jax.random.split(rng_key, n_chains * n_draws)
    judgements = _simulate_posterior(keys, design, flat, model=model, n_items=n_items)
    return np.asarray(judgements).reshape(n_chains, n_draws, -1)


def evenly_spaced(n_chains: int, n_draws: int) -> Int[np.ndarray, " chosen"]:
    """Places of the draws to predict from, the same in each chain."""
    per_chain = min(n_draws, -(-N_PREDICTIVE // n_chains))
    return np.linspace(0, n_draws - 1, per_chain).astype(int)


@partial(jax.jit, static_argnames=("model", "sizes"))
def _simulate_prior(
    keys: Key[Array, " draw"], design: Design, prior: Any, *, model: ModuleType, sizes: AnySizes
) -> tuple[dict[str, Array], Int[Array, "draw judgement"]]:
    def simulate(key: PRNGKeyArray) -> tuple[dict[str, Array], Int[Array, " judgement"]]:
        drawn = model.simulate(key, *design, **sizes._asdict(), prior=prior)
        return drawn.params._asdict(), _judgements(drawn)

    return jax.lax.map(simulate, keys)


@partial(jax.jit, static_argnames=("model", "n_items"))
def _simulate_posterior(
    keys: Key[Array, " draw"],
    design: Design,
    params: dict[str, Array],
    *,
    model: ModuleType,
    n_items: int,
) -> Int[Array, "draw judgement"]:
    def simulate(
        key_and_params: tuple[PRNGKeyArray, dict[str, Array]],
    ) -> Int[Array, " judgement"]:
        key, fields = key_and_params
        drawn = model.simulate_labels(key, model.Params(**fields), *design, n_items=n_items)
        return _judgements(drawn)

    return jax.lax.map(simulate, (keys, params))


def _judgements(drawn: Any) -> Int[Array, " judgement"]:
    """What was answered: the labels of a crowd, or the last field of a model's `Observations`."""
    return drawn.labels.label if hasattr(drawn, "labels") else drawn.observations[-1]
