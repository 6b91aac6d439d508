"""What sampling will take, computed from shapes before it starts: memory, and work of sweeps."""

from __future__ import annotations

import logging
import math

import jax

from bayescrowd.checks.memory import check_fits
from bayescrowd.posterior.chains import BLOCK
from bayescrowd.posterior.crowd_adapter import CrowdProblem
from bayescrowd.posterior.gibbs import conditionals_of

__all__ = ["check_memory", "sampling_bytes", "sweep_work"]

_logger = logging.getLogger(__name__)

_BYTES = 4
"""Bytes of a number in single precision."""

COPIES_OF_DRAWS, COPIES_OF_BLOCK, COPIES_OF_MATRICES = 3, 2, 3
"""Copies held at a time: draws with their joined and renamed arrays, buffers of draws, and matrices
with their logs. For 40 workers and 100 classes this makes 1.3 GB of 2 x 100 draws, as was measured;
predictive draws took 0.3 GB more."""

LARGE_BYTES = 4e9
"""Sampling that takes more bytes than this is announced."""

WORK_OF_PARAMETER, WORK_OF_SWEEP = 10, 5_000
"""Labels whose counting takes as long as the draw of a parameter, and as what every sweep adds."""


def sampling_bytes(
    problem: CrowdProblem, *, chains: int, draws: int, keep_log_likelihood: bool
) -> float:
    """Memory that the draws of a crowd model take, in bytes.

    A draw is the model's parameters, the agreement of labels and classes, and, if it is kept, the
    log-likelihood of each task. Beside the draws there are the buffer of a block of them, the
    confusion matrices that the likelihood is read from, and the probabilities of tasks' classes.

    Args:
        problem: the model and its labels.
        chains: number of chains.
        draws: draws per chain.
        keep_log_likelihood: whether the log-likelihood of each task is kept.
    """
    n_items, n_workers, n_classes = problem.sizes
    per_draw = float(n_classes**2 + (n_items if keep_log_likelihood else 0))
    per_draw += sum(float(math.prod(shape)) for shape in _shapes(problem).values())
    kept = chains * per_draw * (COPIES_OF_DRAWS * draws + COPIES_OF_BLOCK * BLOCK)
    matrices = COPIES_OF_MATRICES * float(n_workers) * n_classes**2
    return _BYTES * (kept + matrices + 4.0 * chains * n_items * n_classes)


def sweep_work(problem: CrowdProblem) -> float:
    """Work of one Gibbs sweep of one chain, in labels.

    A sweep goes through all labels and draws all parameters, of which a matrix for each worker has
    more than there are labels. Between crowds of 2,000 to 25,000 labels with 2 to 10 classes and 4
    to 176 workers, the work of `dawid_skene` differs by a factor of ten, and a unit of it takes 8
    to 24 ns. Other models take `Conditionals.work` times as long.

    Args:
        problem: the model and its labels.
    """
    n_parameters = sum(math.prod(shape) for shape in _shapes(problem).values())
    n_labels = len(problem.data.label)
    work = n_labels + WORK_OF_PARAMETER * n_parameters + WORK_OF_SWEEP
    return float(conditionals_of(problem.model).work * work)


def _shapes(problem: CrowdProblem) -> dict[str, tuple[int, ...]]:
    """Shape of each parameter, from a draw of the prior that is traced and never made."""
    design = (problem.data.item, problem.data.worker)
    drawn = jax.eval_shape(
        lambda key: problem.model.simulate(
            key, *design, **problem.sizes._asdict(), prior=problem.prior
        ).params._asdict(),
        jax.random.key(0),
    )
    return {name: drawn[name].shape for name in problem.dims}


def check_memory(
    problem: CrowdProblem, *, chains: int, draws: int, keep_log_likelihood: bool
) -> None:
    """Refuse draws that do not fit into memory, and announce those that take much.

    Raises:
        ValueError: the draws take more memory than there is.
    """
    n_bytes = sampling_bytes(
        problem, chains=chains, draws=draws, keep_log_likelihood=keep_log_likelihood
    )
    name = problem.model.__name__.rpartition(".")[2]
    what = (
        f"{chains} x {draws:,} draws of {name} with {problem.sizes.n_workers:,} workers and "
        f"{problem.sizes.n_classes:,} classes"
    )
    check_fits(n_bytes, what, "ask for fewer draws, or for a model without confusion matrices")
    if n_bytes > LARGE_BYTES:
        _logger.warning("%s take about %.1f GB of memory", what, n_bytes / 1e9)
