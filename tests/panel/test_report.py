"""The report: what the default says, what only gold says, and what is not said without it."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.io.verdicts import Verdicts
from bayescrowd.panel.findings import NO_ACCURACY, NO_INTERVAL, alarm_in_words


@pytest.fixture(scope="module")
def data():
    accuracy = [0.8, 0.8, 0.8, 0.75, 0.75]
    return bc.simulate.panel(200, 5, clusters=[3], copying=1.0, accuracy=accuracy, seed=1)


@pytest.fixture(scope="module")
def gold(data):
    return data.truth.sample(30, random_state=0)


@pytest.fixture(scope="module")
def informed(data, gold):
    """The report with gold, and with the cost of one judge."""
    return bc.panel_report(data.annotations, gold, most_dropped=1)


@pytest.fixture(scope="module")
def tiny():
    """The report on four tasks, the last of which only one judge judged."""
    table = {"x": ["p", "p", "f", "p"], "y": ["p", "f", "f", None], "z": ["p", "p", "f", None]}
    return bc.panel_report(bc.Annotations.from_matrix(pd.DataFrame(table)), most_dropped=0)


def test_with_gold_labels_are_those_of_the_default(data, gold):
    """The report fits once, without gold; its answer is the default's with gold all the same."""
    small = data.annotations.select_tasks(range(80))
    known = gold[gold.index < 80]
    known.iloc[0] = 7  # a class that nobody chose
    report = bc.panel_report(small, known, most_dropped=0)
    est = bc.AutoAggregator().fit(small, known)
    pd.testing.assert_frame_equal(report.probas, est.probas_)
    pd.testing.assert_series_equal(report.labels, est.labels_)
    pd.testing.assert_frame_equal(report.accuracies, est.gold_report_.judges, check_names=False)
    assert report.gold_report.summary == est.gold_report_.summary
    assert report.alarm == est.alarm_
    assert 7 in report.shares.shares.index
    pd.testing.assert_frame_equal(
        report.shares.shares, bc.prevalence(report.estimator, known).shares
    )


def test_without_gold_no_accuracy_and_no_interval(informed):
    report = bc.panel_report(informed.estimator, most_dropped=2)
    assert report.accuracies is None
    assert report.shares is None
    assert report.gold_report is None
    assert report.n_gold == 0
    assert NO_ACCURACY in report.summary
    assert NO_INTERVAL in report.summary
    assert "%" not in NO_INTERVAL
    assert len(report.dropping.table) == 2
    assert report.swaps is None
    assert "lower" not in report.claimed.columns


def test_claimed_shares_by_hand(tiny):
    claimed = tiny.claimed.loc["p"]
    assert claimed["votes"] == pytest.approx(6 / 10)
    assert claimed["labels"] == pytest.approx(3 / 4)
    assert claimed["probabilities"] == pytest.approx(tiny.estimator.probas_["p"].mean())
    assert tiny.claimed.sum().to_list() == pytest.approx([1, 1, 1])
    as_panel = tiny.judges["as_panel"]
    assert as_panel.to_dict() == pytest.approx({"x": 1, "y": 2 / 3, "z": 1})


def test_judges_of_a_cluster_stand_side_by_side(data, informed):
    report = informed
    (cluster,) = report.dependence.clusters
    assert set(cluster) == {0, 1, 2}
    assert set(report.agreement.index[:3]) == {0, 1, 2}
    assert report.judges.loc[[0, 1, 2], "cluster"].to_list() == [1, 1, 1]
    assert report.judges.loc[[3, 4], "cluster"].isna().all()
    matrix = data.annotations.to_frame().pivot(index="task", columns="worker", values="label")
    for one in range(5):
        for other in range(5):
            same = (matrix[one] == matrix[other]).mean()
            assert report.agreement.loc[one, other] == pytest.approx(same)
    first = report.similar_pairs.index[0]
    assert set(first) < {0, 1, 2}


def test_tasks_and_open_probabilities(data, gold, informed):
    tasks = informed.tasks
    assert tasks.loc[gold.index, "label"].to_list() == gold.to_list()
    np.testing.assert_allclose(tasks[["probability:0", "probability:1"]].sum(axis=1), 1)
    assert (tasks["probability"] >= 0.5).all()
    assert not informed.open_probas.index.isin(gold.index).any()
    assert len(informed.open_probas) == 170
    everything = bc.panel_report(informed.estimator, data.truth, most_dropped=0)
    assert len(everything.open_probas) == 200


def test_intervals_of_judges_hold_the_truth_and_follow_the_level(data, gold, informed):
    """Of five 99 % intervals, one fails once in twenty draws at most; the seed is fixed."""
    wide = bc.panel_report(informed.estimator, gold, most_dropped=0, level=0.99)
    narrow = bc.panel_report(informed.estimator, gold, most_dropped=0, level=0.5)
    frame = data.annotations.to_frame()
    right = (frame["label"] == frame["task"].map(data.truth)).groupby(frame["worker"]).mean()
    found = wide.accuracies
    assert ((found["lower"] <= right) & (right <= found["upper"])).all()
    width = found["upper"] - found["lower"]
    assert (width > narrow.accuracies["upper"] - narrow.accuracies["lower"]).all()
    assert wide.shares.level == 0.99
    assert "99% interval" in wide.gold_report.summary


def test_abstentions_are_kept_apart(tiny):
    ann = tiny.annotations
    unsure = pd.DataFrame({"task": [3], "worker": ["y"], "value": ["unsure"]})
    report = bc.panel_report(tiny.estimator, abstentions=unsure, most_dropped=0)
    columns = ["n_verdicts", "n_abstained", "n_never_asked"]
    assert report.judges.loc["x", columns].to_list() == [4, 0, 0]
    assert report.judges.loc["y", columns].to_list() == [3, 1, 0]
    assert report.judges.loc["z", columns].to_list() == [3, 0, 1]
    assert report.tasks["n_abstained"].to_list() == [0, 0, 0, 1]
    assert "gave no verdict 1 time" in report.summary
    again = bc.panel_report(Verdicts(ann, unsure), most_dropped=0)
    pd.testing.assert_frame_equal(again.judges, report.judges)
    with pytest.raises(ValueError, match="abstentions are given twice"):
        bc.panel_report(Verdicts(ann, unsure), abstentions=unsure)


def test_swaps_are_found_by_their_endings():
    data = bc.simulate.panel(100, 3, position_bias=0.4, swapped=True, seed=2)
    report = bc.panel_report(data.annotations, most_dropped=0)
    assert set(report.swaps.index) == {"judge0", "judge1", "judge2"}
    assert "3 judges asked in both orders" in report.summary
    other = bc.panel_report(report.estimator, orders=("-a", "-b"), most_dropped=0)
    assert other.swaps is None


def test_the_alarm_is_raised_and_answered_by_gold():
    """Two judges of five copy each other, one knows and two guess: who is right, labels hide."""
    accuracy = [0.7, 0.7, 0.95, 0.5, 0.5]
    data = bc.simulate.panel(80, 5, clusters=[2], copying=1.0, accuracy=accuracy, seed=0)
    report = bc.panel_report(data.annotations, most_dropped=0)
    assert report.alarm.buy_gold
    assert report.alarm == report.estimator.alarm_
    assert alarm_in_words(report).startswith(f"Alarm: {report.alarm.reason}")
    assert alarm_in_words(report) in report.summary
    informed = bc.panel_report(report.estimator, data.truth.iloc[:20], most_dropped=0)
    assert "20 gold labels now speak for it" in alarm_in_words(informed)
    few = bc.panel_report(report.estimator, data.truth.iloc[:3], most_dropped=0)
    assert "the 3 gold labels at hand are few" in alarm_in_words(few)


def test_errors_that_all_judges_share_raise_no_alarm():
    data = bc.simulate.panel(100, 5, misleading=0.4, pull=1.0, accuracy=[0.9] * 5, seed=0)
    report = bc.panel_report(data.annotations, most_dropped=0)
    assert (report.labels != data.truth).mean() > 0.25
    assert not report.alarm.buy_gold
    assert "would not show" in report.summary


def test_weights_reach_the_shares(gold, informed):
    weights = pd.Series(np.where(gold == 1, 3.0, 1.0), index=gold.index)
    plain = informed.shares
    weighted = bc.panel_report(informed.estimator, gold, weights=weights, most_dropped=0).shares
    one = weighted.beside["gold-only"].loc[1, "share"]
    assert one == pytest.approx((3 * (gold == 1).sum()) / (3 * (gold == 1) + (gold == 0)).sum())
    assert one > plain.beside["gold-only"].loc[1, "share"]


def test_order_of_rows_does_not_matter(data, gold, informed):
    frame = data.annotations.to_frame().sample(frac=1, random_state=3)
    one = informed
    other = bc.panel_report(frame, gold.sample(frac=1, random_state=4), most_dropped=1)
    pd.testing.assert_frame_equal(one.judges, other.judges)
    pd.testing.assert_frame_equal(one.probas, other.probas)
    pd.testing.assert_frame_equal(one.dropping.table, other.dropping.table)


def test_bad_arguments():
    ann = bc.Annotations.from_matrix([["a", "b"], ["b", "b"]])
    with pytest.warns(bc.TruthWarning), pytest.raises(ValueError, match="no gold task is among"):
        bc.panel_report(ann, {"nowhere": "a"})
    with pytest.raises(ValueError, match="expected two different endings"):
        bc.panel_report(ann, orders=("x",))
    with pytest.raises(ValueError, match="abstentions has no column 'task'"):
        bc.panel_report(ann, abstentions=pd.DataFrame({"worker": [0]}))
    with pytest.raises(ValueError, match="level"):
        bc.panel_report(ann, level=1.0)
