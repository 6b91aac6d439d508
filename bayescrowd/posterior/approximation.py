"""Whether a variational approximation can be trusted: has its fit ended, and how close is it?

A fit has ended when its ELBO no longer rises. Independent normals that are off by a seventh of a
standard deviation each lose 0.01 nats per parameter, as much as an R-hat of 1.01 allows chains to
differ: a rise over the last fifth of the steps counts if it is larger, and beyond its noise.

How close the guide is to the posterior shows in the weights p / q of its draws: the Pareto k of
their tail (Y. Yao, A. Vehtari, D. Simpson and A. Gelman 2018, "Yes, but did it work? Evaluating
variational inference", ICML) is below 0.7 where weighting could repair the draws. It judges all
parameters at once and may be above 0.7 where means are right: on the crowd dog it was 3.2, with
means within 0.07 standard deviations of Gibbs sampling's on average.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import xarray as xr
from jaxtyping import Float

from bayescrowd.posterior.container import Container, assemble, dataset_of, group_names, group_of

__all__ = ["Approximation", "approximation_of", "approximation_problems", "elbo_rise"]

MOST_PARETO_K = 0.7
"""Pareto k above which weights cannot repair the draws (Yao et al. 2018, section 2)."""

MOST_RISE_PER_PARAMETER = 0.01
"""Largest rise of the ELBO, in nats per parameter, that does not matter."""

LAST_SHARE = 0.2
"""Share of the trace, at its end, that has to be level."""


class Approximation(NamedTuple):
    """How far an approximation can be relied on."""

    rise: float
    """Largest rise of a chain's ELBO over the last fifth of the steps, in nats."""
    is_rising: bool
    """Whether that rise matters and is more than noise."""
    pareto_k: float
    """Pareto k of the draws' importance weights."""


def approximation_of(post: Container) -> Approximation | None:
    """Judge the approximation that draws come from; None if they come from a sampler."""
    if "optimisation" not in group_names(post):
        return None
    elbo = group_of(post, "optimisation")["elbo"].to_numpy()
    posterior = group_of(post, "posterior")
    n_parameters = sum(values[0, 0].size for values in posterior.data_vars.values())
    rises = [elbo_rise(trace) for trace in elbo]
    rise = max((found for found, _ in rises), default=np.inf)
    is_rising = any(
        found > max(MOST_RISE_PER_PARAMETER * n_parameters, 3 * error) for found, error in rises
    )
    log_weight = group_of(post, "sample_stats")["log_weight"]
    return Approximation(float(rise), is_rising, _pareto_k(log_weight))


def approximation_problems(found: Approximation) -> list[str]:
    """What speaks against taking the draws for draws from the posterior, if anything does."""
    problems = []
    if found.is_rising:
        problems.append(
            f"the ELBO still rises, by {found.rise:.3g} nats over the last fifth of the steps: fit "
            "longer (warmup=)"
        )
    if not found.pareto_k <= MOST_PARETO_K:
        problems.append(
            "they come from an approximation that its importance weights do not confirm (Pareto k "
            f"{found.pareto_k:.2f}, should be below {MOST_PARETO_K}): means are often right, "
            "intervals and tails may not be; 'gibbs' and 'nuts' draw from the posterior itself"
        )
    return problems


def elbo_rise(trace: Float[np.ndarray, " point"]) -> tuple[float, float]:
    """Rise of the line through the last fifth of a trace, and its standard error, in nats.

    With fewer than three points there, the rise is unknown and counts as infinite.

    Examples:
        >>> import numpy as np
        >>> rise, error = elbo_rise(np.linspace(-101.0, -1.0, 101))
        >>> round(rise, 6), round(error, 6)
        (20.0, 0.0)
    """
    last = trace[-max(3, round(LAST_SHARE * len(trace)) + 1) :]
    if len(last) < 3:
        return np.inf, 0.0
    position = np.linspace(-0.5, 0.5, len(last))
    slope = position @ last / (position @ position)
    noise = last - last.mean() - slope * position
    error = np.sqrt(noise @ noise / (len(last) - 2) / (position @ position))
    return float(slope), float(error)


def _pareto_k(log_weight: xr.DataArray) -> float:
    """Pareto k by ArviZ, which leaves out a task by weights 1 / likelihood: here 1 / weight."""
    values = -log_weight.to_numpy().astype(float)[:, :, None]
    one = dataset_of({"labels": (("chain", "draw", "task"), values)})
    arviz: Any = az  # whose types differ from one version to the next
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own about Pareto k
        result = arviz.loo(
            assemble({"posterior": one, "log_likelihood": one}),
            pointwise=True,
            var_name="labels",
            reff=1.0,
        )
    return float(np.asarray(result["pareto_k"]).ravel()[0])
