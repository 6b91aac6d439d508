"""A user's own model: found by its names, sampled by Gibbs if it brings its conditionals."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.models import one_coin
from bayescrowd.posterior.container import group_of

ANN = bc.Annotations.from_matrix([["a", "a", "b"], ["b", "b", None], ["a", None, None]])
SHORT = {"chains": 2, "draws": 300, "warmup": 50, "seed": 1, "progress": False}
NAMES = ("FACTS", "Params", "Prior", "model", "label_log_joint", "simulate", "simulate_labels")

# A crowd whose workers are right with a probability of 0.8, whoever they are: only the prevalence
# is unknown. Gibbs sampling alternates between classes and prevalence.
SOURCE = """
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp

from bayescrowd.models import one_coin
from bayescrowd.posterior.conditionals.crowd_labels import vote_shares
from bayescrowd.posterior.conditionals.protocol import Conditionals

FACTS = one_coin.FACTS


class Prior(NamedTuple):
    prevalence: float = 1.0


class Params(NamedTuple):
    prevalence: jax.Array


class Simulation(NamedTuple):
    params: Params
    labels: one_coin.Labels


def model(labels, *, n_items, n_workers, n_classes, prior=Prior()):
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, prior.prevalence)))
    log_joint = label_log_joint(Params(prevalence), labels, n_items=n_items)
    with numpyro.plate("item", n_items, dim=-1):
        numpyro.factor("labels", logsumexp(log_joint, axis=-1))


def label_log_joint(params, labels, *, n_items):
    n_classes = len(params.prevalence)
    right = labels.label[:, None] == jnp.arange(n_classes)
    log_answer = jnp.log(jnp.where(right, 0.8, 0.2 / (n_classes - 1)))
    return jnp.log(params.prevalence) + jax.ops.segment_sum(log_answer, labels.item, n_items)


def simulate(rng_key, item, worker, *, n_items, n_workers, n_classes, prior=Prior()):
    key, rest = jax.random.split(rng_key)
    params = Params(jax.random.dirichlet(key, jnp.full(n_classes, prior.prevalence)))
    return simulate_labels(rest, params, item, worker, n_items=n_items)


def simulate_labels(rng_key, params, item, worker, *, n_items):
    key_truth, key_label = jax.random.split(rng_key)
    truth = jax.random.categorical(key_truth, jnp.log(params.prevalence), shape=(n_items,))
    right = truth[item][:, None] == jnp.arange(len(params.prevalence))
    label = jax.random.categorical(key_label, jnp.log(jnp.where(right, 0.8, 0.2)))
    return Simulation(params, one_coin.Labels(item, worker, label))


def first_params(prior, *, n_workers, n_classes):
    return Params(jnp.full(n_classes, 1 / n_classes))


def draw_params(rng_key, truth, params, labels, prior):
    counts = (truth[:, None] == jnp.arange(len(params.prevalence))).sum(axis=0)
    return Params(jax.random.dirichlet(rng_key, prior.prevalence + counts))


CONDITIONALS = Conditionals(first_params, draw_params, label_log_joint, vote_shares, warmup=20)
"""


def load(tmp_path, source):
    path = tmp_path / "known_raters.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("known_raters", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def enumerated():
    """P(class 'b') of each task; the prevalence has a uniform prior and integrates out."""
    n_a = np.array([[2, 0, 1], [1, 2, 0]])  # labels 'a' and 'b' of each task
    weights, classes = [], []
    for code in range(8):
        truth = np.array([code >> i & 1 for i in range(3)])
        n_b = truth.sum()
        prior = [1 / 4, 1 / 12, 1 / 12, 1 / 4][n_b]  # n_b! (3 - n_b)! / 4!
        right = n_a[truth, range(3)]
        weights.append(prior * (0.8**right * 0.2 ** (n_a.sum(axis=0) - right)).prod())
        classes.append(truth)
    return np.array(weights) @ np.array(classes) / np.sum(weights)


@pytest.mark.parametrize(("bring", "method"), [(True, "gibbs"), (False, "nuts")])
@pytest.mark.filterwarnings("ignore:the crowd is hardly", "ignore:label switching")
def test_a_module_of_the_user_is_sampled_exactly(tmp_path, bring, method):
    source = SOURCE if bring else SOURCE.partition("CONDITIONALS =")[0]
    options = {**SHORT, "draws": 2000, "warmup": None if bring else 300, "n_predictive": 4}
    post = bc.sample_posterior(load(tmp_path, source), ANN, **options)
    assert (post.attrs["method"], post.attrs["model"]) == (method, "known_raters")
    # P(class) given the prevalence varies by less than 0.3 and has 500 effective draws at least
    tolerance = 4 * 0.3 / np.sqrt(500)
    np.testing.assert_allclose(bc.label_posterior(post)["b"], enumerated(), atol=tolerance)
    # the control: as if each task had a prevalence of 1/2 to itself
    alone = np.array([0.2, 0.8**2 / (0.8**2 + 0.2**2), 0.2])
    assert np.abs(enumerated() - alone).max() > 0.01
    assert group_of(post, "posterior_predictive")["label"].shape == (2, 2, 6)


@pytest.mark.filterwarnings("ignore:the crowd is hardly", "ignore:label switching")
def test_an_object_serves_as_well_as_a_module():
    attributes = {name: getattr(one_coin, name) for name in NAMES}
    asked = type(
        "Own",
        (),
        {
            name: staticmethod(v) if callable(v) and not isinstance(v, type) else v
            for name, v in attributes.items()
        },
    )
    post = bc.sample_posterior(asked, ANN, **{**SHORT, "draws": 20}, n_predictive=0)
    assert post.attrs["method"] == "nuts"
    with pytest.raises(TypeError, match="SimpleNamespace, which has no hash"):
        bc.sample_posterior(SimpleNamespace(**attributes), ANN, **SHORT)


def test_conditionals_of_another_type_are_refused(tmp_path):
    source = SOURCE + "\nCONDITIONALS = {}\n"
    with pytest.raises(TypeError, match="CONDITIONALS of known_raters is a dict; expected"):
        bc.sample_posterior(load(tmp_path, source), ANN, **SHORT)
