"""The access path model against an enumerated posterior, brute force and its own simulator."""

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

from bayescrowd.models import access_path, naive_bayes
from bayescrowd.models.access_path import Observations, Params, Prior

# Features of 3 and 2 values, two groups of workers. The class of item 0 is known. Reading 0, of
# feature 0 of item 0, has three labels; reading 1, of feature 1 of item 1, two; reading 2, of
# feature 0 of item 1, one; reading 3, of feature 1 of item 0, none. Item 2 has no reading.
N_VALUES = (3, 2)
OBSERVATIONS = Observations(
    target=jnp.array([1, -1, -1]),
    item=jnp.array([0, 1, 1, 0]),
    feature=jnp.array([0, 1, 0, 1]),
    reading=jnp.array([0, 0, 0, 1, 1, 2]),
    group=jnp.array([0, 1, 0, 1, 0, 0]),
    label=jnp.array([2, 2, 0, 1, 0, 1]),
)
SIZES = {"n_items": 3, "n_groups": 2, "n_classes": 2, "n_values": N_VALUES}
PRIOR = Prior(prevalence=1.5, conditional=0.75, right=3.0, wrong=1.25)

# Eight readings of one feature of two values, each with three labels, of items of known classes.
TARGET = [0, 1, 1, 1, 1, 1, 1, 1]
COUNTS = np.array([[1, 2], [2, 1], [3, 0], [3, 0], [3, 0], [2, 1], [3, 0], [3, 0]])
TINY = Observations(
    target=jnp.array(TARGET),
    item=jnp.arange(8),
    feature=jnp.zeros(8, dtype=int),
    reading=jnp.repeat(jnp.arange(8), 3),
    group=jnp.zeros(24, dtype=int),
    label=jnp.array([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
)
TINY_SIZES = {"n_items": 8, "n_groups": 1, "n_classes": 2, "n_values": (2,)}


def params_of(seed):
    rng = np.random.default_rng(seed)
    conditional, confusion = np.zeros((2, 2, 3)), np.zeros((2, 2, 3, 3))
    for feature, width in enumerate(N_VALUES):
        conditional[feature, :, :width] = rng.dirichlet(np.full(width, 2.0), size=2)
        rows = rng.dirichlet(np.full(width, 2.0), size=(2, width))
        confusion[feature, :, :width, :width] = rows
    prevalence = rng.dirichlet(np.full(2, 2.0))
    return Params(*map(jnp.asarray, (prevalence, conditional, confusion)))


def complete_log_likelihood(params, truth, values):
    """Log density of the labels, one assignment of classes and one of values, as loops."""
    prevalence, conditional, confusion = (np.asarray(field, dtype=float) for field in params)
    _, item, feature, reading, group, label = map(np.asarray, OBSERVATIONS)
    total = sum(log(prevalence[cls]) for cls in truth)
    for r, z in enumerate(values):
        total += log(conditional[feature[r], truth[item[r]], z])
    for r, g, x in zip(reading, group, label, strict=True):
        total += log(confusion[feature[r], g, values[r], x])
    return total


CLASSES = [(1, a, b) for a, b in product(range(2), repeat=2)]
VALUES = list(product(*(range(N_VALUES[i]) for i in np.asarray(OBSERVATIONS.feature))))


def brute_force(params):
    """Log density of every assignment of classes and of values."""
    return np.array([[complete_log_likelihood(params, y, z) for z in VALUES] for y in CLASSES])


def row_log_density(row, concentration):
    row = np.asarray(row, dtype=float)  # float64, so that SciPy accepts that it sums to one
    return dirichlet.logpdf(row / row.sum(), concentration)


def prior_log_density(params, prior=PRIOR):
    params = Params(*map(np.asarray, params))
    total = row_log_density(params.prevalence, np.full(2, prior.prevalence))
    for feature, width in enumerate(N_VALUES):
        for cls in range(2):
            row = params.conditional[feature, cls, :width]
            total += row_log_density(row, np.full(width, prior.conditional))
        for group, z in product(range(2), range(width)):
            concentration = np.where(np.arange(width) == z, prior.right, prior.wrong)
            row = params.confusion[feature, group, z, :width]
            total += row_log_density(row, concentration)
    return total


@jax.jit
def model_log_density(params, observations=OBSERVATIONS):
    values = access_path.sites(params, n_values=N_VALUES)
    kwargs = {**SIZES, "prior": PRIOR}
    return log_density(access_path.model, (observations,), kwargs, values)[0]


def enumerated_model(observations):
    """The model feature by feature, with its discrete sites left in, for NumPyro to sum out."""
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(2, PRIOR.prevalence)))
    conditional, confusion = [], []
    for feature, width in enumerate(N_VALUES):
        concentration = jnp.where(jnp.eye(width) > 0, PRIOR.right, PRIOR.wrong)
        rows = dist.Dirichlet(jnp.full((2, width), PRIOR.conditional)).to_event(1)
        conditional.append(numpyro.sample(f"conditional_of_{feature}", rows))
        rows = dist.Dirichlet(jnp.stack([concentration] * 2)).to_event(2)
        confusion.append(numpyro.sample(f"confusion_of_{feature}", rows))
    _, item, feature, reading, group, label = map(np.asarray, observations)
    for i, target in enumerate(np.asarray(observations.target)):
        known = {"obs": jnp.array(target)} if target >= 0 else {}
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence), **known)
        for r in np.flatnonzero(item == i):
            value = numpyro.sample(f"value_{r}", dist.Categorical(conditional[feature[r]][truth]))
            for t in np.flatnonzero(reading == r):
                answer = dist.Categorical(confusion[feature[r]][group[t]][value])
                numpyro.sample(f"label_{t}", answer, obs=jnp.array(label[t]))


# By hand


def test_posteriors_by_hand():
    # One feature of two values, two groups, an unknown class at 3 : 1; the labels are 1 and 0.
    params = Params(
        prevalence=jnp.array([0.75, 0.25]),
        conditional=jnp.array([[[0.9, 0.1], [0.2, 0.8]]]),
        confusion=jnp.array([[[[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.5], [0.1, 0.9]]]]),
    )
    observations = Observations(
        target=jnp.array([-1]),
        item=jnp.array([0]),
        feature=jnp.array([0]),
        reading=jnp.array([0, 0]),
        group=jnp.array([0, 1]),
        label=jnp.array([1, 0]),
    )
    answers = np.array([0.3 * 0.5, 0.6 * 0.1])  # of both workers, for a value of 0 and of 1
    joint = np.array([[0.9, 0.1], [0.2, 0.8]]) * answers  # of value and labels, given the class
    log_joint = access_path.value_log_joint(params, observations)[0]
    np.testing.assert_allclose(log_joint, np.log(joint), rtol=1e-6)
    given_label = joint / joint.sum(axis=1, keepdims=True)
    for cls in range(2):
        value = access_path.value_given_label(params, observations, jnp.array([cls]))
        np.testing.assert_allclose(value[0], given_label[cls], rtol=1e-6)
    label = np.array([0.75 * (0.135 + 0.006), 0.25 * (0.03 + 0.048)])
    log_joint = access_path.label_log_joint(params, observations, n_items=1)
    np.testing.assert_allclose(log_joint[0], np.log(label), rtol=1e-6)
    posterior = access_path.label_posterior(params, observations, n_items=1)
    np.testing.assert_allclose(posterior[0], label / label.sum(), rtol=1e-6)
    value = access_path.value_posterior(params, observations, n_items=1)
    np.testing.assert_allclose(value[0], label / label.sum() @ given_label, rtol=1e-6)


def test_an_impossible_class_has_no_say_in_the_value():
    # class 1 never has the value 0, and who answers 0 has seen a 0
    params = Params(
        prevalence=jnp.array([0.5, 0.5]),
        conditional=jnp.array([[[0.5, 0.5], [0.0, 1.0]]]),
        confusion=jnp.array([[[[1.0, 0.0], [0.0, 1.0]]]]),
    )
    index = jnp.array([0])
    observations = Observations(jnp.array([-1]), index, index, index, index, jnp.array([0]))
    posterior = access_path.label_posterior(params, observations, n_items=1)
    np.testing.assert_array_equal(posterior, [[1, 0]])
    value = access_path.value_posterior(params, observations, n_items=1)
    np.testing.assert_array_equal(value, [[1, 0]])


def test_concentrations_are_zero_beyond_the_last_value():
    confusion = access_path.confusion_concentration(Prior(), n_values=(2, 3))
    expected = [[[4, 1, 0], [1, 4, 0], [0, 0, 0]], [[4, 1, 1], [1, 4, 1], [1, 1, 4]]]
    np.testing.assert_array_equal(confusion, expected)
    conditional = access_path.conditional_concentration(Prior(), n_classes=2, n_values=(2, 3))
    np.testing.assert_array_equal(conditional, [[[1, 1, 0]] * 2, [[1, 1, 1]] * 2])


# Closed form


def dirichlet_multinomial(counts, concentration):
    """Log probability of sequences with these counts, rows of parameters integrated out."""
    total = concentration.sum(axis=1)
    each = (gammaln(concentration + counts) - gammaln(concentration)).sum()
    return each + (gammaln(total) - gammaln(total + counts.sum(axis=1))).sum()


def enumerated_posterior(right):
    """Log evidence and both tables' posterior concentrations for every assignment of values."""
    prior = np.where(np.eye(2) > 0, right, 1.0)
    log_evidence, conditional, confusion = [], [], []
    for values in product(range(2), repeat=8):
        of_value, of_label = np.zeros((2, 2)), np.zeros((2, 2))
        for cls, z, counts in zip(TARGET, values, COUNTS, strict=True):
            of_value[cls, z] += 1
            of_label[z] += counts
        log_evidence.append(
            dirichlet_multinomial(of_value, np.ones((2, 2)))
            + dirichlet_multinomial(of_label, prior)
        )
        conditional.append(1 + of_value)
        confusion.append(prior + of_label)
    return np.array(log_evidence), np.array(conditional), np.array(confusion)


# Evidence and posterior means found by another implementation, to the digits given.
KNOWN = {
    4.0: (-12.101730, [[0.3724, 0.6276], [0.8336, 0.1664]], [[0.8848, 0.1152], [0.2991, 0.7009]]),
    1.0: (-12.074142, [[0.5, 0.5], [0.5, 0.5]], [[0.6977, 0.3023], [0.6977, 0.3023]]),
}


@pytest.mark.parametrize("right", KNOWN)
def test_enumerated_evidence_and_means_are_the_known_ones(right):
    log_evidence, conditional, confusion = enumerated_posterior(right)
    weights = np.exp(log_evidence - logsumexp(log_evidence))
    evidence, *means = KNOWN[right]
    np.testing.assert_allclose(logsumexp(log_evidence), evidence, atol=5e-7)
    for concentration, mean in zip((conditional, confusion), means, strict=True):
        expected = concentration / concentration.sum(axis=2, keepdims=True)
        np.testing.assert_allclose(np.tensordot(weights, expected, 1), mean, atol=5e-5)


@pytest.mark.parametrize("right", KNOWN)
def test_model_is_the_mixture_of_the_enumerated_posteriors(right):
    """Density = sum over values of evidence times Dirichlet posteriors, at any parameters."""
    log_evidence, conditional, confusion = enumerated_posterior(right)
    at = Params(
        prevalence=jnp.array([0.3, 0.7]),
        conditional=jnp.array([[[0.35, 0.65], [0.8, 0.2]]]),
        confusion=jnp.array([[[[0.9, 0.1], [0.25, 0.75]]]]),
    )
    rows_of_value, rows_of_label = np.asarray(at.conditional[0]), np.asarray(at.confusion[0, 0])
    terms = [
        evidence
        + sum(map(row_log_density, rows_of_value, of_value))
        + sum(map(row_log_density, rows_of_label, of_label))
        for evidence, of_value, of_label in zip(log_evidence, conditional, confusion, strict=True)
    ]
    classes = log(0.3) + 7 * log(0.7)  # the uniform prior of two classes has density 1
    total = tiny_log_density(at, Prior(right=right))
    np.testing.assert_allclose(total, logsumexp(terms) + classes, rtol=1e-5)


@jax.jit
def tiny_log_density(params, prior):
    values = access_path.sites(params, n_values=(2,))
    kwargs = {**TINY_SIZES, "prior": prior}
    return log_density(access_path.model, (TINY,), kwargs, values)[0]


@pytest.mark.parametrize("seed", range(2))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params) + logsumexp(brute_force(params))
    # float32 sums of some fifty terms
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


POOLED = PRIOR._replace(pooling=2.5)


@jax.jit
def pooled_log_density(params):
    values = access_path.sites(params, n_values=N_VALUES, prior=POOLED)
    return log_density(access_path.model, (OBSERVATIONS,), {**SIZES, "prior": POOLED}, values)[0]


@pytest.mark.parametrize("seed", range(2))
def test_pooled_rows_have_a_dirichlet_about_the_shared_ones(seed):
    params = params_of(seed)
    expected = prior_log_density(params) + logsumexp(brute_force(params))
    for feature, width in enumerate(N_VALUES):
        for z in range(width):
            shared, own = np.asarray(params.confusion[feature, :, z, :width], dtype=float)
            gamma = np.where(np.arange(width) == z, PRIOR.right, PRIOR.wrong)
            expected += row_log_density(own, POOLED.pooling * shared) - row_log_density(own, gamma)
    assert float(pooled_log_density(params)) == pytest.approx(float(expected), rel=1e-5)


def test_a_single_group_is_the_shared_one():
    params = Params(*(f[:, :1] if f.ndim == 4 else f for f in params_of(0)))
    alone = OBSERVATIONS._replace(group=jnp.zeros(6, dtype=int))
    densities = []
    for prior in (PRIOR, POOLED):
        values = access_path.sites(params, n_values=N_VALUES, prior=prior)
        kwargs = {**SIZES, "n_groups": 1, "prior": prior}
        densities.append(float(log_density(access_path.model, (alone,), kwargs, values)[0]))
    assert densities[0] == pytest.approx(densities[1], rel=1e-6)


def test_simulated_pooled_rows_are_as_near_to_the_shared_ones_as_the_prior_says():
    def confusion(key):
        none = jnp.zeros(0, dtype=int)
        sizes = {"n_items": 1, "n_groups": 4, "n_classes": 2, "n_values": (2,)}
        return access_path.simulate(
            key, none, none, none, none, prior=POOLED, **sizes
        ).params.confusion[0]

    rows = np.asarray(jax.vmap(confusion)(jax.random.split(jax.random.key(0), 2_000)))
    shared, own = rows[:, 0, :, 0], rows[:, 1:, :, 0]
    # a beta variable of mean m and strength s has the variance m (1 - m) / (s + 1)
    scaled = (own - shared[:, None]) / np.sqrt((shared * (1 - shared))[:, None] / 3.5)
    n = scaled.size
    assert abs(scaled.mean()) < 4 / np.sqrt(n)
    # squares of these beta variables have a standard deviation of at most 3
    assert abs((scaled**2).mean() - 1) < 4 * 3 / np.sqrt(n)


def test_posteriors_are_those_of_brute_force():
    params = params_of(2)
    joint = brute_force(params)
    weights = np.exp(joint - logsumexp(joint))
    labels = np.tensordot(weights.sum(axis=1), np.eye(2)[np.array(CLASSES)], 1)
    actual = access_path.label_posterior(params, OBSERVATIONS, n_items=3)
    np.testing.assert_allclose(actual, labels, rtol=1e-5)
    one_hot = np.eye(3)[np.array(VALUES)]  # indexed [assignment, reading, value]
    values = np.tensordot(weights.sum(axis=0), one_hot, 1)
    actual = access_path.value_posterior(params, OBSERVATIONS, n_items=3)
    np.testing.assert_allclose(actual, values, rtol=1e-5)
    for y, classes in enumerate(CLASSES):
        given = np.exp(joint[y] - logsumexp(joint[y]))
        actual = access_path.value_given_label(params, OBSERVATIONS, jnp.array(classes))
        np.testing.assert_allclose(actual, np.tensordot(given, one_hot, 1), rtol=1e-5)


# Invariants


def test_workers_who_never_err_leave_naive_bayes():
    perfect = params_of(0)._replace(confusion=jnp.broadcast_to(jnp.eye(3), (2, 2, 3, 3)))
    read = OBSERVATIONS._replace(
        item=jnp.array([0, 1, 1]),
        feature=jnp.array([0, 1, 0]),
        label=jnp.array([2, 2, 2, 1, 1, 1]),
    )
    noiseless = naive_bayes.Observations(read.target, read.item, read.feature, jnp.array([2, 1, 1]))
    actual = access_path.label_log_joint(perfect, read, n_items=3)
    expected = naive_bayes.label_log_joint(
        naive_bayes.Params(perfect.prevalence, perfect.conditional), noiseless, n_items=3
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_renaming_the_values_changes_the_prior_alone():
    params = params_of(1)
    turned = params._replace(
        conditional=params.conditional.at[0].set(jnp.roll(params.conditional[0], 1, axis=-1)),
        confusion=params.confusion.at[0].set(jnp.roll(params.confusion[0], 1, axis=1)),
    )
    both = [access_path.label_log_joint(p, OBSERVATIONS, n_items=3) for p in (params, turned)]
    np.testing.assert_allclose(*both, rtol=1e-5)
    actual = model_log_density(params) - model_log_density(turned)
    expected = prior_log_density(params) - prior_log_density(turned)
    assert abs(expected) > 0.1
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_groups_that_are_alike_are_one_group():
    params = params_of(1)
    alike = params._replace(confusion=params.confusion[:, :1].repeat(2, axis=1))
    single = params._replace(confusion=params.confusion[:, :1])
    shared = OBSERVATIONS._replace(group=jnp.zeros(6, dtype=int))
    np.testing.assert_allclose(
        access_path.label_log_joint(alike, OBSERVATIONS, n_items=3),
        access_path.label_log_joint(single, shared, n_items=3),
        rtol=1e-6,
    )


def test_sites_carry_their_axes():
    params = params_of(0)
    at_params = numpyro.handlers.substitute(
        access_path.model, data=access_path.sites(params, n_values=N_VALUES)
    )
    traced = numpyro.handlers.trace(at_params)
    jax.eval_shape(lambda: traced.get_trace(OBSERVATIONS, **SIZES) and None)  # runs no arithmetic
    trace = traced.trace
    for width in N_VALUES:
        stack = trace[f"confusion_{width}"]["cond_indep_stack"]
        frames = {(f.name, f.dim, f.size) for f in stack}
        expected = {(f"feature_{width}", -3, 1), ("group", -2, 2), (f"value_{width}", -1, width)}
        assert frames == expected


# Reference: NumPyro's own enumeration of classes and values


@pytest.mark.slow
def test_log_density_equals_the_enumerated_model():
    funsor = pytest.importorskip("numpyro.contrib.funsor", exc_type=ImportError)
    params = params_of(0)
    values = {"prevalence": params.prevalence}
    for feature, width in enumerate(N_VALUES):
        values[f"conditional_of_{feature}"] = params.conditional[feature, :, :width]
        values[f"confusion_of_{feature}"] = params.confusion[feature, :, :width, :width]
    enumerated = funsor.enum(funsor.config_enumerate(enumerated_model), -1)
    expected = jax.jit(lambda v: funsor.log_density(enumerated, (OBSERVATIONS,), {}, v)[0])
    np.testing.assert_allclose(model_log_density(params), expected(values), rtol=1e-5)


# Recovery


def test_simulated_frequencies_are_the_parameters():
    n_items = 4000
    item, feature = np.divmod(np.arange(n_items * 2), 2)
    reading, group = np.divmod(np.arange(n_items * 4), 2)
    params = params_of(3)
    drawn = access_path.simulate_labels(
        jax.random.key(11), params, *map(jnp.asarray, (item, feature, reading, group)), n_items=4000
    )
    truth, value, label = map(np.asarray, (drawn.truth, drawn.value, drawn.observations.label))
    assert_frequencies(truth, np.asarray(params.prevalence))
    for i, width in enumerate(N_VALUES):
        for cls in range(2):
            chosen = value[(feature == i) & (truth[item] == cls)]
            assert_frequencies(chosen, np.asarray(params.conditional)[i, cls, :width])
        for g, z in product(range(2), range(width)):
            chosen = label[(feature[reading] == i) & (group == g) & (value[reading] == z)]
            assert_frequencies(chosen, np.asarray(params.confusion)[i, g, z, :width])


def assert_frequencies(draws, probabilities):
    """Observed shares within 4.5 standard errors: 38 such checks fail once in 3,800 keys."""
    shares = np.bincount(draws, minlength=len(probabilities)) / len(draws)
    error = np.sqrt(probabilities * (1 - probabilities) / len(draws))
    np.testing.assert_array_less(np.abs(shares - probabilities), 4.5 * error)


@pytest.mark.slow
def test_simulated_workers_have_the_prior_means():
    n_groups = 4000
    empty = jnp.zeros(0, dtype=int)
    design = (empty, empty, empty, empty)
    sizes = {"n_items": 1, "n_groups": n_groups, "n_classes": 2, "n_values": (3,)}
    drawn = access_path.simulate(jax.random.key(5), *design, **sizes, prior=PRIOR)
    total = PRIOR.right + 2 * PRIOR.wrong
    mean = np.where(np.eye(3) > 0, PRIOR.right, PRIOR.wrong) / total
    # a Dirichlet share of mean m and total n has variance m (1 - m) / (n + 1)
    error = np.sqrt(mean * (1 - mean) / (total + 1) / n_groups)
    gap = np.abs(np.asarray(drawn.params.confusion)[0].mean(axis=0) - mean)
    np.testing.assert_array_less(gap, 4.5 * error)


# Control


def test_control_another_prior_changes_the_density():
    params = params_of(0)
    other = prior_log_density(params, PRIOR._replace(right=PRIOR.wrong, wrong=PRIOR.right))
    assert abs(model_log_density(params) - other - logsumexp(brute_force(params))) > 0.1


def test_control_the_labels_of_a_reading_are_not_independent():
    """A value per label, as if each label were a reading of its own, is another model."""
    apart = OBSERVATIONS._replace(
        item=OBSERVATIONS.item[OBSERVATIONS.reading],
        feature=OBSERVATIONS.feature[OBSERVATIONS.reading],
        reading=jnp.arange(6),
    )
    params = params_of(0)
    assert abs(model_log_density(params, apart) - model_log_density(params)) > 0.01


# Bad input


@pytest.mark.types
def test_readings_and_groups_must_pair_up():
    item, feature, reading, group = (jnp.zeros(n, dtype=int) for n in (2, 2, 3, 4))
    with pytest.raises(jaxtyping.TypeCheckError, match="group"):
        access_path.simulate_labels(
            jax.random.key(0), params_of(0), item, feature, reading, group, n_items=1
        )
