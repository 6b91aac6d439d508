"""Conditionals of the pooled Dawid–Skene model: workers, the crowd behind them, and its strength.

Given the classes, only the counts ``n[k, j, l]`` of answers matter. The workers' rows are
integrated out to draw the crowd's (see `bayescrowd.models.hierarchical_dawid_skene`): with
``a = s_j m[j]``, worker k's counts for class j have the Dirichlet-multinomial density

    Gamma(s) / Gamma(s + n[k, j, .])  prod over l of  Gamma(a_l + n[k, j, l]) / Gamma(a_l).

- Strengths s: slice sampling of log s (`bayescrowd.posterior.conditionals.slices`), of all classes
  at once.
- The crowd's rows m: Gamma(a + n) / Gamma(a) is a sum over t of Stirling numbers times a^t, and
  given the t[k, j, l] the row m[j] is a Dirichlet with their sums over workers added to its
  concentrations (Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei 2006, "Hierarchical Dirichlet
  processes", JASA 101, section 5.3). t is the number of tables that n customers of a Chinese
  restaurant sit at: a sum of Bernoulli(a / (a + i)), i = 0 .. n - 1, one for each label.
- The workers' rows: Dirichlet(s_j m[j] + n[k, j]).

Each draw leaves the posterior given the classes invariant; none of them is approximate.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.draws.uniforms import draw_uniforms
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
    log_gamma_function,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Conditionals
from bayescrowd.posterior.conditionals.slices import slice_step

__all__ = ["CONDITIONALS", "table_counts"]

SLICE_WIDTH = 1.0
"""First guess of a slice's width, in log pseudo-labels: two or three posterior deviations."""

_LEAST = 1e-30
"""Floor of the concentrations: its log-gamma is finite in single precision."""


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


def table_counts(
    rng_key: PRNGKeyArray,
    counts: Float[Array, "worker cls cls"],
    concentration: Float[Array, "cls cls"],
    *,
    n_labels: int,
) -> Float[Array, "cls cls"]:
    """Tables of the Chinese restaurants of each [true, observed], summed over workers.

    A label is a customer. It does not matter which of a cell's labels is its i-th, so labels are
    assigned to the cells in order.
    """
    n_cells = concentration.size
    sizes = counts.reshape(-1, n_cells).astype(int).ravel()
    cell = jnp.repeat(jnp.arange(len(sizes)), sizes, total_repeat_length=n_labels)
    rank = jnp.arange(n_labels) - (jnp.cumsum(sizes) - sizes)[cell]
    a = concentration.ravel()[cell % n_cells]
    opens = draw_uniforms(rng_key, (n_labels,)) * (a + rank) < a
    return jnp.zeros(n_cells).at[cell % n_cells].add(opens).reshape(concentration.shape)


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
        log_gammas = log_gamma_function(both + cells)
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
