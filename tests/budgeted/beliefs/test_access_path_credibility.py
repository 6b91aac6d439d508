"""Credibility under the joint posterior: exact mixtures, NUTS, names of values, honest errors."""

import itertools
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer import MCMC, NUTS, init_to_median
from scipy.special import betainc, betaln, logsumexp

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.access_path_credibility import (
    FEWEST_STATES,
    _beta_cdf,
    align,
    joint_credibility,
)
from bayescrowd.budgeted.beliefs.credibility import MOST_ERROR, draws_credibility, table_credibility
from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.access_path_sweep import Tables

# Two classes and at most four values, as in the tests of the belief: the sweep compiles once.
VALUES = {"a": [0, 1], "b": ["x", "y", "z"], "c": [0, 1, 2, 3], "d": ["no", "yes"]}
SPACE = bc.FeatureSpace(classes=["p", "q"], features=VALUES, prior=[0.6, 0.4])
A, B = 0, 1
PRIOR = SPACE.class_prior
EPSILON = 0.05
SETTINGS = {"epsilon": EPSILON, "measure": "interval"}

ROUNDING = 0.002
"""How far Peizer and Pratt's approximation may be off in the mean over a table."""

N_ERRORS = 4.0
"""Number of Monte Carlo standard errors allowed."""

every_noise = pytest.mark.parametrize("noise", [0.0, 0.3, 0.5, 0.67])


def readings(n, noise, *, n_values=2, n_labels=3, seed=0):
    """Class and labels of n readings of a feature that follows the class, some labels wrong."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, n)
    value = np.where(rng.random(n) < 0.8, target, n_values - 1)
    wrong = rng.random((n, n_labels)) < noise
    return target, (value[:, None] + wrong * rng.integers(1, n_values, wrong.shape)) % n_values


def chains_of(feature, target, labels, *, seed=0):
    """The feature's chains after the readings, from a stream of random numbers of their own."""
    chains = AccessPathBelief(SPACE, labels.shape[1]).features[feature]
    chains = replace(chains, n_sweeps=10_000 * seed)
    for cls, row in zip(target.tolist(), labels.tolist(), strict=True):
        chains = chains.observe(cls, tuple(row))
    for _ in range(20):  # the belief's chains move once per reading, which is few readings here
        chains = chains.sweep()
    return chains


# Exact references: a mixture of Beta distributions, one for each assignment of values


def enumerated(target, labels, n_values):
    """Weight and concentrations of every assignment of values."""
    counts = (labels[:, :, None] == np.arange(n_values)).sum(axis=1)
    gamma = np.where(np.eye(n_values, dtype=bool), 4.0, 1.0)
    log_weights, tables = [], []
    for values in itertools.product(range(n_values), repeat=len(target)):
        conditional, confusion = np.ones((2, n_values)), gamma.copy()
        np.add.at(conditional, (target, list(values)), 1)
        np.add.at(confusion, list(values), counts)
        log_weights.append(sum(map(log_beta, conditional)) + sum(map(log_beta, confusion)))
        tables.append((conditional, confusion))
    weights = np.exp(np.array(log_weights) - logsumexp(log_weights))
    return weights, [np.array(rows) for rows in zip(*tables, strict=True)]


def log_beta(row):
    return sum(betaln(row[:i].sum(), row[i]) for i in range(1, len(row)))


def named_by_least_variance(weights, conditional, confusion, *, n_starts=20):
    """The order of values of each assignment, by trying all orders again and again."""
    n_values = confusion.shape[-1]
    orders = [np.array(order) for order in itertools.permutations(range(n_values))]
    theta = conditional / conditional.sum(axis=-1, keepdims=True)
    phi = confusion / confusion.sum(axis=-1, keepdims=True)

    def renamed(order):
        return np.concatenate(
            [
                (np.sqrt(PRIOR)[:, None] * theta[:, :, order]).reshape(len(theta), -1),
                (phi[:, order, :] / np.sqrt(n_values)).reshape(len(phi), -1),
            ],
            axis=1,
        )

    options = np.stack([renamed(order) for order in orders])
    found = []
    for start in np.argsort(-weights)[:n_starts]:
        mean = options[0, start]
        for _ in range(100):
            choice = ((options - mean) ** 2).sum(axis=2).argmin(axis=0)
            chosen = options[choice, np.arange(len(theta))]
            mean = weights @ chosen
        variance = weights @ ((chosen - mean) ** 2).sum(axis=1)
        found.append((variance, start, choice))
    _, _, choice = min(found, key=lambda entry: entry[:2])
    return np.array(orders)[choice]


@cache
def exact_mixture(noise, n=9, n_values=2):
    """Readings, and the exact posterior of both tables with values named."""
    target, labels = readings(n, noise, n_values=n_values)
    weights, (conditional, confusion) = enumerated(target, labels, n_values)
    order = named_by_least_variance(weights, conditional, confusion)
    conditional = np.take_along_axis(conditional, order[:, None, :], axis=2)
    confusion = np.take_along_axis(confusion, order[:, :, None], axis=1)
    return target, labels, weights, (conditional, confusion)


def exact_credibility(weights, tables, measure):
    """Equation 1 for both tables of a mixture, by incomplete Beta functions and integration."""
    known = []
    for rows, row_weights in zip(tables, (PRIOR, np.full(2, 0.5)), strict=True):
        total = rows.sum(axis=-1, keepdims=True)
        means = rows / total
        mean = np.tensordot(weights, means, 1)

        def cdf(x, rows=rows, total=total):
            return np.tensordot(weights, betainc(rows, total - rows, np.clip(x, 0, 1)), 1)

        if measure == "interval":
            table = cdf(mean + EPSILON) - cdf(mean - EPSILON)
        elif measure == "variance":
            second = means * (means * total + 1) / (total + 1)
            table = 1 - 4 * (np.tensordot(weights, second, 1) - mean**2)
        else:
            table = 1 - narrowest(cdf, mean.shape)
        known.append(row_weights @ table.mean(axis=1))
    return known


def narrowest(cdf, shape):
    """Width of the narrowest interval with 95 % of each parameter's mixture, on a fine grid."""
    grid = np.linspace(0, 1, 401)
    height = np.stack([cdf(np.full(shape, x)) for x in grid])
    widths = np.empty(shape)
    for place in np.ndindex(*shape):
        column = height[(slice(None), *place)]
        high = np.interp(column + 0.95, column, grid, right=np.inf)
        widths[place] = (high - grid).min()
    return widths


@every_noise
@pytest.mark.parametrize("measure", ["interval", "variance", "hdi"])
def test_enumerated_posteriors(noise, measure):
    target, labels, weights, tables = exact_mixture(noise)
    expected = exact_credibility(weights, tables, measure)
    found = chains_of(A, target, labels).credibility(PRIOR, epsilon=EPSILON, measure=measure)
    assert found.error <= MOST_ERROR
    # `error` is that of the smaller of the two, the other's is at most what ends the sampling
    for value, exact in zip(found[:2], expected, strict=True):
        assert abs(value - exact) < N_ERRORS * MOST_ERROR * 0.75 + ROUNDING
    assert abs(found.least - min(expected)) < N_ERRORS * found.error + ROUNDING


def test_three_values_are_named_as_by_trying_all_orders():
    target, labels, weights, tables = exact_mixture(0.4, n=6, n_values=3)
    known = []
    for rows, row_weights in zip(tables, (PRIOR, np.full(3, 1 / 3)), strict=True):
        total = rows.sum(axis=-1, keepdims=True)
        mean = np.tensordot(weights, rows / total, 1)
        mass = betainc(rows, total - rows, np.minimum(mean + EPSILON, 1))
        mass -= betainc(rows, total - rows, np.maximum(mean - EPSILON, 0))
        known.append(row_weights @ np.tensordot(weights, mass, 1).mean(axis=1))
    found = chains_of(B, target, labels).credibility(PRIOR, **SETTINGS)
    assert abs(found.least - min(known)) < N_ERRORS * found.error + ROUNDING


def test_control_counts_as_if_they_were_known_say_too_much():
    target, labels, weights, tables = exact_mixture(0.5)
    exact = exact_credibility(weights, tables, "interval")[0]
    chains = chains_of(A, target, labels)
    counts = chains.tables.conditional.mean(axis=0)
    assert table_credibility(counts, PRIOR) > exact + 0.03
    assert chains.credibility(PRIOR, **SETTINGS).conditional < exact + 0.03


# Closed form


def test_chains_that_agree_have_the_closed_form():
    rng = np.random.default_rng(0)
    conditional, confusion = rng.uniform(1, 30, (2, 3)), rng.uniform(1, 40, (3, 3))
    states = iter([Tables(*(np.tile(rows, (32, 1, 1)) for rows in (conditional, confusion)))])
    found = joint_credibility(rng, states, PRIOR, **SETTINGS)
    assert found.conditional == pytest.approx(table_credibility(conditional, PRIOR), abs=ROUNDING)
    even = np.full(3, 1 / 3)
    assert found.confusion == pytest.approx(table_credibility(confusion, even), abs=ROUNDING)
    assert found.error == pytest.approx(0, abs=1e-12)


def test_the_normal_approximation_of_incomplete_beta_functions():
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.uniform(0, np.log(500), (2, 1, 2_000, 3)))
    x = np.sort(rng.random((2, 1, 2_000, 3)), axis=0)
    mean = a / (a + b)
    for place in (x, mean + np.array([-0.05, 0.05])[:, None, None, None]):
        exact = betainc(a, b, np.clip(place, 0, 1))
        np.testing.assert_allclose(_beta_cdf(a, b, place), exact, atol=0.005)
    # below one it is not used
    few = np.full((1, 2_000, 3), 0.3)
    np.testing.assert_array_equal(_beta_cdf(few, 2 * few, x), betainc(few, 2 * few, x))


# Invariants


@every_noise
def test_other_names_of_the_hidden_values_change_nothing(noise):
    target, labels = readings(24, noise, n_values=3)
    tables = chains_of(B, target, labels).tables
    rng = np.random.default_rng(1)
    plain = joint_credibility(rng, iter([tables]), PRIOR, **SETTINGS)
    order = rng.permuted(np.tile(np.arange(3), (len(tables.conditional), 1)), axis=1)
    renamed = Tables(
        np.take_along_axis(tables.conditional, order[:, None, :], axis=2),
        np.take_along_axis(tables.confusion, order[:, :, None], axis=1),
    )
    np.testing.assert_allclose(
        joint_credibility(rng, iter([renamed]), PRIOR, **SETTINGS), plain, atol=1e-9
    )
    # labels keep their names: no order of the columns of a confusion matrix is tried
    shown = align(renamed, PRIOR).confusion.sum(axis=1)
    np.testing.assert_allclose(shown, tables.confusion.sum(axis=1))


def test_many_values_are_named_by_linear_assignment():
    # seven values have 5,040 orders, of which none is tried
    rng = np.random.default_rng(0)
    conditional, confusion = rng.uniform(1, 9, (2, 7)), 1 + 8 * np.eye(7)
    orders = [rng.permutation(7) for _ in range(6)]
    states = Tables(
        np.stack([conditional[:, order] for order in orders]),
        np.stack([confusion[order] for order in orders]),
    )
    for rows in align(states, PRIOR):
        np.testing.assert_array_equal(rows, [rows[0]] * 6)


def test_a_belief_says_the_same_again_and_stays_where_it_is():
    target, labels = readings(12, 0.5)
    chains = chains_of(A, target, labels)
    untouched = chains_of(A, target, labels).observe(0, (0, 0, 1))
    assert chains.credibility(PRIOR, **SETTINGS) == chains.credibility(PRIOR, **SETTINGS)
    for rows, expected in zip(chains.observe(0, (0, 0, 1)).chains, untouched.chains, strict=True):
        np.testing.assert_array_equal(rows, expected)


def counted(states, taken):
    for state in states:
        taken.append(1)
        yield state


def test_a_comparison_takes_no_more_states_than_it_needs():
    target, labels = readings(24, 0.3)
    chains = chains_of(A, target, labels)
    exact = chains.credibility(PRIOR, **SETTINGS)
    n_states = {}
    for gap in (-0.2, -0.005, 0.005, 0.2):
        required = (exact.conditional + gap, exact.confusion - 0.2)
        taken = []
        rng = np.random.default_rng(2)
        states = counted(chains._states(rng), taken)
        found = joint_credibility(rng, states, PRIOR, **SETTINGS, required=required)
        n_states[gap] = len(taken)
        if abs(gap) > 0.1:
            assert (found.conditional >= required[0]) == (gap < 0)
    assert n_states[0.2] == 1
    assert n_states[-0.2] <= 1 + FEWEST_STATES
    assert max(n_states[-0.005], n_states[0.005]) > 1


# Honest errors


@pytest.mark.parametrize("noise", [0.3, 0.5])
def test_the_error_is_the_spread_over_other_seeds(noise):
    target, labels, weights, tables = exact_mixture(noise)
    expected = min(exact_credibility(weights, tables, "interval"))
    found = [
        chains_of(A, target, labels, seed=seed).credibility(PRIOR, **SETTINGS)
        for seed in range(1, 17)
    ]
    off = np.array([one.least for one in found]) - expected
    error = np.sqrt(np.mean([one.error**2 for one in found]))
    # 16 deviations know their root mean square to 1 / sqrt(32), 18 %: three times that
    assert np.sqrt(np.mean(off**2)) < 1.53 * error + ROUNDING
    assert abs(off.mean()) < N_ERRORS * error / 4 + ROUNDING


# Reference: NUTS


def nuts_draws(target, labels, n_values, *, n_chains=8, n_draws=1_000):
    """Draws of both tables of one feature by NUTS on the model with values summed out."""
    n, n_labels = labels.shape
    observations = access_path.Observations(
        *map(jnp.asarray, (target, np.arange(n), np.zeros(n, int))),
        jnp.repeat(jnp.arange(n), n_labels),
        jnp.zeros(n * n_labels, int),
        jnp.asarray(labels.ravel()),
    )
    sampler = MCMC(
        NUTS(access_path.model, init_strategy=init_to_median),
        num_warmup=500,
        num_samples=n_draws,
        num_chains=n_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    sizes = {"n_items": n, "n_groups": 1, "n_classes": 2, "n_values": (n_values,)}
    sampler.run(jax.random.key(0), observations, **sizes)
    found = sampler.get_samples()
    conditional, confusion = found["conditional"][:, 0], found["confusion"][:, 0, 0]
    return np.asarray(conditional, dtype=float), np.asarray(confusion, dtype=float)


def draw_assignments(rng, target, labels, theta, phi):
    """Concentrations given values that are drawn given the tables of each draw."""
    counts = (labels[:, :, None] == np.arange(phi.shape[-1])).sum(axis=1)
    log_weights = np.log(theta)[:, target, :] + counts @ np.log(phi).swapaxes(1, 2)
    shares = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    above = rng.random((*shares.shape[:2], 1)) > shares.cumsum(-1) / shares.sum(-1, keepdims=True)
    is_value = above.sum(axis=-1)[..., None] == np.arange(phi.shape[-1])
    is_class = target == np.arange(2)[:, None]
    conditional = 1 + is_class.astype(float) @ is_value
    gamma = np.where(np.eye(phi.shape[-1], dtype=bool), 4.0, 1.0)
    return conditional, gamma + is_value.swapaxes(1, 2).astype(float) @ counts


@pytest.mark.slow
@every_noise
def test_long_runs_of_nuts(noise):
    target, labels = readings(60, noise, n_values=3, n_labels=5)
    theta, phi = nuts_draws(target, labels, 3)
    # the values that go with each draw say how the draw is to be named
    assigned = draw_assignments(np.random.default_rng(0), target, labels, theta, phi)
    order = named_by_least_variance(np.full(len(theta), 1 / len(theta)), *assigned, n_starts=5)
    theta = np.take_along_axis(theta, order[:, None, :], axis=2)
    phi = np.take_along_axis(phi, order[:, :, None], axis=1)
    reference = [
        draws_credibility(rows, weights, epsilon=EPSILON)
        for rows, weights in ((theta, PRIOR), (phi, np.full(3, 1 / 3)))
    ]
    found = chains_of(B, target, labels).credibility(PRIOR, **SETTINGS)
    for value, expected in zip(found[:2], reference, strict=True):
        error = np.hypot(MOST_ERROR, expected.error)
        assert abs(value - expected.value) < N_ERRORS * error + ROUNDING
