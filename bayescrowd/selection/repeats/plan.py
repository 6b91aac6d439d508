"""Before the training judgements are bought: more objects, or more judgements of each?

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), last experiment:
with M judgements to learn from, one can take k judgements of each of d attributes of M / (k d)
objects. They find that a small k is best on their data. Here the same question is asked of the
user's own data: the moments of a pilot stand for the population, from which training sets of every
kind are drawn.

For each training set, repeats are chosen from it, the further judgements are drawn, and the
predictor is fitted on their averages, as in the paper. The error of that predictor on new objects
follows from the population's moments without further draws,

    E (y - w'x)^2 = Var y - 2 w'b + w' (Sigma + Diag(v / r)) w + (error of the mean)^2.

Objects and judgements are drawn from normal distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.selection.repeats.moments import Moments, nearest_psd

__all__ = ["Choose", "Population", "population_of", "training_plan"]

LEAST_OBJECTS = 5
"""Plans with fewer objects than this are left out."""

Choose = Callable[
    [Float[np.ndarray, "object attribute k"], Float[np.ndarray, " object"]],
    Int[np.ndarray, " attribute"],
]
"""Chooses the repeats of each attribute from the judgements and targets of a training set."""


class Population(NamedTuple):
    """Moments of the attributes and the target of all objects."""

    covariance: Float[np.ndarray, "joint joint"]
    """Covariance between objects of the attributes' values, with the target last."""
    internal_variance: Float[np.ndarray, " attribute"]
    """Variance of the judgements of one object."""


def population_of(moments: Moments) -> Population:
    """The population that a pilot's moments describe, with the nearest valid covariance."""
    joint = np.block(
        [
            [moments.external, moments.correlation],
            [moments.correlation.T, np.array([[moments.target_variance]])],
        ]
    )
    return Population(nearest_psd(joint), moments.internal_variance)


def training_plan(
    population: Population,
    choose: Choose,
    n_judgements: int,
    *,
    repeats: Sequence[int] = (2, 3, 4, 6, 8),
    n_splits: int = 50,
    seed: int = 0,
) -> pd.DataFrame:
    """The error to expect of every way to spend the training judgements.

    Args:
        population: what the pilot says about all objects.
        choose: how repeats are chosen from a training set.
        n_judgements: number of training judgements that can be paid for (M).
        repeats: numbers of judgements of each attribute of each object to compare (k).
        n_splits: number of training sets to draw for each k.
        seed: seed of the draws; every k sees the same objects.

    Returns:
        By number of judgements per attribute and object (k): n_objects, loss (mean squared error
        on new objects), standard_error, behind (how much larger the loss is than that of the best
        k) and behind_error, its standard error over training sets.

    Raises:
        ValueError: the judgements do not suffice for two judgements of a few objects.
    """
    n_attributes = len(population.internal_variance)
    if n_splits < 2:
        raise ValueError(f"n_splits={n_splits}: expected at least 2")
    if len(repeats) == 0 or min(repeats) < 2:
        raise ValueError(f"repeats={list(repeats)}: expected numbers of at least 2")
    sizes = {k: n_judgements // (k * n_attributes) for k in sorted(set(repeats))}
    if max(sizes.values()) < LEAST_OBJECTS:
        raise ValueError(
            f"n_judgements={n_judgements}: {n_attributes} attributes, twice each, of "
            f"{LEAST_OBJECTS} objects take {2 * n_attributes * LEAST_OBJECTS}"
        )
    sizes = {k: size for k, size in sizes.items() if size >= LEAST_OBJECTS}
    losses = np.array(
        [
            [_loss(choose, population, size, k, (seed, split)) for split in range(n_splits)]
            for k, size in sizes.items()
        ]
    )
    behind = losses - losses[losses.mean(axis=1).argmin()]
    return pd.DataFrame(
        {
            "n_objects": list(sizes.values()),
            "loss": losses.mean(axis=1),
            "standard_error": _standard_error(losses),
            "behind": behind.mean(axis=1),
            "behind_error": _standard_error(behind),
        },
        index=pd.Index(list(sizes), name="k"),
    )


def _loss(
    choose: Choose,
    population: Population,
    n_objects: int,
    k: int,
    seed: tuple[int, int],
) -> float:
    """Expected squared error on new objects of the predictor learned from one training set."""
    rng = np.random.default_rng(seed)
    joint = _draw_objects(rng, population, n_objects)
    values, target = joint[:, :-1], joint[:, -1]
    spread = np.sqrt(population.internal_variance)
    pilot = values[:, :, None] + spread[:, None] * rng.normal(size=(*values.shape, k))
    repeats = choose(pilot, target)
    noise = spread / np.sqrt(np.maximum(repeats, 1)) * rng.normal(size=values.shape)
    asked = np.flatnonzero(repeats)
    return _expected_error((values + noise)[:, asked], target, population, asked, repeats[asked])


def _draw_objects(
    rng: np.random.Generator, population: Population, n_objects: int
) -> Float[np.ndarray, "object joint"]:
    values, vectors = np.linalg.eigh(population.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return rng.normal(size=(n_objects, len(root))) @ root.T


def _expected_error(
    averages: Float[np.ndarray, "object member"],
    target: Float[np.ndarray, " object"],
    population: Population,
    asked: Int[np.ndarray, " member"],
    repeats: Int[np.ndarray, " member"],
) -> float:
    """Expected squared error of least squares with an intercept, fitted to these objects."""
    centred = averages - averages.mean(axis=0)
    weights = np.linalg.lstsq(centred, target - target.mean(), rcond=None)[0]
    offset = target.mean() - averages.mean(axis=0) @ weights  # the population means are 0
    covariance = population.covariance
    noise = np.diag(population.internal_variance[asked] / repeats)
    explained = 2 * weights @ covariance[asked, -1]
    spread = weights @ (covariance[np.ix_(asked, asked)] + noise) @ weights
    return float(covariance[-1, -1] - explained + spread + offset**2)


def _standard_error(losses: Float[np.ndarray, "way split"]) -> Float[np.ndarray, " way"]:
    return losses.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
