"""The leading eigenvector of a symmetric matrix that need not be formed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigsh

__all__ = ["gram_operator", "leading_eigenvector"]

_DENSE = 32
"""Matrices up to this size are solved densely, because Lanczos vectors would fill the space."""


def leading_eigenvector(matrix: Any) -> Float[np.ndarray, " size"]:
    """Unit eigenvector for the eigenvalue of largest modulus, of either sign.

    Args:
        matrix: symmetric; an array, a sparse matrix or a `LinearOperator`.

    Examples:
        >>> import numpy as np
        >>> np.abs(leading_eigenvector(np.array([[2.0, 1.0], [1.0, 2.0]]))).round(4)
        array([0.7071, 0.7071])
    """
    size = matrix.shape[0]
    if size <= _DENSE:
        dense = matrix @ np.eye(size)
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
        return vectors[:, np.abs(values).argmax()]
    # With a fixed start, the result depends on the matrix alone.
    start = np.random.default_rng(0).standard_normal(size)
    return eigsh(matrix, k=1, which="LM", v0=start)[1][:, 0]


def gram_operator(matrix: scipy.sparse.csr_matrix, *, centred: bool = False) -> LinearOperator:
    """A'A as an operator; if `centred`, the mean of each column of A is subtracted first.

    With C = A - 1 m', where m are the column means over all n rows, C'C = A'A - n m m'.

    Examples:
        >>> import numpy as np
        >>> import scipy.sparse
        >>> matrix = scipy.sparse.csr_matrix([[1.0, 0.0], [3.0, 2.0]])
        >>> gram_operator(matrix, centred=True) @ np.eye(2)
        array([[2., 2.],
               [2., 2.]])
    """
    n_rows, size = matrix.shape
    transposed = matrix.T
    mean = np.asarray(matrix.mean(axis=0)).ravel() if centred else np.zeros(size)

    def product(vectors: np.ndarray) -> np.ndarray:
        return transposed @ (matrix @ vectors) - n_rows * np.multiply.outer(mean, mean @ vectors)

    return LinearOperator((size, size), matvec=product, matmat=product, dtype=np.float64)
