"""Ordinary feature selection on repeated judgements: the baselines of multi-selection.

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), section 4. Both
select forward and greedily, by the least-squares error on the training objects, and ignore internal
variance: an attribute is never asked for more often than in training.

* `Averages`: the k judgements of an attribute are averaged, and attributes are selected with k
  judgements each (the 'predictive' selection of Isola et al. 2011);
* `Copies`: the k judgements are k features, which are selected one by one, in a fixed order.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import RegressorMixin

from bayescrowd.checks.parameters import NonNegative, Positive
from bayescrowd.data.judgements import Costs, Judgements
from bayescrowd.data.vocabulary import plain
from bayescrowd.selection.repeats.moments import Average, Centred, centre, target_covariance
from bayescrowd.selection.repeats.paths import RepeatPath, Steps, greedy_path
from bayescrowd.selection.repeats.selector import RepeatSelector

__all__ = ["Averages", "Copies"]


class _ByTrainingError(RegressorMixin, RepeatSelector):
    """Greedy forward selection of features that are made of judgements."""

    average: Average = "mean"
    score = RepeatSelector.score  # matches by object; scikit-learn's matches by position

    def __init__(
        self, budget: Positive = 30, *, costs: Costs = None, ridge: NonNegative = 0.0
    ) -> None:
        self.budget = budget
        self.costs = costs
        self.ridge = ridge

    def _per_object(self, judgements: Judgements) -> Int[np.ndarray, " attribute"]:
        """The number of judgements of each attribute that every object has (k)."""
        least = judgements.counts.min(axis=0)
        if (least == 0).any():
            name = plain(judgements.attributes[int(np.argmin(least))])
            raise ValueError(
                f"attribute {name!r} is not judged on every object, which {type(self).__name__} "
                "needs"
            )
        return least


class Averages(_ByTrainingError):
    """Greedy forward selection of attributes on averages of their judgements.

    Args:
        budget: the largest number of judgements of an object, or the most that they may cost.
        costs: cost of one judgement of each attribute; 1 if None.
        ridge: added to the attributes' variances, as a share of them, for the predictor.

    Attributes:
        projected_loss_: the squared error on the training objects.
        See `RepeatSelector` for the others.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.selection.repeats.averages import Averages
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(200, 3))
        >>> pilot = truth[:, :, None] + rng.normal(size=(200, 3, 2))
        >>> Averages(budget=5).fit(pilot, truth @ [2.0, 1.0, 0.0]).selected_.to_dict()
        {0: 2, 1: 2}
    """

    def _path(
        self, judgements: Judgements, target: Float[np.ndarray, "object target"]
    ) -> RepeatPath:
        k = self._per_object(judgements)
        means = centre(judgements.means, judgements.magnitudes)
        names = np.arange(len(k))[:, None]
        steps = Steps(names, np.zeros_like(names, dtype=float), self._costs * k)
        path = _forward(means, target, steps, self.budget)
        return path._replace(repeats=path.repeats * k)


class Copies(_ByTrainingError):
    """Greedy forward selection of single judgements.

    The copies of an attribute are in the order of the workers if these are named, else in the order
    of the rows.

    Args:
        budget: the largest number of judgements of an object, or the most that they may cost.
        costs: cost of one judgement of each attribute; 1 if None.
        ridge: added to the attributes' variances, as a share of them, for the predictor.

    Attributes:
        projected_loss_: the squared error on the training objects.
        See `RepeatSelector` for the others.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.selection.repeats.averages import Copies
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(200, 3))
        >>> pilot = truth[:, :, None] + rng.normal(size=(200, 3, 2))
        >>> Copies(budget=3).fit(pilot, truth @ [2.0, 1.0, 0.0]).selected_.to_dict()
        {0: 2, 1: 1}
    """

    def _path(
        self, judgements: Judgements, target: Float[np.ndarray, "object target"]
    ) -> RepeatPath:
        k = self._per_object(judgements)
        copies = judgements.first(int(k.max()))
        n_objects, n_attributes, most = copies.shape
        flat = np.nan_to_num(copies).reshape(n_objects, -1)
        is_there = np.arange(most) < k[:, None]
        column = np.arange(n_attributes * most).reshape(n_attributes, most)
        steps = Steps(column, np.where(is_there, 0.0, np.inf), self._costs)
        features = centre(flat, np.repeat(judgements.magnitudes, most))
        return _forward(features, target, steps, self.budget)


def _forward(
    features: Centred,
    target: Float[np.ndarray, "object target"],
    steps: Steps,
    budget: float,
) -> RepeatPath:
    """Forward selection by the training error of least squares with an intercept."""
    n_objects = len(target)
    return greedy_path(
        features.deviations.T @ features.deviations / n_objects,
        target_covariance(features, centre(target, np.abs(target).max(axis=0)), n_objects),
        steps,
        budget=budget,
    )
