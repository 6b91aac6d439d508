"""Gibbs sampling of the pooled model: its parts against closed forms, the whole against quadrature.

Four tasks, three workers, eight labels, two classes. Given the classes, a class's crowd row and
strength are two numbers, integrated on a grid; the 16 assignments of classes are enumerated.
"""

from itertools import product

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, logsumexp

import bayescrowd as bc
from bayescrowd.models import hierarchical_dawid_skene
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.models.hierarchical_dawid_skene import Prior
from bayescrowd.posterior import gibbs
from bayescrowd.posterior.conditionals.crowd_labels import vote_shares
from bayescrowd.posterior.container import group_of

ITEM = np.array([0, 0, 0, 1, 1, 2, 3, 3])
WORKER = np.array([0, 1, 2, 0, 1, 0, 0, 1])
LABEL = np.array([0, 0, 1, 1, 1, 0, 1, 0])
LABELS = Labels(*map(jnp.asarray, (ITEM, WORKER, LABEL)))
PRIOR = Prior()
N_DRAWS = 20_000
N_ERRORS = 4.0
"""Monte-Carlo standard errors allowed; 17 quantities leave the band once in 900 keys."""


def error_of_mean(draws):
    """Monte-Carlo standard error of the mean of each entry of [draw, ...]."""
    flat = draws.reshape(len(draws), -1)
    ess = np.array([az.ess(np.ascontiguousarray(column[None])) for column in flat.T])
    return (flat.std(axis=0) / np.sqrt(ess)).reshape(draws.shape[1:])


# Parts


# The whole posterior


def quadrature():
    """Label probabilities, and means of crowd, log strength and the workers' accuracies."""
    row = (np.arange(200) + 0.5) / 200
    log_strength = np.log(PRIOR.strength) + np.linspace(-5, 5, 121) * PRIOR.log_strength_scale
    m, s = np.meshgrid(row, np.exp(log_strength), indexing="ij")  # m is P(label 0)
    log_weights, means = [], []
    for truth in map(np.array, product(range(2), repeat=4)):
        counts = np.zeros((3, 2, 2))
        np.add.at(counts, (WORKER, truth[ITEM], LABEL), 1)
        n_items = np.bincount(truth, minlength=2)
        total = betaln(*(n_items + PRIOR.prevalence)) - betaln(PRIOR.prevalence, PRIOR.prevalence)
        mean = {"truth": np.eye(2)[truth], "crowd": [], "log_strength": [], "right": []}
        for j in range(2):
            right = PRIOR.n_pseudo_labels * PRIOR.accuracy
            a, b = (right, 8 - right) if j == 0 else (8 - right, right)
            log_p = stats.beta(a, b).logpdf(m) + stats.norm.logpdf(
                np.log(s), np.log(PRIOR.strength), PRIOR.log_strength_scale
            )
            for n0, n1 in counts[:, j]:
                log_p = log_p + betaln(s * m + n0, s * (1 - m) + n1) - betaln(s * m, s * (1 - m))
            evidence = logsumexp(log_p)
            weight = np.exp(log_p - evidence)
            total += evidence
            mean["crowd"].append((weight * m).sum())
            mean["log_strength"].append((weight * np.log(s)).sum())
            at = m if j == 0 else 1 - m
            n_right, n_all = counts[:, j, j], counts[:, j].sum(axis=1)
            mean["right"].append(
                [
                    (weight * (s * at + r) / (s + n)).sum()
                    for r, n in zip(n_right, n_all, strict=True)
                ]
            )
        log_weights.append(total)
        means.append({name: np.array(values) for name, values in mean.items()})
    share = np.exp(np.array(log_weights) - logsumexp(log_weights))
    return {
        name: sum(w * mean[name] for w, mean in zip(share, means, strict=True)) for name in means[0]
    }


@pytest.fixture(scope="module")
def draws():
    """States of one long chain."""

    @jax.jit
    def run(rng_key):
        key_start, key_run = jax.random.split(rng_key)
        state = gibbs.start(
            key_start,
            vote_shares(LABELS, n_items=4, n_classes=2),
            PRIOR,
            model=hierarchical_dawid_skene,
            n_workers=3,
        )

        def step(state, key):
            state = gibbs.sweep(key, state, LABELS, PRIOR, model=hierarchical_dawid_skene)
            return state, state

        return jax.lax.scan(step, state, jax.random.split(key_run, N_DRAWS))[1]

    return run(jax.random.key(2))


def as_float(values):
    return np.asarray(values, dtype=float)


def test_the_posterior_is_that_of_quadrature(draws):
    expected = quadrature()
    params = draws.params
    probas = as_float(jax.nn.softmax(draws.log_joint, axis=-1))
    found = {
        "truth": probas,
        "crowd": as_float(params.crowd)[:, :, 0],
        "log_strength": np.log(as_float(params.strength)),
        "right": np.stack([as_float(params.confusion)[:, :, j, j] for j in range(2)], axis=1),
    }
    for name, values in found.items():
        gap = np.abs(values.mean(axis=0) - expected[name])
        # the grids' own error, found by halving them, is below 1e-4
        np.testing.assert_array_less(gap, N_ERRORS * error_of_mean(values) + 1e-4, err_msg=name)


def test_control_unpooled_workers_are_told_apart(draws):
    """Without the crowd's uncertainty a worker has the mean of a Dirichlet of fixed strength."""
    values = as_float(draws.params.confusion)[:, 2, 0, 0]  # one label, of which the class is open
    error = float(error_of_mean(values[:, None])[0])
    assert abs(values.mean() - PRIOR.accuracy) > N_ERRORS * error


# Reference


@pytest.mark.slow
def test_gibbs_and_nuts_agree_on_a_crowd():
    # With workers who are right less often, the classes' names swapped are a mode of their own:
    # Gibbs chains visit it by jumps, and NUTS does not.
    ann = bc.simulate.crowd(40, 6, accuracy=0.85, labels_per_task=4, seed=3).annotations
    options = {"chains": 2, "predictive": False}
    posts = [
        bc.sample_posterior(hierarchical_dawid_skene, ann, method, **options, **lengths)
        for method, lengths in (("gibbs", {"draws": 6000}), ("nuts", {"warmup": 300}))
    ]
    for post in posts:
        assert bc.diagnose(post).rhat < 1.02
    for name in ("crowd", "strength", "confusion", "prevalence"):
        first, second = (group_of(post, "posterior")[name].to_numpy() for post in posts)
        if name == "strength":
            first, second = np.log(first), np.log(second)
        shape = first.shape[2:]
        errors = []
        for values in (first, second):
            flat = values.reshape(*values.shape[:2], -1).astype(float)
            ess = [az.ess(np.ascontiguousarray(flat[:, :, i])) for i in range(flat.shape[2])]
            errors.append((flat.std(axis=(0, 1)) / np.sqrt(ess)).reshape(shape))
        gap = np.abs(first.mean(axis=(0, 1)) - second.mean(axis=(0, 1)))
        np.testing.assert_array_less(gap, N_ERRORS * np.hypot(*errors), err_msg=name)
