"""Columns are found by their usual names, or refused with the names that were expected."""

import pytest

from bayescrowd.data.vocabulary import options_in_messages
from bayescrowd.io.column_names import (
    COLUMN_NAMES,
    find_column,
    guess_note,
    is_known_label,
    looks_like_header,
    usual_columns,
)
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
        (["IMAGE", "rater", "value"], "task", "IMAGE"),
        (["clip_id", "rater", "value"], "task", "clip_id"),
        (["_unit_id", "_worker_id", "rating"], "task", "_unit_id"),
        (["id", "annotator", "rating"], "task", "id"),
        (["", "id", "text", "annotator", "rating"], "task", "text"),
        (["item", "image", "annotator", "value"], "task", "item"),
        (["clip", "turker", "answer", "value"], "label", "answer"),
        (["clip", "turker", "score"], "label", "score"),
        (["clip", "turker", "score"], "worker", "turker"),
        (["image", "correct_answer", "response"], "truth", "correct_answer"),
        (["image", "target"], "truth", "target"),
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


@pytest.mark.parametrize(
    ("found", "given", "note"),
    [
        ({"task": "task", "worker": "Worker ID", "label": "LABEL"}, {}, None),
        ({"task": "task", "truth": "gold"}, {}, None),
        ({"task": "task", "truth": "label"}, {}, None),
        ({"task": "image", "worker": "who"}, {"task": "image", "worker": "who"}, None),
        (
            {"task": "image"},
            {"task": None},
            "took column 'image' for the task (task= names another)",
        ),
        (
            {"task": "image", "worker": "annotator", "label": "label"},
            {},
            (
                "took column 'image' for the task and 'annotator' for the worker (task= and "
                "worker= name others)"
            ),
        ),
        (
            {"task": "id", "truth": "class"},
            {"task": "id"},
            "'class' for the truth (label= names an",
        ),
    ],
)
def test_guesses_are_put_into_words(found, given, note):
    notes = guess_note("x.csv", found, given)
    assert len(notes) == (note is not None)
    assert not notes or (notes[0].startswith("x.csv: took column '") and note in notes[0])


def test_one_option_may_name_several_columns():
    found = {"task": "image", "truth": "class"}
    with options_in_messages():
        (note,) = guess_note("x.csv", found, {}, "--gold-columns")
    assert note.endswith("'class' for the truth (--gold-columns names others)")


def test_no_name_is_usual_twice_for_one_role():
    for role, tiers in COLUMN_NAMES.items():
        names = [name for tier in tiers for name in tier]
        assert len(set(names)) == len(names), role


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["task", "worker", "label"], True),
        (["Task ID", "who", "what"], True),
        (["image", "annotator", "x"], True),
        (["worker", "task", "label"], True),
        (["1", "ann", "cat"], False),
        (["label", "ann", "cat"], False),
        (["", "", ""], False),
    ],
)
def test_a_header_is_noticed(fields, expected):
    assert looks_like_header(fields, ["task", "worker", "label"]) == expected


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
        ("image,Clip,x", "task", None, "any of the columns 'image', 'Clip'; choose one with task="),
        ("1,ann,cat", "task", None, "task= to name it, or columns= if the file has no header"),
        ("a,worker,label", "task", None, "or task= to name it$"),
        ("task,label,label", "label", None, "two columns are named 'label'; expected one for"),
    ],
)
def test_no_such_column(columns, role, given, message):
    with pytest.raises(ValueError, match=message):
        find_column(DelimitedText("x.csv", columns.encode(), ","), role, given)
