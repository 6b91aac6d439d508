"""Dawid–Skene and one coin by crowd-kit's definition, on this package's EM.

Dawid and Skene 1979, eqs. 2.3 to 2.5, start from the shares of votes, without pseudo-counts. Two
details are crowd-kit's. A worker's expected counts of labels, of those that the worker has given at
all, are at least 1e-10 before they are scaled to sum to one, so that no label rules a class out for
good, and a worker who saw no task of a class says little about it. And the class prior and the
matrices that are reported are those of the last posterior: they come from one more M-step.

`bayescrowd.DawidSkene` has pseudo-counts, restarts and predictions for new tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.aggregation.em import EMEstimate, Sweep, maximise
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.checks.parameters import (
    Tolerance,
    Whole,
    as_numbers,
    check_parameters,
    validate_arguments,
)
from bayescrowd.crowdkit.answers import (
    Answers,
    CrowdKitAggregator,
    leading_labels,
    proba_frame,
    read_answers,
)
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import quote

__all__ = ["DawidSkene", "OneCoinDawidSkene"]

EPS = 1e-10
"""Least expected count of a label that a worker has given, and least probability of a class."""

MStep = Callable[[WorkerLabelPairs, Float[np.ndarray, "symbol cls"]], Float[np.ndarray, "symbol c"]]
"""P(label | class) of the pairs of a worker and a label, from their expected counts."""


class _EMAggregator(CrowdKitAggregator):
    """What both classes share.

    Attributes:
        priors_: share of each class, a Series named prior.
        errors_: P(label | true class), indexed (worker, label) with a column per true class, for
            the labels that each worker has given.
        loss_history_: log-likelihood per label after each iteration, nats.
    """

    n_iter: int
    tol: float

    def _climb(self, answers: Answers, *, true_labels: Any, m_step: MStep, first: MStep) -> None:
        """Run EM from the votes, whose M-step is `first`, and set the attributes."""
        ann = answers.ann
        self.loss_history_: list[float] = []
        if ann.n_labels == 0:
            self.probas_, self.errors_ = pd.DataFrame(), pd.DataFrame()
            self.labels_ = pd.Series(dtype=float, name="agg_label")
            self.priors_ = pd.Series(dtype=float, name="prior")
            return
        pairs = WorkerLabelPairs(ann, None if true_labels is None else ann.code_truth(true_labels))
        labels, posterior = pairs.labels(), vote_shares(ann, pairs.fixed)

        def estimate(sweep: Sweep, previous: EMEstimate | None) -> EMEstimate:
            errors = (first if previous is None else m_step)(pairs, sweep.counts)
            priors = np.maximum(sweep.class_counts / ann.n_tasks, EPS)
            return EMEstimate(np.log(errors), np.log(priors), 0.0, None)

        if self.n_iter == 0:
            self._counts = labels.counts(posterior)
            errors = first(pairs, self._counts)
        else:
            found = maximise(labels, posterior, estimate, n_iter=self.n_iter, tol=self.tol)
            posterior, self._counts = found.posterior, found.counts
            errors = m_step(pairs, self._counts)
            self.loss_history_ = (found.trace / ann.n_labels).tolist()
        named = proba_frame(posterior, ann)
        self.probas_ = named if self.n_iter == 0 else named.reindex(answers.seen_first("task"))
        self.labels_ = leading_labels(self.probas_)
        self.priors_ = pd.Series(posterior.mean(axis=0), index=ann.classes, name="prior")
        table = pd.DataFrame(errors, index=_pair_index(pairs, ann), columns=list(ann.classes))
        self.errors_ = table.reindex(answers.pairs_seen_first)


class DawidSkene(_EMAggregator):
    """Dawid–Skene EM without pseudo-counts, from the shares of votes.

    Args:
        n_iter: largest number of iterations; 0 leaves the votes.
        tol: stop when an iteration raises the log-likelihood per label by less than this; 0 runs
            n_iter.
        initial_error_strategy: how `initial_error` enters the first iteration: 'assign' takes it
            for the matrices, 'addition' adds it to the counts; later ones do not use it.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import DawidSkene
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "a"), ("t2", "w1", "b"), ("t2", "w2", "b")]
        >>> est = DawidSkene(n_iter=10).fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
        >>> est.labels_.to_dict(), est.priors_.to_dict()
        ({'t1': 'a', 't2': 'b'}, {'a': 0.5, 'b': 0.5})
        >>> est.errors_.loc[("w1", "a")].round(3).to_dict()
        {'a': 1.0, 'b': 0.0}
    """

    def __init__(
        self,
        n_iter: Annotated[int, Whole(0)] = 100,
        tol: Tolerance = 1e-5,
        initial_error_strategy: Literal["assign", "addition"] | None = None,
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.initial_error_strategy = initial_error_strategy

    @validate_arguments
    def fit(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> DawidSkene:
        """Learn from labels.

        Args:
            data: a table with the columns task, worker and label.
            true_labels: true label by task, for tasks whose truth is known.
            initial_error: matrices of the workers from elsewhere, like `errors_`; with the strategy
                'addition', counts instead of probabilities.
        """
        check_parameters(self)
        if initial_error is not None and self.initial_error_strategy is None:
            raise ValueError(
                "initial_error was given, but initial_error_strategy is None; expected 'assign' or "
                "'addition'"
            )
        answers = read_answers(data)
        first: MStep = _shares
        if initial_error is not None:
            _check_initial(initial_error, answers.ann)

            def first(
                pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
            ) -> Float[np.ndarray, "symbol cls"]:
                return self._combine(pairs, counts, initial_error, answers.ann)

        self._climb(answers, true_labels=true_labels, m_step=_shares, first=first)
        return self

    def fit_predict(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> pd.Series:
        """Fit and return `labels_`."""
        return self.fit(data, true_labels, initial_error).labels_

    def fit_predict_proba(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Fit and return `probas_`."""
        return self.fit(data, true_labels, initial_error).probas_

    def _combine(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol cls"],
        initial: pd.DataFrame,
        ann: Annotations,
    ) -> Float[np.ndarray, "symbol cls"]:
        """The first M-step with matrices from elsewhere; the counts are those of the votes."""
        index = _pair_index(pairs, ann)
        if self.initial_error_strategy == "assign":
            matrices = initial
            absent = index[~index.isin(initial.index)]
            if len(absent):
                raise ValueError(
                    f"initial_error has no row for worker and label {quote(absent[0])}; expected "
                    "one for every label that a worker has given"
                )
            sums = initial.groupby(level="worker").sum()
            if (initial <= 1).all(axis=None) and not np.allclose(sums, 1.0):
                raise ValueError(
                    "initial_error holds neither counts nor probabilities; expected the "
                    "probabilities of each worker and true label to sum to 1"
                )
        else:
            matrices = pd.DataFrame(counts, index=index, columns=ann.classes)
            matrices = matrices.add(initial, fill_value=0.0)
        matrices = matrices[ann.classes].clip(lower=EPS)
        matrices = matrices / matrices.groupby(level="worker").transform("sum")
        return matrices.reindex(index).to_numpy(dtype=float)


class OneCoinDawidSkene(_EMAggregator):
    """Dawid–Skene EM with one accuracy per worker, and a learned class prior.

    Args:
        n_iter: largest number of iterations; 0 leaves the votes.
        tol: stop when an iteration raises the log-likelihood per label by less than this; 0 runs
            n_iter.

    Attributes:
        skills_: accuracy of each worker, a Series named skill.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import OneCoinDawidSkene
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "a"), ("t2", "w1", "b"), ("t2", "w2", "b")]
        >>> table = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> OneCoinDawidSkene(n_iter=10).fit(table).skills_.round(3).to_dict()
        {'w1': 1.0, 'w2': 1.0}
    """

    def __init__(self, n_iter: Annotated[int, Whole(0)] = 100, tol: Tolerance = 1e-5) -> None:
        self.n_iter = n_iter
        self.tol = tol

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> OneCoinDawidSkene:
        """Learn from labels, a table with the columns task, worker and label."""
        check_parameters(self)
        answers = read_answers(data)
        self._climb(answers, true_labels=None, m_step=_coins, first=_coins)
        self.skills_ = pd.Series(dtype=float, name="skill")
        if answers.ann.n_labels:
            skills = _accuracies(WorkerLabelPairs(answers.ann), self._counts)
            named = pd.Series(skills, index=answers.ann.workers, name="skill")
            self.skills_ = named.reindex(answers.seen_first("worker"))
        return self


def _shares(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
) -> Float[np.ndarray, "symbol cls"]:
    """Eq. 2.3, with the least count."""
    counts = np.maximum(counts, EPS)
    return counts / pairs.by_worker(counts)[pairs.worker]


def _coins(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
) -> Float[np.ndarray, "symbol cls"]:
    """One accuracy per worker, which is spread evenly over the wrong labels."""
    right = _accuracies(pairs, counts)[pairs.worker]
    table = np.repeat(((1 - right) / max(pairs.n_classes - 1, 1))[:, None], pairs.n_classes, axis=1)
    table[np.arange(len(pairs)), pairs.label] = right
    return np.clip(table, EPS, 1 - EPS)


def _accuracies(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
) -> Float[np.ndarray, " worker"]:
    """Expected share of right labels of each worker."""
    right = counts[np.arange(len(pairs)), pairs.label]
    return pairs.by_worker(right[:, None])[:, 0] / pairs.labels_per_worker


def _pair_index(pairs: WorkerLabelPairs, ann: Annotations) -> pd.MultiIndex:
    names = [ann.workers.take(pairs.worker), ann.classes.take(pairs.label)]
    return pd.MultiIndex.from_arrays(names, names=["worker", "label"])


def _check_initial(initial: pd.DataFrame, ann: Annotations) -> None:
    """Raise if a table is unlike `errors_`."""
    if list(initial.index.names) != ["worker", "label"]:
        raise ValueError(
            f"initial_error has the index {list(initial.index.names)}; expected worker and label"
        )
    if set(initial.columns) != set(ann.classes):
        raise ValueError(
            f"initial_error has the columns {quote(list(initial.columns))}; expected one for each "
            f"of the labels {quote(list(ann.classes))}"
        )
    values = as_numbers("initial_error", initial)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("initial_error: expected finite numbers >= 0")
