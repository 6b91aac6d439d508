"""Files of public data sets: finding them on this machine, or else downloading them.

A file is searched for in the folder that the environment variable `BAYESCROWD_DATA` names, then in
the user's cache (`BAYESCROWD_CACHE`, by default the operating system's folder for caches). If it is
in neither, it is downloaded into the cache. Wherever a file is found, its SHA-256 sum must be the
published one. A download gets its final name only after that check, so that a broken connection
leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import platformdirs

__all__ = ["PublicFile", "data_folders", "download", "find_local", "is_here", "locate"]

BASE_URL = "https://raw.githubusercontent.com"
"""Server of the public files; a mirror must serve the same paths."""

TIMEOUT = 30.0
"""Seconds to wait for the server before giving up."""


class PublicFile(NamedTuple):
    """One file at its public source."""

    name: str
    """File name, on this machine and at the source."""
    sha256: str
    """SHA-256 sum of the published bytes."""
    folder: str | None
    """Path of the file's folder on the server; None if no server has the file."""
    recipe: str | None = None
    """How to create the file by hand if no server has it, as the beginning of a sentence."""

    @property
    def url(self) -> str:
        """Address of the file on the server."""
        return f"{BASE_URL}/{self.folder}/{self.name}"


def data_folders() -> list[Path]:
    """The folders that may contain public files, in order of preference; the cache is the last."""
    given = os.environ.get("BAYESCROWD_DATA")
    cache = os.environ.get("BAYESCROWD_CACHE") or platformdirs.user_cache_dir("bayescrowd")
    return [Path(folder).expanduser() for folder in (given, cache) if folder]


def find_local(*names: str) -> Path | None:
    """The first existing file with one of the names, not checked; None if there is none.

    Args:
        names: paths relative to the `data_folders`, in order of preference.
    """
    paths = (folder / name for folder in data_folders() for name in names)
    return next((path for path in paths if path.is_file()), None)


def is_here(file: PublicFile) -> bool:
    """Whether the file is on this machine; its content is not checked."""
    return find_local(file.name) is not None


def locate(file: PublicFile) -> Path:
    """Path of the checked file, which is downloaded if it is not on this machine.

    Raises:
        ValueError: the file found or downloaded is not the published one.
        OSError: the file is not on this machine and could not be downloaded; the message says
            what to do. A failed transfer is a `ConnectionError`.
    """
    candidates = [folder / file.name for folder in data_folders()]
    cached = candidates[-1]
    for path in candidates:
        if not path.is_file():
            continue
        if _sha256(path) == file.sha256:
            return path
        if path != cached or file.folder is None:
            raise ValueError(
                f"{path} is not the published file (its SHA-256 is not {file.sha256}): "
                f"remove it, or {_recipe(file)} and save it there"
            )
    if file.folder is None:
        raise FileNotFoundError(
            f"{file.name} is not on this machine, and no public server has it in this format: "
            f"{_recipe(file)} and save it as {_best_place(file.name)}"
        )

    def check(path: Path) -> None:
        if _sha256(path) != file.sha256:
            raise ValueError(
                f"{urlsplit(file.url).netloc} did not send the published {file.name} (SHA-256 is "
                f"not {file.sha256}): try again, or {_recipe(file)} by other means and save it "
                f"as {_best_place(file.name)}"
            )

    download(file.url, cached, check)
    return cached


def download(
    url: str, target: Path, check: Callable[[Path], object], *, timeout: float = TIMEOUT
) -> None:
    """Download a file to `target`, complete and checked, or leave nothing there.

    Args:
        url: address of the file.
        target: path in the cache.
        check: function that raises unless the file at the given path is the published one.
        timeout: seconds to wait for the server.

    Raises:
        ConnectionError: the transfer failed.
        OSError: the cache cannot be written to.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-")
    except OSError as error:
        raise OSError(
            f"{target.name} cannot be saved in the cache ({error}): set BAYESCROWD_CACHE to a "
            "folder that can be written to"
        ) from error
    with unfinished as folder:
        temporary = Path(folder, target.name)
        _transfer(url, temporary, timeout)
        check(temporary)
        temporary.replace(target)


def _transfer(url: str, path: Path, timeout: float) -> None:
    import pooch  # slow, seldom needed, and loads progress bars that warn in a bare notebook

    downloader = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(),
        timeout=timeout,
        # Uncompressed, so that the progress bar and the length check see the size of the file.
        headers={"Accept-Encoding": "identity"},
    )
    try:
        downloader(url, str(path), None)
    except OSError as error:  # the base class of all errors of requests
        reason = type(error).__name__
        if (response := getattr(error, "response", None)) is not None:
            reason = f"HTTP {response.status_code}"
            response.close()  # pooch leaves the connection open
        raise ConnectionError(
            f"{path.name} could not be downloaded from {urlsplit(url).netloc} ({reason}): "
            f"get {url} by other means and save it as {_best_place(path.name)}"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _recipe(file: PublicFile) -> str:
    """How to get the file by hand, as part of a sentence."""
    return file.recipe or f"get {file.url}"


def _best_place(name: str) -> str:
    """Where to save a file that was fetched by hand, as part of a sentence."""
    first = data_folders()[0] / name
    if os.environ.get("BAYESCROWD_DATA"):
        return f"{first} (in the folder that BAYESCROWD_DATA names)"
    return f"{first}, or under the same name in a folder that BAYESCROWD_DATA names"
