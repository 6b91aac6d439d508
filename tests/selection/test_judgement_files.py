"""Judgements, targets and costs from files."""

import json

import pandas as pd
import pytest

from bayescrowd.selection.judgement_files import read_costs, read_judgements, read_targets

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
    with pytest.raises(ValueError, match=r"bad.csv: the cost of 'tall' is 'cheap', no number"):
        read_costs("bad.csv")


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
