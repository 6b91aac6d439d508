"""Tables in files: nothing is lost in reading, and errors name the right place."""

import csv
import gzip
import io
import json
import sys

import hypothesis.strategies as st
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from bayescrowd.io.file_tables import (
    DelimitedText,
    JsonLines,
    Parquet,
    arrow_copy,
    file_contents,
    parse_json,
)


def read_text(text, names=None, delimiter=","):
    data = text if isinstance(text, bytes) else text.encode()
    table = DelimitedText("x.csv", data, delimiter)
    return table.read(names or table.columns).to_pydict()


def parquet_bytes(frame, **options):
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, **options), buffer)
    return buffer.getvalue()


# By hand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,x\n-2,y\n", {"a": [1, -2], "b": ["x", "y"]}),
        ("a,b\r\n1,x\r\n2,y", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\r1,x\r2,y\r", {"a": [1, 2], "b": ["x", "y"]}),
        ('a,b\n"1","x, y"\n2,"say ""no""\nnow"\n', {"a": [1, 2], "b": ["x, y", 'say "no"\nnow']}),
        ("a,b\n1,\n2,NA\n", {"a": [1, 2], "b": [None, "NA"]}),
        ("a,b\n,None\n2,null\n", {"a": [None, 2], "b": ["None", "null"]}),
        ('a,b\n1,""\n', {"a": [1], "b": [None]}),
        ("a,b\n1,5' 6\"\n", {"a": [1], "b": ["5' 6\""]}),
        ("\na,b\n\n1,x\n\n\n2,y\n\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\n", {"a": [], "b": []}),
    ],
    ids=["lf", "crlf", "cr", "quotes", "na", "null", "blank", "inch", "gaps", "no rows"],
)
def test_delimited_text(text, expected):
    assert read_text(text) == expected


@pytest.mark.parametrize(
    "value", ["007", "-0", "+1", "1.0", "1e3", " 1", "1 ", "0x1F", "1_000", "9223372036854775808"]
)
def test_text_that_is_not_a_canonical_integer_stays_text(value):
    assert read_text(f"a,b\n1,{value}\n2,3\n")["b"] == [value, "3"]


@pytest.mark.parametrize("value", [0, -1, 10, 2**63 - 1, -(2**63)])
def test_integers(value):
    assert read_text(f"a,b\n1,{value}\n2,\n")["b"] == [value, None]


def test_other_delimiters():
    assert read_text("a;b\n1;x,y\n", delimiter=";") == {"a": [1], "b": ["x,y"]}
    assert read_text("a\tb\n1\tx y\n", delimiter="\t") == {"a": [1], "b": ["x y"]}


def test_only_the_requested_columns_are_read():
    data = "a,note,b\n1,caf\xe9,x\n".encode("latin-1")
    assert read_text(data, ["b", "a"]) == {"b": ["x"], "a": [1]}


def test_rows_are_numbered_as_an_editor_shows_them():
    table = DelimitedText("x.csv", b'a,b\n\n1,x\n"2\n2",y\n\n3,z\n', ",")
    assert [table.row_number(i) for i in range(3)] == [3, 4, 6]


def test_a_huge_field_does_not_hide_the_row_number():
    long = b"x" * (csv.field_size_limit() + 1)
    table = DelimitedText("x.csv", b"a,b\n1," + long + b"\n2,y\n", ",")
    assert table.read(["a"]).to_pydict() == {"a": [1, 2]}
    assert table.row_number(1) == 3
    ragged = DelimitedText("x.csv", table.data + b"3\n", ",")
    with pytest.raises(ValueError, match=r"x\.csv: CSV parse error: Expected 2 columns, got 1"):
        ragged.read(["a"])


def test_a_row_longer_than_two_blocks():
    long = "x" * 13_000_000
    assert read_text(f"a,b\n1,y\n2,{long}\n3,z\n") == {"a": [1, 2, 3], "b": ["y", long, "z"]}


def test_json_lines_keep_their_types():
    lines = '{"a": 1, "b": "007"}\n\n{"a": true, "c": null}\r\n{"a": 2.5, "b": "2020-01-01"}'
    table = JsonLines("x.jsonl", lines.encode())
    assert table.columns == ["a", "b", "c"]
    frame = table.read(["a", "b", "c"])
    assert frame["a"].tolist() == [1, True, 2.5]
    assert frame["b"].tolist() == ["007", None, "2020-01-01"]
    assert [table.row_number(i) for i in range(3)] == [1, 3, 4]


def test_parquet_keeps_types_order_and_index():
    labels = pd.Categorical(["b", None], categories=["b", "a"], ordered=True)
    frame = pd.DataFrame({"a": ["007", "x"], "b": labels}, index=pd.Index([5, 6], name="task"))
    table = Parquet("x.parquet", parquet_bytes(frame))
    assert table.columns == ["a", "b", "task"]
    back = table.read(["task", "b"])
    assert back["task"].to_pylist() == [5, 6]
    assert back["b"].to_pandas().cat.ordered
    assert table.row_number(0) == 1


def test_file_contents(tmp_path, monkeypatch):
    plain, packed = tmp_path / "a.csv", tmp_path / "b.csv.gz"
    plain.write_bytes(b"a,b\n")
    packed.write_bytes(gzip.compress(b"a,", mtime=0) + gzip.compress(b"b\n", mtime=0))
    assert file_contents(plain) == (str(plain), b"a,b\n")
    assert file_contents(str(packed)) == (str(packed), b"a,b\n")
    plain.write_text("a,b\n", encoding="utf-8-sig")
    assert file_contents(plain) == (str(plain), b"a,b\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n")))
    assert file_contents("-") == ("standard input", b"a,b\n")


# Invariants

FIELDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8))
def test_delimited_text_is_read_without_loss(rows):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b"])
    writer.writerows(rows)
    read = read_text(buffer.getvalue())
    for column, values in zip(("a", "b"), zip(*rows, strict=True), strict=True):
        assert ["" if v is None else str(v) for v in read[column]] == list(values)


@given(st.lists(st.one_of(FIELDS, st.integers(), st.booleans(), st.none()), min_size=1))
def test_json_lines_are_read_without_loss(values):
    lines = "\n".join(json.dumps({"a": value}) for value in values).encode()
    read = JsonLines("x.jsonl", lines).read(["a"])["a"].tolist()
    assert read == values
    assert [type(v) for v in read] == [type(v) for v in values]


def test_blocks_make_no_difference():
    # More than one block of text, with new values in each.
    n = 700_000
    rows = "\n".join(f"{i},w{i % 7}" for i in range(n))
    table = DelimitedText("x.csv", f"task,worker\n{rows}\n".encode(), ",").read(["task", "worker"])
    assert len(table["worker"].unique()) == 7
    assert table["task"].to_pandas().astype(int).tolist() == list(range(n))


# Bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n2\n", "x.csv: row 3 does not match the header: expected 2 fields, found 1"),
        (
            "a,b\n1,x\n\n2,y,z\n",
            "x.csv: row 4 does not match the header: expected 2 fields, found 3",
        ),
        (b"a,b\n1,x\n2,\xe9\n", "x.csv: row 3, column 'b': byte 0xe9 is not UTF-8"),
        (b"a,\xe9\n1,x\n", "x.csv: row 1: byte 0xe9 is not UTF-8"),
        ("a,b,a\n1,x,2\n", "x.csv: row 1: two columns are named 'a'"),
        ('a,b\n1,x\n2,"y\n3,z\n', "x.csv: row 3: a quoted field is never closed"),
        ("a,b", "x.csv: the table has no rows below its header"),
        ("a" * 200_000, "x.csv: row 1 is not the header of a table"),
    ],
)
def test_bad_delimited_text(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_text(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b'{"a": 1}\n\n{"a": 1,\n', "x.jsonl: row 3: invalid JSON at character 9"),
        (b'{"a": 1}\n[1, 2]\n', "x.jsonl: row 2: found a list; expected one JSON object per line"),
        (b'{"a": "\xe9"}\n', "x.jsonl: row 1: byte 0xe9 is not UTF-8"),
    ],
)
def test_bad_json_lines(lines, message):
    with pytest.raises(ValueError, match=message):
        JsonLines("x.jsonl", lines).read(["a"])


def test_bad_json_array():
    with pytest.raises(ValueError, match=r"x\.json: invalid JSON at line 2, character 3"):
        parse_json(b'[{"a": 1},\n  nope]', "x.json")


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.99])
def test_truncated_parquet(cut):
    data = parquet_bytes(pd.DataFrame({"a": range(1000)}))
    with pytest.raises(ValueError, match=r"x\.parquet: truncated or damaged Parquet") as caught:
        Parquet("x.parquet", data[: int(len(data) * cut)]).read(["a"])
    assert "\n" not in str(caught.value)


def test_damaged_parquet_pages():
    data = parquet_bytes(pd.DataFrame({"a": range(1000)}))
    with pytest.raises(ValueError, match=r"x\.parquet: truncated or damaged Parquet file"):
        Parquet("x.parquet", data[:4] + b"\xff" * 600 + data[604:]).read(["a"])


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "the file is empty; expected a header and rows"),
        (b" \n\n", "the file is empty"),
        (b"\xef\xbb\xbf\n", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (gzip.compress(b"a,b\n1,x\n" * 99, mtime=0)[:-20], "truncated or damaged gzip file"),
        (b"\x1f\x8b\x08" + b"x" * 40, "truncated or damaged gzip file"),
        ("a,b\n".encode("utf-16-le"), "this is UTF-16 text without its mark; expected text in UT"),
        ("a,b\n".encode("utf-16-be"), "this is UTF-16 text without its mark"),
        ("a,b\n".encode("utf-32"), "this is UTF-32 text; expected text in UTF-8: save the file"),
        ("a,b\n".encode("utf-16")[:-1], r"truncated or damaged UTF-16 text \(truncated data at"),
        (b"\xff\xfe", "the file is empty"),
        (b"PK\x03\x04" + b"x" * 40, "this is a zip archive, such as an Excel workbook; expected"),
    ],
    ids=[
        *("empty", "blank", "mark only", "empty gzip", "truncated gzip", "damaged gzip"),
        *("utf-16-le", "utf-16-be", "utf-32", "cut utf-16", "mark of utf-16 only", "zip"),
    ],
)
def test_bad_contents(tmp_path, contents, message):
    path = tmp_path / "x.csv"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=rf"x\.csv: {message}"):
        file_contents(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file"):
        file_contents(tmp_path / "gone.csv")


def test_a_folder(tmp_path):
    with pytest.raises(ValueError, match="this is a folder; expected a file"):
        file_contents(tmp_path)


# Memory of the readers


def test_arrow_reads_from_its_own_memory():
    # Arrow's threads may release their input during shutdown, so that Python must not own it.
    data = b"task,worker,label\n1,a,x\n" * 1000
    before = sys.getrefcount(data)
    buffer = arrow_copy(data)
    assert sys.getrefcount(data) == before
    assert buffer.to_pybytes() == data
    assert arrow_copy(b"").size == 0


def test_an_open_parquet_file_uses_no_memory_of_python():
    data = parquet_bytes(pd.DataFrame({"task": [1, 2]}))
    before = sys.getrefcount(data)
    table = Parquet("x.parquet", data)
    assert table.read(["task"]).to_pydict() == {"task": [1, 2]}
    assert sys.getrefcount(data) == before + 1  # the table's own


# JSON that Python cannot parse


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000])
def test_deeply_nested_json(text):
    with pytest.raises(ValueError, match=r"^x: row 3: arrays or objects are nested too deeply"):
        parse_json(text, "x: row 3")


def test_integers_of_very_many_digits():
    with pytest.raises(ValueError, match=r"^x: row 3: an integer has more than 4,300 digits"):
        parse_json(b'{"task": ' + b"9" * 5_000 + b"}", "x: row 3")
