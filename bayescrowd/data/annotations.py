"""Annotations: one coded, sorted, validated and immutable table of judgements.

Every estimator of the package reads its labels from an `Annotations`. A row is one
judgement: worker `w` gave task `t` the label `l`. Rows are stored as integer codes into three
vocabularies and sorted by (task, worker, label), so that nothing computed from them can depend on
the order in which a file happened to list them. Repeated judgements of a task by the same worker
are ordinary rows. A missing judgement is an absent row. `coding` turns tables into such codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int, Shaped

from bayescrowd.checks.parameters import Count, check_arguments, validate_arguments
from bayescrowd.data.coding import (
    Duplicates,
    LabelCodes,
    check_codes,
    code_long_table,
    code_matrix,
)
from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table
from bayescrowd.data.truth import Truth, Unchosen, known_labels, warn_of_classes, warn_of_tasks
from bayescrowd.data.vocabulary import Where, natural_key, plain, vocabulary_of

__all__ = ["Annotations", "as_annotations"]


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Judgements (task, worker, label) as integer codes, with the vocabularies they index.

    Create one with `from_frame`, `from_matrix` or `from_codes`, or from a file with
    `bayescrowd.read_annotations`; the plain constructor trusts its arguments.

    Args:
        task_codes: position of each judgement's task in `tasks`, in ascending order.
        worker_codes: position of each judgement's worker in `workers`.
        label_codes: position of each judgement's label in `classes`.
        tasks: the user's task ids; tasks without a judgement are allowed.
        workers: the user's worker ids; workers without a judgement are allowed.
        classes: the classes in their fixed order.
        n_dropped: number of rows dropped because they had no label.
        notes: what was guessed or changed when the labels were read from a file, in sentences.

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
    notes: tuple[str, ...] = ()

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
        """Read a long table from pandas, polars, pyarrow or any other library narwhals supports.

        Args:
            frame: table with one row per judgement.
            task: name of the column of task ids, or of an index level of a pandas table.
            worker: name of the column of worker ids, or of such a level.
            label: name of the column of labels: strings, integers, booleans or categoricals.
                A missing label (None, NaN, empty text) means that the worker gave none: the row
                is dropped and counted in `n_dropped`.
            classes: the classes in order. By default, the order of an ordered categorical or
                enum, or else the natural sort order of the labels found (`'c2' < 'c10'`).
            duplicates: how to treat repeated judgements of one task by one worker: 'keep' them
                as data, raise an 'error', or use the 'first' or 'last' in row order.
            source: name with which error messages begin, such as that of the file.
            row_number: function from a row's position to the number that messages give it; by
                default, rows are counted from 1.

        Raises:
            ValueError: a column is absent, an id is missing, or the labels cannot be classes;
                the message names the row and the column.
        """
        where = Where(source, row_number)
        return _from_codes(code_long_table(frame, task, worker, label, classes, duplicates, where))

    @classmethod
    @validate_arguments
    def from_matrix(cls, matrix: Any, classes: Sequence[Any] | None = None) -> Annotations:
        """Read a wide table: a row per task, a column per worker, None or NaN for no label.

        The ids are the index and the columns of a DataFrame, and 0, 1, ... otherwise. Tasks and
        workers without a label stay in the vocabularies.

        Examples:
            >>> import bayescrowd as bc
            >>> bc.Annotations.from_matrix([["a", None, "b"], ["b", "b", None]])
            Annotations(4 labels: 2 tasks, 3 workers, 2 classes)
        """
        return _from_codes(code_matrix(matrix, classes))

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

        This is the fast way in for simulators and for data that have codes already. Rows may be
        in any order.

        Examples:
            >>> import numpy as np
            >>> import bayescrowd as bc
            >>> one, two = np.array([0, 0, 1]), np.array([0, 1, 1])
            >>> bc.Annotations.from_codes(one, two, one, tasks=2, workers=2, classes=["a", "b"])
            Annotations(3 labels: 2 tasks, 2 workers, 2 classes)
        """
        return _from_codes(check_codes(task, worker, label, tasks, workers, classes))

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
        """First row of each task: task `t` has rows `task_offsets[t]:task_offsets[t + 1]`."""
        counts = np.bincount(self.task_codes, minlength=self.n_tasks)
        return _freeze(np.concatenate([[0], np.cumsum(counts)]))

    @cached_property
    def votes(self) -> Int[np.ndarray, "task cls"]:
        """Number of judgements that give each task each class."""
        flat = self.task_codes.astype(np.int64) * self.n_classes + self.label_codes
        counts = np.bincount(flat, minlength=self.n_tasks * self.n_classes)
        return _freeze(counts.reshape(self.n_tasks, self.n_classes))

    @cached_property
    def labels_per_worker(self) -> Int[np.ndarray, " worker"]:
        """Number of judgements of each worker."""
        return _freeze(np.bincount(self.worker_codes, minlength=self.n_workers))

    @cached_property
    def labels_per_task(self) -> Int[np.ndarray, " task"]:
        """Number of judgements of each task."""
        return _freeze(np.diff(self.task_offsets))

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a pandas table (task, worker, label) with the user's own ids."""
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
            _freeze(self.task_codes[rows]),
            _freeze(new_code[self.worker_codes[rows]]),
            _freeze(self.label_codes[rows]),
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
            _freeze(new_code[self.task_codes[rows]]),
            _freeze(self.worker_codes[rows]),
            _freeze(self.label_codes[rows]),
            self.tasks.take(kept),
            self.workers,
            self.classes,
        )

    @validate_arguments
    def with_classes(self, classes: Iterable[Any]) -> Annotations:
        """The same labels with further classes, which nobody needs to have chosen.

        Classes that are in natural sort order, as they are unless the user gave them another one,
        stay in it: a further class takes its natural place, and the positions of those behind it
        shift by one. Where the classes have an order of the user's own, they keep their positions,
        and further classes follow in natural sort order.

        Args:
            classes: classes to be added; those that are there already change nothing.

        Raises:
            ValueError: a class is missing (None or NaN), or is written like another one.

        Examples:
            >>> import bayescrowd as bc
            >>> ann = bc.Annotations.from_matrix([["a", "c"], ["c", "c"]])
            >>> list(ann.with_classes(["b", "a"]).classes)
            ['a', 'b', 'c']
        """
        wanted = list(dict.fromkeys(plain(value) for value in classes))
        if any(pd.isna(value) for value in wanted):
            raise ValueError("a class to be added is missing; expected text or a number")
        # Integers next to a missing value arrive as floats.
        wanted = [int(v) if isinstance(v, float) and v.is_integer() else v for v in wanted]
        known = self.classes.get_indexer(pd.Index(wanted, dtype=object))
        further = [value for value, place in zip(wanted, known, strict=True) if place < 0]
        if not further:
            return self
        old = [plain(value) for value in self.classes]
        is_natural = old == sorted(old, key=natural_key)
        further.sort(key=natural_key)
        new = sorted(old + further, key=natural_key) if is_natural else old + further
        vocabulary = vocabulary_of(new, "class")
        # Natural order and the user's order both keep the old classes in their sequence, so that
        # rows stay sorted.
        place_of = vocabulary.get_indexer(self.classes).astype(np.int32)
        return replace(self, label_codes=_freeze(place_of[self.label_codes]), classes=vocabulary)

    def code_truth(
        self, truth: Truth, name: str = "gold", *, unchosen: Unchosen = "left out"
    ) -> Int[np.ndarray, " task"]:
        """Class code of each task's known label, -1 where no label is known.

        Tasks that are not among `tasks` are left out. A label whose class is not among `classes`
        is either left out too or counts as wrong, according to `unchosen`. A `TruthWarning` says
        how many tasks and labels this concerns.

        Args:
            truth: known label by task; missing labels are ignored.
            name: name of these labels in messages.
            unchosen: treatment of a class that nobody chose. Gold labels of it are 'left out',
                since no model can learn from a class that is not declared among the classes.
                When labels are scored, every answer to such a task is 'wrong': its code is -2.

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

    def _repr_html_(self) -> str:
        """For notebooks: how the labels spread over the classes."""
        share = np.bincount(self.label_codes, minlength=self.n_classes) / self.n_labels
        order = np.argsort(-share, kind="stable")[:MOST_ROWS]
        rows = [[self.classes[k], Bar(share[k], f"{share[k]:.1%}")] for k in order]
        per_task, per_worker = (
            f"{given.min():,} to {given.max():,} labels per {name} (mean {given.mean():.3g})"
            for name, given in (("task", self.labels_per_task), ("worker", self.labels_per_worker))
        )
        more = first_rows(self.n_classes, "class", "classes")
        note = "; ".join(filter(None, [more, per_task, per_worker]))
        return notebook_table(repr(self), ["class", "share of the labels"], rows, note=note)


def as_annotations(data: Any, classes: pd.Index | None = None) -> Annotations:
    """`data` itself if it is an `Annotations`, or else read as a table task, worker, label."""
    if isinstance(data, Annotations):
        return data
    return Annotations.from_frame(data, classes=None if classes is None else list(classes))


def _from_codes(codes: LabelCodes) -> Annotations:
    """Annotations with the rows in order."""
    task, worker, label, tasks, workers, classes, n_dropped = codes
    label_bits, worker_bits = len(classes).bit_length(), len(workers).bit_length()
    if len(tasks).bit_length() + worker_bits + label_bits < 64:
        # One integer holds a whole row, so that sorting needs no permutation.
        key = task.astype(np.int64)
        for column, bits in ((worker, worker_bits), (label, label_bits)):
            key <<= bits
            key |= column
        key.sort()
        label = key & ((1 << label_bits) - 1)
        key >>= label_bits
        worker = key & ((1 << worker_bits) - 1)
        task = key >> worker_bits
    else:
        order = np.lexsort((label, worker, task))
        task, worker, label = task[order], worker[order], label[order]
    return Annotations(
        _freeze(task.astype(np.int32)),
        _freeze(worker.astype(np.int32)),
        _freeze(label.astype(np.int32)),
        tasks,
        workers,
        classes,
        n_dropped,
    )


def _positions(vocabulary: pd.Index, ids: Iterable[Any], what: str) -> Int[np.ndarray, " kept"]:
    wanted = pd.Index(list(ids))
    positions = vocabulary.get_indexer(wanted)
    if len(wanted) == 0:
        raise ValueError(f"no {what} selected; expected at least one")
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
        raise ValueError("the selection contains no judgement; expected at least one")
    return new_code, rows


def _freeze(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
