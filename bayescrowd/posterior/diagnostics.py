"""Whether draws can be trusted, and which model predicts the labels better.

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner (2021), "Rank-normalization,
folding, and localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis
16(2): R-hat below 1.01 and effective sample sizes (ESS) above 100 per chain, in the bulk and in the
tails. A. Vehtari, A. Gelman and J. Gabry (2017), "Practical Bayesian model evaluation using
leave-one-out cross-validation and WAIC", Statistics and Computing 27: leaving out one task, true
class summed out, at a time. ArviZ computes all of them. Draws that are right may still be those of
a model that is wrong; `bayescrowd.posterior.shared_errors` checks whether raters err together.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.posterior.alignment import Alignment, complaints
from bayescrowd.posterior.approximation import approximation_of, approximation_problems
from bayescrowd.posterior.container import (
    IS_FIXED,
    NAMES_ARE_OPEN,
    Container,
    assemble,
    dataset_of,
    group_names,
    group_of,
)
from bayescrowd.posterior.convergence import (
    APART_RHAT,
    LEAST_ESS_PER_CHAIN,
    MOST_RHAT,
    convergence_of,
    entries_to_watch,
)
from bayescrowd.posterior.mode_report import mode_note, mode_problems, unweighed_modes
from bayescrowd.posterior.shared_errors import SharedErrors, check_shared_errors, fit_problems

__all__ = ["Diagnosis", "compare", "diagnose"]

arviz: Any = az
"""ArviZ without its types, which differ from one version to the next."""

MOST_PARETO_K = 0.7
"""Pareto k above which the importance weights of a left-out task are unreliable."""

MOST_STACKING_STEPS = 20_000
"""Largest number of EM steps for stacking weights; mixtures of similar models need many."""

STACKING_TOLERANCE = 1e-6
"""How far the mixture's score may lie below the best, in nats per task (by concavity)."""


@dataclass(frozen=True)
class Diagnosis:
    """Whether the draws of one posterior can be trusted, and its model; prints as its verdict.

    Attributes:
        verdict: one sentence or several in plain language.
        is_trustworthy: whether nothing was found that speaks against the draws or their model.
        rhat: the worst rank-normalised R-hat.
        ess_bulk: the smallest effective sample size of the bulk.
        ess_tail: the smallest effective sample size of the tails.
        n_divergent: number of divergent transitions of NUTS, 0 for other samplers.
        pareto_k: Pareto k of the importance weights of an approximation's draws ('svi'), NaN for
            samplers.
        problems: what speaks against the draws or their model, one sentence each.
        table: rhat, ess_bulk and ess_tail of each variable, its worst entry.
        shared_errors: how raters' errors correlate, and what the model expects; None where that
            cannot be told.
    """

    verdict: str
    is_trustworthy: bool
    rhat: float
    ess_bulk: float
    ess_tail: float
    n_divergent: int
    pareto_k: float
    problems: tuple[str, ...]
    table: pd.DataFrame
    shared_errors: SharedErrors | None = None

    def __str__(self) -> str:
        return self.verdict


@validate_arguments
def diagnose(post: Container) -> Diagnosis:
    """Judge the draws of a posterior, and whether raters err together more than its model expects.

    Args:
        post: the result of `sample_posterior`, or a container from elsewhere; what that lacks,
            such as the alignment of classes, is not judged.

    Examples:
        >>> import bayescrowd as bc
        >>> labels = bc.simulate.crowd(30, 5, accuracy=0.9, seed=0).annotations
        >>> post = bc.sample_posterior(
        ...     bc.models.dawid_skene, labels, chains=1, draws=20, predictive=False
        ... )
        >>> bc.diagnose(post).problems[0]
        'one chain alone cannot show that chains agree'
    """
    posterior = group_of(post, "posterior")
    watched = _quantities_to_watch(post, posterior)
    table = _table(watched)
    n_chains = posterior.sizes["chain"]
    n_divergent = _n_divergent(post)
    approximation = approximation_of(post)
    rhat = float(table["rhat"].max())
    ess_bulk, ess_tail = (float(table[name].min()) for name in ("ess_bulk", "ess_tail"))
    shared_errors = check_shared_errors(post)
    misfit = fit_problems(shared_errors, model=str(post.attrs.get("model")))
    problems = [
        *_convergence_problems(post, table, watched),
        *_divergence_problems(n_divergent, n_chains * posterior.sizes["draw"]),
        *_alignment_problems(post),
        *(approximation_problems(approximation) if approximation else []),
    ]
    summary = (
        f"worst R-hat {rhat:.3f}, smallest ESS {ess_bulk:.0f} (bulk) and {ess_tail:.0f} (tail), "
        f"{n_chains} chains of {posterior.sizes['draw']} draws"
    )
    if problems:
        verdict = f"Do not trust these draws: {'; '.join([*problems, *misfit])} ({summary})."
    elif misfit:
        verdict = f"These draws are right for a model that does not fit: {misfit[0]} ({summary})."
    else:
        verdict = f"Nothing speaks against these draws: {summary}."
    if approximation:
        verdict += (
            " They are draws of an approximation ('svi'), whose intervals tend to be too narrow; "
            f"Pareto k {approximation.pareto_k:.2f}."
        )
    if "modes" in group_names(post) and (note := mode_note(group_of(post, "modes"))):
        verdict += f" {note}"
    return Diagnosis(
        verdict=verdict,
        is_trustworthy=not problems and not misfit,
        rhat=rhat,
        ess_bulk=ess_bulk,
        ess_tail=ess_tail,
        n_divergent=n_divergent,
        pareto_k=approximation.pareto_k if approximation else float("nan"),
        problems=(*problems, *misfit),
        table=table,
        shared_errors=shared_errors,
    )


@validate_arguments
def compare(posteriors: Mapping[str, Container]) -> pd.DataFrame:
    """Rank models of the same labels by leave-one-out prediction of whole tasks.

    Args:
        posteriors: results of `sample_posterior` by name, all with `log_likelihood`.

    Returns:
        One row per model, best first: elpd (expected log predictive density of a new task's
        labels, summed over tasks, nats), its standard error se, p (effective number of
        parameters), elpd_diff and dse (difference from the best and its standard error), weight
        (share in the mixture of the models that predicts left-out tasks best, "stacking": Yao,
        Vehtari, Simpson and Gelman 2018, eq. 3) and n_bad (tasks whose Pareto k is above 0.7:
        their part of elpd is unreliable). Differences below about 4 nats are too small for their
        standard errors to mean much (Sivula, Magnusson, Matamoros and Vehtari 2020).

    Raises:
        ValueError: nothing to compare, the labels differ, or log-likelihoods were not kept.

    Warns:
        UserWarning: some tasks are unreliable.
    """
    if not posteriors:
        raise ValueError("no posteriors to compare")
    _check_same_labels(posteriors)
    found = {name: _loo(name, post) for name, post in posteriors.items()}
    best = max(found, key=lambda name: found[name].elpd)
    weights = _stacking_weights(np.stack([loo.pointwise for loo in found.values()], axis=1))
    rows = {
        name: {
            "elpd": loo.elpd,
            "se": _standard_error(loo.pointwise),
            "p": loo.p,
            "elpd_diff": loo.elpd - found[best].elpd,
            "dse": _standard_error(loo.pointwise - found[best].pointwise),
            "weight": weight,
            "n_bad": loo.n_bad,
        }
        for (name, loo), weight in zip(found.items(), weights, strict=True)
    }
    table = pd.DataFrame.from_dict(rows, orient="index").sort_values("elpd", ascending=False)
    n_tasks = len(found[best].pointwise)
    bad = [f"{name}: {loo.n_bad} of {n_tasks}" for name, loo in found.items() if loo.n_bad]
    if bad:
        warnings.warn(
            "the leave-one-out density of some tasks is unreliable (Pareto k above "
            f"{MOST_PARETO_K}; {', '.join(bad)})",
            UserWarning,
            stacklevel=2,
        )
    return table.astype({"n_bad": int})


def _quantities_to_watch(post: Container, posterior: xr.Dataset) -> xr.Dataset:
    """The parameters and the total log-likelihood, which depends on no names; thinned."""
    variables = {
        name: values
        for name, values in posterior.data_vars.items()
        if not (values.attrs.get(NAMES_ARE_OPEN) or values.attrs.get(IS_FIXED))
    }
    if "sample_stats" in group_names(post):
        statistics = group_of(post, "sample_stats")
        if "marginal_log_likelihood" in statistics:
            variables["marginal_log_likelihood"] = statistics["marginal_log_likelihood"]
    flat = {}
    for name, values in variables.items():
        array = entries_to_watch(values.transpose("chain", "draw", ...).to_numpy())
        flat[str(name)] = (("chain", "draw", f"{name}_entry"), array)
    return dataset_of(flat)


def _table(watched: xr.Dataset) -> pd.DataFrame:
    """The worst entry of each variable; chains too short for a statistic make it NaN."""
    measures = {
        "rhat": (partial(arviz.rhat, watched), np.max),
        "ess_bulk": (partial(arviz.ess, watched, method="bulk"), np.min),
        "ess_tail": (partial(arviz.ess, watched, method="tail"), np.min),
    }
    columns = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # short chains; the verdict says so in words
        for measure, (compute, worst) in measures.items():
            result = compute()
            columns[measure] = {
                name: float(worst(result[name].to_numpy())) for name in watched.data_vars
            }
    return pd.DataFrame(columns)


def _convergence_problems(post: Container, table: pd.DataFrame, watched: xr.Dataset) -> list[str]:
    n_chains = watched.sizes["chain"]
    problems = []
    if n_chains < 2:
        problems.append("one chain alone cannot show that chains agree")
    if "modes" in group_names(post):
        modes = group_of(post, "modes")
        if found := mode_problems(modes):
            return [*problems, *found, _inside_modes(watched, modes)]
    worst = table["rhat"].fillna(np.inf).idxmax()
    if not (table["rhat"] <= MOST_RHAT).all():
        value = float(table["rhat"].max(skipna=False))
        problems.append(
            f"chains disagree about {worst} (R-hat {value:.3f}, should be below {MOST_RHAT}"
            f"{_where_apart(watched[[worst]])})"
            if np.isfinite(value)
            else f"the R-hat of {worst} cannot be computed from so few draws"
        )
    if table["rhat"].max() > APART_RHAT and "label_posterior" in group_names(post):
        variables = [values.to_numpy() for values in watched.data_vars.values()]
        apart = unweighed_modes(variables, group_of(post, "label_posterior"))
        problems += [apart] if apart else []
    least = LEAST_ESS_PER_CHAIN * n_chains
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1, skipna=False).fillna(0.0)
    if (ess < least).any():
        problems.append(
            f"{ess.idxmin()} has the information of {ess.min():.0f} independent draws only, "
            f"{least} are needed: draw more"
        )
    return problems


def _inside_modes(watched: xr.Dataset, modes: xr.Dataset) -> str:
    """How well the chains of each mode know it."""
    of_chain = modes["mode_of_chain"].to_numpy()
    entries = np.concatenate([values.to_numpy() for values in watched.data_vars.values()], axis=-1)
    found = []
    for mode in np.unique(of_chain):
        inside = convergence_of(entries[of_chain == mode])
        ess = min(np.min(inside.ess_bulk), np.min(inside.ess_tail))
        alone = (of_chain == mode).sum() == 1
        rhat = "one chain" if alone else f"R-hat {np.max(inside.rhat):.3f}"
        found.append(f"{rhat} and ESS {ess:.0f} in mode {mode}")
    return (
        f"inside the modes, the worst are {', '.join(found)}; averages over all draws count a mode "
        "by its chains, `label_posterior` by its weight"
    )


def _where_apart(watched: xr.Dataset) -> str:
    """How many entries of a variable the chains disagree about: a few workers, or everything."""
    ((_, rhat),) = arviz.rhat(watched).data_vars.items()
    if rhat.size == 1:
        return ""
    return f", is not in {int((rhat > MOST_RHAT).sum())} of {rhat.size} entries"


def _divergence_problems(n_divergent: int, n_draws: int) -> list[str]:
    if n_divergent == 0:
        return []
    return [f"{n_divergent} of {n_draws} transitions diverged: parts of the posterior were missed"]


def _alignment_problems(post: Container) -> list[str]:
    if "alignment" not in group_names(post):
        return []
    group = group_of(post, "alignment")
    return complaints(Alignment(**{name: group[name].to_numpy() for name in Alignment._fields}))


def _n_divergent(post: Container) -> int:
    if "sample_stats" not in group_names(post):
        return 0
    statistics = group_of(post, "sample_stats")
    return int(statistics["diverging"].sum()) if "diverging" in statistics else 0


@dataclass(frozen=True)
class _Loo:
    elpd: float
    p: float
    pointwise: Float[np.ndarray, " task"]
    n_bad: int


def _loo(name: str, post: Container) -> _Loo:
    if "log_likelihood" not in group_names(post):
        raise ValueError(f"{name!r} has no log-likelihoods: sample it with log_likelihood=True")
    # A task without labels has the log-likelihood 0 in all draws, which says nothing.
    labelled = np.unique(group_of(post, "constant_data")["task_code"].to_numpy())
    log_likelihood = group_of(post, "log_likelihood")[["labels"]].isel(task=labelled)
    alone = assemble({"posterior": log_likelihood, "log_likelihood": log_likelihood})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ's own about Pareto k; `compare` counts them
        result = arviz.loo(
            alone, pointwise=True, var_name="labels", reff=_relative_ess(log_likelihood["labels"])
        )
    names = ("elpd", "p", "elpd_i") if hasattr(result, "elpd_i") else ("elpd_loo", "p_loo", "loo_i")
    elpd, p, pointwise = (np.asarray(result[name], dtype=float) for name in names)
    n_bad = int((np.asarray(result["pareto_k"]) > MOST_PARETO_K).sum())
    return _Loo(elpd=float(elpd), p=float(p), pointwise=pointwise, n_bad=n_bad)


def _stacking_weights(pointwise: Float[np.ndarray, "task model"]) -> Float[np.ndarray, " model"]:
    """Weights of the mixture with the largest log score; EM climbs to it, as it is concave."""
    density = np.exp(pointwise - pointwise.max(axis=1, keepdims=True))
    weights = np.full(density.shape[1], 1 / density.shape[1])
    for _ in range(MOST_STACKING_STEPS):
        # One EM step of a mixture with known components; at the optimum no component's mean
        # share of the density exceeds its weight.
        gain = (density / (density @ weights)[:, None]).mean(axis=0)
        weights = weights * gain
        if gain.max() - 1 < STACKING_TOLERANCE:
            break
    return weights / weights.sum()


def _relative_ess(log_likelihood: xr.DataArray) -> float:
    """Effective share of the draws, which sets how much of the weights' tail is smoothed."""
    total = log_likelihood.sum("task").to_numpy()
    ess = float(arviz.ess(np.ascontiguousarray(total, dtype=float)))
    return min(1.0, ess / total.size) if np.isfinite(ess) else 1.0


def _check_same_labels(posteriors: Mapping[str, Container]) -> None:
    labels = {name: _labels_of(post) for name, post in posteriors.items()}
    (first, expected), *others = labels.items()
    gold = _gold_of(posteriors[first])
    for name, found in others:
        if not found.equals(expected):
            raise ValueError(f"{first!r} and {name!r} are posteriors of different labels")
        if not np.array_equal(_gold_of(posteriors[name]), gold):
            raise ValueError(f"{first!r} and {name!r} are posteriors given different gold")


def _labels_of(post: Container) -> pd.DataFrame:
    codes = group_of(post, "constant_data")
    of_judgements = codes[[name for name in codes.data_vars if codes[name].dims == ("judgement",)]]
    labels = group_of(post, "observed_data")["label"].to_numpy()
    return of_judgements.to_dataframe().assign(label=labels)


def _gold_of(post: Container) -> Int[np.ndarray, " task"]:
    """Known class of each task, -1 where none is; empty if no class is known."""
    codes = group_of(post, "constant_data")
    return codes["gold_code"].to_numpy() if "gold_code" in codes else np.zeros(0, dtype=int)


def _standard_error(pointwise: Float[np.ndarray, " task"]) -> float:
    return float(np.sqrt(len(pointwise) * np.var(pointwise)))
