"""The UCI table 'Relative location of CT slices on axial axis' (Graf et al. 2011).

53,500 slices of 74 patients, 384 histogram bins each (240 of bones, 144 of air), and the slice's
place along the body, from 0 (head) to 180 (feet). The file `slice_localization_data.csv`, also
zipped as at UCI, is looked for in the folder that `BAYESCROWD_DATA` names, then in the cache, and
is downloaded into the cache otherwise.

UCI publishes no checksum of the table, and none is known here but that of its first 682 rows.
Whichever file it is, these must have that checksum. Of the rest, what is known about the table
must hold: the number of rows and the names of the columns; every entry is a number; patients have
the numbers 0 to 96, the last row being of patient 96; bins lie between -1 and 1, and places between
0 and 180. Numbers that were changed within these limits would go unnoticed. No more is unpacked
than such a table can take up.

The first 682 rows alone, two patients, are `ct_slices_first_682_rows.csv.gz`; they are enough to
try things out, and no benchmark.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tempfile
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import platformdirs

from bayescrowd.dataset import TableDataset

__all__ = ["EXCERPT", "FULL", "is_local", "load_ct_slices"]

FULL, EXCERPT = "ct-slices", "ct-slices, first 682 rows"

URL = (
    "https://archive.ics.uci.edu/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip"
)
N_ROWS = 53_500
N_EXCERPT = 682
BEGINNING_SHA256 = "548876b5273314b1cb126f0b7ed6f9d1182c287adeb24293bbe9809f0fdf341f"
"""Of the header and the first 682 rows."""
COLUMNS = ("patientId", *(f"value{place}" for place in range(384)), "reference")
LAST_PATIENT = 96
MOST_CHARACTERS = 12
"""Of an entry with what separates it from the next; in the excerpt, the most are 10."""

_CSV, _ZIP = "slice_localization_data.csv", "slice_localization_data.zip"
_NAMES = {FULL: (_CSV, _ZIP), EXCERPT: ("ct_slices_first_682_rows.csv.gz",)}
TIMEOUT = 60.0


def load_ct_slices(name: str = FULL) -> TableDataset:
    """The table: bins value0 to value383, the patient first, and the slice's place as target.

    Args:
        name: `FULL`, or `EXCERPT` for the first 682 rows.

    Raises:
        ValueError: a file is not the published one.
        OSError: it is not on this machine and could not be had.
    """
    path = _find(name)
    if path is None and name == FULL:
        path = _download()
    if path is None:
        raise FileNotFoundError(f"{_NAMES[name][0]} is not in the folder BAYESCROWD_DATA names")
    frame = _checked(path, N_ROWS if name == FULL else N_EXCERPT)
    return TableDataset(
        features=frame.drop(columns="reference"),
        target=frame["reference"],
        description="Slices of computer tomographies: the patient's number, 384 histogram bins, "
        "and the place along the body's axis, a number from 0 to 180.",
        name=name,
        source="Graf, Kriegel, Schubert, Poelsterl and Cavallaro, MICCAI 2011; UCI Machine "
        "Learning Repository",
    )


def is_local(name: str) -> bool:
    """Whether the file is on this machine, unchecked."""
    return _find(name) is not None


def _folders() -> list[Path]:
    given = os.environ.get("BAYESCROWD_DATA")
    cache = os.environ.get("BAYESCROWD_CACHE") or platformdirs.user_cache_dir("bayescrowd")
    return [Path(folder).expanduser() for folder in (given, cache) if folder]


def _find(name: str) -> Path | None:
    paths = [folder / file for folder in _folders() for file in _NAMES[name]]
    return next((path for path in paths if path.is_file()), None)


def _checked(path: Path, n_rows: int) -> pd.DataFrame:
    most = (n_rows + 1) * len(COLUMNS) * MOST_CHARACTERS
    try:
        content = _content(path, most)
    except (KeyError, EOFError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({type(error).__name__}): remove it") from None
    if len(content) > most:
        fault = f"it has more than {most:,} bytes"
    elif not (fault := _fault_of_beginning(content)):
        frame = pd.read_csv(io.BytesIO(content), low_memory=False)
        fault = _fault_of_table(frame, n_rows)
    if fault:
        raise ValueError(
            f"{path} is not the published table of {n_rows:,} rows ({fault}): remove it"
        )
    return frame


def _content(path: Path, most: int) -> bytes:
    """The table as text, of which no more is unpacked than one byte above `most`."""
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
    return "" if is_published else f"its first {N_EXCERPT} rows are others"


def _fault_of_table(frame: pd.DataFrame, n_rows: int) -> str:
    """What is known about the table and does not hold, if anything."""
    if tuple(frame.columns) != COLUMNS or len(frame) != n_rows:
        return f"{len(frame):,} rows and {len(frame.columns)} columns"
    if not all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes):
        return "an entry is not a number"
    if frame.isna().to_numpy().any():
        return "an entry is missing"
    if (frame.iloc[:, 1:-1].abs() > 1).any(axis=None):
        return "a bin lies outside -1 to 1"
    if not frame["reference"].between(0, 180).all():
        return "a place lies outside 0 to 180"
    patients = frame["patientId"]
    last = LAST_PATIENT if n_rows == N_ROWS else 1
    if not (patients.between(0, last).all() and patients.iloc[-1] == last):
        return f"patients are not those from 0 to {last}"
    return ""


def _download() -> Path:
    """The zipped table in the cache, after it has been checked there."""
    import pooch  # here, since it loads progress bars that warn in a bare notebook

    target = _folders()[-1] / _ZIP
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as folder:
        temporary = Path(folder, _ZIP)
        downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT)
        try:
            downloader(URL, str(temporary), None)
        except OSError as error:  # the base of all that requests raises
            raise ConnectionError(
                f"{_ZIP} could not be downloaded from archive.ics.uci.edu "
                f"({type(error).__name__}): get {URL} by other means and save it as {target}"
            ) from error
        _checked(temporary, N_ROWS)
        temporary.replace(target)
    return target
