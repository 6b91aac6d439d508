"""The one-coin model against sums by hand, brute force, enumeration and its own simulator."""

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
from scipy.special import logsumexp
from scipy.stats import beta, dirichlet

from bayescrowd.models import dawid_skene, one_coin
from bayescrowd.models.one_coin import Labels, Params, Prior

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(prevalence=1.5, n_pseudo_labels=5.0, accuracy=0.7)


def params_of(seed):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        accuracy=jnp.asarray(rng.beta(3.0, 2.0, size=2)),
    )


def complete_log_likelihood(params, truth):
    """Log density of the labels and one assignment of true classes, written as loops."""
    prevalence, accuracy = (np.asarray(field, dtype=float) for field in params)
    total = sum(log(prevalence[cls]) for cls in truth)
    for item, worker, label in zip(*map(np.asarray, LABELS[:3]), strict=True):
        right = accuracy[worker]
        total += log(right if label == truth[item] else (1 - right) / 2)
    return total


def brute_force_log_likelihood(params):
    """Sum over all 3 ** 4 assignments."""
    return logsumexp([complete_log_likelihood(params, z) for z in product(range(3), repeat=4)])


def prior_log_density(params, prior):
    prevalence, accuracy = (np.asarray(field, dtype=float) for field in params)
    right, wrong = (prior.n_pseudo_labels * x for x in (prior.accuracy, 1 - prior.accuracy))
    total = dirichlet.logpdf(prevalence / prevalence.sum(), np.full(3, prior.prevalence))
    return total + beta.logpdf(accuracy, right, wrong).sum()


@jax.jit
def model_log_density(params, labels=LABELS):
    return log_density(one_coin.model, (labels,), {**SIZES, "prior": PRIOR}, params._asdict())[0]


def enumerated_model(labels, *, n_items, n_workers, n_classes, prior):
    """The model with its discrete site left in, for NumPyro to sum out."""
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, prior.prevalence)))
    n = prior.n_pseudo_labels
    with numpyro.plate("worker", n_workers):
        coin = dist.Beta(n * prior.accuracy, n * (1 - prior.accuracy))
        accuracy = numpyro.sample("accuracy", coin)
    for i in range(n_items):
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence))
        for t in np.flatnonzero(np.asarray(labels.item) == i):
            right = accuracy[labels.worker[t]]
            is_right = jnp.arange(n_classes) == truth[..., None]
            answer = jnp.where(is_right, right, (1 - right) / (n_classes - 1))
            numpyro.sample(f"label_{t}", dist.Categorical(answer), obs=labels.label[t])


# By hand


def test_label_posterior_by_hand():
    # Three classes; worker 0 is right 8 times in 10, worker 1 4 times, so wrong 3 + 3 times.
    params = Params(jnp.array([0.5, 0.3, 0.2]), jnp.array([0.8, 0.4]))
    labels = Labels(jnp.array([0, 0, 1]), jnp.array([0, 1, 1]), jnp.array([1, 2, 0]))
    joint = np.array(
        [
            [0.5 * 0.1 * 0.3, 0.3 * 0.8 * 0.3, 0.2 * 0.1 * 0.4],  # worker 0 says 1, worker 1 says 2
            [0.5 * 0.4, 0.3 * 0.3, 0.2 * 0.3],  # worker 1 says 0
            [0.5, 0.3, 0.2],  # nobody spoke
        ]
    )
    log_joint = one_coin.label_log_joint(params, labels, n_items=3)
    np.testing.assert_allclose(log_joint, np.log(joint), rtol=1e-6)
    posterior = one_coin.label_posterior(params, labels, n_items=3)
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(posterior[0], np.array([15, 72, 8]) / 95, rtol=1e-6)


def test_a_worker_who_never_errs_decides():
    params = Params(jnp.array([0.5, 0.3, 0.2]), jnp.array([1.0, 0.9]))
    labels = Labels(jnp.array([0, 0]), jnp.array([0, 1]), jnp.array([2, 0]))
    np.testing.assert_array_equal(one_coin.label_posterior(params, labels, n_items=1), [[0, 0, 1]])


def test_concentration_and_confusion_by_hand():
    np.testing.assert_allclose(one_coin.accuracy_concentration(Prior()), [4.8, 3.2], rtol=1e-6)
    confusion = one_coin.confusion(Params(jnp.full(3, 1 / 3), jnp.array([0.8])))
    expected = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    np.testing.assert_allclose(confusion[0], expected, rtol=1e-6)


def test_prior_is_that_of_a_diagonal_entry_of_dawid_and_skene():
    # a share of a Dirichlet(a) is a beta of its own and the others' concentration
    rows = dawid_skene.confusion_concentration(dawid_skene.Prior(), 4)
    expected = [rows[1, 1], rows[1].sum() - rows[1, 1]]
    np.testing.assert_allclose(one_coin.accuracy_concentration(Prior()), expected, rtol=1e-6)


# Closed form


@pytest.mark.parametrize("seed", range(3))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params, PRIOR) + brute_force_log_likelihood(params)
    # float32 sums of some twenty terms
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


def test_accuracy_given_the_classes_is_a_beta_of_the_counts():
    """The complete density over its conjugate posterior is the same at every accuracy."""
    truth = [0, 1, 0, 2]  # worker 0 is right three times, worker 1 once and wrong once
    right, wrong = np.array([3, 1]), np.array([0, 1])
    concentration = np.asarray(one_coin.accuracy_concentration(PRIOR), dtype=float)
    evidences = []
    for seed in range(3):
        params = params_of(0)._replace(accuracy=params_of(seed).accuracy)
        accuracy = np.asarray(params.accuracy, dtype=float)
        joint = prior_log_density(params, PRIOR) + complete_log_likelihood(params, truth)
        posterior = beta.logpdf(accuracy, concentration[0] + right, concentration[1] + wrong)
        evidences.append(joint - posterior.sum())
    np.testing.assert_allclose(evidences, evidences[0], rtol=1e-6)


# Invariants


def test_two_classes_have_a_mirror_that_only_the_prior_tells_apart():
    params = Params(jnp.array([0.7, 0.3]), jnp.array([0.8, 0.6]))
    mirror = Params(params.prevalence[::-1], 1 - params.accuracy)
    labels = Labels(jnp.array([0, 0, 1]), jnp.array([0, 1, 0]), jnp.array([1, 0, 0]))
    both = [one_coin.label_log_joint(p, labels, n_items=2) for p in (params, mirror)]
    np.testing.assert_allclose(both[0], both[1][:, ::-1], rtol=1e-6)
    sizes = {"n_items": 2, "n_workers": 2, "n_classes": 2}
    honest, mirrored = (
        log_density(one_coin.model, (labels,), sizes, p._asdict())[0] for p in (params, mirror)
    )
    assert honest > mirrored + 1


def test_density_ignores_the_names_of_workers_and_classes():
    params = params_of(1)
    swapped = params._replace(accuracy=params.accuracy[::-1])
    renamed = LABELS._replace(worker=1 - LABELS.worker)
    turned = params._replace(prevalence=jnp.roll(params.prevalence, 1))
    relabelled = LABELS._replace(label=(LABELS.label + 1) % 3)
    expected = model_log_density(params)
    for same in ((swapped, renamed), (turned, relabelled)):
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
    n_items = 6000
    item, worker = (jnp.asarray(x) for x in np.divmod(np.arange(n_items * 2), 2))
    params = params_of(3)
    drawn = one_coin.simulate_labels(jax.random.key(11), params, item, worker, n_items=n_items)
    truth, label = np.asarray(drawn.truth), np.asarray(drawn.labels.label)
    true_of_label = truth[np.asarray(item)]
    assert_frequencies(truth, np.asarray(params.prevalence))
    for k, j in product(range(2), range(3)):
        chosen = label[(np.asarray(worker) == k) & (true_of_label == j)]
        right = float(params.accuracy[k])
        assert_frequencies(chosen, np.where(np.arange(3) == j, right, (1 - right) / 2))


def assert_frequencies(draws, probabilities):
    """Observed shares within 4.5 standard errors: 21 such checks fail once in 7,000 keys."""
    shares = np.bincount(draws, minlength=len(probabilities)) / len(draws)
    error = np.sqrt(probabilities * (1 - probabilities) / len(draws))
    np.testing.assert_array_less(np.abs(shares - probabilities), 4.5 * error)


@pytest.mark.slow
def test_simulated_accuracies_have_the_prior_mean_and_variance():
    n_workers = 4000
    empty = jnp.zeros(0, dtype=int)
    drawn = one_coin.simulate(
        jax.random.key(5), empty, empty, n_items=1, n_workers=n_workers, n_classes=3, prior=PRIOR
    )
    accuracy = np.asarray(drawn.params.accuracy, dtype=float)
    prior = beta(3.5, 1.5)
    variance, kurtosis = prior.stats("vk")
    assert abs(accuracy.mean() - 0.7) < 4.5 * np.sqrt(variance / n_workers)
    # a sample variance has the relative standard error sqrt((kurtosis + 2) / n)
    error = variance * np.sqrt((kurtosis + 2) / n_workers)
    assert abs(accuracy.var() - variance) < 4.5 * error


# Control


def test_control_another_prior_changes_the_density():
    params = params_of(0)
    other = prior_log_density(params, PRIOR._replace(accuracy=0.6))
    assert abs(model_log_density(params) - other - brute_force_log_likelihood(params)) > 0.1


# Bad input


@pytest.mark.types
def test_items_and_workers_must_pair_up():
    item, worker = jnp.array([0, 0, 1]), jnp.array([0, 1])
    with pytest.raises(jaxtyping.TypeCheckError, match="worker"):
        one_coin.simulate_labels(jax.random.key(0), params_of(0), item, worker, n_items=2)
