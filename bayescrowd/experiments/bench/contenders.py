"""The methods that a bench measures: aggregators of the package, and classes of the user's own.

A class of one's own is named `package.module:Class` and found on Python's path or in the current
directory. It is constructed without arguments and given a table with the columns task, worker and
label. Either `fit(table)` leaves `probas_`, or `fit_predict_proba(table)` returns probabilities: a
DataFrame, tasks x classes, with the tasks and classes of the table. The aggregators of crowd-kit
are such classes.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import bayescrowd  # aggregators are found by their public names
from bayescrowd._version import __version__
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.text import shorten

__all__ = ["Contender", "exported_contender", "own_contender"]

_NOT_MEASURED = ("cli", "experiments", "plots")
"""Folders of the package on which no result of a method depends."""


class Contender(NamedTuple):
    """A method to measure."""

    name: str
    """Its name in tables."""
    origin: str
    """Where the class is, `module:Class`."""
    kind: type[Any]
    """The class; constructed without arguments for each crowd."""
    version: str
    """Version and digest of the code; results of another version are not used again."""
    settings: str
    """Parameters of the method, defaults included."""


def exported_contender(name: str) -> Contender:
    """An aggregator of the package by its public name.

    Raises:
        ValueError: the package exports no aggregator of this name.

    Examples:
        >>> exported_contender("MajorityVote").origin
        'bayescrowd.aggregation.majority:MajorityVote'
    """
    kind = getattr(bayescrowd, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Aggregator)):
        raise ValueError(f"bayescrowd has no aggregator {name!r}")
    return _contender(name, kind, _library_version())


def own_contender(origin: str) -> Contender:
    """A class of the user's own.

    Args:
        origin: `package.module:Class`; the module may lie in the current directory.

    Raises:
        ValueError: there is no such module or class, importing or constructing it fails, or it has
            neither `fit` nor `fit_predict_proba`.

    Examples:
        >>> own_contender("bayescrowd.aggregation.majority:Wawa").name
        'Wawa'
        >>> own_contender("bayescrowd.aggregation.majority")
        Traceback (most recent call last):
        ValueError: 'bayescrowd.aggregation.majority': expected package.module:Class
    """
    module_name, colon, class_name = origin.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module_name.split("."), class_name))):
        raise ValueError(f"{origin!r}: expected package.module:Class")
    with _current_directory_on_path():
        try:
            module = import_module(module_name)
        except Exception as fault:  # whatever the user's module raises on import
            raise ValueError(
                f"{origin}: importing {module_name} failed: {_reason(fault)}"
            ) from fault
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        raise ValueError(f"{origin}: {module_name} has no class {class_name!r}")
    if not any(callable(getattr(kind, name, None)) for name in ("fit", "fit_predict_proba")):
        raise ValueError(
            f"{origin}: the class has neither fit nor fit_predict_proba; expected fit(table), "
            "which leaves probas_, or fit_predict_proba(table)"
        )
    try:
        source = Path(inspect.getfile(kind)).read_bytes()
    except (OSError, TypeError):  # compiled, or made while running
        source = b""
    version = f"{_library_version()}, own {hashlib.sha256(source).hexdigest()[:16]}"
    return _contender(class_name, kind, version)


def _contender(name: str, kind: type[Any], version: str) -> Contender:
    origin = f"{kind.__module__}:{kind.__qualname__}"
    try:
        made = kind()
    except Exception as fault:  # whatever the user's constructor raises
        raise ValueError(
            f"{origin}: constructing it without arguments failed: {_reason(fault)}"
        ) from fault
    parameters = made.get_params() if hasattr(made, "get_params") else {}
    settings = ", ".join(f"{key}={value!r}" for key, value in sorted(parameters.items()))
    return Contender(name, origin, kind, version, settings)


@contextmanager
def _current_directory_on_path() -> Iterator[None]:
    """Let imports find modules of the current directory, after everything else."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


@cache
def _library_version() -> str:
    """Version of the package, and a digest of the code that methods may use.

    A version alone would let results of yesterday's code pass for those of today's.
    """
    home = Path(bayescrowd.__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*home.rglob("*.py"), *(home / "models").rglob("*.py")]):
        place = path.relative_to(home)
        if place.parts[0] not in _NOT_MEASURED:
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:16]}"


def _reason(fault: Exception) -> str:
    """What went wrong, in one line."""
    return shorten(f"{type(fault).__name__}: {fault}".rstrip(": "), 300)
