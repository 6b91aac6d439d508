"""Text that a spreadsheet would run is written with an apostrophe, and read without it."""

import csv

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import example, given

from bayescrowd.data.annotations import Annotations
from bayescrowd.io.cells import quote_table, quote_text, unquote_text
from bayescrowd.io.reading import read_annotations, read_truth
from bayescrowd.io.writing import csv_text, write_table

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "-", "-a"]
NUMBERS = ["-1", "+1", "-1.5", "-.5", "-1.", "-1e5", "+2E-3"]

texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.text("'=+-@\t\r\n1a", max_size=6)


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text):
    assert quote_text(text) == f"'{text}"
    assert quote_text(f"'{text}") == f"''{text}"


@pytest.mark.parametrize("text", [*NUMBERS, "a=1", "it's", "'tis", "''", "'", "", "1-1"])
def test_other_text_is_unchanged(text):
    assert quote_text(text) == text


@given(texts)
@example("'-1")
@example("''=")
def test_unquoting_restores_every_text(text):
    assert unquote_text(quote_text(text)) == text


@given(texts)
def test_no_quoted_text_runs_as_a_formula(text):
    cell = quote_text(text)
    is_number = cell.lstrip("+-")[:1].isdigit() or cell.lstrip("+-").startswith(".")
    assert cell[:1] not in tuple("=+-@\t\r\n") or (is_number and float(cell) is not None)


def test_numbers_of_a_table_stay_numbers():
    frame = pd.DataFrame({"task": ["-1", "=x"], "p": [-0.5, 1.0], "n": [-1, 2]})
    assert csv_text(frame) == "task,p,n\n-1,-0.5,-1\n'=x,1.0,2\n"
    assert csv_text(frame, raw_cells=True) == "task,p,n\n-1,-0.5,-1\n=x,1.0,2\n"
    assert csv_text(frame.astype({"task": "category"})) == csv_text(frame)
    assert frame["task"].tolist() == ["-1", "=x"]


def test_mixed_cells_and_headers():
    frame = pd.DataFrame({"=h": pd.Series([1, True, "@x", None], dtype=object)})
    assert csv_text(frame) == "'=h\n1\nTrue\n'@x\n\"\"\n"
    assert quote_table(pd.DataFrame()).empty


ids = texts.filter(lambda text: text.strip() and "\0" not in text)


@pytest.mark.filterwarnings("ignore::bayescrowd.io.spellings.SpellingWarning")
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
@given(
    rows=st.lists(
        st.tuples(ids, ids, ids), min_size=2, max_size=6, unique_by=lambda row: row[:2]
    ).filter(lambda rows: len({row[2] for row in rows}) > 1)
)
@example(rows=[("=1", "a", "-1"), ("'=1", "b\r", "'-1"), ("''=1", "\rc", "+x")])
def test_files_are_read_back_exactly(tmp_path_factory, name, rows):
    path = tmp_path_factory.mktemp("cells") / name
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    write_table(frame, path)
    back = read_annotations(path).to_frame()
    # A column of plain integers is read as integers, with or without an apostrophe in front.
    assert sorted(map(tuple, back.astype(str).to_numpy())) == sorted(rows)


def test_truth_is_read_back(tmp_path):
    ann = Annotations.from_matrix([["=a", "-b"], ["-b", "-b"]])
    table = pd.DataFrame({"task": ann.tasks, "truth": ["=a", "-b"]})
    write_table(table, tmp_path / "truth.csv")
    assert "'=a" in (tmp_path / "truth.csv").read_text()
    assert read_truth(tmp_path / "truth.csv", ann).tolist() == ["=a", "-b"]
    raw = read_truth(tmp_path / "truth.csv", ann, raw_cells=True)
    assert raw.tolist() == ["'=a", "'-b"]  # classes that nobody chose


def test_raw_cells_are_read_as_they_are(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n'=1,a,x\n=1,b,y\n")
    assert list(read_annotations(path, raw_cells=True).tasks) == ["'=1", "=1"]
    assert list(read_annotations(path).tasks) == [
        "=1"
    ]  # as if written by hand, with only one of them quoted


def test_carriage_returns_do_not_break_rows(tmp_path):
    write_table(pd.DataFrame({"task": ["a\rb", "c"]}), tmp_path / "x.csv")
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["task"], ["a\rb"], ["c"]]
