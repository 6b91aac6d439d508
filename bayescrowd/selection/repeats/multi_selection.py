"""How often to ask each question: feature multi-selection for regression and classification.

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013). A scientist
predicts a number from judgements of attributes and can pay for B judgements of each new object.
From k >= 2 judgements of each attribute of labelled objects, `MultiSelection` projects the error of
a linear predictor on averages of any number of judgements, and chooses how many of each to ask for.

The estimators of this module add to the paper: unequal numbers of judgements (see `moments.py`),
costs, averages by median, classification, and an exact search on small problems (see `paths.py`).

Classification works in the same way. The targets are the indicators of the classes, whose summed
squared error is projected and lowered; the classifier is then a logistic regression on averages.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression

from bayescrowd.checks.parameters import (
    Count,
    NonNegative,
    Positive,
    check_parameters,
    validate_arguments,
)
from bayescrowd.data.judgements import (
    Costs,
    Judgements,
    as_judgements,
    class_target,
    numeric_target,
)
from bayescrowd.estimator import check_is_fitted
from bayescrowd.selection.repeats.moments import (
    Average,
    centre,
    judgement_moments,
    object_averages,
)
from bayescrowd.selection.repeats.paths import (
    RepeatPath,
    Search,
    best_path,
    greedy_path,
    repeated_steps,
)
from bayescrowd.selection.repeats.plan import population_of, training_plan
from bayescrowd.selection.repeats.selector import InfeasibleProjectionWarning, RepeatSelector

__all__ = ["Method", "MultiSelection", "MultiSelectionClassifier"]

Method = Literal["full", "scoring"]

Classifier = TypeVar("Classifier", bound="MultiSelectionClassifier")


class _ByProjectedLoss(RepeatSelector):
    """Chooses the repeats that lower the projected loss most."""

    def __init__(
        self,
        budget: Positive = 30,
        *,
        method: Method = "full",
        costs: Costs = None,
        search: Search = "cost-benefit",
        average: Average = "mean",
        ridge: NonNegative = 0.0,
    ) -> None:
        self.budget = budget
        self.method = method
        self.costs = costs
        self.search = search
        self.average = average
        self.ridge = ridge

    def _path(
        self, judgements: Judgements, target: Float[np.ndarray, "object target"]
    ) -> RepeatPath:
        moments = self._moments
        if self.search == "exact":
            return best_path(
                self._covariance,
                moments.correlation,
                moments.noise,
                self._costs,
                budget=self.budget,
            )
        return greedy_path(
            self._covariance,
            moments.correlation,
            repeated_steps(moments.noise, self._costs),
            budget=self.budget,
            per_cost=self.search == "cost-benefit",
        )

    def _needs_pairs(self) -> bool:
        return self.method == "full"

    def _cause_of_infeasibility(self) -> str:
        if self.method == "full":
            return super()._cause_of_infeasibility()
        return (
            "method 'scoring' treats attributes as uncorrelated, and counts what correlated "
            "attributes have in common more than once"
        )

    def _cure_of_infeasibility(self) -> str:
        if self.method == "full":
            return super()._cure_of_infeasibility()
        return "method='full' accounts for correlations"


class MultiSelection(RegressorMixin, _ByProjectedLoss):
    """Choose which attributes to ask for and how many times, and predict a number from them.

    On CT slices (682 rows, 48 attributes, 300 objects with 2 judgements each, 50 splits) the mean
    squared test error with a budget of 30 is 26 for 'full', 31 for 'scoring', 30 for `Averages`
    and 33 for `Copies`.

    Args:
        budget: the largest number of judgements of an object, or the most that they may cost.
        method: 'full' projects the loss with all covariances of attributes. 'scoring' treats
            attributes as uncorrelated: better with few objects, worse with small budgets. Where
            attributes are correlated its projection may be infeasible; see `projected_loss_`.
        costs: cost of one judgement of each attribute, by name or in the order of an array; 1 if
            None.
        search: 'cost-benefit' repeatedly buys the judgement with the largest gain per unit of cost,
            'gain' the one with the largest gain whatever it costs, as the paper's algorithm does.
            'exact' finds the best repeats for every budget: with 'full' on small problems only,
            with 'scoring' for costs that have a common unit.
        average: 'mean' or 'median' of an attribute's judgements. Where some judgements are far
            off, medians need fewer of them.
        ridge: added to the attributes' variances, as a share of them; helps where objects are few.

    Attributes:
        See `RepeatSelector`: repeats_, projected_loss_, projection_problem_, selected_,
        attributes_, internal_variance_, external_covariance_, correlation_, reliability_, coef_,
        intercept_.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(200, 3))  # three attributes of 200 objects
        >>> y = truth @ [2.0, 1.0, 0.0]
        >>> spread = np.array([0.2, 1.0, 1.0])  # judges agree on the first one
        >>> pilot = truth[:, :, None] + spread[:, None] * rng.normal(size=(200, 3, 2))
        >>> est = bc.MultiSelection(budget=6).fit(pilot, y)
        >>> est.selected_.to_dict()
        {0: 2, 1: 4}
        >>> est.projected_loss_[[0, 1, 6]].round(1).to_dict()
        {0: 5.1, 1: 1.1, 6: 0.2}
    """

    score = RepeatSelector.score  # matches by object; scikit-learn's matches by position

    def posterior(self, judgements: Any, y: Any, **options: Any) -> Any:
        """Draw from a hierarchical model of the judgements, to see how certain the choice is.

        Args:
            judgements: as for `fit`.
            y: as for `fit`.
            **options: options of `bayescrowd.posterior.judgements.sample_judgements`: draws,
                warmup, chains, seed.

        Returns:
            A `RepeatPosterior` with intervals for the attributes' properties, for the loss along
            `repeats_`, and for the difference between any two repeat vectors.
        """
        from bayescrowd.posterior.repeats import posterior_of_repeats

        check_is_fitted(self)
        return posterior_of_repeats(self.repeats_, judgements, y, **options)

    @validate_arguments
    def plan(self, judgements: Any, y: Any, n_judgements: Count, **options: Any) -> pd.DataFrame:
        """How many judgements of each attribute of how many objects to learn from.

        Args:
            judgements: the judgements of a pilot, as for `fit`.
            y: as for `fit`.
            n_judgements: number of training judgements that can be paid for in all.
            **options: options of `bayescrowd.selection.repeats.plan.training_plan`: repeats,
                n_splits, seed.

        Returns:
            The table of `training_plan`.

        Raises:
            ValueError: the selector averages by median, or the judgements do not suffice for two
                judgements of a few objects.

        Examples:
            >>> import numpy as np
            >>> import bayescrowd as bc
            >>> rng = np.random.default_rng(0)
            >>> truth = rng.normal(size=(100, 4))
            >>> pilot = truth[:, :, None] + 0.5 * rng.normal(size=(100, 4, 2))
            >>> est = bc.MultiSelection(budget=6)
            >>> est.plan(pilot, truth.sum(axis=1), 480, repeats=[2, 4], n_splits=20)["n_objects"]
            k
            2    60
            4    30
            Name: n_objects, dtype: int64
        """
        check_parameters(self)
        if self.average != "mean":
            raise ValueError(
                f"average={self.average!r}: expected 'mean', the only average for which a plan "
                "can be made"
            )
        data = as_judgements(judgements)
        target = numeric_target(y, data)[:, None]
        population = population_of(judgement_moments(data, target, most_repeats=1))
        with warnings.catch_warnings():
            # The errors follow from the population; losses projected from training sets are unused.
            warnings.simplefilter("ignore", InfeasibleProjectionWarning)
            return training_plan(population, self._chosen_repeats, n_judgements, **options)

    def _chosen_repeats(
        self, judgements: Float[np.ndarray, "object attribute k"], y: Float[np.ndarray, " object"]
    ) -> Int[np.ndarray, " attribute"]:
        """How often to ask for each attribute with the whole budget, by the given training set."""
        return clone(self).fit(judgements, y).repeats_.iloc[-1].to_numpy()


class MultiSelectionClassifier(ClassifierMixin, _ByProjectedLoss):
    """Choose which attributes to ask for and how many times, and predict a class from them.

    Args:
        budget: as for `MultiSelection`, like the parameters that follow.
        method: 'full' or 'scoring'.
        costs: cost of one judgement of each attribute.
        search: 'cost-benefit', 'gain' or 'exact'.
        average: 'mean' or 'median'.
        ridge: also the ridge of the logistic regression; the default is above 0 because separable
            classes would make the coefficients grow without bound.

    Attributes:
        classes_: the classes in ascending order.
        projected_loss_: the summed squared error of the classes' linear predictors.
        coef_: coefficients by attribute, one column per class (with two classes, only the second).
        See `RepeatSelector` for the others.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.selection.repeats.multi_selection import MultiSelectionClassifier
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(200, 3))
        >>> y = np.where(truth[:, 0] > 0, "tall", "short")
        >>> pilot = truth[:, :, None] + rng.normal(size=(200, 3, 2))
        >>> est = MultiSelectionClassifier(budget=2).fit(pilot, y)
        >>> est.selected_.to_dict()
        {0: 2}
        >>> round(est.score(pilot, y), 2)
        0.82
    """

    def __init__(
        self,
        budget: Positive = 30,
        *,
        method: Method = "full",
        costs: Costs = None,
        search: Search = "cost-benefit",
        average: Average = "mean",
        ridge: NonNegative = 0.01,
    ) -> None:
        super().__init__(
            budget, method=method, costs=costs, search=search, average=average, ridge=ridge
        )

    def fit(self: Classifier, judgements: Any, y: Any) -> Classifier:
        """Choose how often to ask for each attribute; see `MultiSelection.fit`.

        Args:
            judgements: a long table, or an array objects x attributes x k.
            y: the class of each object.
        """
        data = as_judgements(judgements)
        codes, self.classes_ = class_target(y, data)
        indicators = np.eye(len(self.classes_))[codes]
        # With two classes, one indicator determines the other.
        return self._choose(data, indicators[:, 1:] if len(self.classes_) == 2 else indicators)

    @validate_arguments
    def refit(
        self: Classifier, judgements: Any, y: Any, *, budget: float | None = None
    ) -> Classifier:
        """Learn the classifier from objects that have as many judgements as were chosen."""
        check_is_fitted(self)
        data, repeats = self._selected_part(judgements, budget)
        codes, classes = class_target(y, data)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(f"y holds the classes {list(classes)}; fitted: {list(self.classes_)}")
        self._learn(data, repeats, codes)
        return self

    def predict_proba(self, judgements: Any) -> Any:
        """P(class) of new objects: a table by object, or an array if judgements came as an array.

        An object that lacks judgements is predicted from those that it has, with a warning; an
        attribute that is not judged at all is replaced by its mean.
        """
        data = self._new_part(judgements)
        averages = object_averages(data, self.average)
        filled = np.where(data.counts > 0, averages - self._predictor.mean, 0.0)
        if self._model is None:
            probabilities = np.tile(self._shares, (data.n_objects, 1))
        else:
            probabilities = self._model.predict_proba(filled / self._scale)
        if isinstance(data.objects, pd.RangeIndex):
            return probabilities
        return pd.DataFrame(probabilities, index=data.objects, columns=self.classes_)

    def predict(self, judgements: Any) -> Any:
        """The most probable class of new objects; see `predict_proba`."""
        data = as_judgements(judgements)
        best = self.classes_[np.asarray(self.predict_proba(data)).argmax(axis=1)]
        return self._as_given(best, data, "prediction")

    def score(self, judgements: Any, y: Any) -> float:
        """The share of objects whose class is predicted correctly."""
        data = as_judgements(judgements)
        truth, classes = class_target(y, data)
        return float((classes[truth] == np.asarray(self.predict(data))).mean())

    def _set_predictor(self, data: Judgements, target: Float[np.ndarray, "object target"]) -> None:
        """Set the classifier that holds until `refit`: learned from the averages at hand."""
        codes = target[:, 0].astype(int) if len(self.classes_) == 2 else target.argmax(axis=1)
        super()._set_predictor(data, target)
        self._learn(data.select_attributes(self.selected_.index), self.selected_, codes)

    def _learn(self, data: Judgements, repeats: pd.Series, codes: np.ndarray) -> None:
        averages = centre(object_averages(data, self.average), data.magnitudes)
        mean = averages.mean
        self._predictor = self._predictor._replace(repeats=repeats.to_numpy(), mean=mean)
        self._shares = np.bincount(codes, minlength=len(self.classes_)) / len(codes)
        self._model = None
        self._scale = np.ones(len(repeats))
        names = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        weights, intercept = np.zeros((len(repeats), len(names))), np.log(self._shares)
        if len(repeats):
            rms = np.sqrt((averages.deviations**2).mean(axis=0))
            self._scale = np.where(rms > 0, rms, 1.0)
            strength = np.inf if self.ridge == 0 else 1 / (self.ridge * len(codes))
            self._model = LogisticRegression(C=strength, max_iter=10_000)
            self._model.fit(averages.deviations / self._scale, codes)
            weights = self._model.coef_.T / self._scale[:, None]
            intercept = self._model.intercept_ - mean @ weights
        self.coef_ = pd.DataFrame(weights, index=repeats.index, columns=names)
        self.intercept_ = pd.Series(intercept[-len(names) :], index=names, name="intercept")
