"""What every aggregator does: fit, predict, and describe its workers.

A method implements one function, `_aggregate`: P(class) of each task, with the parameters behind
it. Everything else is here once: reading the input, known labels, ties, pandas objects indexed by
the user's ids, prediction for new tasks, and the description of workers.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.fit_summary import html_of_fit, summary_of_fit
from bayescrowd.aggregation.quality import Tally, worker_quality
from bayescrowd.aggregation.votes import decide
from bayescrowd.aggregation.whole_matrices import confusion_frame
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import CoinRows, DenseRows, SparseRows, WorkerRows
from bayescrowd.checks.memory import check_fits
from bayescrowd.checks.parameters import check_parameters, validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.matching import match_ids, take_classes
from bayescrowd.data.predictions import match_probas
from bayescrowd.data.row_truth import gold_of, labels_of, truth_by_task
from bayescrowd.estimator import ParameterMixin, check_is_fitted
from bayescrowd.iteration import warn_not_settled
from bayescrowd.saving.fit_file import write_fit

__all__ = ["Aggregation", "Aggregator", "Gold", "posterior_under"]

Gold = pd.Series | Mapping[Any, Any] | None
"""Task -> label for tasks whose truth is known and may be used."""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="Aggregator")


class Aggregation(NamedTuple):
    """What a method finds out; everything else follows from it."""

    posterior: Float[np.ndarray, "item cls"]
    """P(class) of each task."""
    priors: Float[np.ndarray, " cls"]
    """P(class) before any label is seen."""
    rows: WorkerRows
    """P(observed | true) of each worker."""
    pairs: WorkerLabelPairs
    """The pairs of a worker and a label that occur."""
    counts: Float[np.ndarray, "symbol cls"]
    """Expected number of labels of each pair on tasks of each class."""
    log_likelihood: float
    """log P(labels) under priors and rows, nats."""
    trace: Float[np.ndarray, " iteration"]
    """Objective after each iteration; empty for methods that do not iterate."""
    converged: bool
    """Whether the iteration met its tolerance; True for methods that do not iterate."""

    @property
    def crowd_counts(self) -> Float[np.ndarray, "cls observed"]:
        """Expected number of labels of the whole crowd, as [true, observed]."""
        return self.pairs.by_label(self.counts).T

    @property
    def tally(self) -> Tally:
        """Number of right labels and of all labels of each worker, by true class."""
        pairs, counts = self.pairs, self.counts
        right = np.zeros((pairs.n_workers, pairs.n_classes))
        right[pairs.worker, pairs.label] = counts[np.arange(len(pairs)), pairs.label]
        return Tally(right, pairs.by_worker(counts))

    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> Aggregation:
        """The same result with class `hidden[k]` renamed to class k."""
        return self._replace(
            posterior=self.posterior[:, hidden],
            priors=self.priors[hidden],
            rows=self.rows.rename_classes(hidden),
            counts=self.counts[:, hidden],
        )


class Aggregator(ABC, ParameterMixin):
    """Base class of all aggregators, with scikit-learn's parameter protocol.

    Attributes:
        labels_: most probable class of each task; exact ties are broken by the seed.
        probas_: P(class) of each task, tasks x classes.
        priors_: P(class) before any label is seen.
        confusions_: P(observed | true), indexed (worker, true). It is computed when it is read,
            because it has workers x classes^2 entries; `confusion_of` returns the matrix of one
            worker.
        worker_quality_: per worker: accuracy, information (nats), n_labels, flag.
        log_likelihood_: log P(labels) under priors_ and confusions_, nats.
        trace_, n_iter_, converged_: the course of the iteration, if there is one.
        n_ties_: number of tasks with several most probable classes.
    """

    seed: int
    n_iter: int
    tol: float
    _unsettled_hint: ClassVar[str] = ""
    """Advice that a method adds to the warning that it has not settled."""
    _model_name: ClassVar[str | None] = None
    """Name of the module of `bayescrowd.models` with the generative model of the method, if any."""
    _n_tables: ClassVar[int] = 3
    """Least number of tables of (pairs + tasks) x classes that a fit holds in memory."""
    _state_classes: ClassVar[tuple[type, ...]] = (Annotations, DenseRows, SparseRows, CoinRows)
    """Classes of the objects that a fit holds; a subclass names those that it adds."""

    @abstractmethod
    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        """Find the classes; `fixed` is the class of tasks whose truth is known, -1 elsewhere."""

    def fit(self: Itself, data: Any, y: Any = None, *, gold: Gold = None) -> Itself:
        """Learn from labels.

        Args:
            data: `Annotations`; a table with the columns task, worker and label; or a matrix with a
                row per task and a column per worker, NaN or None where there is no label.
            y: the same as `gold`, if it is a Series or mapping by task. What scikit-learn passes
                here, the truth of each row of a matrix or table, is not used.
            gold: task -> label for tasks whose truth is known and may be used.
        """
        check_parameters(self)
        gold = gold_of(data, y, gold)
        ann = labels_of(data)
        fixed = np.full(ann.n_tasks, -1, dtype=np.int32) if gold is None else ann.code_truth(gold)
        self._check_memory(ann)
        found = self._aggregate(ann, fixed)
        if not found.converged and self.tol > 0:
            warn_not_settled(
                type(self).__name__, n_iter=self.n_iter, tol=self.tol, hint=self._unsettled_hint
            )
        self.__dict__.pop("confusions_", None)
        self.classes_, self.workers_ = ann.classes, ann.workers
        self.probas_ = pd.DataFrame(found.posterior, index=ann.tasks, columns=ann.classes)
        self.labels_, self.n_ties_ = decide(self.probas_, self.seed)
        self.priors_ = pd.Series(found.priors, index=ann.classes, name="prior")
        self.worker_quality_ = worker_quality(
            found.rows,
            found.tally,
            found.priors,
            ann.labels_per_worker,
            ann.workers,
        )
        self.log_likelihood_ = found.log_likelihood
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace)
        self.converged_ = found.converged
        self._rows = found.rows
        is_known = fixed >= 0
        self._annotations, self._has_gold = ann, bool(is_known.any())
        self._gold = pd.Series(ann.classes[fixed[is_known]], index=ann.tasks[is_known])
        return self

    @cached_property
    def confusions_(self) -> pd.DataFrame:
        """P(observed | true), indexed (worker, true).

        Raises:
            ValueError: the matrices of all workers do not fit into memory.
        """
        if "_rows" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted yet: no confusions_")
        n_workers, n_classes = len(self.workers_), len(self.classes_)
        check_fits(
            8.0 * n_workers * n_classes**2,
            f"confusion matrices of {n_workers:,} workers and {n_classes:,} classes",
            "confusion_of(worker) returns the matrix of one worker",
        )
        matrices = self._rows.matrices(np.arange(n_workers))
        return confusion_frame(matrices, self._annotations)

    def confusion_of(self, worker: Any) -> pd.DataFrame:
        """P(observed | true) of one worker, true classes x observed classes.

        Args:
            worker: the worker's id.

        Raises:
            ValueError: the fit did not see this worker.

        Examples:
            >>> import bayescrowd as bc
            >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aab")])
            >>> bc.MajorityVote().fit(ann).confusion_of(2).loc["a", "b"].item()
            1.0
        """
        check_is_fitted(self)
        if worker not in self.workers_:
            raise ValueError(
                f"worker {worker!r} is not among the {len(self.workers_):,} workers of the fit"
            )
        place = np.array([self.workers_.get_loc(worker)])
        return pd.DataFrame(
            self._rows.matrices(place)[0],
            index=pd.Index(self.classes_, name="true"),
            columns=pd.Index(self.classes_, name="observed"),
        )

    def fit_predict(self, data: Any, y: Any = None, *, gold: Gold = None) -> pd.Series:
        """Fit and return `labels_`."""
        return self.fit(data, y, gold=gold).labels_

    def fit_predict_proba(self, data: Any, y: Any = None, *, gold: Gold = None) -> pd.DataFrame:
        """Fit and return `probas_`."""
        return self.fit(data, y, gold=gold).probas_

    def predict(self, data: Any) -> pd.Series:
        """Most probable class of new tasks; see `predict_proba`."""
        return decide(self.predict_proba(data), self.seed)[0]

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """P(class) of new tasks labelled by the workers of the fit, tasks x classes.

        A worker whom the fit did not see has the crowd's mean confusion matrix.
        """
        check_is_fitted(self)
        ann = take_classes(labels_of(data, self.classes_), self.classes_)
        known = match_ids(ann.workers, self.workers_)
        return pd.DataFrame(
            self._posterior_of_new(ann, known), index=ann.tasks, columns=self.classes_
        )

    def score(self, data: Any, y: Any) -> float:
        """Share of right labels among new tasks, for scikit-learn's searches.

        The tasks are labelled by `predict_proba`, as tasks that the fit has not seen. Ties and
        tasks without labels count with their expected share, as in `bayescrowd.metrics.accuracy`.

        `GridSearchCV` and `cross_val_score` take a matrix with a row per task and its truth as y:
        fits to some tasks are scored on the others. A table with a row per label works as well,
        with the truth of each row as y and the tasks as `groups` of a `GroupKFold`.

        Args:
            data: the labels, in any form that `fit` takes.
            y: true class by task, or of each row of a matrix or table.

        Raises:
            ValueError: y does not match the rows, or names no task of the data.

        Examples:
            >>> import bayescrowd as bc
            >>> from sklearn.model_selection import GridSearchCV
            >>> crowd = bc.simulate.crowd(200, 8, 2, accuracy=0.8, seed=1)
            >>> matrix = crowd.annotations.to_frame().pivot(index="task", columns="worker")["label"]
            >>> grid = {"pseudo_counts": [0.1, 1.0]}
            >>> search = GridSearchCV(bc.DawidSkene(), grid, cv=3).fit(matrix, crowd.truth)
            >>> bool(search.best_score_ > 0.9)
            True
        """
        check_is_fitted(self)
        labels = labels_of(data, self.classes_)
        probas = self.predict_proba(labels)
        return float(match_probas(probas, truth_by_task(data, y, self.classes_)).correct.mean())

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def posterior(self, **options: Any) -> Any:
        """Draw from the posterior of the method's model given the labels of the fit.

        The point estimate says which answer is the most probable, the draws how certain it is. The
        model has its own priors (`prior=`), not the pseudo-counts of the estimator.

        Args:
            **options: options of `bayescrowd.sample_posterior`. The default `method` is Gibbs where
                the model has it, else NUTS. Gibbs chains start from `probas_` by default, and so
                explore the mode of the point estimate; `init="random"` shows whether there are
                other modes. The default `seed` is that of the estimator, and `gold` the known
                labels that the fit used.

        Returns:
            An ArviZ container; see `bayescrowd.sample_posterior`.

        Raises:
            TypeError: the method has no generative model.
        """
        if self._model_name is None:
            raise TypeError(
                f"{type(self).__name__} has no generative model to draw from; expected an "
                "estimator such as DawidSkene, OneCoinDawidSkene, MACE or GLAD"
            )
        check_is_fitted(self)
        from bayescrowd.posterior.sample import sample_posterior

        defaults: dict[str, Any] = {"init": self.probas_, "seed": self.seed}
        if self._has_gold:
            defaults["gold"] = self._gold
        return sample_posterior(self._model_name, self._annotations, **(defaults | options))

    @validate_arguments
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fit to a file, from which `bayescrowd.load` restores it.

        The file holds arrays and JSON, no pickle. It contains the labels of the fit with the ids of
        tasks and workers, and all that the fit has learned.

        Args:
            path: path of the file, by custom ending in .npz.
            overwrite: whether to replace an existing file.

        Raises:
            FileExistsError: the file exists and `overwrite` is false.
            TypeError: an id or a parameter is neither text, a number nor a truth value.

        Examples:
            >>> import tempfile
            >>> from pathlib import Path
            >>> import bayescrowd as bc
            >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aab")])
            >>> path = Path(tempfile.mkdtemp(), "fit.npz")
            >>> bc.DawidSkene().fit(ann).save(path)
            >>> bc.load(path).labels_.to_list()
            ['a', 'b', 'a']
        """
        check_is_fitted(self)
        write_fit(self, self._state_classes, path, overwrite=overwrite)

    def _summary(self) -> str:
        if "_annotations" not in vars(self):
            return ""
        summary = summary_of_fit(self._annotations, self.probas_, self.worker_quality_)
        return summary if self.converged_ else f"{summary}; NOT converged"

    def _summary_html(self) -> str:
        if "_annotations" not in vars(self):
            return ""
        return html_of_fit(
            repr(self),
            self._annotations,
            self.labels_,
            self.probas_,
            self.worker_quality_,
            note=getattr(self, "why_", ""),
        )

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        """P(class) of new tasks; `known` is each worker's code in the fit, -1 if unseen."""
        return posterior_under(self._rows, self.priors_.to_numpy(), ann, known)

    def _check_memory(self, ann: Annotations) -> None:
        """Raise if the tables of a fit to these labels do not fit into memory."""
        n_pairs = min(ann.n_labels, ann.n_workers * ann.n_classes)
        check_fits(
            8.0 * ann.n_classes * self._n_tables * (n_pairs + ann.n_tasks),
            f"{type(self).__name__} on {ann.n_labels:,} labels of {ann.n_tasks:,} tasks in "
            f"{ann.n_classes:,} classes",
            "fit fewer tasks or classes at a time",
        )


def posterior_under(
    rows: WorkerRows,
    priors: Float[np.ndarray, " cls"],
    ann: Annotations,
    known: Int[np.ndarray, " worker"],
) -> Float[np.ndarray, "item cls"]:
    """P(class) of tasks given the rows of their workers.

    Args:
        rows: rows of the workers of a fit.
        priors: P(class).
        ann: the labels of the tasks.
        known: code in the fit of each worker of these labels, -1 if unseen.
    """
    pairs = WorkerLabelPairs(ann)
    table = floored_log(rows.at(known[pairs.worker], pairs.label))
    posterior = np.empty((ann.n_tasks, len(priors)))
    pairs.labels().sweep(EMEstimate(table, floored_log(priors), 0.0, None), posterior)
    return posterior
