"""A small matrix of shares as a picture.

Where the names of the columns have no room, columns and rows are numbered alike.
"""

from __future__ import annotations

import math

from bayescrowd.data.text import shorten
from bayescrowd.reports.document import Matrix
from bayescrowd.reports.svg import WIDTH, Svg, element, picture, share_text, text

__all__ = ["heat_map"]

NAMES, HEAD, LARGEST = 120.0, 18.0, 48.0
"""Width of the names on the left, height of those on top, and the largest side of a cell."""

LETTER = 6.5
"""Width of a letter on top of a column."""

MOST_WITH_NUMBERS = 8
"""Cells of larger matrices have no room for numbers."""

DARKEST = 0.5
"""Opacity of a share of 1, on which the numbers are still easy to read."""


def heat_map(matrix: Matrix, what: str) -> Svg:
    """The matrix, the darker the larger the share; a pointer over a cell shows its value.

    Args:
        matrix: what to draw.
        what: the subject, for screen readers.

    Examples:
        >>> drawn = heat_map(Matrix(("a",), ("a",), ((0.5,),)), "agreement")
        >>> "50%" in drawn
        True
    """
    n = len(matrix.columns)
    side = min((WIDTH - NAMES) / max(n, 1), LARGEST)
    is_short = max(map(len, matrix.columns), default=0) * LETTER <= side
    heads = matrix.columns if is_short else tuple(str(k + 1) for k in range(n))
    drawn = [
        text(head, NAMES + (k + 0.5) * side, 13, anchor="middle", kind="value")
        for k, head in enumerate(heads)
    ]
    for i, (name, row) in enumerate(zip(matrix.rows, matrix.values, strict=True)):
        top = HEAD + i * side
        head = shorten(name, 16) if is_short else f"{i + 1}: {shorten(name, 12)}"
        drawn.append(text(head, 0, top + side / 2 + 4))
        for k, share in enumerate(row):
            left, known = NAMES + k * side, not math.isnan(share)
            told = element("title", f"{name}, {matrix.columns[k]}: {share_text(share)}")
            cell = element(
                "rect",
                told,
                x=left + 0.5,
                y=top + 0.5,
                width=side - 1,
                height=side - 1,
                class_="cell" if known else "void",
                fill_opacity=f"{DARKEST * share:.2f}" if known else None,
            )
            drawn.append(cell)
            if n <= MOST_WITH_NUMBERS and known:
                middle, base = left + side / 2, top + side / 2 + 4
                drawn.append(text(share_text(share, 0), middle, base, anchor="middle", kind="in"))
    return picture(
        *drawn, height=HEAD + side * len(matrix.rows) + 2, label=f"{what}: {_told(matrix)}"
    )


def _told(matrix: Matrix) -> str:
    """The matrix in words, if they are few."""
    if len(matrix.columns) > MOST_WITH_NUMBERS:
        return f"{len(matrix.rows)} rows and {len(matrix.columns)} columns; see the table"
    return "; ".join(
        f"{name}: "
        + ", ".join(f"{c} {share_text(s)}" for c, s in zip(matrix.columns, row, strict=True))
        for name, row in zip(matrix.rows, matrix.values, strict=True)
    )
