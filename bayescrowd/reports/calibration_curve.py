"""Picture of calibration: how often labels are right, by how sure they are."""

from __future__ import annotations

from collections.abc import Sequence

from bayescrowd.reports.document import Point
from bayescrowd.reports.svg import WIDTH, Svg, element, picture, share_text, text

__all__ = ["calibration_curve"]

LEFT, TOP, BOTTOM = 44.0, 8.0, 40.0
"""Room for the numbers and names of the axes."""


def calibration_curve(points: Sequence[Point]) -> Svg:
    """A dot for each bin of probabilities, larger where there are more tasks, with its interval.

    Examples:
        >>> from bayescrowd.reports.document import Interval
        >>> drawn = calibration_curve([Point(0.8, Interval(0.75, 0.6, 0.85), 20)])
        >>> drawn.count("<circle")
        1
    """
    room = WIDTH - LEFT - 16
    height = room + TOP + BOTTOM

    def across(value: float) -> float:
        return LEFT + room * value

    def up(value: float) -> float:
        return TOP + room * (1 - value)

    drawn: list[Svg] = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        path = (
            f"M{across(tick):.1f} {up(0):.1f}V{up(1):.1f}M{LEFT:.1f} {up(tick):.1f}H{across(1):.1f}"
        )
        drawn.append(element("path", d=path, class_="grid"))
        drawn.append(text(f"{tick:.0%}", across(tick), up(0) + 16, anchor="middle", kind="value"))
        drawn.append(text(f"{tick:.0%}", LEFT - 6, up(tick) + 4, anchor="end", kind="value"))
    diagonal = f"M{across(0):.1f} {up(0):.1f}L{across(1):.1f} {up(1):.1f}"
    drawn.append(element("path", d=diagonal, class_="ideal"))
    line = "L".join(f"{across(p.confidence):.1f} {up(p.accuracy.value):.1f}" for p in points)
    drawn.append(element("path", d=f"M{line}" if points else "", class_="curve"))
    largest = max((point.n for point in points), default=1)
    for point in points:
        x, share = across(point.confidence), point.accuracy
        whisker = f"M{x:.1f} {up(share.lower):.1f}V{up(share.upper):.1f}"
        drawn.append(element("path", d=whisker, class_="whisker"))
        told = element("title", _told(point))
        radius = 3 + 5 * (point.n / largest) ** 0.5
        drawn.append(element("circle", told, cx=x, cy=up(share.value), r=radius, class_="dot"))
    middle = LEFT + room / 2
    drawn.append(text("probability of the label", middle, height - 4, anchor="middle"))
    label = "Share of right labels by probability of the label: "
    return picture(*drawn, height=height, label=label + "; ".join(map(_told, points)))


def _told(point: Point) -> str:
    share = point.accuracy
    return (
        f"{share_text(point.confidence, 0)} sure, {share_text(share.value, 0)} right "
        f"({share_text(share.lower, 0)} to {share_text(share.upper, 0)}), {point.n:,} tasks"
    )
