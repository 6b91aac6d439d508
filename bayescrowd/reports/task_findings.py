"""Contested tasks, and which classes the crowd confuses with which."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity, shorten
from bayescrowd.data.vocabulary import plain
from bayescrowd.reports.document import Cell, Column, Contested, Matrix, Table

__all__ = ["confusion_findings", "contested_tasks"]

MOST_SHOWN = 200
"""Most tasks in the table of the page."""

MOST_DOWNLOADED = 10_000
"""Most tasks in the download."""

MOST_CHARACTERS = 800_000
"""Most characters of the download, so that long ids do not make the page too large for a mail."""

MOST_CONFUSIONS = 30
"""Most rows of the table of confusions."""

MOST_IN_MATRIX = 12
"""Most classes in the matrix of confusions."""

WIDTH = 80
"""Most characters of an id in a table; the download has it whole."""


def contested_tasks(est: Aggregator, settled: float) -> Contested:
    """The tasks whose label is less sure than `settled`, the most uncertain first."""
    ann, probas = est._annotations, est.probas_.to_numpy()
    confidence = probas.max(axis=1)
    is_open = confidence < settled
    n_open = int(is_open.sum())
    order = np.flatnonzero(is_open)[np.argsort(confidence[is_open], kind="stable")]
    frame = _downloadable(_contested_frame(est, ann, order[:MOST_DOWNLOADED]))
    note = f"{quantity(len(frame), 'task')} can be downloaded as CSV."
    if len(frame) < n_open:
        note = (
            f"The {len(frame):,} most uncertain of {quantity(n_open, 'contested task')} can be "
            "downloaded as CSV; 'bayescrowd aggregate --out FILE' writes every task."
        )
    return Contested(_contested_table(frame.head(MOST_SHOWN), n_open), frame, note)


def _contested_frame(
    est: Aggregator, ann: Annotations, codes: Int[np.ndarray, " contested"]
) -> pd.DataFrame:
    probas = est.probas_.to_numpy()[codes]
    label = ann.classes.get_indexer(pd.Index(est.labels_.to_numpy()[codes]))
    rest = probas.copy()
    rows = np.arange(len(codes))
    rest[rows, label] = -1.0
    second = rest.argmax(axis=1)
    return pd.DataFrame(
        {
            "task": ann.tasks.take(codes),
            "label": ann.classes.take(label),
            "probability": probas[rows, label].round(4),
            "second": ann.classes.take(second),
            "second_probability": probas[rows, second].round(4),
            "n_votes": ann.labels_per_task[codes],
            "votes": _votes_in_words(ann, ann.votes[codes]),
        }
    ).reset_index(drop=True)


def _votes_in_words(ann: Annotations, votes: Int[np.ndarray, "contested cls"]) -> list[str]:
    """The votes of each task, such as 'cat: 3, dog: 2', the most frequent class first."""
    names = [str(name) for name in ann.classes]
    order = np.argsort(-votes, axis=1, kind="stable")
    return [
        ", ".join(f"{names[k]}: {row[k]}" for k in places if row[k])
        for row, places in zip(votes.tolist(), order.tolist(), strict=True)
    ]


def _downloadable(frame: pd.DataFrame) -> pd.DataFrame:
    """The first rows, as many as the page has room for."""
    lengths = pd.Series(24, index=frame.index)  # numbers and commas
    for name in frame.select_dtypes(exclude="number"):
        lengths += frame[name].astype(str).str.len()
    return frame[lengths.cumsum().to_numpy() <= MOST_CHARACTERS]


def _contested_table(frame: pd.DataFrame, n_open: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            shorten(plain(task), WIDTH),
            shorten(plain(label), WIDTH),
            probability,
            shorten(plain(second), WIDTH),
            second_probability,
            n_votes,
            shorten(votes, WIDTH),
        )
        for task, label, probability, second, second_probability, n_votes, votes in zip(
            *(frame[name].tolist() for name in frame), strict=True
        )
    ]
    columns = (
        Column("task", "text"),
        Column("label", "text"),
        Column("probability", "share"),
        Column("or rather", "text"),
        Column("its probability", "share"),
        Column("labels", "count"),
        Column("votes", "text"),
    )
    note = ""
    if len(rows) < n_open:
        note = f"{len(rows):,} of {quantity(n_open, 'contested task')} are shown."
    return Table(
        "contested", "Contested tasks, the most uncertain first", columns, tuple(rows), note
    )


def confusion_findings(est: Aggregator) -> tuple[Table, Matrix]:
    """What raters say on tasks of each class: the frequent confusions, and shares of the labels.

    A label counts for each class by the probability that its task has that class.
    """
    ann = est._annotations
    counts = est.probas_.to_numpy().T @ ann.votes
    totals = counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        shares = counts / totals[:, None]
    return _confusion_table(ann, counts, shares), _confusion_matrix(ann, totals, shares)


def _confusion_table(
    ann: Annotations, counts: Float[np.ndarray, "cls label"], shares: Float[np.ndarray, "cls label"]
) -> Table:
    off = counts.copy()
    np.fill_diagonal(off, 0.0)
    order = np.argsort(-off, axis=None, kind="stable")
    order = order[off.ravel()[order] > 0]
    rows: list[tuple[Cell, ...]] = []
    for place in order[:MOST_CONFUSIONS].tolist():
        true, said = divmod(place, ann.n_classes)
        rows.append(
            (
                shorten(plain(ann.classes[true]), WIDTH),
                shorten(plain(ann.classes[said]), WIDTH),
                float(shares[true, said]),
                round(float(counts[true, said])),
            )
        )
    columns = (
        Column("settled as", "text"),
        Column("confused with", "text"),
        Column("share of the labels", "share"),
        Column("labels", "count"),
    )
    note = ""
    if len(order) > len(rows):
        note = f"The {len(rows)} most frequent of {quantity(len(order), 'confusion')} are listed."
    return Table("confusions", "What the crowd confuses", columns, tuple(rows), note)


def _confusion_matrix(
    ann: Annotations, totals: Float[np.ndarray, " cls"], shares: Float[np.ndarray, "cls label"]
) -> Matrix:
    """The classes with the most labels, in their own order."""
    kept = np.sort(np.argsort(-totals, kind="stable")[:MOST_IN_MATRIX])
    names = tuple(shorten(plain(ann.classes[k]), 24) for k in kept)
    return Matrix(names, names, tuple(tuple(row) for row in shares[np.ix_(kept, kept)].tolist()))
