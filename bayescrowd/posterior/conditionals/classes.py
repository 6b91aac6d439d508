"""Classes of items, as the conditionals of all models count them and start from them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = ["class_counts", "known_classes", "label_votes"]


def class_counts(truth: Int[Array, " item"], n_classes: int) -> Float[Array, " cls"]:
    """Number of items of each class."""
    # Compared, not scattered: all items are added to a few numbers.
    return (truth[:, None] == jnp.arange(n_classes)).sum(axis=0, dtype=jnp.float32)


def known_classes(observations: Any, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Class probabilities to start from: 0 and 1 for known classes, uniform for unknown ones.

    Args:
        observations: `Observations` of a model of features; its field `target` has the class of
            each item, or -1 where it is not known.
        n_items: number of items.
        n_classes: number of classes.
    """
    is_known = (observations.target >= 0)[:, None]
    return jnp.where(is_known, jax.nn.one_hot(observations.target, n_classes), 1 / n_classes)


def label_votes(labels: Any, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Number of labels of each item that name each class.

    Args:
        labels: the `Labels` of a crowd.
        n_items: number of items.
        n_classes: number of classes.
    """
    return jnp.zeros((n_items, n_classes)).at[labels.item, labels.label].add(1.0)
