r"""Reading verdicts of judges who may abstain.

A judge who was asked and gave no verdict has abstained: the label is empty or one of the values
that the user names, such as 'unsure' or what a parser writes when it fails. That differs from a
judge who was never asked. `read_verdicts` keeps the two apart, and no abstention becomes a class.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Int

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.coding import Duplicates
from bayescrowd.data.columns import factorize_column, is_blank
from bayescrowd.data.vocabulary import Where, argument, plain, text_of
from bayescrowd.io.column_names import ExportedLabels
from bayescrowd.io.file_tables import integers_if_canonical
from bayescrowd.io.formats import Columns, Format, read_rows
from bayescrowd.io.reading import annotations_of

__all__ = ["Verdicts", "read_verdicts", "verdicts_of"]


class Verdicts(NamedTuple):
    """Verdicts of judges, and who was asked and gave none."""

    annotations: Annotations
    """The verdicts. Tasks on which all judges abstained and judges who always abstained are kept,
    without labels; `n_dropped` is the number of judgements without a verdict."""
    abstentions: pd.DataFrame
    """Columns task, worker and value: one row per judge who was asked and gave no verdict. The
    value is the abstention as the user spelled it, or '' if the label was empty. It is a
    categorical whose categories are all that were named, so that `value_counts` counts those that
    never occur too."""


@validate_arguments
def read_verdicts(
    path: str | os.PathLike[str],
    format: Format | None = None,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    classes: Sequence[Any] | None = None,
    duplicates: Duplicates = "keep",
    abstentions: Sequence[str] = (),
    raw_cells: bool = False,
    columns: Sequence[str] | None = None,
    tidy: bool = False,
) -> Verdicts:
    r"""Read verdicts of judges from a file, and keep abstentions apart from tasks never asked.

    An empty label of a long table, and null or empty text in a nested object, mean that the judge
    was asked and abstained. A row or a key that is absent means that the judge was not asked. An
    empty cell of a wide table may mean either: it counts as not asked, unless '' is among the
    abstentions.

    Args:
        path: path of the file, as for `read_annotations`.
        format: format of the file, as for `read_annotations`; this and the next four.
        task: name of the column of task ids.
        worker: name of the column of judges.
        label: name of the column of labels.
        classes: the classes in order; by default, the verdicts found in natural order.
        duplicates: how to treat repeated verdicts of one judge about one task. Unless they are
            kept, an abstention beside a verdict of the same judge about the same task is left out,
            and of several abstentions one is kept.
        abstentions: labels that are no verdicts, such as 'unsure'; compared as text, without regard
            to case and to blanks around them. Those that do not occur change nothing.
        raw_cells: whether to keep apostrophes, as for `read_annotations`.
        columns: names of all columns of a file without a header, as for `read_annotations`.
        tidy: whether to merge labels that differ only in case or surrounding blanks, as for
            `read_annotations`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file cannot be read, no verdict remains, or a class is named among the
            abstentions.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayescrowd as bc
        >>> path = Path(tempfile.mkdtemp()) / "panel.json"
        >>> _ = path.write_text('''{"gpt": {"1": "good", "2": "bad", "3": "Unsure"},
        ...                         "llama": {"1": "good", "2": null}}''')
        >>> verdicts = bc.read_verdicts(path, abstentions=["unsure"])
        >>> verdicts.annotations
        Annotations(3 labels: 3 tasks, 2 workers, 2 classes)
        >>> verdicts.abstentions
           task worker   value
        0     2  llama
        1     3    gpt  unsure
    """
    roles = Columns(task, worker, label, None if columns is None else tuple(columns))
    source, rows = read_rows(path, format, roles, raw_cells=raw_cells)
    return verdicts_of(source, rows, classes, duplicates, abstentions, tidy=tidy)


def verdicts_of(
    source: str,
    rows: ExportedLabels,
    classes: Sequence[Any] | None,
    duplicates: Duplicates,
    abstentions: Sequence[str],
    *,
    tidy: bool,
) -> Verdicts:
    """Verdicts from rows of a file; the arguments are those of `read_verdicts`."""
    named = _spellings(abstentions, classes)
    names = (rows.task, rows.worker, rows.label)
    frame = pd.DataFrame({name: _pandas_column(rows.frame, name) for name in names})
    codes, spellings = _abstention_codes(frame[rows.label], rows, source, named)
    labels = _without(frame[rows.label], codes >= 0, named, is_text=rows.is_text)
    verdicts = rows._replace(frame=frame.assign(**{rows.label: labels}))
    annotations = annotations_of(source, verdicts, classes, duplicates, tidy=tidy)
    abstained = np.flatnonzero(codes >= 0)
    found = pd.DataFrame(
        {
            "task": _positions(annotations.tasks, frame[rows.task].iloc[abstained]),
            "worker": _positions(annotations.workers, frame[rows.worker].iloc[abstained]),
            "value": codes[abstained],
        }
    )
    if duplicates != "keep":
        n_workers = annotations.n_workers
        judged = _pairs(annotations.task_codes, annotations.worker_codes, n_workers)
        pairs = _pairs(found["task"].to_numpy(), found["worker"].to_numpy(), n_workers)
        is_repeat = pd.Series(pairs).duplicated(keep="last" if duplicates == "last" else "first")
        found = found[~np.isin(pairs, judged) & ~is_repeat]
    found = found.sort_values(["task", "worker", "value"], ignore_index=True)
    table = pd.DataFrame(
        {
            "task": annotations.tasks.take(found["task"].to_numpy()),
            "worker": annotations.workers.take(found["worker"].to_numpy()),
            "value": pd.Categorical.from_codes(found["value"], categories=pd.Index(spellings)),
        }
    )
    return Verdicts(replace(annotations, n_dropped=len(abstained)), table)


def _spellings(abstentions: Sequence[str], classes: Sequence[Any] | None) -> dict[str, str]:
    """The spelling of each abstention by the text with which labels are compared."""
    named: dict[str, str] = {}
    for name in abstentions:
        named.setdefault(_comparable(name), name.strip())
    for name in classes or ():
        if _comparable(name) in named:
            raise ValueError(
                f"{argument('abstentions')} names {named[_comparable(name)]!r}, which is the class "
                f"{plain(name)!r}; expected labels that are no classes"
            )
    return named


def _comparable(value: Any) -> str:
    return text_of(plain(value)).strip().casefold()


def _abstention_codes(
    labels: pd.Series, rows: ExportedLabels, source: str, named: dict[str, str]
) -> tuple[Int[np.ndarray, " row"], list[str]]:
    """Which abstention each row is, -1 if none, and the abstentions as the user spelled them."""
    spellings = list(named.values())
    blank = spellings.index("") if "" in named else len(spellings)
    if blank == len(spellings):
        spellings.append("")
    if rows.blank_is_unasked and "" not in named:
        blank = -1
    place = {text: code for code, text in enumerate(named)}
    codes, found = factorize_column(labels, rows.label, Where(source, rows.row_number))
    kinds = [blank if is_blank(v) else place.get(_comparable(v), -1) for v in found]
    return np.array([*kinds, blank])[codes], spellings  # factorize codes a missing value as -1


def _without(
    labels: pd.Series,
    is_abstention: Bool[np.ndarray, " row"],
    named: dict[str, str],
    *,
    is_text: bool,
) -> pd.Series:
    """The labels, missing where a judge abstained, with the type that the others have."""
    if not isinstance(labels.dtype, pd.CategoricalDtype):
        return labels.astype(object).where(~is_abstention, None) if is_abstention.any() else labels
    gone = [value for value in labels.cat.categories if _comparable(value) in named]
    kept = labels.cat.remove_categories(gone)  # otherwise an ordered one would keep it as a class
    if not (is_text and gone and all(isinstance(v, str) for v in kept.cat.categories)):
        return kept
    texts = pa.array(kept.astype(object), pa.large_string(), from_pandas=True)
    return integers_if_canonical(pa.chunked_array([texts])).to_pandas()


def _positions(vocabulary: pd.Index, ids: pd.Series) -> Int[np.ndarray, " row"]:
    """Position of each id in the vocabulary, in which no two are written alike."""
    codes, found = pd.factorize(ids)
    place = {text_of(plain(value)): position for position, value in enumerate(vocabulary)}
    return np.array([place[text_of(plain(value))] for value in found], dtype=np.int64)[codes]


def _pairs(
    tasks: Int[np.ndarray, " row"], workers: Int[np.ndarray, " row"], n_workers: int
) -> Int[np.ndarray, " row"]:
    return tasks.astype(np.int64) * n_workers + workers


def _pandas_column(frame: Any, column: str) -> pd.Series:
    return frame[column].to_pandas() if isinstance(frame, pa.Table) else frame[column]
