"""Fields of priors that may be arrays, with a number for each class, worker or feature.

A field declares the shapes it may have by the names of the axes. Alternatives differ in their
number of axes, so that a shape is never ambiguous. An axis of length one stands for all: a number
of pseudo-labels [1, cls] is that of each class, whoever the worker is.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jax import Array

from bayescrowd.checks.parameters import Finite, OpenFraction, Positive, Real, Rule, number_rule

__all__ = [
    "Numbers",
    "PerClass",
    "PerClassFinite",
    "PerClassFraction",
    "PerFeature",
    "PerFeatureRow",
    "PerRow",
    "PerRowFraction",
    "PerStrategy",
    "PerWorker",
    "PerWorkerFinite",
    "PerWorkerFraction",
    "Rows",
    "check_prior",
    "place_prior",
]

AnyPrior = TypeVar("AnyPrior")


class Numbers(NamedTuple):
    """Range of a number, and the shapes of the arrays of them that are accepted as well."""

    each: Real
    """Range of each number."""
    shapes: tuple[tuple[str, ...], ...]
    """Names of the axes, one entry for each shape; () is a single number."""

    def rules(self) -> Iterable[Rule]:
        """The rule for fields that are declared so; None will do where a number will not."""
        each = number_rule(self.each)

        def fits(value: Any) -> bool:
            return _is_array(value) or is_plain(value)

        def accepts(value: Any) -> bool:
            return self.axes(value) is not None if _is_array(value) else accepts_plain(value)

        def parts(value: Any) -> Iterable[tuple[str, Any, tuple[Rule, ...]]]:
            if _is_array(value):
                array = np.asarray(value, dtype=float)
                wrong = [at for at in np.ndindex(array.shape) if not each.accepts(array[at].item())]
                for at in wrong[:1]:
                    place = f"[{', '.join(map(str, at))}]" if at else ""
                    yield place, array[at].item(), (each,)

        def is_none(value: Any) -> bool:
            return value is None

        is_plain, accepts_plain = (each.fits, each.accepts) if () in self.shapes else (is_none,) * 2
        words = f"{each.words[0]} or an array {self.words()} of such numbers"
        yield Rule(fits, accepts, (words,), parts)

    def axes(self, value: Any) -> tuple[str, ...] | None:
        """Names of the axes of a value; None if it has a wrong number of axes."""
        return next((axes for axes in self.shapes if len(axes) == np.ndim(value)), None)

    def words(self) -> str:
        """The shapes in words."""
        return " or ".join(f"[{', '.join(axes)}]" for axes in self.shapes if axes)


_POSITIVE, _FRACTION, _FINITE = (
    typing.get_args(kind)[1] for kind in (Positive, OpenFraction, Finite)
)
_CLASS, _WORKER, _ROW = ((), ("cls",)), ((), ("worker",)), ((), ("worker",), ("worker", "cls"))

PerClass = Annotated[float | Array, Numbers(_POSITIVE, _CLASS)]
PerClassFraction = Annotated[float | Array, Numbers(_FRACTION, _CLASS)]
PerClassFinite = Annotated[float | Array, Numbers(_FINITE, _CLASS)]
PerWorker = Annotated[float | Array, Numbers(_POSITIVE, _WORKER)]
PerWorkerFraction = Annotated[float | Array, Numbers(_FRACTION, _WORKER)]
PerWorkerFinite = Annotated[float | Array, Numbers(_FINITE, _WORKER)]
PerRow = Annotated[float | Array, Numbers(_POSITIVE, _ROW)]
PerRowFraction = Annotated[float | Array, Numbers(_FRACTION, _ROW)]
PerStrategy = Annotated[float | Array, Numbers(_POSITIVE, ((), ("cls",), ("worker", "cls")))]
PerFeature = Annotated[float | Array, Numbers(_POSITIVE, ((), ("feature",)))]
PerFeatureRow = Annotated[
    float | Array, Numbers(_POSITIVE, ((), ("feature",), ("feature", "cls", "value")))
]
Rows = Annotated[
    Array | None, Numbers(_POSITIVE, (("cls", "observed"), ("worker", "cls", "observed")))
]


def check_prior(prior: Any, **sizes: int) -> None:
    """Check the shapes of a prior's arrays.

    Args:
        prior: a model's `Prior`.
        sizes: length of each axis by its name; the axis `observed` is as long as `cls`.

    Raises:
        ValueError: an array has a wrong shape.
    """
    sizes = {"observed": sizes.get("cls", 1), **sizes}
    for name, numbers in _declared(type(prior)).items():
        value = getattr(prior, name)
        shape = np.shape(value)
        if value is None or not shape:
            continue
        axes = numbers.axes(value)
        if axes is None or any(
            length not in (1, sizes[axis]) for axis, length in zip(axes, shape, strict=True)
        ):
            named = (", ".join(f"{axis}: {sizes[axis]}" for axis in s) for s in numbers.shapes if s)
            number = "a number or " if () in numbers.shapes else ""
            expected = " or ".join(f"({shape})" for shape in named)
            raise ValueError(
                f"prior.{name} has the shape {shape}: expected {number}an array of the shape "
                f"{expected}"
            )


def place_prior(prior: AnyPrior, ids: Mapping[str, pd.Index]) -> AnyPrior:
    """A prior whose Series and tables, keyed by ids, are arrays in the order of the ids.

    Args:
        prior: a model's `Prior`.
        ids: the ids along each axis, by the axis' name.

    Raises:
        ValueError: an id has no number.
    """
    placed = {}
    for name, numbers in _declared(type(prior)).items():
        value = getattr(prior, name)
        if isinstance(value, pd.Series | pd.DataFrame):
            axes = numbers.axes(value)
            if axes is None or not set(axes) <= set(ids):
                raise ValueError(
                    f"prior.{name} is a {type(value).__name__}; expected {numbers.words()}"
                )
            value = _placed(f"prior.{name}", value, [ids[axis] for axis in axes], axes)
        if isinstance(value, np.ndarray | list | tuple):
            value = np.asarray(value, dtype=np.float32)
        placed[name] = value
    record: Any = prior
    return record._replace(**placed) if placed else prior


def _placed(
    name: str, value: pd.Series | pd.DataFrame, ids: list[pd.Index], axes: tuple[str, ...]
) -> np.ndarray:
    for axis, own, wanted in zip(axes, value.axes, ids, strict=True):
        missing = wanted.difference(own, sort=False)
        if len(missing):
            raise ValueError(f"{name}: {axis} {missing[0]!r} has no number; expected one for each")
    found = value.reindex(ids[0])
    return (found[ids[1]] if len(ids) == 2 else found).to_numpy(np.float32)


def _declared(kind: type) -> dict[str, Numbers]:
    """The fields that may be arrays."""
    found: dict[str, Numbers] = {}
    for name, annotation in typing.get_type_hints(kind, include_extras=True).items():
        for note in getattr(annotation, "__metadata__", ()):
            if isinstance(note, Numbers):
                found[name] = note
    return found


def _is_array(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) or hasattr(value, "__jax_array__")
    return (is_array or isinstance(value, Array)) and value.dtype.kind in "iuf"
