"""What arguments may be: declared in signatures and checked in one place.

A signature says what it takes: `seed: Seed`, `n_iter: Count`, `prior: Literal["learned",
"uniform"]`, `strength: Positive | Literal["learned"]`. The same words that type checkers and
readers see are checked when the code runs: `@validate_arguments` checks the arguments of a
function on every call, `check_parameters` those that an estimator was made with, at `fit`, since
scikit-learn's constructors store what they get. What does not fit is refused with its name, its
value and what was expected: TypeError for a wrong type, ValueError for a wrong value.

NumPy's scalars pass for Python's, truth values never for numbers. NaN is no number, and infinity
only where it is declared. Entries of lists, values of mappings and those fields of named tuples
that declare a range are checked by their own annotations; arrays by their axes and the kind of
their entries; a class that is imported for type checkers alone by its name. Annotations that name
no plain type (`Any`, type variables, protocols) are not checked, nor is what JAX's arrays hold.
"""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union

import numpy as np
from jaxtyping import Float

__all__ = [
    "Count",
    "Finite",
    "Fraction",
    "NonNegative",
    "OpenFraction",
    "Positive",
    "Real",
    "Seed",
    "Tolerance",
    "Whole",
    "as_numbers",
    "check_arguments",
    "check_fields",
    "check_parameters",
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
Finite = Annotated[float, Real(without_least=True, without_most=True)]
Tolerance = Annotated[float, Real(0)]
"""Infinity stops an iteration at its first step."""
Fraction = Annotated[float, Real(0, 1)]
OpenFraction = Annotated[float, Real(0, 1, without_least=True, without_most=True)]

_NAMES = {
    "Hashable": "an id",
    "Mapping": "a mapping",
    "PathLike": "a path",
    "str": "text",
}
"""What messages call some of the types."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def validate_arguments(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
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
        _check(name, value, rules.get(name))


def check_fields(name: str, record: Any) -> None:
    """Raise unless each field of a named tuple, which messages call `name`, is as annotated."""
    for place, value, rules in _fields(record):
        _check(f"{name}{place}", value, rules)


def as_numbers(name: str, values: Any) -> Float[np.ndarray, "*shape"]:
    """An array, a series or a table as floats; messages call it `name`.

    Raises:
        ValueError: an entry is no number.
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers ({error})") from None


class _Rule(NamedTuple):
    """One of the things that an argument may be."""

    fits: Callable[[Any], bool]
    """Whether a value has the type."""
    accepts: Callable[[Any], bool]
    """Whether it has the type and is in range, its parts aside."""
    words: tuple[str, ...]
    """What was expected, for messages: one of these."""
    parts: Callable[[Any], Iterable[tuple[str, Any, Rules]]] = lambda value: ()
    """Entries of a list, values of a mapping or fields of a record, each with what follows the
    argument's name in messages and with the rules that it has to meet."""


Rules = tuple[_Rule, ...] | None
"""What something may be: one of these. None where that is not checked."""


def _check(name: str, value: Any, rules: Rules) -> None:
    """Raise with the name of the argument, or of the part of it that is wrong."""
    if rules is None or _is_right(value, rules):
        return
    for rule in rules:
        if rule.accepts(value):
            for place, part, inner in rule.parts(value):
                _check(f"{name}{place}", part, inner)
    *others, last = dict.fromkeys(word for rule in rules for word in rule.words)
    words = f"{', '.join(others)} or {last}" if others else last
    wrong = ValueError if any(rule.fits(value) for rule in rules) else TypeError
    raise wrong(f"{name}={_shown(value)}: expected {words}")


def _is_right(value: Any, rules: Rules) -> bool:
    return rules is None or any(
        rule.accepts(value) and all(_is_right(part, inner) for _, part, inner in rule.parts(value))
        for rule in rules
    )


class _NotLoaded:
    """Stands for a class that is imported for type checkers alone, and known by its name."""

    def __class_getitem__(cls, _: Any) -> type:
        return cls


class _Scope(dict[str, Any]):
    """The names of a module, those that are imported for type checkers alone among them."""

    def __missing__(self, name: str) -> type:
        if hasattr(builtins, name):
            raise KeyError(name)
        return type(name, (_NotLoaded,), {})


@cache
def _rules_of(function: Callable[..., Any]) -> dict[str, Rules]:
    """What each argument may be."""
    inner = inspect.unwrap(function)
    return _rules_in(inner.__annotations__, inner.__globals__)


@cache
def _rules_of_fields(record: Any) -> dict[str, Rules]:
    """What each field of a named tuple may be that declares a range; others are results too."""
    scope = _Scope(vars(sys.modules[record.__module__]))
    found = {name: _evaluated(kind, scope) for name, kind in record.__annotations__.items()}
    ranges = {name: kind for name, kind in found.items() if typing.get_origin(kind) is Annotated}
    return _rules_in(ranges, scope)


def _rules_in(annotations: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Rules]:
    scope = _Scope(names)
    return {
        name: _alternatives(annotation, scope)
        for name, annotation in annotations.items()
        if name != "return"
    }


def _alternatives(annotation: Any, scope: _Scope) -> Rules:
    """The rules of an annotation, of which one must hold."""
    annotation = _evaluated(annotation, scope)
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        parts = [_alternatives(part, scope) for part in inside]
        known = [part for part in parts if part is not None]
        return tuple(rule for part in known for rule in part) if len(known) == len(parts) else None
    if origin is Annotated:
        base, *notes = inside
        ranges = [note for note in notes if isinstance(note, Whole | Real)]
        return (_number(ranges[0]),) if ranges else _alternatives(base, scope)
    if origin is Literal:
        return (_choice(inside),)
    if origin in (Sequence, Iterable):  # text is a sequence of letters, but not of what is meant
        return (_list(_takes_items, "a list", _alternatives(inside[0], scope)),)
    if origin is tuple and inside[1:] == (...,):
        is_one = _instance((tuple,), "").fits
        return (_list(is_one, "a tuple", _alternatives(inside[0], scope)),)
    if origin is Mapping:
        return (_mapping(_alternatives(inside[1], scope)),)
    if annotation is int:
        return (_number(Whole()),)
    if annotation is float:
        return (_number(Real(without_least=True, without_most=True)),)
    if annotation in (None, type(None)):
        return (_instance((type(None),), "None"),)
    return _of_class(annotation if origin is None else origin)


def _evaluated(annotation: Any, scope: _Scope) -> Any:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    return eval(annotation, {}, scope) if isinstance(annotation, str) else annotation


def _of_class(kind: Any) -> Rules:
    if kind is bool:
        return (_instance((bool, np.bool_), "True or False"),)
    if kind in (Any, object) or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return None
    if hasattr(kind, "array_type"):  # jaxtyping's
        return (_array(kind),)
    if kind is np.ndarray:
        return (_Rule(_is_numeric, _is_numeric, ("an array of numbers",)),)
    words = _NAMES.get(kind.__name__, f"a {kind.__name__}")
    if issubclass(kind, _NotLoaded):
        return (_named(kind.__name__, words),)
    rule = _instance((kind,), words)
    return (rule._replace(parts=_fields) if hasattr(kind, "_fields") else rule,)


def _named(name: str, words: str) -> _Rule:
    """An instance of a class of this name or of one that inherits from it."""

    def fits(value: Any) -> bool:
        return any(base.__name__ == name for base in type(value).__mro__)

    return _Rule(fits, fits, (words,))


def _fields(record: Any) -> Iterable[tuple[str, Any, Rules]]:
    """The fields of a named tuple; where JAX traces them there are no values to check."""
    for name, rules in _rules_of_fields(record.__class__).items():
        value = getattr(record, name)
        if not _is_traced(value):
            yield f".{name}", value, rules


def _list(is_one: Callable[[Any], bool], words: str, entry: Rules) -> _Rule:
    def parts(value: Any) -> Iterable[tuple[str, Any, Rules]]:
        if entry is None or not isinstance(value, Collection):  # an iterator can be read but once
            return
        places: Iterable[int] = range(len(value))
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf":
            # Ranges are intervals, so the extremes tell; NaN is both.
            places = (int(value.argmin()), int(value.argmax())) if len(value) else ()
        listed = value if isinstance(value, Sequence | np.ndarray) else list(value)
        yield from ((f"[{place}]", listed[place], entry) for place in places)

    return _Rule(is_one, is_one, (words,), parts)


def _mapping(entry: Rules) -> _Rule:
    def parts(value: Any) -> Iterable[tuple[str, Any, Rules]]:
        if entry is not None:
            yield from ((f"[{key!r}]", value[key], entry) for key in value)

    return _instance((Mapping,), "a mapping")._replace(parts=parts)


def _array(annotation: Any) -> _Rule:
    """An array, or rows in lists, by the number of axes and the kind of the entries.

    How long the axes have to be, the function knows.
    """
    dtypes, axes = annotation.dtypes, annotation.dim_str.split()
    if dtypes in (("prng_key",), ("uint32",)):
        return _instance((annotation,), "a key of jax.random")
    of_any_shape = any(axis.startswith(("*", "...")) for axis in axes)
    kinds, entries = "biuf", "numbers"
    if not isinstance(dtypes, tuple):  # of any kind
        kinds, entries = "biufOSU", "values"
    elif not any("float" in dtype for dtype in dtypes):
        kinds, entries = ("b", "truth values") if "bool" in dtypes else ("iu", "whole numbers")

    def fits(value: Any) -> bool:
        return _is_array(value, kinds)

    def accepts(value: Any) -> bool:
        return fits(value) and (of_any_shape or np.ndim(value) == len(axes))

    def parts(value: Any) -> Iterable[tuple[str, Any, Rules]]:
        if annotation.array_type is not np.ndarray:  # JAX's may be traced, or logarithms
            return
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            finite = _number(Real(without_least=True, without_most=True))
            yield f"[{', '.join(map(str, place))}]", array[place].item(), (finite,)

    named = "" if of_any_shape or "_" in axes else f" by {', '.join(axes)}"
    return _Rule(fits, accepts, (f"an array of {entries}{named}",), parts)


def _number(numbers: Whole | Real) -> _Rule:
    kinds = (int, np.integer) if isinstance(numbers, Whole) else (int, float, np.number)

    def fits(value: Any) -> bool:
        return isinstance(value, kinds) and not isinstance(value, bool | np.complexfloating)

    def accepts(value: Any) -> bool:
        return fits(value) and numbers.accepts(
            value.item() if isinstance(value, np.generic) else value
        )

    return _Rule(fits, accepts, (str(numbers),))


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


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _is_array(value: Any, kinds: str) -> bool:
    """Whether the value is an array, or rows in lists, with a dtype of one of these kinds."""
    if not isinstance(value, Sequence) and not hasattr(value, "__array__"):
        return False
    try:
        array = value if _is_traced(value) else np.asarray(value)
    except (TypeError, ValueError):  # keys of random numbers; rows of different lengths
        return False
    return array.dtype.kind in kinds


def _is_traced(value: Any) -> bool:
    """Whether the value is one of JAX's that has a shape and a type, and no content yet."""
    return any(base.__name__ == "Tracer" for base in type(value).__mro__)


def _shown(value: Any, most: int = 60) -> str:
    """A value in a message: small ones as they are, large ones by their type."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if len(text) > most or "\n" in text:
        return f"a {type(value).__name__}"
    return text
