"""Named public data sets: found on this machine or downloaded, and always checked.

`public_files` explains where files are searched for and how they are checked.

The five crowds with known truth are those of Zhang, Chen, Zhou and Jordan, "Spectral methods meet
EM" (2014), in the files of their repository; ids and labels are the integers of these files, which
start from one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.dataset import Dataset
from bayescrowd.data.table_dataset import TableDataset
from bayescrowd.data.text import did_you_mean
from bayescrowd.datasets.ct_slices import load_ct_slices
from bayescrowd.datasets.public_files import PublicFile, is_here, locate

__all__ = [
    "catalogue",
    "crowd_names",
    "dataset_names",
    "fetch",
    "has_truth",
    "is_local",
    "load_dataset",
    "load_table",
]


@validate_arguments
def load_dataset(name: str) -> Dataset:
    """Load a published crowd: its judgements, and the truth where it is known.

    Args:
        name: name of the crowd: 'bluebird', 'rte', 'trec', 'dog', 'web' or 'anaesthetist'.

    Returns:
        The data set, with `parameters` None. `truth` holds only the tasks whose class is known:
        all of bluebird, rte and dog, 2,275 of trec's 19,033 and 2,653 of web's 2,665; it is None
        for anaesthetist. The truth published with web appears to have been built from the labels
        of eight of its most active workers: agreement with it is no evidence of a method's quality.

    Raises:
        ValueError: the name is unknown, or a file is not the published one.
        OSError: a file is not on this machine and could not be downloaded; the message says what
            to do. A failed transfer is a `ConnectionError`.

    Examples:
        >>> import bayescrowd as bc
        >>> bluebird = bc.load_dataset("bluebird")  # doctest: +SKIP
        >>> bluebird.annotations  # doctest: +SKIP
        Annotations(4,212 labels: 108 tasks, 39 workers, 2 classes)
        >>> bc.load_dataset("cub")
        Traceback (most recent call last):
            ...
        ValueError: no data set 'cub'; expected one of bluebird, rte, trec, dog, web, anaesthetist
    """
    entry = _lookup(name, _CROWDS, "data set", _TABLES, "load_table")
    paths = fetch(name)
    annotations = _read_anaesthetist(*paths) if name == "anaesthetist" else _read_crowd(paths[0])
    truth = _read_truth(paths[1]) if len(paths) > 1 else None
    return Dataset(
        annotations=annotations,
        truth=truth,
        description=entry.description,
        name=name,
        source=entry.source,
        parameters=None,
    )


@validate_arguments
def load_table(name: str) -> TableDataset:
    """Load a published table of instances with their features and class.

    Args:
        name: name of the table. 'nursery' has eight features in words and five classes.
            'breast-cancer' has nine features graded 1 to 10 and the classes 2 (benign) and 4
            (malignant); its ids are not unique and are left out, so that rows are numbered 0, 1,
            ...; its sixteen missing values, all of `bare_nuclei`, are NaN. 'ct-slices' has a number
            as its target (see `bayescrowd.datasets.ct_slices`).

    Raises:
        ValueError: the name is unknown, or a file is not the published one.
        OSError: a file is not on this machine and could not be downloaded; the message says what
            to do. A failed transfer is a `ConnectionError`.

    Examples:
        >>> import bayescrowd as bc
        >>> nursery = bc.load_table("nursery")  # doctest: +SKIP
        >>> nursery.features.shape, nursery.target.nunique()  # doctest: +SKIP
        ((12960, 8), 5)
    """
    if name == "ct-slices":
        return load_ct_slices()
    entry = _lookup(name, _TABLES, "table", _CROWDS, "load_dataset")
    (path,) = fetch(name)
    features, target = _read_nursery(path) if name == "nursery" else _read_breast_cancer(path)
    return TableDataset(
        features=features,
        target=target,
        description=entry.description,
        name=name,
        source=entry.source,
    )


def dataset_names() -> tuple[str, ...]:
    """Names of the crowds, followed by those of the tables.

    Examples:
        >>> from bayescrowd import datasets
        >>> ", ".join(datasets.dataset_names())
        'bluebird, rte, trec, dog, web, anaesthetist, nursery, breast-cancer'
    """
    return (*_CROWDS, *_TABLES)


def crowd_names() -> tuple[str, ...]:
    """Names of the crowds.

    Examples:
        >>> crowd_names()
        ('bluebird', 'rte', 'trec', 'dog', 'web', 'anaesthetist')
    """
    return tuple(_CROWDS)


def has_truth(name: str) -> bool:
    """Whether the truth of some tasks of a crowd is known.

    Examples:
        >>> has_truth("bluebird"), has_truth("anaesthetist")
        (True, False)
    """
    return len(_lookup(name, _CROWDS, "data set").files) > 1


def catalogue() -> pd.DataFrame:
    """Table of the data sets: kind, whether they are on this machine, and description.

    Examples:
        >>> from bayescrowd import datasets
        >>> datasets.catalogue()["kind"].value_counts().to_dict()
        {'crowd': 6, 'table': 2}
    """
    rows = [
        {
            "name": name,
            "kind": "crowd" if name in _CROWDS else "table",
            "local": is_local(name),
            "description": entry.description,
        }
        for name, entry in (_CROWDS | _TABLES).items()
    ]
    return pd.DataFrame(rows).set_index("name")


@validate_arguments
def is_local(name: str) -> bool:
    """Whether all files of the data set are on this machine; their content is not checked.

    Examples:
        >>> from bayescrowd import datasets
        >>> datasets.is_local("bluebird") in (True, False)
        True
    """
    entry = _lookup(name, _CROWDS | _TABLES, "data set")
    return all(is_here(file) for file in entry.files)


@validate_arguments
def fetch(name: str) -> list[Path]:
    """Paths of the checked files of a data set; those not on this machine are downloaded.

    Args:
        name: name of the data set, one of `dataset_names()`.

    Returns:
        For a crowd, the file of labels and, if the truth is known, the file of the truth; for a
        table, its only file.

    Raises:
        ValueError: the name is unknown, or a file is not the published one.
        OSError: a file is not on this machine and could not be downloaded; the message says what
            to do. A failed transfer is a `ConnectionError`.

    Examples:
        >>> from bayescrowd import datasets
        >>> [path.name for path in datasets.fetch("rte")]  # doctest: +SKIP
        ['rte_crowd.txt', 'rte_truth.txt']
    """
    entry = _lookup(name, _CROWDS | _TABLES, "data set")
    return [locate(file) for file in entry.files]


class _Entry(NamedTuple):
    """One data set."""

    files: tuple[PublicFile, ...]
    """Files of the data set, in the order in which `fetch` returns them."""
    description: str
    """The text of `Dataset.description`."""
    source: str
    """The text of `Dataset.source`."""


def _lookup(
    name: str,
    entries: dict[str, _Entry],
    what: str,
    others: dict[str, _Entry] | None = None,
    loader: str = "",
) -> _Entry:
    if others is not None and name in others:
        raise ValueError(f"{name!r} is not a {what}: use {loader}({name!r})")
    if name not in entries:
        raise ValueError(f"no {what} {name!r}; {did_you_mean(name, entries)}")
    return entries[name]


def _read_crowd(path: Path) -> Annotations:
    """Labels from a file with lines `task worker label`."""
    columns = ["task", "worker", "label"]
    frame = pd.read_csv(path, sep=r"\s+", header=None, names=columns, dtype="int64")
    return Annotations.from_frame(frame, source=path.name)


def _read_truth(path: Path) -> pd.Series:
    """Truth from a file with lines `task label`; the file of dog repeats them once per label."""
    frame = pd.read_csv(path, sep=r"\s+", header=None, names=["task", "truth"], dtype="int64")
    return frame.drop_duplicates().set_index("task")["truth"].sort_index()


def _read_anaesthetist(path: Path) -> Annotations:
    """Labels from a file with rows item, observer, label."""
    return Annotations.from_frame(
        pd.read_csv(path), task="item", worker="observer", label="label", source=path.name
    )


def _read_nursery(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return frame.drop(columns="classification"), frame["classification"]


def _read_breast_cancer(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.read_csv(path, na_values="?")
    features = frame.drop(columns=["id", "class"])
    return features.set_axis(list(_BREAST_CANCER_FEATURES), axis="columns"), frame["class"]


_BREAST_CANCER_FEATURES = (
    "clump_thickness",
    "cell_size_uniformity",
    "cell_shape_uniformity",
    "marginal_adhesion",
    "epithelial_cell_size",
    "bare_nuclei",
    "bland_chromatin",
    "normal_nucleoli",
    "mitoses",
)
"""UCI's names for the columns that the file calls a to i."""

_ANAESTHETIST_IN_R = (
    'create it in R with write.csv(setNames(rater::anesthesia, c("item", "observer", "label")), '
    '"anaesthetist.csv", row.names = FALSE, quote = FALSE)'
)

_SPECTRAL = "zhangyuc/SpectralMethodsMeetEM/6204f5fcab1766cb1b2c40fc1bff53b1613ddc6c/src"
_NURSERY = "jtreglos/machine-learning_classification/b61122f9d1afba396fcddca52306c0acd1e79890"
_BREAST_CANCER = "cdvel/Datasets/ab37c4c4ffbae70c7d14fa83a6654f55976e331d"

_AS_IN_ZHANG = "as distributed with Zhang, Chen, Zhou and Jordan, NIPS 2014"


def _spectral_files(
    name: str, crowd_sha256: str, truth_sha256: str
) -> tuple[PublicFile, PublicFile]:
    return (
        PublicFile(f"{name}_crowd.txt", crowd_sha256, _SPECTRAL),
        PublicFile(f"{name}_truth.txt", truth_sha256, _SPECTRAL),
    )


_CROWDS = {
    "bluebird": _Entry(
        _spectral_files(
            "bluebird",
            "a63231e23dc02d0873d76669684812f9bad53a73f0580f43f4295175987f347e",
            "690660bf75f24d052bec3bb55bb8dc5f7ebdadbaf36de5db9a031221f2db2ce3",
        ),
        "Which of two bird species is in the picture? 108 pictures, 39 workers who each judged "
        "all of them, 2 classes.",
        f"Welinder, Branson, Belongie and Perona, NIPS 2010; {_AS_IN_ZHANG}",
    ),
    "rte": _Entry(
        _spectral_files(
            "rte",
            "a51b7a607587accf7800895a8f0c005eaac28a23fbac6524432666960c5673e2",
            "0782ff14373c7fe3b2c652d0cc6b768512ed9edc718e2dcf790426c3045430a1",
        ),
        "Does one sentence follow from another? 800 pairs, 164 workers, ten judgements per "
        "pair, 2 classes.",
        f"Snow, O'Connor, Jurafsky and Ng, EMNLP 2008; {_AS_IN_ZHANG}",
    ),
    "trec": _Entry(
        _spectral_files(
            "trec",
            "821141b1e95b1ff516ebccf6869f2ac88ca93035d6991b8039d76275866de402",
            "405b4ff78e79b912252f19ff68116e71abe3a21c2051c7c701e7a16acbeae3e4",
        ),
        "Is a web page relevant to a query? 19,033 pairs, 762 workers, 88,385 judgements, "
        "2 classes; truth for 2,275 pairs.",
        f"Lease and Kazai, TREC 2011 crowdsourcing track; {_AS_IN_ZHANG}",
    ),
    "dog": _Entry(
        _spectral_files(
            "dog",
            "1b5c88e0e6c08b8bcfb27be2c43093af06a0d649edc6a65ad719d5204b894b24",
            "e1378e027b6e51b664b0c75a61e638d71bbede890cd4af2a2c4dae3718596d24",
        ),
        "Which of four breeds is the dog in the picture? 807 pictures of ImageNet, 109 workers, "
        "ten judgements per picture, 4 classes.",
        f"Zhou, Platt, Basu and Mao, NIPS 2012; {_AS_IN_ZHANG}",
    ),
    "web": _Entry(
        _spectral_files(
            "web",
            "5b1ad44cebdcf59d42c83393a7dc3f4aa46746f5428c4caac275350247da6d6f",
            "7ff13173d6ad447e6959fa5226bcbef756ebe34d712eae908de30036824fc94f",
        ),
        "How relevant is a web page to a query, in five grades? 2,665 pairs, 177 workers, "
        "15,567 judgements; truth for 2,653 pairs. Beware: the published truth appears to be "
        "built from eight of its own most active workers (where at least two of them agree "
        "uniquely, it never differs from them), so a low error here is no evidence of a "
        "method's quality.",
        f"Zhou, Platt, Basu and Mao, NIPS 2012; {_AS_IN_ZHANG}",
    ),
    "anaesthetist": _Entry(
        (
            PublicFile(
                "anaesthetist.csv",
                "8d662ea61f06adea8477bc94909ae799894c695b59c788590975aaf53213755e",
                folder=None,
                recipe=_ANAESTHETIST_IN_R,
            ),
        ),
        "How fit is a patient for anaesthesia, in four grades? 45 patients, 5 observers, of whom "
        "the first judged every patient three times: 315 judgements. No truth is known.",
        "Dawid and Skene, Applied Statistics 28, 1979, table 1; from the R package rater",
    ),
}

_TABLES = {
    "nursery": _Entry(
        (
            PublicFile(
                "nursery.data",
                "d520b990238aa05da0e08d84f9a33217c2f942de3ea0082162e63cf51e321544",
                _NURSERY,
            ),
        ),
        "Ranks of applications to nursery schools: 12,960 rows, every combination of 8 "
        "features in words, 5 classes, of which 'recommend' has 2 rows.",
        "Rajkovič et al., Nursery, UCI Machine Learning Repository, 1997",
    ),
    "breast-cancer": _Entry(
        (
            PublicFile(
                "breast-cancer-wisconsin.data",
                "ce67dbd019c1b0986c8288a2e6f8d1558eeddf208087f7dd5a6b65ae5114ba8d",
                _BREAST_CANCER,
            ),
        ),
        "Breast tumours, 2 (benign) or 4 (malignant): 699 rows, 9 features graded 1 to 10; 16 "
        "values of bare_nuclei are missing. The file's ids repeat (645 distinct) and are left "
        "out.",
        "Wolberg and Mangasarian, Breast Cancer Wisconsin (Original), UCI Machine Learning "
        "Repository, 1992",
    ),
}
