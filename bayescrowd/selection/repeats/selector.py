"""What every selector of repeats does: choose along the budget, then predict from averages.

A selector states one thing, `_path`: the repeat vectors along the budget. Everything else is
written here once: reading the input, the tables indexed by the user's names, the linear predictor
(see `predictor.py`), and the judgements that new objects lack.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.checks.parameters import check_parameters, validate_arguments
from bayescrowd.data.judgements import (
    ROUNDING,
    Costs,
    Judgements,
    as_judgements,
    costs_by_attribute,
    numeric_target,
)
from bayescrowd.data.vocabulary import plain
from bayescrowd.estimator import check_is_fitted
from bayescrowd.selection.repeats.moments import (
    Average,
    Moments,
    centre,
    judgement_moments,
    nearest_psd,
    object_averages,
)
from bayescrowd.selection.repeats.paths import RepeatPath, Steps, greedy_path, repeated_steps
from bayescrowd.selection.repeats.predictor import fit_predictor, predictor_of_moments
from bayescrowd.selection.repeats.repeat_summary import RepeatSummary

__all__ = ["MOST_REPEATS", "InfeasibleProjectionWarning", "RepeatSelector"]

MOST_REPEATS = 1_000_000
"""A budget that buys more judgements of one attribute than this is refused."""

FEASIBLE = 1 + 1e-9
"""Largest share of the target's variance that judgements may explain: all of it, plus rounding."""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="RepeatSelector")


class InfeasibleProjectionWarning(UserWarning):
    """The chosen judgements would explain more than all of the target's variance.

    The repeats can still be used; the loss projected for them is negative and cannot.
    """


class RepeatSelector(RepeatSummary):
    """Base of all selectors of repeats; scikit-learn's parameter protocol over judgements.

    Attributes:
        repeats_: how often to ask for each attribute, attributes in columns, one row for each
            budget on the way; the first row asks for nothing.
        projected_loss_: expected squared error of the best linear predictor on averages of the
            chosen judgements, by budget. NaN where the projection is infeasible, that is, where
            the moments imply that the judgements explain more than all of the target's variance;
            `fit` then warns with an `InfeasibleProjectionWarning`.
        projection_problem_: why the projection is infeasible; None if it is feasible.
        selected_: the attributes to ask for with the whole budget, and how often.
        attributes_: table of the attributes' properties: internal_variance, external_variance,
            reliability (share of a single judgement's variance that lies between objects),
            correlation (covariance with the target), cost.
        internal_variance_, external_covariance_, correlation_, reliability_: the same properties
            one by one; the covariance of attributes between objects is positive semidefinite.
        coef_, intercept_: the linear predictor on averages of the selected attributes.
    """

    budget: float
    costs: Costs
    ridge: float
    average: Average
    coef_: Any
    intercept_: Any

    @abstractmethod
    def _path(
        self, judgements: Judgements, target: Float[np.ndarray, "object target"]
    ) -> RepeatPath:
        """The repeat vectors along the budget; `_moments` and `_costs` are set by then."""

    def fit(self: Itself, judgements: Any, y: Any) -> Itself:
        """Choose how often to ask for each attribute.

        Args:
            judgements: a long table with the columns object, attribute, value and optionally
                worker, or an array objects x attributes x k with NaN where a judgement is
                missing. Every attribute needs two judgements of some object.
            y: the target: Series or mapping from object to number; for an array of judgements
                also a sequence in its order.
        """
        data = as_judgements(judgements)
        return self._choose(data, numeric_target(y, data)[:, None])

    @validate_arguments
    def refit(self: Itself, judgements: Any, y: Any, *, budget: float | None = None) -> Itself:
        """Learn the predictor from objects that have as many judgements as were chosen.

        Where an object has more judgements than that, all of them are averaged, and the internal
        variance accounts for what predictions from fewer judgements lose.

        Args:
            judgements: as for `fit`; only the selected attributes are used.
            y: as for `fit`.
            budget: use the repeats of this budget instead of the whole.

        Raises:
            ValueError: judgements are missing; `missing` lists them.
        """
        check_is_fitted(self)
        data, repeats = self._selected_part(judgements, budget)
        places = self._positions(repeats.index)
        self._predictor = fit_predictor(
            data,
            numeric_target(y, data)[:, None],
            repeats.to_numpy(),
            average=self.average,
            noise=self._moments.noise[places],
            ridge=self._ridge(places),
        )
        self._publish(repeats.index)
        return self

    def predict(self, judgements: Any) -> Any:
        """Predict the target of new objects from their judgements.

        An object that lacks judgements is predicted from those that it has, with coefficients for
        their number; a warning says how many are missing, and `missing` lists them.

        Returns:
            A Series by object, or an array if the judgements came as an array.
        """
        data = self._new_part(judgements)
        averages = object_averages(data, self.average)
        predicted = self._predictor.predict(averages, data.counts)[:, 0]
        return self._as_given(predicted, data, "prediction")

    @validate_arguments
    def missing(self, judgements: Any, *, budget: float | None = None) -> pd.DataFrame:
        """The judgements that objects lack: object, attribute, judged, wanted, missing.

        Args:
            judgements: as for `fit`.
            budget: use the repeats of this budget instead of the whole.
        """
        check_is_fitted(self)
        data = as_judgements(judgements)
        self._check_attributes(data)
        repeats = self._repeats(budget)
        return _missing_judgements(data.select_attributes(repeats.index), repeats.to_numpy())

    def score(self, judgements: Any, y: Any) -> float:
        """The share of the target's variance that predictions explain, R².

        For a constant target it is 1 if predictions are exact and 0 if not, as in scikit-learn.
        """
        data = as_judgements(judgements)
        truth = numeric_target(y, data)
        errors = truth - np.asarray(self.predict(data))
        magnitude = np.abs(truth).max()
        spread = centre(truth[:, None], magnitude[None]).spread[0]
        if spread == 0:
            return float((np.abs(errors) <= ROUNDING * magnitude).all())
        return float(1 - (errors**2).mean() / spread**2)

    @validate_arguments
    def repeats_at(self, budget: float) -> pd.Series:
        """How often to ask for each attribute with this budget, zeros included.

        Raises:
            ValueError: the budget is negative or beyond the one that was fitted.
        """
        check_is_fitted(self)
        if not 0 <= budget <= self.budget:
            raise ValueError(f"budget={budget}: expected 0 to {self.budget}, the one fitted")
        place = self.repeats_.index.searchsorted(budget * (1 + 1e-9), side="right") - 1
        return self.repeats_.iloc[int(place)]

    @validate_arguments
    def shopping_list(self, budget: float | None = None) -> pd.DataFrame:
        """What to buy, by attribute, most useful first.

        Args:
            budget: use the repeats of this budget instead of the whole.

        Returns:
            A table with the columns times, cost (of all of these judgements), adds (by how much
            they lower the projected loss, in the order in which they were chosen) and share (of
            the target's variance). The last two are NaN where the projection is infeasible (see
            `projection_problem_`).
        """
        check_is_fitted(self)
        repeats = self._repeats(budget)
        gains = self._gains(self._positions(repeats.index), repeats.to_numpy())
        variance = self._moments.target_variance
        is_feasible = gains.sum() <= FEASIBLE * variance
        adds = gains if is_feasible else np.full(len(gains), np.nan)
        table = pd.DataFrame(
            {
                "times": repeats.to_numpy(),
                "cost": repeats.to_numpy() * self.attributes_.loc[repeats.index, "cost"],
                "adds": adds,
                "share": adds / max(variance, np.finfo(float).tiny),
            },
            index=repeats.index,
        )
        return table.iloc[np.argsort(-gains, kind="stable")]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _choose(
        self: Itself, data: Judgements, target: Float[np.ndarray, "object target"]
    ) -> Itself:
        """Choose the repeats from coded judgements and targets."""
        check_parameters(self)
        costs = costs_by_attribute(self.costs, data.attributes)
        self._check_budget(costs, data.attributes)
        moments = judgement_moments(
            data,
            target,
            average=self.average,
            most_repeats=self._most_repeats(costs),
            needs_pairs=self._needs_pairs(),
        )
        self._moments, self._costs = moments, costs
        self._is_array = isinstance(data.objects, pd.RangeIndex)
        self.n_features_in_ = data.n_attributes
        self._describe(data, moments, costs)
        self._keep_path(self._path(data, target), moments, data.attributes)
        self._set_predictor(data, target)
        return self

    def _set_predictor(self, data: Judgements, target: Float[np.ndarray, "object target"]) -> None:
        """Set the predictor that holds until `refit`: the one that all judgements imply."""
        places = self._positions(self.selected_.index)
        external = self.external_covariance_.to_numpy()[np.ix_(places, places)]
        self._predictor = predictor_of_moments(
            self._moments, places, self.selected_.to_numpy(), external + self._ridge(places)
        )
        self._publish(self.selected_.index)

    def _publish(self, names: pd.Index) -> None:
        predictor = self._predictor
        weights = predictor.coefficients(predictor.repeats)[:, 0]
        self.coef_ = pd.Series(weights, index=names, name="coefficient")
        self.intercept_ = float(predictor.target_mean[0] - weights @ predictor.mean)

    def _describe(
        self, data: Judgements, moments: Moments, costs: Float[np.ndarray, " attribute"]
    ) -> None:
        names = data.attributes
        between = np.maximum(np.diag(moments.external), 0.0)
        total = between + moments.internal_variance
        external = nearest_psd(moments.external)
        self._variance = total
        self.attributes_ = pd.DataFrame(
            {
                "internal_variance": moments.internal_variance,
                "external_variance": between,
                "reliability": between / np.where(total > 0, total, 1.0),
                "correlation": moments.correlation[:, 0],
                "cost": costs,
            },
            index=names,
        )
        self.internal_variance_ = self.attributes_["internal_variance"]
        self.reliability_ = self.attributes_["reliability"]
        self.correlation_ = self.attributes_["correlation"]
        self.external_covariance_ = pd.DataFrame(external, index=names, columns=names)
        assumed = external if self._needs_pairs() else np.diag(between)
        self._covariance = assumed + self._ridge(np.arange(len(names)))

    def _keep_path(self, path: RepeatPath, moments: Moments, names: pd.Index) -> None:
        index = pd.Index(path.spent, name="budget")
        if self.costs is None:
            index = index.round().astype(np.int64)
        repeats = pd.DataFrame(path.repeats, index=index, columns=names)
        loss = pd.Series(moments.target_variance - path.explained, index=index, name="loss")
        if self.costs is None:  # the path ends early where further judgements are worth nothing
            budgets = pd.RangeIndex(int(self.budget) + 1, name="budget")
            repeats = repeats.reindex(budgets, method="ffill")
            loss = loss.reindex(budgets, method="ffill")
        self.repeats_ = repeats
        last = repeats.iloc[-1]
        self.selected_ = last[last > 0].rename("times")
        is_feasible = loss >= (1 - FEASIBLE) * moments.target_variance
        self.projected_loss_ = loss.clip(lower=0.0).where(is_feasible)
        self.projection_problem_: str | None = None
        if not is_feasible.all():
            self.projection_problem_ = (
                f"from a budget of {loss.index[~is_feasible][0]:g} on the projected loss is "
                f"negative: the judgements would explain {1 - loss.iloc[-1] / loss.iloc[0]:.4g} "
                f"times the target's variance, because {self._cause_of_infeasibility()}"
            )
            warnings.warn(
                f"{self.projection_problem_}. It is NaN there; {self._cure_of_infeasibility()}",
                InfeasibleProjectionWarning,
                stacklevel=4,
            )

    def _gains(
        self, places: Int[np.ndarray, " member"], repeats: Int[np.ndarray, " member"]
    ) -> Float[np.ndarray, " member"]:
        """What each attribute adds if only these judgements can be bought."""
        if len(places) == 0:
            return np.zeros(0)
        steps = repeated_steps(self._moments.noise[places], self._costs[places])
        beyond = np.arange(steps.noise.shape[1]) >= repeats[:, None]
        path = greedy_path(
            self._covariance[np.ix_(places, places)],
            self._moments.correlation[places],
            Steps(steps.column, np.where(beyond, np.inf, steps.noise), steps.cost),
            budget=np.inf,
        )
        bought = np.diff(path.repeats, axis=0)
        return bought.T @ np.diff(path.explained)

    def _ridge(self, places: Int[np.ndarray, " member"]) -> Float[np.ndarray, "member member"]:
        return np.diag(self.ridge * self._variance[places])

    def _cause_of_infeasibility(self) -> str:
        moments = self._moments
        return (
            f"the covariances of {len(moments.correlation)} attributes and the target, estimated "
            f"from {moments.n_objects} objects, contradict one another"
        )

    def _cure_of_infeasibility(self) -> str:
        return "more objects, fewer attributes or a ridge above 0 help"

    def _needs_pairs(self) -> bool:
        """Whether the choice depends on covariances between attributes."""
        return True

    def _most_repeats(self, costs: Float[np.ndarray, " attribute"]) -> int:
        return int(self.budget / costs.min() + 1e-9)

    def _positions(self, names: pd.Index) -> Int[np.ndarray, " member"]:
        return self.attributes_.index.get_indexer(names)

    def _repeats(self, budget: float | None) -> pd.Series:
        if budget is None:
            return self.selected_
        repeats = self.repeats_at(budget)
        return repeats[repeats > 0].rename("times")

    def _selected_part(self, judgements: Any, budget: float | None) -> tuple[Judgements, pd.Series]:
        """Judgements of this budget's attributes; raises ValueError if any are missing."""
        data = as_judgements(judgements)
        missing = self.missing(data, budget=budget)
        if len(missing):
            raise ValueError(_describe_missing(missing))
        repeats = self._repeats(budget)
        return data.select_attributes(repeats.index), repeats

    def _new_part(self, judgements: Any) -> Judgements:
        """Judgements of the attributes that the predictor uses; warns if any are missing."""
        check_is_fitted(self)
        data = as_judgements(judgements)
        self._check_attributes(data)
        part = data.select_attributes(self.coef_.index)
        missing = _missing_judgements(part, self._predictor.repeats)
        if len(missing):
            warnings.warn(
                f"{_describe_missing(missing)}; predictions use those that are there",
                UserWarning,
                stacklevel=3,
            )
        return part

    def _as_given(self, values: np.ndarray, data: Judgements, name: str) -> Any:
        """Values by object in the form of the input: a Series, or an array for an array."""
        if isinstance(data.objects, pd.RangeIndex):
            return values
        return pd.Series(values, index=data.objects, name=name)

    def _check_attributes(self, data: Judgements) -> None:
        is_array = isinstance(data.objects, pd.RangeIndex)
        if is_array and self._is_array and data.n_attributes != self.n_features_in_:
            raise ValueError(
                f"judgements have {data.n_attributes} attributes; {self.n_features_in_} were fitted"
            )

    def _check_budget(self, costs: Float[np.ndarray, " attribute"], attributes: pd.Index) -> None:
        if self.costs is None and self.budget < 1:
            raise ValueError(f"budget={self.budget}: expected at least 1, a single judgement")
        cheapest = int(np.argmin(costs))
        if self.budget < costs[cheapest]:
            raise ValueError(
                f"budget={self.budget:g} buys nothing: the cheapest attribute, "
                f"{plain(attributes[cheapest])!r}, costs {costs[cheapest]:g}"
            )
        if self.budget / costs.min() > MOST_REPEATS:
            raise ValueError(
                f"budget={self.budget:g} buys more than {MOST_REPEATS:,} judgements of "
                f"{plain(attributes[cheapest])!r}"
            )


def _missing_judgements(data: Judgements, wanted: Int[np.ndarray, " attribute"]) -> pd.DataFrame:
    """Objects and attributes with fewer judgements than wanted."""
    rows, columns = np.nonzero(data.counts < wanted)
    judged = data.counts[rows, columns]
    return pd.DataFrame(
        {
            "object": data.objects.take(rows),
            "attribute": data.attributes.take(columns),
            "judged": judged,
            "wanted": wanted[columns],
            "missing": wanted[columns] - judged,
        }
    )


def _describe_missing(missing: pd.DataFrame) -> str:
    first = missing.iloc[0]
    return (
        f"object {plain(first['object'])!r} has {first['judged']} of {first['wanted']} judgements "
        f"of attribute {plain(first['attribute'])!r}; {int(missing['missing'].sum()):,} are "
        "missing in all (`missing` lists them)"
    )
