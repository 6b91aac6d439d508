"""Runs chains of any NumPyro kernel and records what an analysis of classes needs.

One compiled function advances all chains by up to `BLOCK` draws and records them; between its
calls the progress bar moves and Ctrl-C is heard. A draw is recorded as its parameters, the
marginal log-likelihood of each item and how labels, or known classes, agree with the classes; the
probabilities of each item's class, which would fill the memory first, are averaged on the way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float
from numpyro.infer.mcmc import MCMCKernel
from tqdm.auto import tqdm

__all__ = ["Data", "Draw", "FeatureSizes", "ReadingSizes", "Recording", "Sizes", "run_chains"]

BLOCK = 50
"""Largest number of draws between two looks at the clock."""

BLOCK_SECONDS = 1.0
"""Target time between two steps of the progress bar, in seconds."""

LONG_SECONDS = 60.0
"""Sampling that will take longer than this is announced."""

_logger = logging.getLogger(__name__)

Data = Any
"""What a model is conditioned on: the `Labels` of a crowd, or the model's `Observations`."""

Draw = tuple[dict[str, Array], Float[Array, "chain item cls"], dict[str, Array]]
"""Parameters, log joint density of data and classes, and statistics, of several chains."""

ReadDraw = Callable[[Any, Any, Any, dict[str, Any]], Draw]
"""(kernel, its state, data, keyword arguments of the model) -> draw."""


class Sizes(NamedTuple):
    """How much there is of everything in a crowd, labelled or not."""

    n_items: int
    """Number of items."""
    n_workers: int
    """Number of workers."""
    n_classes: int
    """Number of classes."""


class FeatureSizes(NamedTuple):
    """How much there is of everything in a table of features."""

    n_items: int
    """Number of items."""
    n_classes: int
    """Number of classes."""
    n_values: tuple[int, ...]
    """Number of values of each feature."""


class ReadingSizes(NamedTuple):
    """How much there is of everything in a table of features that workers read."""

    n_items: int
    """Number of items."""
    n_groups: int
    """Number of groups of workers."""
    n_classes: int
    """Number of classes."""
    n_values: tuple[int, ...]
    """Number of values of each feature."""


AnySizes = Sizes | FeatureSizes | ReadingSizes


class Recording(NamedTuple):
    """Draws of several chains, as arrays [chain, draw, ...]."""

    params: dict[str, np.ndarray]
    """Parameters by site."""
    statistics: dict[str, np.ndarray]
    """Statistics that the kernel reports, and the total `log_likelihood`."""
    log_likelihood: Float[np.ndarray, "chain draw item"] | None
    """Marginal log-likelihood of each item, if it was asked for."""
    agreement: Float[np.ndarray, "chain draw cls observed"]
    """Expected number of labels, or of known items, of each class on items of each true class."""
    label_mean: Float[np.ndarray, "chain item cls"]
    """Mean over draws of each item's class probabilities."""
    is_complete: bool
    """False if Ctrl-C ended the run."""


class _Block(NamedTuple):
    params: dict[str, Array]
    statistics: dict[str, Array]
    log_likelihood: Array | None
    agreement: Array


class _Sum(NamedTuple):
    label_sum: Float[np.ndarray, "chain item cls"]
    n_draws: int


def run_chains(
    kernel: MCMCKernel,
    read: ReadDraw,
    state: Any,
    data: Data,
    sizes: AnySizes,
    prior: Any,
    *,
    warmup: int,
    draws: int,
    keep_log_likelihood: bool,
    progress: bool,
    description: str,
) -> Recording:
    """Advance chains through warm-up and draws.

    Compiled once per kernel, `read` and shape of the data.

    Args:
        kernel: a kernel of NumPyro that has been initialised.
        read: reads a draw off the kernel's state.
        state: the kernel's state of several chains.
        data: the data that the model is conditioned on.
        sizes: the sizes among the model's arguments.
        prior: the model's `Prior`.
        warmup: draws to discard, during which the kernel adapts.
        draws: draws per chain to keep.
        keep_log_likelihood: whether to keep the log-likelihood of each item and draw.
        progress: whether to show a progress bar, where there is a terminal.
        description: name of the bar.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed before any draw was kept.
    """
    # A weakly typed number would be strongly typed after the first block: another compilation.
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=leaf.dtype), state)
    arguments = {**sizes._asdict(), "prior": prior}
    shape = jax.eval_shape(lambda state: read(kernel, state, data, arguments)[1], state).shape
    zeros = label_sum = jnp.zeros(shape)
    blocks: list[_Block] = []
    label_sums: dict[int, _Sum] = {}
    # The first draw waits for the compiler; the second, alone in its block, is timed.
    n_done, size, is_complete = 0, 1, True
    # disable=None: shown on terminals only
    with tqdm(
        total=warmup + draws, desc=description, unit="draw", disable=None if progress else True
    ) as bar:
        try:
            while n_done < warmup + draws:
                started = time.perf_counter()
                # The clock decides how many draws a block has, but not how they are added up: a
                # sum is carried from block to block and ends with every `BLOCK`-th draw kept.
                n_sums, n_summed = divmod(max(n_done - warmup, 0), BLOCK)
                n_left = (warmup if n_done < warmup else warmup + draws) - n_done
                n_draws = min(size, n_left, BLOCK - n_summed)
                state, block, label_sum = _advance(
                    state,
                    label_sum if n_summed else zeros,
                    data,
                    prior,
                    n_draws,
                    kernel=kernel,
                    read=read,
                    sizes=sizes,
                    keep_log_likelihood=keep_log_likelihood,
                )
                label_sum.block_until_ready()
                if n_done >= warmup:
                    blocks.append(jax.tree.map(lambda leaf, n=n_draws: np.asarray(leaf)[:n], block))
                    label_sums[n_sums] = _Sum(np.asarray(label_sum), n_summed + n_draws)
                n_done += n_draws
                bar.update(n_draws)
                seconds = time.perf_counter() - started
                if n_done == 2:
                    _announce(description, seconds * (warmup + draws - n_done), warmup + draws)
                size = _block_size(n_draws / seconds) if n_done > 1 else 1
        except KeyboardInterrupt:
            if not blocks:
                raise
            is_complete = False
    return _join_blocks(blocks, list(label_sums.values()), is_complete)


def _announce(description: str, seconds: float, n_draws: int) -> None:
    """Log how long sampling will take, if that is long."""
    if seconds > LONG_SECONDS:
        _logger.warning(
            "%s: %s draws of each chain will take about %s",
            description,
            f"{n_draws:,}",
            f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours",
        )


def _block_size(draws_per_second: float) -> int:
    return int(np.clip(draws_per_second * BLOCK_SECONDS, 1, BLOCK))


@partial(jax.jit, static_argnames=("kernel", "read", "sizes", "keep_log_likelihood"))
def _advance(
    state: Any,
    label_sum: Float[Array, "chain item cls"],
    data: Data,
    prior: Any,
    n_draws: Any,
    *,
    kernel: MCMCKernel,
    read: ReadDraw,
    sizes: AnySizes,
    keep_log_likelihood: bool,
) -> tuple[Any, _Block, Float[Array, "chain item cls"]]:
    """Make `n_draws` <= BLOCK draws: the state after them, the draws, `label_sum` and theirs."""
    arguments = {**sizes._asdict(), "prior": prior}
    votes = _votes(data, n_items=sizes.n_items, n_classes=sizes.n_classes)

    def record(state: Any) -> tuple[_Block, Float[Array, "chain item cls"]]:
        params, log_joint, statistics = read(kernel, state, data, arguments)
        probas = softmax(log_joint, axis=-1)
        log_likelihood = logsumexp(log_joint, axis=-1)
        block = _Block(
            params=params,
            statistics={**statistics, "log_likelihood": log_likelihood.sum(axis=-1)},
            log_likelihood=log_likelihood if keep_log_likelihood else None,
            agreement=jnp.einsum("cik,il->ckl", probas, votes),
        )
        return block, probas

    def step(i: Any, carry: tuple[Any, _Block, Any]) -> tuple[Any, _Block, Any]:
        state, block, label_sum = carry
        state = kernel.sample(state, (data,), arguments)
        draw, probas = record(state)
        block = jax.tree.map(lambda buffer, value: buffer.at[i].set(value), block, draw)
        return state, block, label_sum + probas

    shapes, _ = jax.eval_shape(record, state)
    block = jax.tree.map(lambda leaf: jnp.zeros((BLOCK, *leaf.shape), leaf.dtype), shapes)
    return jax.lax.fori_loop(0, n_draws, step, (state, block, label_sum))


def _votes(data: Data, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Votes for each item's class: labels of a crowd, or its known class."""
    if hasattr(data, "target"):
        return jax.nn.one_hot(data.target, n_classes)
    return jnp.zeros((n_items, n_classes)).at[data.item, data.label].add(1.0)


def _join_blocks(blocks: list[_Block], label_sums: list[_Sum], is_complete: bool) -> Recording:
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves).swapaxes(0, 1), *blocks)
    label_total = np.zeros(label_sums[0].label_sum.shape)
    for one in label_sums:
        label_total += one.label_sum
    return Recording(
        params=joined.params,
        statistics=joined.statistics,
        log_likelihood=joined.log_likelihood,
        agreement=joined.agreement,
        label_mean=label_total / sum(one.n_draws for one in label_sums),
        is_complete=is_complete,
    )
