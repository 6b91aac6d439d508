"""The table of CT slices is found, checked and, if it is not the published one, refused."""

import gzip
import tracemalloc
import zipfile

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.datasets import ct_slices
from bayescrowd.datasets.public_files import find_local


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESCROWD_DATA", str(tmp_path))
    monkeypatch.setenv("BAYESCROWD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_first_rows():
    if not ct_slices.is_local(ct_slices.EXCERPT):
        pytest.skip("the first 682 rows are not on this machine: set BAYESCROWD_DATA")
    table = ct_slices.load_ct_slices(ct_slices.EXCERPT)
    assert table.features.shape == (682, 385)
    assert table.features["patientId"].nunique() == 2
    assert table.target.between(0, 180).all()


def test_another_table_is_refused(folder):
    (folder / "slice_localization_data.csv").write_text("patientId,value0,reference\n0,1,2\n")
    assert ct_slices.is_local(ct_slices.FULL)
    with pytest.raises(ValueError, match="is not the published table of 53,500 rows"):
        bc.load_table("ct-slices")
    name = "ct_slices_first_682_rows.csv.gz"
    (folder / name).write_bytes(gzip.compress(b"patientId,value0,reference\n0,1,2\n"))
    with pytest.raises(ValueError, match="is not the published table of 682 rows"):
        ct_slices.load_ct_slices(ct_slices.EXCERPT)


@pytest.fixture(scope="module")
def whole():
    """A table of 53,500 rows that begins like the published one and continues with made-up rows."""
    if not ct_slices.is_local(ct_slices.EXCERPT):
        pytest.skip("the first 682 rows are not on this machine: set BAYESCROWD_DATA")
    lines = gzip.decompress(find_local(*ct_slices._NAMES[ct_slices.EXCERPT]).read_bytes()).split(
        b"\n"
    )[:683]
    patients = np.linspace(1, 73, 53_500 - 682).astype(int)
    bins = lines[-1].split(b",", 1)[1]
    return lines + [b"%d,%s" % (patient, bins) for patient in patients]


def zipped(folder, lines):
    with zipfile.ZipFile(folder / "slice_localization_data.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("slice_localization_data.csv", b"\r\n".join(lines) + b"\r\n")


def test_the_whole_table_is_checked(folder, whole):
    zipped(folder, whole)
    table = bc.load_table("ct-slices")
    assert table.features.shape == (53_500, 385)
    assert table.features["patientId"].nunique() == 74


@pytest.mark.parametrize(
    ("row", "entry", "value", "message"),
    [
        (40_000, 7, b"1.5", "a bin lies outside -1 to 1"),
        (53_500, 385, b"181", "a position lies outside 0 to 180"),
        (30_000, 12, b"high", "an entry is not a number"),
        (40_000, 0, b"99", "75 patients instead of 74"),
        (0, 5, b"value", "its first 682 rows differ"),
    ],
)
def test_rows_after_the_beginning_are_checked(folder, whole, row, entry, value, message):
    lines = list(whole)
    entries = lines[row].split(b",")
    entries[entry] = value
    lines[row] = b",".join(entries)
    (folder / "slice_localization_data.csv").write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=message):
        bc.load_table("ct-slices")


def test_unpacking_is_bounded(folder, whole, monkeypatch):
    """Small files that would unpack to 100 MB, where 682 rows need 1 MB, are not unpacked."""
    monkeypatch.setattr(ct_slices, "N_ROWS", 682)
    bomb = [*whole[:683], bytes(100_000_000)]
    zipped(folder, bomb)
    name = "ct_slices_first_682_rows.csv.gz"
    (folder / name).write_bytes(gzip.compress(b"\n".join(bomb), compresslevel=1))
    del bomb
    for which in (ct_slices.FULL, ct_slices.EXCERPT):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="it has more than 3,163,656 bytes"):
                ct_slices.load_ct_slices(which)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("slice_localization_data.zip", b"no archive"),
        ("slice_localization_data.zip", b"PK\x05\x06" + bytes(18)),  # an archive of nothing
        ("slice_localization_data.csv", b""),
        ("ct_slices_first_682_rows.csv.gz", b"not packed"),
        ("ct_slices_first_682_rows.csv.gz", gzip.compress(bytes(10_000))[:-4]),
    ],
    ids=["no archive", "empty archive", "empty", "not packed", "cut off"],
)
def test_files_that_cannot_be_read_are_refused(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} (cannot be unpacked|is not the published table)"):
        ct_slices.load_ct_slices(ct_slices.EXCERPT if name.endswith("gz") else ct_slices.FULL)


def test_no_file_and_no_network(folder, monkeypatch):
    monkeypatch.setattr(ct_slices, "URL", "http://127.0.0.1:9/absent.zip")
    assert not ct_slices.is_local(ct_slices.FULL)
    with pytest.raises(ConnectionError, match="could not be downloaded"):
        bc.load_table("ct-slices")
    assert list((folder / "cache").iterdir()) == []
    with pytest.raises(FileNotFoundError, match="first_682_rows"):
        ct_slices.load_ct_slices(ct_slices.EXCERPT)
