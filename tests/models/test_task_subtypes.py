"""The model of task subtypes against enumeration of classes and subtypes, and densities by hand."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import logsumexp
from scipy.stats import dirichlet, gamma

from bayescrowd.models import task_subtypes
from bayescrowd.models.task_subtypes import Labels, Params, Prior

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(prevalence=1.5, share=1.2, n_pseudo_labels=5.0, own_strength=6.0, shared_strength=3.0)


def params_of(seed):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        weight=jnp.asarray(rng.gamma(2.0, size=(3, 2))),
        shared=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(3, 2))),
        confusion=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(2, 3))),
        subtype_confusion=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(2, 3, 2))),
    )


def log_dirichlet(row, concentration):
    row = np.asarray(row, dtype=float)  # float64, so that SciPy accepts that it sums to one
    return dirichlet.logpdf(row / row.sum(), concentration)


def concentration(n_pseudo_labels, accuracy, cls):
    row = np.full(3, n_pseudo_labels * (1 - accuracy) / 2)
    row[cls] = n_pseudo_labels * accuracy
    return row


def log_prior(p, prior):
    total = log_dirichlet(p.prevalence, np.full(3, prior.prevalence))
    total += gamma.logpdf(p.weight, prior.share).sum()
    for j in range(3):
        for m in range(2):
            around = concentration(prior.shared_pseudo_labels, prior.accuracy, j)
            total += log_dirichlet(p.shared[j, m], around)
        for k in range(2):
            around = concentration(prior.n_pseudo_labels, prior.accuracy, j)
            total += log_dirichlet(p.confusion[k, j], around)
            for m in range(2):
                own = prior.own_strength * p.confusion[k, j]
                around = own + prior.shared_strength * p.shared[j, m]
                total += log_dirichlet(p.subtype_confusion[k, j, m], around)
    return total


def log_likelihood(p):
    """Sum over all classes and subtypes of all items."""
    share = p.weight / p.weight.sum(axis=1, keepdims=True)
    terms = []
    for pairs in product(product(range(3), range(2)), repeat=4):
        joint = sum(log(p.prevalence[j] * share[j, m]) for j, m in pairs)
        for item, worker, label in zip(*map(np.asarray, LABELS[:3]), strict=True):
            joint += log(p.subtype_confusion[worker, *pairs[item], label])
        terms.append(joint)
    return logsumexp(terms)


@jax.jit
def model_log_density(params):
    kwargs = {**SIZES, "prior": PRIOR}
    return log_density(task_subtypes.model, (LABELS,), kwargs, params._asdict())[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_log_density_is_prior_plus_all_classes_and_subtypes(seed):
    params = params_of(seed)
    p = Params(*(np.asarray(field, dtype=float) for field in params))
    # float32 sums of some forty terms
    expected = log_prior(p, PRIOR) + log_likelihood(p)
    assert float(model_log_density(params)) == pytest.approx(expected, rel=1e-4)


def test_the_numbers_of_subtypes_and_the_names_of_classes_do_not_matter():
    params = params_of(2)
    swapped = params._replace(
        weight=params.weight[:, ::-1],
        shared=params.shared[:, ::-1],
        subtype_confusion=params.subtype_confusion[:, :, ::-1],
    )
    # float32
    assert float(model_log_density(swapped)) == pytest.approx(
        float(model_log_density(params)), rel=1e-5
    )


def test_rows_follow_the_worker_and_the_subtype_by_hand():
    confusion = jnp.array([[[0.9, 0.1], [0.2, 0.8]]])
    shared = jnp.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    prior = Prior(own_strength=10.0, shared_strength=4.0)
    rows = task_subtypes.row_concentrations(confusion, shared, prior)
    expected = [[[[13.0, 1.0], [11.0, 3.0]], [[2.0, 12.0], [4.0, 10.0]]]]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_simulated_workers_err_together_where_a_subtype_misleads():
    n_items = 4000
    item, worker = map(jnp.asarray, np.divmod(np.arange(n_items * 2), 2))
    easy, misleading = [0.9, 0.1], [0.3, 0.7]
    rows = np.array([[easy, misleading], [easy[::-1], misleading[::-1]]])
    params = Params(
        prevalence=jnp.full(2, 0.5),
        weight=jnp.array([[3.0, 1.0], [3.0, 1.0]]),
        shared=jnp.asarray(rows),
        confusion=jnp.full((2, 2, 2), 0.5),
        subtype_confusion=jnp.stack([jnp.asarray(rows)] * 2),
    )
    drawn = task_subtypes.simulate_labels(jax.random.key(3), params, item, worker, n_items=n_items)
    wrong = np.asarray(drawn.labels.label != drawn.truth[item]).reshape(-1, 2)
    # P(both wrong) = 0.75 * 0.1^2 + 0.25 * 0.7^2 = 0.13, where independence says 0.25^2 = 0.0625
    gap = wrong.all(axis=1).mean() - 0.13
    assert abs(gap) < 4 * np.sqrt(0.13 * 0.87 / n_items)
