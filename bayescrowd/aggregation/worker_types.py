"""Worker types: Dawid–Skene in which each worker is of one of a few kinds.

Worker w is of type g with probability rho_g; a type has a confusion matrix T_g, and a worker's own
rows scatter around those of the type,

    pi_wk ~ Dirichlet(s T_gk).

One matrix per type is learned from all its members, so that a spammer or a careless worker is
recognised after few labels. Given expected counts n_wkl of the workers' labels, EM takes

    r_wg  proportional to  rho_g prod_k DirichletMultinomial(n_wk | s T_gk)                    (1)
    rho_g = mean of r_wg over workers, with one pseudo-worker per type                         (2)
    T_gk  proportional to  sum_w r_wg n_wk + the crowd's row                                   (3)

and the base of w's rows is the mean of the types' matrices, sum_g r_wg T_g (`row_models.py`). (3)
leaves out the shrinkage that a Dirichlet-multinomial's mean has; with the few pseudo-labels of s
and the many labels of a type it is small. Types start as bands of agreement with the votes, each
with the same number of labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import gammaln, softmax

from bayescrowd.aggregation.row_aggregator import RowModelAggregator
from bayescrowd.aggregation.row_models import ClassPrior
from bayescrowd.aggregation.simple_rows import is_right
from bayescrowd.aggregation.symbols import Symbols
from bayescrowd.annotations import Annotations
from bayescrowd.parameters import Count, Positive, Seed, Tolerance

__all__ = ["TypeBase", "WorkerTypes", "WorkerTypesModel"]

SHRINKAGE = 4.0
"""Pseudo-labels at the crowd's agreement when workers are first put in order."""

SAME = 9
"""Decimals to which two workers' agreement is the same: the order of ids must not part them."""


class WorkerTypes(RowModelAggregator):
    """Dawid–Skene EM with a few types of workers.

    Args:
        n_types: number of types.
        strength: pseudo-labels that the type is worth in each row of a worker.
        prior: class prior 'learned', 'shares' (each class's share of the labels) or 'uniform'.
        n_iter: most iterations.
        tol: stop when no probability of a task changes by this much; 0 runs n_iter.
        seed: decides ties.

    Attributes:
        types_: P(observed | true) of each type, indexed (type, true); from the type whose workers
            agree least with the votes at the start.
        membership_: P(type) of each worker, workers x types.
        trace_: log-likelihood after each iteration, nats; it may fall.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(300, 30, 3, labels_per_task=8, accuracy=0.8, spammers=0.3)
        >>> est = bc.WorkerTypes(n_types=2).fit(data.annotations)
        >>> is_spammer = data.parameters.kinds != "honest"
        >>> bool((est.membership_[0][is_spammer] > 0.5).all())
        True
    """

    _model_name = "worker_types"

    def __init__(
        self,
        *,
        n_types: Count = 3,
        strength: Positive = 8.0,
        prior: ClassPrior = "learned",
        n_iter: Count = 500,
        tol: Tolerance = 1e-4,
        seed: Seed = 0,
    ) -> None:
        self.n_types = n_types
        self.strength = strength
        self.prior = prior
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _model(self) -> WorkerTypesModel:
        return WorkerTypesModel(self.n_types, float(self.strength))

    def _keep(self, base: TypeBase, ann: Annotations) -> None:
        types = pd.RangeIndex(self.n_types, name="type")
        index = pd.MultiIndex.from_product([types, ann.classes], names=["type", "true"])
        rows = base.matrices.transpose(0, 2, 1).reshape(-1, ann.n_classes)
        self.types_ = pd.DataFrame(rows, index=index, columns=ann.classes.rename("observed"))
        self.membership_ = pd.DataFrame(base.membership, index=ann.workers, columns=types)


class TypeBase(NamedTuple):
    """Parameters of a mixture of types."""

    matrices: Float[np.ndarray, "type cls state"]
    """P(label | state) of each type (T)."""
    share: Float[np.ndarray, " type"]
    """Share of the workers of each type (rho)."""
    membership: Float[np.ndarray, "worker type"]
    """P(type) of each worker (r)."""
    strength: float
    """Pseudo-labels of the type in each row of a worker (s)."""

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """Mean of the types' probabilities of the label."""
        membership = np.concatenate([self.membership, self.share[None]])[worker]
        rows = np.zeros((len(worker), self.matrices.shape[2]))
        for of_type, matrix in zip(membership.T, self.matrices, strict=True):
            rows += of_type[:, None] * matrix[label]
        return rows


class WorkerTypesModel(NamedTuple):
    """The model; see the module."""

    n_types: Count = 3
    """Number of types."""
    strength: float = 8.0
    """Pseudo-labels of the type in each row of a worker."""
    n_levels: int = 1
    """Levels of difficulty."""

    def base(
        self,
        symbols: Symbols,
        counts: Float[np.ndarray, "symbol state"],
        previous: TypeBase | None,
    ) -> TypeBase:
        """Equations 1 to 3."""
        total = symbols.by_worker(counts)
        if previous is None:
            membership = _first_membership(symbols, counts, total, self.n_types)
        else:
            membership = _membership(symbols, counts, total, previous)
        active = total.sum(axis=1) > 0
        share = membership[active].sum(axis=0) + 1
        share /= share.sum()
        crowd = symbols.by_label(counts) + 1.0 / symbols.n_classes
        crowd /= crowd.sum(axis=0)
        of_symbol = membership[symbols.worker]
        matrices = np.stack([symbols.by_label(counts * r[:, None]) + crowd for r in of_symbol.T])
        matrices /= matrices.sum(axis=1, keepdims=True)
        membership = np.where(active[:, None], membership, share)
        return TypeBase(matrices, share, membership, self.strength)


def _first_membership(
    symbols: Symbols,
    counts: Float[np.ndarray, "symbol state"],
    total: Float[np.ndarray, "worker state"],
    n_types: int,
) -> Float[np.ndarray, "worker type"]:
    """Soft bands of agreement; workers who agree as often share their place in the order."""
    right = np.where(is_right(symbols.label, symbols.n_classes, counts.shape[1]), counts, 0.0)
    n_right, n_labels = symbols.by_worker(right).sum(axis=1), total.sum(axis=1)
    mean = n_right.sum() / n_labels.sum()
    agreement = (n_right + SHRINKAGE * mean) / (n_labels + SHRINKAGE)
    _, rank = np.unique(agreement.round(SAME), return_inverse=True)
    labels_at = np.bincount(rank, n_labels)
    place = ((np.cumsum(labels_at) - 0.5 * labels_at) / labels_at.sum())[rank]
    centres = (np.arange(n_types) + 0.5) / n_types
    distance = (place[:, None] - centres) * n_types
    return softmax(-2 * distance**2, axis=1)


def _membership(
    symbols: Symbols,
    counts: Float[np.ndarray, "symbol state"],
    total: Float[np.ndarray, "worker state"],
    previous: TypeBase,
) -> Float[np.ndarray, "worker type"]:
    """Equation 1; what does not depend on the type is left out."""
    scores = np.empty((len(total), len(previous.share)))
    for g, matrix in enumerate(previous.matrices):
        pseudo = np.maximum(previous.strength * matrix[symbols.label], np.finfo(float).tiny)
        gain = (gammaln(counts + pseudo) - gammaln(pseudo)).sum(axis=1, keepdims=True)
        scores[:, g] = symbols.by_worker(gain)[:, 0]
    return softmax(scores + np.log(previous.share), axis=1)
