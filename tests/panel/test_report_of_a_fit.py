"""A report on a fitted estimator is the report on its labels, without another fit."""

import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import bayescrowd as bc

DATA = bc.simulate.panel(120, 6, clusters=[3], accuracy=[0.8] * 6, seed=2)
GOLD = DATA.truth.iloc[:20]


@pytest.fixture(scope="module")
def fitted():
    """The estimator of an earlier report, without gold."""
    return bc.panel_report(DATA.annotations, most_dropped=0).estimator


@pytest.fixture(scope="module")
def expected():
    return bc.panel_report(DATA.annotations, GOLD, most_dropped=0)


def test_a_fit_is_used_again(fitted, expected, monkeypatch):
    def refuse(*_):
        pytest.fail("the labels are fitted again")

    monkeypatch.setattr(bc.AutoAggregator, "fit", refuse)
    found = bc.panel_report(fitted, GOLD, most_dropped=0)
    assert found.estimator is fitted
    pd.testing.assert_frame_equal(found.probas, expected.probas)
    pd.testing.assert_frame_equal(found.accuracies, expected.accuracies)
    pd.testing.assert_frame_equal(found.shares.shares, expected.shares.shares)
    assert found.summary == expected.summary


def test_a_fit_with_gold_is_repeated_without(expected):
    wrong = GOLD.map({0: 1, 1: 0})
    found = bc.panel_report(bc.aggregate(DATA.annotations, gold=wrong), GOLD, most_dropped=0)
    pd.testing.assert_frame_equal(found.probas, expected.probas)


def test_gold_of_a_class_that_nobody_chose(fitted):
    gold = pd.Series([2, *GOLD.iloc[1:]], index=GOLD.index)
    found = bc.panel_report(fitted, gold, most_dropped=0)
    again = bc.panel_report(DATA.annotations, gold, most_dropped=0)
    assert found.probas.columns.tolist() == [0, 1, 2]
    pd.testing.assert_frame_equal(found.probas, again.probas)


def test_an_estimator_that_is_not_fitted():
    with pytest.raises(NotFittedError, match="AutoAggregator"):
        bc.panel_report(bc.AutoAggregator(), GOLD)
