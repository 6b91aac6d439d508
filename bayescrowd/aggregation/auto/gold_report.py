"""What the gold labels have changed, and what they say about the fit and its raters.

The accuracy of the fit on tasks without gold, and that of each rater, are shares of right labels:
`post_strata` estimates them from the labels whose truth is known, in strata of the probability that
the fit gives them of being right. A fit knows the answers to its own gold, so that its
probabilities of gold tasks come from tilts that have not seen them, in five folds. The interval of
a rater ends at whole numbers of right labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.gold_tilt import GoldTilt, fit_tilt
from bayescrowd.aggregation.post_strata import cut, post_stratified, quartiles, tally, whole_cases
from bayescrowd.aggregation.task_sample import task_fingerprints
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity

__all__ = ["GoldReport", "gold_folds", "make_gold_report", "unseen_probas"]

N_FOLDS = 5
"""Folds of the gold tasks, each predicted by a tilt from the others."""

RATER_STRENGTH = 3.0
"""Number of known labels that the tilted probabilities of a stratum of a rater's labels are worth;
chosen on the development panels for the coverage of the intervals."""

LEVEL = 0.9
"""Probability of the intervals of a fit."""


@dataclass(frozen=True, eq=False)
class GoldReport:
    """What the gold labels have changed and what they say.

    Args:
        n_gold: number of gold tasks.
        weight: share of the tilt in the answer; the rest is the fit without gold.
        changed: tasks without gold whose label has changed: before, after, probability (of the
            label after).
        accuracy: share of right labels on the tasks without gold: estimate, and lower and upper
            end of its interval (90 % unless asked otherwise).
        judges: per rater: accuracy, lower, upper (ends of its interval) and n_gold, the number of
            labels on gold tasks.
        summary: the same in words.
    """

    n_gold: int
    weight: float
    changed: pd.DataFrame
    accuracy: pd.Series
    judges: pd.DataFrame
    summary: str


def make_gold_report(
    before: Float[np.ndarray, "item cls"],
    after: Float[np.ndarray, "item cls"],
    ann: Annotations,
    fixed: Int[np.ndarray, " item"],
    tilt: GoldTilt,
    *,
    level: float = LEVEL,
) -> GoldReport:
    """Report what the gold labels have changed.

    Args:
        before: P(class) by the fit without gold.
        after: P(class) of the answer.
        ann: the labels.
        fixed: class of the gold tasks, -1 elsewhere.
        tilt: the correction by the gold.
        level: probability of the intervals.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(200, 10, accuracy=0.7, seed=1)
        >>> ann, before = crowd.annotations, bc.MajorityVote().fit(crowd.annotations).probas_
        >>> fixed, before = ann.code_truth(crowd.truth.iloc[:20]), before.to_numpy()
        >>> tilt = fit_tilt(before, ann, fixed)
        >>> report = make_gold_report(before, tilt.apply(before, ann), ann, fixed, tilt)
        >>> report.n_gold, report.judges.shape
        (20, (10, 4))
    """
    is_open = fixed < 0
    honest = after.copy()
    known = np.flatnonzero(~is_open)
    honest[known] = unseen_probas(before, ann, fixed)[known]
    changed = _changed(before, after, ann, np.flatnonzero(is_open))
    accuracy = _accuracy(honest, fixed, level)
    judges = _judges(honest, ann, fixed, level)
    lower, upper = accuracy["lower"], accuracy["upper"]
    summary = (
        f"{quantity(len(known), 'gold task')} changed {quantity(len(changed), 'label')} of "
        f"{quantity(int(is_open.sum()), 'task')} without gold. "
        f"About {accuracy['estimate']:.0%} of their labels are right "
        f"({level:.0%} interval: {lower:.0%} to {upper:.0%})."
    )
    return GoldReport(len(known), tilt.weight, changed, accuracy, judges, summary)


def gold_folds(
    ann: Annotations, fixed: Int[np.ndarray, " item"]
) -> list[Int[np.ndarray, " _part"]]:
    """Codes of the gold tasks, ascending, in folds that do not depend on ids."""
    known = np.flatnonzero(fixed >= 0)
    order = known[np.argsort(task_fingerprints(ann, fixed, 1)[known], kind="stable")]
    return [np.sort(order[i::N_FOLDS]) for i in range(min(N_FOLDS, len(order)))]


def unseen_probas(
    before: Float[np.ndarray, "item cls"],
    ann: Annotations,
    fixed: Int[np.ndarray, " item"],
    folds: list[Int[np.ndarray, " _part"]] | None = None,
) -> Float[np.ndarray, "item cls"]:
    """P(class) in which each gold task is predicted by a tilt that has not seen its fold.

    Other tasks keep their probabilities.

    Args:
        before: P(class) by the fit without gold.
        ann: the labels.
        fixed: class of the gold tasks, -1 elsewhere.
        folds: codes of the gold tasks of each fold; by default, those of `gold_folds`.
    """
    found = before.copy()
    for fold in gold_folds(ann, fixed) if folds is None else folds:
        others = fixed.copy()
        others[fold] = -1
        found[fold] = fit_tilt(before, ann, others).apply(before[fold], _tasks_only(ann, fold))
    return found


def _tasks_only(ann: Annotations, kept: Int[np.ndarray, " kept"]) -> Annotations:
    """The labels of some tasks, which need not have any."""
    place = np.full(ann.n_tasks, -1, dtype=np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    rows = np.flatnonzero(place[ann.task_codes] >= 0)
    return Annotations(
        place[ann.task_codes[rows]],
        ann.worker_codes[rows],
        ann.label_codes[rows],
        ann.tasks.take(kept),
        ann.workers,
        ann.classes,
    )


def _changed(
    before: Float[np.ndarray, "item cls"],
    after: Float[np.ndarray, "item cls"],
    ann: Annotations,
    tasks: Int[np.ndarray, " open"],
) -> pd.DataFrame:
    """The tasks whose most probable class is another one."""
    old, new = before[tasks].argmax(axis=1), after[tasks].argmax(axis=1)
    # A tie is no change: the old class must have fallen behind.
    rows = np.arange(len(tasks))
    differs = np.flatnonzero(after[tasks][rows, new] > after[tasks][rows, old] + 1e-9)
    return pd.DataFrame(
        {
            "before": ann.classes.take(old[differs]),
            "after": ann.classes.take(new[differs]),
            "probability": after[tasks][differs, new[differs]],
        },
        index=ann.tasks.take(tasks[differs]),
    )


def _accuracy(
    honest: Float[np.ndarray, "item cls"], fixed: Int[np.ndarray, " item"], level: float
) -> pd.Series:
    """Share of right labels on tasks without gold; on all tasks if all have gold."""
    known, claimed = np.flatnonzero(fixed >= 0), honest.max(axis=1)
    target = np.flatnonzero(fixed < 0) if len(known) < len(fixed) else known
    boundaries = quartiles(claimed[target])
    stratum, group = cut(claimed, boundaries), np.zeros(len(fixed), dtype=np.int64)
    right = honest[known].argmax(axis=1) == fixed[known]
    sizes = tally(group[target], stratum[target], 1)
    claims = tally(group[target], stratum[target], 1, claimed[target]) / np.maximum(sizes, 1)
    share = post_stratified(
        sizes,
        claims,
        tally(group[known], stratum[known], 1),
        tally(group[known], stratum[known], 1, right),
        level=level,
    )
    return pd.Series({name: float(value[0]) for name, value in share._asdict().items()})


def _judges(
    honest: Float[np.ndarray, "item cls"],
    ann: Annotations,
    fixed: Int[np.ndarray, " item"],
    level: float,
) -> pd.DataFrame:
    """Share of right labels of each rater; a rater without labels has NaN."""
    task, rater = ann.task_codes, ann.worker_codes.astype(np.int64)
    claimed = honest[task, ann.label_codes]
    stratum = cut(claimed, quartiles(claimed)) if len(claimed) else np.zeros(0, dtype=np.int64)
    known = np.flatnonzero(fixed[task] >= 0)
    right = ann.label_codes[known] == fixed[task[known]]
    sizes = tally(rater, stratum, ann.n_workers)
    share = post_stratified(
        sizes,
        tally(rater, stratum, ann.n_workers, claimed) / np.maximum(sizes, 1),
        n_known := tally(rater[known], stratum[known], ann.n_workers),
        tally(rater[known], stratum[known], ann.n_workers, right),
        strength=RATER_STRENGTH,
        level=level,
    )
    share = whole_cases(share, ann.labels_per_worker)
    is_silent = sizes.sum(axis=1) == 0
    columns = dict(zip(("accuracy", "lower", "upper"), share, strict=True))
    table = {name: np.where(is_silent, np.nan, value) for name, value in columns.items()}
    return pd.DataFrame(
        {**table, "n_gold": n_known.sum(axis=1).astype(np.int64)}, index=ann.workers
    )
