"""What the conditionals of crowd models share: counts of the labels, and their log density.

Given the true classes, the parameters of these models are Dirichlet rows: the counts of the
workers' answers are added to the concentrations of the prior.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bayescrowd.models.dawid_skene import Labels, keep_gold
from bayescrowd.posterior.conditionals.protocol import Collapsed

__all__ = [
    "answer_counts",
    "classes_alone",
    "coin_counts",
    "labels_log_joint",
    "log_dirichlet_multinomial",
    "log_gamma_function",
    "vote_shares",
]

_N_STREAMS = 4
"""Number of stretches of labels that are summed in turn; more gain nothing (rte, 8,000 labels)."""


def vote_shares(labels: Labels, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Share of each class among an item's labels and one vote spread over all classes.

    An item whose class is known has that class alone.
    """
    votes = jnp.full((n_items, n_classes), 1 / n_classes).at[labels.item, labels.label].add(1.0)
    shares = votes / votes.sum(axis=1, keepdims=True)
    if labels.gold is None:
        return shares
    is_known = (labels.gold >= 0)[:, None]
    return jnp.where(is_known, jax.nn.one_hot(labels.gold, n_classes), shares)


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
    answer = _interleave(labels.worker * n_observed + labels.label, fill=0)
    item = _interleave(labels.item, fill=n_items)
    # Class by class: sums of numbers take half the time of sums of rows.
    log_answers = jax.lax.map(
        lambda row: jnp.zeros(n_items).at[item].add(row[answer], mode="drop"), rows
    )
    return keep_gold(jnp.log(prevalence) + log_answers.T, labels.gold, n_classes=n_observed)


def _interleave(codes: Int[Array, " label"], *, fill: int) -> Int[Array, " padded"]:
    """Reorder codes that are sorted by item so that neighbours belong to different items.

    Adding twice in a row to the same place waits for the memory, which takes three times as long.
    """
    padded = jnp.pad(codes, (0, -len(codes) % _N_STREAMS), constant_values=fill)
    return padded.reshape(_N_STREAMS, -1).T.ravel()


def answer_counts(
    truth: Int[Array, " item"],
    labels: Labels,
    *,
    n_workers: int,
    n_classes: int,
    n_true: int | None = None,
) -> Float[Array, "worker true cls"]:
    """Number of times each worker gave each answer to items of each class.

    Indexed [worker, true, observed]. Where a model divides classes further, `n_true` is the number
    of the parts that `truth` tells apart.
    """
    n_true = n_true or n_classes
    # One index instead of three halves the time.
    cell = (labels.worker * n_true + truth[labels.item]) * n_classes + labels.label
    counts = jnp.zeros(n_workers * n_true * n_classes).at[cell].add(1.0)
    return counts.reshape(n_workers, n_true, n_classes)


def coin_counts(
    heads: Bool[Array, " label"], worker: Int[Array, " label"], n_workers: int
) -> Float[Array, "worker coin"]:
    """Number of heads and of tails of each worker, in this order."""
    return jnp.zeros((n_workers, 2)).at[worker, jnp.where(heads, 0, 1)].add(1.0)


def classes_alone(log_density: Callable[..., Float[Array, ""]]) -> Collapsed:
    """The collapsed density of a model whose parameters all integrate out given the classes.

    Args:
        log_density: (truth, labels, prior, *, n_workers, n_classes) -> log density.
    """
    return Collapsed(
        log_density=lambda truth, _, *data, **sizes: log_density(truth, *data, **sizes),
        fit=lambda _: (),
        propose=lambda *_: (),
        log_proposal=lambda *_: jnp.zeros(()),
        rest_of=lambda *_: (),
        params_of=lambda _key, _rest, _truth, params, _labels, _prior: params,
    )


def log_dirichlet_multinomial(
    counts: Float[Array, "*batch outcome"], concentration: Float[Array, "*batch outcome"]
) -> Float[Array, "*batch"]:
    """Log probability of a sequence with these counts, its Dirichlet row integrated out."""
    n, a = counts, concentration
    both = jnp.stack([a + n, a])
    of_outcomes, of_totals = log_gamma_function(both), log_gamma_function(both.sum(axis=-1))
    return (of_outcomes[0] - of_outcomes[1]).sum(axis=-1) - (of_totals[0] - of_totals[1])


def log_gamma_function(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Log Gamma(x) by Stirling's series at x + 4, right to rounding in single precision for x > 0.

    JAX's function takes eight times as long.
    """
    y = x + 4.0
    inverse = 1.0 / y
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    shift = jnp.log(x * (x + 1.0)) + jnp.log((x + 2.0) * (x + 3.0))
    return (y - 0.5) * jnp.log(y) - y + 0.5 * jnp.log(2 * jnp.pi) + series - shift
