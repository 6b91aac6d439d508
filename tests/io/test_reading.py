"""Files are read as annotations and known labels, or refused with one line that says why."""

import gzip
import io
import json

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.truth import TruthWarning
from bayescrowd.io.reading import read_annotations, read_truth

CSV = "task,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n"
ROWS = [(1, "ann", "cat"), (1, "bob", "dog"), (2, "ann", "dog")]
FRAME = pd.DataFrame(ROWS, columns=["task", "worker", "label"])


def write(folder, name, contents):
    path = folder / name
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return path


def rows_of(ann):
    return list(ann.to_frame().itertuples(index=False, name=None))


def json_lines(frame):
    return "".join(json.dumps(row) + "\n" for row in frame.to_dict("records"))


# By hand


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("x.csv", CSV),
        ("x.CSV", CSV),
        ("x.csv", "\ufeff" + CSV),
        ("x.csv", CSV.replace(",", ";")),
        ("x.csv", CSV.replace(",", "\t")),
        ("x.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("x.tsv", CSV.replace(",", "\t")),
        ("x.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode(), mtime=0)),
        ("x.jsonl", json_lines(FRAME)),
        ("x.ndjson", json_lines(FRAME)),
        ("x.json", json_lines(FRAME)),
        ("x.jsonl.gz", gzip.compress(json_lines(FRAME).encode(), mtime=0)),
        ("labels", CSV),
        ("labels", json_lines(FRAME)),
        ("x.csv", CSV.replace("task,worker,label", "Item,Annotator ID,Response")),
        ("x.csv", FRAME.to_csv()),
        ("x.txt", CSV),
        ("x.txt", CSV.replace(",", " ")),
        ("x.txt", json_lines(FRAME)),
        ("x.csv", CSV.encode("utf-16")),
        ("x.csv.gz", gzip.compress(CSV.encode("utf-16"), mtime=0)),
        ("x.tsv", ("\ufeff" + CSV.replace(",", "\t")).encode("utf-16-be")),
        ("x.jsonl", json_lines(FRAME).encode("utf-16")),
        ("x.json", FRAME.to_json(orient="records").encode("utf-16")),
        ("x.csv", CSV.replace("task,worker,label", "IMAGE,turker,Score")),
    ],
)
def test_plain_tables(tmp_path, name, contents):
    ann = read_annotations(write(tmp_path, name, contents))
    assert rows_of(ann) == ROWS
    assert ann.tasks.dtype == np.int64


@pytest.mark.parametrize("index", [None, ["task", "worker"], ["task"]])
def test_crowd_kit_frames_in_parquet(tmp_path, index):
    frame = FRAME if index is None else FRAME.set_index(index)
    frame.to_parquet(tmp_path / "x.parquet")
    assert rows_of(read_annotations(tmp_path / "x.parquet")) == ROWS


def test_old_crowd_kit_frames(tmp_path):
    path = write(tmp_path, "x.csv", CSV.replace("worker", "performer"))
    assert rows_of(read_annotations(path)) == ROWS


def test_parquet_by_polars(tmp_path):
    pl.DataFrame(FRAME).with_columns(pl.col("label").cast(pl.Categorical)).write_parquet(
        tmp_path / "x.pq"
    )
    assert rows_of(read_annotations(tmp_path / "x.pq")) == ROWS


def test_an_ordered_categorical_survives_parquet(tmp_path):
    order = ["dog", "bird", "cat"]
    labels = pd.Categorical(FRAME["label"], categories=order, ordered=True)
    FRAME.assign(label=labels).to_parquet(tmp_path / "x.parquet")
    assert read_annotations(tmp_path / "x.parquet").classes.tolist() == order


@pytest.mark.parametrize(
    "contents",
    [CSV, CSV.replace(",", "\t"), json_lines(FRAME), gzip.compress(CSV.encode(), mtime=0)],
    ids=["csv", "tsv", "jsonl", "gzip"],
)
def test_standard_input(monkeypatch, contents):
    data = contents if isinstance(contents, bytes) else contents.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert rows_of(read_annotations("-")) == ROWS


def test_a_format_overrides_the_extension(tmp_path):
    path = write(tmp_path, "x.data", CSV)
    assert rows_of(read_annotations(str(path), "csv")) == ROWS


def test_columns_by_name(tmp_path):
    path = write(tmp_path, "x.csv", "task,q,who,said\n9,1,ann,cat\n9,1,bob,dog\n9,2,ann,dog\n")
    assert rows_of(read_annotations(path, task="q", worker="who", label="said")) == ROWS


@pytest.mark.parametrize("name", ["x.csv", "x"])
def test_columns_of_a_file_without_a_header(tmp_path, name):
    path = write(tmp_path, name, CSV.partition("\n")[2])
    ann = read_annotations(path, columns=["task", "worker", "label"])
    assert rows_of(ann) == ROWS
    assert (ann.tasks.dtype, ann.notes) == (np.int64, ())


def test_rows_without_a_header_are_numbered_from_1(tmp_path):
    path = write(tmp_path, "x.csv", "\n1,ann,cat\n\n2,,dog\n")
    with pytest.raises(ValueError, match="row 4, column 'worker': missing worker id"):
        read_annotations(path, columns=["task", "worker", "label"])


def test_rows_below_a_header_that_is_left_out_keep_their_numbers(tmp_path):
    path = write(tmp_path, "x.csv", "\n" + CSV + "3,,cat\n")
    with pytest.raises(ValueError, match="row 6, column 'worker': missing worker id"):
        read_annotations(path, columns=["task", "worker", "label"])


def test_notes_say_what_was_guessed(tmp_path):
    path = write(tmp_path, "x.csv", CSV.replace("task,worker", "clip,judge"))
    assert read_annotations(write(tmp_path, "y.csv", CSV)).notes == ()
    (note,) = read_annotations(path).notes
    assert note.endswith(
        "'clip' for the task and 'judge' for the worker (task= and worker= name others)"
    )
    assert read_annotations(path, task="clip", worker="judge").notes == ()


def test_text_stays_text(tmp_path):
    path = write(tmp_path, "x.csv", "task,worker,label\n007,1,NA\n010,2,None\n7,1,\n")
    ann = read_annotations(path)
    assert ann.tasks.tolist() == ["007", "010", "7"]
    assert ann.workers.tolist() == [1, 2]
    assert ann.classes.tolist() == ["NA", "None"]
    assert ann.n_dropped == 1


def test_a_fraction_is_a_class_like_any_other_text(tmp_path):
    path = write(tmp_path, "x.csv", "task,worker,label\n1,a,0.5\n1,b,1\n")
    assert read_annotations(path).classes.tolist() == ["0.5", "1"]


@pytest.mark.parametrize("classes", [["1", "0"], [1, 0]])
def test_classes_as_text_or_integers(tmp_path, classes):
    path = write(tmp_path, "x.csv", "task,worker,label\n1,a,0\n1,b,1\n")
    ann = read_annotations(path, classes=classes)
    assert ann.classes.tolist() == classes
    assert ann.label_codes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1, 1], [1, 0]),
        ([0, 1, 1], ["1", "0"]),
        ([False, True, True], [True, False]),
        ([False, True, True], ["true", "false"]),
    ],
)
@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_classes_match_typed_labels_as_they_are_or_as_text(tmp_path, labels, classes, extension):
    path, frame = tmp_path / f"x.{extension}", FRAME.assign(label=labels)
    if extension == "jsonl":
        write(tmp_path, path.name, json_lines(frame))
    else:
        frame.to_parquet(path)
    ann = read_annotations(path, classes=classes)
    assert ann.classes.tolist() == classes
    assert ann.to_frame()["label"].value_counts()[classes[0]] == 2


@pytest.mark.parametrize(("duplicates", "n_labels"), [("keep", 4), ("first", 3), ("last", 3)])
def test_duplicates(tmp_path, duplicates, n_labels):
    path = write(tmp_path, "x.csv", CSV + "2,ann,cat\n")
    assert read_annotations(path, duplicates=duplicates).n_labels == n_labels


def test_mturk_is_recognised(tmp_path):
    text = (
        "HITId,WorkerId,AssignmentStatus,Answer.category.label\n"
        "1,ann,Approved,cat\n1,bob,Submitted,dog\n2,ann,Approved,dog\n2,bob,Rejected,cat\n"
    )
    path = write(tmp_path, "Batch_1_batch_results.csv", text)
    assert rows_of(read_annotations(path)) == ROWS
    plain = read_annotations(path, "csv", label="Answer.category.label")
    assert plain.n_labels == 4  # a plain table knows nothing of rejected work


def test_toloka_is_recognised(tmp_path):
    text = (
        "INPUT:image\tOUTPUT:result\tGOLDEN:result\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"
        "1\tcat\t\tann\tAPPROVED\n1\tdog\t\tbob\tAPPROVED\n\n2\tdog\tcat\tann\tAPPROVED\n"
    )
    path = write(tmp_path, "assignments.tsv", text)
    ann = read_annotations(path)
    assert rows_of(ann) == ROWS
    golden = read_truth(path, ann, task="INPUT:image", label="GOLDEN:result", name="gold")
    assert golden.to_dict() == {2: "cat"}


def test_label_studio_is_recognised(tmp_path):
    def annotation(worker, label):
        result = {"from_name": "animal", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": {"email": worker}, "result": [result]}

    tasks = [
        {"id": 1, "annotations": [annotation("ann", "cat"), annotation("bob", "dog")]},
        {"id": 2, "annotations": [annotation("ann", "dog")]},
    ]
    path = write(tmp_path, "project-1.json", json.dumps(tasks, indent=2))
    assert rows_of(read_annotations(path)) == ROWS


ANNOTATIONS = {
    "integers": Annotations.from_frame(FRAME),
    "text": Annotations.from_frame(FRAME.astype({"task": str})),
}


@pytest.mark.parametrize("ids", ANNOTATIONS)
@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("gold.csv", "task,label\n2,dog\n1,cat\n"),
        ("gold.csv", "task,label\n2,dog\n1,cat\n2,dog\n1,\n"),
        ("gold.tsv", "item\ttruth\n1\tcat\n2\tdog\n"),
        ("gold.jsonl", '{"task": "1", "gold": "cat"}\n{"task": 2, "gold": "dog"}\n'),
        ("gold.jsonl", '{"task": 1.0, "gold": "cat"}\n{"task": 2.0, "gold": "dog"}\n'),
    ],
)
def test_truth_matches_by_text(tmp_path, ids, name, contents):
    ann = ANNOTATIONS[ids]
    truth = read_truth(write(tmp_path, name, contents), ann, name="gold")
    assert truth.name == "gold"
    pd.testing.assert_index_equal(truth.index, ann.tasks)
    assert truth.tolist() == ["cat", "dog"]
    assert ann.code_truth(truth).tolist() == [0, 1]


def test_truth_of_integer_and_boolean_classes(tmp_path):
    path = write(tmp_path, "truth.csv", "task,label\n0,true\n1,False\n")
    ann = Annotations.from_matrix([[True, False], [False, True]])
    assert read_truth(path, ann).tolist() == [True, False]
    path = write(tmp_path, "truth.csv", "task,label\n0,1\n1,\n")
    ann = Annotations.from_matrix([[0, 1], [1, 1]])
    assert read_truth(path, ann).to_dict() == {0: 1}


def test_truth_in_parquet(tmp_path):
    frame = pd.DataFrame({"label": [np.nan, 1.0]}, index=pd.Index([0, 1], name="task"))
    frame.to_parquet(tmp_path / "truth.parquet")
    ann = Annotations.from_matrix([[0, 1], [1, 1]])
    assert read_truth(tmp_path / "truth.parquet", ann).to_dict() == {1: 1}


# Invariants

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), min_size=1, max_size=5)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(WORDS, st.integers(0, 99), st.sampled_from(["no", "yes", "007", "NA"])),
        min_size=1,
        max_size=9,
    )
)
def test_every_format_gives_the_same_annotations(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("formats")
    rows = [("t " + task, worker, label) for task, worker, label in rows]
    rows += [("t", 1, "no"), ("t", 2, "yes")]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_csv(folder / "x.tsv", index=False, sep="\t")
    write(folder, "x.jsonl", json_lines(frame))
    frame.to_parquet(folder / "x.parquet")
    expected = Annotations.from_frame(frame)
    for name in ("x.csv", "x.tsv", "x.jsonl", "x.parquet"):
        ann = read_annotations(folder / name)
        for part in ("task_codes", "worker_codes", "label_codes"):
            np.testing.assert_array_equal(getattr(ann, part), getattr(expected, part))
        for part in ("tasks", "workers", "classes"):
            pd.testing.assert_index_equal(getattr(ann, part), getattr(expected, part))


# Control


def test_control_a_truth_of_other_tasks_is_refused(tmp_path):
    path = write(tmp_path, "truth.csv", "task,label\n01,cat\n")
    message = r"none of its 1 tasks \(such as '01'\) is one of the 2 tasks .* \(such as '1'\)"
    with pytest.raises(ValueError, match=message):
        read_truth(path, ANNOTATIONS["integers"])


# Bad input


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("x.csv", "", "x.csv: the file is empty"),
        (
            "x.csv",
            "task,worker,label\n",
            "x.csv: the table has no rows; expected one per judgement",
        ),
        ("x.csv", "task,worker,label", "x.csv: the table has no rows below its header"),
        ("x.csv", "task,label\n1,a\n", "x.csv: no column for the worker; the columns are 'task', "),
        ("x.csv", "task,worker,label\n1,a,cat\n2,a,cat\n", r"'label' holds one class only \('cat'"),
        ("x.csv", "task,worker,label\n1,a,\n", "x.csv: column 'label' is empty in every row"),
        ("x.csv", CSV + "3,,cat\n", "x.csv: row 5, column 'worker': missing worker id"),
        ("x.csv", CSV + "\n,ann,cat\n", "x.csv: row 6, column 'task': missing task id"),
        (
            "x.csv",
            CSV + "3,ann\n",
            "x.csv: row 5 does not match the header: expected 3 fields, found 2",
        ),
        (
            "x.csv",
            CSV + "3,ann,cat,\n",
            "x.csv: row 5 does not match the header: expected 3 fields, found 4",
        ),
        (
            "x.csv",
            CSV.encode() + b"3,Andr\xe9,cat\n",
            "x.csv: row 5, column 'worker': byte 0xe9 is not UTF-8; expected text in UTF-8",
        ),
        ("x.csv", CSV + '3,ann,"cat\n', "x.csv: row 5: a quoted field is never closed"),
        ("x.tsv", CSV, "x.tsv: no column for the task; the columns are 'task,worker,label'"),
        (
            "x.csv.gz",
            gzip.compress(CSV.encode(), mtime=0)[:-12],
            "x.csv.gz: truncated or damaged gzip",
        ),
        ("x.jsonl", json_lines(FRAME) + "{", "x.jsonl: row 4: invalid JSON at character 2"),
        ("x.jsonl", "[1]\n", "x.jsonl: row 1: found a list; expected one JSON object per line"),
        (
            "x.jsonl",
            '{"task": 1, "worker": 1, "label": ["a"]}',
            "x.jsonl: row 1, column 'label': found a list; expected text",
        ),
        ("x.json", "3", "x.json: expected a JSON array, or one JSON object per line"),
        ("x.json", json.dumps(ROWS), "x.json: row 1 of the array: expected a Label Studio task"),
        ("x.json", '[{"id": 1', "x.json: invalid JSON at character"),
        ("x.parquet", b"PAR1" + b"x" * 99, "x.parquet: truncated or damaged Parquet file"),
        ("x.parquet", CSV, "x.parquet: truncated or damaged Parquet file"),
        ("x.xlsx", b"PK\x03\x04", "x.xlsx: this is a zip archive, such as an Excel workbook"),
        ("x.doc", b"text", "x.doc: unknown extension '.doc'; expected .csv, .tsv"),
    ],
)
def test_bad_files(tmp_path, name, contents, message):
    path = write(tmp_path, name, contents)
    with pytest.raises(ValueError, match=message) as caught:
        read_annotations(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_million_classes_by_mistake(tmp_path):
    n = 1_000_000
    rows = "\n".join(f"{i % 100},w,text {i}" for i in range(n))
    path = write(tmp_path, "x.csv", f"task,worker,label\n{rows}\n")
    message = r"x\.csv: column 'label' holds 1,000,000 distinct labels .* is this the right column"
    with pytest.raises(ValueError, match=message):
        read_annotations(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file"):
        read_annotations(tmp_path / "gone.csv")


def test_a_folder(tmp_path):
    with pytest.raises(ValueError, match="this is a folder; expected a file"):
        read_annotations(tmp_path)


def test_empty_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(ValueError, match=r"^standard input: the file is empty"):
        read_annotations("-")


def test_an_unknown_format(tmp_path):
    with pytest.raises(ValueError, match="format='xlsx': expected one of csv, tsv, jsonl, parquet"):
        read_annotations(write(tmp_path, "x.csv", CSV), "xlsx")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["cat", "bird"]}, "x.csv: row 3, column 'label': label 'dog' is not one of"),
        ({"label": "answer"}, "x.csv: no column 'answer' for the label; the columns are 'task'"),
        (
            {"task": "worker", "duplicates": "error"},
            "x.csv: column 'worker' is named for the task and for the worker; expected a column",
        ),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        read_annotations(write(tmp_path, "x.csv", CSV), **options)


@pytest.mark.parametrize("key", ["integers", "text"])
def test_truth_beyond_the_annotations(tmp_path, key):
    path = write(tmp_path, "truth.csv", "task,label\n9,dog\n1,cat\n2,bird\n8,cow\n9,dog\n7,\n")
    with pytest.warns(TruthWarning) as caught:
        truth = read_truth(path, ANNOTATIONS[key])
    message = "truth.csv: 2 of 4 truth tasks have no labels and are left out (such as "
    assert [message in str(warning.message) for warning in caught] == [True]
    assert truth.to_list() == ["cat", "bird"]
    assert truth.index.equals(ANNOTATIONS[key].tasks[:2])


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (
            "task,label\n,cat\n",
            "row 2, column 'task': the task of this gold label is missing; expected one of",
        ),
        (
            "task,label\n1,cat\n2,dog\n1,dog\n",
            "row 4, .*'label': a second, different gold label for task '1'; expected one per task",
        ),
        ("task,label\n1,\n", "column 'label' has no labels; expected at least one"),
        ("task,label\n", "column 'label' has no labels; expected at least one"),
        ("task,worker\n1,ann\n", "no column for the truth; the columns are 'task', 'worker'"),
        ("task,truth,gold\n1,cat,cat\n", "the truth may be in any of the columns 'truth', 'gold'"),
    ],
)
def test_bad_truth(tmp_path, contents, message):
    path = write(tmp_path, "gold.csv", contents)
    with pytest.raises(ValueError, match=rf"gold\.csv: {message}") as caught:
        read_truth(path, ANNOTATIONS["integers"], name="gold")
    assert "\n" not in str(caught.value)


def test_a_list_is_not_a_truth(tmp_path):
    path = write(tmp_path, "gold.jsonl", '{"task": 1, "label": ["cat"]}\n')
    with pytest.raises(ValueError, match=r"row 1, column 'label': found a list; expected text"):
        read_truth(path, ANNOTATIONS["integers"])


def test_a_json_array_is_not_a_truth(tmp_path):
    path = write(tmp_path, "gold.json", "[1]")
    with pytest.raises(
        ValueError, match="found a JSON array; expected a table with one row per task"
    ):
        read_truth(path, ANNOTATIONS["integers"])
