"""Known classes in the density of every model of labels, and in what is drawn from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp
from numpyro.infer import Predictive
from numpyro.infer.util import log_density

from bayescrowd import models

ITEM = jnp.array([0, 0, 1, 1, 2, 3, 3])
WORKER = jnp.array([0, 1, 0, 1, 0, 1, 0])
SIZES = {"n_items": 5, "n_workers": 2, "n_classes": 3}
GOLD = jnp.array([2, -1, 0, -1, 1])


@pytest.fixture(params=list(models.catalogue("labels")))
def model(request):
    return getattr(models, request.param)


def test_known_classes_leave_their_terms_of_the_sum_alone(model):
    drawn = model.simulate(jax.random.key(1), ITEM, WORKER, **SIZES)
    known = drawn.labels._replace(gold=GOLD)
    sites = drawn.params._asdict()

    @jax.jit
    def log_densities(sites):
        return [log_density(model.model, (x,), SIZES, sites)[0] for x in (drawn.labels, known)]

    without, with_gold = log_densities(sites)
    log_joint = model.label_log_joint(drawn.params, drawn.labels, n_items=5)
    has = np.flatnonzero(GOLD >= 0)
    # P(labels, class) in place of P(labels), for each item with a known class
    expected = log_joint[has, GOLD[has]].sum() - logsumexp(log_joint[has], axis=1).sum()
    # float32 sums of about 30 terms
    np.testing.assert_allclose(with_gold - without, expected, atol=1e-4)
    gradient = jax.jit(jax.grad(lambda sites: log_densities(sites)[1]))(sites)
    assert all(np.isfinite(slope).all() for slope in gradient.values())
    probas = model.label_posterior(drawn.params, known, n_items=5)
    np.testing.assert_array_equal(probas[has], np.eye(3)[np.asarray(GOLD)[has]])


def test_no_known_class_among_gold_changes_nothing(model):
    drawn = model.simulate(jax.random.key(1), ITEM, WORKER, **SIZES)
    unknown = drawn.labels._replace(gold=jnp.full(5, -1))
    sites = drawn.params._asdict()
    without, with_gold = (
        log_density(model.model, (x,), SIZES, sites)[0] for x in (drawn.labels, unknown)
    )
    np.testing.assert_allclose(with_gold, without, rtol=1e-6)


def test_draws_keep_known_classes(model):
    params = model.simulate(jax.random.key(1), ITEM, WORKER, **SIZES).params
    keys = jax.random.split(jax.random.key(2), 50)
    has = np.flatnonzero(GOLD >= 0)
    truth = jax.vmap(
        lambda key: model.simulate_labels(key, params, ITEM, WORKER, n_items=5, gold=GOLD).truth
    )(keys)
    assert (truth[:, has] == GOLD[has]).all()
    assert (np.ptp(np.delete(truth, has, axis=1), axis=0) > 0).all()


def test_predictive_labels_are_those_of_the_known_classes():
    model = models.one_coin
    # a worker who is always right, and one who is always wrong
    at = {"prevalence": jnp.full((1, 3), 1 / 3), "accuracy": jnp.array([[1.0, 0.0]])}
    asked = model.Labels(ITEM, WORKER, label=None, gold=GOLD)
    drawn = Predictive(model.model, at, batch_ndims=1)(jax.random.key(0), asked, **SIZES)
    label, gold = drawn["labels"].ravel(), np.asarray(GOLD)[ITEM]
    assert (label[(gold >= 0) & (WORKER == 0)] == gold[(gold >= 0) & (WORKER == 0)]).all()
    assert (label[(gold >= 0) & (WORKER == 1)] != gold[(gold >= 0) & (WORKER == 1)]).all()
