"""Conditionals of Dawid and Skene's model.

Given the true classes, prevalence and confusion matrices are Dirichlet rows with the counts of
classes and answers added to their concentrations (see `bayescrowd.models.dawid_skene`).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models.dawid_skene import Labels, Params, Prior, confusion_concentration
from bayescrowd.posterior.conditionals.classes import class_counts
from bayescrowd.posterior.conditionals.crowd_labels import (
    answer_counts,
    classes_alone,
    labels_log_joint,
    log_dirichlet_multinomial,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS"]


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means."""
    rows = confusion_concentration(prior, n_classes)
    confusion = rows / rows.sum(axis=-1, keepdims=True)
    return Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        confusion=jnp.broadcast_to(confusion, (n_workers, n_classes, n_classes)),
    )


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """Parameters given the classes."""
    n_workers, n_classes, _ = params.confusion.shape
    counts = answer_counts(truth, labels, n_workers=n_workers, n_classes=n_classes)
    prevalence, confusion = dirichlet_tables(
        rng_key,
        [
            prior.prevalence + class_counts(truth, n_classes),
            counts + confusion_concentration(prior, n_classes),
        ],
    )
    return Params(prevalence, confusion)


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    return labels_log_joint(params.confusion, params.prevalence, labels, n_items=n_items)


def _log_density(
    truth: Int[Array, " item"], labels: Labels, prior: Prior, *, n_workers: int, n_classes: int
) -> Float[Array, ""]:
    """Log density of classes and labels, all parameters integrated out."""
    counts = answer_counts(truth, labels, n_workers=n_workers, n_classes=n_classes)
    of_classes = class_counts(truth, n_classes)
    rows = jnp.broadcast_to(confusion_concentration(prior, n_classes), counts.shape)
    return (
        log_dirichlet_multinomial(of_classes, jnp.full(n_classes, prior.prevalence))
        + log_dirichlet_multinomial(counts, rows).sum()
    )


CONDITIONALS = Conditionals(
    _first_params,
    _draw_params,
    _log_joint,
    vote_shares,
    collapsed=classes_alone(_log_density),
)
"""Conditionals of `bayescrowd.models.dawid_skene`."""
