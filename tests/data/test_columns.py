"""Columns of tables: codes by hand, what is missing, and messages that name the place."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.data.columns import (
    as_pandas,
    code_found,
    code_known,
    is_blank,
    parse_numbers,
    refuse_missing,
    refuse_repeats,
    require_columns,
    rows_by_label,
)
from bayescrowd.data.features import as_feature_table
from bayescrowd.data.vocabulary import Where

MIXED = pd.Series(["c10", None, "c2", " ", np.nan, "c10"])


def test_codes_of_found_values_by_hand():
    codes, values = code_found(MIXED, "x", Where())
    assert codes.tolist() == [1, -1, 0, -1, -1, 1]
    assert values.tolist() == ["c2", "c10"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_changes_no_code(seed):
    order = np.random.default_rng(seed).permutation(len(MIXED))
    codes, values = code_found(MIXED.iloc[order], "x", Where())
    assert values.tolist() == ["c2", "c10"]
    assert codes.tolist() == [[1, -1, 0, -1, -1, 1][place] for place in order]


def test_known_values_have_their_own_codes():
    known = {"c10": 0, "c2": 7}
    codes = code_known(MIXED, "x", Where(), code_of=known.get, expected=known)
    assert codes.tolist() == [0, -1, 7, -1, -1, 0]
    with_blank = {**known, " ": 3}
    codes = code_known(MIXED, "x", Where(), code_of=with_blank.get, expected=with_blank)
    assert codes.tolist() == [0, -1, 7, 3, -1, 0]


def test_all_tables_code_a_column_alike():
    frame = pd.DataFrame({"x": MIXED, "y": [3, 1, 2, 1, 3, 2], "kind": list("ababab")})
    space = FeatureSpace.from_table(frame, target="kind")
    table = as_feature_table(frame[["x", "y"]])
    assert [list(values) for values in table.values] == list(map(list, space.features.values()))
    coded = space.code(frame, target="kind").values
    feature = table.feature_of_symbol[table.symbols]
    again = np.full(coded.shape, -1)
    again[table.item_of_entry, feature] = table.symbols - table.feature_offsets[feature]
    np.testing.assert_array_equal(coded, again)


def test_numbers_by_hand():
    numbers, is_wrong = parse_numbers(pd.Series([1, "2.5", True, None, "", "x", np.inf]))
    np.testing.assert_array_equal(numbers, [1, 2.5, 1, np.nan, np.nan, np.nan, np.inf])
    assert is_wrong.tolist() == [False, False, False, False, False, True, True]
    numbers, is_wrong = parse_numbers(pd.Series(["2", "1", "2"], dtype="category"))
    assert numbers.tolist() == [2, 1, 2]
    assert not is_wrong.any()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(None, True), (np.nan, True), (pd.NA, True), ("\t ", True), (0, False), ([], False)],
)
def test_what_is_blank(entry, expected):
    assert is_blank(entry) is expected


def test_tables_of_other_libraries():
    expected = pd.DataFrame({"a": [1, 2]})
    for table in (expected, pl.DataFrame({"a": [1, 2]}), pl.LazyFrame({"a": [1, 2]})):
        pd.testing.assert_frame_equal(as_pandas(table, "rows", "a table"), expected)


FRAME = pd.DataFrame({"a": ["u", "v", ""]}, index=["i", "j", "k"])
LABELS = rows_by_label(FRAME.index)
BAD = [
    (
        lambda: code_known(FRAME["a"], "a", LABELS, code_of={"u": 0}.get, expected=["u"]),
        "row 'j', column 'a': 'v' is not one of 'u'",
    ),
    (
        lambda: refuse_missing(FRAME["a"], "a", "name", Where("x.csv")),
        r"x.csv: row 3, column 'a': ",
    ),
    (
        lambda: refuse_missing(FRAME["a"], "a", "name", LABELS),
        r"row 'k', column 'a': the name is missing \(1 in all\)",
    ),
    (
        lambda: require_columns(FRAME, ["b"], Where("x.csv")),
        "x.csv: there is no column 'b'; the co",
    ),
    (lambda: code_found(pd.Series([None, ""]), "a", Where()), "column 'a' has no value at all"),
    (lambda: code_found(pd.Series([1, [2]]), "a", Where()), "row 2, column 'a': found a list"),
    (lambda: refuse_repeats(pd.Index([1, 2, 1]), "item", "y: "), "y: item 1 is listed twice"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_messages_name_the_place(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_not_a_table():
    with pytest.raises(TypeError, match="rows came as int; expected a table"):
        as_pandas(3, "rows", "a table")
