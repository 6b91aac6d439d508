"""Judgements in the files that labelling platforms export.

- Mechanical Turk, batch results (CSV): one row per assignment with `HITId`, `WorkerId`,
  `AssignmentStatus` and a column `Answer.<name>` per field of the form. Radio buttons give one
  true/false column per option: `Answer.<name>.<option>` for HTML inputs, and
  `Answer.<option>.<option>` for `crowd-radio-button` whose name and value agree.
- Toloka, assignments (TSV): one row per answer with `INPUT:*`, `OUTPUT:*`, `GOLDEN:*` and
  `ASSIGNMENT:*`; the requester chooses which of the last are exported, and whether an empty row
  separates task suites.
- Label Studio (JSON): an array of tasks with their `annotations`, or the short form JSON-MIN,
  an array with one flat object per annotation.

Work that the requester rejected or that the worker did not finish (skipped, cancelled, expired) is
left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool

from bayescrowd.data.vocabulary import argument, comma_list
from bayescrowd.io.column_names import ExportedLabels, find_column
from bayescrowd.io.file_tables import DelimitedText, JsonArray, parse_json

__all__ = [
    "is_mturk",
    "is_toloka",
    "label_studio_judgements",
    "mturk_judgements",
    "toloka_judgements",
]

_TOLOKA_UNDONE = ("rejected", "skipped", "expired", "active")
"""Statuses of assignments that hold no data."""


def is_mturk(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is a Mechanical Turk batch result."""
    return {"HITId", "WorkerId"} <= set(columns) and any(c.startswith("Answer.") for c in columns)


def is_toloka(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is a Toloka assignments file."""
    return "ASSIGNMENT:worker_id" in columns


def mturk_judgements(
    table: DelimitedText, task: str | None, worker: str | None, label: str | None
) -> ExportedLabels:
    """Read a Mechanical Turk batch result.

    Args:
        table: the file.
        task: name of the column of task ids; `HITId` by default. An `Input.*` column joins HITs
            that show the same input.
        worker: name of the column of worker ids; `WorkerId` by default.
        label: the question, with or without `Answer.`; needed if there are several.

    Raises:
        ValueError: the question is unknown or not named although there are several, or two of its
            options are chosen at once.
    """
    task_column = find_column(table, "task", task or "HITId")
    worker_column = find_column(table, "worker", worker or "WorkerId")
    answers = [name for name in table.columns if name.startswith("Answer.")]
    names = [task_column, worker_column, *answers]
    if label in table.columns:
        names.append(label)
    has_status = "AssignmentStatus" in table.columns
    frame = table.read([*names, "AssignmentStatus"] if has_status else names)
    questions = _mturk_questions(frame, answers)
    if label in table.columns:
        questions = {label: [label]}
    question = _only_question(questions, label, "Answer.", table.source)
    chosen = _chosen_option(frame, question, questions[question], table)
    kept = np.ones(len(frame), dtype=bool)
    if has_status:
        kept = ~_among(frame["AssignmentStatus"], ("rejected",))
    selected = {task_column: frame[task_column], worker_column: frame[worker_column]}
    return _kept_rows(
        pa.table({**selected, question: chosen}), kept, table, task_column, worker_column, question
    )


def toloka_judgements(
    table: DelimitedText, task: str | None, worker: str | None, label: str | None
) -> ExportedLabels:
    """Read a Toloka assignments file.

    Args:
        table: the file.
        task: name of the column of task ids; by default `ASSIGNMENT:task_id`, or the only
            `INPUT:` column of a file without it.
        worker: name of the column of worker ids; `ASSIGNMENT:worker_id` by default.
        label: the output field, with or without `OUTPUT:`; needed if there are several.

    Raises:
        ValueError: a column is absent, or not named although there are several.
    """
    columns = table.columns
    outputs = {name: [name] for name in columns if name.startswith("OUTPUT:")}
    if label in columns:
        outputs = {label: [label]}
    question = _only_question(outputs, label, "OUTPUT:", table.source)
    if task is None and "ASSIGNMENT:task_id" not in columns:
        inputs = [name for name in columns if name.startswith("INPUT:")]
        if len(inputs) != 1:
            raise ValueError(
                f"{table.source}: no column 'ASSIGNMENT:task_id' for the task; the columns are "
                f"{comma_list(columns)}; choose one with {argument('task')}"
            )
        task = inputs[0]
    task_column = find_column(table, "task", task or "ASSIGNMENT:task_id")
    worker_column = find_column(table, "worker", worker or "ASSIGNMENT:worker_id")
    roles = [task_column, worker_column, question]
    has_status = "ASSIGNMENT:status" in columns
    frame = table.read([*roles, "ASSIGNMENT:status"] if has_status else roles)
    kept = np.zeros(len(frame), dtype=bool)
    for name in roles:  # a row without any of the three separates two task suites
        kept |= frame[name].is_valid().to_numpy()
    if has_status:
        kept &= ~_among(frame["ASSIGNMENT:status"], _TOLOKA_UNDONE)
    return _kept_rows(frame.select(roles), kept, table, task_column, worker_column, question)


def label_studio_judgements(
    source: str, data: bytes, task: str | None, worker: str | None, label: str | None
) -> ExportedLabels:
    """Read the choices in a Label Studio export, JSON or JSON-MIN.

    Args:
        source: name of the file in messages.
        data: content of the file.
        task: key in the task's `data` that holds the task id; the task's own `id` by default.
        worker: key in `completed_by` that holds the worker id; by default `email`, or else `id`.
            In JSON-MIN, the key that holds the worker, `annotator` by default.
        label: `from_name` of the choices; needed if there are several.

    Raises:
        ValueError: the file is not such an export, the question is unknown or not named although
            there are several, or an annotation holds more than one choice.
    """
    items = parse_json(data, source)
    if not isinstance(items, list) or not items:
        raise ValueError(f"{source}: expected a Label Studio export, an array of tasks")
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict) or not ("annotations" in item or "annotator" in item):
            raise ValueError(
                f"{source}: row {number} of the array: expected a Label Studio task with its "
                "'annotations', or an object of JSON-MIN with its 'annotator'"
            )
    if "annotations" not in items[0]:
        return _flat_judgements(JsonArray(source, items), task, worker, label)
    rows = [
        (number, task_id, worker_id, choices)
        for number, item in enumerate(items, 1)
        for task_id, worker_id, choices in _annotations(
            item, task, worker, f"{source}: row {number} of the array"
        )
    ]
    questions = {name: [name] for *_, choices in rows for name in choices}
    question = _only_question(questions, label, "", source)
    for number, _, worker_id, choices in rows:
        if len(choices[question]) > 1:
            raise ValueError(
                f"{source}: row {number} of the array: worker {worker_id!r} made "
                f"{len(choices[question])} choices for {question!r}; expected a single one"
            )
    frame = pd.DataFrame(
        {
            "id": [task_id for _, task_id, _, _ in rows],
            "completed_by": [worker_id for _, _, worker_id, _ in rows],
            question: [next(iter(choices[question]), None) for *_, choices in rows],
        },
        dtype=object,
    )
    return ExportedLabels(frame, "id", "completed_by", question, lambda position: rows[position][0])


def _mturk_questions(frame: pa.Table, answers: list[str]) -> dict[str, list[str]]:
    """The columns of each question: one with the answer, or one true/false column per option."""
    questions: dict[str, list[str]] = defaultdict(list)
    for column in answers:
        values = {str(v).lower() for v in frame[column].unique().to_pylist() if v is not None}
        if not values:
            continue  # a field that nobody filled in
        prefix, option = column.rsplit(".", 1)
        if prefix == "Answer" or not values <= {"true", "false"}:
            questions[column].append(column)
        elif prefix == f"Answer.{option}":
            questions["Answer"].append(column)
        else:
            questions[prefix].append(column)
    # A single true/false column, such as a check box, is its own question.
    return {
        name if len(columns) > 1 else columns[0]: columns for name, columns in questions.items()
    }


def _chosen_option(
    frame: pa.Table, question: str, columns: list[str], table: DelimitedText
) -> pa.ChunkedArray | pa.Array:
    """The answers: the column as it is, or the option whose column is true."""
    if columns == [question]:
        return frame[question]
    is_chosen = np.column_stack([_among(frame[column], ("true",)) for column in columns])
    several = np.flatnonzero(is_chosen.sum(axis=1) > 1)
    if len(several):
        both = [
            column for column, chosen in zip(columns, is_chosen[several[0]], strict=True) if chosen
        ]
        raise ValueError(
            f"{table.source}: row {table.row_number(int(several[0]))}: the columns "
            f"{comma_list(both)} are true at once; expected a single choice"
        )
    place = np.where(is_chosen.any(axis=1), is_chosen.argmax(axis=1), -1)
    options = [column.rsplit(".", 1)[1] for column in columns]
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=place < 0), pa.array(options))


def _only_question(
    questions: dict[str, list[str]], given: str | None, prefix: str, source: str
) -> str:
    if given is not None:
        for name in (given, prefix + given):
            if name in questions:
                return name
        raise ValueError(
            f"{source}: no question {given!r} for the label; the questions are "
            f"{comma_list(questions)}"
        )
    if not questions:
        raise ValueError(f"{source}: there is no question with labels; expected {prefix}*")
    if len(questions) > 1:
        raise ValueError(
            f"{source}: the questions are {comma_list(questions)}; choose one with "
            f"{argument('label')}"
        )
    return next(iter(questions))


def _among(column: pa.ChunkedArray, texts: tuple[str, ...]) -> Bool[np.ndarray, " label"]:
    values = column.to_pandas()
    wanted = [v for v in values.cat.categories if str(v).lower() in texts]
    return values.isin(wanted).to_numpy()


def _kept_rows(
    frame: pa.Table,
    kept: Bool[np.ndarray, " label"],
    table: DelimitedText,
    task: str,
    worker: str,
    label: str,
) -> ExportedLabels:
    positions = np.flatnonzero(kept)
    if len(frame) and not len(positions):
        raise ValueError(f"{table.source}: all {len(frame):,} rows are rejected or unfinished")
    return ExportedLabels(
        frame.take(pa.array(positions)),
        task,
        worker,
        label,
        lambda position: table.row_number(int(positions[position])),
        is_text=True,
    )


def _annotations(
    item: dict[str, Any], task: str | None, worker: str | None, place: str
) -> list[tuple[Any, Any, dict[str, list[Any]]]]:
    """Task id, worker and choices by question of each annotation that was not cancelled."""
    annotations = _check_kind(item.get("annotations"), list, f"{place}: 'annotations'")
    task_id = item.get("id")
    if task is not None:
        inputs = _check_kind(item.get("data"), dict, f"{place}: 'data'")
        if task not in inputs:
            raise ValueError(
                f"{place}: no key {task!r} for the task in 'data'; the keys are "
                f"{comma_list(inputs)}"
            )
        task_id = inputs[task]
    found = []
    for annotation in annotations:
        _check_kind(annotation, dict, f"{place}: an annotation")
        if annotation.get("was_cancelled"):
            continue
        choices: dict[str, list[Any]] = defaultdict(list)
        for result in _check_kind(annotation.get("result"), list, f"{place}: 'result'"):
            value = _check_kind(result, dict, f"{place}: a result").get("value")
            if isinstance(value, dict) and "choices" in value:
                chosen = _check_kind(value["choices"], list, f"{place}: 'choices'")
                choices[str(result.get("from_name"))] += chosen
        found.append((task_id, _completed_by(annotation, worker), choices))
    return found


def _completed_by(annotation: dict[str, Any], key: str | None) -> Any:
    worker = annotation.get("completed_by")
    if not isinstance(worker, dict):
        return worker
    return worker.get(key) if key is not None else worker.get("email") or worker.get("id")


def _check_kind(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        name = {"list": "an array", "dict": "an object"}[kind.__name__]
        raise ValueError(f"{what} is not {name}; expected a Label Studio export")
    return value


def _flat_judgements(
    table: JsonArray, task: str | None, worker: str | None, label: str | None
) -> ExportedLabels:
    task_column = find_column(table, "task", task or "id")
    worker_column = find_column(table, "worker", worker or "annotator")
    label_column = find_column(table, "label", label)
    frame = table.read([task_column, worker_column, label_column])
    return ExportedLabels(frame, task_column, worker_column, label_column, table.row_number)
