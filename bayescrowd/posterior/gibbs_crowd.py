"""Conditionals of crowd models whose workers are independent: Dawid and Skene's, one-coin, MACE.

Given the true classes, each model's parameters are Dirichlet rows with the counts of what workers
answered added to their concentrations; MACE's also given who knew the answer (see the models).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayescrowd.dirichlet import dirichlet_tables
from bayescrowd.models import dawid_skene, mace, one_coin
from bayescrowd.models.dawid_skene import Labels, confusion_concentration
from bayescrowd.uniforms import draw_uniforms

__all__ = [
    "answer_counts",
    "class_counts",
    "dawid_skene_log_joint",
    "draw_dawid_skene",
    "draw_mace",
    "draw_one_coin",
    "first_dawid_skene",
    "first_mace",
    "first_one_coin",
    "labels_log_joint",
    "mace_log_joint",
    "one_coin_log_joint",
    "vote_shares",
]

_N_STREAMS = 4
"""Stretches of labels that are summed by turns; more gain nothing (rte, 8,000 labels)."""


def vote_shares(labels: Labels, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Share of each class among an item's labels and one vote spread over all classes."""
    votes = jnp.full((n_items, n_classes), 1 / n_classes).at[labels.item, labels.label].add(1.0)
    return votes / votes.sum(axis=1, keepdims=True)


def labels_log_joint(
    confusion: Float[Array, "worker cls observed"],
    prevalence: Float[Array, " cls"],
    labels: Labels,
    *,
    n_items: int,
) -> Float[Array, "item cls"]:
    """The models' `label_log_joint`, several times as fast for labels sorted by item."""
    n_workers, n_classes, n_observed = confusion.shape
    rows = jnp.log(confusion).transpose(1, 0, 2).reshape(n_classes, n_workers * n_observed)
    answer = _dealt(labels.worker * n_observed + labels.label, fill=0)
    item = _dealt(labels.item, fill=n_items)
    # Class by class: sums of numbers take half the time of sums of rows.
    log_answers = jax.lax.map(
        lambda row: jnp.zeros(n_items).at[item].add(row[answer], mode="drop"), rows
    )
    return jnp.log(prevalence) + log_answers.T


def _dealt(codes: Int[Array, " label"], *, fill: int) -> Int[Array, " dealt"]:
    """Codes of labels sorted by item, in an order in which neighbours belong to other items.

    A sum that goes on where it has just been written waits for the memory: a third of the time.
    """
    padded = jnp.pad(codes, (0, -len(codes) % _N_STREAMS), constant_values=fill)
    return padded.reshape(_N_STREAMS, -1).T.ravel()


def class_counts(truth: Int[Array, " item"], n_classes: int) -> Float[Array, " cls"]:
    """Number of items of each class."""
    # Compared, not scattered: all items are added to a few numbers.
    return (truth[:, None] == jnp.arange(n_classes)).sum(axis=0, dtype=jnp.float32)


def answer_counts(
    truth: Int[Array, " item"], labels: Labels, *, n_workers: int, n_classes: int
) -> Float[Array, "worker cls cls"]:
    """How often each worker answered what to items of each class, [worker, true, observed]."""
    # One index instead of three halves the time.
    cell = (labels.worker * n_classes + truth[labels.item]) * n_classes + labels.label
    counts = jnp.zeros(n_workers * n_classes * n_classes).at[cell].add(1.0)
    return counts.reshape(n_workers, n_classes, n_classes)


def first_dawid_skene(
    prior: dawid_skene.Prior, *, n_workers: int, n_classes: int
) -> dawid_skene.Params:
    """Prior means."""
    confusion = confusion_concentration(prior, n_classes) / prior.n_pseudo_labels
    return dawid_skene.Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        confusion=jnp.broadcast_to(confusion, (n_workers, n_classes, n_classes)),
    )


def draw_dawid_skene(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: dawid_skene.Params,
    labels: Labels,
    prior: dawid_skene.Prior,
) -> dawid_skene.Params:
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
    return dawid_skene.Params(prevalence, confusion)


def dawid_skene_log_joint(
    params: dawid_skene.Params, labels: Labels, *, n_items: int
) -> Float[Array, "item cls"]:
    """Log density of each item's labels and each class."""
    return labels_log_joint(params.confusion, params.prevalence, labels, n_items=n_items)


def first_one_coin(prior: one_coin.Prior, *, n_workers: int, n_classes: int) -> one_coin.Params:
    """Prior means."""
    return one_coin.Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        accuracy=jnp.full(n_workers, prior.accuracy),
    )


def draw_one_coin(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: one_coin.Params,
    labels: Labels,
    prior: one_coin.Prior,
) -> one_coin.Params:
    """Parameters given the classes."""
    is_right = truth[labels.item] == labels.label
    coins = _coin_counts(is_right, labels.worker, len(params.accuracy))
    prevalence, rows = dirichlet_tables(
        rng_key,
        [
            prior.prevalence + class_counts(truth, len(params.prevalence)),
            coins + one_coin.accuracy_concentration(prior),
        ],
    )
    return one_coin.Params(prevalence, accuracy=rows[:, 0])


def one_coin_log_joint(
    params: one_coin.Params, labels: Labels, *, n_items: int
) -> Float[Array, "item cls"]:
    """Log density of each item's labels and each class."""
    confusion = one_coin.confusion(params)
    return labels_log_joint(confusion, params.prevalence, labels, n_items=n_items)


def first_mace(prior: mace.Prior, *, n_workers: int, n_classes: int) -> mace.Params:
    """Prior means."""
    return mace.Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        competence=jnp.full(n_workers, prior.knowing / (prior.knowing + prior.spamming)),
        strategy=jnp.full((n_workers, n_classes), 1 / n_classes),
    )


def draw_mace(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: mace.Params,
    labels: Labels,
    prior: mace.Prior,
) -> mace.Params:
    """The coins given classes and parameters, then the parameters given classes and coins."""
    key_coins, key_rows = jax.random.split(rng_key)
    n_workers, n_classes = params.strategy.shape
    knowing = mace.knowing_given_truth(params, labels, truth)
    knew = draw_uniforms(key_coins, knowing.shape) < knowing
    spam = jnp.zeros_like(params.strategy).at[labels.worker, labels.label].add(1.0 - knew)
    prevalence, coins, strategy = dirichlet_tables(
        key_rows,
        [
            prior.prevalence + class_counts(truth, n_classes),
            _coin_counts(knew, labels.worker, n_workers) + mace.competence_concentration(prior),
            spam + prior.strategy,
        ],
    )
    return mace.Params(prevalence, competence=coins[:, 0], strategy=strategy)


def mace_log_joint(
    params: mace.Params, labels: Labels, *, n_items: int
) -> Float[Array, "item cls"]:
    """Log density of each item's labels and each class."""
    return labels_log_joint(mace.confusion(params), params.prevalence, labels, n_items=n_items)


def _coin_counts(
    heads: Bool[Array, " label"], worker: Int[Array, " label"], n_workers: int
) -> Float[Array, "worker coin"]:
    """Heads, then tails of each worker."""
    return jnp.zeros((n_workers, 2)).at[worker, jnp.where(heads, 0, 1)].add(1.0)
