"""Eigenvectors of a symmetric third-order tensor that is nearly orthogonal.

Anandkumar, Ge, Hsu, Kakade and Telgarsky 2014, 'Tensor decompositions for learning latent variable
models', algorithm 1 (the robust tensor power method): T = sum_h t_h v_h x v_h x v_h with
orthonormal v_h and positive t_h has the v_h as attracting fixed points of the power step
v <- T(I, v, v) / |T(I, v, v)|.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["TensorFactors", "symmetrise", "tensor_power"]


class TensorFactors(NamedTuple):
    """A symmetric tensor as sum_h values[h] v_h x v_h x v_h, v_h orthonormal."""

    values: Float[np.ndarray, " factor"]
    """Eigenvalues, largest first."""
    vectors: Float[np.ndarray, "axis factor"]
    """Unit eigenvectors as columns."""


def tensor_power(
    rng: np.random.Generator,
    tensor: Float[np.ndarray, "axis axis axis"],
    *,
    n_restarts: int = 30,
    n_steps: int = 100,
) -> TensorFactors:
    """Robust eigenvectors of a nearly orthogonal symmetric tensor, by power steps and deflation.

    Each eigenvector is the best, by T(v, v, v), of several runs of v <- T(I, v, v) / |T(I, v, v)|
    from random starts; then values[h] v x v x v is subtracted from the tensor. Convergence is
    quadratic: the default number of steps is far more than it takes.

    Args:
        rng: source of the random starts.
        tensor: the tensor.
        n_restarts: number of runs for each eigenvector.
        n_steps: largest number of steps of each run.

    Examples:
        >>> import numpy as np
        >>> tensor = np.zeros((2, 2, 2))
        >>> tensor[0, 0, 0], tensor[1, 1, 1] = 3.0, 2.0
        >>> found = tensor_power(np.random.default_rng(0), tensor)
        >>> found.values.round(6), np.abs(found.vectors).round(6)
        (array([3., 2.]), array([[1., 0.],
               [0., 1.]]))
    """
    size = len(tensor)
    values, vectors = np.empty(size), np.empty((size, size))
    for factor in range(size):
        flat = tensor.reshape(size, size * size)
        runs = _unit_rows(rng.standard_normal((n_restarts, size)))
        for _ in range(n_steps):
            before = runs
            runs = _unit_rows(_contract(flat, runs))
            if np.abs(runs - before).max() < 1e-14:
                break
        height = (_contract(flat, runs) * runs).sum(axis=1)
        best = int(height.argmax())
        values[factor], vectors[:, factor] = height[best], runs[best]
        outer = np.einsum("i,j,k->ijk", runs[best], runs[best], runs[best])
        tensor = tensor - height[best] * outer
    return TensorFactors(values, vectors)


def symmetrise(
    tensor: Float[np.ndarray, "axis axis axis"],
) -> Float[np.ndarray, "axis axis axis"]:
    """Mean over the six permutations of the axes."""
    turned = tensor + tensor.transpose(1, 2, 0) + tensor.transpose(2, 0, 1)
    return (turned + turned.transpose(1, 0, 2)) / 6


def _contract(
    flat: Float[np.ndarray, "axis pair"], runs: Float[np.ndarray, "run axis"]
) -> Float[np.ndarray, "run axis"]:
    """T(I, v, v) for each run's v."""
    products = runs[:, :, None] * runs[:, None, :]
    return products.reshape(len(runs), -1) @ flat.T


def _unit_rows(rows: Float[np.ndarray, "run axis"]) -> Float[np.ndarray, "run axis"]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)
