"""Tables of judgements as integer codes: long tables, wide tables and columns of codes.

Every function here returns `LabelCodes`, in which the rows have the order of the input.
`Annotations` sorts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int, Shaped
from narwhals.exceptions import DuplicateError

from bayescrowd.data.vocabulary import (
    Where,
    argument,
    code_ids,
    code_labels,
    comma_list,
    plain,
    refuse_indistinct,
    refuse_shared_column,
    sorted_ids,
    vocabulary_of,
)

__all__ = ["Duplicates", "LabelCodes", "check_codes", "code_long_table", "code_matrix"]

Duplicates = Literal["keep", "error", "first", "last"]
"""How to treat repeated judgements of one task by one worker."""


class LabelCodes(NamedTuple):
    """Judgements as integer codes, in any order of the rows."""

    task: Int[np.ndarray, " label"]
    """Position of each judgement's task in `tasks`."""
    worker: Int[np.ndarray, " label"]
    """Position of each judgement's worker in `workers`."""
    label: Int[np.ndarray, " label"]
    """Position of each judgement's label in `classes`."""
    tasks: pd.Index
    """The task ids."""
    workers: pd.Index
    """The worker ids."""
    classes: pd.Index
    """The classes in order."""
    n_dropped: int
    """Number of rows dropped because they had no label."""


def code_long_table(
    frame: Any,
    task: str,
    worker: str,
    label: str,
    classes: Sequence[Any] | None,
    duplicates: Duplicates,
    where: Where,
) -> LabelCodes:
    """Codes of a table with one row per judgement; the arguments are those of `from_frame`."""
    roles = [(task, "task"), (worker, "worker"), (label, "label")]
    refuse_shared_column(roles, where)
    table = _collect(frame)
    series = [_column(table, name, role, where) for name, role in roles]
    if len(table) == 0:
        raise ValueError(f"{where.prefix}the table has no rows; expected one per judgement")
    task_codes, tasks = code_ids(series[0], task, "task", where)
    worker_codes, workers = code_ids(series[1], worker, "worker", where)
    label_codes, vocabulary = code_labels(series[2], label, classes, where)
    present = label_codes >= 0
    n_dropped = int(len(present) - present.sum())
    if n_dropped == len(present):
        raise ValueError(
            f"{where.prefix}column {label!r} is empty in every row; expected at least one label"
        )
    rows = np.flatnonzero(present) if n_dropped else None
    if duplicates != "keep":
        rows = _resolve_duplicates(
            task_codes, worker_codes, rows, duplicates, (tasks, workers), where
        )
    if rows is not None:
        task_codes, worker_codes = task_codes[rows], worker_codes[rows]
        label_codes = label_codes[rows]
    return LabelCodes(task_codes, worker_codes, label_codes, tasks, workers, vocabulary, n_dropped)


def code_matrix(matrix: Any, classes: Sequence[Any] | None) -> LabelCodes:
    """Codes of a table with one row per task and one column per worker."""
    wide = matrix if isinstance(matrix, pd.DataFrame) else pd.DataFrame(_as_rows(matrix))
    if wide.size == 0:
        raise ValueError("the matrix is empty; expected tasks x workers")
    for axis, ids in (("row", wide.index), ("column", wide.columns)):
        if not ids.is_unique:
            raise ValueError(
                f"two {axis}s of the matrix are named {plain(ids[ids.duplicated()][0])!r}; "
                "expected different ids"
            )
        refuse_indistinct(ids, axis)
    n_workers = wide.shape[1]
    values = pd.Series(wide.to_numpy(dtype=object).ravel(order="C")).infer_objects()
    codes, vocabulary = code_labels(values, "matrix", classes, Where())
    present = np.flatnonzero(codes >= 0)
    if len(present) == 0:
        raise ValueError("every entry of the matrix is missing; expected at least one label")
    task_rank, tasks = sorted_ids(wide.index, "task")
    worker_rank, workers = sorted_ids(wide.columns, "worker")
    return LabelCodes(
        task_rank[present // n_workers],
        worker_rank[present % n_workers],
        codes[present],
        tasks,
        workers,
        vocabulary,
        n_dropped=0,
    )


def check_codes(
    task: Shaped[np.ndarray, " _"],
    worker: Shaped[np.ndarray, " _"],
    label: Shaped[np.ndarray, " _"],
    tasks: int | Sequence[Any] | pd.Index,
    workers: int | Sequence[Any] | pd.Index,
    classes: int | Sequence[Any] | pd.Index,
) -> LabelCodes:
    """The given codes, once they are known to be integers within their vocabularies."""
    vocabularies = [
        vocabulary_of(ids, name)
        for ids, name in ((tasks, "task"), (workers, "worker"), (classes, "class"))
    ]
    columns = [
        (name, np.asarray(codes))
        for name, codes in (("task", task), ("worker", worker), ("label", label))
    ]
    if len({len(codes) for _, codes in columns}) != 1:
        lengths = ", ".join(f"{name} {len(codes)}" for name, codes in columns)
        raise ValueError(f"the code arrays differ in length: {lengths}; expected one length")
    if len(task) == 0:
        raise ValueError("the code arrays are empty; expected at least one judgement")
    for (name, codes), vocabulary in zip(columns, vocabularies, strict=True):
        if not np.issubdtype(codes.dtype, np.integer):
            raise TypeError(f"{name} codes have dtype {codes.dtype}; expected integers")
        bad = np.flatnonzero((codes < 0) | (codes >= len(vocabulary)))
        if len(bad):
            raise ValueError(
                f"{name} code {codes[bad[0]]} in row {bad[0] + 1} is outside "
                f"0..{len(vocabulary) - 1}"
            )
    if len(vocabularies[2]) < 2:
        raise ValueError("there is only one class; expected at least two")
    # int64: NumPy adds unsigned to signed 64-bit integers as floats.
    task, worker, label = (codes.astype(np.int64, copy=False) for _, codes in columns)
    task_ids, worker_ids, class_ids = vocabularies
    return LabelCodes(task, worker, label, task_ids, worker_ids, class_ids, n_dropped=0)


def _collect(frame: Any) -> nw.DataFrame[Any]:
    """The table in memory, whatever library it comes from."""
    try:
        table = nw.from_native(frame)
    except TypeError:
        raise TypeError(
            f"labels came as {type(frame).__name__}; expected Annotations or a pandas, polars "
            "or pyarrow table with one row per judgement"
        ) from None
    except DuplicateError:
        raise ValueError(
            "two columns of the table have the same name; expected different names"
        ) from None
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def _column(table: nw.DataFrame[Any], name: str, role: str, where: Where) -> pd.Series:
    frame = table.to_native()
    if name not in table.columns:
        if isinstance(frame, pd.DataFrame) and name in frame.index.names:
            return pd.Series(frame.index.get_level_values(name))
        raise ValueError(
            f"{where.prefix}no column {name!r} for the {role}; the columns are "
            f"{comma_list(table.columns)}"
        )
    if isinstance(frame, pa.Table):
        # narwhals 2.28 loses the missing values and the order of dictionary columns.
        return frame[name].to_pandas()
    return table[name].to_pandas()


def _resolve_duplicates(
    task_codes: Int[np.ndarray, " label"],
    worker_codes: Int[np.ndarray, " label"],
    rows: Int[np.ndarray, " row"] | None,
    duplicates: Duplicates,
    vocabularies: tuple[pd.Index, pd.Index],
    where: Where,
) -> Int[np.ndarray, " kept"]:
    """Rows that remain of `rows`, or of all rows if None is given."""
    tasks, workers = vocabularies
    if rows is None:
        rows = np.arange(len(task_codes))
    pair = pd.Series(task_codes[rows].astype(np.int64) * len(workers) + worker_codes[rows])
    repeated = pair.duplicated(keep="last" if duplicates == "last" else "first").to_numpy()
    if duplicates == "error" and repeated.any():
        row = int(rows[np.flatnonzero(repeated)[0]])
        raise ValueError(
            f"{where.row(row)}: worker {plain(workers[worker_codes[row]])!r} judges task "
            f"{plain(tasks[task_codes[row]])!r} again; expected one judgement per pair "
            f"({argument('duplicates')} keep takes them as data)"
        )
    return rows[~repeated]


def _as_rows(matrix: Any) -> Any:
    """The matrix as something of which pandas makes a table, tasks x workers."""
    if hasattr(matrix, "to_pandas"):  # polars, pyarrow
        return matrix.to_pandas().set_axis(range(matrix.shape[0]))
    if isinstance(matrix, np.ndarray):
        if matrix.ndim != 2:
            raise ValueError(
                f"the matrix has {matrix.ndim} dimension{'' if matrix.ndim == 1 else 's'}; "
                "expected 2: tasks x workers"
            )
        return matrix
    if not isinstance(matrix, Iterable):
        raise TypeError(
            f"the matrix came as {type(matrix).__name__}; expected a table, tasks x workers"
        )
    if any(np.ndim(row) == 0 for row in matrix):
        raise ValueError("the matrix has 1 dimension; expected 2: tasks x workers")
    widths = {len(row) for row in matrix}
    if len(widths) > 1:
        raise ValueError(
            f"rows of the matrix have different lengths: {sorted(widths)}; expected one length"
        )
    return np.array([list(row) for row in matrix], dtype=object)
