"""Gibbs sampling of models whose parameters are conjugate given the true classes.

A sweep alternates between the two conditionals of the model with its discrete classes left in:

    parameters | classes, data:  Dirichlet rows with concentrations prior + counts
    class of an item | parameters, data:  Dawid and Skene 1979, eq. 2.5

A state holds the classes, the parameters drawn given the previous classes, and the log joint
density of each item's data and class under those parameters, from which the classes were drawn.
The next sweep reads the classes and, in models that hide more than classes, the parameters, but
never the density. A warm chain can therefore go on after data of known items have arrived.

`sweep` is the pure function of one step; `Gibbs` makes it a kernel that `numpyro.infer.MCMC` can
drive. Chains are not vectorised by default, since XLA is slow on CPUs at the scatter-adds of
several chains at once (1,000,000 labels, four chains: 28 ms one after another against 130 ms).

The conditionals of a model of this package are those of the module of the same name in
`bayescrowd.posterior.conditionals`; those of a user's model are its own `CONDITIONALS`.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel

from bayescrowd import models
from bayescrowd.draws.categorical import draw_categories
from bayescrowd.draws.dirichlet import LOG_LEAST
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.chain_method import ChainMethod, over_chains
from bayescrowd.posterior.chains import Data, Draw
from bayescrowd.posterior.conditionals.classes import label_votes
from bayescrowd.posterior.conditionals.names import draw_naming, naming_of_labels
from bayescrowd.posterior.conditionals.protocol import Collapsed, Conditionals

__all__ = [
    "Gibbs",
    "KernelState",
    "State",
    "collapsed_of",
    "conditionals_of",
    "has_conditionals",
    "read_draw",
    "start",
    "sweep",
]


class State(NamedTuple):
    """One draw of a chain."""

    truth: Int[Array, " item"]
    """True class of each item."""
    params: Any
    """`Params` of the model, drawn given the classes of the previous state."""
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
    """The source of randomness for the remaining sweeps."""


def has_conditionals(model: ModuleType) -> bool:
    """Whether a model can be sampled by Gibbs: by its facts, or by its own `CONDITIONALS`."""
    if _is_ours(model):
        return bool(model.FACTS.has_conditionals)
    return hasattr(model, "CONDITIONALS")


def conditionals_of(model: ModuleType) -> Conditionals:
    """The conditionals of a model: its own, or for our models those of its name.

    Args:
        model: a module of `bayescrowd.models`, or a user's model with the same names.

    Raises:
        TypeError: a user's model has `CONDITIONALS` of another type.
        ValueError: the model has no conditionals.
    """
    name = model.__name__.rpartition(".")[2]
    if not has_conditionals(model):
        known = [name for name, facts in models.catalogue().items() if facts.has_conditionals]
        raise ValueError(
            f"{name} has no Gibbs sampler, use NUTS; models with one: {', '.join(known)}"
        )
    if _is_ours(model):
        module = import_module(f"bayescrowd.posterior.conditionals.{name}")
        found: Conditionals = module.CONDITIONALS
        return found
    own = model.CONDITIONALS
    if not isinstance(own, Conditionals):
        raise TypeError(
            f"CONDITIONALS of {model.__name__} is a {type(own).__name__}; expected the "
            "Conditionals of bayescrowd.posterior.conditionals.protocol"
        )
    return own


def _is_ours(model: ModuleType) -> bool:
    return model.__name__.rpartition(".")[0] == models.__name__


def collapsed_of(model: ModuleType) -> Collapsed:
    """The collapsed density of a model.

    Raises:
        ValueError: it is not known.
    """
    found = conditionals_of(model).collapsed
    if found is None:
        raise ValueError(f"the collapsed density of {model.__name__} is not known")
    return found


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
        state: the chain's current state.
        data: the observed labels, sorted by item, or the observations of features.
        prior: the model's `Prior`.
        model: a module of `bayescrowd.models` that has conditionals.
        n_values: number of values of each feature, for models of features.
    """
    key_params, key_truth, key_names = jax.random.split(rng_key, 3)
    of_model = conditionals_of(model)
    widths = {"n_values": n_values} if n_values else {}
    params = of_model.draw_params(key_params, state.truth, state.params, data, prior, **widths)
    if of_model.naming is not None:
        # Classes under new names need not be named anew: they are drawn from the parameters.
        log_prior = of_model.naming.log_prior(params, prior)
        names = draw_naming(key_names, log_prior, data.gold)
        params = of_model.naming.rename(params, names)
    log_joint = of_model.log_joint(params, data, n_items=len(state.truth))
    return State(truth=draw_categories(key_truth, log_joint), params=params, log_joint=log_joint)


def start(
    rng_key: PRNGKeyArray,
    probas: Float[Array, "item cls"],
    prior: Any,
    *,
    model: ModuleType,
    **sizes: Any,
) -> State:
    """A first state: classes drawn from given probabilities, parameters at their prior means.

    Args:
        rng_key: the source of randomness.
        probas: probabilities of each item's class, 0 and 1 where it is known.
        prior: the model's `Prior`.
        model: a module of `bayescrowd.models` that has conditionals.
        sizes: `n_workers` of crowds, or `n_values` of features and `n_groups` of their readers,
            including those without any data.
    """
    log_probas = jnp.log(jnp.maximum(probas, jnp.exp(LOG_LEAST)))
    return State(
        truth=draw_categories(rng_key, log_probas),
        params=conditionals_of(model).first_params(prior, n_classes=probas.shape[1], **sizes),
        log_joint=log_probas,
    )


class Gibbs(MCMCKernel):
    """Gibbs sampling as a kernel of `numpyro.infer.MCMC`.

    Run it with the arguments of the model's own `model`. Chains start at classes drawn from the
    vote shares (with features, from the known classes), or from `init_params`, the probabilities
    [item, cls] of each item's class, with a leading axis of chains if there are several.

    Args:
        model: a module of `bayescrowd.models` that has conditionals.
        chain_method: how several chains advance, see `bayescrowd.posterior.chain_method`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from numpyro.infer import MCMC
        >>> from bayescrowd.models import dawid_skene
        >>> labels = dawid_skene.Labels(*jnp.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]]))
        >>> mcmc = MCMC(Gibbs(dawid_skene), num_warmup=5, num_samples=10, progress_bar=False)
        >>> mcmc.run(jax.random.key(0), labels, n_items=2, n_workers=2, n_classes=2)
        >>> mcmc.get_samples()["confusion"].shape
        (10, 2, 2, 2)
    """

    def __init__(self, model: ModuleType, *, chain_method: ChainMethod = "sequential") -> None:
        conditionals_of(model)  # refuses a model that has none
        self.model = model
        self.chain_method = chain_method

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
        if isinstance(data, Labels):
            _check_sorted(data)
        # Inside of another program, how to compile is for that program to say.
        is_inside = isinstance(rng_key, jax.core.Tracer)
        first_states = _first_states if is_inside else _first_states_quickly_compiled
        return first_states(
            rng_key, init_params, data, prior, model=self.model, sizes=tuple(sizes.items())
        )

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

        if state.i.ndim == 0:
            return sample_one(state)
        return over_chains(sample_one, state, self.chain_method)


def read_draw(kernel: Gibbs, state: KernelState, data: Data, arguments: dict[str, Any]) -> Draw:
    """The chains' last draws.

    The kernel reports no statistics but `renamed`: whether the labels suggest other names of the
    classes than those that the chain has sampled, and the draw bears the former.
    """
    naming = conditionals_of(kernel.model).naming
    if naming is None:
        return state.z, state.draw.log_joint, {}
    n_classes = arguments["n_classes"]
    votes = label_votes(data, n_items=arguments["n_items"], n_classes=n_classes)

    def with_names(draw: State) -> tuple[Any, Float[Array, "item cls"], Bool[Array, ""]]:
        agreement = softmax(draw.log_joint, axis=-1).T @ votes
        names = naming_of_labels(agreement, data.gold)
        is_renamed = (names != jnp.arange(n_classes)).any()
        return naming.rename(draw.params, names), draw.log_joint[:, names], is_renamed

    params, log_joint, is_renamed = jax.lax.map(with_names, state.draw)
    return params._asdict(), log_joint, {"renamed": is_renamed}


def _first_states(
    rng_key: Any,
    probas: Float[Array, "*chain item cls"] | None,
    data: Data,
    prior: Any,
    *,
    model: ModuleType,
    sizes: tuple[tuple[str, Any], ...],
) -> KernelState:
    """First state of one chain, or of several if `rng_key` is an array of keys."""
    others = dict(sizes)
    counted = {name: others.pop(name) for name in ("n_items", "n_classes")}
    if probas is None:
        probas = conditionals_of(model).first_probas(data, **counted)

    def init_one(key: Any, probas: Float[Array, "item cls"]) -> KernelState:
        key_start, key_rest = jax.random.split(key)
        draw = start(key_start, probas, prior, model=model, **others)
        return KernelState(jnp.zeros((), int), draw, draw.params._asdict(), key_rest)

    if _is_single(rng_key):
        return init_one(rng_key, probas)
    of_chains = jnp.broadcast_to(probas, (len(rng_key), *probas.shape[-2:]))
    return jax.lax.map(lambda chain: init_one(*chain), (rng_key, of_chains))


# One program, since each operation outside of one would be compiled by itself; without optimisation
# that takes half the time, and it runs once.
_first_states_quickly_compiled = jax.jit(
    _first_states,
    static_argnames=("model", "sizes"),
    compiler_options={"xla_backend_optimization_level": 0},
)


def _check_sorted(labels: Labels) -> None:
    if isinstance(labels.item, jax.core.Tracer):
        return
    if (np.diff(np.asarray(labels.item)) < 0).any():
        raise ValueError("labels are not sorted by item, as Gibbs sampling requires")


def _is_single(rng_key: Any) -> bool:
    typed = jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key)
    return rng_key.ndim == (0 if typed else 1)
