"""Readings counted together: by hand, an enumerated posterior, and the mode that EM climbs to."""

import itertools

import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from bayescrowd.posterior.conditionals.access_path_feature import (
    draw_dirichlet,
    group_readings,
    posterior_mode,
    sweep_groups,
)
from bayescrowd.posterior.conditionals.access_path_sweep import FeatureReadings, Tables

# Eight readings of one feature of two values, three labels each; five of them are equal.
TARGET = np.array([0, 1, 1, 1, 1, 1, 1, 1])
COUNTS = np.array([[1, 2], [2, 1], [3, 0], [3, 0], [3, 0], [2, 1], [3, 0], [3, 0]], dtype=float)
PRIOR = Tables(np.ones((2, 2)), np.array([[4.0, 1.0], [1.0, 4.0]]))
N_CHAINS, N_WARMUP, N_SWEEPS = 64, 50, 100
N_ERRORS = 4.0
"""Standard errors allowed; the 8 quantities leave the band once in 2,000 seeds."""


def groups():
    return group_readings(FeatureReadings(TARGET, COUNTS))


def start(n_chains):
    return Tables(*(np.repeat(rows[None], n_chains, axis=0) for rows in PRIOR))


def means(tables):
    return [rows / rows.sum(axis=-1, keepdims=True) for rows in tables]


def enumerated_means():
    """E theta_y and E theta_z, summed over all values of the eight readings."""
    log_weights, found = [], []
    for values in itertools.product([0, 1], repeat=len(TARGET)):
        rows = FeatureReadings(TARGET, COUNTS).add_counts(PRIOR, np.eye(2)[list(values)])
        log_weights.append(sum(betaln(*table.T).sum() for table in rows))
        found.append(means(rows))
    share = np.exp(np.array(log_weights) - logsumexp(log_weights))
    return [np.tensordot(share, np.stack(each), 1) for each in zip(*found, strict=True)]


# By hand


def test_equal_readings_are_one_group():
    (target, counts), n_equal = groups()
    found = {(y, *row): n for y, row, n in zip(target, counts.tolist(), n_equal, strict=True)}
    assert found == {(0, 1, 2): 1, (1, 2, 1): 2, (1, 3, 0): 5}


def test_zero_concentrations_draw_zero():
    rows = draw_dirichlet(np.random.default_rng(0), np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    assert (rows > 0).tolist() == [[True, False, True], [False] * 3]
    np.testing.assert_allclose(rows.sum(axis=1), [1, 0])


# Enumeration


def test_sweeps_have_the_enumerated_means():
    rng, chains, kept = np.random.default_rng(1), start(N_CHAINS), []
    for _ in range(N_WARMUP + N_SWEEPS):
        chains = sweep_groups(rng, chains, groups(), PRIOR)
        kept.append(means(chains))
    for by_sweep, expected in zip(
        zip(*kept[N_WARMUP:], strict=True), enumerated_means(), strict=True
    ):
        by_chain = np.mean(by_sweep, axis=0)
        error = by_chain.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
        gap = np.abs(by_chain.mean(axis=0) - expected)
        np.testing.assert_array_less(gap, N_ERRORS * error + 1e-9)
        with pytest.raises(AssertionError):  # control: the band tells other tables apart
            np.testing.assert_array_less(gap + 0.05, N_ERRORS * error)


# Invariants


def test_concentrations_hold_every_reading_and_label():
    found = sweep_groups(np.random.default_rng(0), start(3), groups(), PRIOR)
    np.testing.assert_allclose(found.conditional.sum(axis=-1), [[2 + 1, 2 + 7]] * 3)
    np.testing.assert_allclose(found.confusion.sum(axis=1), [[5 + 20, 5 + 4]] * 3)


def test_no_step_from_the_mode_climbs():
    mode = posterior_mode(start(1), groups(), PRIOR)

    def height(conditional, confusion):
        readings = FeatureReadings(TARGET, COUNTS)
        log_weights = readings.value_log_weights(Tables(conditional, confusion))
        return logsumexp(log_weights, axis=-1).sum() + 3 * np.log(np.diag(confusion)).sum()

    best = height(*mode)
    for field, row, step in itertools.product((0, 1), (0, 1), (-1e-3, 1e-3)):
        moved = [np.array(table) for table in mode]
        moved[field][row] += [step, -step]
        if (moved[field] > 0).all():
            assert height(*moved) < best
    np.testing.assert_allclose(mode.confusion.sum(axis=1), 1)
    one = mode.log_likelihood(np.array([[1, 0], [0, 1]]))
    np.testing.assert_allclose(np.exp(one).sum(axis=0), 1)
