"""Tables of discrete features: coding, selection, recoding."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.data.features import FeatureTable, as_feature_table

TABLE = pd.DataFrame(
    {"q1": ["yes", "no", None, "yes"], "q2": [10, 9, 9, None], "q3": [None, None, None, "z"]},
    index=["i1", "i2", "i3", "i4"],
)


def decoded(table):
    """The table as a set of (item, feature, value)."""
    found = []
    for item, symbol in zip(table.item_of_entry, table.symbols, strict=True):
        f = table.feature_of_symbol[symbol]
        value = table.values[f][symbol - table.feature_offsets[f]]
        found.append((table.items[item], table.features[f], value))
    return sorted(found, key=str)


ENTRIES = [
    ("i1", "q1", "yes"),
    ("i1", "q2", 10),
    ("i2", "q1", "no"),
    ("i2", "q2", 9),
    ("i3", "q2", 9),
    ("i4", "q1", "yes"),
    ("i4", "q3", "z"),
]


def test_entries_by_hand():
    table = as_feature_table(TABLE)
    assert decoded(table) == ENTRIES
    assert [list(values) for values in table.values] == [["no", "yes"], [9, 10], ["z"]]
    np.testing.assert_array_equal(table.counts, [1, 2, 2, 1, 1])
    np.testing.assert_allclose(table.observed_share, [0.75, 0.75, 0.25])
    assert as_feature_table(table) is table


def test_matrix_by_hand():
    dense = as_feature_table(TABLE).matrix.toarray()
    np.testing.assert_array_equal(
        dense, [[0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 1]]
    )


def test_repeated_judgements_share_one_count():
    frame = pd.DataFrame({"task": [0, 0, 0, 1], "worker": [0, 0, 1, 0], "label": list("abaa")})
    table = as_feature_table(bc.Annotations.from_frame(frame))
    np.testing.assert_array_equal(table.matrix.toarray(), [[0.5, 0.5, 1, 0], [1, 0, 0, 0]])
    np.testing.assert_allclose(table.observed_share, [1.0, 0.5])
    np.testing.assert_array_equal(table.counts, [2, 1, 1, 0])


def test_annotations_are_a_table_of_workers():
    ann = bc.Annotations.from_matrix([["a", None, "b"], ["b", "b", None]])
    table = as_feature_table(ann)
    assert decoded(table) == [(0, 0, "a"), (0, 2, "b"), (1, 0, "b"), (1, 1, "b")]
    assert (table.n_items, table.n_features, table.n_symbols) == (2, 3, 6)


def test_selecting_features_keeps_items_and_order():
    table = as_feature_table(TABLE).select_features(np.array([2, 0]))
    assert list(table.features) == ["q1", "q3"]
    assert list(table.items) == list(TABLE.index)
    assert decoded(table) == [entry for entry in ENTRIES if entry[1] != "q2"]
    np.testing.assert_array_equal(np.diff(table.offsets), [1, 1, 0, 2])


def test_selecting_items_takes_the_order_given():
    table = as_feature_table(TABLE).select_items(np.array([3, 1]))
    assert list(table.items) == ["i4", "i2"]
    assert decoded(table) == [entry for entry in ENTRIES if entry[0] in ("i2", "i4")]
    again = as_feature_table(TABLE).select_items(np.array([2, 2, 0]))
    np.testing.assert_array_equal(np.diff(again.offsets), [1, 1, 2])


def test_recoding_keeps_the_entries():
    table = as_feature_table(TABLE)
    new = as_feature_table(TABLE.loc[["i2", "i3"], ["q2", "q1"]])
    recoded = new.recode(table.features, table.values)
    assert decoded(recoded) == [entry for entry in ENTRIES if entry[0] in ("i2", "i3")]
    assert recoded.features is table.features
    np.testing.assert_array_equal(recoded.symbols, [2, 0, 2])


def test_recoding_refuses_the_unknown():
    table = as_feature_table(TABLE)
    with pytest.raises(ValueError, match="feature 'q9' is not one of those fitted"):
        as_feature_table(pd.DataFrame({"q9": [1]})).recode(table.features, table.values)
    with pytest.raises(ValueError, match="value 'perhaps' of feature 'q1' is not one"):
        as_feature_table(pd.DataFrame({"q1": ["perhaps"]})).recode(table.features, table.values)


def test_repr():
    assert repr(as_feature_table(TABLE)) == (
        "FeatureTable(4 items, 3 features, 5 symbols, 7 entries)"
    )
    assert isinstance(as_feature_table(np.eye(2)), FeatureTable)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (pd.DataFrame({"a": []}), ValueError, "the table is empty"),
        (
            pd.DataFrame({"a": [1, 2], "b": [None, None]}),
            ValueError,
            "column 'b' has no value at all",
        ),
        ([1, 2], TypeError, "features came as list"),
        (np.zeros(3), TypeError, "features came as ndarray"),
    ],
)
def test_bad_input(data, error, message):
    with pytest.raises(error, match=message):
        as_feature_table(data)


def test_no_feature_selected():
    with pytest.raises(ValueError, match="no feature is selected"):
        as_feature_table(TABLE).select_features(np.array([], dtype=int))
