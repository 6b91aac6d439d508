"""Naive Bayes against sums by hand, brute force, closed-form evidence and its own simulator."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet

from bayescrowd.models import _feature_tables, naive_bayes
from bayescrowd.models.naive_bayes import Observations, Params, Prior

# Features of 3, 2 and 3 values. The classes of items 1 and 3 are not known; item 0 lacks feature 2,
# item 1 has feature 2 alone, item 2 is complete, and of item 3 nothing is known.
N_VALUES = (3, 2, 3)
OBSERVATIONS = Observations(
    target=jnp.array([1, -1, 0, -1]),
    item=jnp.array([0, 0, 1, 2, 2, 2]),
    feature=jnp.array([0, 1, 2, 0, 1, 2]),
    value=jnp.array([2, 1, 0, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_classes": 2, "n_values": N_VALUES}
PRIOR = Prior(prevalence=1.5, conditional=0.75)


def params_of(seed):
    rng = np.random.default_rng(seed)
    conditional = np.zeros((3, 2, 3))
    for feature, width in enumerate(N_VALUES):
        conditional[feature, :, :width] = rng.dirichlet(np.full(width, 2.0), size=2)
    return Params(jnp.asarray(rng.dirichlet(np.full(2, 2.0))), jnp.asarray(conditional))


def complete_log_likelihood(params, truth):
    """Log density of the readings and one assignment of classes, written as loops."""
    prevalence, conditional = (np.asarray(field, dtype=float) for field in params)
    total = sum(log(prevalence[cls]) for cls in truth)
    for item, feature, value in zip(*map(np.asarray, OBSERVATIONS[1:]), strict=True):
        total += log(conditional[feature, truth[item], value])
    return total


def assignments(target):
    """Every assignment of classes that agrees with the known ones."""
    return product(*([cls] if cls >= 0 else range(2) for cls in np.asarray(target)))


def brute_force_log_likelihood(params):
    joint = [complete_log_likelihood(params, z) for z in assignments(OBSERVATIONS.target)]
    return logsumexp(joint)


def row_log_density(row, concentration):
    row = np.asarray(row, dtype=float)  # float64, so that SciPy accepts that it sums to one
    return dirichlet.logpdf(row / row.sum(), concentration)


def rows_log_density(params, item_counts, value_counts, prior=PRIOR):
    """Log density of all rows, with counts added to the prior's pseudo-items."""
    params = Params(*map(np.asarray, params))
    total = row_log_density(params.prevalence, prior.prevalence + item_counts)
    for feature, cls in product(range(3), range(2)):
        width = N_VALUES[feature]
        row = params.conditional[feature, cls, :width]
        total += row_log_density(row, prior.conditional + value_counts[feature, cls, :width])
    return total


def prior_log_density(params, prior=PRIOR):
    return rows_log_density(params, np.zeros(2), np.zeros((3, 2, 3)), prior)


@jax.jit
def model_log_density(params, observations=OBSERVATIONS):
    values = naive_bayes.sites(params, n_values=N_VALUES)
    kwargs = {**SIZES, "prior": PRIOR}
    return log_density(naive_bayes.model, (observations,), kwargs, values)[0]


def enumerated_model(observations):
    """The model feature by feature, with its discrete site left in, for NumPyro to sum out."""
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(2, PRIOR.prevalence)))
    rows = {}
    for feature, cls in product(range(3), range(2)):
        prior = dist.Dirichlet(jnp.full(N_VALUES[feature], PRIOR.conditional))
        rows[feature, cls] = numpyro.sample(f"row_{feature}_{cls}", prior)
    targets, item, feature, value = map(np.asarray, observations)
    for i, target in enumerate(targets):
        known = {"obs": jnp.array(target)} if target >= 0 else {}
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence), **known)
        for r in np.flatnonzero(item == i):
            row = jnp.stack([rows[feature[r], cls] for cls in range(2)])[truth]
            numpyro.sample(f"value_{r}", dist.Categorical(row), obs=jnp.array(value[r]))


# By hand


def test_label_posterior_by_hand():
    # Two features, of two and three values, and two classes at 3 : 1.
    params = Params(
        prevalence=jnp.array([0.75, 0.25]),
        conditional=jnp.array([[[0.9, 0.1, 0], [0.5, 0.5, 0]], [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]),
    )
    observations = Observations(
        target=jnp.array([-1, -1, -1, 1]),
        item=jnp.array([0, 0, 1, 3]),
        feature=jnp.array([0, 1, 1, 0]),
        value=jnp.array([1, 0, 1, 0]),
    )
    joint = np.array(
        [
            [0.75 * 0.1 * 0.2, 0.25 * 0.5 * 0.6],  # both features read
            [0.75 * 0.3, 0.25 * 0.3],  # a value that says nothing
            [0.75, 0.25],  # nothing read
            [0, 0.25 * 0.5],  # known to be of class 1
        ]
    )
    log_joint = naive_bayes.label_log_joint(params, observations, n_items=4)
    np.testing.assert_allclose(np.exp(log_joint), joint, rtol=1e-6)
    posterior = naive_bayes.label_posterior(params, observations, n_items=4)
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(posterior[0], [1 / 6, 5 / 6], rtol=1e-6)
    np.testing.assert_array_equal(posterior[3], [0, 1])


def test_concentration_is_zero_beyond_the_last_value():
    concentration = naive_bayes.conditional_concentration(PRIOR, n_classes=2, n_values=N_VALUES)
    expected = [[[0.75] * 3] * 2, [[0.75, 0.75, 0]] * 2, [[0.75] * 3] * 2]
    np.testing.assert_array_equal(concentration, expected)


def test_tables_and_blocks_are_inverse():
    table = params_of(0).conditional
    widths = _feature_tables.by_width(N_VALUES)
    assert {width: members.tolist() for width, members in widths.items()} == {2: [1], 3: [0, 2]}
    blocks = {
        w: _feature_tables.block(table, members, w, n_axes=1) for w, members in widths.items()
    }
    assert {width: block.shape for width, block in blocks.items()} == {2: (1, 2, 2), 3: (2, 2, 3)}
    np.testing.assert_array_equal(_feature_tables.table(blocks, N_VALUES, n_axes=1), table)


# Closed form


@pytest.mark.parametrize("seed", range(3))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params) + brute_force_log_likelihood(params)
    # float32 sums of some thirty terms
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


def test_with_known_classes_the_evidence_is_that_of_dirichlet_multinomials():
    """The model's density over the conjugate posterior is the evidence, at all parameters."""
    truth = np.array([1, 0, 0, 1])
    item_counts = np.bincount(truth, minlength=2)
    value_counts = np.zeros((3, 2, 3))
    for item, feature, value in zip(*map(np.asarray, OBSERVATIONS[1:]), strict=True):
        value_counts[feature, truth[item], value] += 1
    evidence = dirichlet_multinomial(item_counts, PRIOR.prevalence)
    for feature, cls in product(range(3), range(2)):
        counts = value_counts[feature, cls, : N_VALUES[feature]]
        evidence += dirichlet_multinomial(counts, PRIOR.conditional)
    known = OBSERVATIONS._replace(target=jnp.asarray(truth))
    for seed in range(3):
        params = params_of(seed)
        posterior = rows_log_density(params, item_counts, value_counts)
        actual = model_log_density(params, known) - posterior
        np.testing.assert_allclose(actual, evidence, rtol=1e-5)


def dirichlet_multinomial(counts, pseudo_count):
    """Log probability of a sequence with these counts, its parameters integrated out."""
    n, total = counts.sum(), pseudo_count * len(counts)
    each = gammaln(pseudo_count + counts) - gammaln(pseudo_count)
    return gammaln(total) - gammaln(total + n) + each.sum()


# Invariants


def test_density_ignores_the_order_of_features_and_the_names_of_values_and_classes():
    params = params_of(1)
    reversed_features = params._replace(conditional=params.conditional[::-1])
    recounted = OBSERVATIONS._replace(feature=2 - OBSERVATIONS.feature)
    swapped = Params(params.prevalence[::-1], params.conditional[:, ::-1])
    renamed = OBSERVATIONS._replace(target=jnp.array([0, -1, 1, -1]))
    # the values of feature 1 exchange their names
    turned = params._replace(
        conditional=params.conditional.at[1, :, :2].set(params.conditional[1, :, 1::-1])
    )
    is_second = OBSERVATIONS.feature == 1
    relabelled = OBSERVATIONS._replace(
        value=jnp.where(is_second, 1 - OBSERVATIONS.value, OBSERVATIONS.value)
    )
    expected = model_log_density(params)
    cases = ((reversed_features, recounted), (swapped, renamed), (turned, relabelled))
    for same in cases:
        np.testing.assert_allclose(model_log_density(*same), expected, rtol=1e-6)


def test_a_feature_of_one_value_says_nothing():
    observations = Observations(
        jnp.array([-1]), jnp.array([0, 0]), jnp.array([0, 1]), jnp.array([0, 1])
    )
    params = Params(
        jnp.array([0.6, 0.4]), jnp.array([[[1.0, 0.0], [1.0, 0.0]], [[0.3, 0.7], [0.8, 0.2]]])
    )
    posterior = naive_bayes.label_posterior(params, observations, n_items=1)
    np.testing.assert_allclose(posterior, [[0.84, 0.16]], rtol=1e-6)
    sizes = {"n_items": 1, "n_classes": 2, "n_values": (1, 2)}
    values = naive_bayes.sites(params, n_values=(1, 2))
    total = jax.jit(lambda v: log_density(naive_bayes.model, (observations,), sizes, v)[0])(values)
    # the uniform densities of rows of one and of two values are 1
    np.testing.assert_allclose(total, log(0.6 * 0.7 + 0.4 * 0.2), rtol=1e-5)


def test_sites_carry_their_axes():
    at_params = numpyro.handlers.substitute(
        naive_bayes.model, data=naive_bayes.sites(params_of(0), n_values=N_VALUES)
    )
    traced = numpyro.handlers.trace(at_params)
    jax.eval_shape(lambda: traced.get_trace(OBSERVATIONS, **SIZES) and None)  # runs no arithmetic
    trace = traced.trace
    for width, n_members in ((2, 1), (3, 2)):
        stack = trace[f"conditional_{width}"]["cond_indep_stack"]
        frames = {(f.name, f.dim, f.size) for f in stack}
        assert frames == {(f"feature_{width}", -2, n_members), ("cls", -1, 2)}


# Reference: NumPyro's own enumeration of the discrete classes


@pytest.mark.slow
def test_log_density_equals_the_enumerated_model():
    funsor = pytest.importorskip("numpyro.contrib.funsor", exc_type=ImportError)
    params = params_of(0)
    values = {
        f"row_{feature}_{cls}": params.conditional[feature, cls, : N_VALUES[feature]]
        for feature, cls in product(range(3), range(2))
    }
    enumerated = funsor.enum(funsor.config_enumerate(enumerated_model), -1)
    values["prevalence"] = params.prevalence
    expected = jax.jit(lambda v: funsor.log_density(enumerated, (OBSERVATIONS,), {}, v)[0])
    np.testing.assert_allclose(model_log_density(params), expected(values), rtol=1e-5)


# Recovery


def test_simulated_frequencies_are_the_parameters():
    n_items = 5000
    item, feature = (jnp.asarray(x) for x in np.divmod(np.arange(n_items * 3), 3))
    params = params_of(3)
    drawn = naive_bayes.simulate_labels(jax.random.key(11), params, item, feature, n_items=n_items)
    truth, value = np.asarray(drawn.truth), np.asarray(drawn.observations.value)
    np.testing.assert_array_equal(drawn.observations.target, truth)
    assert_frequencies(truth, np.asarray(params.prevalence))
    for i, cls in product(range(3), range(2)):
        chosen = value[(np.asarray(feature) == i) & (truth[np.asarray(item)] == cls)]
        assert chosen.max() < N_VALUES[i]
        assert_frequencies(chosen, np.asarray(params.conditional)[i, cls, : N_VALUES[i]])


def assert_frequencies(draws, probabilities):
    """Observed shares within 4.5 standard errors: 18 such checks fail once in 8,000 keys."""
    shares = np.bincount(draws, minlength=len(probabilities)) / len(draws)
    error = np.sqrt(probabilities * (1 - probabilities) / len(draws))
    np.testing.assert_array_less(np.abs(shares - probabilities), 4.5 * error)


@pytest.mark.slow
def test_simulated_parameters_have_the_prior_moments():
    # as many features as draws: 2,000 of two values and 2,000 of three
    n_values = (2, 3) * 2000
    empty = jnp.zeros(0, dtype=int)
    drawn = naive_bayes.simulate(
        jax.random.key(5), empty, empty, n_items=1, n_classes=2, n_values=n_values, prior=PRIOR
    )
    conditional = np.asarray(drawn.params.conditional, dtype=float)
    np.testing.assert_allclose(conditional.sum(axis=2), 1.0, rtol=1e-5)
    assert not conditional[::2, :, 2].any()
    for start, width in ((0, 2), (1, 3)):
        rows = conditional[start::2].reshape(-1, 3)[:, :width]
        # a Dirichlet share of mean m and total n has variance m (1 - m) / (n + 1)
        variance = (1 / width) * (1 - 1 / width) / (PRIOR.conditional * width + 1)
        gap = np.abs(rows.mean(axis=0) - 1 / width)
        np.testing.assert_array_less(gap, 4.5 * np.sqrt(variance / len(rows)))
        squares = (rows - 1 / width) ** 2
        error = squares.std(axis=0) / np.sqrt(len(rows))
        np.testing.assert_array_less(np.abs(squares.mean(axis=0) - variance), 4.5 * error)


# Control


def test_control_another_prior_changes_the_density():
    params = params_of(0)
    other = prior_log_density(params, PRIOR._replace(conditional=1.5))
    assert abs(model_log_density(params) - other - brute_force_log_likelihood(params)) > 0.1


def test_control_a_known_class_is_not_an_unknown_one():
    params = params_of(0)
    hidden = OBSERVATIONS._replace(target=jnp.full(4, -1))
    assert model_log_density(params, hidden) > model_log_density(params) + 0.1


# Bad input


@pytest.mark.types
def test_items_and_features_must_pair_up():
    item, feature = jnp.array([0, 0, 1]), jnp.array([0, 1])
    with pytest.raises(jaxtyping.TypeCheckError, match="feature"):
        naive_bayes.simulate_labels(jax.random.key(0), params_of(0), item, feature, n_items=2)


def test_targets_must_be_as_many_as_items():
    with pytest.raises(ValueError, match="shapes"):
        naive_bayes.label_log_joint(params_of(0), OBSERVATIONS, n_items=5)
