"""Attributes of birds: the published rates of CUB-200-2011 and, if available, workers' labels.

For 200 species and 312 attributes such as 'has_bill_shape::hooked', CUB-200-2011 (Wah, Branson,
Welinder, Perona and Belongie 2011) gives the percentage of workers' labels that said yes. Its three
files are searched for in the subfolder `cub200_2011_class_level/` of the folders that
`public_files` names, and their SHA-256 sums are checked.

The labels of individual workers, 5 to 10 per image and attribute (Welinder et al. 2010), are not
part of it. If you have them, save them as `cub200_worker_labels.csv` (also with .gz) in one of
those folders: one row per label, with the columns image, species, attribute and present (0 or 1).
"""

from __future__ import annotations

import gzip
import hashlib
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayescrowd.datasets.public_files import data_folders, find_local

__all__ = [
    "AttributeRates",
    "has_rates",
    "has_worker_labels",
    "load_attribute_rates",
    "load_worker_labels",
]

_FOLDER = "cub200_2011_class_level"
_RATES = "class_attribute_labels_continuous.txt.gz"
_SHA256 = {
    "attributes.txt": "d5b158c197a8548071114150b2384c55cbd8881b32e57816c6ccc1437e946a1a",
    "classes.txt": "66a884364a73edde6c71eeb7fd5d8bb791e80979b64759bd6a5d5d209bdc02ba",
    _RATES: "44089a47d2c65b5aec0d9ba749b73be2cc5c93aba47369b765840becc992acad",
}
_WORKER_LABELS = ("cub200_worker_labels.csv", "cub200_worker_labels.csv.gz")
_COLUMNS = ["image", "species", "attribute", "present"]


class AttributeRates(NamedTuple):
    """How often workers said that the species have the attributes."""

    rates: pd.DataFrame
    """Share of labels that said yes, by species and attribute."""
    family: pd.Series
    """Category of each species: the last word of its name, such as 'Sparrow'."""


def has_rates() -> bool:
    """Whether the published rates are on this machine; their content is not checked."""
    return all(find_local(f"{_FOLDER}/{name}") is not None for name in _SHA256)


def has_worker_labels() -> bool:
    """Whether labels of individual workers are on this machine."""
    return find_local(*_WORKER_LABELS) is not None


def load_attribute_rates() -> AttributeRates:
    """The published rates.

    Raises:
        FileNotFoundError: a file is not on this machine.
        ValueError: a file is not the published one.

    Examples:
        >>> from bayescrowd.datasets import cub_birds
        >>> cub_birds.load_attribute_rates().rates.shape  # doctest: +SKIP
        (200, 312)
    """
    contents = {name: _read(name) for name in _SHA256}
    # On each line, the name follows a number: '1 001.Black_footed_Albatross'.
    names = {
        name: [line.split(" ", 1)[1] for line in contents[name].decode().splitlines()]
        for name in ("attributes.txt", "classes.txt")
    }
    species = [name.partition(".")[2].replace("_", " ") for name in names["classes.txt"]]
    rows = gzip.decompress(contents[_RATES]).decode().splitlines()
    rates = pd.DataFrame(
        np.array([row.split() for row in rows], dtype=float) / 100,
        index=pd.Index(species, name="species"),
        columns=pd.Index(names["attributes.txt"], name="attribute"),
    )
    return AttributeRates(rates, pd.Series([name.split()[-1] for name in species], rates.index))


def load_worker_labels() -> pd.DataFrame:
    """Labels of individual workers, one row each: image, species, attribute and present.

    Raises:
        FileNotFoundError: there is no such file on this machine.
        ValueError: a column is absent, or a label is neither 0 nor 1.
    """
    path = find_local(*_WORKER_LABELS)
    if path is None:
        raise FileNotFoundError(
            f"{_WORKER_LABELS[0]} is not on this machine: save it in {data_folders()[0]}, with the "
            f"columns {', '.join(_COLUMNS)}"
        )
    frame = pd.read_csv(path)
    for column in _COLUMNS:
        if column not in frame.columns:
            raise ValueError(f"{path}: no column {column!r}; expected {', '.join(_COLUMNS)}")
    if not frame["present"].isin([0, 1]).all():
        wrong = frame["present"][~frame["present"].isin([0, 1])].iloc[0]
        raise ValueError(f"{path}: column 'present': found {wrong!r}; expected 0 or 1")
    return frame[_COLUMNS]


def _read(name: str) -> bytes:
    """The bytes of a published file."""
    path = find_local(f"{_FOLDER}/{name}")
    if path is None:
        raise FileNotFoundError(
            f"{name}, a part of CUB-200-2011, is not on this machine: save it as "
            f"{data_folders()[0] / _FOLDER / name}"
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256[name]:
        raise ValueError(f"{path} is not the published file (its SHA-256 is not {_SHA256[name]})")
    return content
