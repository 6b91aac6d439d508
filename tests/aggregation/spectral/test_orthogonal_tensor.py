"""The tensor power method against tensors whose factors are known."""

import itertools

import numpy as np
import pytest

from bayescrowd.aggregation.spectral.orthogonal_tensor import symmetrise, tensor_power


def tensor_of(values, vectors):
    return np.einsum("h,ih,jh,kh->ijk", values, *[vectors] * 3)


# By hand


def test_tensor_power_by_hand():
    # 3 u x u x u + 2 v x v x v with u = (0.6, 0.8), v = (0.8, -0.6).
    vectors = np.array([[0.6, 0.8], [0.8, -0.6]])
    found = tensor_power(np.random.default_rng(0), tensor_of([3.0, 2.0], vectors))
    np.testing.assert_allclose(found.values, [3, 2], rtol=1e-12)
    np.testing.assert_allclose(found.vectors, vectors, rtol=1e-12)


def test_symmetrised_is_the_mean_over_orders():
    tensor = np.random.default_rng(0).standard_normal((3, 3, 3))
    orders = itertools.permutations(range(3))
    expected = np.mean([tensor.transpose(order) for order in orders], axis=0)
    np.testing.assert_allclose(symmetrise(tensor), expected, rtol=1e-12)


# Closed form


@pytest.mark.parametrize("size", [2, 5, 12])
def test_orthogonal_factors_are_found_exactly(size):
    rng = np.random.default_rng(size)
    vectors = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values = rng.uniform(1.0, 4.0, size)
    found = tensor_power(rng, tensor_of(values, vectors))
    order = np.abs(vectors.T @ found.vectors).argmax(axis=0)
    assert sorted(order) == list(range(size))
    np.testing.assert_allclose(found.values, values[order], rtol=1e-8)
    np.testing.assert_allclose(found.vectors, vectors[:, order], atol=1e-8)


def test_signs_go_into_the_vectors():
    # -v x v x v = (-v) x (-v) x (-v)
    found = tensor_power(np.random.default_rng(2), -tensor_of([1.0, 1.0], np.eye(2)))
    np.testing.assert_allclose(found.values, 1, rtol=1e-12)
    np.testing.assert_allclose(np.sort(found.vectors, axis=0), [[-1, -1], [0, 0]], atol=1e-12)


# Recovery


def test_noise_moves_the_factors_by_no_more_than_its_size():
    # Anandkumar et al. 2014, theorem 5.1: errors of 5 |E| in values and 8 |E| / t in vectors, with
    # |E| the spectral norm, which the Frobenius norm bounds.
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    values = np.array([2.5, 2.0, 1.5, 1.0])
    noise = symmetrise(rng.standard_normal((4, 4, 4)))
    noise *= 0.01 / np.linalg.norm(noise)
    found = tensor_power(rng, tensor_of(values, vectors) + noise)
    order = np.abs(vectors.T @ found.vectors).argmax(axis=0)
    assert sorted(order) == [0, 1, 2, 3]
    assert np.abs(found.values - values[order]).max() < 5 * 0.01
    assert np.linalg.norm(found.vectors - vectors[:, order], axis=0).max() < 8 * 0.01 / 1.0


# Control


def test_control_a_tensor_without_orthogonal_factors_is_not_their_sum():
    tensor = symmetrise(np.random.default_rng(2).standard_normal((4, 4, 4)))
    found = tensor_power(np.random.default_rng(0), tensor)
    rest = tensor - tensor_of(found.values, found.vectors)
    assert np.linalg.norm(rest) > 0.2 * np.linalg.norm(tensor)
