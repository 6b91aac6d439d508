"""Writing tables and pictures: whole or not at all, and never over another file by accident.

A file is written under a temporary name in its target folder, flushed to the disk, and then renamed
in one step: readers see the old file or the new one, and an interruption leaves nothing behind. The
extension determines the format: CSV, TSV, JSON lines or Parquet, the text formats also with `.gz`.
In CSV and TSV, text that a spreadsheet would run as a formula gets an apostrophe in front
(`bayescrowd.io.cells`), which is removed on reading.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal

import pandas as pd
import pyarrow as pa

from bayescrowd.io.cells import quote_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "check_table_target",
    "check_target",
    "csv_text",
    "new_file",
    "write_picture",
    "write_table",
]

BinaryFile = io.BufferedWriter | gzip.GzipFile


def check_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise unless a file can be written at `path`; call this before the work starts.

    Raises:
        FileExistsError: the file exists and `overwrite` is false.
        OSError: the folder does not exist or cannot be written to.
        ValueError: `path` is a folder or a device.
    """
    target = Path(path)
    with suppress(FileNotFoundError):  # other errors, such as circular links, are raised
        os.stat(target)
        if target.is_dir():
            raise ValueError(f"{target}: this is a folder; expected a file name")
        if not target.is_file():
            raise ValueError(f"{target}: this is a device or a pipe; expected an ordinary file")
        if not overwrite:
            raise FileExistsError(f"{target}: the file exists, and overwrite is false")
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{target}: no permission to write into the folder {folder}")


def check_table_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """`check_target`, which also raises ValueError if `write_table` cannot write the extension."""
    _writer(Path(path))
    check_target(path, overwrite=overwrite)


@contextmanager
def new_file(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[io.BufferedWriter]:
    """Open a binary file that appears at `path`, complete, when the `with` block succeeds.

    Args:
        path: path of the file; a symbolic link is followed.
        overwrite: whether to replace an existing file, keeping its permissions.

    Raises:
        FileExistsError: the file exists, or has appeared in the meantime, and `overwrite` is
            false.

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
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".bayescrowd.{secrets.token_hex(8)}.tmp")
    try:
        with _remove_on_termination(temporary), _name_faults(path, temporary):
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


@contextmanager
def _remove_on_termination(temporary: Path) -> Iterator[None]:
    """Remove the file if a signal terminates the process.

    This applies only in the main thread, where Python handles signals, and only to signals for
    which the program has not set a handler of its own.
    """

    def remove_and_end(number: int, frame: FrameType | None) -> None:
        temporary.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, remove_and_end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _name_faults(path: str | os.PathLike[str], temporary: Path) -> Iterator[None]:
    """Make errors of writing name the requested file instead of the temporary one."""
    try:
        yield
    except OSError as fault:
        wanted = os.fspath(path)
        if fault.errno is None and type(fault) is OSError:  # raised by a library, with its own text
            reason = str(fault).replace(str(temporary), wanted)
            raise OSError(reason if wanted in reason else f"{wanted}: {reason}") from fault
        if fault.errno is not None and fault.filename in (None, str(temporary)):
            raise OSError(fault.errno, os.strerror(fault.errno), wanted) from fault
        raise


def write_table(
    frame: pd.DataFrame,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    raw_cells: bool = False,
) -> None:
    r"""Write the columns of a table, without its index, in the format of the extension.

    Args:
        frame: the table.
        path: path of the file, ending in .csv, .tsv, .tab, .jsonl, .ndjson (any of these also
            with .gz), .parquet or .pq.
        overwrite: whether to replace an existing file.
        raw_cells: whether to write text to CSV and TSV as it is, even if a spreadsheet would run
            it.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "labels.tsv")
        >>> write_table(pd.DataFrame({"task": [1, 2], "label": ["a", "b"]}), path)
        >>> path.read_text().splitlines()
        ['task\tlabel', '1\ta', '2\tb']
    """
    write = _writer(Path(path), raw_cells=raw_cells)
    with new_file(path, overwrite=overwrite) as file:
        write(frame, file)


def write_picture(
    figure: Figure,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    metadata: dict[str, str] | None = None,
) -> None:
    """Write a figure in the format of the extension: .png, .pdf or any other that Matplotlib has.

    Args:
        figure: the figure.
        path: path of the file.
        overwrite: whether to replace an existing file.
        metadata: entries for the file's own metadata, by key.
    """
    with new_file(path, overwrite=overwrite) as file:
        figure.savefig(file, format=Path(path).suffix[1:].lower(), metadata=metadata)


def csv_text(frame: pd.DataFrame, *, raw_cells: bool = False) -> str:
    r"""The content that `write_table` writes to a CSV file.

    Examples:
        >>> csv_text(pd.DataFrame({"task": ["=1+1"], "p": [-0.5]}))
        "task,p\n'=1+1,-0.5\n"
    """
    buffer = io.BytesIO()
    _write_delimited(frame, buffer, ",", raw_cells=raw_cells)
    return buffer.getvalue().decode()


def _write_delimited(
    frame: pd.DataFrame, file: BinaryFile | io.BytesIO, separator: str, *, raw_cells: bool
) -> None:
    table = frame if raw_cells else quote_table(frame)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table.to_csv(text, index=False, sep=separator, lineterminator="\n", quoting=_quoting(table))
    text.detach()  # flushes and leaves the file open


def _quoting(table: pd.DataFrame) -> Literal[0, 2]:
    """The csv module's rule: quote where needed, or all text if some has a carriage return.

    Before Python 3.13, the csv module does not quote text for a carriage return, which readers then
    take for a new row.
    """
    texts = table.select_dtypes(exclude=["number", "bool"])
    has_return = any(
        isinstance(value, str) and "\r" in value
        for name in range(texts.shape[1])
        for value in texts.iloc[:, name].drop_duplicates()
    )
    return csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL


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
            f"Parquet cannot store this table ({str(fault).splitlines()[0]}); write CSV instead"
        ) from None


_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")


def _writer(path: Path, *, raw_cells: bool = False) -> Callable[[pd.DataFrame, BinaryFile], None]:
    name = path.name.lower()
    is_zipped = name.endswith(".gz")
    extension = Path(name.removesuffix(".gz")).suffix
    write: Callable[[pd.DataFrame, BinaryFile], None]
    if extension in _DELIMITERS:
        write = partial(_write_delimited, separator=_DELIMITERS[extension], raw_cells=raw_cells)
    elif extension in _JSON_LINES:
        write = _write_jsonl
    elif extension in _PARQUET and not is_zipped:
        write = _write_parquet
    else:
        raise ValueError(
            f"{path}: unknown extension {''.join(path.suffixes)!r}; expected "
            f"{', '.join((*_DELIMITERS, *_JSON_LINES))} (also with .gz), {' or '.join(_PARQUET)}"
        )
    if not is_zipped:
        return write

    def write_zipped(frame: pd.DataFrame, file: BinaryFile) -> None:
        # Without a name and a time in the file, equal tables give equal files.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as zipped:
            write(frame, zipped)

    return write_zipped


def _rename_if_free(source: Path, target: Path) -> None:
    """Rename the file unless the name is taken, atomically where the system allows it."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise FileExistsError(
            f"{target}: a file of this name has appeared in the meantime"
        ) from None
    except OSError:  # no hard links here
        source.replace(target)


def _flush_folder(folder: Path) -> None:
    """Make the new name durable, on platforms that can open a folder."""
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
