"""A fitted estimator in a file, with the version of the format.

The header names the estimator, which the reader looks up among the exported ones, and lists what
its instance holds: parameters, fitted attributes, and the private state that predicts new tasks. So
a restored fit predicts to the last bit what the fit before would have predicted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from bayescrowd._version import __version__
from bayescrowd.checks.parameters import check_parameters
from bayescrowd.estimator import ParameterMixin
from bayescrowd.saving.archive import read_archive, write_archive
from bayescrowd.saving.state import StateReader, StateWriter, parts_of

__all__ = ["FORMAT", "Saveable", "read_fit", "write_fit"]

FORMAT = 1
"""Version of the format. It rises when a class whose objects fits hold gains or loses a field."""

_KIND = "bayescrowd fit"


class Saveable(NamedTuple):
    """An estimator that a file may name."""

    estimator: type[ParameterMixin]
    """The class of the estimator."""
    state_classes: tuple[type, ...]
    """The classes of the objects that its fits hold."""


def write_fit(
    est: ParameterMixin,
    state_classes: tuple[type, ...],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> None:
    """Write a fitted estimator to a file.

    Args:
        est: the estimator.
        state_classes: the classes of the objects that its fits hold.
        path: path of the file.
        overwrite: whether to replace an existing file.

    Raises:
        FileExistsError: the file exists and `overwrite` is false.
        TypeError: the estimator is none of this package, or holds something that cannot be saved.
    """
    kind = type(est)
    if kind.__module__.partition(".")[0] != "bayescrowd" or kind.__name__.startswith("_"):
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} cannot be saved; expected an estimator that "
            "bayescrowd exports"
        )
    writer = StateWriter(state_classes)
    state = {
        name: writer.cell(value, f"{kind.__name__}.{name}") for name, value in parts_of(est).items()
    }
    header = {
        "kind": _KIND,
        "format": FORMAT,
        "bayescrowd": __version__,
        "estimator": kind.__name__,
        "state": state,
        "nodes": writer.nodes,
    }
    write_archive(path, header, writer.arrays, overwrite=overwrite)


def read_fit(
    path: str | os.PathLike[str], find: Callable[[str], Saveable | None]
) -> ParameterMixin:
    """Read a file of `write_fit`.

    Args:
        path: path of the file.
        find: the estimator of a name, None for a name that may not occur.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is none of `write_fit`, of a newer format, incomplete or damaged.
    """
    what, name = "fit saved by bayescrowd", os.fspath(path)
    header, arrays = read_archive(path, what)
    if header.get("kind") != _KIND:
        raise ValueError(f"{name}: expected a {what}, but it is a ZIP archive of another kind")
    version, writer = header.get("format"), header.get("bayescrowd")
    if type(version) is int and version != FORMAT:
        advice = "a newer bayescrowd reads it" if version > FORMAT else "fit and save it again"
        raise ValueError(
            f"{name}: saved in format {version} by bayescrowd {writer}, but bayescrowd "
            f"{__version__} reads format {FORMAT}; {advice}"
        )
    found = find(str(header.get("estimator")))
    if found is None:
        raise ValueError(
            f"{name}: saved from the estimator {header.get('estimator')!r}, which bayescrowd "
            f"{__version__} does not have"
        )
    try:
        reader = StateReader(header["nodes"], arrays, found.state_classes)
        est = object.__new__(found.estimator)
        vars(est).update({key: reader.value(cell) for key, cell in header["state"].items()})
        check_parameters(est)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise ValueError(f"{name}: expected a {what}, but it is damaged") from None
    return est
