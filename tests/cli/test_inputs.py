"""What people bring to the command line: odd columns, no header, data sets, and files that fail."""

import gzip
import hashlib
import json

import pandas as pd
import pytest

from bayescrowd.cli import main
from bayescrowd.datasets import registry
from bayescrowd.datasets.public_files import PublicFile

ROWS = "1,ann,cat\n1,bob,cat\n2,ann,dog\n2,bob,cat\n3,ann,dog\n3,bob,dog\n"
HEADER = "task,worker,label\n"
QUICK = ("--method", "majority-vote")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own, and data sets of six labels: 'small' with its truth, 'truthless'."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESCROWD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BAYESCROWD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    bodies = {
        "small_crowd.txt": b"1 1 1\n1 2 1\n2 1 2\n2 2 1\n3 1 2\n3 2 2\n",
        "small_truth.txt": b"1 1\n2 1\n3 2\n",
    }
    for name, body in bodies.items():
        (tmp_path / "data" / name).write_bytes(body)
    files = tuple(PublicFile(n, hashlib.sha256(b).hexdigest(), "o/r") for n, b in bodies.items())
    monkeypatch.setitem(registry._CROWDS, "small", registry._Entry(files, "", ""))
    monkeypatch.setitem(registry._CROWDS, "truthless", registry._Entry(files[:1], "", ""))
    (tmp_path / "labels.csv").write_text(HEADER + ROWS)
    return tmp_path


def document(capsys, *arguments):
    """The JSON that a command prints, and its lines on standard error."""
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err.splitlines()


def refusal(capsys, *arguments):
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


# Columns


def test_guesses_are_said(folder, capsys):
    (folder / "x.csv").write_text("Image,annotator,rating\n" + ROWS)
    same, nothing = document(capsys, "aggregate", "labels.csv", *QUICK)
    found, lines = document(capsys, "aggregate", "x.csv", *QUICK)
    assert nothing == []
    assert found["tasks"] == same["tasks"]
    assert lines == [
        (
            "bayescrowd: x.csv: took column 'Image' for the task, 'annotator' for the worker and "
            "'rating' for the label (--task, --worker and --label name others)"
        )
    ]


@pytest.mark.parametrize("command", ["aggregate", "workers", "panel"])
def test_every_command_says_its_guesses(folder, capsys, command):
    (folder / "x.csv").write_text("clip,judge,value\n" + ROWS)
    _, lines = document(capsys, command, "x.csv", *(QUICK if command == "aggregate" else ()))
    assert any("took column 'clip' for the task, 'judge' for" in line for line in lines)


def test_bench_says_its_guesses(folder, capsys):
    (folder / "crowds" / "animals").mkdir(parents=True)
    (folder / "crowds" / "animals" / "labels.csv").write_text("clip,worker,label\n" + ROWS)
    (folder / "crowds" / "animals" / "truth.csv").write_text("clip,truth\n1,cat\n2,CAT\n")
    chosen = ("--methods", "MajorityVote", "--reference", "MajorityVote")
    found, lines = document(capsys, "bench", "crowds", *chosen, "--tidy")
    assert found["crowds"][0]["n_unchosen_class"] == 0
    assert [line.partition(": ")[2].partition(" ")[2] for line in lines] == [
        "took column 'clip' for the task (--task names another)",
        "took column 'clip' for the task (--truth-columns names another)",
        "merged labels that differ only in case or surrounding blanks: 'CAT' (1) into 'cat' (1)",
    ]


def test_a_wide_table_is_said_to_be_one(folder, capsys):
    (folder / "x.csv").write_text("item,ann,bob\n1,cat,cat\n2,dog,cat\n3,dog,dog\n")
    same, _ = document(capsys, "aggregate", "labels.csv", *QUICK)
    found, lines = document(capsys, "aggregate", "x.csv", *QUICK)
    assert found["tasks"] == same["tasks"]
    assert len(lines) == 2
    assert "the columns 'ann', 'bob' (--format names another format)" in lines[0]
    assert "took column 'item' for the task" in lines[1]


def test_ambiguous_columns_are_named_with_the_option(folder, capsys):
    (folder / "x.csv").write_text("image,clip,worker,label\n1,7,ann,cat\n2,8,ann,dog\n")
    assert refusal(capsys, "aggregate", "x.csv") == (
        "bayescrowd: x.csv: the task may be in any of the columns 'image', 'clip'; choose one "
        "with --task"
    )
    document(capsys, "aggregate", "x.csv", "--task", "clip", *QUICK)


# Files without a header


@pytest.mark.parametrize(
    ("name", "separator"), [("x.csv", ","), ("x.tsv", "\t"), ("x.txt", " "), ("x", ";")]
)
def test_columns_of_a_file_without_a_header(folder, capsys, name, separator):
    (folder / name).write_text(ROWS.replace(",", separator))
    (folder / "truth.txt").write_text("1,cat\n2,dog\n3,dog\n")
    (folder / "truth.csv").write_text("task,truth\n1,cat\n2,dog\n3,dog\n")
    same, _ = document(capsys, "aggregate", "labels.csv", *QUICK, "--truth", "truth.csv")
    for truth in ("truth.csv", "truth.txt"):
        found, lines = document(
            *(capsys, "aggregate", name, *QUICK, "--columns", "task,worker,label"),
            *("--truth", truth),
        )
        assert lines == []
        assert (found["tasks"], found["scores"]) == (same["tasks"], same["scores"])


def test_columns_may_name_more_than_are_used(folder, capsys):
    (folder / "x.csv").write_text("".join(f"7,{row},9\n" for row in ROWS.split()))
    same, _ = document(capsys, "aggregate", "labels.csv", *QUICK)
    found, _ = document(capsys, "aggregate", "x.csv", *QUICK, "--columns", "x,task,worker,label,x")
    assert found["tasks"] == same["tasks"]


def test_a_header_that_is_there_is_noticed(folder, capsys):
    same, _ = document(capsys, "aggregate", "labels.csv", *QUICK)
    columns = ("--columns", "task,worker,label")
    found, lines = document(capsys, "aggregate", "labels.csv", *QUICK, *columns)
    assert found["tasks"] == same["tasks"]
    assert lines == [
        (
            "bayescrowd: labels.csv: left out row 1 ('task', 'worker', 'label'), which is a "
            "header; the columns have the names that --columns gives them"
        )
    ]


@pytest.mark.parametrize(
    ("contents", "columns", "message"),
    [
        (ROWS, "task,worker", "row 1 has 3 fields, but --columns names 2 columns; expected a name"),
        ("1\n2\n", "task,worker,label", "row 1 has 1 field, but --columns names 3 columns"),
        (ROWS + "4,ann\n", "task,worker,label", "row 7 does not match --columns: expected 3 fie"),
        (ROWS + "4,ann,\xff\n", "task,worker,label", "row 7, column 'label': byte 0xff is not UTF"),
        (ROWS, "a,b,c", "no column for the task; the columns are 'a', 'b', 'c'; expected one of"),
        (ROWS, "task,task,label", "two columns are named 'task'; expected one for the task"),
        (HEADER + ROWS, "worker,task,label", "row 1 is a header and has 'task' in another place"),
        ("1,ann,cat\n,bob,cat\n", "task,worker,label", "row 2, column 'task': missing task id"),
    ],
)
def test_columns_that_do_not_fit(folder, capsys, contents, columns, message):
    (folder / "x.csv").write_text(contents, encoding="latin-1")
    assert message in refusal(capsys, "aggregate", "x.csv", *QUICK, "--columns", columns)


def test_columns_are_for_delimited_text(folder, capsys):
    (folder / "x.jsonl").write_text('{"task": 1, "worker": 2, "label": 3}\n')
    line = refusal(capsys, "aggregate", "x.jsonl", "--columns", "task,worker,label")
    assert "--columns names the columns of a CSV or TSV file without a header" in line


def test_a_missing_header_is_a_possible_reason(folder, capsys):
    (folder / "x.csv").write_text(ROWS)
    assert refusal(capsys, "aggregate", "x.csv").endswith("or --columns if the file has no header")


# Spellings


def test_spellings_are_reported_and_merged(folder, capsys):
    (folder / "x.csv").write_text(HEADER + ROWS.replace("3,bob,dog", "3,bob,DOG "))
    (folder / "t.csv").write_text("task,truth\n1,CAT\n3,Dog\n")
    given = ("aggregate", "x.csv", *QUICK, "--truth", "t.csv")
    found, lines = document(capsys, *given)
    assert len(found["classes"]) == 3
    assert "x.csv: labels that differ only in case" in lines[0]
    assert "'DOG ' (1), 'dog' (2)" in lines[0] or "'dog' (2), 'DOG ' (1)" in lines[0]
    assert lines[0].endswith("; --tidy merges them")
    assert "'CAT' (1), where the class is 'cat'" in lines[1]
    found, lines = document(capsys, *given, "--tidy")
    assert [row["class"] for row in found["classes"]] == ["cat", "dog"]
    assert found["scores"]["accuracy"] == 1
    assert [line.rpartition("blanks: ")[2] for line in lines] == [
        "'DOG ' (1) into 'dog' (2)",
        "'CAT' (1) into 'cat'; 'Dog' (1) into 'dog'",
    ]


@pytest.mark.parametrize("command", ["workers", "panel"])
def test_every_command_merges(folder, capsys, command):
    (folder / "x.csv").write_text(HEADER + ROWS.replace("3,bob,dog", "3,bob,DOG "))
    assert "3 classes" in _summary(capsys, command, "x.csv")
    assert "2 classes" in _summary(capsys, command, "x.csv", "--tidy")


def _summary(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


# Data sets by name


def test_a_data_set_is_scored_against_its_own_truth(folder, capsys):
    found, lines = document(capsys, "aggregate", "small", *QUICK)
    assert (found["input"]["source"], found["input"]["n_labels"], lines) == ("small", 6, [])
    assert found["scores"]["n"] == 3
    # tasks 1 and 3 are unanimous and right; the tie of task 2 counts as half right
    assert found["scores"]["accuracy"] == pytest.approx(2.5 / 3)
    assert "scored on 3 tasks of small" in _summary(capsys, "aggregate", "small", *QUICK)


def test_the_truth_of_a_data_set_may_be_its_gold(folder, capsys):
    found, _ = document(capsys, "aggregate", "small", *QUICK, "--gold", "small")
    assert (found["input"]["n_gold"], found["scores"]) == (3, None)
    assert [task["label"] for task in found["tasks"]] == [1, 1, 2]


def test_a_data_set_without_truth_is_not_scored(folder, capsys):
    assert document(capsys, "aggregate", "truthless", *QUICK)[0]["scores"] is None
    line = refusal(capsys, "aggregate", "small", *QUICK, "--truth", "truthless")
    assert line == "bayescrowd: --truth truthless: no truth is known for this data set"


def test_the_truth_of_a_data_set_scores_a_file(folder, capsys):
    (folder / "x.csv").write_text(HEADER + "1,a,1\n3,a,2\n9,a,1\n")
    found, _ = document(capsys, "aggregate", "x.csv", *QUICK, "--truth", "small")
    assert (found["scores"]["n"], found["scores"]["accuracy"]) == (2, 1)


@pytest.mark.parametrize("command", ["workers", "panel", "compare", "posterior"])
def test_every_command_takes_data_sets(folder, capsys, command):
    few = ("--chains", "2", "--draws", "50", "--most-draws", "50", "--warmup", "20")
    options = {
        "compare": (*few, "--models", "one_coin"),
        "posterior": (*few, "--model", "one_coin"),
    }
    found, _ = document(capsys, command, "small", *options.get(command, ()))
    assert "small" in json.dumps(found)
    if command == "posterior":
        assert found["scores"]["n"] == 3


def test_bench_takes_data_sets(folder, capsys):
    chosen = ("--methods", "MajorityVote", "--reference", "MajorityVote")
    found, _ = document(capsys, "bench", "small", *chosen)
    (crowd,) = found["crowds"]
    assert (crowd["crowd"], crowd["n_labels"], crowd["n_scored"]) == ("small", 6, 3)
    # tasks 1 and 3 are unanimous and right; the tie of task 2 counts as half wrong
    assert found["results"][0]["error"] == pytest.approx(0.5 / 3)
    line = refusal(capsys, "bench", "small,truthless", *chosen)
    assert line.startswith("bayescrowd: no truth is known for the data set 'truthless'")
    line = refusal(capsys, "bench", "small,truthles", *chosen)
    assert line == (
        "bayescrowd: truthles: there is no such file; did you mean truthless, a data set?"
    )


def test_reading_options_for_labels_apply_to_data_sets(folder, capsys):
    found, _ = document(capsys, "aggregate", "small", *QUICK, "--classes", "2,1,0")
    assert [row["class"] for row in found["classes"]] == ["2", "1", "0"]
    assert found["scores"]["n"] == 3


def test_a_file_wins_over_the_data_set(folder, capsys):
    (folder / "small").write_text(HEADER + ROWS)
    found, lines = document(capsys, "aggregate", "small", *QUICK)
    assert found["tasks"][0]["label"] == "cat"
    assert found["scores"] is None
    assert lines == ["bayescrowd: small: read the file of this name, not the data set small"]


def test_a_folder_does_not_hide_the_data_set(folder, capsys):
    (folder / "small").mkdir()
    assert document(capsys, "aggregate", "small", *QUICK)[0]["input"]["n_labels"] == 6


def test_options_about_columns_are_not_for_data_sets(folder, capsys):
    line = refusal(capsys, "aggregate", "small", "--task", "item")
    assert (
        line == "bayescrowd: --task is about the columns of a file, but small is a data set by name"
    )


# Encodings


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("extension", ["csv", "tsv", "jsonl", "json"])
def test_encodings(folder, capsys, encoding, extension):
    frame = pd.read_csv(folder / "labels.csv").replace("cat", "kočka")
    text = {
        "csv": frame.to_csv(index=False),
        "tsv": frame.to_csv(index=False, sep="\t"),
        "jsonl": frame.to_json(orient="records", lines=True, force_ascii=False),
        "json": frame.to_json(orient="records", force_ascii=False),
    }[extension]
    mark = "\ufeff" if encoding[-2:] in ("le", "be") else ""
    (folder / f"x.{extension}").write_bytes((mark + text).encode(encoding))
    found, _ = document(capsys, "aggregate", f"x.{extension}", *QUICK)
    assert found["tasks"][0]["label"] == "kočka"


# Files that cannot be read

BAD_FILES = {
    "empty.csv": (b"", "the file is empty"),
    "blank.csv": (b"\n\n \n", "the file is empty"),
    "header.csv": (b"task,worker,label\n", "the table has no rows"),
    "header_unended.csv": (b"task,worker,label", "the table has no rows"),
    "nul.csv": (
        b"task,worker,label\n1,a\0,x\n2,b,y\n",
        "row 2, column 'worker': 'a\\x00' holds a N",
    ),
    "nuls.csv": (b"\0" * 100, "no column for the task"),
    "nul_header.csv": (b"ta\0sk,worker,label\n1,a,x\n2,b,y\n", "no column for the task"),
    "short.csv": (b"task,worker,label\n1,a,x\n2,b\n", "row 3 does not match the header"),
    "long.csv": (b"task,worker,label\n1,a,x,7\n2,b,y\n", "row 2 does not match the header"),
    "twice.csv": (b"task,worker,label,label\n1,a,x,y\n", "two columns are named 'label'"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "byte 0x89 is not UTF-8"),
    "noise.csv": (bytes((i * 7919 + 13) % 256 for i in range(5000)), "is not UTF-8"),
    "workbook.csv": (b"PK\x03\x04" + b"\0" * 50, "this is a zip archive"),
    "cut.csv": (gzip.compress(ROWS.encode(), mtime=0)[:-5], "truncated or damaged gzip file"),
    "latin.csv": (
        "task,worker,label\n1,Zoë,ja\n".encode("latin-1"),
        "row 2, column 'worker': byte",
    ),
    "latin_header.csv": ("tâche,worker,label\n".encode("latin-1"), "row 1: byte 0xe2 is not UTF-8"),
    "utf16_cut.csv": ((HEADER + ROWS).encode("utf-16")[:-1], "truncated or damaged UTF-16 text"),
    "utf16_bare.csv": ((HEADER + ROWS).encode("utf-16-le"), "UTF-16 text without its mark"),
    "utf32.csv": (HEADER.encode("utf-32"), "this is UTF-32 text"),
    "utf16_noise.csv": (b"\xff\xfe" + bytes(range(256)) * 3, "truncated or damaged UTF-16 text"),
    "quote.csv": (b'task,worker,label\n1,"a,x\n2,b,y\n', "row 2: a quoted field is never closed"),
    "page.csv": (b"<!DOCTYPE html>\n<html></html>\n", "no column for the task"),
    "field.csv": (b"x" * 300_000, "row 1 is not the header of a table"),
    "one_class.csv": (b"task,worker,label\n1,a,x\n", "one class only"),
    "no_id.csv": (b"task,worker,label\n,a,x\n2,b,y\n", "row 2, column 'task': missing task id"),
    "no_label.csv": (b"task,worker,label\n1,a,\n2,b,\n", "column 'label' is empty in every row"),
    "list.json": (b"[1, 2]", "row 1 of the array"),
    "object.json": (b"{}", "found an empty object"),
    "number.json": (b"3", "expected a JSON array"),
    "array.json": (b"[]", "expected"),
    "mixed.json": (b'[{"task": 1}, 2]', "row 2 of the array"),
    "cut.jsonl": (b'{"task": 1\n', "row 1: invalid JSON"),
    "nested.json": (b'{"a": {"1": [1]}}', "judge 'a', task '1': found a list"),
    "label.json": (
        b'[{"task": 1, "worker": 2, "label": {}}]',
        "row 1, column 'label': found a dict",
    ),
    "head.parquet": (b"PAR1" + b"\0" * 50, "truncated or damaged Parquet file"),
    "text.parquet": (b"hello", "truncated or damaged Parquet file"),
    "letter.doc": (b"hello", "unknown extension '.doc'"),
}


@pytest.mark.parametrize("options", [(), ("--tidy",)], ids=["plain", "tidy"])
@pytest.mark.parametrize("name", [*BAD_FILES, "folder.csv", "folder", "absent.csv"])
def test_files_that_cannot_be_read(folder, capsys, name, options):
    (folder / "folder.csv").mkdir()
    (folder / "folder").mkdir()
    contents, message = BAD_FILES.get(name, (None, "this is a folder; expected a file"))
    if contents is not None:
        (folder / name).write_bytes(contents)
    elif name == "absent.csv":
        message = "there is no such file"
    for command in (("aggregate", *QUICK), ("workers",)):
        line = refusal(capsys, command[0], name, *command[1:], *options)
        assert line.startswith(f"bayescrowd: {name}: ")
        assert message in line
        assert len(line) < 600


FIT_FOR_KNOWN_LABELS = {"one_class.csv", "nul.csv", "latin.csv"}
"""One class is enough, and the column of the worker is not read."""


# Where types are checked, a protocol's check reads the columns first, and fails in its own words.
@pytest.mark.parametrize(
    "name", [n for n in BAD_FILES if n.endswith(("csv", "json")) and n not in FIT_FOR_KNOWN_LABELS]
)
def test_known_labels_that_cannot_be_read(folder, capsys, name):
    (folder / name).write_bytes(BAD_FILES[name][0])
    line = refusal(capsys, "aggregate", "labels.csv", *QUICK, "--truth", name)
    assert line.startswith(f"bayescrowd: {name}: ")
