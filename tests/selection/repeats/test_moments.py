"""Moments of judgements: by hand, unbiased with unequal numbers, medians."""

import numpy as np
import pandas as pd
import pytest

from bayescrowd.data.judgements import as_judgements
from bayescrowd.selection.repeats.moments import internal_variance, judgement_moments, nearest_psd

NAN = np.nan


def moments(values, y, **options):
    data = as_judgements(values)
    return judgement_moments(data, np.asarray(y, float)[:, None], most_repeats=4, **options)


def test_by_hand():
    values = np.array([[[1.0, 3.0]], [[4.0, 4.0]], [[6.0, 0.0]]])  # means 2, 4, 3
    found = moments(values, [0.0, 3.0, 3.0])
    assert found.internal_variance.tolist() == [(2 + 0 + 18) / 3]
    # variance of the means 2/3, minus v/2
    assert found.external[0, 0] == pytest.approx(2 / 3 - 20 / 6)
    assert found.correlation[0, 0] == pytest.approx(((-1) * (-2) + 1 * 1 + 0) / 3)
    assert found.target_variance == pytest.approx(2.0)
    np.testing.assert_allclose(found.noise[0], [np.inf, 20 / 3, 10 / 3, 20 / 9, 5 / 3])


def test_unequal_numbers_by_hand():
    values = np.array([[[1.0, 3.0, NAN]], [[4.0, NAN, NAN]], [[6.0, 0.0, 3.0]], [[NAN] * 3]])
    found = moments(values, [0.0, 3.0, 3.0, 6.0])
    v = (2 + 9) / 2
    assert found.internal_variance.tolist() == [v]
    assert found.attribute_mean[0] == pytest.approx(3.0)
    assert found.external[0, 0] == pytest.approx(2 / 3 - v * (1 / 2 + 1 + 1 / 3) / 3)
    # the object without a judgement counts for the target, not for the correlation
    assert found.correlation[0, 0] == pytest.approx(((-1) * (-3) + 1 * 0 + 0) / 3)
    assert found.target_mean[0] == 3.0


def test_estimates_are_unbiased_with_unequal_numbers():
    """Means over 300 data sets within four standard errors of the truth."""
    rng = np.random.default_rng(1)
    sigma = np.array([[1.0, 0.6], [0.6, 2.0]])
    v = np.array([3.0, 0.5])
    root = np.linalg.cholesky(sigma)
    found = []
    for _ in range(300):
        truth = rng.normal(size=(60, 2)) @ root.T
        values = truth[:, :, None] + np.sqrt(v)[:, None] * rng.normal(size=(60, 2, 4))
        absent = rng.random(values.shape) < 0.4
        absent[0] = False
        result = moments(np.where(absent, NAN, values), truth[:, 0])
        # the mean that is removed takes a share 1/m of what varies between objects
        external = result.external + result.external / 59
        found.append([*result.internal_variance, *external.ravel(), *result.correlation[:, 0]])
    found = np.array(found)
    expected = [3.0, 0.5, 1.0, 0.6, 0.6, 2.0, 59 / 60, 0.6 * 59 / 60]
    error = found.std(axis=0) / np.sqrt(len(found))
    # the noise of the removed mean, v E[1/n] / m, stays in the variances
    slack = [0, 0, 3 * 0.55 / 60, 0, 0, 0.5 * 0.55 / 60, 0.02, 0.02]
    assert (np.abs(found.mean(axis=0) - expected) < 4 * error + slack).all()


def test_control_the_biased_variance_would_be_found_out():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4000, 1, 2))
    data = as_judgements(values)
    biased = (data.squared_deviations / data.counts).mean()
    error = np.sqrt(2 / 4000)  # a chi-square with one degree of freedom has variance 2
    assert abs(internal_variance(data)[0] - 1) < 4 * error
    assert abs(biased - 1) > 4 * error


def test_an_attribute_needs_two_judgements_of_some_object():
    frame = pd.DataFrame(
        {"object": [1, 1, 1, 2], "attribute": ["a", "a", "b", "b"], "value": [1.0, 2.0, 3.0, 4.0]}
    )
    with pytest.raises(ValueError, match="attribute 'b' is never judged twice"):
        internal_variance(as_judgements(frame))


def test_attributes_without_a_common_object():
    values = np.array([[[1.0, 2.0], [NAN, NAN]], [[NAN, NAN], [2.0, 4.0]]])
    with pytest.raises(ValueError, match="attributes 0 and 1 are never judged on the same object"):
        moments(values, [0, 1])
    assert moments(values, [0, 1], needs_pairs=False).external[0, 1] == 0


def test_one_object_is_not_enough():
    with pytest.raises(ValueError, match="judgements of 1 object; expected at least two"):
        moments(np.ones((1, 2, 2)), [1.0])


def test_nearest_psd_leaves_what_stands_alone():
    """A row of zeros stays one, exactly, and a lone negative variance becomes 0."""
    rng = np.random.default_rng(0)
    matrix = np.zeros((6, 6))
    coupled = rng.normal(size=(4, 4))
    matrix[1:5, 1:5] = coupled + coupled.T
    matrix[5, 5] = -3.0
    rounded = nearest_psd(matrix)
    np.testing.assert_array_equal(rounded[[0, 5]], 0)
    np.testing.assert_allclose(rounded[1:5, 1:5], nearest_psd(matrix[1:5, 1:5]), atol=1e-14)


# Medians


def test_median_of_two_is_the_mean():
    values = np.random.default_rng(0).normal(size=(50, 3, 2))
    y = values.sum(axis=(1, 2))
    by_median, by_mean = (moments(values, y, average=how) for how in ("median", "mean"))
    np.testing.assert_allclose(by_median.correlation, by_mean.correlation)
    # the noise is that of differences; with 512 quantiles the variances agree to 2 %
    np.testing.assert_allclose(by_median.noise[:, 1:3], by_mean.noise[:, 1:3], rtol=0.02)


def test_noise_of_gaussian_medians():
    """Variances of medians of 1, 3 and 4 Gaussian draws: 1, 0.4487, 0.2982 (order statistics)."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20_000, 1, 2))
    noise = moments(values, rng.normal(size=20_000), average="median").noise[0]
    # standard error of a variance from 20,000 differences: 1 %
    np.testing.assert_allclose(noise[[1, 3, 4]], [1, 0.4487, 0.2982], rtol=0.04)


def test_medians_of_heavy_tails_have_less_noise_than_means():
    rng = np.random.default_rng(0)
    values = rng.standard_t(2, size=(5000, 1, 3))
    y = rng.normal(size=5000)
    by_median, by_mean = (moments(values, y, average=how) for how in ("median", "mean"))
    assert by_median.noise[0, 4] < 0.7 * by_mean.noise[0, 4]
