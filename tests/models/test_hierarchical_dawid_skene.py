"""The pooled Dawid–Skene model against brute force, enumeration, its limits and its simulator."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet, lognorm, norm

from bayescrowd.models import dawid_skene
from bayescrowd.models import hierarchical_dawid_skene as pooled
from bayescrowd.models.hierarchical_dawid_skene import Labels, Params, Prior

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(
    prevalence=1.5, n_pseudo_labels=5.0, accuracy=0.7, strength=6.0, log_strength_scale=0.8
)


def params_of(seed, n_workers=2):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        crowd=jnp.asarray(rng.dirichlet(np.full(3, 3.0), size=3)),
        strength=jnp.asarray(rng.gamma(4.0, 2.0, size=3)),
        confusion=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(n_workers, 3))),
    )


def complete_log_likelihood(params, truth):
    """Log density of the labels and one assignment of true classes, written as loops."""
    prevalence, confusion = (np.asarray(x, float) for x in (params.prevalence, params.confusion))
    total = sum(log(prevalence[cls]) for cls in truth)
    for item, worker, label in zip(*map(np.asarray, LABELS[:3]), strict=True):
        total += log(confusion[worker, truth[item], label])
    return total


def brute_force_log_likelihood(params):
    """Sum over all 3 ** 4 assignments."""
    return logsumexp([complete_log_likelihood(params, z) for z in product(range(3), repeat=4)])


def row_log_density(row, concentration):
    row = np.asarray(row, dtype=float)  # float64, so that SciPy accepts that it sums to one
    return dirichlet.logpdf(row / row.sum(), concentration)


def crowd_log_density(params, prior):
    params = Params(*map(np.asarray, params))
    wrong = prior.n_pseudo_labels * (1 - prior.accuracy) / 2
    concentration = np.full((3, 3), wrong)
    np.fill_diagonal(concentration, prior.n_pseudo_labels * prior.accuracy)
    total = row_log_density(params.prevalence, np.full(3, prior.prevalence))
    total += sum(map(row_log_density, params.crowd, concentration))
    strength = np.asarray(params.strength, dtype=float)
    return total + lognorm.logpdf(strength, prior.log_strength_scale, scale=prior.strength).sum()


def prior_log_density(params, prior):
    _, crowd, strength, confusion = (np.asarray(field, dtype=float) for field in params)
    rows = [
        row_log_density(confusion[k, j], strength[j] * crowd[j])
        for k, j in product(range(2), range(3))
    ]
    return crowd_log_density(params, prior) + sum(rows)


@jax.jit
def model_log_density(params, labels=LABELS, prior=PRIOR):
    return log_density(pooled.model, (labels,), {**SIZES, "prior": prior}, params._asdict())[0]


def enumerated_model(labels, *, n_items, n_workers, n_classes, prior):
    """The model with its discrete site left in, for NumPyro to sum out."""
    n, right = prior.n_pseudo_labels, prior.accuracy
    pseudo_labels = n * jnp.where(jnp.eye(n_classes) > 0, right, (1 - right) / (n_classes - 1))
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, prior.prevalence)))
    with numpyro.plate("cls", n_classes, dim=-1):
        crowd = numpyro.sample("crowd", dist.Dirichlet(pseudo_labels))
        log_strength = dist.Normal(jnp.log(prior.strength), prior.log_strength_scale)
        exponential = dist.transforms.ExpTransform()
        strength = numpyro.sample(
            "strength", dist.TransformedDistribution(log_strength, exponential)
        )
        with numpyro.plate("worker", n_workers, dim=-2):
            confusion = numpyro.sample("confusion", dist.Dirichlet(strength[:, None] * crowd))
    for i in range(n_items):
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence))
        for t in np.flatnonzero(np.asarray(labels.item) == i):
            answer = dist.Categorical(confusion[labels.worker[t], truth])
            numpyro.sample(f"label_{t}", answer, obs=labels.label[t])


# By hand


def test_concentrations_by_hand():
    # 8 pseudo-labels: 8 * 0.6 right, 8 * 0.4 / 2 for each wrong class
    expected = [[4.8, 1.6, 1.6], [1.6, 4.8, 1.6], [1.6, 1.6, 4.8]]
    np.testing.assert_allclose(pooled.crowd_concentration(Prior(), 3), expected, rtol=1e-6)
    crowd = jnp.array([[0.9, 0.1], [0.3, 0.7]])
    rows = pooled.confusion_concentration(crowd, jnp.array([10.0, 20.0]))
    np.testing.assert_allclose(rows, [[9, 1], [6, 14]], rtol=1e-6)


def test_at_the_middle_of_the_prior_workers_are_those_of_dawid_and_skene():
    concentration = pooled.crowd_concentration(Prior(), 3)
    crowd = concentration / concentration.sum(axis=1, keepdims=True)
    rows = pooled.confusion_concentration(crowd, jnp.full(3, Prior().strength))
    expected = dawid_skene.confusion_concentration(dawid_skene.Prior(), 3)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_nine_strengths_in_ten_are_where_the_docstring_says():
    low, high = Prior().strength * np.exp(norm.ppf([0.05, 0.95]) * Prior().log_strength_scale)
    assert round(low, 1) == 1.5
    assert round(high) == 41


# Closed form


@pytest.mark.parametrize("seed", range(3))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params, PRIOR) + brute_force_log_likelihood(params)
    # float32 sums of some thirty terms
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


def test_rows_given_crowd_and_classes_are_conjugate():
    """Complete density over the rows' Dirichlet posteriors: the Dirichlet-multinomial's density."""
    truth = (0, 1, 0, 2)
    counts = np.zeros((2, 3, 3))
    for item, worker, label in zip(*map(np.asarray, LABELS[:3]), strict=True):
        counts[worker, truth[item], label] += 1
    params = params_of(0)
    concentration = np.asarray(
        pooled.confusion_concentration(params.crowd, params.strength), dtype=float
    )
    total = concentration.sum(axis=1)
    marginal = (gammaln(concentration + counts) - gammaln(concentration)).sum()
    marginal += (gammaln(total) - gammaln(total + counts.sum(axis=2))).sum()
    marginal += crowd_log_density(params, PRIOR)
    marginal += sum(log(params.prevalence[cls]) for cls in truth)
    for seed in range(3):
        other = params._replace(confusion=params_of(seed).confusion)
        joint = prior_log_density(other, PRIOR) + complete_log_likelihood(other, truth)
        rows = [
            row_log_density(other.confusion[k, j], concentration[j] + counts[k, j])
            for k, j in product(range(2), range(3))
        ]
        np.testing.assert_allclose(joint - sum(rows), marginal, rtol=1e-5)


# Invariants


def test_density_ignores_the_names_of_workers_and_classes():
    params = params_of(1)
    swapped = params._replace(confusion=params.confusion[::-1])
    renamed = LABELS._replace(worker=1 - LABELS.worker)
    turned = Params(
        jnp.roll(params.prevalence, 1),
        jnp.roll(params.crowd, (1, 1), axis=(0, 1)),
        jnp.roll(params.strength, 1),
        jnp.roll(params.confusion, (1, 1), axis=(1, 2)),
    )
    relabelled = LABELS._replace(label=(LABELS.label + 1) % 3)
    expected = model_log_density(params)
    for same in ((swapped, renamed), (turned, relabelled)):
        np.testing.assert_allclose(model_log_density(*same), expected, rtol=1e-6)


def test_prior_breaks_the_symmetry_of_the_true_classes():
    honest = 0.7 * jnp.eye(3) + 0.1
    params = params_of(0)._replace(crowd=honest, confusion=jnp.stack([honest] * 2))
    relabelled = Params(
        jnp.roll(params.prevalence, 1),
        jnp.roll(params.crowd, 1, axis=0),
        jnp.roll(params.strength, 1),
        jnp.roll(params.confusion, 1, axis=1),
    )
    both = [
        logsumexp(np.asarray(pooled.label_log_joint(p, LABELS, n_items=4)), axis=1)
        for p in (params, relabelled)
    ]
    np.testing.assert_allclose(*both, rtol=1e-5)
    assert model_log_density(params) > model_log_density(relabelled) + 1


def test_sites_carry_their_axes():
    at_params = numpyro.handlers.substitute(pooled.model, data=params_of(0)._asdict())
    traced = numpyro.handlers.trace(at_params)
    jax.eval_shape(lambda: traced.get_trace(LABELS, **SIZES) and None)  # runs no arithmetic
    trace = traced.trace
    frames = {
        name: {(f.name, f.dim, f.size) for f in trace[name]["cond_indep_stack"]}
        for name in Params._fields
    }
    assert frames["prevalence"] == set()
    assert frames["crowd"] == frames["strength"] == {("cls", -1, 3)}
    assert frames["confusion"] == {("worker", -2, 2), ("cls", -1, 3)}


# Reference: NumPyro's own enumeration of the discrete classes


@pytest.mark.slow
def test_log_density_equals_the_enumerated_model():
    funsor = pytest.importorskip("numpyro.contrib.funsor", exc_type=ImportError)
    enumerated = funsor.enum(funsor.config_enumerate(enumerated_model), -3)
    kwargs = {**SIZES, "prior": PRIOR}
    params = params_of(0)
    expected = jax.jit(lambda p: funsor.log_density(enumerated, (LABELS,), kwargs, p._asdict())[0])
    np.testing.assert_allclose(model_log_density(params), expected(params), rtol=1e-5)


# Recovery


@pytest.mark.slow
def test_simulated_workers_scatter_around_the_crowd_as_the_strengths_say():
    n_workers = 4000
    empty = jnp.zeros(0, dtype=int)
    drawn = pooled.simulate(
        jax.random.key(5), empty, empty, n_items=1, n_workers=n_workers, n_classes=3, prior=PRIOR
    )
    mean, strength, confusion = (
        np.asarray(x, dtype=float)
        for x in (drawn.params.crowd, drawn.params.strength, drawn.params.confusion)
    )
    np.testing.assert_allclose(mean.sum(axis=1), 1.0, rtol=1e-6)
    # a Dirichlet share of mean m and total s has variance m (1 - m) / (s + 1)
    variance = mean * (1 - mean) / (strength[:, None] + 1)
    gap = np.abs(confusion.mean(axis=0) - mean)
    np.testing.assert_array_less(gap, 4.5 * np.sqrt(variance / n_workers))
    # the standard error of a sample variance, from the sample's own fourth moments
    squares = (confusion - mean) ** 2
    error = squares.std(axis=0) / np.sqrt(n_workers)
    np.testing.assert_array_less(np.abs(squares.mean(axis=0) - variance), 4.5 * error)


def test_simulated_labels_follow_the_workers_and_not_the_crowd():
    n_items = 6000
    item, worker = (jnp.asarray(x) for x in np.divmod(np.arange(n_items * 2), 2))
    params = params_of(3)
    drawn = pooled.simulate_labels(jax.random.key(11), params, item, worker, n_items=n_items)
    truth, label = np.asarray(drawn.truth), np.asarray(drawn.labels.label)
    for k, j in product(range(2), range(3)):
        chosen = label[(np.asarray(worker) == k) & (truth[np.asarray(item)] == j)]
        probabilities = np.asarray(params.confusion)[k, j]
        error = np.sqrt(probabilities * (1 - probabilities) / len(chosen))
        gap = np.abs(np.bincount(chosen, minlength=3) / len(chosen) - probabilities)
        # 18 shares within 4.5 standard errors fail once in 8,000 keys
        np.testing.assert_array_less(gap, 4.5 * error)


# Control


def test_control_the_crowd_matters():
    params = params_of(0)
    other = params._replace(crowd=params.crowd[::-1])
    rows = [prior_log_density(p, PRIOR) - crowd_log_density(p, PRIOR) for p in (params, other)]
    difference = model_log_density(params) - model_log_density(other)
    assert abs(rows[0] - rows[1]) > 0.1
    expected = prior_log_density(params, PRIOR) - prior_log_density(other, PRIOR)
    np.testing.assert_allclose(difference, expected, rtol=1e-4)


def test_control_another_prior_changes_the_density():
    params = params_of(0)
    changed = model_log_density(params, prior=PRIOR._replace(log_strength_scale=1.5))
    assert abs(changed - model_log_density(params)) > 0.1
