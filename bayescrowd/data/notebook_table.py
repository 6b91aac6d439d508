"""Small tables with bars for notebooks, in HTML that needs neither scripts nor style sheets.

Everything that users have named is escaped. Bars and rules have the colour of the text, so that
dark and light notebooks show them alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from bayescrowd.data.text import quantity, shorten

__all__ = ["MOST_ROWS", "Bar", "first_rows", "notebook_table"]

MOST_ROWS = 8
"""Rows that a table in a notebook shows at most."""

LONGEST_CELL = 48
"""Characters of a cell, after which it is cut."""

_RULE = "border-bottom:1px solid currentColor;"
_CELL = "padding:0.15em 0.8em 0.15em 0;background:transparent;color:inherit;"
_TRACK = (
    "display:inline-block;width:7em;height:0.7em;margin-right:0.6em;box-sizing:border-box;"
    "border:1px solid currentColor;border-radius:2px;overflow:hidden"
)


class Bar(NamedTuple):
    """A cell with a bar, and its number as text."""

    length: float
    """Length of the bar, 0 to 1; NaN draws none."""
    text: str
    """What stands beside the bar."""


def notebook_table(
    caption: object,
    header: Sequence[str],
    rows: Iterable[Sequence[Bar | object]],
    *,
    note: str = "",
) -> str:
    """A table as HTML.

    Args:
        caption: what stands above the table.
        header: names of the columns.
        rows: cells, which are bars, numbers or text.
        note: what stands below the table.

    Examples:
        >>> html = notebook_table("Shares", ["class", "share"], [["<b>", Bar(0.25, "25%")]])
        >>> "&lt;b&gt;" in html, "width:25.0%" in html
        (True, True)
    """
    heads = "".join(
        f'<th scope="col" style="{_CELL}{_RULE}text-align:left">{escape(name)}</th>'
        for name in header
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    below = f'<div style="opacity:0.75">{escape(note)}</div>' if note else ""
    above = f'<caption style="{_CELL}caption-side:top;text-align:left">{escape(str(caption))}'
    return (
        '<div><table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"{above}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"
        "</div>"
    )


def first_rows(n_rows: int, noun: str, plural: str | None = None) -> str:
    """Note below a table that shows the first rows only; empty if it shows all.

    Examples:
        >>> first_rows(20, "class", "classes"), first_rows(3, "class")
        ('8 of 20 classes', '')
    """
    return f"{MOST_ROWS} of {quantity(n_rows, noun, plural)}" if n_rows > MOST_ROWS else ""


def _cell(value: object) -> str:
    if isinstance(value, Bar):
        share = 0.0 if math.isnan(value.length) else min(max(value.length, 0.0), 1.0)
        fill = f"display:block;width:{share:.1%};height:100%;background:currentColor;opacity:0.6"
        bar = f'<span aria-hidden="true" style="{_TRACK}"><span style="{fill}"></span></span>'
        return (
            f'<td style="{_CELL}text-align:left;white-space:nowrap">{bar}{escape(value.text)}</td>'
        )
    text = escape(shorten(value, LONGEST_CELL))
    return f'<td style="{_CELL}text-align:left">{text}</td>'
