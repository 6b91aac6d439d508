"""Who was asked, who abstained, and on what kind of tasks.

A judge that was asked and gave no verdict ('unsure', an empty answer, one that could not be parsed)
abstained; a judge without a row for the task was never asked. Abstentions are no labels and play no
part in the fit, but they are seldom random: the uncertainty of the tasks on which a judge abstains,
next to that of the tasks which it judges, shows it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import entr

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import natural_key, plain

__all__ = ["COLUMNS", "check_abstentions", "count_abstained", "verdict_counts"]

COLUMNS = ("task", "worker", "value")
"""Columns of a table of abstentions."""


def check_abstentions(abstentions: pd.DataFrame | None) -> pd.DataFrame:
    """The table of abstentions, empty if there is none.

    Raises:
        ValueError: a column is absent, or the task or the worker of a row is missing.
    """
    if abstentions is None:
        return pd.DataFrame({name: pd.Series(dtype=object) for name in COLUMNS})
    if absent := [name for name in COLUMNS[:2] if name not in abstentions.columns]:
        raise ValueError(
            f"the table of abstentions has no column {absent[0]!r}; expected the columns task, "
            "worker and value"
        )
    for name in COLUMNS[:2]:
        if abstentions[name].isna().any():
            row = int(np.argmax(abstentions[name].isna())) + 1
            raise ValueError(
                f"row {row} of the table of abstentions has no {name}; expected an id in each row"
            )
    if "value" not in abstentions.columns:
        abstentions = abstentions.assign(value="")
    return abstentions[list(COLUMNS)].reset_index(drop=True)


def verdict_counts(
    ann: Annotations, abstentions: pd.DataFrame, probas: Float[np.ndarray, "item cls"]
) -> pd.DataFrame:
    """What each judge was asked and what it gave.

    Args:
        ann: the verdicts.
        abstentions: a row for each judge who was asked and gave no verdict: task, worker, value.
        probas: P(class) of each task by the panel.

    Returns:
        A row per judge, those who only abstained included: n_asked, n_verdicts and n_abstained
        (questions; one asked twice about a task counts twice), share_abstained, n_never_asked
        (tasks), entropy_judged and entropy_abstained (mean entropy in nats of the panel's
        probabilities on the tasks of either kind, NaN without any).

    Examples:
        >>> import bayescrowd as bc
        >>> verdicts = pd.DataFrame({"x": ["a", "b", None], "y": ["a", "b", "b"]})
        >>> ann = bc.Annotations.from_matrix(verdicts)
        >>> unsure = pd.DataFrame({"task": [2], "worker": ["x"], "value": ["unsure"]})
        >>> counts = verdict_counts(ann, unsure, np.full((3, 2), 0.5))
        >>> counts[["n_asked", "n_abstained", "n_never_asked"]].to_numpy().tolist()
        [[3, 1, 0], [3, 0, 0]]
    """
    tasks, task = _extended(ann.tasks, abstentions["task"])
    workers, worker = _extended(ann.workers, abstentions["worker"])
    verdicts = np.zeros(len(workers), dtype=np.int64)
    verdicts[: ann.n_workers] = ann.labels_per_worker
    abstained = np.bincount(worker, minlength=len(workers))
    asked_cells = np.concatenate(
        [
            ann.worker_codes.astype(np.int64) * len(tasks) + ann.task_codes,
            worker * len(tasks) + task,
        ]
    )
    n_tasks_asked = np.bincount(np.unique(asked_cells) // len(tasks), minlength=len(workers))
    entropy = np.full(len(tasks), np.log(probas.shape[1]))  # of tasks that nobody judged
    entropy[: ann.n_tasks] = entr(probas).sum(axis=1)
    asked = verdicts + abstained
    table = pd.DataFrame(
        {
            "n_asked": asked,
            "n_verdicts": verdicts,
            "n_abstained": abstained,
            "share_abstained": abstained / np.maximum(asked, 1),
            "n_never_asked": len(tasks) - n_tasks_asked,
            "entropy_judged": _mean_by(ann.worker_codes, entropy[ann.task_codes], len(workers)),
            "entropy_abstained": _mean_by(worker, entropy[task], len(workers)),
        },
        index=workers.rename("judge"),
    )
    if len(workers) == ann.n_workers:
        return table
    # A judge that only ever abstained takes its natural place.
    names = [plain(name) for name in workers]
    return table.iloc[sorted(range(len(names)), key=lambda i: natural_key(names[i]))]


def count_abstained(ann: Annotations, abstentions: pd.DataFrame) -> np.ndarray:
    """Number of abstentions on each task of the verdicts."""
    place = ann.tasks.get_indexer(pd.Index(abstentions["task"]))
    return np.bincount(place[place >= 0], minlength=ann.n_tasks)


def _extended(vocabulary: pd.Index, values: pd.Series) -> tuple[pd.Index, np.ndarray]:
    """The vocabulary followed by the values that it lacks, and the position of each value."""
    found = pd.Index(values.unique())
    further = found[vocabulary.get_indexer(found) < 0]
    names = vocabulary.append(further) if len(further) else vocabulary
    return names, names.get_indexer(pd.Index(values)).astype(np.int64)


def _mean_by(
    group: np.ndarray, values: Float[np.ndarray, " case"], n_groups: int
) -> Float[np.ndarray, " group"]:
    count = np.bincount(group, minlength=n_groups)
    total = np.bincount(group, values, minlength=n_groups)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
