"""A run of B-LEAFS on nursery, B = 200 and K = 4 (Nushi et al. 2016, table 1 and example 2).

The paper shows a single run: how often it observed each feature, and that it recovers the features
{X1, X2, X4, X8}, the choice of a model trained with all data. This module measures means over runs
in the same setting, for all readings of what the paper leaves open, for its baselines and for all
data. The published set is not the choice of all data in the order of UCI's columns, on any split.
Nor does the published run keep within the budgets of the searches, however they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA
from bayescrowd.budgeted.evaluation.paired_runs import Factory, Run
from bayescrowd.budgeted.policies.bleafs import BLeafs
from bayescrowd.experiments.bleafs.runs import (
    BLEAFS,
    N_SEEDS,
    POLICIES,
    close_to,
    draw_errors,
    draw_observations,
    features_by_number,
    load_problem,
    measure_run,
    settings_of,
)
from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome

__all__ = ["EXPERIMENT", "OBSERVATIONS", "REFERENCE", "SEARCHES", "allowed_by_reading"]

BUDGET, N_FEATURES = 200, 4
FEATURES = tuple(f"X{place}" for place in range(1, 9))
SEARCHES = (
    (4, 5, 7, 5, 3, 6, 2, 28),
    (20, 34, 14, 14, 13, 10, 12, 28),
    (36, 34, 16, 19, 16, 13, 15, 28),
    (36, 34, 19, 32, 20, 13, 18, 28),
)
"""Published numbers of observations of each feature after each search."""

OBSERVATIONS = SEARCHES[-1]
"""Published numbers of observations after the last search."""

OPTIMUM, ALL_DATA_CHOICE, INNER = ("X1", "X2", "X4", "X8"), ("X1", "X2", "X7", "X8"), ("X2", "X8")

ROWS: dict[str, Factory] = {
    BLEAFS: BLeafs,
    "B-LEAFS, no carry": partial(BLeafs, carry=False),
    "B-LEAFS, delta_U": partial(BLeafs, delta="upper"),
    "B-LEAFS, printed delta": partial(BLeafs, delta="printed"),
    "B-LEAFS, pick and revisit": partial(BLeafs, pick="posterior-mean", revisit=True),
    **{name: policy for name, policy in POLICIES.items() if name != BLEAFS},
}
"""The policies, with all readings of B-LEAFS."""

REFERENCE = {
    BLEAFS: (0.287, 185),
    "B-LEAFS, no carry": (0.292, 160),
    "B-LEAFS, delta_U": (0.265, 197),
    "B-LEAFS, printed delta": (0.264, 200),
    "RoundRobin": (0.285, 200),
    "BiasedRobin": (0.248, 200),
    "TsGreedy": (0.246, 200),
}
"""Mean error and spending of an independent implementation, 64 splits."""

ERROR, SPENT = "error", "spent"
_SETS = {"{1,2,4,8}": OPTIMUM, "{1,2,7,8}": ALL_DATA_CHOICE, "has {2,8}": INNER}

_ONE_RUN = "the paper shows one run, these are means"
_OTHER_DELTA = f"{_ONE_RUN}; with delta_U, runs reach the published numbers of all features"
_NOT_OPTIMAL = "all data choose {8,2,1,7} in the order of UCI's columns"


def _measure(part: str, seed: int) -> dict[CellId, float]:
    run = measure_run(
        load_problem("nursery"),
        part,
        budget=BUDGET,
        n_features=N_FEATURES,
        seed=seed,
        policies=ROWS,
    )
    return _values(part, run)


def _values(row: str, run: Run) -> dict[CellId, float]:
    number = features_by_number(load_problem("nursery").space)
    selected = {number[name] for name in run.selected}
    values = {CellId(row, ERROR): run.error}
    for column, members in _SETS.items():
        is_subset = column.startswith("has")
        values[CellId(row, column)] = 100.0 * (
            selected >= set(members) if is_subset else selected == set(members)
        )
    if row != ALL_DATA:
        values[CellId(row, SPENT)] = run.spent
    if row == BLEAFS:
        values |= {CellId(row, f"n({number[f]})"): n for f, n in run.observations.items()}
    return values


def allowed_by_reading() -> dict[str, list[int]]:
    """What the published run may have spent by the end of each search, under each reading."""
    spent = [sum(counts) for counts in SEARCHES]
    before = [0, *spent[:-1]]
    halves = [
        min(k, N_FEATURES - 1) for k in range(1, N_FEATURES + 1)
    ]  # the last has the share of the one before
    shares = [BUDGET // 2**k for k in halves]
    return {
        "shares of B": [s + share for s, share in zip(before, shares, strict=True)],
        "shares of what is left of B": [
            s + (BUDGET - s) // 2**k for s, k in zip(before, halves, strict=True)
        ],
        "shares of B, leftovers carried": [sum(shares[:k]) for k in range(1, N_FEATURES + 1)],
    }


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    results = {outcome.cell.id: outcome for outcome in outcomes}
    optimum = results[CellId(ALL_DATA, "{1,2,4,8}")].measured
    chosen = results[CellId(ALL_DATA, "{1,2,7,8}")].measured
    recovered = results[CellId(BLEAFS, "has {2,8}")].measured
    by_feature = {f: results[CellId(BLEAFS, f"n({f})")].measured for f in FEATURES}
    most = sorted(by_feature, key=lambda f: -by_feature[f])[:4]
    claims = [
        Claim(
            "{X1,X2,X4,X8} is what all data select",
            optimum > 50,
            f"{optimum:.0f} % of the splits; {{X1,X2,X7,X8}} {chosen:.0f} %",
        ),
        Claim(
            "B-LEAFS recovers the two most informative features, X8 and X2",
            recovered > 80,
            f"{recovered:.0f} % of the runs",
        ),
        Claim(
            "B-LEAFS recovers {X1,X2,X4,X8}",
            results[CellId(BLEAFS, "{1,2,4,8}")].measured > 50,
            f"{results[CellId(BLEAFS, '{1,2,4,8}')].measured:.0f} % of the runs",
        ),
        Claim(
            "most of the budget goes to the features X1, X2, X4 and X8",
            set(most) == set(OPTIMUM),
            f"most observed: {', '.join(most)}",
        ),
        _within_budgets(),
        *close_to(
            "all data, K=4: an error of 0.124, +-0.005",
            [results[CellId(ALL_DATA, ERROR)]],
            [0.124],
            tolerance=0.005,
        ),
    ]
    for row, (error, spent) in REFERENCE.items():
        claims += close_to(
            f"{row}: error as in an independent implementation",
            [results[CellId(row, ERROR)]],
            [error],
        )
        claims += close_to(
            f"{row}: spending as there, +-5", [results[CellId(row, SPENT)]], [spent], tolerance=5
        )
    return claims


def _within_budgets() -> Claim:
    """Claim that some reading of b_k allows what the published run spends."""
    spent = [sum(counts) for counts in SEARCHES]
    excesses, holds = [], False
    for reading, allowed in allowed_by_reading().items():
        broken = [k for k, (s, most) in enumerate(zip(spent, allowed, strict=True)) if s > most]
        holds |= not broken
        if broken:
            k = broken[0]
            excesses.append(
                f"{reading}: {spent[k]} labels after search {k + 1}, {allowed[k]} allowed"
            )
    return Claim("the published run keeps within its searches' budgets", holds, "; ".join(excesses))


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw observations by B-LEAFS beside the published run, and the errors of all rows."""
    results = {outcome.cell.id: outcome for outcome in outcomes}
    figure = Figure(figsize=(11, 4.2), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    means = [results[CellId(BLEAFS, f"n({feature})")] for feature in FEATURES]
    draw_observations(left, FEATURES, means, OBSERVATIONS)
    draw_errors(right, {row: results[CellId(row, ERROR)] for row in (*ROWS, ALL_DATA)})
    return figure


def _cell(row: str, column: str, published: float | None, unit: str, reason: str | None) -> Cell:
    decimals = 3 if column == ERROR else 0
    return Cell(CellId(row, column), row, published, unit, decimals, None, reason)


def _cells(row: str) -> list[Cell]:
    cells = [_cell(row, ERROR, None, "", None)]
    for column in _SETS:
        is_published = column == "{1,2,4,8}" and row in (BLEAFS, ALL_DATA)
        reason = _NOT_OPTIMAL if row == ALL_DATA else _ONE_RUN
        cells.append(_cell(row, column, 100 if is_published else None, "%", reason))
    if row != ALL_DATA:
        cells.append(_cell(row, SPENT, 200 if row == BLEAFS else None, "labels", _ONE_RUN))
    if row == BLEAFS:
        cells += [
            _cell(row, f"n({feature})", published, "observations", _OTHER_DELTA)
            for feature, published in zip(FEATURES, OBSERVATIONS, strict=True)
        ]
    return cells


EXPERIMENT = Experiment(
    name="bleafs-table1",
    title="B-LEAFS on nursery, B = 200, K = 4 (Nushi et al. 2016, table 1)",
    parts=tuple(
        Part(row, settings_of(row, table="nursery", budget=BUDGET, K=N_FEATURES), is_random=True)
        for row in (*ROWS, ALL_DATA)
    ),
    cells=tuple(cell for row in (*ROWS, ALL_DATA) for cell in _cells(row)),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=(
        "Sets are shares of the runs in %; n(Xi) counts observations. B-LEAFS has the midpoint",
        "delta and carries leftovers over, which comes nearest to the published spending of 60,",
        "85, 32 and 23; 'delta_U', 'no carry' and 'printed delta' are other readings.",
    ),
    average="mean",
)
