"""Conditionals of MACE.

Given the true classes and, for each label, whether its worker knew the answer, prevalence,
competences and strategies are Dirichlet rows with the counts added to their concentrations (see
`bayescrowd.models.mace`).

A competence near 1 makes all coins heads, and coins that are all heads keep it there. Competences
are therefore first drawn with the coins summed out, by slice sampling of their logits: worker k
with ``n[k, l]`` labels l, ``r[k, l]`` of them right, has the likelihood

    prod over l of  (theta + (1 - theta) xi[k, l])^r[k, l]  ((1 - theta) xi[k, l])^(n - r)[k, l].

Coins drawn given these competences then make one draw of both (competence and coins given classes
and strategies), after which strategies and competences are drawn given the coins.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.draws.uniforms import draw_uniforms
from bayescrowd.models.mace import (
    Labels,
    Params,
    Prior,
    competence_concentration,
    confusion,
    knowing_given_truth,
)
from bayescrowd.posterior.conditionals.classes import class_counts
from bayescrowd.posterior.conditionals.crowd_labels import (
    coin_counts,
    labels_log_joint,
    log_dirichlet_multinomial,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Collapsed, Conditionals
from bayescrowd.posterior.conditionals.slices import slice_step

__all__ = ["CONDITIONALS"]

SLICE_WIDTH = 2.0
"""First guess of a slice's width, in logits of a competence."""

LEAST_HEADS = 1e-4
"""Least probability with which a jump proposes either side of a coin."""

COMPETENCES = (1e-30, 1 - 2**-24)
"""Single precision's limits, between which the logit of a competence is finite."""


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means."""
    return Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        competence=jnp.full(n_workers, prior.knowing / (prior.knowing + prior.spamming)),
        strategy=jnp.full((n_workers, n_classes), 1 / n_classes),
    )


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """Competences, then coins given classes and parameters, then the parameters given both."""
    key_slice, key_coins, key_rows = jax.random.split(rng_key, 3)
    params = params._replace(competence=_draw_competence(key_slice, truth, params, labels, prior))
    knew = _rest_of(key_coins, truth, params, labels)
    return _given_coins(key_rows, knew, truth, params, labels, prior)


def _given_coins(
    rng_key: PRNGKeyArray,
    knew: Bool[Array, " label"],
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """Parameters given classes and coins."""
    n_workers, n_classes = params.strategy.shape
    spam = jnp.zeros_like(params.strategy).at[labels.worker, labels.label].add(~knew)
    prevalence, coins, strategy = dirichlet_tables(
        rng_key,
        [
            prior.prevalence + class_counts(truth, n_classes),
            coin_counts(knew, labels.worker, n_workers) + competence_concentration(prior),
            spam + prior.strategy,
        ],
    )
    return Params(prevalence, competence=coins[:, 0], strategy=strategy)


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    return labels_log_joint(confusion(params), params.prevalence, labels, n_items=n_items)


def _draw_competence(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Float[Array, " worker"]:
    """Competences given classes and strategies, with the coins summed out."""
    is_right = truth[labels.item] == labels.label
    right = jnp.zeros_like(params.strategy).at[labels.worker, labels.label].add(is_right)
    n_wrong = jnp.zeros(len(right)).at[labels.worker].add(~is_right)

    def log_density(logit: Float[Array, " worker"]) -> Float[Array, " worker"]:
        log_known, log_spammed = jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)
        of_right = jnp.logaddexp(log_known[:, None], log_spammed[:, None] + log_strategy)
        # The logit's density is that of the competence times theta (1 - theta).
        of_prior = prior.knowing * log_known + prior.spamming * log_spammed
        return (right * of_right).sum(axis=-1) + n_wrong * log_spammed + of_prior

    log_strategy = jnp.log(params.strategy)
    start = jax.scipy.special.logit(jnp.clip(params.competence, *COMPETENCES))
    return jax.nn.sigmoid(slice_step(rng_key, start, log_density, width=SLICE_WIDTH))


def _log_density(
    truth: Int[Array, " item"],
    knew: Bool[Array, " label"],
    labels: Labels,
    prior: Prior,
    *,
    n_workers: int,
    n_classes: int,
) -> Float[Array, ""]:
    """Log density of classes, coins and labels, all parameters integrated out."""
    spam = jnp.zeros((n_workers, n_classes)).at[labels.worker, labels.label].add(~knew)
    coins = coin_counts(knew, labels.worker, n_workers)
    tables = [
        (class_counts(truth, n_classes)[None], jnp.full((1, n_classes), prior.prevalence)),
        (coins, jnp.broadcast_to(competence_concentration(prior), coins.shape)),
        (spam, jnp.full(spam.shape, prior.strategy)),
    ]
    is_possible = (~knew | (truth[labels.item] == labels.label)).all()
    density = sum(log_dirichlet_multinomial(*table).sum() for table in tables)
    return jnp.where(is_possible, density, -jnp.inf)


def _fit(draws: Mapping[str, np.ndarray]) -> Params:
    """Mean parameters, with which coins are proposed."""
    means = {name: values.mean(axis=0, dtype=float) for name, values in draws.items()}
    return Params(**{name: jnp.asarray(mean, dtype=jnp.float32) for name, mean in means.items()})


def _propose(
    rng_key: PRNGKeyArray, truth: Int[Array, " item"], proposal: Params, labels: Labels
) -> Bool[Array, " label"]:
    """Coins given classes and parameters."""
    return draw_uniforms(rng_key, labels.label.shape) < _heads(proposal, labels, truth)


def _log_proposal(
    knew: Bool[Array, " label"], truth: Int[Array, " item"], proposal: Params, labels: Labels
) -> Float[Array, ""]:
    heads = _heads(proposal, labels, truth)
    of_coins = jnp.log(jnp.where(knew, heads, 1 - heads))
    return jnp.where(truth[labels.item] == labels.label, of_coins, 0.0).sum()


def _heads(params: Params, labels: Labels, truth: Int[Array, " item"]) -> Float[Array, " label"]:
    """Probability that each label was known; both outcomes stay possible where it is right."""
    heads = knowing_given_truth(params, labels, truth)
    is_right = truth[labels.item] == labels.label
    return jnp.where(is_right, jnp.clip(heads, LEAST_HEADS, 1 - LEAST_HEADS), 0.0)


def _rest_of(
    rng_key: PRNGKeyArray, truth: Int[Array, " item"], params: Params, labels: Labels
) -> Bool[Array, " label"]:
    """Coins of a draw, which has none itself."""
    knowing = knowing_given_truth(params, labels, truth)
    return draw_uniforms(rng_key, knowing.shape) < knowing


CONDITIONALS = Conditionals(
    _first_params,
    _draw_params,
    _log_joint,
    vote_shares,
    collapsed=Collapsed(_log_density, _fit, _propose, _log_proposal, _rest_of, _given_coins),
    # A coin for each label, and slices.
    work=3.0,
)
"""Conditionals of `bayescrowd.models.mace`."""
