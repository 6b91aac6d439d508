"""What judgements say about attributes: internal variance, external covariance, correlation.

Sabato and Kalai, 'Feature multi-selection among subjective features' (ICML 2013), algorithm 1,
lines 3 to 10. The mean judgement of attribute a of an object varies between objects by the external
covariance Sigma, and around the opinion of the whole crowd by v[a]/r[a], the internal variance over
the number of judgements:

    v[a]      mean over objects of the unbiased variance of the object's judgements     (equation 2)
    Sigma     covariance of the objects' mean judgements, minus the mean over objects of v[a]/n on
              the diagonal, where n is the number of judgements of the object
    b[a]      covariance of the mean judgement and the target

Means are removed, as by the paper's free constant feature. Objects without a judgement of an
attribute do not contribute to its moments. Sums are divided by the number of objects, as in the
paper.

The variance of a median of r judgements is not v[a]/r. It is computed from the attribute's own
judgements: their deviations from the object's mean, scaled to the variance v[a], are taken as draws
of the noise, and the variance of their median follows from the distribution of order statistics.

What is constant in the data must be constant here. The mean of a column of 4.7 is 4.7 up to a
rounding error, whose square would be a variance, and the ratio of two such variances can be any
number. Deviations that are small compared with the magnitude of the values, on which rounding
errors depend (`ROUNDING`), are therefore exactly 0, and so are covariances that are small compared
with the two spreads.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import beta

from bayescrowd.data.judgements import ROUNDING, Judgements
from bayescrowd.data.vocabulary import plain

__all__ = [
    "Average",
    "Centred",
    "Moments",
    "centre",
    "judgement_moments",
    "nearest_psd",
    "object_averages",
    "target_covariance",
]

Average = Literal["mean", "median"]

N_QUANTILES = 512
"""Number of quantiles of the distribution of an order statistic.

With this many, the variance of a median of thirty Gaussian judgements is correct to 0.2 %.
"""


class Centred(NamedTuple):
    """Columns without their means."""

    mean: Float[np.ndarray, " column"]
    """Mean of the numbers that are present."""
    deviations: Float[np.ndarray, "object column"]
    """Deviations from the mean; 0 for missing numbers, and throughout a constant column."""
    spread: Float[np.ndarray, " column"]
    """Standard deviation; exactly 0 for a constant column."""


class Moments(NamedTuple):
    """Estimated moments of attributes and targets."""

    attribute_mean: Float[np.ndarray, " attribute"]
    """Mean over objects."""
    target_mean: Float[np.ndarray, " target"]
    """Mean over objects."""
    target_variance: float
    """Variance over objects, summed over targets: the loss without any judgement."""
    internal_variance: Float[np.ndarray, " attribute"]
    """Variance of a single judgement of an object (v)."""
    external: Float[np.ndarray, "attribute attribute"]
    """Unbiased estimate of Sigma, which may not be positive semidefinite."""
    correlation: Float[np.ndarray, "attribute target"]
    """Covariance with each target (b)."""
    noise: Float[np.ndarray, "attribute repeat"]
    """Variance of the average of 0, 1, 2, ... judgements of one object; infinite for none."""
    n_objects: int
    """Number of objects behind the estimates."""


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
        judgements: the judgements, with at least two of each attribute on some object.
        target: targets of the objects, in the order of the objects.
        average: how an object's judgements of an attribute are averaged.
        most_repeats: largest number of judgements for which the noise is needed.
        needs_pairs: whether the covariance of every two attributes is needed; if not, unknown
            covariances are 0.

    Raises:
        ValueError: there are fewer than two objects, an attribute is never judged twice, or two
            attributes are never judged on the same object.
    """
    if judgements.n_objects < 2:
        raise ValueError(f"judgements of {judgements.n_objects} object; expected at least two")
    internal = internal_variance(judgements)
    counts = judgements.counts
    most = max(most_repeats, int(counts.max()))
    noise = _mean_noise(internal, most) if average == "mean" else _median_noise(judgements, most)
    is_judged = counts > 0
    n_judged = is_judged.sum(axis=0)
    values = centre(object_averages(judgements, average), judgements.magnitudes)
    targets = centre(target, np.abs(target).max(axis=0))
    noise_at_counts = np.where(is_judged, noise[np.arange(len(internal)), counts], 0.0)
    external = values.deviations.T @ values.deviations / _n_shared(judgements, needs_pairs)
    diagonal = np.diag(external) - noise_at_counts.sum(axis=0) / n_judged
    np.fill_diagonal(external, diagonal)
    return Moments(
        attribute_mean=values.mean,
        target_mean=targets.mean,
        target_variance=float((targets.spread**2).sum()),
        internal_variance=internal,
        external=external,
        correlation=target_covariance(values, targets, n_judged),
        noise=noise,
        n_objects=judgements.n_objects,
    )


def centre(
    values: Float[np.ndarray, "object column"], magnitude: Float[np.ndarray, " column"]
) -> Centred:
    """Remove the means of columns; a column whose numbers differ only by rounding becomes 0.

    Args:
        values: the columns, with NaN for missing numbers.
        magnitude: largest absolute value behind each column.

    Examples:
        >>> import numpy as np
        >>> np.ptp([0.1 + 0.2, 0.3, 0.3]) > 0
        np.True_
        >>> centre(np.array([[0.1 + 0.2], [0.3], [0.3]]), np.array([0.3])).spread
        array([0.])
    """
    is_there = ~np.isnan(values)
    n_there = np.maximum(is_there.sum(axis=0), 1)
    first = np.where(is_there, values, 0.0).sum(axis=0) / n_there
    deviations = np.where(is_there, values - first, 0.0)
    # The second pass removes the rounding error of the first sum, which grows with its length.
    rest = deviations.sum(axis=0) / n_there
    deviations = np.where(is_there, deviations - rest, 0.0)
    spread = np.sqrt((deviations**2).sum(axis=0) / n_there)
    varies = spread > ROUNDING * magnitude
    return Centred(first + rest, np.where(varies, deviations, 0.0), np.where(varies, spread, 0.0))


def target_covariance(
    values: Centred, targets: Centred, n_judged: Int[np.ndarray, " column"] | int
) -> Float[np.ndarray, "column target"]:
    """Covariance of every column with every target (b); exactly 0 where it is a rounding error."""
    covariance = values.deviations.T @ targets.deviations / np.reshape(n_judged, (-1, 1))
    bound = ROUNDING * np.outer(values.spread, targets.spread)
    return np.where(np.abs(covariance) > bound, covariance, 0.0)


def internal_variance(judgements: Judgements) -> Float[np.ndarray, " attribute"]:
    """Mean over objects of the unbiased variance of an object's judgements (v, equation 2).

    Objects with a single judgement do not contribute.

    Raises:
        ValueError: an attribute has no two judgements of any object.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.data.judgements import as_judgements
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
    symmetric = (matrix + matrix.T) / 2
    # Rows without covariances are treated apart. Rounding errors of the eigenvectors would mix them
    # with the others, and a constant attribute would no longer be constant.
    alone = ~(symmetric - np.diag(np.diag(symmetric))).any(axis=1)
    together = np.flatnonzero(~alone)
    values, vectors = np.linalg.eigh(symmetric[np.ix_(together, together)])
    if (np.diag(matrix)[alone] >= 0).all() and (values >= 0).all():
        return matrix
    rounded = (vectors * np.maximum(values, 0.0)) @ vectors.T
    nearest = np.diag(np.where(alone, np.maximum(np.diag(symmetric), 0.0), 0.0))
    nearest[np.ix_(together, together)] = (rounded + rounded.T) / 2
    return nearest


def _n_shared(
    judgements: Judgements, needs_pairs: bool
) -> Float[np.ndarray, "attribute attribute"]:
    """Number of objects on which both attributes are judged; infinite if there are none."""
    is_judged = (judgements.counts > 0).astype(float)
    if is_judged.all():
        return np.full((judgements.n_attributes,) * 2, float(judgements.n_objects))
    shared = is_judged.T @ is_judged
    if needs_pairs and (shared == 0).any():
        one, other = (plain(judgements.attributes[int(i)]) for i in np.argwhere(shared == 0)[0])
        raise ValueError(
            f"attributes {one!r} and {other!r} are never judged on the same object, so their "
            "covariance is unknown (method='scoring' does not need it)"
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
    """Variance of the median of r draws of each attribute's noise; it never rises with r."""
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
    scaled = judgements.deviations[kept] * np.sqrt(counts[kept] / (counts[kept] - 1))
    attribute = judgements.attribute_codes[kept]
    return [np.sort(scaled[attribute == a]) for a in range(judgements.n_attributes)]


def _middle_quantiles(
    repeats: int,
) -> tuple[Float[np.ndarray, " quantile"], Float[np.ndarray, " quantile"]]:
    """Equally weighted draws of the two middle order statistics of `repeats` uniform variables."""
    even = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    if repeats % 2:
        middle = beta.ppf(even, (repeats + 1) // 2, (repeats + 1) // 2)
        return middle, middle
    half = repeats // 2
    low = beta.ppf(even, half, half + 1)
    # The upper one is the least of `half` uniform variables above the lower one. A golden-ratio
    # sequence spreads its quantiles evenly over those of the lower one.
    spread = (np.arange(N_QUANTILES) * 0.6180339887498949 + 0.5) % 1.0
    return low, low + (1 - low) * (1 - (1 - spread) ** (1 / half))
