"""Conditionals of the access path model: one sweep for whole tables, warm chains, groups and EM.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 3. A sweep alternates

    value z of each reading | its class, its labels, the tables:  theta_yi[z] prod theta_zij[x]
    tables | classes, values:  Dirichlet rows, concentrations prior + counts of values and labels

An unknown class is drawn given the tables with the values summed out
(`access_path.label_log_joint`), so that the class and the values of an item are one draw given the
tables. A known class is never drawn anew.

`sweep` takes readings in either of two layouts, each of which states both conditionals:
`TableReadings` lists the labels of all features one by one, with workers in groups;
`FeatureReadings` counts the labels of one feature, with all workers alike. It is what four samplers
have in common:

* `CONDITIONALS`: whole tables, for `bayescrowd.posterior.gibbs`. The state is the tables.
* `sweep_chains`: many chains of one feature whose classes are all known, for data that keep
  growing. Features are then independent a posteriori as well, so a feature with new answers is
  drawn anew without looking at the others. The state is the concentrations given the values, so
  that means are averages of closed forms over few chains.
* `access_path_groups.sweep_groups`: the same chains with equal readings counted together.
* `access_path_groups.posterior_mode`: EM, where a value's expectation takes the place of its draw.

Only quantities that do not change when the hidden values are renamed may be averaged over draws:
P(label | class) is one; `conditional` and `confusion` by themselves are not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, PRNGKeyArray

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.draws.dirichlet import dirichlet_rows, dirichlet_tables
from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.crowd_labels import class_counts
from bayescrowd.posterior.conditionals.naive_bayes import known_classes
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = [
    "CONDITIONALS",
    "LEAST",
    "FeatureReadings",
    "Readings",
    "TableReadings",
    "Tables",
    "draw_params",
    "first_params",
    "prior_concentrations",
    "sweep",
    "sweep_chains",
]

LEAST = 1e-300
"""Floor under logarithms of probabilities in double precision.

Weights of exp(log tiny) would be subnormal numbers, which processors are slow at.
"""

AnyArray = Any
"""A NumPy or a JAX array: the formulas are the same for both."""

Params = TypeVar("Params", contravariant=True)
Values = TypeVar("Values", contravariant=True)


class Tables(NamedTuple):
    """Both tables, or their Dirichlet concentrations; zero beyond a feature's values."""

    conditional: Float[AnyArray, "*batch cls value"]
    """Probability of each value given the class (theta_yi)."""
    confusion: Float[AnyArray, "*batch value value"]
    """Probability of each label given the value, indexed [true, observed] (theta_zij)."""


@runtime_checkable
class Readings(Protocol[Params, Values]):
    """Readings of items whose classes are given, in some layout."""

    def value_log_weights(self, tables: Params) -> Float[AnyArray, "*chain reading value"]:
        """Log theta_yi[z] + sum over the reading's labels of log theta_zij[x]."""

    def add_counts(self, rows: Tables, values: Values) -> Tables:
        """Add the readings by class and value, and their labels by value, to concentrations."""


def sweep(
    tables: Params,
    readings: Readings[Params, Values],
    prior: Tables,
    choose: Callable[[Float[AnyArray, "*chain reading value"]], Values],
) -> Tables:
    """Choose the values of the readings given the tables; return what the tables are drawn from.

    Args:
        tables: the tables before.
        readings: the readings, with the classes of their items.
        prior: concentrations of the tables before any reading.
        choose: values from the logarithms of their weights, which need not be normalised.

    Returns:
        Concentrations of the tables given the new values.
    """
    return readings.add_counts(prior, choose(readings.value_log_weights(tables)))


class TableReadings(NamedTuple):
    """Readings of whole tables, whose labels are listed one by one."""

    truth: Int[Array, " item"]
    """Class of each item, drawn or known."""
    observations: access_path.Observations
    """Readings and labels."""

    def value_log_weights(self, tables: access_path.Params) -> Float[Array, "reading value"]:
        """See `Readings`."""
        log_joint = access_path.value_log_joint(tables, self.observations)
        return log_joint[jnp.arange(len(log_joint)), self.truth[self.observations.item]]

    def add_counts(self, rows: Tables, values: Int[Array, " reading"]) -> Tables:
        """See `Readings`; tables have axes [feature, ...] and [feature, group, ...]."""
        _, item, feature, reading, group, label = self.observations
        conditional, confusion = map(jnp.asarray, rows)
        return Tables(
            conditional.at[feature, self.truth[item], values].add(1.0),
            confusion.at[feature[reading], group, values[reading], label].add(1.0),
        )


class FeatureReadings(NamedTuple):
    """Readings of one feature, whose labels are counted; NumPy or JAX arrays."""

    target: Int[AnyArray, " reading"]
    """Class of the item that was read, -1 where the slot is empty."""
    counts: Float[AnyArray, "reading value"]
    """How many of the reading's labels name each value."""

    def value_log_weights(self, tables: Tables) -> Float[AnyArray, "*chain reading value"]:
        """See `Readings`; values that the feature does not have get a weight of about zero."""
        xp = tables.conditional.__array_namespace__()
        least = max(float(xp.finfo(tables.conditional.dtype).tiny), LEAST)
        log_conditional, log_confusion = (xp.log(xp.maximum(rows, least)) for rows in tables)
        log_labels = self.counts @ log_confusion.swapaxes(-1, -2)
        return log_conditional[..., self.target, :] + log_labels

    def add_counts(self, rows: Tables, values: Num[AnyArray, "*chain reading value"]) -> Tables:
        """See `Readings`; `values` says how many of equal readings have each value."""
        n_classes = rows.conditional.shape[-2]
        is_class = self.target == np.arange(n_classes)[:, None]  # an empty slot is of no class
        return Tables(
            rows.conditional + is_class.astype(self.counts.dtype) @ values,
            rows.confusion + values.swapaxes(-1, -2) @ self.counts,
        )


@jax.jit
def sweep_chains(
    rng_key: PRNGKeyArray, concentration: Tables, readings: FeatureReadings, prior: Tables
) -> Tables:
    """One Gibbs step of many chains of one feature: tables given values, then new values.

    It compiles anew for each number of slots.

    Args:
        rng_key: the source of randomness.
        concentration: of each chain's tables given its values, along a leading axis. Readings that
            have been added since have no value in them yet.
        readings: all readings of the feature.
        prior: concentrations before any reading, without the axis of chains.

    Returns:
        Concentrations given the new values.

    Examples:
        One feature of two values, ten items of each of two classes, three labels for each:

        >>> import jax, numpy as np
        >>> target = np.repeat([0, 1], 10)
        >>> counts = np.where(target[:, None] == 0, [3.0, 0.0], [1.0, 2.0])
        >>> readings = FeatureReadings(target, counts.astype(np.float32))
        >>> prior = Tables(np.ones((2, 2), np.float32), np.float32([[4, 1], [1, 4]]))
        >>> chains = Tables(*(np.repeat(rows[None], 100, axis=0) for rows in prior))
        >>> for key in jax.random.split(jax.random.key(0), 10):
        ...     chains = sweep_chains(key, chains, readings, prior)
        >>> chains.conditional.mean(axis=0).argmax(axis=1).tolist()
        [0, 1]
        >>> chains.conditional.sum(axis=2)[0].tolist()  # ten readings and two pseudo-readings
        [12.0, 12.0]
    """
    key_tables, key_value = jax.random.split(rng_key)

    def choose(log_weights: Float[Array, "chain slot value"]) -> Float[Array, "chain slot value"]:
        return jax.nn.one_hot(draw_categories(key_value, log_weights), log_weights.shape[-1])

    return sweep(_draw_tables(key_tables, concentration), readings, prior, choose)


def _draw_tables(rng_key: PRNGKeyArray, concentration: Tables) -> Tables:
    """Both tables in one call of the generator: a second would double the compilation time."""
    n_classes = concentration.conditional.shape[-2]
    rows = dirichlet_rows(rng_key, jnp.concatenate(concentration, axis=-2))
    return Tables(rows[..., :n_classes, :], rows[..., n_classes:, :])


def prior_concentrations(
    prior: access_path.Prior, *, n_groups: int, n_classes: int, n_values: tuple[int, ...]
) -> Tables:
    """Dirichlet concentrations before any reading, [feature, ...] and [feature, group, ...]."""
    conditional = access_path.conditional_concentration(
        prior, n_classes=n_classes, n_values=n_values
    )
    confusion = access_path.confusion_concentration(prior, n_values=n_values)[:, None]
    n_features, _, width, _ = confusion.shape
    shape = (n_features, n_groups, width, width)
    return Tables(conditional, jnp.broadcast_to(confusion, shape))


def first_params(
    prior: access_path.Prior, *, n_groups: int, n_classes: int, n_values: tuple[int, ...]
) -> access_path.Params:
    """Prior means, under which workers are mostly right."""
    rows = prior_concentrations(prior, n_groups=n_groups, n_classes=n_classes, n_values=n_values)
    means = (table / jnp.maximum(table.sum(axis=-1, keepdims=True), 1e-30) for table in rows)
    return access_path.Params(jnp.full(n_classes, 1 / n_classes), *means)


def draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: access_path.Params,
    observations: access_path.Observations,
    prior: access_path.Prior,
    *,
    n_values: tuple[int, ...],
) -> access_path.Params:
    """Draw the values given classes and parameters, then the parameters given all of them."""
    key_value, key_rows = jax.random.split(rng_key)
    n_classes, n_groups = len(params.prevalence), params.confusion.shape[1]
    rows = sweep(
        params,
        TableReadings(truth, observations),
        prior_concentrations(prior, n_groups=n_groups, n_classes=n_classes, n_values=n_values),
        partial(draw_categories, key_value),
    )
    prevalence = prior.prevalence + class_counts(truth, n_classes)
    return access_path.Params(*dirichlet_tables(key_rows, [prevalence, *rows]))


CONDITIONALS = Conditionals(first_params, draw_params, access_path.label_log_joint, known_classes)
"""Conditionals of `bayescrowd.models.access_path`."""
