"""Gibbs steps of single features: an enumerated posterior, the model's density, padding."""

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from bayescrowd.models import access_path
from bayescrowd.posterior import gibbs_readings
from bayescrowd.posterior.gibbs_readings import (
    Readings,
    Tables,
    channel,
    concentrations,
    feature_of,
    grown,
    no_readings,
    prior_means,
    run_feature,
    sweep,
    sweep_feature,
    with_feature,
)

# Eight readings of one feature of two values, three labels each, of items of known classes.
TARGET = np.array([0, 1, 1, 1, 1, 1, 1, 1], dtype=np.int32)
COUNTS = np.array([[1, 2], [2, 1], [3, 0], [3, 0], [3, 0], [2, 1], [3, 0], [3, 0]])

# Log evidence and posterior means by enumeration of all values, to the digits given.
KNOWN = {
    4.0: (-12.101730, [[0.3724, 0.6276], [0.8336, 0.1664]], [[0.8848, 0.1152], [0.2991, 0.7009]]),
    1.0: (-12.074142, [[0.5, 0.5], [0.5, 0.5]], [[0.6977, 0.3023], [0.6977, 0.3023]]),
}
N_DRAWS = 20_000
N_ERRORS = 4.0
"""Monte-Carlo standard errors allowed; the 10 quantities leave the band once in 1,600 keys."""


def tiny(right):
    """Start, readings and concentrations of the feature; the slots are more than the readings."""
    prior = concentrations(access_path.Prior(right=right), n_groups=1, n_classes=2, n_values=(2,))
    readings = no_readings(prior, n_slots=10)
    readings.target[0, :8], readings.counts[0, :8, 0] = TARGET, COUNTS
    return [feature_of(rows, 0) for rows in (prior_means(prior), readings, prior)]


@pytest.fixture(scope="module")
def draws():
    """Tables of one long chain under each prior, as float64."""
    drawn = {
        right: run_feature(jax.random.key(3), *tiny(right), n_draws=N_DRAWS) for right in KNOWN
    }
    return {
        right: Tables(*(np.asarray(field, dtype=float) for field in tables))
        for right, tables in drawn.items()
    }


def error_of_mean(draws):
    """Monte-Carlo standard error of the mean of each entry of [draw, ...]."""
    flat = draws.reshape(len(draws), -1)
    ess = np.array([az.ess(np.ascontiguousarray(column[None])) for column in flat.T])
    return (flat.std(axis=0) / np.sqrt(ess)).reshape(draws.shape[1:])


def assert_mean(draws, expected, rounding=5e-5):
    gap = np.abs(draws.mean(axis=0) - expected)
    np.testing.assert_array_less(gap, N_ERRORS * error_of_mean(draws) + rounding)


# By hand


def test_values_have_the_weights_of_the_model():
    # Two groups; the first reading has labels 2 and 0 of group 0 and 2 of group 1, the second one.
    rng = np.random.default_rng(0)
    tables = Tables(
        jnp.asarray(rng.dirichlet(np.ones(3), size=2)),
        jnp.asarray(rng.dirichlet(np.ones(3), size=(2, 3))),
    )
    counts = np.zeros((2, 2, 3))
    counts[0, 0, [0, 2]], counts[0, 1, 2], counts[1, 1, 1] = 1, 1, 1
    target = jnp.array([1, 0])
    weigh = jax.jit(gibbs_readings._value_log_weights)
    ours = weigh(tables, Readings(target, jnp.asarray(counts)))
    params = access_path.Params(
        jnp.array([0.5, 0.5]), tables.conditional[None], tables.confusion[None]
    )
    observations = access_path.Observations(
        target=target,
        item=jnp.array([0, 1]),
        feature=jnp.array([0, 0]),
        reading=jnp.array([0, 0, 0, 1]),
        group=jnp.array([0, 0, 1, 1]),
        label=jnp.array([0, 2, 2, 1]),
    )
    of_class = jax.jit(access_path.value_log_joint)(params, observations)
    np.testing.assert_allclose(ours, of_class[jnp.arange(2), target], rtol=1e-5)


def test_channel_by_hand():
    tables = Tables(jnp.array([[0.9, 0.1], [0.2, 0.8]]), jnp.array([[[0.7, 0.3], [0.4, 0.6]]]))
    expected = [[[0.67, 0.33]], [[0.46, 0.54]]]
    np.testing.assert_allclose(channel(tables), expected, rtol=1e-6)


# Enumeration


@pytest.mark.parametrize("right", KNOWN)
def test_draws_have_the_enumerated_means(draws, right):
    _, conditional, confusion = KNOWN[right]
    assert_mean(draws[right].conditional, conditional)
    assert_mean(draws[right].confusion, [confusion])


@pytest.mark.parametrize("right", KNOWN)
def test_draws_give_the_enumerated_evidence(draws, right):
    """Chib (1995): evidence = joint density at a point / posterior density there."""
    conditional, confusion = draws[right].conditional, draws[right].confusion[:, 0]
    log_answers = np.einsum("rx,nzx->nrz", COUNTS, np.log(confusion))
    log_weights = np.log(conditional)[:, TARGET] + log_answers
    share = np.exp(log_weights - logsumexp(log_weights, axis=-1, keepdims=True))
    value = (np.random.default_rng(0).random(share.shape[:2]) < share[..., 1]).astype(int)
    is_value, is_class = np.eye(2)[value], np.eye(2)[TARGET]
    of_value = 1 + np.einsum("rc,nrz->ncz", is_class, is_value)
    prior = np.where(np.eye(2) > 0, right, 1.0)
    of_label = prior + np.einsum("rx,nrz->nzx", COUNTS, is_value)
    # at any point; here one that is probable under both priors
    point_conditional = np.array([[0.4, 0.6], [0.8, 0.2]])
    point_confusion = np.array([[0.88, 0.12], [0.3, 0.7]])
    log_posterior = dirichlet_log_density(point_conditional, of_value) + dirichlet_log_density(
        point_confusion, of_label
    )
    density = np.exp(log_posterior)
    joint = np.log(point_conditional)[TARGET] + COUNTS @ np.log(point_confusion).T
    log_joint = (
        logsumexp(joint, axis=1).sum()
        + dirichlet_log_density(point_conditional, np.ones((2, 2)))
        + dirichlet_log_density(point_confusion, prior)
    )
    evidence = log_joint - np.log(density.mean())
    error = float(error_of_mean(density[:, None])[0]) / density.mean()
    assert abs(evidence - KNOWN[right][0]) < N_ERRORS * error


def dirichlet_log_density(rows, concentration):
    """Log density of both rows together, for each leading index of the concentrations."""
    total = 0.0
    for row in range(2):
        a, b = concentration[..., row, 0], concentration[..., row, 1]
        total = total + (a - 1) * np.log(rows[row, 0]) + (b - 1) * np.log(rows[row, 1])
        total = total - betaln(a, b)
    return total


def test_control_another_prior_is_told_apart(draws):
    with pytest.raises(AssertionError, match="ordered"):
        assert_mean(draws[1.0].confusion, [KNOWN[4.0][2]])


# Invariants

RAGGED = concentrations(access_path.Prior(), n_groups=2, n_classes=2, n_values=(3, 2))


def ragged_readings():
    rng = np.random.default_rng(1)
    readings = no_readings(RAGGED, n_slots=6)
    readings.target[:, :5] = rng.integers(2, size=(2, 5))
    readings.counts[0, :5] = rng.multinomial(2, [0.5, 0.3, 0.2], size=(5, 2))
    readings.counts[1, :5, :, :2] = rng.multinomial(2, [0.5, 0.5], size=(5, 2))
    return readings


def test_a_sweep_is_a_step_of_each_feature():
    key, start, readings = jax.random.key(0), prior_means(RAGGED), ragged_readings()
    drawn = sweep(key, start, readings, RAGGED)
    for f, feature_key in enumerate(jax.random.split(key, 2)):
        of_one = (feature_of(rows, f) for rows in (start, readings, RAGGED))
        alone = sweep_feature(feature_key, *of_one)
        for field, expected in zip(feature_of(drawn, f), alone, strict=True):
            np.testing.assert_allclose(field, expected, rtol=1e-5)


def test_tables_are_probabilities_and_zero_beyond_the_values():
    drawn = sweep(jax.random.key(0), prior_means(RAGGED), ragged_readings(), RAGGED)
    np.testing.assert_allclose(drawn.conditional.sum(axis=-1), 1, rtol=1e-5)
    assert (np.asarray(drawn.conditional)[1, :, 2] == 0).all()
    rows = np.asarray(drawn.confusion.sum(axis=-1))
    np.testing.assert_allclose(rows[0], 1, rtol=1e-5)
    np.testing.assert_allclose(rows[1], [[1, 1, 0]] * 2, rtol=1e-5)
    assert (np.asarray(drawn.confusion)[1, :, :, 2] == 0).all()


def test_new_slots_are_empty():
    readings = ragged_readings()
    more = grown(readings)
    for field, before in zip(more, readings, strict=True):
        np.testing.assert_array_equal(field[:, :6], before)
    assert (more.target[:, 6:] == -1).all()
    assert (more.counts[:, 6:] == 0).all()


def test_a_feature_is_replaced_in_a_copy():
    start = prior_means(RAGGED)
    row = Tables(np.full((2, 3), 0.25), np.full((2, 3, 3), 0.5))
    changed = with_feature(start, 1, row)
    assert (changed.conditional[1] == 0.25).all()
    np.testing.assert_array_equal(changed.confusion[0], start.confusion[0])
    assert not (np.asarray(start.conditional[1]) == 0.25).any()
