"""The model of worker types against brute force and its densities by hand."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import logsumexp
from scipy.stats import dirichlet, dirichlet_multinomial, gamma, multinomial

from bayescrowd.models import worker_types
from bayescrowd.models.worker_types import Labels, Params, Prior

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(prevalence=1.5, share=1.2, n_pseudo_labels=5.0, strength=6.0)


def params_of(seed):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        weight=jnp.asarray(rng.gamma(2.0, size=3)),
        types=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(3, 3))),
        confusion=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(2, 3))),
    )


def log_dirichlet(row, concentration):
    row = np.asarray(row, dtype=float)  # float64, so that SciPy accepts that it sums to one
    return dirichlet.logpdf(row / row.sum(), concentration)


def log_density_by_hand(params, prior):
    p = Params(*(np.asarray(field, dtype=float) for field in params))
    total = log_dirichlet(p.prevalence, np.full(3, prior.prevalence))
    total += gamma.logpdf(p.weight, prior.share).sum()
    wrong = prior.n_pseudo_labels * (1 - prior.accuracy) / 2
    for g, k in product(range(3), range(3)):
        concentration = np.full(3, wrong)
        concentration[k] = prior.n_pseudo_labels * prior.accuracy
        total += log_dirichlet(p.types[g, k], concentration)
    for worker in range(2):
        of_type = [
            log(p.weight[g] / p.weight.sum())
            + sum(
                log_dirichlet(p.confusion[worker, k], prior.strength * p.types[g, k])
                for k in range(3)
            )
            for g in range(3)
        ]
        total += logsumexp(of_type)
    assignments = []
    for truth in product(range(3), repeat=4):
        joint = sum(log(p.prevalence[cls]) for cls in truth)
        for item, worker, label in zip(*map(np.asarray, LABELS[:3]), strict=True):
            joint += log(p.confusion[worker, truth[item], label])
        assignments.append(joint)
    return total + logsumexp(assignments)


@jax.jit
def model_log_density(params):
    kwargs = {**SIZES, "prior": PRIOR}
    return log_density(worker_types.model, (LABELS,), kwargs, params._asdict())[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_log_density_is_prior_plus_all_assignments(seed):
    params = params_of(seed)
    # float32
    expected = log_density_by_hand(params, PRIOR)
    assert float(model_log_density(params)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_type_log_joint_is_scipys_density():
    params = params_of(3)
    share = params.weight / params.weight.sum()
    counts = np.random.default_rng(0).integers(0, 5, size=(4, 3, 3))
    joint = worker_types.type_log_joint(
        share, params.types, jnp.asarray(counts, dtype=float), PRIOR
    )
    expected = np.zeros((4, 3))
    for worker, g in product(range(4), range(3)):
        expected[worker, g] = log(float(share[g]))
        for k in range(3):
            n = counts[worker, k]
            row = PRIOR.strength * np.asarray(params.types[g, k], dtype=float)
            expected[worker, g] += dirichlet_multinomial.logpmf(n, row, n.sum())
            # SciPy's density counts the orders in which the labels may come.
            even = np.full(3, 1 / 3)
            orders = multinomial.logpmf(n, n.sum(), even) - n.sum() * log(1 / 3)
            expected[worker, g] -= orders
    np.testing.assert_allclose(joint, expected, rtol=1e-4)


def test_rows_are_drawn_with_the_type_that_all_rows_of_a_worker_share():
    share = jnp.array([0.3, 0.7])
    mean = jnp.array([[[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.5, 0.5]]])
    strength, n_workers = 5.0, 20_000
    rows = worker_types.TypedRows(share, strength * mean)
    drawn = np.asarray(rows.expand((n_workers, 2)).sample(jax.random.key(0)), float)[..., 0]
    np.testing.assert_allclose(rows.mean[:, 0], share @ mean[..., 0], rtol=1e-6)
    weight, of_type = np.asarray(share, float), np.asarray(mean[..., 0], float)
    expected = weight @ of_type
    # the rows of a type are independent, so that its covariance is that of the types' means
    between = np.cov(of_type.T, aweights=weight, bias=True)
    within = weight @ (of_type * (1 - of_type)) / (strength + 1)
    deviation = drawn - expected
    for statistic, value in (
        (drawn, expected),
        (deviation**2, np.diag(between) + within),
        (deviation.prod(axis=1), between[0, 1]),
    ):
        error = statistic.std(axis=0) / np.sqrt(n_workers)
        # five statistics leave 4.5 standard errors once in 30,000 keys
        assert (np.abs(statistic.mean(axis=0) - value) < 4.5 * error).all()
    # control: independent rows would have no covariance
    assert abs(between[0, 1]) > 10 * error
