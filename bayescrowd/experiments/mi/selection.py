"""What table 2 and figure 3 of Zhao and Zucker share: methods, rankings and scoring.

Workers are ranked by the paper's score (heuristic (b), equation 1, with missing labels left out as
in its section 5.2), or, for its benchmark, by each worker's own error. MV+EM is Dawid–Skene
started from the votes, with a learned class prior, no pseudo-counts and 100 iterations; OPT-D&S is
the same EM from a spectral start whose entries are at least 0.01, with the workers partitioned at
random. A task that none of the selected workers has labelled counts as a tie of all classes.

The authors score web on all its 2,665 tasks, counting the 12 without a truth as the first class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.majority import MajorityVote
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.aggregation.spectral.estimator import SpectralDawidSkene
from bayescrowd.data.annotations import Annotations
from bayescrowd.experiments.engine.label_errors import CROWDS, fitted_probas, loaded_crowd
from bayescrowd.metrics import error_rate
from bayescrowd.selection.workers.curve import supervised_ranking
from bayescrowd.selection.workers.mutual_information import MutualInformationSelector

__all__ = [
    "AUTHORS_N_SCORED",
    "METHODS",
    "RANDOM",
    "authors_truth",
    "crowd_named",
    "error_of",
    "mutual_information_ranking",
    "top_workers",
    "truth_ranking",
]

_EM: dict[str, Any] = {"pseudo_counts": 0.0, "n_iter": 100, "tol": 0.0}

METHODS: dict[str, Callable[[int], Aggregator]] = {
    "OPT-D&S": lambda seed: SpectralDawidSkene(
        start="spectral", smoothing="diagonal", clip=0.01, seed=seed, **_EM
    ),
    "MV": lambda seed: MajorityVote(seed=seed),
    "MV+EM": lambda seed: DawidSkene(seed=seed, **_EM),
}
"""The estimator of each column of the table, given a seed."""

RANDOM = {"OPT-D&S"}
"""Methods that involve random draws; the paper reports the median of 20 runs."""

AUTHORS_N_SCORED = {crowd.title: crowd.n_scored for crowd in CROWDS} | {"Web": 2665}
"""Number of tasks on which the paper counts errors."""


def crowd_named(title: str) -> str:
    """The name by which a crowd is loaded, given its name in the tables."""
    return next(crowd.name for crowd in CROWDS if crowd.title == title)


def authors_truth(name: str) -> pd.Series:
    """The truth that the paper scores by; on web, see the docstring of the module."""
    crowd = loaded_crowd(name)
    if crowd.truth is None:
        raise ValueError(f"{name} has no truth to score by")
    if name != "web":
        return crowd.truth
    return crowd.truth.reindex(crowd.annotations.tasks).fillna(crowd.annotations.classes[0])


@cache
def mutual_information_ranking(name: str) -> pd.Series:
    """Scores of a crowd's workers by mutual information, best first."""
    selector = MutualInformationSelector(1, estimator="paper")
    selector.fit(loaded_crowd(name).annotations)
    return selector.scores_[selector.ranking_]


@cache
def truth_ranking(name: str) -> pd.Index:
    """A crowd's workers ranked by their own error, which requires the truth."""
    crowd = loaded_crowd(name)
    if crowd.truth is None:
        raise ValueError(f"{name} has no truth to rank by")
    return supervised_ranking(crowd.annotations, crowd.truth)


def top_workers(name: str, ranking: pd.Index, n_workers: int) -> Annotations:
    """The labels of the first `n_workers` workers of a ranking."""
    return loaded_crowd(name).annotations.select_workers(ranking[:n_workers])


def error_of(method: Aggregator, labels: Annotations, truth: pd.Series) -> float:
    """Expected percentage of wrong labels; a task without labels counts as a tie of all classes."""
    # With too few workers for three groups, OPT-D&S starts from the votes.
    probas = fitted_probas(method, labels)
    probas.loc[labels.labels_per_task == 0] = np.nan
    return 100 * error_rate(probas, truth)
