"""Conditionals of the pooled Dawid–Skene model: workers, the crowd behind them, and its strength.

Given the classes, only the counts ``n[k, j, l]`` of answers matter. The workers' rows are
integrated out to draw the crowd's (see `bayescrowd.models.hierarchical_dawid_skene`): with
``a = s_j m[j]``, worker k's counts for class j have the Dirichlet-multinomial density

    Gamma(s) / Gamma(s + n[k, j, .])  prod over l of  Gamma(a_l + n[k, j, l]) / Gamma(a_l).

- Strengths s: slice sampling of log s (R. M. Neal 2003, "Slice sampling", Annals of Statistics 31,
  section 4, stepping out and shrinking), of all classes at once.
- The crowd's rows m: Gamma(a + n) / Gamma(a) is a sum over t of Stirling numbers times a^t, and
  given the t[k, j, l] the row m[j] is a Dirichlet with their sums over workers added to its
  concentrations (Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei 2006, "Hierarchical Dirichlet
  processes", JASA 101, section 5.3). t is the number of tables that n customers of a Chinese
  restaurant sit at: a sum of Bernoulli(a / (a + i)), i = 0 .. n - 1, one for each label.
- The workers' rows: Dirichlet(s_j m[j] + n[k, j]).

Each draw leaves the posterior given the classes invariant; none of them is approximate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.draws.restaurant_tables import table_counts
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.models.hierarchical_dawid_skene import (
    Params,
    Prior,
    confusion_concentration,
    crowd_concentration,
)
from bayescrowd.posterior.conditionals.classes import class_counts
from bayescrowd.posterior.conditionals.crowd_labels import (
    answer_counts,
    labels_log_joint,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS", "slice_step"]

SLICE_WIDTH = 1.0
"""First guess of a slice's width, in log pseudo-labels: two or three posterior deviations."""

_LEAST = 1e-30
"""Floor of the concentrations: its log-gamma is finite in single precision."""

LogDensity = Callable[[Float[Array, " cls"]], Float[Array, " cls"]]

_AT_START, _LOWER, _UPPER, _SHRINK, _FOUND = range(5)
"""Phases of the search for a point in the slice, by the point at which it looks."""


class _Search(NamedTuple):
    """Where the searches for points in the slices stand."""

    n_rounds: Int[Array, ""]
    phase: Int[Array, " cls"]
    probe: Float[Array, " cls"]
    height: Float[Array, " cls"]
    lower: Float[Array, " cls"]
    upper: Float[Array, " cls"]


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means, and the median strength."""
    crowd = crowd_concentration(prior, n_classes) / prior.n_pseudo_labels
    return Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        crowd=crowd,
        strength=jnp.full(n_classes, prior.strength),
        confusion=jnp.broadcast_to(crowd, (n_workers, n_classes, n_classes)),
    )


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """Strengths, the crowd's rows, then prevalence and the workers' rows, given the classes."""
    key_strength, key_tables, key_crowd, key_rows = jax.random.split(rng_key, 4)
    n_workers, n_classes, _ = params.confusion.shape
    counts = answer_counts(truth, labels, n_workers=n_workers, n_classes=n_classes)
    strength = _draw_strength(key_strength, counts, params, prior)
    tables = table_counts(
        key_tables,
        counts,
        confusion_concentration(params.crowd, strength),
        n_labels=len(labels.label),
    )
    (crowd,) = dirichlet_tables(key_crowd, [crowd_concentration(prior, n_classes) + tables])
    prevalence, confusion = dirichlet_tables(
        key_rows,
        [
            prior.prevalence + class_counts(truth, n_classes),
            confusion_concentration(crowd, strength) + counts,
        ],
    )
    return Params(prevalence, crowd, strength, confusion)


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    return labels_log_joint(params.confusion, params.prevalence, labels, n_items=n_items)


def slice_step(
    rng_key: PRNGKeyArray, x: Float[Array, " cls"], log_density: LogDensity, *, width: float
) -> Float[Array, " cls"]:
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


def _draw_strength(
    rng_key: PRNGKeyArray,
    counts: Float[Array, "worker cls cls"],
    params: Params,
    prior: Prior,
) -> Float[Array, " cls"]:
    n_classes = counts.shape[1]
    # In one array, so that the code of log-gamma is compiled once: answers, totals, then no counts.
    cells = jnp.concatenate([counts, counts.sum(axis=-1, keepdims=True)], axis=-1)
    cells = jnp.concatenate([cells, jnp.zeros((1, n_classes, n_classes + 1))])
    sign = jnp.append(jnp.ones(n_classes), -1.0)

    def log_density(log_strength: Float[Array, " cls"]) -> Float[Array, " cls"]:
        strength = jnp.exp(log_strength)
        a = confusion_concentration(params.crowd, strength)
        both = jnp.maximum(jnp.concatenate([a, strength[:, None]], axis=-1), _LEAST)
        log_gammas = gammaln(both + cells)
        of_worker = (log_gammas[:-1] - log_gammas[-1]) @ sign
        z = (log_strength - jnp.log(prior.strength)) / prior.log_strength_scale
        return of_worker.sum(axis=0) - 0.5 * z**2

    drawn = slice_step(rng_key, jnp.log(params.strength), log_density, width=SLICE_WIDTH)
    return jnp.exp(drawn)


CONDITIONALS = Conditionals(
    _first_params,
    _draw_params,
    _log_joint,
    vote_shares,
    # After 200 sweeps, chains on dog still remember the votes. More than 1,000 gain nothing there,
    # nor does a start from EM: what is left is slow, a few tasks that switch between two classes.
    warmup=1000,
)
"""Conditionals of `bayescrowd.models.hierarchical_dawid_skene`."""
