"""A crowd's labels as samplers take them, and draws as users read them.

`sample_posterior` sees its data through a problem: the one of this module for models of crowd
labels, that of `bayescrowd.posterior.feature_adapter` for models of features.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from numpyro.distributions import constraints

from bayescrowd.checks.parameters import check_fields
from bayescrowd.checks.priors import check_prior, place_prior
from bayescrowd.data.annotations import Annotations, as_annotations
from bayescrowd.data.truth import Truth
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.alignment import (
    Alignment,
    align_chains,
    complaints,
    order_subtypes,
    rename_classes,
)
from bayescrowd.posterior.chains import Recording, Sizes
from bayescrowd.posterior.container import Variable, dataset_of
from bayescrowd.posterior.predictive import evenly_spaced, predict

__all__ = [
    "CrowdProblem",
    "Named",
    "crowd_problem",
    "recording_statistics",
    "start_of",
    "trace_at_means",
]


class Named(NamedTuple):
    """What chains drew, with classes named alike in all of them."""

    params: dict[str, Variable]
    """Dimensions and draws of the parameters."""
    probas: Float[np.ndarray, "chain item cls"]
    """Mean class probabilities."""
    is_renamed: bool
    """Whether any chain had other names for its classes."""


class CrowdProblem(NamedTuple):
    """A crowd model, its labels, and the names of its axes."""

    model: ModuleType
    """The model."""
    ann: Annotations
    """The labels as the user gave them."""
    data: Labels
    """The labels, coded."""
    sizes: Sizes
    """How much there is of everything."""
    prior: Any
    """The model's `Prior`."""
    dims: dict[str, tuple[str, ...]]
    """Names of the axes of each parameter."""

    @property
    def coords(self) -> dict[str, pd.Index]:
        """The user's ids along each axis."""
        ann = self.ann
        return {
            "task": ann.tasks,
            "worker": ann.workers,
            "cls": ann.classes,
            "observed": ann.classes,
        }

    def first_probas(self, init: str | pd.DataFrame) -> Float[Array, "item cls"] | None:
        """Probabilities of the classes that chains start from; None leaves them to the kernel."""
        probas = start_of(init, self.ann.tasks, self.ann.classes)
        gold = self.data.gold
        if probas is None or gold is None:
            return probas
        return jnp.where(gold[:, None] >= 0, gold[:, None] == jnp.arange(len(probas[0])), probas)

    def datasets(self, recording: Recording) -> tuple[dict[str, xr.Dataset], list[str]]:
        """All groups but the predictive ones, and warnings for the user."""
        alignment = self._alignment(recording)
        groups = self._groups(recording, alignment)
        named = {name: dataset_of(group, coords=self.coords) for name, group in groups.items()}
        return named, complaints(alignment)

    def named(self, recording: Recording) -> Named:
        """The draws with the classes named as the user names them."""
        alignment = self._alignment(recording)
        dims = ("chain", "task", "cls")
        probas = rename_classes(recording.label_mean, dims, alignment.naming)
        return Named(self._params(recording, alignment), probas, bool(alignment.is_renamed.any()))

    def predictive(
        self, rng_key: PRNGKeyArray, recording: Recording, posterior: xr.Dataset, n_draws: int
    ) -> dict[str, xr.Dataset]:
        """Draws from the prior, and labels drawn with them and with evenly spaced draws."""
        chosen = evenly_spaced(posterior.sizes["chain"], posterior.sizes["draw"], n_draws)
        predicted = predict(
            rng_key,
            (self.data.item, self.data.worker),
            self.prior,
            {name: posterior[name].to_numpy()[:, chosen] for name in self.dims},
            model=self.model,
            sizes=self.sizes,
            n_draws=n_draws,
        )
        prior = {
            name: (("chain", "draw", *dims), predicted.params[name][None])
            for name, dims in self.dims.items()
        }
        from_prior = self._label_draws(predicted.from_prior[None])
        from_posterior = self._label_draws(predicted.from_posterior)
        return {
            "prior": dataset_of(prior, coords=self.coords),
            "prior_predictive": dataset_of({"label": from_prior}),
            "posterior_predictive": dataset_of({"label": from_posterior}, coords={"draw": chosen}),
        }

    def _alignment(self, recording: Recording) -> Alignment:
        """Names of the classes; those of which a task is known have their own."""
        can_rename = "confusion" in self.model.Params._fields
        agreement = recording.agreement
        if self.data.gold is None:
            return align_chains(agreement, can_rename=can_rename)
        gold = np.asarray(self.data.gold)
        is_named = np.isin(np.arange(self.ann.n_classes), gold)
        # No label supports another name of such a class, so that none is found.
        is_moved = (is_named[:, None] | is_named) & ~np.eye(len(is_named), dtype=bool)
        alignment = align_chains(np.where(is_moved, 0.0, agreement), can_rename=can_rename)
        means = agreement.mean(axis=1, keepdims=True)
        renamed = rename_classes(means, ("chain", "draw", "cls", "observed"), alignment.naming)
        return alignment._replace(kappa=align_chains(renamed, can_rename=False).kappa)

    def _params(self, recording: Recording, alignment: Alignment) -> dict[str, Variable]:
        """The parameters, classes named as the user names them."""
        params: dict[str, Variable] = {}
        for name, site_dims in self.dims.items():
            dims = ("chain", "draw", *site_dims)
            params[name] = (dims, rename_classes(recording.params[name], dims, alignment.naming))
        if "subtype_confusion" in params:
            n_labels = np.bincount(self.ann.worker_codes, minlength=self.ann.n_workers)
            params = order_subtypes(params, n_labels.astype(float))
        return params

    def _groups(self, recording: Recording, alignment: Alignment) -> dict[str, dict[str, Variable]]:
        params = self._params(recording, alignment)
        label_mean = rename_classes(
            recording.label_mean, ("chain", "task", "cls"), alignment.naming
        )
        groups: dict[str, dict[str, Variable]] = {
            "posterior": params,
            "label_posterior": {"probability": (("chain", "task", "cls"), label_mean)},
            "sample_stats": recording_statistics(recording),
            "alignment": {
                "naming": (("chain", "cls"), alignment.naming),
                "is_renamed": (("chain",), alignment.is_renamed),
                "unstable": (("chain",), alignment.unstable),
                "kappa": (("chain",), alignment.kappa),
            },
            "observed_data": {"label": (("judgement",), self.ann.label_codes)},
            "constant_data": {
                "task_code": (("judgement",), self.ann.task_codes),
                "worker_code": (("judgement",), self.ann.worker_codes),
            },
        }
        if self.data.gold is not None:
            groups["constant_data"]["gold_code"] = (("task",), np.asarray(self.data.gold))
        if recording.log_likelihood is not None:
            values = recording.log_likelihood
            groups["log_likelihood"] = {"labels": (("chain", "draw", "task"), values)}
        return groups

    def _label_draws(self, label: Int[np.ndarray, "chain draw label"]) -> Variable:
        """Codes of drawn labels in the smallest integers that hold them."""
        codes = label.astype(np.min_scalar_type(-self.ann.n_classes))
        return ("chain", "draw", "judgement"), codes


def crowd_problem(
    model: ModuleType, data: Any, prior: Any, gold: Truth | None = None
) -> CrowdProblem:
    """Code the labels of `Annotations` or a table, and known classes, and check the prior."""
    ann = as_annotations(data)
    item, worker, label = map(jnp.asarray, (ann.task_codes, ann.worker_codes, ann.label_codes))
    known = None if gold is None else jnp.asarray(ann.code_truth(gold))
    labels = Labels(item, worker, label, gold=known)
    sizes = Sizes(n_items=ann.n_tasks, n_workers=ann.n_workers, n_classes=ann.n_classes)
    ids = {"worker": ann.workers, "cls": ann.classes, "observed": ann.classes}
    prior = place_prior(prior, ids)
    check_fields("prior", prior)
    check_prior(prior, worker=ann.n_workers, cls=ann.n_classes)
    return CrowdProblem(model, ann, labels, sizes, prior, _dims_of_sites(model, prior, sizes))


def recording_statistics(recording: Recording) -> dict[str, Variable]:
    """What the sampler reports of each draw."""
    statistics = dict(recording.statistics)
    statistics["marginal_log_likelihood"] = statistics.pop("log_likelihood")
    return {name: (("chain", "draw"), values) for name, values in statistics.items()}


def start_of(
    init: str | pd.DataFrame, tasks: pd.Index, classes: pd.Index
) -> Float[Array, "item cls"] | None:
    """Probabilities that chains start from, as the user asked; None for those of the votes."""
    if isinstance(init, pd.DataFrame):
        probas = init.reindex(index=tasks, columns=classes).to_numpy(float)
        if not np.isfinite(probas).all() or (probas < 0).any() or (probas.sum(axis=1) <= 0).any():
            raise ValueError("init: expected a probability for each task and class of the labels")
        return jnp.asarray(probas)
    if init == "random":
        return jnp.full((len(tasks), len(classes)), 1 / len(classes))
    if init == "votes":
        return None
    raise ValueError(f"init={init!r}: expected 'votes', 'random' or a table of probabilities")


def _dims_of_sites(model: ModuleType, prior: Any, sizes: Sizes) -> dict[str, tuple[str, ...]]:
    """Names of each parameter's axes, read from the model's plates.

    The case is tiny, but that workers and classes are as many as a prior of arrays speaks of.
    The prior is checked on the way: NumPyro refuses distributions without a density.
    """
    # asarray puts an array on the device as it is; jnp.zeros would compile a program
    tiny = Labels(*(jnp.asarray(np.zeros(1, np.int32)) for _ in range(3)))
    least = Sizes(n_items=1, n_workers=1, n_classes=2)
    if any(np.ndim(field) for field in prior if field is not None):
        least = sizes._replace(n_items=1)
    trace = trace_at_means(model, tiny, {**least._asdict(), "prior": prior})
    return {name: _dims_of_site(trace[name]) for name in model.Params._fields}


def trace_at_means(model: ModuleType, tiny: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The model's sites on a tiny case, every parameter at its prior mean.

    The values are traced and never computed: outside a program, each operation would be compiled by
    itself. What NumPyro checks of distributions that it validates is one program.

    Raises:
        ValueError: the prior is not a distribution.
    """
    fixed = dict(arguments)
    prior = fixed.pop("prior")
    sizes = tuple(fixed.items())
    for checked, is_valid in _valid_parameters(prior, tiny, model=model, sizes=sizes).items():
        if not is_valid:
            raise ValueError(f"prior={prior} gives no distribution: {checked} is out of range")
    sites: dict[str, Any] = {}

    def trace(prior: Any, tiny: Any) -> None:
        sites.update(_sites_at_means(prior, tiny, model=model, sizes=sizes))

    jax.eval_shape(trace, prior, tiny)
    return sites


@partial(
    jax.jit,
    static_argnames=("model", "sizes"),
    compiler_options={"xla_backend_optimization_level": 0},
)
def _valid_parameters(
    prior: Any, tiny: Any, *, model: ModuleType, sizes: tuple[tuple[str, Any], ...]
) -> dict[str, Bool[Array, ""]]:
    """Whether each parameter of the sites' distributions has a value that it may have."""
    valid = {}
    for name, site in _sites_at_means(prior, tiny, model=model, sizes=sizes).items():
        if site["type"] != "sample":
            continue
        fn = site["fn"]
        while hasattr(fn, "base_dist"):
            fn = fn.base_dist
        for parameter, value in fn.get_args().items():
            constraint = fn.arg_constraints[parameter]
            if not constraints.is_dependent(constraint):
                what = f"the {parameter} of {name}, which is {type(fn).__name__},"
                valid[what] = jnp.all(constraint(value))
    return valid


def _sites_at_means(
    prior: Any, tiny: Any, *, model: ModuleType, sizes: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    at_means = numpyro.handlers.substitute(model.model, substitute_fn=_mean_of_site)
    return dict(numpyro.handlers.trace(at_means).get_trace(tiny, **dict(sizes), prior=prior))


def _mean_of_site(site: Mapping[str, Any]) -> Any:
    return site["fn"].mean if site["type"] == "sample" and not site["is_observed"] else None


def _dims_of_site(site: Mapping[str, Any]) -> tuple[str, ...]:
    plates = [frame.name for frame in sorted(site["cond_indep_stack"], key=lambda f: f.dim)]
    # A row of probabilities beside a worker or a true class is one of answers.
    rows = ["observed" if plates else "cls"] * site["fn"].event_dim
    return tuple("task" if name == "item" else name for name in [*plates, *rows])
