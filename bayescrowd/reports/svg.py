"""Elements of inline pictures: everything that is not markup of ours is escaped.

Pictures are `WIDTH` units wide, so that their text is as large as the page's on a phone. Colours
are classes of the page's style sheet, which knows light, dark and paper.
"""

from __future__ import annotations

import math
from html import escape

__all__ = ["DASH", "WIDTH", "Svg", "element", "picture", "share_text", "text"]

WIDTH = 360.0
"""Width of a picture, in units of which a letter is about seven wide."""

DASH = "-"
"""What is shown for a number that is undefined or unknown."""


class Svg(str):
    """Markup that a template inserts as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def element(tag: str, *children: str, **attributes: str | float | None) -> Svg:
    """An element with its attributes; underscores in their names stand for hyphens.

    Args:
        tag: name of the element.
        *children: elements, and texts, which are escaped.
        **attributes: values, which are escaped; a trailing underscore (`class_`) is dropped, and
            None leaves the attribute out.

    Examples:
        >>> element("text", "a < b", x=1.5, class_="name")
        '<text x="1.5" class="name">a &lt; b</text>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Svg) else escape(child) for child in children)
    return Svg(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")


def picture(*children: Svg, height: float, label: str, width: float = WIDTH) -> Svg:
    """A picture with the words in which a screen reader tells it."""
    return element(
        "svg",
        *children,
        class_="picture",
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        role="img",
        aria_label=label,
    )


def text(
    content: str, x: float, y: float, *, anchor: str | None = None, kind: str | None = None
) -> Svg:
    """Text at a place: anchored at its 'middle' or 'end', or begun there by default."""
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=kind)


def share_text(share: float, decimals: int = 1) -> str:
    """A share in percent, and a dash for NaN.

    Examples:
        >>> share_text(0.1234), share_text(float("nan")), share_text(0.5, 0)
        ('12.3%', '-', '50%')
    """
    return DASH if math.isnan(share) else f"{share:.{decimals}%}"


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.1f}".removesuffix(".0")
