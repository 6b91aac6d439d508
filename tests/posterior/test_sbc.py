"""Samplers are calibrated on what NumPy draws from the models' priors.

Small versions of simulation-based calibration; `benchmarks/calibration.py` has the full ones. The
simulators below are second implementations of the models, which compile nothing.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayescrowd.models import (
    access_path,
    dawid_skene,
    hierarchical_dawid_skene,
    item_difficulty,
    mace,
    naive_bayes,
    one_coin,
    task_subtypes,
)
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior import calibration
from bayescrowd.posterior.calibration import Simulated
from bayescrowd.posterior.gibbs import Gibbs
from bayescrowd.posterior.nuts import nuts_kernel

LEVEL = 1e-3
"""Level of each test; all models make 60, so that one key in 17 would fail somewhere."""

N_SIMULATIONS, N_DRAWS = 128, 15


class Small(NamedTuple):
    """A sampler, who it is asked about, and a prior that its data are not drawn from."""

    kernel: Any
    case: calibration.Case
    thin: int
    wrong: Any


WRONG_PRIORS = {
    dawid_skene: {"accuracy": 0.85},
    one_coin: {"accuracy": 0.85},
    mace: {"knowing": 3.0},
    hierarchical_dawid_skene: {"accuracy": 0.85},
    task_subtypes: {"accuracy": 0.85},
    naive_bayes: {"conditional": 6.0},
    access_path: {"conditional": 6.0},
    item_difficulty: {"ability": 3.0},
}
"""The models that are simulated below, each with a prior that its data are not drawn from."""


def small(model):
    """Crowds of three workers and six items, or tables of two features and twelve items."""
    prior = model.Prior(**WRONG_PRIORS[model])
    if model is item_difficulty:
        case = calibration.crowd_case(model, n_items=3, n_workers=3, n_classes=3)
        return Small(nuts_kernel(model), case, thin=4, wrong=prior)
    case, _, _ = calibration.standard_case(model)
    if case.is_known is None:
        case = calibration.crowd_case(model, n_items=6, n_workers=3)
    thins = {mace: 30, hierarchical_dawid_skene: 15, access_path: 15, task_subtypes: 15}
    thin = thins.get(model, 10)
    return Small(Gibbs(model), case, thin, prior)


# The models in NumPy


def categories(rng, probability):
    """One category per row."""
    cumulative = probability.cumsum(axis=-1)
    u = rng.random(probability.shape[:-1]) * cumulative[..., -1]
    return (u[..., None] > cumulative[..., :-1]).sum(axis=-1)


def dirichlet(rng, concentration):
    """One draw per row; outcomes of concentration zero have probability zero."""
    gamma = rng.gamma(concentration)
    return gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), 1e-30)


def rows(n_classes, n_pseudo_labels, accuracy):
    wrong = n_pseudo_labels * (1 - accuracy) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), n_pseudo_labels * accuracy, wrong)


def drawn_params(rng, model, sizes):
    """Parameters by name, drawn from the default prior."""
    n, prior = N_SIMULATIONS, model.Prior()
    n_classes = sizes.n_classes
    params = {"prevalence": dirichlet(rng, np.full((n, n_classes), prior.prevalence))}
    if model in (naive_bayes, access_path):
        has_value = np.arange(max(sizes.n_values)) < np.array(sizes.n_values)[:, None]
        of_value = np.where(has_value, prior.conditional, 0.0)[:, None]
        of_value = np.broadcast_to(of_value, (n, len(has_value), n_classes, has_value.shape[1]))
        params["conditional"] = dirichlet(rng, of_value)
    if model is access_path:
        both = has_value[:, None, :, None] & has_value[:, None, None, :]
        of_label = np.where(both, np.where(np.eye(has_value.shape[1]), prior.right, prior.wrong), 0)
        params["confusion"] = dirichlet(rng, np.repeat([np.repeat(of_label, 2, axis=1)], n, axis=0))
    if model in (naive_bayes, access_path):
        return params
    n_workers = sizes.n_workers
    if model is one_coin:
        right = prior.n_pseudo_labels * prior.accuracy
        params["accuracy"] = rng.beta(right, prior.n_pseudo_labels - right, (n, n_workers))
    if model is mace:
        params["competence"] = rng.beta(prior.knowing, prior.spamming, (n, n_workers))
        params["strategy"] = dirichlet(rng, np.full((n, n_workers, n_classes), prior.strategy))
    if model is item_difficulty:
        ability, easiness = rng.normal(size=(n, n_workers)), rng.normal(size=(n, sizes.n_items))
        params["ability"] = prior.ability + prior.ability_scale * ability
        params["log_easiness"] = prior.log_easiness + prior.log_easiness_scale * easiness
    if model is dawid_skene:
        concentration = rows(n_classes, prior.n_pseudo_labels, prior.accuracy)
        params["confusion"] = dirichlet(rng, np.tile(concentration, (n, n_workers, 1, 1)))
    if model is hierarchical_dawid_skene:
        concentration = rows(n_classes, prior.n_pseudo_labels, prior.accuracy)
        crowd = params["crowd"] = dirichlet(rng, np.tile(concentration, (n, 1, 1)))
        scale = prior.log_strength_scale
        strength = params["strength"] = rng.lognormal(np.log(prior.strength), scale, (n, n_classes))
        around = (strength[:, :, None] * crowd)[:, None]
        params["confusion"] = dirichlet(rng, np.repeat(around, n_workers, axis=1))
    if model is task_subtypes:
        n_subtypes = task_subtypes.N_SUBTYPES
        own = rows(n_classes, prior.n_pseudo_labels, prior.accuracy)
        of_subtype = rows(n_classes, prior.shared_pseudo_labels, prior.accuracy)[:, None]
        params["weight"] = rng.gamma(prior.share, size=(n, n_classes, n_subtypes))
        shared = np.tile(np.repeat(of_subtype, n_subtypes, axis=1), (n, 1, 1, 1))
        shared = params["shared"] = dirichlet(rng, shared)
        confusion = params["confusion"] = dirichlet(rng, np.tile(own, (n, n_workers, 1, 1)))
        around = prior.own_strength * confusion[:, :, :, None]
        around = around + prior.shared_strength * shared[:, None]
        params["subtype_confusion"] = dirichlet(rng, around)
    return params


def answer_probability(model, params, item, worker, n_classes):
    """Probability of each answer under each true class, [simulation, label, cls, observed]."""
    is_right = np.eye(n_classes, dtype=bool)
    if "confusion" in params:
        return params["confusion"][:, worker]
    if model is mace:
        knows = params["competence"][:, worker, None, None]
        return knows * is_right + (1 - knows) * params["strategy"][:, worker, None, :]
    if model is one_coin:
        right = params["accuracy"][:, worker]
    else:
        ability, easiness = params["ability"][:, worker], np.exp(params["log_easiness"])[:, item]
        right = 1 / (1 + np.exp(-ability * easiness))
    right = right[..., None, None]
    return np.where(is_right, right, (1 - right) / (n_classes - 1))


def simulate_all(seed, model, case):
    """Parameters and data of all simulations."""
    rng = np.random.default_rng(seed)
    design = [np.asarray(codes) for codes in case.design]
    params = drawn_params(rng, model, case.sizes)
    each = np.arange(N_SIMULATIONS)[:, None]
    prevalence = np.repeat(params["prevalence"][:, None], case.sizes.n_items, axis=1)
    truth = categories(rng, prevalence)
    if model is task_subtypes:
        item, worker = design
        subtype = categories(rng, params["weight"][each, truth])
        given = params["subtype_confusion"][each, worker, truth[:, item], subtype[:, item]]
        data = Labels(*together(item, worker), categories(rng, given))
    elif case.is_known is None:
        item, worker = design
        given = answer_probability(model, params, item, worker, case.sizes.n_classes)
        label = categories(rng, given[each, np.arange(len(item)), truth[:, item]])
        data = Labels(*together(item, worker), label)
    else:
        item, feature, *labelling = design
        target = np.where(case.is_known, truth, -1)
        value = categories(rng, params["conditional"][each, feature, truth[:, item]])
        data = naive_bayes.Observations(target, *together(item, feature), value)
        if labelling:
            reading, group = labelling
            given = params["confusion"][each, feature[reading], group, value[:, reading]]
            answers = (*together(item, feature, reading, group), categories(rng, given))
            data = access_path.Observations(target, *answers)
    fields = {name: jnp.asarray(field, dtype=jnp.float32) for name, field in params.items()}
    return Simulated(model.Params(**fields), jax.tree.map(jnp.asarray, data))


def together(*codes):
    return [np.tile(one, (N_SIMULATIONS, 1)) for one in codes]


# The tests


@pytest.mark.parametrize("model", WRONG_PRIORS)
def test_samplers_are_calibrated_and_those_with_a_wrong_prior_are_not(model):
    kernel, case, thin, wrong = small(model)
    data = simulate_all(7, model, case)
    right, control = (
        calibration.calibrate(
            jax.random.key(7),
            kernel,
            case,
            data,
            n_draws=N_DRAWS,
            warmup=60,
            thin=thin,
            prior=prior,
        )
        for prior in (model.Prior(), wrong)
    )
    fields = [name.partition("[")[0] for name in right.quantities]
    assert fields == [*model.Params._fields, "log_likelihood"]
    p_values = calibration.chi_square_p_values(right)
    assert (p_values > LEVEL).all(), dict(zip(right.quantities, p_values, strict=True))
    assert not calibration.is_outside(right, level=LEVEL).any()
    # beside the -1 / n_draws of independent draws
    assert (right.autocorrelation < 0.05).all(), right.autocorrelation
    assert (calibration.chi_square_p_values(control) < LEVEL).any()
    assert calibration.is_outside(control, level=LEVEL).any()
