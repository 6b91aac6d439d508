"""The cells of a published table or figure: one number, or one point of a curve, each."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Cell", "CellId"]


class CellId(NamedTuple):
    """The position of a cell."""

    row: str
    """Row of the table, or curve of the figure."""
    column: str
    """Column of the table, or point on the curve."""

    def __str__(self) -> str:
        return f"{self.row} | {self.column}"


class Cell(NamedTuple):
    """One published number."""

    id: CellId
    """Its position."""
    part: str
    """Name of the part that measures it."""
    published: float | None
    """Its published value; None if the paper prints no number, as for a point of a figure."""
    unit: str
    """Unit of the value, '%' for percentages."""
    decimals: int
    """Number of decimals to which the paper rounds."""
    n_items: int | None
    """For a percentage of items, their number; differences are then also reported in items."""
    reason: str | None
    """Why the published value is out of reach, if that is known; shown beside the verdict where the
    measured value differs. Numbers that the experiment itself measures do not belong here."""
