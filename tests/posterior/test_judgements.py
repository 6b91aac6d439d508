"""Draws of the model of judgements: the right distribution, coverage, and what is told of it."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.models.judgements import DEGREES, Prior
from bayescrowd.posterior.judgements import _Data, _State, _sweep, sample_judgements
from bayescrowd.selection.judgements import as_judgements

COUNTS = np.array([[2, 1], [2, 1], [0, 3], [2, 2]], dtype=float)


def simulated(seed, m=300, k=2, spread=(0.3, 1.0, 2.0)):
    rng = np.random.default_rng(seed)
    covariance = np.array(
        [[1.0, 0.4, 0.0, 0.8], [0.4, 1.0, 0.0, 0.6], [0.0, 0.0, 1.0, 0.5], [0.8, 0.6, 0.5, 1.5]]
    )
    drawn = rng.multivariate_normal(np.zeros(4), covariance, size=m)
    noise = np.array(spread)[:, None] * rng.normal(size=(m, 3, k))
    return drawn[:, :3, None] + noise, drawn[:, 3], covariance, np.array(spread) ** 2


def true_loss(covariance, internal, repeats):
    asked = np.flatnonzero(repeats)
    matrix = covariance[np.ix_(asked, asked)] + np.diag(internal[asked] / repeats[asked])
    b = covariance[asked, -1]
    return covariance[-1, -1] - b @ np.linalg.solve(matrix, b)


def drawn_from_prior(rng, prior):
    scale = (1 / prior.spread**2) / rng.standard_gamma(0.5, size=2)
    degrees = int(DEGREES + 1)
    normal = rng.normal(size=(degrees, 2)) * np.sqrt(scale / (2 * DEGREES))
    half = prior.n_pseudo / 2
    *internal, common, residual = half * prior.pseudo_variance / rng.standard_gamma(half, size=4)
    coefficient = np.sqrt(common) * rng.normal(size=2)
    mean = prior.mean * rng.normal(size=3)
    precision = normal.T @ normal
    return _State(mean, precision, np.array(internal), scale, coefficient, common, residual)


def drawn_data(rng, state):
    own = rng.normal(size=(len(COUNTS), 2)) @ np.linalg.cholesky(np.linalg.inv(state.precision)).T
    residual = np.sqrt(state.residual_variance) * rng.normal(size=len(COUNTS))
    joint = state.mean + np.column_stack([own, own @ state.coefficient + residual])
    means = joint[:, :2] + rng.normal(size=COUNTS.shape) * np.sqrt(
        state.internal_variance / np.maximum(COUNTS, 1)
    )
    squares = state.internal_variance * 2 * rng.standard_gamma(np.maximum(COUNTS - 1, 0) / 2)
    patterns, which = np.unique(COUNTS, axis=0, return_inverse=True)
    members = [np.flatnonzero(which.ravel() == p) for p in range(len(patterns))]
    sums = COUNTS * means
    return _Data(COUNTS, sums, squares, joint[:, 2], patterns, members, np.ones(3))


def statistics(state):
    covariance = np.linalg.inv(state.precision)
    spread = np.sqrt(np.diag(covariance))
    return [
        *np.log(state.internal_variance),
        *np.log(spread),
        *np.log(state.scale),
        covariance[0, 1] / spread[0] / spread[1],
        *np.tanh(state.mean / 5),
        *np.tanh(state.coefficient),
        np.prod(np.tanh(state.coefficient)),
        np.log(state.coefficient_variance),
        np.log(state.residual_variance),
    ]


def geweke(n_sweeps, sweep_prior):
    """Largest z-score between the prior and a chain that draws parameters and data in turn.

    Geweke (2004), 'Getting it right': if sweeps leave the posterior as it is, so does the chain
    the prior.
    """
    prior = Prior(spread=1.0, mean=2.0, n_pseudo=6.0, pseudo_variance=0.5)
    rng = np.random.default_rng(0)
    expected = np.array([statistics(drawn_from_prior(rng, prior)) for _ in range(1000)])
    state = drawn_from_prior(rng, prior)
    found = []
    for _ in range(n_sweeps):
        state = _sweep(rng, state, drawn_data(rng, state), sweep_prior(prior))
        found.append(statistics(state))
    batches = np.array(found).reshape(40, -1, expected.shape[1]).mean(axis=1)
    error = np.hypot(batches.std(axis=0) / np.sqrt(39), expected.std(axis=0) / np.sqrt(1000))
    return np.abs((batches.mean(axis=0) - expected.mean(axis=0)) / error).max()


# The largest of 15 z-scores of 40 batch means exceeds 4.5 once in a thousand runs.


@pytest.mark.parametrize(
    "n_sweeps", [pytest.param(600), pytest.param(12_000, marks=pytest.mark.slow)]
)
def test_sweeps_leave_prior_and_data_as_they_are(n_sweeps):
    assert geweke(n_sweeps, lambda prior: prior) < 4.5


@pytest.mark.slow
def test_control_another_prior_is_noticed():
    assert geweke(600, lambda prior: prior._replace(pseudo_variance=1.0)) > 4.5


@pytest.fixture(scope="module")
def fitted():
    values, y, covariance, internal = simulated(5)
    est = bc.MultiSelection(budget=8).fit(values, y)
    return est, est.posterior(values, y, draws=600, warmup=100), covariance, internal


def test_intervals_hold_the_truth(fitted):
    """99.8 % intervals of three variances, three reliabilities and nine losses."""
    est, post, covariance, internal = fitted
    table = post.attributes(probability=0.998)
    for name, truth in (("internal_variance", internal), ("reliability", 1 / (1 + internal))):
        part = table[name]
        assert ((part["lower"] < truth) & (truth < part["upper"])).all()
    curve = post.loss_curve(probability=0.998)
    for budget, repeats in est.repeats_.iterrows():
        loss = true_loss(covariance, internal, repeats.to_numpy())
        assert curve.loc[budget, "lower"] < loss < curve.loc[budget, "upper"]
    assert curve.index.equals(est.repeats_.index)


def test_means_are_near_the_unbiased_estimates(fitted):
    est, post, _, _ = fitted
    table = post.attributes()
    # the prior has one pseudo-judgement among 300
    np.testing.assert_allclose(
        table["internal_variance", "mean"], est.internal_variance_, rtol=0.05
    )
    np.testing.assert_allclose(table["reliability", "mean"], est.reliability_, atol=0.05)


def test_differences_between_repeat_vectors(fitted):
    _, post, _, _ = fitted
    clear = post.compare(8, 1)
    assert clear.loc["difference", "upper"] < 0
    assert clear.loc["difference", "first_better"] == 1.0
    one, other = {0: 4, 1: 4}, pd.Series({0: 4, 1: 4})
    same = post.compare(one, other)
    assert same.loc["difference", ["mean", "lower", "upper"]].tolist() == [0, 0, 0]
    assert same.loc["difference", "first_better"] == 0
    curve = post.loss_curve()
    assert clear.loc["first", "mean"] == pytest.approx(curve.loc[8, "mean"])
    assert (curve["falls"].dropna() == 1).all()


def test_draws_are_good_enough_for_diagnose(fitted):
    _, post, _, _ = fitted
    found = bc.diagnose(post.container)
    assert found.rhat < 1.05
    assert set(found.table.index) == {"internal_variance", "reliability", "loss"}


def test_attributes_and_options_that_are_not_there(fitted):
    _, post, _, _ = fitted
    with pytest.raises(ValueError, match="attribute 7 is not in the model"):
        post.loss_draws({7: 1})
    with pytest.raises(ValueError, match=r"probability=1\.5"):
        post.attributes(probability=1.5)
    values, y, _, _ = simulated(0, m=20)
    with pytest.raises(ValueError, match="draws=0"):
        sample_judgements(as_judgements(values), y, draws=0)


def test_seed_and_unequal_numbers():
    values, y, _, _ = simulated(2, m=40)
    values[::3, 1, 1] = np.nan
    values[5, 0, :] = np.nan
    est = bc.MultiSelection(budget=4).fit(values, y)
    one, two, other = (
        est.posterior(values, y, draws=20, warmup=5, chains=1, seed=s).draws.covariance
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert np.isfinite(one).all()


def test_of_many_attributes_the_path_alone_is_modelled():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 70))
    values = truth[:, :, None] + rng.normal(size=(60, 70, 2))
    est = bc.MultiSelection(budget=3).fit(values, truth[:, 0])
    post = est.posterior(values, truth[:, 0], draws=5, warmup=2, chains=1)
    assert set(est.selected_.index) <= set(post.draws.attributes)
    assert len(post.draws.attributes) <= 3


@pytest.mark.parametrize("constant", [4.7, 1e6 + 0.1, 1e-8])
def test_rounding_errors_of_a_constant_are_not_modelled(constant):
    """A constant column and a constant target are what they are at 0, where nothing is rounded."""
    values, y, _, _ = simulated(3, m=30, k=3)
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
