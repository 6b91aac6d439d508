"""Models of features in the form that samplers take, and draws in the form that users read.

Features differ in their number of values, so their tables are kept as one row of symbols: the
dimension `feature_value` names pairs such as 'parents=usual', and `answer` names triples such as
'parents: usual -> pretentious'. Nothing is padded.

Names that the data leave open:

- If no class is known, naive Bayes is a mixture, whose classes may be renamed freely: each chain's
  classes are named after those of the first chain, with a warning.
- The values behind noisy readings may be renamed freely as well, feature by feature. Each chain's
  values are named so that labels mostly agree with them. Draws that other names than their chain's
  would suit better are counted: if there are any, averages of `conditional` and `confusion` mean
  nothing, and a warning says so. The `channel`, P(label | class), does not depend on these names;
  chains are judged by it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import check_fields
from bayescrowd.checks.priors import check_prior, place_prior
from bayescrowd.posterior.alignment import (
    MOST_UNSTABLE,
    Alignment,
    align_chains,
    complaints,
    rename_classes,
)
from bayescrowd.posterior.chains import FeatureSizes, ReadingSizes, Recording
from bayescrowd.posterior.container import NAMES_ARE_OPEN, Variable, dataset_of
from bayescrowd.posterior.crowd_adapter import recording_statistics, start_of, trace_at_means
from bayescrowd.posterior.feature_data import FeatureData, Groups, code_readings, code_table
from bayescrowd.posterior.predictive import evenly_spaced, predict

__all__ = ["FeatureProblem", "feature_problem"]

MOST_ALIGNED = 100
"""Number of evenly spaced draws per chain whose names are compared."""


class FeatureProblem(NamedTuple):
    """A model of features, its data, and the names of its axes."""

    model: ModuleType
    """`naive_bayes` or `access_path`."""
    names: FeatureData
    """The data, with the user's names."""
    sizes: FeatureSizes | ReadingSizes
    """Numbers of items, classes, values and groups."""
    prior: Any
    """The model's `Prior`."""

    @property
    def data(self) -> Any:
        """What the model is conditioned on."""
        return self.names.observations

    @property
    def is_noisy(self) -> bool:
        """Whether features were read by workers."""
        return _is_noisy(self.model)

    @property
    def coords(self) -> dict[str, Any]:
        """The user's ids along each axis."""
        names = self.names
        symbols, answers = _symbols(names), _answers(names)
        pairs = symbols[["feature", "value"]].astype(str)
        triples = answers[["feature", "value", "observed"]].astype(str)
        return {
            "task": names.tasks,
            "cls": names.classes,
            "feature": names.features,
            "group": names.groups,
            "feature_value": (pairs["feature"] + "=" + pairs["value"]).to_list(),
            "answer": (
                triples["feature"] + ": " + triples["value"] + " -> " + triples["observed"]
            ).to_list(),
        }

    def first_probas(self, init: str | pd.DataFrame) -> Float[Array, "item cls"] | None:
        """Probabilities of the classes from which chains start; known classes are certain."""
        probas = start_of(init, self.names.tasks, self.names.classes)
        if probas is None:
            return None
        target = self.data.target[:, None]
        return jnp.where(target >= 0, target == jnp.arange(self.sizes.n_classes), probas)

    def datasets(self, recording: Recording) -> tuple[dict[str, xr.Dataset], list[str]]:
        """All groups but the predictive ones, and the warnings for the user."""
        by_class, found = self._class_alignment(recording)
        params = {
            name: rename_classes(values, _DIMS[name], by_class.naming)
            for name, values in recording.params.items()
        }
        label_mean = rename_classes(recording.label_mean, ("chain", "task", "cls"), by_class.naming)
        groups: dict[str, dict[str, Variable]] = {
            "label_posterior": {"probability": (("chain", "task", "cls"), label_mean)},
            "sample_stats": recording_statistics(recording),
            "observed_data": {
                "label": (("judgement",), np.asarray(self.data[-1])),
            },
            "constant_data": {
                "target_code": (("task",), np.asarray(self.data.target)),
                "task_code": (("judgement",), self.names.task_code),
                "feature_code": (("judgement",), self.names.feature_code),
                "worker_code": (("judgement",), self.names.worker_code),
            },
        }
        if self.is_noisy:
            groups["constant_data"]["group_code"] = (("judgement",), np.asarray(self.data.group))
        # Chains of a mixture may be renamed freely, so that diagnose must not object.
        is_mixture = not (np.asarray(self.data.target) >= 0).any()
        groups["class_alignment" if is_mixture else "alignment"] = {
            "naming": (("chain", "cls"), by_class.naming),
            "is_renamed": (("chain",), by_class.is_renamed),
            "unstable": (("chain",), by_class.unstable),
            "kappa": (("chain",), by_class.kappa),
        }
        if recording.log_likelihood is not None:
            values = (("chain", "draw", "task"), recording.log_likelihood)
            groups["log_likelihood"] = {"labels": values}
        if self.is_noisy:
            by_value = _value_alignment(params, self.sizes.n_values)
            params = _with_values_named(params, by_value)
            groups["value_alignment"] = _alignment_variables(by_value)
            found += _value_complaints(by_value, self.names.features)
        coords = self.coords
        datasets = {name: dataset_of(group, coords=coords) for name, group in groups.items()}
        return {"posterior": self._parameters(params), **datasets}, found

    def predictive(
        self, rng_key: PRNGKeyArray, recording: Recording, posterior: xr.Dataset, n_draws: int
    ) -> dict[str, xr.Dataset]:
        """Draws from the prior, and judgements drawn from them and from evenly spaced draws."""
        _, *design, _ = self.data
        chosen = evenly_spaced(posterior.sizes["chain"], posterior.sizes["draw"], n_draws)
        predicted = predict(
            rng_key,
            tuple(design),
            self.prior,
            {name: values[:, chosen] for name, values in recording.params.items()},
            model=self.model,
            sizes=self.sizes,
            n_draws=n_draws,
        )
        dims = ("chain", "draw", "judgement")
        prior = {name: values[None] for name, values in predicted.params.items()}
        return {
            "prior": self._parameters(prior),
            "prior_predictive": dataset_of({"label": (dims, predicted.from_prior[None])}),
            "posterior_predictive": dataset_of(
                {"label": (dims, predicted.from_posterior)}, coords={"draw": chosen}
            ),
        }

    def _parameters(self, params: dict[str, np.ndarray]) -> xr.Dataset:
        """Prevalence, tables without padding and, for noisy readings, the channel."""
        symbols = _symbols(self.names)
        of_feature, of_value = (symbols[name].to_numpy() for name in ("feature_code", "value_code"))
        conditional = params["conditional"].swapaxes(2, 3)
        flat = ("chain", "draw", "cls", "feature_value")
        variables: dict[str, Variable] = {
            "prevalence": (("chain", "draw", "cls"), params["prevalence"]),
            "conditional": (flat, conditional[..., of_feature, of_value]),
        }
        auxiliary = {
            name: ("feature_value", symbols[name].astype(str).to_numpy(str))
            for name in ("feature", "value")
        }
        if self.is_noisy:
            answers = _answers(self.names)
            feature, value, observed = (
                answers[f"{name}_code"].to_numpy() for name in ("feature", "value", "observed")
            )
            confusion = params["confusion"].swapaxes(2, 3)
            channel = np.einsum("kdfcz,kdfgzx->kdcgfx", params["conditional"], params["confusion"])
            variables["confusion"] = (
                ("chain", "draw", "group", "answer"),
                confusion[..., feature, value, observed],
            )
            variables["channel"] = (
                ("chain", "draw", "cls", "group", "feature_value"),
                channel[..., of_feature, of_value],
            )
            auxiliary |= {
                f"answer_{name}": ("answer", answers[name].astype(str).to_numpy(str))
                for name in ("feature", "value", "observed")
            }
        dataset = dataset_of(variables, coords=self.coords).assign_coords(auxiliary)
        for name in ("conditional", "confusion") if self.is_noisy else ():
            dataset[name].attrs[NAMES_ARE_OPEN] = 1
        return dataset

    def _class_alignment(self, recording: Recording) -> tuple[Alignment, list[str]]:
        is_known = np.asarray(self.data.target) >= 0
        if is_known.any():
            alignment = align_chains(recording.agreement, can_rename=False)
            # where every class is known, none is left to be determined
            return alignment, [] if is_known.all() else complaints(alignment)
        first = recording.label_mean[0]
        shared = np.einsum("cik,il->ckl", recording.label_mean, first)[:, None]
        alignment = align_chains(shared, can_rename=True)
        if not alignment.is_renamed.any():
            return alignment, []
        chains = ", ".join(str(chain) for chain in np.flatnonzero(alignment.is_renamed))
        complaint = (
            f"no class is known, so classes have no names: those of chain {chains} were renamed "
            "after those of the first chain"
        )
        return alignment, [complaint]


_DIMS = {
    "prevalence": ("chain", "draw", "cls"),
    "conditional": ("chain", "draw", "feature", "cls", "value"),
    "confusion": ("chain", "draw", "feature", "group", "value", "observed"),
}


def feature_problem(
    model: ModuleType,
    data: Any,
    prior: Any,
    *,
    target: pd.Series | None,
    classes: Any,
    groups: Groups,
) -> FeatureProblem:
    """Code the data of a model of features, unless they are, and check the prior."""
    is_noisy = _is_noisy(model)
    if isinstance(data, FeatureData):
        coded = data
    elif is_noisy:
        coded = code_readings(data, target, classes, groups)
    else:
        coded = code_table(data, target, classes)
    sizes: FeatureSizes | ReadingSizes
    n_items, n_classes = len(coded.tasks), len(coded.classes)
    if is_noisy:
        sizes = ReadingSizes(n_items, len(coded.groups), n_classes, coded.n_values)
    else:
        sizes = FeatureSizes(n_items, n_classes, coded.n_values)
    prior = place_prior(prior, {"feature": coded.features, "cls": coded.classes})
    check_fields("prior", prior)
    n_values = coded.n_values
    check_prior(prior, cls=n_classes, feature=len(n_values), value=max(n_values))
    tiny = {"n_items": 1, "n_classes": 2, "n_values": (2,), "prior": prior}
    if any(np.ndim(field) for field in prior):
        tiny |= {"n_classes": n_classes, "n_values": n_values}
    one = jnp.asarray(np.zeros(1, np.int32))
    arguments = {**tiny, "n_groups": 1} if is_noisy else tiny
    trace_at_means(model, model.Observations(*[one] * len(model.Observations._fields)), arguments)
    return FeatureProblem(model, coded, sizes, prior)


def _is_noisy(model: ModuleType) -> bool:
    """Whether the features are read by workers, each a member of a group."""
    return "group" in model.Observations._fields


def _symbols(names: FeatureData) -> pd.DataFrame:
    """Every value of every feature, by code and by name."""
    rows = [
        (f, z, names.features[f], value)
        for f, values in enumerate(names.values)
        for z, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["feature_code", "value_code", "feature", "value"])


def _answers(names: FeatureData) -> pd.DataFrame:
    """Every value of every feature with every possible answer, by code and by name."""
    observed = _symbols(names).rename(columns={"value": "observed", "value_code": "observed_code"})
    return _symbols(names).merge(observed, on=["feature_code", "feature"])


class _ValueAlignment(NamedTuple):
    """The names of the values of each feature; see `Alignment`."""

    naming: Int[np.ndarray, "chain feature value"]
    is_renamed: Bool[np.ndarray, "chain feature"]
    unstable: Float[np.ndarray, "chain feature"]
    kappa: Float[np.ndarray, "chain feature"]


def _value_alignment(params: dict[str, np.ndarray], n_values: tuple[int, ...]) -> _ValueAlignment:
    """Name each feature's values so that the labels of all groups mostly agree with them."""
    n_draws = params["prevalence"].shape[1]
    chosen = np.linspace(0, n_draws - 1, min(n_draws, MOST_ALIGNED)).astype(int)
    prevalence, conditional, confusion = (
        params[name][:, chosen] for name in ("prevalence", "conditional", "confusion")
    )
    joint = np.einsum("kdc,kdfcz,kdfzx->kdfzx", prevalence, conditional, confusion.mean(axis=3))
    width = max(n_values)
    found = [align_chains(joint[:, :, f, :v, :v], can_rename=True) for f, v in enumerate(n_values)]
    naming = [
        np.concatenate([one.naming, np.tile(np.arange(v, width), (len(one.naming), 1))], axis=1)
        for one, v in zip(found, n_values, strict=True)
    ]
    return _ValueAlignment(
        naming=np.stack(naming, axis=1),
        is_renamed=np.stack([one.is_renamed for one in found], axis=1),
        unstable=np.stack([one.unstable for one in found], axis=1),
        kappa=np.stack([one.kappa for one in found], axis=1),
    )


def _with_values_named(
    params: dict[str, np.ndarray], alignment: _ValueAlignment
) -> dict[str, np.ndarray]:
    """The tables with the hidden values of each chain and feature in their named order."""
    order = alignment.naming[:, None, :, None, :]
    return {
        "prevalence": params["prevalence"],
        "conditional": np.take_along_axis(params["conditional"], order, axis=4),
        "confusion": np.take_along_axis(params["confusion"], order[..., None], axis=4),
    }


def _alignment_variables(alignment: _ValueAlignment) -> dict[str, Variable]:
    return {
        "naming": (("chain", "feature", "value"), alignment.naming),
        "is_renamed": (("chain", "feature"), alignment.is_renamed),
        "unstable": (("chain", "feature"), alignment.unstable),
        "kappa": (("chain", "feature"), alignment.kappa),
    }


def _value_complaints(alignment: _ValueAlignment, features: pd.Index) -> list[str]:
    is_open = np.asarray((alignment.unstable > MOST_UNSTABLE).any(axis=0))
    is_renamed = np.asarray(alignment.is_renamed.any(axis=0)) & ~is_open
    found = []
    if is_renamed.any():
        found.append(
            f"label switching: hidden values of {_enumeration(features[is_renamed])} were renamed "
            "in some chains to agree with the labels"
        )
    if is_open.any():
        found.append(
            f"label switching: the labels do not tell the hidden values of "
            f"{_enumeration(features[is_open])} apart; do not average their conditional or "
            "confusion over draws; channel does not depend on these names"
        )
    return found


def _enumeration(features: pd.Index) -> str:
    shown = ", ".join(str(name) for name in features[:5])
    return f"{shown} and {len(features) - 5} more" if len(features) > 5 else shown
