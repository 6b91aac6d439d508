"""The Gibbs kernel: its conditionals, and its sweeps as a NumPyro kernel."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer import MCMC

import bayescrowd as bc
from bayescrowd.models import dawid_skene, item_difficulty, mace, one_coin
from bayescrowd.models.dawid_skene import Labels, Prior
from bayescrowd.posterior import gibbs, gibbs_crowd
from bayescrowd.posterior.gibbs import Gibbs, State

MODELS = [dawid_skene, one_coin, mace]
STEP = {model: jax.jit(partial(gibbs.sweep, model=model)) for model in MODELS}


def crowd(n_items=12, n_workers=4):
    item, worker = np.divmod(np.arange(n_items * n_workers), n_workers)
    return jnp.asarray(item), jnp.asarray(worker)


ITEM, WORKER = crowd()
SIZES = {"n_items": 12, "n_workers": 4, "n_classes": 2}


def labels_of(seed):
    """Labels of three good workers and one who guesses; NumPy's, since it compiles nothing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=12)
    is_right = rng.random(48) < np.array([0.9, 0.8, 0.8, 0.5])[WORKER]
    return Labels(ITEM, WORKER, jnp.asarray(np.where(is_right, truth[ITEM], 1 - truth[ITEM])))


# By hand


@pytest.mark.parametrize("model", MODELS)
def test_log_joint_is_the_models(model):
    conjugate = gibbs.CONJUGATE[model.__name__]
    params = conjugate.first_params(model.Prior(), n_workers=4, n_classes=2)
    params = params._replace(prevalence=jnp.array([0.3, 0.7]))
    labels = labels_of(0)
    ours = conjugate.log_joint(params, labels, n_items=12)
    expected = model.label_log_joint(params, labels, n_items=12)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_vote_shares_by_hand():
    labels = Labels(*jnp.array([[0, 0, 0, 1], [0, 1, 2, 0], [1, 1, 0, 0]]))
    shares = gibbs_crowd.vote_shares(labels, n_items=3, n_classes=2)
    np.testing.assert_allclose(shares, [[1.5 / 4, 2.5 / 4], [1.5 / 2, 0.5 / 2], [0.5, 0.5]])


# Invariants


@pytest.mark.parametrize("model", [dawid_skene, pytest.param(mace, marks=pytest.mark.slow)])
def test_sweeps_keep_shapes_and_probabilities(model):
    labels = labels_of(0)
    step = STEP[model]
    state = gibbs.start(
        jax.random.key(0), jnp.full((12, 2), 0.5), model.Prior(), model=model, n_workers=4
    )
    for key in jax.random.split(jax.random.key(1), 3):
        state = step(key, state, labels, model.Prior())
        assert isinstance(state, State)
        assert state.truth.shape == (12,)
        assert set(np.unique(state.truth)) <= {0, 1}
        for field in state.params:
            assert ((field > 0) & (field <= 1)).all()
        np.testing.assert_allclose(state.params.prevalence.sum(), 1, rtol=1e-5)


def test_a_warm_state_goes_on_with_other_labels():
    step = STEP[dawid_skene]
    labels = labels_of(0)
    state = gibbs.start(
        jax.random.key(0), jnp.full((12, 2), 0.5), Prior(), model=dawid_skene, n_workers=4
    )
    state = step(jax.random.key(1), state, labels_of(1), Prior())
    later = step(jax.random.key(2), state, labels, Prior())
    stale = state._replace(log_joint=jnp.zeros_like(state.log_joint))
    again = step(jax.random.key(2), stale, labels, Prior())
    np.testing.assert_array_equal(later.params.confusion, again.params.confusion)


# As a kernel of NumPyro


@pytest.mark.parametrize(
    ("num_chains", "chain_method"),
    [(3, "vectorized"), pytest.param(1, "sequential", marks=pytest.mark.slow)],
)
def test_numpyro_drives_the_kernel(num_chains, chain_method):
    mcmc = MCMC(
        Gibbs(dawid_skene),
        num_warmup=20,
        num_samples=30,
        num_chains=num_chains,
        chain_method=chain_method,
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), labels_of(0), **SIZES)
    draws = np.asarray(mcmc.get_samples(group_by_chain=True)["confusion"])
    assert draws.shape == (num_chains, 30, 4, 2, 2)
    assert len(np.unique(draws[:, :, 0, 0, 0])) == num_chains * 30


# Bad input


def test_models_without_conjugate_priors_are_refused():
    message = r"item_difficulty has no Gibbs sampler, use NUTS; those that have: dawid_sk"
    with pytest.raises(ValueError, match=message):
        Gibbs(item_difficulty)


def test_unsorted_labels_are_refused():
    labels = Labels(*jnp.array([[1, 0], [0, 0], [0, 1]]))
    sizes = {"n_items": 2, "n_workers": 1, "n_classes": 2}
    with pytest.raises(ValueError, match="not sorted by item"):
        Gibbs(dawid_skene).init(jax.random.key(0), 0, None, (labels,), sizes)


def test_conjugate_models_are_models():
    assert set(gibbs.conjugate_models()) <= set(bc.models.__all__)
