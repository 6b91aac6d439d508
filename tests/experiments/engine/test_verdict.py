import pytest

from bayescrowd.experiments.engine.experiment import Cell, CellId
from bayescrowd.experiments.engine.verdict import (
    difference_in_items,
    explanation_of,
    format_items,
    is_within_runs,
    kind_of,
    verdict_on,
)

CELL = Cell(CellId("Rte", "MV"), "part", 10.31, "%", 2, 800, None)


@pytest.mark.parametrize(
    ("published", "n_items", "n_wrong", "verdict"),
    [
        (24.07, 108, 26, "matches"),
        (24.07, 108, 27, "differs by +1 items"),
        (24.07, 108, 25, "differs by -1 items"),
        (49.13, 800, 393, "matches"),  # 49.125 lies on the edge of the rounding
        (49.12, 800, 393, "matches"),
        (10.09, 108, 11, "matches"),  # a tenth of an item off the nearest count
        (10.09, 108, 12, "differs by +1.1 items"),
        (30.02, 2275, 683, "matches"),
        (30.02, 2275, 687, "differs by +4 items"),
        (30.02, 2275, 683.5, "differs by +0.5 items"),  # ties count halves
        (7.12, 800, 57, "matches"),
        (7.12, 800, 56.5, "matches"),  # 0.46 items
        (7.12, 800, 56, "differs by -1 items"),
    ],
)
def test_label_errors_by_hand(published, n_items, n_wrong, verdict):
    cell = CELL._replace(published=published, n_items=n_items)
    assert verdict_on(cell, 100 * n_wrong / n_items) == verdict


def test_items_by_hand():
    assert difference_in_items(CELL, 11.31) == pytest.approx(8.0)
    assert difference_in_items(CELL._replace(published=None), 11.31) is None
    assert difference_in_items(CELL._replace(n_items=None), 11.31) is None
    assert [format_items(n) for n in (-3.04, -0.04, 0.04, 12.0, 0.26)] == [
        *("-3", "0", "0", "+12", "+0.3")
    ]


@pytest.mark.parametrize(("wrong", "verdict"), [(82.5, "matches"), (96, "differs by +13.5 items")])
def test_a_reason_never_replaces_the_difference(wrong, verdict):
    measured = 100 * wrong / 800
    cell = CELL._replace(reason="a misprint")
    assert verdict_on(cell, measured) == verdict_on(CELL, measured) == verdict


def test_a_reason_is_shown_only_beside_a_difference():
    cell = CELL._replace(reason="a misprint")
    assert explanation_of(cell, [10.3125], "matches") is None
    assert explanation_of(cell, [12.0], "differs by +13.5 items") == "a misprint"
    assert explanation_of(CELL, [12.0], "differs by +13.5 items") is None
    assert explanation_of(cell, [11.0, 13.0], "differs by +13.5 items") == (
        "outside the 2 runs; a misprint"
    )
    assert explanation_of(CELL, [9.0, 15.0], "differs by +13.5 items") == "within the 2 runs"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10.0, 11.0], True),
        ([10.315, 11.0], True),  # 10.31 may have been 10.315 before rounding
        ([10.32, 11.0], False),
        ([9.0, 10.3], False),
        ([10.31], None),  # a single run is compared by the verdict itself
    ],
)
def test_published_value_among_the_runs(values, expected):
    assert is_within_runs(CELL, values) is expected
    assert is_within_runs(CELL._replace(published=None), values) is None


def test_numbers_without_items_are_compared_at_their_rounding():
    cell = CELL._replace(published=0.124, unit="nats", decimals=3, n_items=None)
    assert verdict_on(cell, 0.1245) == "matches"
    assert verdict_on(cell, 0.1246) == "differs by +0.001 nats"
    assert verdict_on(cell._replace(unit="", decimals=0, published=39.0), 38.0) == "differs by -1"


def test_point_of_a_figure_has_nothing_to_match():
    assert verdict_on(CELL._replace(published=None), 3.0) == "no published number"


@pytest.mark.parametrize("measured", [float("nan"), float("inf")])
def test_control_no_number_never_matches(measured):
    assert kind_of(verdict_on(CELL, measured)) == "differs"
