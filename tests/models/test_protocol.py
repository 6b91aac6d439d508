"""What every model promises: the same names, and a simulator, a density and a posterior that agree.

Each model runs its own simulator; the checks below do not know which one it is.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro.infer.util import log_density
from scipy.special import logsumexp

from bayescrowd import models
from bayescrowd.models import (
    access_path,
    dawid_skene,
    hierarchical_dawid_skene,
    item_difficulty,
    mace,
    naive_bayes,
    one_coin,
)

CROWDS = [dawid_skene, hierarchical_dawid_skene, item_difficulty, mace, one_coin]
TABLES = [access_path, naive_bayes]
N_ITEMS = 1000
N_VALUES = (3, 2, 3)


class Case(NamedTuple):
    """A model with data that it has drawn itself, true classes hidden."""

    module: Any
    params: Any
    truth: Any
    data: Any
    sizes: dict[str, Any]

    def sites(self, params):
        """Values of the model's random sites at these parameters."""
        if self.module in TABLES:
            return self.module.sites(params, n_values=N_VALUES)
        return params._asdict()

    def trace(self):
        """Every site of the model at the parameters that drew the data."""
        at_params = numpyro.handlers.substitute(self.module.model, data=self.sites(self.params))
        return numpyro.handlers.trace(at_params).get_trace(self.data, **self.sizes)

    def log_density(self, params):
        return log_density(self.module.model, (self.data,), self.sizes, self.sites(params))[0]


def drawn_crowd(module, seed):
    item, worker = np.divmod(np.arange(N_ITEMS * 6), 6)
    item, worker = item[item > 0], worker[item > 0]  # nobody labels the first item
    sizes = {"n_items": N_ITEMS, "n_workers": 6, "n_classes": 3}
    drawn = module.simulate(jax.random.key(seed), jnp.asarray(item), jnp.asarray(worker), **sizes)
    return Case(module, drawn.params, drawn.truth, drawn.labels, sizes)


def drawn_table(module, seed):
    item, feature = np.divmod(np.arange(N_ITEMS * 3), 3)
    item, feature = item[item > 0], feature[item > 0]
    sizes = {"n_items": N_ITEMS, "n_classes": 3, "n_values": N_VALUES}
    design = [item, feature]
    if module is access_path:
        reading, group = np.divmod(np.arange(len(item) * 3), 3)
        sizes["n_groups"] = 3
        design += [reading, group]
    drawn = module.simulate(jax.random.key(seed), *map(jnp.asarray, design), **sizes)
    hidden = drawn.observations._replace(target=jnp.full(N_ITEMS, -1))
    return Case(module, drawn.params, drawn.truth, hidden, sizes)


def drawn_case(module, seed):
    return (drawn_crowd if module in CROWDS else drawn_table)(module, seed)


def name_of(module):
    return module.__name__.rsplit(".", 1)[-1]


@pytest.fixture(scope="module", params=[*CROWDS, *TABLES], ids=name_of)
def case(request):
    return drawn_case(request.param, seed=7)


def posterior_of(case, params=None, data=None):
    posterior = jax.jit(case.module.label_posterior, static_argnames="n_items")
    return np.asarray(posterior(params or case.params, data or case.data, n_items=N_ITEMS))


def test_every_model_is_here():
    assert {name_of(module) for module in [*CROWDS, *TABLES]} == set(models.__all__)


def test_names_are_the_same(case):
    names = {"Params", "Prior", "Simulation", "model", "simulate", "simulate_labels"}
    assert names | {"label_log_joint", "label_posterior"} <= set(case.module.__all__)


def test_fields_of_params_are_sites(case):
    trace = case.trace()
    for name, value in case.params._asdict().items():
        assert trace[name]["type"] in ("sample", "deterministic")
        np.testing.assert_array_equal(trace[name]["value"], value)


# Invariants


def test_posterior_rows_sum_to_one(case):
    # float32 sums of three shares
    np.testing.assert_allclose(posterior_of(case).sum(axis=1), 1.0, rtol=1e-6)


def test_an_item_without_data_has_the_prevalence(case):
    np.testing.assert_allclose(posterior_of(case)[0], case.params.prevalence, rtol=1e-6)


def test_the_labels_factor_is_the_marginal_of_the_joint(case):
    factor = case.trace()["labels"]
    log_joint = case.module.label_log_joint(case.params, case.data, n_items=N_ITEMS)
    expected = logsumexp(np.asarray(log_joint, dtype=float), axis=1)
    # float32; the item without data has the factor log 1
    np.testing.assert_allclose(factor["fn"].log_factor, expected, rtol=1e-5, atol=1e-6)
    assert {f.name for f in factor["cond_indep_stack"]} == {"item"}


def test_the_order_of_the_entries_does_not_matter(case):
    entries = case.data._asdict()
    # of the fields of an access path, the labels' alone: readings are numbered by their place
    axis = "reading" if case.module is access_path else "item"
    n_entries = len(entries[axis])
    order = np.random.default_rng(0).permutation(n_entries)
    moved = {
        name: value[order] if name != "target" and len(value) == n_entries else value
        for name, value in entries.items()
    }
    # another order of a float32 sum may round differently
    np.testing.assert_allclose(
        posterior_of(case, data=type(case.data)(**moved)), posterior_of(case), atol=1e-5
    )


def test_gradient_is_finite(case):
    gradient = jax.jit(jax.grad(case.log_density))(case.params)
    assert all(np.isfinite(field).all() for field in gradient)
    assert all(np.asarray(field).any() for field in gradient)


# Recovery


def calibration_gap(posterior, truth):
    """Right labels minus their expected number, in standard errors of that number."""
    posterior = np.asarray(posterior, dtype=float)
    confidence = posterior.max(axis=1)
    right = posterior.argmax(axis=1) == np.asarray(truth)
    return (right.sum() - confidence.sum()) / np.sqrt((confidence * (1 - confidence)).sum())


def test_posterior_of_simulated_items_is_calibrated(case):
    assert abs(calibration_gap(posterior_of(case), case.truth)) < 4


def test_control_parameters_of_another_crowd_are_not_calibrated(case):
    other = drawn_case(case.module, seed=8).params
    assert abs(calibration_gap(posterior_of(case, params=other), case.truth)) > 4


def test_simulation_depends_on_the_key_alone(case):
    again, other = (drawn_case(case.module, seed) for seed in (7, 8))
    for first, second in zip(jax.tree.leaves(case[1:4]), jax.tree.leaves(again[1:4]), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(case.truth, other.truth)
