"""What a model states about itself, and how to read it without importing the model.

Every model, a module of `bayescrowd.models`, ends in ``FACTS = Facts(...)``. Code that lists models
or works with the draws of any of them reads these facts, so there is no second list to keep.
Importing a model imports JAX, which takes seconds; `read_outline` therefore takes the facts from
the source, in which all but `accuracy` are written as literals.
"""

import ast
from collections.abc import Callable
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

__all__ = ["Facts", "Outline", "Subject", "read_outline"]

Subject = Literal["labels", "features", "numbers"]
"""What a model describes: labels of a crowd, tables of features, or numeric judgements."""


class Outline(NamedTuple):
    """The facts that can be read without importing the model."""

    subject: Subject
    """What it is a model of."""
    summary: str
    """The model in a few words, for lists."""
    has_conditionals: bool
    """Whether the module of its name in `bayescrowd.posterior.conditionals` offers `CONDITIONALS`,
    so that its classes can be drawn by Gibbs sampling."""


class Facts(NamedTuple):
    """What a model states about itself."""

    subject: Subject
    """What it is a model of."""
    summary: str
    """The model in a few words, for lists."""
    has_conditionals: bool
    """Whether the module of its name in `bayescrowd.posterior.conditionals` offers `CONDITIONALS`,
    so that its classes can be drawn by Gibbs sampling."""
    accuracy: Callable[[Any], Any] | None
    """Maps `Params` of NumPy arrays with any leading axes, such as chains and draws, to the
    probability that each worker's label of a task is right, [..., worker]. None where workers have
    no such probability."""


@cache
def read_outline(name: str) -> Outline:
    """Read the literal facts of a model from its source.

    Args:
        name: name of a module of `bayescrowd.models`.

    Raises:
        LookupError: the module does not end in ``FACTS = Facts(...)``, its facts by keyword.

    Examples:
        >>> read_outline("one_coin").summary
        'one accuracy per worker'
    """
    module = f"bayescrowd.models.{name}"
    spec = find_spec(module)
    loader = spec.loader if spec is not None else None
    source = loader.get_source(module) if isinstance(loader, InspectLoader) else None
    match ast.parse(source or "").body[-1:]:
        case [ast.Assign(targets=[ast.Name("FACTS")], value=ast.Call(args=[], keywords=keywords))]:
            given = {fact.arg: fact.value for fact in keywords}
            return Outline(*(ast.literal_eval(given[field]) for field in Outline._fields))
    raise LookupError(f"{module} does not end in FACTS = Facts(...)")
