"""NUTS on a model with its true classes summed out, started where the classes keep their names.

M. D. Hoffman and A. Gelman (2014), "The No-U-Turn Sampler", JMLR 15, as implemented in NumPyro.
NumPyro starts chains at random points by default. In models that are nearly the same under a
renaming of the classes, such a chain may settle where everybody is wrong, and stay there: on the
bluebird crowd such chains had healthy diagnostics and 97 errors in 108 tasks. Here chains start at
the prior means, where workers are right more often than wrong, and make 12.

A kernel of NumPyro remembers the data that it was started with, so that each kernel is compiled
anew. `NutsChains` remembers nothing but its settings: two of them with the same settings are equal,
and share what was compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import jax
from jaxtyping import Array, Float
from numpyro.infer import NUTS, init_to_mean
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import constrain_fn

from bayescrowd.posterior.chain_method import ChainMethod, over_chains
from bayescrowd.posterior.chains import Data, Draw

__all__ = ["TARGET_ACCEPT", "NutsChains", "nuts_kernel", "read_draw"]

TARGET_ACCEPT = 0.8
"""Acceptance rate that step sizes are adapted to: NumPyro's and Stan's default."""

STATISTICS = {
    "diverging": "diverging",
    "acceptance_rate": "accept_prob",
    "n_steps": "num_steps",
    "energy": "energy",
}
"""ArviZ's names of the statistics and the fields of NumPyro's state they are read from."""


def nuts_kernel(model: ModuleType, *, target_accept: float = TARGET_ACCEPT) -> NUTS:
    """NumPyro's kernel for a module of `bayescrowd.models`."""
    return NUTS(model.model, init_strategy=init_to_mean, target_accept_prob=target_accept)


@dataclass(frozen=True)
class NutsChains(MCMCKernel):
    """NUTS as a kernel of several chains whose functions are pure.

    Args:
        model: a module of `bayescrowd.models`.
        warmup: number of draws during which step sizes and masses are adapted.
        target_accept: acceptance rate that the step size is adapted to.
        chain_method: how the chains advance, see `bayescrowd.posterior.chain_method`.
    """

    model: ModuleType
    warmup: int
    target_accept: float = TARGET_ACCEPT
    chain_method: ChainMethod = "sequential"

    @property
    def sample_field(self) -> str:
        """The field of NumPyro's `HMCState` that is collected."""
        return "z"

    def init(
        self,
        rng_key: Any,
        num_warmup: int,
        init_params: None,
        model_args: tuple[Data],
        model_kwargs: dict[str, Any],
    ) -> Any:
        """NumPyro's first states, one per key."""
        if num_warmup != self.warmup:
            raise ValueError(f"num_warmup={num_warmup}: expected warmup={self.warmup}")
        sizes = dict(model_kwargs)
        prior = sizes.pop("prior", self.model.Prior())
        (data,) = model_args
        return _first_states(rng_key, data, prior, kernel=self, sizes=tuple(sizes.items()))

    def sample(self, state: Any, model_args: tuple[Data], model_kwargs: dict[str, Any]) -> Any:
        """One draw of each chain."""
        inner = nuts_kernel(self.model, target_accept=self.target_accept)
        # NumPyro makes its functions when a kernel is started. The state of this start is not used,
        # so that it is not compiled.
        inner.init(jax.random.key(0), self.warmup, None, model_args, model_kwargs)
        advance = partial(inner.sample, model_args=model_args, model_kwargs=model_kwargs)
        return over_chains(advance, state, self.chain_method)


@partial(
    jax.jit,
    static_argnames=("kernel", "sizes"),
    # It runs once: what takes time is to compile it.
    compiler_options={"xla_backend_optimization_level": 0},
)
def _first_states(
    rng_keys: Any, data: Data, prior: Any, *, kernel: NutsChains, sizes: tuple[tuple[str, Any], ...]
) -> Any:
    inner = nuts_kernel(kernel.model, target_accept=kernel.target_accept)
    arguments = {**dict(sizes), "prior": prior}
    start = partial(
        inner.init,
        num_warmup=kernel.warmup,
        init_params=None,
        model_args=(data,),
        model_kwargs=arguments,
    )
    return jax.vmap(start)(rng_keys)


def read_draw(kernel: NutsChains, state: Any, data: Data, arguments: dict[str, Any]) -> Draw:
    """What the chains have drawn last: the fields of the model's `Params`."""
    model = kernel.model
    # tables are deterministic: they are put together from the rows of features of equal width
    whole = partial(constrain_fn, model.model, (data,), arguments, return_deterministic=True)
    sites = jax.vmap(whole)(state.z)
    params = {name: sites[name] for name in model.Params._fields}

    def log_joint_of(params: dict[str, Array]) -> Float[Array, "item cls"]:
        return model.label_log_joint(model.Params(**params), data, n_items=arguments["n_items"])

    statistics = {name: getattr(state, field) for name, field in STATISTICS.items()}
    statistics["lp"] = -state.potential_energy
    statistics["step_size"] = state.adapt_state.step_size
    return params, jax.vmap(log_joint_of)(params), statistics
