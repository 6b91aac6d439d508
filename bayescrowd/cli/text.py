"""Readable text: aligned tables, counted nouns."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned", "counted"]


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), indent: int = 2) -> str:
    """Rows of text in columns; the first row is the header, columns are right-aligned.

    Args:
        rows: equally many cells each.
        left: columns to align at the left instead.
        indent: spaces before each row.

    Examples:
        >>> print(aligned([["method", "accuracy"], ["wawa", "0.9"]], indent=0))
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


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun in the right form.

    Examples:
        >>> counted(1, "task"), counted(1200, "task"), counted(2, "class", "classes")
        ('1 task', '1,200 tasks', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
