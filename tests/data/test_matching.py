"""Ids and classes matched as they are written."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.data.matching import match_ids, take_classes


@pytest.mark.parametrize(
    ("ids", "known", "places"),
    [
        ([2, 5, 1], [1, 2, 3], [1, -1, 0]),
        (["b", "z"], ["a", "b"], [1, -1]),
        (["2", "2b"], [1, 2], [1, -1]),
        ([2, 7], ["1", "2", "2b"], [1, -1]),
        ([7.0, 7.5], [7, 8], [0, -1]),
        ([1, "b"], ["b", 1, 3], [1, 0]),
        ([True, False], ["False", "True"], [1, 0]),
    ],
)
def test_ids_are_matched_as_they_are_written(ids, known, places):
    found = match_ids(pd.Index(ids), pd.Index(known))
    np.testing.assert_array_equal(found, places)


def test_classes_take_the_order_and_the_type_of_the_fit():
    ann = bc.Annotations.from_matrix([["2", "1"], ["1", "1"]])
    taken = take_classes(ann, pd.Index([2, 3, 1]))
    assert list(taken.classes) == [2, 3, 1]
    pd.testing.assert_frame_equal(taken.to_frame(), ann.to_frame().astype({"label": int}))


def test_all_labels_that_the_fit_does_not_know_are_named():
    ann = bc.Annotations.from_matrix([["fox", "cat"], ["hare", "cat"]])
    with pytest.raises(ValueError, match="labels 'fox', 'hare' are not one of the fitted classes"):
        take_classes(ann, pd.Index(["cat", "dog"]))
    # a class that is declared and not used does no harm
    declared = bc.Annotations.from_matrix([["cat", "cat"]], classes=["cat", "fox"])
    assert list(take_classes(declared, pd.Index(["cat", "dog"])).classes) == ["cat", "dog"]


def test_a_fit_knows_raters_by_what_is_written():
    data = bc.simulate.crowd(50, 5, 2, labels_per_task=5, accuracy=0.8, seed=1)
    frame = data.annotations.to_frame()
    est = bc.DawidSkene().fit(frame)
    as_text = frame.assign(worker=frame["worker"].astype(str))
    pd.testing.assert_frame_equal(est.predict_proba(as_text), est.predict_proba(frame))
