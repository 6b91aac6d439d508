"""The report on a panel as text for a terminal of 100 columns."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten, shorten_middle

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.gold.shares import Prevalence
    from bayescrowd.panel.drop_costs import Dropping
    from bayescrowd.panel.findings import PanelReport

__all__ = ["report_text", "share_lines"]

MOST_ROWS = 24
"""Most judges of a table; of more, the first and the last ones are shown."""

MOST_IN_MATRIX = 12
"""Most judges whose agreement is shown as a matrix; of more, the most similar pairs are."""

MOST_CLASSES = 12
"""Most classes in the table of shares."""

WIDTH = 100
"""Columns of the terminal."""

METHODS = {"ppi": "PPI++", "rogan-gladen": "Rogan-Gladen", "gold-only": "gold alone"}
"""Names of methods, where they differ from those in Python."""


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
    rows = [["class", *(METHODS.get(name, name) for name in tables)]]
    cells = [_intervals(table, "share")[:MOST_CLASSES] for table in tables.values()]
    names = [shorten(name, 16) for name in found.shares.index[:MOST_CLASSES]]
    rows += [list(row) for row in zip(names, *cells, strict=True)]
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
    line = f"{source}: {counts}{gold}"
    lines = [line] if len(line) <= WIDTH else [f"{source}:", f"  {counts}{gold}"]
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
    from bayescrowd.panel.findings import alarm_in_words

    wrapped = textwrap.wrap(alarm_in_words(report), 96, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(["alarm", *wrapped])


def _panel_lines(report: PanelReport) -> str:
    dependence, probas = report.dependence, report.open_probas.to_numpy().max(axis=1)
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
    from bayescrowd.panel.findings import NO_INTERVAL

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
    title = "judges by cluster (as panel: % of verdicts that are the panel's label, no accuracy)"
    by, ascending = "cluster", True
    if accuracies is not None:
        judges, by, ascending = judges.join(accuracies), "accuracy", False
        title = "judges by accuracy (as panel: % of verdicts that are the panel's label)"
    judges = judges.sort_values(by, ascending=ascending, kind="stable")
    table: dict[str, list[str]] = {
        "cluster": [_count(value) for value in judges["cluster"]],
        "verdicts": [_count(value) for value in judges["n_verdicts"]],
    }
    if has_abstained := bool((judges["n_abstained"] > 0).any()):
        counts = zip(judges["n_abstained"], judges["share_abstained"], strict=True)
        table["abstained"] = [f"{n:,} ({share:.0%})" for n, share in counts]
    if (judges["n_never_asked"] > 0).any():
        table["never asked"] = [_count(value) for value in judges["n_never_asked"]]
    table["as panel"] = [_percent(value) for value in judges["as_panel"]]
    if accuracies is not None:
        table[f"accuracy % ({report.level:.0%} interval)"] = _intervals(judges, "accuracy")
    rows = [list(cells) for cells in zip(judges.index, *table.values(), strict=True)]
    lines = [title, _align_names([["judge", *table], *_ends(rows)])]
    if has_abstained:
        lines.append(_where_abstained(judges))
    if accuracies is None:
        from bayescrowd.panel.findings import NO_ACCURACY

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
        f"  mean entropy where judges abstained: {abstained:.2f} nats; where they judged: "
        f"{judged:.2f}"
    )


def _agreement_lines(report: PanelReport) -> str:
    if len(report.annotations.workers) <= MOST_IN_MATRIX:
        matrix = report.agreement.to_numpy()
        numbers = [str(i + 1) for i in range(len(matrix))]
        rows: list[list[Any]] = [["judge", "", *numbers]]
        for i, name in enumerate(report.agreement.index):
            cells = [_percent(share, decimals=0) for share in matrix[i]]
            cells[i] = "."
            rows.append([name, numbers[i], *cells])
        return f"agreement in % of shared tasks, clusters side by side\n{_align_names(rows)}"
    rows = [["judge", "other", "shared", "agree", "if independent"]]
    pairs = report.similar_pairs.head(MOST_IN_MATRIX)
    names = [[shorten_middle(name, 32) for name in pair] for pair in pairs.index]
    columns = [
        map(_count, pairs["n_shared"]),
        map(_percent, pairs["agreement"]),
        map(_percent, pairs["expected_agreement"]),
    ]
    rows += [[*pair, *cells] for pair, *cells in zip(names, *columns, strict=True)]
    title = f"the {len(rows) - 1} most similar of {len(report.dependence.pairs):,} pairs (in %)"
    return f"{title}\n{align(rows, left=(0, 1))}"


def _swap_lines(report: PanelReport) -> str:
    swaps = report.swaps
    assert swaps is not None  # asked for only with swaps
    names = ("first_verdict", "second_verdict", "n_verdicts")
    n_other = swaps["n_shared"] - swaps["n_consistent"]
    usual = [
        f"{shorten(one, 10)}, {shorten(other, 10)} ({n:,} of {of:,})" if n else ""
        for one, other, n, of in zip(*(swaps[name] for name in names), n_other, strict=True)
    ]
    columns = [map(_count, swaps["n_shared"]), _intervals(swaps, "consistency"), usual]
    rows = [list(cells) for cells in zip(swaps.index, *columns, strict=True)]
    head = ["judge", "shared", f"consistent % ({report.level:.0%} interval)", "usual inconsistency"]
    return (
        "swap consistency (usual inconsistency: verdict in the first order, in the second)\n"
        f"{_align_names([head, *_ends(rows)], left=(0, 3))}"
    )


def _dropping_lines(dropping: Dropping, level: float) -> str:
    found = dropping.table
    brackets = zip(found["effective_low"], found["effective_high"], strict=True)
    table: dict[str, list[str]] = {
        "cluster": [_count(value) for value in found["cluster"]],
        "changed %": [_percent(value) for value in found["changed"]],
        "votes": [f"{low:.1f} to {high:.1f}" for low, high in brackets],
    }
    if dropping.n_gold:
        table["accuracy, points"] = _changes(100 * found, "accuracy", 1, 0)
        table["log loss, nats"] = _changes(found, "log_loss", 3, 2)
    rows = [list(cells) for cells in zip(found.index, *table.values(), strict=True)]
    low, high = dropping.effective_votes
    nobody = ["(nobody)", "-", _percent(dropping.by_chance), f"{low:.1f} to {high:.1f}"]
    rows.append(nobody + ["-"] * (len(table) + 1 - len(nobody)))
    notes = [
        "Changed: labels; votes: effective votes; (nobody): all judges under another seed.",
    ]
    if dropping.n_gold:
        notes.append(f"Changes on {quantity(dropping.n_gold, 'gold task')}, {level:.0%} intervals.")
    if dropping.n_tasks < dropping.n_sampled_from:
        notes.append(f"Compared on {dropping.n_tasks:,} of {dropping.n_sampled_from:,} tasks.")
    if dropping.n_left_out:
        notes.append(f"{quantity(dropping.n_left_out, 'judge')} not tried (--drop N tries more).")
    notes.append("Dropping judges is not reliably free, however redundant they look.")
    wrapped = textwrap.wrap(" ".join(notes), 96, initial_indent="  ", subsequent_indent="  ")
    lines = ["what dropping a judge would cost", _align_names([["without", *table], *rows])]
    return "\n".join([*lines, *wrapped])


def _changes(table: pd.DataFrame, name: str, decimals: int, of_ends: int) -> list[str]:
    """Changes with their intervals, if these are known."""
    columns = (table[f"{name}{end}"] for end in ("", "_lower", "_upper"))
    return [
        f"{mean:+.{decimals}f}"
        + ("" if math.isnan(low) else f" ({low:+.{of_ends}f} to {high:+.{of_ends}f})")
        for mean, low, high in zip(*columns, strict=True)
    ]


def _ends(rows: list[list[Any]]) -> list[list[Any]]:
    """The rows, or the first and the last of many."""
    if len(rows) <= MOST_ROWS:
        return rows
    half = MOST_ROWS // 2
    gap = [f"... ({len(rows) - 2 * half:,} more)", *[""] * (len(rows[0]) - 1)]
    return [*rows[:half], gap, *rows[-half:]]


def _align_names(rows: list[list[Any]], left: tuple[int, ...] = (0,)) -> str:
    """The table, with names in the first column as long as the line allows."""
    others = [max(map(len, column)) for column in list(zip(*rows, strict=True))[1:]]
    room = max(WIDTH - 2 - sum(width + 2 for width in others), 12)
    return align([[shorten_middle(row[0], room), *row[1:]] for row in rows], left=left)


def _intervals(table: pd.DataFrame, name: str) -> list[str]:
    columns = (100 * table[column] for column in (name, "lower", "upper"))
    return [
        "-" if math.isnan(mean) else f"{mean:.1f} ({low:.0f} to {high:.0f})"
        for mean, low, high in zip(*columns, strict=True)
    ]


def _percent(value: Any, decimals: int = 1) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.{decimals}f}"


def _count(value: Any) -> str:
    import pandas as pd

    return "-" if pd.isna(value) else f"{value:,}"
