"""Label error against the threshold on the confusion matrices that EM starts from.

Before EM, Zhang, Chen, Zhou and Jordan (2014) raise those entries of the spectral estimate that are
below a threshold to it, and report that Opt-D&S does better than MV-D&S when the threshold is
appropriate (Collins 2019, section 6, prints no numbers). Here both are treated alike: EM starts
from the spectral estimate, or from the confusion matrices that the majority vote implies; entries
below the threshold are raised to it and rows rescaled to sum to one; and the error is reported
after one update of EM and after ten. An update is an M-step and an E-step, following the E-step
with the starting matrices. (MV-D&S of `spectral.table1` counts the votes' own matrices as the first
M-step.) Opt-D&S is reported as the median over partitions of the workers, one per seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.majority import MajorityVote
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.aggregation.spectral.estimator import SpectralDawidSkene
from bayescrowd.experiments.engine.experiment import (
    Cell,
    CellId,
    Claim,
    Experiment,
    Part,
    settings_of,
)
from bayescrowd.experiments.engine.label_errors import (
    CROWDS,
    Crowd,
    fitted_probas,
    label_error,
    loaded_crowd,
)
from bayescrowd.experiments.engine.outcome import Outcome

__all__ = ["EXPERIMENT", "N_UPDATES", "THRESHOLDS", "raise_entries"]

THRESHOLDS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
N_UPDATES = (1, 10)
N_SEEDS = 20

_EM: dict[str, Any] = {"prior": "uniform", "pseudo_counts": 0.0, "zeros": "skip", "tol": 0.0}
"""The settings of EM in the authors' program."""

_METHODS = ("Opt-D&S", "MV-D&S")
_COLOURS = {"Opt-D&S": "#1f5a96", "MV-D&S": "#c2571a"}


def raise_entries(confusions: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Raise entries below the threshold to it, and rescale the rows to sum to one.

    Examples:
        >>> raise_entries(pd.DataFrame({"a": [1.0, 0.5], "b": [0.0, 0.5]}), 0.25)
             a    b
        0  0.8  0.2
        1  0.5  0.5
    """
    raised = confusions.clip(lower=threshold)
    return raised.div(raised.sum(axis=1), axis=0)


def _opt_ds(threshold: float, n_iter: int, seed: int) -> Aggregator:
    return SpectralDawidSkene(start="spectral", clip=threshold, n_iter=n_iter, seed=seed, **_EM)


def _mv_ds(start: pd.DataFrame | str, n_iter: int) -> Aggregator:
    # A start given as text is for an estimator whose settings are written out and never fitted.
    return DawidSkene(init=start, n_iter=n_iter, **_EM)  # type: ignore[arg-type]


_PARTS = {
    f"{crowd.title}, {method}, {threshold:g}": (crowd, method, threshold)
    for crowd in CROWDS
    for method in _METHODS
    for threshold in THRESHOLDS
}


def _measure(part: str, seed: int) -> dict[CellId, float]:
    crowd, method, threshold = _PARTS[part]
    ann = loaded_crowd(crowd.name).annotations
    errors = {}
    for n_iter in N_UPDATES:
        if method == "Opt-D&S":
            estimator = _opt_ds(threshold, n_iter, seed)
        else:
            votes = MajorityVote().fit(ann).confusions_
            estimator = _mv_ds(raise_entries(votes, threshold), n_iter)
        id_ = _id(crowd, method, n_iter, threshold)
        errors[id_] = label_error(fitted_probas(estimator, ann), crowd.name)
    return errors


def _id(crowd: Crowd, method: str, n_iter: int, threshold: float) -> CellId:
    updates = "1 update" if n_iter == 1 else f"{n_iter} updates"
    return CellId(f"{crowd.title}, {method}, {updates}", f"{threshold:g}")


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}
    claims = []
    for crowd in CROWDS:
        best = {
            method: min(
                (measured[_id(crowd, method, N_UPDATES[-1], threshold)], threshold)
                for threshold in THRESHOLDS
            )
            for method in _METHODS
        }
        evidence = [f"{method} {error:.2f} % at {at:g}" for method, (error, at) in best.items()]
        claims.append(
            Claim(
                text=f"{crowd.title}: at the best threshold, Opt-D&S has a lower error than MV-D&S",
                holds=best["Opt-D&S"][0] < best["MV-D&S"][0],
                evidence=", ".join(evidence),
            )
        )
    return claims


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw one panel per crowd; bands span the quartiles over the seeds."""
    by_id = {outcome.cell.id: outcome for outcome in outcomes}
    figure = Figure(figsize=(13, 3.4), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(CROWDS))
    for axes, crowd in zip(panels, CROWDS, strict=True):
        for method in _METHODS:
            for n_iter in N_UPDATES:
                ids = [_id(crowd, method, n_iter, threshold) for threshold in THRESHOLDS]
                _draw_curve(axes, [by_id[id_] for id_ in ids], method, n_iter)
        axes.set(xscale="log", title=crowd.title, xlabel="threshold")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("label error in %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_curve(axes: Axes, curve: Sequence[Outcome], method: str, n_iter: int) -> None:
    style = "-" if n_iter == N_UPDATES[-1] else ":"
    label = curve[0].cell.id.row.partition(", ")[2]
    colour = _COLOURS[method]
    values = [outcome.measured for outcome in curve]
    axes.plot(THRESHOLDS, values, style, marker="o", markersize=3, color=colour, label=label)
    quartiles = np.array([outcome.spread[1:3] for outcome in curve])
    axes.fill_between(THRESHOLDS, *quartiles.T, color=colour, alpha=0.15, linewidth=0)


def _settings(method: str, threshold: float) -> str:
    if method == "MV-D&S":
        settings = settings_of(_mv_ds("majority", N_UPDATES[-1]))
        settings = settings.replace("'majority'", "votes' matrices, raised")
    else:
        settings = settings_of(_opt_ds(threshold, N_UPDATES[-1], 0))
    updates = " and ".join(map(str, N_UPDATES))
    return f"{settings}, n_iter {updates}"


EXPERIMENT = Experiment(
    name="spectral-clip",
    title="Label error (%) against the threshold on the starting confusion matrices",
    parts=tuple(
        Part(name, _settings(method, threshold), is_random=method == "Opt-D&S")
        for name, (_, method, threshold) in _PARTS.items()
    ),
    cells=tuple(
        Cell(
            id=_id(crowd, method, n_iter, threshold),
            part=name,
            published=None,
            unit="%",
            decimals=2,
            n_items=crowd.n_scored,
            reason=None,
        )
        for name, (crowd, method, threshold) in _PARTS.items()
        for n_iter in N_UPDATES
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=("The best thresholds are found with the truth; they cannot be chosen without it.",),
)
