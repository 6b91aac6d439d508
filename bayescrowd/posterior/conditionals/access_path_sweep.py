"""The sweep of the access path model, stated once for all its samplers.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 3. A sweep alternates

    value z of each reading | its class, its labels, the tables:  theta_yi[z] prod theta_zij[x]
    tables | classes, values:  Dirichlet rows, concentrations prior + counts of values and labels

`sweep` takes readings in any layout that states both conditionals. `access_path.TableReadings`
lists the labels of all features one by one, with workers in groups; `FeatureReadings` counts the
labels of one feature, with all workers alike.

Only quantities that do not change when the hidden values are renamed may be averaged over draws:
P(label | class) is one; `conditional` and `confusion` by themselves are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Num

__all__ = ["LEAST", "FeatureReadings", "Readings", "Tables", "sweep"]

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
