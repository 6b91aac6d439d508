"""Matrices and truth by row, told from tables and truth by task."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.data.row_truth import gold_of, labels_of, truth_by_task

LONG = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": list("xyx")})
WIDE = pd.DataFrame({"a": ["x", "x"], "b": ["y", None]}, index=[1, 2])


def test_both_forms_hold_the_same_labels():
    both = pd.DataFrame({"a": list("xxy"), "b": list("yxy")}, index=[1, 2, 3])
    long = both.stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    pd.testing.assert_frame_equal(labels_of(both).to_frame(), labels_of(long).to_frame())


@pytest.mark.parametrize(
    "frame",
    [
        LONG.rename(columns={"label": "answer"}),
        LONG.set_axis(["item", "judge", "answer"], axis=1),
        pd.DataFrame({"item": [1, 2, 3, 4], "judge": list("abab"), "answer": [0, 1, 1, 0]}),
    ],
)
def test_tables_with_other_columns_are_no_matrices(frame):
    with pytest.raises(ValueError, match="no column"):
        labels_of(frame)


def test_a_table_may_name_its_tasks_in_the_index():
    assert labels_of(LONG.set_index("task")).n_workers == 2


def test_a_matrix_of_few_new_tasks_is_known_by_its_classes():
    few = pd.DataFrame({"a": ["x"], "b": ["y"], "c": [None]}, index=[9])
    with pytest.raises(ValueError, match="no column 'task'"):
        labels_of(few)
    assert labels_of(few, pd.Index(["x", "y"])).n_labels == 2


@pytest.mark.parametrize(
    ("data", "y"),
    [
        (WIDE, pd.Series(["x", "y"], index=[1, 2])),
        (WIDE.to_numpy(), pd.Series(["x", "y"])),
        (WIDE.to_numpy(), ["x", "y"]),
        (LONG, pd.Series(["x", "x", "y"])),
        (LONG, np.array(["x", "x", "y"])),
    ],
)
def test_truth_by_row_is_no_gold(data, y):
    if isinstance(data, pd.DataFrame) and data is WIDE:
        data = pd.DataFrame({"a": ["x", "y"], "b": ["y", "x"]}, index=[1, 2])
    assert gold_of(data, y, None) is None
    assert gold_of(data, y, {1: "y"}) == {1: "y"}
    assert dict(truth_by_task(data, y)) in ({1: "x", 2: "y"}, {0: "x", 1: "y"})


def test_truth_by_task_is_gold():
    gold = pd.Series(["y"], index=[2])
    for data in (LONG, bc.Annotations.from_frame(LONG)):
        assert gold_of(data, gold, None) is gold
        assert truth_by_task(data, gold) is gold
    with pytest.raises(TypeError, match="gold was given twice"):
        gold_of(LONG, gold, gold)


def test_what_does_not_match_is_refused():
    with pytest.raises(ValueError, match=r"y has the shape \(3,\), but the matrix has 2 rows"):
        truth_by_task(WIDE.to_numpy(), [1, 2, 3])
    with pytest.raises(ValueError, match="truth gives task 1 two different labels"):
        truth_by_task(LONG, ["x", "y", "x"])
