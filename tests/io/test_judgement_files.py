"""Judgements, targets and costs from files."""

import json
import re

import pandas as pd
import pytest

from bayescrowd.io.judgement_files import read_costs, read_judgements, read_targets

ROWS = [("7", "tall", "1"), ("7", "tall", "0.5"), ("08", "tall", "1e0"), ("08", "wide", "")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["object,attribute,value", *map(",".join, ROWS)]
    (tmp_path / "j.csv").write_text("\n".join(lines))
    (tmp_path / "j.tsv").write_text("\n".join(lines).replace(",", "\t"))
    (tmp_path / "semicolon.csv").write_text("\n".join(lines).replace(",", ";"))
    objects = [{"item": o, "question": a, "rating": float(v) if v else None} for o, a, v in ROWS]
    (tmp_path / "j.jsonl").write_text("\n".join(map(json.dumps, objects)))
    pd.DataFrame(objects).to_parquet(tmp_path / "j.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["j.csv", "j.tsv", "semicolon.csv", "j.jsonl", "j.parquet"])
def test_every_format_is_read_the_same(folder, name):
    data = read_judgements(name)
    assert data.objects.tolist() == ["08", "7"]
    assert data.attributes.tolist() == ["tall", "wide"]
    assert data.means[:, 0].tolist() == [1.0, 0.75]
    assert data.n_judgements == 3


def test_ids_are_text_and_columns_may_be_named(folder):
    (folder / "t.csv").write_text("photo,centimetres,y\n7,180,1\n08,170,\n")
    target = read_targets("t.csv", object="photo", target="centimetres")
    assert target.to_dict() == {"7": 180, "08": 170}
    with pytest.raises(ValueError, match=r"t.csv: no column 'height' for the target"):
        read_targets("t.csv", object="photo", target="height")
    with pytest.raises(ValueError, match=r"t.csv: no column for the object; the columns are"):
        read_targets("t.csv")


def test_costs(folder):
    (folder / "c.csv").write_text("attribute,cost\ntall,1\nwide,4.5\n")
    assert read_costs("c.csv").to_dict() == {"tall": 1.0, "wide": 4.5}
    (folder / "bad.csv").write_text("attribute,cost\ntall,cheap\n")
    with pytest.raises(ValueError, match=r"^bad.csv: row 2, column 'cost': expected a number"):
        read_costs("bad.csv")


TARGETS = pd.Index(["7", "08"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("7,1\n08,tall\n", "row 3, column 'target': expected a finite number, not 'tall'"),
        ("7,1\n9,inf\n08,3\n", "row 3, column 'target': expected a finite number, not 'inf'"),
        ("7,1\n9,nine\n08,3\n", "row 3, column 'target': expected a finite number, not 'nine'"),
        (
            "7,1\n08, \n",
            (
                "row 3, column 'target': the target of object '08' is missing (1 in all); expected "
                "a finite number for every object that was judged"
            ),
        ),
        (
            "9,1\n",
            (
                "the target of object '7' is missing (2 in all); expected a finite number for "
                "every object that was judged"
            ),
        ),
    ],
)
def test_wrong_targets_are_placed(folder, content, message):
    (folder / "t.csv").write_text(f"object,target\n{content}")
    with pytest.raises(ValueError, match=f"^{re.escape(f't.csv: {message}')}$"):
        read_targets("t.csv", objects=TARGETS)


def test_objects_that_were_not_judged_need_no_target(folder):
    (folder / "t.csv").write_text("object,target\n7,1\n9,\n08,2\n")
    assert read_targets("t.csv", objects=TARGETS)[["7", "08"]].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tall,1\nwide,0\n", "row 3, column 'cost': expected a number above 0, not 0"),
        ("tall,1\nwide,-2.5\n", "row 3, column 'cost': expected a number above 0, not '-2.5'"),
        ("tall,free\nwide,1\n", "row 2, column 'cost': expected a number above 0, not 'free'"),
        ("tall,inf\nwide,1\n", "row 2, column 'cost': expected a number above 0, not 'inf'"),
        ("tall,1\nwide,\n", "row 3, column 'cost': expected a number above 0, not a blank"),
        (
            "tall,1\ndeep,2\nwide,1\n",
            (
                "row 3, column 'attribute': 'deep' is not an attribute of the judgements; expected "
                "one of 'tall', 'wide'"
            ),
        ),
        (
            "tall,1\n",
            (
                "the cost of attribute 'wide' is missing (1 in all); expected a number above 0 for "
                "every attribute"
            ),
        ),
    ],
)
def test_wrong_costs_are_placed(folder, content, message):
    (folder / "c.csv").write_text(f"attribute,cost\n{content}")
    with pytest.raises(ValueError, match=f"^{re.escape(f'c.csv: {message}')}"):
        read_costs("c.csv", attributes=pd.Index(["tall", "wide"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("object,attribute,value\n1,a,2\n1,a,high\n", "row 3, column 'value': 'high' is not a fin"),
        ("object,attribute,value\n1,a,2\n,a,3\n", "row 3, column 'object': the object is missing"),
        ("object,value\n1,2\n", "no column for the attribute"),
        ("", "the file is empty"),
    ],
)
def test_bad_judgements_are_placed(folder, content, message):
    (folder / "bad.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_judgements("bad.csv")


def test_bad_targets_are_placed(folder):
    (folder / "t.csv").write_text("object,target\n1,2\n1,3\n")
    with pytest.raises(ValueError, match=r"t.csv: row 3: object '1' is listed twice"):
        read_targets("t.csv")
    (folder / "t.csv").write_text("object,target\n1,2\n,3\n")
    with pytest.raises(ValueError, match=r"t.csv: row 3, column 'object': the object is missing"):
        read_targets("t.csv")
    (folder / "t.xlsx").write_text("a")
    with pytest.raises(ValueError, match=r"unknown extension '\.xlsx'"):
        read_targets("t.xlsx")
