"""The table of labels that all classes with crowd-kit's names take."""

import importlib
import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayescrowd as bc
from bayescrowd import crowdkit
from bayescrowd.crowdkit.answers import distinct_answers, read_answers

CLASSES = [getattr(crowdkit, name) for name in crowdkit.__all__]


def fit(kind, table, gold=None):
    if kind is crowdkit.GoldMajorityVote:
        gold = pd.Series({"t1": "yes", "t2": "yes"}) if gold is None else gold
        return kind().fit_predict(table, gold)
    return kind().fit_predict(table)


def test_every_class_is_reached_from_the_package():
    assert bc.crowdkit is crowdkit


def test_names_and_parameters_are_those_of_crowd_kit(peer):
    for kind in CLASSES:
        theirs = getattr(peer, kind.__name__)
        expected = [name for name in inspect.signature(theirs).parameters if name[0] != "_"]
        expected = [name for name in expected if not hasattr(theirs(), f"_{name}")]  # MMSR's own
        if kind is crowdkit.OneCoinDawidSkene:  # crowd-kit ignores it there
            expected.remove("initial_error_strategy")
        assert list(inspect.signature(kind).parameters) == expected
    every = importlib.import_module("crowdkit.aggregation.classification").__all__
    assert set(every) == set(crowdkit.__all__)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_an_absent_column_is_a_key_error(toy, kind, column):
    with pytest.raises(KeyError, match=f"no column '{column}'"):
        fit(kind, toy.drop(columns=column))


@pytest.mark.parametrize("kind", CLASSES)
def test_an_empty_table_has_empty_results(kind):
    labels = fit(
        kind, pd.DataFrame([], columns=["task", "worker", "label"]), pd.Series(dtype=float)
    )
    assert len(labels) == 0
    assert labels.name == "agg_label"


@pytest.mark.parametrize("kind", CLASSES)
def test_names_of_results(toy, kind):
    est = kind()
    gold = (pd.Series({"t1": "yes", "t2": "yes"}),) if kind is crowdkit.GoldMajorityVote else ()
    est.fit_predict(toy, *gold)
    found = {name: value for name, value in vars(est).items() if isinstance(value, pd.Series)}
    for name, series in found.items():
        assert series.name == ("agg_label" if name == "labels_" else name[:-2])
    assert est.labels_.index.name == "task"


@pytest.mark.parametrize("kind", CLASSES)
def test_rows_may_come_in_any_order_and_with_other_columns(toy, kind):
    labels = fit(kind, toy)
    before = toy.assign(time=range(len(toy))).sample(frac=1, random_state=3)
    again = fit(kind, before.copy())
    if kind is not crowdkit.MACE:  # which breaks ties by the order of rows
        pd.testing.assert_series_equal(again.sort_index(), labels.sort_index())
    assert before.columns.to_list() == ["worker", "task", "label", "time"]


@pytest.mark.parametrize("kind", CLASSES)
def test_parameters_in_the_style_of_scikit_learn(kind):
    assert clone(kind()).get_params() == kind().get_params()


def test_labels_sort_as_in_pandas_and_missing_ones_are_left_out():
    rows = [(1, "u", "c10"), (1, "u", "c2"), (2, "v", None), (3, "v", "c2")]
    answers = read_answers(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert list(answers.ann.classes) == ["c10", "c2"]
    assert list(answers.ann.tasks) == [1, 3]
    assert list(answers.seen_first("worker")) == ["u", "v"]
    assert crowdkit.MajorityVote().fit_predict(answers.frame).to_list() == ["c10", "c2"]


def test_categories_become_plain_labels():
    rows = [("t", "u", "b"), ("t", "v", "b"), ("s", "u", "a")]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    plain = crowdkit.DawidSkene(5).fit(table)
    found = crowdkit.DawidSkene(5).fit(table.astype("category"))
    assert found.labels_.to_dict() == plain.labels_.to_dict()
    np.testing.assert_allclose(found.probas_, plain.probas_)


def test_a_single_class_is_the_answer():
    table = pd.DataFrame({"task": [1, 2], "worker": ["u", "v"], "label": ["a", "a"]})
    assert crowdkit.MajorityVote().fit_predict(table).to_list() == ["a", "a"]
    assert crowdkit.DawidSkene(3).fit_predict(table).to_list() == ["a", "a"]


def test_distinct_answers():
    rows = [("t", "u", "a"), ("t", "u", "a"), ("t", "u", "b"), ("s", "u", "b")]
    ann = read_answers(pd.DataFrame(rows, columns=["task", "worker", "label"])).ann
    assert distinct_answers(ann).tolist() == [True, True, False, True]


def test_bad_tables(toy):
    with pytest.raises(TypeError, match="data"):
        crowdkit.MajorityVote().fit([("t", "u", "a")])
    with pytest.raises(ValueError, match="column 'worker': 1 row without a worker"):
        crowdkit.DawidSkene().fit(toy.assign(worker=[None, *toy["worker"][1:]]))
    est = crowdkit.DawidSkene().set_params(n_iter=-1)
    with pytest.raises(ValueError, match="n_iter=-1"):
        est.fit(toy)
