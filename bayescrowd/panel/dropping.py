"""What it would cost to do without a judge.

The default is fitted again without each judge, and compared with the fit to all: how many labels
change, what becomes of the effective number of votes and, with gold, of accuracy and log loss on
the gold tasks. There, both fits are corrected by gold that does not include the task (in the same
folds, as in `gold_report`), so that no fit knows the answers on which it is judged.

Two judges who repeat each other can each be dropped at little cost, and not both. Nor is a small
change a small cost: the labels that change may be the ones that were right. Few gold labels cannot
see small costs either; the intervals say how large the cost may be. Dropping judges is therefore
not reliably free, however redundant they look.

The change of accuracy has the interval of Agresti and Min (2005) for paired shares, who add one
half to each cell of the fourfold table, so that a few tasks on which nothing changes do not prove
that nothing would; that of log loss is Student's, over gold tasks.

Every refit takes as long as a fit. Of more than `most` judges, those who repeat others come first,
in turn from each cluster, and then those with the most labels. A panel with many labels is judged
on a sample of its tasks that includes the gold tasks: the fit to all judges is then repeated on
that sample, so that only the judge makes the difference. What another seed changes is reported as
well, since no smaller change has a meaning.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.auto.gold_report import gold_folds, unseen_probas
from bayescrowd.aggregation.auto.gold_tilt import fit_tilt
from bayescrowd.aggregation.task_sample import FOLD_ROUNDS, fingerprints, sampled_tasks
from bayescrowd.aggregation.votes import leading_shares, with_known
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity
from bayescrowd.data.vocabulary import plain
from bayescrowd.panel.drop_costs import Dropping, paired_share_change

__all__ = ["cost_of_dropping"]

MOST_LABELS = 20_000
"""Panels with more labels are judged on a sample of their tasks with about this many."""

LEAST_PROBABILITY = 1e-6
"""Probabilities of the true class are raised to this before their logarithm is taken."""

TIE = 1e-9
"""Probabilities that differ by less are equal."""


def cost_of_dropping(
    ann: Annotations,
    known: Int[np.ndarray, " item"],
    clusters: tuple[tuple[Hashable, ...], ...],
    *,
    fitted: AutoAggregator | None = None,
    most: int = 12,
    level: float = 0.9,
    seed: int = 0,
) -> Dropping | None:
    """Refit the default without each judge.

    Args:
        ann: the verdicts.
        known: class of the gold tasks, -1 elsewhere.
        clusters: groups of judges who repeat each other.
        fitted: the default fitted to `ann` without gold, if it is there already.
        most: largest number of judges to try.
        level: probability of the intervals.
        seed: seed of the fits.

    Returns:
        The costs; None if there are fewer than two judges.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(60, 4, clusters=[2], copying=1.0, accuracy=[0.8] * 4, seed=1)
        >>> found = cost_of_dropping(data.annotations, np.full(60, -1), ((0, 1),), most=3)
        >>> len(found.table), found.n_left_out, found.table["changed"].between(0, 1).all().item()
        (3, 1, True)
    """
    kept = _compared_tasks(ann, known)
    part, gold = ann, known
    if len(kept) < ann.n_tasks:
        part, gold = ann.select_tasks(ann.tasks[kept]), known[kept]
        fitted = None
    judges = np.flatnonzero(part.labels_per_worker > 0)
    if len(judges) < 2:
        return None
    cluster = _cluster_numbers(ann.workers, clusters)
    chosen = _order(part, judges, cluster)[:most]
    folds = gold_folds(part, gold)
    reference = _Fit.of(fitted or AutoAggregator(seed=seed).fit(part), gold, folds)
    again = _Fit.of(AutoAggregator(seed=(seed + 1) % 2**32).fit(part), gold, folds)
    rows = []
    for code in chosen:
        others = part.select_workers(part.workers[judges[judges != code]])
        rest = _Fit.of(AutoAggregator(seed=seed).fit(others), gold, folds)
        rows.append(
            {
                "changed": _share_changed(reference.probas, rest.probas),
                "n_unjudged": int(
                    ((part.labels_per_task > 0) & (others.labels_per_task == 0)).sum()
                ),
                "effective_low": rest.effective_votes[0],
                "effective_high": rest.effective_votes[1],
                **(_changes_on_gold(reference, rest, level) if (gold >= 0).any() else {}),
            }
        )
    table = pd.DataFrame(rows, index=part.workers.take(chosen).rename("judge"))
    numbers = pd.Series(cluster[chosen] + 1, index=table.index, dtype="Int64")
    table.insert(0, "cluster", numbers.mask(cluster[chosen] < 0))
    table = table.sort_values("changed", ascending=False, kind="stable")
    by_chance = _share_changed(reference.probas, again.probas)
    n_gold = int((gold >= 0).sum())
    return Dropping(
        table,
        reference.effective_votes,
        by_chance,
        part.n_tasks,
        ann.n_tasks,
        n_gold,
        int((ann.labels_per_worker > 0).sum()) - len(chosen),
        _in_words(table, by_chance, n_gold, level),
    )


class _Fit(NamedTuple):
    """What is compared."""

    probas: Float[np.ndarray, "item cls"]
    """P(class) of each task, corrected by the gold if there is any."""
    effective_votes: tuple[float, float]
    """Bracket of the effective votes."""
    right: Float[np.ndarray, " gold"]
    """Whether the label of each gold task is right; a tie counts in part."""
    loss: Float[np.ndarray, " gold"]
    """Log loss on each gold task, nats."""

    @classmethod
    def of(
        cls,
        est: AutoAggregator,
        known: Int[np.ndarray, " item"],
        folds: list[Int[np.ndarray, " _part"]],
    ) -> _Fit:
        probas, ann = est.probas_.to_numpy(), est._annotations
        low, high = est.dependence_.effective_votes
        votes = float(low), float(high)
        gold = np.flatnonzero(known >= 0)
        if len(gold) == 0:
            return cls(probas, votes, np.zeros(0), np.zeros(0))
        place = np.arange(len(gold)), known[gold]
        honest = unseen_probas(probas, ann, known, folds)[gold]
        loss = -np.log(np.maximum(honest[place], LEAST_PROBABILITY))
        answer = with_known(fit_tilt(probas, ann, known).apply(probas, ann), known)
        return cls(answer, votes, leading_shares(honest)[place], loss)


def _cluster_numbers(
    workers: pd.Index, clusters: tuple[tuple[Hashable, ...], ...]
) -> Int[np.ndarray, " worker"]:
    """Number of each judge's cluster from 0 on, -1 for those who are alone."""
    number = {plain(name): i for i, members in enumerate(clusters) for name in members}
    return np.array([number.get(plain(name), -1) for name in workers], dtype=np.int64)


def _order(
    ann: Annotations, judges: Int[np.ndarray, " judge"], cluster: Int[np.ndarray, " worker"]
) -> Int[np.ndarray, " judge"]:
    """Judges of clusters first, in turn from each cluster, then by their number of labels."""
    hashed = fingerprints(ann, n_rounds=FOLD_ROUNDS).worker[judges]
    by_labels = judges[np.lexsort((hashed, -ann.labels_per_worker[judges]))]
    turn = pd.Series(by_labels).groupby(cluster[by_labels]).cumcount().to_numpy()
    is_alone = cluster[by_labels] < 0
    return by_labels[np.lexsort((cluster[by_labels], np.where(is_alone, 0, turn), is_alone))]


def _compared_tasks(
    ann: Annotations, known: Int[np.ndarray, " item"]
) -> Int[np.ndarray, " compared"]:
    """Codes of the tasks on which judges are compared, ascending."""
    if ann.n_labels <= MOST_LABELS:
        return np.arange(ann.n_tasks)
    sample = sampled_tasks(ann, MOST_LABELS)
    gold = np.flatnonzero((known >= 0) & (ann.labels_per_task > 0))
    return np.union1d(sample, gold) if len(gold) <= len(sample) else sample


def _share_changed(
    before: Float[np.ndarray, "item cls"], after: Float[np.ndarray, "item cls"]
) -> float:
    """Share of tasks whose most probable class has fallen behind another one."""
    old = before.argmax(axis=1)
    return float((after.max(axis=1) > after[np.arange(len(old)), old] + TIE).mean())


def _changes_on_gold(reference: _Fit, rest: _Fit, level: float) -> dict[str, float]:
    """Changes of accuracy and log loss on the gold tasks, with their intervals."""
    accuracy, lower, upper = paired_share_change(rest.right - reference.right, level)
    worse = rest.loss - reference.loss
    n = len(worse)
    half = float("nan")
    if n > 1:
        half = scipy.stats.t.ppf((1 + level) / 2, n - 1) * worse.std(ddof=1) / np.sqrt(n)
    mean = float(worse.mean())
    return {
        "accuracy": accuracy,
        "accuracy_lower": lower,
        "accuracy_upper": upper,
        "log_loss": mean,
        "log_loss_lower": mean - half,
        "log_loss_upper": mean + half,
    }


def _in_words(table: pd.DataFrame, by_chance: float, n_gold: int, level: float) -> str:
    most, least = (
        f"without {plain(table.index[i])}, {table['changed'].iloc[i]:.1%}" for i in (0, -1)
    )
    words = (
        f"Labels that change, of {quantity(len(table), 'judge')} tried: {most} (the most); {least} "
        f"(the least); with all judges under another seed, {by_chance:.1%}."
    )
    if n_gold > 1:
        # Of many judges, some stand out by chance: all intervals are to hold together.
        together = 1 - (1 - level) / len(table)
        wider = np.divide(*(scipy.stats.t.ppf((1 + p) / 2, n_gold - 1) for p in (together, level)))
        half = wider * (table["log_loss_upper"] - table["log_loss_lower"]) / 2
        costly, freeing = table["log_loss"] > half, table["log_loss"] < -half
        found = [
            f"without {', '.join(str(plain(name)) for name in table.index[rows])} it is {kind}"
            for rows, kind in ((costly, "worse"), (freeing, "better"))
            if rows.any()
        ]
        verdict = " and ".join(found) or "no judge stands out"
        words += f" By the log loss on {quantity(n_gold, 'gold task')}, {verdict}."
    return f"{words} Dropping judges is not reliably free, however redundant they look."
