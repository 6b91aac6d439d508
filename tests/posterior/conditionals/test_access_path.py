"""The two layouts of readings state the same conditionals; chains have an enumerated posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.access_path import (
    CONDITIONALS,
    TableReadings,
    _prior_concentrations,
)
from bayescrowd.posterior.conditionals.access_path_feature import sweep_chains
from bayescrowd.posterior.conditionals.access_path_sweep import FeatureReadings, Tables

# Eight readings of one feature of two values, three labels each, of items of known classes.
TARGET = np.array([0, 1, 1, 1, 1, 1, 1, 1], dtype=np.int32)
COUNTS = np.float32([[1, 2], [2, 1], [3, 0], [3, 0], [3, 0], [2, 1], [3, 0], [3, 0]])

# Log evidence and posterior means by enumeration of all values, to the digits given.
KNOWN = {
    4.0: (-12.101730, [[0.3724, 0.6276], [0.8336, 0.1664]], [[0.8848, 0.1152], [0.2991, 0.7009]]),
    1.0: (-12.074142, [[0.5, 0.5], [0.5, 0.5]], [[0.6977, 0.3023], [0.6977, 0.3023]]),
}
N_CHAINS, N_WARMUP, N_SWEEPS = 200, 50, 100
N_ERRORS = 4.0
"""Standard errors allowed; the 10 quantities leave the band once in 1,600 keys."""


def feature_prior(right, n_values=2):
    """Concentrations of one feature before any reading, one group of workers."""
    prior = access_path.Prior(right=right)
    rows = _prior_concentrations(prior, n_groups=1, n_classes=2, n_values=(n_values,))
    return Tables(np.asarray(rows.conditional[0]), np.asarray(rows.confusion[0, 0]))


@pytest.fixture(scope="module")
def chains():
    """Concentrations of each chain after each sweep, under each prior, as float64."""
    # two slots are empty
    readings = FeatureReadings(
        np.concatenate([TARGET, np.int32([-1, -1])]), np.pad(COUNTS, ((0, 2), (0, 0)))
    )
    found = {}
    for right in KNOWN:
        prior, kept = feature_prior(right), []
        state = Tables(*(np.repeat(rows[None], N_CHAINS, axis=0) for rows in prior))
        for key in jax.random.split(jax.random.key(3), N_WARMUP + N_SWEEPS):
            state = sweep_chains(key, state, readings, prior)
            kept.append(Tables(*(np.asarray(rows, dtype=float) for rows in state)))
        found[right] = Tables(
            *(np.stack(rows[N_WARMUP:], axis=1) for rows in zip(*kept, strict=True))
        )
    return found


def means(rows):
    return rows / rows.sum(axis=-1, keepdims=True)


def assert_mean(by_sweep, expected, rounding=5e-5):
    """Chains are independent: their spread is the standard error of their mean."""
    by_chain = by_sweep.mean(axis=1)
    error = by_chain.std(axis=0, ddof=1) / np.sqrt(len(by_chain))
    gap = np.abs(by_chain.mean(axis=0) - expected)
    np.testing.assert_array_less(gap, N_ERRORS * error + rounding)


# By hand: two readings, with labels 0, 2, 2 and 1; the first is of an item of class 1

LISTED = TableReadings(
    truth=jnp.array([1, 0]),
    observations=access_path.Observations(
        target=jnp.array([-1, 0]),
        item=jnp.array([0, 1]),
        feature=jnp.array([0, 0]),
        reading=jnp.array([0, 0, 0, 1]),
        group=jnp.array([0, 0, 0, 0]),
        label=jnp.array([0, 2, 2, 1]),
    ),
)
COUNTED = FeatureReadings(np.array([1, 0]), np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]))


def test_values_have_the_weights_of_the_model():
    rng = np.random.default_rng(0)
    tables = Tables(rng.dirichlet(np.ones(3), size=2), rng.dirichlet(np.ones(3), size=3))
    conditional, confusion = map(jnp.asarray, tables)
    params = access_path.Params(jnp.array([0.5, 0.5]), conditional[None], confusion[None, None])
    by_hand = np.log(
        [
            tables.conditional[1] * tables.confusion[:, 0] * tables.confusion[:, 2] ** 2,
            tables.conditional[0] * tables.confusion[:, 1],
        ]
    )
    np.testing.assert_allclose(COUNTED.value_log_weights(tables), by_hand, rtol=1e-12)
    on_device = COUNTED.value_log_weights(Tables(conditional, confusion))
    np.testing.assert_allclose(on_device, by_hand, rtol=1e-5)
    np.testing.assert_allclose(LISTED.value_log_weights(params), by_hand, rtol=1e-5)


def test_readings_and_labels_are_counted_by_value():
    prior = feature_prior(4.0, n_values=3)
    value = np.array([2, 1])
    expected = (
        [[1, 2, 1], [1, 1, 2]],  # class 0 has value 1, class 1 has value 2
        [[4, 1, 1], [1, 5, 1], [2, 1, 6]],
    )
    for rows, by_hand in zip(COUNTED.add_counts(prior, np.eye(3)[value]), expected, strict=True):
        np.testing.assert_array_equal(rows, by_hand)
    conditional, confusion = prior
    of_table = Tables(conditional[None], confusion[None, None])
    listed = LISTED.add_counts(of_table, jnp.asarray(value))
    np.testing.assert_array_equal(listed.conditional[0], expected[0])
    np.testing.assert_array_equal(listed.confusion[0, 0], expected[1])


def test_chains_start_from_the_prior_means():
    params = CONDITIONALS.first_params(
        access_path.Prior(), n_groups=2, n_classes=2, n_values=(3, 2)
    )
    np.testing.assert_allclose(params.prevalence, [0.5, 0.5])
    np.testing.assert_allclose(params.conditional[1], [[0.5, 0.5, 0]] * 2)
    np.testing.assert_allclose(
        params.confusion[1], [[[0.8, 0.2, 0], [0.2, 0.8, 0], [0] * 3]] * 2, rtol=1e-6
    )


# Enumeration


@pytest.mark.parametrize("right", KNOWN)
def test_chains_have_the_enumerated_means(chains, right):
    _, conditional, confusion = KNOWN[right]
    assert_mean(means(chains[right].conditional), conditional)
    assert_mean(means(chains[right].confusion), confusion)


@pytest.mark.parametrize("right", KNOWN)
def test_chains_give_the_enumerated_evidence(chains, right):
    """Chib (1995): evidence = joint density at a point / posterior density there."""
    # at any point; here one that is probable under both priors
    conditional, confusion = (
        np.array([[0.4, 0.6], [0.8, 0.2]]),
        np.array([[0.88, 0.12], [0.3, 0.7]]),
    )
    log_density = dirichlet_log_density(conditional, chains[right].conditional)
    density = np.exp(log_density + dirichlet_log_density(confusion, chains[right].confusion))
    joint = np.log(conditional)[TARGET] + COUNTS @ np.log(confusion).T
    prior = feature_prior(right)
    log_joint = (
        logsumexp(joint, axis=1).sum()
        + dirichlet_log_density(conditional, prior.conditional)
        + dirichlet_log_density(confusion, prior.confusion)
    )
    expected = np.exp(log_joint - KNOWN[right][0])
    assert_mean(density[..., None] / expected, 1.0)


def dirichlet_log_density(rows, concentration):
    """Log density of both rows together, for each leading index of the concentrations."""
    total = 0.0
    for row in range(2):
        a, b = concentration[..., row, 0], concentration[..., row, 1]
        total = total + (a - 1) * np.log(rows[row, 0]) + (b - 1) * np.log(rows[row, 1])
        total = total - betaln(a, b)
    return total


def test_control_another_prior_is_told_apart(chains):
    with pytest.raises(AssertionError, match="ordered"):
        assert_mean(means(chains[1.0].confusion), KNOWN[4.0][2])


# Invariants


def test_concentrations_hold_every_reading_and_label_and_nothing_beyond_the_values():
    rows = _prior_concentrations(access_path.Prior(), n_groups=1, n_classes=2, n_values=(3, 2))
    prior = Tables(np.asarray(rows.conditional[1]), np.asarray(rows.confusion[1, 0]))
    readings = FeatureReadings(TARGET, np.pad(COUNTS, ((0, 0), (0, 1))))
    start = Tables(*(np.repeat(table[None], 4, axis=0) for table in prior))
    found = sweep_chains(jax.random.key(0), start, readings, prior)
    np.testing.assert_allclose(found.conditional.sum(axis=-1), [[2 + 1, 2 + 7]] * 4)
    np.testing.assert_allclose(found.confusion.sum(axis=1), [[5 + 20, 5 + 4, 0]] * 4)
    assert (np.asarray(found.conditional)[:, :, 2] == 0).all()
    assert (np.asarray(found.confusion)[:, 2] == 0).all()
    again = sweep_chains(jax.random.key(0), start, readings, prior)
    np.testing.assert_array_equal(found.conditional, again.conditional)
