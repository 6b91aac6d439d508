"""Constraints on arguments, declared in signatures and checked in one place.

A signature declares what it accepts: `seed: Seed`, `n_iter: Count`, `prior: Literal["learned",
"uniform"]`, `strength: Positive | Literal["learned"]`. The annotations that type checkers and
readers see are also checked at run time: `@validate_arguments` checks the arguments of a function
on every call; `check_parameters` checks the parameters of an estimator in `fit`, since
constructors in scikit-learn's style store their arguments unchecked. An argument that does not
match is refused with its name, its value and what was expected: TypeError for a wrong type,
ValueError for a wrong value.

NumPy scalars are accepted as Python numbers, truth values never are. NaN is not accepted as a
number, and infinity only where it is declared. Entries of lists, values of mappings and fields of
named tuples that declare a range are checked by their own annotations; arrays are checked by their
number of axes and the kind of their entries; a class imported only for type checkers is checked by
its name. Annotations that are not plain types (`Any`, type variables, protocols) are not checked,
nor are the entries of JAX arrays.
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
    "Rule",
    "Seed",
    "Tolerance",
    "Whole",
    "as_numbers",
    "check_arguments",
    "check_fields",
    "check_parameters",
    "number_rule",
    "validate_arguments",
]

LARGEST_SEED = 2**32 - 1
"""JAX keys use only 32 bits of a seed: a larger seed would repeat the draws of a smaller one."""


class Whole(NamedTuple):
    """Range of whole numbers, including both ends."""

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
    """Range of numbers, including each end unless `without_least` or `without_most` is set."""

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
"""A tolerance at which an iteration stops; infinity stops it after its first step."""
Fraction = Annotated[float, Real(0, 1)]
OpenFraction = Annotated[float, Real(0, 1, without_least=True, without_most=True)]

_NAMES = {
    "Hashable": "an id",
    "Mapping": "a mapping",
    "PathLike": "a path",
    "str": "text",
}
"""Names of types in messages, where they differ from the class name."""

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
    """Check the parameters of an estimator against the annotations of its constructor."""
    make = type(estimator).__init__
    names = inspect.signature(make).parameters
    check_arguments(make, {name: getattr(estimator, name) for name in names if name != "self"})


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check arguments against the annotations of the function that takes them.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument has the right type and a wrong value.
    """
    rules = _rules_of(function)
    for name, value in arguments.items():
        _check(name, value, rules.get(name))


def check_fields(name: str, record: Any) -> None:
    """Check the fields of a named tuple, which messages call `name`, against their annotations."""
    for place, value, rules in _fields(record):
        _check(f"{name}{place}", value, rules)


def as_numbers(name: str, values: Any) -> Float[np.ndarray, "*shape"]:
    """The entries of an array, a Series or a table as floats; messages call it `name`.

    Raises:
        ValueError: an entry is not a number.
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers ({error})") from None


class Rule(NamedTuple):
    """One of the alternatives that an annotation allows."""

    fits: Callable[[Any], bool]
    """Whether a value has the right type."""
    accepts: Callable[[Any], bool]
    """Whether a value has the right type and is in range, regardless of its parts."""
    words: tuple[str, ...]
    """The accepted values in words, for messages; one entry per alternative."""
    parts: Callable[[Any], Iterable[tuple[str, Any, Rules]]] = lambda value: ()
    """Parts of a value: entries of a list, values of a mapping or fields of a record. Each comes
    with the suffix that names it in messages, such as '[3]', and the rules that it must meet."""


Rules = tuple[Rule, ...] | None
"""Alternatives of which a value must meet one; None if the value is not checked."""


def _check(name: str, value: Any, rules: Rules) -> None:
    """Raise if the value meets no rule, naming the argument or the part of it that is wrong."""
    if rules is None or _is_right(value, rules):
        return
    for rule in rules:
        if rule.accepts(value):
            for place, part, inner in rule.parts(value):
                _check(f"{name}{place}", part, inner)
    *others, last = dict.fromkeys(word for rule in rules for word in rule.words)
    words = f"{', '.join(others)} or {last}" if others else last
    wrong = ValueError if any(rule.fits(value) for rule in rules) else TypeError
    raise wrong(f"{name}={_quote(value)}: expected {words}")


def _is_right(value: Any, rules: Rules) -> bool:
    return rules is None or any(
        rule.accepts(value) and all(_is_right(part, inner) for _, part, inner in rule.parts(value))
        for rule in rules
    )


class _NotLoaded:
    """Stand-in for a class that is imported only for type checkers and known only by its name."""

    def __class_getitem__(cls, _: Any) -> type:
        return cls


class _Scope(dict[str, Any]):
    """Names of a module, with stand-ins for those that are imported only for type checkers."""

    def __missing__(self, name: str) -> type:
        if hasattr(builtins, name):
            raise KeyError(name)
        return type(name, (_NotLoaded,), {})


@cache
def _rules_of(function: Callable[..., Any]) -> dict[str, Rules]:
    """Rules of each argument."""
    inner = inspect.unwrap(function)
    return _rules_in(inner.__annotations__, inner.__globals__)


@cache
def _rules_of_fields(record: Any) -> dict[str, Rules]:
    """Rules of the fields of a named tuple that declare a range; others may hold results."""
    # A file that was loaded by hand has no name there.
    scope = _Scope(getattr(sys.modules.get(record.__module__), "__dict__", {}))
    kinds = ((name, _evaluate(kind, scope)) for name, kind in record.__annotations__.items())
    origins: Callable[[Any], Any] = typing.get_origin
    ranges = {n: k for n, k in kinds if Annotated in map(origins, (k, *typing.get_args(k)))}
    return _rules_in(ranges, scope)


def _rules_in(annotations: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Rules]:
    scope = _Scope(names)
    return {
        name: _alternatives(annotation, scope)
        for name, annotation in annotations.items()
        if name != "return"
    }


def _alternatives(annotation: Any, scope: _Scope) -> Rules:
    """Rules of an annotation, of which one must be met."""
    annotation = _evaluate(annotation, scope)
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        parts = [_alternatives(part, scope) for part in inside]
        known = [part for part in parts if part is not None]
        return tuple(rule for part in known for rule in part) if len(known) == len(parts) else None
    if origin is Annotated:
        base, *notes = inside
        if own := [note for note in notes if hasattr(note, "rules")]:
            return tuple(own[0].rules())
        ranges = [note for note in notes if isinstance(note, Whole | Real)]
        return (number_rule(ranges[0]),) if ranges else _alternatives(base, scope)
    if origin is Literal:
        return (_choice(inside),)
    if origin in (Sequence, Iterable):
        return (_list(_takes_items, "a list", _alternatives(inside[0], scope)),)
    if origin is tuple and inside[1:] == (...,):
        is_one = _instance((tuple,), "").fits
        return (_list(is_one, "a tuple", _alternatives(inside[0], scope)),)
    if origin is Mapping:
        return (_mapping(_alternatives(inside[1], scope)),)
    if annotation is int:
        return (number_rule(Whole()),)
    if annotation is float:
        return (number_rule(Real(without_least=True, without_most=True)),)
    if annotation in (None, type(None)):
        return (_instance((type(None),), "None"),)
    return _class_rules(annotation if origin is None else origin)


def _evaluate(annotation: Any, scope: _Scope) -> Any:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    return eval(annotation, {}, scope) if isinstance(annotation, str) else annotation


def _class_rules(kind: Any) -> Rules:
    if kind is bool:
        return (_instance((bool, np.bool_), "True or False"),)
    if kind in (Any, object) or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return None
    if hasattr(kind, "array_type"):  # an annotation of jaxtyping
        return (_array(kind),)
    if kind is np.ndarray:
        return (Rule(_is_numeric, _is_numeric, ("an array of numbers",)),)
    words = _NAMES.get(kind.__name__, f"a {kind.__name__}")
    if issubclass(kind, _NotLoaded):
        return (_instance_by_name(kind.__name__, words),)
    rule = _instance((kind,), words)
    return (rule._replace(parts=_fields) if hasattr(kind, "_fields") else rule,)


def _instance_by_name(name: str, words: str) -> Rule:
    """Rule for instances of a class with this name and of its subclasses."""

    def fits(value: Any) -> bool:
        return any(base.__name__ == name for base in type(value).__mro__)

    return Rule(fits, fits, (words,))


def _fields(record: Any) -> Iterable[tuple[str, Any, Rules]]:
    """Fields of a named tuple with their rules, without JAX tracers, which have no value."""
    for name, rules in _rules_of_fields(record.__class__).items():
        value = getattr(record, name)
        if not _is_traced(value):
            yield f".{name}", value, rules


def _list(is_one: Callable[[Any], bool], words: str, entry: Rules) -> Rule:
    def parts(value: Any) -> Iterable[tuple[str, Any, Rules]]:
        if entry is None or not isinstance(value, Collection):  # an iterator can be read only once
            return
        places: Iterable[int] = range(len(value))
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf":
            # Ranges are intervals, so the extremes decide; argmin and argmax both find NaN.
            places = (int(value.argmin()), int(value.argmax())) if len(value) else ()
        entries = value if isinstance(value, Sequence | np.ndarray) else list(value)
        yield from ((f"[{place}]", entries[place], entry) for place in places)

    return Rule(is_one, is_one, (words,), parts)


def _mapping(entry: Rules) -> Rule:
    def parts(value: Any) -> Iterable[tuple[str, Any, Rules]]:
        if entry is not None:
            yield from ((f"[{key!r}]", value[key], entry) for key in value)

    return _instance((Mapping,), "a mapping")._replace(parts=parts)


def _array(annotation: Any) -> Rule:
    """Rule for an array, or nested lists, by the number of axes and the kind of the entries.

    The lengths of the axes are left to the function to check.
    """
    dtypes, axes = annotation.dtypes, annotation.dim_str.split()
    if dtypes in (("prng_key",), ("uint32",)):
        return _instance((annotation,), "a key of jax.random")
    of_any_shape = any(axis.startswith(("*", "...")) for axis in axes)
    kinds, entries = "biuf", "numbers"
    if not isinstance(dtypes, tuple):  # any kind of entries
        kinds, entries = "biufOSU", "values"
    elif not any("float" in dtype for dtype in dtypes):
        kinds, entries = ("b", "truth values") if "bool" in dtypes else ("iu", "whole numbers")

    def fits(value: Any) -> bool:
        return _is_array(value, kinds)

    def accepts(value: Any) -> bool:
        return fits(value) and (of_any_shape or np.ndim(value) == len(axes))

    def parts(value: Any) -> Iterable[tuple[str, Any, Rules]]:
        if annotation.array_type is not np.ndarray:  # JAX arrays may be traced or hold log zeros
            return
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            finite = number_rule(Real(without_least=True, without_most=True))
            yield f"[{', '.join(map(str, place))}]", array[place].item(), (finite,)

    named = "" if of_any_shape or "_" in axes else f" by {', '.join(axes)}"
    return Rule(fits, accepts, (f"an array of {entries}{named}",), parts)


def number_rule(numbers: Whole | Real) -> Rule:
    """The rule for numbers of a range."""
    kinds = (int, np.integer) if isinstance(numbers, Whole) else (int, float, np.number)

    def fits(value: Any) -> bool:
        return isinstance(value, kinds) and not isinstance(value, bool | np.complexfloating)

    def accepts(value: Any) -> bool:
        return fits(value) and numbers.accepts(
            value.item() if isinstance(value, np.generic) else value
        )

    return Rule(fits, accepts, (str(numbers),))


def _choice(choices: tuple[Any, ...]) -> Rule:
    kinds = {np.integer if type(choice) is int else type(choice) for choice in choices}
    kinds |= {type(choice) for choice in choices}

    def fits(value: Any) -> bool:
        return isinstance(value, tuple(kinds)) and (bool in kinds or not isinstance(value, bool))

    few = len(choices) < 3
    words = tuple(map(repr, choices)) if few else (f"one of {', '.join(map(str, choices))}",)
    return Rule(fits, lambda value: fits(value) and value in choices, words)


def _instance(kinds: tuple[type, ...], words: str) -> Rule:
    def fits(value: Any) -> bool:
        return isinstance(value, kinds)

    return Rule(fits, fits, (words,))


def _takes_items(value: Any) -> bool:
    """Whether the value is a list or the like; text is not, though it is a sequence of letters."""
    is_many = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return is_many and getattr(value, "ndim", 1) > 0


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _is_array(value: Any, kinds: str) -> bool:
    """Whether the value is an array, or nested lists, with a dtype of one of these kinds."""
    if not isinstance(value, Sequence) and not hasattr(value, "__array__"):
        return False
    try:
        array = value if _is_traced(value) else np.asarray(value)
    except (TypeError, ValueError):  # JAX keys; rows of different lengths
        return False
    return array.dtype.kind in kinds


def _is_traced(value: Any) -> bool:
    """Whether JAX traces the value, which then has a shape and a dtype but no content."""
    return any(base.__name__ == "Tracer" for base in type(value).__mro__)


def _quote(value: Any, most: int = 60) -> str:
    """A value for a message: itself if it is short, else its type."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if len(text) > most or "\n" in text:
        return f"a {type(value).__name__}"
    return text
