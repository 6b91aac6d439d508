"""Accuracies of raters against the formula, and intervals that hold on simulated panels."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayescrowd as bc
from bayescrowd.aggregation.auto.rater_intervals import (
    accuracies_in,
    rater_accuracies,
    with_intervals,
)
from bayescrowd.aggregation.dependence import measure_dependence
from bayescrowd.aggregation.post_strata import Share, whole_cases


def shares_of(ann, mixed, answer, **options):
    options = {"vote_weight": 0.05, "replicated": None} | options
    clusters = measure_dependence(ann, answer).clusters
    return rater_accuracies(ann, mixed, answer, clusters, **options)


def copied_crowd():
    """Two raters of six who repeat each other, and a seventh without labels."""
    data = bc.simulate.panel(80, 6, clusters=[2], copying=1.0, accuracy=[0.75] * 6, seed=1)
    ann = data.annotations
    ann = bc.Annotations.from_codes(
        ann.task_codes, ann.worker_codes, ann.label_codes, tasks=80, workers=7, classes=2
    )
    mixed = (ann.votes + 0.5) / (ann.labels_per_task[:, None] + 1)
    warm = np.sqrt(mixed)
    return ann, mixed, warm / warm.sum(axis=1, keepdims=True)


def true_accuracies(data):
    frame = data.annotations.to_frame()
    return (frame["label"] == frame["task"].map(data.truth)).groupby(frame["worker"]).mean()


# The formula.


def test_moments_and_interval_by_a_loop_over_labels():
    ann, mixed, answer = copied_crowd()
    replicated = np.random.default_rng(0).uniform(0.5, 0.9, (10, 7))
    found = shares_of(ann, mixed, answer, vote_weight=0.3, replicated=replicated)
    assert measure_dependence(ann, answer).clusters == ((0, 1),)
    clustered = 160 / 480  # labels of the two who repeat each other
    for rater in range(6):
        mine = np.flatnonzero(ann.worker_codes == rater)
        p = [
            0.6 * mixed[ann.task_codes[i], ann.label_codes[i]]
            + 0.4 * answer[ann.task_codes[i], ann.label_codes[i]]
            for i in mine
        ]
        mean = sum(p) / 80
        variance = sum(x * (1 - x) for x in p) / 80**2
        variance += mean * (1 - mean) * (0.07**2 + 0.2**2 * clustered + 0.2**2 * 0.3)
        variance += np.var(replicated[:, rater]) / 8
        total = mean * (1 - mean) / variance - 1
        ends = scipy.stats.beta(mean * total, (1 - mean) * total).ppf([0.05, 0.95])
        assert found.estimate[rater] == pytest.approx(mean)
        assert found.lower[rater] == pytest.approx(np.floor(80 * ends[0]) / 80)
        assert found.upper[rater] == pytest.approx(np.ceil(80 * ends[1]) / 80)


def test_a_rater_without_labels_is_one_of_the_crowd():
    ann, mixed, answer = copied_crowd()
    found = shares_of(ann, mixed, answer, replicated=np.full((3, 7), np.nan))
    assert found.estimate[6] == pytest.approx(found.estimate[:6].mean())  # 80 labels each
    assert (found.lower[6], found.upper[6]) == (0, 1)


def test_intervals_end_at_whole_numbers_of_cases():
    share = Share(np.array([0.5, 0.9, 0.5]), np.array([0.3, 0.8, 0.4]), np.array([0.7, 0.94, 0.6]))
    found = whole_cases(share, np.array([3, 10, 5]))
    np.testing.assert_allclose(found.lower, [0, 0.8, 0.4])
    np.testing.assert_allclose(found.upper, [1, 1.0, 0.6])  # 0.4 and 0.6 are whole already
    np.testing.assert_array_equal(found.estimate, share.estimate)


def test_columns_follow_the_accuracy():
    quality = pd.DataFrame({"accuracy": [0.1], "information": [0.2], "n_labels": [3], "flag": [""]})
    share = Share(np.array([0.5]), np.array([0.4]), np.array([0.6]))
    table = with_intervals(quality, share)
    assert list(table) == ["accuracy", "lower", "upper", "information", "n_labels", "flag"]
    assert table.iloc[0, :4].tolist() == [0.5, 0.4, 0.6, 0.2]
    assert quality["accuracy"].tolist() == [0.1]


# What widens an interval.


def test_every_sign_of_shared_errors_widens_the_intervals():
    ann, mixed, answer = copied_crowd()
    replicated = np.random.default_rng(0).uniform(0.2, 0.9, (10, 7))

    def width(clusters=((0, 1),), vote_weight=0.05, replicated=None):
        share = rater_accuracies(
            ann, mixed, answer, clusters, vote_weight=vote_weight, replicated=replicated
        )
        return (share.upper - share.lower)[:6].mean()

    assert width(clusters=()) < width()
    assert width() < width(vote_weight=1.0)
    assert width() < width(replicated=replicated)


# Invariance.


def test_names_and_order_do_not_matter():
    data = bc.simulate.panel(60, 5, 3, clusters=[2], copying=1.0, accuracy=[0.7] * 5, seed=2)
    frame, rng = data.annotations.to_frame(), np.random.default_rng(0)
    task, worker, label = (rng.permutation(n) for n in (60, 5, 3))
    renamed = frame.assign(
        task=task[frame["task"]], worker=worker[frame["worker"]], label=label[frame["label"]]
    ).sample(frac=1, random_state=1)
    found, other = (bc.aggregate(table).worker_quality_ for table in (frame, renamed))
    columns = ["accuracy", "lower", "upper"]
    np.testing.assert_allclose(
        other.loc[worker[found.index], columns], found[columns], rtol=0, atol=1e-6
    )


# Gold.


def test_with_gold_the_table_is_that_of_the_gold_report():
    data = bc.simulate.panel(120, 5, misleading=0.3, seed=3)
    est = bc.aggregate(data.annotations, gold=data.truth.iloc[:40])
    judges, quality = est.gold_report_.judges, est.worker_quality_
    for name in ("accuracy", "lower", "upper"):
        np.testing.assert_array_equal(quality[name], judges[name])
    right = true_accuracies(data)
    assert ((quality["lower"] <= right) & (right <= quality["upper"])).sum() >= 3


def test_a_rater_without_labels_is_one_of_the_crowd_with_gold_too():
    judges = pd.DataFrame(
        {"accuracy": [0.8, 0.5, np.nan], "lower": [0.7, 0.4, np.nan], "upper": [0.9, 0.6, np.nan]}
    )
    found = accuracies_in(judges, np.array([30, 10, 0]))
    np.testing.assert_allclose(found.estimate, [0.8, 0.5, (30 * 0.8 + 10 * 0.5) / 40])
    np.testing.assert_allclose([found.lower[2], found.upper[2]], [0, 1])


# Coverage.


def coverages(simulate, n_seeds, **kind):
    """Coverage of the intervals and of naive ones, and the mean width."""
    found = []
    for seed in range(n_seeds):
        data = simulate(**kind, seed=seed)
        quality, right = bc.aggregate(data.annotations).worker_quality_, true_accuracies(data)
        assert (quality["lower"] <= quality["accuracy"]).all()
        assert (quality["accuracy"] <= quality["upper"]).all()
        holds = (quality["lower"] <= right + 1e-9) & (right <= quality["upper"] + 1e-9)
        spread = np.sqrt(quality["accuracy"] * (1 - quality["accuracy"]) / quality["n_labels"])
        naive = (quality["accuracy"] - right).abs() <= 1.645 * spread
        found.append([holds.mean(), naive.mean(), (quality["upper"] - quality["lower"]).mean()])
    return np.mean(found, axis=0)


@pytest.mark.slow
def test_intervals_hold_on_a_crowd_and_say_something():
    kind = {"n_tasks": 200, "n_workers": 40, "labels_per_task": 5, "accuracy": 0.75}
    coverage, _, width = coverages(bc.simulate.crowd, 5, **kind)
    # Three standard errors of the coverage over 200 raters, if it is 90 %.
    assert coverage >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 200)
    assert width < 0.35  # an accuracy of .75 of 25 labels alone has an interval of width .28


@pytest.mark.slow
def test_intervals_hold_on_a_panel_where_naive_ones_do_not():
    kind = {"n_tasks": 400, "n_workers": 10, "clusters": [5], "copying": 0.7, "accuracy": 0.75}
    coverage, naive, width = coverages(bc.simulate.panel, 5, **kind)
    assert coverage >= 0.8  # the goal; raters of a panel err together, so do their intervals
    assert width < 0.4
    assert naive < 0.5
