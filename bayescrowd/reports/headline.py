"""The headline: tasks settled and open, expected accuracy, shares of the classes.

Without known labels, the expected accuracy is the mean probability that the default, fitted without
gold, gives to the labels. How far such means were off was measured on 21 public crowds (five of
them of language models), for the labels of five methods: the log odds of the true accuracy differed
from those of the mean by less than 0.7 in 99 of 105 cases. The interval has that half-width, joined
with the binomial error of the number of tasks. The probabilities of other methods cannot be used in
the same way: those of Dawid and Skene's were off by up to 7.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import expit, logit, ndtri

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity, shorten
from bayescrowd.gold.prevalence import prevalence
from bayescrowd.reports.document import LEVEL, Count, Headline, Interval

__all__ = ["headline"]

HALF_WIDTH = 0.7
"""Half-width of the interval of the expected accuracy, in log odds; see the module's docstring."""

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Ends of the bins of the labels' probabilities."""

MOST_CLASSES = 20
"""Most classes whose shares are shown."""


def headline(
    est: Aggregator, judge: AutoAggregator, *, settled: float, measured: Interval | None
) -> Headline:
    """What a project lead asks first.

    Args:
        est: the fit to report on.
        judge: the default, fitted to the same labels without gold.
        settled: probability from which on a label is settled.
        measured: share of right labels on the tasks of the truth, if there is one.
    """
    ann, probas = est._annotations, est.probas_.to_numpy()
    confidence = probas.max(axis=1)
    accuracy, basis = _expected_accuracy(est, judge)
    if not isinstance(est, AutoAggregator):
        basis += (
            f" Which tasks are settled goes by the probabilities of {type(est).__name__}, which "
            "can be far too sure."
        )
    shares, note = _shares(est, judge, ann)
    return Headline(
        n_tasks=ann.n_tasks,
        n_settled=int((confidence >= settled).sum()),
        settled_at=settled,
        n_unlabelled=int((ann.labels_per_task == 0).sum()),
        accuracy=accuracy,
        accuracy_basis=basis,
        measured=measured,
        shares=shares,
        shares_note=note,
        certainty=_certainty(confidence, 1 / ann.n_classes),
    )


def expected_accuracy(right: Float[np.ndarray, " item"]) -> Interval:
    """Mean probability of being right, with the interval of the module's head.

    Examples:
        >>> [round(end, 3) for end in expected_accuracy(np.full(100_000, 0.8))]
        [0.8, 0.665, 0.89]
    """
    mean, n = float(right.mean()), len(right)
    if not 0 < mean < 1:
        return Interval(mean)
    # The variance of the log odds of a share of n, by the delta method.
    z = ndtri((1 + LEVEL) / 2)
    half = np.hypot(HALF_WIDTH, z / np.sqrt(n * mean * (1 - mean)))
    return Interval(mean, float(expit(logit(mean) - half)), float(expit(logit(mean) + half)))


def _expected_accuracy(est: Aggregator, judge: AutoAggregator) -> tuple[Interval, str]:
    report = getattr(est, "gold_report_", None)
    if report is not None:
        basis = (
            f"Measured with {quantity(report.n_gold, 'gold task')}, for the tasks without gold; "
            "the gold counts as drawn at random."
        )
        ends = (float(report.accuracy[name]) for name in ("estimate", "lower", "upper"))
        return Interval(*ends), basis
    by_judge = judge.probas_.to_numpy()
    code = judge.classes_.get_indexer(pd.Index(est.labels_.to_numpy()))
    # A class that only gold names has no probability under the fit without gold.
    right = np.where(code >= 0, by_judge[np.arange(len(code)), code], 0.0)
    return expected_accuracy(right), (
        "Judged from labels alone. The interval is as wide as such estimates were off on public "
        "crowds; some 20 gold labels of random tasks would measure it."
    )


def _shares(
    est: Aggregator, judge: AutoAggregator, ann: Annotations
) -> tuple[tuple[Count, ...], str]:
    """Share of each class, with intervals if gold makes honest ones."""
    numbers = est.labels_.value_counts().reindex(ann.classes, fill_value=0)
    gold = est._gold if est._has_gold else None
    if gold is None:
        table = pd.DataFrame({"share": numbers / max(ann.n_tasks, 1)})
        table[["lower", "upper"]] = np.nan
        note = (
            "Shares of the labels in this report. Without gold labels there is no honest interval: "
            "a crowd's own shares can be off by more than its probabilities admit."
        )
    else:
        table = prevalence(judge, gold, level=LEVEL).shares.reindex(ann.classes)
        note = (
            f"Shares of all tasks with {LEVEL:.0%} intervals, from "
            f"{quantity(len(gold), 'gold label')} and all others; the gold counts as drawn at "
            "random."
        )
    order = np.arange(len(table))
    if len(order) > MOST_CLASSES:
        order = np.argsort(-table["share"].fillna(0).to_numpy(), kind="stable")[:MOST_CLASSES]
        note += f" The {MOST_CLASSES} largest of {len(table):,} classes are shown."
    ends = table[["share", "lower", "upper"]].to_numpy(dtype=float)
    return tuple(
        Count(shorten(table.index[k], 40), Interval(*ends[k].tolist()), int(numbers.iloc[k]))
        for k in order.tolist()
    ), note


def _certainty(confidence: Float[np.ndarray, " item"], least: float) -> tuple[Count, ...]:
    """Numbers of tasks by the probability of their label, which is at least `least`.

    Bins are closed on the left.
    """
    place = np.searchsorted(EDGES[1:-1], confidence, side="right")
    numbers = np.bincount(place, minlength=len(EDGES) - 1)
    names = [f"{low:.0%} to {high:.0%}" for low, high in pairwise(EDGES)]
    names[0] = f"below {EDGES[1]:.0%}"
    total = max(len(confidence), 1)
    return tuple(
        Count(name, Interval(float(n) / total), int(n))
        for name, n, high in zip(names, numbers, EDGES[1:], strict=True)
        if high > least or n  # half a half may be rounded down
    )
