"""Sums over tasks against loops, whatever way tasks are put together."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.agreement import task_sums
from bayescrowd.agreement.class_scale import class_scale
from bayescrowd.agreement.task_sums import task_units

METRICS = ["nominal", "ordinal", "interval"]


def units_of(ann, metric="nominal", seed=0):
    scale = class_scale(ann.classes, metric, None)
    return task_units(ann, scale, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def crowd():
    """Tasks with none to six labels."""
    ann = bc.simulate.crowd(300, 10, 4, labels_per_task=6, seed=1).annotations
    kept = np.random.default_rng(0).random(ann.n_labels) < 0.5
    return bc.Annotations.from_codes(
        *(codes[kept] for codes in (ann.task_codes, ann.worker_codes, ann.label_codes)),
        tasks=300,
        workers=10,
        classes=[1, 2, 5, 9],
    )


def test_sums_by_hand():
    ann = bc.Annotations.from_matrix([["a", "a", "b"], ["b", None, None], ["b", "b", None]])
    total = units_of(ann).total()
    assert (total.n_labelled, total.n_compared) == (3, 2)
    assert total.agreement == pytest.approx(1 / 3 + 1)
    np.testing.assert_allclose(total.labels, [[2, 3]])
    np.testing.assert_allclose(total.shares, [[2 / 3, 1 / 3 + 1 + 1]])
    np.testing.assert_allclose(total.disagreement, [[4 / 2]])  # four ordered pairs of a and b


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("most", [10_000, 50])
@pytest.mark.parametrize("dense", [True, False])
def test_sums_by_a_loop(crowd, monkeypatch, metric, most, dense):
    monkeypatch.setattr(task_sums, "MOST_UNITS", most)
    monkeypatch.setattr(task_sums, "MOST_DENSE", 10**9 if dense else 0)
    units = units_of(crowd, metric)
    assert isinstance(units.features, np.ndarray) == dense
    assert len(units.sizes) <= most
    total = units.total()
    votes = crowd.votes[crowd.labels_per_task > 0]
    n = votes.sum(axis=1)
    assert total.n_labelled == len(votes)
    assert total.n_compared == (n >= 2).sum()
    np.testing.assert_allclose(total.labels[0], votes[n >= 2].sum(axis=0))
    np.testing.assert_allclose(total.shares[0], (votes / n[:, None]).sum(axis=0))
    agreement, apart = 0.0, 0.0
    numbers = np.array([1, 2, 5, 9]) / 8  # scaled to the range 0 to 1, as differences are
    pairs = {}
    for row in votes[n >= 2]:
        labels = np.repeat(np.arange(4), row)
        others = [(a, b) for i, a in enumerate(labels) for j, b in enumerate(labels) if i != j]
        agreement += np.mean([a == b for a, b in others])
        for a, b in others:
            distance = (numbers[a] - numbers[b]) ** 2 if metric == "interval" else a != b
            apart += distance / (len(labels) - 1)
            if a != b:
                key = min(a, b), max(a, b)
                pairs[key] = pairs.get(key, 0.0) + 1 / (len(labels) - 1)
    assert total.agreement[0] == pytest.approx(agreement)
    if metric == "ordinal":
        found = dict(zip(map(tuple, units.pairs.T), total.disagreement[0], strict=True))
        assert found == pytest.approx(pairs)
    else:
        assert total.disagreement[0] == pytest.approx([apart])


def test_equal_tasks_are_one_unit():
    rows = [["a", "b"], ["b", "a"], ["b", "b"], ["a", "b"], [None, "b"]]
    units = units_of(bc.Annotations.from_matrix(rows))
    assert sorted(units.sizes) == [1, 1, 3]


def test_tasks_are_put_together_evenly_if_they_are_of_many_kinds(crowd, monkeypatch):
    monkeypatch.setattr(task_sums, "MOST_UNITS", 40)
    units = units_of(crowd)
    n_tasks = units.features[:, 0]
    assert n_tasks.sum() == (crowd.labels_per_task > 0).sum()
    assert n_tasks.max() - n_tasks.min() <= 1
    assert not np.array_equal(units.features, units_of(crowd, seed=1).features)


@pytest.mark.parametrize("most", [10_000, 40])
def test_units_do_not_depend_on_names(crowd, monkeypatch, most):
    """So that an interval does not either: equal seeds resample equal tasks."""
    monkeypatch.setattr(task_sums, "MOST_UNITS", most)
    frame = crowd.to_frame()
    names = dict(zip([1, 2, 5, 9], "cadb", strict=True))
    renamed = pd.DataFrame(
        {
            "task": (7 * frame["task"]) % 1_000 - 50,
            "worker": "w" + (9 - frame["worker"]).astype(str),
            "label": frame["label"].map(names),
        }
    )
    one, other = units_of(crowd), units_of(bc.Annotations.from_frame(renamed))
    np.testing.assert_array_equal(one.sizes, other.sizes)
    np.testing.assert_allclose(one.features[:, :3], other.features[:, :3])
    columns = [3 + "abcd".index(names[c]) for c in (1, 2, 5, 9)]
    np.testing.assert_allclose(one.features[:, 3:7], other.features[:, columns])
