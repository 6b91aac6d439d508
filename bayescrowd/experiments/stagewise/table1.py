"""Label error of stagewise EM on two real crowds (Zhao and Zucker, SL, table 1).

Bluebird is complete. Of dog the paper keeps 52 workers, here those with the most labels, and adds a
'missing label' of fixed probability. Labels are predicted with the informative workers alone, as
the size of their set in the table suggests. Spec-EM and MV-EM are Zhang et al.'s, with the settings
of their program; the paper's value of Spec-EM on dog is illegible in our copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from bayescrowd.data.annotations import Annotations
from bayescrowd.experiments.engine.experiment import (
    Cell,
    CellId,
    Claim,
    Experiment,
    Part,
    settings_of,
)
from bayescrowd.experiments.engine.label_errors import fitted_probas, label_error, loaded_crowd
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.engine.pictures import draw_table
from bayescrowd.experiments.spectral.table1 import METHODS
from bayescrowd.experiments.stagewise.crowds import stagewise_em

__all__ = ["EXPERIMENT", "crowd_of_table1"]

N_DOG_WORKERS = 52
N_SEEDS = 20

_NAMES = {"Bird": "bluebird", "Dog": "dog"}
_N_ITEMS = {"Bird": 108, "Dog": 807}
_N_CLASSES = {"Bird": 2, "Dog": 4}

REFINED, STAGE, SIZE, MV_EM, SPEC_EM = (
    "StageEM-refine",
    "StageEM",
    "StageEM, |S|",
    "MV-EM",
    "Spec-EM",
)

_PUBLISHED: dict[str, tuple[float | None, float | None]] = {
    REFINED: (10.19, 16.73),
    STAGE: (12.04, 20.69),
    SIZE: (11, 14),
    MV_EM: (11.11, 16.66),
    SPEC_EM: (11.57, None),
}
_DOG = "the paper does not say which 52 of the 109 workers it keeps"
_REASONS = {
    (REFINED, "Dog"): _DOG,
    (STAGE, "Dog"): _DOG,
    (MV_EM, "Dog"): "it is Zhang et al.'s number for all 109 workers; no count of 807 items is "
    "16.66 %",
    (SPEC_EM, "Bird"): "a mean of runs from 11.11 to 12.04 %; the paper prints no settings",
}


@cache
def crowd_of_table1(title: str) -> Annotations:
    """The labels: all of bluebird, and of dog those of the workers with the most labels."""
    ann = loaded_crowd(_NAMES[title]).annotations
    if title == "Bird":
        return ann
    busiest = (-ann.labels_per_worker).argsort(kind="stable")[:N_DOG_WORKERS]
    return ann.select_workers(ann.workers[busiest])


def _measure(part: str, seed: int) -> dict[CellId, float]:
    title, method = part.split(", ", 1)
    ann, name, n_classes = crowd_of_table1(title), _NAMES[title], _N_CLASSES[title]
    if method == SPEC_EM:
        probas = fitted_probas(METHODS["Opt-D&S"](seed), ann)
        return {CellId(SPEC_EM, title): label_error(probas, name)}
    if method == MV_EM:
        probas = fitted_probas(METHODS["MV-D&S"](seed), ann)
        return {CellId(MV_EM, title): label_error(probas, name)}
    refined = stagewise_em(n_classes, refine=True).fit(ann)
    grown = stagewise_em(n_classes, predict_with="informative").fit(ann)
    return {
        CellId(REFINED, title): label_error(refined.probas_, name),
        CellId(STAGE, title): label_error(grown.probas_, name),
        CellId(SIZE, title): float(len(grown.informative_)),
    }


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}
    means = {outcome.cell.id: float(np.mean(outcome.values)) for outcome in outcomes}
    claims = []
    for title, n_workers in (("Bird", 39), ("Dog", N_DOG_WORKERS)):
        size, error = measured[CellId(SIZE, title)], measured[CellId(STAGE, title)]
        refined, vote = measured[CellId(REFINED, title)], measured[CellId(MV_EM, title)]
        spectral = means[CellId(SPEC_EM, title)]
        claims += [
            Claim(
                f"{title}: about a third of the workers suffice for a decent prediction",
                size <= 0.4 * n_workers and error <= vote + 5,
                f"{error:.2f} % with {size:.0f} of {n_workers}; MV-EM {vote:.2f} % with all",
            ),
            Claim(
                f"{title}: StageEM-refine is comparable to MV-EM",
                refined <= vote + 0.5,
                f"{refined:.2f} % against {vote:.2f} %",
            ),
            Claim(
                f"{title}: StageEM-refine surpasses Spec-EM",
                refined < spectral - 1e-9,
                f"{refined:.2f} % against {spectral:.2f} % on average",
            ),
        ]
    return claims


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    return draw_table(outcomes, "Label error (%) and size of the informative set")


def _parts() -> tuple[Part, ...]:
    parts = []
    for title, n_classes in _N_CLASSES.items():
        settings = settings_of(stagewise_em(n_classes, predict_with="informative"))
        parts += [
            Part(f"{title}, StageEM", f"{settings}; refined: predict_with='all'", is_random=False),
            Part(f"{title}, {MV_EM}", settings_of(METHODS["MV-D&S"](0)), is_random=False),
            Part(f"{title}, {SPEC_EM}", settings_of(METHODS["Opt-D&S"](0)), is_random=True),
        ]
    return tuple(parts)


def _cell(method: str, title: str, published: float | None) -> Cell:
    is_size = method == SIZE
    return Cell(
        id=CellId(method, title),
        part=f"{title}, {method if method in (MV_EM, SPEC_EM) else 'StageEM'}",
        published=published,
        unit="workers" if is_size else "%",
        decimals=0 if is_size else 2,
        n_items=None if is_size else _N_ITEMS[title],
        reason=_REASONS.get((method, title)),
    )


EXPERIMENT = Experiment(
    name="stagewise-table1",
    title="Label error (%) on two crowds (Zhao and Zucker, stagewise EM, table 1)",
    parts=_parts(),
    cells=tuple(
        _cell(method, title, published)
        for method, values in _PUBLISHED.items()
        for title, published in zip(_NAMES, values, strict=True)
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=(
        "Spec-EM on bird: published lowest 11.11, mean 11.57, highest 12.04; measured: median.",
        "The paper does not say by which step the halves of a split component are moved apart;",
        "with ours, 0.1, both informative sets are as large as published. With 0.2 and 0.3, bird",
        "stays the same and dog has 19.70 % (18 workers) and 19.95 % (14); with 0.05, bird has",
        "10.19 % (10 workers) and dog ends in a poor maximum, 36.31 % (9). As in the paper, the",
        "pair enters S before the Hessian is taken; if it entered afterwards, dog would have",
        "19.58 % (17).",
    ),
)
