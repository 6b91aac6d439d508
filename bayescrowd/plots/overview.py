"""Several pictures in one figure."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure, SubFigure

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.dataset import Dataset
from bayescrowd.plots.fits import method_comparison
from bayescrowd.plots.tasks import label_uncertainty, reliability
from bayescrowd.plots.workers import confusion_matrix, worker_map, worker_recovery

__all__ = ["demo"]


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
