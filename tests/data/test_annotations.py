"""Annotations: coding, order, immutability and the messages for bad tables."""

import dataclasses
import inspect
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

from bayescrowd.data import annotations as annotations_module
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.truth import TruthWarning
from bayescrowd.data.vocabulary import MAX_INFERRED_CLASSES, natural_key

# The judgements of the hand-worked case: two tasks, two workers, one repeated judgement.
COLUMNS = {
    "task": ["t2", "t1", "t2", "t1", "t2"],
    "worker": ["w1", "w2", "w1", "w1", "w2"],
    "label": ["no", "yes", "yes", "no", "no"],
}


def labelled(labels, *, task=(1, 1, 2, 2), worker=("a", "b", "a", "b")):
    return pd.DataFrame({"task": list(task), "worker": list(worker), "label": labels})


def assert_same(left, right):
    np.testing.assert_array_equal(left.task_codes, right.task_codes)
    np.testing.assert_array_equal(left.worker_codes, right.worker_codes)
    np.testing.assert_array_equal(left.label_codes, right.label_codes)
    for vocabulary in ("tasks", "workers", "classes"):
        pd.testing.assert_index_equal(getattr(left, vocabulary), getattr(right, vocabulary))
    assert left.n_dropped == right.n_dropped


# By hand


def test_codes_and_order():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    assert ann.task_codes.tolist() == [0, 0, 1, 1, 1]
    assert ann.worker_codes.tolist() == [0, 1, 0, 0, 1]
    assert ann.label_codes.tolist() == [0, 1, 0, 1, 0]
    assert ann.tasks.tolist() == ["t1", "t2"]
    assert ann.workers.tolist() == ["w1", "w2"]
    assert ann.classes.tolist() == ["no", "yes"]
    assert (ann.n_labels, ann.n_tasks, ann.n_workers, ann.n_classes) == (5, 2, 2, 2)
    assert ann.n_dropped == 0
    assert [v.name for v in (ann.tasks, ann.workers, ann.classes)] == ["task", "worker", "class"]
    assert repr(ann) == "Annotations(5 labels: 2 tasks, 2 workers, 2 classes)"


def test_counts():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    assert ann.task_offsets.tolist() == [0, 2, 5]
    assert ann.votes.tolist() == [[1, 1], [2, 1]]
    assert ann.labels_per_worker.tolist() == [3, 2]
    assert ann.labels_per_task.tolist() == [2, 3]


def test_to_frame_restores_the_users_ids():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    assert ann.to_frame().to_dict("list") == {
        "task": ["t1", "t1", "t2", "t2", "t2"],
        "worker": ["w1", "w2", "w1", "w1", "w2"],
        "label": ["no", "yes", "no", "yes", "no"],
    }


@pytest.mark.parametrize(
    ("duplicates", "expected"),
    [("keep", ["a", "b", "c", "a"]), ("first", ["a", "a"]), ("last", ["c", "a"])],
)
def test_repeated_judgements(duplicates, expected):
    frame = labelled(["a", "b", "c", "a"], task=[1, 1, 1, 2], worker=["w"] * 4)
    ann = Annotations.from_frame(frame, classes=["a", "b", "c"], duplicates=duplicates)
    assert ann.classes.take(ann.label_codes).tolist() == expected


@pytest.mark.parametrize(("duplicates", "expected"), [("first", "b"), ("last", "c")])
def test_a_missing_label_does_not_count_as_first_or_last(duplicates, expected):
    frame = labelled([None, "b", "c", None], task=[1] * 4, worker=["w"] * 4)
    ann = Annotations.from_frame(frame, duplicates=duplicates)
    assert ann.to_frame()["label"].tolist() == [expected]
    assert ann.n_dropped == 2


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", "  "])
def test_a_missing_label_is_dropped_and_counted(missing):
    ann = Annotations.from_frame(labelled(["x", missing, "y", missing]))
    assert (ann.n_labels, ann.n_dropped) == (2, 2)
    assert ann.classes.tolist() == ["x", "y"]
    assert ann.workers.tolist() == ["a", "b"]  # 'b' stays, without labels
    assert ann.labels_per_worker.tolist() == [2, 0]


@pytest.mark.parametrize("text", ["NA", "None", "nan", "null", "0"])
def test_words_such_as_none_are_ordinary_labels(text):
    ann = Annotations.from_frame(labelled([text, "x", text, "x"]))
    assert text in ann.classes
    assert ann.n_dropped == 0


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["c10", "c2", "c10", "c1"], ["c1", "c2", "c10"]),
        (["b", "A", "a", "B"], ["A", "a", "B", "b"]),
        (["10", "9", "10", "9"], ["9", "10"]),
        ([10, 9, 10, 9], [9, 10]),
        ([True, False, True, True], [False, True]),
        (["x", 2, "10", 1], [1, 2, "10", "x"]),
        (["1b", "1", "01", "x"], ["01", "1", "1b", "x"]),
        ([2.0, 1.0, np.nan, 2.0], [1, 2]),
    ],
)
def test_classes_are_in_natural_order(labels, expected):
    classes = Annotations.from_frame(labelled(labels)).classes.tolist()
    assert classes == expected
    assert [type(c) for c in classes] == [type(c) for c in expected]


def test_an_ordered_categorical_fixes_order_and_unused_classes():
    order = ["low", "medium", "high"]
    labels = pd.Categorical(["high", "low", None, "high"], categories=order, ordered=True)
    ann = Annotations.from_frame(labelled(labels))
    assert ann.classes.tolist() == order
    assert ann.label_codes.tolist() == [2, 0, 2]


def test_an_unordered_categorical_is_sorted_and_loses_unused_classes():
    labels = pd.Categorical(["y", "x", "y", "x"], categories=["y", "unused", "x"])
    assert Annotations.from_frame(labelled(labels)).classes.tolist() == ["x", "y"]


def test_given_classes_fix_the_order():
    ann = Annotations.from_frame(labelled(list("xyxy")), classes=["y", "z", "x"])
    assert ann.classes.tolist() == ["y", "z", "x"]
    assert ann.label_codes.tolist() == [2, 0, 2, 0]


def test_given_classes_allow_one_label_and_very_many():
    only = Annotations.from_frame(labelled(["x"] * 4), classes=["x", "y"])
    assert only.n_classes == 2
    many = Annotations.from_frame(labelled([5, 7, 5, 7]), classes=range(MAX_INFERRED_CLASSES + 1))
    assert many.n_classes == MAX_INFERRED_CLASSES + 1


def test_other_column_names():
    frame = pd.DataFrame({"q": [1, 1], "who": ["a", "b"], "said": ["x", "y"], "extra": [0, 0]})
    ann = Annotations.from_frame(frame, task="q", worker="who", label="said")
    assert ann.to_frame().columns.tolist() == ["task", "worker", "label"]


def test_index_levels_serve_as_columns():
    frame = pd.DataFrame(COLUMNS)
    expected = Annotations.from_frame(frame)
    assert_same(Annotations.from_frame(frame.set_index(["task", "worker"])), expected)
    assert_same(Annotations.from_frame(frame.set_index("task")), expected)


def test_ids_of_several_types():
    ann = Annotations.from_frame(labelled(list("xyxy"), task=[10, "a", 9, "a"]))
    assert ann.tasks.tolist() == [9, 10, "a"]


@pytest.mark.parametrize(
    "matrix",
    [
        [["a", None, "b"], ["b", "b", None]],
        np.array([["a", None, "b"], ["b", "b", None]], dtype=object),
        pl.DataFrame({"0": ["a", "b"], "1": [None, "b"], "2": ["b", None]}),
        pa.table({"0": ["a", "b"], "1": [None, "b"], "2": ["b", None]}),
        pd.DataFrame([["a", np.nan, "b"], ["b", "b", ""]]),
        pd.DataFrame([["a", None, "b"], ["b", "b", None]], dtype="category"),
        pd.DataFrame([["a", None, "b"], ["b", "b", None]], dtype="string"),
    ],
    ids=["lists", "numpy", "polars", "pyarrow", "pandas", "categorical", "string"],
)
def test_from_matrix(matrix):
    ann = Annotations.from_matrix(matrix)
    assert ann.task_codes.tolist() == [0, 0, 1, 1]
    assert ann.worker_codes.tolist() == [0, 2, 0, 1]
    assert ann.label_codes.tolist() == [0, 1, 1, 1]
    assert ann.tasks.tolist() == [0, 1]
    assert [str(worker) for worker in ann.workers] == ["0", "1", "2"]
    assert ann.classes.tolist() == ["a", "b"]


def test_from_matrix_keeps_a_frames_ids_and_the_unlabelled():
    wide = pd.DataFrame(
        [[None, 1, None], [2, 1, None], [None, None, None]],
        index=["t9", "t1", "t5"],
        columns=["w3", "w1", "w2"],
    )
    ann = Annotations.from_matrix(wide)
    assert ann.tasks.tolist() == ["t1", "t5", "t9"]
    assert ann.workers.tolist() == ["w1", "w2", "w3"]
    assert ann.to_frame().to_numpy().tolist() == [
        ["t1", "w1", 1],
        ["t1", "w3", 2],
        ["t9", "w1", 1],
    ]


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1.0, np.nan], [2.0, 1.0]]),
        pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": pd.array([None, 1], "Int64")}),
        [[1, None], [2, 1]],
    ],
    ids=["float", "Int64", "lists"],
)
def test_integers_next_to_missing_entries_stay_integers(matrix):
    ann = Annotations.from_matrix(matrix)
    assert ann.classes.tolist() == [1, 2]
    assert ann.classes.dtype == np.int64


def test_from_codes():
    task, worker, label = np.array([1, 0, 0]), np.array([0, 1, 0]), np.array([1, 0, 1])
    ann = Annotations.from_codes(task, worker, label, tasks=["s", "t"], workers=3, classes=2)
    assert ann.task_codes.tolist() == [0, 0, 1]
    assert ann.worker_codes.tolist() == [0, 1, 0]
    assert ann.label_codes.tolist() == [1, 0, 1]
    assert ann.tasks.tolist() == ["s", "t"]
    assert ann.workers.tolist() == [0, 1, 2]
    assert ann.labels_per_worker.tolist() == [2, 1, 0]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_from_codes_takes_any_integer(dtype):
    codes = np.array([1, 0, 1], dtype=dtype)
    ann = Annotations.from_codes(codes, codes, codes, tasks=2, workers=2, classes=2)
    assert ann.task_codes.tolist() == [0, 1, 1]
    assert ann.task_codes.dtype == np.int32


def test_select_workers():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    some = ann.select_workers(["w2"])
    assert some.workers.tolist() == ["w2"]
    assert some.tasks.tolist() == ["t1", "t2"]
    assert some.classes.tolist() == ["no", "yes"]
    assert some.to_frame().to_numpy().tolist() == [["t1", "w2", "yes"], ["t2", "w2", "no"]]


def test_select_tasks():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    some = ann.select_tasks(["t1"])
    assert some.tasks.tolist() == ["t1"]
    assert some.workers.tolist() == ["w1", "w2"]
    assert some.to_frame().to_numpy().tolist() == [["t1", "w1", "no"], ["t1", "w2", "yes"]]


@pytest.mark.parametrize("truth", [{"t2": "yes"}, pd.Series({"t2": "yes", "t1": None})])
def test_code_truth(truth):
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    assert ann.code_truth(truth).tolist() == [-1, 1]


def test_code_truth_takes_a_task_twice_if_the_labels_agree():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    truth = pd.Series(["no", "no"], index=["t1", "t1"])
    assert ann.code_truth(truth).tolist() == [0, -1]


def test_code_truth_of_an_empty_truth():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    assert ann.code_truth({}).tolist() == [-1, -1]


def test_natural_key_compares_runs_of_digits_as_numbers():
    assert sorted(["x10y2", "x9", "x10y10"], key=natural_key) == ["x9", "x10y2", "x10y10"]


# Invariants


@st.composite
def tables(draw):
    """Columns of judgements with repeats and missing labels, and at least two classes."""
    n = draw(st.integers(2, 30))
    ids = st.sampled_from(["t1", "t2", "t10", "é", "T1", "z z"])
    labels = st.sampled_from(["c1", "c2", "c10", "C", "ß", None])
    rows = draw(st.lists(st.tuples(ids, ids, labels), min_size=n, max_size=n))
    task, worker, label = (list(column) for column in zip(*rows, strict=True))
    label[:2] = ["c2", "c10"]
    return {"task": task, "worker": worker, "label": label}


@given(tables(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(columns, random):
    order = list(range(len(columns["task"])))
    random.shuffle(order)
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    assert_same(
        Annotations.from_frame(pd.DataFrame(shuffled)),
        Annotations.from_frame(pd.DataFrame(columns)),
    )


@settings(max_examples=30)  # nine tables each
@given(tables())
def test_the_dataframe_library_does_not_matter(columns):
    expected = Annotations.from_frame(pd.DataFrame(columns))
    for frame in (
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        pa.table(columns),
        pd.DataFrame(columns, dtype="category"),
        pd.DataFrame(columns, dtype="string"),
        pd.DataFrame(columns, dtype=pd.ArrowDtype(pa.string())),
        pd.DataFrame(columns, dtype=object),
        pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Categorical)),
        pa.table({name: pa.array(v).dictionary_encode() for name, v in columns.items()}),
    ):
        assert_same(Annotations.from_frame(frame), expected)


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from([0, 1, 7, None]), min_size=4, max_size=4).filter(
        lambda labels: len(set(labels) - {None}) > 1
    )
)
def test_the_dataframe_library_does_not_matter_for_integers(labels):
    columns = {"task": [3, 3, 20, 20], "worker": [2**40, 1, 2**40, 1], "label": labels}
    expected = Annotations.from_frame(pd.DataFrame(columns))
    for frame in (
        pl.DataFrame(columns),
        pa.table(columns),
        pd.DataFrame(columns, dtype="Int64"),
        pd.DataFrame(columns, dtype=pd.ArrowDtype(pa.int64())),
        pd.DataFrame(columns, dtype=object),
        pa.table({name: pa.array(v).dictionary_encode() for name, v in columns.items()}),
    ):
        assert_same(Annotations.from_frame(frame), expected)


@pytest.mark.parametrize(
    "labels",
    [
        pd.array([True, False, None, True], dtype="boolean"),
        pd.array([True, False, None, True], dtype=pd.ArrowDtype(pa.bool_())),
        pd.Series([True, False, None, True], dtype=object),
    ],
    ids=["boolean", "arrow", "object"],
)
def test_truth_values_next_to_a_missing_one(labels):
    ann = Annotations.from_frame(labelled(labels))
    assert ann.classes.dtype == bool
    assert (ann.classes.tolist(), ann.n_dropped) == ([False, True], 1)


@pytest.mark.parametrize("ordered", [False, True])
def test_missing_values_of_an_arrow_dictionary_are_missing(ordered):
    labels = pa.DictionaryArray.from_arrays([0, None, 1, 1], ["y", "x"], ordered=ordered)
    frame = pa.table({"task": [1, 1, 2, 2], "worker": list("abab"), "label": labels})
    ann = Annotations.from_frame(frame)
    assert ann.n_dropped == 1
    assert ann.classes.tolist() == (["y", "x"] if ordered else ["x", "y"])


def test_a_polars_enum_fixes_the_order():
    labels = pl.Series(["x", "y", None, "y"], dtype=pl.Enum(["z", "y", "x"]))
    frame = pl.DataFrame({"task": [1, 1, 2, 2], "worker": list("abab"), "label": labels})
    assert Annotations.from_frame(frame).classes.tolist() == ["z", "y", "x"]


@given(tables())
def test_rows_are_sorted_and_complete(columns):
    ann = Annotations.from_frame(pd.DataFrame(columns))
    codes = list(zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True))
    assert codes == sorted(codes)
    assert ann.n_labels + ann.n_dropped == len(columns["task"])
    expected = [row for row in zip(*columns.values(), strict=True) if row[2] is not None]
    assert sorted(ann.to_frame().itertuples(index=False, name=None)) == sorted(expected)


@given(tables())
def test_renaming_workers_in_order_changes_only_their_names(columns):
    ann = Annotations.from_frame(pd.DataFrame(columns))
    new_name = {worker: f"worker {i:03}" for i, worker in enumerate(ann.workers)}
    renamed = {**columns, "worker": [new_name[worker] for worker in columns["worker"]]}
    again = Annotations.from_frame(pd.DataFrame(renamed))
    assert_same(dataclasses.replace(again, workers=ann.workers), ann)
    assert again.workers.tolist() == list(new_name.values())


@given(tables())
def test_counts_agree_with_the_rows(columns):
    ann = Annotations.from_frame(pd.DataFrame(columns))
    assert ann.votes.sum() == ann.n_labels
    np.testing.assert_array_equal(ann.votes.sum(axis=1), ann.labels_per_task)
    assert ann.labels_per_worker.sum() == ann.n_labels
    for task in range(ann.n_tasks):
        rows = slice(ann.task_offsets[task], ann.task_offsets[task + 1])
        assert (ann.task_codes[rows] == task).all()


@given(tables())
def test_frame_and_codes_give_the_same_annotations(columns):
    ann = Annotations.from_frame(pd.DataFrame(columns))
    back = Annotations.from_codes(
        ann.task_codes,
        ann.worker_codes,
        ann.label_codes,
        tasks=ann.tasks,
        workers=ann.workers,
        classes=ann.classes,
    )
    assert_same(dataclasses.replace(back, n_dropped=ann.n_dropped), ann)


@given(tables())
def test_selecting_everything_changes_nothing(columns):
    ann = Annotations.from_frame(pd.DataFrame(columns))
    whole = dataclasses.replace(ann, n_dropped=0)
    assert_same(ann.select_workers(ann.workers[::-1]), whole)
    assert_same(ann.select_tasks(iter(ann.tasks)), whole)


def test_a_very_large_vocabulary_is_sorted_the_same_way(monkeypatch):
    task, worker = np.array([5, 2, 5, 5]), np.array([1, 0, 0, 1])
    label = np.array([1, 0, 1, 0])
    sizes = {"tasks": 6, "workers": 2, "classes": 2}
    expected = Annotations.from_codes(task, worker, label, **sizes)
    lexsort_calls = []

    def counted(keys):
        lexsort_calls.append(len(keys))
        return lexsort(keys)

    lexsort = np.lexsort
    monkeypatch.setattr(annotations_module.np, "lexsort", counted)
    # 2**21 ids on each of three axes: a row no longer fits one 64-bit integer.
    huge = dict.fromkeys(sizes, 2**21)
    ann = Annotations.from_codes(task, worker, label, **huge)
    assert lexsort_calls == [3]
    np.testing.assert_array_equal(ann.task_codes, expected.task_codes)
    np.testing.assert_array_equal(ann.worker_codes, expected.worker_codes)
    np.testing.assert_array_equal(ann.label_codes, expected.label_codes)


def test_annotations_are_immutable():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    some = ann.select_tasks(["t2"])
    for each in (ann, some, ann.select_workers(["w1"])):
        for name in ("task_codes", "worker_codes", "label_codes", "votes", "task_offsets"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(each, name)[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        ann.n_dropped = 3


def test_from_codes_copies_its_input():
    codes = np.array([0, 1])
    ann = Annotations.from_codes(codes, codes, codes, tasks=2, workers=2, classes=2)
    codes[0] = 1
    assert ann.task_codes.tolist() == [0, 1]
    assert codes.flags.writeable


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_input_is_not_changed(library):
    frame, copy = library(COLUMNS), library(COLUMNS)
    for duplicates in ("keep", "first"):
        Annotations.from_frame(frame, classes=["yes", "no"], duplicates=duplicates)
    assert frame.equals(copy)


def test_read_only_columns():
    codes = np.array([1, 1, 2, 2])
    codes.flags.writeable = False
    frame = pd.DataFrame({"task": codes, "worker": codes, "label": codes}, copy=False)
    assert Annotations.from_frame(frame).n_labels == 4
    assert Annotations.from_codes(codes, codes, codes, tasks=3, workers=3, classes=3).n_labels == 4


def test_the_frames_index_does_not_matter():
    frame = pd.DataFrame(COLUMNS)
    assert_same(
        Annotations.from_frame(frame.set_index(pd.Index([7, 7, 0, 3, 7]))),
        Annotations.from_frame(frame),
    )


def test_class_order_is_the_same_in_every_process():
    # String hashes differ between processes, and so would an order that depends on a set.
    program = (
        "from bayescrowd.data.annotations import Annotations; import pandas as pd;"
        f"print(Annotations.from_frame(pd.DataFrame({COLUMNS})).classes.tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {"['no', 'yes']\n"}


# Control


@given(tables())
def test_control_a_changed_label_changes_the_annotations(columns):
    changed = {**columns, "label": ["c10", *columns["label"][1:]]}
    with pytest.raises(AssertionError):
        assert_same(
            Annotations.from_frame(pd.DataFrame(changed), classes=["c1", "c2", "c10", "C", "ß"]),
            Annotations.from_frame(pd.DataFrame(columns), classes=["c1", "c2", "c10", "C", "ß"]),
        )


# Bad input


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (labelled(list("xyxy")).drop(columns="worker"), "no column 'worker' for the worker; the c"),
        (labelled(list("xyxy")).head(0), "the table has no rows"),
        (labelled([None] * 4), "column 'label' is empty in every row; expected at least one"),
        (labelled(["x"] * 4), r"column 'label' holds one class only \('x'\); expected at least"),
        (labelled([1, 0, 0.5, 1]), "row 3, column 'label': label 0.5 is not a whole number"),
        (labelled([1, 0, np.inf, 1]), "row 3, column 'label': label inf is not a whole number"),
        (labelled([["x"], ["y"], ["x"], ["y"]]), "row 1, column 'label': found a list"),
        (
            labelled(list("xyxy"), task=[1, None, 2, None]),
            r"row 2, column 'task': missing task id \(2 in all\)",
        ),
        (labelled(list("xyxy"), worker=["a", "b", " ", "b"]), "row 3, column 'worker': missing"),
        (
            pd.DataFrame([[1, 2, 3, 4]], columns=["task", "worker", "label", "label"]),
            "two columns of the table have the same name",
        ),
    ],
)
def test_bad_frames(frame, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_frame(frame)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_too_many_classes(library):
    n = MAX_INFERRED_CLASSES + 1
    frame = library({"task": [1] * n, "worker": [1] * n, "label": [f"text {i}" for i in range(n)]})
    with pytest.raises(ValueError, match=r"'label' holds 1,001 distinct labels .* right column"):
        Annotations.from_frame(frame)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["x", "z"]}, "row 2, column 'label': label 'y' is not one of the classes 'x'"),
        ({"classes": ["x", "y", "x"]}, "class 'x' is listed twice"),
        ({"label": "answer"}, "no column 'answer' for the label; the columns are 'task', 'worker'"),
        ({"task": "worker"}, "column 'worker' is named for the task and for the worker"),
        ({"label": "task"}, "column 'task' is named for the task and for the label"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_frame(labelled(list("xyxy")), **options)


def test_refused_duplicates():
    frame = labelled(list("xyxy"), task=(1, 1, 1, 2))
    message = "row 3: worker 'a' judges task 1 again; expected one judgement per pair"
    with pytest.raises(ValueError, match=message):
        Annotations.from_frame(frame, duplicates="error")


def test_bad_duplicates():
    with pytest.raises(ValueError, match=r"duplicates='drop': expected one of keep, error"):
        Annotations.from_frame(labelled(list("xyxy")), duplicates="drop")


def test_messages_name_source_and_row():
    frame = labelled(list("xyxy"), task=[1, 2, None, 3])
    with pytest.raises(ValueError, match=r"^labels\.csv: row 12, column 'task': missing"):
        Annotations.from_frame(
            frame, source="labels.csv", row_number=lambda position: position + 10
        )


@pytest.mark.parametrize("frame", ["labels.csv", {"task": [1]}, None, 3])
def test_input_that_is_not_a_table(frame):
    with pytest.raises(TypeError, match="expected Annotations or a pandas, polars or pyarrow"):
        Annotations.from_frame(frame)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([], "the matrix is empty"),
        (np.empty((0, 3)), "the matrix is empty"),
        ([[None, None]], "every entry of the matrix is missing; expected at least one"),
        ([["a", "a"], ["a", None]], "one class only"),
        ([["a", "b"], ["a"]], r"rows of the matrix have different lengths: \[1, 2\]"),
        (["a", "b"], "the matrix has 1 dimension"),
        (np.zeros(3), "the matrix has 1 dimension; expected 2"),
        (np.zeros((2, 2, 2)), "the matrix has 3 dimensions"),
        (pd.DataFrame([["a"], ["b"]], index=["t", "t"]), "two rows of the matrix are named 't'"),
        (pd.DataFrame([["a", "b"]], columns=["w", "w"]), "two columns of the matrix are named 'w'"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_matrix(matrix)


GOOD_CODES = {
    "task": np.array([0, 1]),
    "worker": np.array([0, 1]),
    "label": np.array([0, 1]),
    "tasks": 2,
    "workers": 2,
    "classes": 2,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": np.array([0, 2])}, r"label code 2 in row 2 is outside 0\.\.1"),
        ({"worker": np.array([-1, 0])}, r"worker code -1 in row 1 is outside 0\.\.1"),
        ({"tasks": ["t"]}, r"task code 1 in row 2 is outside 0\.\.0"),
        ({"tasks": ["t", "t"]}, "task 't' is listed twice"),
        ({"classes": 1, "label": np.array([0, 0])}, "only one class; expected at least two"),
        (
            dict.fromkeys(("task", "worker", "label"), np.array([], dtype=int)),
            "the code arrays are empty; expected at least one judgement",
        ),
    ],
)
def test_bad_codes(change, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_codes(**{**GOOD_CODES, **change})


def test_codes_that_are_not_integers():
    with pytest.raises(TypeError, match="label codes have dtype float64; expected integers"):
        Annotations.from_codes(**{**GOOD_CODES, "label": np.array([0.0, 1.0])})


def test_codes_of_different_length():
    # Called below the type hook, which would raise first.
    from_codes = inspect.unwrap(Annotations.from_codes.__func__)
    with pytest.raises(ValueError, match="differ in length: task 2, worker 3, label 2"):
        from_codes(Annotations, **{**GOOD_CODES, "worker": np.array([0, 1, 0])})


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (lambda ann: ann.select_workers(["w9"]), "worker 'w9' is not among the 2 workers"),
        (lambda ann: ann.select_tasks([]), "no task selected"),
        (lambda ann: ann.select_tasks([7]), "task 7 is not among the 2 tasks"),
    ],
)
def test_bad_selections(select, message):
    with pytest.raises(ValueError, match=message):
        select(Annotations.from_frame(pd.DataFrame(COLUMNS)))


def test_a_selection_without_judgements():
    ann = Annotations.from_matrix([["a", None], ["b", None]])
    with pytest.raises(ValueError, match="the selection contains no judgement"):
        ann.select_workers([1])


TRUTH = {"t1": "yes", "t9": "no", "t2": "maybe", "t8": "no", "t0": None}


def test_truth_that_does_not_match_is_counted_and_reported():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    with pytest.warns(TruthWarning) as caught:
        coded = ann.code_truth(TRUTH, "truth")
    first, second = (str(warning.message) for warning in caught)
    assert first == "2 of 4 truth tasks have no labels and are left out (such as 't9')"
    assert second == (
        "nobody chose the class 'maybe' of the truth: 1 of 4 truth tasks is left out; declare it "
        "among the classes of the labels to learn from such tasks"
    )
    assert dict(zip(ann.tasks, coded, strict=True)) == {"t1": 1, "t2": -1}


def test_a_class_nobody_chose_is_wrong_where_labels_are_scored():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS))
    with pytest.warns(TruthWarning, match=r"'maybe' of the truth: 1 of 2 truth tasks counts as"):
        coded = ann.code_truth({"t1": "yes", "t2": "maybe"}, "truth", unchosen="wrong")
    assert coded.tolist() == [1, -2]


def test_a_declared_class_is_a_class():
    ann = Annotations.from_frame(pd.DataFrame(COLUMNS), classes=["no", "maybe", "yes"])
    assert ann.code_truth({"t2": "maybe"}).tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (pd.Series(["no", "yes"], index=["t1", "t1"]), "gold gives task 't1' two different labels"),
    ],
)
def test_bad_truth(truth, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_frame(pd.DataFrame(COLUMNS)).code_truth(truth)


# Values that print alike


@pytest.mark.parametrize("column", ["task", "worker", "label"])
@pytest.mark.parametrize("values", [[1, "1", 2, 2], [2, 2, "1", 1], [True, "True", 2, 2]])
def test_values_that_print_alike_are_merged_with_a_warning(column, values):
    frame = pd.DataFrame({"task": [1, 2, 3, 4], "worker": [1, 2, 3, 4], "label": list("xyxy")})
    frame[column] = pd.Series(values, dtype=object)
    with pytest.warns(UserWarning, match=f"row [24], column '{column}': .* is read as text"):
        ann = Annotations.from_frame(frame)
    vocabulary = {"task": ann.tasks, "worker": ann.workers, "label": ann.classes}[column]
    assert sorted(vocabulary) == sorted({str(value) for value in values})
    with pytest.warns(UserWarning, match="is read as text"):
        assert_same(Annotations.from_frame(frame.iloc[::-1]), ann)


def test_truth_values_are_not_numbers():
    # True == 1 in Python, so that a hash table keeps whichever of the two comes first.
    frame = labelled(pd.Series([1, True, 0, 1], dtype=object))
    with pytest.warns(
        UserWarning, match="row 2, column 'label': True looks like 1, which has another type"
    ):
        ann = Annotations.from_frame(frame)
    assert list(ann.classes) == ["0", "1", "True"]


def test_mixed_values_that_print_differently_are_kept():
    ann = Annotations.from_frame(labelled(pd.Series([1, "a", 2.0, None], dtype=object)))
    assert list(ann.classes) == [1, 2, "a"]


@pytest.mark.parametrize("classes", [[1, 2], ["1", "2"]])
def test_declared_classes_of_a_column_read_as_text(classes):
    frame = labelled(pd.Series([1, "1", 2, 2], dtype=object))
    with pytest.warns(UserWarning, match="is read as text"):
        ann = Annotations.from_frame(frame, classes=classes)
    assert list(ann.classes) == classes
    assert ann.votes.tolist() == [[2, 0], [0, 2]]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([1, "1", 2], "class 1 and class '1' are written alike"),
        (["a", "b\0"], r"class 'b\\x00' holds a NUL character"),
    ],
)
def test_indistinct_classes(classes, message):
    codes = np.zeros(1, dtype=int)
    with pytest.raises(ValueError, match=message):
        Annotations.from_codes(codes, codes, codes, tasks=1, workers=1, classes=classes)
    with pytest.raises(ValueError, match=message):
        Annotations.from_frame(labelled(list("aaaa")), classes=classes)


def test_indistinct_ids_of_a_matrix():
    wide = pd.DataFrame([["a", "b"], ["b", "b"]], index=pd.Index([3, "3"], dtype=object))
    with pytest.raises(ValueError, match="row 3 and row '3' are written alike"):
        Annotations.from_matrix(wide)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_nul_characters_are_refused(library):
    frame = library({"task": ["3", "3\0"], "worker": ["a", "b"], "label": ["x", "y"]})
    with pytest.raises(ValueError, match=r"row 2, column 'task': '3\\x00' holds a NUL character"):
        Annotations.from_frame(frame)


@pytest.mark.parametrize(
    ("classes", "further", "expected"),
    [
        (None, ["b"], ["a", "b", "c"]),
        (None, ["d", "A10", "A9"], ["a", "A9", "A10", "c", "d"]),
        (["c", "a"], ["d", "b"], ["c", "a", "b", "d"]),  # the user's order stays
        (None, ["b", "c", "b"], ["a", "b", "c"]),
        (None, [7], [7, "a", "c"]),
    ],
)
def test_with_classes_takes_their_natural_place(classes, further, expected):
    ann = Annotations.from_frame(labelled(["a", "c", "c", "c"]), classes=classes)
    wider = ann.with_classes(further)
    assert list(wider.classes) == expected
    pd.testing.assert_frame_equal(wider.to_frame(), ann.to_frame(), check_dtype=False)
    # As if the classes had been declared from the beginning.
    declared = Annotations.from_frame(ann.to_frame(), classes=expected)
    np.testing.assert_array_equal(wider.label_codes, declared.label_codes)
    np.testing.assert_array_equal(wider.votes, declared.votes)
    assert wider.label_codes.dtype == np.int32
    assert not wider.label_codes.flags.writeable


def test_with_classes_that_are_there_changes_nothing():
    ann = Annotations.from_frame(labelled([1, 2, 2, 3]))
    assert ann.with_classes([2, 1.0]) is ann
    assert ann.with_classes([]) is ann


def test_with_classes_reads_whole_floats_as_integers():
    wider = Annotations.from_frame(labelled([1, 3, 3, 3])).with_classes([2.0, 10.0])
    assert wider.classes.tolist() == [1, 2, 3, 10]
    assert wider.classes.dtype == np.int64


@pytest.mark.parametrize(
    ("further", "message"), [(["3"], "written alike"), ([None], "missing"), ([np.nan], "missing")]
)
def test_with_classes_refuses_what_cannot_be_told_apart(further, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_frame(labelled([1, 3, 3, 3])).with_classes(further)
