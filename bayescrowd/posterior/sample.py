"""One call from labels to posterior draws, and from draws to the labels' probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache, partial
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel

from bayescrowd.aggregation.protocol import as_annotations
from bayescrowd.annotations import Annotations
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior import gibbs, nuts
from bayescrowd.posterior.alignment import Alignment, align_chains, complaints, renamed
from bayescrowd.posterior.chains import ReadDraw, Recording, Sizes, run_chains
from bayescrowd.posterior.container import Container, Variable, assemble, dataset_of, group_of

__all__ = ["label_posterior", "sample_posterior"]

Method = Literal["gibbs", "nuts"]

N_PREDICTIVE = 100
"""Draws of labels from the prior and from the posterior, enough for checks at the 1 % level."""

_NAMES = ("Labels", "Params", "Prior", "model", "label_log_joint", "simulate", "simulate_labels")


def sample_posterior(
    model: ModuleType,
    data: Any,
    method: Method = "gibbs",
    *,
    chains: int = 4,
    draws: int = 1000,
    warmup: int | None = None,
    seed: int = 0,
    prior: Any = None,
    init: Literal["votes", "random"] | pd.DataFrame = "votes",
    log_likelihood: bool = True,
    predictive: bool = True,
    progress: bool = True,
) -> Container:
    """Draw from the posterior of a crowd model.

    Args:
        model: a module of `bayescrowd.models` that reads crowd labels.
        data: `Annotations`, or a table with the columns task, worker and label.
        method: 'gibbs' for models with conjugate priors (`dawid_skene`, `one_coin`, `mace`), 'nuts'
            for any.
        chains: number of chains; they share one device.
        draws: draws per chain.
        warmup: draws per chain that are thrown away first; without it 200 for 'gibbs', which has
            nothing to adapt, and 1,000 for 'nuts'.
        seed: makes the result reproducible.
        prior: the model's `Prior`; without it the model's default.
        init: where Gibbs chains start: at classes drawn from the 'votes', at 'random' ones, or at
            ones drawn from a table of probabilities, tasks x classes, such as `probas_` of an
            estimator. Chains that start from the votes all begin in the mode in which the crowd is
            mostly right, and so cannot tell of others; 'random' ones can. NUTS starts at the
            prior means.
        log_likelihood: whether to keep the log-likelihood of each task and draw, which `compare`
            needs and which takes chains x draws x tasks x 4 bytes.
        predictive: whether to draw from the prior and to predict labels, which `check_crowd` needs.
        progress: whether to show a progress bar, where there is a terminal. Ctrl-C ends the
            sampling and returns the draws so far, with a warning.

    Returns:
        ArviZ's container (InferenceData in ArviZ 0.x, DataTree in 1.x) with the dimensions chain,
        draw, task, worker, cls (true class) and observed (class chosen), in the user's ids:

        * posterior: the model's parameters;
        * label_posterior: `probability` of each task's class given its chain's draws, averaged over
          the draws' exact conditionals and hence less noisy than counts of classes;
        * sample_stats: the total `marginal_log_likelihood` and what the sampler reports;
        * alignment: how the classes of each chain were named, see `bayescrowd.posterior.alignment`;
        * log_likelihood: `labels` of each task, its true class summed out;
        * prior, prior_predictive, posterior_predictive: draws from the prior, and labels of new
          tasks drawn from prior and posterior, by as many workers as the tasks had;
        * observed_data, constant_data: codes of each judgement's label, task and worker.

    Raises:
        ValueError: a number is out of range, the model has no sampler of this kind, or the prior
            is no prior.
        TypeError: the model is no crowd model, or the prior belongs to another model.

    Warns:
        UserWarning: chains had to be renamed, classes are not determined by the labels, or the
            run was interrupted.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(30, 5, accuracy=0.9, seed=0)
        >>> model = bc.models.dawid_skene
        >>> post = bc.sample_posterior(model, crowd.annotations, chains=2, draws=50, warmup=10)
        >>> post.posterior["confusion"].dims
        ('chain', 'draw', 'worker', 'cls', 'observed')
        >>> bc.metrics.error_rate(bc.label_posterior(post), crowd.truth) < 0.1
        True
    """
    _check_model(model)
    _check_numbers(method, chains, draws, warmup)
    ann = as_annotations(data)
    problem = _problem(model, ann, _checked_prior(model, prior))
    key_start, key_predict = jax.random.split(jax.random.key(seed))
    kernel, read = _gibbs(model) if method == "gibbs" else _nuts(model)
    n_warmup = warmup if warmup is not None else {"gibbs": 200, "nuts": 1000}[method]
    state = kernel.init(
        jax.random.split(key_start, chains),
        n_warmup,
        _first_probas(init, ann) if method == "gibbs" else None,
        (problem.labels,),
        {**problem.sizes._asdict(), "prior": problem.prior},
    )
    recording = run_chains(
        kernel,
        read,
        state,
        problem.labels,
        problem.sizes,
        problem.prior,
        warmup=n_warmup,
        draws=draws,
        keep_log_likelihood=log_likelihood,
        progress=progress,
        description=method,
    )
    if not recording.is_complete:
        n_drawn = recording.agreement.shape[1]
        warnings.warn(f"interrupted after {n_drawn} of {draws} draws", UserWarning, stacklevel=2)
    alignment = align_chains(recording.agreement, can_rename="confusion" in model.Params._fields)
    for complaint in complaints(alignment):
        warnings.warn(complaint, UserWarning, stacklevel=2)
    attrs = {
        "model": model.__name__.rpartition(".")[2],
        "method": method,
        "seed": seed,
        "is_complete": int(recording.is_complete),
    }
    datasets = _datasets(problem, recording, alignment)
    if predictive:
        key_prior, key_posterior = jax.random.split(key_predict)
        datasets |= _prior_groups(problem, key_prior)
        datasets["posterior_predictive"] = _posterior_predictive(
            problem, datasets["posterior"], key_posterior
        )
    named = {name: dataset.assign_attrs(attrs) for name, dataset in datasets.items()}
    return assemble(named, attrs=attrs)


def label_posterior(post: Container) -> pd.DataFrame:
    """Probability of each task's class, tasks x classes, averaged over all chains.

    Args:
        post: the result of `sample_posterior`.
    """
    probability = group_of(post, "label_posterior")["probability"].mean("chain")
    tasks, classes = (probability.indexes[dim] for dim in ("task", "cls"))
    return pd.DataFrame(
        probability.transpose("task", "cls").to_numpy(),
        index=tasks.rename(None),
        columns=classes.rename(None),
    )


class _Problem(NamedTuple):
    """A model, its data, and the names of its axes."""

    model: ModuleType
    ann: Annotations
    labels: Labels
    sizes: Sizes
    prior: Any
    dims: dict[str, tuple[str, ...]]
    """Names of the axes of each parameter."""

    @property
    def coords(self) -> dict[str, pd.Index]:
        """The user's ids along each axis."""
        ann = self.ann
        return {
            "task": ann.tasks,
            "worker": ann.workers,
            "cls": ann.classes,
            "observed": ann.classes,
        }


def _problem(model: ModuleType, ann: Annotations, prior: Any) -> _Problem:
    labels = Labels(
        *(jnp.asarray(codes) for codes in (ann.task_codes, ann.worker_codes, ann.label_codes))
    )
    sizes = Sizes(n_items=ann.n_tasks, n_workers=ann.n_workers, n_classes=ann.n_classes)
    return _Problem(model, ann, labels, sizes, prior, _dims_of_sites(model, prior))


@cache  # one kernel per model, so that what was compiled for it is found again
def _gibbs(model: ModuleType) -> tuple[MCMCKernel, ReadDraw]:
    return gibbs.Gibbs(model), gibbs.read_draw


def _nuts(model: ModuleType) -> tuple[MCMCKernel, ReadDraw]:
    return nuts.nuts_kernel(model), nuts.read_draw


def _dims_of_sites(model: ModuleType, prior: Any) -> dict[str, tuple[str, ...]]:
    """Names of each parameter's axes, read off the model's plates on a tiny case.

    The prior is checked on the way: NumPyro refuses distributions without a density.
    """
    tiny = Labels(*(jnp.zeros(1, int) for _ in range(3)))
    sizes = {"n_items": 1, "n_workers": 1, "n_classes": 2, "prior": prior}
    try:
        with numpyro.validation_enabled():
            at_means = numpyro.handlers.substitute(model.model, substitute_fn=_mean_of_site)
            trace = numpyro.handlers.trace(at_means).get_trace(tiny, **sizes)
    except ValueError as error:
        raise ValueError(f"prior={prior} gives no distribution: {error}") from error
    return {name: _dims_of_site(trace[name]) for name in model.Params._fields}


def _mean_of_site(site: Mapping[str, Any]) -> Any:
    return site["fn"].mean if site["type"] == "sample" and not site["is_observed"] else None


def _dims_of_site(site: Mapping[str, Any]) -> tuple[str, ...]:
    plates = [frame.name for frame in sorted(site["cond_indep_stack"], key=lambda f: f.dim)]
    # A row of probabilities beside a worker or a true class is one of answers.
    rows = ["observed" if plates else "cls"] * site["fn"].event_dim
    return tuple("task" if name == "item" else name for name in [*plates, *rows])


def _first_probas(init: str | pd.DataFrame, ann: Annotations) -> Float[Array, "item cls"] | None:
    """Probabilities of the classes that chains start from; None leaves them to the kernel."""
    if isinstance(init, pd.DataFrame):
        probas = init.reindex(index=ann.tasks, columns=ann.classes).to_numpy(float)
        if not np.isfinite(probas).all() or (probas < 0).any():
            raise ValueError("init: expected a probability for each task and class of the labels")
        return jnp.asarray(probas)
    if init == "random":
        return jnp.full((ann.n_tasks, ann.n_classes), 1 / ann.n_classes)
    if init == "votes":
        return None
    raise ValueError(f"init={init!r}: expected 'votes', 'random' or a table of probabilities")


def _datasets(
    problem: _Problem, recording: Recording, alignment: Alignment
) -> dict[str, xr.Dataset]:
    """All groups but the predictive ones, classes named by the alignment."""
    params: dict[str, Variable] = {}
    for name, site_dims in problem.dims.items():
        dims = ("chain", "draw", *site_dims)
        params[name] = (dims, renamed(recording.params[name], dims, alignment.naming))
    label_mean = renamed(recording.label_mean, ("chain", "task", "cls"), alignment.naming)
    statistics = dict(recording.statistics)
    statistics["marginal_log_likelihood"] = statistics.pop("log_likelihood")
    ann = problem.ann
    groups: dict[str, dict[str, Variable]] = {
        "posterior": params,
        "label_posterior": {"probability": (("chain", "task", "cls"), label_mean)},
        "sample_stats": {name: (("chain", "draw"), v) for name, v in statistics.items()},
        "alignment": {
            "naming": (("chain", "cls"), alignment.naming),
            "is_renamed": (("chain",), alignment.is_renamed),
            "unstable": (("chain",), alignment.unstable),
            "kappa": (("chain",), alignment.kappa),
        },
        "observed_data": {"label": (("judgement",), ann.label_codes)},
        "constant_data": {
            "task_code": (("judgement",), ann.task_codes),
            "worker_code": (("judgement",), ann.worker_codes),
        },
    }
    if recording.log_likelihood is not None:
        values = recording.log_likelihood
        groups["log_likelihood"] = {"labels": (("chain", "draw", "task"), values)}
    return {name: dataset_of(group, coords=problem.coords) for name, group in groups.items()}


def _prior_groups(problem: _Problem, rng_key: PRNGKeyArray) -> dict[str, xr.Dataset]:
    params, label = _simulate_prior(
        jax.random.split(rng_key, N_PREDICTIVE),
        problem.labels,
        problem.prior,
        model=problem.model,
        sizes=problem.sizes,
    )
    variables = {
        name: (("chain", "draw", *dims), np.asarray(params[name])[None])
        for name, dims in problem.dims.items()
    }
    return {
        "prior": dataset_of(variables, coords=problem.coords),
        "prior_predictive": dataset_of({"label": _label_draws(label[None], problem.ann)}),
    }


def _posterior_predictive(
    problem: _Problem, posterior: xr.Dataset, rng_key: PRNGKeyArray
) -> xr.Dataset:
    """Labels drawn with the parameters of evenly spaced draws."""
    n_chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    per_chain = min(n_draws, -(-N_PREDICTIVE // n_chains))
    chosen = np.linspace(0, n_draws - 1, per_chain).astype(int)
    picked = {
        name: jnp.asarray(posterior[name].to_numpy()[:, chosen]).reshape(
            -1, *posterior[name].shape[2:]
        )
        for name in problem.dims
    }
    label = _simulate_posterior(
        jax.random.split(rng_key, n_chains * per_chain),
        picked,
        problem.labels,
        model=problem.model,
        n_items=problem.sizes.n_items,
    )
    variable = _label_draws(label.reshape(n_chains, per_chain, -1), problem.ann)
    return dataset_of({"label": variable}, coords={"draw": chosen})


@partial(jax.jit, static_argnames=("model", "sizes"))
def _simulate_prior(
    keys: Key[Array, " draw"], labels: Labels, prior: Any, *, model: ModuleType, sizes: Sizes
) -> tuple[dict[str, Array], Int[Array, "draw label"]]:
    def simulate(key: PRNGKeyArray) -> tuple[dict[str, Array], Int[Array, " label"]]:
        drawn = model.simulate(key, labels.item, labels.worker, **sizes._asdict(), prior=prior)
        return drawn.params._asdict(), drawn.labels.label

    return jax.lax.map(simulate, keys)


@partial(jax.jit, static_argnames=("model", "n_items"))
def _simulate_posterior(
    keys: Key[Array, " draw"],
    params: dict[str, Array],
    labels: Labels,
    *,
    model: ModuleType,
    n_items: int,
) -> Int[Array, "draw label"]:
    def simulate(
        key_and_params: tuple[PRNGKeyArray, dict[str, Array]],
    ) -> Int[Array, " label"]:
        key, fields = key_and_params
        drawn = model.simulate_labels(
            key, model.Params(**fields), labels.item, labels.worker, n_items=n_items
        )
        return drawn.labels.label

    return jax.lax.map(simulate, (keys, params))


def _label_draws(label: Int[Array, "chain draw label"], ann: Annotations) -> Variable:
    """Codes of drawn labels in the smallest integers that hold them."""
    codes = np.asarray(label).astype(np.min_scalar_type(-ann.n_classes))
    return ("chain", "draw", "judgement"), codes


def _check_model(model: ModuleType) -> None:
    missing = [name for name in _NAMES if not hasattr(model, name)]
    if missing:
        name = getattr(model, "__name__", repr(model))
        raise TypeError(
            f"{name} does not model crowd labels (it lacks {', '.join(missing)}); expected a "
            "module such as bayescrowd.models.dawid_skene"
        )


def _check_numbers(method: str, chains: int, draws: int, warmup: int | None) -> None:
    if method not in get_args(Method):
        raise ValueError(f"method={method!r}: expected one of {', '.join(get_args(Method))}")
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("warmup", warmup, 0)):
        if value is not None and value < least:
            raise ValueError(f"{name}={value}: expected at least {least}")


def _checked_prior(model: ModuleType, prior: Any) -> Any:
    if prior is None:
        return model.Prior()
    if not isinstance(prior, model.Prior):
        raise TypeError(
            f"prior is a {type(prior).__module__}.{type(prior).__name__}; expected "
            f"{model.__name__}.Prior"
        )
    for name, value in prior._asdict().items():
        if not np.isfinite(value):
            raise ValueError(f"prior.{name}={value}: expected a finite number")
    return prior
