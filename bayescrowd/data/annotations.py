"""Annotations: one coded, sorted, validated and immutable table of judgements.

Every estimator of the package reads its labels from an `Annotations`. A row is one
judgement: worker `w` gave task `t` the label `l`. Rows are kept as integer codes into three
vocabularies and stand in the order (task, worker, label), so that nothing computed from them
can depend on the order in which a file happened to list them. Repeated judgements of a task
by the same worker are ordinary rows. A missing judgement is an absent row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Int, Shaped
from narwhals.exceptions import DuplicateError

from bayescrowd.checks.parameters import Count, check_arguments, validate_arguments
from bayescrowd.data.truth import Truth, Unchosen, known_labels, warn_of_classes, warn_of_tasks
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

__all__ = ["Annotations", "as_annotations"]

Duplicates = Literal["keep", "error", "first", "last"]


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Judgements (task, worker, label) in integer codes, with the vocabularies they index.

    Make one with `from_frame`, `from_matrix` or `from_codes`, or from a file with
    `bayescrowd.read_annotations`; the plain constructor trusts what it is given.

    Args:
        task_codes: position of each judgement's task in `tasks`; ascending.
        worker_codes: position of each judgement's worker in `workers`.
        label_codes: position of each judgement's label in `classes`.
        tasks: the users' task ids; tasks without a judgement are allowed.
        workers: the users' worker ids; workers without a judgement are allowed.
        classes: the classes in their fixed order.
        n_dropped: rows left out because they carried no label.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> frame = pd.DataFrame({"task": [2, 1, 1], "worker": list("aab"), "label": list("yny")})
        >>> ann = bc.Annotations.from_frame(frame)
        >>> ann
        Annotations(3 labels: 2 tasks, 2 workers, 2 classes)
        >>> list(ann.classes)
        ['n', 'y']
        >>> ann.select_workers(["b"]).to_frame()
           task worker label
        0     1      b     y
    """

    task_codes: Int[np.ndarray, " label"]
    worker_codes: Int[np.ndarray, " label"]
    label_codes: Int[np.ndarray, " label"]
    tasks: pd.Index
    workers: pd.Index
    classes: pd.Index
    n_dropped: int = 0

    @classmethod
    @validate_arguments
    def from_frame(
        cls,
        frame: Any,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        classes: Sequence[Any] | None = None,
        duplicates: Duplicates = "keep",
        *,
        source: str | None = None,
        row_number: Callable[[int], int] | None = None,
    ) -> Annotations:
        """Read a long table: pandas, polars, pyarrow or anything else narwhals knows.

        Args:
            frame: one row per judgement.
            task: name of the column of task ids; with pandas, a named index level will do.
            worker: name of the column of worker ids.
            label: name of the column of labels: strings, integers, booleans or categoricals.
                A missing label (None, NaN, empty text) means 'not labelled': the row is
                dropped and counted in `n_dropped`.
            classes: the classes in order. Without it: the order of an ordered categorical or
                enum, else the natural sort order of the labels present (`'c2' < 'c10'`).
            duplicates: what to do with repeated judgements of one task by one worker: 'keep'
                them as data, raise an 'error', or take the 'first' or 'last' in row order.
            source: name put in front of error messages, such as the file's.
            row_number: the number by which messages call the row at a position; without it
                positions are counted from 1.

        Raises:
            ValueError: a column is absent, an id is missing, or the labels cannot be classes;
                the message names row and column.
        """
        where = Where(source, row_number)
        refuse_shared_column(_roles(task, worker, label), where)
        table = _eager(frame)
        series = [_column(table, name, role, where) for name, role in _roles(task, worker, label)]
        if len(table) == 0:
            raise ValueError(f"{where.prefix}the table has no rows; expected one per judgement")
        task_codes, tasks = code_ids(series[0], task, "task", where)
        worker_codes, workers = code_ids(series[1], worker, "worker", where)
        label_codes, vocabulary = code_labels(series[2], label, classes, where)
        present = label_codes >= 0
        n_dropped = int(len(present) - present.sum())
        if n_dropped == len(present):
            raise ValueError(f"{where.prefix}column {label!r} holds no label at all")
        rows = np.flatnonzero(present) if n_dropped else None
        if duplicates != "keep":
            rows = _resolve_duplicates(
                task_codes, worker_codes, rows, duplicates, (tasks, workers), where
            )
        if rows is not None:
            task_codes, worker_codes = task_codes[rows], worker_codes[rows]
            label_codes = label_codes[rows]
        return _sorted(task_codes, worker_codes, label_codes, tasks, workers, vocabulary, n_dropped)

    @classmethod
    @validate_arguments
    def from_matrix(cls, matrix: Any, classes: Sequence[Any] | None = None) -> Annotations:
        """Read a wide table: one row per task, one column per worker, None or NaN where unlabelled.

        Ids are a DataFrame's index and columns, else 0, 1, ... Tasks and workers without a
        label stay in the vocabularies.

        Examples:
            >>> import bayescrowd as bc
            >>> bc.Annotations.from_matrix([["a", None, "b"], ["b", "b", None]])
            Annotations(4 labels: 2 tasks, 3 workers, 2 classes)
        """
        wide = matrix if isinstance(matrix, pd.DataFrame) else pd.DataFrame(_rectangular(matrix))
        if wide.size == 0:
            raise ValueError("the matrix is empty; expected tasks x workers")
        for axis, ids in (("row", wide.index), ("column", wide.columns)):
            if not ids.is_unique:
                raise ValueError(f"{axis} {ids[ids.duplicated()][0]!r} of the matrix stands twice")
            refuse_indistinct(ids, axis)
        n_workers = wide.shape[1]
        values = pd.Series(wide.to_numpy(dtype=object).ravel(order="C")).infer_objects()
        codes, vocabulary = code_labels(values, "matrix", classes, Where())
        present = np.flatnonzero(codes >= 0)
        if len(present) == 0:
            raise ValueError("the matrix holds no label at all")
        task_order, tasks = sorted_ids(wide.index, "task")
        worker_order, workers = sorted_ids(wide.columns, "worker")
        return _sorted(
            task_order[present // n_workers],
            worker_order[present % n_workers],
            codes[present],
            tasks,
            workers,
            vocabulary,
            n_dropped=0,
        )

    @classmethod
    @validate_arguments
    def from_codes(
        cls,
        task: Shaped[np.ndarray, " label"],
        worker: Shaped[np.ndarray, " label"],
        label: Shaped[np.ndarray, " label"],
        *,
        tasks: Count | Sequence[Any] | pd.Index,
        workers: Count | Sequence[Any] | pd.Index,
        classes: Count | Sequence[Any] | pd.Index,
    ) -> Annotations:
        """Take integer codes as they are; a vocabulary given as n stands for 0, ..., n - 1.

        The fast way in for simulators and for data that are coded already. Rows may come in
        any order.

        Examples:
            >>> import numpy as np
            >>> import bayescrowd as bc
            >>> one, two = np.array([0, 0, 1]), np.array([0, 1, 1])
            >>> bc.Annotations.from_codes(one, two, one, tasks=2, workers=2, classes=["a", "b"])
            Annotations(3 labels: 2 tasks, 2 workers, 2 classes)
        """
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
            raise ValueError(f"code arrays differ in length: {lengths}")
        if len(task) == 0:
            raise ValueError("no judgements: the code arrays are empty")
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
            raise ValueError("one class only; expected at least two")
        # int64: NumPy adds unsigned to signed 64-bit integers as floats.
        task, worker, label = (codes.astype(np.int64, copy=False) for _, codes in columns)
        task_ids, worker_ids, class_ids = vocabularies
        return _sorted(task, worker, label, task_ids, worker_ids, class_ids, n_dropped=0)

    @property
    def n_labels(self) -> int:
        """Number of judgements."""
        return len(self.task_codes)

    @property
    def n_tasks(self) -> int:
        """Number of tasks, with or without judgements."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """Number of workers, with or without judgements."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes, used or not."""
        return len(self.classes)

    @cached_property
    def task_offsets(self) -> Int[np.ndarray, " task_plus_1"]:
        """Judgements of task `t` are the rows `task_offsets[t]:task_offsets[t + 1]`."""
        counts = np.bincount(self.task_codes, minlength=self.n_tasks)
        return _frozen(np.concatenate([[0], np.cumsum(counts)]))

    @cached_property
    def votes(self) -> Int[np.ndarray, "task cls"]:
        """How many judgements give each task each class."""
        flat = self.task_codes.astype(np.int64) * self.n_classes + self.label_codes
        counts = np.bincount(flat, minlength=self.n_tasks * self.n_classes)
        return _frozen(counts.reshape(self.n_tasks, self.n_classes))

    @cached_property
    def labels_per_worker(self) -> Int[np.ndarray, " worker"]:
        """Number of judgements of each worker."""
        return _frozen(np.bincount(self.worker_codes, minlength=self.n_workers))

    @cached_property
    def labels_per_task(self) -> Int[np.ndarray, " task"]:
        """Number of judgements of each task."""
        return _frozen(np.diff(self.task_offsets))

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a pandas table task, worker, label in the user's own ids."""
        return pd.DataFrame(
            {
                "task": self.tasks.take(self.task_codes),
                "worker": self.workers.take(self.worker_codes),
                "label": self.classes.take(self.label_codes),
            }
        )

    @validate_arguments
    def select_workers(self, ids: Iterable[Any]) -> Annotations:
        """Keep the judgements of these workers; all tasks and classes stay."""
        kept = _positions(self.workers, ids, "worker")
        new_code, rows = _renumber(kept, self.n_workers, self.worker_codes)
        return Annotations(
            _frozen(self.task_codes[rows]),
            _frozen(new_code[self.worker_codes[rows]]),
            _frozen(self.label_codes[rows]),
            self.tasks,
            self.workers.take(kept),
            self.classes,
        )

    @validate_arguments
    def select_tasks(self, ids: Iterable[Any]) -> Annotations:
        """Keep the judgements of these tasks; all workers and classes stay."""
        kept = _positions(self.tasks, ids, "task")
        new_code, rows = _renumber(kept, self.n_tasks, self.task_codes)
        return Annotations(
            _frozen(new_code[self.task_codes[rows]]),
            _frozen(self.worker_codes[rows]),
            _frozen(self.label_codes[rows]),
            self.tasks.take(kept),
            self.workers,
            self.classes,
        )

    def code_truth(
        self, truth: Truth, name: str = "gold", *, unchosen: Unchosen = "left out"
    ) -> Int[np.ndarray, " task"]:
        """Class code of each task's known label, -1 where none is given.

        Tasks that are not among `tasks` are left out. A label whose class is not among `classes`
        is left out as well, or wrong whatever a worker says. A `TruthWarning` counts both.

        Args:
            truth: task -> label. Missing labels are passed over.
            name: what messages call it.
            unchosen: what becomes of a class nobody chose. To learn from it, a model would need
                to know that it exists, so that gold of it is 'left out' until it is declared
                among the classes. Labels that are scored by it are 'wrong': its code is -2.

        Raises:
            ValueError: a task has two different labels.

        Examples:
            >>> import bayescrowd as bc
            >>> ann = bc.Annotations.from_matrix([["a", "a"], ["b", "a"]])
            >>> ann.code_truth({1: "b"})
            array([-1,  1], dtype=int32)
        """
        check_arguments(Annotations.code_truth, {"name": name, "unchosen": unchosen})
        known = known_labels(truth, name)
        task_codes = self.tasks.get_indexer(known.index)
        class_codes = self.classes.get_indexer(pd.Index(known.to_numpy()))
        is_here, is_class = task_codes >= 0, class_codes >= 0
        warn_of_tasks(known.index[~is_here], len(known), name)
        warn_of_classes(known[is_here & ~is_class], len(known), name, unchosen)
        coded = np.full(self.n_tasks, -1, dtype=np.int32)
        coded[task_codes[is_here]] = class_codes[is_here]
        if unchosen == "wrong":
            coded[task_codes[is_here & ~is_class]] = -2
        return coded

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_labels:,} labels: {self.n_tasks:,} tasks, "
            f"{self.n_workers:,} workers, {self.n_classes:,} classes)"
        )


def as_annotations(data: Any, classes: pd.Index | None = None) -> Annotations:
    """`data` itself if it is Annotations, else read as a task/worker/label table."""
    if isinstance(data, Annotations):
        return data
    return Annotations.from_frame(data, classes=None if classes is None else list(classes))


def _roles(task: str, worker: str, label: str) -> list[tuple[str, str]]:
    return [(task, "task"), (worker, "worker"), (label, "label")]


def _eager(frame: Any) -> nw.DataFrame[Any]:
    try:
        table = nw.from_native(frame)
    except TypeError:
        raise TypeError(
            f"labels came as {type(frame).__name__}; expected Annotations or a pandas, polars "
            "or pyarrow table with a row per judgement"
        ) from None
    except DuplicateError:
        raise ValueError("two columns of the table have the same name") from None
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


def _sorted(
    task: Int[np.ndarray, " label"],
    worker: Int[np.ndarray, " label"],
    label: Int[np.ndarray, " label"],
    tasks: pd.Index,
    workers: pd.Index,
    classes: pd.Index,
    n_dropped: int,
) -> Annotations:
    label_bits, worker_bits = len(classes).bit_length(), len(workers).bit_length()
    if len(tasks).bit_length() + worker_bits + label_bits < 64:
        # One integer holds a whole row: sorting it needs no permutation.
        key = task.astype(np.int64)
        for codes, bits in ((worker, worker_bits), (label, label_bits)):
            key <<= bits
            key |= codes
        key.sort()
        label = key & ((1 << label_bits) - 1)
        key >>= label_bits
        worker = key & ((1 << worker_bits) - 1)
        task = key >> worker_bits
    else:
        order = np.lexsort((label, worker, task))
        task, worker, label = task[order], worker[order], label[order]
    return Annotations(
        _frozen(task.astype(np.int32)),
        _frozen(worker.astype(np.int32)),
        _frozen(label.astype(np.int32)),
        tasks,
        workers,
        classes,
        n_dropped,
    )


def _positions(vocabulary: pd.Index, ids: Iterable[Any], what: str) -> Int[np.ndarray, " kept"]:
    wanted = pd.Index(list(ids))
    positions = vocabulary.get_indexer(wanted)
    if len(wanted) == 0:
        raise ValueError(f"no {what} selected")
    if (positions < 0).any():
        unknown = plain(wanted[int(np.flatnonzero(positions < 0)[0])])
        raise ValueError(f"{what} {unknown!r} is not among the {len(vocabulary):,} {what}s")
    return np.unique(positions)


def _renumber(
    kept: Int[np.ndarray, " kept"], n_before: int, codes: Int[np.ndarray, " label"]
) -> tuple[Int[np.ndarray, " before"], Bool[np.ndarray, " label"]]:
    new_code = np.full(n_before, -1, dtype=np.int32)
    new_code[kept] = np.arange(len(kept), dtype=np.int32)
    rows = new_code[codes] >= 0
    if not rows.any():
        raise ValueError("the selection holds no judgement")
    return new_code, rows


def _rectangular(matrix: Any) -> Any:
    if hasattr(matrix, "to_pandas"):  # polars, pyarrow
        return matrix.to_pandas().set_axis(range(matrix.shape[0]))
    if isinstance(matrix, np.ndarray):
        if matrix.ndim != 2:
            raise ValueError(f"the matrix has {matrix.ndim} dimensions; expected tasks x workers")
        return matrix
    if not isinstance(matrix, Iterable):
        raise TypeError(
            f"the matrix came as {type(matrix).__name__}; expected a table, tasks x workers"
        )
    if any(np.ndim(row) == 0 for row in matrix):
        raise ValueError("the matrix has 1 dimension; expected tasks x workers")
    widths = {len(row) for row in matrix}
    if len(widths) > 1:
        raise ValueError(f"rows of the matrix have different lengths: {sorted(widths)}")
    return np.array([list(row) for row in matrix], dtype=object)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
