"""Pictures of workers: the confusions of one, a map of all, and estimates against the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.dataset import CrowdParameters
from bayescrowd.data.text import shorten
from bayescrowd.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    axes_or_new,
    tidy,
)

__all__ = ["confusion_matrix", "worker_map", "worker_recovery"]

MAX_WRITTEN_CLASSES = 10
"""With more classes than this, the cells of a confusion matrix are too small for numbers."""

MAX_NAMED_CLASSES = 15
"""With more classes than this, only every second, third, ... class is named along the axes."""

_STYLES = {
    "honest": (BLUE, "o"),
    "informative": (BLUE, "o"),
    "spammer": (ORANGE, "s"),
    "uniform spammer": (ORANGE, "s"),
    "one-class spammer": (PURPLE, "D"),
    "uninformative": (ORANGE, "s"),
    "adversary": (VERMILLION, "v"),
}
"""Colour and marker of each kind of worker, whether known or suspected, in the legends' order."""

_OTHER_STYLE = (GREEN, "^")
_AREA = (14.0, 160.0)
"""Areas of the dots of the least and the most active worker, in points squared."""


@validate_arguments
def confusion_matrix(est: Aggregator, worker: Any, ax: Axes | None = None) -> Axes:
    """P(label given | true class) of one worker.

    Args:
        est: a fitted aggregator.
        worker: the worker's id.
        ax: where to draw.

    Raises:
        ValueError: the fit did not see this worker.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aaa"), list("bba")])
        >>> ax = bc.plots.confusion_matrix(bc.DawidSkene().fit(ann), worker=2)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('label given', 'true class')
    """
    if worker not in est.workers_:
        raise ValueError(
            f"worker {worker!r} is not among the {len(est.workers_):,} workers of the fit"
        )
    ax = axes_or_new(ax, (4.6, 4.4))
    confusion = est.confusion_of(worker).to_numpy()
    quality = est.worker_quality_.loc[worker]
    image = ax.imshow(confusion, cmap="Blues", vmin=0, vmax=1)
    n_classes = len(confusion)
    if n_classes <= MAX_WRITTEN_CLASSES:
        _write_cells(ax, confusion)
    else:
        colours = ax.figure.colorbar(image, ax=ax, format=PercentFormatter(xmax=1))
        colours.set_label("share of the worker's labels")
    named = range(0, n_classes, math.ceil(n_classes / MAX_NAMED_CLASSES))
    names = [shorten(est.classes_[k], 16) for k in named]
    slanted = sum(map(len, names)) > 30
    ax.set_xticks(named, names, rotation=40 if slanted else 0, ha="right" if slanted else "center")
    ax.set_yticks(named, names)
    ax.tick_params(length=0)
    tidy(ax, title=_title(worker, quality), xlabel="label given", ylabel="true class")
    ax.spines[:].set_visible(False)
    return ax


@validate_arguments
def worker_map(est: Aggregator, ax: Axes | None = None) -> Axes:
    """Every worker by accuracy and information, with the flagged ones marked.

    A dot's area grows with the worker's number of labels. The dashed line is the entropy of the
    classes, the most that a label can say. An adversary is on the left and may be high up: labels
    that are wrong in a systematic way say much.

    Args:
        est: a fitted aggregator.
        ax: where to draw.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> ax = bc.plots.worker_map(bc.DawidSkene().fit(data.annotations))
        >>> ax.get_ylabel()
        'information about the true class (nats)'
    """
    ax = axes_or_new(ax)
    quality = est.worker_quality_
    n_labels = quality["n_labels"].to_numpy()
    areas = _areas(n_labels, n_labels)
    handles = []
    for flag, name, kind in (
        ("", "not flagged", "honest"),
        ("spammer", "spammer", "spammer"),
        ("adversary", "adversary", "adversary"),
    ):
        colour, marker = _STYLES[kind]
        chosen = (quality["flag"] == flag).to_numpy()
        if not chosen.any():
            continue
        ax.scatter(
            quality["accuracy"][chosen],
            quality["information"][chosen],
            s=areas[chosen],
            c=colour,
            marker=marker,
            alpha=0.75,
            edgecolors="white",
            linewidths=0.5,
        )
        handles.append(_handle(f"{name} ({chosen.sum():,})", colour, marker))
    priors = est.priors_.to_numpy()
    entropy = float(-(priors * np.log(np.where(priors > 0, priors, 1.0))).sum())
    ax.axhline(entropy, color=GREY, linestyle="--", linewidth=1)
    handles.append(Line2D([], [], color=GREY, linestyle="--", label="most possible"))
    for size in sorted({int(n_labels[n_labels > 0].min()), int(n_labels.max())}):
        area = float(_areas(np.array([size]), n_labels)[0])
        noun = "label" if size == 1 else "labels"
        handles.append(_handle(f"{size:,} {noun}", "lightgrey", "o", np.sqrt(area)))
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.04 * entropy, 1.1 * entropy)
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.grid(color="#EEEEEE")
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0.9), fontsize="small")
    return tidy(
        ax,
        title=f"{len(quality):,} workers",
        xlabel="accuracy (estimated share of right labels)",
        ylabel="information about the true class (nats)",
    )


@validate_arguments
def worker_recovery(est: Aggregator, parameters: CrowdParameters, ax: Axes | None = None) -> Axes:
    """Estimated accuracy of every worker against the true one of a simulated crowd.

    Both are the probability of a right label when the class is drawn from the true prevalence.

    Args:
        est: an aggregator fitted to the simulated labels.
        parameters: the parameters that the crowd was drawn from, `Dataset.parameters`.
        ax: where to draw.

    Raises:
        ValueError: the fit and the parameters differ in their number of workers or classes.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(100, 12, spammers=0.25, seed=0)
        >>> est = bc.DawidSkene().fit(data.annotations)
        >>> ax = bc.plots.worker_recovery(est, data.parameters)
        >>> ax.get_xlabel()
        'true accuracy'
    """
    n_classes = len(est.classes_)
    estimated = est.confusions_.to_numpy().reshape(-1, n_classes, n_classes)
    if estimated.shape != parameters.confusions.shape:
        raise ValueError(
            f"the fit has confusion matrices of shape {estimated.shape}, the parameters of shape "
            f"{parameters.confusions.shape}; expected the crowd that was simulated"
        )
    ax = axes_or_new(ax, (4.8, 4.4))
    true, found = (
        np.einsum("wkk,k->w", c, parameters.prevalence) for c in (parameters.confusions, estimated)
    )
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    present = set(parameters.kinds.tolist())
    for kind in [*(k for k in _STYLES if k in present), *sorted(present - set(_STYLES))]:
        colour, marker = _STYLES.get(kind, _OTHER_STYLE)
        chosen = parameters.kinds == kind
        ax.scatter(
            true[chosen],
            found[chosen],
            s=34,
            c=colour,
            marker=marker,
            alpha=0.75,
            edgecolors="white",
            linewidths=0.5,
            label=f"{kind} ({chosen.sum():,})",
        )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_aspect("equal")
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.grid(color="#EEEEEE")
    ax.legend(loc="upper left", fontsize="small")
    return tidy(
        ax,
        title="Workers: estimate against truth",
        xlabel="true accuracy",
        ylabel="estimated accuracy",
    )


def _write_cells(ax: Axes, confusion: Float[np.ndarray, "cls observed"]) -> None:
    for (true, given), share in np.ndenumerate(confusion):
        text = "" if share < 0.005 else f"{share:.0%}"
        colour = "white" if share > 0.5 else "black"
        ax.text(given, true, text, ha="center", va="center", color=colour, fontsize="small")


def _title(worker: Any, quality: Any) -> str:
    flag = f", {quality['flag']}" if quality["flag"] else ""
    return f"Worker {shorten(worker, 16)}{flag}: {quality['n_labels']:,} labels"


def _areas(
    n_labels: Int[np.ndarray, " worker"], everybody: Int[np.ndarray, " all"]
) -> Float[np.ndarray, " worker"]:
    """Area of each dot: linear in the number of labels, never too small to see."""
    least, most = _AREA
    return least + (most - least) * n_labels / max(int(everybody.max()), 1)


def _handle(label: str, colour: str, marker: str, size: float = 7.0) -> Line2D:
    return Line2D(
        [], [], linestyle="", marker=marker, color=colour, markersize=float(size), label=label
    )
