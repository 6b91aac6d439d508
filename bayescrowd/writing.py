"""Writing tables to files: whole or not at all, and never over another file by accident.

A file comes into being under a temporary name in its own folder, is flushed to the disk, and then
takes its name in one step: whoever looks finds the old file or the new one, and an interruption
leaves nothing behind. The extension says the format: CSV, TSV, JSON lines or Parquet, the text
formats also with `.gz`.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa

__all__ = ["check_table_target", "check_target", "new_file", "write_table"]

BinaryFile = io.BufferedWriter | gzip.GzipFile


def check_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise unless a file may be written at `path`; to be called before the work starts.

    Raises:
        FileExistsError: there is a file already, and `overwrite` is false.
        OSError: the folder is absent or cannot be written to.
        ValueError: `path` is a folder or a device.
    """
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{target}: this is a folder; expected the name of a file")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: this is no ordinary file, which could be replaced")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target}: the file exists, and overwriting was not asked for")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{target}: no permission to write into the folder {folder}")


def check_table_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """`check_target`, and raise ValueError for an extension that `write_table` does not know."""
    _writer(Path(path))
    check_target(path, overwrite=overwrite)


@contextmanager
def new_file(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[io.BufferedWriter]:
    """Open a binary file that appears at `path`, whole, when the block ends without an error.

    Args:
        path: where; a symbolic link is followed.
        overwrite: replace a file that is there, keeping its permissions.

    Raises:
        FileExistsError: there is a file already, also one that appeared meanwhile, and
            `overwrite` is false.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "greeting.txt")
        >>> with new_file(path) as file:
        ...     _ = file.write(b"hello")
        ...     path.exists()
        False
        >>> path.read_text()
        'hello'
    """
    check_target(path, overwrite=overwrite)
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        if overwrite:
            temporary.replace(target)
        else:
            _rename_if_free(temporary, target)
        _flush_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_table(
    frame: pd.DataFrame, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    r"""Write the columns of a table, without its index, in the format of the extension.

    Args:
        frame: the table.
        path: a name that ends in .csv, .tsv, .tab, .jsonl, .ndjson (or one of these and .gz),
            .parquet or .pq.
        overwrite: replace a file that is there.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "labels.tsv")
        >>> write_table(pd.DataFrame({"task": [1, 2], "label": ["a", "b"]}), path)
        >>> path.read_text().splitlines()
        ['task\tlabel', '1\ta', '2\tb']
    """
    write = _writer(Path(path))
    with new_file(path, overwrite=overwrite) as file:
        write(frame, file)


def _write_csv(frame: pd.DataFrame, file: BinaryFile, separator: str = ",") -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    frame.to_csv(text, index=False, sep=separator, lineterminator="\n")
    text.detach()  # flushes, and leaves the file open


def _write_tsv(frame: pd.DataFrame, file: BinaryFile) -> None:
    _write_csv(frame, file, separator="\t")


def _write_jsonl(frame: pd.DataFrame, file: BinaryFile) -> None:
    lines = frame.to_json(
        orient="records", lines=True, force_ascii=False, double_precision=15, date_format="iso"
    )
    file.write(lines.encode())


def _write_parquet(frame: pd.DataFrame, file: BinaryFile) -> None:
    try:
        frame.to_parquet(file, index=False)
    except pa.ArrowException as fault:  # ids of several types
        raise ValueError(
            f"Parquet cannot take this table ({str(fault).splitlines()[0]}): write CSV instead"
        ) from None


_TEXT_WRITERS: dict[str, Callable[[pd.DataFrame, BinaryFile], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".tab": _write_tsv,
    ".jsonl": _write_jsonl,
    ".ndjson": _write_jsonl,
}
_BINARY_WRITERS = {".parquet": _write_parquet, ".pq": _write_parquet}


def _writer(path: Path) -> Callable[[pd.DataFrame, BinaryFile], None]:
    name = path.name.lower()
    is_zipped = name.endswith(".gz")
    extension = Path(name.removesuffix(".gz")).suffix
    write = _TEXT_WRITERS.get(extension)
    if write is None and not is_zipped:
        write = _BINARY_WRITERS.get(extension)
    if write is None:
        raise ValueError(
            f"{path}: unknown extension {''.join(path.suffixes)!r}; expected "
            f"{', '.join(_TEXT_WRITERS)} (also with .gz), {' or '.join(_BINARY_WRITERS)}"
        )
    if not is_zipped:
        return write

    def write_zipped(frame: pd.DataFrame, file: BinaryFile) -> None:
        # Without name and time inside, equal tables give equal files.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as zipped:
            write(frame, zipped)

    return write_zipped


def _rename_if_free(source: Path, target: Path) -> None:
    """Give the file its name unless the name is taken, in one step where the system can."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise FileExistsError(f"{target}: a file of this name appeared meanwhile") from None
    except OSError:  # no hard links here
        source.replace(target)


def _flush_folder(folder: Path) -> None:
    """Make the new name durable; not every platform can open a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
