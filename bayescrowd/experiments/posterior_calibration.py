"""Are the stated probabilities of labels right? EM and posteriors on three public crowds.

EM finds one best confusion matrix per worker and reasons as if it were known; a posterior averages
over everything that the labels leave open. Four measures score the labels' probabilities against
the truth; smaller is better:

- error: the expected share of wrong labels;
- log loss: the mean negative log probability of the truth, in nats; a certain mistake costs up
  to 36;
- ECE: the expected calibration error of the decided label (Guo et al. 2017, eq. 3), in 15 equally
  wide bins of its probability: the mean over tasks of |share of right labels - mean probability|
  of the task's bin;
- KS: the same without bins, as a Kolmogorov-Smirnov distance (Gupta et al. 2021, "Calibration of
  neural networks using splines", eq. 5): the largest absolute sum, over the tasks up to any
  probability, of (right - probability), divided by the number of tasks.

Gains over EM are reported with standard errors from resampling tasks, the same ones for both
methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.figure import Figure

from bayescrowd import metrics
from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.majority import MajorityVote
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.predictions import TIE_TOLERANCE
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.label_errors import loaded_crowd
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.plots.canvas import BLUE, GREY, PALE, tidy

__all__ = ["EXPERIMENT", "Calibration", "calibration_of", "gain_error", "posterior_probas"]

CROWDS = ("rte", "trec", "dog")

EM = "EM"
"""The baseline: Dawid–Skene with the package's defaults."""

BAYESIAN = ("Gibbs", "Gibbs, pooled")
"""Rows that average over what is not known about the workers."""

N_DRAWS = 500
N_CHAINS = 4
N_RESAMPLES = 1_000
LABELS = {"error": "%", "log loss": "nats", "ECE": "%", "KS": "%"}
"""The measures, each with its unit."""
GAIN_ERROR = "ECE gain, s.e."
RHAT = "worst R-hat"


class Calibration(NamedTuple):
    """The decided label of each scored task, and the scores that follow from them."""

    confidence: Float[np.ndarray, " task"]
    """Probability of the decided label."""
    right: Float[np.ndarray, " task"]
    """Whether the label is right; the probability of that where several labels tie."""
    error: float
    """Expected share of wrong labels."""
    log_loss: float
    """Mean negative log probability of the truth, nats."""
    ece: float
    """Expected calibration error."""
    ks: float
    """Kolmogorov-Smirnov calibration error."""


def calibration_of(probas: pd.DataFrame, truth: pd.Series) -> Calibration:
    """Score probabilities against the truth.

    Args:
        probas: probabilities, tasks x classes.
        truth: true class by task.

    Examples:
        Four labels have a probability of 75 %, and two of them are right:

        >>> import pandas as pd
        >>> probas = pd.DataFrame({"a": [0.75] * 4, "b": [0.25] * 4})
        >>> found = calibration_of(probas, pd.Series(list("aabb")))
        >>> found.ece, found.ks
        (0.25, 0.25)
    """
    values = probas.reindex(truth.index).to_numpy(dtype=float)
    largest = values.max(axis=1)
    tied: Bool[np.ndarray, "task cls"] = values >= largest[:, None] * (1 - TIE_TOLERANCE)
    true = probas.columns.get_indexer(pd.Index(truth))
    right = tied[np.arange(len(true)), true] / tied.sum(axis=1)
    return Calibration(
        confidence=largest,
        right=right,
        error=metrics.error_rate(probas, truth),
        log_loss=metrics.log_loss(probas, truth),
        ece=metrics.expected_calibration_error(probas, truth),
        ks=_ks(largest, right),
    )


def gain_error(one: Calibration, other: Calibration, *, seed: int) -> float:
    """Bootstrap standard error of the difference of two calibration errors on the same tasks."""
    rng = np.random.default_rng(seed)
    n_tasks = len(one.right)
    gains = []
    for _ in range(N_RESAMPLES):
        tasks = rng.integers(n_tasks, size=n_tasks)
        first, second = (
            _ece(found.confidence[tasks], found.right[tasks]) for found in (one, other)
        )
        gains.append(first - second)
    return float(np.std(gains))


def posterior_probas(
    model: ModuleType, annotations: Annotations, *, seed: int, **options: Any
) -> tuple[pd.DataFrame, float]:
    """Label probabilities by Gibbs sampling, and the worst R-hat of the draws."""
    from bayescrowd.posterior.diagnostics import diagnose
    from bayescrowd.posterior.sample import label_posterior, sample_posterior

    post = sample_posterior(
        model,
        annotations,
        "gibbs",
        seed=seed,
        log_likelihood=False,
        predictive=False,
        progress=False,
        **options,
    )
    probas = label_posterior(post).set_axis(annotations.tasks).set_axis(annotations.classes, axis=1)
    return probas, diagnose(post).rhat


def _by_gibbs(name: str) -> Callable[[Annotations, int], tuple[pd.DataFrame, float | None]]:
    def probas(ann: Annotations, seed: int) -> tuple[pd.DataFrame, float | None]:
        from bayescrowd import models

        model = getattr(models, name)
        return posterior_probas(model, ann, seed=seed, chains=N_CHAINS, draws=N_DRAWS)

    return probas


_METHODS: dict[str, Callable[[Annotations, int], tuple[pd.DataFrame, float | None]]] = {
    "majority vote": lambda ann, seed: (MajorityVote(seed=seed).fit(ann).probas_, None),
    "EM, no smoothing": lambda ann, seed: (
        DawidSkene(pseudo_counts=0.0, seed=seed).fit(ann).probas_,
        None,
    ),
    EM: lambda ann, seed: (DawidSkene(seed=seed).fit(ann).probas_, None),
    "Gibbs": _by_gibbs("dawid_skene"),
    "Gibbs, pooled": _by_gibbs("hierarchical_dawid_skene"),
}


def _measure(crowd: str, seed: int) -> dict[CellId, float]:
    data = loaded_crowd(crowd)
    if data.truth is None:
        raise ValueError(f"{crowd} has no truth to score by")
    found: dict[str, Calibration] = {}
    cells: dict[CellId, float] = {}
    for method, probas_of in _METHODS.items():
        probas, rhat = probas_of(data.annotations, seed)
        found[method] = score = calibration_of(probas, data.truth)
        values = (100 * score.error, score.log_loss, 100 * score.ece, 100 * score.ks)
        row = _row(crowd, method)
        cells |= {CellId(row, name): value for name, value in zip(LABELS, values, strict=True)}
        if rhat is not None:
            cells[CellId(row, GAIN_ERROR)] = 100 * gain_error(score, found[EM], seed=seed)
            cells[CellId(row, RHAT)] = rhat
    return cells


def _row(crowd: str, method: str) -> str:
    return f"{crowd}: {method}"


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}
    claims = []
    for crowd in CROWDS:
        for method in BAYESIAN:
            ours, em = (
                {name: measured[CellId(_row(crowd, row), name)] for name in LABELS}
                for row in (method, EM)
            )
            spread = measured[CellId(_row(crowd, method), GAIN_ERROR)]
            scores = ", ".join(
                f"{name} {ours[name]:.2f} against {em[name]:.2f} {unit}"
                for name, unit in LABELS.items()
            )
            gain = f"{em['ECE'] - ours['ECE']:.2f} ± {spread:.2f} %"
            claims.append(
                Claim(
                    text=f"{crowd}: {method} is better calibrated than EM",
                    holds=all(ours[name] < em[name] for name in ("log loss", "ECE", "KS")),
                    evidence=f"{scores}; gain in ECE {gain}",
                )
            )
    return claims


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw ECE and log loss, with one panel per crowd and measure."""
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}
    figure = Figure(figsize=(10, 4.6), dpi=150, layout="constrained")
    panels = figure.subplots(2, len(CROWDS), sharey=True)
    rows = np.arange(len(_METHODS))
    for column, crowd in enumerate(CROWDS):
        for ax, name in zip(panels[:, column], ("ECE", "log loss"), strict=True):
            values = [measured[CellId(_row(crowd, method), name)] for method in _METHODS]
            ax.hlines(rows, 0, values, color=PALE, linewidth=1)
            colours = [BLUE if method in BAYESIAN else GREY for method in _METHODS]
            ax.scatter(values, rows, color=colours, s=36, zorder=3)
            ax.set_xlim(0, 1.15 * max(values))
            unit = LABELS[name]
            tidy(ax, title=crowd if name == "ECE" else "", xlabel=f"{name} ({unit})", ylabel="")
            ax.set_yticks(rows, list(_METHODS))
    panels[0, 0].invert_yaxis()
    return figure


def _ks(confidence: Float[np.ndarray, " task"], right: Float[np.ndarray, " task"]) -> float:
    # Tasks of equal probability belong together: only sums over all of them count.
    frame = pd.DataFrame({"gap": right - confidence}).groupby(np.round(confidence, 9)).sum()
    return float(np.abs(frame["gap"].cumsum()).max() / len(right))


def _ece(confidence: Float[np.ndarray, " task"], right: Float[np.ndarray, " task"]) -> float:
    """The same as `metrics.expected_calibration_error`, from arrays."""
    bins = np.minimum(np.ceil(confidence * metrics.N_BINS - 1e-9).astype(int), metrics.N_BINS)
    return float(np.abs(np.bincount(bins, right - confidence)).sum() / len(right))


def _cells(crowd: str) -> list[Cell]:
    cells = []
    for method in _METHODS:
        columns = dict(LABELS)
        if method in BAYESIAN:
            columns |= {GAIN_ERROR: "%", RHAT: ""}
        cells += [
            Cell(
                id=CellId(_row(crowd, method), column),
                part=crowd,
                published=None,
                unit=unit,
                decimals=3 if column in ("log loss", RHAT) else 2,
                n_items=None,
                reason=None,
            )
            for column, unit in columns.items()
        ]
    return cells


EXPERIMENT = Experiment(
    name="posterior-calibration",
    title="Calibration of label probabilities by EM and by Gibbs sampling (error, ECE, KS in %)",
    parts=tuple(
        Part(
            crowd,
            f"defaults of the estimators and models; {N_CHAINS} chains of {N_DRAWS} draws; "
            f"{metrics.N_BINS} bins",
            is_random=True,
        )
        for crowd in CROWDS
    ),
    cells=tuple(cell for crowd in CROWDS for cell in _cells(crowd)),
    measure=_measure,
    draw=_draw,
    claims=_claims,
    notes=(
        (
            f"ECE: {metrics.N_BINS} equally wide bins of the decided label's probability "
            "(Guo et al. 2017). KS: the same without bins (Gupta et al. 2021)."
        ),
        (
            "Where the worst R-hat is well above 1.01, the chains sit in different modes, and the "
            "probabilities are averages over these."
        ),
    ),
)
