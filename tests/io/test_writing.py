"""Files are written completely or not at all, and never replace another by accident."""

import gzip
import json
import os
import stat

import pandas as pd
import pytest
from matplotlib.figure import Figure

from bayescrowd.io.writing import (
    check_table_target,
    check_target,
    new_file,
    write_picture,
    write_table,
)

TABLE = pd.DataFrame({"task": ["é", "a,b"], "label": ["x", "y"], "p": [0.1, 1 / 3]})


def read_back(path):
    name = path.name
    if name.endswith((".parquet", ".pq")):
        return pd.read_parquet(path)
    if ".jsonl" in name or ".ndjson" in name:
        return pd.read_json(path, lines=True)
    return pd.read_csv(path, sep="," if ".csv" in name else "\t")


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.tab", "T.CSV", "t.csv.gz", "t.jsonl", "t.ndjson.gz", "t.parquet"]
)
def test_every_format_reads_back(tmp_path, name):
    write_table(TABLE, tmp_path / name)
    if name == "T.CSV":
        (tmp_path / name).rename(tmp_path / "t.csv")
        name = "t.csv"
    pd.testing.assert_frame_equal(read_back(tmp_path / name), TABLE, check_dtype=False)


def test_by_hand(tmp_path):
    write_table(TABLE, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == (
        'task,label,p\né,x,0.1\n"a,b",y,0.3333333333333333\n'.encode()
    )
    write_table(TABLE, tmp_path / "t.jsonl")
    first = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert json.loads(first) == {"task": "é", "label": "x", "p": 0.1}


def test_equal_tables_give_equal_gzip_files(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(TABLE, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"task,label,p\n")


def test_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    with new_file(path) as file:
        file.write(b"hello")
        assert not path.exists()
    assert path.read_bytes() == b"hello"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_interruption_leaves_nothing(tmp_path, before, error):
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)

    def write():
        with new_file(path, overwrite=True) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write()
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if before is None else [before])


def test_existing_file_is_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="exists, and overwrite is false"):
        write_table(TABLE, path)
    assert path.read_text() == "old"
    write_table(TABLE, path, overwrite=True)
    assert path.read_text() != "old"


def test_file_that_appears_in_the_meantime_is_kept(tmp_path):
    path = tmp_path / "file"

    def write():
        with new_file(path) as file:
            file.write(b"ours")
            path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError, match="appeared in the meantime"):
        write()
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["file"]


def test_without_hard_links(tmp_path, monkeypatch):
    def link(source, target):
        raise PermissionError("no hard links")

    monkeypatch.setattr(os, "link", link)
    with new_file(tmp_path / "file") as file:
        file.write(b"hello")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"hello"]


def test_permissions(tmp_path):
    mask = os.umask(0o022)
    try:
        with new_file(tmp_path / "file") as file:
            file.write(b"1")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    (tmp_path / "file").chmod(0o600)
    with new_file(tmp_path / "file", overwrite=True) as file:
        file.write(b"2")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"old")
    with new_file(tmp_path / "link", overwrite=True) as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.parquet.gz", "t.gz"])
def test_unknown_extension(tmp_path, name):
    for check in (lambda p: write_table(TABLE, p), check_table_target):
        with pytest.raises(ValueError, match=r"unknown extension .*; expected \.csv"):
            check(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_bad_targets(tmp_path):
    with pytest.raises(ValueError, match="this is a folder"):
        check_target(tmp_path)
    with pytest.raises(ValueError, match="expected an ordinary file"):
        check_target(os.devnull, overwrite=True)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_target(tmp_path / "absent" / "t.csv")


def test_ids_that_parquet_cannot_hold(tmp_path):
    mixed = pd.DataFrame({"task": pd.Series([1, "a"], dtype=object)})
    with pytest.raises(ValueError, match="Parquet cannot store this table"):
        write_table(mixed, tmp_path / "t.parquet")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "start"), [("a.PNG", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_picture_has_the_format_of_its_extension(tmp_path, name, start):
    write_picture(Figure(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(FileExistsError):
        write_picture(Figure(), tmp_path / name)
    write_picture(Figure(), tmp_path / name, overwrite=True, metadata={"Title": "a figure"})
    assert b"a figure" in (tmp_path / name).read_bytes()
