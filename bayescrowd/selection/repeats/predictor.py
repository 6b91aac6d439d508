"""The linear predictor on averages of judgements.

It follows from moments alone,

    w(r) = (Sigma + Diag(v / r))^+ b,

so that it can be computed before the additional judgements are bought, and for objects that lack
some of them. `fit_predictor` estimates Sigma and b anew; where every object has r judgements, w(r)
is then the least-squares fit on the averages with an intercept (step 4 of Sabato and Kalai,
'Feature multi-selection among subjective features', ICML 2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.data.judgements import Judgements
from bayescrowd.selection.repeats.moments import (
    Average,
    Moments,
    centre,
    object_averages,
    target_covariance,
)
from bayescrowd.selection.repeats.paths import generalised_inverse

__all__ = ["Predictor", "fit_predictor", "predictor_of_moments"]


class Predictor(NamedTuple):
    """A linear predictor on averages of judgements of the selected attributes."""

    repeats: Int[np.ndarray, " attribute"]
    """Number of judgements that are averaged."""
    mean: Float[np.ndarray, " attribute"]
    """Mean of the averages."""
    target_mean: Float[np.ndarray, " target"]
    """Mean of the targets."""
    covariance: Float[np.ndarray, "attribute attribute"]
    """Covariance of the attributes between objects (Sigma), ridge included."""
    correlation: Float[np.ndarray, "attribute target"]
    """Covariance with the targets (b)."""
    noise: Float[np.ndarray, "attribute repeat"]
    """Variance of the average of 0, 1, ... judgements."""

    def coefficients(
        self, counts: Int[np.ndarray, " attribute"]
    ) -> Float[np.ndarray, "attribute target"]:
        """Coefficients w for the given numbers of judgements.

        More judgements than `repeats` count as `repeats`; an attribute without any has weight 0.
        """
        asked = np.flatnonzero(counts)
        used = np.minimum(counts, self.repeats)[asked]
        matrix = self.covariance[np.ix_(asked, asked)] + np.diag(self.noise[asked, used])
        weights = np.zeros_like(self.correlation)
        weights[asked] = generalised_inverse(matrix) @ self.correlation[asked]
        return weights

    def predict(
        self,
        averages: Float[np.ndarray, "object attribute"],
        counts: Int[np.ndarray, "object attribute"],
    ) -> Float[np.ndarray, "object target"]:
        """Predictions from each object's averages, NaN where there are no judgements."""
        if len(self.repeats) == 0:
            return np.tile(self.target_mean, (len(counts), 1))
        centred = np.where(counts > 0, averages - self.mean, 0.0)
        patterns, which = np.unique(np.minimum(counts, self.repeats), axis=0, return_inverse=True)
        predicted = np.tile(self.target_mean, (len(counts), 1))
        for place, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == place)
            predicted[rows] += centred[rows] @ self.coefficients(pattern)
        return predicted


def predictor_of_moments(
    moments: Moments,
    places: Int[np.ndarray, " member"],
    repeats: Int[np.ndarray, " member"],
    covariance: Float[np.ndarray, "member member"],
) -> Predictor:
    """The predictor that the moments of all judgements imply.

    Args:
        moments: moments of all attributes.
        places: positions of the selected attributes.
        repeats: number of judgements of each of them.
        covariance: their covariance between objects, ridge included.
    """
    return Predictor(
        repeats,
        moments.attribute_mean[places],
        moments.target_mean,
        covariance,
        moments.correlation[places],
        moments.noise[places],
    )


def fit_predictor(
    data: Judgements,
    target: Float[np.ndarray, "object target"],
    repeats: Int[np.ndarray, " attribute"],
    *,
    average: Average,
    noise: Float[np.ndarray, "attribute repeat"],
    ridge: Float[np.ndarray, "attribute attribute"],
) -> Predictor:
    """Learn the predictor from objects that have at least `repeats` judgements.

    Args:
        data: judgements of the selected attributes.
        target: targets of the objects.
        repeats: number of judgements that predictions will be made from.
        average: how an object's judgements of an attribute are averaged.
        noise: variance of the average of 0, 1, ... judgements.
        ridge: added to the covariance of the attributes.
    """
    averages = centre(object_averages(data, average), data.magnitudes)
    targets = centre(target, np.abs(target).max(axis=0))
    at_counts = _noise_at(noise, data.counts).mean(axis=0)
    covariance = averages.deviations.T @ averages.deviations / data.n_objects
    return Predictor(
        repeats,
        averages.mean,
        targets.mean,
        covariance - np.diag(at_counts) + ridge,
        target_covariance(averages, targets, data.n_objects),
        noise,
    )


def _noise_at(
    noise: Float[np.ndarray, "attribute repeat"], counts: Int[np.ndarray, "object attribute"]
) -> Float[np.ndarray, "object attribute"]:
    """Variance of averages of `counts` judgements; beyond the table it falls as 1 / n."""
    most = noise.shape[1] - 1
    known = np.minimum(counts, most)
    return noise[np.arange(len(noise)), known] * (known / counts)
