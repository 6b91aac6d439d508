"""Inline pictures: lengths and places by hand, words for screen readers, names escaped."""

import math
import xml.etree.ElementTree as ET

import pytest

from bayescrowd.reports.bars import NAMES, VALUES, bar_chart, interval_strip
from bayescrowd.reports.calibration_curve import calibration_curve
from bayescrowd.reports.document import Count, Interval, Matrix, Point
from bayescrowd.reports.heat_map import DARKEST, heat_map
from bayescrowd.reports.svg import WIDTH, element
from bayescrowd.reports.vote_scale import vote_scale

NAN = math.nan


def parts(picture, tag):
    return list(ET.fromstring(picture).iter(tag))


def test_text_and_attributes_are_escaped():
    made = element("text", "<b>&", x=1.0, aria_label='"><script>', class_="a")
    assert (
        made == '<text x="1" aria-label="&quot;&gt;&lt;script&gt;" class="a">&lt;b&gt;&amp;</text>'
    )
    assert element("g", made) == f"<g>{made}</g>"


def test_bars_are_in_proportion():
    picture = bar_chart(
        [Count("a", Interval(0.5), 4), Count("<b>", Interval(0.25, 0.1, 0.5), 2)], "things"
    )
    widths = [float(bar.get("width")) for bar in parts(picture, "rect")]
    assert widths == pytest.approx([WIDTH - NAMES - VALUES, (WIDTH - NAMES - VALUES) / 2])
    assert len(parts(picture, "path")) == 1
    label = ET.fromstring(picture).get("aria-label")
    assert label == "things: a: 50.0%, 4, <b>: 25.0%, 2, interval 10.0% to 50.0%"


def test_bars_of_nothing():
    assert len(parts(bar_chart([], "nothing"), "rect")) == 0
    (bar,) = parts(bar_chart([Count("a", Interval(0.0), 0)], "zeros"), "rect")
    assert float(bar.get("width")) == 0
    assert parts(bar_chart([Count("a", Interval(NAN), 0)], "unknown"), "rect") == []


def test_strip_has_the_interval():
    picture = interval_strip(Interval(0.5, 0.25, 1.0))
    assert parts(picture, "path")[0].get("d") == "M20 5H80"
    assert parts(picture, "circle")[0].get("cx") == "40"
    assert parts(interval_strip(Interval(0.5)), "path") == []


def test_heat_map_by_hand():
    picture = heat_map(Matrix(("a", "b"), ("a", "b"), ((1.0, 0.5), (NAN, 0.0))), "shares")
    cells = parts(picture, "rect")
    assert [cell.get("fill-opacity") for cell in cells] == [
        f"{DARKEST:.2f}",
        f"{DARKEST / 2:.2f}",
        None,
        "0.00",
    ]
    assert [cell.get("class") for cell in cells] == ["cell", "cell", "void", "cell"]
    assert cells[1].find("title").text == "a, b: 50.0%"


def test_names_without_room_are_numbered():
    names = ("a long name", "another name")
    texts = [t.text for t in parts(heat_map(Matrix(names, names, ((1, 0), (0, 1))), "x"), "text")]
    assert texts[:2] == ["1", "2"]
    assert "1: a long name" in texts


def test_calibration_curve_by_hand():
    points = [Point(0.5, Interval(0.5, 0.4, 0.6), 10), Point(1.0, Interval(1.0, 0.8, 1.0), 40)]
    first, second = parts(calibration_curve(points), "circle")
    # On the diagonal from the lower left to the upper right; the area grows with the tasks.
    assert float(first.get("cx")) < float(second.get("cx"))
    assert float(first.get("cy")) > float(second.get("cy"))
    assert (float(second.get("r")) - 3) / (float(first.get("r")) - 3) == pytest.approx(2, rel=0.05)
    assert calibration_curve([]).count("<circle") == 0


def test_vote_scale_by_hand():
    whole, maybe, sure = parts(vote_scale(4.0, (1.0, 2.0)), "rect")
    widths = [float(bar.get("width")) for bar in (whole, maybe, sure)]
    assert widths == [WIDTH, WIDTH / 2, WIDTH / 4]
