"""Gibbs sampling of models whose parameters are conjugate given the true classes.

A sweep alternates the two conditionals of the model with its discrete classes left in:

    parameters | classes, data:  Dirichlet rows with concentrations prior + counts
    class of an item | parameters, data:  Dawid and Skene 1979, eq. 2.5

A state holds the classes, the parameters that were drawn given the classes before, and the log
joint density of each item's data and class under those parameters, from which the classes were
drawn. The next sweep reads the classes and, in models that hide more than classes, the parameters,
never the density, so that a chain goes on, warm, when data of known items have arrived in between.

`sweep` is the pure function of one step; `Gibbs` makes it a kernel that `numpyro.infer.MCMC` can
drive. Chains run one after another inside one compiled program: scatter-adds of several chains at
once are what XLA is slow at on CPUs (1,000,000 labels, four chains: 28 ms against 130 ms).

What a model needs is a `Conjugate`: see `gibbs_crowd`, `gibbs_hierarchical` and `gibbs_features`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel

from bayescrowd.categorical import draw_categories
from bayescrowd.dirichlet import LOG_LEAST
from bayescrowd.models import (
    access_path,
    dawid_skene,
    hierarchical_dawid_skene,
    mace,
    naive_bayes,
    one_coin,
)
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior import gibbs_crowd, gibbs_features, gibbs_hierarchical
from bayescrowd.posterior.chains import Data, Draw

__all__ = [
    "CONJUGATE",
    "Conjugate",
    "Gibbs",
    "KernelState",
    "State",
    "conjugate_models",
    "read_draw",
    "start",
    "sweep",
]


class State(NamedTuple):
    """One draw of a chain."""

    truth: Int[Array, " item"]
    """True class of each item."""
    params: Any
    """`Params` of the model, drawn given the classes of the state before."""
    log_joint: Float[Array, "item cls"]
    """Log density of each item's data and each class under `params`."""


class KernelState(NamedTuple):
    """What `numpyro.infer.MCMC` carries from draw to draw."""

    i: Int[Array, "*chain"]
    """Number of sweeps so far."""
    draw: State
    """The draw itself."""
    z: dict[str, Array]
    """The draw's parameters by site name, the field that MCMC collects."""
    rng_key: Any
    """The source of randomness of the sweeps to come."""


class Conjugate(NamedTuple):
    """What Gibbs sampling needs to know of a model."""

    first_params: Callable[..., Any]
    """(prior, *, sizes) -> Params to start from."""
    draw_params: Callable[..., Any]
    """(rng_key, truth, params, data, prior) -> Params given the classes; see `sweep`."""
    log_joint: Callable[..., Any]
    """(params, data, *, n_items) -> log density of each item's data and each class."""
    first_probas: Callable[..., Any]
    """(data, *, n_items, n_classes) -> probabilities of the classes that chains start from."""
    warmup: int = 200
    """Sweeps to throw away: enough for chains that start from the votes to forget them."""


def sweep(
    rng_key: PRNGKeyArray,
    state: State,
    data: Data,
    prior: Any,
    *,
    model: ModuleType,
    n_values: tuple[int, ...] = (),
) -> State:
    """Draw parameters given the classes, then classes given the parameters.

    Pure, and compiles under `jax.jit` with `model` and `n_values` fixed.

    Args:
        rng_key: the source of randomness.
        state: where the chain stands.
        data: the observed labels, sorted by item, or what was observed of the features.
        prior: the model's `Prior`.
        model: a module of `conjugate_models`.
        n_values: number of values of each feature, for the models that have features.
    """
    key_params, key_truth = jax.random.split(rng_key)
    conjugate = CONJUGATE[model.__name__]
    widths = {"n_values": n_values} if n_values else {}
    params = conjugate.draw_params(key_params, state.truth, state.params, data, prior, **widths)
    log_joint = conjugate.log_joint(params, data, n_items=len(state.truth))
    return State(truth=draw_categories(key_truth, log_joint), params=params, log_joint=log_joint)


def start(
    rng_key: PRNGKeyArray,
    probas: Float[Array, "item cls"],
    prior: Any,
    *,
    model: ModuleType,
    **sizes: Any,
) -> State:
    """A state to sweep from: classes drawn from given probabilities, parameters at prior means.

    Args:
        rng_key: the source of randomness.
        probas: probabilities of each item's class, 0 and 1 where it is known.
        prior: the model's `Prior`.
        model: a module of `conjugate_models`.
        sizes: `n_workers` of crowds, `n_values` of features and `n_groups` of their readers; all
            of them count what there is no datum of as well.
    """
    log_probas = jnp.log(jnp.maximum(probas, jnp.exp(LOG_LEAST)))
    first_params = CONJUGATE[model.__name__].first_params
    return State(
        truth=draw_categories(rng_key, log_probas),
        params=first_params(prior, n_classes=probas.shape[1], **sizes),
        log_joint=log_probas,
    )


class Gibbs(MCMCKernel):
    """Gibbs sampling as a kernel of `numpyro.infer.MCMC`.

    Run it with the arguments of the model's own `model`. Chains are started at draws of the vote
    shares (of the classes known, where there are features), or at draws of `init_params`, the
    probabilities [item, cls] of each item's class, with a leading axis of chains if there are
    several.

    Args:
        model: a module of `conjugate_models`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from numpyro.infer import MCMC
        >>> from bayescrowd.models import dawid_skene, mace, one_coin
        >>> labels = dawid_skene.Labels(*jnp.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]]))
        >>> mcmc = MCMC(Gibbs(dawid_skene), num_warmup=5, num_samples=10, progress_bar=False)
        >>> mcmc.run(jax.random.key(0), labels, n_items=2, n_workers=2, n_classes=2)
        >>> mcmc.get_samples()["confusion"].shape
        (10, 2, 2, 2)
    """

    def __init__(self, model: ModuleType) -> None:
        if model.__name__ not in CONJUGATE:
            name, known = _last_name(model.__name__), ", ".join(conjugate_models())
            raise ValueError(f"{name} has no Gibbs sampler, use NUTS; those that have: {known}")
        self.model = model

    @property
    def sample_field(self) -> str:
        """The field of `KernelState` that is collected."""
        return "z"

    def init(
        self,
        rng_key: Any,
        num_warmup: int,
        init_params: Float[Array, "*chain item cls"] | None,
        model_args: tuple[Data],
        model_kwargs: dict[str, Any],
    ) -> KernelState:
        """First state of one chain, or of several if `rng_key` is an array of keys."""
        (data,) = model_args
        sizes = dict(model_kwargs)
        prior = sizes.pop("prior", self.model.Prior())
        counted = {name: sizes.pop(name) for name in ("n_items", "n_classes")}
        if isinstance(data, Labels):
            _check_sorted(data)
        if init_params is None:
            init_params = CONJUGATE[self.model.__name__].first_probas(data, **counted)

        def init_one(key: Any, probas: Float[Array, "item cls"]) -> KernelState:
            key_start, key_rest = jax.random.split(key)
            draw = start(key_start, probas, prior, model=self.model, **sizes)
            return KernelState(jnp.zeros((), int), draw, draw.params._asdict(), key_rest)

        if _is_single(rng_key):
            return init_one(rng_key, init_params)
        probas = jnp.broadcast_to(init_params, (len(rng_key), *init_params.shape[-2:]))
        return jax.lax.map(lambda chain: init_one(*chain), (rng_key, probas))

    def sample(
        self, state: KernelState, model_args: tuple[Data], model_kwargs: dict[str, Any]
    ) -> KernelState:
        """One sweep of one chain or of several."""
        (data,) = model_args
        prior = model_kwargs.get("prior", self.model.Prior())
        step = partial(sweep, model=self.model, n_values=model_kwargs.get("n_values", ()))

        def sample_one(state: KernelState) -> KernelState:
            key_rest, key_sweep = jax.random.split(state.rng_key)
            draw = step(key_sweep, state.draw, data, prior)
            return KernelState(state.i + 1, draw, draw.params._asdict(), key_rest)

        return sample_one(state) if state.i.ndim == 0 else jax.lax.map(sample_one, state)


def read_draw(kernel: Gibbs, state: KernelState, data: Data, arguments: dict[str, Any]) -> Draw:
    """What the chains have drawn last; the kernel has nothing to report."""
    return state.z, state.draw.log_joint, {}


def conjugate_models() -> list[str]:
    """Names of the models that have a Gibbs sampler."""
    return [_last_name(name) for name in CONJUGATE]


def _last_name(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _check_sorted(labels: Labels) -> None:
    if isinstance(labels.item, jax.core.Tracer):
        return
    if (np.diff(np.asarray(labels.item)) < 0).any():
        raise ValueError("labels are not sorted by item, which Gibbs sampling relies on")


def _is_single(rng_key: Any) -> bool:
    typed = jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key)
    return rng_key.ndim == (0 if typed else 1)


CONJUGATE = {
    dawid_skene.__name__: Conjugate(
        gibbs_crowd.first_dawid_skene,
        gibbs_crowd.draw_dawid_skene,
        gibbs_crowd.dawid_skene_log_joint,
        gibbs_crowd.vote_shares,
    ),
    one_coin.__name__: Conjugate(
        gibbs_crowd.first_one_coin,
        gibbs_crowd.draw_one_coin,
        gibbs_crowd.one_coin_log_joint,
        gibbs_crowd.vote_shares,
    ),
    mace.__name__: Conjugate(
        gibbs_crowd.first_mace,
        gibbs_crowd.draw_mace,
        gibbs_crowd.mace_log_joint,
        gibbs_crowd.vote_shares,
    ),
    hierarchical_dawid_skene.__name__: Conjugate(
        gibbs_hierarchical.first_hierarchical,
        gibbs_hierarchical.draw_hierarchical,
        gibbs_hierarchical.hierarchical_log_joint,
        gibbs_crowd.vote_shares,
        # After 200 sweeps chains on dog remember the votes. More than 1,000 gain nothing there, nor
        # does a start from EM: what is left is slow, a few tasks between two classes.
        warmup=1000,
    ),
    naive_bayes.__name__: Conjugate(
        gibbs_features.first_naive_bayes,
        gibbs_features.draw_naive_bayes,
        naive_bayes.label_log_joint,
        gibbs_features.known_classes,
    ),
    access_path.__name__: Conjugate(
        gibbs_features.first_access_path,
        gibbs_features.draw_access_path,
        access_path.label_log_joint,
        gibbs_features.known_classes,
    ),
}
"""Models with a Gibbs sampler, by the name of their module."""
