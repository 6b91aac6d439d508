"""The whole document of a report, from a fit and what is known besides."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from bayescrowd._version import __version__
from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import quantity
from bayescrowd.data.truth import Truth, TruthWarning, known_labels
from bayescrowd.data.vocabulary import plain
from bayescrowd.reports.agreement_findings import agreement_measures, pair_matrix, pair_table
from bayescrowd.reports.document import LEVEL, Document, TruthFindings
from bayescrowd.reports.headline import headline
from bayescrowd.reports.method_findings import (
    fit_rivals,
    measured_accuracy,
    method_table,
    truth_findings,
)
from bayescrowd.reports.rater_findings import dependence_findings, rater_table
from bayescrowd.reports.task_findings import confusion_findings, contested_tasks

__all__ = ["gather", "most_refits"]

FEW_LABELS = 20_000
"""Up to this many labels, a refit without a rater is quick."""

MANY_REFITS, FEW_REFITS = 8, 3
"""Raters without whom the default is refitted, on small and on large crowds: a few seconds."""


def gather(
    est: Aggregator,
    *,
    truth: Truth | None,
    posterior: Any,
    settled: float,
    most_dropped: int,
    title: str,
    source: str,
    facts: Mapping[str, str],
) -> Document:
    """Everything that a report says.

    Args:
        est: the fit to report on.
        truth: class of tasks, for scoring only; those that the fit was given are not scored.
        posterior: draws of `sample_posterior`, or None.
        settled: probability from which on a label is settled.
        most_dropped: largest number of raters to refit the default without.
        title: title of the report.
        source: where the labels come from.
        facts: further settings to state, by name.
    """
    ann = est._annotations
    scored = None if truth is None else _scored_truth(est, truth)
    measured = None if scored is None else measured_accuracy(est, scored)  # warns of tasks, once
    draws, accuracies = _posterior_findings(est, posterior)
    judge = _judge(est)
    rivals = fit_rivals(est, judge)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruthWarning)
        methods, methods_note = method_table(rivals, scored)
        found: TruthFindings | None = None
        if scored is not None:
            found = truth_findings(est, rivals, scored)
    raters, raters_notes = rater_table(est, judge, accuracies)
    confusions, confusion_matrix = confusion_findings(est)
    return Document(
        title=title,
        summary=_summary(source, ann),
        headline=headline(est, judge, settled=settled, measured=measured),
        dependence=dependence_findings(judge, est._gold if est._has_gold else None, most_dropped),
        raters=raters,
        raters_notes=raters_notes,
        agreement=agreement_measures(ann),
        pairs=pair_table(judge.dependence_),
        pair_matrix=pair_matrix(judge.dependence_),
        confusions=confusions,
        confusion_matrix=confusion_matrix,
        contested=contested_tasks(est, settled),
        methods=methods,
        methods_note=methods_note,
        truth=found,
        posterior=draws,
        settings=_settings(est, scored, settled, source, facts),
    )


def most_refits(ann: Annotations) -> int:
    """Number of raters without whom the default is refitted, unless the user says otherwise."""
    return MANY_REFITS if ann.n_labels <= FEW_LABELS else FEW_REFITS


def _judge(est: Aggregator) -> AutoAggregator:
    """The default, fitted to the same labels without gold."""
    if isinstance(est, AutoAggregator) and not est._has_gold:
        return est
    return AutoAggregator(seed=est.seed).fit(est._annotations)


def _scored_truth(est: Aggregator, truth: Truth) -> pd.Series:
    """The truth of the tasks whose class the fit was not given."""
    known = known_labels(truth, "truth")
    scored = known[~known.index.isin(est._gold.index)]
    if scored.empty:
        raise ValueError(
            "every task of the truth is also in the gold; nothing is left to score"
            if len(known)
            else "the truth has no labels; expected at least one"
        )
    return scored


def _summary(source: str, ann: Annotations) -> str:
    empty = int((ann.labels_per_task == 0).sum())
    sentence = (
        f"{source}: {quantity(ann.n_labels, 'label')} of {quantity(ann.n_tasks, 'task')} by "
        f"{quantity(ann.n_workers, 'rater')}, {quantity(ann.n_classes, 'class', 'classes')}."
    )
    if ann.n_dropped:
        sentence += f" {quantity(ann.n_dropped, 'row')} without a label left out."
    if empty:
        sentence += f" {quantity(empty, 'task')} without any label."
    return sentence


def _posterior_findings(est: Aggregator, posterior: Any) -> tuple[str, pd.DataFrame | None]:
    """What the draws say in words, and the accuracy of each rater."""
    if posterior is None:
        return "", None
    from bayescrowd.posterior.diagnostics import diagnose
    from bayescrowd.posterior.sample import label_posterior
    from bayescrowd.posterior.workers import worker_posterior

    probas = label_posterior(posterior)
    place = _places(probas.index, est.probas_.index)
    if (place < 0).any():
        task = plain(est.probas_.index[int(np.argmax(place < 0))])
        raise ValueError(
            f"the posterior knows nothing of task {task!r}; expected draws given the same labels"
        )
    values = probas.to_numpy()[place]
    labels = _places(probas.columns, pd.Index(est.labels_.to_numpy()))
    same = float((labels == values.argmax(axis=1)).mean())
    model = posterior.attrs.get("model")
    words = (
        f"Draws of the model {model}: the same label as in this report for {same:.1%} of the "
        f"tasks, with a mean probability of {values.max(axis=1).mean():.1%}. "
        f"{diagnose(posterior).verdict}"
    )
    try:
        accuracies = worker_posterior(posterior, probability=LEVEL)
    except ValueError:  # raters have no accuracy in this model
        return words, None
    place = _places(accuracies.index, est.workers_)
    return words, accuracies.iloc[place[place >= 0]].set_axis(est.workers_[place >= 0])


def _places(held: pd.Index, wanted: pd.Index) -> Int[np.ndarray, " wanted"]:
    """Positions of ids among those of the draws, -1 if absent; files hold some ids as text."""
    place = held.get_indexer(wanted)
    if (place < 0).any():
        as_text = held.astype(str).get_indexer(wanted.astype(str))
        place = np.where(place < 0, as_text, place)
    return place


def _settings(
    est: Aggregator, truth: pd.Series | None, settled: float, source: str, facts: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    parameters = ", ".join(f"{name}={value!r}" for name, value in est.get_params().items())
    course = ""
    if est.n_iter_:
        state = "converged" if est.converged_ else "not converged"
        course = f"{state} after {quantity(est.n_iter_, 'iteration')}"
    gold = "none" if not est._has_gold else quantity(len(est._gold), "task")
    versions = {name: _version_of(name) for name in ("numpy", "scipy", "pandas")}
    rows = {
        "labels": source,
        "method": f"{type(est).__name__}({parameters})",
        "what the method says": str(getattr(est, "why_", "")),
        "fit": course,
        "log-likelihood": f"{est.log_likelihood_:,.1f} nats",
        "gold": gold,
        "truth": "none" if truth is None else f"{quantity(len(truth), 'task')}, for scoring only",
        "settled": f"probability of the label at least {settled:.0%}",
        "intervals": f"{LEVEL:.0%}",
        **facts,
        "bayescrowd": __version__,
        "Python": f"{platform.python_version()}, "
        + ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    return tuple((name, value) for name, value in rows.items() if value)


def _version_of(distribution: str) -> str:
    from importlib.metadata import version

    return version(distribution)
