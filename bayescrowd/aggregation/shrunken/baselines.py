"""The two simplest bases: one coin per worker, and the crowd's mean rows.

* `CoinModel`: worker w is right with probability (right_w + 2 m) / (n_w + 2), where m is the
  crowd's accuracy, and wrong answers are equally probable; the strength is inf.
* `MeanRowsModel`: every worker's rows are pulled toward the crowd's by a fixed number of
  pseudo-labels. `DawidSkene` with pooled smoothing does nearly the same. The difference is the
  crowd's rows: here the mean over labels, there the geometric mean over workers, with which no
  iteration can lower the objective. Posteriors differ by some hundredths where workers have few
  labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.aggregation.shrunken.base import is_right
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

__all__ = ["CoinBase", "CoinModel", "MeanRows", "MeanRowsModel"]

COIN_PSEUDO_LABELS = 2.0
"""Pseudo-labels per worker at the crowd's accuracy."""


class CoinBase(NamedTuple):
    """One accuracy per worker."""

    accuracy: Float[np.ndarray, " worker"]
    """Probability that a label of the worker is right."""
    mean: float
    """Accuracy of the crowd, which new workers get."""
    n_classes: int
    """Number of classes."""

    @property
    def strength(self) -> float:
        """Infinite: nothing but the accuracies counts."""
        return np.inf

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """The accuracy for the right label, the rest shared evenly among the others."""
        right = np.append(self.accuracy, self.mean)[worker][:, None]
        wrong = (1 - right) / (self.n_classes - 1)
        return np.where(is_right(label, self.n_classes, self.n_classes), right, wrong)


class CoinModel(NamedTuple):
    """One accuracy per worker."""

    n_levels: int = 1
    """Number of levels of difficulty; there is only one."""

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
    """The crowd's mean rows as the base of every worker."""

    crowd: Float[np.ndarray, "cls state"]
    """Probability of each label in each state."""
    strength: float
    """Pseudo-labels that they are worth in each worker's row."""

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
    """Number of levels of difficulty."""

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: MeanRows | None,
    ) -> MeanRows:
        """Mean rows, in which each label counts once."""
        crowd = pairs.by_label(counts) + 1e-9  # a state without tasks has uniform rows
        return MeanRows(crowd / crowd.sum(axis=0), self.strength)
