"""Naive Bayes and the access path model on whole tables: all that is hidden is enumerated."""

from functools import partial
from itertools import product

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from bayescrowd.models import access_path, naive_bayes
from bayescrowd.posterior import gibbs
from bayescrowd.posterior.conditionals.classes import known_classes

# Four items, of which two have a known class; a feature of two values and one of three.
TARGET = np.array([0, 1, -1, -1])
N_VALUES = (2, 3)
READ_ITEM = np.array([0, 0, 1, 2, 2, 3])
READ_FEATURE = np.array([0, 1, 0, 0, 1, 1])
VALUE = np.array([0, 2, 1, 1, 0, 2])
# Workers of two groups label the same readings; the fourth reading has one label.
LABELLED = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 5, 5])
GROUP = np.array([0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0])
LABEL = np.array([0, 0, 1, 2, 2, 1, 1, 1, 1, 0, 1, 2, 2])

TABLE = naive_bayes.Observations(*map(jnp.asarray, (TARGET, READ_ITEM, READ_FEATURE, VALUE)))
READINGS = access_path.Observations(
    *map(jnp.asarray, (TARGET, READ_ITEM, READ_FEATURE, LABELLED, GROUP, LABEL))
)
CASES = {
    naive_bayes: (TABLE, naive_bayes.Prior(), {"n_values": N_VALUES}),
    access_path: (READINGS, access_path.Prior(), {"n_values": N_VALUES, "n_groups": 2}),
}
N_DRAWS = 20_000
N_ERRORS = 4.0
"""Monte-Carlo standard errors allowed; 40 quantities leave the band once in 400 keys."""


def log_evidence_and_mean(counts, concentration):
    """Log evidence and mean of rows under Dirichlet priors; concentrations of zero drop out."""
    exists = concentration > 0
    alpha = np.where(exists, concentration, 1.0)
    each = np.where(exists, gammaln(alpha + counts) - gammaln(alpha), 0.0).sum()
    totals, n = concentration.sum(axis=-1), counts.sum(axis=-1)
    real = totals > 0
    each += (gammaln(totals[real]) - gammaln(totals[real] + n[real])).sum()
    row = concentration + counts
    return each, row / np.maximum(row.sum(axis=-1, keepdims=True), 1e-12)


def terms(model):
    """Log weight, classes and parameter means of each assignment of classes and values."""
    widths = np.arange(3) < np.array(N_VALUES)[:, None]
    conditional = np.repeat(widths[:, None, :], 2, axis=1).astype(float)
    pairs = widths[:, None, :, None] & widths[:, None, None, :]
    confusion = np.where(pairs, np.where(np.eye(3) > 0, 4.0, 1.0), 0.0).repeat(2, axis=1)
    hidden = [range(N_VALUES[f]) for f in READ_FEATURE]
    for unknown in product(range(2), repeat=2):
        truth = np.where(TARGET < 0, [0, 0, *unknown], TARGET)
        for values in product(*hidden) if model is access_path else [VALUE]:
            value = np.array(values)
            weight, prevalence = log_evidence_and_mean(np.bincount(truth, minlength=2), np.ones(2))
            of_value = np.zeros((2, 2, 3))
            np.add.at(of_value, (READ_FEATURE, truth[READ_ITEM], value), 1)
            more, mean = log_evidence_and_mean(of_value, conditional)
            weight += more
            means = {"prevalence": prevalence, "conditional": mean}
            if model is access_path:
                of_label = np.zeros((2, 2, 3, 3))
                place = (READ_FEATURE[LABELLED], GROUP, value[LABELLED], LABEL)
                np.add.at(of_label, place, 1)
                more, means["confusion"] = log_evidence_and_mean(of_label, confusion)
                weight += more
            yield weight, np.eye(2)[truth], means


@partial(jax.jit, static_argnames=("model",))
def chain(rng_key, *, model):
    data, prior, sizes = CASES[model]
    key_start, key_run = jax.random.split(rng_key)
    probas = known_classes(data, n_items=4, n_classes=2)
    state = gibbs.start(key_start, probas, prior, model=model, **sizes)

    def step(state, key):
        state = gibbs.sweep(key, state, data, prior, model=model, n_values=N_VALUES)
        return state, state

    return jax.lax.scan(step, state, jax.random.split(key_run, N_DRAWS))[1]


def assert_mean(draws, expected, name):
    draws = np.asarray(draws, dtype=float)
    flat = draws.reshape(len(draws), -1)
    # what never moves is zero beyond a feature's values, or the class of a known item
    moves = flat.std(axis=0) > 0
    np.testing.assert_allclose(flat[0, ~moves], np.ravel(expected)[~moves], atol=1e-6)
    ess = np.array([az.ess(np.ascontiguousarray(column[None])) for column in flat.T[moves]])
    error = flat[:, moves].std(axis=0) / np.sqrt(ess)
    gap = np.abs(flat.mean(axis=0) - np.ravel(expected))[moves]
    np.testing.assert_array_less(gap, N_ERRORS * error, err_msg=name)


@pytest.mark.parametrize("model", CASES)
def test_the_posterior_is_the_enumerated_one(model):
    weights, classes, means = zip(*terms(model), strict=True)
    share = np.exp(np.array(weights) - logsumexp(weights))
    states = chain(jax.random.key(5), model=model)
    probas = np.asarray(jax.nn.softmax(states.log_joint, axis=-1))
    assert_mean(probas, np.tensordot(share, np.array(classes), 1), "label")
    for name in model.Params._fields:
        expected = np.tensordot(share, np.array([mean[name] for mean in means]), 1)
        assert_mean(getattr(states.params, name), expected, name)
    assert (np.asarray(states.truth)[:, :2] == TARGET[:2]).all()


def test_control_another_posterior_is_told_apart():
    _, _, means = zip(*terms(naive_bayes), strict=True)
    states = chain(jax.random.key(5), model=naive_bayes)
    with pytest.raises(AssertionError, match="ordered"):
        assert_mean(states.params.conditional, means[0]["conditional"], "one assignment only")
