"""The error of labels against the number of workers, by hand and as published."""

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.selection.workers.curve import supervised_ranking

Selector = bc.MutualInformationSelector


def test_curve_by_hand():
    # Worker 0 labels both tasks, one wrong; worker 1 one task, rightly.
    ann = bc.Annotations.from_matrix([["a", "a", None], ["a", None, "b"]])
    truth = pd.Series({0: "a", 1: "b"})
    curve = bc.selection_curve(
        ann, truth, {"score": Selector(estimator="paper")}, {"MV": bc.MajorityVote()}, sizes=[1, 3]
    )
    assert curve.columns.to_list() == ["selector", "aggregator", "n_workers", "error"]
    found = curve.set_index(["selector", "n_workers"])["error"]
    # Worker 1 alone: task 0 is right and task 1 a guess. All three: task 1 is a tie.
    assert found["supervised", 1] == 0.25
    assert found["supervised", 3] == found["score", 3] == 0.25


def test_a_task_without_selected_workers_is_a_guess_for_any_aggregator():
    ann = bc.Annotations.from_matrix([["a", "a", None], ["b", "b", None], [None, None, "a"]])
    truth = pd.Series(["a", "b", "a"])
    curve = bc.selection_curve(
        ann,
        truth,
        {"score": Selector(estimator="paper")},
        {"EM": bc.DawidSkene()},
        sizes=[2],
        supervised=False,
    )
    assert curve["error"].item() == pytest.approx(0.5 / 3)


def test_supervised_ranking_counts_what_was_not_labelled_as_a_guess():
    # Of four tasks: worker 0 has 3 right of 4, worker 1 the one it did, worker 2 both of two.
    ann = bc.Annotations.from_matrix(
        [["a", "a", "a"], ["b", None, "b"], ["a", None, None], ["a", None, None]]
    )
    assert supervised_ranking(ann, {0: "a", 1: "b", 2: "a", 3: "b"}).to_list() == [0, 2, 1]


def test_supervised_ranking_takes_repeats_as_votes():
    frame = pd.DataFrame(
        {"task": [0, 0, 0, 0, 1], "worker": [0, 0, 1, 2, 2], "label": list("ababa")}
    )
    # Expected right of two tasks: 0.5 + 0.5, 1 + 0.5, 0 + 1.
    assert supervised_ranking(frame, {0: "a", 1: "a"}).to_list() == [1, 0, 2]


def test_bad_sizes():
    sparse = bc.simulate.sparse_crowd(40, 20, alpha=0.2, accuracy=0.75, seed=3)
    for sizes in ([0], [21], []):
        with pytest.raises(ValueError, match="sizes: expected numbers from 1 to 20"):
            bc.selection_curve(sparse.annotations, sparse.truth, {}, {}, sizes=sizes)


# The published table.

EM = bc.DawidSkene(pseudo_counts=0, n_iter=100, tol=0)


@pytest.mark.parametrize(
    ("name", "aggregator", "n_workers", "percent"),
    [
        ("bluebird", EM, 15, 8.33),
        ("rte", bc.MajorityVote(), 162, 8.00),
        ("rte", EM, 159, 7.25),
        ("dog", bc.MajorityVote(), 64, 17.35),
        ("web", bc.MajorityVote(), 8, 11.72),
    ],
)
def test_published_errors(published, name, aggregator, n_workers, percent):
    data = published(name)
    curve = bc.selection_curve(
        data.annotations,
        data.truth,
        {"score": Selector(estimator="paper")},
        {"": aggregator},
        sizes=[n_workers],
        supervised=False,
    )
    assert 100 * curve["error"].item() == pytest.approx(percent, abs=0.005)


def test_error_on_web_as_the_authors_count(published):
    # Twelve tasks have no truth; the authors take them for class 0.
    data = published("web")
    filled = data.truth.reindex(data.annotations.tasks).fillna(data.annotations.classes[0])
    curve = bc.selection_curve(
        data.annotations,
        filled,
        {"score": Selector(estimator="paper")},
        {"MV": bc.MajorityVote(), "EM": EM},
        sizes=[8, 9],
        supervised=False,
    )
    found = (100 * curve.set_index(["aggregator", "n_workers"])["error"]).round(2)
    assert found["MV", 8] == pytest.approx(12.03)
    assert found["EM", 9] == pytest.approx(11.20)
