"""The results of an experiment, from the records of its units: as a table, as JSON and as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayescrowd._version import __version__
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Unit
from bayescrowd.experiments.engine.journal import Record
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.engine.verdict import (
    DIFFERS,
    MATCHES,
    NOT_PUBLISHED,
    difference_in_items,
    format_items,
    is_within_runs,
    kind_of,
    verdict_on,
)

__all__ = ["as_frame", "as_json", "as_text", "outcomes_of"]


def outcomes_of(
    experiment: Experiment, records: Mapping[Unit, Record], n_seeds: int
) -> list[Outcome]:
    """The outcome of every cell, from the records of all units with the first `n_seeds` seeds."""
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
    """Everything about each cell, one row per cell."""
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
    """The rows of `as_frame` with the values of each seed, and the claims, for other programs."""
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
    """Measured beside published values, then claims, notes and a count of the verdicts.

    If no number was published, the measured values are laid out as a grid.
    """
    has_published = any(outcome.cell.published is not None for outcome in outcomes)
    is_mean = experiment.average == "mean"
    table = _comparison(outcomes, is_mean) if has_published else _grid(outcomes, is_mean)
    lines = [experiment.title, "", *table, ""]
    lines += [*map(_claim_line, experiment.claims(outcomes)), *experiment.notes]
    return "\n".join([*lines, _summary(outcomes)])


def _comparison(outcomes: Sequence[Outcome], is_mean: bool) -> list[str]:
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
    return _join([_pad(column, column[0] in numbers) for column in used])


def _grid(outcomes: Sequence[Outcome], is_mean: bool) -> list[str]:
    values = {}
    for outcome in outcomes:
        text = _number(outcome.cell, outcome.measured)
        if is_mean and len(outcome.values) > 1:
            text = f"{text}±{_number(outcome.cell, outcome.standard_error)}"
        values[outcome.cell.id] = text
    rows = dict.fromkeys(id_.row for id_ in values)
    columns = dict.fromkeys(id_.column for id_ in values)
    grid = [[column, *(values.get(CellId(row, column), "") for row in rows)] for column in columns]
    return _join([_pad(["", *rows], False), *(_pad(column, True) for column in grid)])


def _pad(column: Sequence[str], is_number: bool) -> list[str]:
    width = max(map(len, column))
    return [text.rjust(width) if is_number else text.ljust(width) for text in column]


def _join(columns: Sequence[Sequence[str]]) -> list[str]:
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
        "" if items is None else format_items(items),
        f"{spread} ({n_seeds})" if n_seeds > 1 else "",
        outcome.verdict,
        outcome.explanation or "",
    )


def _claim_line(claim: Claim) -> str:
    return f"{'Holds' if claim.holds else 'Does not hold'}: {claim.text} ({claim.evidence})"


def _summary(outcomes: Sequence[Outcome]) -> str:
    kinds = Counter(kind_of(outcome.verdict) for outcome in outcomes)
    n_published = len(outcomes) - kinds[NOT_PUBLISHED]
    if n_published == 0:
        return "No number was published to compare with."
    summary = f"{kinds[MATCHES]} of {n_published} published cells match"
    if kinds[DIFFERS]:
        differing = [outcome for outcome in outcomes if kind_of(outcome.verdict) == DIFFERS]
        n_reasons = sum(outcome.cell.reason is not None for outcome in differing)
        summary += f"; {kinds[DIFFERS]} differ, {n_reasons} of them with a recorded reason"
    return f"{summary}."
