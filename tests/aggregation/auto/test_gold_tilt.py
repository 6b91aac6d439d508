"""The gold tilt: its features, what it may not depend on, and unusual gold."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto import gold_tilt as module
from bayescrowd.aggregation.auto.gold_tilt import RaterRows, fit_tilt


@pytest.fixture(scope="module")
def crowd():
    return bc.simulate.crowd(150, 8, 3, labels_per_task=5, accuracy=0.65, seed=3)


def smoothed(ann):
    votes = ann.votes + 1 / ann.n_classes
    return votes / votes.sum(axis=1, keepdims=True)


def some_gold(crowd, n):
    return crowd.annotations.code_truth(crowd.truth.sample(n, random_state=0))


def log_loss(probas, truth):
    return -np.log(probas[np.arange(len(truth)), truth]).mean()


def test_evidence_by_loops(crowd):
    ann, probas = crowd.annotations, smoothed(crowd.annotations)
    found = RaterRows.of(probas, ann).evidence(ann, np.arange(ann.n_workers))
    n_classes = ann.n_classes
    counts = np.zeros((ann.n_workers, n_classes, n_classes))  # worker, observed, true
    rows = list(zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True))
    for t, w, y in rows:
        counts[w, y] += probas[t]
    crowd_counts = counts.sum(axis=0)
    overall = crowd_counts.sum(axis=1) + 1 / n_classes
    mean = (crowd_counts + (overall / overall.sum())[:, None]) / (crowd_counts.sum(axis=0) + 1)
    theta = (counts + 2 * mean) / (counts.sum(axis=1, keepdims=True) + 2)
    for t in range(5):
        logs = np.mean([np.log(theta[w, y]) for s, w, y in rows if s == t], axis=0)
        np.testing.assert_allclose(found[t], logs - logs.mean(), atol=1e-12)


def test_gold_improves_a_fit_that_is_upside_down():
    crowd = bc.simulate.crowd(400, 9, 2, accuracy=0.75, seed=5)
    ann, truth = crowd.annotations, crowd.annotations.code_truth(crowd.truth)
    wrong = smoothed(ann)[:, ::-1].copy()
    fixed = some_gold(crowd, 30)
    tilt = fit_tilt(wrong, ann, fixed)
    after, rest = tilt.apply(wrong, ann), fixed < 0
    assert tilt.weight > 0.99
    assert (after.argmax(axis=1) == truth)[rest].mean() > 0.8
    assert log_loss(after[rest], truth[rest]) < log_loss(wrong[rest], truth[rest])


@pytest.mark.parametrize("n_gold", [1, 2, 5, 20, 60])
def test_gold_does_not_flip_a_good_fit(n_gold):
    crowd = bc.simulate.crowd(300, 12, 2, accuracy=0.8, seed=7)
    ann, truth = crowd.annotations, crowd.annotations.code_truth(crowd.truth)
    before = bc.OneCoinDawidSkene().fit(ann).probas_.to_numpy()
    fixed = some_gold(crowd, n_gold)
    after = fit_tilt(before, ann, fixed).apply(before, ann)
    assert (after.argmax(axis=1) != before.argmax(axis=1)).mean() < 0.05
    assert log_loss(after, truth) < log_loss(np.maximum(before, 1e-3), truth) + 0.05


def test_nothing_depends_on_ids_or_on_the_order_of_rows(crowd):
    ann, fixed = crowd.annotations, some_gold(crowd, 25)
    probas = smoothed(ann)
    after = fit_tilt(probas, ann, fixed).apply(probas, ann)
    rng = np.random.default_rng(1)
    task, worker, cls = (rng.permutation(n) for n in (ann.n_tasks, ann.n_workers, ann.n_classes))
    # Task t is now called task[t], and so on.
    renamed = bc.Annotations.from_codes(
        task[ann.task_codes],
        worker[ann.worker_codes],
        cls[ann.label_codes],
        tasks=ann.n_tasks,
        workers=ann.n_workers,
        classes=ann.n_classes,
    )
    moved, moved_fixed = np.empty_like(probas), np.empty_like(fixed)
    moved[task[:, None], cls[None, :]] = probas
    moved_fixed[task] = np.where(fixed >= 0, cls[fixed], -1)
    again = fit_tilt(moved, renamed, moved_fixed).apply(moved, renamed)
    np.testing.assert_allclose(again[task[:, None], cls[None, :]], after, atol=1e-7)


def test_new_tasks_by_known_and_unknown_raters(crowd):
    ann, probas = crowd.annotations, smoothed(crowd.annotations)
    tilt = fit_tilt(probas, ann, some_gold(crowd, 20))
    part = ann.select_tasks(ann.tasks[:10])
    np.testing.assert_allclose(
        tilt.apply(probas[:10], part), tilt.apply(probas, ann)[:10], atol=1e-12
    )
    frame = part.to_frame().assign(worker=lambda t: "new " + t["worker"].astype(str))
    strangers = bc.Annotations.from_frame(frame, classes=list(ann.classes))
    found = tilt.apply(probas[:10], strangers)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    with pytest.raises(ValueError, match="expected those of the fit"):
        tilt.apply(probas[:10], part.with_classes([99]))


def test_gold_class_that_nobody_chose(crowd):
    ann = crowd.annotations.with_classes([9])
    probas = np.concatenate([smoothed(crowd.annotations), np.zeros((150, 1))], axis=1)
    fixed = np.full(150, -1, dtype=np.int32)
    fixed[:20] = crowd.annotations.code_truth(crowd.truth)[:20]
    few, many = fixed.copy(), fixed.copy()
    few[:1], many[:8] = 3, 3
    one, eight = (fit_tilt(probas, ann, gold).apply(probas, ann) for gold in (few, many))
    for found in (one, eight):
        assert np.isfinite(np.log(found)).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)
    assert eight[20:, 3].mean() > one[20:, 3].mean() > 0


@pytest.mark.parametrize("case", ["none", "one class", "all tasks", "unlabelled", "certain"])
def test_unusual_gold(crowd, case):
    ann = crowd.annotations
    probas, fixed = smoothed(ann), np.full(150, -1, dtype=np.int32)
    if case == "one class":
        fixed[:10] = 1
    elif case == "all tasks":
        fixed = ann.code_truth(crowd.truth)
    elif case == "unlabelled":
        ann = bc.Annotations.from_codes(
            ann.task_codes, ann.worker_codes, ann.label_codes, tasks=153, workers=9, classes=3
        )
        probas = smoothed(ann)
        fixed = np.r_[fixed, [0, 1, 2]].astype(np.int32)
    elif case == "certain":
        probas, fixed[:10] = np.eye(3)[probas.argmax(axis=1)], 0
    tilt = fit_tilt(probas, ann, fixed)
    found = tilt.apply(probas, ann)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert 0 <= tilt.weight <= 1
    assert tilt.n_gold == (fixed >= 0).sum()


def test_only_the_raters_with_most_gold_have_a_delta(crowd, monkeypatch):
    ann, fixed = crowd.annotations, some_gold(crowd, 20)
    n_gold = np.bincount(ann.worker_codes[fixed[ann.task_codes] >= 0], minlength=ann.n_workers)
    monkeypatch.setattr(module, "MOST_RATERS", 3)
    raters = fit_tilt(smoothed(ann), ann, fixed).raters
    assert len(raters) <= 3
    others = np.setdiff1d(np.arange(ann.n_workers), raters)
    assert n_gold[raters].min(initial=99) > n_gold[others].max()


def test_inputs_stay_as_they_are(crowd):
    ann, probas, fixed = crowd.annotations, smoothed(crowd.annotations), some_gold(crowd, 5)
    copies = probas.copy(), fixed.copy()
    fit_tilt(probas, ann, fixed).apply(probas, ann)
    np.testing.assert_array_equal(probas, copies[0])
    np.testing.assert_array_equal(fixed, copies[1])
    assert isinstance(ann.tasks, pd.Index)
