"""Methods compared on the same labels, and the fit against the truth."""

from __future__ import annotations

import math
import time
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.majority import MajorityVote
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.text import quantity, shorten
from bayescrowd.metrics import (
    Scores,
    reliability_curve,
    score_table,
    task_losses,
    wilson_interval,
)
from bayescrowd.panel.drop_costs import paired_share_change
from bayescrowd.reports.document import (
    LEVEL,
    Cell,
    Column,
    Interval,
    Point,
    Table,
    TruthFindings,
)

__all__ = ["Rival", "fit_rivals", "measured_accuracy", "method_table", "truth_findings"]

N_BINS = 10
"""Bins of the calibration curve."""

UNKNOWN = (
    "Without truth nobody can tell which of them is right: how sure a method is of itself is no "
    "measure of how often it is right."
)
"""What is said about methods without a truth."""


class Rival(NamedTuple):
    """A method fitted to the same labels."""

    name: str
    """Name of the method."""
    est: Aggregator | None
    """The fit; None if it failed."""
    seconds: float
    """What the fit took; NaN if it was there already."""
    problem: str
    """Why it failed; empty if it did not."""


def fit_rivals(est: Aggregator, judge: AutoAggregator) -> list[Rival]:
    """The fit to report on, the majority vote, Dawid and Skene's, and the default without gold."""
    ann = est._annotations
    own = type(est).__name__ + (" with gold" if est._has_gold else "")
    rivals = [Rival(f"{own} (this report)", est, math.nan, "")]
    for kind in (MajorityVote, DawidSkene):
        if not (isinstance(est, kind) and not est._has_gold):
            rivals.append(_fit(kind(), ann))
    if judge is not est:
        name = "AutoAggregator" + (" without gold" if est._has_gold else " (the default)")
        rivals.append(Rival(name, judge, math.nan, ""))
    return rivals


def _fit(est: Aggregator, ann: object) -> Rival:
    """Fit without a word: a rival that fails or has not settled ends no report."""
    name, start = type(est).__name__, time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            est.fit(ann)
        except (ValueError, MemoryError) as fault:
            return Rival(name, None, math.nan, shorten(fault, 200))
    return Rival(name, est, time.perf_counter() - start, "")


def method_table(rivals: list[Rival], truth: pd.Series | None) -> tuple[Table, str]:
    """How far other methods agree with the first one and, with truth, how right they are."""
    columns = [
        Column("method", "text"),
        Column("other labels", "share", "share of tasks with another label than in this report"),
        Column("says of itself", "share", "mean probability of its own labels"),
    ]
    if truth is not None:
        columns += [
            Column("accuracy", "share", "share of right labels on the tasks of the truth"),
            Column("more than the vote", "share", "paired difference of the accuracies"),
            Column("log loss", "number", "nats per task; lower is better"),
        ]
    columns.append(Column("seconds", "number", "time of the fit"))
    own = rivals[0].est
    assert own is not None  # the fit to report on
    vote = next((r.est for r in rivals if isinstance(r.est, MajorityVote)), None)
    rows: list[tuple[Cell, ...]] = []
    for rival in rivals:
        cells: list[Cell] = [rival.name]
        if rival.est is None:
            cells += [None] * (len(columns) - 1)
        else:
            labels = rival.est.labels_.to_numpy()
            differs = float((labels != own.labels_.to_numpy()).mean())
            cells += [differs, float(rival.est.probas_.to_numpy().max(axis=1).mean())]
            if truth is not None:
                scores = score_table(rival.est.probas_, truth)
                better = Interval(math.nan)
                if vote is not None and rival.est is not vote:
                    better = _difference(vote, rival.est, truth)
                cells += [_accuracy(scores), better, scores.log_loss]
            cells.append(rival.seconds)
        rows.append(tuple(cells))
    notes = [
        f"{column.title.capitalize()}: {column.meaning}." for column in columns if column.meaning
    ]
    notes += [f"{rival.name} failed: {rival.problem}." for rival in rivals if rival.problem]
    if truth is None:
        notes.insert(0, UNKNOWN)
    caption = "Methods on the same labels"
    return Table("methods", caption, tuple(columns), tuple(rows)), " ".join(notes)


def truth_findings(est: Aggregator, rivals: list[Rival], truth: pd.Series) -> TruthFindings:
    """Accuracy, log loss and calibration of the fit, beside those of the majority vote."""
    shown = {"this report": est}
    vote = next((r.est for r in rivals if isinstance(r.est, MajorityVote)), None)
    if vote is not None and not isinstance(est, MajorityVote):
        shown["majority vote"] = vote
    scores = {name: score_table(fit.probas_, truth) for name, fit in shown.items()}
    measures: list[tuple[Cell, ...]] = [
        ("accuracy", *(_accuracy(s) for s in scores.values())),
        ("macro-F1", *(s.macro_f1 for s in scores.values())),
        ("log loss, nats per task", *(s.log_loss for s in scores.values())),
        ("Brier score", *(s.brier for s in scores.values())),
        ("calibration error", *(s.ece for s in scores.values())),
    ]
    columns = Column("measure", "text"), *(Column(name, "number") for name in shown)
    own = _accuracy(scores["this report"])
    n_scored = quantity(scores["this report"].n, "task")
    summary = (
        f"On the {n_scored} of the truth, {own.value:.1%} of the labels are right "
        f"({LEVEL:.0%} interval: {own.lower:.1%} to {own.upper:.1%})"
    )
    if "majority vote" in scores:
        summary += f"; of the majority vote's, {scores['majority vote'].accuracy:.1%}"
    curve = reliability_curve(est.probas_, truth, n_bins=N_BINS)
    bins = (curve[name].tolist() for name in ("confidence", "accuracy", "n"))
    points = tuple(
        Point(confidence, _wilson(accuracy, n), n)
        for confidence, accuracy, n in zip(*bins, strict=True)
    )
    table = Table("scores", "Scores against the truth", columns, tuple(measures))
    return TruthFindings(f"{summary}.", table, points)


def measured_accuracy(est: Aggregator, truth: pd.Series) -> Interval:
    """Share of right labels on the tasks of the truth, with Wilson's interval."""
    return _accuracy(score_table(est.probas_, truth))


def _accuracy(scores: Scores) -> Interval:
    return _wilson(scores.accuracy, scores.n)


def _wilson(share: float, n: int) -> Interval:
    share = min(max(share, 0.0), 1.0)  # a mean of shares may exceed 1 by rounding
    return Interval(share, *wilson_interval(share, n, level=LEVEL))


def _difference(vote: Aggregator, est: Aggregator, truth: pd.Series) -> Interval:
    right = [1 - task_losses(fit.probas_, truth)["error"] for fit in (vote, est)]
    change = (right[1] - right[0]).to_numpy(dtype=np.float64)
    return Interval(*paired_share_change(change, LEVEL))
