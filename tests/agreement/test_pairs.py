"""Pairs of workers against loops over pairs, the measures of whole crowds, and scikit-learn."""

import itertools

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics

import bayescrowd as bc
from bayescrowd import agreement
from bayescrowd.agreement import pairs

TABLE = [  # one letter per worker, a dot where the worker has no label
    *("aab..", "abb..", "cccc.", "a.ab.", "bb.b.", ".cac.", "ccc..", "...a.", "....a"),
]
MEASURES = ["percent_agreement", "fleiss_kappa", "gwet_ac1", "krippendorff_alpha"]


@pytest.fixture(scope="module")
def crowd():
    return bc.simulate.crowd(80, 9, 3, labels_per_task=4, seed=2).annotations


def small():
    return bc.Annotations.from_matrix([[None if c == "." else c for c in row] for row in TABLE])


def shared(ann, a, b):
    """The labels of two workers on the tasks that both labelled."""
    table = ann.to_frame().pivot(index="task", columns="worker", values="label")
    return table[[ann.workers[a], ann.workers[b]]].dropna()


def test_shares_by_a_loop():
    ann = small()
    found, counts = (
        agreement.pairwise_agreement(ann, m) for m in ("percent_agreement", "n_shared")
    )
    for a, b in itertools.product(range(ann.n_workers), repeat=2):
        one, other = [row[a] for row in TABLE], [row[b] for row in TABLE]
        equal = [x == y for x, y in zip(one, other, strict=True) if "." not in (x, y)]
        np.testing.assert_allclose(found.loc[a, b], np.mean(equal) if equal else np.nan)
        assert counts.loc[a, b] == len(equal)
    assert np.isnan(found.loc[4, 0])  # the fifth worker shares no task with anyone


@pytest.mark.parametrize("measure", MEASURES)
def test_a_pair_is_a_crowd_of_two(crowd, measure):
    matrix = agreement.pairwise_agreement(crowd, measure)
    assert (matrix.index == crowd.workers).all()
    assert (matrix.columns == crowd.workers).all()
    for a, b in itertools.combinations(range(crowd.n_workers), 2):
        both = bc.Annotations.from_matrix(shared(crowd, a, b), classes=list(crowd.classes))
        expected = getattr(agreement, measure)(both)
        assert matrix.iloc[a, b] == pytest.approx(expected, rel=1e-9, nan_ok=True)
        assert matrix.iloc[b, a] == matrix.iloc[a, b] or np.isnan(expected)
    assert (np.diag(matrix) == 1).all()


def test_cohen_by_scikit_learn(crowd):
    matrix = agreement.pairwise_agreement(crowd, "cohen_kappa")
    for a, b in itertools.combinations(range(crowd.n_workers), 2):
        expected = sklearn.metrics.cohen_kappa_score(*shared(crowd, a, b).to_numpy().T)
        assert matrix.iloc[a, b] == pytest.approx(expected, rel=1e-9)


def test_cohen_published():
    """Two abstractors (Gwet 2014), as printed by `kappa2.table` of the R package irrCAC."""
    counts = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    rows = [[i, j] for i in range(3) for j in range(3) for _ in range(counts[i][j])]
    found = agreement.pairwise_agreement(bc.Annotations.from_matrix(rows), "cohen_kappa")
    assert found.loc[0, 1] == pytest.approx(0.7964094, abs=5e-8)


def test_the_table_holds_the_matrices(crowd):
    table = agreement.pair_table(crowd)
    assert list(table.columns) == [
        *("worker", "other", "n_shared", "percent_agreement", "cohen_kappa", "gwet_ac1"),
        "krippendorff_alpha",
    ]
    assert len(table) == 9 * 8 / 2
    for name in table.columns[2:]:
        matrix = agreement.pairwise_agreement(crowd, name)
        expected = [matrix.loc[a, b] for a, b in zip(table["worker"], table["other"], strict=True)]
        np.testing.assert_array_equal(table[name], expected)
    assert len(agreement.pair_table(small())) == 6  # the fifth worker shares no task with anyone


def test_a_task_labelled_twice_is_compared_twice():
    frame = pd.DataFrame(
        {"task": [1, 1, 1, 2, 2], "worker": [*"aabab"], "label": ["x", "y", "x", "y", "y"]}
    )
    ann = bc.Annotations.from_frame(frame)
    assert agreement.pairwise_agreement(ann).loc["a", "b"] == pytest.approx(2 / 3)
    assert agreement.pairwise_agreement(ann, "n_shared").loc["a"].tolist() == [2, 2]


def test_undefined_where_both_always_chose_one_class():
    ann = bc.Annotations.from_matrix([["a", "a"], ["a", "a"]], classes=["a", "b"])
    for name in ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha"):
        assert np.isnan(agreement.pairwise_agreement(ann, name).loc[0, 1])
    assert agreement.pairwise_agreement(ann, "gwet_ac1").loc[0, 1] == 1


def test_invariance(crowd):
    frame = crowd.to_frame()
    names, classes = {w: f"w{(5 * w) % 9}" for w in range(9)}, dict(enumerate("zyx"))
    renamed = frame.assign(
        task=-frame["task"], worker=frame["worker"].map(names), label=frame["label"].map(classes)
    ).sample(frac=1, random_state=0)
    for name in (*MEASURES, "cohen_kappa", "n_shared"):
        one = agreement.pairwise_agreement(crowd, name).rename(index=names, columns=names)
        other = agreement.pairwise_agreement(renamed, name)
        np.testing.assert_allclose(one.loc[other.index, other.columns], other, rtol=1e-9)


def test_the_workers_with_the_most_labels_are_kept():
    ann = bc.simulate.crowd(200, 12, labels_per_task=3, activity=1.0, seed=2).annotations
    found = agreement.pairwise_agreement(ann, most=5)
    whole = agreement.pairwise_agreement(ann)
    given = pd.Series(ann.labels_per_worker, index=ann.workers)
    assert given[found.index].min() >= given.drop(found.index).max()
    pd.testing.assert_frame_equal(found, whole.loc[found.index, found.columns])
    assert set(agreement.pair_table(ann, most=5)["worker"]) <= set(found.index)


def test_no_labels():
    ann = bc.Annotations.from_matrix([[None, "a"], [None, "b"]])
    matrix = agreement.pairwise_agreement(ann)
    assert np.isnan(matrix.loc[0]).all()
    assert matrix.loc[1, 1] == 1
    assert len(agreement.pair_table(ann)) == 0


def test_very_many_workers_are_refused(monkeypatch):
    n = 2_001
    codes = np.arange(n)
    ann = bc.Annotations.from_codes(codes // 3, codes, codes % 2, tasks=667, workers=n, classes=2)
    with pytest.raises(ValueError, match=r"matrix of 2,001 workers.*at most 2,000, or most="):
        agreement.pairwise_agreement(ann)
    assert len(agreement.pairwise_agreement(ann, most=2_000)) == 2_000
    monkeypatch.setattr("bayescrowd.checks.memory.available_bytes", lambda: 1e6)
    with pytest.raises(ValueError, match=r"pairs of 2,001 workers: .*needed.*most="):
        agreement.pair_table(ann, most=None)


def test_few_matrices_are_in_memory_at_a_time():
    """What is promised to `check_fits` holds, but for the fixed cost of the sparse products."""
    import tracemalloc

    ann = bc.simulate.crowd(2_000, 1_000, 3, labels_per_task=3, seed=0).annotations
    tracemalloc.start()
    agreement.pair_table(ann)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * (pairs.N_MATRICES + 1) * 1_000**2
