"""Label error on alpha-sparse crowds (Zhao and Zucker, SL, figure 5).

100 workers label 1000 tasks of 3 classes; the first 100 alpha workers have accuracy 0.6, the others
label at random, each with habits of their own. The paper simulates ten crowds for each alpha and
plots the mean, lowest and highest error; it prints no numbers. Components are matched to classes by
votes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from bayescrowd import simulate
from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.majority import MajorityVote
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.experiments.engine.experiment import (
    Cell,
    CellId,
    Claim,
    Experiment,
    Part,
    settings_of,
)
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.spectral.table1 import METHODS as OPT_DS
from bayescrowd.experiments.stagewise.crowds import percent_wrong, stagewise_em, true_model
from bayescrowd.iteration import ignore_not_converged
from bayescrowd.mixture.stagewise_estimator import StagewiseEM

__all__ = ["ALPHAS", "EXPERIMENT", "METHODS"]

ALPHAS = (0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2)
N_SEEDS = 10

TRUE, STAGE, STAGE_S, REFINED = "true model", "Stage-EM", "Stage-EM, S only", "Stage-EM, refined"
MV_EM, SPEC_EM, MV = "MV-EM", "Spec-EM", "MV"
METHODS = (TRUE, STAGE, STAGE_S, REFINED, MV_EM, SPEC_EM, MV)

_ESTIMATORS: dict[str, StagewiseEM | Aggregator] = {
    STAGE: stagewise_em(3),
    STAGE_S: stagewise_em(3, predict_with="informative"),
    REFINED: stagewise_em(3, refine=True),
    MV_EM: DawidSkene(prior="uniform", pseudo_counts=0.0, n_iter=50, tol=0.0),
    SPEC_EM: OPT_DS["Opt-D&S"](0),
    MV: MajorityVote(),
}
_STYLES = {
    TRUE: ("#595959", "--"),
    STAGE: ("#0072B2", "-"),
    STAGE_S: ("#56B4E9", ":"),
    REFINED: ("#009E73", "-."),
    MV_EM: ("#D55E00", "-"),
    SPEC_EM: ("#CC79A7", "-"),
}


def _measure(part: str, seed: int) -> dict[CellId, float]:
    data = simulate.sparse_crowd(alpha=float(part), seed=seed)
    errors = {CellId(TRUE, part): percent_wrong(true_model(data).probas, data)}
    for method, estimator in _ESTIMATORS.items():
        with ignore_not_converged():  # Spec-EM warns if it has to start from votes instead
            probas = estimator.set_params(seed=seed).fit(data.annotations).probas_
        errors[CellId(method, part)] = percent_wrong(probas, data)
    return errors


def _means(outcomes: Sequence[Outcome]) -> dict[str, dict[float, float]]:
    """Mean error over the draws, by method and alpha."""
    means: dict[str, dict[float, float]] = {method: {} for method in METHODS}
    for outcome in outcomes:
        id_ = outcome.cell.id
        means[id_.row][float(id_.column)] = float(np.mean(outcome.values))
    return means


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    means = _means(outcomes)
    best_other = {a: min(means[method][a] for method in (MV_EM, SPEC_EM)) for a in ALPHAS}
    lost = [
        f"{alpha:g}: {means[STAGE][alpha]:.1f} against {best_other[alpha]:.1f}"
        for alpha in ALPHAS
        if means[STAGE][alpha] >= best_other[alpha]
    ]
    sparsest = ALPHAS[0]
    at_sparsest = ", ".join(
        f"{method} {means[method][sparsest]:.1f}" for method in (TRUE, STAGE, MV_EM, SPEC_EM)
    )
    gap = max(means[STAGE][alpha] - means[TRUE][alpha] for alpha in ALPHAS)
    return [
        Claim(
            "stage-EM consistently outperforms the other methods",
            not lost,
            f"not at alpha {'; '.join(lost)} (mean error in %)" if lost else "at every alpha",
        ),
        Claim(
            f"at alpha = {sparsest:g}, stage-EM outperforms the other methods",
            means[STAGE][sparsest] < best_other[sparsest],
            f"mean error in %: {at_sparsest}",
        ),
        Claim(
            "stage-EM stays close to the benchmark for all alpha",
            gap <= 4,
            f"at most {gap:.1f} points above the true model's mean error",
        ),
        Claim(
            "Spec-EM does not work in this sparse setting",
            all(means[SPEC_EM][alpha] > means[MV_EM][alpha] for alpha in ALPHAS[:3]),
            "mean error in % against MV-EM: "
            + "; ".join(
                f"{alpha:g}: {means[SPEC_EM][alpha]:.1f} against {means[MV_EM][alpha]:.1f}"
                for alpha in ALPHAS[:3]
            ),
        ),
    ]


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the mean error against alpha, with bands from the best to the worst draw."""
    by_id = {outcome.cell.id: outcome for outcome in outcomes}
    figure = Figure(figsize=(7, 4.6), dpi=150, layout="constrained")
    axes = figure.subplots()
    for method, (colour, style) in _STYLES.items():
        curve = [by_id[CellId(method, f"{alpha:g}")] for alpha in ALPHAS]
        means = [float(np.mean(outcome.values)) for outcome in curve]
        axes.plot(ALPHAS, means, style, color=colour, label=method, marker="o", markersize=3)
        if method in (STAGE, MV_EM, SPEC_EM):
            spread = np.array([outcome.spread for outcome in curve])
            axes.fill_between(ALPHAS, spread[:, 0], spread[:, -1], color=colour, alpha=0.12)
    axes.set(xlabel="alpha: share of informative workers", ylabel="label error in %")
    axes.set_title("Sparse crowds", loc="left", fontsize="medium", fontweight="bold")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


_SETTINGS = "; ".join(settings_of(estimator) for estimator in _ESTIMATORS.values())

EXPERIMENT = Experiment(
    name="stagewise-figure5",
    title="Label error (%) on sparse crowds (Zhao and Zucker, stagewise EM, figure 5)",
    parts=tuple(Part(f"{alpha:g}", _SETTINGS, is_random=True) for alpha in ALPHAS),
    cells=tuple(
        Cell(
            id=CellId(method, f"{alpha:g}"),
            part=f"{alpha:g}",
            published=None,
            unit="%",
            decimals=1,
            n_items=None,
            reason=None,
        )
        for method in METHODS
        for alpha in ALPHAS
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=(
        "The table shows medians over the draws; claims and picture use means, as the paper does.",
        "Stage-EM predicts with all workers; 'S only' is the paper's prediction with S alone.",
    ),
)
