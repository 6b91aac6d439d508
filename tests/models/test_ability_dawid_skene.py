"""The model of ability against brute force, its densities by hand and its limits."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import expit, logsumexp
from scipy.stats import dirichlet, halfnorm, lognorm, norm

from bayescrowd.models import ability_dawid_skene
from bayescrowd.models.ability_dawid_skene import Labels, Params, Prior, base

# Item 0 is labelled twice by worker 0 and once by worker 1, item 2 by nobody.
LABELS = Labels(
    item=jnp.array([0, 0, 0, 1, 3]),
    worker=jnp.array([0, 1, 0, 1, 0]),
    label=jnp.array([0, 1, 0, 1, 2]),
)
SIZES = {"n_items": 4, "n_workers": 2, "n_classes": 3}
PRIOR = Prior(prevalence=1.5, easiness=0.8, spread=0.7, mistaken=1.5, strength=5.0)


def params_of(seed):
    rng = np.random.default_rng(seed)
    return Params(
        prevalence=jnp.asarray(rng.dirichlet(np.full(3, 2.0))),
        easiness=jnp.asarray(rng.normal(1.0, 0.5, size=3)),
        spread=jnp.asarray(rng.gamma(4.0, 0.2)),
        ability=jnp.asarray(rng.normal(size=2)),
        mistaken=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=3)),
        strength=jnp.asarray(rng.gamma(4.0, 2.0)),
        confusion=jnp.asarray(rng.dirichlet(np.full(3, 2.0), size=(2, 3))),
    )


def base_by_loops(params):
    rows = np.zeros((2, 3, 3))
    for worker, true, observed in product(range(2), range(3), range(3)):
        right = expit(float(params.easiness[true]) + float(params.ability[worker]))
        mistaken = np.asarray(params.mistaken[true], dtype=float)
        wrong = mistaken[observed] / (mistaken.sum() - mistaken[true])
        rows[worker, true, observed] = right if observed == true else (1 - right) * wrong
    return rows


def log_dirichlet(row, concentration):
    row = np.asarray(row, dtype=float)  # float64, so that SciPy accepts that it sums to one
    return dirichlet.logpdf(row / row.sum(), concentration)


def log_density_by_hand(params, prior):
    p = Params(*(np.asarray(field, dtype=float) for field in params))
    total = log_dirichlet(p.prevalence, np.full(3, prior.prevalence))
    total += halfnorm.logpdf(p.spread, scale=prior.spread)
    total += lognorm.logpdf(p.strength, prior.log_strength_scale, scale=prior.strength)
    total += norm.logpdf(p.easiness, prior.easiness, prior.easiness_scale).sum()
    total += norm.logpdf(p.ability, 0, p.spread).sum()
    total += sum(log_dirichlet(row, np.full(3, prior.mistaken)) for row in p.mistaken)
    rows = p.strength * base_by_loops(params)
    total += sum(
        log_dirichlet(p.confusion[w, k], rows[w, k]) for w, k in product(range(2), range(3))
    )
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
    return log_density(ability_dawid_skene.model, (LABELS,), kwargs, params._asdict())[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_log_density_is_prior_plus_all_assignments(seed):
    params = params_of(seed)
    # float32
    expected = log_density_by_hand(params, PRIOR)
    assert float(model_log_density(params)) == pytest.approx(expected, rel=1e-4)


def test_base_by_loops():
    params = params_of(2)
    rows = base(params.easiness, params.ability, params.mistaken)
    np.testing.assert_allclose(rows, base_by_loops(params), rtol=1e-5)
    np.testing.assert_allclose(rows.sum(axis=2), 1.0, rtol=1e-5)


@pytest.mark.slow
def test_simulated_rows_scatter_around_their_bases():
    item, worker = (jnp.asarray(axis.ravel()) for axis in np.indices((2, 4000)))
    sizes = {"n_items": 2, "n_workers": 4000, "n_classes": 3}
    params = ability_dawid_skene.simulate(jax.random.key(0), item, worker, **sizes).params
    rows = base(params.easiness, params.ability, params.mistaken)
    residual = np.asarray(params.confusion - rows)
    variance = np.asarray(rows * (1 - rows) / (params.strength + 1))
    # A mean of 4,000 independent residuals: five standard errors.
    assert (np.abs(residual.mean(axis=0)) < 5 * np.sqrt(variance.mean(axis=0) / 4000)).all()
    np.testing.assert_allclose(residual.var(axis=0), variance.mean(axis=0), rtol=0.25)
