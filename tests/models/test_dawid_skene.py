"""The Dawid–Skene model against sums by hand, brute force, enumeration and its own simulator."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.contrib.funsor import config_enumerate, enum
from numpyro.contrib.funsor import log_density as enumerated_log_density
from numpyro.infer.util import log_density
from scipy.special import logsumexp
from scipy.stats import dirichlet

from bayescrowd.models import dawid_skene
from bayescrowd.models.dawid_skene import Labels, Params, Prior

# Five labels: item 0 from both workers and once more from worker 0, item 1 from worker 1,
# item 2 from nobody, item 3 from worker 0.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(prevalence=1.5, n_pseudo_labels=5.0, accuracy=0.7)


def params_of(seed, n_workers=2, n_classes=3):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(n_classes, 2.0))),
        confusion=jnp.asarray(rng.dirichlet(np.full(n_classes, 2.0), size=(n_workers, n_classes))),
    )


def everyone_labels_everything(n_items, n_workers):
    item, worker = np.divmod(np.arange(n_items * n_workers), n_workers)
    return jnp.asarray(item), jnp.asarray(worker)


def complete_log_likelihood(params, truth, labels):
    """Log density of the labels and one assignment of true classes, written as loops."""
    prevalence, confusion = (np.asarray(field, dtype=float) for field in params)
    total = sum(log(prevalence[cls]) for cls in truth)
    for item, worker, label in zip(*map(np.asarray, labels[:3]), strict=True):
        total += log(confusion[worker, truth[item], label])
    return total


def brute_force_log_likelihood(params, labels, *, n_items, n_workers, n_classes):
    """Sum over all n_classes ** n_items assignments."""
    assignments = product(range(n_classes), repeat=n_items)
    return logsumexp([complete_log_likelihood(params, truth, labels) for truth in assignments])


def prior_log_density(params, prior, n_classes):
    wrong = prior.n_pseudo_labels * (1 - prior.accuracy) / (n_classes - 1)
    concentration = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(concentration, prior.n_pseudo_labels * prior.accuracy)
    # float64 rows, so that SciPy accepts that they sum to one
    prevalence, confusion = (np.asarray(field, dtype=float) for field in params)
    prevalence, confusion = (x / x.sum(axis=-1, keepdims=True) for x in (prevalence, confusion))
    total = dirichlet.logpdf(prevalence, np.full(n_classes, prior.prevalence))
    for matrix in confusion:
        for row, alpha in zip(matrix, concentration, strict=True):
            total += dirichlet.logpdf(row, alpha)
    return total


def enumerated_model(labels, *, n_items, n_workers, n_classes, prior):
    """Dawid and Skene's model with its discrete site left in, for NumPyro to sum out."""
    concentration = dawid_skene.confusion_concentration(prior, n_classes)
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, prior.prevalence)))
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("cls", n_classes, dim=-1):
        confusion = numpyro.sample("confusion", dist.Dirichlet(concentration))
    for i in range(n_items):
        truth = numpyro.sample(f"truth_{i}", dist.Categorical(prevalence))
        for t in np.flatnonzero(np.asarray(labels.item) == i):
            answer = dist.Categorical(confusion[labels.worker[t], truth])
            numpyro.sample(f"label_{t}", answer, obs=labels.label[t])


# By hand


def test_label_posterior_by_hand():
    # Two classes at 3/4 and 1/4; worker 0 errs at 1/10 and 2/10, worker 1 at 4/10 and 3/10.
    params = Params(
        prevalence=jnp.array([0.75, 0.25]),
        confusion=jnp.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]]),
    )
    labels = Labels(jnp.array([0, 0, 1]), jnp.array([0, 1, 0]), jnp.array([1, 1, 0]))
    joint = np.array(
        [
            [0.75 * 0.1 * 0.4, 0.25 * 0.8 * 0.7],  # item 0: both say 1
            [0.75 * 0.9, 0.25 * 0.2],  # item 1: worker 0 says 0
            [0.75, 0.25],  # item 2: nobody spoke
        ]
    )
    log_joint = dawid_skene.label_log_joint(params, labels, n_items=3)
    np.testing.assert_allclose(log_joint, np.log(joint), rtol=1e-6)
    posterior = dawid_skene.label_posterior(params, labels, n_items=3)
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(posterior[0], [3 / 17, 14 / 17], rtol=1e-6)


def test_an_impossible_answer_rules_its_class_out():
    params = Params(
        prevalence=jnp.array([0.5, 0.5]),
        confusion=jnp.array([[[1.0, 0.0], [0.5, 0.5]]]),
    )
    labels = Labels(jnp.array([0]), jnp.array([0]), jnp.array([1]))
    posterior = dawid_skene.label_posterior(params, labels, n_items=1)
    np.testing.assert_array_equal(posterior, [[0.0, 1.0]])


def test_concentration_by_hand():
    concentration = dawid_skene.confusion_concentration(Prior(), 3)
    # 8 pseudo-labels: 8 * 0.6 right, 8 * 0.4 / 2 for each wrong class
    expected = [[4.8, 1.6, 1.6], [1.6, 4.8, 1.6], [1.6, 1.6, 4.8]]
    np.testing.assert_allclose(concentration, expected, rtol=1e-6)


# Closed form: brute force over every assignment of the true classes


@pytest.mark.parametrize("seed", range(3))
def test_marginal_likelihood_is_the_sum_over_all_assignments(seed):
    params = params_of(seed)
    log_joint = dawid_skene.label_log_joint(params, LABELS, n_items=4)
    total = logsumexp(np.asarray(log_joint, dtype=float), axis=1).sum()
    expected = brute_force_log_likelihood(params, LABELS, **SIZES)
    np.testing.assert_allclose(total, expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_log_density_is_prior_times_brute_force_likelihood(seed):
    params = params_of(seed)
    expected = prior_log_density(params, PRIOR, 3)
    expected += brute_force_log_likelihood(params, LABELS, **SIZES)
    total = model_log_density(params)
    # float32 sums of some twenty terms, the Dirichlet constants among them
    np.testing.assert_allclose(total, expected, rtol=1e-5)


def model_log_density(params, labels=LABELS, prior=PRIOR, **sizes):
    kwargs = {**SIZES, **sizes, "prior": prior}
    return log_density(dawid_skene.model, (labels,), kwargs, params._asdict())[0]


# Invariants


def test_posterior_rows_sum_to_one():
    posterior = dawid_skene.label_posterior(params_of(0), LABELS, n_items=4)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-6)


def test_density_ignores_the_order_of_labels_and_the_names_of_workers_and_classes():
    params = params_of(1)
    order = jnp.array([3, 0, 4, 2, 1])
    shuffled = Labels(*(field[order] for field in LABELS[:3]))
    swapped = params._replace(confusion=params.confusion[::-1])
    renamed = LABELS._replace(worker=1 - LABELS.worker)
    # class c becomes (c + 1) % 3, among the true and the observed classes alike
    turned = Params(jnp.roll(params.prevalence, 1), jnp.roll(params.confusion, (1, 1), axis=(1, 2)))
    relabelled = LABELS._replace(label=(LABELS.label + 1) % 3)

    expected = model_log_density(params)
    for same in ((params, shuffled), (swapped, renamed), (turned, relabelled)):
        # float32: another order of the sum may round differently
        np.testing.assert_allclose(model_log_density(*same), expected, rtol=1e-6)


def test_prior_breaks_the_symmetry_of_the_true_classes():
    honest = Params(jnp.full(3, 1 / 3), jnp.stack([0.7 * jnp.eye(3) + 0.1] * 2))
    relabelled = honest._replace(confusion=jnp.roll(honest.confusion, 1, axis=1))
    likelihoods = [
        np.asarray(dawid_skene.label_log_joint(params, LABELS, n_items=4), dtype=float)
        for params in (honest, relabelled)
    ]
    honest_sum, relabelled_sum = (logsumexp(x, axis=1).sum() for x in likelihoods)
    np.testing.assert_allclose(honest_sum, relabelled_sum, rtol=1e-6)
    assert model_log_density(honest) > model_log_density(relabelled) + 1


def test_sizes_may_exceed_what_the_labels_show():
    """A worker without labels and a class that nobody chose are legitimate."""
    labels = Labels(jnp.array([0]), jnp.array([0]), jnp.array([0]))
    params = params_of(2, n_workers=4, n_classes=5)
    sizes = {"n_items": 2, "n_workers": 4, "n_classes": 5}
    expected = prior_log_density(params, PRIOR, 5)
    expected += brute_force_log_likelihood(params, labels, **sizes)
    np.testing.assert_allclose(model_log_density(params, labels, **sizes), expected, rtol=1e-5)


def test_gradient_is_finite_with_thousands_of_labels_on_one_item():
    labels = Labels(jnp.zeros(2000, int), jnp.zeros(2000, int), jnp.arange(2000) % 3)
    gradient = jax.jit(jax.grad(lambda params: model_log_density(params, labels)))(params_of(0))
    assert all(np.isfinite(field).all() for field in gradient)


def test_sites_carry_their_axes():
    seeded = numpyro.handlers.seed(dawid_skene.model, jax.random.key(0))
    trace = numpyro.handlers.trace(seeded).get_trace(LABELS, **SIZES)
    shapes = {name: site["value"].shape for name, site in trace.items() if site["type"] == "sample"}
    assert shapes["prevalence"] == (3,)
    assert shapes["confusion"] == (2, 3, 3)
    assert trace["labels"]["fn"].batch_shape == (4,)
    frames = {f.name: (f.dim, f.size) for f in trace["confusion"]["cond_indep_stack"]}
    assert frames == {"worker": (-2, 2), "cls": (-1, 3)}
    assert {f.name for f in trace["labels"]["cond_indep_stack"]} == {"item"}


# Reference: NumPyro's own enumeration of the discrete classes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_log_density_equals_the_enumerated_model(seed):
    params = params_of(seed)
    kwargs = {**SIZES, "prior": PRIOR}
    enumerated = enum(config_enumerate(enumerated_model), -3)
    expected, _ = enumerated_log_density(enumerated, (LABELS,), kwargs, params._asdict())
    np.testing.assert_allclose(model_log_density(params), expected, rtol=1e-5)


# Recovery


def test_simulated_frequencies_are_the_parameters():
    n_items = 6000
    item, worker = everyone_labels_everything(n_items, 2)
    params = params_of(3)
    simulation = dawid_skene.simulate_labels(
        jax.random.key(11), params, item, worker, n_items=n_items
    )
    truth, label = np.asarray(simulation.truth), np.asarray(simulation.labels.label)
    true_of_label = truth[np.asarray(item)]
    assert_frequencies(truth, np.asarray(params.prevalence))
    for k, j in product(range(2), range(3)):
        chosen = label[(np.asarray(worker) == k) & (true_of_label == j)]
        assert_frequencies(chosen, np.asarray(params.confusion)[k, j])


def assert_frequencies(draws, probabilities):
    """Observed shares within 4.5 standard errors: 21 such checks fail once in 7,000 keys."""
    shares = np.bincount(draws, minlength=len(probabilities)) / len(draws)
    error = np.sqrt(probabilities * (1 - probabilities) / len(draws))
    np.testing.assert_array_less(np.abs(shares - probabilities), 4.5 * error)


@pytest.mark.slow
def test_simulated_parameters_have_the_prior_means():
    n_workers = 4000
    empty = jnp.zeros(0, dtype=int)
    simulation = dawid_skene.simulate(
        jax.random.key(5), empty, empty, n_items=1, n_workers=n_workers, n_classes=3, prior=PRIOR
    )
    mean = np.where(np.eye(3, dtype=bool), 0.7, 0.15)
    # a Dirichlet share of mean m and total n has variance m (1 - m) / (n + 1)
    error = np.sqrt(mean * (1 - mean) / (PRIOR.n_pseudo_labels + 1) / n_workers)
    gap = np.abs(np.asarray(simulation.params.confusion).mean(axis=0) - mean)
    np.testing.assert_array_less(gap, 4.5 * error)


def simulated_crowd(seed=7):
    item, worker = everyone_labels_everything(1000, 6)
    return dawid_skene.simulate(
        jax.random.key(seed), item, worker, n_items=1000, n_workers=6, n_classes=3
    )


def calibration_gap(posterior, truth):
    """Right labels minus their expected number, in standard errors of that number."""
    confidence = np.asarray(posterior, dtype=float).max(axis=1)
    right = np.asarray(posterior).argmax(axis=1) == np.asarray(truth)
    return (right.sum() - confidence.sum()) / np.sqrt((confidence * (1 - confidence)).sum())


def test_posterior_of_simulated_items_is_calibrated():
    simulation = simulated_crowd()
    posterior = dawid_skene.label_posterior(simulation.params, simulation.labels, n_items=1000)
    assert abs(calibration_gap(posterior, simulation.truth)) < 4


def test_simulation_depends_on_the_key_alone():
    first, again, other = (simulated_crowd(seed).labels.label for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


# Control


def test_control_wrong_parameters_are_not_calibrated():
    simulation = simulated_crowd()
    wrong = simulation.params._replace(confusion=simulation.params.confusion[::-1])
    posterior = dawid_skene.label_posterior(wrong, simulation.labels, n_items=1000)
    assert abs(calibration_gap(posterior, simulation.truth)) > 4


def test_control_another_prior_changes_the_density():
    expected = prior_log_density(params_of(0), PRIOR._replace(accuracy=0.6), 3)
    expected += brute_force_log_likelihood(params_of(0), LABELS, **SIZES)
    assert abs(model_log_density(params_of(0)) - expected) > 0.1


# Bad input


def test_fractional_indices_are_refused():
    with pytest.raises(TypeError, match=r"float|integer"):
        dawid_skene.label_posterior(
            params_of(0), LABELS._replace(label=jnp.array([0.0, 1.0, 0.0, 1.0, 2.0])), n_items=4
        )


@pytest.mark.types
def test_items_and_workers_must_pair_up():
    item, worker = jnp.array([0, 0, 1]), jnp.array([0, 1])
    with pytest.raises(jaxtyping.TypeCheckError, match="worker"):
        dawid_skene.simulate_labels(jax.random.key(0), params_of(0), item, worker, n_items=2)
