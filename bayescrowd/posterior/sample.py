"""One call from data to posterior draws, and from draws to the labels' probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache, partial
from types import ModuleType
from typing import Annotated, Any, Literal

import jax
import numpy as np
import pandas as pd
from jaxtyping import Array, Key, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel

from bayescrowd import models
from bayescrowd.checks.parameters import (
    Count,
    OpenFraction,
    Seed,
    Whole,
    validate_arguments,
)
from bayescrowd.data.table_dataset import TableDataset
from bayescrowd.data.truth import Truth
from bayescrowd.posterior import gibbs, nuts, svi
from bayescrowd.posterior.chain_method import ChainMethod, check_devices
from bayescrowd.posterior.chains import ReadDraw, run_chains
from bayescrowd.posterior.container import Container, assemble, group_names, group_of
from bayescrowd.posterior.cost import check_memory
from bayescrowd.posterior.crowd_adapter import CrowdProblem, crowd_problem
from bayescrowd.posterior.feature_adapter import FeatureProblem, feature_problem
from bayescrowd.posterior.feature_data import Groups
from bayescrowd.posterior.mode_search import extension_of
from bayescrowd.posterior.predictive import N_PREDICTIVE

__all__ = ["label_posterior", "sample_posterior"]

Method = Literal["gibbs", "nuts", "svi"]

WARMUP = {"nuts": 1000, "svi": 4000}
"""Default number of draws to discard, or of steps of the variational fit."""

_NAMES = ("FACTS", "Params", "Prior", "model", "label_log_joint", "simulate", "simulate_labels")


@validate_arguments
def sample_posterior(
    model: Any,
    data: Any,
    method: Method | None = None,
    *,
    gold: Truth | None = None,
    target: pd.Series | None = None,
    classes: Sequence[Any] | Count | None = None,
    groups: Groups = "shared",
    chains: Count = 4,
    draws: Count = 1000,
    most_draws: Count | None = None,
    warmup: Annotated[int, Whole(0)] | None = None,
    seed: Seed = 0,
    prior: Any = None,
    init: Literal["votes", "random"] | pd.DataFrame = "votes",
    batch_size: Count = 4096,
    chain_method: ChainMethod | None = None,
    target_accept: OpenFraction | None = None,
    log_likelihood: bool = True,
    predictive: bool = True,
    n_predictive: Annotated[int, Whole(0)] = N_PREDICTIVE,
    progress: bool = True,
) -> Container:
    """Draw from the posterior of a model of crowd labels or of features.

    Args:
        model: a module of `bayescrowd.models`, or its name; or a model of yours, a module or any
            object with the same names. Your model is sampled by Gibbs if it also has `CONDITIONALS`
            (see `bayescrowd.posterior.conditionals.protocol`), and else by NUTS.
        data: for models of crowd labels, `Annotations` or a table with the columns task, worker
            and label. For `naive_bayes`, a pandas table with a row per item, indexed by its id, and
            a column per feature, None or NaN where missing; or the result of `load_table`. For
            `access_path`, a table with the columns item, feature, worker and value, and a row per
            judgement.
        method: 'gibbs' for models with conditionals, 'nuts' for any model, or 'svi' for models of
            crowds with very many labels, an approximation (see `bayescrowd.posterior.svi`). By
            default Gibbs sampling where the model has conditionals, else NUTS.
        gold: label of each task whose true class is known and may be used, by the task's id, for
            models of crowd labels. The known classes are part of the density: Gibbs chains never
            leave them, NUTS and SVI leave out the terms of all other classes, and
            `label_posterior` is 0 or 1 there. Tasks without labels, and classes that nobody chose,
            are left out with a warning.
        target: class of each item by its id, for models of features; missing where unknown.
        classes: for models of features, the classes in order if some of them have no known item, or
            the number of classes if none is known.
        groups: for `access_path`, which workers share a confusion matrix: all of them ('shared'),
            none ('worker'), or those of the same group, given the group of each worker.
        chains: number of chains, or of separate fits with 'svi'; they share one device.
        draws: draws per chain to keep.
        most_draws: largest number of draws of each chain after its warm-up. Sampling goes on until
            the chains agree and know every quantity well enough (R-hat at most 1.01 and 100
            effective draws per chain, as `diagnose` asks); of many draws, evenly spaced ones are
            kept. By default, that is done for Gibbs sampling of crowds with at least two chains
            and 400 draws, until the sweeps have taken about a minute on two cores by the numbers of
            labels and parameters (`bayescrowd.posterior.cost.sweep_work`).
            `most_draws=draws` makes exactly `draws` draws. Only draws decide when to stop, never
            the clock.
        warmup: draws per chain to discard first. By default 200 for 'gibbs', which has nothing to
            adapt, unless the model needs more, and 1,000 for 'nuts'. For 'svi', the steps of the
            fit: 4,000.
        seed: seed of all random numbers.
        prior: the model's `Prior`; by default with the model's own values. Its fields may be arrays
            where the model says so, such as a number of each worker, or a Series or table keyed by
            the ids of workers, classes or features.
        init: where Gibbs chains start: at classes drawn from the 'votes' (with equal probabilities
            where there are none; known classes stay), at 'random' classes, or at classes drawn from
            a table of probabilities, tasks x classes, such as an estimator's `probas_`. Chains that
            start from the votes all begin in the mode in which the crowd is mostly right, so they
            cannot reveal other modes; 'random' starts can. NUTS and SVI start at the prior means.
        batch_size: number of tasks in each step of 'svi'.
        chain_method: how chains of 'gibbs' and 'nuts' advance: in 'threads' that share the cores
            (the default of 'gibbs'), 'sequential' (that of 'nuts'), 'vectorized', or 'parallel' on
            several devices; see `bayescrowd.posterior.chain_method`. The fits of 'svi' are always
            made one after another.
        target_accept: acceptance rate that 'nuts' adapts its step size to, by default 0.8. A rate
            nearer to 1 takes smaller steps and avoids divergences.
        log_likelihood: whether to keep the log-likelihood of each task and draw, which `compare`
            needs and which takes chains x draws x tasks x 4 bytes.
        predictive: whether to draw from the prior and to predict labels, which `check_crowd` needs.
        n_predictive: number of draws from the prior, and of predictions of all labels from prior
            and posterior; 0 for none. The number from the posterior is rounded up so that all
            chains have as many, and is at most that of the draws.
        progress: whether to show a progress bar on a terminal. Ctrl-C ends the sampling and returns
            the draws so far, with a warning. If sampling will take more than a minute or several
            gigabytes, the logger `bayescrowd.posterior` says so in any case.

    Returns:
        ArviZ's container (InferenceData in ArviZ 0.x, DataTree in 1.x) with the dimensions chain,
        draw, task, worker, cls (true class) and observed (chosen class), in the user's ids:

        * posterior: the model's parameters;
        * label_posterior: `probability` of each task's class in each chain, averaged over the exact
          conditionals of its draws and therefore less noisy than counts of drawn classes;
        * sample_stats: the total `marginal_log_likelihood` and the sampler's statistics; for 'svi'
          also the `log_weight` of each draw, log p(parameters, labels) - log q(parameters);
        * optimisation: the trace of the ELBO in nats, for 'svi';
        * alignment: how the classes of each chain were named, see `bayescrowd.posterior.alignment`;
        * modes: where chains stay in several modes, the `weight` and `log_evidence` of each with
          its standard error, the `mode_of_chain` and each mode's `probability` of the classes, see
          `bayescrowd.posterior.modes`; the draws of all chains remain in the other groups. Chains
          that still move inside their modes have no weights, and this group is missing;
        * log_likelihood: `labels` of each task, its true class summed out;
        * prior, prior_predictive, posterior_predictive: draws from the prior, and labels of new
          tasks drawn from prior and posterior, by as many workers as the tasks had;
        * observed_data, constant_data: codes of each judgement's label, task and worker, and with
          `gold` the code of each task's known class, -1 where there is none.

        With features, an item is a task, and `conditional`, P(value | cls), has the dimension
        feature_value of pairs such as 'parents=usual'. `access_path` adds `confusion`, P(label |
        value), with the dimensions group and answer ('parents: usual -> great'), and the `channel`
        P(label | cls). Hidden values may swap names, which the group value_alignment reports; only
        the channel does not depend on these names.

    Raises:
        ValueError: a number is out of range, the model has no such sampler, the sampler has no such
            option, the prior is not a distribution, or the draws of a crowd model do not fit into
            memory.
        TypeError: `model` is not a model, is a model of other data, or `prior` belongs to another
            model.

    Warns:
        TruthWarning: some of the known classes in `gold` are left out.
        UserWarning: chains had to be renamed, the labels do not determine the classes, or the run
            was interrupted.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(30, 5, accuracy=0.9, seed=0)
        >>> model = bc.models.dawid_skene
        >>> post = bc.sample_posterior(model, crowd.annotations, chains=2, draws=50, warmup=10)
        >>> post.posterior["confusion"].dims
        ('chain', 'draw', 'worker', 'cls', 'observed')
        >>> bc.metrics.error_rate(bc.label_posterior(post), crowd.truth) < 0.1
        True

        Two tasks whose class is known, and no predictions:

        >>> gold = crowd.truth.head(2)
        >>> options = {"gold": gold, "chains": 2, "draws": 50, "warmup": 10, "n_predictive": 0}
        >>> post = bc.sample_posterior(model, crowd.annotations, **options)
        >>> [bc.label_posterior(post).loc[task, label].item() for task, label in gold.items()]
        [1.0, 1.0]
    """
    model = _find_model(model)
    method = method or _default_method(model)
    _check_sampler_options(method, chains, chain_method, target_accept)
    prior = _own_prior(model, prior)
    problem: CrowdProblem | FeatureProblem
    if model.FACTS.subject == "features":
        if method == "svi":
            raise ValueError("'svi' fits models of crowd labels; use 'gibbs' for features")
        if gold is not None:
            raise ValueError(
                f"gold is for models of crowd labels; {_name_of(model)} models features, whose "
                "known classes are `target`"
            )
        problem = feature_problem(model, data, prior, target=target, classes=classes, groups=groups)
    else:
        _refuse_feature_options(model, data, target, classes, groups)
        problem = crowd_problem(model, data, prior, gold)
        check_memory(problem, chains=chains, draws=draws, keep_log_likelihood=log_likelihood)
    keys_start, key_predict, key_jump, key_search = _split_seed(np.uint32(seed), chains=chains)
    n_warmup = warmup if warmup is not None else _default_warmup(model, method)
    kernel, read = _kernel(
        model,
        method,
        n_warmup=n_warmup,
        batch_size=batch_size,
        chain_method=chain_method or ("threads" if method == "gibbs" else "sequential"),
        target_accept=target_accept or nuts.TARGET_ACCEPT,
        progress=progress,
    )
    state = kernel.init(
        keys_start,
        n_warmup,
        problem.first_probas(init) if method == "gibbs" else None,
        (problem.data,),
        {**problem.sizes._asdict(), "prior": problem.prior},
    )
    extension, search = extension_of(
        key_search, problem, method, chains=chains, draws=draws, most_draws=most_draws
    )
    recording = run_chains(
        kernel,
        read,
        state,
        problem.data,
        problem.sizes,
        problem.prior,
        warmup=0 if method == "svi" else n_warmup,
        draws=draws,
        keep_log_likelihood=log_likelihood,
        progress=progress,
        description=method,
        extension=extension,
        rng_key=key_jump,
    )
    if not recording.is_complete:
        n_drawn = recording.agreement.shape[1]
        warnings.warn(f"interrupted after {n_drawn} of {draws} draws", UserWarning, stacklevel=2)
    datasets, complaints = problem.datasets(recording)
    for complaint in complaints:
        warnings.warn(complaint, UserWarning, stacklevel=2)
    modes = search.modes(recording) if search is not None else None
    if modes is not None:
        datasets["modes"] = modes
    if method == "svi":
        datasets["optimisation"] = svi.optimisation(state, n_steps=n_warmup)
    if predictive and n_predictive:
        datasets |= problem.predictive(key_predict, recording, datasets["posterior"], n_predictive)
    attrs = {
        "model": _name_of(model),
        "method": method,
        "seed": seed,
        "is_complete": int(recording.is_complete),
        "thin": recording.thin,
        "warmup": recording.warmup,
    }
    named = {name: dataset.assign_attrs(attrs) for name, dataset in datasets.items()}
    return assemble(named, attrs=attrs)


@validate_arguments
def label_posterior(post: Container) -> pd.DataFrame:
    """Probability of each task's class, tasks x classes, averaged over all chains.

    Where chains stay in several modes with known weights, each mode counts by its weight.

    Args:
        post: the result of `sample_posterior`.
    """
    if "modes" in group_names(post):
        modes = group_of(post, "modes")
        probability = (modes["probability"] * modes["weight"]).sum("mode")
    else:
        probability = group_of(post, "label_posterior")["probability"].mean("chain")
    tasks, classes = (probability.indexes[dim] for dim in ("task", "cls"))
    return pd.DataFrame(
        probability.transpose("task", "cls").to_numpy(),
        index=tasks.rename(None),
        columns=classes.rename(None),
    )


@partial(
    jax.jit,
    static_argnames="chains",
    compiler_options={"xla_backend_optimization_level": 0},
)
def _split_seed(
    seed: Any, *, chains: int
) -> tuple[Key[Array, " chain"], PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """Keys of the chains, of predictions, of jumps, and of the search for modes."""
    key_start, key_predict = jax.random.split(jax.random.key(seed))
    key_jump, key_search = jax.random.split(jax.random.fold_in(key_predict, 1))
    return jax.random.split(key_start, chains), key_predict, key_jump, key_search


def _kernel(
    model: ModuleType,
    method: Method,
    *,
    n_warmup: int,
    batch_size: int,
    chain_method: ChainMethod,
    target_accept: float,
    progress: bool,
) -> tuple[MCMCKernel, ReadDraw]:
    """The sampler of a method, and how its draws are read."""
    if method == "gibbs":
        return _gibbs(model, chain_method), gibbs.read_draw
    if method == "svi":
        return svi.Variational(model, batch_size, progress), svi.read_draw
    return nuts.NutsChains(model, n_warmup, target_accept, chain_method), nuts.read_draw


def _default_method(model: ModuleType) -> Method:
    return "gibbs" if gibbs.has_conditionals(model) else "nuts"


def _default_warmup(model: ModuleType, method: Method) -> int:
    return gibbs.conditionals_of(model).warmup if method == "gibbs" else WARMUP[method]


@cache  # one kernel per model, so that what was compiled for it is found again
def _gibbs(model: ModuleType, chain_method: ChainMethod) -> MCMCKernel:
    return gibbs.Gibbs(model, chain_method=chain_method)


def _check_sampler_options(
    method: Method, chains: int, chain_method: ChainMethod | None, target_accept: float | None
) -> None:
    """Refuse options that the sampler does not have."""
    if target_accept is not None and method != "nuts":
        raise ValueError(
            f"target_accept is for 'nuts', which adapts a step size; {method!r} has none"
        )
    if chain_method is not None:
        if method == "svi":
            raise ValueError(
                "chain_method is for chains of 'gibbs' and 'nuts'; 'svi' makes one fit after "
                "another"
            )
        check_devices(chain_method, chains)


def _name_of(model: ModuleType) -> str:
    """The name of a model of this package, or of a user's model with its package."""
    package, _, name = model.__name__.rpartition(".")
    return name if package == models.__name__ else model.__name__


def _find_model(model: Any) -> ModuleType:
    """The model's module, given itself, its name, or an object with the names of a model.

    Raises:
        TypeError: it is not a model, or a model that this module does not sample.
        ValueError: there is no model of this name.
    """
    if isinstance(model, str):
        if model not in models.__all__:
            raise ValueError(f"there is no model {model!r}; expected {', '.join(models.__all__)}")
        found: ModuleType = getattr(models, model)
    else:
        missing = [name for name in _NAMES if not hasattr(model, name)]
        if missing == list(_NAMES) and not isinstance(model, ModuleType):
            raise TypeError(
                f"`model` is {model!r:.60}; expected a module of `bayescrowd.models` or its name, "
                "or an object with the same names"
            )
        if missing:
            shown = model.__name__ if isinstance(model, ModuleType) else f"{model!r:.60}"
            raise TypeError(
                f"`model` is {shown}, which is not a model (it lacks {', '.join(missing)}); "
                "expected a module of `bayescrowd.models` or its name, or an object with the same "
                "names"
            )
        found = model if isinstance(model, ModuleType) else _as_module(model)
    if found.FACTS.subject == "numbers":
        raise TypeError(
            f"{found.__name__} is a model of numbers, not of classes; call the method `posterior` "
            "of a fitted `MultiSelection` for its posterior"
        )
    return found


def _as_module(model: Any) -> ModuleType:
    """A module with the names of an object, the same one for the same object.

    What was compiled for a model is found by its module.
    """
    try:
        return _module_of(model)
    except TypeError as error:
        raise TypeError(
            f"`model` is a {type(model).__name__}, which has no hash; expected a module, a class, "
            "or an object that compares by identity"
        ) from error


@cache
def _module_of(model: Any) -> ModuleType:
    module = ModuleType(getattr(model, "__name__", type(model).__name__))
    for name in (*_NAMES, "CONDITIONALS"):
        if hasattr(model, name):
            setattr(module, name, getattr(model, name))
    return module


def _refuse_feature_options(
    model: ModuleType, data: Any, target: Any, classes: Any, groups: Groups
) -> None:
    name = _name_of(model)
    if isinstance(data, TableDataset):
        raise TypeError(
            f"{name} models crowd labels and got a table of features; expected Annotations or a "
            "table with the columns task, worker and label (naive_bayes reads features)"
        )
    given = {"target": target is not None, "classes": classes is not None}
    given["groups"] = not isinstance(groups, str) or groups != "shared"
    for option, is_given in given.items():
        if is_given:
            raise ValueError(f"{option} is for models of features; {name} models crowd labels")


def _own_prior(model: ModuleType, prior: Any) -> Any:
    """The prior, or the model's default if there is none."""
    if prior is None:
        return model.Prior()
    if not isinstance(prior, model.Prior):
        raise TypeError(
            f"prior is a {type(prior).__module__}.{type(prior).__name__}; expected "
            f"{model.__name__}.Prior"
        )
    return prior
