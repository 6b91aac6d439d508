"""Multisets of labels: by hand, and fewer labels where there would be too many.

What the access path belief makes of them is tested with it.
"""

import numpy as np
import pytest

from bayescrowd.budgeted.beliefs.label_multisets import MOST_OUTCOMES, multisets


def test_multisets_by_hand():
    found = multisets(3, 2)
    expected = [[2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]]
    assert found.counts.tolist() == expected
    np.testing.assert_allclose(np.exp(found.log_orders), [1, 2, 2, 1, 2, 1])


@pytest.mark.parametrize(("n_values", "n_labels", "n_read"), [(5, 5, 5), (10, 5, 3), (300, 4, 1)])
def test_fewer_labels_are_read_if_multisets_are_too_many(n_values, n_labels, n_read):
    found = multisets(n_values, n_labels)
    assert len(found.counts) <= max(MOST_OUTCOMES, n_values)
    assert (found.counts.sum(axis=1) == n_read).all()
    # the orders of all multisets are all sequences
    assert np.exp(found.log_orders).sum() == pytest.approx(n_values**n_read)
