"""Dawid–Skene EM in which each worker belongs to one of a few types.

The model is in `type_mixture.py`, the EM in `rows.py`.
"""

from __future__ import annotations

import pandas as pd

from bayescrowd.aggregation.shrunken.aggregator import RowModelAggregator
from bayescrowd.aggregation.shrunken.rows import ClassPrior
from bayescrowd.aggregation.shrunken.type_mixture import TypeBase, WorkerTypesModel
from bayescrowd.checks.parameters import Count, Positive, Seed, Tolerance
from bayescrowd.data.annotations import Annotations

__all__ = ["WorkerTypes"]


class WorkerTypes(RowModelAggregator):
    """Dawid–Skene EM with a few types of workers.

    Args:
        n_types: number of types.
        strength: pseudo-labels that the type is worth in each row of a worker.
        prior: class prior: 'learned', 'shares' (the share of each class among the labels) or
            'uniform'.
        n_iter: largest number of iterations.
        tol: stop when every probability of a task changes by less than this; 0 runs n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        types_: P(observed | true) of each type, indexed (type, true); the first type is the one
            whose workers agree least with the votes at the start.
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
    _state_classes = (*RowModelAggregator._state_classes, TypeBase)

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
