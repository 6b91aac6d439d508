"""A classifier becomes one more rater."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.data.classifier import add_classifier


@pytest.fixture
def ann():
    return bc.Annotations.from_matrix(
        pd.DataFrame({"u": list("aab"), "v": ["b", None, "b"]}, index=["t1", "t2", "t3"])
    )


def table(**rows):
    return pd.DataFrame.from_dict(rows, orient="index", columns=["b", "a"], dtype=float)


def test_labels_and_probabilities_by_hand(ann):
    both = add_classifier(ann, table(t3=[0.7, 0.3], t9=[0.1, 0.9], t1=[0.5, 0.5]))
    frame = both.annotations.to_frame()
    added = frame[frame["worker"] == "predictions"].set_index("task")["label"]
    assert added.to_dict() == {"t3": "b", "t9": "a"}  # the tie on t1 is no label
    assert len(frame) == ann.n_labels + 2
    assert list(both.annotations.tasks) == ["t1", "t2", "t3", "t9"]
    assert list(both.annotations.classes) == ["a", "b"]
    nan = np.nan
    np.testing.assert_equal(both.probas, [[0.5, 0.5], [nan, nan], [0.3, 0.7], [0.9, 0.1]])
    assert both.leading.tolist() == [-1, -1, 1, 0]
    assert both.is_labelled.tolist() == [True, True, True, False]


def test_empty_rows_are_no_predictions(ann):
    both = add_classifier(ann, table(t1=[0.2, 0.8], t7=[np.nan, np.nan]))
    assert list(both.annotations.tasks) == ["t1", "t2", "t3"]


def test_classes_that_only_one_side_knows(ann):
    predictions = pd.DataFrame({"b": [0.6], "c": [0.4]}, index=["t1"])
    both = add_classifier(ann, predictions)
    assert list(both.annotations.classes) == ["a", "b", "c"]
    np.testing.assert_equal(both.probas[0], [0.0, 0.6, 0.4])
    assert np.isnan(both.probas[1:]).all()


def test_rows_without_a_label_stay_counted():
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("uvu"), "label": ["a", None, "b"]})
    predictions = pd.DataFrame({"a": [1.0], "b": [0.0]}, index=[1])
    both = add_classifier(bc.Annotations.from_frame(frame), predictions)
    assert both.annotations.n_dropped == 1


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (table(t1=[0.7, 0.7]), "the row of task 't1' is .*expected probabilities that sum to 1"),
        (table(t1=[1.5, -0.5]), "expected probabilities that sum to 1"),
        (pd.concat([table(t1=[0.7, 0.3])] * 2), "predictions list task 't1' twice"),
        (table(x=[0.7, 0.3]), r"1 predicted tasks \(such as 'x'\) is among the 3 tasks with"),
        (table(t1=[np.nan, np.nan]), "none of the 0 predicted tasks is among"),
        (table(t1=[0.7, 0.3]).set_axis(["x", "y"], axis=1), "expected the classes 'a', 'b'"),
        (table(t1=[0.7, 0.3]).set_axis(["a", "a"], axis=1), "two columns .* are named 'a'"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}, index=["t1"]), "predictions: expected numbers"),
    ],
)
def test_tables_that_do_not_fit(ann, predictions, message):
    with pytest.raises(ValueError, match=message):
        add_classifier(ann, predictions)


def test_the_name_of_the_rater_must_be_free(ann):
    frame = ann.to_frame().replace({"worker": {"u": "predictions"}})
    with pytest.raises(ValueError, match="a worker is named 'predictions'"):
        add_classifier(bc.Annotations.from_frame(frame), table(t1=[0.7, 0.3]))
