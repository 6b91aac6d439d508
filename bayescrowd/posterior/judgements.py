"""Draws of the model of numeric judgements by Gibbs sampling.

The model is `bayescrowd.models.judgements`, and its sweep is in `conditionals/judgements.py`. The
chains run on standardised data, and the draws are given in the user's units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.data.judgements import Judgements
from bayescrowd.models.judgements import Prior
from bayescrowd.posterior.conditionals.judgements import (
    JudgementStatistics,
    first_judgement_state,
    standardise_judgements,
    sweep_judgements,
)
from bayescrowd.selection.repeats.paths import explained_variance

__all__ = ["JudgementDraws", "sample_judgements"]


class JudgementDraws(NamedTuple):
    """Draws of the model's parameters, in the user's units."""

    internal_variance: Float[np.ndarray, "chain draw attribute"]
    """Variance of a judgement around the object's value (v)."""
    covariance: Float[np.ndarray, "chain draw joint joint"]
    """Covariance between objects (Sigma), with the target last."""
    attributes: pd.Index
    """Names of the attributes."""

    @property
    def reliability(self) -> Float[np.ndarray, "chain draw attribute"]:
        """Share of a single judgement's variance that lies between objects."""
        between = np.diagonal(self.covariance, axis1=2, axis2=3)[:, :, :-1]
        return between / (between + self.internal_variance)

    def loss(self, repeats: Int[np.ndarray, " attribute"]) -> Float[np.ndarray, "chain draw"]:
        """Variance of the target that averages of that many judgements leave unexplained."""
        asked = np.flatnonzero(repeats)
        covariance = self.covariance
        flat = covariance.reshape(-1, *covariance.shape[2:])
        noise = self.internal_variance.reshape(len(flat), -1)[:, asked] / repeats[asked]
        explained = explained_variance(flat[:, asked[:, None], asked], flat[:, asked, -1:], noise)
        return (flat[:, -1, -1] - explained).reshape(covariance.shape[:2])


def sample_judgements(
    judgements: Judgements,
    target: Float[np.ndarray, " object"],
    *,
    draws: int = 500,
    warmup: int = 300,
    chains: int = 2,
    thin: int = 2,
    seed: int = 0,
    prior: Prior | None = None,
) -> JudgementDraws:
    """Draw from the posterior of the model of judgements.

    Args:
        judgements: any number of judgements per object and attribute.
        target: target of each object.
        draws: number of draws kept per chain.
        warmup: number of sweeps before the first draw that is kept.
        chains: number of independent chains, each with its own random start.
        thin: number of sweeps from one kept draw to the next.
        seed: seed of the random numbers.
        prior: scales of the priors, in standard deviations; the model's default if None.
    """
    if min(draws, chains, thin) < 1 or warmup < 0:
        raise ValueError(
            f"draws={draws}, chains={chains}, thin={thin}, warmup={warmup}: expected at least 1 "
            "of each, and no negative warmup"
        )
    data = standardise_judgements(judgements, target)
    prior = Prior() if prior is None else prior
    runs = [
        _run_chain(np.random.default_rng((seed, chain)), data, prior, draws, warmup, thin)
        for chain in range(chains)
    ]
    scale = data.scale
    return JudgementDraws(
        internal_variance=np.stack([internal for internal, _ in runs]) * scale[:-1] ** 2,
        covariance=np.stack([covariance for _, covariance in runs]) * np.outer(scale, scale),
        attributes=judgements.attributes,
    )


def _run_chain(
    rng: np.random.Generator,
    data: JudgementStatistics,
    prior: Prior,
    draws: int,
    warmup: int,
    thin: int,
) -> tuple[Float[np.ndarray, "draw attribute"], Float[np.ndarray, "draw joint joint"]]:
    """Internal variances and joint covariances of the draws of one chain, standardised."""
    n_attributes = data.counts.shape[1]
    state = first_judgement_state(rng, n_attributes)
    internal = np.empty((draws, n_attributes))
    covariance = np.empty((draws, n_attributes + 1, n_attributes + 1))
    for sweep in range(warmup + draws * thin):
        state = sweep_judgements(rng, state, data, prior)
        place, rest = divmod(sweep - warmup, thin)
        if sweep >= warmup and rest == thin - 1:
            internal[place] = state.internal_variance
            covariance[place] = state.joint_covariance
    return internal, covariance
