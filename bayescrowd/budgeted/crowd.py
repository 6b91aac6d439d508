"""A crowd played from a labelled table: what workers would have answered.

Labels are drawn for every cell at once, so that all policies meet the same noise and, class by
class and feature by feature, the same instances in the same order.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, get_args

import numpy as np
from jaxtyping import Int

from bayescrowd.budgeted.space import CodedTable, FeatureSpace

__all__ = ["Noise", "TableCrowd", "check_classes", "noisy_labels"]

Noise = Literal["none", "uniform", "biased"]


def noisy_labels(
    rng: np.random.Generator,
    values: Int[np.ndarray, "row feature"],
    n_values: tuple[int, ...],
    *,
    n_labels: int,
    noise: Noise = "none",
    rate: float = 0.0,
) -> Int[np.ndarray, "row feature label"]:
    """Labels of every cell, -1 where the cell is missing.

    Args:
        rng: the source of randomness.
        values: the true values.
        n_values: number of values of each feature.
        n_labels: labels of each cell.
        noise: a wrong label is any other value ('uniform'), or always the value that follows the
            true one, the first after the last ('biased'); 'none': all labels are true.
        rate: share of wrong labels.

    Raises:
        ValueError: `noise` is unknown or `rate` no share.
    """
    if noise not in get_args(Noise):
        raise ValueError(f"noise={noise!r}: expected one of {', '.join(get_args(Noise))}")
    if not 0 <= rate <= 1:
        raise ValueError(f"rate={rate}: expected 0 to 1")
    labels = np.repeat(values[:, :, None], n_labels, axis=2)
    if noise == "none" or rate == 0:
        return labels
    widths = np.array(n_values)[None, :, None]
    is_wrong = (rng.random(labels.shape) < rate) & (labels >= 0)
    shift = 1 + rng.integers(0, widths - 1, size=labels.shape) if noise == "uniform" else 1
    return np.where(is_wrong, (labels + shift) % widths, labels)


class TableCrowd:
    """Answers queries from a table; each (instance, feature) is labelled once.

    Args:
        space: whose codes the table is in.
        target: class of each row.
        labels: labels of each cell, -1 where it is missing.
        rng: draws the order in which the instances of a class are labelled.
    """

    def __init__(
        self,
        space: FeatureSpace,
        target: Int[np.ndarray, " row"],
        labels: Int[np.ndarray, "row feature label"],
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._labels = labels
        self._positions = {name: f for f, name in enumerate(space.features)}
        self._class_positions = {name: y for y, name in enumerate(space.classes)}
        self._rows = [np.flatnonzero(target == y) for y in range(space.n_classes)]
        self._seed = int(rng.integers(2**63))
        self._queues: dict[tuple[int, int], list[int]] = {}

    def answer(self, feature: Hashable, target: Hashable, n_labels: int) -> list[Hashable] | None:
        """Labels of a feature on the next instance of a class; None when there is none left."""
        f, y = self._positions[feature], self._class_positions[target]
        if (f, y) not in self._queues:
            self._queues[f, y] = self._queue(f, y)
        queue = self._queues[f, y]
        if not queue:
            return None
        codes = self._labels[queue.pop(), f, :n_labels]
        values = self._space.features[feature]
        return [values[code] for code in codes]

    def _queue(self, f: int, y: int) -> list[int]:
        rng = np.random.default_rng([self._seed, f, y])
        rows = self._rows[y]
        return rng.permutation(rows[self._labels[rows, f, 0] >= 0]).tolist()


def check_classes(space: FeatureSpace, table: CodedTable) -> None:
    """Raise unless every class of the space has an instance in the table."""
    present = np.bincount(table.target, minlength=space.n_classes)
    for name, n_rows in zip(space.classes, present, strict=True):
        if n_rows == 0:
            raise ValueError(f"class {name!r} has no instance in the table")
