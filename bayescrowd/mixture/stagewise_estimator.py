"""A mixture of discrete products learned stage by stage, as an estimator.

The algorithm, its paper and the departures from it are in `stagewise.py`. This file gives it the
interface of a mixture and, fitted to judgements, that of an aggregator.
"""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import EMResult, maximise
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.smoothing import mean_rows
from bayescrowd.aggregation.votes import shares
from bayescrowd.aggregation.whole_matrices import counts_by_worker
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import DenseRows
from bayescrowd.checks.parameters import (
    Count,
    NonNegative,
    Positive,
    Real,
    Seed,
    Tolerance,
    Whole,
    check_parameters,
    validate_arguments,
)
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.features import FeatureTable, as_feature_table
from bayescrowd.estimator import check_is_fitted
from bayescrowd.iteration import warn_not_converged, warn_not_settled
from bayescrowd.mixture.goodness import GoodnessOfFit
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.mixture.stagewise import (
    Record,
    StagewiseResult,
    incidence_of,
    maximisation,
    stagewise_em,
)
from bayescrowd.mixture.vote_start import (
    WorseThanVotesWarning,
    compare_starts,
    match_votes,
    n_used,
)

__all__ = ["StagewiseEM"]

REFINE_N_ITER = 500
"""Largest number of iterations of EM on all features, as in `MDPD`."""

REFINE_TOL = 1e-7
"""EM on all features stops when the objective rises by less than this, in nats per entry."""

JUDGEMENTS = {"task", "worker", "label"}
"""Columns of a table that is read as judgements, not as features."""

_LABEL_ATTRIBUTES = ("labels_", "probas_", "priors_", "confusions_", "worker_quality_", "n_ties_")

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="StagewiseEM")


class StagewiseEM(MDPD):
    """Mixture of discrete products, learned stage by stage from its informative features.

    Fitted to a table, it is a mixture with everything that `MDPD` offers. Fitted to judgements
    (`Annotations`, or a table with the columns task, worker and label) with as many classes as
    components, it is an aggregator as well: components are matched to classes by the votes (no
    truth is needed, but the votes of the whole crowd must not mislead), and `labels_`, `probas_`
    and the description of workers are those of all aggregators. A class that nobody has chosen gets
    no component. The fit is then compared with the same mixture started from votes, and
    `WorseThanVotesWarning` says if votes explain the labels better, which happens where few workers
    share tasks. With another number of components, workers are features like any others.

    Args:
        n_components: number of components, at least 2.
        refine: whether to run EM on all features afterwards. This is better where most features are
            informative and worse where few are: on crowds with 5 informative workers of 100 the
            error is 33 % with it and 26 % without (the true model has 23 %).
        split: 'while-missing' splits a component in every iteration until all are there;
            'printed' only when the chosen pair brings a new feature, as in the paper.
        predict_with: features by which items are assigned, 'all' or only the 'informative' ones.
        level: a pair enters the informative set only if independent features would show as large an
            entry with at most this probability, over all pairs together; 0 lets the largest entry
            in, as the paper does.
        coordinates: coordinates in which the twins of a split are moved apart: 'probability', as in
            the paper; 'fisher', in which rare values do not attract the split; or 'best', which
            runs both and keeps the mixture with the higher likelihood, at twice the cost.
        step: how far twins are moved apart (Euclidean length over both features, in these
            coordinates). Any step from 0.1 to 0.3 finds as many informative workers of bluebird as
            published, 11.
        pseudo_counts: pseudo-observations per feature and component, distributed like the values
            of the feature over all items; 0 is maximum likelihood.
        fallback: 'votes' starts the mixture from the shares of votes where these explain the labels
            better (`start_`, `comparison_`), and predicts with all workers; None only warns.
        n_iter: largest number of iterations; the paper runs 20.
        tol: stop when the informative set does not grow and the largest conditional information
            changes by less than this fraction; 0 runs n_iter.
        seed: seed of the draw that breaks ties between classes.

    Attributes:
        informative_: features of the informative set, in the order in which they entered.
        history_: one row per iteration, from the single component (row 0) to the end:
            log_likelihood (nats), max_information (largest I(Xi; Xj | Y)), total_information (sum
            over pairs), n_informative, n_components, the chosen features first and second, the
            chosen component, the entry I(Xi; Xj | Y = k), and is_split (whether it was split).
        weights_, profiles_, responsibilities_, log_likelihood_, ...: see `MDPD`; components are in
            the order in which they were split off, or in that of their classes.
        start_: 'stages', or 'votes' after a fallback.
        comparison_: on judgements only, the log-likelihoods of the mixtures from both starts; see
            `bayescrowd.mixture.vote_start.StartComparison`.
        labels_, probas_, priors_, confusions_, worker_quality_: on judgements only; see
            `bayescrowd.aggregation.protocol.Aggregator`.
        aggregator_: on judgements only, the fit as an aggregator, for pictures and comparisons.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.sparse_crowd(500, 40, alpha=0.2, accuracy=0.75, seed=3)
        >>> est = bc.StagewiseEM(n_components=3, level=0.05).fit(crowd.annotations)
        >>> est.informative_.to_list()  # only the workers 0 to 7 know anything
        [5, 7, 1, 4, 3, 6]
        >>> round(bc.metrics.error_rate(est.probas_, crowd.truth), 2)
        0.04
        >>> vote = bc.MajorityVote().fit(crowd.annotations)
        >>> round(bc.metrics.error_rate(vote.probas_, crowd.truth), 2)
        0.23
    """

    prior = "learned"

    labels_: pd.Series
    probas_: pd.DataFrame
    priors_: pd.Series
    confusions_: pd.DataFrame
    worker_quality_: pd.DataFrame

    def __init__(
        self,
        n_components: Annotated[int, Whole(2)],
        *,
        refine: bool = False,
        split: Literal["while-missing", "printed"] = "while-missing",
        predict_with: Literal["all", "informative"] = "all",
        level: Annotated[float, Real(0, 1, without_most=True)] = 0.0,
        coordinates: Literal["probability", "fisher", "best"] = "best",
        step: Positive = 0.2,
        pseudo_counts: NonNegative = 0.01,
        fallback: Literal["votes"] | None = None,
        n_iter: Count = 100,
        tol: Tolerance = 1e-4,
        seed: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.split = split
        self.predict_with = predict_with
        self.level = level
        self.coordinates = coordinates
        self.step = step
        self.pseudo_counts = pseudo_counts
        self.fallback = fallback
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def fit(self: Itself, data: Any, y: None = None) -> Itself:
        """Learn from a table of items x discrete features, or from judgements.

        Args:
            data: see `bayescrowd.data.features.as_feature_table`; or a table with the columns
                task, worker and label.
            y: ignored; scikit-learn's pipelines pass it.
        """
        check_parameters(self)
        data = _as_judgements(data)
        are_classes = isinstance(data, Annotations) and data.n_classes == self.n_components
        if self.fallback is not None and not are_classes:
            raise ValueError(
                f"fallback={self.fallback!r}: expected None, because only judgements in "
                f"n_components={self.n_components} classes are votes"
            )
        table = as_feature_table(data)
        found = stagewise_em(
            table,
            n_used(data) if are_classes else self.n_components,
            split=self.split,
            level=self.level,
            coordinates=self.coordinates,
            step=self.step,
            pseudo_counts=self.pseudo_counts,
            n_iter=self.n_iter,
            tol=self.tol,
        )
        labels = incidence_of(table, self.n_components)
        m_step = maximisation(table, self.pseudo_counts)
        n_missing = self.n_components - found.posterior.shape[1]
        posterior = np.pad(found.posterior, [(0, 0), (0, n_missing)])
        if are_classes:
            posterior = posterior[:, match_votes(posterior, data)]
        result = maximise(
            labels,
            posterior,
            m_step,
            n_iter=REFINE_N_ITER if self.refine else 1,
            tol=REFINE_TOL if self.refine else 0.0,
        )
        self.__dict__.pop("comparison_", None)
        self.start_ = "stages"
        if are_classes:
            self.comparison_, from_votes = compare_starts(
                labels,
                result,
                shares(data.votes.astype(float)),
                m_step,
                refine=self.refine,
                n_iter=REFINE_N_ITER,
                tol=REFINE_TOL,
            )
            if self.comparison_.is_worse and self.fallback == "votes":
                self.start_, result = "votes", from_votes
            elif self.comparison_.is_worse:
                self._warn_of_votes()
        self._set_fit(table, result)
        self._set_course(table, found, result)
        self._set_labels(data, result)
        return self

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """P(component | item) of new items; absent features count as missing."""
        check_is_fitted(self)
        data = _as_judgements(data)
        if isinstance(data, Annotations) and hasattr(self, "aggregator_"):
            return self.aggregator_.predict_proba(data)
        table = self._recode(data)
        return pd.DataFrame(
            self._posterior_of(table), index=table.items, columns=self.weights_.index
        )

    def predict(self, data: Any) -> pd.Series:
        """The most probable component, or class, of new items."""
        check_is_fitted(self)
        data = _as_judgements(data)
        if isinstance(data, Annotations) and hasattr(self, "aggregator_"):
            return self.aggregator_.predict(data)
        probas = self.predict_proba(data)
        codes = probas.to_numpy().argmax(axis=1)
        return pd.Series(probas.columns.take(codes), index=probas.index, name="component")

    def fit_predict(self, data: Any, y: None = None) -> pd.Series:
        """Fit, and return the most probable component, or class, of each item."""
        self.fit(data)
        if hasattr(self, "aggregator_"):
            return self.labels_
        codes = self.responsibilities_.to_numpy().argmax(axis=1)
        index = self.responsibilities_.index
        return pd.Series(self.weights_.index.take(codes), index=index, name="component")

    def fit_predict_proba(self, data: Any, y: None = None) -> pd.DataFrame:
        """Fit, and return `responsibilities_`."""
        return self.fit(data).responsibilities_

    @validate_arguments
    def goodness_of_fit(self, *, n_bootstrap: Count = 99, seed: Seed = 0) -> GoodnessOfFit:
        """`MDPD.goodness_of_fit` of the mixture after EM on all features."""
        check_is_fitted(self)
        refined = MDPD(
            self.n_components,
            init=self.responsibilities_.to_numpy(),
            n_init=1,
            pseudo_counts=self.pseudo_counts,
        )
        return refined.fit(self._table).goodness_of_fit(n_bootstrap=n_bootstrap, seed=seed)

    def _warn_of_votes(self) -> None:
        """Warn that votes explain the labels better, with both log-likelihoods."""
        compared = self.comparison_
        settled = (
            f"{compared.fitted_maximum:.1f} against {compared.votes_maximum:.1f} nats where EM on "
            "all workers settles"
        )
        first = f"{compared.fitted:.1f} against {compared.votes:.1f} nats as fitted, "
        warnings.warn(
            "StagewiseEM explains the labels worse than the same mixture started from votes: "
            f"log-likelihood {'' if self.refine else first}{settled}. Its labels may be worse than "
            "those of a vote, as happens where few workers share tasks. fallback='votes' starts "
            "from votes where they are better",
            WorseThanVotesWarning,
            stacklevel=3,
        )

    def _set_course(self, table: FeatureTable, found: StagewiseResult, result: EMResult) -> None:
        """Set what this class adds to a fitted mixture."""
        self.informative_ = table.features.take(list(found.informative))
        self.history_ = _history(found.records, table.features)
        course = [record.log_likelihood for record in found.records[1:]]
        if self.start_ == "votes":
            self.trace_ = result.trace
        else:
            self.trace_ = np.concatenate([course, result.trace if self.refine else []])
        self.n_iter_ = len(self.trace_)
        self.converged_ = result.converged if self.refine else found.converged
        if self.refine and not result.converged:
            warn_not_converged(
                f"the refinement stopped after {REFINE_N_ITER} iterations before the objective "
                f"settled to {REFINE_TOL:g} nats per entry",
                stacklevel=3,
            )
        if self.start_ == "votes":
            return
        n_found = found.records[-1].n_components
        if n_found < found.posterior.shape[1]:
            warn_not_converged(
                f"split={self.split!r} found {n_found} of n_components={self.n_components} in "
                f"n_iter={self.n_iter} iterations; the other components have no items",
                stacklevel=3,
            )
        elif not self.refine and not found.converged and self.tol > 0:
            warn_not_settled(
                type(self).__name__,
                n_iter=self.n_iter,
                tol=self.tol,
                quantity="the largest conditional information",
                stacklevel=3,
            )
        if self._hears_informative:
            self.responsibilities_.loc[:] = self._posterior_of(table)

    def _set_labels(self, data: Any, result: EMResult) -> None:
        """Set what an aggregator offers, if components are classes."""
        for name in ("aggregator_", *_LABEL_ATTRIBUTES):
            self.__dict__.pop(name, None)
        if not isinstance(data, Annotations) or data.n_classes != self.n_components:
            return
        classes = data.classes
        self.weights_.index = classes
        self.profiles_.columns = classes
        self.responsibilities_.columns = classes
        self.aggregator_ = _MixtureOfWorkers(self, result.counts, seed=self.seed).fit(data)
        for name in _LABEL_ATTRIBUTES:
            setattr(self, name, getattr(self.aggregator_, name))

    @property
    def _hears_informative(self) -> bool:
        """Whether items are assigned by the informative features alone."""
        return self.predict_with == "informative" and self.start_ == "stages"

    def _posterior_of(self, table: FeatureTable) -> Float[np.ndarray, "item component"]:
        """P(component | item) of a table with the features and values of the fit."""
        estimate = self._estimate
        if self._hears_informative:
            heard = np.isin(table.feature_of_symbol, self.features_.get_indexer(self.informative_))
            silent = np.where(heard[:, None], estimate.log_table, 0.0)
            estimate = estimate._replace(log_table=silent)
        posterior = np.empty((table.n_items, self.n_components))
        incidence_of(table, self.n_components).sweep(estimate, posterior)
        return posterior


class _MixtureOfWorkers(Aggregator):
    """A mixture whose features are workers and whose components are classes, as an aggregator."""

    tol = 0.0  # the mixture itself warns if it has not settled

    def __init__(
        self,
        mixture: StagewiseEM,
        counts: Float[np.ndarray, "symbol cls"],
        *,
        seed: int,
    ) -> None:
        self.mixture = mixture
        self.counts = counts
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        counts = counts_by_worker(self.counts, ann.n_classes)
        profiles = counts_by_worker(self.mixture.profiles_.to_numpy(), ann.n_classes)
        silent = (ann.labels_per_worker == 0)[:, None, None]
        crowd = mean_rows(counts)
        confusions = np.where(silent, crowd, profiles)
        pairs = WorkerLabelPairs(ann)
        return Aggregation(
            self.mixture.responsibilities_.to_numpy(),
            self.mixture.weights_.to_numpy(),
            DenseRows(confusions / confusions.sum(axis=2, keepdims=True), crowd),
            pairs,
            self.counts[pairs.keys],
            self.mixture.log_likelihood_,
            self.mixture.trace_,
            self.mixture.converged_,
        )

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        """P(class) of new tasks, by all workers or by the informative ones, whom the fit knows."""
        if not self.mixture._hears_informative:
            return super()._posterior_of_new(ann, known)
        places = self.mixture.features_.get_indexer(self.mixture.informative_)
        heard = np.flatnonzero(np.isin(known, places))
        if len(heard) == 0:
            return np.tile(self.mixture.weights_.to_numpy(), (ann.n_tasks, 1))
        table = as_feature_table(ann).select_features(heard)
        return self.mixture._posterior_of(
            table.recode(self.mixture.features_, self.mixture.values_)
        )


def _as_judgements(data: Any) -> Any:
    """Annotations if the data are a table with just the columns of judgements, else the data."""
    if (
        isinstance(data, np.ndarray | FeatureTable)
        or set(getattr(data, "columns", ())) != JUDGEMENTS
    ):
        return data
    return Annotations.from_frame(data)


def _history(records: tuple[Record, ...], features: pd.Index) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "log_likelihood": [record.log_likelihood for record in records],
            "max_information": [record.scan.max_norm for record in records],
            "total_information": [record.scan.total for record in records],
            "n_informative": [record.n_informative for record in records],
            "n_components": [record.n_components for record in records],
            "first": features.take([record.scan.first for record in records]),
            "second": features.take([record.scan.second for record in records]),
            "component": [record.scan.component for record in records],
            "entry": [record.scan.value for record in records],
            "is_split": [record.is_split for record in records],
        }
    )
    return frame.rename_axis("iteration")
