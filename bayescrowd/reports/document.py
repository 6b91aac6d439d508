"""What a report says, as plain values: numbers, sentences and tables; no HTML.

Numbers that are undefined or unknown are NaN; the page shows a dash for them.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import pandas as pd

__all__ = [
    "LEVEL",
    "Cell",
    "Column",
    "Contested",
    "Count",
    "Dependence",
    "Document",
    "Headline",
    "Interval",
    "Kind",
    "Matrix",
    "Point",
    "Table",
    "TruthFindings",
]

LEVEL = 0.9
"""Probability of the intervals of a report."""

Kind = Literal["text", "count", "share", "number"]
"""How the cells of a column are written and sorted."""


class Interval(NamedTuple):
    """An estimate between the ends of its interval."""

    value: float
    """The estimate."""
    lower: float = math.nan
    """Lower end; NaN if there is no honest one."""
    upper: float = math.nan
    """Upper end."""


Cell = str | int | float | Interval | None
"""Content of a cell of a table; None and NaN are shown as a dash."""


class Column(NamedTuple):
    """A column of a table."""

    title: str
    """Header."""
    kind: Kind
    """How its cells are written and sorted."""
    meaning: str = ""
    """What the column says, if its header does not."""


class Table(NamedTuple):
    """A table for people."""

    name: str
    """Short name, unique in the document."""
    caption: str
    """What the table shows, in a few words."""
    columns: tuple[Column, ...]
    """The columns; the first one names the row."""
    rows: tuple[tuple[Cell, ...], ...]
    """The rows, in a useful order."""
    note: str = ""
    """Which rows were left out, in a sentence; empty if none were."""


class Count(NamedTuple):
    """A bar of a bar chart."""

    name: str
    """What is counted."""
    share: Interval
    """Share of the whole, with an interval if there is an honest one."""
    number: int
    """The number itself."""


class Matrix(NamedTuple):
    """A small matrix of shares."""

    rows: tuple[str, ...]
    """Names of the rows."""
    columns: tuple[str, ...]
    """Names of the columns."""
    values: tuple[tuple[float, ...], ...]
    """The shares, NaN where unknown."""


class Point(NamedTuple):
    """A bin of a calibration curve."""

    confidence: float
    """Mean probability of the labels."""
    accuracy: Interval
    """Share of right labels."""
    n: int
    """Number of tasks."""


class Headline(NamedTuple):
    """What a project lead asks first."""

    n_tasks: int
    """Number of tasks."""
    n_settled: int
    """Number of tasks whose label is sure enough."""
    settled_at: float
    """Probability from which on a label is sure enough."""
    n_unlabelled: int
    """Number of tasks that nobody labelled."""
    accuracy: Interval
    """Expected share of right labels."""
    accuracy_basis: str
    """What this rests on, in a sentence or two."""
    measured: Interval | None
    """Share of right labels on the tasks of the truth; None without truth."""
    shares: tuple[Count, ...]
    """Share of each class, the largest first if some are left out."""
    shares_note: str
    """Where the shares and their intervals come from."""
    certainty: tuple[Count, ...]
    """Numbers of tasks by the probability of their label."""


class Dependence(NamedTuple):
    """Whether the raters err together."""

    n_votes: float
    """Mean number of labels of a task."""
    effective_votes: tuple[float, float]
    """Bracket of the number of independent votes that they amount to."""
    summary: str
    """The same in words."""
    alarm: str
    """Why labels alone cannot decide, and what to do; empty if they can."""
    clusters: Table | None
    """Groups of raters who repeat each other."""
    dropping: Table | None
    """What changes if a rater is left out; None if it was not tried."""
    dropping_summary: str
    """Whom to drop at no loss, in words."""


class Contested(NamedTuple):
    """The tasks that need more labels, the most uncertain first."""

    table: Table
    """The first of them."""
    frame: pd.DataFrame
    """All that can be downloaded: task, label, probability, second, second_probability, n_votes,
    votes."""
    note: str
    """How many can be downloaded."""


class TruthFindings(NamedTuple):
    """The fit against the truth."""

    summary: str
    """Accuracy of the fit and of the vote, in words."""
    table: Table
    """Scores of the fit and of the majority vote."""
    curve: tuple[Point, ...]
    """The calibration curve."""


class Document(NamedTuple):
    """Everything that a report says."""

    title: str
    """Title of the page."""
    summary: str
    """Source and counts of the labels, in a sentence."""
    headline: Headline
    dependence: Dependence
    raters: Table
    raters_notes: tuple[str, ...]
    """What flags and columns mean."""
    agreement: Table
    pairs: Table | None
    """The pairs of raters that agree the most beyond chance; None without shared tasks."""
    pair_matrix: Matrix | None
    """Share of shared tasks on which two raters agree."""
    confusions: Table
    confusion_matrix: Matrix
    """Share of the labels (columns) given to tasks of each class (rows)."""
    contested: Contested
    methods: Table
    methods_note: str
    truth: TruthFindings | None
    posterior: str
    """Whether the posterior can be trusted and how far it agrees; empty without a posterior."""
    settings: tuple[tuple[str, str], ...]
    """What was done with which settings and versions: names and values."""
