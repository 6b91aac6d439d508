"""Aggregators in scikit-learn's searches: a matrix, tasks x workers, and the truth of each row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

import bayescrowd as bc

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CROWD = bc.simulate.crowd(90, 7, 3, labels_per_task=5, accuracy=0.7, seed=4)
NAMES = np.array(["cat", "dog", "hen"])
TRUTH = pd.Series(NAMES[CROWD.truth], index=[f"t{task:03d}" for task in CROWD.truth.index])


def long_table():
    frame = CROWD.annotations.to_frame()
    frame["task"] = TRUTH.index[frame["task"]]
    return frame.assign(label=NAMES[frame["label"]])


def matrix():
    return long_table().pivot(index="task", columns="worker", values="label")


FOLDS = KFold(3)


def accuracies_by_hand(make):
    """A fit to two thirds of the tasks, without any truth, and its accuracy on the others."""
    found, wide = [], matrix()
    for train, test in FOLDS.split(wide):
        est = make().fit(bc.Annotations.from_matrix(wide.iloc[train]))
        probas = est.predict_proba(bc.Annotations.from_matrix(wide.iloc[test]))
        found.append(1 - bc.metrics.error_rate(probas, TRUTH.iloc[test]))
    return np.array(found)


@pytest.mark.parametrize("kind", [bc.MajorityVote, bc.DawidSkene, bc.Wawa])
@pytest.mark.parametrize("form", ["frame", "array", "array and Series", "array and list"])
def test_cross_validation_scores_tasks_that_the_fit_has_not_seen(kind, form):
    wide, truth = matrix(), TRUTH
    if form != "frame":
        wide = wide.to_numpy()
        truth = TRUTH.to_numpy() if form == "array" else TRUTH
        truth = list(TRUTH) if form == "array and list" else truth
    np.testing.assert_allclose(
        cross_val_score(kind(), wide, truth, cv=FOLDS), accuracies_by_hand(kind), rtol=1e-12
    )


def test_a_search_finds_the_setting_with_the_best_score():
    grid = {"pseudo_counts": [0.01, 1.0, 1000.0]}
    search = GridSearchCV(bc.DawidSkene(), grid, cv=FOLDS).fit(matrix(), TRUTH)
    by_hand = [
        accuracies_by_hand(lambda value=value: bc.DawidSkene(pseudo_counts=value)).mean()
        for value in grid["pseudo_counts"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-12)
    assert search.best_params_ == {"pseudo_counts": grid["pseudo_counts"][np.argmax(by_hand)]}


def test_the_truth_of_the_rows_is_no_gold():
    search = GridSearchCV(bc.DawidSkene(), {"seed": [0]}, cv=3).fit(matrix(), TRUTH)
    best = search.best_estimator_
    pd.testing.assert_frame_equal(best.probas_, bc.DawidSkene().fit(long_table()).probas_)
    assert (best.labels_ != TRUTH).any()
    shuffled = TRUTH.sample(frac=1, random_state=0).set_axis(TRUTH.index)
    again = bc.DawidSkene().fit(matrix(), shuffled)
    pd.testing.assert_frame_equal(again.probas_, best.probas_)


def test_gold_by_name_is_gold_in_a_matrix_and_in_a_search():
    gold = TRUTH.iloc[:5]
    est = bc.DawidSkene().fit(matrix(), TRUTH, gold=gold)
    pd.testing.assert_frame_equal(est.probas_, bc.DawidSkene().fit(long_table(), gold).probas_)
    search = GridSearchCV(bc.DawidSkene(), {"seed": [0]}, cv=3)
    with pytest.warns(bc.TruthWarning):  # folds lack some of the gold tasks
        search.fit(matrix(), TRUTH, gold=gold)
    pd.testing.assert_frame_equal(search.best_estimator_.probas_, est.probas_)


def test_a_table_with_a_row_per_label_is_cut_by_its_tasks():
    frame = long_table()
    rows = pd.Series(TRUTH[frame["task"]].to_numpy(), index=frame.index)
    found = cross_val_score(bc.DawidSkene(), frame, rows, groups=frame["task"], cv=GroupKFold(3))
    expected = []
    for train, test in GroupKFold(3).split(frame, groups=frame["task"]):
        est = bc.DawidSkene().fit(frame.iloc[train])
        expected.append(
            bc.metrics.accuracy(
                est.predict_proba(frame.iloc[test]), TRUTH[frame["task"].iloc[test].unique()]
            )
        )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_scores_by_hand():
    rows = [list("aab"), list("bbb"), list("aab")]
    est = bc.MajorityVote().fit(pd.DataFrame(rows, columns=["u", "v", "w"]))
    # 'a' by two of three; a tie, which is right in half of the cases
    new = pd.DataFrame([["a", "a", "b"], ["a", "b", None]], columns=["u", "v", "w"])
    assert est.score(new, ["a", "b"]) == pytest.approx(0.75)
    assert est.score(new, {0: "b"}) == 0.0
    with pytest.warns(bc.TruthWarning):  # a task without a prediction is a guess among two classes
        assert est.score(new, {0: "a", 7: "a"}) == pytest.approx(0.75)


def test_a_single_row_can_be_scored():
    est, wide = bc.MajorityVote().fit(matrix()), matrix()
    for place in range(5):
        row, truth = wide.iloc[[place]], TRUTH.iloc[[place]]
        expected = bc.metrics.accuracy(est.predict_proba(row), truth)
        assert est.score(row, truth) == est.score(row, [truth.iloc[0]]) == expected


def test_classes_are_stratified_and_scorers_work():
    assert is_classifier(bc.DawidSkene())
    found = cross_val_score(bc.MajorityVote(), matrix(), TRUTH, cv=3, scoring="accuracy")
    assert (found > 0.6).all()


def test_what_does_not_match_is_refused():
    est = bc.MajorityVote().fit(matrix())
    with pytest.raises(ValueError, match="y has the shape"):
        est.score(matrix().to_numpy(), TRUTH.iloc[:5])
    with pytest.raises(ValueError, match="no task of the truth is predicted"):
        est.score(matrix(), {"elsewhere": "cat"})
