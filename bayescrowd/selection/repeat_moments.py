"""What judgements say about attributes: internal variance, external covariance, correlation.

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), algorithm 1,
lines 3 to 10. The mean judgement of attribute a of an object varies between objects by the external
covariance Sigma, and around what another crowd would say by v[a]/r[a], the internal variance over
the number of judgements:

    v[a]      mean over objects of the unbiased variance of the object's judgements     (equation 2)
    Sigma     covariance of the objects' mean judgements, minus mean over objects of v[a]/n on the
              diagonal, n being how many judgements the object has
    b[a]      covariance of the mean judgement and the target

Means are removed, which is what the paper's free constant feature does. Objects without a judgement
of an attribute have no part in what is said of it. Sums are divided by the number of objects, as in
the paper.

A median of r judgements varies by something else than v[a]/r. How much is computed from the
attribute's own judgements: deviations from the object's mean, scaled to have variance v[a], are
taken for draws of the noise, and the variance of their median follows from the distribution of
order statistics.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import beta

from bayescrowd.selection.judgements import Judgements
from bayescrowd.vocabulary import plain

__all__ = ["Average", "Moments", "judgement_moments", "nearest_psd", "object_averages"]

Average = Literal["mean", "median"]

N_QUANTILES = 512
"""Points of the distribution of an order statistic; the variance of a median of thirty Gaussian
judgements is then right to 0.2 %."""


class Moments(NamedTuple):
    """Estimated moments of attributes and targets."""

    attribute_mean: Float[np.ndarray, " attribute"]
    """Mean over objects."""
    target_mean: Float[np.ndarray, " target"]
    """Mean over objects."""
    target_variance: float
    """Variance over objects, summed over targets: the loss without any judgement."""
    internal_variance: Float[np.ndarray, " attribute"]
    """v, of a single judgement of an object."""
    external: Float[np.ndarray, "attribute attribute"]
    """Sigma as estimated: unbiased, and possibly not positive semidefinite."""
    correlation: Float[np.ndarray, "attribute target"]
    """b, the covariance with each target."""
    noise: Float[np.ndarray, "attribute repeat"]
    """Variance of the average of 0, 1, 2, ... judgements of one object; infinite for none."""
    n_objects: int
    """Objects behind the estimates."""


def judgement_moments(
    judgements: Judgements,
    target: Float[np.ndarray, "object target"],
    *,
    average: Average = "mean",
    most_repeats: int,
    needs_pairs: bool = True,
) -> Moments:
    """Estimate the moments.

    Args:
        judgements: at least two of each attribute on some object.
        target: of each object, in the objects' order.
        average: what the judgements of an attribute of an object are put together by.
        most_repeats: up to which number of judgements the noise is wanted.
        needs_pairs: whether the covariance of every two attributes is needed; if not, it is 0
            where it is unknown.

    Raises:
        ValueError: there are fewer than two objects, an attribute is never judged twice, or two
            attributes are never judged on the same object.
    """
    if judgements.n_objects < 2:
        raise ValueError(f"{judgements.n_objects} object only; expected at least two")
    internal = internal_variance(judgements)
    counts = judgements.counts
    most = max(most_repeats, int(counts.max()))
    noise = _mean_noise(internal, most) if average == "mean" else _median_noise(judgements, most)
    averages = object_averages(judgements, average)
    is_judged = counts > 0
    n_judged = is_judged.sum(axis=0)
    mean = np.where(is_judged, averages, 0.0).sum(axis=0) / n_judged
    centred = np.where(is_judged, averages - mean, 0.0)
    centred_target = target - target.mean(axis=0)
    noise_at_counts = np.where(is_judged, noise[np.arange(len(internal)), counts], 0.0)
    external = centred.T @ centred / _n_shared(judgements, needs_pairs)
    diagonal = np.diag(external) - noise_at_counts.sum(axis=0) / n_judged
    np.fill_diagonal(external, diagonal)
    return Moments(
        attribute_mean=mean,
        target_mean=target.mean(axis=0),
        target_variance=float((centred_target**2).mean(axis=0).sum()),
        internal_variance=internal,
        external=external,
        correlation=centred.T @ centred_target / n_judged[:, None],
        noise=noise,
        n_objects=judgements.n_objects,
    )


def internal_variance(judgements: Judgements) -> Float[np.ndarray, " attribute"]:
    """v, the mean over objects of the unbiased variance of an object's judgements (equation 2).

    Objects with a single judgement say nothing of it.

    Raises:
        ValueError: an attribute has no two judgements of any object.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.selection.judgements import as_judgements
        >>> values = np.array([[[1.0, 3.0, np.nan]], [[2.0, 5.0, 8.0]], [[4.0, np.nan, np.nan]]])
        >>> internal_variance(as_judgements(values))  # (2 + 9) / 2
        array([5.5])
    """
    counts = judgements.counts
    is_repeated = counts >= 2
    n_repeated = is_repeated.sum(axis=0)
    if (n_repeated == 0).any():
        name = plain(judgements.attributes[int(np.argmin(n_repeated))])
        raise ValueError(
            f"attribute {name!r} is never judged twice on the same object; its internal variance "
            "needs at least 2 judgements of some object"
        )
    variances = judgements.squared_deviations / np.maximum(counts - 1, 1)
    return np.where(is_repeated, variances, 0.0).sum(axis=0) / n_repeated


def object_averages(
    judgements: Judgements, average: Average
) -> Float[np.ndarray, "object attribute"]:
    """Mean or median of each object's judgements; NaN where there are none."""
    return judgements.means if average == "mean" else judgements.medians


def nearest_psd(matrix: Float[np.ndarray, "row row"]) -> Float[np.ndarray, "row row"]:
    """The positive semidefinite matrix nearest in Frobenius norm (Higham 1988; 'MakePSD').

    Examples:
        >>> import numpy as np
        >>> nearest_psd(np.array([[0.0, 1.0], [1.0, 0.0]]))
        array([[0.5, 0.5],
               [0.5, 0.5]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] >= 0:
        return matrix
    rounded = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (rounded + rounded.T) / 2


def _n_shared(
    judgements: Judgements, needs_pairs: bool
) -> Float[np.ndarray, "attribute attribute"]:
    """Number of objects on which both attributes are judged; infinite if none, which gives 0."""
    is_judged = (judgements.counts > 0).astype(float)
    if is_judged.all():
        return np.full((judgements.n_attributes,) * 2, float(judgements.n_objects))
    shared = is_judged.T @ is_judged
    if needs_pairs and (shared == 0).any():
        one, other = (plain(judgements.attributes[int(i)]) for i in np.argwhere(shared == 0)[0])
        raise ValueError(
            f"attributes {one!r} and {other!r} are never judged on the same object: their "
            "covariance is unknown (method='scoring' does without)"
        )
    return np.where(shared > 0, shared, np.inf)


def _mean_noise(
    internal: Float[np.ndarray, " attribute"], most: int
) -> Float[np.ndarray, "attribute repeat"]:
    repeats = np.arange(most + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = internal[:, None] / repeats
    noise[:, 0] = np.inf
    return noise


def _median_noise(judgements: Judgements, most: int) -> Float[np.ndarray, "attribute repeat"]:
    """Variance of the median of r draws of each attribute's noise; never rises with r."""
    noise = np.full((judgements.n_attributes, most + 1), np.inf)
    draws = _noise_draws(judgements)
    for repeats in range(1, most + 1):
        low, high = _middle_quantiles(repeats)
        for attribute, ascending in enumerate(draws):
            last = len(ascending) - 1
            middle = [
                ascending[np.minimum((q * len(ascending)).astype(int), last)] for q in (low, high)
            ]
            noise[attribute, repeats] = ((middle[0] + middle[1]) / 2).var()
    return np.minimum.accumulate(noise, axis=1)


def _noise_draws(judgements: Judgements) -> list[Float[np.ndarray, " _"]]:
    """Deviations from the object's mean, scaled to the internal variance, ascending."""
    counts = judgements.counts.ravel()[judgements.cells]
    kept = counts >= 2
    deviations = (judgements.values - judgements.means.ravel()[judgements.cells])[kept]
    scaled = deviations * np.sqrt(counts[kept] / (counts[kept] - 1))
    attribute = judgements.attribute_codes[kept]
    return [np.sort(scaled[attribute == a]) for a in range(judgements.n_attributes)]


def _middle_quantiles(
    repeats: int,
) -> tuple[Float[np.ndarray, " quantile"], Float[np.ndarray, " quantile"]]:
    """Evenly weighted draws of the two middle order statistics of so many uniform variables."""
    even = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    if repeats % 2:
        middle = beta.ppf(even, (repeats + 1) // 2, (repeats + 1) // 2)
        return middle, middle
    half = repeats // 2
    low = beta.ppf(even, half, half + 1)
    # The next one is the least of `half` uniform variables above; a golden-ratio sequence spreads
    # its quantiles evenly over those of the lower one.
    spread = (np.arange(N_QUANTILES) * 0.6180339887498949 + 0.5) % 1.0
    return low, low + (1 - low) * (1 - (1 - spread) ** (1 / half))
