r"""Reading annotations and known labels from files and from exports of labelling platforms.

`read_annotations` reads plain tables with one row per judgement (CSV, TSV, JSON lines, JSON arrays,
Parquet; text also gzipped), wide tables with a column per judge, JSON objects `{judge: {task:
label}}` and the exports of Mechanical Turk, Toloka and Label Studio. A table saved for crowd-kit,
with the columns task, worker and label, is such a plain table. `read_truth` reads known labels of
tasks. If a file cannot be read, the error is one line with the file, the row, the column and what
was expected.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.coding import Duplicates
from bayescrowd.data.truth import warn_of_tasks
from bayescrowd.data.vocabulary import Where, quote, refuse_shared_column
from bayescrowd.io.column_names import ExportedLabels, find_column, guess_note
from bayescrowd.io.file_tables import DelimitedText, file_contents
from bayescrowd.io.formats import (
    Columns,
    Format,
    file_table,
    guess_format,
    read_rows,
    with_names,
)
from bayescrowd.io.positions import MISSING, pandas_column, positions_of, text_in
from bayescrowd.io.spellings import merge_spellings, warn_of_known_spellings, warn_of_spellings

__all__ = [
    "Format",
    "KnownLabels",
    "annotations_of",
    "match_known_labels",
    "read_annotations",
    "read_known_labels",
    "read_truth",
]


@validate_arguments
def read_annotations(
    path: str | os.PathLike[str],
    format: Format | None = None,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    classes: Sequence[Any] | None = None,
    duplicates: Duplicates = "keep",
    raw_cells: bool = False,
    columns: Sequence[str] | None = None,
    tidy: bool = False,
) -> Annotations:
    r"""Read judgements from a file.

    Args:
        path: path of the file; '-' is standard input. Gzipped text is unpacked.
        format: format of the file. By default, it follows from the extension and the content: a
            CSV file with `HITId`, `WorkerId` and `Answer.*` comes from Mechanical Turk, a table
            with `ASSIGNMENT:worker_id` from Toloka, a JSON array of tasks with `annotations` from
            Label Studio; other JSON arrays hold one object per judgement.
            'wide' is a table of any kind with a row per task and a column of labels per judge. It
            is recognised if it has a task, no column with a usual name for the worker or the label,
            and two or more other columns with at most 20 different labels, of which at least half
            of those of each judge are labels of another judge too. Columns without a name and
            columns named truth or gold are not judges; all others are, and their names become the
            workers.
            'nested' is a JSON object `{judge: {task: label}}`. It is recognised in files whose
            extension is .json, or absent.
        task: name of the column of task ids. By default, the platform's own column, or else the
            only column with a usual name, such as task, item or question_id.
        worker: name of the column of worker ids. By default, the platform's own column, or else
            the only one with a usual name, such as worker, annotator or rater.
        label: name of the column of labels, or of the question if an export has several. By
            default, the only column with a usual name, such as label, answer or response.
        classes: the classes in order; by default, the labels found in natural order.
        duplicates: how to treat repeated judgements of one task by one worker: 'keep' them as
            data, raise an 'error', or use the 'first' or 'last' in the file.
        raw_cells: whether to keep the apostrophe before text of a CSV or TSV file that a
            spreadsheet would run as a formula. Tables that bayescrowd writes have it; by default it
            is removed, so that `'=x` is read as `=x`.
        columns: names of all columns of a CSV or TSV file without a header, in order; a header that
            is there after all is noticed and left out. By default, row 1 is the header.
        tidy: whether to merge labels that differ only in case or surrounding blanks. The most
            frequent spelling wins, or else the one that occurs first; a spelling among `classes`
            wins over all others.

    Fields of CSV and TSV files are text, and only empty fields are missing; a column in which all
    values are plain integers becomes integers. Fields of a CSV file are separated by commas, or by
    semicolons, tabs or spaces if its first row has no comma. Text is in UTF-8, or in UTF-16 with a
    byte order mark.

    Columns whose name only suggests their role, such as image for the task or value for the label,
    are guesses: the `notes` of the annotations say so, as well as what was merged.

    An empty cell of a wide table is no judgement. Rows without a label, and null in a nested
    object, are judgements without a label; they are dropped and counted in `n_dropped`.
    `read_verdicts` lists them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file cannot be read as judgements.

    Warns:
        SpellingWarning: labels differ only in case or surrounding blanks, and `tidy` is false.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayescrowd as bc
        >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
        >>> _ = path.write_text("item,rater,answer\n1,ann,cat\n1,bob,dog\n2,ann,dog\n")
        >>> bc.read_annotations(path)
        Annotations(3 labels: 2 tasks, 2 workers, 2 classes)
    """
    roles = Columns(task, worker, label, None if columns is None else tuple(columns))
    source, rows = read_rows(path, format, roles, raw_cells=raw_cells)
    return annotations_of(source, rows, classes, duplicates, tidy=tidy)


def annotations_of(
    source: str,
    rows: ExportedLabels,
    classes: Sequence[Any] | None,
    duplicates: Duplicates,
    *,
    tidy: bool,
) -> Annotations:
    """Annotations from rows of a file; tasks and workers without a label are kept."""
    if tidy:
        rows = merge_spellings(source, rows, classes)
    frame = rows.frame
    if classes is not None and all(isinstance(name, str) for name in classes):
        frame = _labels_as_text(frame, rows.label, classes)
    annotations = Annotations.from_frame(
        frame,
        rows.task,
        rows.worker,
        rows.label,
        classes,
        duplicates,
        source=source,
        row_number=rows.row_number,
    )
    if classes is None:  # classes that the user lists differ on purpose
        warn_of_spellings(annotations, source)
    n_dropped = 0 if rows.blank_is_unasked else annotations.n_dropped
    return replace(annotations, n_dropped=n_dropped, notes=rows.notes)


@validate_arguments
def read_truth(
    path: str | os.PathLike[str],
    annotations: Annotations,
    *,
    task: str | None = None,
    label: str | None = None,
    name: str = "truth",
    raw_cells: bool = False,
    columns: Sequence[str] | None = None,
    tidy: bool = False,
) -> pd.Series:
    r"""Read known labels of tasks from a table: CSV, TSV, JSON lines, JSON arrays or Parquet.

    Tasks and classes are matched with those of the annotations by their text, so that the 7 of one
    file is the '7' of another. Missing labels are ignored, and a task may be repeated with the same
    label. Tasks that nobody judged are left out and counted in a warning; a class that nobody chose
    is kept as text and reported where it is used.

    Args:
        path: path of the file; '-' is standard input.
        annotations: judgements with the tasks and classes to match.
        task: name of the column of task ids; by default, the only one with a usual name.
        label: name of the column of labels; by default, a column such as truth or gold, or else
            label.
        name: name of the result and of the labels in messages: 'truth' or 'gold'.
        raw_cells: whether to keep apostrophes, as for `read_annotations`.
        columns: names of all columns of a CSV or TSV file without a header, in order. A header that
            is there after all is noticed, and its names count instead.
        tidy: whether labels that differ from a class of the annotations only in case or surrounding
            blanks are this class, and others that differ so among themselves are one.

    Returns:
        The labels, as classes of the annotations, indexed by task in the order of the annotations.
        If columns were guessed or labels merged, `attrs["notes"]` says how.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no task is among those of the annotations, or a task has two different labels.

    Warns:
        TruthWarning: some tasks have no judgements; the warning says how many.
        SpellingWarning: labels differ from a class only in case or surrounding blanks, and `tidy`
            is false.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayescrowd as bc
        >>> path = Path(tempfile.mkdtemp()) / "gold.csv"
        >>> _ = path.write_text("task,gold\n1,dog\n")
        >>> annotations = bc.Annotations.from_matrix([["dog", "cat"], ["cat", "dog"]])
        >>> bc.read_truth(path, annotations, name="gold").to_dict()
        {1: 'dog'}
    """
    found = read_known_labels(
        path,
        annotations,
        task=task,
        label=label,
        name=name,
        raw_cells=raw_cells,
        columns=columns,
        tidy=tidy,
    )
    if found.notes:
        found.labels.attrs["notes"] = found.notes
    return found.labels


class KnownLabels(NamedTuple):
    """Known labels from a file, matched with annotations."""

    labels: pd.Series
    """The labels, indexed by task."""
    n_absent: int
    """Number of tasks in the file that nobody judged and that are left out."""
    n_unchosen: int
    """Number of labels whose class nobody chose."""
    notes: tuple[str, ...] = ()
    """What was guessed or changed when the file was read, in sentences for the user."""

    def counts(self) -> dict[str, int]:
        """How well the file matches the annotations, for JSON output."""
        return {
            "n_tasks": len(self.labels) + self.n_absent,
            "n_without_labels": self.n_absent,
            "n_unchosen_class": self.n_unchosen,
        }


def read_known_labels(
    path: str | os.PathLike[str],
    annotations: Annotations,
    *,
    task: str | None,
    label: str | None,
    name: str,
    raw_cells: bool,
    columns: Sequence[str] | None = None,
    tidy: bool = False,
) -> KnownLabels:
    """`read_truth`, with the numbers of tasks and labels that do not match."""
    source, data = file_contents(path)
    chosen = guess_format(path, source, data, has_header=columns is None)
    if chosen in ("label-studio", "nested"):
        found = "array" if chosen == "label-studio" else "object of objects"
        raise ValueError(f"{source}: found a JSON {found}; expected a table with one row per task")
    table = file_table(chosen, source, data, raw_cells=raw_cells)
    if isinstance(table, DelimitedText) and columns is not None:
        named, left_out = with_names(table, columns)
        table = table if left_out else named
    if not table.columns:
        raise ValueError(f"{source}: found no columns; expected one of tasks and one of labels")
    task_column = find_column(table, "task", task, option=f"--{name}-columns")
    label_column = find_column(table, "truth", label, option=f"--{name}-columns")
    refuse_shared_column([(task_column, "task"), (label_column, name)], Where(source))
    roles, given = {"task": task_column, "truth": label_column}, {"task": task, "truth": label}
    known = ExportedLabels(
        table.read([task_column, label_column]),
        task_column,
        "",
        label_column,
        table.row_number,
        is_text=isinstance(table, DelimitedText),
        notes=guess_note(source, roles, given, f"--{name}-columns"),
    )
    return match_known_labels(source, known, annotations, name=name, tidy=tidy)


def match_known_labels(
    source: str, rows_read: ExportedLabels, annotations: Annotations, *, name: str, tidy: bool
) -> KnownLabels:
    """Known labels from rows, matched with annotations; the arguments are as for `read_truth`."""
    if tidy:
        rows_read = merge_spellings(source, rows_read, annotations.classes)
    frame, task_column, label_column = rows_read.frame, rows_read.task, rows_read.label
    where = Where(source, rows_read.row_number)
    labels = positions_of(where, frame, label_column, annotations.classes)
    rows = np.flatnonzero(labels != MISSING)
    if not len(rows):
        raise ValueError(f"{source}: column {label_column!r} has no labels; expected at least one")
    tasks, labels = positions_of(where, frame, task_column, annotations.tasks)[rows], labels[rows]
    if (tasks == MISSING).any():
        row = int(rows[np.argmax(tasks == MISSING)])
        raise ValueError(
            f"{where.row(row)}, column {task_column!r}: the task of this {name} label is missing; "
            f"expected one of the {annotations.n_tasks:,} tasks of the annotations"
        )
    is_here = tasks >= 0
    absent = pd.Index(pandas_column(frame, task_column).iloc[rows[~is_here]].map(text_in).unique())
    if not is_here.any():
        raise ValueError(
            f"{source}: none of its {len(absent):,} tasks (such as {quote(absent[0])}) is one "
            f"of the {annotations.n_tasks:,} tasks of the annotations (such as "
            f"{quote(text_in(annotations.tasks[0]))})"
        )
    rows, tasks, labels = rows[is_here], tasks[is_here], labels[is_here]
    classes = annotations.classes
    if (labels < 0).any():  # classes that nobody chose: added as text after the others
        column = pandas_column(frame, label_column).iloc[rows]
        others, which = np.unique(column[labels < 0].map(text_in), return_inverse=True)
        n_others = dict(zip(others.tolist(), np.bincount(which).tolist(), strict=True))
        warn_of_known_spellings(n_others, classes, source)
        labels[labels < 0] = len(classes) + which
        classes = pd.Index([*classes, *others], dtype=object)
    known = np.full(annotations.n_tasks, MISSING)
    known[tasks[::-1]] = labels[::-1]  # the first row of a task counts, and the others must agree
    if (known[tasks] != labels).any():
        clash = int(np.argmax(known[tasks] != labels))
        raise ValueError(
            f"{where.row(int(rows[clash]))}, column {label_column!r}: a second, different {name} "
            f"label for task {text_in(annotations.tasks[tasks[clash]])!r}; expected one per task"
        )
    present = np.flatnonzero(known != MISSING)
    warn_of_tasks(absent, len(present) + len(absent), name, source=f"{source}: ")
    labels_by_task = pd.Series(
        classes.take(known[present]).array, index=annotations.tasks.take(present), name=name
    )
    n_unchosen = int((known[present] >= annotations.n_classes).sum())
    return KnownLabels(labels_by_task, len(absent), n_unchosen, rows_read.notes)


def _labels_as_text(frame: Any, label: str, classes: Sequence[str]) -> Any:
    """The table with integer and boolean labels as text, so that they match the classes."""
    spelling = {name.casefold(): name for name in classes}
    yes, no = spelling.get("true", "True"), spelling.get("false", "False")
    if isinstance(frame, pd.DataFrame):  # Python objects, perhaps of several types

        def as_text(value: Any) -> Any:
            if isinstance(value, bool):
                return yes if value else no
            return str(value) if isinstance(value, int) else value

        return frame.assign(**{label: frame[label].map(as_text, na_action="ignore")})
    kind = frame[label].type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_boolean(kind):
        texts = pc.if_else(frame[label].cast(kind), yes, no)
    elif pa.types.is_integer(kind):
        texts = frame[label].cast(kind).cast(pa.large_string()).dictionary_encode()
    else:
        return frame
    return frame.set_column(frame.column_names.index(label), label, texts)
