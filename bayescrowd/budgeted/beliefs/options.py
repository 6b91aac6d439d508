"""What a user may choose about a belief, and how each kind of model's belief begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.naive_bayes import Belief, NaiveBayesBelief
from bayescrowd.budgeted.space import FeatureSpace

__all__ = [
    "BELIEFS",
    "BeliefOptions",
    "FirstBelief",
    "Sampler",
    "WorkerParameters",
    "WorkerPrior",
    "check_options",
]

Sampler = Any
"""How the posterior is drawn from: 'conjugate'."""

WorkerPrior = Any
"""Prior of the workers' confusion matrices: 'right'."""

WorkerParameters = Literal["shared"]
"""Whose confusion matrices there are: one per feature, 'shared' by all workers."""


class BeliefOptions(NamedTuple):
    """What a user chooses about a belief, beside its model."""

    labels_per_query: int = 1
    """Number of labels of an observation (W)."""
    sampler: Sampler = "conjugate"
    """How the posterior is drawn from."""
    worker_prior: WorkerPrior = "right"
    """Prior of the workers' confusion matrices."""
    worker_parameters: str = "shared"
    """Whose confusion matrices there are."""


FirstBelief = Callable[[FeatureSpace, BeliefOptions], Belief]
"""Makes the belief before the first answer."""

BELIEFS: dict[str, FirstBelief] = {
    "naive_bayes": lambda space, options: NaiveBayesBelief(space),
    "access_path": lambda space, options: AccessPathBelief(space, options.labels_per_query),
}
"""How each model's belief is made."""


def check_options(options: BeliefOptions) -> None:
    """Raise a ValueError unless each option is one that there is."""
    if options.sampler != "conjugate":
        raise ValueError(f"sampler={options.sampler!r}: expected 'conjugate'")
    if options.worker_prior != "right":
        raise ValueError(f"worker_prior={options.worker_prior!r}: expected 'right'")
    if options.worker_parameters not in get_args(WorkerParameters):
        raise ValueError(
            f"worker_parameters={options.worker_parameters!r}: expected one of "
            f"{', '.join(get_args(WorkerParameters))}"
        )
