"""MACE against sums by hand, brute force over classes and coins, enumeration, its simulator."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy.special import logsumexp
from scipy.stats import beta, dirichlet

from bayescrowd.models import mace
from bayescrowd.models.mace import Labels, Params, Prior

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(prevalence=1.5, knowing=2.0, spamming=3.0, strategy=1.25)


def params_of(seed):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        competence=jnp.asarray(rng.beta(2.0, 2.0, size=2)),
        strategy=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=2)),
    )


def complete_log_likelihood(params, truth, knew):
    """Log density of the labels, one assignment of classes and one of coins, as loops."""
    prevalence, competence, strategy = (np.asarray(field, dtype=float) for field in params)
    total = sum(log(prevalence[cls]) for cls in truth)
    for item, worker, label, known in zip(*map(np.asarray, LABELS[:3]), knew, strict=True):
        if known:
            total += log(competence[worker]) if label == truth[item] else -np.inf
        else:
            total += log(1 - competence[worker]) + log(strategy[worker, label])
    return total


CLASSES = list(product(range(3), repeat=4))
COINS = list(product([False, True], repeat=5))


def brute_force(params):
    """Log density of all 3 ** 4 assignments of classes and 2 ** 5 of coins."""
    return np.array([[complete_log_likelihood(params, z, s) for s in COINS] for z in CLASSES])


def prior_log_density(params, prior):
    prevalence, competence, strategy = (np.asarray(field, dtype=float) for field in params)
    total = dirichlet.logpdf(prevalence / prevalence.sum(), np.full(3, prior.prevalence))
    total += beta.logpdf(competence, prior.knowing, prior.spamming).sum()
    for row in strategy:
        total += dirichlet.logpdf(row / row.sum(), np.full(3, prior.strategy))
    return total


@jax.jit
def model_log_density(params, labels=LABELS):
    return log_density(mace.model, (labels,), {**SIZES, "prior": PRIOR}, params._asdict())[0]


def enumerated_model(labels, *, n_items, n_workers, n_classes, prior):
    """The model with its discrete sites left in, for NumPyro to sum out."""
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, prior.prevalence)))
    with numpyro.plate("worker", n_workers):
        competence = numpyro.sample("competence", dist.Beta(prior.knowing, prior.spamming))
        strategy = numpyro.sample("strategy", dist.Dirichlet(jnp.full(n_classes, prior.strategy)))
    for i in range(n_items):
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence))
        for t in np.flatnonzero(np.asarray(labels.item) == i):
            worker = labels.worker[t]
            knew = numpyro.sample(f"knew_{t}", dist.Bernoulli(competence[worker]))
            is_right = jnp.arange(n_classes) == truth[..., None]
            answer = jnp.where(knew[..., None] == 1, is_right, strategy[worker])
            numpyro.sample(f"label_{t}", dist.Categorical(answer), obs=labels.label[t])


# By hand


def test_posteriors_by_hand():
    # Two classes; worker 0 knows half and else says 0 and 1 at 4 : 1; worker 1 never knows.
    params = Params(
        prevalence=jnp.array([0.75, 0.25]),
        competence=jnp.array([0.5, 0.0]),
        strategy=jnp.array([[0.8, 0.2], [0.5, 0.5]]),
    )
    labels = Labels(jnp.array([0, 0, 1]), jnp.array([0, 1, 0]), jnp.array([1, 0, 0]))
    confusion = [[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.5, 0.5]]]
    np.testing.assert_allclose(mace.confusion(params), confusion, rtol=1e-6)
    joint = np.array([[0.75 * 0.1 * 0.5, 0.25 * 0.6 * 0.5], [0.75 * 0.9, 0.25 * 0.4]])
    log_joint = mace.label_log_joint(params, labels, n_items=2)
    np.testing.assert_allclose(log_joint, np.log(joint), rtol=1e-6)
    posterior = mace.label_posterior(params, labels, n_items=2)
    np.testing.assert_allclose(posterior[0], [1 / 3, 2 / 3], rtol=1e-6)

    # Right labels were known with probability .5 / .6 (a 1 of worker 0) and .5 / .9 (a 0).
    given_right = np.array([5 / 6, 0, 5 / 9])
    all_right = mace.knowing_given_truth(params, labels, jnp.array([1, 0]))
    np.testing.assert_allclose(all_right, given_right, rtol=1e-6)
    all_wrong = mace.knowing_given_truth(params, labels, jnp.array([0, 1]))
    np.testing.assert_array_equal(all_wrong, [0, 0, 0])  # worker 1 is right, but never knows
    right = np.array([2 / 3, 1 / 3, 0.675 / 0.775])
    known = mace.knowing_posterior(params, labels, n_items=2)
    np.testing.assert_allclose(known, right * given_right, rtol=1e-6)


def test_a_spammer_changes_nothing():
    params = params_of(0)._replace(competence=jnp.array([0.6, 0.0]))
    posterior = mace.label_posterior(params, LABELS, n_items=4)
    heard = np.asarray(LABELS.worker) == 0
    without = mace.label_posterior(params, Labels(*(x[heard] for x in LABELS[:3])), n_items=4)
    np.testing.assert_allclose(posterior, without, rtol=1e-5)


def test_concentration_by_hand():
    np.testing.assert_allclose(mace.competence_concentration(Prior()), [0.5, 0.5])
    np.testing.assert_allclose(mace.competence_concentration(PRIOR), [2.0, 3.0])


# Closed form


@pytest.mark.parametrize("seed", range(2))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params, PRIOR) + logsumexp(brute_force(params))
    # float32 sums of some twenty terms
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


def test_posteriors_are_those_of_brute_force():
    params = params_of(2)
    joint = brute_force(params)
    weights = np.exp(joint - logsumexp(joint))
    known = np.tensordot(weights.sum(axis=0), np.array(COINS, dtype=float), 1)
    np.testing.assert_allclose(mace.knowing_posterior(params, LABELS, n_items=4), known, rtol=1e-5)
    truth = np.eye(3)[np.array(CLASSES)]  # indexed [assignment, item, cls]
    labels = np.tensordot(weights.sum(axis=1), truth, 1)
    np.testing.assert_allclose(mace.label_posterior(params, LABELS, n_items=4), labels, rtol=1e-5)

    z = CLASSES.index((0, 1, 2, 1))
    given = np.exp(joint[z] - logsumexp(joint[z])) @ np.array(COINS, dtype=float)
    actual = mace.knowing_given_truth(params, LABELS, jnp.array(CLASSES[z]))
    np.testing.assert_allclose(actual, given, rtol=1e-5)


def test_rows_given_classes_and_coins_have_conjugate_posteriors():
    """The complete density over its conjugate posterior is the same at all parameters."""
    truth, knew = (0, 1, 0, 2), (True, False, True, False, True)  # worker 0 knew all, worker 1 none
    known, spammed = np.array([3, 0]), np.array([[0, 0, 0], [0, 2, 0]])
    concentration = np.asarray(mace.competence_concentration(PRIOR), dtype=float)
    evidences = []
    for seed in range(3):
        params = params_of(seed)._replace(prevalence=params_of(0).prevalence)
        joint = prior_log_density(params, PRIOR) + complete_log_likelihood(params, truth, knew)
        _, competence, strategy = (np.asarray(field, dtype=float) for field in params)
        coins = beta.logpdf(
            competence, concentration[0] + known, concentration[1] + spammed.sum(axis=1)
        )
        rows = [
            dirichlet.logpdf(row / row.sum(), PRIOR.strategy + count)
            for row, count in zip(strategy, spammed, strict=True)
        ]
        evidences.append(joint - coins.sum() - sum(rows))
    np.testing.assert_allclose(evidences, evidences[0], rtol=1e-6)


# Invariants


def test_density_ignores_the_names_of_workers_and_classes():
    params = params_of(1)
    swapped = params._replace(competence=params.competence[::-1], strategy=params.strategy[::-1])
    renamed = LABELS._replace(worker=1 - LABELS.worker)
    turned = params._replace(
        prevalence=jnp.roll(params.prevalence, 1), strategy=jnp.roll(params.strategy, 1, axis=1)
    )
    relabelled = LABELS._replace(label=(LABELS.label + 1) % 3)
    expected = model_log_density(params)
    for same in ((swapped, renamed), (turned, relabelled)):
        np.testing.assert_allclose(model_log_density(*same), expected, rtol=1e-6)


# Reference: NumPyro's own enumeration of classes and coins


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
    drawn = mace.simulate_labels(jax.random.key(11), params, item, worker, n_items=n_items)
    truth, label, knew = (np.asarray(x) for x in (drawn.truth, drawn.labels.label, drawn.knew))
    true_of_label = truth[np.asarray(item)]
    assert_frequencies(truth, np.asarray(params.prevalence))
    assert (label == true_of_label)[knew].all()
    for k in range(2):
        mine = np.asarray(worker) == k
        competence = float(params.competence[k])
        assert_frequencies(knew[mine].astype(int), np.array([1 - competence, competence]))
        assert_frequencies(label[mine & ~knew], np.asarray(params.strategy[k]))
        for j in range(3):
            chosen = label[mine & (true_of_label == j)]
            assert_frequencies(chosen, np.asarray(mace.confusion(params))[k, j])


def assert_frequencies(draws, probabilities):
    """Observed shares within 4.5 standard errors: 31 such checks fail once in 4,700 keys."""
    shares = np.bincount(draws, minlength=len(probabilities)) / len(draws)
    error = np.sqrt(probabilities * (1 - probabilities) / len(draws))
    np.testing.assert_array_less(np.abs(shares - probabilities), 4.5 * error)


@pytest.mark.slow
def test_simulated_parameters_have_the_prior_means():
    n_workers = 4000
    empty = jnp.zeros(0, dtype=int)
    drawn = mace.simulate(
        jax.random.key(5), empty, empty, n_items=1, n_workers=n_workers, n_classes=3, prior=PRIOR
    )
    # a Dirichlet share of mean m and total n has variance m (1 - m) / (n + 1)
    error = np.sqrt(0.4 * 0.6 / (5 + 1) / n_workers)
    assert abs(np.mean(drawn.params.competence) - 0.4) < 4.5 * error
    error = np.sqrt(1 / 3 * 2 / 3 / (3.75 + 1) / n_workers)
    gap = np.abs(np.asarray(drawn.params.strategy).mean(axis=0) - 1 / 3)
    np.testing.assert_array_less(gap, 4.5 * error)


# Control


def test_control_another_prior_changes_the_density():
    params = params_of(0)
    other = prior_log_density(params, PRIOR._replace(knowing=3.0, spamming=2.0))
    assert abs(model_log_density(params) - other - logsumexp(brute_force(params))) > 0.1


def test_control_the_coins_are_not_those_of_another_worker():
    params = params_of(2)
    known = mace.knowing_posterior(params, LABELS, n_items=4)
    swapped = params._replace(competence=params.competence[::-1])
    assert np.abs(known - mace.knowing_posterior(swapped, LABELS, n_items=4)).max() > 0.05
