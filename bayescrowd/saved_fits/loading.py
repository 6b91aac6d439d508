"""`load`: the inverse of `save`."""

from __future__ import annotations

import inspect
import os

import bayescrowd
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.saving.fit_file import Saveable, read_fit

__all__ = ["load"]


@validate_arguments
def load(path: str | os.PathLike[str]) -> Aggregator:
    """Restore a fit from the file to which its `save` wrote it.

    The file is checked before it is read: it holds arrays and JSON, and names nothing but an
    estimator of this package, so that loading it runs no code.

    Args:
        path: path of the file.

    Returns:
        The fitted estimator, whose `predict_proba` gives the same answers to the last bit.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is of another kind, of a newer format, incomplete or damaged.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(100, 10, labels_per_task=5, accuracy=0.8, seed=1)
        >>> path = Path(tempfile.mkdtemp(), "fit.npz")
        >>> bc.Wawa().fit(crowd.annotations).save(path)
        >>> bc.load(path).skills_.round(2).to_list()[:3]
        [0.91, 0.69, 0.8]
    """
    found = read_fit(path, _exported)
    assert isinstance(found, Aggregator)  # _exported offers no others
    return found


def _exported(name: str) -> Saveable | None:
    """The exported aggregator of this name."""
    kind = getattr(bayescrowd, name) if name in bayescrowd.__all__ else None
    if not inspect.isclass(kind) or not issubclass(kind, Aggregator):
        return None
    return Saveable(kind, kind._state_classes)
