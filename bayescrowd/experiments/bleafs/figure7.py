"""Error against noise, both models, all data and B-LEAFS data (Nushi et al. 2016, figure 7).

Nursery with five labels per observation, in training and test, and two features. A wrong label is
any other value with equal probability (uniform), or always the value that follows the true one
(biased). Naive Bayes reads the majority of the labels and, of tied values, the one named first;
access path learns what the labels say. B-LEAFS may buy 1,000 labels, which are 200 observations,
and runs with the model it is scored by. The paper prints no errors: the results are compared with
what its text says, and with the means of an independent implementation on a few splits. (Where
seven labels in ten are wrong, uniformly, its access path has .603; the very parameters from which
the labels are drawn have .616 +- .001 on 64 splits.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA
from bayescrowd.budgeted.evaluation.table_crowd import Noise
from bayescrowd.experiments.bleafs.runs import (
    BLEAFS,
    N_SEEDS,
    Labelling,
    close_to,
    load_problem,
    mean_error,
    measure_run,
    panel,
    settings_of,
)
from bayescrowd.experiments.engine.experiment import CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.plots.canvas import BLUE, VERMILLION

__all__ = ["EXPERIMENT", "RATES", "REFERENCE"]

RATES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of wrong labels."""

NOISES: tuple[Noise, ...] = ("uniform", "biased")
MODELS = {"naive Bayes": "naive_bayes", "access path": "access_path"}
BLEAFS_DATA = "B-LEAFS data"
BUDGET, N_FEATURES, N_LABELS = 1000, 2, 5

REFERENCE: dict[str, tuple[float, ...]] = {
    "uniform, naive Bayes, all data": (0.166, 0.190, 0.327, 0.552, 0.637, 0.560, 0.505, 0.481),
    "uniform, access path, all data": (0.166, 0.193, 0.330, 0.554, 0.603, 0.502, 0.364, 0.246),
    "uniform, naive Bayes, B-LEAFS data": (0.265, 0.251, 0.497, 0.671, 0.669, 0.669, 0.613, 0.598),
    "uniform, access path, B-LEAFS data": (0.257, 0.278, 0.459, 0.660, 0.672, 0.622, 0.518, 0.330),
    "biased, naive Bayes, all data": (0.166, 0.205, 0.382, 0.389, 0.283, 0.214, 0.173, 0.166),
    "biased, access path, all data": (0.166, 0.166, 0.171, 0.173, 0.168, 0.166, 0.166, 0.166),
}
"""Means of an independent implementation."""

_TOLERANCE = 0.01
"""Largest difference from the independent implementation, with all data."""

Results = Mapping[CellId, Outcome]


def _measure(part: str, seed: int) -> dict[CellId, float]:
    kind, model, source = part.split(", ")
    noise: Noise = "uniform" if kind == "uniform" else "biased"
    problem = load_problem("nursery")
    values = {}
    for rate in RATES:
        run = measure_run(
            problem,
            ALL_DATA if source == ALL_DATA else BLEAFS,
            budget=BUDGET,
            n_features=N_FEATURES,
            seed=seed,
            labelling=Labelling(MODELS[model], N_LABELS, noise, rate),
        )
        values[CellId(part, f"{rate:g}")] = run.error
    return values


def _row(results: Results, noise: str, model: str, source: str) -> list[Outcome]:
    return [results[CellId(f"{noise}, {model}, {source}", f"{rate:g}")] for rate in RATES]


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    results = {outcome.cell.id: outcome for outcome in outcomes}
    bayes, path = (_row(results, "uniform", model, ALL_DATA) for model in MODELS)
    bayes_bought, path_bought = (_row(results, "uniform", m, BLEAFS_DATA) for m in MODELS)
    biased = _row(results, "biased", "access path", ALL_DATA)
    low = [place for place, rate in enumerate(RATES) if rate < 0.65]
    high = [place for place, rate in enumerate(RATES) if rate > 0.65]
    claims = [
        Claim(
            "uniform noise below .65: both models are equally accurate, all data",
            all(abs(bayes[i].measured - path[i].measured) < 0.02 for i in low),
            _pairs_of_errors(bayes, path, low),
        ),
        Claim(
            "uniform noise above .65: access path reads labels inversely and is better, all data",
            all(path[i].measured < bayes[i].measured for i in high),
            _pairs_of_errors(bayes, path, high),
        ),
        Claim(
            "uniform noise above .65: access path is better with B-LEAFS data, too",
            all(path_bought[i].measured < bayes_bought[i].measured + 0.01 for i in high),
            _pairs_of_errors(bayes_bought, path_bought, high),
        ),
        Claim(
            "biased noise is more difficult to recover than uniform noise, access path, all data",
            any(b.measured > u.measured + 0.01 for b, u in zip(biased, path, strict=True)),
            "biased and uniform: " + _pairs_of_errors(biased, path, range(len(RATES))),
        ),
    ]
    for name, errors in REFERENCE.items():
        row = [results[CellId(name, f"{rate:g}")] for rate in RATES]
        is_all_data = name.endswith(ALL_DATA)
        claims += close_to(
            f"{name}: as in an independent implementation" + (", +-.01" if is_all_data else ""),
            row,
            errors,
            tolerance=_TOLERANCE if is_all_data else None,
        )
    return claims


def _pairs_of_errors(
    one: Sequence[Outcome], other: Sequence[Outcome], places: Sequence[int]
) -> str:
    return ", ".join(
        f"{RATES[i]:g}: {one[i].measured:.3f} and {other[i].measured:.3f}" for i in places
    )


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    results = {outcome.cell.id: outcome for outcome in outcomes}
    figure = Figure(figsize=(11, 4.4), dpi=150, layout="constrained")
    looks = {"naive Bayes": (VERMILLION, "s"), "access path": (BLUE, "o")}
    for ax, noise in zip(figure.subplots(1, 2, sharey=True), NOISES, strict=True):
        for model, (colour, marker) in looks.items():
            for source, dashes in ((ALL_DATA, "-"), (BLEAFS_DATA, "--")):
                row = _row(results, noise, model, source)
                ax.errorbar(
                    RATES,
                    [o.measured for o in row],
                    [0 if len(o.values) < 2 else o.standard_error for o in row],
                    color=colour,
                    marker=marker,
                    linestyle=dashes,
                    markersize=4,
                    linewidth=1.4,
                    label=f"{model}, {source}",
                )
        letter = "ab"[NOISES.index(noise)]
        panel(ax, f"({letter}) nursery, {noise} noise, K = {N_FEATURES}", "share of wrong labels")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
    )
    return figure


_ROWS = tuple(
    f"{noise}, {model}, {source}"
    for noise in NOISES
    for source in (ALL_DATA, BLEAFS_DATA)
    for model in MODELS
)

EXPERIMENT = Experiment(
    name="bleafs-figure7",
    title="Test error against the share of wrong labels, nursery (Nushi et al. 2016, figure 7)",
    parts=tuple(
        Part(
            row,
            settings_of(
                ALL_DATA if row.endswith(ALL_DATA) else BLEAFS,
                row=row,
                rates=RATES,
                B=BUDGET,
                K=N_FEATURES,
                W=N_LABELS,
            ),
            is_random=True,
        )
        for row in _ROWS
    ),
    cells=tuple(mean_error(CellId(row, f"{rate:g}"), row) for row in _ROWS for rate in RATES),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=(
        "Means over paired splits ± standard errors. Naive Bayes reads majorities of 5 labels and,",
        "of tied values, the one named first. At .7, uniform, the true parameters of access path",
        "have .616. Credibility of access path is that of the joint posterior: where .6 to .8 of",
        "the labels are wrong, uniformly, no feature becomes credible and all is spent (16 seeds).",
    ),
    average="mean",
)
