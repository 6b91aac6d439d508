"""What was bought, as observations of the NumPyro models of features.

Each reading is of an instance of its own, whose class is known. Readings are padded to a number of
slots, so that programs are compiled for few sizes: further instances have the class -1, unknown,
and further readings and labels an instance or a reading that does not exist. `jax.ops.segment_sum`
drops those, and an instance of unknown class without readings has probability one: neither changes
the density of the parameters. (A model of one's own that is written otherwise leaves out readings
whose `item` is `n_items`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from bayescrowd.models import access_path, naive_bayes

__all__ = ["Reading", "noisy_observations", "observations"]


class Reading(NamedTuple):
    """One observation: what was said of a feature of an instance."""

    feature: int
    """Position of the feature."""
    cls: int
    """Position of the instance's class."""
    labels: tuple[int, ...]
    """The labels, as slots or positions of values."""


def observations(readings: Sequence[Reading], n_slots: int) -> naive_bayes.Observations:
    """Readings without noise: the first of each reading's labels is its value.

    Examples:
        >>> target, item, feature, value = observations([Reading(0, 1, (2,))], n_slots=2)
        >>> target.tolist(), item.tolist(), value.tolist()
        ([1, -1], [0, 2], [2, 0])
    """
    n = len(readings)
    return naive_bayes.Observations(
        target=_padded([reading.cls for reading in readings], n_slots, -1),
        item=_padded(range(n), n_slots, n_slots),
        feature=_padded([reading.feature for reading in readings], n_slots, 0),
        value=_padded([reading.labels[0] for reading in readings], n_slots, 0),
    )


def noisy_observations(
    readings: Sequence[Reading], n_slots: int, labels_per_query: int
) -> access_path.Observations:
    """Readings by workers, all of one group."""
    n = len(readings)
    n_labels = n_slots * labels_per_query
    owners = [place for place, reading in enumerate(readings) for _ in reading.labels]
    labels = [label for reading in readings for label in reading.labels]
    return access_path.Observations(
        target=_padded([reading.cls for reading in readings], n_slots, -1),
        item=_padded(range(n), n_slots, n_slots),
        feature=_padded([reading.feature for reading in readings], n_slots, 0),
        reading=_padded(owners, n_labels, n_slots),
        group=jnp.zeros(n_labels, dtype=jnp.int32),
        label=_padded(labels, n_labels, 0),
    )


def _padded(entries: Sequence[int], length: int, filling: int) -> Int[Array, " slot"]:
    padded = np.full(length, filling, dtype=np.int32)
    padded[: len(entries)] = entries
    return jnp.asarray(padded)
