"""Writing tables to files: whole or not at all, and never over another file by accident.

A file comes into being under a temporary name in its own folder, is flushed to the disk, and then
takes its name in one step: whoever looks finds the old file or the new one, and an interruption
leaves nothing behind. The extension says the format: CSV, TSV, JSON lines or Parquet, the text
formats also with `.gz`. In CSV and TSV, text that a spreadsheet would run as a formula gets an
apostrophe in front (`bayescrowd.io.cells`), which reading takes off again.
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

from bayescrowd.io.cells import quoted_table

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
    """Raise unless a file may be written at `path`; to be called before the work starts.

    Raises:
        FileExistsError: there is a file already, and `overwrite` is false.
        OSError: the folder is absent or cannot be written to.
        ValueError: `path` is a folder or a device.
    """
    target = Path(path)
    with suppress(FileNotFoundError):  # what else goes wrong (a loop of links, ...) is the answer
        os.stat(target)
        if target.is_dir():
            raise ValueError(f"{target}: this is a folder; expected the name of a file")
        if not target.is_file():
            raise ValueError(f"{target}: this is no ordinary file, which could be replaced")
        if not overwrite:
            raise FileExistsError(f"{target}: the file exists, and overwriting was not asked for")
    folder = Path(os.path.realpath(target)).parent
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
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".bayescrowd.{secrets.token_hex(8)}.tmp")
    try:
        with _removed_on_termination(temporary), _faults_named(path, temporary):
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
def _removed_on_termination(temporary: Path) -> Iterator[None]:
    """Remove the file if the process is told to end, which it then does.

    Only in the main thread, where alone Python takes signals, and only where the program has not
    chosen itself what a signal does.
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
def _faults_named(path: str | os.PathLike[str], temporary: Path) -> Iterator[None]:
    """Faults of writing name the file that was asked for, not the temporary one."""
    try:
        yield
    except OSError as fault:
        wanted = os.fspath(path)
        if fault.errno is None and type(fault) is OSError:  # a library's own words
            told = str(fault).replace(str(temporary), wanted)
            raise OSError(told if wanted in told else f"{wanted}: {told}") from fault
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
        path: a name that ends in .csv, .tsv, .tab, .jsonl, .ndjson (or one of these and .gz),
            .parquet or .pq.
        overwrite: replace a file that is there.
        raw_cells: write text into CSV and TSV as it is, also where a spreadsheet would run it.

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
    """Write a figure in the format of the extension: .png, .pdf, .svg or another of Matplotlib's.

    Args:
        figure: the figure.
        path: where.
        overwrite: replace an existing file.
        metadata: what to write into the file's own description, by key.
    """
    with new_file(path, overwrite=overwrite) as file:
        figure.savefig(file, format=Path(path).suffix[1:].lower(), metadata=metadata)


def csv_text(frame: pd.DataFrame, *, raw_cells: bool = False) -> str:
    r"""What `write_table` writes into a CSV file.

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
    table = frame if raw_cells else quoted_table(frame)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table.to_csv(text, index=False, sep=separator, lineterminator="\n", quoting=_quoting(table))
    text.detach()  # flushes, and leaves the file open


def _quoting(table: pd.DataFrame) -> Literal[0, 2]:
    """Quotes where they are needed; around all text if some holds a carriage return.

    Before Python 3.13 the csv module puts no quotes around it, and readers take it for a new row.
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
            f"Parquet cannot take this table ({str(fault).splitlines()[0]}): write CSV instead"
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
