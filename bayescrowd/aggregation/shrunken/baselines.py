"""The two simplest bases of `rows.py`: one coin per worker, and the crowd's mean rows.

* `CoinModel`: worker w is right with probability (right_w + 2 m) / (n_w + 2), where m is the
  crowd's accuracy, and wrong evenly; strength inf.
* `MeanRowsModel`: every worker's rows are pulled toward the crowd's by a fixed number of
  pseudo-labels. `DawidSkene` with pooled smoothing does nearly the same. The difference is the
  crowd's rows: here the mean over labels, there the geometric mean over workers, with which no
  iteration can lower the objective. Posteriors differ by some hundredths where workers have few
  labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

__all__ = ["CoinBase", "CoinModel", "MeanRows", "MeanRowsModel", "is_right"]

COIN_PSEUDO_LABELS = 2.0
"""At the crowd's accuracy, per worker."""


class CoinBase(NamedTuple):
    """One accuracy per worker."""

    accuracy: Float[np.ndarray, " worker"]
    """Probability of the right label."""
    mean: float
    """The crowd's accuracy, and that of strangers."""
    n_classes: int
    """Number of classes."""

    @property
    def strength(self) -> float:
        """The accuracies are all there is."""
        return np.inf

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """The accuracy at the right label, the rest shared evenly."""
        right = np.append(self.accuracy, self.mean)[worker][:, None]
        wrong = (1 - right) / (self.n_classes - 1)
        return np.where(is_right(label, self.n_classes, self.n_classes), right, wrong)


class CoinModel(NamedTuple):
    """One accuracy per worker."""

    n_levels: int = 1
    """One."""

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol cls"],
        previous: CoinBase | None,
    ) -> CoinBase:
        """Accuracies from the counts alone."""
        n_classes = pairs.n_classes
        right = np.where(is_right(pairs.label, n_classes, n_classes), counts, 0.0)
        n_right = pairs.by_worker(right).sum(axis=1)
        n_labels = pairs.by_worker(counts).sum(axis=1)
        mean = float(n_right.sum() / n_labels.sum())
        pseudo = COIN_PSEUDO_LABELS
        return CoinBase((n_right + pseudo * mean) / (n_labels + pseudo), mean, n_classes)


class MeanRows(NamedTuple):
    """The crowd's mean rows for everybody."""

    crowd: Float[np.ndarray, "cls state"]
    """Probability of each label."""
    strength: float
    """Pseudo-labels of them in each worker's row."""

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """The crowd's probability of the label, whoever the worker."""
        return self.crowd[label]


class MeanRowsModel(NamedTuple):
    """Confusion rows of Dawid and Skene, pulled toward the crowd's mean rows."""

    strength: float = 1.0
    """Pseudo-labels per row."""
    n_levels: int = 1
    """Levels of difficulty."""

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: MeanRows | None,
    ) -> MeanRows:
        """Mean rows, each label counting once."""
        crowd = pairs.by_label(counts) + 1e-9  # a state without tasks has uniform rows
        return MeanRows(crowd / crowd.sum(axis=0), self.strength)


def is_right(
    label: Int[np.ndarray, " pair"], n_classes: int, n_states: int
) -> Bool[np.ndarray, "pair state"]:
    """Whether the label names the state's class."""
    return label[:, None] == np.arange(n_states) % n_classes
