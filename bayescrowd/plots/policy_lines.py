"""The look of each policy's line, the same in every picture."""

from __future__ import annotations

from typing import Any

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA
from bayescrowd.plots.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION

__all__ = ["COLOURS", "DASHES", "MARKERS", "line_style"]

COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, "#56B4E9", "#000000", "#8C564B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "-", "--", "-.", ":", "--", "-.", ":")

_PLACES = {
    "budgetedselection": 0,
    "bleafs": 1,
    "tsgreedy": 2,
    "biasedrobin": 3,
    "roundrobin": 4,
    "explorethencommit": 5,
    "bleafsrevisit": 6,
    "posteriormean": 7,
}
"""Place of each policy in the lists above, so that it looks the same however it is spelt."""


def line_style(name: str, place: int = 0) -> dict[str, Any]:
    """Colour, marker and dashes of a policy's line.

    Args:
        name: name of the policy.
        place: position of the line among all lines, for a policy without a look of its own.

    Examples:
        >>> from bayescrowd.plots.policy_lines import line_style
        >>> line_style("all data")["linestyle"]
        '--'
    """
    if name == ALL_DATA:
        return {"color": GREY, "marker": "none", "linestyle": "--"}
    place = _PLACES.get(name.replace("-", "").lower(), place) % len(COLOURS)
    return {"color": COLOURS[place], "marker": MARKERS[place], "linestyle": DASHES[place]}
