"""What a model says of each judgement from all others: predictions, and the weights to make them.

Judgements of one item depend on each other through its hidden class. A judgement is therefore left
out of its item: with the other judgements of the item y_{-j} and parameters theta,

    p(y_j | y_{-j}, theta) = p(y_j, y_{-j} | theta) / p(y_{-j} | theta),

hidden classes summed out in both. Its inverse weighs the draws of the posterior as if the judgement
had not been seen (A. Gelfand, D. Dey and H. Chang (1992), "Model determination using predictive
distributions", Bayesian Statistics 4; smoothed by PSIS, A. Vehtari, A. Gelman and J. Gabry (2017),
Statistics and Computing 27), and it is the distribution from which the judgement is predicted: by
an item whose class the other judgements tell, not by a new item.

Where the model is right, a judgement's place in its prediction, its LOO-PIT, is uniform. Labels are
discrete, so that their places have gaps; each label, observed or predicted, is therefore spread
evenly over the interval from its code to the next, which fills the gaps and leaves the places
uniform (C. Czado, T. Gneiting and L. Held (2009), "Predictive model assessment for count data",
Biometrics 65, section 2). It does not matter in which order the classes come.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from bayescrowd import models
from bayescrowd.checks.parameters import Count, Seed, validate_arguments
from bayescrowd.posterior.container import (
    Container,
    assemble,
    dataset_of,
    group_of,
    leave_one_out_places,
)

__all__ = ["loo_pit", "loo_pit_data", "outcome_log_probability"]


@validate_arguments
def loo_pit(
    post: Container, *, draws: Count = 400, seed: Seed = 0
) -> Float[np.ndarray, " judgement"]:
    """Where each label lies among its predictions from the other labels, from 0 to 1.

    If the model is right, the places are uniform. Those of one task depend on each other a little.
    `bayescrowd.plots.loo_pit` draws them.

    Args:
        post: the result of `sample_posterior` or of a policy's `posterior`.
        draws: number of draws to use, of all chains together; all if there are fewer.
        seed: seed of the predictions.

    Returns:
        A place for each judgement, in the order of the data.

    Raises:
        ValueError: the draws are not those of a model of labels or features.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(30, 5, accuracy=0.8, seed=0)
        >>> post = bc.sample_posterior(
        ...     "one_coin", crowd.annotations, chains=2, draws=50, warmup=10, log_likelihood=False
        ... )
        >>> places = bc.loo_pit(post)
        >>> places.shape, bool((places >= 0).all() and (places <= 1).all())
        ((150,), True)
    """
    data = loo_pit_data(post, draws=draws, seed=seed)
    places = leave_one_out_places(data, "label")
    # Among L predictions an observation has one of L + 1 ranks, all as probable: the rank of a
    # place, spread over its share of the unit interval, is uniform for few predictions as well.
    predicted = group_of(data, "posterior_predictive")["label"]
    n_predicted = predicted.sizes["chain"] * predicted.sizes["draw"]
    spread = np.random.default_rng(seed).random(len(places))
    return (places * n_predicted + spread) / (n_predicted + 1)


@validate_arguments
def loo_pit_data(post: Container, *, draws: Count = 400, seed: Seed = 0) -> Container:
    """What `arviz.plot_loo_pit` and `arviz.loo_pit` need, judgement by judgement.

    `loo_pit` gives the places themselves, and `bayescrowd.plots.loo_pit` draws them.

    The container of `sample_posterior` has the log-likelihood of each task, which is what `compare`
    leaves out, and predictions of new tasks. A check of single judgements needs, with as many draws
    of both, the log-likelihood of each judgement given the other judgements of its task, and
    predictions given these. They take (4 + 4) bytes for each draw and judgement, and are made here
    for evenly spaced draws.

    Args:
        post: the result of `sample_posterior`.
        draws: number of draws to use, of all chains together; all if there are fewer.
        seed: seed of the predictions.

    Returns:
        A container with the groups posterior, log_likelihood, posterior_predictive and
        observed_data, the last three with the variable `label`. A label is its code plus a random
        number between 0 and 1, in the predictions as well; see `bayescrowd.posterior.leave_one_out`
        for the reason.

    Raises:
        ValueError: the draws are not those of a model of labels or features.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import group_of
        >>> crowd = bc.simulate.crowd(30, 5, accuracy=0.8, seed=0)
        >>> post = bc.sample_posterior(
        ...     "one_coin", crowd.annotations, chains=2, draws=50, warmup=10, log_likelihood=False
        ... )
        >>> data = bc.loo_pit_data(post)
        >>> dict(group_of(data, "log_likelihood")["label"].sizes)
        {'chain': 2, 'draw': 50, 'judgement': 150}

        `arviz.plot_loo_pit(data)` draws them with ArviZ 1.x, and with ArviZ 0.x
        `arviz.plot_loo_pit(data, y="label", ecdf=True)`.
    """
    posterior = group_of(post, "posterior")
    per_chain = min(posterior.sizes["draw"], -(-draws // posterior.sizes["chain"]))
    chosen = np.linspace(0, posterior.sizes["draw"] - 1, per_chain).astype(int)
    posterior = posterior.isel(draw=chosen)
    model = _model_of(post)
    data, params, n_items, n_outcomes = (
        _crowd_case(post, posterior, model)
        if model.FACTS.subject == "labels"
        else _feature_case(post, posterior, model)
    )
    item = _items_of(data)
    shape = (posterior.sizes["chain"], per_chain, len(item))
    flat = {
        name: jnp.asarray(field.reshape(-1, *field.shape[2:]), jnp.result_type(float))
        for name, field in params.items()
    }
    observed = np.asarray(_labels_of(data))
    rng = np.random.default_rng(seed)
    log_likelihood, drawn = _at_draws(
        rng.random((shape[0] * shape[1], shape[2]), dtype=np.float32),
        flat,
        data,
        jnp.asarray(_ranks(item)),
        model=model,
        n_items=n_items,
        n_outcomes=n_outcomes,
        n_ranks=int(np.bincount(item).max()),
    )
    dims = ("chain", "draw", "judgement")
    predicted = np.asarray(drawn).reshape(shape) + rng.random(shape, dtype=np.float32)
    spread = observed + rng.random(len(observed), dtype=np.float32)
    coords = {"draw": posterior.indexes["draw"]}
    groups = {
        "posterior": posterior,
        "log_likelihood": dataset_of(
            {"label": (dims, np.asarray(log_likelihood).reshape(shape))}, coords=coords
        ),
        "posterior_predictive": dataset_of({"label": (dims, predicted)}, coords=coords),
        "observed_data": dataset_of({"label": (("judgement",), spread)}),
    }
    return assemble(groups, attrs=post.attrs)


def outcome_log_probability(
    params: Any,
    data: Any,
    rank: Int[Array, " judgement"],
    *,
    model: ModuleType,
    n_items: int,
    n_outcomes: int,
    n_ranks: int,
) -> Float[Array, "judgement outcome"]:
    """Log probability of every possible label of a judgement, given the item's other judgements.

    The first judgements of all items are left out together, then the second ones, and so on, each
    with every label in its place: `n_ranks` times `n_outcomes` evaluations of the model's
    `label_log_joint`, which is all that is asked of a model.

    Args:
        params: the model's `Params`.
        data: the model's `Labels` or `Observations`.
        rank: number of judgements of the same item before this one.
        model: a module of `bayescrowd.models`.
        n_items: number of items.
        n_outcomes: number of labels that a judgement can have.
        n_ranks: largest number of judgements of an item.
    """
    item, label = _items_of(data), _labels_of(data)

    def log_density(of_rank: Any, outcome: Any) -> Float[Array, " item"]:
        changed = jnp.where(rank == of_rank, outcome, label)
        log_joint = model.label_log_joint(params, _with_labels(data, changed), n_items=n_items)
        return logsumexp(log_joint, axis=-1)

    pairs = jnp.divmod(jnp.arange(n_ranks * n_outcomes), n_outcomes)
    table = jax.lax.map(lambda pair: log_density(*pair), pairs).reshape(n_ranks, n_outcomes, -1)
    return jax.nn.log_softmax(table[rank, :, item], axis=-1)


@partial(jax.jit, static_argnames=("model", "n_items", "n_outcomes", "n_ranks"))
def _at_draws(
    uniforms: Float[Array, "draw judgement"],
    params: dict[str, Array],
    data: Any,
    rank: Int[Array, " judgement"],
    *,
    model: ModuleType,
    n_items: int,
    n_outcomes: int,
    n_ranks: int,
) -> tuple[Float[Array, "draw judgement"], Int[Array, "draw judgement"]]:
    """Log-likelihood of each judgement at each draw, and a prediction of it."""

    def at_draw(case: tuple[Array, dict[str, Array]]) -> tuple[Array, Array]:
        uniform, fields = case
        log_probability = outcome_log_probability(
            model.Params(**fields),
            data,
            rank,
            model=model,
            n_items=n_items,
            n_outcomes=n_outcomes,
            n_ranks=n_ranks,
        )
        label = _labels_of(data)
        below = jnp.cumsum(jnp.exp(log_probability), axis=-1)
        # a sum of probabilities may round to less than the uniform number
        drawn = jnp.minimum(
            (uniform[:, None] * below[:, -1:] >= below).sum(axis=-1), n_outcomes - 1
        )
        return log_probability[jnp.arange(len(label)), label], drawn

    return jax.lax.map(at_draw, (uniforms, params))


def _crowd_case(
    post: Container, posterior: xr.Dataset, model: ModuleType
) -> tuple[Any, dict[str, np.ndarray], int, int]:
    """Labels of a crowd, the parameters at each draw, and the numbers of items and classes."""
    codes, observed = group_of(post, "constant_data"), group_of(post, "observed_data")
    labels = model.Labels(
        *(
            jnp.asarray(group[name].to_numpy(), jnp.int32)
            for group, name in ((codes, "task_code"), (codes, "worker_code"), (observed, "label"))
        )
    )
    if "gold_code" in codes:
        labels = labels._replace(gold=jnp.asarray(codes["gold_code"].to_numpy(), jnp.int32))
    params = {name: posterior[name].to_numpy() for name in model.Params._fields}
    n_items = group_of(post, "label_posterior").sizes["task"]
    return labels, params, n_items, posterior.sizes["cls"]


def _feature_case(
    post: Container, posterior: xr.Dataset, model: ModuleType
) -> tuple[Any, dict[str, np.ndarray], int, int]:
    """Observations of features, the tables at each draw, and the numbers of items and values."""
    codes, observed = group_of(post, "constant_data"), group_of(post, "observed_data")
    task, feature = (codes[name].to_numpy() for name in ("task_code", "feature_code"))
    target, label = (
        jnp.asarray(group[name].to_numpy())
        for group, name in ((codes, "target_code"), (observed, "label"))
    )
    of_feature, _ = pd.factorize(posterior["feature"].to_numpy())
    of_value = pd.Series(of_feature).groupby(of_feature).cumcount().to_numpy()
    n_features, n_values = int(of_feature.max()) + 1, int(of_value.max()) + 1
    flat = posterior["conditional"].transpose("chain", "draw", "cls", "feature_value").to_numpy()
    conditional = np.zeros((*flat.shape[:3], n_features, n_values), dtype=flat.dtype)
    conditional[..., of_feature, of_value] = flat
    params = {
        "prevalence": posterior["prevalence"].to_numpy(),
        "conditional": conditional.swapaxes(2, 3),
    }
    if "group_code" not in codes:
        observations = model.Observations(
            target, jnp.asarray(task), jnp.asarray(feature), value=label
        )
        return observations, params, len(target), n_values
    # readings may be numbered in any order
    reading, _ = pd.factorize(pd.Index(task.astype(np.int64) * n_features + feature))
    place = np.unique(reading, return_index=True)[1]
    answers = np.repeat(np.bincount(of_feature), np.bincount(of_feature))
    feature_of, value_of = np.repeat(of_feature, answers), np.repeat(of_value, answers)
    observed_of = np.concatenate([np.arange(n) for n in answers])
    flat = posterior["confusion"].transpose("chain", "draw", "group", "answer").to_numpy()
    confusion = np.zeros((*flat.shape[:3], n_features, n_values, n_values), dtype=flat.dtype)
    confusion[..., feature_of, value_of, observed_of] = flat
    params["confusion"] = confusion.swapaxes(2, 3)
    observations = model.Observations(
        target,
        *(jnp.asarray(codes) for codes in (task[place], feature[place], reading)),
        jnp.asarray(codes["group_code"].to_numpy()),
        label,
    )
    return observations, params, len(target), n_values


def _model_of(post: Container) -> ModuleType:
    """The model whose draws these are."""
    name = post.attrs.get("model")
    if name not in models.__all__:
        raise ValueError(
            f"the draws are of the model {name}; expected one of {', '.join(models.__all__)}"
        )
    model: ModuleType = getattr(models, name)
    return model


def _items_of(data: Any) -> Int[Array, " judgement"]:
    """Item of each judgement."""
    item: Array = data.item[data.reading] if hasattr(data, "reading") else data.item
    return item


def _labels_of(data: Any) -> Int[Array, " judgement"]:
    """What was answered."""
    label: Array = data.value if hasattr(data, "value") else data.label
    return label


def _with_labels(data: Any, label: Int[Array, " judgement"]) -> Any:
    return data._replace(**{"value" if hasattr(data, "value") else "label": label})


def _ranks(item: Int[np.ndarray, " judgement"] | Array) -> Int[np.ndarray, " judgement"]:
    """Number of judgements of the same item before each one."""
    codes = np.asarray(item)
    return pd.Series(codes).groupby(codes).cumcount().to_numpy(np.int32)
