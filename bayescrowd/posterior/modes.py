"""Modes of a posterior whose chains stay apart, and how much of the posterior each of them holds.

Two chains are in one mode if they agree about everything that the chains as a whole disagree about
(pairwise R-hat at most `APART_RHAT`), directly or by way of other chains. The weight of a mode is
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
one looks. Weights are therefore given only if the chains of every mode are at rest (`is_at_rest`)
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
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray
from scipy.special import expit, logsumexp, softmax

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.convergence import (
    APART_RHAT,
    LEAST_ESS_PER_CHAIN,
    convergence_of,
    effective_size,
    entries_to_watch,
    is_at_rest,
)
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
    "are_at_rest",
    "are_known",
    "bridge",
    "group_chains",
    "is_negligible",
    "mode_note",
    "mode_problems",
    "unrest",
    "weigh_modes",
]

N_POINTS = 400
"""Points of each mode that are drawn, and as many that are proposed."""

MOST_COMPARED = 50
"""Number of entries, the worst ones, in which pairs of chains are compared."""

MOST_LEFT = 0.01
"""Largest weight of modes without chains that a user need not worry about."""

NEGLIGIBLE = 1e-3
"""Weight below which a mode does not matter, if three standard errors do not make it larger."""

MOST_ERROR = 0.5
"""Standard error of a log evidence, in nats, up to which weights are given: a weight of one half is
then known to about 0.12."""

LEAST_TO_TELL = 4 * LEAST_ESS_PER_CHAIN
"""Draws per chain below which a good chain may lack the ESS that shows that it is at rest."""

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


def are_at_rest(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]],
    mode_of_chain: Int[np.ndarray, " chain"],
) -> Bool[np.ndarray, " mode"]:
    """Whether the chains of each mode are at rest in everything that is watched."""
    watched = [entries_to_watch(values) for values in variables]
    return np.array(
        [
            all(is_at_rest(values[mode_of_chain == mode]) for values in watched)
            for mode in range(mode_of_chain.max() + 1)
        ]
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


def mode_problems(modes: xr.Dataset) -> list[str]:
    """What a user has to know about draws from several modes, in plain words.

    Args:
        modes: the group `modes` of a container.
    """
    of_chain = modes["mode_of_chain"].to_numpy()
    weight = modes["weight"].to_numpy()
    has_chains = np.isin(np.arange(len(weight)), of_chain)
    if has_chains.sum() == 1 and weight[~has_chains].sum() <= MOST_LEFT:
        return []
    heights, errors = (modes[name].to_numpy() for name in ("log_evidence", "log_evidence_error"))
    parts = []
    for mode in range(len(weight)):
        chains = _names_of_chains(np.flatnonzero(of_chain == mode))
        gap = f", {heights[mode] - heights[0]:+.1f} nats, give or take {errors[mode]:.1f}"
        parts.append(f"{weight[mode]:.2g} in mode {mode} ({chains}{gap if mode else ''})")
    differences = [_difference(modes, mode) for mode in range(1, len(weight))]
    found = (
        f"the posterior has {len(weight)} modes that chains hardly leave, with the weights "
        f"{', '.join(parts)}; {'; '.join(differences)}"
    )
    return [found]


def mode_note(modes: xr.Dataset) -> str:
    """What a user may know about modes that chains have left for good reason; may be empty."""
    has_chains = np.isin(np.arange(modes.sizes["mode"]), modes["mode_of_chain"].to_numpy())
    n_left = int((~has_chains).sum())
    if mode_problems(modes) or n_left == 0:
        return ""
    share = float(modes["weight"].to_numpy()[~has_chains].sum())
    which = "another mode, which holds" if n_left == 1 else f"{n_left} other modes, which hold"
    amount = f"{share:.1g}" if share > 0 else "nothing to speak of"
    return f"Chains found and left {which} {amount} of the posterior."


def _names_of_chains(chains: Int[np.ndarray, " chain"]) -> str:
    """'no chain', 'chain 0', or 'chains 1 and 3'."""
    names = [str(chain) for chain in chains]
    if not names:
        return "no chain"
    if len(names) == 1:
        return f"chain {names[0]}"
    return f"chains {', '.join(names[:-1])} and {names[-1]}"


def _difference(modes: xr.Dataset, mode: int) -> str:
    """On how many tasks a mode answers differently from the heaviest one, and how mostly."""
    classes = modes.indexes["cls"]
    answers = modes["probability"].transpose("mode", "task", "cls").to_numpy().argmax(axis=-1)
    here, there = answers[0], answers[mode]
    n_apart = (here != there).sum()
    if n_apart == 0:
        return f"mode {mode} differs in its parameters, not in the most probable classes"
    first, other, n_most = _most_exchanged(here, there)
    return (
        f"mode {mode} gives {n_apart:,} of {len(here):,} tasks another class than mode 0, "
        f"mostly {str(classes[other])!r} for {str(classes[first])!r} ({n_most:,})"
    )


def _most_exchanged(
    here: Int[np.ndarray, " task"], there: Int[np.ndarray, " task"]
) -> tuple[int, int, int]:
    """The class here and the other class there that meet most often, and on how many tasks."""
    is_apart = here != there
    pairs, counts = np.unique(
        np.stack([here[is_apart], there[is_apart]], axis=1), axis=0, return_counts=True
    )
    first, other = pairs[counts.argmax()]
    return int(first), int(other), int(counts.max())


def unrest(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]], label_posterior: xr.Dataset
) -> str:
    """Which classes chains that are apart still move between.

    Empty if they are at rest, or if draws are too few to tell.

    Args:
        variables: everything that is watched.
        label_posterior: the group `label_posterior` of a container.
    """
    n_draws = variables[0].shape[1]
    if n_draws < LEAST_TO_TELL or are_at_rest(variables, group_chains(variables)).all():
        return ""
    probability = label_posterior["probability"].transpose("chain", "task", "cls")
    answers = probability.to_numpy().argmax(axis=-1)
    n_apart = (answers[:, None] != answers).sum(axis=-1)
    here, there = np.unravel_index(n_apart.argmax(), n_apart.shape)
    between = ""
    if n_apart.any():
        first, other, _ = _most_exchanged(answers[here], answers[there])
        classes = label_posterior.indexes["cls"]
        between = (
            f" mostly between {str(classes[first])!r} and {str(classes[other])!r} "
            f"({n_apart.max():,} of {answers.shape[1]:,} tasks differ between chains {here} and "
            f"{there})"
        )
    return f"chains have not settled, they still move{between}; no weights of modes can be given"


def group_chains(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]],
) -> Int[np.ndarray, " chain"]:
    """Number the groups of chains that agree, in the order of their first chains."""
    watched = np.concatenate([entries_to_watch(values) for values in variables], axis=-1)
    rhat = np.nan_to_num(convergence_of(watched).rhat, nan=0.0)
    worst = np.argsort(-rhat, kind="stable")[:MOST_COMPARED]
    compared = watched[:, :, worst[rhat[worst] > APART_RHAT]]
    n_chains = len(watched)
    group = np.arange(n_chains)
    for first in range(n_chains):
        for other in range(first + 1, n_chains):
            pair = convergence_of(compared[[first, other]]).rhat
            if group[first] != group[other] and (pair <= APART_RHAT).all():
                group[group == group[other]] = group[first]
    return np.unique(group, return_inverse=True)[1]


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
