"""Tables of text with aligned columns, for people."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["align"]


def align(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), indent: int = 2) -> str:
    """Rows of text in right-aligned columns, starting with the header.

    Args:
        rows: rows with the same number of cells; the first is the header.
        left: positions of the columns to align on the left instead.
        indent: number of spaces before each row.

    Examples:
        >>> print(align([["method", "accuracy"], ["wawa", "0.9"]], indent=0))
        method  accuracy
        wawa         0.9
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(" " * indent + "  ".join(cells).rstrip())
    return "\n".join(lines)
