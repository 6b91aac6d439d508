"""What a user may choose about a belief, and how each kind of model's belief begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.naive_bayes import Belief, NaiveBayesBelief
from bayescrowd.budgeted.beliefs.nuts import NutsBelief
from bayescrowd.budgeted.beliefs.own_model import ModelSampler, OwnModelBelief
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import access_path, naive_bayes

__all__ = [
    "BELIEFS",
    "SAMPLERS",
    "BeliefOptions",
    "FirstBelief",
    "Sampler",
    "WorkerParameters",
    "WorkerPrior",
    "check_options",
    "model_prior",
]

SAMPLERS = ("conjugate", "nuts")
"""Names of the samplers."""

Sampler = str | ModelSampler
"""How the posterior is drawn from; see `Policy`."""

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


def model_prior(
    model: str, space: FeatureSpace, options: BeliefOptions
) -> naive_bayes.Prior | access_path.Prior:
    """The prior of a NumPyro model under which a belief is formed."""
    if model == "naive_bayes":
        return naive_bayes.Prior(conditional=space.strength)
    return access_path.Prior(conditional=space.strength)


def _first_naive_bayes(space: FeatureSpace, options: BeliefOptions) -> Belief:
    sampler, n_labels = options.sampler, options.labels_per_query
    if isinstance(sampler, ModelSampler):
        return OwnModelBelief(space, n_labels, sampler, is_noisy=False)
    if sampler == "nuts":
        return NutsBelief(space, n_labels, model_prior("naive_bayes", space, options))
    return NaiveBayesBelief(space)


def _first_access_path(space: FeatureSpace, options: BeliefOptions) -> Belief:
    sampler, n_labels = options.sampler, options.labels_per_query
    if isinstance(sampler, ModelSampler):
        return OwnModelBelief(space, n_labels, sampler, is_noisy=True)
    if sampler == "nuts":
        return NutsBelief(space, n_labels, model_prior("access_path", space, options))
    return AccessPathBelief(space, n_labels)


BELIEFS: dict[str, FirstBelief] = {
    "naive_bayes": _first_naive_bayes,
    "access_path": _first_access_path,
}
"""How each model's belief is made."""


def check_options(options: BeliefOptions) -> None:
    """Raise a ValueError unless each option is one that there is."""
    if not isinstance(options.sampler, ModelSampler) and options.sampler not in SAMPLERS:
        raise ValueError(
            f"sampler={options.sampler!r}: expected one of {', '.join(SAMPLERS)}, or a "
            "ModelSampler with a model of your own"
        )
    if options.worker_prior != "right":
        raise ValueError(f"worker_prior={options.worker_prior!r}: expected 'right'")
    if options.worker_parameters not in get_args(WorkerParameters):
        raise ValueError(
            f"worker_parameters={options.worker_parameters!r}: expected one of "
            f"{', '.join(get_args(WorkerParameters))}"
        )
