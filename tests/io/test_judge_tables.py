"""Wide tables and nested objects are the same annotations as the long table they come from."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from bayescrowd.data.annotations import Annotations
from bayescrowd.io.reading import read_annotations, read_truth

ROWS = [
    (1, "gpt", "good"),
    (1, "llama", "bad"),
    (2, "gpt", "bad"),
    (2, "qwen", "bad"),
    (3, "llama", "good"),
    (3, "qwen", "good"),
]
LONG = pd.DataFrame(ROWS, columns=["task", "worker", "label"])
WIDE = "task,gpt,llama,qwen\n1,good,bad,\n2,bad,,bad\n3,,good,good\n"
NESTED = {
    "gpt": {"1": "good", "2": "bad"},
    "llama": {"1": "bad", "3": "good"},
    "qwen": {"2": "bad", "3": "good"},
}


def write(folder, name, contents):
    path = folder / name
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return path


def wide_frame(long):
    return long.pivot(index="task", columns="worker", values="label").reset_index()


def nested_object(long):
    return {
        str(worker): dict(zip(rows["task"].map(str), rows["label"].tolist(), strict=True))
        for worker, rows in long.groupby("worker")
    }


def wide_lines(long):
    rows = [
        {"task": int(task)} | dict(zip(rows["worker"], rows["label"].tolist(), strict=True))
        for task, rows in long.groupby("task")
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def assert_same(one, other):
    for part in ("task_codes", "worker_codes", "label_codes"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    for part in ("tasks", "workers", "classes"):
        pd.testing.assert_index_equal(getattr(one, part), getattr(other, part))


# By hand


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("x.csv", WIDE),
        ("x.csv", "\ufeff" + WIDE),
        ("x.csv", WIDE.replace(",", ";")),
        ("x.tsv", WIDE.replace(",", "\t")),
        ("x.csv.gz", gzip.compress(WIDE.encode(), mtime=0)),
        ("x", WIDE),
        ("x.csv", WIDE.replace("task", "Item ID")),
        ("x.csv", wide_frame(LONG).to_csv()),  # with the index of pandas, a column without a name
        ("x.jsonl", wide_lines(LONG)),
        ("x.json", wide_lines(LONG)),
        ("x.json", json.dumps([json.loads(line) for line in wide_lines(LONG).splitlines()])),
        ("x.json", json.dumps(NESTED)),
        ("x.json", "\ufeff" + json.dumps(NESTED)),
        ("x.json", json.dumps(NESTED, indent=2)),
        ("x.json.gz", gzip.compress(json.dumps(NESTED).encode(), mtime=0)),
        ("x", json.dumps(NESTED)),
    ],
)
def test_panels_are_recognised(tmp_path, name, contents):
    ann = read_annotations(write(tmp_path, name, contents))
    assert list(ann.to_frame().itertuples(index=False, name=None)) == ROWS
    assert ann.tasks.dtype == np.int64
    assert ann.n_dropped == 0


def test_a_wide_table_in_parquet(tmp_path):
    wide_frame(LONG).to_parquet(tmp_path / "x.parquet")
    assert_same(read_annotations(tmp_path / "x.parquet"), Annotations.from_frame(LONG))


@pytest.mark.parametrize("extension", ["csv", "data"])
def test_a_format_that_is_named_needs_no_likeness(tmp_path, extension):
    path = write(tmp_path, f"x.{extension}", "thing,a,b\n1,x,p\n2,y,q\n")
    assert read_annotations(path, "wide", task="thing").n_labels == 4
    if extension == "csv":  # the two judges share no label, and the task has no usual name
        with pytest.raises(ValueError, match="no column for the task"):
            read_annotations(path)


def test_one_judge_is_enough_for_a_format_that_is_named(tmp_path):
    path = write(tmp_path, "x.csv", "task,gpt\n1,x\n2,y\n")
    assert read_annotations(path, "wide").workers.tolist() == ["gpt"]
    with pytest.raises(ValueError, match="no column for the worker"):
        read_annotations(path)


def test_a_truth_is_no_judge_and_can_be_read_from_the_same_file(tmp_path):
    text = "task,truth,gpt,llama\n1,good,good,bad\n2,bad,bad,bad\n"
    path = write(tmp_path, "x.csv", text)
    ann = read_annotations(path)
    assert ann.workers.tolist() == ["gpt", "llama"]
    assert read_truth(path, ann).to_dict() == {1: "good", 2: "bad"}


def test_judges_and_tasks_without_a_label_stay(tmp_path):
    path = write(tmp_path, "x.csv", "task,a,b,c\n1,x,y,\n2,y,x,\n3,,,\n")
    ann = read_annotations(path)
    assert ann.workers.tolist() == ["a", "b", "c"]
    assert ann.tasks.tolist() == [1, 2, 3]
    assert ann.labels_per_worker.tolist() == [2, 2, 0]


def test_a_judge_after_the_thousandth_line_is_found(tmp_path):
    rows = [{"task": i, "a": "x", "b": "y"} for i in range(1_200)]
    rows += [{"task": 1_200, "c": "x", "a": "y", "b": "x"}]
    path = write(tmp_path, "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_annotations(path).workers.tolist() == ["a", "b", "c"]


def test_repeated_rows_are_repeated_judgements(tmp_path):
    path = write(tmp_path, "x.csv", "task,a,b\n1,x,y\n1,y,y\n")
    assert read_annotations(path).n_labels == 4
    last = read_annotations(path, duplicates="last")
    assert last.to_frame()["label"].tolist() == ["y", "y"]
    with pytest.raises(ValueError, match=r"row 3, judge 'a': worker 'a' judges task 1 again"):
        read_annotations(path, duplicates="error")


def test_labels_of_all_judges_have_one_type(tmp_path):
    path = write(tmp_path, "x.csv", "task,a,b\n1,1,1\n2,0,unsure\n")  # a alone would be integers
    assert read_annotations(path).classes.tolist() == ["0", "1", "unsure"]


def test_an_array_of_records_is_a_long_table(tmp_path):
    records = [dict(zip(("item", "annotator", "verdict"), row, strict=True)) for row in ROWS]
    path = write(tmp_path, "x.json", json.dumps(records))
    assert_same(read_annotations(path), Annotations.from_frame(LONG))


def test_json_lines_with_objects_inside_stay_json_lines(tmp_path):
    line = '{"task": 1, "worker": "a", "label": "x", "meta": {"seconds": 3}}\n'
    path = write(tmp_path, "x.json", line)
    assert read_annotations(path, classes=["x", "y"]).n_labels == 1


def test_columns_of_a_table_are_no_judges(tmp_path):
    """pandas writes a table as an object with a key per column unless it is told otherwise."""
    path = write(tmp_path, "x.json", LONG.to_json())
    with pytest.raises(ValueError, match="row 1, column 'task': found a dict"):
        read_annotations(path)


# Invariants


@pytest.mark.parametrize("labels", ["text", "integers", "truth values"])
@pytest.mark.parametrize("workers", ["text", "integers"])
def test_three_shapes_give_the_same_annotations(tmp_path, labels, workers):
    rng = np.random.default_rng(8)
    values = {
        "text": ["no", "yes"],
        "integers": [0, 1],
        "truth values": [False, True],
    }[labels]
    judges = ["a", "b", "c10", "c2"] if workers == "text" else [1, 2, 30, 4]
    pairs = [(task, judge) for task in range(12) for judge in judges if rng.random() < 0.7]
    long = pd.DataFrame(pairs, columns=["task", "worker"])
    long["label"] = [values[i] for i in rng.integers(0, 2, len(long))]
    nested = write(tmp_path, "nested.json", json.dumps(nested_object(long)))
    expected = Annotations.from_frame(long)
    assert_same(read_annotations(nested), expected)
    wide = wide_frame(long).set_axis(["task", *map(str, sorted(judges))], axis=1)
    wide.to_parquet(tmp_path / "wide.parquet")
    assert_same(read_annotations(tmp_path / "wide.parquet"), expected)
    text = long.assign(label=long["label"].map(str))
    csv = wide.set_index("task").map(lambda v: None if pd.isna(v) else str(v).removesuffix(".0"))
    csv.to_csv(tmp_path / "wide.csv")
    text.to_csv(tmp_path / "long.csv", index=False)
    assert_same(read_annotations(tmp_path / "wide.csv"), read_annotations(tmp_path / "long.csv"))


def test_the_order_of_rows_and_columns_changes_nothing(tmp_path):
    wide = pd.read_csv(write(tmp_path, "x.csv", WIDE), dtype=str)
    shuffled = wide.iloc[[2, 0, 1], [3, 1, 0, 2]]
    shuffled.to_csv(tmp_path / "y.csv", index=False)
    reversed_ = {j: dict(reversed(labels.items())) for j, labels in reversed(NESTED.items())}
    path = write(tmp_path, "y.json", json.dumps(reversed_))
    expected = Annotations.from_frame(LONG)
    assert_same(read_annotations(tmp_path / "y.csv"), expected)
    assert_same(read_annotations(path), expected)


@pytest.mark.parametrize("classes", [["1", "0"], [1, 0]])
def test_classes_in_any_shape(tmp_path, classes):
    wide = write(tmp_path, "x.csv", "task,a,b\n1,0,1\n2,1,1\n")
    nested = write(tmp_path, "x.json", '{"a": {"1": 0, "2": 1}, "b": {"1": 1, "2": 1}}')
    for path in (wide, nested):
        ann = read_annotations(path, classes=classes)
        assert ann.classes.tolist() == classes
        assert ann.label_codes.tolist() == [1, 0, 0, 0]


# Control


@pytest.mark.parametrize(
    "text",
    [
        "task,text,gpt,llama\n1,what is it?,a,b\n2,who is it?,b,b\n",  # a column of free text
        "task,text,gpt\n1,a b c,b\n2,b d,b\n3,a,a\n",  # free text that is a label once
        "task,n_words,gpt,llama\n1,1,0,1\n2,12,1,1\n3,15,0,0\n",  # numbers that are no labels
        "task,n_words,verdicts\n1,12,a\n2,15,b\n",  # columns that share no label
        "task,a,b\n" + "".join(f"{i},{i % 21},{i % 21}\n" for i in range(50)),  # 21 labels
        "task,a,b\n1,x,\n2,y,\n",  # labels in a single column
    ],
)
def test_control_a_doubtful_table_is_refused_with_the_way_out(tmp_path, text):
    path = write(tmp_path, "x.csv", text)
    with pytest.raises(ValueError, match=r"no column for the worker .* or format= wide if each"):
        read_annotations(path)
    with pytest.raises(ValueError, match=r"no column for the worker .* or format= wide if each"):
        read_annotations(path, "csv")


def test_control_a_long_table_without_a_worker_is_not_wide(tmp_path):
    path = write(tmp_path, "x.csv", "task,label,also\n1,a,a\n2,b,b\n")
    with pytest.raises(ValueError, match="no column for the worker; the columns are"):
        read_annotations(path)


# Bad input


@pytest.mark.parametrize(
    ("name", "contents", "options", "message"),
    [
        ("x.csv", "task\n1\n2\n", {"format": "wide"}, "no column for a judge; the columns are"),
        ("x.csv", "task,truth\n1,a\n", {"format": "wide"}, "no column for a judge"),
        ("x.csv", "gpt,llama\na,b\n", {"format": "wide"}, "no column for the task"),
        ("x.csv", "task,a,a\n1,x,y\n", {}, "two columns are named 'a'; expected one"),
        ("x.csv", "task,a,a\n1,x,y\n", {"format": "wide"}, "two columns are named 'a'"),
        ("x.csv", "task,worker,label\n1,a,x\n", {"format": "wide"}, "one row per judgement"),
        ("x.csv", WIDE, {"format": "wide", "worker": "gpt"}, "worker= names the column 'gpt'"),
        ("x.csv", WIDE, {"label": "gpt"}, "no column for the worker"),
        ("x.csv", WIDE, {"classes": ["good"]}, "row 3, judge 'gpt', column 'label': label 'bad'"),
        ("x.csv", WIDE + ",bad,bad,\n", {}, "row 5, judge 'gpt', column 'task': missing task id"),
        ("x.csv", "task,a,b\n", {"format": "wide"}, "the table has no rows"),
        ("x.csv", "task,a,b\n1,,\n", {"format": "wide"}, "is empty in every row"),
        ("x.jsonl", '{"task": 1, "a": ["x"], "b": "y"}', {"format": "wide"}, "found a list"),
        ("x.json", '{\n"a": {"1": "x"},\n"b": ["x"]}', {}, "judge 'b': found a list; expected an"),
        ("x.json", '{"a": {"1": ["x"]}}', {}, "judge 'a', task '1': found a list; expected text"),
        ("x.json", '{"a": {"1": {"label": 1}}}', {}, "judge 'a', task '1': found a dict"),
        ("x.json", '{"a": {"1": "x"}, "a": {"1": "y"}}', {}, "holds the key 'a' twice"),
        ("x.json", '{"a": {"1": "x", "1": "y"}}', {}, "holds the key '1' twice; expected it once"),
        ("x.json", "{}", {"format": "nested"}, "found an empty object; expected an object"),
        ("x.json", "[1]", {"format": "nested"}, "found a list; expected an object {judge: {task"),
        ("x.json", '{"a": ', {"format": "nested"}, "invalid JSON at character"),
        ("x.json", '{"a": {"": "x", "1": "y"}}', {}, "row '', judge 'a', column 'task': missing"),
        ("x.json", json.dumps(NESTED), {"task": "item"}, "task= names the column 'item', but an"),
        ("x.json", "[1]", {"format": "json"}, "row 1 of the array: found a int; expected one"),
        ("x.json", '{"a": 1}', {"format": "json"}, "expected a JSON array with one object per"),
    ],
)
def test_bad_files(tmp_path, name, contents, options, message):
    path = write(tmp_path, name, contents)
    with pytest.raises(ValueError, match=message) as caught:
        read_annotations(path, **options)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_nested_object_is_not_a_truth(tmp_path):
    path = write(tmp_path, "x.json", json.dumps(NESTED))
    with pytest.raises(ValueError, match="found a JSON object of objects; expected a table"):
        read_truth(path, Annotations.from_frame(LONG))
