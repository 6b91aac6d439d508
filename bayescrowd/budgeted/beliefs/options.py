"""What a user may choose about a belief, and how each kind of model's belief begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.naive_bayes import Belief, NaiveBayesBelief
from bayescrowd.budgeted.beliefs.worker_chains import WorkerPathBelief
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import check_fields
from bayescrowd.models import access_path

__all__ = [
    "BELIEFS",
    "MAJORITIES",
    "BeliefOptions",
    "FirstBelief",
    "Sampler",
    "WorkerParameters",
    "WorkerPrior",
    "access_path_belief",
    "check_options",
    "refuse_worker_options",
    "worker_prior",
]

Sampler = Any
"""How the posterior is drawn from: 'conjugate'."""

WorkerPrior = Literal["right", "uniform"] | access_path.Prior
"""Prior of the workers' confusion matrices: in favour of 'right' answers, 'uniform' as in the
paper, or the pseudo-labels `right`, `wrong` and `pooling` of a prior of the model."""

WorkerParameters = Literal["shared", "own"]
"""Whose confusion matrices there are: one per feature, 'shared' by all workers, or besides also
workers' 'own'; see `worker_chains`."""

MAJORITIES = "naive Bayes reads the majority of the labels, whoever gave them"
"""Why naive Bayes has no parameters of workers."""

_UNIFORM = access_path.Prior(right=1.0, wrong=1.0)


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


def worker_prior(options: BeliefOptions) -> access_path.Prior:
    """The prior that the options name."""
    named = {"right": access_path.Prior(), "uniform": _UNIFORM}
    chosen = options.worker_prior
    return named[chosen] if isinstance(chosen, str) else chosen


def _naive_bayes(space: FeatureSpace, options: BeliefOptions) -> NaiveBayesBelief:
    refuse_worker_options(options, MAJORITIES)
    return NaiveBayesBelief(space)


def access_path_belief(space: FeatureSpace, options: BeliefOptions) -> AccessPathBelief:
    """The conjugate belief of the access path model before the first answer."""
    kind = WorkerPathBelief if options.worker_parameters == "own" else AccessPathBelief
    return kind(space, options.labels_per_query, worker_prior(options))


def refuse_worker_options(options: BeliefOptions, reason: str) -> None:
    """Raise a ValueError if parameters of workers are chosen for a belief that has none."""
    for name in ("worker_prior", "worker_parameters"):
        value, default = getattr(options, name), BeliefOptions._field_defaults[name]
        if value != default:
            raise ValueError(f"{name}={value!r}: {reason}; expected {default!r}")


FirstBelief = Callable[[FeatureSpace, BeliefOptions], Belief]
"""Makes the belief before the first answer."""

BELIEFS: dict[str, FirstBelief] = {
    "naive_bayes": _naive_bayes,
    "access_path": access_path_belief,
}
"""How each model's belief is made."""


def check_options(options: BeliefOptions) -> None:
    """Raise a ValueError unless each option is one that there is."""
    if options.sampler != "conjugate":
        raise ValueError(f"sampler={options.sampler!r}: expected 'conjugate'")
    if not isinstance(options.worker_prior, access_path.Prior):
        if options.worker_prior not in ("right", "uniform"):
            raise ValueError(
                f"worker_prior={options.worker_prior!r}: expected 'right', 'uniform' or a "
                "bayescrowd.models.access_path.Prior"
            )
    else:
        check_fields("worker_prior", options.worker_prior)
    if options.worker_parameters not in get_args(WorkerParameters):
        raise ValueError(
            f"worker_parameters={options.worker_parameters!r}: expected one of "
            f"{', '.join(get_args(WorkerParameters))}"
        )
