"""What a report on a panel holds, and how it says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import entr

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.auto.alarm import Alarm
from bayescrowd.aggregation.auto.gold_report import GoldReport
from bayescrowd.aggregation.dependence import Dependence
from bayescrowd.agreement.pairs import MOST_IN_MATRIX
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity
from bayescrowd.gold.shares import Prevalence
from bayescrowd.panel.drop_costs import Dropping
from bayescrowd.panel.verdict_counts import count_abstained

__all__ = ["NO_ACCURACY", "NO_INTERVAL", "PanelReport", "alarm_in_words", "swaps_in_words"]

NO_ACCURACY = (
    "Judges' accuracies need gold: judges who err together make each other look good, so that "
    "labels alone can rank them upside down."
)
"""Why there are no accuracies without gold."""

NO_INTERVAL = (
    "There is no honest interval of a share without gold: the panel's own shares can be off by "
    "more than any of its probabilities admit."
)
"""Why shares have no interval without gold."""

USUAL_GOLD = 20
"""Number of gold labels that the alarm asks for."""


@dataclass(frozen=True, eq=False)
class PanelReport:
    """What is known about a panel of judges.

    Attributes:
        annotations: the verdicts.
        abstentions: a row per judge who was asked and gave no verdict: task, worker, value.
        estimator: the default, fitted without gold; `suggest_gold` takes it.
        gold: the gold labels of the panel's tasks; None without gold.
        labels: most probable class of each task, corrected by the gold if there is any.
        probas: P(class) of each task, likewise.
        dependence: effective votes, clusters and pairs of judges.
        judges: a row per judge: cluster (number of its cluster from 1 on, missing if it is alone),
            as_panel (share of its verdicts that are the panel's label; no accuracy), and the
            columns of `verdict_counts`: n_asked, n_verdicts, n_abstained, share_abstained,
            n_never_asked, entropy_judged, entropy_abstained.
        accuracies: per judge: accuracy, lower, upper and n_gold; None without gold.
        gold_report: what the gold changed, and the accuracy of the panel; None without gold.
        swaps: consistency under swapped orders, a row per judge with both; None if there is none.
        dropping: what it would cost to drop each judge; None if it was not asked for.
        claimed: per class, what the panel says without gold: votes (share of all verdicts), labels
            (share of the tasks' labels) and probabilities (mean probability). No bounds.
        shares: the share of each class with an interval, by all methods; None without gold.
        alarm: whether labels alone can decide.
        level: probability of the intervals.
    """

    annotations: Annotations
    abstentions: pd.DataFrame = field(repr=False)
    estimator: AutoAggregator = field(repr=False)
    gold: pd.Series | None = field(repr=False)
    labels: pd.Series = field(repr=False)
    probas: pd.DataFrame = field(repr=False)
    dependence: Dependence
    judges: pd.DataFrame = field(repr=False)
    accuracies: pd.DataFrame | None = field(repr=False)
    gold_report: GoldReport | None = field(repr=False)
    swaps: pd.DataFrame | None = field(repr=False)
    dropping: Dropping | None = field(repr=False)
    claimed: pd.DataFrame = field(repr=False)
    shares: Prevalence | None = field(repr=False)
    alarm: Alarm
    level: float

    @cached_property
    def summary(self) -> str:
        """All of it in words."""
        return _summary(self)

    @property
    def n_gold(self) -> int:
        """Number of gold tasks."""
        return 0 if self.gold_report is None else self.gold_report.n_gold

    @property
    def open_probas(self) -> pd.DataFrame:
        """P(class) of the tasks without gold; of all tasks if all have gold."""
        if self.gold is None or len(self.gold) == len(self.probas):
            return self.probas
        return self.probas[~self.probas.index.isin(self.gold.index)]

    @property
    def tasks(self) -> pd.DataFrame:
        """A row per task: label, probability, entropy (nats), n_votes, n_abstained, P(class)."""
        probas = self.probas.to_numpy()
        table = pd.DataFrame(
            {
                "label": self.labels.array,
                "probability": probas.max(axis=1),
                "entropy": entr(probas).sum(axis=1),
                "n_votes": self.annotations.labels_per_task,
                "n_abstained": count_abstained(self.annotations, self.abstentions),
            },
            index=self.probas.index.rename("task"),
        )
        columns = {f"probability:{c}": probas[:, k] for k, c in enumerate(self.probas.columns)}
        return table.assign(**columns)

    @cached_property
    def agreement(self) -> pd.DataFrame:
        """Share of shared tasks on which two judges agree, with clusters side by side.

        Raises:
            ValueError: there are more than 2,000 judges.
        """
        matrix = self.dependence.agreement
        order = [name for cluster in self.dependence.clusters for name in cluster]
        place = matrix.index.get_indexer(pd.Index(order, dtype=matrix.index.dtype))
        rows = np.concatenate([place, np.setdiff1d(np.arange(len(matrix)), place)])
        return matrix.iloc[rows, rows]

    @property
    def has_matrix(self) -> bool:
        """Whether there are few enough judges for `agreement`."""
        return self.annotations.n_workers <= MOST_IN_MATRIX

    @property
    def similar_pairs(self) -> pd.DataFrame:
        """The pairs of `dependence.pairs`, those that repeat each other the most first.

        Pairs are sorted by excess, the share of the agreement that independent errors leave open:
        (agreement - expected) / (1 - expected).
        """
        pairs = self.dependence.pairs
        room = (1 - pairs["expected_agreement"]).clip(lower=1e-9)
        excess = (pairs["agreement"] - pairs["expected_agreement"]) / room
        return pairs.assign(excess=excess).sort_values("excess", ascending=False, kind="stable")


def _summary(report: PanelReport) -> str:
    ann = report.annotations
    judges = quantity(len(report.judges), "judge")
    verdicts, tasks = quantity(ann.n_labels, "verdict"), quantity(ann.n_tasks, "task")
    sentences = [f"{verdicts} by {judges} on {tasks}."]
    if len(report.abstentions):
        times = quantity(len(report.abstentions), "time")
        sentences.append(f"Judges were asked and gave no verdict {times}.")
    sentences += [report.dependence.summary, alarm_in_words(report)]
    if report.gold_report is not None and report.shares is not None:
        sentences += [report.gold_report.summary, report.shares.summary]
    else:
        sentences += [NO_ACCURACY, NO_INTERVAL]
    if report.swaps is not None:
        sentences.append(swaps_in_words(report.swaps))
    if report.dropping is not None:
        sentences.append(report.dropping.summary)
    return " ".join(sentences)


def alarm_in_words(report: PanelReport) -> str:
    """The alarm, and what gold has done about it."""
    alarm, n_gold = report.alarm, report.n_gold
    if not alarm.buy_gold:
        return (
            f"No alarm: the answer differs from the majority vote on {alarm.disagreement:.0%} of "
            "the tasks, and fits under other weights of the judges agree well enough. Judges who "
            "all err together would not show."
        )
    if n_gold >= USUAL_GOLD:
        return (
            f"{alarm.reason} Labels alone could not tell who is right; "
            f"{quantity(n_gold, 'gold label')} now speak for it."
        )
    more = f"; the {quantity(n_gold, 'gold label')} at hand are few" if n_gold else ""
    return (
        f"Alarm: {alarm.reason} Labels alone cannot tell who is right: buy gold labels of some "
        f"{USUAL_GOLD} tasks{more}."
    )


def swaps_in_words(swaps: pd.DataFrame) -> str:
    """Swap consistency of the panel in one sentence."""
    shared, consistent = int(swaps["n_shared"].sum()), int(swaps["n_consistent"].sum())
    if not shared:
        return "No judge was asked about the same task in both orders."
    # The table is sorted, and judges without shared tasks, of which nothing is known, are last.
    least = swaps[swaps["n_shared"] > 0].iloc[-1]
    return (
        f"{quantity(len(swaps), 'judge')} asked in both orders: {consistent / shared:.0%} of the "
        f"pairs of verdicts are consistent, the fewest those of {least.name} "
        f"({least['consistency']:.0%})."
    )
