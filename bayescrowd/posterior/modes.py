"""Modes of a posterior whose chains stay apart, and how much of the posterior each of them holds.

The weight of a mode is
its share of the evidence, the integral of p(point, labels) over its part of the collapsed space,
which bridge sampling estimates (X.-L. Meng and W. H. Wong 1996, "Simulating ratios of normalizing
constants via a simple identity: a theoretical exploration", Statistica Sinica 6): with weights
w = p / q of N points drawn in the mode and of N points from the mode's own proposal q (see
`bayescrowd.posterior.jumps`), the evidence Z solves

    Z = mean over proposed points of w / (w + Z)  /  mean over drawn points of 1 / (w + Z),

their optimal bridge for samples of equal size (eq. 4.1). It needs no draws that cross between
modes. Errors are those of the two means, with the drawn points' autocorrelation (S.
Frühwirth-Schnatter 2004, "Estimating marginal likelihoods for mixture and Markov switching models
using bridge sampling techniques", The Econometrics Journal 7, section 3.3).

An evidence says nothing about chains that still creep along a ridge: they are not draws from "their
part" of the space, and where one group of chains ends and the next begins is an accident of when
one looks. Weights are therefore given only if the chains of every mode are at rest (`are_at_rest`)
and the evidence of every mode that matters is known to `MOST_ERROR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray
from scipy.special import expit, logsumexp, softmax

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.convergence import effective_size
from bayescrowd.posterior.gibbs import collapsed_of, conditionals_of
from bayescrowd.posterior.jumps import (
    Place,
    Point,
    Proposals,
    fit_proposals,
    log_weight,
    propose,
)

__all__ = [
    "Evidence",
    "Modes",
    "are_known",
    "bridge",
    "is_negligible",
    "weigh_modes",
]

N_POINTS = 400
"""Points of each mode that are drawn, and as many that are proposed."""

NEGLIGIBLE = 1e-3
"""Weight below which a mode does not matter, if three standard errors do not make it larger."""

MOST_ERROR = 0.5
"""Standard error of a log evidence, in nats, up to which weights are given: a weight of one half is
then known to about 0.12."""

BRIDGE_TOLERANCE = 1e-6
"""Change of the log evidence, in nats, below which the bridge's fixed point is found."""

MOST_BRIDGE_STEPS = 1000
"""Largest number of steps to the fixed point."""


class Evidence(NamedTuple):
    """Evidence of one mode, in nats."""

    log_evidence: float
    """Its logarithm."""
    error: float
    """Standard error of the logarithm."""


class Modes(NamedTuple):
    """Modes, the heaviest first."""

    mode_of_chain: Int[np.ndarray, " chain"]
    """Which mode each chain is in."""
    weight: Float[np.ndarray, " mode"]
    """Share of the posterior in each mode, among those that chains have found."""
    log_evidence: Float[np.ndarray, " mode"]
    """Log evidence of each mode in nats."""
    error: Float[np.ndarray, " mode"]
    """Standard error of the log evidence."""


def weigh_modes(
    rng_key: PRNGKeyArray,
    mode_of_chain: Int[np.ndarray, " chain"],
    places: Sequence[Place],
    labels: Labels,
    prior: Any,
    *,
    model: ModuleType,
    n_workers: int,
) -> Modes:
    """Weigh the modes that chains are in, and number them anew.

    Args:
        rng_key: the source of randomness.
        mode_of_chain: which mode each chain is in, see `group_chains`.
        places: where each chain has been, classes named as the chain names them.
        labels: the observed labels.
        prior: the model's `Prior`.
        model: a module of `bayescrowd.models` whose conditionals know the collapsed density.
        n_workers: number of workers, including those without a label.
    """
    found = []
    for mode, key in enumerate(jax.random.split(rng_key, mode_of_chain.max() + 1)):
        members = [place for place, own in zip(places, mode_of_chain, strict=True) if own == mode]
        drawn, proposed = _log_weights(
            key, members, labels, prior, model=model, n_workers=n_workers
        )
        found.append(bridge(drawn, proposed))
    log_evidence, error = np.array(found).T
    order = np.argsort(-log_evidence, kind="stable")
    return Modes(
        mode_of_chain=np.argsort(order)[mode_of_chain],
        weight=softmax(log_evidence[order]),
        log_evidence=log_evidence[order],
        error=error[order],
    )


def is_negligible(
    log_evidence: Float[np.ndarray, " mode"], error: Float[np.ndarray, " mode"], best: int
) -> Bool[np.ndarray, " mode"]:
    """Whether modes hold next to nothing of the posterior beside the mode `best`."""
    errors = 3 * np.hypot(error, error[best])
    return np.asarray(log_evidence + errors < log_evidence[best] + np.log(NEGLIGIBLE))


def are_known(log_evidence: Float[np.ndarray, " mode"], error: Float[np.ndarray, " mode"]) -> bool:
    """Whether the evidence of every mode that matters is known well enough to give weights."""
    matters = ~is_negligible(log_evidence, error, int(log_evidence.argmax()))
    return bool((error[matters] <= MOST_ERROR).all())


def bridge(
    drawn: Float[np.ndarray, "chain draw"], proposed: Float[np.ndarray, " proposal"]
) -> Evidence:
    """The evidence from log weights log(p / q) of points drawn from p and of points from q.

    Examples:
        Where the proposal is the posterior, all weights are the evidence:

        >>> import numpy as np
        >>> bridge(np.full((2, 50), -7.0), np.full(100, -7.0)).log_evidence
        -7.0
    """
    log_z = float(np.median(proposed))
    for _ in range(MOST_BRIDGE_STEPS):
        before = log_z
        # w / (w + Z) and 1 / (w + Z), by logarithms
        above = logsumexp(-np.logaddexp(0.0, log_z - proposed)) - np.log(proposed.size)
        below = logsumexp(-np.logaddexp(drawn, log_z)) - np.log(drawn.size)
        log_z = float(above - below)
        if abs(log_z - before) < BRIDGE_TOLERANCE:
            break
    of_proposed, of_drawn = expit(proposed - log_z), expit(log_z - drawn)
    n_drawn = effective_size(of_drawn[:, :, None])[0]
    variance = of_proposed.var() / of_proposed.mean() ** 2 / of_proposed.size
    variance += of_drawn.var() / of_drawn.mean() ** 2 / n_drawn
    return Evidence(log_z, float(np.sqrt(variance)))


def _log_weights(
    rng_key: PRNGKeyArray,
    places: Sequence[Place],
    labels: Labels,
    prior: Any,
    *,
    model: ModuleType,
    n_workers: int,
) -> tuple[Float[np.ndarray, "chain draw"], Float[np.ndarray, " proposal"]]:
    """Log weights of points drawn in a mode, chain by chain, and of points from its proposal."""
    key_drawn, key_proposed = jax.random.split(rng_key)
    gold = None if labels.gold is None else np.asarray(labels.gold)
    proposals = fit_proposals(collapsed_of(model), places, gold)
    n_each = -(-N_POINTS // len(places))
    drawn = []
    for key, place in zip(jax.random.split(key_drawn, len(places)), places, strict=True):
        n_draws = len(next(iter(place.params.values())))
        chosen = np.linspace(0, n_draws - 1, min(n_each, n_draws)).astype(int)
        params = {name: jnp.asarray(values[chosen]) for name, values in place.params.items()}
        keys = jax.random.split(key, len(chosen))
        drawn.append(
            _weights_of_draws(
                keys, params, proposals, labels, prior, model=model, n_workers=n_workers
            )
        )
    proposed = _weights_of_proposals(
        jax.random.split(key_proposed, N_POINTS),
        proposals,
        labels,
        prior,
        model=model,
        n_workers=n_workers,
    )
    return np.asarray(drawn, dtype=float), np.asarray(proposed, dtype=float)


@partial(jax.jit, static_argnames=("model", "n_workers"))
def _weights_of_draws(
    keys: Key[Array, " draw"],
    params: Mapping[str, Float[Array, "draw ..."]],
    proposals: Proposals,
    labels: Labels,
    prior: Any,
    *,
    model: ModuleType,
    n_workers: int,
) -> Float[Array, " draw"]:
    """Log weights of draws, whose classes are drawn anew from their exact conditional."""
    of_model, collapsed = conditionals_of(model), collapsed_of(model)
    n_items = proposals.log_probas.shape[1]

    def of_draw(draw: tuple[Any, Mapping[str, Array]]) -> Float[Array, ""]:
        key_truth, key_rest = jax.random.split(draw[0])
        params = model.Params(**draw[1])
        truth = draw_categories(key_truth, of_model.log_joint(params, labels, n_items=n_items))
        point = Point(truth, collapsed.rest_of(key_rest, truth, params, labels))
        return log_weight(point, proposals, labels, prior, collapsed=collapsed, n_workers=n_workers)

    return jax.lax.map(of_draw, (keys, dict(params)))


@partial(jax.jit, static_argnames=("model", "n_workers"))
def _weights_of_proposals(
    keys: Key[Array, " draw"],
    proposals: Proposals,
    labels: Labels,
    prior: Any,
    *,
    model: ModuleType,
    n_workers: int,
) -> Float[Array, " draw"]:
    """Log weights of points from the proposal."""
    collapsed = collapsed_of(model)

    def of_key(key: Any) -> Float[Array, ""]:
        point = propose(key, proposals, labels, collapsed=collapsed)
        return log_weight(point, proposals, labels, prior, collapsed=collapsed, n_workers=n_workers)

    return jax.lax.map(of_key, keys)
