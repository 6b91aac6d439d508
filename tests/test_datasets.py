import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bayescrowd import datasets

CROWD = b"1\t1\t2\r\n1\t2\t1\r\n2\t1\t1\r\n2\t2\t1"
"""Two tasks, two workers; CRLF and no last newline, as bluebird's file has them."""
TRUTH = b"1\t2\n1\t2\n2\t1\n2\t1\n"
"""Each truth once per judgement, as in dog's file."""
TINY = {"tiny_crowd.txt": CROWD, "tiny_truth.txt": TRUTH}


def require(name: str) -> None:
    """Skip the test unless the published files are here; tests never download them."""
    if not datasets.is_local(name):
        pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder that has it")


class Reply(NamedTuple):
    """What the server on loopback answers to one path."""

    body: bytes
    status: int = 200
    missing_bytes: int = 0  # announced in Content-Length and never sent


class Server(ThreadingHTTPServer):
    replies: dict[str, Reply]
    requests: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        reply = self.server.replies.get(self.path, Reply(b"not here", 404))
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(reply.body) + reply.missing_bytes))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serves the data set 'tiny' of this module on loopback."""
    with Server(("127.0.0.1", 0), Handler) as listening:
        listening.replies = {f"/owner/repo/{name}": Reply(body) for name, body in TINY.items()}
        listening.requests = []
        monkeypatch.setattr(datasets, "BASE_URL", f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no BAYESCROWD_DATA, and the data set 'tiny' among the known ones."""
    monkeypatch.delenv("BAYESCROWD_DATA", raising=False)
    monkeypatch.setenv("BAYESCROWD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    files = tuple(
        datasets._File(name, hashlib.sha256(body).hexdigest(), "owner/repo")
        for name, body in TINY.items()
    )
    monkeypatch.setitem(datasets._CROWDS, "tiny", datasets._Entry(files, "two tasks", "made up"))
    return tmp_path / "cache"


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """An empty folder that BAYESCROWD_DATA names."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("BAYESCROWD_DATA", str(folder))
    return folder


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# By hand: the files of this module


def test_reads_crlf_missing_newline_and_repeated_truth(server: Server, cache: Path) -> None:
    tiny = datasets.load_dataset("tiny")
    assert tiny.annotations.to_frame().to_numpy().tolist() == [
        [1, 1, 2],
        [1, 2, 1],
        [2, 1, 1],
        [2, 2, 1],
    ]
    assert tiny.truth is not None
    assert tiny.truth.to_dict() == {1: 2, 2: 1}
    assert (tiny.truth.name, tiny.truth.index.name) == ("truth", "task")
    assert (tiny.name, tiny.description, tiny.source) == ("tiny", "two tasks", "made up")
    assert tiny.parameters is None


def test_downloads_once(server: Server, cache: Path) -> None:
    first = datasets.fetch("tiny")
    assert first == datasets.fetch("tiny") == [cache / name for name in TINY]
    assert [path.read_bytes() for path in first] == list(TINY.values())
    assert server.requests == [f"/owner/repo/{name}" for name in TINY]
    assert contents(cache) == sorted(TINY)


def test_prefers_the_given_folder(server: Server, cache: Path, data_folder: Path) -> None:
    for name, body in TINY.items():
        (data_folder / name).write_bytes(body)
    assert datasets.fetch("tiny") == [data_folder / name for name in TINY]
    assert server.requests == []


def test_file_missing_from_the_given_folder_is_downloaded(
    server: Server, cache: Path, data_folder: Path
) -> None:
    (data_folder / "tiny_truth.txt").write_bytes(TRUTH)
    assert not datasets.is_local("tiny")
    assert datasets.fetch("tiny") == [cache / "tiny_crowd.txt", data_folder / "tiny_truth.txt"]
    assert datasets.is_local("tiny")


def test_damaged_file_in_the_cache_is_downloaded_again(server: Server, cache: Path) -> None:
    cache.mkdir()
    (cache / "tiny_crowd.txt").write_bytes(CROWD[:-3])
    assert datasets.fetch("tiny")[0].read_bytes() == CROWD


def test_is_silent_without_a_terminal(
    server: Server, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    datasets.fetch("tiny")
    assert capfd.readouterr() == ("", "")


def test_shows_progress_on_a_terminal(
    server: Server,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    datasets.fetch("tiny")
    assert "100%" in capsys.readouterr().err


# Control: what must not pass


def test_corrupted_download(server: Server, cache: Path) -> None:
    server.replies["/owner/repo/tiny_truth.txt"] = Reply(TRUTH.replace(b"2", b"3"))
    with pytest.raises(ValueError, match=r"did not send the published tiny_truth.txt.*SHA-256"):
        datasets.load_dataset("tiny")
    assert contents(cache) == ["tiny_crowd.txt"]


def test_truncated_download(server: Server, cache: Path) -> None:
    server.replies["/owner/repo/tiny_crowd.txt"] = Reply(CROWD[:10], missing_bytes=len(CROWD) - 10)
    with pytest.raises((ConnectionError, ValueError), match=r"tiny_crowd.txt.*get http://127"):
        datasets.load_dataset("tiny")
    assert contents(cache) == []


def test_not_found(server: Server, cache: Path) -> None:
    server.replies.clear()
    with pytest.raises(ConnectionError, match=r"tiny_crowd.txt could not be .*\(HTTP 404\)"):
        datasets.load_dataset("tiny")
    assert contents(cache) == []


def test_connection_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unheard:  # bound, so that no one else takes the port, but deaf
        unheard.bind(("127.0.0.1", 0))
        monkeypatch.setattr(datasets, "BASE_URL", f"http://127.0.0.1:{unheard.getsockname()[1]}")
        with pytest.raises(ConnectionError) as caught:
            datasets.load_dataset("tiny")
    message = str(caught.value)
    assert "\n" not in message
    for advice in (f"{datasets.BASE_URL}/owner/repo/tiny_crowd.txt", str(cache), "BAYESCROWD_DATA"):
        assert advice in message
    assert contents(cache) == []


def test_advice_names_the_given_folder(server: Server, data_folder: Path) -> None:
    server.replies.clear()
    with pytest.raises(ConnectionError) as caught:
        datasets.load_dataset("tiny")
    assert f"save it as {data_folder / 'tiny_crowd.txt'}" in str(caught.value)


def test_corrupted_file_in_the_given_folder(server: Server, cache: Path, data_folder: Path) -> None:
    (data_folder / "tiny_crowd.txt").write_bytes(CROWD + b"\n")
    with pytest.raises(ValueError, match=r"data.tiny_crowd.txt is not the published file.*get"):
        datasets.load_dataset("tiny")
    assert server.requests == []


def test_cache_that_cannot_be_written(server: Server, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(OSError, match=r"the cache cannot take tiny_crowd.txt.*BAYESCROWD_CACHE"):
        datasets.load_dataset("tiny")


def test_anaesthetist_says_how_to_make_it(cache: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"make it in R with write.csv") as caught:
        datasets.load_dataset("anaesthetist")
    assert "\n" not in str(caught.value)
    cache.mkdir()
    (cache / "anaesthetist.csv").write_text("item,observer,label\n1,1,1\n")
    with pytest.raises(ValueError, match="is not the published file"):
        datasets.load_dataset("anaesthetist")


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
    data = datasets.load_dataset(name)
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
    ann = datasets.load_dataset("anaesthetist").annotations
    assert ann.labels_per_worker.tolist() == [135, 45, 45, 45, 45]
    seventh = ann.select_tasks([7]).select_workers([1])
    assert seventh.to_frame()["label"].tolist() == [1, 1, 2]


def test_web_warns_about_its_truth() -> None:
    description = datasets.catalogue().loc["web", "description"]
    assert "eight of its own heaviest workers" in description
    assert "no evidence of a method's quality" in description


def test_nursery() -> None:
    require("nursery")
    table = datasets.load_table("nursery")
    assert table.features.shape == (12_960, 8)
    assert table.features.index.equals(table.target.index)
    assert not table.features.isna().any(axis=None)
    # Every combination of the features' values stands once.
    assert np.prod(table.features.nunique()) == 12_960 == len(table.features.drop_duplicates())
    assert table.target.value_counts()["recommend"] == 2
    assert repr(table) == "TableDataset('nursery': 12,960 rows, 8 features, 5 classes)"


def test_breast_cancer() -> None:
    require("breast-cancer")
    table = datasets.load_table("breast-cancer")
    assert table.features.shape == (699, 9)
    assert table.features.index.equals(table.target.index)
    missing = table.features.isna().sum()
    assert missing.sum() == missing["bare_nuclei"] == 16
    assert table.features.min().min() == 1
    assert table.features.max().max() == 10
    assert table.target.value_counts().to_dict() == {2: 458, 4: 241}


# Bad input


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"no data set 'blubird'; there are bluebird, rte"):
        datasets.load_dataset("blubird")
    with pytest.raises(ValueError, match=r"no table 'iris'; there are nursery, breast-cancer"):
        datasets.load_table("iris")
    with pytest.raises(ValueError, match=r"no data set 'iris'; there are .*nursery"):
        datasets.fetch("iris")


def test_wrong_loader() -> None:
    with pytest.raises(ValueError, match=r"use load_table\('nursery'\)"):
        datasets.load_dataset("nursery")
    with pytest.raises(ValueError, match=r"use load_dataset\('rte'\)"):
        datasets.load_table("rte")
