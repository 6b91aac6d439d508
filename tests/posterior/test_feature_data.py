"""Coding of feature tables and of workers' readings; nothing is sampled here."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.posterior.feature_data import code_readings, code_table

TABLE = pd.DataFrame(
    {"colour": ["red", None, "blue"], "size": [10, 2, np.nan]}, index=["i", "j", "k"]
)
LONG = pd.DataFrame(
    {
        "item": ["j", "i", "i", "i", "j"],
        "feature": ["size", "size", "colour", "size", "size"],
        "worker": ["w2", "w1", "w1", "w2", "w1"],
        "value": ["l", "s", "red", "s", None],
    }
)
TARGET = pd.Series({"i": "yes", "j": None, "k": "no"})


def table(data=TABLE, target=TARGET, classes=None):
    return code_table(data, target, classes)


def readings(data=LONG, target=TARGET, classes=None, groups="shared"):
    return code_readings(data, target, classes, groups)


# By hand


def test_table_by_hand():
    coded = table()
    assert list(coded.tasks) == ["i", "j", "k"]
    assert list(coded.classes) == ["no", "yes"]
    assert [list(values) for values in coded.values] == [["blue", "red"], [2, 10]]
    target, item, feature, value = (field.tolist() for field in coded.observations)
    assert target == [1, -1, 0]
    assert list(zip(item, feature, value, strict=True)) == [
        (0, 0, 1),
        (0, 1, 1),
        (1, 1, 0),
        (2, 0, 0),
    ]


def test_readings_by_hand():
    coded = readings()
    assert list(coded.tasks) == ["i", "j", "k"]  # k is known and was never read
    assert [list(values) for values in coded.values] == [["red"], ["l", "s"]]
    target, item, feature, reading, group, label = (f.tolist() for f in coded.observations)
    assert target == [1, -1, 0]
    assert list(zip(item, feature, strict=True)) == [(0, 0), (0, 1), (1, 1)]
    # the judgement without a value is gone; the others are in the order of the table
    assert reading == [2, 1, 0, 1]
    assert label == [0, 1, 0, 1]
    assert group == [0, 0, 0, 0]
    assert coded.worker_code.tolist() == [1, 0, 0, 1]


def test_groups():
    assert list(readings(groups="worker").groups) == ["w1", "w2"]
    assert readings(groups="worker").observations.group.tolist() == [1, 0, 0, 1]
    teams = readings(groups={"w1": "north", "w2": "east"})
    assert list(teams.groups) == ["east", "north"]
    assert teams.observations.group.tolist() == [0, 1, 1, 0]


# Invariants


def test_tasks_may_be_called_tasks_and_workers_may_be_left_out():
    anonymous = readings(LONG.rename(columns={"item": "task"}).drop(columns="worker"))
    for field, expected in zip(anonymous.observations, readings().observations, strict=True):
        np.testing.assert_array_equal(field, expected)


def test_polars_tables_are_read():
    pl = pytest.importorskip("polars")
    for field, expected in zip(
        readings(pl.from_pandas(LONG)).observations, readings().observations, strict=True
    ):
        np.testing.assert_array_equal(field, expected)


def test_loaded_tables_bring_their_target():
    loaded = bc.TableDataset(TABLE, TARGET, "", "tiny", "")
    assert code_table(loaded, None, None).observations.target.tolist() == [1, -1, 0]


def test_classes_that_no_item_has():
    assert list(table(classes=["no", "maybe", "yes"]).classes) == ["no", "maybe", "yes"]
    ordered = TARGET.astype(pd.CategoricalDtype(["yes", "maybe", "no"]))
    assert list(table(target=ordered).classes) == ["yes", "maybe", "no"]
    unknown = table(target=None, classes=3)
    assert list(unknown.classes) == [0, 1, 2]
    assert unknown.observations.target.tolist() == [-1, -1, -1]


# Bad input

BAD = [
    (table, {"data": TABLE.iloc[[0, 0]]}, "item 'i' is listed twice"),
    (table, {"data": TABLE.assign(empty=None)}, "column 'empty' has no value at all"),
    (table, {"target": None}, "no class is known: pass target"),
    (table, {"target": None, "classes": 1}, "no class is known: pass target"),
    (table, {"target": pd.Series({"x": "a", "y": "b"})}, "no item in common: 'x' of the target"),
    (
        table,
        {"target": pd.Series(["a", "b"], index=["i", "i"])},
        "target: item 'i' is listed twice",
    ),
    (table, {"classes": ["no", "maybe"]}, "label 'yes' is not one of the classes 'no', 'maybe'"),
    (table, {"target": pd.Series({"i": "a", "j": "a"})}, "holds one class only"),
    (readings, {"data": LONG.drop(columns="value")}, "there is no column 'value'"),
    (readings, {"data": LONG.assign(value=None)}, "has no value at all"),
    (readings, {"data": LONG.assign(item=None)}, "missing item id"),
    (readings, {"groups": "team"}, "groups='team': expected 'shared', 'worker' or the group"),
    (readings, {"groups": {"w1": "north"}}, "worker 'w2' has no group"),
    (readings, {"data": LONG.drop(columns="worker"), "groups": "worker"}, "no column 'worker'"),
]


@pytest.mark.parametrize(("code", "options", "message"), BAD)
def test_bad_input_is_refused(code, options, message):
    with pytest.raises(ValueError, match=message):
        code(**options)


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="features came as dict"):
        table({"colour": ["red"]})
    with pytest.raises(TypeError, match="readings came as dict"):
        readings({"item": ["i"]})
