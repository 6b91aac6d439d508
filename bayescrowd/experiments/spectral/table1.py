"""Label error of six methods on five crowds (Zhang, Chen, Zhou and Jordan 2014).

The table is the one that the review of Collins (2019) prints. The settings follow the authors'
published program wherever it has them: Dawid–Skene with a uniform class prior, ten iterations, and
zero entries of confusion matrices left out of the products; entries of the spectral estimate below
1e-6 are raised to it. What they call KOS is the centred SVD. Opt-D&S partitions the workers at
random, here once per seed, and is reported as the median.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.kos import KOS
from bayescrowd.aggregation.majority import MajorityVote
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.aggregation.singular_vectors import EigenRatio, GhoshSVD
from bayescrowd.aggregation.spectral.estimator import SpectralDawidSkene
from bayescrowd.experiments.engine.experiment import Cell, CellId, Experiment, Part, settings_of
from bayescrowd.experiments.engine.label_errors import (
    CROWDS,
    fitted_probas,
    label_error,
    loaded_crowd,
)
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.engine.pictures import draw_table

__all__ = ["EXPERIMENT", "METHODS"]

N_SEEDS = 20
"""Number of runs; Zhao and Zucker, too, report the median of 20."""


_EM: dict[str, Any] = {
    "prior": "uniform",
    "pseudo_counts": 0.0,
    "zeros": "skip",
    "n_iter": 10,
    "tol": 0.0,
}
"""The settings of EM in the authors' program."""

METHODS: dict[str, Callable[[int], Aggregator]] = {
    "Opt-D&S": lambda seed: SpectralDawidSkene(
        start="spectral", smoothing="diagonal", clip=1e-6, seed=seed, **_EM
    ),
    "MV-D&S": lambda seed: DawidSkene(seed=seed, **_EM),
    "Majority Voting": lambda seed: MajorityVote(seed=seed),
    "KOS": lambda seed: KOS(variant="svd", seed=seed),
    "Ghosh-SVD": lambda seed: GhoshSVD(seed=seed),
    "EigenRatio": lambda seed: EigenRatio(seed=seed),
}
"""The estimator of each column of the table, given a seed."""

_RANDOM = {"Opt-D&S"}

_ROWS = {
    "Bird": (10.09, 11.11, 24.07, 11.11, 27.78, 27.78),
    "RTE": (7.12, 7.12, 10.31, 39.75, 49.13, 9.00),
    "TREC": (29.80, 30.02, 34.86, 51.96, 42.99, 43.96),
    "Dog": (16.89, 16.66, 19.58, 31.72, None, None),
    "Web": (15.86, 15.74, 26.93, 42.93, None, None),
}
_PUBLISHED = {title: dict(zip(METHODS, row, strict=True)) for title, row in _ROWS.items()}

_LESS_THAN_AN_ITEM = "which explains less than one item of the difference"
_REASONS = {
    ("Bird", "Opt-D&S"): "no count of 108 items is 10.09 % (11 are 10.19 %)",
    ("TREC", "EigenRatio"): "43.96 % is the error of always answering one class, probably after "
    "a division by zero for workers without common items",
    ("Dog", "Opt-D&S"): f"no count of 807 items is 16.89 %, {_LESS_THAN_AN_ITEM}",
    ("Dog", "MV-D&S"): f"no count of 807 items is 16.66 %, {_LESS_THAN_AN_ITEM}",
    ("Dog", "Majority Voting"): "19.58 % is the error of Ghosh-SVD, probably a misplaced cell",
    ("Web", "Opt-D&S"): f"no count of 2653 items is 15.86 %, {_LESS_THAN_AN_ITEM}",
    ("Web", "MV-D&S"): f"no count of 2653 items is 15.74 %, {_LESS_THAN_AN_ITEM}",
}


_PARTS = {f"{crowd.title}, {method}": (crowd, method) for crowd in CROWDS for method in METHODS}


def _measure(part: str, seed: int) -> dict[CellId, float]:
    crowd, method = _PARTS[part]
    probas = fitted_probas(METHODS[method](seed), loaded_crowd(crowd.name).annotations)
    return {CellId(crowd.title, method): label_error(probas, crowd.name)}


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    return draw_table(outcomes, "Label prediction error (%)")


EXPERIMENT = Experiment(
    name="spectral-table1",
    title="Label prediction error (%) on five crowds (Zhang et al. 2014; Collins 2019, table 1)",
    parts=tuple(
        Part(name, settings_of(METHODS[method](0)), is_random=method in _RANDOM)
        for name, (_, method) in _PARTS.items()
    ),
    cells=tuple(
        Cell(
            id=CellId(crowd.title, method),
            part=name,
            published=_PUBLISHED[crowd.title][method],
            unit="%",
            decimals=2,
            n_items=crowd.n_scored,
            reason=_REASONS.get((crowd.title, method)),
        )
        for name, (crowd, method) in _PARTS.items()
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    notes=(
        "Web is scored on its 2,653 tasks with a truth; Zhao and Zucker count 12 more as class 1.",
    ),
)
