"""The progress of stagewise EM on a sparse crowd (Zhao and Zucker, SL, figure 3).

100 workers label 1000 tasks of 3 classes; 30 of them have accuracies that fall from 0.7 to 0.45,
the others label at random. For one draw and 20 iterations, the figure shows the log-likelihood per
task, the largest conditional information and the size of the informative set S, beside the values
of the true model. Here every seed is a draw, and the paper's rule for splitting is compared with
ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from bayescrowd.data.features import as_feature_table
from bayescrowd.experiments.engine.experiment import (
    Cell,
    CellId,
    Claim,
    Experiment,
    Part,
    settings_of,
)
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.stagewise.crowds import (
    figure3_crowd,
    percent_wrong,
    stagewise_em,
    true_model,
)
from bayescrowd.iteration import ignore_not_converged
from bayescrowd.mixture.pair_information import PairInformation

__all__ = ["EXPERIMENT", "N_ITER"]

N_ITER = 20
N_SEEDS = 20

COURSES = {
    "log-likelihood": "log_likelihood",
    "max norm": "max_information",
    "size of S": "n_informative",
}
"""The column of the history that each panel of the figure shows."""

TRUE, END = "true model", "end"
ERRORS = ("error, S only", "error", "error, refined", "error, true model")
PRINTED = "components, printed rule"


def _measure(part: str, seed: int) -> dict[CellId, float]:
    data = figure3_crowd(seed)
    ann, truth = data.annotations, true_model(data)
    fits = {
        "error, S only": stagewise_em(3, predict_with="informative").fit(ann),
        "error": stagewise_em(3).fit(ann),
        "error, refined": stagewise_em(3, refine=True).fit(ann),
    }
    history = fits["error"].history_
    courses = {panel: history[column].to_numpy(dtype=float) for panel, column in COURSES.items()}
    courses["log-likelihood"] = courses["log-likelihood"] / ann.n_tasks
    values = {
        CellId(panel, str(iteration)): float(course[iteration])
        for panel, course in courses.items()
        for iteration in range(N_ITER + 1)
    }
    pairs = PairInformation(as_feature_table(ann))
    values[CellId("log-likelihood", TRUE)] = truth.log_likelihood
    values[CellId("max norm", TRUE)] = pairs.scan(truth.probas.to_numpy()).max_norm
    for row, est in fits.items():
        values[CellId(row, END)] = percent_wrong(est.probas_, data)
    values[CellId("error, true model", END)] = percent_wrong(truth.probas, data)
    with ignore_not_converged():  # whether it gets stuck is what is measured
        printed = stagewise_em(3, split="printed").fit(ann)
    values[CellId(PRINTED, END)] = float(printed.history_["n_components"].iloc[-1])
    return values


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    values = {outcome.cell.id: np.array(outcome.values) for outcome in outcomes}
    likelihood, reference = (
        values[CellId("log-likelihood", column)] for column in (str(N_ITER), TRUE)
    )
    at_ten = values[CellId("log-likelihood", "10")]
    norms = [values[CellId("max norm", column)] for column in ("0", str(N_ITER), TRUE)]
    size = values[CellId("size of S", str(N_ITER))]
    refined, best = (values[CellId(row, END)] for row in ERRORS[2:])
    n_components = values[CellId(PRINTED, END)]
    n_draws = len(size)
    return [
        Claim(
            "the log-likelihood reaches that of the true model",
            bool((likelihood >= reference).all()),
            f"in {(likelihood >= reference).sum()} of {n_draws} draws",
        ),
        Claim(
            "the algorithm converges within 10 iterations",
            bool((at_ten >= reference).all()),
            "it has reached the log-likelihood of the true model by then in "
            f"{(at_ten >= reference).sum()} of {n_draws} draws",
        ),
        Claim(
            "the max norm of the conditional information falls towards 0",
            bool((norms[1] < norms[0] / 3).all()),
            f"mean from {norms[0].mean():.3f} to {norms[1].mean():.3f} nats; the true model has "
            f"{norms[2].mean():.3f}",
        ),
        Claim(
            "|S| < 10",
            bool((size < 10).all()),
            f"{size.min():.0f} to {size.max():.0f}, median {np.median(size):.0f}; the set that the "
            "paper prints has 10 members",
        ),
        Claim(
            "|S| is at most 15",
            bool((size <= 15).all()),
            f"{size.min():.0f} to {size.max():.0f}",
        ),
        Claim(
            "after refinement the mean error is at most 0.5 points above the true model's",
            bool(refined.mean() <= best.mean() + 0.5),
            f"{refined.mean():.2f} against {best.mean():.2f} %; largest difference in one draw "
            f"{(refined - best).max():+.2f}",
        ),
        Claim(
            "the printed rule finds all components",
            bool((n_components == 3).all()),
            f"in {(n_components == 3).sum()} of {n_draws} draws; splitting as long as components "
            "are missing finds them in all",
        ),
    ]


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the first draw as a line, its true model dashed, and a band over comparable draws."""
    values = {outcome.cell.id: np.array(outcome.values) for outcome in outcomes}
    iterations = np.arange(N_ITER + 1)
    figure = Figure(figsize=(11, 3.4), dpi=150, layout="constrained")
    units = ("nats per task", "nats", "workers")
    for axes, panel, unit in zip(figure.subplots(1, 3), COURSES, units, strict=True):
        courses = np.array([values[CellId(panel, str(t))] for t in iterations])
        if panel != "log-likelihood":  # likelihoods of different labels cannot be compared
            axes.fill_between(
                iterations, courses.min(axis=1), courses.max(axis=1), color="#0072B2", alpha=0.15
            )
        axes.plot(iterations, courses[:, 0], color="#0072B2", marker="o", markersize=3)
        if panel != "size of S":
            axes.axhline(values[CellId(panel, TRUE)][0], color="#595959", linestyle="--")
        axes.set(xlabel="iteration", ylabel=unit, xticks=range(0, N_ITER + 1, 5))
        axes.set_title(panel, loc="left", fontsize="medium", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _cell(row: str, column: str) -> Cell:
    is_whole = row in ("size of S", PRINTED)
    return Cell(
        id=CellId(row, column),
        part="draw",
        published=None,
        unit="" if is_whole else "%" if row in ERRORS else "nats",
        decimals=0 if is_whole else 4 if row == "max norm" else 2,
        n_items=None,
        reason=None,
    )


EXPERIMENT = Experiment(
    name="stagewise-figure3",
    title="Progress of stagewise EM on a sparse crowd (Zhao and Zucker, stagewise EM, figure 3)",
    parts=(Part("draw", settings_of(stagewise_em(3)), is_random=True),),
    cells=tuple(
        _cell(row, column)
        for row, columns in {
            "log-likelihood": [*map(str, range(N_ITER + 1)), TRUE],
            "max norm": [*map(str, range(N_ITER + 1)), TRUE],
            "size of S": [*map(str, range(N_ITER + 1))],
            **{row: [END] for row in (*ERRORS, PRINTED)},
        }.items()
        for column in columns
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=("The table shows medians over the draws; errors are in %.",),
)
