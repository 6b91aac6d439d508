"""Whether raters err together, whom one could spare, and the table of all raters."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.auto.alarm import ADVICE
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity, shorten
from bayescrowd.data.vocabulary import plain
from bayescrowd.panel.drop_costs import Dropping
from bayescrowd.reports.document import LEVEL, Cell, Column, Dependence, Interval, Table

__all__ = ["FLAGS", "dependence_findings", "rater_table"]

MOST_CLUSTERS, MOST_MEMBERS = 20, 12
"""Most groups of raters, and most members of a group, that are named."""

MOST_RATERS = 1_000
"""Most rows of the table of raters."""

WIDTH = 60
"""Most characters of an id in a table; the downloads have it whole."""

FLAGS = {
    "spammer": "beyond doubt, the labels say next to nothing about the class, as if the rater did "
    "not look",
    "adversary": "beyond doubt, the labels are worse than guessing. They mislead a vote; a method "
    "that learns how each rater errs can turn them around",
}
"""What the flags mean. A rater with few labels is not accused."""


def dependence_findings(judge: AutoAggregator, gold: pd.Series | None, most: int) -> Dependence:
    """How far raters err together, and what it would cost to do without some of them.

    Args:
        judge: the default, fitted without gold.
        gold: class of the gold tasks.
        most: largest number of raters to refit without; 0 for none.
    """
    ann, found, dropping = judge._annotations, judge.dependence_, None
    if most:
        # It imports scipy.stats, which takes longer than the rest of a small report.
        from bayescrowd.panel.dropping import cost_of_dropping

        known = np.full(ann.n_tasks, -1, dtype=np.int32)
        if gold is not None:
            place = ann.tasks.get_indexer(gold.index)
            known[place] = ann.classes.get_indexer(pd.Index(gold.to_numpy()))
        dropping = cost_of_dropping(
            ann,
            known,
            found.clusters,
            fitted=judge,
            most=most,
            level=LEVEL,
            seed=judge.seed,
        )
    low, high = found.effective_votes
    return Dependence(
        n_votes=found.n_votes,
        effective_votes=(float(low), float(high)),
        summary=found.summary,
        alarm=f"{judge.alarm_.reason} {ADVICE}" if judge.alarm_.buy_gold else "",
        clusters=_cluster_table(judge) if found.clusters else None,
        dropping=None if dropping is None else _dropping_table(dropping),
        dropping_summary="" if dropping is None else _dropping_in_words(dropping),
    )


def rater_table(
    est: Aggregator, judge: AutoAggregator, posterior: pd.DataFrame | None
) -> tuple[Table, tuple[str, ...]]:
    """A row per rater, those with the most labels first, and what the columns mean.

    Args:
        est: the fit to report on.
        judge: the default, fitted without gold, whose accuracies have intervals.
        posterior: accuracy, lower and upper of each rater by posterior draws.
    """
    ann = est._annotations
    quality, notes = est.worker_quality_, [f"{flag}: {why}." for flag, why in FLAGS.items()]
    if "lower" not in quality:
        quality = judge.worker_quality_.assign(flag=quality["flag"])
        notes.append(
            f"Accuracies are those of the default; {type(est).__name__} has no intervals of them."
        )
    rows = _listed_raters(quality, ann)
    group = _cluster_of(judge)
    same = _share_as_answer(est, ann)
    columns = [
        Column("rater", "text"),
        Column("labels", "count"),
        Column("accuracy", "share", "expected share of right labels among those given"),
        Column("flag", "text"),
        Column("like the answer", "share", "share of labels that equal the label of this report"),
        Column("information", "number", "what one label says about the class, in nats"),
        Column("group", "count", "number of the group of raters who repeat each other"),
    ]
    cells: list[list[Cell]] = []
    accuracy = quality[["accuracy", "lower", "upper"]].to_numpy(dtype=float)
    information, flags = quality["information"].to_numpy(), quality["flag"].to_numpy()
    for code in rows.tolist():
        name = plain(ann.workers[code])
        n_labels = int(ann.labels_per_worker[code])
        cells.append(
            [
                shorten(name, WIDTH),
                n_labels,
                Interval(*accuracy[code].tolist()) if n_labels else None,
                str(flags[code]),
                float(same[code]),
                float(information[code]),
                group.get(name),
            ]
        )
    if posterior is not None:
        columns.append(Column("posterior", "share", "accuracy by the draws of the posterior"))
        drawn = posterior.reindex(ann.workers)[["accuracy", "lower", "upper"]].to_numpy(dtype=float)
        for code, row in zip(rows.tolist(), cells, strict=True):
            row.append(Interval(*drawn[code].tolist()))
    note = ""
    if len(rows) < ann.n_workers:
        note = (
            f"{len(rows):,} of {ann.n_workers:,} raters are listed: those with a flag and those "
            "with the most labels. 'bayescrowd aggregate --workers FILE' writes all of them."
        )
    caption = f"Raters, with {LEVEL:.0%} intervals of their accuracy"
    table = Table("raters", caption, tuple(columns), tuple(map(tuple, cells)), note)
    notes += [f"{column.title}: {column.meaning}." for column in columns if column.meaning]
    return table, tuple(notes)


def _listed_raters(quality: pd.DataFrame, ann: Annotations) -> Int[np.ndarray, " listed"]:
    """Codes of the raters to list, by their number of labels; flagged ones are not left out."""
    is_flagged = (quality["flag"] != "").to_numpy()
    first = np.lexsort((-ann.labels_per_worker, ~is_flagged))[:MOST_RATERS]
    return first[np.argsort(-ann.labels_per_worker[first], kind="stable")]


def _share_as_answer(est: Aggregator, ann: Annotations) -> Float[np.ndarray, " worker"]:
    """Share of each rater's labels that equal the answer, NaN without labels."""
    label = ann.classes.get_indexer(pd.Index(est.labels_.to_numpy()))
    same = np.bincount(
        ann.worker_codes, ann.label_codes == label[ann.task_codes], minlength=ann.n_workers
    )
    with np.errstate(invalid="ignore"):
        return same / ann.labels_per_worker


def _cluster_of(judge: AutoAggregator) -> dict[object, int]:
    clusters = judge.dependence_.clusters
    return {name: number for number, names in enumerate(clusters, start=1) for name in names}


def _cluster_table(judge: AutoAggregator) -> Table:
    """A row per group of raters who repeat each other."""
    clusters = judge.dependence_.clusters
    rows: list[tuple[Cell, ...]] = []
    pairs = judge.dependence_.pairs
    for number, names in enumerate(clusters[:MOST_CLUSTERS], start=1):
        first, other = (pairs.index.get_level_values(level) for level in (0, 1))
        inside = pairs[first.isin(list(names)) & other.isin(list(names))]
        listed = ", ".join(shorten(name, WIDTH) for name in names[:MOST_MEMBERS])
        if len(names) > MOST_MEMBERS:
            listed += f" and {len(names) - MOST_MEMBERS} more"
        agreement, expected = inside["agreement"].mean(), inside["expected_agreement"].mean()
        rows.append((number, len(names), float(agreement), float(expected), listed))
    note = ""
    if len(clusters) > MOST_CLUSTERS:
        note = f"The {MOST_CLUSTERS} largest of {quantity(len(clusters), 'group')} are listed."
    columns = (
        Column("group", "count"),
        Column("raters", "count"),
        Column("agree", "share"),
        Column("expected", "share", "agreement if they erred independently"),
        Column("who", "text"),
    )
    return Table("groups", "Groups of raters who repeat each other", columns, tuple(rows), note)


def _dropping_table(found: Dropping) -> Table:
    columns = [
        Column("without", "text"),
        Column("group", "count"),
        Column("labels that change", "share"),
        Column("tasks left without labels", "count"),
        Column("independent votes", "text"),
    ]
    has_gold = "accuracy" in found.table
    if has_gold:
        columns.append(Column("change of accuracy", "share", "on the gold tasks"))
    rows: list[tuple[Cell, ...]] = []
    for name, row in found.table.iterrows():
        cells: list[Cell] = [
            shorten(plain(name), WIDTH),
            None if pd.isna(row["cluster"]) else int(row["cluster"]),
            float(row["changed"]),
            int(row["n_unjudged"]),
            f"{row['effective_low']:.1f} to {row['effective_high']:.1f}",
        ]
        if has_gold:
            ends = (row[f"accuracy{end}"] for end in ("", "_lower", "_upper"))
            cells.append(Interval(*map(float, ends)))
        rows.append(tuple(cells))
    note = []
    if found.n_tasks < found.n_sampled_from:
        note.append(f"Compared on a sample of {found.n_tasks:,} tasks.")
    if found.n_left_out:
        note.append(
            f"{quantity(len(found.table), 'rater')} of "
            f"{len(found.table) + found.n_left_out:,} tried: members of groups first, then those "
            "with the most labels."
        )
    caption = "What changes if one rater is left out"
    return Table("dropping", caption, tuple(columns), tuple(rows), " ".join(note))


def _dropping_in_words(found: Dropping) -> str:
    """Whom to drop at no loss that would show, and why that is no promise."""
    changed = found.table["changed"]
    most, least = (shorten(plain(changed.index[i]), WIDTH) for i in (0, -1))
    compared = (
        f"Without {most}, {changed.iloc[0]:.1%} of the labels change, the most of "
        f"{quantity(len(changed), 'rater')} tried; without {least}, {changed.iloc[-1]:.1%}. "
        f"Another seed changes {found.by_chance:.1%}."
    )
    words = [compared]
    spared = changed.index[changed <= found.by_chance]
    if free := [shorten(plain(name), WIDTH) for name in spared]:
        words.append(f"At no loss that shows, one could do without any one of: {', '.join(free)}.")
    else:
        words.append("Nobody who was tried could be spared at no loss.")
    words.append(
        "Few changes are no proof: the labels that change may be the right ones, and of two raters "
        "who repeat each other, only one can go."
    )
    if found.n_gold:
        words.append(f"The {quantity(found.n_gold, 'gold task')} say more; see the table.")
    return " ".join(words)
