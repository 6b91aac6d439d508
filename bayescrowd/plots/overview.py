"""Several pictures in one figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure, SubFigure

from bayescrowd import metrics
from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.dataset import Dataset
from bayescrowd.data.text import quantity
from bayescrowd.plots.fits import method_comparison, pool_scores
from bayescrowd.plots.tasks import SURE, label_uncertainty, reliability
from bayescrowd.plots.workers import confusion_matrix, worker_map, worker_recovery

__all__ = ["aggregation_overview", "demo"]


@validate_arguments
def aggregation_overview(
    est: Aggregator,
    *,
    truth: pd.Series | Mapping[Any, Any] | None = None,
    fig: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """A fit in two or three pictures: the workers, how sure the labels are, and whether rightly so.

    With the truth, the third picture shows how often labels are right, by their probability;
    without it, how well the models of the default predict held-out labels. Other methods have no
    third picture then.

    Args:
        est: a fitted aggregator.
        truth: true class by task, if known.
        fig: where to draw; by default a new figure outside pyplot.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> fig = bc.plots.aggregation_overview(bc.DawidSkene().fit(data.annotations))
        >>> [ax.get_title(loc="left") for ax in fig.axes]
        ['12 workers', '85% of 100 labels are at least 95% sure']
    """
    has_third = truth is not None or isinstance(est, AutoAggregator)
    if fig is None:
        fig = Figure(figsize=(16 if has_third else 11, 4.8), dpi=110, layout="constrained")
    axes = fig.subplots(1, 3 if has_third else 2)
    worker_map(est, axes[0])
    label_uncertainty(est, axes[1])
    n_flagged = int((est.worker_quality_["flag"] != "").sum())
    n_sure = int((est.probas_.max(axis=1) >= SURE).sum())
    title = (
        f"{n_flagged:,} of {quantity(len(est.workers_), 'worker')} flagged, {n_sure:,} of "
        f"{quantity(len(est.labels_), 'label')} at least {SURE:.0%} sure"
    )
    if truth is not None:
        reliability(est.probas_, truth, axes[2])
        title += f", {metrics.accuracy(est.probas_, truth):.1%} right where the truth is known"
    elif isinstance(est, AutoAggregator):
        pool_scores(est, axes[2])
    fig.suptitle(title, fontsize="large")
    return fig


@validate_arguments
def demo(
    data: Dataset,
    fitted: Mapping[str, Aggregator],
    table: pd.DataFrame,
    *,
    best: str,
    reference: float | None = None,
    fig: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """What methods make of a simulated crowd, in six panels.

    Args:
        data: a simulated crowd, with its truth and parameters.
        fitted: the fitted aggregators by name; the first is compared with the best.
        table: indexed by method, with a column `accuracy`.
        best: name of the aggregator whose labels and workers are drawn.
        reference: accuracy of the labels under the true parameters.
        fig: where to draw; by default a new figure outside pyplot.

    Raises:
        ValueError: the data are not simulated.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> fitted = {"vote": bc.MajorityVote(), "EM": bc.DawidSkene()}
        >>> scores = [bc.metrics.accuracy(e.fit(data.annotations).probas_, data.truth)
        ...           for e in fitted.values()]
        >>> table = pd.DataFrame({"accuracy": scores}, index=list(fitted))
        >>> len(bc.plots.demo(data, fitted, table, best="EM").axes)
        6
    """
    if data.parameters is None or data.truth is None:
        raise ValueError(f"{data.name}: expected a simulated crowd, whose truth is known")
    if fig is None:
        fig = Figure(figsize=(14, 8.4), dpi=110, layout="constrained")
    est = fitted[best]
    first = next(iter(fitted))
    panels = fig.subplots(2, 3)
    method_comparison(table, panels[0, 0], reference=reference)
    curves = {name: fitted[name].probas_ for name in dict.fromkeys([first, best])}
    reliability(curves, data.truth, panels[0, 1])
    label_uncertainty(est, panels[0, 2])
    worker_map(est, panels[1, 0])
    worker_recovery(est, data.parameters, panels[1, 1])
    confusion_matrix(est, est.worker_quality_["accuracy"].idxmin(), panels[1, 2])
    fig.suptitle(
        f"{data.annotations.n_labels:,} labels by {data.annotations.n_workers:,} simulated "
        f"workers; labels and workers as {best} sees them",
        fontsize="large",
    )
    return fig
