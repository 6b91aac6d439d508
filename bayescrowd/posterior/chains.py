"""Runs chains of any NumPyro kernel and records what an analysis of classes needs.

One compiled function advances all chains, or each in a thread of its own, by up to `BLOCK` draws
and records them; between its calls the progress bar moves and Ctrl-C is heard. A draw is recorded
as its parameters, the marginal log-likelihood of each item and how labels, or known classes, agree
with the classes; the probabilities of each item's class, which would fill the memory first, are
averaged on the way.

Sampling may go on until chains agree (`Extension`). A look at the draws decides: where chains agree
but know too little, every second draw is dropped and as many are added, twice as far apart. Where
they disagree, all draws so far become warm-up, and twice as many are made. Both double the sweeps
behind the kept draws, so that looks are few and the memory stays what it was. Only draws decide,
never the clock, and the same seed stops at the same draw.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
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

from bayescrowd.posterior.chain_method import threads_of_chains
from bayescrowd.posterior.conditionals.classes import label_votes
from bayescrowd.posterior.convergence import Verdict

__all__ = [
    "Aim",
    "Data",
    "Draw",
    "Extension",
    "FeatureSizes",
    "Jump",
    "ReadingSizes",
    "Recording",
    "Sizes",
    "run_chains",
]

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
    thin: int = 1
    """Number of draws of each chain behind a kept one."""
    warmup: int = 0
    """Number of draws of each chain that were discarded at first."""
    verdict: Verdict | None = None
    """What the last look at the draws said, if there was one."""


Jump = Callable[[Any, Any], Any]
"""(rng_key, state) -> state: a transition between places that sweeps hardly connect."""


class Aim(NamedTuple):
    """How chains that disagree go on."""

    start: Callable[[Any], Any]
    """state -> state from which they warm up again."""
    jump: Jump
    """Transition between places where chains have been."""


class Extension(NamedTuple):
    """How sampling goes on until chains agree."""

    most_draws: int
    """Largest number of draws of each chain after its first warm-up."""
    judge: Callable[[Recording], Verdict]
    """Looks at the draws."""
    aim: Callable[[Recording], Aim] | None = None
    """Says how chains that disagree go on; by default, as before."""


class _Block(NamedTuple):
    params: dict[str, Array]
    statistics: dict[str, Array]
    log_likelihood: Array | None
    agreement: Array


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
    extension: Extension | None = None,
    rng_key: Any = None,
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
        extension: how to go on until chains agree; by default, they stop after `draws`.
        rng_key: the source of randomness of jumps.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed before any draw was kept.
    """
    # A weakly typed number would be strongly typed after the first block: another compilation.
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=leaf.dtype), state)
    arguments = {**sizes._asdict(), "prior": prior}
    shape = jax.eval_shape(lambda state: read(kernel, state, data, arguments)[1], state).shape
    zeros = jnp.zeros(shape)
    kept = _Kept(n_discarded=warmup)
    has_threads = getattr(kernel, "chain_method", "") == "threads"
    # The second draw, alone in its block, is timed.
    n_done, size, n_planned = 0, 1, warmup + draws
    jump: Jump | None = None
    # disable=None: shown on terminals only
    with (
        tqdm(
            total=n_planned, desc=description, unit="draw", disable=None if progress else True
        ) as bar,
        threads_of_chains(shape[0]) as threads,
    ):
        try:
            while True:
                while n_done < n_planned:
                    started = time.perf_counter()
                    # The clock decides how many draws a block has, but neither how they are added
                    # up nor when chains jump: both depend on their number alone.
                    is_warm = n_done >= kept.n_discarded
                    n_left = (n_planned if is_warm else kept.n_discarded) - n_done
                    n_since = kept.n_draws if is_warm else n_done
                    n_draws = min(size, n_left, BLOCK - n_since % BLOCK)
                    if jump is not None and n_since % BLOCK == 0:
                        state = jump(jax.random.fold_in(rng_key, n_done), state)
                    state, block, label_sum = _advance_chains(
                        # The first draw waits for the compiler, once for all chains.
                        (threads.map if n_done else map) if has_threads else None,
                        state,
                        kept.label_sum if is_warm and kept.label_sum is not None else zeros,
                        data,
                        prior,
                        n_draws,
                        n_since % kept.thin,
                        kept.thin,
                        kernel=kernel,
                        read=read,
                        sizes=sizes,
                        keep_log_likelihood=keep_log_likelihood,
                    )
                    if is_warm:
                        kept.add(block, label_sum, n_draws)
                    n_done += n_draws
                    bar.update(n_draws)
                    seconds = time.perf_counter() - started
                    if n_done == 2:
                        _announce(description, seconds * (n_planned - n_done), n_planned)
                    size = _block_size(n_draws / seconds) if n_done > 1 else 1
                recording = kept.recording(is_complete=True)
                verdict = Verdict.CONVERGED if extension is None else extension.judge(recording)
                if extension is None:
                    return recording
                if verdict in (Verdict.CONVERGED, Verdict.SPENT):
                    return recording._replace(verdict=verdict)
                n_more = kept.n_draws if verdict is Verdict.FEW else 2 * kept.n_draws + warmup
                if n_done + n_more > warmup + extension.most_draws:
                    return recording._replace(verdict=verdict)
                if verdict is Verdict.FEW:
                    kept.halve()
                else:
                    if extension.aim is not None:
                        aim = extension.aim(recording)
                        state, jump = aim.start(state), aim.jump
                    kept = _Kept(n_discarded=n_done + warmup, thin=2 * kept.thin)
                del recording
                n_planned = max(n_done, kept.n_discarded) + draws * kept.thin - kept.n_draws
                bar.total = n_planned
                bar.refresh()
        except KeyboardInterrupt:
            if not kept.blocks:
                raise
            return kept.recording(is_complete=False)


class _Kept:
    """The draws that are kept, and sums over all draws behind them."""

    def __init__(self, *, n_discarded: int, thin: int = 1) -> None:
        self.n_discarded = n_discarded
        self.thin = thin
        self.n_draws = 0
        self.blocks: list[_Block] = []
        self.label_sum: Array | None = None
        self._label_total: np.ndarray | float = 0.0

    def add(self, block: _Block, label_sum: Array, n_draws: int) -> None:
        """Add a block; sums are carried in single precision for `BLOCK` draws at most."""
        n_kept = (self.n_draws % self.thin + n_draws) // self.thin
        self.n_draws += n_draws
        if n_kept:
            self.blocks.append(jax.tree.map(lambda leaf: np.asarray(leaf)[:n_kept], block))
        self.label_sum = label_sum
        if self.n_draws % BLOCK == 0:
            self._close_sum()

    def halve(self) -> None:
        """Drop every other draw: the first, the third and so on."""
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[1::2].copy(), *self.blocks)
        self.thin *= 2
        # An odd last draw has no partner: its successors are counted as if it had not been made.
        self.n_draws -= self.n_draws % self.thin
        self.blocks = [joined]
        self._close_sum()

    def recording(self, *, is_complete: bool) -> Recording:
        """The draws as arrays [chain, draw, ...]."""
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves).swapaxes(0, 1), *self.blocks)
        open_sum = 0.0 if self.label_sum is None else np.asarray(self.label_sum, dtype=float)
        total = np.asarray(self._label_total + open_sum)
        return Recording(
            params=joined.params,
            statistics=joined.statistics,
            log_likelihood=joined.log_likelihood,
            agreement=joined.agreement,
            label_mean=total / total.sum(axis=-1, keepdims=True),
            is_complete=is_complete,
            thin=self.thin,
            warmup=self.n_discarded,
        )

    def _close_sum(self) -> None:
        if self.label_sum is not None:
            self._label_total = self._label_total + np.asarray(self.label_sum, dtype=float)
            self.label_sum = None


def _announce(description: str, seconds: float, n_draws: int) -> None:
    """Log how long sampling will take, if that is long."""
    if seconds > LONG_SECONDS:
        _logger.warning(
            "%s: %s draws of each chain will take about %s",
            description,
            f"{n_draws:,}",
            _in_words(seconds),
        )


def _in_words(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"


def _block_size(draws_per_second: float) -> int:
    return int(np.clip(draws_per_second * BLOCK_SECONDS, 1, BLOCK))


def _advance_chains(
    spread: Callable[..., Iterable[Any]] | None,
    state: Any,
    label_sum: Float[Array, "chain item cls"],
    *rest: Any,
    **options: Any,
) -> tuple[Any, _Block, Float[Array, "chain item cls"]]:
    """`_advance` of all chains, or of each by itself by means of a `map`; waits for the end."""

    def advance(chain: int | None) -> tuple[Any, _Block, Array]:
        advanced = _advance(state, label_sum, chain, *rest, **options)
        advanced[-1].block_until_ready()
        return advanced

    if spread is None:
        return advance(None)
    return _join(list(spread(advance, range(len(label_sum)))))


@jax.jit
def _join(chains: list[tuple[Any, _Block, Array]]) -> tuple[Any, _Block, Array]:
    """One tree for all chains; draws of a block come before the chain."""
    states, blocks, label_sums = zip(*chains, strict=True)
    return (
        jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states),
        jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), *blocks),
        jnp.concatenate(label_sums),
    )


@partial(jax.jit, static_argnames=("kernel", "read", "sizes", "keep_log_likelihood"))
def _advance(
    state: Any,
    label_sum: Float[Array, "chain item cls"],
    chain: Any,
    data: Data,
    prior: Any,
    n_draws: Any,
    phase: Any,
    thin: Any,
    *,
    kernel: MCMCKernel,
    read: ReadDraw,
    sizes: AnySizes,
    keep_log_likelihood: bool,
) -> tuple[Any, _Block, Float[Array, "advanced item cls"]]:
    """Make `n_draws` <= BLOCK draws: the state after them, the draws, `label_sum` and theirs.

    Of every `thin` draws, of which `phase` were made before, the last one remains in the block.
    Where a chain is given by its number, the others are left out.
    """
    if chain is not None:
        state, label_sum = jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, chain, 1), (state, label_sum)
        )
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
        slot = (phase + i) // thin
        block = jax.tree.map(lambda buffer, value: buffer.at[slot].set(value), block, draw)
        return state, block, label_sum + probas

    shapes, _ = jax.eval_shape(record, state)
    block = jax.tree.map(lambda leaf: jnp.zeros((BLOCK, *leaf.shape), leaf.dtype), shapes)
    return jax.lax.fori_loop(0, n_draws, step, (state, block, label_sum))


def _votes(data: Data, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Votes for each item's class: labels of a crowd, or its known class."""
    if hasattr(data, "target"):
        return jax.nn.one_hot(data.target, n_classes)
    return label_votes(data, n_items=n_items, n_classes=n_classes)
