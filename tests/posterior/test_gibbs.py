"""The Gibbs kernel: its conditionals, and its sweeps as a NumPyro kernel."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer import MCMC

import bayescrowd as bc
from bayescrowd.models import (
    access_path,
    dawid_skene,
    item_difficulty,
    mace,
    naive_bayes,
)
from bayescrowd.models.dawid_skene import Labels, Prior
from bayescrowd.posterior import gibbs
from bayescrowd.posterior.conditionals import crowd_labels
from bayescrowd.posterior.gibbs import Gibbs, State

CONJUGATE = [name for name, facts in bc.models.catalogue().items() if facts.has_conditionals]
MODELS = [getattr(bc.models, name) for name in bc.models.catalogue("labels") if name in CONJUGATE]
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
    conjugate = gibbs.conditionals_of(model)
    params = conjugate.first_params(model.Prior(), n_workers=4, n_classes=2)
    params = params._replace(prevalence=jnp.array([0.3, 0.7]))
    labels = labels_of(0)
    ours = conjugate.log_joint(params, labels, n_items=12)
    expected = model.label_log_joint(params, labels, n_items=12)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_vote_shares_by_hand():
    labels = Labels(*jnp.array([[0, 0, 0, 1], [0, 1, 2, 0], [1, 1, 0, 0]]))
    shares = crowd_labels.vote_shares(labels, n_items=3, n_classes=2)
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


def _quick_or_slow(name):
    """One model of each kind of data, and the others where compiling may take its time."""
    is_quick = name in ("dawid_skene", "naive_bayes")
    return pytest.param(getattr(bc.models, name), marks=[] if is_quick else [pytest.mark.slow])


def observations(model):
    """Data of the model's shape, of no particular distribution; NumPy's."""
    if model.FACTS.subject == "labels":
        return labels_of(0), SIZES
    rng = np.random.default_rng(0)
    target = np.where(np.arange(12) % 2, rng.integers(2, size=12), -1)
    item, feature = np.divmod(np.arange(24), 2)
    sizes = {"n_items": 12, "n_classes": 2, "n_values": (2, 3)}
    if model is naive_bayes:
        codes = (target, item, feature, rng.integers(2, size=24))
        return naive_bayes.Observations(*map(jnp.asarray, codes)), sizes
    reading, group = np.divmod(np.arange(48), 2)
    codes = (target, item, feature, reading, group, rng.integers(2, size=48))
    return access_path.Observations(*map(jnp.asarray, codes)), {**sizes, "n_groups": 2}


@pytest.mark.parametrize("model", [_quick_or_slow(name) for name in CONJUGATE])
def test_numpyro_drives_sweeps(model):
    data, sizes = observations(model)
    n_chains, n_draws = 2, 2
    mcmc = MCMC(
        Gibbs(model),
        num_warmup=0,
        num_samples=n_draws,
        num_chains=n_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(3), data, **sizes)
    found = mcmc.get_samples(group_by_chain=True)
    widths = {"n_values": sizes["n_values"]} if "n_values" in sizes else {}
    step = jax.jit(partial(gibbs.sweep, model=model, **widths))
    for chain, key in enumerate(jax.random.split(jax.random.key(3), n_chains)):
        state = Gibbs(model).init(key, 0, None, (data,), sizes)
        draw = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=leaf.dtype), state.draw)
        for i in range(n_draws):
            key_rest, key_sweep = jax.random.split(state.rng_key)
            draw = step(key_sweep, draw, data, model.Prior())
            state = state._replace(rng_key=key_rest)
            for name, field in draw.params._asdict().items():
                np.testing.assert_allclose(found[name][chain, i], field, rtol=1e-5, err_msg=name)


@pytest.mark.slow
def test_numpyro_drives_a_single_chain():
    mcmc = MCMC(Gibbs(dawid_skene), num_warmup=20, num_samples=30, progress_bar=False)
    mcmc.run(jax.random.key(0), labels_of(0), **SIZES)
    draws = np.asarray(mcmc.get_samples()["confusion"])
    assert draws.shape == (30, 4, 2, 2)
    assert len(np.unique(draws[:, 0, 0, 0])) == 30


# Bad input


def test_models_without_conjugate_priors_are_refused():
    message = r"item_difficulty has no Gibbs sampler, use NUTS; models with one: access_path, "
    with pytest.raises(ValueError, match=message):
        Gibbs(item_difficulty)


def test_unsorted_labels_are_refused():
    labels = Labels(*jnp.array([[1, 0], [0, 0], [0, 1]]))
    sizes = {"n_items": 2, "n_workers": 1, "n_classes": 2}
    with pytest.raises(ValueError, match="not sorted by item"):
        Gibbs(dawid_skene).init(jax.random.key(0), 0, None, (labels,), sizes)
