"""A judge who abstained is told apart from one who was never asked, in every shape of file."""

import json

import pandas as pd
import pytest

from bayescrowd.io.reading import read_annotations
from bayescrowd.io.spellings import SpellingWarning
from bayescrowd.io.verdicts import read_verdicts

LONG = (
    "task,worker,label\n1,a,good\n1,b,Unsure\n1,c,\n2,a,bad\n2,b, unsure \n3,a,error\n3,b,UNSURE\n"
)
"""Nobody gave a verdict on task 3, nor did b and c on any; c was asked about task 1 only."""
ASKED = [
    (1, "b", "unsure"),
    (1, "c", ""),
    (2, "b", "unsure"),
    (3, "a", "error"),
    (3, "b", "unsure"),
]
NAMED = ["unsure", "error", "refused"]


def write(folder, name, contents):
    path = folder / name
    path.write_text(contents, encoding="utf-8")
    return path


def nested_of(long):
    rows = [line.split(",") for line in long.splitlines()[1:]]
    found = {}
    for task, judge, label in rows:
        found.setdefault(judge, {})[task] = label or None
    return json.dumps(found)


def rows_of(frame):
    return list(frame.itertuples(index=False, name=None))


# By hand


@pytest.mark.parametrize("shape", ["long", "lines", "nested", "wide"])
def test_abstained_against_never_asked(tmp_path, shape):
    if shape == "long":
        path = write(tmp_path, "x.csv", LONG)
    elif shape == "lines":
        frame = pd.read_csv(write(tmp_path, "y.csv", LONG))
        text = frame.to_json(orient="records", lines=True)
        path = write(tmp_path, "x.jsonl", text)
    elif shape == "nested":
        path = write(tmp_path, "x.json", nested_of(LONG))
    else:
        path = write(
            tmp_path, "x.csv", "task,a,b,c\n1,good,Unsure,\n2,bad, unsure ,\n3,error,UNSURE,\n"
        )
    annotations, abstentions = read_verdicts(
        path, "wide" if shape == "wide" else None, abstentions=NAMED
    )
    asked = ASKED if shape != "wide" else [row for row in ASKED if row[1] != "c"]
    assert rows_of(abstentions) == asked
    assert rows_of(annotations.to_frame()) == [(1, "a", "good"), (2, "a", "bad")]
    assert annotations.tasks.tolist() == [1, 2, 3]
    assert annotations.workers.tolist() == ["a", "b", "c"]
    assert annotations.classes.tolist() == ["bad", "good"]
    assert annotations.n_dropped == len(asked)


def test_an_empty_cell_of_a_wide_table_is_what_the_user_says(tmp_path):
    path = write(tmp_path, "x.csv", "task,a,b\n1,x,\n2,y,x\n")
    assert rows_of(read_verdicts(path).abstentions) == []
    assert read_verdicts(path).annotations.n_dropped == 0
    assert rows_of(read_verdicts(path, abstentions=[""]).abstentions) == [(1, "b", "")]


def test_nothing_but_an_empty_label_is_an_abstention_unless_named(tmp_path):
    with pytest.warns(SpellingWarning, match=r"' unsure ' \(1\), 'UNSURE' \(1\), 'Unsure' \(1\)"):
        annotations, abstentions = read_verdicts(write(tmp_path, "x.csv", LONG))
    assert "Unsure" in annotations.classes
    assert rows_of(abstentions) == [(1, "c", "")]


def test_named_values_are_counted_even_if_they_never_occur(tmp_path):
    found = read_verdicts(write(tmp_path, "x.csv", LONG), abstentions=NAMED).abstentions
    counts = found["value"].value_counts()
    assert counts.to_dict() == {"unsure": 3, "error": 1, "refused": 0, "": 1}


@pytest.mark.parametrize(
    ("contents", "name", "classes"),
    [
        ("task,worker,label\n1,a,1\n1,b,0\n2,a,-1\n", "-1", [0, 1]),
        ("task,worker,label\n1,a,1\n1,b,0\n2,a,unsure\n", "unsure", [0, 1]),
        ("task,worker,label\n1,a,1\n1,b,01\n2,a,unsure\n", "unsure", ["01", "1"]),
        ('{"a": {"1": 1, "2": "unsure"}, "b": {"1": 0}}', "unsure", [0, 1]),
        ('{"a": {"1": 1, "2": -1}, "b": {"1": 0}}', "-1", [0, 1]),
        ('{"a": {"1": true, "2": "unsure"}, "b": {"1": false}}', "unsure", [False, True]),
        ('{"a": {"1": "x", "2": false}, "b": {"1": "y"}}', "FALSE", ["x", "y"]),
    ],
)
def test_labels_have_the_type_of_the_verdicts(tmp_path, contents, name, classes):
    path = write(tmp_path, "x.json" if contents[0] == "{" else "x.csv", contents)
    annotations, abstentions = read_verdicts(path, abstentions=[name])
    assert annotations.classes.tolist() == classes
    assert [type(value) for value in annotations.classes.tolist()] == [type(v) for v in classes]
    assert rows_of(abstentions) == [(2, "a", name)]


def test_an_ordered_categorical_loses_the_abstention_and_keeps_its_order(tmp_path):
    order = ["good", "unsure", "bad"]
    labels = pd.Categorical(["bad", "good", "unsure"], categories=order, ordered=True)
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": labels})
    frame.to_parquet(tmp_path / "x.parquet")
    found = read_verdicts(tmp_path / "x.parquet", abstentions=["Unsure"])
    assert found.annotations.classes.tolist() == ["good", "bad"]
    assert rows_of(found.abstentions) == [(2, "a", "Unsure")]


@pytest.mark.parametrize(
    ("duplicates", "expected"),
    [
        ("keep", [(1, "a", "unsure"), (2, "b", "unsure"), (2, "b", "error")]),
        ("first", [(2, "b", "error")]),
        ("last", [(2, "b", "unsure")]),
        ("error", [(2, "b", "error")]),
    ],
)
def test_abstentions_beside_verdicts(tmp_path, duplicates, expected):
    text = "task,worker,label\n1,a,unsure\n1,a,x\n1,b,y\n2,b,error\n2,b,unsure\n"
    path = write(tmp_path, "x.csv", text)
    found = read_verdicts(path, duplicates=duplicates, abstentions=["unsure", "error"])
    assert rows_of(found.abstentions) == expected
    assert found.annotations.n_labels == 2


# Invariants


def test_verdicts_without_abstentions_are_annotations(tmp_path):
    path = write(tmp_path, "x.csv", "task,worker,label\n1,a,x\n1,b,y\n2,a,y\n")
    annotations, abstentions = read_verdicts(path)
    assert len(abstentions) == 0
    assert abstentions.columns.tolist() == ["task", "worker", "value"]
    assert rows_of(annotations.to_frame()) == rows_of(read_annotations(path).to_frame())


def test_the_order_of_rows_changes_nothing(tmp_path):
    header, *rows = LONG.splitlines()
    path = write(tmp_path, "x.csv", "\n".join([header, *reversed(rows)]) + "\n")
    assert rows_of(read_verdicts(path, abstentions=NAMED).abstentions) == ASKED


# Bad input


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"abstentions": "unsure"}, TypeError, "abstentions='unsure': expected a list"),
        ({"abstentions": [3]}, TypeError, r"abstentions\[0\]=3: expected text"),
        (
            {"abstentions": ["Good"], "classes": ["good", "bad"]},
            ValueError,
            "abstentions= names 'Good', which is the class 'good'; expected labels that are no",
        ),
        ({"abstentions": ["good", "bad", *NAMED]}, ValueError, "'label' is empty in every row"),
        ({"abstentions": ["good", *NAMED]}, ValueError, "'label' holds one class only"),
    ],
)
def test_bad_abstentions(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        read_verdicts(write(tmp_path, "x.csv", LONG), **options)


def test_a_label_that_is_a_list(tmp_path):
    path = write(tmp_path, "x.jsonl", '{"task": 1, "worker": "a", "label": ["x"]}\n')
    with pytest.raises(ValueError, match=r"x\.jsonl: row 1, column 'label': found a list"):
        read_verdicts(path)
