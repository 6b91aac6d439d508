"""A simulated crowd that answers from a labelled table.

The labels of all cells are drawn at once, so that all policies meet the same noise and, class by
class and feature by feature, the same instances in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.budgeted.space import CodedTable, FeatureSpace

__all__ = ["Noise", "Reply", "TableCrowd", "assign_workers", "check_classes", "noisy_labels"]

Noise = Literal["none", "uniform", "biased"]
"""What wrong labels look like; see `noisy_labels`."""


class Reply(NamedTuple):
    """The crowd's answer to a query."""

    answers: list[Hashable]
    """The labels."""
    workers: list[str] | None
    """Who gave each of them; None if the crowd is nameless."""


def noisy_labels(
    rng: np.random.Generator,
    values: Int[np.ndarray, "row feature"],
    n_values: tuple[int, ...],
    *,
    n_labels: int,
    noise: Noise = "none",
    rate: float | Float[np.ndarray, "row feature label"] = 0.0,
) -> Int[np.ndarray, "row feature label"]:
    """Draw labels of every cell, -1 where the cell is missing.

    Args:
        rng: the source of randomness.
        values: the true values.
        n_values: number of values of each feature.
        n_labels: number of labels of each cell.
        noise: a wrong label is any other value ('uniform'), or always the value that follows the
            true one, where the first follows the last ('biased'). With 'none', all are true.
        rate: share of wrong labels, or the probability that each label is wrong.

    Raises:
        ValueError: `noise` is unknown, or `rate` is not between 0 and 1.
    """
    if noise not in get_args(Noise):
        raise ValueError(f"noise={noise!r}: expected one of {', '.join(get_args(Noise))}")
    if not 0 <= np.min(rate) <= np.max(rate) <= 1:
        raise ValueError(f"rate={rate}: expected 0 to 1")
    labels = np.repeat(values[:, :, None], n_labels, axis=2)
    if noise == "none" or np.max(rate) == 0:
        return labels
    widths = np.array(n_values)[None, :, None]
    is_wrong = (rng.random(labels.shape) < rate) & (labels >= 0)
    shift = 1 + rng.integers(0, widths - 1, size=labels.shape) if noise == "uniform" else 1
    return np.where(is_wrong, (labels + shift) % widths, labels)


def assign_workers(
    rng: np.random.Generator, shape: tuple[int, int, int], n_workers: int
) -> Int[np.ndarray, "row feature label"]:
    """Draw who gives each label: workers at random, different ones for the labels of a cell.

    Raises:
        ValueError: there are fewer workers than labels of a cell.
    """
    if n_workers < shape[2]:
        raise ValueError(f"{n_workers} workers for {shape[2]} labels of a cell; expected as many")
    places = rng.random((*shape[:2], n_workers)).argpartition(shape[2] - 1, axis=2)
    return places[..., : shape[2]]


class TableCrowd:
    """Answers queries from a table, labelling each feature of each instance at most once.

    Args:
        space: the space in whose codes the table is.
        target: class of each row.
        labels: labels of each cell, -1 where the cell is missing.
        rng: the source of the order in which the instances of a class are labelled.
        workers: number of the worker who gives each label, 0, 1, ...; None for a nameless crowd.
    """

    def __init__(
        self,
        space: FeatureSpace,
        target: Int[np.ndarray, " row"],
        labels: Int[np.ndarray, "row feature label"],
        rng: np.random.Generator,
        workers: Int[np.ndarray, "row feature label"] | None = None,
    ) -> None:
        self._space = space
        self._labels = labels
        self._workers = workers
        self._positions = {name: f for f, name in enumerate(space.features)}
        self._class_positions = {name: y for y, name in enumerate(space.classes)}
        self._rows = [np.flatnonzero(target == y) for y in range(space.n_classes)]
        self._seed = int(rng.integers(2**63))
        self._orders: dict[tuple[int, int], Int[np.ndarray, " row"]] = {}
        self._n_asked: Counter[tuple[int, int]] = Counter()

    def answer(self, feature: Hashable, target: Hashable, n_labels: int) -> list[Hashable] | None:
        """Labels of a feature of the next instance of a class; None if no instance is left."""
        reply = self.reply(feature, target, n_labels)
        return None if reply is None else reply.answers

    def reply(self, feature: Hashable, target: Hashable, n_labels: int) -> Reply | None:
        """The same, with the workers who give the labels."""
        pair = self._positions[feature], self._class_positions[target]
        if pair not in self._orders:
            self._orders[pair] = self._order(*pair)
        order = self._orders[pair]
        if self._n_asked[pair] == len(order):
            return None
        row = order[self._n_asked[pair]]
        self._n_asked[pair] += 1
        values = self._space.features[feature]
        answers = [values[code] for code in self._labels[row, pair[0], :n_labels].tolist()]
        if self._workers is None:
            return Reply(answers, None)
        codes = self._workers[row, pair[0], :n_labels].tolist()
        return Reply(answers, [f"worker {code + 1}" for code in codes])

    def restart(self) -> None:
        """Start over: the same questions get the same answers again."""
        self._n_asked.clear()

    def _order(self, f: int, y: int) -> Int[np.ndarray, " row"]:
        rng = np.random.default_rng([self._seed, f, y])
        rows = self._rows[y]
        return rng.permutation(rows[self._labels[rows, f, 0] >= 0])


def check_classes(space: FeatureSpace, table: CodedTable) -> None:
    """Raise ValueError unless every class of the space has an instance in the table."""
    present = np.bincount(table.target, minlength=space.n_classes)
    for name, n_rows in zip(space.classes, present, strict=True):
        if n_rows == 0:
            raise ValueError(f"class {name!r} has no instance in the table")
