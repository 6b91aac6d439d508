"""The sample of tasks does not depend on names."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.task_sample import sampled_tasks, task_fingerprints


@pytest.fixture(scope="module")
def frame():
    return bc.simulate.crowd(2000, 30, 3, labels_per_task=4, seed=0).annotations.to_frame()


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_renaming_changes_no_fingerprint(frame, column):
    ann = bc.Annotations.from_frame(frame)
    ids = frame[column].unique()
    names = dict(zip(ids, np.random.default_rng(1).permutation(len(ids)), strict=True))
    renamed = bc.Annotations.from_frame(frame.assign(**{column: frame[column].map(names)}))
    tasks = [names[task] if column == "task" else task for task in ann.tasks]
    place = renamed.tasks.get_indexer(tasks)
    np.testing.assert_array_equal(task_fingerprints(ann), task_fingerprints(renamed)[place])


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
