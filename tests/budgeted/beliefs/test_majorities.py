"""One observation from several labels, by hand and where labels tie."""

import numpy as np
import pytest

from bayescrowd.budgeted.beliefs.majorities import first_majority, majority_shares


def test_majorities_by_hand():
    labels = np.array([[0, 0, 1], [2, 1, 0], [-1, -1, -1], [1, -1, 1]])
    expected = [[1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(majority_shares(labels, 3), expected)
    expected[1] = [0, 0, 1]
    np.testing.assert_allclose(first_majority(labels, 3), expected)


def test_the_first_of_tied_labels_is_a_fair_choice():
    labels = np.random.default_rng(0).integers(0, 3, (4_000, 5))
    shared, first = majority_shares(labels, 3), first_majority(labels, 3)
    assert (shared.max(axis=1) < 1).mean() == pytest.approx(0.37, abs=0.03)  # 90 of 243 tie
    assert set(first.sum(axis=1)) == {1.0}
    assert (shared[first == 1] > 0).all()
    # 1,500 ties of two: the standard error is half the root of their number; four of them
    np.testing.assert_allclose(first.sum(axis=0), shared.sum(axis=0), atol=4 * 0.5 * 1_500**0.5)
