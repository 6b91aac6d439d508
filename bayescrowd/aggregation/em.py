"""Expectation maximisation for discrete labels whose true class is hidden.

One formulation serves every model of the family (Dawid and Skene 1979, section 2; mixtures of
discrete product distributions). A *symbol* is something that can be observed on an item: 'worker w
says l'. The labels are then one sparse matrix A, items x symbols, with a one per label, and a
model is a table of log P(symbol | class). Both halves of an EM iteration are products with A:

    E-step (eq. 2.5):       scores = A @ log_table + log_prior;  posterior = softmax(scores)
    M-step (eqs. 2.3, 2.4): counts = A.T @ posterior

SciPy's compiled products run at memory speed, release the interpreter lock, and need no
compilation: four thousand labels are done before a just-in-time compiler has been imported, and on
five million labels fused numba and jitted JAX kernels were no faster, because all of them wait for
the same random reads of the table. Scores, counts and the objective are in double precision and in
log space: a product of two thousand probabilities underflows.

Large sets are cut into shards that threads work on in parallel, and shards into blocks that fit the
cache. In large sets the exponentials alone are in single precision (relative error 1e-7), which
halves the time of the softmax. The cuts depend on the data only, and partial sums are added in the
order of the shards, so that results do not depend on the number of cores.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.iteration import ascend

__all__ = [
    "EMEstimate",
    "EMResult",
    "Incidence",
    "Sweep",
    "floored_log",
    "maximise",
]

LOG_FLOOR = -690.0
"""Smallest log probability, about log 1e-300, so that ruling out all classes gives no NaN."""

_BLOCK_ITEMS = 8_192
"""Number of items in a block of the E-step."""

_SHARD_LABELS = 2**18
"""Least number of labels in a shard, if there are several."""

_MAX_SHARDS = 16
"""Largest number of shards."""


class Sweep(NamedTuple):
    """Result of one pass over the labels."""

    counts: Float[np.ndarray, "symbol cls"]
    """Expected number of times items of each class showed each symbol."""
    class_counts: Float[np.ndarray, " cls"]
    """Expected number of items of each class."""
    log_likelihood: float
    """log P(labels) in nats under the parameters of the E-step; NaN if there was no E-step."""


class EMEstimate(NamedTuple):
    """Parameters as the E-step takes them."""

    log_table: Float[np.ndarray, "symbol cls"]
    """log P(symbol | class), finite."""
    log_prior: Float[np.ndarray, " cls"]
    """log P(class), finite."""
    penalty: float
    """log prior density of the parameters up to a constant, in nats."""
    parameters: Any
    """What else the M-step found, for the next M-step and for the reader of the result."""


class EMResult(NamedTuple):
    """Where EM stopped."""

    estimate: EMEstimate
    """The last parameters."""
    posterior: Float[np.ndarray, "item cls"]
    """P(class | labels) under the last parameters."""
    counts: Float[np.ndarray, "symbol cls"]
    """Expected counts under that posterior."""
    log_likelihood: float
    """log P(labels) under the last parameters."""
    trace: Float[np.ndarray, " iteration"]
    """Objective (log-likelihood plus penalty, nats) after each iteration; never falls."""
    converged: bool
    """Whether the objective's gain per label fell below the tolerance."""


class Incidence:
    """The labels as a sparse matrix, items x symbols, ready for repeated products.

    Args:
        offsets: the symbols of item i are those from `offsets[i]` up to `offsets[i + 1]`.
        symbols: symbol of each label.
        n_symbols: number of symbols.
        n_classes: number of hidden classes.
        fixed: class of items whose truth is known, -1 elsewhere; None if none is known.

    Examples:
        >>> import numpy as np
        >>> labels = Incidence(np.array([0, 2, 3]), np.array([0, 1, 3]), n_symbols=4, n_classes=2)
        >>> labels.counts(np.array([[1.0, 0.0], [0.25, 0.75]]))
        array([[1.  , 0.  ],
               [1.  , 0.  ],
               [0.  , 0.  ],
               [0.25, 0.75]])
    """

    def __init__(
        self,
        offsets: Int[np.ndarray, " item_plus_1"],
        symbols: Int[np.ndarray, " label"],
        *,
        n_symbols: int,
        n_classes: int,
        fixed: Int[np.ndarray, " item"] | None = None,
    ) -> None:
        self.n_items = len(offsets) - 1
        self.n_labels = len(symbols)
        self.n_classes = n_classes
        self.n_symbols = n_symbols
        self._fixed = fixed if fixed is not None and (fixed >= 0).any() else None
        bounds = _shard_bounds(offsets, n_symbols * n_classes)
        # Every product with A reads ones: all matrices share one array, which stays in the cache.
        ones = np.ones(max(int(offsets[last] - offsets[first]) for first, last in bounds))
        self._shards = [
            _cut_shard(offsets, symbols, first, last, n_symbols, ones) for first, last in bounds
        ]
        self._exp_dtype = np.float64 if len(bounds) == 1 else np.float32

    def sweep(self, estimate: EMEstimate, out: Float[np.ndarray, "item cls"]) -> Sweep:
        """Run the E-step into `out`, and return the expected counts that an M-step needs."""
        with self._map() as run:
            parts = list(run(lambda shard: self._sweep_shard(shard, estimate, out)))
        return _add(parts)

    def counts(self, posterior: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "symbol cls"]:
        """Expected counts under a given posterior: A.T @ posterior."""
        with self._map() as run:
            parts = list(run(lambda shard: shard.transposed @ posterior[shard.items]))
        return _sum_in_order(parts)

    def scores(self, estimate: EMEstimate) -> Float[np.ndarray, "item cls"]:
        """log P(labels of the item, class) for each item and class."""
        out = np.empty((self.n_items, self.n_classes))
        for shard in self._shards:
            for items, block in shard.blocks:
                out[items] = block @ estimate.log_table + estimate.log_prior
        return out

    def start(self, posterior: Float[np.ndarray, "item cls"]) -> Sweep:
        """The sweep that corresponds to a given posterior, with known items set to their truth."""
        if self._fixed is not None:
            known = np.flatnonzero(self._fixed >= 0)
            posterior = posterior.copy()
            posterior[known] = np.eye(self.n_classes)[self._fixed[known]]
        return Sweep(self.counts(posterior), posterior.sum(axis=0), float("nan"))

    def _sweep_shard(
        self, shard: _Shard, estimate: EMEstimate, out: Float[np.ndarray, "item cls"]
    ) -> Sweep:
        log_likelihood = 0.0
        class_counts = np.zeros(self.n_classes)
        for items, block in shard.blocks:
            # Classes come first, so that each operation of the softmax runs along long rows.
            scores = np.ascontiguousarray((block @ estimate.log_table).T)
            scores += estimate.log_prior[:, None]
            if self._fixed is not None:
                _forbid_others(scores, self._fixed[items])
            posterior, log_evidence = _softmax(scores, self._exp_dtype)
            log_likelihood += log_evidence
            class_counts += posterior.sum(axis=1, dtype=np.float64)
            out[items] = posterior.T
        return Sweep(shard.transposed @ out[shard.items], class_counts, log_likelihood)

    @contextmanager
    def _map(self) -> Iterator[Callable[[Callable[[_Shard], Any]], Iterator[Any]]]:
        if len(self._shards) == 1:
            yield lambda function: map(function, self._shards)
            return
        with ThreadPoolExecutor(min(len(self._shards), _usable_cores())) as pool:
            yield lambda function: pool.map(function, self._shards)


def floored_log(probability: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Elementwise log, never below `LOG_FLOOR`."""
    return np.log(np.maximum(probability, np.exp(LOG_FLOOR)))


def maximise(
    labels: Incidence,
    posterior: Float[np.ndarray, "item cls"],
    m_step: Callable[[Sweep, EMEstimate | None], EMEstimate],
    *,
    n_iter: int,
    tol: float,
    estimate: EMEstimate | None = None,
) -> EMResult:
    """Run EM: an iteration is an M-step followed by an E-step.

    Args:
        labels: the data.
        posterior: P(class | labels) to start from; it is not changed.
        m_step: parameters from expected counts and the parameters before (None at first).
        n_iter: largest number of iterations, at least 1.
        tol: stop when an iteration raises the objective by less than this many nats per label;
            0 runs all iterations.
        estimate: parameters to start from; `posterior` then has no effect.
    """
    out = np.empty((labels.n_items, labels.n_classes))
    sweep = labels.sweep(estimate, out) if estimate is not None else labels.start(posterior)

    def step(estimate: EMEstimate | None) -> tuple[EMEstimate | None, float]:
        nonlocal sweep
        estimate = m_step(sweep, estimate)
        del sweep  # with many classes, its table takes a large part of the memory
        sweep = labels.sweep(estimate, out)
        return estimate, sweep.log_likelihood + estimate.penalty

    # The sweep is not part of the state, so that its table can be freed before the next is made.
    course = ascend(step, estimate, n_iter=n_iter, tol=tol * labels.n_labels)
    estimate = course.state
    assert estimate is not None  # one iteration at least
    return EMResult(
        estimate, out, sweep.counts, sweep.log_likelihood, course.trace, course.converged
    )


class _Shard(NamedTuple):
    """Consecutive items that one thread works on."""

    items: slice
    """The items."""
    blocks: list[tuple[slice, scipy.sparse.csr_matrix]]
    """Matrices of the E-step, in blocks of items that fit the cache."""
    transposed: scipy.sparse.csc_matrix
    """Matrix of the M-step, which shares the memory of the shard."""


def _shard_bounds(
    offsets: Int[np.ndarray, " item_plus_1"], table_size: int
) -> list[tuple[int, int]]:
    """The first item of each shard and the one after its last, with about equally many labels.

    Each shard makes its own table of counts, which must be small compared with its labels.
    """
    n_labels = int(offsets[-1])
    n_shards = int(np.clip(n_labels // max(_SHARD_LABELS, 2 * table_size), 1, _MAX_SHARDS))
    cuts = np.searchsorted(offsets, np.linspace(0, n_labels, n_shards + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [len(offsets) - 1]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _cut_shard(
    offsets: Int[np.ndarray, " item_plus_1"],
    symbols: Int[np.ndarray, " label"],
    first: int,
    last: int,
    n_symbols: int,
    ones: Float[np.ndarray, " ones"],
) -> _Shard:
    def matrix(a: int, b: int) -> scipy.sparse.csr_matrix:
        low, high = int(offsets[a]), int(offsets[b])
        pointers = (offsets[a : b + 1] - low).astype(symbols.dtype)
        parts = (ones[: high - low], symbols[low:high], pointers)
        return scipy.sparse.csr_matrix(parts, shape=(b - a, n_symbols), copy=False)

    starts = range(first, last, _BLOCK_ITEMS)
    blocks = [(start, min(start + _BLOCK_ITEMS, last)) for start in starts]
    return _Shard(
        slice(first, last),
        [(slice(a, b), matrix(a, b)) for a, b in blocks],
        matrix(first, last).T,
    )


def _forbid_others(scores: Float[np.ndarray, "cls item"], fixed: Int[np.ndarray, " item"]) -> None:
    known = np.flatnonzero(fixed >= 0)
    kept = scores[fixed[known], known]
    scores[:, known] = -np.inf
    scores[fixed[known], known] = kept


def _softmax(
    scores: Float[np.ndarray, "cls item"], exp_dtype: type[np.floating]
) -> tuple[Float[np.ndarray, "cls item"], float]:
    """Softmax over classes and the sum of the log normalisers; `scores` is overwritten."""
    largest = scores.max(axis=0)
    scores -= largest
    posterior = scores.astype(exp_dtype, copy=False)
    np.exp(posterior, out=posterior)
    total = posterior.sum(axis=0)
    posterior /= total
    return posterior, float(largest.sum() + np.log(total).sum(dtype=np.float64))


def _add(parts: list[Sweep]) -> Sweep:
    return Sweep(
        _sum_in_order([part.counts for part in parts]),
        _sum_in_order([part.class_counts for part in parts]),
        float(sum(part.log_likelihood for part in parts)),
    )


def _sum_in_order(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
