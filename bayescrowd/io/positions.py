"""Where the values of a column stand in a vocabulary, by their text."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int

from bayescrowd.data.vocabulary import Where, text_of

__all__ = ["MISSING", "pandas_column", "positions_of", "text_in"]

MISSING = -2
"""Code of a missing value; -1 stands for an unknown one."""


def positions_of(
    where: Where, frame: Any, column: str, vocabulary: pd.Index
) -> Int[np.ndarray, " row"]:
    """Position of each value's text in the vocabulary; -1 if unknown, -2 if missing."""
    series = pandas_column(frame, column)
    try:
        codes, values = pd.factorize(series)
    except TypeError:
        row, bad = next((i, v) for i, v in enumerate(series) if not isinstance(v, Hashable))
        raise ValueError(
            f"{where.row(row)}, column {column!r}: found a {type(bad).__name__}; expected text, "
            "a number, True or False"
        ) from None
    is_truth_value = vocabulary.dtype == bool
    place = {text_in(value, is_truth_value): i for i, value in enumerate(vocabulary)}
    texts = [text_in(value, is_truth_value) for value in values]
    found = [place.get(text, -1) if text.strip() else MISSING for text in texts]
    return np.array([*found, MISSING])[codes]  # factorize codes a missing value as -1


def pandas_column(frame: Any, column: str) -> pd.Series:
    """A column of a table of pandas or pyarrow."""
    return frame[column].to_pandas() if isinstance(frame, pa.Table) else frame[column]


def text_in(value: Any, is_truth_value: bool = False) -> str:
    """A value as files may write it; truth values in any case."""
    text = text_of(value)
    return text.lower() if is_truth_value else text
