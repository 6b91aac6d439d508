"""Containers of posterior draws given purchases: of the package's models, and of a user's own.

`sample_posterior` draws from the models of the package. Three things are then as `purchases` says:
the classes' probabilities are those of the policy, and log-likelihoods and predictions are of the
labels given the class. A feature's tables are read off the container's flat ones, where the pairs
of a feature and a value follow each other.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from numpyro.infer import MCMC, NUTS, init_to_median, log_likelihood

from bayescrowd import models
from bayescrowd.budgeted.beliefs.drawn_tables import LEAST, read_tables
from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler
from bayescrowd.budgeted.purchases import Purchases
from bayescrowd.posterior.chains import FeatureSizes, ReadingSizes
from bayescrowd.posterior.container import IS_FIXED, assemble, dataset_of, group_names, group_of

__all__ = ["posterior_of"]


N_WARMUP = 1_000
"""Default number of draws that the chains of a user's own model discard."""


class _Options(NamedTuple):
    """How to draw; see `Policy.posterior`."""

    chains: int
    draws: int
    warmup: int | None
    seed: int
    progress: bool


class _Tables(NamedTuple):
    """Draws of one feature's tables."""

    conditional: Float[np.ndarray, "chain draw cls value"]
    """P(value | class)."""
    confusion: Float[np.ndarray, "chain draw group value label"] | None
    """P(label | value); None where values are read without noise."""


def posterior_of(
    purchases: Purchases,
    *,
    chains: int,
    draws: int,
    warmup: int | None,
    method: Literal["gibbs", "nuts"] | None,
    seed: int,
    progress: bool,
) -> Any:
    """Draws of the NumPyro model given the purchases; see `Policy.posterior`."""
    if not purchases.bought:
        raise ValueError("nothing has been learned yet: no query has all its answers")
    how = _Options(chains, draws, warmup, seed, progress)
    if not isinstance(purchases.sampler, ModelSampler):
        return _draws_of_model(purchases, method, how)
    if method == "gibbs":
        raise ValueError("method='gibbs': a model of your own is drawn from by 'nuts'")
    return _draws_of_own_model(purchases, purchases.sampler, how)


def _draws_of_model(
    purchases: Purchases, method: Literal["gibbs", "nuts"] | None, how: _Options
) -> Any:
    """Draws of naive Bayes or of the access path model given the purchases."""
    from bayescrowd.posterior.sample import sample_posterior

    coded = purchases.coded()
    post = sample_posterior(
        getattr(models, purchases.model),
        coded,
        method,
        **how._asdict(),
        prior=purchases.prior,
    )
    groups = {name: group_of(post, name) for name in group_names(post)}
    rng = np.random.default_rng(how.seed)
    for name in ("posterior", "prior"):
        shape = groups[name]["prevalence"].shape
        # the prior of open probabilities is the model's, before any instance is known
        if name == "posterior" or purchases.space.class_counts is None:
            drawn = purchases.draw_class_prior(rng, shape[0] * shape[1]).reshape(shape)
            dims = groups[name]["prevalence"].dims
            known = {} if purchases.space.class_counts is not None else {IS_FIXED: 1}
            groups[name] = groups[name].assign(prevalence=(dims, drawn, known))
    of_labels = _log_likelihood(purchases, coded, groups["posterior"])
    groups["log_likelihood"] = dataset_of(
        {"labels": (("chain", "draw", "task"), of_labels)}, coords={"task": coded.tasks}
    )
    total = (("chain", "draw"), of_labels.sum(axis=-1))
    # the sampler's own density includes the classes' probabilities, which are not its draws
    statistics = groups["sample_stats"].drop_vars("lp", errors="ignore")
    groups["sample_stats"] = statistics.assign(marginal_log_likelihood=total)
    for name, source in (("posterior_predictive", "posterior"), ("prior_predictive", "prior")):
        chosen = groups[name]["draw"].to_numpy()
        said = _predicted(rng, purchases, coded, groups[source].sel(draw=chosen))
        groups[name] = groups[name].assign(label=(("chain", "draw", "judgement"), said))
    return _assembled(purchases, groups, post.attrs)


def _draws_of_own_model(purchases: Purchases, sampler: ModelSampler, how: _Options) -> Any:
    """NUTS draws of a user's own model given the purchases: its sites, and the channel."""
    coded = purchases.coded()
    space, n_items = purchases.space, len(coded.tasks)
    sizes: FeatureSizes | ReadingSizes = FeatureSizes(n_items, space.n_classes, space.n_values)
    if purchases.is_noisy:
        sizes = ReadingSizes(n_items, 1, space.n_classes, space.n_values)
    arguments = sizes._asdict()
    chain = MCMC(
        NUTS(sampler.model, init_strategy=init_to_median),
        num_warmup=N_WARMUP if how.warmup is None else how.warmup,
        num_samples=how.draws,
        num_chains=how.chains,
        chain_method="vectorized",
        progress_bar=how.progress,
    )
    fields = ("energy", "num_steps", "accept_prob", "potential_energy")
    chain.run(jax.random.key(how.seed), coded.observations, extra_fields=fields, **arguments)
    sites = chain.get_samples(group_by_chain=True)
    extra = chain.get_extra_fields(group_by_chain=True)
    variables = {
        name: (("chain", "draw", *(f"{name}_dim_{k}" for k in range(values.ndim - 2))), values)
        for name, values in sites.items()
        if name != "channel"
    }
    channel = jax.vmap(jax.vmap(lambda site: _channel(sampler, site, sizes)))(sites)
    variables["channel"] = (("chain", "draw", "feature", "cls", "outcome"), channel)
    coords = {"feature": coded.features, "cls": coded.classes}
    names = {"energy": "energy", "n_steps": "num_steps", "acceptance_rate": "accept_prob"}
    statistics = {name: (("chain", "draw"), extra[field]) for name, field in names.items()}
    statistics["diverging"] = (("chain", "draw"), extra["diverging"])
    statistics["lp"] = (("chain", "draw"), -extra["potential_energy"])
    judgement = ("judgement",)
    groups = {
        "posterior": dataset_of(variables, coords=coords),
        "sample_stats": dataset_of(statistics),
        "observed_data": dataset_of({"label": (judgement, np.asarray(coded.observations[-1]))}),
        "constant_data": dataset_of(
            {
                "target_code": (("task",), purchases.target),
                "task_code": (judgement, coded.task_code),
                "feature_code": (judgement, coded.feature_code),
                "worker_code": (judgement, coded.worker_code),
            },
            coords={"task": coded.tasks},
        ),
    }
    flat = chain.get_samples()
    pointwise = log_likelihood(sampler.model, flat, coded.observations, **arguments)
    # of a factor there is the sum alone, of which nothing can be left out
    pointwise = {name: values for name, values in pointwise.items() if np.ndim(values) > 1}
    if pointwise:
        groups["log_likelihood"] = dataset_of(
            {
                name: (
                    ("chain", "draw", *(f"{name}_dim_{k}" for k in range(values.ndim - 1))),
                    np.asarray(values).reshape(how.chains, how.draws, *values.shape[1:]),
                )
                for name, values in pointwise.items()
            }
        )
    return _assembled(purchases, groups, {"method": "nuts", "seed": how.seed, "is_complete": 1})


def _channel(sampler: ModelSampler, site: Any, sizes: Any) -> Any:
    """P(outcome | class) of one draw, or P(label | class) if the model states tables."""
    if sampler.channels is not None:
        return sampler.channels(site)
    tables = read_tables(site)
    if not isinstance(sizes, ReadingSizes):
        return tables["conditional"]
    confusion = tables["confusion"]
    confusion = confusion.mean(axis=1) if confusion.ndim == 4 else confusion
    return jnp.einsum("fcz,fzx->fcx", tables["conditional"], confusion)


def _assembled(purchases: Purchases, groups: dict[str, xr.Dataset], found: dict[str, Any]) -> Any:
    attrs = {**purchases.settings, **found, "model": purchases.model}
    attrs["seed_of_policy"] = purchases.settings["seed"]
    return assemble(
        {name: group.assign_attrs(attrs) for name, group in groups.items()}, attrs=attrs
    )


def _tables_of(data: Any, draws: xr.Dataset) -> list[_Tables]:
    """The tables of every feature from a container's group."""
    widths = np.array(data.n_values)
    first, first_answer = (np.cumsum(sizes) - sizes for sizes in (widths, widths**2))
    conditional = draws["conditional"].transpose("chain", "draw", "cls", "feature_value").to_numpy()
    confusion = None
    if "confusion" in draws:
        confusion = draws["confusion"].transpose("chain", "draw", "group", "answer").to_numpy()
    found = []
    for v, start, answer in zip(widths, first, first_answer, strict=True):
        rows = None
        if confusion is not None:
            rows = confusion[..., answer : answer + v * v]
            rows = rows.reshape(*rows.shape[:3], v, v)
        found.append(_Tables(conditional[..., start : start + v], rows))
    return found


def _labels_of(data: Any) -> list[tuple[Int[np.ndarray, " label"], ...]]:
    """Places of each item's labels among all, the labels, and their groups."""
    label = np.asarray(data.observations[-1])
    group = np.asarray(getattr(data.observations, "group", np.zeros(len(label), int)))
    places = np.split(np.arange(len(label)), np.flatnonzero(np.diff(data.task_code)) + 1)
    return [(at, label[at], group[at]) for at in places]


def _log_likelihood(
    purchases: Purchases, data: Any, draws: xr.Dataset
) -> Float[np.ndarray, "chain draw task"]:
    """Log P(labels | class) of every observation under every draw."""
    tables = _tables_of(data, draws)
    found = []
    for one, (_, labels, group) in zip(purchases.bought, _labels_of(data), strict=True):
        conditional, confusion = tables[one.feature]
        given_class = conditional[:, :, one.cls]
        if confusion is None:
            found.append(np.log(given_class[:, :, labels[0]] + LEAST))
            continue
        log_given = np.log(confusion[:, :, group, :, labels] + LEAST).sum(axis=0)
        highest = log_given.max(axis=-1)
        total = (given_class * np.exp(log_given - highest[..., None])).sum(axis=-1)
        found.append(np.log(total + LEAST) + highest)
    return np.stack(found, axis=-1).astype(np.float32)


def _predicted(
    rng: np.random.Generator, purchases: Purchases, data: Any, draws: xr.Dataset
) -> Int[np.ndarray, "chain draw judgement"]:
    """Labels of the same features of new instances of the same classes, by the same workers."""
    tables = _tables_of(data, draws)
    shape = (draws.sizes["chain"], draws.sizes["draw"], len(data.task_code))
    said = np.zeros(shape, dtype=np.int64)
    chains, places = np.ogrid[: shape[0], : shape[1]]
    for one, (at, _, group) in zip(purchases.bought, _labels_of(data), strict=True):
        conditional, confusion = tables[one.feature]
        value = _draw(rng, conditional[:, :, one.cls])
        for j, g in zip(at, group, strict=True):
            said[..., j] = value
            if confusion is not None:
                said[..., j] = _draw(rng, confusion[chains, places, g, value])
    return said


def _draw(
    rng: np.random.Generator, probability: Float[np.ndarray, "chain draw value"]
) -> Int[np.ndarray, "chain draw"]:
    above = rng.random((*probability.shape[:2], 1)) > probability.cumsum(axis=-1)[..., :-1]
    return np.asarray(above.sum(axis=-1))
