"""How several chains advance together: one after another, in one vector, in threads, on devices.

NumPyro's names, `numpyro.infer.MCMC(chain_method=...)`, with the same meaning, and one more:

- 'sequential': one chain after another, inside of one compiled program.
- 'vectorized': all chains at once, in arrays with an axis of chains. Where chains branch, such as
  in the trees of NUTS, each step takes as long as that of the slowest chain.
- 'parallel': chains are dealt out to several devices, and each device runs its own one after
  another. A CPU is one device, unless `numpyro.set_host_device_count(4)`, say, divides it before
  JAX is first used.
- 'threads': the program that advances one chain runs once for each chain, in as many threads as the
  process may use cores, so that chains share the cores of one device. Draws do not depend on the
  number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

__all__ = ["ChainMethod", "check_devices", "over_chains", "threads_of_chains"]

ChainMethod = Literal["sequential", "vectorized", "parallel", "threads"]

States = TypeVar("States")


def over_chains(advance: Callable[[States], States], states: States, method: ChainMethod) -> States:
    """Apply a function of one chain's state to the states of several chains.

    Args:
        advance: one chain's state -> its next state.
        states: a tree of arrays that lead with the chain.
        method: see the module; of 'threads', each has one chain.
    """
    if method == "vectorized":
        return jax.vmap(advance)(states)
    if method in ("sequential", "threads"):
        return jax.lax.map(advance, states)
    n_chains = len(jax.tree.leaves(states)[0])
    mesh = Mesh(np.array(jax.devices()[: _n_used(n_chains)]), ("chain",))
    of_chain = PartitionSpec("chain")  # type: ignore[no-untyped-call]
    dealt: Callable[[States], States] = jax.shard_map(
        lambda own: jax.lax.map(advance, own),
        mesh=mesh,
        in_specs=of_chain,
        out_specs=of_chain,
        check_vma=False,
    )
    return dealt(states)


def threads_of_chains(n_chains: int) -> ThreadPoolExecutor:
    """A pool with a thread for each chain, but no more of them than there are cores to use."""
    can_count = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if can_count else os.cpu_count() or 1
    return ThreadPoolExecutor(max_workers=min(n_chains, n_cores))


def check_devices(method: ChainMethod, n_chains: int) -> None:
    """Refuse to run chains in parallel on one device.

    Raises:
        ValueError: there is one device, or no number of devices divides the chains evenly.
    """
    if method == "parallel" and _n_used(n_chains) == 1:
        n_devices = jax.device_count()
        raise ValueError(
            f"chain_method='parallel' deals {n_chains} chains evenly to several devices, and JAX "
            f"has {n_devices} ({jax.default_backend()}); call "
            f"numpyro.set_host_device_count({max(n_chains, 2)}) before JAX is first used, or "
            "choose 'sequential' or 'vectorized'"
        )


def _n_used(n_chains: int) -> int:
    """Largest number of devices that the chains can be dealt to evenly."""
    return max(n for n in range(1, jax.device_count() + 1) if n_chains % n == 0)
