"""Distances between classes for Krippendorff's alpha: nominal, ordinal and interval.

The squared distance of two classes c and k is 1 unless c = k (nominal), or (v_c - v_k)^2. The place
v of a class is its number (interval) or the mean rank of its labels among all labels (ordinal):
Krippendorff's sum of n_g over the classes g from c to k, less half of n_c + n_k, is the difference
of the mean ranks (Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section D).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.data.vocabulary import argument, comma_list, natural_key, plain, quote

__all__ = ["ClassScale", "Metric", "class_scale"]

Metric = Literal["nominal", "ordinal", "interval"]


class ClassScale(NamedTuple):
    """What determines the distances between classes."""

    metric: Metric
    """Kind of the distances."""
    ranking: Int[np.ndarray, " cls"]
    """Codes of the classes from the lowest to the highest, where they have an order."""
    numbers: Float[np.ndarray, " cls"]
    """The classes as numbers, scaled to the range 0 to 1; zero unless the metric is 'interval'."""

    def places(self, n_labels: Float[np.ndarray, "*draw cls"]) -> Float[np.ndarray, "*draw cls"]:
        """Place v of every class, given the number of labels of each class."""
        if self.metric == "interval":
            return np.broadcast_to(self.numbers, n_labels.shape)
        ordered = n_labels[..., self.ranking]
        total = np.maximum(ordered.sum(axis=-1, keepdims=True), 1.0)
        places = np.empty_like(ordered)
        places[..., self.ranking] = (np.cumsum(ordered, axis=-1) - ordered / 2) / total
        return places


def class_scale(classes: pd.Index, metric: Metric, order: Sequence[Any] | None) -> ClassScale:
    """The scale of these classes.

    Args:
        classes: the classes of the annotations.
        metric: kind of the distances.
        order: the classes from the lowest to the highest, for 'ordinal'. By default, classes that
            are numbers are ordered by number, and others stay in an order of the user's own.

    Raises:
        ValueError: the classes have no order or are not numbers, or `order` does not list them.
    """
    ranking, numbers = np.arange(len(classes)), np.zeros(len(classes))
    if order is not None and metric != "ordinal":
        raise ValueError(
            f"an order of the classes is given, but {_named(metric)} does not use it; expected "
            "ordinal"
        )
    if metric == "ordinal":
        ranking = _ranking(classes, order)
    if metric == "interval":
        found = _numbers(classes)
        if found is None:
            bad = next(value for value in classes if _number(value) is None)
            raise ValueError(
                f"{_named(metric)}: the class {quote(bad)} is not a number; expected "
                "classes that are numbers, or nominal or ordinal"
            )
        low, high = found.min(initial=np.inf), found.max(initial=-np.inf)
        numbers = (found - low) / (high - low) if high > low else numbers
    return ClassScale(metric, ranking, numbers)


def _ranking(classes: pd.Index, order: Sequence[Any] | None) -> Int[np.ndarray, " cls"]:
    if order is not None:
        # Classes that look like numbers may be given as text, as they are on the command line.
        names = pd.Index([str(plain(value)) for value in classes], dtype=object)
        ranking = names.get_indexer(pd.Index([str(plain(value)) for value in order], dtype=object))
        if sorted(ranking) != [*range(len(classes))]:
            raise ValueError(
                f"order={comma_list(order)}: expected every class once, of {comma_list(classes)}"
            )
        return ranking
    is_natural = [*classes] == sorted(classes, key=lambda value: natural_key(plain(value)))
    if not is_natural:
        return np.arange(len(classes))
    numbers = _numbers(classes)
    if numbers is None:
        raise ValueError(
            f"{_named('ordinal')}: the classes {comma_list(classes)} are in alphabetical order, "
            "which may not be their rank; expected numbers, or the classes from the lowest to the "
            f"highest in {argument('order', '--classes')}"
        )
    return np.argsort(numbers, kind="stable")


def _named(metric: Metric) -> str:
    """The argument or option that chose the metric, as the user wrote it."""
    name = argument("metric")
    return f"{name}{metric}" if name.endswith("=") else f"{name} {metric}"


def _numbers(classes: pd.Index) -> Float[np.ndarray, " cls"] | None:
    """The classes as numbers; None if one of them is none."""
    found = [_number(value) for value in classes]
    known = [number for number in found if number is not None]
    return np.array(known, dtype=float) if len(known) == len(found) else None


def _number(value: Any) -> float | None:
    """A class as a number; text counts if it spells one."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if np.isfinite(number) else None
