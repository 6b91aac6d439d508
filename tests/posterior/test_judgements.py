"""Draws of the model of numeric judgements: seeds, unequal numbers, constants, bad options."""

import numpy as np
import pytest

from bayescrowd.data.judgements import as_judgements
from bayescrowd.posterior.judgements import sample_judgements


def simulated(seed, m, k=2):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(m, 3))
    noise = np.array([[0.3], [1.0], [2.0]]) * rng.normal(size=(m, 3, k))
    return values[:, :, None] + noise, values @ [0.6, 0.4, 0.5] + 0.5 * rng.normal(size=m)


def test_seed_and_unequal_numbers():
    values, y = simulated(2, m=40)
    values[::3, 1, 1] = np.nan
    values[5, 0, :] = np.nan
    judgements = as_judgements(values)
    one, two, other = (
        sample_judgements(judgements, y, draws=20, warmup=5, chains=1, seed=s).covariance
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert np.isfinite(one).all()


@pytest.mark.parametrize("constant", [4.7, 1e6 + 0.1, 1e-8])
def test_rounding_errors_of_a_constant_are_not_modelled(constant):
    """A constant column and a constant target are what they are at 0, where nothing is rounded."""
    values, y = simulated(3, m=30, k=3)
    found = []
    for level in (constant, 0.0):
        values[:, 1] = level
        found.append(sample_judgements(as_judgements(values), y, draws=5, warmup=2, chains=1))
    np.testing.assert_array_equal(found[0].covariance, found[1].covariance)
    np.testing.assert_array_equal(found[0].internal_variance, found[1].internal_variance)
    flat, zero = (
        sample_judgements(as_judgements(values), np.full(30, level), draws=5, warmup=2, chains=1)
        for level in (constant, 0.0)
    )
    np.testing.assert_array_equal(flat.covariance, zero.covariance)


def test_bad_options():
    values, y = simulated(0, m=20)
    with pytest.raises(ValueError, match="draws=0"):
        sample_judgements(as_judgements(values), y, draws=0)
