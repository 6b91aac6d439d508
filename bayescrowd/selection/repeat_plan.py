"""Before the training judgements are bought: more objects, or more judgements of each?

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), last experiment:
with M judgements to learn from, one can take k judgements of each of d attributes of M / (k d)
objects. They find that a small k is best on their data. Here the same is tried on the user's own:
a pilot's moments stand for the population, from which training sets of every kind are drawn.

A training set is drawn, repeats are chosen from it, the further judgements are drawn, and the
predictor is fitted on their averages, as in the paper. The error of that predictor on new objects
follows from the population's moments without further drawing,

    E (y - w'x)^2 = Var y - 2 w'b + w' (Sigma + Diag(v / r)) w + (error of the mean)^2.

Objects and judgements are drawn from normal distributions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import clone

from bayescrowd.selection.judgements import Judgements, as_judgements
from bayescrowd.selection.repeat_moments import nearest_psd
from bayescrowd.selection.repeat_selector import InfeasibleProjectionWarning

if TYPE_CHECKING:
    from bayescrowd.selection.multi_selection import MultiSelection

__all__ = ["Population", "population_of", "training_plan"]

LEAST_OBJECTS = 5


class Population(NamedTuple):
    """Moments of attributes and target of all objects."""

    covariance: Float[np.ndarray, "joint joint"]
    """Of the attributes' values, and last of the target, between objects."""
    internal_variance: Float[np.ndarray, " attribute"]
    """Of a judgement of an object."""


def training_plan(
    selector: MultiSelection,
    judgements: Any,
    y: Any,
    n_judgements: int,
    *,
    repeats: Sequence[int] = (2, 3, 4, 6, 8),
    n_splits: int = 50,
    seed: int = 0,
) -> pd.DataFrame:
    """The error to expect of every way to spend the training judgements.

    Args:
        selector: what is to be learned, with which budget for new objects.
        judgements: of the pilot.
        y: targets of the pilot.
        n_judgements: training judgements that can be paid for (M).
        repeats: numbers of judgements of each attribute of each object to look at (k).
        n_splits: training sets to draw for each.
        seed: of the draws; all ways have the same objects.

    Returns:
        By number of judgements per attribute and object (k): n_objects, loss (mean squared error
        on new objects), standard_error, behind (how much more than the best way) and
        behind_error, its standard error over training sets.

    Raises:
        ValueError: the judgements do not suffice for two judgements of a few objects.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(100, 4))
        >>> pilot = truth[:, :, None] + 0.5 * rng.normal(size=(100, 4, 2))
        >>> est = bc.MultiSelection(budget=6)
        >>> est.plan(pilot, truth.sum(axis=1), 480, repeats=[2, 4], n_splits=20)["n_objects"]
        k
        2    60
        4    30
        Name: n_objects, dtype: int64
    """
    if n_splits < 2:
        raise ValueError(f"n_splits={n_splits}: expected at least 2")
    data = as_judgements(judgements)
    with warnings.catch_warnings():
        # Errors follow from the population; what a training set projects plays no part.
        warnings.simplefilter("ignore", InfeasibleProjectionWarning)
        return _tried(selector, data, y, n_judgements, repeats, n_splits, seed)


def _tried(
    selector: MultiSelection,
    data: Judgements,
    y: Any,
    n_judgements: int,
    repeats: Sequence[int],
    n_splits: int,
    seed: int,
) -> pd.DataFrame:
    population = population_of(selector, data, y)
    if len(repeats) == 0 or min(repeats) < 2:
        raise ValueError(f"repeats={list(repeats)}: expected numbers of at least 2")
    sizes = {k: n_judgements // (k * data.n_attributes) for k in sorted(set(repeats))}
    if max(sizes.values()) < LEAST_OBJECTS:
        raise ValueError(
            f"n_judgements={n_judgements}: {data.n_attributes} attributes, twice each, of "
            f"{LEAST_OBJECTS} objects take {2 * data.n_attributes * LEAST_OBJECTS}"
        )
    sizes = {k: size for k, size in sizes.items() if size >= LEAST_OBJECTS}
    losses = np.array(
        [
            [_loss(selector, population, size, k, (seed, split)) for split in range(n_splits)]
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


def population_of(selector: MultiSelection, judgements: Any, y: Any) -> Population:
    """What the pilot says of all objects; the covariance is rounded to a positive semidefinite one.

    Raises:
        ValueError: the selector averages by median.
    """
    if selector.average != "mean":
        raise ValueError(f"average={selector.average!r}: a plan can be made for 'mean' only")
    fitted = clone(selector).set_params(method="full", search="cost-benefit").fit(judgements, y)
    moments = fitted._moments
    joint = np.block(
        [
            [moments.external, moments.correlation],
            [moments.correlation.T, np.array([[moments.target_variance]])],
        ]
    )
    return Population(nearest_psd(joint), moments.internal_variance)


def _loss(
    selector: MultiSelection,
    population: Population,
    n_objects: int,
    k: int,
    seed: tuple[int, int],
) -> float:
    """Expected squared error on new objects of what is learned from one training set."""
    rng = np.random.default_rng(seed)
    drawn = _objects(rng, population, n_objects)
    values, target = drawn[:, :-1], drawn[:, -1]
    spread = np.sqrt(population.internal_variance)
    pilot = values[:, :, None] + spread[:, None] * rng.normal(size=(*values.shape, k))
    chosen = clone(selector).fit(pilot, target)
    repeats = chosen.repeats_.iloc[-1].to_numpy()
    noise = spread / np.sqrt(np.maximum(repeats, 1)) * rng.normal(size=values.shape)
    asked = np.flatnonzero(repeats)
    return _expected_error((values + noise)[:, asked], target, population, asked, repeats[asked])


def _objects(
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
    """Of least squares with an intercept, fitted to these objects."""
    centred = averages - averages.mean(axis=0)
    weights = np.linalg.lstsq(centred, target - target.mean(), rcond=None)[0]
    offset = target.mean() - averages.mean(axis=0) @ weights  # of means that are 0
    covariance = population.covariance
    noise = np.diag(population.internal_variance[asked] / repeats)
    explained = 2 * weights @ covariance[asked, -1]
    spread = weights @ (covariance[np.ix_(asked, asked)] + noise) @ weights
    return float(covariance[-1, -1] - explained + spread + offset**2)


def _standard_error(losses: Float[np.ndarray, "way split"]) -> Float[np.ndarray, " way"]:
    return losses.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
