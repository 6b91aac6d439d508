"""The sample of tasks does not depend on names."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.task_sample import (
    FOLD_ROUNDS,
    sampled_tasks,
    task_fingerprints,
    task_folds,
)


@pytest.fixture(scope="module")
def frame():
    return bc.simulate.crowd(2000, 30, 3, labels_per_task=4, seed=0).annotations.to_frame()


@pytest.mark.parametrize("n_rounds", [0, FOLD_ROUNDS])
@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_renaming_changes_no_fingerprint(frame, column, n_rounds):
    ann = bc.Annotations.from_frame(frame)
    ids = frame[column].unique()
    names = dict(zip(ids, np.random.default_rng(1).permutation(len(ids)), strict=True))
    renamed = bc.Annotations.from_frame(frame.assign(**{column: frame[column].map(names)}))
    tasks = [names[task] if column == "task" else task for task in ann.tasks]
    place = renamed.tasks.get_indexer(tasks)
    before, after = (task_fingerprints(each, n_rounds=n_rounds) for each in (ann, renamed))
    np.testing.assert_array_equal(before, after[place])


def test_different_tasks_have_different_fingerprints(frame):
    ann = bc.Annotations.from_frame(frame)
    labels = frame.sort_values("worker").groupby("task")[["worker", "label"]]
    patterns = labels.apply(lambda rows: tuple(rows.to_numpy().ravel()))
    assert len(np.unique(task_fingerprints(ann))) == patterns.nunique()


def test_the_sample_looks_like_the_whole(frame):
    ann = bc.Annotations.from_frame(frame)
    tasks = sampled_tasks(ann, 2000)
    assert len(tasks) == 500
    assert (np.diff(tasks) > 0).all()
    whole = np.bincount(ann.label_codes) / ann.n_labels
    sample = ann.votes[tasks].sum(axis=0) / ann.votes[tasks].sum()
    # Four standard errors of a share from 500 tasks whose four labels agree in part.
    assert np.abs(sample - whole).max() < 4 * np.sqrt(0.25 / 500)


def test_few_labels_are_all_taken(frame):
    ann = bc.Annotations.from_frame(frame)
    assert sampled_tasks(ann, 10**6).tolist() == list(range(2000))


def test_refinement_tells_apart_what_looks_alike_at_first_sight():
    """Tasks with one label, of workers whose other labels agree (a, b) or do not (c, d)."""
    rows = [("t1", "a", 0), ("t1", "b", 0), ("t2", "a", 1), ("t5", "b", 1)]
    rows += [("t3", "c", 0), ("t3", "d", 1), ("t4", "c", 1), ("t6", "d", 0)]
    ann = bc.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    first, refined = (
        pd.Series(task_fingerprints(ann, n_rounds=n), index=ann.tasks) for n in (0, 1)
    )
    # Classes have four labels each, workers one of each: at first all single labels look alike.
    assert first[["t2", "t4", "t5", "t6"]].nunique() == 1
    assert first["t1"] != first["t3"]
    assert refined["t2"] == refined["t5"]
    assert refined["t2"] != refined["t4"]
    assert refined["t4"] != refined["t6"]  # two agree on class 0, nobody on class 1


def test_known_truth_is_part_of_a_task():
    ann = bc.Annotations.from_matrix([list("ab"), list("ab"), list("aa")])
    fixed = np.array([0, -1, -1])
    fingerprints = task_fingerprints(ann, fixed)
    assert len(np.unique(fingerprints)) == 3
    assert len(np.unique(task_fingerprints(ann, np.full(3, -1)))) == 2


def test_folds_hold_every_task_with_labels_once(frame):
    ann = bc.Annotations.from_frame(frame).select_tasks(range(503))
    ann = bc.Annotations.from_codes(
        *(ann.task_codes, ann.worker_codes, ann.label_codes), tasks=510, workers=30, classes=3
    )
    folds = task_folds(ann, np.full(510, -1), 5)
    assert sorted(map(len, folds)) == [100, 100, 101, 101, 101]
    assert np.sort(np.concatenate(folds)).tolist() == list(range(503))
    assert len(task_folds(ann.select_tasks([0, 1, 2]), np.full(3, -1), 5)) == 3


def test_tasks_with_the_same_labels_are_spread_over_the_folds():
    ann = bc.Annotations.from_matrix([list("aa")] * 20 + [list("ab")] * 10)
    folds = task_folds(ann, np.full(30, -1), 5)
    assert [(fold < 20).sum() for fold in folds] == [4] * 5
