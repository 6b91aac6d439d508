"""Ids and classes of new labels matched with those of a fit, as they are written.

A file of new labels may give the worker 7 as a number where the fit was given '7', because another
worker of the file is called '7b'. Within a fit no two ids are written alike, so that the text says
which one is meant.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Int

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import comma_list, text_of

__all__ = ["match_ids", "take_classes"]


def match_ids(ids: pd.Index, known: pd.Index) -> Int[np.ndarray, " id"]:
    """Position of each id among the known ones, -1 for an unknown one.

    Examples:
        >>> match_ids(pd.Index(["7", "7b"]), pd.Index([3, 7]))
        array([ 1, -1])
    """
    if ids.dtype == known.dtype and ids.dtype != object:
        return known.get_indexer(ids)
    texts, known_texts = (
        pd.Index([text_of(x) for x in part], dtype=object) for part in (ids, known)
    )
    return known_texts.get_indexer(texts)


def take_classes(ann: Annotations, classes: pd.Index) -> Annotations:
    """The same labels with the classes of a fit.

    Raises:
        ValueError: a label is none of these classes.

    Examples:
        >>> ann = Annotations.from_matrix([["b", "c"], ["c", "c"]])
        >>> list(take_classes(ann, pd.Index(["a", "b", "c"])).classes)
        ['a', 'b', 'c']
    """
    if ann.classes.equals(classes):
        return ann
    place = match_ids(ann.classes, classes)
    codes = place[ann.label_codes]
    if (codes < 0).any():
        used = np.unique(ann.label_codes[codes < 0])
        be = "is" if len(used) == 1 else "are"
        raise ValueError(
            f"{'label' if len(used) == 1 else 'labels'} {comma_list(ann.classes.take(used))} {be} "
            f"not one of the fitted classes {comma_list(classes)}"
        )
    return Annotations.from_codes(
        ann.task_codes,
        ann.worker_codes,
        codes,
        tasks=ann.tasks,
        workers=ann.workers,
        classes=classes,
    )
