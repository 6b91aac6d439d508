"""One bird species against its kin, from attributes that workers label (Nushi et al. 2016).

As in the paper, the task is to tell a species from others of its category. There are 20 candidate
attributes: the most informative ones, as many as may be selected, and others drawn at random. There
are as many images of the species as of its kin, so that guessing is wrong half of the time.

Where workers' labels are not available, images are simulated from the published rates: an image
shows an attribute with the probability that labels of its species said yes, and a worker disagrees
with what the image shows with a probability of 3 to 10 %, drawn per attribute, which is the
disagreement that the paper measures. In the simulation attributes are independent given the
species, as naive Bayes assumes; in photographs they are not.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import entr

from bayescrowd.budgeted.evaluation.paired_runs import Problem
from bayescrowd.budgeted.space import CodedTable, FeatureSpace
from bayescrowd.datasets import cub_birds

__all__ = ["N_CANDIDATES", "N_LABELS", "information_of", "real_birds", "simulated_birds"]

N_CANDIDATES = 20
"""Number of attributes that may be asked about."""

N_LABELS = 5
"""Number of workers' labels of each attribute of an image."""

N_IMAGES = 300
"""Number of simulated images of each class."""

LEAST_DISAGREEMENT, MOST_DISAGREEMENT = 0.03, 0.10
"""Range of the probability that a worker disagrees with what a simulated image shows."""


def simulated_birds(species: str, *, n_best: int, seed: int) -> Problem:
    """A species against its kin, simulated from the published rates.

    Args:
        species: name of the species, such as 'Chipping Sparrow'.
        n_best: number of candidates that are the most informative attributes.
        seed: seed of the other candidates, the images and the labels.
    """
    rng = np.random.default_rng([seed, 200])
    ours, theirs = _rates(species)
    names = _candidates(rng, information_of(ours, theirs.mean(axis=0)), n_best)
    kin = rng.integers(len(theirs), size=N_IMAGES)
    rates = np.concatenate(
        [
            np.tile(ours[names].to_numpy(), (N_IMAGES, 1)),
            theirs[names].to_numpy()[kin],
        ]
    )
    values = (rng.random(rates.shape) < rates).astype(np.int64)
    disagreement = rng.uniform(LEAST_DISAGREEMENT, MOST_DISAGREEMENT, len(names))
    is_wrong = rng.random((*rates.shape, N_LABELS)) < disagreement[:, None]
    target = np.repeat([0, 1], N_IMAGES)
    return _problem(species, names, values, target, values[:, :, None] ^ is_wrong)


def real_birds(species: str, *, n_best: int, seed: int) -> Problem:
    """The same from workers' labels; a cell with fewer than `N_LABELS` labels is missing."""
    rng = np.random.default_rng([seed, 201])
    labels = _worker_labels(species)
    means = labels.groupby(["species", "attribute"])["present"].mean().unstack("attribute")
    is_ours = means.index == species
    ours, theirs = means[is_ours].mean(axis=0), means[~is_ours].mean(axis=0)
    names = _candidates(rng, information_of(ours.fillna(0.5), theirs.fillna(0.5)), n_best)
    images = labels.drop_duplicates("image").set_index("image")["species"]
    own, others = (images.index[images.eq(species) == flag] for flag in (True, False))
    n_images = min(len(own), len(others))
    chosen = [*rng.permutation(own)[:n_images], *rng.permutation(others)[:n_images]]
    found = np.full((len(chosen), len(names), N_LABELS), -1)
    place = {image: row for row, image in enumerate(chosen)}
    position = {name: f for f, name in enumerate(names)}
    kept = labels[labels["image"].isin(place) & labels["attribute"].isin(position)]
    rows = kept["image"].map(place).to_numpy(dtype=np.int64)
    columns = kept["attribute"].map(position).to_numpy(dtype=np.int64)
    present = kept["present"].to_numpy(dtype=np.int64)
    order = np.lexsort([columns, rows])
    ends = np.flatnonzero(np.diff(rows[order] * len(names) + columns[order])) + 1
    for cell in np.split(order, ends):
        if len(cell) >= N_LABELS:
            found[rows[cell[0]], columns[cell[0]]] = rng.permutation(present[cell])[:N_LABELS]
    target = np.repeat([0, 1], n_images)
    return _problem(species, names, found[:, :, 0], target, found)


def information_of(
    ours: Float[pd.Series, " attribute"], theirs: Float[pd.Series, " attribute"]
) -> pd.Series:
    """Information of each attribute about two equally frequent classes, in nats, given its rates.

    Examples:
        >>> import pandas as pd
        >>> ours, theirs = pd.Series({"a": 1.0, "b": 0.5}), pd.Series({"a": 0.0, "b": 0.5})
        >>> information_of(ours, theirs).round(3)
        a    0.693
        b    0.000
        dtype: float64
    """
    both = (ours + theirs) / 2
    return _entropy(both) - (_entropy(ours) + _entropy(theirs)) / 2


def _entropy(rate: pd.Series) -> pd.Series:
    return pd.Series(entr(rate) + entr(1 - rate), rate.index)


def _candidates(rng: np.random.Generator, information: pd.Series, n_best: int) -> list[str]:
    ranked = information.sort_values(ascending=False, kind="stable").index
    others = rng.permutation(ranked[n_best:].to_numpy(dtype=object))[: N_CANDIDATES - n_best]
    return [*ranked[:n_best], *others]


def _rates(species: str) -> tuple[pd.Series, pd.DataFrame]:
    """Rates of a species, and of the other species of its category."""
    rates, family = _load_published()
    kin = (family == family[species]) & (family.index != species)
    ours = rates[rates.index == species].iloc[0]
    return ours, rates[kin.to_numpy()]


@cache
def _load_published() -> cub_birds.AttributeRates:
    return cub_birds.load_attribute_rates()


@cache
def _worker_labels(species: str) -> pd.DataFrame:
    labels = cub_birds.load_worker_labels()
    family = labels["species"].str.split().str[-1]
    return labels[family == species.split()[-1]]


def _problem(
    species: str,
    names: list[str],
    values: Int[np.ndarray, "row feature"],
    target: Int[np.ndarray, " row"],
    labels: Int[np.ndarray, "row feature label"],
) -> Problem:
    space = FeatureSpace(classes=[species, "kin"], features={name: ["no", "yes"] for name in names})
    return Problem(space, CodedTable(values, target), labels.astype(np.int64))
