"""What came out: each cell's measured values, their spread over seeds, and the verdict."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescrowd._version import __version__
from bayescrowd.experiments.experiment import Cell, CellId, Claim, Experiment, Unit
from bayescrowd.experiments.journal import Record
from bayescrowd.experiments.verdict import (
    DIFFERS,
    MATCHES,
    NOT_PUBLISHED,
    difference_in_items,
    explanation_of,
    is_within_runs,
    kind_of,
    shown_items,
    verdict_on,
)

__all__ = ["Outcome", "as_frame", "as_json", "as_text", "outcomes_of"]


class Outcome(NamedTuple):
    """A cell, measured."""

    cell: Cell
    """What was to be measured."""
    settings: str
    """Settings of the part that measured it."""
    values: tuple[float, ...]
    """Measured value with seed 0, 1, ...; a single one if nothing is random."""
    measured: float
    """Their average, as the experiment takes it."""
    difference_items: float | None
    """Measured minus published in items, where that has a meaning."""
    verdict: str
    """See `bayescrowd.experiments.verdict`."""

    @property
    def explanation(self) -> str | None:
        """What is known about a difference; see `bayescrowd.experiments.verdict`."""
        return explanation_of(self.cell, self.values, self.verdict)

    @property
    def spread(self) -> tuple[float, float, float, float]:
        """Least value, first quartile, third quartile, largest value over the seeds."""
        least, first, third, largest = np.quantile(self.values, [0, 0.25, 0.75, 1]).tolist()
        return least, first, third, largest

    @property
    def standard_error(self) -> float:
        """Of the mean over the seeds; not a number with a single one."""
        if len(self.values) < 2:
            return math.nan
        return float(np.std(self.values, ddof=1) / math.sqrt(len(self.values)))


def outcomes_of(
    experiment: Experiment, records: Mapping[Unit, Record], n_seeds: int
) -> list[Outcome]:
    """The outcome of every cell, from the records of all units of the first `n_seeds` seeds."""
    values: dict[CellId, list[float]] = {cell.id: [] for cell in experiment.cells}
    for unit in experiment.units(n_seeds):
        for id_, value in records[unit].values.items():
            values[id_].append(value)
    settings = experiment.settings
    average = np.median if experiment.average == "median" else np.mean
    outcomes = []
    for cell in experiment.cells:
        measured = float(average(values[cell.id]))
        outcomes.append(
            Outcome(
                cell=cell,
                settings=settings[cell.part],
                values=tuple(values[cell.id]),
                measured=measured,
                difference_items=difference_in_items(cell, measured),
                verdict=verdict_on(cell, measured),
            )
        )
    return outcomes


def as_frame(experiment: Experiment, outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row per cell, everything in it."""
    rows = []
    for outcome in outcomes:
        least, first, third, largest = outcome.spread
        rows.append(
            {
                "experiment": experiment.name,
                "row": outcome.cell.id.row,
                "column": outcome.cell.id.column,
                "unit": outcome.cell.unit,
                "published": outcome.cell.published,
                "measured": outcome.measured,
                "n_seeds": len(outcome.values),
                "minimum": least,
                "quartile_1": first,
                "quartile_3": third,
                "maximum": largest,
                "standard_error": outcome.standard_error,
                "n_items": outcome.cell.n_items,
                "difference_items": outcome.difference_items,
                "verdict": outcome.verdict,
                "is_within_runs": is_within_runs(outcome.cell, outcome.values),
                "reason": outcome.cell.reason if kind_of(outcome.verdict) == DIFFERS else None,
                "settings": outcome.settings,
                "version": __version__,
            }
        )
    return (
        pd.DataFrame(rows)
        .astype({"published": float, "difference_items": float})
        .astype({"n_items": "Int64", "is_within_runs": "boolean", "reason": "string"})
    )


def as_json(experiment: Experiment, outcomes: Sequence[Outcome], files: Mapping[str, str]) -> str:
    """Everything for a machine: the rows of `as_frame` with the values of each seed, and claims."""
    rows: list[dict[str, Any]] = json.loads(
        as_frame(experiment, outcomes).to_json(orient="records", double_precision=15)
    )
    for row, outcome in zip(rows, outcomes, strict=True):
        row["values"] = [value if np.isfinite(value) else None for value in outcome.values]
    content = {
        "experiment": experiment.name,
        "title": experiment.title,
        "version": __version__,
        "cells": rows,
        "claims": [claim._asdict() for claim in experiment.claims(outcomes)],
        "notes": list(experiment.notes),
        "files": dict(files),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def as_text(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    """Measured beside published, cell by cell, then claims, notes and a count of the verdicts.

    Where nothing is published to stand beside, a grid of the measured values.
    """
    is_compared = any(outcome.cell.published is not None for outcome in outcomes)
    is_mean = experiment.average == "mean"
    shown = _compared(outcomes, is_mean) if is_compared else _grid(outcomes, is_mean)
    lines = [experiment.title, "", *shown, ""]
    lines += [*map(_shown_claim, experiment.claims(outcomes)), *experiment.notes]
    return "\n".join([*lines, _summary(outcomes)])


def _compared(outcomes: Sequence[Outcome], is_mean: bool) -> list[str]:
    header = (
        "",
        "",
        "measured",
        "published",
        "items",
        "over seeds",
        "verdict",
        "about the difference",
    )
    rows = [header, *(_text_row(outcome, is_mean) for outcome in outcomes)]
    used = [column for column in zip(*rows, strict=True) if any(column[1:])]
    numbers = {"measured", "published", "items"}
    return _joined([_padded(column, column[0] in numbers) for column in used])


def _grid(outcomes: Sequence[Outcome], is_mean: bool) -> list[str]:
    values = {}
    for outcome in outcomes:
        told = _number(outcome.cell, outcome.measured)
        if is_mean and len(outcome.values) > 1:
            told = f"{told}±{_number(outcome.cell, outcome.standard_error)}"
        values[outcome.cell.id] = told
    rows = dict.fromkeys(id_.row for id_ in values)
    columns = dict.fromkeys(id_.column for id_ in values)
    grid = [[column, *(values.get(CellId(row, column), "") for row in rows)] for column in columns]
    return _joined([_padded(["", *rows], False), *(_padded(column, True) for column in grid)])


def _padded(column: Sequence[str], is_number: bool) -> list[str]:
    width = max(map(len, column))
    return [text.rjust(width) if is_number else text.ljust(width) for text in column]


def _joined(columns: Sequence[Sequence[str]]) -> list[str]:
    return ["  ".join(fields).rstrip() for fields in zip(*columns, strict=True)]


def _number(cell: Cell, value: float) -> str:
    return f"{round(value, cell.decimals) + 0.0:.{cell.decimals}f}"  # rounding noise has no sign


def _text_row(outcome: Outcome, is_mean: bool) -> tuple[str, ...]:
    cell = outcome.cell
    least, _, _, largest = (_number(cell, value) for value in outcome.spread)
    n_seeds = len(outcome.values)
    spread = f"±{_number(cell, outcome.standard_error)}" if is_mean else f"{least} to {largest}"
    items = outcome.difference_items
    return (
        cell.id.row,
        cell.id.column,
        _number(cell, outcome.measured),
        "" if cell.published is None else _number(cell, cell.published),
        "" if items is None else shown_items(items),
        f"{spread} ({n_seeds})" if n_seeds > 1 else "",
        outcome.verdict,
        outcome.explanation or "",
    )


def _shown_claim(claim: Claim) -> str:
    return f"{'Holds' if claim.holds else 'Does not hold'}: {claim.text} ({claim.evidence})"


def _summary(outcomes: Sequence[Outcome]) -> str:
    kinds = Counter(kind_of(outcome.verdict) for outcome in outcomes)
    n_published = len(outcomes) - kinds[NOT_PUBLISHED]
    if n_published == 0:
        return "No number is published to compare with."
    told = f"{kinds[MATCHES]} of {n_published} published cells match"
    if kinds[DIFFERS]:
        differing = [outcome for outcome in outcomes if kind_of(outcome.verdict) == DIFFERS]
        n_reasons = sum(outcome.cell.reason is not None for outcome in differing)
        told += f"; {kinds[DIFFERS]} differ, {n_reasons} of them with a recorded reason"
    return f"{told}."
