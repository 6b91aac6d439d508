"""How often each worker is right: the posterior of one number per worker, whatever the model.

The accuracy of a worker in a draw is the probability that the worker's label of a task is right,
given the parameters of that draw. Each model states how it follows from them (`FACTS.accuracy`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int

from bayescrowd import models
from bayescrowd.checks.parameters import OpenFraction, validate_arguments
from bayescrowd.posterior.container import Container, dataset_of, group_of

__all__ = ["PROBABILITY", "worker_accuracy", "worker_posterior"]

PROBABILITY = 0.89
"""Probability of the intervals, ArviZ's default: it is not mistaken for a test at the 5 % level."""

_AXES = ("chain", "draw", "worker")

_BLOCK_BYTES = 2**26
"""Memory for the intermediate results of a model's formula; draws are processed in blocks of it."""


def worker_accuracy(post: Container) -> xr.DataArray:
    """Draws of each worker's accuracy, with the dimensions chain, draw and worker.

    Args:
        post: the result of `sample_posterior`.

    Raises:
        ValueError: the draws are not those of a model whose workers have an accuracy.
    """
    posterior = group_of(post, "posterior")
    model = _model_of(post)
    params = [posterior[name] for name in model.Params._fields]
    n_draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    flat = [param.to_numpy().reshape(n_draws, *param.shape[2:]) for param in params]
    found = [
        model.FACTS.accuracy(model.Params(*(values[block].astype(float) for values in flat)))
        for block in _blocks(params, n_draws, posterior.sizes["worker"])
    ]
    ids = {dim: posterior.indexes[dim] for dim in _AXES}
    accuracy = np.concatenate(found).reshape([len(index) for index in ids.values()])
    return dataset_of({"accuracy": (tuple(ids), accuracy)}, coords=ids)["accuracy"]


@validate_arguments
def worker_posterior(post: Container, *, probability: OpenFraction = PROBABILITY) -> pd.DataFrame:
    """Accuracy of each worker with an interval, in the order of the workers.

    Args:
        post: the result of `sample_posterior`.
        probability: probability of the interval from `lower` to `upper`; the rest is split evenly
            between both sides.

    Returns:
        One row per worker: the posterior mean `accuracy`, `lower`, `upper` and `n_labels`.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).beta(8, 2, size=(2, 50, 3))
        >>> params = {
        ...     "prevalence": (("chain", "draw", "cls"), np.full((2, 50, 2), 0.5)),
        ...     "accuracy": (("chain", "draw", "worker"), draws),
        ... }
        >>> posterior = dataset_of(params, coords={"worker": ["ann", "bob", "eve"]})
        >>> codes = dataset_of({"worker_code": (("judgement",), [0, 0, 1, 2])})
        >>> groups = {"posterior": posterior, "constant_data": codes}
        >>> post = assemble(groups, attrs={"model": "one_coin"})
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


def _model_of(post: Container) -> ModuleType:
    """The model whose draws these are, if its workers have an accuracy."""
    name = post.attrs.get("model")
    if name not in models.__all__:
        raise ValueError(
            f"the draws are of the model {name}; expected one of {', '.join(models.__all__)}"
        )
    model: ModuleType = getattr(models, name)
    if model.FACTS.accuracy is None:
        raise ValueError(
            f"workers have no accuracy in the model {name}; expected draws of a model of labels"
        )
    return model


def _blocks(
    params: Sequence[xr.DataArray], n_draws: int, n_workers: int
) -> list[Int[np.ndarray, " draw"]]:
    """Blocks of draws whose intermediate results fit into `_BLOCK_BYTES`."""
    # A formula may combine every worker with every other entry of a parameter, such as each task.
    n_entries = [
        math.prod(size for dim, size in param.sizes.items() if dim not in _AXES) for param in params
    ]
    n_bytes = 8 * n_draws * n_workers * max(n_entries)
    n_blocks = min(n_draws, -(-n_bytes // _BLOCK_BYTES))
    return np.array_split(np.arange(n_draws), n_blocks)
