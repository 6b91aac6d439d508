"""Judgements from tables and arrays, targets, costs; every bad input named."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayescrowd.data.judgements import (
    Judgements,
    as_judgements,
    class_target,
    costs_by_attribute,
    numeric_target,
)

NAN = np.nan
FRAME = pd.DataFrame(
    {
        "object": ["b", "a", "a", "b", "a"],
        "attribute": ["tall", "tall", "tall", "wide", "wide"],
        "value": [1.0, 2.0, 4.0, 7.0, None],
        "worker": ["w1", "w2", "w1", "w1", "w3"],
    }
)


def test_a_long_table_by_hand():
    data = as_judgements(FRAME)
    assert data.objects.tolist() == ["a", "b"]
    assert data.attributes.tolist() == ["tall", "wide"]
    assert data.counts.tolist() == [[2, 0], [1, 1]]
    np.testing.assert_array_equal(data.means, [[3, NAN], [1, 7]])
    assert data.squared_deviations.tolist() == [[2, 0], [0, 0]]
    # in the order of the workers
    np.testing.assert_array_equal(data.first(2)[0, 0], [4, 2])
    np.testing.assert_array_equal(data.first(2)[1, 0], [1, NAN])


def test_medians_by_hand():
    values = np.array([[[3.0, 1.0, 8.0]], [[4.0, 9.0, NAN]], [[NAN, NAN, NAN]]])
    np.testing.assert_array_equal(as_judgements(values).medians[:, 0], [3, 6.5, NAN])


def test_tables_arrays_and_row_orders_are_one():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 3, 2))
    place = np.array(list(np.ndindex(values.shape)))
    frame = pd.DataFrame({"object": place[:, 0], "attribute": place[:, 1], "value": values.ravel()})
    shuffled = frame.sample(frac=1, random_state=1)
    expected = as_judgements(values)
    for table in (frame, shuffled, pl.from_pandas(frame), frame.astype({"attribute": "category"})):
        found = as_judgements(table)
        np.testing.assert_allclose(found.means, expected.means)
        np.testing.assert_array_equal(found.counts, expected.counts)
    assert as_judgements(expected) is expected


def test_one_judgement_each_and_truth_values():
    assert as_judgements(np.ones((3, 2))).counts.tolist() == [[1, 1]] * 3
    yes_or_no = as_judgements(np.array([[[True, False]]]))
    assert yes_or_no.means.tolist() == [[0.5]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"value": [1, 2, "x", 4, 5]}, "row 3, column 'value': 'x' is not a finite number"),
        ({"value": [1, 2, 3, np.inf, 5]}, "row 4, column 'value': inf is not a finite number"),
        ({"value": [None] * 5}, "column 'value' holds no judgement at all"),
        ({"object": ["b", None, "a", "b", "a"]}, "row 2, column 'object': the object is missing"),
        ({"attribute": ["a", "b", "c", None, "a"]}, "row 4, column 'attribute'"),
    ],
)
def test_bad_tables(changed, message):
    with pytest.raises(ValueError, match=message):
        as_judgements(FRAME.assign(**changed))


def test_more_bad_input():
    with pytest.raises(ValueError, match="there is no column 'attribute'"):
        as_judgements(FRAME.drop(columns="attribute"))
    with pytest.raises(ValueError, match="the table has no rows"):
        as_judgements(FRAME.iloc[:0])
    with pytest.raises(TypeError, match="judgements came as int"):
        as_judgements(7)
    with pytest.raises(ValueError, match=r"shape \(3,\); expected objects x attributes x k"):
        as_judgements(np.ones(3))
    with pytest.raises(ValueError, match=r"entry \(0, 1, 0\) is infinite"):
        as_judgements(np.array([[[1.0], [np.inf]]]))
    with pytest.raises(ValueError, match="all entries are NaN"):
        as_judgements(np.full((2, 2, 2), NAN))
    with pytest.raises(ValueError, match="expected numbers"):
        as_judgements(np.array([[["high"]]]))


def test_targets_follow_the_objects():
    data = as_judgements(FRAME)
    y = pd.Series({"c": 9, "b": 2, "a": 1})
    assert numeric_target(y, data).tolist() == [1, 2]
    assert numeric_target({"b": 2, "a": 1}, data).tolist() == [1, 2]
    by_place = as_judgements(np.ones((2, 1, 2)))
    assert numeric_target([3, 4], by_place).tolist() == [3, 4]
    assert numeric_target(pd.Series([3, 4], index=["x", "y"]), by_place).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ({"a": 1}, ValueError, r"the target of object 'b' is missing \(1 in all\)"),
        ({"a": 1, "b": NAN}, ValueError, "the target of object 'b' is missing"),
        ({"a": "high", "b": 1}, ValueError, "y of object 'a': 'high' is not a finite number"),
        ([1, 2], TypeError, "expected a Series or a mapping"),
        (pd.Series([1, 2, 3], index=["a", "a", "b"]), ValueError, "object 'a' is listed twice"),
    ],
)
def test_bad_targets(y, error, message):
    with pytest.raises(error, match=message):
        numeric_target(y, as_judgements(FRAME))


def test_targets_of_arrays_must_fit():
    with pytest.raises(ValueError, match="y has 3 targets for 2 objects"):
        numeric_target([1, 2, 3], as_judgements(np.ones((2, 1, 2))))


def test_classes():
    data = as_judgements(FRAME)
    codes, classes = class_target({"a": "yes", "b": "no"}, data)
    assert classes[codes].tolist() == ["yes", "no"]
    with pytest.raises(ValueError, match="one class only"):
        class_target({"a": "no", "b": "no"}, data)
    with pytest.raises(ValueError, match="the class of object 'b' is missing"):
        class_target({"a": "no"}, data)


def test_costs():
    names = pd.Index(["tall", "wide"])
    assert costs_by_attribute(None, names).tolist() == [1, 1]
    assert costs_by_attribute({"wide": 4, "tall": 1}, names).tolist() == [1, 4]
    assert costs_by_attribute([2, 3], names).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"tall": 1}, "attribute 'wide' has none"),
        ({"tall": 1, "wide": 0}, "0 for attribute 'wide'; expected a number above 0"),
        ({"tall": 1, "wide": -2}, "-2 for attribute 'wide'"),
        ({"tall": 1, "wide": NAN}, "nan for attribute 'wide'"),
        ({"tall": 1, "wide": 1, "deep": 1}, "'deep' is not an attribute of the judgements"),
        ({"tall": 1, "wide": "dear"}, "costs of attribute 'wide': 'dear' is not a finite number"),
        ([1], "1 given for 2 attributes"),
        (pd.Series([1, 1, 2], index=["tall", "tall", "wide"]), "'tall' is listed twice"),
    ],
)
def test_bad_costs(costs, message):
    with pytest.raises(ValueError, match=message):
        costs_by_attribute(costs, pd.Index(["tall", "wide"]))


def test_selected_attributes_keep_all_objects():
    part = as_judgements(FRAME).select_attributes(pd.Index(["wide", "deep"]))
    assert part.counts.tolist() == [[0, 0], [1, 0]]
    assert part.attributes.tolist() == ["wide", "deep"]


def test_other_column_names():
    frame = FRAME.rename(columns={"object": "photo", "attribute": "question", "value": "answer"})
    data = Judgements.from_frame(frame, "photo", "question", "answer")
    assert repr(data) == "Judgements(4 judgements: 2 objects, 2 attributes)"
