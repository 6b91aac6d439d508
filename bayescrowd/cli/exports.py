"""The classes that the package exports from a folder, found without importing them.

The command line offers aggregators and policies by name. Importing them takes a second, so their
names are read from the package's table of exports and what they do from their docstrings.
"""

from __future__ import annotations

import ast
import re
from importlib.abc import InspectLoader
from importlib.util import find_spec

from bayescrowd import _NAMES as EXPORTS

__all__ = ["command_name", "exported_classes", "summary_of"]

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def exported_classes(folder: str) -> list[str]:
    """Names of the exported classes whose module lies in a folder of the package.

    Examples:
        >>> exported_classes("budgeted.policies")[:2]
        ['BLeafs', 'BiasedRobin']
    """
    home = f"bayescrowd.{folder}."
    inside = [name for name, module in EXPORTS.items() if module.startswith(home)]
    return [name for name in inside if name[0].isupper()]


def command_name(name: str) -> str:
    """The name of a class as a user types it.

    Examples:
        >>> command_name("MajorityVote"), command_name("GhoshSVD"), command_name("BLeafs")
        ('majority-vote', 'ghosh-svd', 'b-leafs')
    """
    return _WORD_STARTS.sub("-", name).lower()


def summary_of(name: str) -> str:
    """The first line of an exported class's docstring, without its full stop.

    Examples:
        >>> summary_of("MajorityVote")
        'The class that most workers chose'
    """
    spec = find_spec(EXPORTS[name])
    loader = spec.loader if spec is not None else None
    source = loader.get_source(EXPORTS[name]) if isinstance(loader, InspectLoader) else None
    for node in ast.parse(source or "").body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")
    return ""
