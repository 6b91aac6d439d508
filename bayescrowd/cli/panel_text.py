"""The report on a panel as text for a terminal of 100 columns."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.gold.prevalence import Prevalence
    from bayescrowd.panel.dropping import Dropping
    from bayescrowd.panel.report import PanelReport

__all__ = ["report_text", "share_lines"]

MOST_ROWS = 24
"""Most judges of a table; of more, the first and the last ones are shown."""

MOST_IN_MATRIX = 12
"""Most judges whose agreement is shown as a matrix; of more, the most similar pairs are."""

MOST_CLASSES = 12
"""Most classes in the table of shares."""

METHODS = {"post-stratified": "post-stratified", "ppi": "PPI++", "rogan-gladen": "Rogan-Gladen"}


def report_text(report: PanelReport, source: str, positive: Any) -> str:
    """The whole report.

    Args:
        report: what was found.
        source: name of the file of verdicts.
        positive: the class whose share is the pass rate, None if there is none.
    """
    paragraphs = [
        _input_lines(report, source),
        _alarm_lines(report),
        _panel_lines(report),
        _shares(report, positive),
        _judge_lines(report),
        _agreement_lines(report),
    ]
    if report.swaps is not None:
        paragraphs.append(_swap_lines(report))
    if report.dropping is not None:
        paragraphs.append(_dropping_lines(report.dropping, report.level))
    return "\n\n".join(paragraphs)


def share_lines(found: Prevalence, positive: Any) -> str:
    """The share of each class by all methods, and first the pass rate."""
    lines = []
    if positive is not None:
        row = found.shares.loc[positive]
        lines.append(
            f"pass rate ({shorten(positive, 24)}): {row['share']:.1%}, {found.level:.0%} interval "
            f"{row['lower']:.1%} to {row['upper']:.1%}"
        )
    tables = {found.method: found.shares, **found.beside}
    rows = [["class", *(METHODS.get(name, name.replace("-", " ")) for name in tables)]]
    for name in found.shares.index[:MOST_CLASSES]:
        cells = [_interval(table.loc[name], "share") for table in tables.values()]
        rows.append([shorten(name, 16), *cells])
    lines.append(f"share of each class in %, {found.level:.0%} intervals")
    lines.append(align(rows))
    if len(found.shares) > MOST_CLASSES:
        lines.append(f"  ... ({len(found.shares):,} classes; --json has all)")
    return "\n".join(lines)


def _input_lines(report: PanelReport, source: str) -> str:
    ann = report.annotations
    counts = (
        f"{quantity(ann.n_labels, 'verdict')} by {quantity(len(report.judges), 'judge')} on "
        f"{quantity(ann.n_tasks, 'task')}, {quantity(ann.n_classes, 'class', 'classes')}"
    )
    gold = f"; {quantity(report.n_gold, 'gold task')}" if report.n_gold else "; no gold"
    lines = [f"{source}: {counts}{gold}"]
    if len(report.abstentions):
        said = report.abstentions["value"].astype(str).value_counts()
        said = said[said > 0]
        listed = [f"{shorten(value, 20) or 'empty'}: {n:,}" for value, n in said.head(5).items()]
        lines.append(f"  asked and no verdict: {len(report.abstentions):,} ({', '.join(listed)})")
    never = int(report.judges["n_never_asked"].sum())
    if never:
        lines.append(f"  never asked: {quantity(never, 'pair')} of a judge and a task")
    if unjudged := int((ann.labels_per_task == 0).sum()):
        lines.append(f"  {quantity(unjudged, 'task')} without any verdict")
    return "\n".join(lines)


def _alarm_lines(report: PanelReport) -> str:
    from bayescrowd.panel.report import alarm_in_words

    return _paragraph("alarm" if report.alarm.buy_gold else "no alarm", alarm_in_words(report))


def _panel_lines(report: PanelReport) -> str:
    dependence, probas = report.dependence, report.probas.to_numpy().max(axis=1)
    low, high = dependence.effective_votes
    bracket = f"{low:.1f} to {high:.1f} independent votes"
    lines = ["panel", f"  {dependence.n_votes:.3g} verdicts per task amount to {bracket}"]
    clusters = dependence.clusters
    for number, cluster in enumerate(clusters[:8], start=1):
        names = ", ".join(shorten(name, 40) for name in cluster)
        size = f" ({len(cluster)})"
        lines.append(f"  cluster {number}{size}: {shorten(names, 96 - 14 - len(size))}")
    if len(clusters) > 8:
        lines.append(f"  ... ({len(clusters)} clusters of judges who repeat each other)")
    sure = " and ".join(f"{(probas >= p).mean():.0%} at least {p:.0%}" for p in (0.95, 0.8))
    lines.append(f"  how sure its labels are: {sure}")
    if report.gold_report is not None:
        right = report.gold_report.accuracy
        lines.append(
            f"  labels without gold that are right: about {right['estimate']:.0%} "
            f"({report.level:.0%} interval {right['lower']:.0%} to {right['upper']:.0%}); gold "
            f"changed {len(report.gold_report.changed):,}"
        )
    return "\n".join(lines)


def _shares(report: PanelReport, positive: Any) -> str:
    if report.shares is not None:
        return share_lines(report.shares, positive)
    from bayescrowd.panel.report import NO_INTERVAL

    rows = [["class", "verdicts", "labels", "probabilities"]]
    for row in report.claimed.head(MOST_CLASSES).itertuples():
        cells = [f"{100 * value:.1f}" for value in row[1:]]
        rows.append([shorten(row[0], 24), *cells])
    lines = [
        "share of each class as the panel claims it, in % (no bounds)",
        align(rows),
        *textwrap.wrap(NO_INTERVAL, 96, initial_indent="  ", subsequent_indent="  "),
    ]
    if positive is not None:
        claimed = report.claimed.loc[positive]
        low, high = (f(claimed["votes"], claimed["probabilities"]) for f in (min, max))
        lines.insert(
            0,
            f"pass rate ({shorten(positive, 24)}): {low:.1%} to {high:.1%} by verdicts and by "
            "probabilities; not an interval",
        )
    return "\n".join(lines)


def _judge_lines(report: PanelReport) -> str:
    judges, accuracies = report.judges, report.accuracies
    head = ["judge", "cluster", "verdicts", "abstained", "never asked", "as panel"]
    title = "judges by cluster (as panel: % of verdicts that are the panel's label, no accuracy)"
    if accuracies is not None:
        judges = judges.join(accuracies).sort_values("accuracy", ascending=False, kind="stable")
        head.append(f"accuracy % ({report.level:.0%} interval)")
        title = "judges by accuracy (as panel: % of verdicts that are the panel's label)"
    else:
        judges = judges.sort_values("cluster", kind="stable")
    with_abstentions = bool((judges["n_abstained"] > 0).any())
    rows = []
    for name, row in judges.iterrows():
        abstained = f"{row['n_abstained']:,}"
        if with_abstentions:
            abstained += f" ({row['share_abstained']:.0%})"
        cells = [
            shorten(name, 34),
            _count(row["cluster"]),
            f"{row['n_verdicts']:,}",
            abstained,
            f"{row['n_never_asked']:,}",
            _percent(row["as_panel"]),
        ]
        rows.append(cells if accuracies is None else [*cells, _interval(row, "accuracy")])
    lines = [title, align([head, *_ends(rows)])]
    if with_abstentions:
        lines.append(_where_abstained(judges))
    if accuracies is None:
        from bayescrowd.panel.report import NO_ACCURACY

        lines += textwrap.wrap(NO_ACCURACY, 96, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _where_abstained(judges: pd.DataFrame) -> str:
    """Whether judges abstain on tasks about which the panel is unsure."""
    some = judges[(judges["n_abstained"] > 0) & judges["entropy_judged"].notna()]
    if some.empty:
        return "  judges that abstained gave no verdict at all"
    weight = some["n_abstained"] / some["n_abstained"].sum()
    abstained = float((weight * some["entropy_abstained"]).sum())
    judged = float((weight * some["entropy_judged"]).sum())
    return (
        f"  mean entropy of the tasks on which judges abstained: {abstained:.2f} nats; of those on "
        f"which the same gave a verdict: {judged:.2f}"
    )


def _agreement_lines(report: PanelReport) -> str:
    if len(report.annotations.workers) <= MOST_IN_MATRIX:
        matrix = report.agreement
        names = list(matrix.index)
        numbers = [str(i + 1) for i in range(len(names))]
        rows = [["", "judge", *numbers]]
        for number, name in zip(numbers, names, strict=True):
            cells = [
                "." if other == name else _percent(matrix.loc[name, other], decimals=0)
                for other in names
            ]
            rows.append([number, shorten(name, 32), *cells])
        return f"agreement in % of shared tasks, clusters side by side\n{align(rows, left=(1,))}"
    rows = [["judge", "other", "shared", "agree", "if independent"]]
    for row in report.similar_pairs.head(MOST_IN_MATRIX).reset_index().itertuples():
        rows.append(
            [
                shorten(row.rater, 34),
                shorten(row.other, 34),
                f"{row.n_shared:,}",
                _percent(row.agreement),
                _percent(row.expected_agreement),
            ]
        )
    title = f"the {len(rows) - 1} most similar of {len(report.dependence.pairs):,} pairs (in %)"
    return f"{title}\n{align(rows, left=(0, 1))}"


def _swap_lines(report: PanelReport) -> str:
    swaps = report.swaps
    assert swaps is not None  # asked for only with swaps
    rows = []
    for name, row in swaps.iterrows():
        preferred = ""
        if row["n_verdicts"]:
            both = f"{shorten(row['first_verdict'], 10)}, {shorten(row['second_verdict'], 10)}"
            n_other = row["n_shared"] - row["n_consistent"]
            preferred = f"{both} ({row['n_verdicts']:,} of {n_other:,})"
        cells = [shorten(name, 34), f"{row['n_shared']:,}", _interval(row, "consistency")]
        rows.append([*cells, preferred])
    head = ["judge", "shared", f"consistent % ({report.level:.0%} interval)", "usual inconsistency"]
    return (
        "swap consistency (usual inconsistency: verdict in the first order, in the second)\n"
        f"{align([head, *_ends(rows)], left=(0, 3))}"
    )


def _dropping_lines(dropping: Dropping, level: float) -> str:
    low, high = dropping.effective_votes
    head = ["without", "cluster", "labels changed %", "effective votes"]
    if dropping.n_gold:
        head += ["accuracy, points", "log loss, nats"]
    rows = []
    for name, row in dropping.table.iterrows():
        cells = [
            shorten(name, 34),
            _count(row["cluster"]),
            f"{100 * row['changed']:.1f}",
            f"{row['effective_low']:.1f} to {row['effective_high']:.1f}",
        ]
        if dropping.n_gold:
            ends = [100 * row[f"accuracy{end}"] for end in ("", "_lower", "_upper")]
            cells.append("{:+.1f} ({:+.0f} to {:+.0f})".format(*ends))
            ends = [row[f"log_loss{end}"] for end in ("", "_lower", "_upper")]
            is_known = not math.isnan(ends[1])
            cells.append(("{:+.3f} ({:+.2f} to {:+.2f})" if is_known else "{:+.3f}").format(*ends))
        rows.append(cells)
    reference = ["(nobody)", "-", f"{100 * dropping.by_chance:.1f}", f"{low:.1f} to {high:.1f}"]
    rows.append(reference + ["-"] * (len(head) - len(reference)))
    lines = ["what dropping a judge would cost", align([head, *rows])]
    notes = ["(nobody) is the fit to all judges under another seed."]
    if dropping.n_gold:
        notes.append(f"Changes on {quantity(dropping.n_gold, 'gold task')}, {level:.0%} intervals.")
    if dropping.n_tasks < dropping.n_sampled_from:
        notes.append(f"Compared on {dropping.n_tasks:,} of {dropping.n_sampled_from:,} tasks.")
    if dropping.n_left_out:
        notes.append(f"{quantity(dropping.n_left_out, 'judge')} not tried (--drop N tries more).")
    notes.append("Dropping judges is not reliably free, however redundant they look.")
    wrapped = textwrap.wrap(" ".join(notes), 96, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, *wrapped])


def _paragraph(title: str, text: str) -> str:
    wrapped = textwrap.wrap(text, 96, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([title, *wrapped])


def _ends(rows: list[list[str]]) -> list[list[str]]:
    """The rows, or the first and the last of many."""
    if len(rows) <= MOST_ROWS:
        return rows
    half = MOST_ROWS // 2
    gap = [f"... ({len(rows) - 2 * half:,} more)", *[""] * (len(rows[0]) - 1)]
    return [*rows[:half], gap, *rows[-half:]]


def _interval(row: pd.Series, name: str) -> str:
    values = [100 * row[column] for column in (name, "lower", "upper")]
    return "-" if math.isnan(values[0]) else "{:.1f} ({:.0f} to {:.0f})".format(*values)


def _percent(value: Any, decimals: int = 1) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.{decimals}f}"


def _count(value: Any) -> str:
    import pandas as pd

    return "-" if pd.isna(value) else f"{value:,}"
