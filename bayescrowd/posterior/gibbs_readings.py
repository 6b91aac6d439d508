"""Gibbs steps of the access path model, one feature at a time, for data that keep growing.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 3, where the items' classes are known. The features are
then independent, a posteriori as well, and a feature with new answers can be drawn anew without
looking at the others. A sweep over a feature alternates

    value z of each reading | its class, its labels, the tables:  theta_yi[z] prod theta_zi[x]
    tables | values:  Dirichlet rows, concentrations prior + counts of values and of labels

How to use it, where F features have up to V values, C classes, and readings have W labels:

    prior = concentrations(access_path.Prior(), n_groups=1, n_classes=C, n_values=(3, 5, ...))
    tables = prior_means(prior)                      # conditional [F, C, V], confusion [F, 1, V, V]
    readings = no_readings(prior, n_slots=64)        # NumPy arrays that the caller fills
    readings.target[f, slot] = y                     # -1 while the slot is empty
    readings.counts[f, slot, 0] = [2, 0, 3]          # how many of the W labels named each value
    row = sweep_feature(key, feature_of(tables, f), feature_of(readings, f), feature_of(prior, f))
    tables = with_feature(tables, f, row)            # the draw: P(value | class), P(label | value)

`feature_of` cuts the row of one feature out of a tuple of arrays, so what a step costs does not
depend on the other features. All features are as wide as the widest and have the same number of
slots: `sweep_feature` compiles once for all of them. It compiles anew when the number of slots
changes: `grown` doubles it, or `n_slots` is budget / W from the start. `sweep` is the step of all
features at once, `run_feature` keeps the draws of many steps. A state is warm: it goes on when
readings have been added in between. Workers in groups have counts [slot, group, value].
`sweep_chains` is the step of many chains of one feature, told by the counts of their values: given
these the tables are Dirichlet rows, so that means are averages of closed forms over few chains.

Whatever is averaged over draws has to be the same under a renaming of the hidden values: the
`channel`, P(label | class), is; `conditional` and `confusion` by themselves are not.

In naive Bayes nothing is hidden, `counts[F, C, V]` of the values of each class are all there is to
know, and draws are independent: ``dirichlet_rows(key, concentrations + counts)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.categorical import draw_categories
from bayescrowd.dirichlet import LOG_LEAST, dirichlet_rows
from bayescrowd.models import access_path

__all__ = [
    "Readings",
    "Tables",
    "channel",
    "concentrations",
    "feature_of",
    "grown",
    "no_readings",
    "prior_means",
    "run_feature",
    "sweep",
    "sweep_chains",
    "sweep_feature",
    "with_feature",
]

AnyArray = Array | np.ndarray
Rows = TypeVar("Rows", bound=tuple[Any, ...])


class Tables(NamedTuple):
    """A draw of both tables, or their Dirichlet concentrations; zero beyond a feature's values."""

    conditional: Float[AnyArray, "*feature cls value"]
    """Probability of each value given the class (theta_yi)."""
    confusion: Float[AnyArray, "*feature group value value"]
    """Probability of each label, indexed [group, true, observed] (theta_zij)."""


class Readings(NamedTuple):
    """Everything that is known of the features."""

    target: Int[AnyArray, "*feature slot"]
    """Class of the item that was read, -1 where the slot is empty."""
    counts: Float[AnyArray, "*feature slot group value"]
    """How many of the reading's labels, by workers of each group, name each value."""


def concentrations(
    prior: access_path.Prior, *, n_groups: int, n_classes: int, n_values: tuple[int, ...]
) -> Tables:
    """Dirichlet concentrations of every row before any reading."""
    conditional = access_path.conditional_concentration(
        prior, n_classes=n_classes, n_values=n_values
    )
    confusion = access_path.confusion_concentration(prior, n_values=n_values)[:, None]
    n_features, _, width, _ = confusion.shape
    shape = (n_features, n_groups, width, width)
    return Tables(conditional, jnp.broadcast_to(confusion, shape))


def prior_means(prior: Tables) -> Tables:
    """Tables to start from: the prior's means, where workers are mostly right."""
    return Tables(*(rows / jnp.maximum(rows.sum(axis=-1, keepdims=True), 1e-30) for rows in prior))


def no_readings(prior: Tables, *, n_slots: int) -> Readings:
    """Empty slots for the readings of each feature, as NumPy arrays that may be written to."""
    n_features, n_groups, width, _ = prior.confusion.shape
    return Readings(
        target=np.full((n_features, n_slots), -1, dtype=np.int32),
        counts=np.zeros((n_features, n_slots, n_groups, width), dtype=np.float32),
    )


def grown(readings: Readings) -> Readings:
    """The same readings with twice as many slots, the new ones empty."""
    target, counts = (np.asarray(field) for field in readings)
    more = target.shape[1]
    return Readings(
        target=np.pad(target, ((0, 0), (0, more)), constant_values=-1),
        counts=np.pad(counts, ((0, 0), (0, more), (0, 0), (0, 0))),
    )


def feature_of(rows: Rows, feature: int) -> Rows:
    """The part of one feature in tables or readings of all."""
    return type(rows)(*(field[feature] for field in rows))


def with_feature(tables: Tables, feature: int, row: Tables) -> Tables:
    """Tables of all features with those of one replaced; NumPy arrays, the others are copied."""
    copies = Tables(*(np.array(field) for field in tables))
    for copy, value in zip(copies, row, strict=True):
        copy[feature] = value
    return copies


@jax.jit
def sweep_feature(
    rng_key: PRNGKeyArray, tables: Tables, readings: Readings, prior: Tables
) -> Tables:
    """One Gibbs step of one feature: values of its readings given its tables, then new tables.

    Args:
        rng_key: the source of randomness.
        tables: the feature's draw before, without the axis of features.
        readings: the feature's readings.
        prior: the feature's concentrations.
    """
    return _sweep(rng_key, tables, readings, prior)


@jax.jit
def sweep(rng_key: PRNGKeyArray, tables: Tables, readings: Readings, prior: Tables) -> Tables:
    """One Gibbs step of every feature; arguments as in `sweep_feature`, of all features."""
    keys = jax.random.split(rng_key, len(tables.conditional))
    return jax.vmap(_sweep)(keys, tables, readings, prior)


@jax.jit
def sweep_chains(rng_key: PRNGKeyArray, concentration: Tables, readings: Readings) -> Tables:
    """One Gibbs step of many chains of one feature: tables given values, then new values.

    Args:
        rng_key: the source of randomness.
        concentration: of each chain's tables given its values, along a leading axis: prior +
            counts. Readings that have been added since have no value in them yet.
        readings: the feature's readings.

    Returns:
        Counts of the new values: of readings by [chain, cls, value], of labels by [chain, group,
        value, value].
    """
    key_tables, key_value = jax.random.split(rng_key)
    n_chains, n_classes, n_values = concentration.conditional.shape
    confusion = concentration.confusion.reshape(n_chains, -1, n_values)
    stacked = jnp.concatenate([concentration.conditional, confusion], axis=1)
    rows = dirichlet_rows(key_tables, stacked)
    shape = concentration.confusion.shape
    tables = Tables(rows[:, :n_classes], rows[:, n_classes:].reshape(shape))
    log_weights = jax.vmap(_value_log_weights, in_axes=(0, None))(tables, readings)
    value = draw_categories(key_value, log_weights)
    return jax.vmap(lambda one: _value_counts(one, readings, n_classes, n_values))(value)


def run_feature(
    rng_key: PRNGKeyArray, tables: Tables, readings: Readings, prior: Tables, *, n_draws: int
) -> Tables:
    """Tables of `n_draws` steps in a row, along a leading axis; compiles for each number.

    Examples:
        One feature of two values, ten items of each of two classes, three labels for each:

        >>> import jax, numpy as np
        >>> from bayescrowd.models import access_path
        >>> prior = concentrations(access_path.Prior(), n_groups=1, n_classes=2, n_values=(2,))
        >>> readings = no_readings(prior, n_slots=20)
        >>> readings.target[0] = np.repeat([0, 1], 10)
        >>> readings.counts[0, :, 0] = np.where(readings.target.T == 0, [3, 0], [1, 2])
        >>> one = [feature_of(rows, 0) for rows in (prior_means(prior), readings, prior)]
        >>> draws = run_feature(jax.random.key(0), *one, n_draws=200)
        >>> draws.conditional.shape
        (200, 2, 2)
        >>> bool(channel(draws).mean(axis=0)[0, 0, 0] > 0.85)
        True
    """
    return _run_feature(jax.random.split(rng_key, n_draws), tables, readings, prior)


def channel(tables: Tables) -> Float[AnyArray, "*feature cls group value"]:
    """P(label of a worker in each group | class), the same under a renaming of the values."""
    return jnp.einsum("...cz,...gzx->...cgx", tables.conditional, tables.confusion)


@jax.jit
def _run_feature(keys: Any, tables: Tables, readings: Readings, prior: Tables) -> Tables:
    def step(tables: Tables, key: PRNGKeyArray) -> tuple[Tables, Tables]:
        drawn = _sweep(key, tables, readings, prior)
        return drawn, drawn

    return jax.lax.scan(step, Tables(*map(jnp.asarray, tables)), keys)[1]


def _sweep(rng_key: PRNGKeyArray, tables: Tables, readings: Readings, prior: Tables) -> Tables:
    key_value, key_tables = jax.random.split(rng_key)
    value = draw_categories(key_value, _value_log_weights(tables, readings))
    return _draw_tables(key_tables, value, readings, prior)


def _value_log_weights(tables: Tables, readings: Readings) -> Float[Array, "slot value"]:
    """log theta_yi[z] + sum over the reading's labels of log theta_zij[x]."""
    # Labels beyond a feature's values do not occur: any finite number times zero will do.
    log_confusion = jnp.log(jnp.maximum(tables.confusion, jnp.exp(LOG_LEAST)))
    log_answers = jnp.einsum("sgx,gzx->sz", readings.counts, log_confusion)
    return jnp.log(tables.conditional)[readings.target] + log_answers


def _draw_tables(
    rng_key: PRNGKeyArray, value: Int[Array, " slot"], readings: Readings, prior: Tables
) -> Tables:
    """Both tables in one call of the generator; empty slots are of no class and count nothing."""
    n_classes, n_values = prior.conditional.shape
    counts = _value_counts(value, readings, n_classes, n_values)
    conditional = prior.conditional + counts.conditional
    confusion = prior.confusion + counts.confusion
    stacked = jnp.concatenate([conditional, confusion.reshape(-1, n_values)])
    rows = dirichlet_rows(rng_key, stacked)
    return Tables(rows[:n_classes], rows[n_classes:].reshape(prior.confusion.shape))


def _value_counts(
    value: Int[Array, " slot"], readings: Readings, n_classes: int, n_values: int
) -> Tables:
    """How many readings of each class have each value, and labels of readings with each value."""
    is_class = jax.nn.one_hot(readings.target, n_classes)
    is_value = jax.nn.one_hot(value, n_values)
    confusion = jnp.einsum("sz,sgx->gzx", is_value, readings.counts)
    return Tables(is_class.T @ is_value, confusion)
