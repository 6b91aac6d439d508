"""What every selector of repeats does: choose along the budget, then predict from averages.

A selector states one thing, `_path`: the repeat vectors along the budget. The rest stands here
once: reading the input, the tables indexed by the user's names, the linear predictor, and what is
missing of new judgements.

The linear predictor on averages of r judgements follows from moments alone,

    w(r) = (Sigma + Diag(v / r))^+ b,

so that it can be had before the additional judgements are bought, and for objects that lack some
of them. `refit` estimates Sigma and b anew; where every object has r judgements, w(r) is then the
least-squares fit on the averages with an intercept (step 4 of Sabato and Kalai 2013).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bayescrowd.parameters import check_parameters, checked
from bayescrowd.selection.judgements import (
    ROUNDING,
    Costs,
    Judgements,
    as_judgements,
    costs_by_attribute,
    numeric_target,
)
from bayescrowd.selection.repeat_moments import (
    Average,
    Moments,
    centre,
    judgement_moments,
    nearest_psd,
    object_averages,
    target_covariance,
)
from bayescrowd.selection.repeat_paths import (
    RepeatPath,
    Steps,
    generalised_inverse,
    greedy_path,
    repeated_steps,
)
from bayescrowd.vocabulary import plain

__all__ = ["MOST_REPEATS", "InfeasibleProjectionWarning", "Predictor", "RepeatSelector"]

MOST_REPEATS = 1_000_000

FEASIBLE = 1 + 1e-9
"""Judgements may explain this share of the target's variance: all of it, but for rounding."""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="RepeatSelector")


class InfeasibleProjectionWarning(UserWarning):
    """The chosen judgements would explain more than all of the target's variance.

    The repeats can still be used; the loss projected for them, a negative number, cannot.
    """


class Predictor(NamedTuple):
    """A linear predictor on averages of judgements of the selected attributes."""

    repeats: Int[np.ndarray, " attribute"]
    """How many judgements are averaged."""
    mean: Float[np.ndarray, " attribute"]
    """Mean of the averages."""
    target_mean: Float[np.ndarray, " target"]
    """Mean of the targets."""
    covariance: Float[np.ndarray, "attribute attribute"]
    """Sigma, the ridge included."""
    correlation: Float[np.ndarray, "attribute target"]
    """b."""
    noise: Float[np.ndarray, "attribute repeat"]
    """Variance of the average of 0, 1, ... judgements."""

    def coefficients(
        self, counts: Int[np.ndarray, " attribute"]
    ) -> Float[np.ndarray, "attribute target"]:
        """w for so many judgements; more than `repeats` count as `repeats`, none has weight 0."""
        asked = np.flatnonzero(counts)
        used = np.minimum(counts, self.repeats)[asked]
        matrix = self.covariance[np.ix_(asked, asked)] + np.diag(self.noise[asked, used])
        weights = np.zeros_like(self.correlation)
        weights[asked] = generalised_inverse(matrix) @ self.correlation[asked]
        return weights

    def predict(
        self,
        averages: Float[np.ndarray, "object attribute"],
        counts: Int[np.ndarray, "object attribute"],
    ) -> Float[np.ndarray, "object target"]:
        """The prediction from each object's averages, of which NaN are missing."""
        if len(self.repeats) == 0:
            return np.tile(self.target_mean, (len(counts), 1))
        centred = np.where(counts > 0, averages - self.mean, 0.0)
        patterns, which = np.unique(np.minimum(counts, self.repeats), axis=0, return_inverse=True)
        predicted = np.tile(self.target_mean, (len(counts), 1))
        for place, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == place)
            predicted[rows] += centred[rows] @ self.coefficients(pattern)
        return predicted


class RepeatSelector(BaseEstimator):
    """Base of all selectors of repeats; scikit-learn's parameter protocol over judgements.

    Attributes:
        repeats_: how often to ask for each attribute, attributes in columns, one row for each
            budget on the way; the first row asks for nothing.
        projected_loss_: expected squared error of the best linear predictor on averages of so many
            judgements, by budget. NaN where the projection is infeasible: the moments would have
            the judgements explain more than all of the target's variance. `fit` then warns with
            an `InfeasibleProjectionWarning`.
        projection_problem_: why the projection is infeasible; None if it is feasible.
        selected_: the attributes of the whole budget and how often to ask for each.
        attributes_: table of the attributes' properties: internal_variance, external_variance,
            reliability (share of a single judgement's variance that lies between objects),
            correlation (covariance with the target), cost.
        internal_variance_, external_covariance_, correlation_, reliability_: the same one by one;
            the covariance of attributes between objects is positive semidefinite.
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
        """The repeat vectors along the budget; moments and costs are at hand."""

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
        return self._fitted(data, numeric_target(y, data)[:, None])

    @checked
    def refit(self: Itself, judgements: Any, y: Any, *, budget: float | None = None) -> Itself:
        """Learn the predictor from objects that have as many judgements as were chosen.

        Where an object has more of them than that, all are averaged, and what the prediction from
        fewer loses is allowed for by the internal variance.

        Args:
            judgements: as for `fit`; only the selected attributes are looked at.
            y: as for `fit`.
            budget: take the repeats of this budget instead of the whole.

        Raises:
            ValueError: judgements are missing; `missing` lists them.
        """
        check_is_fitted(self)
        data, repeats = self._selected_part(judgements, budget)
        target = numeric_target(y, data)[:, None]
        self._set_linear_predictor(data, repeats, target)
        return self

    def predict(self, judgements: Any) -> Any:
        """Predict the target of new objects from their judgements.

        An object that lacks judgements is predicted from those that it has, with coefficients for
        their number; a warning says how many are missing, and `missing` which.

        Returns:
            A Series by object, or an array where the judgements came as one.
        """
        data = self._new_part(judgements)
        averages = object_averages(data, self.average)
        predicted = self._predictor.predict(averages, data.counts)[:, 0]
        return self._in_form(predicted, data, "prediction")

    @checked
    def missing(self, judgements: Any, *, budget: float | None = None) -> pd.DataFrame:
        """The judgements that objects lack: object, attribute, judged, wanted, missing.

        Args:
            judgements: as for `fit`.
            budget: look at the repeats of this budget instead of the whole.
        """
        check_is_fitted(self)
        data = as_judgements(judgements)
        self._check_attributes(data)
        repeats = self._repeats(budget)
        return _lacking(data.select_attributes(repeats.index), repeats.to_numpy())

    def score(self, judgements: Any, y: Any) -> float:
        """The share of the target's variance that predictions explain, R².

        Of a target without variance, 1 if it is predicted exactly and 0 if not, as in scikit-learn.
        """
        data = as_judgements(judgements)
        truth = numeric_target(y, data)
        errors = truth - np.asarray(self.predict(data))
        magnitude = np.abs(truth).max()
        spread = centre(truth[:, None], magnitude[None]).spread[0]
        if spread == 0:
            return float((np.abs(errors) <= ROUNDING * magnitude).all())
        return float(1 - (errors**2).mean() / spread**2)

    @checked
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

    @checked
    def shopping_list(self, budget: float | None = None) -> pd.DataFrame:
        """What to buy, by attribute, most useful first.

        Args:
            budget: take the repeats of this budget instead of the whole.

        Returns:
            times, cost (of all of them), adds (by how much they lower the projected loss, in the
            order in which they were chosen) and share (of the variance of the target). The last
            two are NaN where the projection is infeasible (see `projection_problem_`).
        """
        check_is_fitted(self)
        repeats = self._repeats(budget)
        gains = self._gains(self._positions(repeats.index), repeats.to_numpy())
        variance = self._moments.target_variance
        told = gains if gains.sum() <= FEASIBLE * variance else np.full(len(gains), np.nan)
        table = pd.DataFrame(
            {
                "times": repeats.to_numpy(),
                "cost": repeats.to_numpy() * self.attributes_.loc[repeats.index, "cost"],
                "adds": told,
                "share": told / max(variance, np.finfo(float).tiny),
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

    def _fitted(
        self: Itself, data: Judgements, target: Float[np.ndarray, "object target"]
    ) -> Itself:
        """Choose the repeats; what all of them have in common."""
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
        """The predictor before any `refit`: by the moments of all judgements."""
        places = self._positions(self.selected_.index)
        moments = self._moments
        self._predictor = Predictor(
            self.selected_.to_numpy(),
            moments.attribute_mean[places],
            moments.target_mean,
            self.external_covariance_.to_numpy()[np.ix_(places, places)] + self._ridge(places),
            moments.correlation[places],
            moments.noise[places],
        )
        self._publish(self.selected_.index)

    def _set_linear_predictor(
        self, data: Judgements, repeats: pd.Series, target: Float[np.ndarray, "object target"]
    ) -> None:
        places = self._positions(repeats.index)
        averages = centre(object_averages(data, self.average), data.magnitudes)
        targets = centre(target, np.abs(target).max(axis=0))
        noise = self._moments.noise[places]
        at_counts = _noise_at(noise, data.counts).mean(axis=0)
        covariance = averages.deviations.T @ averages.deviations / data.n_objects
        self._predictor = Predictor(
            repeats.to_numpy(),
            averages.mean,
            targets.mean,
            covariance - np.diag(at_counts) + self._ridge(places),
            target_covariance(averages, targets, data.n_objects),
            noise,
        )
        self._publish(repeats.index)

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
        if self.costs is None:  # what is not worth anything is not bought
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
        """What each attribute adds if no more than these judgements may be bought."""
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
            f"covariances of {len(moments.correlation)} attributes and the target that are "
            f"estimated from {moments.n_objects} objects contradict one another"
        )

    def _cure_of_infeasibility(self) -> str:
        return "more objects, fewer attributes or a ridge above 0 help"

    def _needs_pairs(self) -> bool:
        """Whether covariances of two attributes have a part in the choice."""
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
        """Judgements of the attributes of this budget, of which none may be missing."""
        data = as_judgements(judgements)
        lacking = self.missing(data, budget=budget)
        if len(lacking):
            raise ValueError(_told(lacking))
        repeats = self._repeats(budget)
        return data.select_attributes(repeats.index), repeats

    def _new_part(self, judgements: Any) -> Judgements:
        """Judgements of the attributes that the predictor uses; warns of those that are missing."""
        check_is_fitted(self)
        data = as_judgements(judgements)
        self._check_attributes(data)
        part = data.select_attributes(self.coef_.index)
        lacking = _lacking(part, self._predictor.repeats)
        if len(lacking):
            warnings.warn(
                f"{_told(lacking)}; predicted from those that are there",
                UserWarning,
                stacklevel=3,
            )
        return part

    def _in_form(self, values: np.ndarray, data: Judgements, name: str) -> Any:
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


def _noise_at(
    noise: Float[np.ndarray, "attribute repeat"], counts: Int[np.ndarray, "object attribute"]
) -> Float[np.ndarray, "object attribute"]:
    """Variance of averages of so many judgements; beyond the table it falls as 1 / n."""
    most = noise.shape[1] - 1
    known = np.minimum(counts, most)
    return noise[np.arange(len(noise)), known] * (known / counts)


def _lacking(data: Judgements, wanted: Int[np.ndarray, " attribute"]) -> pd.DataFrame:
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


def _told(lacking: pd.DataFrame) -> str:
    first = lacking.iloc[0]
    return (
        f"object {plain(first['object'])!r} has {first['judged']} of {first['wanted']} judgements "
        f"of attribute {plain(first['attribute'])!r}; {int(lacking['missing'].sum()):,} are "
        "missing in all, which `missing` lists"
    )
