"""Columns are found by their usual names, or refused with the names that were expected."""

import pytest

from bayescrowd.io.column_names import find_column, is_known_label, usual_columns
from bayescrowd.io.file_tables import DelimitedText

# By hand


@pytest.mark.parametrize(
    ("columns", "role", "expected"),
    [
        (["worker", "task", "label"], "task", "task"),
        (["Worker ID", "HITId", "Answer"], "worker", "Worker ID"),
        (["Worker ID", "HITId", "Answer"], "task", "HITId"),
        (["question-id", "user", "response"], "task", "question-id"),
        (["item", "performer", "class"], "worker", "performer"),
        (["task", "item", "label"], "task", "task"),
        (["task", "label", "gold"], "truth", "gold"),
        (["task", "label", "worker"], "truth", "label"),
        (["item", "judge", "verdict"], "worker", "judge"),
        (["item", "judge", "verdict"], "label", "verdict"),
        (["item", "judge", "annotator", "verdict"], "worker", "annotator"),
    ],
)
def test_find_column_by_its_usual_name(columns, role, expected):
    table = DelimitedText("x.csv", ",".join(columns).encode(), ",")
    assert find_column(table, role) == expected


def test_find_column_given():
    table = DelimitedText("x.csv", b"task,item", ",")
    assert find_column(table, "task", "item") == "item"


def test_usual_columns_of_several_roles():
    columns = ["valid", "", "Item", "rater_id", "gpt", "response", "truth"]
    assert usual_columns(columns, "task", "worker") == ["Item", "rater_id"]
    assert usual_columns(columns, "label") == ["response"]


def test_a_label_may_be_known_or_given_but_a_truth_is_known():
    columns = ["truth", "Gold label", "label", "answer", "golden"]
    assert [c for c in columns if is_known_label(c)] == ["truth", "Gold label"]


# Bad input


@pytest.mark.parametrize(
    ("columns", "role", "given", "message"),
    [
        ("a,b", "task", "c", "x.csv: no column 'c' for the task; the columns are 'a', 'b'"),
        ("a,b", "worker", None, "no column for the worker; the columns are 'a', 'b'; expected one"),
        ("item,question", "task", None, "any of the columns 'item', 'question'; choose .* task="),
        ("task,Task ID", "task", None, "any of the columns 'task', 'Task ID'"),
        ("truth,gold", "truth", None, "any of the columns 'truth', 'gold'; choose one with label="),
        ("a", "truth", None, "or label= to name it"),
    ],
)
def test_no_such_column(columns, role, given, message):
    with pytest.raises(ValueError, match=message):
        find_column(DelimitedText("x.csv", columns.encode(), ","), role, given)
