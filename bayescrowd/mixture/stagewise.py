"""A mixture of discrete products learned stage by stage, as an estimator.

The algorithm, its paper and the departures from it are in `stages.py`; this file gives it the
interface of a mixture, and on judgements that of an aggregator.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bayescrowd.aggregation.em import EMResult, maximise
from bayescrowd.aggregation.protocol import Aggregation, Aggregator, counts_by_worker, shares
from bayescrowd.aggregation.smoothing import mean_rows
from bayescrowd.aggregation.symbols import Symbols
from bayescrowd.aggregation.worker_rows import DenseRows
from bayescrowd.annotations import Annotations
from bayescrowd.feature_table import FeatureTable, as_feature_table
from bayescrowd.mixture.goodness import GoodnessOfFit
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.mixture.stages import (
    Record,
    StagewiseResult,
    incidence_of,
    maximisation,
    stagewise_em,
)

__all__ = ["StagewiseEM", "match_votes"]

REFINE_N_ITER = 500
"""Most iterations of the full EM that refines, as in `MDPD`."""

REFINE_TOL = 1e-7
"""It stops when the objective rises by less than this, in nats per entry, as in `MDPD`."""

JUDGEMENTS = {"task", "worker", "label"}
"""Columns of a table that is read as judgements rather than as features."""

_LABEL_ATTRIBUTES = ("labels_", "probas_", "priors_", "confusions_", "worker_quality_", "n_ties_")

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="StagewiseEM")


class StagewiseEM(MDPD):
    """Mixture of discrete products, learned stage by stage from its informative features.

    Fitted on a table it is a mixture, with everything that `MDPD` offers. Fitted on judgements
    (`Annotations`, or a table with the columns task, worker, label) whose classes are as many as
    the components, it is an aggregator as well: components are matched to classes such that votes
    go up with them (no truth is needed, but the crowd's votes must not mislead as a whole), and
    `labels_`, `probas_` and the description of workers are those of all aggregators. With another
    number of components, workers are features like any other.

    Args:
        n_components: number of components, at least 2.
        refine: run EM on all features afterwards. Better where most features are informative,
            worse where few are: on crowds with 5 informative workers of 100 the error is 33 %
            with and 26 % without (the true model has 23 %).
        split: 'while-missing' splits a component in every iteration until all are there;
            'printed' only when the chosen pair brings a new feature, as in the paper.
        predict_with: features that items are assigned by: 'all', or the 'informative'.
        level: only pairs that independent features would show with at most this probability, all
            pairs together, enter the informative set; 0 lets the largest in, as the paper does.
        step: how far twins are moved apart, in probability (Euclidean length over both features).
            Any from 0.1 to 0.3 gives as many informative workers of bluebird as published, 11.
        pseudo_counts: pseudo-observations per feature and component, spread as the feature's
            values are over all items; 0 is maximum likelihood.
        n_iter: most iterations; the paper runs 20.
        tol: stop when the informative set stays and the largest conditional information moves by
            less than this fraction of itself; 0 runs n_iter.
        seed: ties between classes.

    Attributes:
        informative_: features of S in the order of entering.
        history_: one row per iteration, from the single component (row 0) to the end:
            log_likelihood (nats), max_information (largest I(Xi; Xj | Y)), total_information (sum
            over pairs), n_informative, n_components, and the chosen first, second, component and
            entry I(Xi; Xj | Y = k), and whether it was split.
        weights_, profiles_, responsibilities_, log_likelihood_, ...: see `MDPD`; components stand
            in the order in which they were split off, or in that of their classes.
        labels_, probas_, priors_, confusions_, worker_quality_: on judgements only; see
            `bayescrowd.aggregation.protocol.Aggregator`.
        aggregator_: on judgements only, the same as an aggregator, for pictures and comparisons.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.sparse_crowd(500, 40, alpha=0.2, accuracy=0.75, seed=3)
        >>> est = bc.StagewiseEM(n_components=3, level=0.05).fit(crowd.annotations)
        >>> est.informative_.to_list()  # of the workers 0 to 7, who know something
        [5, 7, 1, 4, 6]
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
        n_components: int,
        *,
        refine: bool = False,
        split: Literal["while-missing", "printed"] = "while-missing",
        predict_with: Literal["all", "informative"] = "all",
        level: float = 0.0,
        step: float = 0.2,
        pseudo_counts: float = 0.01,
        n_iter: int = 100,
        tol: float = 1e-4,
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.split = split
        self.predict_with = predict_with
        self.level = level
        self.step = step
        self.pseudo_counts = pseudo_counts
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def fit(self: Itself, data: Any, y: None = None) -> Itself:
        """Learn from a table of items x discrete features, or from judgements.

        Args:
            data: see `bayescrowd.feature_table.as_feature_table`; or a table with the columns
                task, worker and label.
            y: ignored; for scikit-learn's pipelines.
        """
        self._check_parameters()
        data = _as_judgements(data)
        table = as_feature_table(data)
        found = stagewise_em(
            table,
            self.n_components,
            split=self.split,
            level=self.level,
            step=self.step,
            pseudo_counts=self.pseudo_counts,
            n_iter=self.n_iter,
            tol=self.tol,
        )
        posterior = found.posterior
        if isinstance(data, Annotations) and data.n_classes == self.n_components:
            posterior = posterior[:, match_votes(posterior, data)]
        result = maximise(
            incidence_of(table, self.n_components),
            posterior,
            maximisation(table, self.pseudo_counts),
            n_iter=REFINE_N_ITER if self.refine else 1,
            tol=REFINE_TOL if self.refine else 0.0,
        )
        self._set_fit(table, result)
        self._set_course(table, found, result)
        self._set_labels(data, result)
        return self

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """P(component | item) of new items; features that are absent count as missing."""
        check_is_fitted(self)
        data = _as_judgements(data)
        if isinstance(data, Annotations) and hasattr(self, "aggregator_"):
            return self.aggregator_.predict_proba(data)
        table = self._recoded(data)
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

    def goodness_of_fit(self, *, n_bootstrap: int = 99, seed: int = 0) -> GoodnessOfFit:
        """`MDPD.goodness_of_fit` of the mixture as EM on all features refines it."""
        check_is_fitted(self)
        refined = MDPD(
            self.n_components,
            init=self.responsibilities_.to_numpy(),
            n_init=1,
            pseudo_counts=self.pseudo_counts,
        )
        return refined.fit(self._table).goodness_of_fit(n_bootstrap=n_bootstrap, seed=seed)

    def _set_course(self, table: FeatureTable, found: StagewiseResult, result: EMResult) -> None:
        """What this class adds to a fitted mixture."""
        self.informative_ = table.features.take(list(found.informative))
        self.history_ = _history(found.records, table.features)
        course = [record.log_likelihood for record in found.records[1:]]
        self.trace_ = np.concatenate([course, result.trace]) if self.refine else np.array(course)
        self.n_iter_ = len(self.trace_)
        self.converged_ = result.converged if self.refine else found.converged
        if self.refine and not result.converged:
            warnings.warn(
                f"the refinement stopped after {REFINE_N_ITER} iterations before the objective "
                f"settled to {REFINE_TOL:g} nats per entry",
                ConvergenceWarning,
                stacklevel=3,
            )
        n_found = found.records[-1].n_components
        if n_found < self.n_components:
            warnings.warn(
                f"split={self.split!r} found {n_found} of n_components={self.n_components} in "
                f"n_iter={self.n_iter} iterations; the others have no items",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not self.refine and not found.converged and self.tol > 0:
            warnings.warn(
                f"stagewise EM stopped after n_iter={self.n_iter} iterations before the largest "
                f"conditional information settled to tol={self.tol:g}; raise n_iter, or set tol=0 "
                "to ask for exactly n_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.predict_with == "informative":
            self.responsibilities_.loc[:] = self._posterior_of(table)

    def _set_labels(self, data: Any, result: EMResult) -> None:
        """The face of an aggregator, where components are classes."""
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

    def _posterior_of(self, table: FeatureTable) -> Float[np.ndarray, "item component"]:
        """P(component | item) of a table with the features and values of the fit."""
        estimate = self._estimate
        if self.predict_with == "informative":
            heard = np.isin(table.feature_of_symbol, self.features_.get_indexer(self.informative_))
            silent = np.where(heard[:, None], estimate.log_table, 0.0)
            estimate = estimate._replace(log_table=silent)
        posterior = np.empty((table.n_items, self.n_components))
        incidence_of(table, self.n_components).sweep(estimate, posterior)
        return posterior

    def _check_parameters(self) -> None:
        if self.n_components < 2:
            raise ValueError(f"n_components={self.n_components}: expected at least 2")
        if self.split not in ("while-missing", "printed"):
            raise ValueError(f"split={self.split!r}: expected 'while-missing' or 'printed'")
        if self.predict_with not in ("all", "informative"):
            raise ValueError(f"predict_with={self.predict_with!r}: expected 'all' or 'informative'")
        if not 0 <= self.level < 1:
            raise ValueError(f"level={self.level}: expected 0 <= level < 1")
        if not 0 < self.step < np.inf:
            raise ValueError(f"step={self.step}: expected a positive number")
        if not (np.isfinite(self.pseudo_counts) and self.pseudo_counts >= 0):
            raise ValueError(f"pseudo_counts={self.pseudo_counts}: expected a finite number >= 0")
        if self.n_iter < 1:
            raise ValueError(f"n_iter={self.n_iter}: expected at least 1")
        if not self.tol >= 0:
            raise ValueError(f"tol={self.tol}: expected a number >= 0")


def match_votes(
    posterior: Float[np.ndarray, "item component"], ann: Annotations
) -> Int[np.ndarray, " cls"]:
    """The component that is each class: votes and components go together most.

    The assignment maximises the covariance of responsibilities and vote shares, summed over
    classes. Covariance, since workers who always give one class would otherwise draw the largest
    component to it.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aaa"), list("aab"), list("bba")])
        >>> match_votes(np.array([[0.0, 1.0], [0.2, 0.8], [1.0, 0.0]]), ann)
        array([1, 0])
    """
    covariance = (posterior - posterior.mean(axis=0)).T @ shares(ann.votes.astype(float))
    return np.argsort(linear_sum_assignment(covariance, maximize=True)[1])


class _MixtureOfWorkers(Aggregator):
    """A mixture whose features are workers and whose components are classes, as an aggregator."""

    tol = 0.0  # whether the mixture has settled, it says itself

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
        symbols = Symbols(ann)
        return Aggregation(
            self.mixture.responsibilities_.to_numpy(),
            self.mixture.weights_.to_numpy(),
            DenseRows(confusions / confusions.sum(axis=2, keepdims=True), crowd),
            symbols,
            self.counts[symbols.keys],
            self.mixture.log_likelihood_,
            self.mixture.trace_,
            self.mixture.converged_,
        )

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        """Workers whom the fit did not see have no informative labels: predicting with all only."""
        if self.mixture.predict_with == "all":
            return super()._posterior_of_new(ann, known)
        places = self.mixture.features_.get_indexer(self.mixture.informative_)
        heard = np.flatnonzero(np.isin(known, places))
        if len(heard) == 0:
            return np.tile(self.mixture.weights_.to_numpy(), (ann.n_tasks, 1))
        table = as_feature_table(ann).select_features(heard)
        return self.mixture._posterior_of(
            table.recoded(self.mixture.features_, self.mixture.values_)
        )


def _as_judgements(data: Any) -> Any:
    """Annotations if a table has the columns of judgements and no others, else the data."""
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
