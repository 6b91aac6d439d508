"""Names of classes: exchanges leave the posterior alone, and labels suggest the best names."""

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro.infer.util import log_density
from scipy.optimize import linear_sum_assignment

import bayescrowd as bc
from bayescrowd.models import hierarchical_dawid_skene
from bayescrowd.models.hierarchical_dawid_skene import Params, Prior
from bayescrowd.posterior.conditionals.hierarchical_dawid_skene import CONDITIONALS
from bayescrowd.posterior.conditionals.names import (
    MOST_IN_CYCLES,
    draw_naming,
    naming_of_labels,
)
from bayescrowd.posterior.container import group_of

N_KEYS = 20_000


def drawn_namings(log_prior, gold=None, n_keys=N_KEYS):
    keys = jax.random.split(jax.random.key(0), n_keys)
    return np.asarray(jax.jit(jax.vmap(lambda key: draw_naming(key, log_prior, gold)))(keys))


# Exchanges


def test_exchanges_leave_the_posterior_of_namings_invariant():
    table = jnp.array([[0.0, 0.3, -1.5], [-0.2, 0.1, 0.4], [0.9, -0.6, 0.2]])
    namings = np.array(list(permutations(range(3))))
    weight = np.exp(np.asarray(table)[namings, np.arange(3)].sum(axis=1))
    weight /= weight.sum()
    after = np.zeros(len(namings))
    for naming, share in zip(namings, weight, strict=True):
        changed = naming[drawn_namings(table[naming])]
        same = (changed[:, None] == namings).all(axis=-1)
        after += share * same.mean(axis=0)
        assert same.any(axis=1).all()
    # each of six shares is a weighted mean of six frequencies: its standard error is at most this
    error = np.sqrt((weight**2).sum() / N_KEYS) / 2
    np.testing.assert_array_less(np.abs(after - weight), 4.5 * error)
    # control: to accept every exchange would make all namings equally likely
    assert np.abs(weight - 1 / 6).max() > 20 * error


def test_names_that_the_prior_knows_are_hardly_ever_exchanged():
    naming = drawn_namings(jnp.array([[0.0, -9.0], [-9.0, 0.0]]), n_keys=1_000)
    assert (naming == [0, 1]).all()  # the odds of the other are exp(-18)
    # control: at even odds but for a little they are
    doubtful = drawn_namings(jnp.array([[0.0, 0.2], [0.2, 0.0]]), n_keys=1_000)
    assert 0.2 < (doubtful == [1, 0]).all(axis=1).mean() < 0.8


def test_classes_of_known_items_keep_their_names():
    table = 0.1 * jnp.arange(9.0).reshape(3, 3) ** 1.5 / 9
    free = drawn_namings(table, n_keys=500)
    fixed = drawn_namings(table, jnp.array([-1, 2, -1]), n_keys=500)
    assert (free[:, 2] != 2).any()
    assert (fixed[:, 2] == 2).all()
    assert (fixed[:, 0] != 0).any()


PRIORS = [
    Prior(),
    Prior(
        prevalence=np.array([3.0, 2.0, 5.0]),
        n_pseudo_labels=np.array([8.0, 4.0, 6.0]),
        accuracy=np.array([0.6, 0.7, 0.5]),
        strength=np.array([8.0, 5.0, 9.0]),
        log_strength_scale=np.array([1.0, 0.7, 1.2]),
    ),
]


@pytest.mark.parametrize("prior", PRIORS, ids=["default", "arrays"])
def test_the_odds_of_namings_are_those_of_the_models_density(prior):
    sizes = {"n_items": 6, "n_workers": 3, "n_classes": 3}
    item, worker = map(jnp.asarray, np.divmod(np.arange(18), 3))
    simulated = hierarchical_dawid_skene.simulate(jax.random.key(1), item, worker, **sizes)
    params, labels = simulated.params, simulated.labels

    def density(params):
        arguments = {**sizes, "prior": prior}
        value, _ = log_density(
            hierarchical_dawid_skene.model, (labels,), arguments, params._asdict()
        )
        return float(value)

    assert CONDITIONALS.naming is not None
    log_prior = np.asarray(CONDITIONALS.naming.log_prior(params, prior))
    for naming in permutations(range(3)):
        renamed = Params(*CONDITIONALS.naming.rename(params, jnp.array(naming)))
        expected = log_prior[list(naming), range(3)].sum() - np.trace(log_prior)
        # densities of some -60 in single precision
        np.testing.assert_allclose(density(renamed) - density(params), expected, atol=2e-3)


# Names that the labels suggest


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
def test_no_exchange_and_no_cycle_improves_the_labels_naming(n_classes):
    rng = np.random.default_rng(n_classes)
    for agreement in rng.gamma(0.5, size=(20, n_classes, n_classes)).astype(np.float32):
        naming = np.asarray(naming_of_labels(jnp.asarray(agreement), None))
        named = agreement[naming]
        assert sorted(naming) == list(range(n_classes))
        found = np.trace(named)
        if n_classes <= 3:
            # every renaming of three classes is an exchange or a cycle
            assert found >= agreement[linear_sum_assignment(-agreement)].sum() * (1 - 1e-5)
        for order in permutations(range(n_classes)):
            if (np.array(order) != np.arange(n_classes)).sum() <= 3:
                other = named[list(order), np.arange(n_classes)].sum()
                assert other <= found * (1 + 1e-5)


@pytest.mark.parametrize("n_classes", [5, MOST_IN_CYCLES + 8])
def test_clear_names_are_found_whatever_their_order(n_classes):
    rng = np.random.default_rng(0)
    order = rng.permutation(n_classes)
    agreement = rng.random((n_classes, n_classes)) + 10 * np.eye(n_classes)
    naming = naming_of_labels(jnp.asarray(agreement[order]), None)
    np.testing.assert_array_equal(order[np.asarray(naming)], np.arange(n_classes))


def test_labels_do_not_rename_classes_of_known_items():
    agreement = jnp.array([[1.0, 9.0, 0.0], [2.0, 1.0, 7.0], [8.0, 0.0, 1.0]])
    naming = naming_of_labels(agreement, jnp.array([-1, 1, -1]))
    assert naming.tolist() == [2, 1, 0]


def test_ties_keep_their_names():
    assert naming_of_labels(jnp.ones((4, 4)), None).tolist() == [0, 1, 2, 3]


# Chains


def test_names_do_not_depend_on_where_chains_start():
    """Judges who know three groups of tasks, and by name only two of them."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [60, 40, 40])
    rows = np.array([[0.9, 0.08, 0.02], [0.1, 0.88, 0.02], [0.45, 0.53, 0.02]])
    item, worker = np.divmod(np.arange(len(group) * 7), 7)
    label = (rng.random((len(item), 1)) > rows[group[item]].cumsum(axis=1)).sum(axis=1)
    sizes = {"tasks": len(group), "workers": 7, "classes": ["a", "b", "c"]}
    ann = bc.Annotations.from_codes(item, worker, label.clip(0, 2), **sizes)
    options = {"draws": 300, "most_draws": 300, "predictive": False, "log_likelihood": False}
    found = []
    for order in ([0, 1, 2], [2, 1, 0]):
        start = pd.DataFrame(np.eye(3)[np.array(order)[group]], ann.tasks, ann.classes)
        post = bc.sample_posterior("hierarchical_dawid_skene", ann, init=start, **options)
        found.append(group_of(post, "posterior")["prevalence"].to_numpy().mean(axis=(0, 1)))
        renamed = group_of(post, "sample_stats")["renamed"].to_numpy()
        assert 0.01 < renamed.mean() < 0.99
    np.testing.assert_allclose(*found, atol=0.05)
