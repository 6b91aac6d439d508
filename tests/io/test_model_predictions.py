"""Tables of a classifier's probabilities."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.io.model_predictions import read_predictions


@pytest.fixture
def ann():
    return bc.Annotations.from_matrix(
        pd.DataFrame({"u": [0, 1, 1], "v": [1, None, 1]}, index=[10, 11, 12], dtype="Int64")
    )


def read(tmp_path, text, ann, name="model.csv", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_predictions(path, ann, **options)


def test_tasks_and_classes_are_those_of_the_annotations(tmp_path, ann):
    found = read(tmp_path, "0,item,1\n.25,12,.75\n,11,\n1e0,99,0\n", ann)
    assert found.index.to_list() == [12, 11, 99]
    assert list(found.columns) == [0, 1]
    np.testing.assert_equal(found.to_numpy(), [[0.25, 0.75], [np.nan, np.nan], [1.0, 0.0]])
    assert bc.aggregate(ann, predictions=found).probas_.index.to_list() == [10, 11, 12, 99]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.jsonl", '{"task": 12, "0": 0.25, "1": 0.75}\n'),
        ("model.tsv", "task\t0\t1\n12\t0.25\t0.75\n"),
    ],
)
def test_other_formats(tmp_path, ann, name, text):
    found = read(tmp_path, text, ann, name)
    assert found.to_dict("index") == {12: {0: 0.25, 1: 0.75}}


def test_the_column_of_tasks_can_be_named(tmp_path, ann):
    found = read(tmp_path, "file,0,1\n12,.25,.75\n", ann, task="file")
    assert found.index.to_list() == [12]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,0,1\n12,.25,high\n", "row 2, column '1': found 'high'; expected a probability"),
        ("task,0,1\n,.25,.75\n", "row 2, column 'task': the task is missing"),
        ("file,0,1\n12,.25,.75\n", "model.csv"),
        ('{"ann": {"t": "a"}}', "model.csv"),
    ],
)
def test_bad_tables(tmp_path, ann, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, ann)


def test_nested_json_is_no_table(tmp_path, ann):
    with pytest.raises(ValueError, match="found nested JSON; expected a table"):
        read(tmp_path, '{"ann": {"12": "a"}, "bob": {"12": "b"}}', ann, "model.json")
