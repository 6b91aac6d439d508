"""How often each worker is right: the posterior of one number per worker, whatever the model.

The accuracy of worker w in a draw is the chance that the worker's label of a task is right, with
the parameters of that draw and tasks as frequent as its prevalence p says:

    confusion matrices:     sum_k p_k pi[w, k, k]
    one coin:               the accuracy itself
    competence (MACE):      theta_w + (1 - theta_w) sum_k p_k xi[w, k]
    item difficulty (GLAD): the mean over tasks i of sigma(alpha_w beta_i)
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from bayescrowd.parameters import OpenFraction, checked
from bayescrowd.posterior.container import Container, dataset_of, group_of

__all__ = ["PROBABILITY", "worker_accuracy", "worker_posterior"]

PROBABILITY = 0.89
"""Of the intervals: ArviZ's default, which nobody mistakes for a test at the 5 % level."""

_BLOCK_BYTES = 2**26
"""Most memory for the chances of all workers on all tasks at a time."""


def worker_accuracy(post: Container) -> xr.DataArray:
    """Draws of each worker's chance to be right, with the dimensions chain, draw and worker.

    Args:
        post: the result of `sample_posterior`.

    Raises:
        ValueError: the model is of another kind.
    """
    posterior = group_of(post, "posterior")
    if "confusion" in posterior:
        # matmul of arrays: xarray would match the dimensions cls and observed by name only
        confusion, prevalence = (
            posterior[name].to_numpy().astype(float) for name in ("confusion", "prevalence")
        )
        accuracy = np.einsum("...k,...wkk->...w", prevalence, confusion)
    elif "accuracy" in posterior:
        accuracy = posterior["accuracy"].to_numpy().astype(float)
    elif "competence" in posterior:
        competence, strategy, prevalence = (
            posterior[name].to_numpy().astype(float)
            for name in ("competence", "strategy", "prevalence")
        )
        lucky = np.einsum("...k,...wk->...w", prevalence, strategy)
        accuracy = competence + (1 - competence) * lucky
    elif "ability" in posterior:
        accuracy = _mean_over_tasks(
            posterior["ability"].to_numpy(), posterior["log_easiness"].to_numpy()
        )
    else:
        raise ValueError(
            f"no accuracy of workers in a posterior of {', '.join(map(str, posterior.data_vars))}"
        )
    ids = {dim: posterior.indexes[dim] for dim in ("chain", "draw", "worker")}
    return dataset_of({"accuracy": (tuple(ids), accuracy)}, coords=ids)["accuracy"]


@checked
def worker_posterior(post: Container, *, probability: OpenFraction = PROBABILITY) -> pd.DataFrame:
    """Accuracy of each worker with an interval, in the order of the workers.

    Args:
        post: the result of `sample_posterior`.
        probability: that the accuracy lies between `lower` and `upper`; as much is left out on
            either side.

    Returns:
        One row per worker: the posterior mean `accuracy`, `lower`, `upper` and `n_labels`.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).beta(8, 2, size=(2, 50, 3))
        >>> accuracy = (("chain", "draw", "worker"), draws)
        >>> posterior = dataset_of({"accuracy": accuracy}, coords={"worker": ["ann", "bob", "eve"]})
        >>> codes = dataset_of({"worker_code": (("judgement",), [0, 0, 1, 2])})
        >>> post = assemble({"posterior": posterior, "constant_data": codes})
        >>> list(bc.worker_posterior(post).columns)
        ['accuracy', 'lower', 'upper', 'n_labels']
    """
    draws = worker_accuracy(post)
    values = draws.to_numpy().reshape(-1, draws.sizes["worker"])
    lower, upper = np.quantile(values, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
    codes = group_of(post, "constant_data")["worker_code"].to_numpy()
    return pd.DataFrame(
        {
            "accuracy": values.mean(axis=0),
            "lower": lower,
            "upper": upper,
            "n_labels": np.bincount(codes, minlength=values.shape[1]),
        },
        index=draws.indexes["worker"],
    )


def _mean_over_tasks(
    ability: Float[np.ndarray, "chain draw worker"],
    log_easiness: Float[np.ndarray, "chain draw task"],
) -> Float[np.ndarray, "chain draw worker"]:
    """Chance of a right label of a task drawn at random, a block of draws at a time."""
    n_workers, n_tasks = ability.shape[2], log_easiness.shape[2]
    flat_ability = ability.reshape(-1, n_workers).astype(float)
    easiness = np.exp(log_easiness.reshape(-1, n_tasks).astype(float))
    n_blocks = -(-len(flat_ability) * n_workers * n_tasks * 8 // _BLOCK_BYTES)
    blocks = np.array_split(np.arange(len(flat_ability)), n_blocks)
    means = [
        expit(flat_ability[block, :, None] * easiness[block, None, :]).mean(axis=2)
        for block in blocks
        if len(block)
    ]
    return np.concatenate(means).reshape(ability.shape)
