"""What every model promises: the same names, and a simulator, a density and a posterior that agree.

Each model of classes draws its own labels; the checks below do not know which model it is. Models
of numbers have tests of their own.
"""

import re
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
    ability_dawid_skene,
    access_path,
    dawid_skene,
    hierarchical_dawid_skene,
    item_difficulty,
    mace,
    naive_bayes,
    one_coin,
    task_subtypes,
    worker_types,
)

CROWDS = [getattr(models, name) for name in models.catalogue("labels")]
TABLES = [getattr(models, name) for name in models.catalogue("features")]
N_ITEMS = 1000
N_WORKERS = 6
N_GROUPS = 3
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

    def values(self):
        """Every site's value at the parameters that drew the data; the labels' log density."""

        @jax.jit
        def run(params, data):
            at_params = numpyro.handlers.substitute(self.module.model, data=self.sites(params))
            trace = numpyro.handlers.trace(at_params).get_trace(data, **self.sizes)
            assert {f.name for f in trace["labels"]["cond_indep_stack"]} == {"item"}
            named = {name: trace[name]["value"] for name in params._fields}
            assert trace["labels"]["is_observed"]
            return named | {"labels": trace["labels"]["fn"].log_prob(trace["labels"]["value"])}

        return run(self.params, self.data)

    def log_density(self, params):
        return log_density(self.module.model, (self.data,), self.sizes, self.sites(params))[0]


def rows(rng, *shape):
    return jnp.asarray(rng.dirichlet(np.full(shape[-1], 1.5), size=shape[:-1]))


def tables(rng, *shape, n_axes):
    """Rows over the values of each feature, zero beyond its last."""
    filled = np.zeros((len(N_VALUES), *shape, *(max(N_VALUES),) * n_axes))
    for feature, width in enumerate(N_VALUES):
        inside = (feature, ..., *(slice(width),) * n_axes)
        filled[inside] = rng.dirichlet(np.full(width, 1.5), size=filled[inside].shape[:-1])
    return jnp.asarray(filled)


def params_of(module, seed):
    """Parameters drawn by NumPy where possible: JAX takes two seconds to compile a Dirichlet."""
    rng = np.random.default_rng(seed)
    prevalence = rows(rng, 3)
    if module in (access_path, naive_bayes):
        conditional = tables(rng, 3, n_axes=1)
        noise = [] if module is naive_bayes else [tables(rng, N_GROUPS, n_axes=2)]
        return module.Params(prevalence, conditional, *noise)
    of_model = {
        dawid_skene: lambda: [rows(rng, N_WORKERS, 3, 3)],
        hierarchical_dawid_skene: lambda: [
            rows(rng, 3, 3),
            jnp.asarray(rng.gamma(4.0, 2.0, size=3)),
            rows(rng, N_WORKERS, 3, 3),
        ],
        ability_dawid_skene: lambda: [
            jnp.asarray(rng.normal(1.0, 0.5, size=3)),
            jnp.asarray(0.8),
            jnp.asarray(rng.normal(0.0, 0.8, size=N_WORKERS)),
            rows(rng, 3, 3),
            jnp.asarray(5.0),
            rows(rng, N_WORKERS, 3, 3),
        ],
        worker_types: lambda: [rows(rng, 3), rows(rng, 3, 3, 3), rows(rng, N_WORKERS, 3, 3)],
        item_difficulty: lambda: [
            jnp.asarray(rng.normal(0.5, 1.0, size=N_WORKERS)),
            jnp.asarray(rng.normal(0.0, 1.0, size=N_ITEMS)),
        ],
        mace: lambda: [jnp.asarray(rng.uniform(size=N_WORKERS)), rows(rng, N_WORKERS, 3)],
        task_subtypes: lambda: [
            rows(rng, 3, 2),
            rows(rng, 3, 2, 3),
            rows(rng, N_WORKERS, 3, 3),
            rows(rng, N_WORKERS, 3, 2, 3),
        ],
        one_coin: lambda: [jnp.asarray(rng.uniform(0.2, 0.9, size=N_WORKERS))],
    }
    if module not in of_model:
        design, sizes = design_of(module)
        return module.simulate(jax.random.key(seed), *map(jnp.asarray, design), **sizes).params
    return module.Params(prevalence, *of_model[module]())


def drawn_case(module, seed):
    design, sizes = design_of(module)
    drawn = module.simulate_labels(
        jax.random.key(seed), params_of(module, seed), *map(jnp.asarray, design), n_items=N_ITEMS
    )
    if module in CROWDS:
        data = drawn.labels
    else:
        data = drawn.observations._replace(target=jnp.full(N_ITEMS, -1))
    return Case(module, drawn.params, drawn.truth, data, sizes)


def design_of(module):
    """Who says something about what, item 0 left out, and the model's sizes."""
    sizes = {"n_items": N_ITEMS, "n_classes": 3}
    if module in CROWDS:
        item, worker = np.divmod(np.arange(N_ITEMS * N_WORKERS), N_WORKERS)
        return (item[item > 0], worker[item > 0]), {**sizes, "n_workers": N_WORKERS}
    sizes["n_values"] = N_VALUES
    item, feature = np.divmod(np.arange(N_ITEMS * len(N_VALUES)), len(N_VALUES))
    item, feature = item[item > 0], feature[item > 0]
    if "group" not in module.Observations._fields:
        return (item, feature), sizes
    reading, group = np.divmod(np.arange(len(item) * N_GROUPS), N_GROUPS)
    return (item, feature, reading, group), {**sizes, "n_groups": N_GROUPS}


def name_of(module):
    return module.__name__.rsplit(".", 1)[-1]


@pytest.fixture(scope="module", params=[*CROWDS, *TABLES], ids=name_of)
def case(request):
    return drawn_case(request.param, seed=7)


def posterior_of(case, params=None, data=None):
    posterior = jax.jit(case.module.label_posterior, static_argnames="n_items")
    return np.asarray(posterior(params or case.params, data or case.data, n_items=N_ITEMS))


def test_names_are_the_same(case):
    names = {"FACTS", "Params", "Prior", "Simulation", "model", "simulate", "simulate_labels"}
    assert names | {"label_log_joint", "label_posterior"} <= set(case.module.__all__)


def test_fields_of_params_are_sites_and_labels_are_the_marginal_of_the_joint(case):
    values = case.values()
    for name, value in case.params._asdict().items():
        np.testing.assert_array_equal(values[name], value)
    log_joint = case.module.label_log_joint(case.params, case.data, n_items=N_ITEMS)
    expected = logsumexp(np.asarray(log_joint, dtype=float), axis=1)
    # float32; the item without data has the density 1
    np.testing.assert_allclose(values["labels"], expected, rtol=1e-5, atol=1e-6)


# Invariants


def test_the_accuracy_is_that_of_simulated_workers(case):
    accuracy = case.module.FACTS.accuracy
    assert (accuracy is None) == (case.module in TABLES)
    if accuracy is None:
        return
    found = accuracy(type(case.params)(*(np.asarray(field, float) for field in case.params)))
    assert found.shape == (N_WORKERS,)
    item, worker, label = (np.asarray(codes) for codes in case.data[:3])
    is_right = np.asarray(case.truth)[item] == label
    share = np.bincount(worker, is_right) / np.bincount(worker)
    # independent labels of 999 items, at most four standard errors from their probability
    np.testing.assert_array_less(np.abs(share - found), 4 * np.sqrt(0.25 / (N_ITEMS - 1)))


def test_posterior_rows_sum_to_one(case):
    # float32 sums of three shares
    np.testing.assert_allclose(posterior_of(case).sum(axis=1), 1.0, rtol=1e-6)


def test_an_item_without_data_has_the_prevalence(case):
    np.testing.assert_allclose(posterior_of(case)[0], case.params.prevalence, rtol=1e-6)


def test_the_order_of_the_entries_does_not_matter(case):
    entries = case.data._asdict()
    # of the fields of an access path, the labels' alone: readings are numbered by their place
    axis = "reading" if "reading" in entries else "item"
    n_entries = len(entries[axis])
    order = np.random.default_rng(0).permutation(n_entries)
    moved = {
        name: value[order] if name != "target" and len(value) == n_entries else value
        for name, value in entries.items()
        if value is not None
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


# Observed sites


@pytest.fixture(scope="module", params=[*CROWDS, *TABLES], ids=name_of)
def module(request):
    return request.param


def small_case(module, *, is_known=True):
    """Four items with all their labels; the class of the second may be known."""
    sizes = {"n_items": 4, "n_classes": 3}
    item, second = map(jnp.asarray, np.divmod(np.arange(12), 3))
    label = jnp.asarray(np.random.default_rng(0).integers(2, size=12))
    target = jnp.array([-1, 2 if is_known else -1, -1, -1])
    if module in CROWDS:
        labels = dawid_skene.Labels(item, second, label, target if is_known else None)
        return labels, {**sizes, "n_workers": N_WORKERS}
    sizes["n_values"] = N_VALUES
    if "group" not in module.Observations._fields:
        return module.Observations(target, item, second, label), sizes
    # all labels of an item are about one reading
    feature, reading = jnp.array([0, 0, 2, 2]), item
    data = module.Observations(target, jnp.arange(4), feature, reading, second, label)
    return data, {**sizes, "n_groups": N_GROUPS}


def values_of(data):
    """What was answered."""
    return data.label if "label" in data._fields else data.value


def unseen(data):
    """The same items and workers, labels to be predicted."""
    return data._replace(**{"label" if "label" in data._fields else "value": None})


def trace_of(model, data, sizes):
    """The sites of a model, whose values are shapes: nothing is computed."""
    traced = numpyro.handlers.trace(numpyro.handlers.seed(model, jax.random.key(0)))
    jax.eval_shape(lambda: traced.get_trace(data, **sizes) and None)
    return traced.trace


@pytest.mark.parametrize("is_known", [False, True])
def test_draws_of_labels_are_as_frequent_as_the_density_says(module, is_known):
    data, sizes = small_case(module, is_known=is_known)
    n_draws, item = 20_000, 1
    values = np.array(list(np.ndindex(3, 2, 3) if module is naive_bayes else np.ndindex(3, 3, 3)))
    params = params_of(module, seed=7)
    if module is item_difficulty:
        params = params._replace(log_easiness=params.log_easiness[:4])
    at = Case(module, params, None, data, sizes).sites(params)

    @jax.jit
    def run(at):
        at_params = numpyro.handlers.substitute(module.model, data=at)
        trace = numpyro.handlers.trace(at_params).get_trace(data, **sizes)
        fn = trace["labels"]["fn"]
        log_prob = jax.vmap(lambda own: fn.log_prob(jnp.tile(own, 4))[item])(jnp.asarray(values))
        return log_prob, fn.sample(jax.random.key(3), (n_draws,))

    log_prob, draws = run(at)
    expected = np.exp(np.asarray(log_prob, float))
    # float32: a sum of 27 numbers
    np.testing.assert_allclose(expected.sum(), 1.0, rtol=1e-5)
    assert draws.shape == (n_draws, 1, 12)
    own = np.asarray(draws)[:, 0].reshape(n_draws, 4, 3)[:, item]
    place = np.ravel_multi_index(tuple(own.T), values.max(axis=0) + 1)
    share = np.bincount(place, minlength=len(values)) / n_draws
    # five standard errors of a share, which 27 of them leave once in 60,000 keys, and two draws
    # more for shares of a few draws
    allowed = 5 * np.sqrt(expected * (1 - expected) / n_draws) + 2 / n_draws
    np.testing.assert_array_less(np.abs(share - expected), allowed)
    # control: no such agreement with the values named the other way round
    assert (np.abs(share - expected[::-1]) > allowed).any()


def test_a_prediction_has_the_layout_of_the_labels(module):
    data, sizes = small_case(module)

    def predict(key):
        prior = numpyro.infer.Predictive(module.model, num_samples=2)
        drawn = prior(key, unseen(data), **sizes)
        params = {name: value for name, value in drawn.items() if name in known}
        posterior = numpyro.infer.Predictive(module.model, params)
        terms = numpyro.infer.log_likelihood(module.model, params, data, **sizes)
        return drawn["labels"], posterior(key, unseen(data), **sizes)["labels"], terms

    trace = trace_of(module.model, data, sizes)
    known = {
        name for name, site in trace.items() if site["type"] == "sample" and not site["is_observed"]
    }
    assert "labels" not in known
    prior, posterior, terms = jax.eval_shape(predict, jax.random.key(0))
    for drawn in (prior, posterior):
        assert (drawn.shape, drawn.dtype) == ((2, 12), values_of(data).dtype)
    # one term per item
    assert all(term.shape == (2, 4) for term in terms.values())
    assert set(terms) == {"labels", "gold" if module in CROWDS else "target"}


def test_handlers_treat_the_labels_as_any_other_site(module):
    handlers, model = numpyro.handlers, module.model
    data, sizes = small_case(module)
    site = trace_of(model, data, sizes)["labels"]
    assert site["is_observed"]
    assert site["value"] is values_of(data)
    assert (site["fn"].batch_shape, site["fn"].event_shape) == ((4,), (12,))
    assert not trace_of(model, unseen(data), sizes)["labels"]["is_observed"]
    conditioned = handlers.condition(model, data={"labels": values_of(data)})
    site = trace_of(conditioned, unseen(data), sizes)["labels"]
    assert site["is_observed"]
    assert site["value"] is values_of(data)
    assert trace_of(handlers.scale(model, scale=2.0), data, sizes)["labels"]["scale"] == 2.0
    assert "labels" not in trace_of(handlers.block(model, hide=["labels"]), data, sizes)
    lines = numpyro.util.format_shapes(trace_of(model, data, sizes))
    assert re.search(r"labels dist +4 \| 12", lines)


@pytest.mark.parametrize("module", [one_coin, naive_bayes], ids=name_of)
def test_log_likelihood_adds_up_to_the_density_and_a_mask_takes_items_out(module):
    data, sizes = small_case(module)
    params = params_of(module, seed=7)
    at = Case(module, params, None, data, sizes).sites(params)
    mask = jnp.array([True, False, True, False])

    @jax.jit
    def run(at):
        samples = jax.tree.map(lambda site: site[None], at)
        terms = numpyro.infer.log_likelihood(module.model, samples, data, **sizes)
        total, trace = log_density(module.model, (data,), sizes, at)
        prior = sum(trace[name]["fn"].log_prob(value).sum() for name, value in at.items())

        fn = trace["labels"]["fn"]
        masked = fn.mask(mask).log_prob(values_of(data)), fn.mask(False).log_prob(values_of(data))
        return total - prior, {name: term[0] for name, term in terms.items()}, masked

    likelihood, terms, (masked, nothing) = run(at)
    # float32 sums of a dozen numbers, and the density of the parameters taken off again
    np.testing.assert_allclose(sum(term.sum() for term in terms.values()), likelihood, atol=1e-4)
    log_joint = module.label_log_joint(params, data, n_items=4)
    np.testing.assert_allclose(sum(terms.values()), logsumexp(log_joint, axis=1), rtol=1e-5)
    np.testing.assert_allclose(masked, jnp.where(mask, terms["labels"], 0.0), rtol=1e-5)
    np.testing.assert_array_equal(nothing, np.zeros(4))


def test_labels_that_do_not_exist_have_no_density():
    data, sizes = small_case(one_coin)
    fn = trace_of(one_coin.model, data, sizes)["labels"]["fn"]
    assert fn.support(data.label)
    assert not fn.support(data.label.at[0].set(-1))
    assert not fn.support(data.label.at[0].set(3))
    data, sizes = small_case(naive_bayes)
    # the second feature has two values only
    support = trace_of(naive_bayes.model, data, sizes)["labels"]["fn"].support
    assert support.base_constraint.upper_bound.shape == (12,)


def test_labels_that_do_not_exist_are_warned_about():
    params = one_coin.Params(jnp.array([0.4, 0.6]), jnp.array([0.7]))
    data = one_coin.Labels(jnp.array([0, 1]), jnp.array([0, 0]), jnp.array([1, 2]))
    at = numpyro.handlers.substitute(one_coin.model, data=params._asdict())
    trace = numpyro.handlers.trace(at).get_trace(data, n_items=2, n_workers=1, n_classes=2)
    fn = trace["labels"]["fn"]
    with pytest.warns(UserWarning, match="Out-of-support values"):
        assert not np.isfinite(fn.log_prob(data.label)).any()
    with numpyro.validation_enabled(False):
        assert np.isfinite(type(fn).log_prob(fn, jnp.array([1, 1]))).all()


def test_unseen_labels_cannot_be_sampled_by_nuts():
    data, sizes = small_case(one_coin)
    with pytest.raises(RuntimeError, match="SummedOut distribution at site labels does not"):
        numpyro.infer.NUTS(one_coin.model).init(jax.random.key(0), 1, None, (unseen(data),), sizes)
