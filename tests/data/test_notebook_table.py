"""Small tables with bars, as HTML."""

import re
from html.parser import HTMLParser

import pytest

from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table


class Reader(HTMLParser):
    """Cells of a table as text, and the names of all elements; complains of wrong nesting."""

    def __init__(self, html):
        super().__init__()
        self.open, self.names, self.rows = [], set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.names.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def test_cells_by_hand():
    html = notebook_table("Crowd", ["class", "share"], [["a & b", Bar(0.5, "50%")], [7, 1.5]])
    assert Reader(html).rows == [["class", "share"], ["a & b", "50%"], ["7", "1.5"]]


@pytest.mark.parametrize(
    ("length", "width"), [(0.25, "25.0%"), (-1, "0.0%"), (3, "100.0%"), (float("nan"), "0.0%")]
)
def test_bars_stay_within_their_track(length, width):
    html = notebook_table("", ["x"], [[Bar(length, "")]])
    assert re.findall(r"display:block;width:([0-9.]+%)", html) == [width]


def test_nothing_that_a_user_names_is_run():
    evil = '<script>alert(1)</script>" onload="alert(1)'
    html = notebook_table(evil, [evil], [[evil], [Bar(0.5, evil)]], note=evil)
    assert Reader(html).names <= {
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
    }
    assert "<script" not in html
    assert 'onload="' not in html


def test_colours_are_those_of_the_text():
    """So that dark and light notebooks show the table alike."""
    html = notebook_table("Crowd", ["class"], [[Bar(0.5, "half")]], note="all")
    assert re.findall(r"#[0-9a-f]{3,6}\b|rgb\(|\b(?:white|black|gray|grey)\b(?!-)", html) == []
    assert "currentColor" in html


def test_long_cells_are_cut():
    assert "x" * 100 not in notebook_table("", ["x"], [["x" * 100]])
    assert first_rows(MOST_ROWS, "task") == ""
    assert first_rows(1000, "task") == f"{MOST_ROWS} of 1,000 tasks"
