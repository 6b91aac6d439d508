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
- Names of two classes may be exchanged (`bayescrowd.posterior.conditionals.names`).

Each draw leaves the posterior given the classes invariant; none of them is approximate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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
    log_dirichlet_multinomial,
    log_gamma_function,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Collapsed, Conditionals, Naming
from bayescrowd.posterior.conditionals.slices import slice_step

__all__ = ["CONDITIONALS"]

SLICE_WIDTH = 1.0
"""First guess of a slice's width, in log pseudo-labels: two or three posterior deviations."""

LEAST_SCALE = 1e-3
"""Least standard deviation with which a jump proposes a log strength."""

_LEAST = 1e-30
"""Floor of the concentrations: its log-gamma is finite in single precision."""


class Crowd(NamedTuple):
    """The parameters that stay when the workers' rows are integrated out."""

    crowd: Float[Array, "cls cls"]
    """The crowd's rows (m)."""
    log_strength: Float[Array, " cls"]
    """Logarithms of their strengths (log s)."""


class CrowdProposal(NamedTuple):
    """Dirichlet rows and normal log strengths with the means and spreads of draws."""

    concentration: Float[Array, "cls cls"]
    """Concentrations of the crowd's rows."""
    mean: Float[Array, " cls"]
    """Means of log strengths."""
    scale: Float[Array, " cls"]
    """Standard deviations of log strengths."""


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means, and the median strength."""
    rows = crowd_concentration(prior, n_classes)
    crowd = rows / rows.sum(axis=-1, keepdims=True)
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


def _log_prior_of_names(params: Params, prior: Prior) -> Float[Array, "cls name"]:
    """The parts of the log prior that depend on both class and name.

    The workers' rows scatter around the crowd's in the same way under all names.
    """
    z = (jnp.log(params.strength)[:, None] - jnp.log(prior.strength)) / prior.log_strength_scale
    log_crowd = jnp.log(jnp.maximum(params.crowd, _LEAST))
    log_prevalence = jnp.log(jnp.maximum(params.prevalence, _LEAST))
    concentration = crowd_concentration(prior, len(params.prevalence))
    return (
        ((concentration - 1) * log_crowd[:, None]).sum(axis=-1)
        - 0.5 * z**2
        + (prior.prevalence - 1) * log_prevalence[:, None]
    )


def _rename(params: Params, naming: Int[Array, " name"]) -> Params:
    return Params(
        prevalence=params.prevalence[naming],
        crowd=params.crowd[naming],
        strength=params.strength[naming],
        confusion=params.confusion[:, naming],
    )


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    return labels_log_joint(params.confusion, params.prevalence, labels, n_items=n_items)


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


def _log_density(
    truth: Int[Array, " item"],
    rest: Crowd,
    labels: Labels,
    prior: Prior,
    *,
    n_workers: int,
    n_classes: int,
) -> Float[Array, ""]:
    """Log density of classes, crowd and labels, the workers' rows integrated out."""
    counts = answer_counts(truth, labels, n_workers=n_workers, n_classes=n_classes)
    rows = confusion_concentration(rest.crowd, jnp.exp(rest.log_strength))
    rows = jnp.maximum(jnp.broadcast_to(rows, counts.shape), _LEAST)
    z = (rest.log_strength - jnp.log(prior.strength)) / prior.log_strength_scale
    return (
        log_dirichlet_multinomial(
            class_counts(truth, n_classes), jnp.full(n_classes, prior.prevalence)
        )
        + log_dirichlet_multinomial(counts, rows).sum()
        + _log_dirichlet(rest.crowd, crowd_concentration(prior, n_classes))
        + _log_normal(z, jnp.full(n_classes, prior.log_strength_scale))
    )


def _fit(draws: Mapping[str, np.ndarray]) -> CrowdProposal:
    """Fit means, and of each row the sum of the variances."""
    crowd = draws["crowd"].astype(float)
    mean, variance = crowd.mean(axis=0), crowd.var(axis=0)
    total = (mean * (1 - mean)).sum(axis=-1) / np.maximum(variance.sum(axis=-1), 1e-12) - 1
    log_strength = np.log(draws["strength"].astype(float))
    fitted = CrowdProposal(
        concentration=np.maximum(total[:, None], 1.0) * mean,
        mean=log_strength.mean(axis=0),
        scale=np.maximum(log_strength.std(axis=0), LEAST_SCALE),
    )
    return CrowdProposal(*(jnp.asarray(field, dtype=jnp.float32) for field in fitted))


def _propose(
    rng_key: PRNGKeyArray, truth: Int[Array, " item"], proposal: CrowdProposal, labels: Labels
) -> Crowd:
    key_crowd, key_strength = jax.random.split(rng_key)
    (crowd,) = dirichlet_tables(key_crowd, [proposal.concentration])
    noise = jax.random.normal(key_strength, proposal.mean.shape)
    return Crowd(crowd, proposal.mean + proposal.scale * noise)


def _log_proposal(
    rest: Crowd, truth: Int[Array, " item"], proposal: CrowdProposal, labels: Labels
) -> Float[Array, ""]:
    z = (rest.log_strength - proposal.mean) / proposal.scale
    return _log_dirichlet(rest.crowd, proposal.concentration) + _log_normal(z, proposal.scale)


def _rest_of(
    rng_key: PRNGKeyArray, truth: Int[Array, " item"], params: Params, labels: Labels
) -> Crowd:
    return Crowd(params.crowd, jnp.log(params.strength))


def _params_of(
    rng_key: PRNGKeyArray,
    rest: Crowd,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    return params._replace(crowd=rest.crowd, strength=jnp.exp(rest.log_strength))


def _log_dirichlet(
    rows: Float[Array, "cls cls"], concentration: Float[Array, "cls cls"]
) -> Float[Array, ""]:
    of_rows = ((concentration - 1) * jnp.log(jnp.maximum(rows, _LEAST))).sum()
    total = log_gamma_function(concentration.sum(axis=-1)).sum()
    return of_rows + total - log_gamma_function(concentration).sum()


def _log_normal(z: Float[Array, " cls"], scale: Float[Array, " cls"]) -> Float[Array, ""]:
    return (-0.5 * z**2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)).sum()


CONDITIONALS = Conditionals(
    _first_params,
    _draw_params,
    _log_joint,
    vote_shares,
    collapsed=Collapsed(_log_density, _fit, _propose, _log_proposal, _rest_of, _params_of),
    # After 200 sweeps, chains on dog still remember the votes. More than 1,000 gain nothing there,
    # nor does a start from EM: what is left is slow, a few tasks that switch between two classes.
    warmup=1000,
    # Some ten looks at log-gamma functions of all cells, and tables.
    work=2.5,
    naming=Naming(_log_prior_of_names, _rename),
)
"""Conditionals of `bayescrowd.models.hierarchical_dawid_skene`."""
