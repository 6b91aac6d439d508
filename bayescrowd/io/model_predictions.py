"""Reading the probabilities of a classifier from a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import Where, quote
from bayescrowd.io.column_names import find_column
from bayescrowd.io.file_tables import file_contents
from bayescrowd.io.formats import file_table, guess_format
from bayescrowd.io.positions import MISSING, pandas_column, positions_of, text_in

__all__ = ["read_predictions"]


def read_predictions(
    path: str | os.PathLike[str], annotations: Annotations, *, task: str | None = None
) -> pd.DataFrame:
    r"""Read the probabilities of a classifier: a row per task, a column per class.

    Tasks and classes are matched with those of the annotations by their text. An empty row stands
    for a task that is not predicted.

    Args:
        path: path of the table; '-' is standard input.
        annotations: judgements with the tasks and classes to match.
        task: name of the column of task ids; by default, the only one with a usual name.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file cannot be read as such a table.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayescrowd as bc
        >>> path = Path(tempfile.mkdtemp()) / "model.csv"
        >>> _ = path.write_text("task,cat,dog\n0,0.9,0.1\n7,0.2,0.8\n")
        >>> annotations = bc.Annotations.from_matrix([["dog", "cat"], ["cat", "dog"]])
        >>> read_predictions(path, annotations)
              cat  dog
        task
        0     0.9  0.1
        7     0.2  0.8
    """
    source, data = file_contents(path)
    chosen = guess_format(path, source, data)
    if chosen in ("label-studio", "nested"):
        raise ValueError(f"{source}: found nested JSON; expected a table with one row per task")
    table = file_table(chosen, source, data, raw_cells=False)
    task_column = find_column(table, "task", task)
    names = [name for name in table.columns if name != task_column]
    frame = table.read([task_column, *names])
    where = Where(source, table.row_number)
    ids = pandas_column(frame, task_column)
    places = positions_of(where, frame, task_column, annotations.tasks)
    if (places == MISSING).any():
        row = int(np.argmax(places == MISSING))
        raise ValueError(
            f"{where.row(row)}, column {task_column!r}: the task is missing; expected an id"
        )
    tasks = [
        annotations.tasks[i] if i >= 0 else value for i, value in zip(places, ids, strict=True)
    ]
    spelling = {text_in(name): name for name in annotations.classes}
    columns = {spelling.get(name, name): _numbers(where, frame, name) for name in names}
    return pd.DataFrame(columns, index=pd.Index(tasks, name="task"))


def _numbers(where: Where, frame: Any, column: str) -> Float[np.ndarray, " row"]:
    """A column as numbers, NaN where it is empty."""
    series = pandas_column(frame, column).astype(object)  # text may come as categories
    numbers = pd.to_numeric(series, errors="coerce")
    wrong = numbers.isna() & series.notna() & (series.map(str).str.strip() != "")
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{where.row(row)}, column {column!r}: found {quote(series.iloc[row])}; expected a "
            "probability"
        )
    return numbers.to_numpy(dtype=float)
