"""Abilities and difficulties against sums by hand, brute force, enumeration and a simulator."""

from itertools import product
from math import exp, log

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy.special import expit, logsumexp
from scipy.stats import dirichlet, norm

from bayescrowd.models import item_difficulty
from bayescrowd.models.item_difficulty import Labels, Params, Prior

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(
    prevalence=1.5, ability=0.5, ability_scale=1.5, log_easiness=-0.3, log_easiness_scale=0.7
)


def params_of(seed, n_items=4):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        ability=jnp.asarray(rng.normal(1.0, 1.0, size=2)),
        log_easiness=jnp.asarray(rng.normal(0.0, 0.7, size=n_items)),
    )


def complete_log_likelihood(params, truth):
    """Log density of the labels and one assignment of true classes, written as loops."""
    prevalence, ability, log_easiness = (np.asarray(field, dtype=float) for field in params)
    total = sum(log(prevalence[cls]) for cls in truth)
    for item, worker, label in zip(*map(np.asarray, LABELS[:3]), strict=True):
        right = 1 / (1 + exp(-ability[worker] * exp(log_easiness[item])))
        total += log(right if label == truth[item] else (1 - right) / 2)
    return total


def brute_force_log_likelihood(params):
    """Sum over all 3 ** 4 assignments."""
    return logsumexp([complete_log_likelihood(params, z) for z in product(range(3), repeat=4)])


def prior_log_density(params, prior):
    prevalence, ability, log_easiness = (np.asarray(field, dtype=float) for field in params)
    total = dirichlet.logpdf(prevalence / prevalence.sum(), np.full(3, prior.prevalence))
    total += norm.logpdf(ability, prior.ability, prior.ability_scale).sum()
    return total + norm.logpdf(log_easiness, prior.log_easiness, prior.log_easiness_scale).sum()


@jax.jit
def model_log_density(params, labels=LABELS):
    kwargs = {**SIZES, "prior": PRIOR}
    return log_density(item_difficulty.model, (labels,), kwargs, params._asdict())[0]


def enumerated_model(labels, *, n_items, n_workers, n_classes, prior):
    """The model with its discrete site left in, for NumPyro to sum out."""
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, prior.prevalence)))
    with numpyro.plate("worker", n_workers):
        ability = numpyro.sample("ability", dist.Normal(prior.ability, prior.ability_scale))
    with numpyro.plate("item", n_items):
        easiness = dist.Normal(prior.log_easiness, prior.log_easiness_scale)
        log_easiness = numpyro.sample("log_easiness", easiness)
    for i in range(n_items):
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence))
        for t in np.flatnonzero(np.asarray(labels.item) == i):
            right = jax.nn.sigmoid(ability[labels.worker[t]] * jnp.exp(log_easiness[i]))
            is_right = jnp.arange(n_classes) == truth[..., None]
            answer = jnp.where(is_right, right, (1 - right) / (n_classes - 1))
            numpyro.sample(f"label_{t}", dist.Categorical(answer), obs=labels.label[t])


# By hand


def test_label_posterior_by_hand():
    # sigma(log 4) = 4/5; on an item twice as easy sigma(2 log 4) = 16/17; two wrong classes.
    params = Params(
        prevalence=jnp.array([0.5, 0.3, 0.2]),
        ability=jnp.log(jnp.array([4.0, 1.0])),  # worker 1 of ability 0 is right half the time
        log_easiness=jnp.log(jnp.array([1.0, 2.0, 1.0])),
    )
    labels = Labels(jnp.array([0, 0, 1]), jnp.array([0, 1, 0]), jnp.array([1, 2, 0]))
    joint = np.array(
        [
            [0.5 * 0.1 * 0.25, 0.3 * 0.8 * 0.25, 0.2 * 0.1 * 0.5],
            [0.5 * 16 / 17, 0.3 * 1 / 34, 0.2 * 1 / 34],
            [0.5, 0.3, 0.2],  # nobody spoke
        ]
    )
    log_joint = item_difficulty.label_log_joint(params, labels, n_items=3)
    np.testing.assert_allclose(log_joint, np.log(joint), rtol=1e-6)
    posterior = item_difficulty.label_posterior(params, labels, n_items=3)
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), rtol=1e-6)


def test_with_two_classes_a_vote_weighs_ability_times_easiness():
    params = Params(jnp.array([0.5, 0.5]), jnp.array([1.5, -0.4]), jnp.array([0.7]))
    labels = Labels(jnp.array([0, 0]), jnp.array([0, 1]), jnp.array([1, 0]))
    log_joint = item_difficulty.label_log_joint(params, labels, n_items=1)[0]
    log_odds = (1.5 - -0.4) * exp(0.7)
    np.testing.assert_allclose(log_joint[1] - log_joint[0], log_odds, rtol=1e-6)


def test_extreme_abilities_stay_finite():
    params = Params(jnp.array([0.5, 0.5]), jnp.array([200.0, -200.0]), jnp.array([2.0]))
    labels = Labels(jnp.array([0, 0]), jnp.array([0, 1]), jnp.array([1, 1]))
    log_joint = item_difficulty.label_log_joint(params, labels, n_items=1)
    # one of the two is surely wrong whatever the class: log sigma(-200 e^2)
    np.testing.assert_allclose(log_joint, log(0.5) - 200 * exp(2.0), rtol=1e-6)


# Closed form


@pytest.mark.parametrize("seed", range(3))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params, PRIOR) + brute_force_log_likelihood(params)
    # float32 sums of some twenty terms
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


# Invariants


def test_abilities_and_easinesses_share_a_scale_that_only_the_prior_fixes():
    params = params_of(1)
    scaled = params._replace(
        ability=3 * params.ability, log_easiness=params.log_easiness - jnp.log(3)
    )
    both = [item_difficulty.label_log_joint(p, LABELS, n_items=4) for p in (params, scaled)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-5)
    assert abs(model_log_density(params) - model_log_density(scaled)) > 1


def test_density_ignores_the_names_of_workers_items_and_classes():
    params = params_of(1)
    swapped = params._replace(ability=params.ability[::-1])
    renamed = LABELS._replace(worker=1 - LABELS.worker)
    turned = params._replace(prevalence=jnp.roll(params.prevalence, 1))
    relabelled = LABELS._replace(label=(LABELS.label + 1) % 3)
    reversed_items = params._replace(log_easiness=params.log_easiness[::-1])
    recounted = LABELS._replace(item=3 - LABELS.item)
    expected = model_log_density(params)
    for same in ((swapped, renamed), (turned, relabelled), (reversed_items, recounted)):
        np.testing.assert_allclose(model_log_density(*same), expected, rtol=1e-6)


# Reference: NumPyro's own enumeration of the discrete classes


@pytest.mark.slow
def test_log_density_equals_the_enumerated_model():
    funsor = pytest.importorskip("numpyro.contrib.funsor", exc_type=ImportError)
    enumerated = funsor.enum(funsor.config_enumerate(enumerated_model), -2)
    kwargs = {**SIZES, "prior": PRIOR}
    params = params_of(0)
    expected = jax.jit(lambda p: funsor.log_density(enumerated, (LABELS,), kwargs, p._asdict())[0])
    np.testing.assert_allclose(model_log_density(params), expected(params), rtol=1e-5)


# Recovery


def test_simulated_frequencies_are_the_parameters():
    # two easinesses in turn, so that a frequency has many labels behind it
    n_items = 6000
    item, worker = (jnp.asarray(x) for x in np.divmod(np.arange(n_items * 2), 2))
    params = params_of(3)._replace(log_easiness=jnp.tile(jnp.array([-0.5, 0.8]), n_items // 2))
    drawn = item_difficulty.simulate_labels(
        jax.random.key(11), params, item, worker, n_items=n_items
    )
    truth, label = np.asarray(drawn.truth), np.asarray(drawn.labels.label)
    assert_frequencies(truth, np.asarray(params.prevalence))
    # 0 for the right class, 1 and 2 for the wrong ones
    offset = (label - truth[np.asarray(item)]) % 3
    for k, parity in product(range(2), range(2)):
        chosen = offset[(np.asarray(worker) == k) & (np.asarray(item) % 2 == parity)]
        right = expit(float(params.ability[k]) * exp([-0.5, 0.8][parity]))
        assert_frequencies(chosen, np.array([right, (1 - right) / 2, (1 - right) / 2]))


def assert_frequencies(draws, probabilities):
    """Observed shares within 4.5 standard errors: 15 such checks fail once in 10,000 keys."""
    shares = np.bincount(draws, minlength=len(probabilities)) / len(draws)
    error = np.sqrt(probabilities * (1 - probabilities) / len(draws))
    np.testing.assert_array_less(np.abs(shares - probabilities), 4.5 * error)


def test_simulated_parameters_have_the_prior_means_and_scales():
    n = 4000
    empty = jnp.zeros(0, dtype=int)
    drawn = item_difficulty.simulate(
        jax.random.key(5), empty, empty, n_items=n, n_workers=n, n_classes=3, prior=PRIOR
    )
    expected = {"ability": (0.5, 1.5), "log_easiness": (-0.3, 0.7)}
    for name, (mean, scale) in expected.items():
        values = np.asarray(getattr(drawn.params, name), dtype=float)
        assert abs(values.mean() - mean) < 4.5 * scale / np.sqrt(n)
        # the standard deviation of n normals has the relative standard error 1 / sqrt(2 n)
        assert abs(values.std() / scale - 1) < 4.5 / np.sqrt(2 * n)


# Control


def test_control_another_prior_changes_the_density():
    params = params_of(0)
    other = prior_log_density(params, PRIOR._replace(log_easiness_scale=1.0))
    assert abs(model_log_density(params) - other - brute_force_log_likelihood(params)) > 0.1


# Bad input


def test_easinesses_must_be_as_many_as_items():
    with pytest.raises(ValueError, match=r"shape"):
        log_density(
            item_difficulty.model,
            (LABELS,),
            {**SIZES, "n_items": 5},
            params_of(0, n_items=4)._asdict(),
        )
