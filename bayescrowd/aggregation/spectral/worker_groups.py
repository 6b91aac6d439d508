"""Three random groups of workers that do not depend on ids.

The method of moments (`estimator.py`) needs three groups of workers with about equally many labels.
If the draw depended on the order or the names of workers, the answer would change with the ids.
Here random numbers are assigned to workers by rank: by the number of their labels, then by
fingerprints (`task_sample.py`) that do not change when rows are shuffled or when tasks, workers and
classes are renamed.

There are two kinds of workers with the same fingerprint. *Copies* gave the same labels to the same
tasks. They may go to different groups, and whichever copy goes where, the votes of the groups are
the same. Other workers look alike because the crowd is symmetric: renaming the tasks turns one into
the other. Nothing in the data determines their order, so they have to stay together. A *unit* is a
set of workers who stay together: workers with the same fingerprint, one of each set of copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, UInt64

from bayescrowd.aggregation.task_sample import worker_contents
from bayescrowd.data.annotations import Annotations

__all__ = ["N_GROUPS", "given_groups", "group_votes", "random_groups", "worker_units"]

N_GROUPS = 3
"""Number of groups, which are the three views of the truth."""


def worker_units(
    ann: Annotations, fingerprints: UInt64[np.ndarray, " worker"]
) -> Int[np.ndarray, " worker"]:
    """The unit of each worker: 0, 1, ..., the unit with the most labels first.

    Args:
        ann: the labels.
        fingerprints: fingerprints of the workers; see `task_sample.fingerprints`.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.aggregation.task_sample import fingerprints
        >>> ann = bc.Annotations.from_matrix([list("aaba"), list("bbbb"), list("aaab")])
        >>> worker_units(ann, fingerprints(ann, n_rounds=3).worker)
        array([1, 2, 0, 0])
    """
    contents = worker_contents(ann)
    order = np.lexsort((contents, fingerprints))
    is_new = np.ones(ann.n_workers, dtype=bool)
    is_new[1:] = (np.diff(fingerprints[order]) != 0) | (np.diff(contents[order]) != 0)
    position = np.arange(ann.n_workers)
    copy = np.empty(ann.n_workers, dtype=np.int64)
    copy[order] = position - np.maximum.accumulate(np.where(is_new, position, 0))

    order = np.lexsort((copy, fingerprints))
    is_new[1:] = (np.diff(fingerprints[order]) != 0) | (np.diff(copy[order]) != 0)
    unit = np.empty(ann.n_workers, dtype=np.int64)
    unit[order] = np.cumsum(is_new) - 1
    n_labels = np.bincount(unit, ann.labels_per_worker)
    rank = np.empty(len(n_labels), dtype=np.int64)
    rank[np.argsort(-n_labels, kind="stable")] = np.arange(len(n_labels))
    return rank[unit]


def random_groups(
    rng: np.random.Generator, units: Int[np.ndarray, " worker"]
) -> Int[np.ndarray, " worker"]:
    """Three random groups of workers with about equally many labels.

    Every three units of neighbouring ranks go to different groups.

    Args:
        rng: source of the draws.
        units: units of the workers; see `worker_units`.

    Examples:
        >>> import numpy as np
        >>> random_groups(np.random.default_rng(0), np.array([0, 1, 2, 3, 3]))
        array([2, 0, 1, 2, 2])
    """
    n_triples = -(-(int(units.max()) + 1) // N_GROUPS)
    return rng.permuted(np.tile(np.arange(N_GROUPS), (n_triples, 1)), axis=1).ravel()[units]


def given_groups(
    partition: pd.Series | Mapping[Any, Any], ann: Annotations
) -> Int[np.ndarray, " worker"]:
    """The user's groups as 0, 1, 2, in the order of their names."""
    given = pd.Series(partition)
    positions = given.index.get_indexer(ann.workers)
    if (positions < 0).any():
        missing = ann.workers[int(np.flatnonzero(positions < 0)[0])]
        raise ValueError(f"partition names no group for worker {missing!r}")
    codes, names = pd.factorize(given.to_numpy()[positions], sort=True)
    if len(names) != N_GROUPS or (codes < 0).any():
        raise ValueError(f"partition has {len(names)} groups of these workers; expected {N_GROUPS}")
    return codes.astype(np.int64)


def group_votes(
    ann: Annotations, groups: Int[np.ndarray, " worker"]
) -> list[Float[np.ndarray, "item cls"]]:
    """Labels per task and class of each of the three groups.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aaab"), list("bbab")])
        >>> group_votes(ann, np.array([0, 1, 2, 2]))[2]
        array([[1., 1.],
               [1., 1.]])
    """
    shape = (ann.n_tasks, ann.n_classes)
    cell = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    of_label = groups[ann.worker_codes]
    counts = (
        np.bincount(cell[of_label == group], minlength=shape[0] * shape[1])
        for group in range(N_GROUPS)
    )
    return [count.reshape(shape).astype(float) for count in counts]
