"""Conditionals of the model of task subtypes, all of them exact.

A sweep first draws each item's subtype given its class. Then only the counts ``n[k, j, m, l]`` of
answers matter. With the rows on subtypes integrated out and ``a = s c[k, j] + t e[j, m]``, the
answers of worker k to items of class j and subtype m have a density in proportion to

    prod over l of  Gamma(a_l + n[k, j, m, l]) / Gamma(a_l).

Each factor is a sum over the number of tables of a Chinese restaurant with n customers, one per
label, of which the i-th opens a table with probability ``a / (a + i)``, i = 0 .. n - 1 (Y. W. Teh,
M. I. Jordan, M. J. Beal and D. M. Blei 2006, "Hierarchical Dirichlet processes", JASA 101, section
5.3). A table serves the worker's row with probability ``s c / a`` and else the subtype's. Given the
tables, c and e are Dirichlet rows with their tables added to the concentrations.

In the end the rows on subtypes are Dirichlet(a + n), and the subtypes of each class are renumbered
at random, since all numberings have the same density and one chain should see them all.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.draws.dirichlet import dirichlet_tables, log_gamma
from bayescrowd.draws.uniforms import draw_uniforms
from bayescrowd.models.task_subtypes import (
    N_SUBTYPES,
    Labels,
    Params,
    Prior,
    confusion_concentration,
    pair_prevalence,
    row_concentrations,
    shared_concentration,
)
from bayescrowd.posterior.conditionals.classes import class_counts
from bayescrowd.posterior.conditionals.crowd_labels import (
    answer_counts,
    labels_log_joint,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS", "Tables", "split_tables"]

FIRST_ACCURACIES = (0.9, 0.6)
"""Accuracy on the first and on the last subtype where chains start: easy and misleading tasks."""


class Tables(NamedTuple):
    """Tables of the Chinese restaurants, by whose row they serve."""

    own: Float[Array, "worker cls cls"]
    """Tables of each worker's row, [worker, true, observed], summed over subtypes."""
    shared: Float[Array, "cls subtype cls"]
    """Tables of each subtype's row, [true, subtype, observed], summed over workers."""


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means, but for subtypes that differ in how often workers are right."""
    accuracy = jnp.linspace(*FIRST_ACCURACIES, N_SUBTYPES)[:, None]
    is_right = jnp.eye(n_classes, dtype=bool)[:, None]
    shared = jnp.where(is_right, accuracy, (1 - accuracy) / (n_classes - 1))
    rows = confusion_concentration(prior, n_classes)
    own = rows / rows.sum(axis=-1, keepdims=True)
    return Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        weight=jnp.full((n_classes, N_SUBTYPES), prior.share),
        shared=shared,
        confusion=jnp.broadcast_to(own, (n_workers, n_classes, n_classes)),
        subtype_confusion=jnp.broadcast_to(shared, (n_workers, *shared.shape)),
    )


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """Subtypes given classes and parameters, then the parameters given classes and subtypes."""
    key_pair, key_tables, key_total, key_crowd, key_rows, key_order = jax.random.split(rng_key, 6)
    n_workers, n_classes, n_subtypes, _ = params.subtype_confusion.shape
    n_pairs = n_classes * n_subtypes
    pair = truth * n_subtypes + _draw_subtypes(key_pair, truth, params, labels)
    counts = answer_counts(pair, labels, n_workers=n_workers, n_true=n_pairs, n_classes=n_classes)
    counts = counts.reshape(n_workers, n_classes, n_subtypes, n_classes)
    tables = split_tables(key_tables, counts, params, prior, n_labels=len(labels.label))
    of_pair = class_counts(pair, n_pairs).reshape(n_classes, n_subtypes)
    prevalence, share, shared, confusion = dirichlet_tables(
        key_crowd,
        [
            prior.prevalence + of_pair.sum(axis=-1),
            prior.share + of_pair,
            shared_concentration(prior, n_classes)[:, None] + tables.shared,
            confusion_concentration(prior, n_classes) + tables.own,
        ],
    )
    rows = row_concentrations(confusion, shared, prior)
    (subtype_confusion,) = dirichlet_tables(key_rows, [rows + counts])
    # The weights' sum is independent of their shares, of which alone the labels speak.
    total = jnp.exp(log_gamma(key_total, jnp.full((n_classes, 1), n_subtypes * prior.share)))
    order = jnp.argsort(draw_uniforms(key_order, (n_classes, n_subtypes)), axis=-1)
    return Params(
        prevalence=prevalence,
        weight=jnp.take_along_axis(share, order, axis=-1) * total,
        shared=jnp.take_along_axis(shared, order[:, :, None], axis=1),
        confusion=confusion,
        subtype_confusion=jnp.take_along_axis(subtype_confusion, order[None, :, :, None], axis=2),
    )


def split_tables(
    rng_key: PRNGKeyArray,
    counts: Float[Array, "worker cls subtype cls"],
    params: Params,
    prior: Prior,
    *,
    n_labels: int,
) -> Tables:
    """Draw the tables of all restaurants, and whose row each of them serves.

    A label is a customer. It does not matter which of a cell's labels is its i-th, so labels are
    assigned to the cells in order.
    """
    _, n_classes, n_subtypes, _ = counts.shape
    own = prior.own_strength * params.confusion
    shared = prior.shared_strength * params.shared
    sizes = counts.astype(int).ravel()
    cell = jnp.repeat(jnp.arange(sizes.size), sizes, total_repeat_length=n_labels)
    rank = jnp.arange(n_labels) - (jnp.cumsum(sizes) - sizes)[cell]
    own_cell = cell // (n_subtypes * n_classes) * n_classes + cell % n_classes
    shared_cell = cell % (n_classes * n_subtypes * n_classes)
    a_own, a_shared = own.ravel()[own_cell], shared.ravel()[shared_cell]
    # One uniform number decides both: below s c the worker's table, below a the subtype's.
    u = draw_uniforms(rng_key, (n_labels,)) * (a_own + a_shared + rank)
    is_own = u < a_own
    is_shared = ~is_own & (u < a_own + a_shared)
    return Tables(
        own=jnp.zeros(own.size).at[own_cell].add(is_own).reshape(own.shape),
        shared=jnp.zeros(shared.size).at[shared_cell].add(is_shared).reshape(shared.shape),
    )


def _draw_subtypes(
    rng_key: PRNGKeyArray, truth: Int[Array, " item"], params: Params, labels: Labels
) -> Int[Array, " item"]:
    """Each item's subtype given its class."""
    _, n_classes, n_subtypes, _ = params.subtype_confusion.shape
    by_subtype = jnp.log(params.subtype_confusion).transpose(2, 0, 1, 3).reshape(n_subtypes, -1)
    row = (labels.worker * n_classes + truth[labels.item]) * n_classes + labels.label
    log_answers = jax.lax.map(
        lambda rows: jnp.zeros(len(truth)).at[labels.item].add(rows[row]), by_subtype
    )
    return draw_categories(rng_key, jnp.log(params.weight)[truth] + log_answers.T)


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    n_workers, n_classes, n_subtypes, _ = params.subtype_confusion.shape
    pairs = params.subtype_confusion.reshape(n_workers, n_classes * n_subtypes, n_classes)
    joint = labels_log_joint(pairs, pair_prevalence(params).ravel(), labels, n_items=n_items)
    return logsumexp(joint.reshape(n_items, n_classes, n_subtypes), axis=-1)


CONDITIONALS = Conditionals(_first_params, _draw_params, _log_joint, vote_shares, warmup=1000)
"""Conditionals of `bayescrowd.models.task_subtypes`."""
