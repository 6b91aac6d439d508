"""Labels by judge: wide tables with a column per judge, and JSON objects `{judge: {task: label}}`.

- A wide table has a row per task, a column of task ids and a column of labels for each judge. Every
  other column is a judge's, except those without a name and those with a usual name for known
  labels (truth, gold). An empty cell cannot say whether the judge was asked; it counts as never
  asked.
- A nested object maps each judge to the labels of the tasks that the judge was asked about. The
  value null and empty text stand for a judge who was asked and gave no label; a task that is absent
  was not put to the judge.

Keys and headers have no types. As in delimited text, ids become integers if all of them are written
as Python writes integers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa

from bayescrowd.data.vocabulary import argument, comma_list, quote, text_of
from bayescrowd.io.cells import unquote_text
from bayescrowd.io.column_names import (
    ExportedLabels,
    find_column,
    guess_note,
    is_known_label,
    usual_columns,
)
from bayescrowd.io.file_tables import (
    DelimitedText,
    FileTable,
    JsonLines,
    integers_if_canonical,
    parse_json,
)

__all__ = ["is_nested", "is_wide", "may_be_wide", "nested_judgements", "wide_judgements"]

_MOST_LABELS = 20
"""A table with more distinct labels than this is not taken for a wide one unless the user says so.

Ratings in wide tables rarely have more grades; counts, dates and free text soon do.
"""


def may_be_wide(table: FileTable, task: str | None, worker: str | None, label: str | None) -> bool:
    """Whether the names of the columns allow a wide table.

    They do if there is a task, if no column is named for the worker or the label, neither by the
    user nor by a usual name, and if two or more columns remain for judges.
    """
    if worker is not None or label is not None or usual_columns(table.columns, "worker", "label"):
        return False
    if task is None and not usual_columns(table.columns, "task"):
        return False
    return len(_judge_columns(table, find_column(table, "task", task))) > 1


def is_wide(table: FileTable, task: str | None, worker: str | None, label: str | None) -> bool:
    """Whether a table is recognised as wide: `may_be_wide`, and its other columns hold labels.

    They hold labels if there are at most 20 different ones, and if at least half of those of each
    judge are labels of another judge too. Columns without any label do not count.
    """
    if not may_be_wide(table, task, worker, label):
        return False
    judges = _judge_columns(table, find_column(table, "task", task))
    frame = table.read(judges)
    found = [_distinct_texts(frame, judge) for judge in judges]
    used = [texts for texts in found if texts]
    if None in found or len(used) < 2:
        return False
    values = list({text for texts in used if texts for text in texts})
    if len(values) > _MOST_LABELS:
        return False
    is_used = np.array([[value in texts for value in values] for texts in used if texts])
    is_shared = is_used.sum(axis=0) > 1
    return bool((2 * is_used[:, is_shared].sum(axis=1) >= is_used.sum(axis=1)).all())


def wide_judgements(
    table: FileTable, task: str | None, worker: str | None, label: str | None
) -> ExportedLabels:
    """Read a wide table.

    Args:
        table: the file.
        task: name of the column of task ids; by default, the only one with a usual name.
        worker: must be None, since every judge has a column.
        label: must be None, since every judge has a column.

    Raises:
        ValueError: there is no column for the task or for a judge, two columns have one name, or
            the table has one row per judgement.
    """
    for role, given in (("worker", worker), ("label", label)):
        if given is not None:
            raise ValueError(
                f"{table.source}: {argument(role)} names the column {given!r}, but a wide table "
                f"has a column of labels for each judge; expected {argument('task')} alone"
            )
    task_column = find_column(table, "task", task)
    judges = _judge_columns(table, task_column)
    if usual_columns(judges, "worker") and usual_columns(judges, "label"):
        raise ValueError(
            f"{table.source}: a column {usual_columns(judges, 'worker')[0]!r} and a column "
            f"{usual_columns(judges, 'label')[0]!r} belong to a table with one row per judgement; "
            "expected a column of labels for each judge"
        )
    if not judges:
        raise ValueError(
            f"{table.source}: no column for a judge; the columns are {comma_list(table.columns)}; "
            f"expected a column of labels for each judge beside the task's {task_column!r}"
        )
    frame = table.read([task_column, *judges])
    n_rows = len(frame)
    tasks = _pandas_column(frame, task_column)
    names = judges
    if isinstance(table, DelimitedText) and not table.raw_cells:
        names = [unquote_text(name) for name in judges]
    ids = _ids(names)
    stacked = pd.DataFrame(
        {
            "task": tasks.take(np.tile(np.arange(n_rows), len(judges))).reset_index(drop=True),
            "worker": ids.take(np.repeat(np.arange(len(judges)), n_rows)),
            "label": _stack(table, frame, judges),
        }
    )

    def row_number(position: int) -> Any:
        return f"{table.row_number(position % n_rows)}, judge {names[position // n_rows]!r}"

    return ExportedLabels(
        stacked,
        "task",
        "worker",
        "label",
        row_number,
        is_text=isinstance(table, DelimitedText),
        blank_is_unasked=True,
        notes=guess_note(table.source, {"task": task_column}, {"task": task}),
    )


def is_nested(data: bytes) -> bool:
    """Whether text that starts with '{' is recognised as one object `{judge: {task: label}}`.

    It is if it consists of one object whose values are objects, or of one object that is no line of
    JSON because it takes several lines; no key may have a usual name for a column, since some
    programs write tables as objects with a key per column.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or usual_columns(found, "task", "worker", "label"):
        return False
    return all(isinstance(v, dict) for v in found.values()) or b"\n" in data.strip()


def nested_judgements(
    source: str, data: bytes, task: str | None, worker: str | None, label: str | None
) -> ExportedLabels:
    """Read a JSON object `{judge: {task: label}}`.

    Args:
        source: name of the file in messages.
        data: content of the file.
        task: must be None, as `worker` and `label` must, since there are no columns.
        worker: see `task`.
        label: see `task`.

    Raises:
        ValueError: the file holds anything else, or a judge or a task of a judge twice.
    """
    for role, given in (("task", task), ("worker", worker), ("label", label)):
        if given is not None:
            raise ValueError(
                f"{source}: {argument(role)} names the column {given!r}, but an object "
                "{judge: {task: label}} has no columns"
            )
    found = parse_json(data, source, unique_keys=True)
    if not isinstance(found, dict) or not found:
        _refuse_value(found, source, "an object {judge: {task: label}}")
    for judge, labels in found.items():
        if not isinstance(labels, dict):
            _refuse_value(labels, f"{source}: judge {quote(judge)}", "an object {task: label}")
    places = [(judge, task_id) for judge, labels in found.items() for task_id in labels]
    values = [value for labels in found.values() for value in labels.values()]
    bad = next((place for place, v in enumerate(values) if isinstance(v, dict | list)), None)
    if bad is not None:
        judge, task_id = places[bad]
        _refuse_value(
            values[bad],
            f"{source}: judge {quote(judge)}, task {quote(task_id)}",
            "text, a number, true or false, or null where the judge gave no label",
        )
    judges, counts = list(found), [len(labels) for labels in found.values()]
    frame = pd.DataFrame(
        {
            "task": _ids([task_id for _, task_id in places]),
            "worker": _ids(judges).take(np.repeat(np.arange(len(judges)), counts)),
            "label": pd.Series(values, dtype=object),
        }
    )

    def row_number(position: int) -> Any:
        judge, task_id = places[position]
        return f"{task_id!r}, judge {judge!r}"

    return ExportedLabels(frame, "task", "worker", "label", row_number)


def _judge_columns(table: FileTable, task: str) -> list[str]:
    columns = table.all_columns if isinstance(table, JsonLines) else table.columns
    return [name for name in columns if name != task and name.strip() and not is_known_label(name)]


def _distinct_texts(frame: Any, column: str) -> set[str] | None:
    """The different labels of a column without regard to case; None if it holds something else."""
    try:
        values = _pandas_column(frame, column).dropna().unique()
    except TypeError:  # a list or an object
        return None
    return {text for value in values if (text := text_of(value).strip().casefold())}


def _stack(table: FileTable, frame: Any, judges: list[str]) -> pd.Series:
    """The labels of all judges, one below the other."""
    if not isinstance(table, DelimitedText):
        columns = [_pandas_column(frame, judge) for judge in judges]
        return pd.concat(columns, ignore_index=True)
    # One judge's labels may look like integers and another's not; together they have one type.
    chunks = [chunk for judge in judges for chunk in frame[judge].chunks]
    texts = [chunk.dictionary_decode().cast(pa.large_string()) for chunk in chunks]
    return integers_if_canonical(pa.chunked_array(texts, pa.large_string())).to_pandas()


def _pandas_column(frame: Any, column: str) -> pd.Series:
    if isinstance(frame, pa.Table):
        return frame[column].to_pandas(integer_object_nulls=True)
    return frame[column]


def _ids(texts: Sequence[str]) -> pd.Index:
    """The ids, as integers if all of them are written as such."""
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    return pd.Index(integers_if_canonical(column).dictionary_decode().to_pylist())


def _refuse_value(value: Any, place: str, expected: str) -> NoReturn:
    found = "an empty object" if value == {} else f"a {type(value).__name__}"
    raise ValueError(f"{place}: found {found}; expected {expected}")
