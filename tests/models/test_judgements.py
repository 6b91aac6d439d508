"""The model of judgements: densities against the plain normal distribution, simulation, priors."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from scipy import stats

from bayescrowd.models import judgements
from bayescrowd.models.judgements import Observations, Params

N_ITEMS, N_ATTRIBUTES = 4, 2
# item 0 has no judgement of attribute 1, item 3 none at all
ITEM = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
ATTRIBUTE = np.array([0, 0, 0, 0, 1, 1, 0, 0, 1, 1])


@jax.jit
def quantities_of_model(params, observations):
    """Everything that the model states about the data, compiled once."""
    sizes = {"n_items": N_ITEMS, "n_attributes": N_ATTRIBUTES}

    at_params = numpyro.handlers.substitute(judgements.model, data=params._asdict())
    trace = numpyro.handlers.trace(at_params).get_trace(observations, **sizes)
    named = {name: trace[name]["value"] for name in params._fields}
    return {
        "log_joint": judgements.label_log_joint(params, observations, n_items=N_ITEMS),
        "target": judgements.label_posterior(params, observations, n_items=N_ITEMS),
        "sites": named,
        "observed": {
            name: trace[name]["fn"].log_prob(trace[name]["value"]) for name in ("target", "labels")
        },
    }


@pytest.fixture(scope="module")
def params():
    covariance = np.array([[1.0, 0.3], [0.3, 2.0]])
    return Params(
        scale=jnp.ones(2),
        precision=jnp.asarray(np.linalg.inv(covariance)),
        mean=jnp.array([0.5, -1.0, 2.0]),
        internal_variance=jnp.array([0.7, 1.6]),
        coefficient_variance=jnp.asarray(0.8),
        coefficient=jnp.array([0.6, -0.4]),
        residual_variance=jnp.asarray(0.9),
    )


def between(params):
    """Covariance of values and target between items, from the regression's definition."""
    values = np.linalg.inv(np.asarray(params.precision, float))
    w = np.asarray(params.coefficient, float)
    target = float(params.residual_variance) + w @ values @ w
    return np.block([[values, (values @ w)[:, None]], [(values @ w)[None], np.array([[target]])]])


@pytest.fixture(scope="module")
def data(params):
    rng = np.random.default_rng(3)
    truth = rng.multivariate_normal(params.mean, between(params), size=N_ITEMS)
    value = truth[ITEM, ATTRIBUTE] + rng.normal(size=len(ITEM))
    columns = (truth[:, -1], ITEM, ATTRIBUTE, value)
    return Observations(*map(jnp.asarray, columns))


def joint_normal(params, observations, item):
    """Mean and covariance of an item's judgements, one by one, and its target; their values."""
    own = np.asarray(observations.item) == item
    place = np.append(np.asarray(observations.attribute)[own], N_ATTRIBUTES)
    covariance = between(params)[np.ix_(place, place)]
    noise = np.append(np.asarray(params.internal_variance, float)[place[:-1]], 0.0)
    value = np.append(np.asarray(observations.value)[own], observations.target[item])
    return np.asarray(params.mean, float)[place], covariance + np.diag(noise), value


def test_density_is_that_of_all_judgements_one_by_one(params, data):
    found = quantities_of_model(params, data)["log_joint"]
    for item in range(N_ITEMS):
        mean, covariance, value = joint_normal(params, data, item)
        expected = stats.multivariate_normal.logpdf(value, mean, covariance)
        assert float(found[item]) == pytest.approx(expected, rel=2e-5)  # float32


def test_target_given_judgements_is_the_normal_conditional(params, data):
    found = quantities_of_model(params, data)["target"]
    for item in range(N_ITEMS):
        mean, covariance, value = joint_normal(params, data, item)
        weights = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
        expected = mean[-1] + weights @ (value - mean)[:-1]
        assert float(found.mean[item]) == pytest.approx(expected, rel=1e-4)
        left = covariance[-1, -1] - weights @ covariance[:-1, -1]
        assert float(found.variance[item]) == pytest.approx(left, rel=1e-4)


def test_fields_of_params_are_sites_and_target_and_labels_make_the_joint(params, data):
    found = quantities_of_model(params, data)
    for name, value in params._asdict().items():
        np.testing.assert_array_equal(found["sites"][name], value)
    observed = found["observed"]
    # float32: the density of the target is divided out of the joint and added again
    np.testing.assert_allclose(
        observed["target"] + observed["labels"], found["log_joint"], rtol=1e-5, atol=1e-5
    )
    spread = np.sqrt(between(params)[-1, -1])
    expected = stats.norm.logpdf(data.target, params.mean[-1], spread)
    np.testing.assert_allclose(observed["target"], expected, rtol=1e-5)


def test_the_order_of_judgements_does_not_matter(params, data):
    order = np.random.default_rng(0).permutation(len(ITEM))
    moved = Observations(data.target, data.item[order], data.attribute[order], data.value[order])
    np.testing.assert_allclose(
        quantities_of_model(params, moved)["log_joint"],
        quantities_of_model(params, data)["log_joint"],
        rtol=1e-5,
    )


@pytest.mark.slow
def test_predictions_are_as_far_off_as_they_say(params):
    """Squared errors over the expected ones have mean 1, here within four standard errors."""
    n_items = 4000
    item, attribute = np.divmod(np.arange(n_items * 2), 2)
    drawn = judgements.simulate_labels(
        jax.random.key(1), params, jnp.asarray(item), jnp.asarray(attribute), n_items=n_items
    )
    found = judgements.label_posterior(params, drawn.observations, n_items=n_items)
    ratio = np.asarray((drawn.truth[:, -1] - found.mean) ** 2 / found.variance)
    assert abs(ratio.mean() - 1) < 4 * np.sqrt(2 / n_items)
    # control: if judgements are taken as exact, the errors are larger than reported
    sure = params._replace(internal_variance=jnp.full(2, 1e-3))
    found = judgements.label_posterior(sure, drawn.observations, n_items=n_items)
    ratio = np.asarray((drawn.truth[:, -1] - found.mean) ** 2 / found.variance)
    assert ratio.mean() - 1 > 4 * np.sqrt(2 / n_items)


@pytest.mark.slow
def test_prior_of_correlations_is_uniform_and_of_spreads_half_t():
    """Huang and Wand, properties 2 and 3."""

    @jax.jit
    @jax.vmap
    def draw(key):
        empty = jnp.zeros(0, dtype=int)
        return judgements.simulate(key, empty, empty, n_items=1, n_attributes=2).params.precision

    covariance = np.linalg.inv(
        np.asarray(draw(jax.random.split(jax.random.key(0), 2000)), dtype=float)
    )
    spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    correlation = covariance[:, 0, 1] / spread[:, 0] / spread[:, 1]
    assert stats.kstest(correlation, stats.uniform(-1, 2).cdf).pvalue > 1e-3
    half_t = stats.kstest(spread[:, 1] / 2.5, lambda x: 2 * stats.t(2).cdf(x) - 1)
    assert half_t.pvalue > 1e-3
    wrong = stats.kstest(spread[:, 1] / 2.5, lambda x: 2 * stats.norm().cdf(x) - 1)
    assert wrong.pvalue < 1e-6


def site_of(params, observations):
    """The observed sites at these parameters."""
    at_params = numpyro.handlers.substitute(judgements.model, data=params._asdict())
    seeded = numpyro.handlers.seed(at_params, 0)
    sizes = {"n_items": N_ITEMS, "n_attributes": N_ATTRIBUTES}
    return numpyro.handlers.trace(seeded).get_trace(observations, **sizes)


def test_judgements_are_predicted_as_the_normal_conditional_of_the_target(params, data):
    n_draws, own = 20_000, ITEM == 0
    trace = site_of(params, data._replace(value=None))
    np.testing.assert_array_equal(trace["target"]["value"], data.target)
    drawn = trace["labels"]["fn"].sample(jax.random.key(1), (n_draws,))
    assert drawn.shape == (n_draws, 1, len(ITEM))
    drawn = np.asarray(drawn, float)[:, 0, own]
    mean, covariance, value = joint_normal(params, data, item=0)
    slope = covariance[:-1, -1] / covariance[-1, -1]
    expected = mean[:-1] + slope * (value[-1] - mean[-1])
    left = covariance[:-1, :-1] - np.outer(slope, covariance[:-1, -1])
    deviation = drawn - expected
    products = deviation[:, :, None] * deviation[:, None, :]
    for statistic, exact in ((deviation, 0.0), (products, left)):
        error = statistic.std(axis=0) / np.sqrt(n_draws)
        # a dozen statistics leave 4.5 standard errors once in 12,000 keys
        np.testing.assert_array_less(np.abs(statistic.mean(axis=0) - exact), 4.5 * error)


def test_targets_are_predicted_too(params, data):
    trace = site_of(params, data._replace(value=None, target=None))
    assert not trace["target"]["is_observed"]
    assert trace["target"]["value"].shape == (N_ITEMS,)
    assert trace["labels"]["value"].shape == (len(ITEM),)
