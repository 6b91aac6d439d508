"""Everything one wants to know about a panel of judges before trusting it, in one report.

A panel of language models looks like many votes and is worth few, and nothing in its verdicts says
how often it is right. The report says what labels alone can say (labels with cautious
probabilities, the effective number of votes, who repeats whom, what a judge's absence would
change), and with gold, however little, what only gold can: the accuracy of the panel and of each
judge, and the share of each class with an interval. Without gold, these are not guessed: judges who
err together make each other look good, so that a ranking from labels alone can be upside down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.auto.gold_report import GoldReport, make_gold_report
from bayescrowd.aggregation.auto.gold_tilt import fit_tilt
from bayescrowd.aggregation.protocol import Gold
from bayescrowd.aggregation.votes import decide, with_known
from bayescrowd.checks.parameters import OpenFraction, Seed, Whole, validate_arguments
from bayescrowd.data.annotations import Annotations, as_annotations
from bayescrowd.data.truth import Truth, known_labels
from bayescrowd.data.vocabulary import plain
from bayescrowd.estimator import check_is_fitted
from bayescrowd.gold.prevalence import prevalence
from bayescrowd.io.verdicts import Verdicts
from bayescrowd.panel.dropping import cost_of_dropping
from bayescrowd.panel.findings import PanelReport
from bayescrowd.panel.swaps import Naming, swap_consistency
from bayescrowd.panel.verdict_counts import check_abstentions, verdict_counts

__all__ = ["panel_report"]


@validate_arguments
def panel_report(
    data: Any,
    gold: Gold = None,
    *,
    abstentions: pd.DataFrame | None = None,
    orders: Sequence[str] = ("/plain", "/swap"),
    naming: Naming = "content",
    weights: Truth | None = None,
    most_dropped: Annotated[int, Whole(0)] = 12,
    level: OpenFraction = 0.9,
    seed: Seed = 0,
) -> PanelReport:
    """Report on a panel of judges: labels, dependence, swaps, costs, shares and the alarm.

    Args:
        data: what `read_verdicts` returns, `Annotations`, a table with the columns task, worker
            and label, or a fitted `AutoAggregator`, such as the `estimator` of an earlier report.
            Unless it was fitted with gold, it is not fitted again, so that reports under other
            gold labels take little time.
        gold: task -> label of tasks whose truth is known; random tasks, or those of `suggest_gold`
            with their weights.
        abstentions: a row for each judge who was asked and gave no verdict, with the columns task
            and worker, and value (what it said instead); `read_verdicts` returns it with the data.
        orders: endings of the names of judges that were asked in two orders.
        naming: whether verdicts of such judges name the 'content', which is the same in both
            orders, or the 'position', for two classes.
        weights: task -> weight of the gold tasks in the shares of the classes, such as those of
            `suggest_gold`; by default, all weigh the same.
        most_dropped: largest number of judges to refit without; 0 for none.
        level: probability of the intervals.
        seed: seed of the fits.

    Raises:
        ValueError: no gold task is among the tasks, or `orders` are not two endings.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.panel(300, 5, clusters=[2], copying=1.0, accuracy=[0.8] * 5, seed=1)
        >>> report = bc.panel_report(data.annotations, data.truth.iloc[:20], most_dropped=0)
        >>> report.dependence.clusters, report.accuracies.shape
        (((0, 1),), (5, 4))
        >>> bc.panel_report(data.annotations, most_dropped=0).accuracies is None
        True
    """
    if isinstance(data, Verdicts):
        if abstentions is not None:
            raise ValueError(
                "abstentions are given twice, in data and on their own; expected them once"
            )
        data, abstentions = data
    fitted = data if isinstance(data, AutoAggregator) else None
    if fitted is not None:
        check_is_fitted(fitted)
        data = fitted._annotations
    ann, asked = as_annotations(data), check_abstentions(abstentions)
    known, used = np.full(ann.n_tasks, -1, dtype=np.int32), None
    if gold is not None:
        used = known_labels(gold, "gold")
        used = used[used.index.isin(ann.tasks)]
        ann = ann.with_classes(used)
        known = ann.code_truth(gold)
        if not (known >= 0).any():
            raise ValueError("no gold task is among the tasks of the labels; expected at least one")
    # Checked before the fits, which take their time.
    swaps = swap_consistency(ann, orders, naming=naming, level=level)
    est = _fit_without_gold(ann, fitted, seed)
    probas, gold_report = _with_gold(est, known, level)
    shares = None if used is None else prevalence(est, used, level=level, weights=weights)
    labels = decide(probas, seed)[0]
    dropping = None
    if most_dropped:
        dropping = cost_of_dropping(
            ann,
            known,
            est.dependence_.clusters,
            fitted=est,
            most=most_dropped,
            level=level,
            seed=seed,
        )
    return PanelReport(
        annotations=ann,
        abstentions=asked,
        estimator=est,
        gold=used,
        labels=labels,
        probas=probas,
        dependence=est.dependence_,
        judges=_judges(est, asked, labels),
        accuracies=None if gold_report is None else gold_report.judges.rename_axis("judge"),
        gold_report=gold_report,
        swaps=swaps if len(swaps) else None,
        dropping=dropping,
        claimed=_claimed(ann, est.probas_, est.labels_),
        shares=shares,
        alarm=est.alarm_,
        level=level,
    )


def _fit_without_gold(ann: Annotations, fitted: AutoAggregator | None, seed: int) -> AutoAggregator:
    if fitted is None:
        return AutoAggregator(seed=seed).fit(ann)
    if fitted._has_gold or ann is not fitted._annotations:  # gold may bring a class of its own
        return AutoAggregator(**fitted.get_params()).fit(ann)
    return fitted


def _with_gold(
    est: AutoAggregator, known: Int[np.ndarray, " item"], level: float
) -> tuple[pd.DataFrame, GoldReport | None]:
    """The answer that a fit with gold would give, without fitting again."""
    if not (known >= 0).any():
        return est.probas_, None
    before, ann = est.probas_.to_numpy(), est._annotations
    tilt = fit_tilt(before, ann, known)
    after = with_known(tilt.apply(before, ann), known)
    report = make_gold_report(before, after, ann, known, tilt, level=level)
    return pd.DataFrame(after, index=ann.tasks, columns=ann.classes), report


def _judges(est: AutoAggregator, abstentions: pd.DataFrame, labels: pd.Series) -> pd.DataFrame:
    ann = est._annotations
    # By the fit without gold: gold would make its tasks look certain.
    table = verdict_counts(ann, abstentions, est.probas_.to_numpy())
    label = ann.classes.get_indexer(pd.Index(labels.to_numpy()))
    same = np.bincount(
        ann.worker_codes, ann.label_codes == label[ann.task_codes], minlength=ann.n_workers
    )
    with np.errstate(invalid="ignore"):
        as_panel = pd.Series(same / ann.labels_per_worker, index=ann.workers)
    number = {plain(j): i + 1 for i, c in enumerate(est.dependence_.clusters) for j in c}
    of_judge = pd.Series([number.get(plain(j)) for j in table.index], dtype="Int64")
    table.insert(0, "cluster", of_judge.to_numpy(dtype=object))
    table["cluster"] = table["cluster"].astype("Int64")
    table.insert(1, "as_panel", as_panel.reindex(table.index))
    return table


def _claimed(ann: Annotations, probas: pd.DataFrame, labels: pd.Series) -> pd.DataFrame:
    of_labels = labels.value_counts(normalize=True).reindex(ann.classes, fill_value=0.0)
    return pd.DataFrame(
        {
            "votes": ann.votes.sum(axis=0) / max(ann.n_labels, 1),
            "labels": of_labels.to_numpy(dtype=float),
            "probabilities": probas.to_numpy().mean(axis=0),
        },
        index=ann.classes.rename("class"),
    )
