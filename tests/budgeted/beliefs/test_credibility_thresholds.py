"""The rules for delta: spending levels, prices and numbers."""

import numpy as np
import pytest

from bayescrowd.budgeted.beliefs.credibility import table_credibility
from bayescrowd.budgeted.beliefs.credibility_thresholds import delta_of, thresholds
from bayescrowd.budgeted.space import FeatureSpace


def space(**features):
    return FeatureSpace(classes=["a", "b"], features=features, prior=[0.8, 0.2])


def test_thresholds_are_the_credibility_at_b_over_n_and_b_over_k():
    both = space(x=[0, 1], y=[0, 1, 2, 3])
    limits = thresholds(both, budget=80, n_features=1)
    for f, width in enumerate((2, 4)):
        for n, found in ((40, limits.lower), (80, limits.upper)):
            rows = 1 + n * np.array([[0.8], [0.2]]) / width * np.ones(width)
            assert found[f] == pytest.approx(1 - table_credibility(rows, both.class_prior))
    assert (limits.upper < limits.lower).all()


def test_queries_of_several_labels_buy_fewer_observations():
    one = thresholds(space(x=[0, 1]), budget=20, n_features=1)
    five = thresholds(space(x=[0, 1]), budget=100, n_features=1, labels_per_query=5)
    np.testing.assert_allclose(one, five)


def test_rules_for_delta():
    limits = thresholds(space(x=[0, 1], y=[0, 1, 2]), budget=60, n_features=1)
    np.testing.assert_allclose(delta_of("midpoint", limits), (limits.lower + limits.upper) / 2)
    assert (delta_of("printed", limits) < 0).all()  # hence nothing is ever credible
    assert delta_of(0.25, limits).tolist() == [0.25, 0.25]
