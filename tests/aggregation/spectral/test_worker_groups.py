"""Random groups are balanced, and a function of the data whatever the ids."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.spectral.worker_groups import group_votes, random_groups, worker_units
from bayescrowd.aggregation.task_sample import FOLD_ROUNDS, fingerprints


def units_of(ann):
    return worker_units(ann, fingerprints(ann, n_rounds=FOLD_ROUNDS).worker)


def groups_of(ann, seed=0):
    return random_groups(np.random.default_rng(seed), units_of(ann))


def long_tailed(names=None):
    """600 tasks, 50 workers of unequal activity; ids through permutations, by column."""
    rng = np.random.default_rng(3)
    weights = rng.pareto(1.0, size=50) + 0.05
    codes = {
        "task": np.arange(3000) % 600,
        "worker": rng.choice(50, size=3000, p=weights / weights.sum()),
        "label": rng.integers(3, size=3000),
    }
    codes = {column: (names or {}).get(column, np.arange(600))[c] for column, c in codes.items()}
    return bc.Annotations.from_codes(*codes.values(), tasks=600, workers=50, classes=3)


def test_groups_share_workers_and_labels_evenly():
    ann = long_tailed()
    groups = groups_of(ann)
    assert np.bincount(groups, minlength=3).min() >= 16
    # Neighbours in rank differ by less than the busiest worker in sum.
    totals = np.bincount(groups, ann.labels_per_worker)
    assert totals.max() - totals.min() <= ann.labels_per_worker.max()


@pytest.mark.parametrize(
    "columns", [("task",), ("worker",), ("label",), ("task", "worker", "label")]
)
def test_groups_are_the_same_under_other_ids(columns):
    ann = long_tailed()
    rng = np.random.default_rng(4)
    sizes = {"task": 600, "worker": 50, "label": 3}
    names = {column: rng.permutation(sizes[column]) for column in columns}
    again = groups_of(long_tailed(names))[names.get("worker", np.arange(50))]
    busy = ann.labels_per_worker > 0  # those without labels are copies of each other
    assert (again[busy] == groups_of(ann)[busy]).all()


def test_control_another_seed_gives_other_groups():
    ann = long_tailed()
    assert (groups_of(ann) != groups_of(ann, seed=1)).any()


def test_copies_part_and_symmetric_workers_stay_together():
    # Workers 0, 1 and 2 gave the same labels. 3 and 4 turn into each other when the last two tasks
    # swap their names.
    rows = [(t, w, t % 2) for w in (0, 1, 2) for t in range(6)]
    rows += [(6, 3, 0), (7, 4, 0)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    units = units_of(bc.Annotations.from_frame(frame))
    assert sorted(units[:3]) == [0, 1, 2]
    assert units[3] == units[4] == 3
    groups = random_groups(np.random.default_rng(0), units)
    assert sorted(groups[:3]) == [0, 1, 2]


def test_votes_of_the_groups_add_up_to_all_votes():
    ann = long_tailed()
    votes = group_votes(ann, groups_of(ann))
    np.testing.assert_array_equal(sum(votes), ann.votes)
    only_first = ann.select_workers(ann.workers[groups_of(ann) == 0])
    np.testing.assert_array_equal(votes[0][only_first.tasks], only_first.votes)
