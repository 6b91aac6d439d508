"""Jumps between modes: independence proposals from where several chains have been.

A crowd's classes may be read in several ways, for example with one class for unclear tasks or with
a finer division of clear ones. Sweeps hardly ever lead from one reading to another, since many
classes and all workers' parameters would have to change together. With the workers' parameters
integrated out, a point consists of the classes z and a small rest (`Collapsed`), and a chain of
another reading has a simple neighbourhood: the probabilities of each item's class, averaged over
its draws, and proposals of the rest fitted to them. A jump is a Metropolis–Hastings step (W. K.
Hastings 1970, "Monte Carlo sampling methods using Markov chains and their applications",
Biometrika 57, section 2.5) with the mixture of these as its independence proposal q,

    accept (z', rest') with probability  min(1, p(z', rest', labels) q(z, rest)
                                                / (p(z, rest, labels) q(z', rest'))).

The posterior is invariant, whatever q is, as long as q stays fixed. It is therefore fitted to draws
that become warm-up (L. Tierney 1994, "Markov chains for exploring posterior distributions", Annals
of Statistics 22, section 2.4, who combines such steps with other transitions). A mode of smaller
weight is left as soon as a proposal lands in a larger one; modes of similar weight are both visited
as often as they deserve where proposals fit well enough to be accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.conditionals.protocol import Collapsed

__all__ = [
    "N_JUMPS",
    "Place",
    "Point",
    "Proposals",
    "fit_proposals",
    "jump",
    "log_weight",
    "propose",
]

N_JUMPS = 32
"""Proposals of each jump; with 50 sweeps between jumps they take about a tenth of their time."""

LEAST_PROBABILITY = 1e-4
"""Share of a uniform distribution in the proposal of each class, so that all can be proposed."""


class Place(NamedTuple):
    """Where a chain has been."""

    probas: Float[np.ndarray, "item cls"]
    """Mean class probabilities of its draws."""
    params: Mapping[str, np.ndarray]
    """Its draws of the parameters by name, [draw, ...]."""


class Proposals(NamedTuple):
    """Components of the independence proposal; the first axis of every array is the component."""

    log_probas: Float[Array, "component item cls"]
    """Log probabilities of each item's class."""
    rest: Any
    """Proposals of the rest, as `Collapsed.fit` makes them."""


class Point(NamedTuple):
    """A point of the collapsed space."""

    truth: Int[Array, " item"]
    """Class of each item."""
    rest: Any
    """What the density depends on beside the classes."""


def fit_proposals(
    collapsed: Collapsed, places: Sequence[Place], gold: Int[np.ndarray, " item"] | None = None
) -> Proposals:
    """One component for each place.

    Args:
        collapsed: the model's collapsed density.
        places: where chains have been, classes named as the chains name them.
        gold: class of each item that is known, -1 elsewhere; no other class is proposed for it.
    """
    probas = np.stack([place.probas for place in places]).astype(float)
    probas = probas / probas.sum(axis=-1, keepdims=True)
    mixed = (1 - LEAST_PROBABILITY) * probas + LEAST_PROBABILITY / probas.shape[-1]
    log_probas = np.log(mixed)
    if gold is not None:
        is_known = (gold >= 0)[:, None]
        certain = np.where(gold[:, None] == np.arange(probas.shape[-1]), 0.0, -np.inf)
        log_probas = np.where(is_known, certain, log_probas)
    rests = [collapsed.fit(place.params) for place in places]
    return Proposals(
        log_probas=jnp.asarray(log_probas, dtype=jnp.float32),
        rest=jax.tree.map(lambda *leaves: jnp.stack(leaves), *rests),
    )


@partial(jax.jit, static_argnames=("collapsed", "n_workers", "n_jumps"))
def jump(
    rng_key: PRNGKeyArray,
    state: Any,
    proposals: Proposals,
    labels: Labels,
    prior: Any,
    *,
    collapsed: Collapsed,
    n_workers: int,
    n_jumps: int = N_JUMPS,
) -> Any:
    """Jumps of each of several chains; only what the next sweep reads is up to date afterwards.

    Args:
        rng_key: the source of randomness.
        state: the `KernelState` of several chains, see `bayescrowd.posterior.gibbs`.
        proposals: the mixture to propose from, fixed beforehand.
        labels: the observed labels.
        prior: the model's `Prior`.
        collapsed: the model's collapsed density.
        n_workers: number of workers, including those without a label.
        n_jumps: number of proposals.
    """
    weigh = partial(
        log_weight,
        proposals=proposals,
        labels=labels,
        prior=prior,
        collapsed=collapsed,
        n_workers=n_workers,
    )

    def attempt(carry: tuple[Point, Any], key: Any) -> tuple[tuple[Point, Any], None]:
        point, weight = carry
        key_point, key_accept = jax.random.split(key)
        proposed = propose(key_point, proposals, labels, collapsed=collapsed)
        weight_there = weigh(proposed)
        log_u = jnp.log1p(-jax.random.uniform(key_accept))
        # A comparison with NaN is false: a point without a density is never entered.
        is_accepted = log_u < weight_there - weight
        chosen = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposed, point)
        return (chosen, jnp.where(is_accepted, weight_there, weight)), None

    def one_chain(chain: tuple[Any, Any]) -> Any:
        key, state = chain
        key_rest, key_jumps, key_params = jax.random.split(key, 3)
        truth, params = state.draw.truth, state.draw.params
        point = Point(truth, collapsed.rest_of(key_rest, truth, params, labels))
        keys = jax.random.split(key_jumps, n_jumps)
        (point, _), _ = jax.lax.scan(attempt, (point, weigh(point)), keys)
        params = collapsed.params_of(key_params, point.rest, point.truth, params, labels, prior)
        return state._replace(draw=state.draw._replace(truth=point.truth, params=params))

    return jax.lax.map(one_chain, (jax.random.split(rng_key, len(state.i)), state))


def propose(
    rng_key: PRNGKeyArray, proposals: Proposals, labels: Labels, *, collapsed: Collapsed
) -> Point:
    """A point from one of the components, all of which are equally likely."""
    key_component, key_truth, key_rest = jax.random.split(rng_key, 3)
    component = jax.random.randint(key_component, (), 0, len(proposals.log_probas))
    log_probas, rest = jax.tree.map(lambda leaf: leaf[component], tuple(proposals))
    truth = draw_categories(key_truth, log_probas)
    return Point(truth, collapsed.propose(key_rest, truth, rest, labels))


def log_weight(
    point: Point,
    proposals: Proposals,
    labels: Labels,
    prior: Any,
    *,
    collapsed: Collapsed,
    n_workers: int,
) -> Float[Array, ""]:
    """Log of p(point, labels) / q(point)."""
    n_classes = proposals.log_probas.shape[-1]
    density = collapsed.log_density(
        point.truth, point.rest, labels, prior, n_workers=n_workers, n_classes=n_classes
    )

    def of_component(component: Proposals) -> Float[Array, ""]:
        chosen = jnp.take_along_axis(component.log_probas, point.truth[:, None], axis=1)
        of_rest = collapsed.log_proposal(point.rest, point.truth, component.rest, labels)
        return chosen.sum() + of_rest

    of_components = jax.lax.map(of_component, proposals)
    return density - logsumexp(of_components) + jnp.log(float(len(of_components)))
