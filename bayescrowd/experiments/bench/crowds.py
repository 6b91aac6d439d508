"""The crowds of a folder, or of data sets: judgements with the true classes of some or all tasks.

Each crowd is a folder of its own, `NAME/labels.csv` (or `labels.csv.gz`) and `NAME/truth.csv` (or
`truth.csv.gz`), with the columns that `read_annotations` and `read_truth` recognise. Other files
and folders without a file of labels are ignored.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bayescrowd.data.annotations import Annotations
from bayescrowd.datasets.registry import fetch, load_dataset
from bayescrowd.io.reading import read_annotations, read_known_labels

__all__ = ["BenchCrowd", "published_crowds", "read_crowds"]


class BenchCrowd(NamedTuple):
    """A crowd whose truth is known."""

    name: str
    """Name of its folder."""
    annotations: Annotations
    """The judgements."""
    truth: pd.Series
    """True class by task; never given to a method."""
    n_unchosen: int
    """Number of tasks whose true class nobody chose."""
    digest: str
    """SHA-256 of the two files and of how they are read; results of a crowd with another digest
    are not used again."""


def read_crowds(folder: str | os.PathLike[str], *, tidy: bool = False) -> list[BenchCrowd]:
    r"""Read every crowd of a folder, in the order of their names.

    Args:
        folder: folder with one folder per crowd.
        tidy: whether to merge labels that differ only in case or surrounding blanks.

    Raises:
        FileNotFoundError: there is no such folder, or a crowd has no truth.
        ValueError: there is no crowd in the folder, a file cannot be read, or no task of a truth
            has labels.

    Warns:
        TruthWarning: some tasks of a truth have no labels, and are left out.

    Examples:
        >>> import tempfile
        >>> home = Path(tempfile.mkdtemp(), "birds")
        >>> home.mkdir()
        >>> _ = (home / "labels.csv").write_text("task,worker,label\n1,ann,owl\n1,bob,wren\n")
        >>> _ = (home / "truth.csv").write_text("task,label\n1,owl\n")
        >>> [(crowd.name, crowd.annotations.n_labels) for crowd in read_crowds(home.parent)]
        [('birds', 2)]
    """
    home = Path(folder)
    if not home.exists():
        raise FileNotFoundError(f"{home}: there is no such folder")
    if not home.is_dir():
        raise ValueError(f"{home}: this is a file; expected a folder with one folder per crowd")
    found = [place for place in sorted(home.iterdir()) if _table_in(place, "labels") is not None]
    if not found:
        raise ValueError(
            f"{home}: there is no crowd in it; expected NAME/labels.csv (or labels.csv.gz) and "
            "NAME/truth.csv"
        )
    return [_read_crowd(place, tidy=tidy) for place in found]


def published_crowds(names: Sequence[str]) -> list[BenchCrowd]:
    """The crowds of data sets whose truth is known, in the given order.

    Raises:
        ValueError: a data set is unknown, or its truth is.
        OSError: a file is not on this machine and could not be downloaded.
    """
    return [_published_crowd(name) for name in names]


def _published_crowd(name: str) -> BenchCrowd:
    data = load_dataset(name)
    if data.truth is None:
        raise ValueError(f"no truth is known for the data set {name!r}; expected one with truth")
    is_here = data.truth.index.isin(data.annotations.tasks)
    truth = data.truth[is_here]
    n_unchosen = int((~truth.isin(data.annotations.classes)).sum())
    digest = _digest(fetch(name), tidy=False)
    return BenchCrowd(name, data.annotations, truth, n_unchosen, digest)


def _digest(paths: Iterable[Path], *, tidy: bool) -> str:
    digest = hashlib.sha256(b"tidy" if tidy else b"")
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read_crowd(place: Path, *, tidy: bool) -> BenchCrowd:
    labels, truth = _table_in(place, "labels"), _table_in(place, "truth")
    assert labels is not None  # only such folders are read
    if truth is None:
        raise FileNotFoundError(f"{place / 'truth.csv'}: there is no such file")
    annotations = read_annotations(labels, tidy=tidy)
    known = read_known_labels(
        truth, annotations, task=None, label=None, name="truth", raw_cells=False, tidy=tidy
    )
    annotations = replace(annotations, notes=(*annotations.notes, *known.notes))
    digest = _digest((labels, truth), tidy=tidy)
    return BenchCrowd(place.name, annotations, known.labels, known.n_unchosen, digest)


def _table_in(place: Path, stem: str) -> Path | None:
    """The file of a crowd with this name, plain or gzipped.

    Raises:
        ValueError: both are there, and may differ.
    """
    paths = [place / f"{stem}.csv{end}" for end in ("", ".gz")]
    found = [path for path in paths if path.is_file()]
    if len(found) > 1:
        raise ValueError(f"{found[0]}: {found[1].name} is there too; expected only one of the two")
    return found[0] if found else None
