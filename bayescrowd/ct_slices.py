"""The UCI table 'Relative location of CT slices on axial axis' (Graf et al. 2011).

53,500 slices of 74 patients, 384 histogram bins each (240 of bones, 144 of air), and the slice's
place along the body, from 0 (head) to 180 (feet). The file `slice_localization_data.csv`, also
zipped as at UCI, is looked for in the folder that `BAYESCROWD_DATA` names, then in the cache, and
is downloaded into the cache otherwise. Whichever it is, its shape must be right, and its beginning
the published one.

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
from pathlib import Path

import pandas as pd
import platformdirs

from bayescrowd.dataset import TableDataset

__all__ = ["EXCERPT", "FULL", "is_local", "load_ct_slices"]

FULL, EXCERPT = "ct-slices", "ct-slices, first 682 rows"

URL = (
    "https://archive.ics.uci.edu/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip"
)
N_ROWS, N_COLUMNS = 53_500, 386
N_EXCERPT = 682
BEGINNING_SHA256 = "548876b5273314b1cb126f0b7ed6f9d1182c287adeb24293bbe9809f0fdf341f"
"""Of the header and the first 682 rows."""

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
    content = _content(path)
    beginning = b"\n".join(content.split(b"\n", N_EXCERPT + 1)[: N_EXCERPT + 1]) + b"\n"
    is_published = hashlib.sha256(beginning).hexdigest() == BEGINNING_SHA256
    frame = pd.read_csv(io.BytesIO(content)) if is_published else pd.DataFrame()
    if frame.shape != (n_rows, N_COLUMNS) or frame.isna().to_numpy().any():
        raise ValueError(f"{path} is not the published table of {n_rows:,} rows: remove it")
    return frame


def _content(path: Path) -> bytes:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix != ".zip":
        return path.read_bytes().replace(b"\r\n", b"\n")
    with zipfile.ZipFile(path) as archive:
        return archive.read(_CSV).replace(b"\r\n", b"\n")


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
