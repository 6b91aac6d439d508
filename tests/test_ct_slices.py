"""The table of CT slices: found, checked, refused."""

import gzip

import pytest

import bayescrowd as bc
from bayescrowd import ct_slices


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


def test_no_file_and_no_network(folder, monkeypatch):
    monkeypatch.setattr(ct_slices, "URL", "http://127.0.0.1:9/absent.zip")
    assert not ct_slices.is_local(ct_slices.FULL)
    with pytest.raises(ConnectionError, match="could not be downloaded"):
        bc.load_table("ct-slices")
    assert list((folder / "cache").iterdir()) == []
    with pytest.raises(FileNotFoundError, match="first_682_rows"):
        ct_slices.load_ct_slices(ct_slices.EXCERPT)
