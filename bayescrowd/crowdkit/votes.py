"""Votes with crowd-kit's names: plain, or weighted by skills of the workers.

A skill is the share of a worker's labels that agree with an answer, repeated labels counted once.
`MajorityVote` measures it against its own answer, `Wawa` against the plain vote, `GoldMajorityVote`
against gold, and `ZeroBasedSkill` moves it step by step toward the agreement with the vote that it
weighs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.votes import weighted_votes
from bayescrowd.checks.parameters import (
    Count,
    Finite,
    Positive,
    as_numbers,
    check_parameters,
    validate_arguments,
)
from bayescrowd.crowdkit.answers import (
    CrowdKitAggregator,
    distinct_answers,
    first_leaders,
    leading_labels,
    proba_frame,
    read_answers,
)
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import quote
from bayescrowd.estimator import ParameterMixin, check_is_fitted
from bayescrowd.iteration import Step, settle

__all__ = [
    "GoldMajorityVote",
    "MajorityVote",
    "Tally",
    "Wawa",
    "ZeroBasedSkill",
    "skilled_tally",
]

MissingSkill = Literal["error", "ignore", "value"]

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="SelfTaughtVote")


class Tally(NamedTuple):
    """The result of a weighted vote."""

    shares: pd.DataFrame
    """Share of each class in the weights on a task, tasks x classes; even if nothing has weight."""
    labels: pd.Series
    """The first of the classes with the largest weight on each task."""


class MajorityVote(CrowdKitAggregator):
    """The class with the most votes, or with the largest sum of skills.

    Args:
        default_skill: skill of workers without one, with `on_missing_skill="value"`.
        on_missing_skill: what to do about labels of workers without a skill: raise an 'error',
            'ignore' the labels, or use the 'value' of `default_skill`.

    Attributes:
        skills_: share of each worker's labels that agree with the answer.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import MajorityVote
        >>> rows = [("t1", "w1", "b"), ("t1", "w2", "a"), ("t2", "w1", "b"), ("t2", "w2", "b")]
        >>> table = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> vote = MajorityVote()
        >>> vote.fit_predict(table).to_dict(), vote.skills_.to_dict()
        ({'t1': 'a', 't2': 'b'}, {'w1': 0.5, 'w2': 1.0})
        >>> vote.fit_predict(table, skills=pd.Series({"w1": 2.0, "w2": 1.0})).to_dict()
        {'t1': 'b', 't2': 'b'}
    """

    def __init__(
        self,
        default_skill: Finite | None = None,
        on_missing_skill: MissingSkill = "error",
    ) -> None:
        self.default_skill = default_skill
        self.on_missing_skill = on_missing_skill

    @validate_arguments
    def fit(self, data: pd.DataFrame, skills: pd.Series | None = None) -> MajorityVote:
        """Count the votes.

        Args:
            data: a table with the columns task, worker and label.
            skills: weight of each worker's votes, by worker.
        """
        check_parameters(self)
        ann = read_answers(data).ann
        weights = np.ones(ann.n_workers)
        if skills is not None:
            ann, weights = _with_skills(ann, skills, self.on_missing_skill, self.default_skill)
        self.probas_, self.labels_ = tally(ann, weights)
        answer = ann.classes.get_indexer(pd.Index(self.labels_))
        self.skills_ = _named(_agreement(ann, answer), ann)
        return self

    def fit_predict(self, data: pd.DataFrame, skills: pd.Series | None = None) -> pd.Series:
        """Fit and return `labels_`."""
        return self.fit(data, skills).labels_

    def fit_predict_proba(
        self, data: pd.DataFrame, skills: pd.Series | None = None
    ) -> pd.DataFrame:
        """Fit and return `probas_`."""
        return self.fit(data, skills).probas_


class SkilledVote(ParameterMixin):
    """Base of the votes whose skills are learned by `fit` and used by `predict`.

    Attributes:
        skills_: weight of each worker's votes, a Series named skill.
        labels_: class of each task of the last prediction, a Series named agg_label.
        probas_: share of each class in the weighted votes of these tasks, tasks x classes.
    """

    skills_: pd.Series
    labels_: pd.Series
    probas_: pd.DataFrame

    @validate_arguments
    def predict(self, data: pd.DataFrame) -> pd.Series:
        """The vote of these labels, weighted by `skills_`; it becomes `labels_`.

        Raises:
            ValueError: a worker has no skill.
        """
        self._apply(data)
        return self.labels_

    @validate_arguments
    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Shares of the classes in that vote; they become `probas_`."""
        self._apply(data)
        return self.probas_

    def _apply(self, data: pd.DataFrame) -> None:
        check_is_fitted(self)
        self.probas_, self.labels_ = skilled_tally(data, self.skills_)


class SelfTaughtVote(SkilledVote):
    """Base of the votes whose skills come from the labels alone."""

    @abstractmethod
    def fit(self: Itself, data: pd.DataFrame) -> Itself:
        """Learn the skills from labels, a table with the columns task, worker and label."""

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Fit and predict the same labels."""
        return self.fit(data).predict(data)

    def fit_predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Fit and predict the shares for the same labels."""
        return self.fit(data).predict_proba(data)


class Wawa(SelfTaughtVote):
    """A vote weighted by each worker's agreement with the plain vote.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import Wawa
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "a"), ("t1", "w3", "b")]
        >>> wawa = Wawa()
        >>> wawa.fit_predict(pd.DataFrame(rows, columns=["task", "worker", "label"])).to_dict()
        {'t1': 'a'}
        >>> wawa.skills_.to_dict()
        {'w1': 1.0, 'w2': 1.0, 'w3': 0.0}
    """

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> Wawa:
        """Learn the skills from labels, a table with the columns task, worker and label."""
        ann = read_answers(data).ann
        self.skills_ = _named(_agreement(ann, first_leaders(ann.votes.astype(float))), ann)
        return self


class ZeroBasedSkill(SelfTaughtVote):
    """A vote weighted by skills that move toward the agreement with the vote.

    Args:
        n_iter: number of iterations.
        lr_init: part of the way to the agreement by which a skill moves in the first iterations.
        lr_steps_to_reduce: number of iterations between two reductions of that part.
        lr_reduce_factor: factor by which it is multiplied.
        eps: by how much the first skills exceed those of a guesser.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import ZeroBasedSkill
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "a"), ("t1", "w3", "b")]
        >>> skilled = ZeroBasedSkill()
        >>> skilled.fit_predict(pd.DataFrame(rows, columns=["task", "worker", "label"])).to_dict()
        {'t1': 'a'}
    """

    def __init__(
        self,
        n_iter: Count = 100,
        lr_init: Positive = 1.0,
        lr_steps_to_reduce: Count = 20,
        lr_reduce_factor: Positive = 0.5,
        eps: Finite = 1e-5,
    ) -> None:
        self.n_iter = n_iter
        self.lr_init = lr_init
        self.lr_steps_to_reduce = lr_steps_to_reduce
        self.lr_reduce_factor = lr_reduce_factor
        self.eps = eps

    @validate_arguments
    def fit(self, data: pd.DataFrame) -> ZeroBasedSkill:
        """Learn the skills from labels, a table with the columns task, worker and label."""
        check_parameters(self)
        ann = read_answers(data).ann
        if ann.n_labels == 0:
            self.skills_ = _named(np.empty(0), ann)
            return self
        start = np.full(ann.n_workers, 1.0 / ann.n_classes + self.eps)
        number = 0

        def learn(skills: Float[np.ndarray, " worker"]) -> Step[Float[np.ndarray, " worker"]]:
            nonlocal number
            number += 1
            rate = self.lr_init * self.lr_reduce_factor ** (number // self.lr_steps_to_reduce)
            vote = weighted_votes(ann, skills[ann.worker_codes])
            move = rate * (_agreement(ann, first_leaders(vote)) - skills)
            change = float(np.abs(move).max())
            return Step(skills + move, change, change)

        self.skills_ = _named(settle(learn, start, n_iter=self.n_iter, tol=0.0).state, ann)
        return self


class GoldMajorityVote(SkilledVote):
    """A vote weighted by each worker's share of right labels on tasks whose truth is known.

    Every worker whose labels are predicted must have labelled one of these tasks.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.crowdkit import GoldMajorityVote
        >>> rows = [("t1", "w1", "a"), ("t1", "w2", "b"), ("t2", "w1", "a"), ("t2", "w2", "b")]
        >>> table = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> GoldMajorityVote().fit_predict(table, pd.Series({"t1": "b"})).to_dict()
        {'t1': 'b', 't2': 'b'}
    """

    @validate_arguments
    def fit(self, data: pd.DataFrame, true_labels: pd.Series) -> GoldMajorityVote:
        """Learn the skills.

        Args:
            data: a table with the columns task, worker and label.
            true_labels: true label by task; a task may be listed with several, all of them right.
        """
        ann = read_answers(data).ann
        task = ann.tasks.get_indexer(true_labels.index)
        label = ann.classes.get_indexer(pd.Index(true_labels))
        is_right = np.zeros((ann.n_tasks, ann.n_classes), dtype=bool)
        is_gold = np.zeros(ann.n_tasks, dtype=bool)
        is_gold[task[task >= 0]] = True
        is_right[task[(task >= 0) & (label >= 0)], label[(task >= 0) & (label >= 0)]] = True
        counted = distinct_answers(ann) & is_gold[ann.task_codes]
        right = counted & is_right[ann.task_codes, ann.label_codes]
        n_gold = np.bincount(ann.worker_codes, counted, minlength=ann.n_workers)
        n_right = np.bincount(ann.worker_codes, right, minlength=ann.n_workers)
        known = n_gold > 0
        self.skills_ = _named(n_right / np.maximum(n_gold, 1), ann)[known]
        return self

    def fit_predict(self, data: pd.DataFrame, true_labels: pd.Series) -> pd.Series:
        """Fit and predict the same labels."""
        return self.fit(data, true_labels).predict(data)

    def fit_predict_proba(self, data: pd.DataFrame, true_labels: pd.Series) -> pd.DataFrame:
        """Fit and predict the shares for the same labels."""
        return self.fit(data, true_labels).predict_proba(data)


def tally(ann: Annotations, weights: Float[np.ndarray, " worker"]) -> Tally:
    """The vote, given the weight of each worker, which may be negative."""
    if ann.n_labels == 0:
        empty = proba_frame(np.empty((0, 0)), ann)
        return Tally(empty, leading_labels(empty))
    weight = weights[ann.worker_codes]
    votes = weighted_votes(ann, weight)
    size = np.bincount(ann.task_codes, np.abs(weight), minlength=ann.n_tasks)[:, None]
    total = np.abs(votes.sum(axis=1, keepdims=True))
    even = np.full_like(votes, 1.0 / ann.n_classes)
    scaled = np.divide(votes, size, out=even.copy(), where=size > 0)
    shares = np.divide(votes, total, out=even, where=total > 0)
    return Tally(proba_frame(shares, ann), leading_labels(proba_frame(scaled, ann)))


def skilled_tally(data: pd.DataFrame, skills: pd.Series) -> Tally:
    """The vote of a table of labels, whose workers must all have a skill."""
    return tally(*_with_skills(read_answers(data).ann, skills, "error", None))


def _with_skills(
    ann: Annotations, skills: pd.Series, on_missing: MissingSkill, default: float | None
) -> tuple[Annotations, Float[np.ndarray, " worker"]]:
    """The labels to count, and the skill of each worker.

    Raises:
        ValueError: skills are missing, and `on_missing` does not allow for it.
    """
    if (on_missing == "value") != (default is not None):
        raise ValueError(
            f"default_skill={default} with on_missing_skill={on_missing!r}; expected a number with "
            "'value', and None otherwise"
        )
    if not skills.index.is_unique:
        twice = skills.index[skills.index.duplicated()][0]
        raise ValueError(f"skills list worker {quote(twice)} twice; expected every worker once")
    by_worker = as_numbers("skills", skills.reindex(ann.workers))
    missing = np.isnan(by_worker)
    if default is not None:
        by_worker = np.where(missing, default, by_worker)
    elif missing.any() and on_missing == "error":
        raise ValueError(
            f"worker {quote(ann.workers[int(missing.argmax())])} has no skill; expected one for "
            'every worker, or on_missing_skill="ignore" or "value"'
        )
    elif missing.any():
        ann, by_worker = _without(ann, missing), by_worker[~missing]
    return ann, by_worker


def _without(ann: Annotations, missing: Bool[np.ndarray, " worker"]) -> Annotations:
    """The labels of the other workers, of whom every task must have one."""
    kept = ann.select_workers(ann.workers[~missing])
    if empty := int((kept.labels_per_task == 0).sum()):
        first = kept.tasks[int((kept.labels_per_task == 0).argmax())]
        raise ValueError(
            f"{empty:,} of the tasks, such as {quote(first)}, have no worker with a skill; "
            "expected one for every task"
        )
    return kept


def _agreement(ann: Annotations, answer: Int[np.ndarray, " item"]) -> Float[np.ndarray, " worker"]:
    """Share of each worker's distinct labels that agree with the answer."""
    counted = distinct_answers(ann)
    agrees = counted & (ann.label_codes == answer[ann.task_codes])
    agreed = np.bincount(ann.worker_codes, agrees, minlength=ann.n_workers)
    return agreed / np.bincount(ann.worker_codes, counted, minlength=ann.n_workers)


def _named(skills: Float[np.ndarray, " worker"], ann: Annotations) -> pd.Series:
    return pd.Series(skills, index=ann.workers, name="skill")
