"""What arguments may be: declared in signatures and checked in one place.

A signature says what it takes: `seed: Seed`, `n_iter: Count`, `prior: Literal["learned",
"uniform"]`, `strength: Positive | Literal["learned"]`. The same words that type checkers and
readers see are checked when the code runs: `@checked` checks the arguments of a function on every
call, `check_parameters` those that an estimator was made with, at `fit`, since scikit-learn's
constructors store what they get. What does not fit is refused with its name, its value and what was
expected: TypeError for a wrong type, ValueError for a wrong value.

NumPy's scalars pass for Python's, truth values never for numbers. NaN is no number, and infinity
only where it is declared. Annotations that name no plain type (`Any`, type variables, protocols)
are not checked.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union

import numpy as np

__all__ = [
    "Count",
    "Fraction",
    "NonNegative",
    "OpenFraction",
    "Positive",
    "Real",
    "Seed",
    "Tolerance",
    "Whole",
    "check_arguments",
    "check_parameters",
    "checked",
]

LARGEST_SEED = 2**32 - 1
"""JAX makes its keys of the lowest 32 bits: a larger seed would be the same as a smaller one."""


class Whole(NamedTuple):
    """A whole number in a range, both ends included."""

    least: int | None = None
    most: int | None = None

    def accepts(self, value: int) -> bool:
        """Whether the number lies in the range."""
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )

    def __str__(self) -> str:
        if self.least is None:
            return "a whole number"
        if self.most is None:
            return f"at least {self.least} (a whole number)"
        return f"a whole number from {self.least} to {self.most}"


class Real(NamedTuple):
    """A number in a range; its ends are included unless they are excluded by name."""

    least: float = -math.inf
    most: float = math.inf
    without_least: bool = False
    without_most: bool = False

    def accepts(self, value: float) -> bool:
        """Whether the number lies in the range; NaN never does."""
        above = value > self.least if self.without_least else value >= self.least
        below = value < self.most if self.without_most else value <= self.most
        return bool(above and below)

    def __str__(self) -> str:
        kind = "finite number" if self.most == math.inf and self.without_most else "number"
        if self.most == math.inf:
            if self.least == -math.inf:
                return f"a {kind}"
            return f"a {kind} {'above' if self.without_least else '>='} {self.least:g}"
        if self.without_least == self.without_most:
            between = "between {} and {}" if self.without_least else "from {} to {}"
            return f"a number {between.format(f'{self.least:g}', f'{self.most:g}')}"
        left, right = "(" if self.without_least else "[", ")" if self.without_most else "]"
        return f"a number in {left}{self.least:g}, {self.most:g}{right}"


Seed = Annotated[int, Whole(0, LARGEST_SEED)]
Count = Annotated[int, Whole(1)]
Positive = Annotated[float, Real(0, without_least=True, without_most=True)]
NonNegative = Annotated[float, Real(0, without_most=True)]
Tolerance = Annotated[float, Real(0)]
"""Infinity stops an iteration at its first step."""
Fraction = Annotated[float, Real(0, 1)]
OpenFraction = Annotated[float, Real(0, 1, without_least=True, without_most=True)]

_NAMES = {
    "Mapping": "a mapping",
    "PathLike": "a path",
    "ndarray": "an array",
    "str": "text",
}
"""What messages call some of the types."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def checked(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Check the arguments of every call against the function's annotations."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        check_arguments(function, signature.bind(*args, **kwargs).arguments)
        return function(*args, **kwargs)

    return call


def check_parameters(estimator: Any) -> None:
    """Check what an estimator was made with against its constructor's annotations."""
    make = type(estimator).__init__
    names = inspect.signature(make).parameters
    check_arguments(make, {name: getattr(estimator, name) for name in names if name != "self"})


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise unless each argument is what the function's annotation of it says.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: it has a wrong value.
    """
    rules = _rules_of(function)
    for name, value in arguments.items():
        expected = rules.get(name)
        if expected is None or any(rule.accepts(value) for rule in expected):
            continue
        *others, last = (word for rule in expected for word in rule.words)
        words = f"{', '.join(others)} or {last}" if others else last
        wrong = ValueError if any(rule.fits(value) for rule in expected) else TypeError
        raise wrong(f"{name}={_shown(value)}: expected {words}")


class _Rule(NamedTuple):
    """One of the things that an argument may be."""

    fits: Callable[[Any], bool]
    """Whether a value has the type."""
    accepts: Callable[[Any], bool]
    """Whether it has the type and is in range."""
    words: tuple[str, ...]
    """What was expected, for messages: one of these."""


@cache
def _rules_of(function: Callable[..., Any]) -> dict[str, tuple[_Rule, ...] | None]:
    """What each argument may be; None where that is not checked."""
    found = {}
    inner = inspect.unwrap(function)
    for name, annotation in inner.__annotations__.items():
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, inner.__globals__)
            except NameError:  # imported for type checkers alone
                continue
        found[name] = _alternatives(annotation)
    return found


def _alternatives(annotation: Any) -> tuple[_Rule, ...] | None:
    """The rules of an annotation, of which one must hold."""
    origin = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        parts = [_alternatives(part) for part in typing.get_args(annotation)]
        known = [part for part in parts if part is not None]
        return tuple(rule for part in known for rule in part) if len(known) == len(parts) else None
    if origin is Annotated:
        base, *notes = typing.get_args(annotation)
        ranges = [note for note in notes if isinstance(note, Whole | Real)]
        return (_number(ranges[0]),) if ranges else _alternatives(base)
    if origin is Literal:
        return (_choice(typing.get_args(annotation)),)
    if annotation is int:
        return (_number(Whole()),)
    if annotation is float:
        return (_number(Real(without_least=True, without_most=True)),)
    if annotation in (None, type(None)):
        return (_instance((type(None),), "None"),)
    return _of_class(annotation if origin is None else origin)


def _of_class(kind: Any) -> tuple[_Rule, ...] | None:
    if kind is bool:
        return (_instance((bool, np.bool_), "True or False"),)
    if kind in (Sequence, Iterable):  # text is a sequence of letters, but not of what is meant
        is_one = _takes_items
        return (_Rule(is_one, is_one, ("a list",)),)
    if kind in (Any, object) or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return None
    if hasattr(kind, "array_type"):  # jaxtyping's arrays, whose shapes the function knows
        return (_Rule(_is_array, _is_array, ("an array of numbers",)),)
    return (_instance((kind,), _NAMES.get(kind.__name__, f"a {kind.__name__}")),)


def _number(numbers: Whole | Real) -> _Rule:
    kinds = (int, np.integer) if isinstance(numbers, Whole) else (int, float, np.number)

    def fits(value: Any) -> bool:
        return isinstance(value, kinds) and not isinstance(value, bool | np.complexfloating)

    return _Rule(fits, lambda value: fits(value) and numbers.accepts(value), (str(numbers),))


def _choice(choices: tuple[Any, ...]) -> _Rule:
    kinds = {np.integer if type(choice) is int else type(choice) for choice in choices}
    kinds |= {type(choice) for choice in choices}

    def fits(value: Any) -> bool:
        return isinstance(value, tuple(kinds)) and (bool in kinds or not isinstance(value, bool))

    few = len(choices) < 3
    words = tuple(map(repr, choices)) if few else (f"one of {', '.join(map(str, choices))}",)
    return _Rule(fits, lambda value: fits(value) and value in choices, words)


def _instance(kinds: tuple[type, ...], words: str) -> _Rule:
    def fits(value: Any) -> bool:
        return isinstance(value, kinds)

    return _Rule(fits, fits, (words,))


def _takes_items(value: Any) -> bool:
    is_many = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return is_many and getattr(value, "ndim", 1) > 0


def _is_array(value: Any) -> bool:
    if not isinstance(value, Sequence) and not hasattr(value, "__array__"):
        return False
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # rows of different lengths
        return False


def _shown(value: Any, most: int = 60) -> str:
    """A value in a message: small ones as they are, large ones by their type."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if len(text) > most or "\n" in text:
        return f"a {type(value).__name__}"
    return text
