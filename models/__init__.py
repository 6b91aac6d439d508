"""Generative models: densities and simulators, no inference.

Each module holds one model under the same names: ``Prior``, ``Params``, ``model``,
``label_log_joint``, ``label_posterior``, ``simulate`` and ``FACTS``, what it states about itself.
A model states its data as the observed site ``labels``, hidden classes summed out; with labels of
None, `numpyro.infer.Predictive` draws them (see `models/_summed_out.py`). Fields of a ``Prior`` may
be arrays where the model says so.

The folder is the import package ``bayescrowd.models``. Every module without a leading underscore is
a model and is found by itself; the lines below ``TYPE_CHECKING`` are for type checkers, which
cannot look into folders. Models load on first use, and `catalogue` lists their facts without
loading them.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from bayescrowd.models._facts import Outline as Outline
from bayescrowd.models._facts import Subject, read_outline

if TYPE_CHECKING:
    from bayescrowd.models import ability_dawid_skene as ability_dawid_skene
    from bayescrowd.models import access_path as access_path
    from bayescrowd.models import dawid_skene as dawid_skene
    from bayescrowd.models import hierarchical_dawid_skene as hierarchical_dawid_skene
    from bayescrowd.models import item_difficulty as item_difficulty
    from bayescrowd.models import judgements as judgements
    from bayescrowd.models import mace as mace
    from bayescrowd.models import naive_bayes as naive_bayes
    from bayescrowd.models import one_coin as one_coin
    from bayescrowd.models import task_subtypes as task_subtypes
    from bayescrowd.models import worker_types as worker_types

__all__ = sorted(name for _, name, _ in iter_modules(__path__) if not name.startswith("_"))


if not TYPE_CHECKING:  # type checkers would take it to mean that every name exists

    def __getattr__(name: str) -> ModuleType:
        """Load a model's module on first use (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")


def catalogue(subject: Subject | None = None) -> dict[str, Outline]:
    """What the models state about themselves, by name, without importing any of them.

    Args:
        subject: 'labels', 'features' or 'numbers' for the models of these alone; by default all.

    Examples:
        >>> list(catalogue("features"))
        ['access_path', 'naive_bayes']
    """
    outlines = {name: read_outline(name) for name in __all__}
    return {
        name: outline
        for name, outline in outlines.items()
        if subject is None or outline.subject == subject
    }


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
