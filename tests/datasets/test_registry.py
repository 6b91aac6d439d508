import hashlib
from pathlib import Path

import numpy as np
import pytest

from bayescrowd.datasets import registry
from bayescrowd.datasets.public_files import PublicFile

CROWD = b"1\t1\t2\r\n1\t2\t1\r\n2\t1\t1\r\n2\t2\t1"
"""Labels of two workers on two tasks, with CRLF and no final newline, as in bluebird's file."""
TRUTH = b"1\t2\n1\t2\n2\t1\n2\t1\n"
"""Truth of two tasks, repeated once per judgement, as in dog's file."""
TINY = {"tiny_crowd.txt": CROWD, "tiny_truth.txt": TRUTH}


def require(name: str) -> None:
    """Skip the test unless the published files are on this machine; tests never download them."""
    if not registry.is_local(name):
        pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder that has it")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with the files of the data set 'tiny', which is added to the known ones."""
    monkeypatch.setenv("BAYESCROWD_DATA", str(tmp_path))
    monkeypatch.setenv("BAYESCROWD_CACHE", str(tmp_path / "cache"))
    for name, body in TINY.items():
        (tmp_path / name).write_bytes(body)
    files = tuple(
        PublicFile(name, hashlib.sha256(body).hexdigest(), "owner/repo")
        for name, body in TINY.items()
    )
    monkeypatch.setitem(registry._CROWDS, "tiny", registry._Entry(files, "two tasks", "made up"))
    return tmp_path


# By hand: the files of this module


def test_reads_crlf_missing_newline_and_repeated_truth(folder: Path) -> None:
    data = registry.load_dataset("tiny")
    assert data.annotations.to_frame().to_numpy().tolist() == [
        [1, 1, 2],
        [1, 2, 1],
        [2, 1, 1],
        [2, 2, 1],
    ]
    assert data.truth is not None
    assert data.truth.to_dict() == {1: 2, 2: 1}
    assert (data.truth.name, data.truth.index.name) == ("truth", "task")
    assert (data.name, data.description, data.source) == ("tiny", "two tasks", "made up")
    assert data.parameters is None


def test_fetch_and_is_local(folder: Path) -> None:
    assert registry.fetch("tiny") == [folder / name for name in TINY]
    assert registry.is_local("tiny")
    (folder / "tiny_truth.txt").unlink()
    assert not registry.is_local("tiny")


def test_anaesthetist_says_how_to_create_it(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"create it in R with write.csv") as caught:
        registry.load_dataset("anaesthetist")
    assert "\n" not in str(caught.value)
    (folder / "anaesthetist.csv").write_text("item,observer,label\n1,1,1\n")
    with pytest.raises(ValueError, match="is not the published file"):
        registry.load_dataset("anaesthetist")


# Reference: the published files, counted as their sources describe them


@pytest.mark.parametrize(
    ("name", "counts", "n_truth"),
    [
        ("bluebird", (2, 108, 39, 4_212), 108),
        ("rte", (2, 800, 164, 8_000), 800),
        ("trec", (2, 19_033, 762, 88_385), 2_275),
        ("dog", (4, 807, 109, 8_070), 807),
        ("web", (5, 2_665, 177, 15_567), 2_653),
        ("anaesthetist", (4, 45, 5, 315), 0),
    ],
)
def test_published_crowd(name: str, counts: tuple[int, int, int, int], n_truth: int) -> None:
    require(name)
    data = registry.load_dataset(name)
    ann = data.annotations
    assert (ann.n_classes, ann.n_tasks, ann.n_workers, ann.n_labels) == counts
    assert list(ann.classes) == list(range(1, ann.n_classes + 1))
    assert list(ann.workers) == list(range(1, ann.n_workers + 1))
    assert list(ann.tasks) == list(range(1, ann.n_tasks + 1))
    if n_truth == 0:
        assert data.truth is None
    else:
        assert data.truth is not None
        assert len(data.truth) == n_truth
        assert (ann.code_truth(data.truth) >= 0).sum() == n_truth


def test_anaesthetist_keeps_repeated_judgements() -> None:
    require("anaesthetist")
    ann = registry.load_dataset("anaesthetist").annotations
    assert ann.labels_per_worker.tolist() == [135, 45, 45, 45, 45]
    seventh = ann.select_tasks([7]).select_workers([1])
    assert seventh.to_frame()["label"].tolist() == [1, 1, 2]


def test_web_warns_about_its_truth() -> None:
    description = str(registry.catalogue().loc["web", "description"])
    assert "eight of its own most active workers" in description
    assert "no evidence of a method's quality" in description


def test_nursery() -> None:
    require("nursery")
    table = registry.load_table("nursery")
    assert table.features.shape == (12_960, 8)
    assert table.features.index.equals(table.target.index)
    assert not table.features.isna().any(axis=None)
    # Every combination of feature values occurs once.
    assert np.prod(table.features.nunique()) == 12_960 == len(table.features.drop_duplicates())
    assert table.target.value_counts()["recommend"] == 2
    assert repr(table) == "TableDataset('nursery': 12,960 rows, 8 features, 5 classes)"


def test_breast_cancer() -> None:
    require("breast-cancer")
    table = registry.load_table("breast-cancer")
    assert table.features.shape == (699, 9)
    assert table.features.index.equals(table.target.index)
    missing = table.features.isna().sum()
    assert missing.sum() == missing["bare_nuclei"] == 16
    assert table.features.min().min() == 1
    assert table.features.max().max() == 10
    assert table.target.value_counts().to_dict() == {2: 458, 4: 241}


# Bad input


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"no data set 'blubird'; did you mean bluebird\?"):
        registry.load_dataset("blubird")
    with pytest.raises(
        ValueError, match=r"no table 'iris'; expected one of nursery, breast-cancer"
    ):
        registry.load_table("iris")
    with pytest.raises(ValueError, match=r"no data set 'iris'; expected one of .*nursery"):
        registry.fetch("iris")


def test_wrong_loader() -> None:
    with pytest.raises(ValueError, match=r"use load_table\('nursery'\)"):
        registry.load_dataset("nursery")
    with pytest.raises(ValueError, match=r"use load_dataset\('rte'\)"):
        registry.load_table("rte")
