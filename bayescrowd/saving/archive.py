"""Arrays and a JSON header in one file, checked before anything is read.

The file is a ZIP archive of `.npy` files, which `numpy.load` opens, and of `header.json`. Nothing
in it is compressed or pickled: what an archive declares can then be no larger than the file itself,
so that no small file can fill the memory, and reading it runs no code.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from bayescrowd.checks.memory import check_fits
from bayescrowd.io.writing import new_file
from bayescrowd.saving.state import KINDS

__all__ = ["Archive", "read_archive", "write_archive"]

HEADER = "header.json"
"""Name of the header in the archive."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of every member, so that equal contents give equal files."""


class Archive(NamedTuple):
    """What such a file holds."""

    header: dict[str, Any]
    """The header."""
    arrays: dict[str, np.ndarray]
    """The arrays by name."""


def write_archive(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    overwrite: bool = False,
) -> None:
    """Write a header and arrays of numbers, whole or not at all.

    Args:
        path: path of the file.
        header: what JSON can hold.
        arrays: arrays of numbers, truth values or times, by name.
        overwrite: whether to replace an existing file.

    Raises:
        FileExistsError: the file exists and `overwrite` is false.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "numbers.npz")
        >>> write_archive(path, {"unit": "nats"}, {"scores": np.array([0.5, 1.5])})
        >>> read_archive(path, "file of scores").header
        {'unit': 'nats'}
        >>> np.load(path)["scores"]
        array([0.5, 1.5])
    """
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with (
        new_file(path, overwrite=overwrite) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(HEADER, _EPOCH), text.encode())
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            with archive.open(member, "w", force_zip64=array.nbytes > 2**30) as part:
                np.lib.format.write_array(part, array, version=(1, 0), allow_pickle=False)


def read_archive(path: str | os.PathLike[str], what: str) -> Archive:
    """Read a file of `write_archive`.

    Args:
        path: path of the file.
        what: what the file should be, in messages.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is of another kind, incomplete or damaged, or its contents do not fit
            into memory.
    """
    with open(path, "rb") as file:
        try:
            return _read(file, os.fspath(path))
        except _Unreadable as fault:
            reason = str(fault)
        except (zipfile.BadZipFile, EOFError):
            reason = "it is incomplete or damaged"
        except (NotImplementedError, RuntimeError, SyntaxError):
            reason = "it is damaged"
    raise ValueError(f"{os.fspath(path)}: expected a {what}, but {reason}")


class _Unreadable(Exception):
    """Why an archive is none of ours."""


def _read(file: BinaryIO, path: str) -> Archive:
    start = file.read(4)
    if start != b"PK\3\4":
        raise _Unreadable("it is a file of another kind" if start else "it is empty")
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        _check_members(archive.infolist(), size)
        check_fits(2.0 * size, f"{path}: reading the file", "use a machine with more memory")
        return Archive(_read_header(archive), _read_arrays(archive))


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raise unless the members are such as we write, and together no larger than the file."""
    names = [member.filename for member in members]
    if HEADER not in names or len(set(names)) < len(names):
        raise _Unreadable("it is a ZIP archive of another kind")
    is_stored = all(
        member.compress_type == zipfile.ZIP_STORED and member.file_size == member.compress_size
        for member in members
    )
    if not is_stored or sum(member.file_size for member in members) > size:
        raise _Unreadable("its parts are compressed or larger than the file")


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        header = json.loads(archive.read(HEADER).decode())
    except (ValueError, RecursionError):  # of JSON, of its encoding, or nested too deeply
        raise _Unreadable("its header is damaged") from None
    if not isinstance(header, dict):
        raise _Unreadable("its header is damaged")
    return header


def _read_arrays(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    names = [name for name in archive.namelist() if name.endswith(".npy")]
    return {name.removesuffix(".npy"): _read_array(archive.read(name), name) for name in names}


def _read_array(data: bytes, name: str) -> np.ndarray:
    """The array of an `.npy` file, whose declared size is compared with the data before."""
    buffer = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(buffer) != (1, 0):
            raise ValueError("another version")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    except ValueError:
        raise _Unreadable(f"its array {name} has an unknown format") from None
    if dtype.kind not in KINDS:
        raise _Unreadable(f"its array {name} holds no numbers")
    n_bytes = dtype.itemsize
    for length in shape:  # of Python integers, which do not overflow
        n_bytes *= int(length)
    start = buffer.tell()
    if min(shape, default=0) < 0 or n_bytes != len(data) - start:
        raise _Unreadable(f"its array {name} is damaged")
    flat = np.frombuffer(data, dtype, offset=start) if n_bytes else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if is_fortran else "C").copy("K")
