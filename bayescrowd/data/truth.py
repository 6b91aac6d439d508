"""Known labels of tasks; those that do not match the crowd's labels are counted and reported.

A file of true labels seldom matches a file of judgements exactly: it was made for the whole corpus,
of which the crowd saw only a part, or it uses a class that no worker chose. Neither is a reason to
refuse it. A known task without judgements is left out. When labels are scored, every answer to a
task whose true class nobody chose is wrong. A `TruthWarning` says how many tasks are affected.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayescrowd.data.text import quantity
from bayescrowd.data.vocabulary import comma_list, plain

__all__ = [
    "Truth",
    "TruthWarning",
    "Unchosen",
    "known_labels",
    "warn_of_classes",
    "warn_of_tasks",
    "warn_of_truth",
]

Truth = pd.Series | Mapping[Any, Any]
"""True class by task id; missing classes are ignored."""

Unchosen = Literal["left out", "wrong"]
"""How to treat a known label whose class nobody chose."""


class TruthWarning(UserWarning):
    """Known labels name tasks that nobody labelled, or classes that nobody chose."""


def known_labels(truth: Truth, name: str) -> pd.Series:
    """The labels that are not missing, with each task listed once.

    Args:
        truth: class by task id; a task may be repeated with the same class.
        name: name of these labels in messages.

    Raises:
        TypeError: `truth` is neither a Series nor a mapping.
        ValueError: a task has two different labels.
    """
    if not isinstance(truth, pd.Series | Mapping):
        raise TypeError(
            f"{name} came as {type(truth).__name__}; expected a Series or mapping of labels by task"
        )
    known = pd.Series(truth).dropna()
    once = known[~known.index.duplicated()]
    if len(once) < len(known):
        first = once.iloc[once.index.get_indexer(known.index)]
        clash = np.flatnonzero(first.to_numpy() != known.to_numpy())
        if len(clash):
            raise ValueError(
                f"{name} gives task {plain(known.index[clash[0]])!r} two different labels; "
                "expected one"
            )
    return once


def warn_of_tasks(unmatched: pd.Index, n_known: int, name: str, *, source: str = "") -> None:
    """Warn of known tasks that nobody judged and that are therefore left out, if there are any.

    Args:
        unmatched: the tasks that nobody judged, without repeats.
        n_known: number of tasks with a known label.
        name: name of the known labels in messages.
        source: beginning of the message, such as the file's name.
    """
    if len(unmatched):
        warn_of_truth(
            f"{source}{_share(unmatched, n_known, name)} "
            f"{'has no labels and is' if len(unmatched) == 1 else 'have no labels and are'} left "
            f"out (such as {plain(unmatched[0])!r})"
        )


def warn_of_classes(unmatched: pd.Series, n_known: int, name: str, unchosen: Unchosen) -> None:
    """Warn of known labels whose class nobody chose, if there are any.

    Args:
        unmatched: those labels, indexed by task.
        n_known: number of tasks with a known label.
        name: name of the known labels in messages.
        unchosen: treatment of such tasks, which the message states.
    """
    if len(unmatched) == 0:
        return
    classes, is_one = pd.unique(unmatched), len(unmatched) == 1
    if unchosen == "wrong":
        fate = "counts as wrong" if is_one else "count as wrong"
    else:
        fate = (
            f"{'is' if is_one else 'are'} left out; declare "
            f"{'it' if len(classes) == 1 else 'them'} among the classes of the labels to learn "
            "from such tasks"
        )
    warn_of_truth(
        f"nobody chose the {'class' if len(classes) == 1 else 'classes'} {comma_list(classes)} of "
        f"the {name}: {_share(unmatched, n_known, name)} {fate}"
    )


def warn_of_truth(message: str) -> None:
    """Issue a `TruthWarning` that points to the line of the user's code, outside the package."""
    frame, depth = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == "bayescrowd":
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, TruthWarning, stacklevel=depth + 1)


def _share(unmatched: pd.Index | pd.Series, n_known: int, name: str) -> str:
    return f"{len(unmatched):,} of {quantity(n_known, f'{name} task')}"
