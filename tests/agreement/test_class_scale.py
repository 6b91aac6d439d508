"""Which classes have an order or are numbers, and where they lie."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.agreement.class_scale import class_scale
from bayescrowd.data.vocabulary import options_in_messages


def scale(classes: list[Any], metric: Any, order: Any = None) -> Any:
    return class_scale(pd.Index(classes, name="class"), metric, order)


def test_places_by_hand() -> None:
    counts = np.array([3.0, 0.0, 2.0, 5.0])
    ordinal = scale([1, 2, 3, 4], "ordinal").places(counts)
    np.testing.assert_allclose(
        ordinal, [0.15, 0.3, 0.4, 0.75]
    )  # middles of 0..3, 3..3, 3..5, 5..10
    interval = scale([10, 20, 25, 50], "interval").places(counts)
    np.testing.assert_allclose(interval, [0, 0.25, 0.375, 1])


def test_differences_of_places_are_those_of_krippendorff() -> None:
    """His sum of n_g from c to k less half of n_c + n_k, over all labels."""
    n = np.random.default_rng(0).integers(0, 9, size=6).astype(float)
    places = scale([1, 2, 3, 4, 5, 6], "ordinal").places(n) * n.sum()
    for c in range(6):
        for k in range(c, 6):
            expected = n[c : k + 1].sum() - (n[c] + n[k]) / 2
            assert places[k] - places[c] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("classes", "order", "ranking"),
    [
        ([1, 2, 10], None, [0, 1, 2]),
        (["1", "2", "10"], None, [0, 1, 2]),
        (["0.5", "-1", "-2"], None, [2, 1, 0]),  # as they are sorted unless the user says more
        (["low", "mid", "high"], None, [0, 1, 2]),  # an order of the user's own
        (["high", "low", "mid"], ["low", "mid", "high"], [1, 2, 0]),
        ([1, 2, 3], ["3", "1", "2"], [2, 0, 1]),  # as typed on the command line
        ([2, 1, 3], None, [0, 1, 2]),
    ],
)
def test_ranking(classes: list[Any], order: Any, ranking: list[int]) -> None:
    assert scale(classes, "ordinal", order).ranking.tolist() == ranking


@pytest.mark.parametrize(
    ("classes", "metric", "order", "message"),
    [
        (["bad", "good", "medium"], "ordinal", None, "metric=ordinal: .*alphabetical.*order="),
        ([False, True], "ordinal", None, "alphabetical"),
        (["1", "2", "many"], "interval", None, "metric=interval: the class 'many' is not a number"),
        (["1", "nan"], "interval", None, "the class 'nan' is not a number"),
        ([False, True], "interval", None, "the class False is not a number"),
        (["a", "b"], "ordinal", ["a"], "order='a': expected every class once, of 'a', 'b'"),
        (["a", "b"], "ordinal", ["a", "b", "b"], "expected every class once"),
        (["a", "b"], "ordinal", ["a", "c"], "expected every class once"),
        ([1, 2], "interval", [1, 2], "order of the classes is given, but metric=interval"),
        (["a", "b"], "nominal", ["a", "b"], "expected ordinal"),
    ],
)
def test_classes_that_do_not_fit(classes: list[Any], metric: Any, order: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scale(classes, metric, order)


def test_messages_name_options_on_the_command_line() -> None:
    with options_in_messages(), pytest.raises(ValueError, match=r"^--metric ordinal: .*--classes$"):
        scale(["bad", "good"], "ordinal")


def test_unknown_metric() -> None:
    ann = bc.Annotations.from_matrix([[1, 2], [2, 2]])
    for measure in (bc.agreement.krippendorff_alpha, bc.agreement.agreement_table):
        with pytest.raises(ValueError, match="metric='cardinal'"):
            measure(ann, metric="cardinal")
