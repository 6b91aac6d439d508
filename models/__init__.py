"""Generative programs of crowd labels: densities and simulators, no inference.

Each module holds one model under the same names: ``Prior``, ``Params``, ``model``,
``label_log_joint``, ``label_posterior`` and ``simulate``. The folder is the import package
``bayescrowd.models``; its modules load on first use.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayescrowd.models import dawid_skene as dawid_skene

__all__ = ["dawid_skene"]


if not TYPE_CHECKING:  # type checkers would take it to mean that every name exists

    def __getattr__(name: str) -> ModuleType:
        """Load a model's module on first use (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
