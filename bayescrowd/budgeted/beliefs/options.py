"""What a user may choose about a belief, and how each kind of model's belief begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler
from bayescrowd.budgeted.beliefs.naive_bayes import Belief, NaiveBayesBelief
from bayescrowd.budgeted.beliefs.nuts import NutsBelief
from bayescrowd.budgeted.beliefs.own_model import OwnModelBelief
from bayescrowd.budgeted.beliefs.worker_rows import FEWEST_LABELS, POOLING
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import check_fields
from bayescrowd.models import access_path, naive_bayes

__all__ = [
    "BELIEFS",
    "MAJORITIES",
    "SAMPLERS",
    "BeliefOptions",
    "FirstBelief",
    "Sampler",
    "WorkerParameters",
    "WorkerPrior",
    "access_path_belief",
    "check_options",
    "fewest_labels",
    "model_prior",
    "refuse_worker_options",
]

SAMPLERS = ("conjugate", "nuts")
"""Names of the samplers."""

Sampler = str | ModelSampler
"""How the posterior is drawn from; see `Policy`."""

WorkerPrior = Literal["right", "uniform"] | access_path.Prior
"""Prior of the workers' confusion matrices: in favour of 'right' answers, 'uniform' as in the
paper, or the pseudo-labels `right`, `wrong` and `pooling` of a prior of the model."""

WorkerParameters = Literal["shared", "own"]
"""Whose confusion matrices there are: one per feature, 'shared' by all workers, or besides it those
of workers with enough answers, their 'own' (see `worker_rows`)."""

MAJORITIES = "naive Bayes reads the majority of the labels, whoever gave them"
"""Why naive Bayes has no parameters of workers."""

_OF_ONES_OWN = "a model of your own states the workers' parameters itself"

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


def refuse_worker_options(options: BeliefOptions, reason: str, *names: str) -> None:
    """Raise a ValueError if one of these options, or any, is not the default."""
    for name in names or ("worker_prior", "worker_parameters"):
        value, default = getattr(options, name), BeliefOptions._field_defaults[name]
        if value != default:
            raise ValueError(f"{name}={value!r}: {reason}; expected {default!r}")


FirstBelief = Callable[[FeatureSpace, BeliefOptions], Belief]
"""Makes the belief before the first answer."""


def model_prior(
    model: str, space: FeatureSpace, options: BeliefOptions
) -> naive_bayes.Prior | access_path.Prior:
    """The prior of the NumPyro model whose posterior a belief is."""
    if model == "naive_bayes":
        return naive_bayes.Prior(conditional=space.strength)
    return access_path_prior(space, options)


def access_path_prior(space: FeatureSpace, options: BeliefOptions) -> access_path.Prior:
    """The prior of the access path model; with `pooling` if workers have their own rows."""
    chosen = options.worker_prior
    if not isinstance(chosen, access_path.Prior):
        chosen = _UNIFORM if chosen == "uniform" else access_path.Prior()
    pooling = POOLING if chosen.pooling is None else chosen.pooling
    has_own_rows = options.worker_parameters == "own"
    return chosen._replace(conditional=space.strength, pooling=pooling if has_own_rows else None)


def fewest_labels(options: BeliefOptions) -> int | None:
    """Number of labels of a feature with which a worker has rows of their own, if any has."""
    return FEWEST_LABELS if options.worker_parameters == "own" else None


def _first_naive_bayes(space: FeatureSpace, options: BeliefOptions) -> Belief:
    sampler, n_labels = options.sampler, options.labels_per_query
    if isinstance(sampler, ModelSampler):
        refuse_worker_options(options, _OF_ONES_OWN)
        return OwnModelBelief(space, n_labels, sampler, is_noisy=False)
    refuse_worker_options(options, MAJORITIES)
    if sampler == "nuts":
        return NutsBelief(space, n_labels, model_prior("naive_bayes", space, options))
    return NaiveBayesBelief(space)


def _first_access_path(space: FeatureSpace, options: BeliefOptions) -> Belief:
    sampler, n_labels = options.sampler, options.labels_per_query
    if isinstance(sampler, ModelSampler):
        refuse_worker_options(options, _OF_ONES_OWN)
        return OwnModelBelief(space, n_labels, sampler, is_noisy=True)
    if sampler == "nuts":
        reason = "sampler='nuts' draws from the model in which all workers share their parameters"
        refuse_worker_options(options, reason, "worker_parameters")
        return NutsBelief(space, n_labels, model_prior("access_path", space, options))
    return access_path_belief(space, options)


def access_path_belief(space: FeatureSpace, options: BeliefOptions) -> AccessPathBelief:
    """The conjugate belief of the access path model before the first answer."""
    return AccessPathBelief(space, options.labels_per_query, access_path_prior(space, options))


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
    prior = options.worker_prior
    if isinstance(prior, access_path.Prior):
        check_fields("worker_prior", prior)
        for name in ("right", "wrong"):
            if np.ndim(getattr(prior, name)) > 0:
                raise ValueError(
                    f"worker_prior.{name}={getattr(prior, name)!r}: expected one number for all "
                    "features of a policy"
                )
    elif prior not in ("right", "uniform"):
        raise ValueError(
            f"worker_prior={prior!r}: expected 'right', 'uniform' or a "
            "bayescrowd.models.access_path.Prior"
        )
    if options.worker_parameters not in get_args(WorkerParameters):
        raise ValueError(
            f"worker_parameters={options.worker_parameters!r}: expected one of "
            f"{', '.join(get_args(WorkerParameters))}"
        )
