"""Inline pictures: lengths and places by hand, words for screen readers, names escaped."""

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bayescrowd.reports import page
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


def palettes():
    """Colours of the style sheet on a light screen, on a dark one and on paper."""
    style = (Path(page.__file__).with_name("templates") / "style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in blocks]


def contrast(one, other):
    """Contrast ratio of two colours (WCAG 2.2)."""
    levels = sorted(luminance(colour) for colour in (one, other))
    return (levels[1] + 0.05) / (levels[0] + 0.05)


def channels(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def luminance(colour):
    parts = colour if isinstance(colour, list) else channels(colour)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_contrast_by_hand():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("colours", palettes(), ids=["light", "dark", "paper"])
def test_text_is_easy_to_tell_from_what_is_behind_it(colours):
    """AA asks for 4.5; the accessibility scan cannot judge text inside pictures."""
    for name in ("ink", "soft", "accent", "warm"):
        for behind in ("paper", "sheet"):
            assert contrast(colours[name], colours[behind]) >= 4.5, (name, behind)
    assert contrast(colours["warm"], colours["warm-sheet"]) >= 4.5
    assert contrast(colours["ink"], colours["warm-sheet"]) >= 4.5
    # The darkest cell of a matrix, with the paper shining through.
    over, under = channels(colours["accent"]), channels(colours["paper"])
    mixed = [DARKEST * a + (1 - DARKEST) * b for a, b in zip(over, under, strict=True)]
    assert contrast(colours["ink"], mixed) >= 4.5
    # Bars stand out from the paper (3 for what is no text).
    assert contrast(colours["accent"], colours["paper"]) >= 3
