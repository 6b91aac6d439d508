"""R-hat and effective sizes: ArviZ's numbers, and what a look at several variables says."""

import warnings

import arviz
import numpy as np
import pytest

from bayescrowd.posterior.convergence import (
    MOST_QUANTITIES,
    Verdict,
    convergence_of,
    effective_size,
    entries_to_watch,
    has_converged,
    is_at_rest,
    judge,
)


def chains(n_draws=500, seed=0):
    """Autoregressive draws from hardly to very correlated, with ties, constants and odd scales."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(4, n_draws, 24))
    slow = np.linspace(-0.5, 0.98, 24)
    for t in range(1, n_draws):
        draws[:, t] += slow * draws[:, t - 1]
    draws[:, :, 3] = 1.0
    draws[:, :, 4] = draws[:, :, 4] > 1.5
    draws[:, :, 5] = np.exp(9 * draws[:, :, 5])
    draws[2, :, 6] += 2
    return draws


def by_arviz(draws, compute):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.array([float(compute(draws[:, :, i])) for i in range(draws.shape[2])])


@pytest.mark.parametrize("n_draws", [500, 37, 6])
def test_the_numbers_are_those_of_arviz(n_draws):
    draws = chains(n_draws)
    found = convergence_of(draws)
    np.testing.assert_allclose(found.rhat, by_arviz(draws, arviz.rhat), rtol=1e-9)
    # ArviZ 1.x asks for the quantiles of the tails, which ArviZ 0.x has as a default.
    for sizes, options in (
        (found.ess_bulk, {"method": "bulk"}),
        (found.ess_tail, {"method": "tail", "prob": (0.05, 0.95)}),
        (effective_size(draws), {"method": "mean"}),
    ):
        expected = by_arviz(draws, lambda one, options=options: arviz.ess(one, **options))
        np.testing.assert_allclose(sizes, expected, rtol=1e-9)


def test_one_chain_has_no_rhat_and_an_effective_size():
    found = convergence_of(chains()[:1])
    assert np.isnan(found.rhat).all()
    assert np.isfinite(found.ess_bulk).all()
    assert not has_converged(found, n_chains=1).any()


def test_too_few_draws_are_not_judged():
    assert np.isnan(np.stack(convergence_of(chains(n_draws=3)))).all()


def test_very_many_entries_are_thinned_evenly():
    draws = np.arange(2.0 * 3 * 2 * MOST_QUANTITIES).reshape(2, 3, 2, MOST_QUANTITIES)
    assert entries_to_watch(draws)[0, 0].tolist() == list(range(0, 2 * MOST_QUANTITIES, 2))


def test_looks_tell_slow_chains_from_chains_that_are_apart():
    rng = np.random.default_rng(1)
    good = rng.normal(size=(4, 500, 3))
    slow = np.zeros((4, 500))
    noise = rng.normal(size=(4, 500))
    for t in range(1, 500):
        slow[:, t] = 0.9 * slow[:, t - 1] + noise[:, t]
    apart = good.copy()
    apart[1] += 3
    few = rng.normal(size=(4, 60, 50))  # independent, and yet not enough for R-hat 1.01
    assert judge([good]) is Verdict.CONVERGED
    assert judge([few]) is Verdict.SPENT
    assert judge([good, slow]) is Verdict.FEW
    assert judge([good, apart]) is Verdict.APART


def test_chains_that_drift_are_not_at_rest():
    draws = np.random.default_rng(0).normal(size=(2, 1000, 5))
    assert is_at_rest(draws)
    assert is_at_rest(draws[:1])
    # One entry of one chain moves by two standard deviations while one looks.
    drifting = draws.copy()
    drifting[1, :, 3] += np.linspace(-1, 1, 1000)
    assert not is_at_rest(drifting)
    # The same values, but the chain creeps through them.
    assert not is_at_rest(np.sort(draws[:1], axis=1))


def test_chains_apart_and_too_few_draws_are_not_at_rest():
    draws = np.random.default_rng(0).normal(size=(2, 1000, 5))
    draws[1] += 3
    assert not is_at_rest(draws)
    assert not is_at_rest(draws[:1, :60])
