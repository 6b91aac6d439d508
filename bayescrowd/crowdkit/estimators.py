"""GLAD, MACE, MMSR and KOS with crowd-kit's names, on the estimators of `bayescrowd`.

Each class says what differs from crowd-kit; the map of this folder has the whole list.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from bayescrowd.aggregation.glad import GLAD as GladEstimator
from bayescrowd.aggregation.kos import KOS as KosEstimator
from bayescrowd.aggregation.mace import MACE as MaceEstimator
from bayescrowd.aggregation.mmsr import MMSR as MmsrEstimator
from bayescrowd.checks.parameters import (
    Count,
    NonNegative,
    Positive,
    Seed,
    Tolerance,
    check_parameters,
    validate_arguments,
)
from bayescrowd.crowdkit.answers import CrowdKitAggregator, leading_labels, read_answers
from bayescrowd.crowdkit.votes import skilled_tally
from bayescrowd.estimator import ParameterMixin, check_is_fitted

__all__ = ["GLAD", "KOS", "MACE", "MMSR"]

MACE_SMOOTHING = 0.01
"""Pseudo-counts of a row of MACE's EM, which crowd-kit spreads over the classes."""


class GLAD(CrowdKitAggregator):
    """GLAD: one ability per worker and one easiness per task.

    Args:
        n_iter: largest number of iterations.
        tol: stop when an iteration raises the objective per label by less than this; 0 runs n_iter.
        silent: True; there is no progress bar here.
        labels_priors: None; the class prior is even.
        alphas_priors_mean: None; the means of the abilities' priors are 1.
        betas_priors_mean: None; the means of the priors of log easiness are 1.
        m_step_max_iter: 25; the M-step is one of Newton's.
        m_step_tol: 0.01; likewise.

    Attributes:
        alphas_: ability of each worker, a Series named alpha.
        betas_: log easiness of each task, a Series named beta.
        loss_history_: log-likelihood plus log prior density per label after each iteration, nats.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import GLAD
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "a"), ("t2", "w1", "b"), ("t2", "w2", "b")]
        >>> GLAD().fit_predict(pd.DataFrame(rows, columns=["task", "worker", "label"])).to_dict()
        {'t1': 'a', 't2': 'b'}
    """

    def __init__(
        self,
        n_iter: Count = 100,
        tol: Tolerance = 1e-5,
        silent: bool = True,
        labels_priors: Any = None,
        alphas_priors_mean: Any = None,
        betas_priors_mean: Any = None,
        m_step_max_iter: Count = 25,
        m_step_tol: Tolerance = 1e-2,
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.silent = silent
        self.labels_priors = labels_priors
        self.alphas_priors_mean = alphas_priors_mean
        self.betas_priors_mean = betas_priors_mean
        self.m_step_max_iter = m_step_max_iter
        self.m_step_tol = m_step_tol

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> GLAD:
        """Learn from labels, a table with the columns task, worker and label."""
        check_parameters(self)
        self._refuse_changed(
            silent=True,
            labels_priors=None,
            alphas_priors_mean=None,
            betas_priors_mean=None,
            m_step_max_iter=25,
            m_step_tol=1e-2,
        )
        answers = read_answers(data)
        if self._is_empty(answers):
            self.alphas_ = pd.Series(dtype=float, name="alpha")
            self.betas_ = pd.Series(dtype=float, name="beta")
            self.loss_history_: list[float] = []
            return self
        found = GladEstimator(n_iter=self.n_iter, tol=self.tol).fit(answers.ann)
        self.probas_ = found.probas_
        self.labels_ = leading_labels(self.probas_)
        abilities = found.abilities_.reindex(answers.seen_first("worker"))
        difficulties = found.difficulties_.reindex(answers.seen_first("task"))
        self.alphas_ = abilities.rename("alpha")
        self.betas_ = difficulties.map(np.log).mul(-1).rename("beta")
        self.loss_history_ = (found.trace_ / answers.ann.n_labels).tolist()
        return self


class MACE(CrowdKitAggregator):
    """MACE: workers know the class, or spam.

    Args:
        n_restarts: number of starts: the first from the votes, the others random.
        n_iter: number of iterations of each start.
        method: 'vb' (variational Bayes) or 'em'.
        smoothing: 0.1; nothing reads it, here or in crowd-kit.
        default_noise: 0.5; the first start is not random here.
        alpha: parameter of the symmetric Beta prior of knowing, with 'vb'.
        beta: the same number.
        random_state: seed of the random starts.
        verbose: 0; there is no progress bar here.

    Attributes:
        spamming_: chance of spamming and chance of knowing, workers x 2, in the order in which the
            table names the workers.
        thetas_: distribution of each worker's spam, workers x labels, both in that order.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import MACE
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "a"), ("t2", "w1", "b"), ("t2", "w2", "b")]
        >>> mace = MACE(n_restarts=1)
        >>> mace.fit_predict(pd.DataFrame(rows, columns=["task", "worker", "label"])).to_dict()
        {'t1': 'a', 't2': 'b'}
        >>> mace.spamming_.shape, mace.thetas_.shape
        ((2, 2), (2, 2))
    """

    def __init__(
        self,
        n_restarts: Count = 10,
        n_iter: Count = 50,
        method: Literal["vb", "em"] = "vb",
        smoothing: NonNegative = 0.1,
        default_noise: NonNegative = 0.5,
        alpha: Positive = 0.5,
        beta: Positive = 0.5,
        random_state: Seed = 0,
        verbose: int = 0,
    ) -> None:
        self.n_restarts = n_restarts
        self.n_iter = n_iter
        self.method = method
        self.smoothing = smoothing
        self.default_noise = default_noise
        self.alpha = alpha
        self.beta = beta
        self.random_state = random_state
        self.verbose = verbose

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> MACE:
        """Learn from labels, a table with the columns task, worker and label."""
        check_parameters(self)
        self._refuse_changed(smoothing=0.1, default_noise=0.5, verbose=0)
        if self.alpha != self.beta:
            raise ValueError(
                f"alpha={self.alpha} and beta={self.beta} differ; expected a symmetric prior"
            )
        answers = read_answers(data)
        if self._is_empty(answers):
            self.spamming_, self.thetas_ = np.empty((0, 2)), np.empty((0, 0))
            return self
        found = MaceEstimator(
            method=self.method,
            n_init=self.n_restarts,
            smoothing=MACE_SMOOTHING,
            competence_prior=self.alpha,
            n_iter=self.n_iter,
            tol=0.0,
            seed=self.random_state,
        ).fit(answers.ann)
        classes = answers.seen_first("label").rename(None)
        self.probas_ = found.probas_.reindex(
            index=answers.seen_first("task"), columns=classes
        ).rename_axis(index="task", columns=None)
        self.labels_ = leading_labels(self.probas_)
        workers = answers.seen_first("worker")
        knows = found.competences_.reindex(workers).to_numpy()
        self.spamming_ = np.stack([1 - knows, knows], axis=1)
        self.thetas_ = found.strategies_.reindex(index=workers, columns=classes).to_numpy()
        return self


class MMSR(ParameterMixin):
    """M-MSR: skills from pairwise agreement, by robust rank-one completion, then a weighted vote.

    Args:
        n_iter: largest number of iterations.
        tol: stop when no skill changes by more than this; 0 runs n_iter.
        random_state: a seed; every seed gives the same answer, because nothing is drawn.

    Attributes:
        skills_: weight of each worker's votes, log((K - 1) p / (1 - p)) for accuracy p.
        labels_: class of each task of the last prediction.
        scores_: weight of each class in proportion to the total of the task, tasks x classes.
        loss_history_: largest change of a skill in each iteration.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import MMSR
        >>> rows = [(t, w, "ab"[t % 2]) for t in range(4) for w in "uvw"]
        >>> table = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> MMSR().fit_predict(table).to_list()
        ['a', 'b', 'a', 'b']
    """

    labels_: pd.Series
    scores_: pd.DataFrame

    def __init__(
        self, n_iter: Count = 10_000, tol: Tolerance = 1e-10, random_state: Seed | None = 0
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> MMSR:
        """Learn the skills from labels, a table with the columns task, worker and label."""
        check_parameters(self)
        answers = read_answers(data)
        ann = answers.ann
        self.skills_ = pd.Series(dtype=float, name="skill")
        self.loss_history_: list[float] = []
        if ann.n_labels:
            found = MmsrEstimator(trim="common", n_iter=self.n_iter, tol=self.tol).fit(ann)
            n_classes = ann.n_classes
            accuracy = (found.skills_ * (n_classes - 1) + 1) / n_classes
            odds = accuracy * (n_classes - 1) / (1 - accuracy)
            self.skills_ = odds.map(np.log).reindex(answers.seen_first("worker"))
            self.loss_history_ = found.trace_.tolist()
        return self

    @validate_arguments
    def predict(self, data: pd.DataFrame) -> pd.Series:
        """The vote of these labels, weighted by `skills_`; it becomes `labels_`.

        Raises:
            ValueError: a worker has no skill.
        """
        self._apply(data)
        return self.labels_

    @validate_arguments
    def predict_score(self, data: pd.DataFrame) -> pd.DataFrame:
        """Shares of the classes in that vote; they become `scores_`."""
        self._apply(data)
        return self.scores_

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Fit and predict the same labels."""
        return self.fit(data).predict(data)

    def fit_predict_score(self, data: pd.DataFrame) -> pd.DataFrame:
        """Fit and predict the shares for the same labels."""
        return self.fit(data).predict_score(data)

    def _apply(self, data: pd.DataFrame) -> None:
        check_is_fitted(self)
        self.scores_, self.labels_ = skilled_tally(data, self.skills_)


class KOS(ParameterMixin):
    """KOS: message passing for two classes.

    Args:
        n_iter: number of rounds of messages.
        random_state: seed of the first messages.

    Attributes:
        labels_: class of each task, a Series named agg_label.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import KOS
        >>> rows = [(t, w, "ab"[t % 2]) for t in range(4) for w in "uvw"]
        >>> KOS().fit_predict(pd.DataFrame(rows, columns=["task", "worker", "label"])).to_list()
        ['a', 'b', 'a', 'b']
    """

    labels_: pd.Series

    def __init__(self, n_iter: Count = 100, random_state: Seed = 0) -> None:
        self.n_iter = n_iter
        self.random_state = random_state

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> KOS:
        """Decide the tasks of a table with the columns task, worker and label.

        Raises:
            ValueError: there are not two classes.
        """
        check_parameters(self)
        ann = read_answers(data).ann
        if ann.n_labels == 0:
            self.labels_ = pd.Series([], dtype=object, name="agg_label")
            return self
        if ann.n_classes != 2:
            raise ValueError(f"the labels have {ann.n_classes} classes; KOS expected two")
        est = KosEstimator(init="random", n_iter=self.n_iter, tol=0.0, seed=self.random_state)
        self.labels_ = leading_labels(est.fit(ann).probas_)
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Fit and return `labels_`."""
        return self.fit(data).labels_
