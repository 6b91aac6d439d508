"""The report on gold: what changed, and intervals that cover."""

import numpy as np

import bayescrowd as bc
from bayescrowd.aggregation.auto.gold_report import make_gold_report, unseen_probas
from bayescrowd.aggregation.auto.gold_tilt import fit_tilt
from bayescrowd.aggregation.votes import with_known


def report_of(ann, fixed):
    before = bc.MajorityVote().fit(ann).probas_.to_numpy()
    tilt = fit_tilt(before, ann, fixed)
    after = with_known(tilt.apply(before, ann), fixed)
    return before, after, make_gold_report(before, after, ann, fixed, tilt)


def test_what_changed():
    crowd = bc.simulate.crowd(200, 5, 2, accuracy=0.65, seed=2)
    ann = crowd.annotations
    fixed = ann.code_truth(crowd.truth.sample(30, random_state=0))
    before, after, report = report_of(ann, fixed)
    assert report.n_gold == 30
    codes = ann.tasks.get_indexer(report.changed.index)
    assert (fixed[codes] < 0).all()
    assert (report.changed["before"] != report.changed["after"]).all()
    assert report.changed["after"].tolist() == ann.classes[after[codes].argmax(axis=1)].tolist()
    np.testing.assert_array_equal(report.changed["probability"], after[codes].max(axis=1))
    others = np.setdiff1d(np.flatnonzero(fixed < 0), codes)
    np.testing.assert_array_equal(
        after[others, before[others].argmax(axis=1)], after[others].max(axis=1)
    )
    assert "30 gold tasks" in report.summary


def test_gold_tasks_are_predicted_without_their_own_class():
    crowd = bc.simulate.crowd(60, 5, 2, accuracy=0.7, seed=2)
    ann, truth = crowd.annotations, crowd.annotations.code_truth(crowd.truth)
    before = bc.MajorityVote().fit(ann).probas_.to_numpy()
    fixed = np.where(np.arange(60) < 4, truth, -1).astype(np.int32)
    found = unseen_probas(before, ann, fixed)
    np.testing.assert_array_equal(found[4:], before[4:])
    for task in range(4):  # fewer tasks than folds: each is a fold of its own
        others = fixed.copy()
        others[task] = -1
        expected = fit_tilt(before, ann, others).apply(before, ann)[task]
        np.testing.assert_allclose(found[task], expected, atol=1e-12)


def test_intervals_cover():
    """Of 60 intervals at 90 %, at least 48: fewer have probability below .01 if they hold."""
    hits, judge_hits = [], []
    for seed in range(60):
        crowd = bc.simulate.crowd(200, 6, 2, accuracy=0.7, seed=seed)
        ann, truth = crowd.annotations, crowd.annotations.code_truth(crowd.truth)
        fixed = ann.code_truth(crowd.truth.sample(20, random_state=seed))
        _, after, report = report_of(ann, fixed)
        rest = fixed < 0
        right = (after.argmax(axis=1) == truth)[rest].mean()
        hits.append(report.accuracy["lower"] <= right <= report.accuracy["upper"])
        is_right = ann.label_codes == truth[ann.task_codes]
        judged = np.bincount(ann.worker_codes, is_right) / ann.labels_per_worker
        judge_hits.append(
            ((report.judges.lower <= judged) & (judged <= report.judges.upper)).mean()
        )
    assert sum(hits) >= 48
    assert np.mean(judge_hits) >= 0.8


def test_gold_on_all_tasks_and_raters_without_labels():
    crowd = bc.simulate.crowd(30, 5, 2, accuracy=0.8, seed=2)
    ann, truth = crowd.annotations, crowd.annotations.code_truth(crowd.truth)
    wider = bc.Annotations.from_codes(
        ann.task_codes, ann.worker_codes, ann.label_codes, tasks=30, workers=6, classes=2
    )
    _, _, report = report_of(wider, truth)
    assert report.changed.empty
    assert report.judges.loc[5, ["accuracy", "lower", "upper"]].isna().all()
    assert report.judges["n_gold"].tolist() == [*ann.labels_per_worker, 0]
    assert 0 <= report.accuracy["lower"] <= report.accuracy["upper"] <= 1
