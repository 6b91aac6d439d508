"""Bar chart of shares, with intervals where there are any, and intervals inside tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bayescrowd.data.text import shorten
from bayescrowd.reports.document import Count, Interval
from bayescrowd.reports.svg import WIDTH, Svg, element, picture, share_text, text

__all__ = ["bar_chart", "interval_strip"]

ROW, NAMES, VALUES = 22.0, 96.0, 104.0
"""Height of a row, and widths of the names on the left and the values on the right."""

STRIP = 80.0
"""Width of an interval inside a table."""


def bar_chart(counts: Sequence[Count], what: str) -> Svg:
    """A bar for each count, the longest one as long as there is room for.

    Args:
        counts: what to draw.
        what: the subject, for screen readers.

    Examples:
        >>> drawn = bar_chart([Count("cat", Interval(0.25), 3)], "tasks")
        >>> "cat" in drawn and "25.0%" in drawn
        True
    """
    room = WIDTH - NAMES - VALUES
    ends = [end for count in counts for end in count.share if not math.isnan(end)]
    scale = room / max(ends, default=1.0) if max(ends, default=1.0) > 0 else 0.0
    drawn: list[Svg] = []
    for row, count in enumerate(counts):
        top, share = row * ROW, count.share
        drawn.append(text(shorten(count.name, 14), 0, top + 15))
        if not math.isnan(share.value):
            width = share.value * scale
            drawn.append(element("rect", x=NAMES, y=top + 4, width=width, height=14, class_="bar"))
        if not math.isnan(share.lower):
            low, high = NAMES + share.lower * scale, NAMES + share.upper * scale
            path = f"M{low:.1f} {top + 11:g}H{high:.1f}"
            ends_path = f"M{low:.1f} {top + 7:g}v8M{high:.1f} {top + 7:g}v8"
            drawn.append(element("path", d=path + ends_path, class_="whisker"))
        value = f"{share_text(share.value)} ({count.number:,})"
        drawn.append(text(value, WIDTH, top + 15, anchor="end", kind="value"))
    told = ", ".join(f"{c.name}: {_told(c)}" for c in counts)
    return picture(*drawn, height=ROW * len(counts) + 2, label=f"{what}: {told}")


def interval_strip(share: Interval) -> Svg:
    """A small picture of a share between 0 and 1 with its interval; the numbers are beside it."""
    low, value, high = (STRIP * end for end in (share.lower, share.value, share.upper))
    line = element("path", d=f"M{low:.0f} 5H{high:.0f}") if low == low else Svg()
    dot = element("circle", cx=round(value), cy=5, r=3)
    return element("svg", line, dot, class_="strip", viewBox="0 0 80 10", aria_hidden="true")


def _told(count: Count) -> str:
    share = count.share
    told = f"{share_text(share.value)}, {count.number:,}"
    if not math.isnan(share.lower):
        told += f", interval {share_text(share.lower)} to {share_text(share.upper)}"
    return told
