"""Credibility: equation 1 by integration, the other measures, and all of them from draws."""

import numpy as np
import pytest
from scipy import integrate, stats

from bayescrowd.budgeted.beliefs.credibility import (
    batch_error,
    draws_credibility,
    table_credibility,
)

ROWS = np.array([[3.0, 2.0, 5.0], [1.0, 1.0, 12.0]])
WEIGHTS = np.array([0.7, 0.3])

every_measure = pytest.mark.parametrize("measure", ["interval", "variance", "hdi"])


def test_equation_1_by_integration():
    expected = 0.0
    for row, weight in zip(ROWS, WEIGHTS, strict=True):
        for a in row:
            mean = a / row.sum()
            density = stats.beta(a, row.sum() - a).pdf
            mass, _ = integrate.quad(density, max(mean - 0.05, 0), min(mean + 0.05, 1))
            expected += weight / 3 * mass
    assert table_credibility(ROWS, WEIGHTS) == pytest.approx(expected, rel=1e-7)


def test_known_values_before_any_answer():
    # uniform priors: about .40 with ten values, .10 with two
    one = np.ones(1)
    assert table_credibility(np.ones((1, 2)), one) == pytest.approx(0.10, abs=1e-9)
    assert table_credibility(np.ones((1, 10)), one) == pytest.approx(0.40, abs=0.02)


def test_variance_by_hand_and_hdi_by_search():
    draws = stats.beta(3, 7)
    expected = 1 - 4 * np.mean([stats.beta(a, 10 - a).var() for a in ROWS[0]])
    found = table_credibility(ROWS[:1], np.ones(1), measure="variance")
    assert found == pytest.approx(expected, rel=1e-9)
    tails = np.linspace(0, 0.05, 20_001)
    width = (draws.ppf(tails + 0.95) - draws.ppf(tails)).min()
    found = table_credibility(np.array([[3.0, 7.0]]), np.ones(1), measure="hdi")
    assert found == pytest.approx(1 - width, abs=1e-6)


@every_measure
def test_rises_with_the_number_of_answers(measure):
    known = [table_credibility(n * ROWS, WEIGHTS, measure=measure) for n in (1, 2, 4, 50, 1000)]
    assert (np.diff(known) > 0).all()
    assert known[0] >= 0
    assert known[-1] <= 1


# From draws


def draws_of_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.dirichlet(row, size=n) for row in ROWS], axis=1)


def test_draws_by_hand():
    # means .5: two of four draws are within .1 of it; variances with three degrees
    first = np.array([0.2, 0.45, 0.55, 0.8])
    draws = np.stack([first, 1 - first], axis=1)[:, None, :]
    assert draws_credibility(draws, np.ones(1), epsilon=0.1).value == 0.5
    found = draws_credibility(draws, np.ones(1), measure="variance")
    assert found.value == pytest.approx(1 - 4 * (2 * 0.3**2 + 2 * 0.05**2) / 3)
    assert batch_error(np.array([1.0, 3.0, 2.0, 6.0]), 2) == pytest.approx(1)  # of 2 and 4


@every_measure
def test_agrees_with_the_closed_form_to_its_own_error(measure):
    expected = table_credibility(ROWS, WEIGHTS, measure=measure)
    found = draws_credibility(draws_of_rows(40_000), WEIGHTS, measure=measure)
    # the narrowest interval of a sample is slightly too narrow: by less than .002 of 40,000 draws
    assert abs(found.value - expected) < 4 * found.error + 0.002 * (measure == "hdi")
    assert found.error < 0.002


@every_measure
def test_the_error_is_the_spread_over_repeated_samples(measure):
    found = [
        draws_credibility(draws_of_rows(1_000, s), WEIGHTS, measure=measure) for s in range(60)
    ]
    spread = np.std([one.value for one in found], ddof=1)
    # 60 samples know their spread to 1 / sqrt(118), 9 %; four times that
    assert np.mean([one.error for one in found]) == pytest.approx(spread, rel=0.37)


def test_correlated_draws_have_a_larger_error():
    rng = np.random.default_rng(0)
    few = rng.beta(3, 7, size=200)
    draws = np.repeat(np.stack([few, 1 - few], axis=1)[:, None], 20, axis=0)
    held, free = (draws_credibility(d, np.ones(1)).error for d in (draws, rng.permutation(draws)))
    # repeats of 20 leave 200 draws of 4,000: the error is sqrt(20) = 4.5 times as large
    assert 3 < held / free < 6


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="3 draws: expected at least 4"):
        draws_credibility(draws_of_rows(3), WEIGHTS)
