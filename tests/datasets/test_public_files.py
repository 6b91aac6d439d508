"""Public files are found or downloaded, checked, and refused with advice."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from bayescrowd.datasets import public_files
from bayescrowd.datasets.public_files import PublicFile, data_folders, find_local, is_here, locate

Files = tuple[PublicFile, ...]

CROWD = b"1\t1\t2\r\n1\t2\t1\r\n2\t1\t1\r\n2\t2\t1"
"""Labels of two workers on two tasks, with CRLF and no final newline, as in bluebird's file."""
TRUTH = b"1\t2\n1\t2\n2\t1\n2\t1\n"
"""Truth of two tasks, repeated once per judgement, as in dog's file."""
TINY = {"tiny_crowd.txt": CROWD, "tiny_truth.txt": TRUTH}


class Reply(NamedTuple):
    """Answer of the local server to one path."""

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
    """A local server of the files of the data set 'tiny'."""
    with Server(("127.0.0.1", 0), Handler) as listening:
        listening.replies = {f"/owner/repo/{name}": Reply(body) for name, body in TINY.items()}
        listening.requests = []
        monkeypatch.setattr(public_files, "BASE_URL", f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that does not exist yet, and no BAYESCROWD_DATA."""
    monkeypatch.delenv("BAYESCROWD_DATA", raising=False)
    monkeypatch.setenv("BAYESCROWD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """An empty folder that BAYESCROWD_DATA names."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("BAYESCROWD_DATA", str(folder))
    return folder


@pytest.fixture
def tiny_files() -> Files:
    """The files of the data set 'tiny': its crowd and its truth."""
    return tuple(
        PublicFile(name, hashlib.sha256(body).hexdigest(), "owner/repo")
        for name, body in TINY.items()
    )


def fetch(files: Files) -> list[Path]:
    return [locate(file) for file in files]


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_given_folder_comes_before_the_cache(cache: Path, data_folder: Path) -> None:
    assert data_folders() == [data_folder, cache]
    assert find_local("b.txt", "a.txt") is None
    cache.mkdir()
    (cache / "b.txt").touch()
    assert find_local("b.txt", "a.txt") == cache / "b.txt"
    (data_folder / "a.txt").touch()
    assert find_local("b.txt", "a.txt") == data_folder / "a.txt"


def test_downloads_once(tiny_files: Files, server: Server, cache: Path) -> None:
    first = fetch(tiny_files)
    assert first == fetch(tiny_files) == [cache / name for name in TINY]
    assert [path.read_bytes() for path in first] == list(TINY.values())
    assert server.requests == [f"/owner/repo/{name}" for name in TINY]
    assert contents(cache) == sorted(TINY)


def test_prefers_the_given_folder(
    tiny_files: Files, server: Server, cache: Path, data_folder: Path
) -> None:
    for name, body in TINY.items():
        (data_folder / name).write_bytes(body)
    assert fetch(tiny_files) == [data_folder / name for name in TINY]
    assert server.requests == []


def test_file_missing_from_the_given_folder_is_downloaded(
    tiny_files: Files, server: Server, cache: Path, data_folder: Path
) -> None:
    (data_folder / "tiny_truth.txt").write_bytes(TRUTH)
    assert not all(map(is_here, tiny_files))
    assert fetch(tiny_files) == [cache / "tiny_crowd.txt", data_folder / "tiny_truth.txt"]
    assert all(map(is_here, tiny_files))


def test_damaged_file_in_the_cache_is_downloaded_again(
    tiny_files: Files, server: Server, cache: Path
) -> None:
    cache.mkdir()
    (cache / "tiny_crowd.txt").write_bytes(CROWD[:-3])
    assert fetch(tiny_files)[0].read_bytes() == CROWD


def test_is_silent_without_a_terminal(
    tiny_files: Files,
    server: Server,
    cache: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fetch(tiny_files)
    assert capfd.readouterr() == ("", "")


def test_shows_progress_on_a_terminal(
    tiny_files: Files,
    server: Server,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    fetch(tiny_files)
    assert "100%" in capsys.readouterr().err


# Control: downloads that must be refused


def test_corrupted_download(tiny_files: Files, server: Server, cache: Path) -> None:
    server.replies["/owner/repo/tiny_truth.txt"] = Reply(TRUTH.replace(b"2", b"3"))
    with pytest.raises(ValueError, match=r"did not send the published tiny_truth.txt.*SHA-256"):
        fetch(tiny_files)
    assert contents(cache) == ["tiny_crowd.txt"]


def test_truncated_download(tiny_files: Files, server: Server, cache: Path) -> None:
    server.replies["/owner/repo/tiny_crowd.txt"] = Reply(CROWD[:10], missing_bytes=len(CROWD) - 10)
    with pytest.raises((ConnectionError, ValueError), match=r"tiny_crowd.txt.*get http://127"):
        fetch(tiny_files)
    assert contents(cache) == []


def test_not_found(tiny_files: Files, server: Server, cache: Path) -> None:
    server.replies.clear()
    with pytest.raises(ConnectionError, match=r"tiny_crowd.txt could not be .*\(HTTP 404\)"):
        fetch(tiny_files)
    assert contents(cache) == []


def test_connection_refused(
    tiny_files: Files, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unheard:  # bound, so that no one else takes the port, but deaf
        unheard.bind(("127.0.0.1", 0))
        monkeypatch.setattr(
            public_files, "BASE_URL", f"http://127.0.0.1:{unheard.getsockname()[1]}"
        )
        with pytest.raises(ConnectionError) as caught:
            fetch(tiny_files)
    message = str(caught.value)
    assert "\n" not in message
    for advice in (
        f"{public_files.BASE_URL}/owner/repo/tiny_crowd.txt",
        str(cache),
        "BAYESCROWD_DATA",
    ):
        assert advice in message
    assert contents(cache) == []


def test_advice_names_the_given_folder(
    tiny_files: Files, server: Server, data_folder: Path
) -> None:
    server.replies.clear()
    with pytest.raises(ConnectionError) as caught:
        fetch(tiny_files)
    assert f"save it as {data_folder / 'tiny_crowd.txt'}" in str(caught.value)


def test_corrupted_file_in_the_given_folder(
    tiny_files: Files, server: Server, cache: Path, data_folder: Path
) -> None:
    (data_folder / "tiny_crowd.txt").write_bytes(CROWD + b"\n")
    with pytest.raises(ValueError, match=r"data.tiny_crowd.txt is not the published file.*get"):
        fetch(tiny_files)
    assert server.requests == []


def test_cache_that_cannot_be_written(tiny_files: Files, server: Server, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(
        OSError, match=r"tiny_crowd.txt cannot be saved in the cache.*BAYESCROWD_CACHE"
    ):
        fetch(tiny_files)
