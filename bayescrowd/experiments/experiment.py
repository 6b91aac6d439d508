"""What an experiment is: cells with published values, and how to measure them.

A *cell* is one number of a published table, or one point of a figure. Cells are measured in
*parts*: a part is what is computed in one go, may give several cells, and is measured once per
seed, or once if it draws nothing at random. A part and a seed make a *unit*, the smallest piece
of work that is run, recorded and never done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayescrowd.experiments.outcome import Outcome

__all__ = ["Cell", "CellId", "Claim", "Experiment", "Part", "Unit"]


class CellId(NamedTuple):
    """Where a cell stands."""

    row: str
    """Row of the table, or curve of the figure."""
    column: str
    """Column of the table, or point of the curve."""

    def __str__(self) -> str:
        return f"{self.row} | {self.column}"


class Cell(NamedTuple):
    """One published number."""

    id: CellId
    """Where it stands."""
    part: str
    """Name of the part that measures it."""
    published: float | None
    """Its published value; None if the paper prints no number, as for a point of a figure."""
    unit: str
    """Unit of the value, '%' for percentages."""
    decimals: int
    """Digits after the point to which the paper rounds."""
    n_items: int | None
    """For a percentage of items, their number; differences are then also told in items."""
    reason: str | None
    """Why the published value is out of reach, if that is known; shown beside the verdict where the
    measured value differs. Numbers that the experiment itself measures do not belong here."""


class Part(NamedTuple):
    """What is measured in one go."""

    name: str
    """Unique within the experiment."""
    settings: str
    """Everything that its values depend on besides the seed, in words; changing it makes
    recorded values invalid."""
    is_random: bool
    """Whether the seed matters; if not, it is measured with seed 0 only."""


class Unit(NamedTuple):
    """A part measured with one seed."""

    part: str
    """Name of the part."""
    seed: int
    """The seed."""


class Claim(NamedTuple):
    """A statement of the paper, held against the measured values."""

    text: str
    """What the paper says."""
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
        name: what it is called on the command line.
        title: what it shows and where it is published.
        parts: what is measured in one go.
        cells: the published numbers, row by row.
        measure: value of each cell of a part, given the part's name and a seed. A function of a
            module, so that other processes can import it.
        draw: a picture in the form of the paper.
        n_seeds: how many seeds a random part is measured with by default.
        claims: statements of the paper that the outcome supports or not.
        notes: what a reader of the numbers must know.
        average: of a cell's values over the seeds, which is what counts as measured; the mean is
            told with its standard error.
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
            raise ValueError(f"{self.name}: parts and the parts of the cells differ")

    @property
    def settings(self) -> dict[str, str]:
        """Settings by name of the part."""
        return {part.name: part.settings for part in self.parts}

    def units(self, n_seeds: int) -> list[Unit]:
        """All units, seed by seed, so that an interrupted run has every part with few seeds."""
        return [
            Unit(part.name, seed)
            for seed in range(n_seeds)
            for part in self.parts
            if part.is_random or seed == 0
        ]
