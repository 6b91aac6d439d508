"""The UCI table 'Relative location of CT slices on axial axis' (Graf et al. 2011).

The table has 53,500 slices of 74 patients, with 384 histogram bins each (240 for bones, 144 for
air) and the position of the slice along the body, from 0 (head) to 180 (feet). The file
`slice_localization_data.csv`, or the zip archive of it from UCI, is searched for where
`public_files` says and downloaded if it is not found.

UCI publishes no checksum of the table. We know that of its first 682 rows, which every file must
match. The rest must agree with the known facts: the number of rows, the names of the columns and
the number of patients; every entry is a number, bins lie between -1 and 1, and positions between 0
and 180. Numbers changed within these limits would go unnoticed. At most as many bytes are unpacked
as such a table can have.

The first 682 rows, those of two patients, are in `ct_slices_first_682_rows.csv.gz`; they are
enough to try things out but not for a benchmark.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from bayescrowd.data.table_dataset import TableDataset
from bayescrowd.datasets.public_files import data_folders, download, find_local

__all__ = ["EXCERPT", "FULL", "is_local", "load_ct_slices"]

FULL, EXCERPT = "ct-slices", "ct-slices, first 682 rows"

URL = (
    "https://archive.ics.uci.edu/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip"
)
N_ROWS = 53_500
N_EXCERPT = 682
BEGINNING_SHA256 = "548876b5273314b1cb126f0b7ed6f9d1182c287adeb24293bbe9809f0fdf341f"
"""SHA-256 sum of the header and the first 682 rows."""
COLUMNS = ("patientId", *(f"value{place}" for place in range(384)), "reference")
N_PATIENTS = 74
N_EXCERPT_PATIENTS = 2
MOST_CHARACTERS = 12
"""Largest number of characters in an entry and its separator; the excerpt has at most 10."""

_CSV, _ZIP = "slice_localization_data.csv", "slice_localization_data.zip"
_NAMES = {FULL: (_CSV, _ZIP), EXCERPT: ("ct_slices_first_682_rows.csv.gz",)}
TIMEOUT = 60.0
"""Seconds to wait for UCI's server, which is slow, before giving up."""


def load_ct_slices(name: str = FULL) -> TableDataset:
    """The table: the patient and the bins value0 to value383; the target is the slice's position.

    Args:
        name: `FULL` for the whole table, or `EXCERPT` for its first 682 rows.

    Raises:
        ValueError: a file is not the published one.
        OSError: the file is not on this machine and could not be downloaded.
    """
    path = find_local(*_NAMES[name])
    if path is None and name == FULL:
        path = data_folders()[-1] / _ZIP
        download(URL, path, lambda file: _read(file, N_ROWS), timeout=TIMEOUT)
    if path is None:
        raise FileNotFoundError(
            f"{_NAMES[name][0]} is not on this machine: save it as "
            f"{data_folders()[0] / _NAMES[name][0]}"
        )
    frame = _read(path, N_ROWS if name == FULL else N_EXCERPT)
    return TableDataset(
        features=frame.drop(columns="reference"),
        target=frame["reference"],
        description="Slices of computed tomography: the patient's number, 384 histogram bins, "
        "and the position along the body's axis, a number from 0 to 180.",
        name=name,
        source="Graf, Kriegel, Schubert, Poelsterl and Cavallaro, MICCAI 2011; UCI Machine "
        "Learning Repository",
    )


def is_local(name: str) -> bool:
    """Whether the file is on this machine; its content is not checked."""
    return find_local(*_NAMES[name]) is not None


def _read(path: Path, n_rows: int) -> pd.DataFrame:
    """The table in the file; raises ValueError unless it is the published one."""
    most = (n_rows + 1) * len(COLUMNS) * MOST_CHARACTERS
    try:
        content = _content(path, most)
    except (KeyError, EOFError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({type(error).__name__}); remove it") from None
    if len(content) > most:
        fault = f"it has more than {most:,} bytes"
    elif not (fault := _fault_of_beginning(content)):
        frame = pd.read_csv(io.BytesIO(content), low_memory=False)
        fault = _fault_of_table(frame, n_rows)
    if fault:
        raise ValueError(
            f"{path} is not the published table of {n_rows:,} rows ({fault}); remove it"
        )
    return frame


def _content(path: Path, most: int) -> bytes:
    """The table as bytes, cut off one byte after the first `most`."""
    with ExitStack() as stack:
        if path.suffix == ".gz":
            file: Any = stack.enter_context(gzip.open(path))
        elif path.suffix == ".zip":
            file = stack.enter_context(stack.enter_context(zipfile.ZipFile(path)).open(_CSV))
        else:
            file = stack.enter_context(path.open("rb"))
        content: bytes = file.read(most + 1)
    return content


def _fault_of_beginning(content: bytes) -> str:
    content = content.replace(b"\r\n", b"\n")
    beginning = b"\n".join(content.split(b"\n", N_EXCERPT + 1)[: N_EXCERPT + 1]) + b"\n"
    is_published = hashlib.sha256(beginning).hexdigest() == BEGINNING_SHA256
    return "" if is_published else f"its first {N_EXCERPT} rows differ"


def _fault_of_table(frame: pd.DataFrame, n_rows: int) -> str:
    """How the table contradicts the known facts about it; empty if it does not."""
    if tuple(frame.columns) != COLUMNS or len(frame) != n_rows:
        return f"{len(frame):,} rows and {len(frame.columns)} columns"
    if not all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes):
        return "an entry is not a number"
    if frame.isna().to_numpy().any():
        return "an entry is missing"
    if (frame.iloc[:, 1:-1].abs() > 1).any(axis=None):
        return "a bin lies outside -1 to 1"
    if not frame["reference"].between(0, 180).all():
        return "a position lies outside 0 to 180"
    n_patients = frame["patientId"].nunique()
    expected = N_PATIENTS if n_rows == N_ROWS else N_EXCERPT_PATIENTS
    if n_patients != expected:
        return f"{n_patients} patients instead of {expected}"
    return ""
