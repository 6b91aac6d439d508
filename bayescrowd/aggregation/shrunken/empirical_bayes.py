"""Dawid–Skene EM whose confusion matrices are regularised by worker ability and by the crowd.

The model, whose hyperparameters are learned from the labels (empirical Bayes), is in `ability.py`,
the EM in `rows.py`.
"""

from __future__ import annotations

from typing import Literal

import pandas as pd

from bayescrowd.aggregation.shrunken.ability import AbilityBase, EmpiricalBayesModel, ability_rows
from bayescrowd.aggregation.shrunken.aggregator import CompactAggregation, RowModelAggregator
from bayescrowd.aggregation.shrunken.rows import ClassPrior
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Positive, Seed, Tolerance
from bayescrowd.data.annotations import Annotations

__all__ = ["EmpiricalBayesDawidSkene"]


class EmpiricalBayesDawidSkene(RowModelAggregator):
    """Dawid–Skene EM whose confusion matrices are regularised by worker ability and the crowd.

    Args:
        prior: class prior: 'learned', 'shares' (the share of each class among the labels) or
            'uniform'.
        strength: pseudo-labels that the base of a row is worth, or 'learned'. On average over 65
            crowds, the error with 4 was half a point lower than with a learned strength.
        n_iter: largest number of iterations.
        tol: stop when every probability of a task changes by less than this; 0 runs n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        abilities_: ability of each worker (b), in logits.
        strength_: pseudo-labels that the base is worth in each row (s).
        trace_: log-likelihood after each iteration, nats; it may fall, because the hyperparameters
            change.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aaa"), list("bba")])
        >>> est = bc.EmpiricalBayesDawidSkene().fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'a', 'b']
        >>> bool(est.abilities_[0] > est.abilities_[2])
        True
    """

    _model_name = "ability_dawid_skene"
    _state_classes = (*RowModelAggregator._state_classes, AbilityBase)

    def __init__(
        self,
        *,
        prior: ClassPrior = "learned",
        strength: Positive | Literal["learned"] = 4.0,
        n_iter: Count = 500,
        tol: Tolerance = 1e-4,
        seed: Seed = 0,
    ) -> None:
        self.prior = prior
        self.strength = strength
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _model(self) -> EmpiricalBayesModel:
        return EmpiricalBayesModel(strength=self.strength)

    def _worker_rows(self, pairs: WorkerLabelPairs, found: CompactAggregation) -> SparseRows:
        return ability_rows(pairs, found)

    def _keep(self, base: AbilityBase, ann: Annotations) -> None:
        self.abilities_ = pd.Series(base.ability, index=ann.workers, name="ability")
        self.strength_ = base.strength
