"""Post-stratified shares against the formula, written out."""

import numpy as np
import pytest
import scipy.stats

from bayescrowd.aggregation.post_strata import beta_interval, cut, post_stratified, quartiles, tally


@pytest.mark.parametrize("guess", [0.5, 0.1])
def test_formula(guess):
    sizes, claims = np.array([[10.0, 20, 30, 40]]), np.array([[0.1, 0.3, 0.6, 0.9]])
    n, x = np.array([[0.0, 2, 3, 5]]), np.array([[0.0, 1, 2, 5]])
    share = post_stratified(sizes, claims, n, x, guess=guess)
    estimate = variance = 0.0
    for size, p, known, true in zip(sizes[0], claims[0], n[0], x[0], strict=True):
        a, c = p + guess / 2 + true, 1 - p + (1 - guess) / 2 + known - true
        estimate += size / 100 * a / (a + c)
        variance += (size / 100) ** 2 * scipy.stats.beta(a, c).var()
    assert share.estimate[0] == pytest.approx(estimate)
    total = estimate * (1 - estimate) / variance - 1
    ends = scipy.stats.beta(estimate * total, (1 - estimate) * total).ppf([0.05, 0.95])
    np.testing.assert_allclose([share.lower[0], share.upper[0]], ends)


def test_interval_of_a_known_beta():
    beta = scipy.stats.beta(3, 5)
    ends = beta_interval(np.array([beta.mean()]), np.array([beta.var()]), 0.8)
    np.testing.assert_allclose(np.concatenate(ends), beta.ppf([0.1, 0.9]))


def test_equal_cases_share_a_stratum():
    claimed = np.array([0.2, 0.2, 0.2, 0.2, 0.9])
    stratum = cut(claimed, quartiles(claimed))
    assert len(set(stratum[:4])) == 1
    assert stratum[4] != stratum[0]


def test_tally():
    found = tally(np.array([0, 1, 1]), np.array([3, 0, 0]), 2, np.array([2.0, 1, 4]))
    assert found.tolist() == [[0, 0, 0, 2], [5, 0, 0, 0]]
