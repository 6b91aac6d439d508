"""Majority vote and Wawa, counted on paper."""

from math import log

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc

# Tasks x workers: a clear majority, a tie of two, a tie of three, and a task nobody judged.
WIDE = pd.DataFrame(
    [["a", "a", "b"], ["a", "b", None], ["c", "b", "a"], [None, None, None]],
    index=["clear", "two", "three", "none"],
    columns=["x", "y", "z"],
)
CLEAR = bc.Annotations.from_matrix([list("aab"), list("bbb")])


def crowd():
    return bc.Annotations.from_matrix(WIDE)


# By hand.


def test_shares_by_hand():
    probas = bc.MajorityVote().fit_predict_proba(crowd())
    expected = {
        "clear": [2 / 3, 1 / 3, 0],
        "two": [1 / 2, 1 / 2, 0],
        "three": [1 / 3] * 3,
        "none": [1 / 3] * 3,
    }
    for task, shares in expected.items():
        np.testing.assert_allclose(probas.loc[task], shares, rtol=1e-12)


def test_quality_by_hand():
    model = bc.MajorityVote().fit(CLEAR)
    # Shares of (2/3, 1/3) and (0, 1): a prior of 1/3 for 'a'. Worker 2 answers 'b' to everything.
    np.testing.assert_allclose(model.priors_, [1 / 3, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(model.confusions_.loc[2], [[0, 1], [0, 1]], atol=1e-12)
    # Worker 0: of 2/3 of a task of class 'a' all are 'a'; of 4/3 tasks of class 'b' one is 'b'.
    np.testing.assert_allclose(model.confusions_.loc[0], [[1, 0], [1 / 4, 3 / 4]], rtol=1e-12)
    np.testing.assert_allclose(model.worker_quality_["accuracy"], [5 / 6, 5 / 6, 2 / 3])
    # Label and truth of worker 0: 1/3 (a, a), 1/6 (a, b), 1/2 (b, b).
    information = (
        log((1 / 3) / (1 / 2 * 1 / 3)) / 3
        + log((1 / 6) / (1 / 2 * 2 / 3)) / 6
        + log((1 / 2) / (1 / 2 * 2 / 3)) / 2
    )
    np.testing.assert_allclose(
        model.worker_quality_["information"], [information, information, 0], atol=1e-12
    )
    # The labels of the two tasks: 1/3 * 1 + 2/3 * 1/16, and 2/3 * 9/16; worker 2 adds nothing.
    assert model.log_likelihood_ == pytest.approx(log(3 / 8) + log(3 / 8), rel=1e-12)
    assert (model.n_iter_, model.converged_, len(model.trace_)) == (0, True, 0)


def test_weights_by_hand():
    model = bc.MajorityVote(weights={"x": 0.5, "z": 3.0}).fit(crowd())
    np.testing.assert_allclose(model.probas_.loc["clear"], [1.5 / 4.5, 3 / 4.5, 0], rtol=1e-12)
    np.testing.assert_allclose(model.probas_.loc["two"], [0.5 / 1.5, 1 / 1.5, 0], rtol=1e-12)
    assert model.labels_[["clear", "two", "three"]].to_list() == ["b", "b", "a"]
    assert model.n_ties_ == 1  # the task without labels
    assert bc.MajorityVote(weights=pd.Series({"x": 2.0})).fit(crowd()).labels_["two"] == "a"


def test_weight_zero_silences():
    model = bc.MajorityVote(weights={"x": 0.0, "y": 0.0}).fit(crowd())
    assert model.labels_["clear"] == "b"
    np.testing.assert_allclose(model.probas_.loc["two"], [1 / 3] * 3)


def test_wawa_by_hand():
    # Majority: a, a or b, any, nothing. x agrees with 1, 1/2 and 1/3 of its labels, and so on.
    model = bc.Wawa().fit(crowd())
    skills = [(1 + 1 / 2 + 1 / 3) / 3, (1 + 1 / 2 + 1 / 3) / 3, (0 + 1 / 3) / 2]
    np.testing.assert_allclose(model.skills_, skills, rtol=1e-12)
    x, y, z = skills
    np.testing.assert_allclose(
        model.probas_.loc["clear"], [(x + y) / (x + y + z), z / (x + y + z), 0], rtol=1e-12
    )
    np.testing.assert_allclose(
        model.probas_.loc["three"], np.array([z, y, x]) / (x + y + z), rtol=1e-12
    )


def test_wawa_counts_known_labels_for_the_majority():
    model = bc.Wawa().fit(crowd(), gold={"clear": "b", "two": "b"})
    np.testing.assert_allclose(
        model.skills_, [(0 + 0 + 1 / 3) / 3, (0 + 1 + 1 / 3) / 3, (1 + 1 / 3) / 2], rtol=1e-12
    )
    assert model.labels_[["clear", "two"]].to_list() == ["b", "b"]


def test_prediction_by_hand():
    new = pd.DataFrame(
        {"task": [1, 1, 2, 2], "worker": ["x", "z", "z", "stranger"], "label": list("abac")}
    )
    plain = bc.MajorityVote().fit(crowd()).predict_proba(new)
    np.testing.assert_allclose(plain, [[1 / 2, 1 / 2, 0], [1 / 2, 0, 1 / 2]])
    weighted = bc.MajorityVote(weights={"y": 7.0, "z": 3.0}).fit(crowd()).predict_proba(new)
    np.testing.assert_allclose(weighted, [[1 / 4, 3 / 4, 0], [3 / 4, 0, 1 / 4]])
    wawa = bc.Wawa().fit(crowd())
    x, _, z = wawa.skills_
    # A stranger agrees with the majority as the crowd does: eight labels, 2 * 11/6 + 1/3 agree.
    stranger = (2 * 11 / 6 + 1 / 3) / 8
    np.testing.assert_allclose(
        wawa.predict_proba(new),
        [[x / (x + z), z / (x + z), 0], [z / (z + stranger), 0, stranger / (z + stranger)]],
        rtol=1e-12,
    )


# Ties.


def tied_crowd(n_tasks=400):
    task, worker = (axis.ravel() for axis in np.indices((n_tasks, 2)))
    return bc.Annotations.from_codes(
        task, worker, worker, tasks=n_tasks, workers=2, classes=3
    ).to_frame()


def test_ties_are_counted():
    assert bc.MajorityVote().fit(crowd()).n_ties_ == 3
    assert bc.MajorityVote().fit(CLEAR).n_ties_ == 0
    assert bc.Wawa().fit(CLEAR).n_ties_ == 0
    assert bc.MajorityVote().fit(crowd(), gold={"two": "b", "none": "c"}).n_ties_ == 1


def test_ties_are_drawn_evenly_among_the_tied():
    labels = bc.MajorityVote().fit_predict(tied_crowd())
    assert set(labels) == {0, 1}
    assert abs((labels == 0).sum() - 200) < 4 * np.sqrt(400 * 0.25)  # 4 standard errors


def test_ties_follow_the_seed_and_not_the_row_order():
    frame = tied_crowd()
    labels = bc.MajorityVote(seed=3).fit_predict(frame)
    again = bc.MajorityVote(seed=3).fit_predict(frame.sample(frac=1, random_state=1))
    pd.testing.assert_series_equal(labels, again)
    other = bc.MajorityVote(seed=4).fit_predict(frame)
    assert 0.3 < (labels != other).mean() < 0.7


def test_weights_that_round_differently_still_tie():
    # 0.1 + 0.2 is a little more than 0.3.
    wide = pd.DataFrame([["a", "a", "b"]], columns=["x", "y", "z"])
    model = bc.MajorityVote(weights={"x": 0.1, "y": 0.2, "z": 0.3})
    assert model.fit(bc.Annotations.from_matrix(wide)).n_ties_ == 1


# Published.


@pytest.mark.parametrize(
    ("name", "error"),
    [("bluebird", 24.07), ("rte", 10.31), ("trec", 34.86), ("dog", 17.78), ("web", 26.93)],
)
def test_published_errors(published, name, error):
    data = published(name)
    probas = bc.MajorityVote().fit_predict_proba(data.annotations).loc[data.truth.index]
    found = 0.0
    for shares, true in zip(probas.to_numpy(), data.truth, strict=True):
        first = list(probas.columns[shares > shares.max() - 1e-9])
        found += 1 - (1 / len(first) if true in first else 0)
    assert 100 * found / len(data.truth) == pytest.approx(error, abs=0.0051)


# Bad input.


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"x": -1.0}, r"weights\['x'\]=-1.0: expected a finite number >= 0"),
        ({"y": float("nan")}, r"weights\['y'\]=nan: expected a finite number"),
        ({"y": float("inf")}, r"weights\['y'\]=inf: expected a finite number"),
        (
            {"nobody": 1.0},
            "weights name worker 'nobody', who has no labels; expected workers who have",
        ),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        bc.MajorityVote(weights=weights).fit(crowd())
