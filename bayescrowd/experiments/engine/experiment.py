"""What an experiment is: cells with published values, and a way to measure them.

A *cell* is one number of a published table, or one point of a figure. Cells are measured in
*parts*: a part is computed in one go, may yield several cells, and is measured once per seed, or
only once if it involves no randomness. A part and a seed make a *unit*, the smallest piece of work
that is run, recorded and never repeated.

The module of an experiment finds everything it has to define here; `Cell` and `CellId` have a
module of their own because outcomes, which an experiment draws and judges, are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from bayescrowd.experiments.engine.cells import Cell, CellId

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayescrowd.experiments.engine.outcome import Outcome

__all__ = ["Cell", "CellId", "Claim", "Experiment", "Part", "Unit", "settings_of"]


class Part(NamedTuple):
    """A group of cells that is measured in one go."""

    name: str
    """Unique within the experiment."""
    settings: str
    """Everything besides the seed that the values depend on, in words; changing it invalidates
    recorded values."""
    is_random: bool
    """Whether the seed matters; if not, the part is measured with seed 0 only."""


class Unit(NamedTuple):
    """A part measured with one seed."""

    part: str
    """Name of the part."""
    seed: int
    """The seed."""


class Claim(NamedTuple):
    """A statement of the paper, checked against the measured values."""

    text: str
    """The statement."""
    holds: bool
    """Whether it holds here."""
    evidence: str
    """The measured values that decide it."""


def no_claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """The claims of an experiment that only compares numbers."""
    return []


@dataclass(frozen=True)
class Experiment:
    """One published table or figure.

    Args:
        name: its name on the command line.
        title: what it shows and where it was published.
        parts: the groups of cells that are measured in one go.
        cells: the published numbers, row by row.
        measure: returns the value of each cell of a part, given the part's name and a seed. It
            must be a function of a module, so that other processes can import it.
        draw: returns a picture in the form of the paper's.
        n_seeds: the default number of seeds with which a random part is measured.
        claims: returns the paper's statements, each with whether the outcomes support it.
        notes: what a reader needs to know about the numbers.
        average: how a cell's values over the seeds are averaged into the measured value; a mean is
            reported with its standard error.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    cells: tuple[Cell, ...]
    measure: Callable[[str, int], Mapping[CellId, float]]
    draw: Callable[[Sequence[Outcome]], Figure]
    n_seeds: int = 1
    claims: Callable[[Sequence[Outcome]], list[Claim]] = no_claims
    notes: tuple[str, ...] = ()
    average: Literal["median", "mean"] = "median"

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        ids = [cell.id for cell in self.cells]
        if len(set(names)) < len(names) or len(set(ids)) < len(ids):
            raise ValueError(f"{self.name}: two parts or two cells have the same name")
        if set(names) != {cell.part for cell in self.cells}:
            raise ValueError(
                f"{self.name}: expected every cell to name a part and every part to have a cell"
            )

    @property
    def settings(self) -> dict[str, str]:
        """The settings of each part, by name of the part."""
        return {part.name: part.settings for part in self.parts}

    def units(self, n_seeds: int) -> list[Unit]:
        """All units, ordered by seed, so that an interrupted run has covered every part."""
        return [
            Unit(part.name, seed)
            for seed in range(n_seeds)
            for part in self.parts
            if part.is_random or seed == 0
        ]


@runtime_checkable
class _HasParameters(Protocol):
    """An estimator as scikit-learn defines it."""

    def get_params(self) -> dict[str, Any]: ...


def settings_of(estimator: _HasParameters) -> str:
    """Class and parameters of an estimator, defaults included and the seed left out."""
    options = estimator.get_params()
    listed = ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "seed")
    return f"{type(estimator).__name__}({listed})"
