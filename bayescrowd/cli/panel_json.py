"""The report on a panel as one JSON document, and its table of judges."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bayescrowd._version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.gold.shares import Prevalence
    from bayescrowd.panel.findings import PanelReport

__all__ = ["json_text", "judge_table", "report_document", "shares_document"]


def judge_table(report: PanelReport) -> pd.DataFrame:
    """A row per judge, with its accuracy if there is gold."""
    table = report.judges
    if report.accuracies is not None:
        table = table.join(report.accuracies)
    return table.reset_index()


def report_document(report: PanelReport, source: str, positive: Any) -> dict[str, Any]:
    """Everything that was found, for machines."""
    from bayescrowd.panel.findings import NO_ACCURACY, NO_INTERVAL

    ann, dependence, gold = report.annotations, report.dependence, report.gold_report
    dropping = report.dropping
    return {
        "bayescrowd": __version__,
        "input": {
            "source": source,
            "n_verdicts": ann.n_labels,
            "n_abstained": len(report.abstentions),
            "n_tasks": ann.n_tasks,
            "n_judges": len(report.judges),
            "n_classes": ann.n_classes,
            "n_gold": report.n_gold,
        },
        "level": report.level,
        "positive": positive,
        "alarm": report.alarm._asdict(),
        "dependence": {
            "n_votes": dependence.n_votes,
            "effective_votes": list(dependence.effective_votes),
            "instability": dependence.instability,
            "clusters": [list(cluster) for cluster in dependence.clusters],
        },
        "accuracy": None if gold is None else gold.accuracy.to_dict(),
        "shares": None if report.shares is None else shares_document(report.shares),
        "claimed": _records(report.claimed.reset_index()),
        "why_not": None if gold is not None else {"accuracy": NO_ACCURACY, "shares": NO_INTERVAL},
        "judges": _records(judge_table(report)),
        "agreement": None
        if not report.has_matrix
        else {
            "judges": list(report.agreement.index),
            "shares": report.agreement.to_numpy().tolist(),
        },
        "swaps": None if report.swaps is None else _records(report.swaps.reset_index()),
        "dropping": None
        if dropping is None
        else {
            "judges": _records(dropping.table.reset_index()),
            "effective_votes": list(dropping.effective_votes),
            "changed_by_chance": dropping.by_chance,
            "n_tasks": dropping.n_tasks,
            "n_gold": dropping.n_gold,
            "n_left_out": dropping.n_left_out,
        },
        "tasks": _records(report.tasks.reset_index()),
        "summary": report.summary,
    }


def shares_document(found: Prevalence) -> dict[str, Any]:
    """The share of each class by all methods."""
    tables = {found.method: found.shares, **found.beside}
    return {
        "level": found.level,
        "n_gold": found.n_gold,
        "methods": {
            name: _records(table.rename_axis("class").reset_index())
            for name, table in tables.items()
        },
    }


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")


def json_text(document: dict[str, Any]) -> str:
    """The document as text; what is missing or not finite becomes null."""
    return json.dumps(_plain(document), indent=2, ensure_ascii=False, default=str, allow_nan=False)


def _plain(value: Any) -> Any:
    """The value in JSON's types; what is missing or not finite becomes null."""
    import numpy as np
    import pandas as pd

    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is pd.NA:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
