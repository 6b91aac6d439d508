"""Gibbs sampling of task subtypes: its tables against closed forms, the whole against NUTS."""

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.models.task_subtypes import Params, Prior
from bayescrowd.posterior.alignment import order_subtypes
from bayescrowd.posterior.conditionals.task_subtypes import split_tables
from bayescrowd.posterior.container import group_of


def test_tables_are_split_in_proportion_to_both_rows():
    # A cell of n labels has E t = sum of a / (a + i) tables, of which s c / a serve the worker.
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 6, size=(3, 2, 2, 2)).astype(float)
    shared, confusion = (rng.dirichlet([2.0, 2.0], size=shape) for shape in ((2, 2), (3, 2)))
    params = Params(
        prevalence=jnp.full(2, 0.5),
        weight=jnp.ones((2, 2)),
        shared=jnp.asarray(shared),
        confusion=jnp.asarray(confusion),
        subtype_confusion=jnp.full((3, 2, 2, 2), 0.5),
    )
    prior = Prior(own_strength=5.0, shared_strength=2.0)
    n_labels, n_draws = int(counts.sum()), 4_000

    @jax.jit
    def draw(keys):
        tables = jnp.asarray(counts)
        return jax.lax.map(
            lambda key: split_tables(key, tables, params, prior, n_labels=n_labels), keys
        )

    drawn = draw(jax.random.split(jax.random.key(1), n_draws))
    own = 5.0 * confusion[:, :, None] * np.ones((1, 1, 2, 1))
    of_subtype = 2.0 * shared[None] * np.ones((3, 1, 1, 1))
    a = own + of_subtype
    tables = sum(np.where(counts > i, a / (a + i), 0.0) for i in range(6))
    for found, expected in (
        (drawn.own, (tables * own / a).sum(axis=2)),
        (drawn.shared, (tables * of_subtype / a).sum(axis=0)),
    ):
        error = np.asarray(found, dtype=float).std(axis=0) / np.sqrt(n_draws)
        gap = np.abs(np.asarray(found, dtype=float).mean(axis=0) - expected)
        # 20 means within 4.5 standard errors fail once in 7,000 keys; an empty cell has neither
        assert (gap <= 4.5 * error + 1e-9).all()


def test_subtypes_are_numbered_from_the_easiest():
    rows = np.array([[[[0.3, 0.7], [0.9, 0.1]], [[0.2, 0.8], [0.4, 0.6]]]])[None, None]
    weight = np.array([[1.0, 3.0], [5.0, 2.0]])[None, None]
    params = {
        "weight": (("chain", "draw", "cls", "subtype"), weight),
        "subtype_confusion": (("chain", "draw", "worker", "cls", "subtype", "observed"), rows),
    }
    ordered = order_subtypes(params, np.array([7.0]))
    # class 0 is answered rightly on its second subtype, class 1 on its first
    assert ordered["weight"][1].tolist() == [[[[3.0, 1.0], [5.0, 2.0]]]]
    right = np.diagonal(ordered["subtype_confusion"][1][0, 0, 0], axis1=0, axis2=2)
    np.testing.assert_allclose(right, [[0.9, 0.8], [0.3, 0.6]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:label switching")  # so few labels leave the classes open
def test_gibbs_and_nuts_agree():
    crowd = bc.simulate.crowd(12, 4, 2, accuracy=0.8, seed=2)
    found = {}
    for method, draws in (("gibbs", 4000), ("nuts", 1500)):
        post = bc.sample_posterior(
            "task_subtypes", crowd.annotations, method, chains=2, draws=draws, predictive=False
        )
        posterior = group_of(post, "posterior")
        rows = posterior["subtype_confusion"].mean("worker").to_numpy()
        values = np.concatenate(
            [posterior["prevalence"].to_numpy()[..., :1], rows.reshape(*rows.shape[:2], -1)], axis=2
        ).astype(float)
        ess = [float(az.ess(np.ascontiguousarray(values[..., i]))) for i in range(9)]
        error = values.std(axis=(0, 1)) / np.sqrt(ess)
        found[method] = values.mean(axis=(0, 1)), error
    (gibbs, gibbs_error), (nuts, nuts_error) = found.values()
    # nine means, five Monte-Carlo standard errors: both are estimates of ESS and spread
    assert (np.abs(gibbs - nuts) < 5 * np.hypot(gibbs_error, nuts_error)).all()
