"""Multinomial regression with a normal prior, by Laplace's approximation.

The class y_i of each of a few tasks is drawn with probabilities softmax(f_i), where

    f_ik = x_ik . theta,    theta_p ~ N(mean_p, sd_p^2) independently.

In the scaled parameters eta = (theta - mean) / sd, with X the scaled features as a table of
(task, class) rows, pi the probabilities at eta and R the root of their covariance, a block
diag(sqrt pi) - pi sqrt(pi)^T per task, the negative Hessian of the log posterior is

    A = I + T T^T,    T = X^T R.

Newton's steps, the evidence and the draws need A^-1, log |A| and A^-1/2. Either the parameters or
the rows of the table are few: A itself is factorised in the first case, and I + T^T T in the
second (Woodbury's identity). The two give the same numbers, draws included, because draws use the
symmetric root of A^-1, which is unique.

The mode and the evidence: Rasmussen and Williams (2006), Gaussian Processes for Machine Learning,
sections 3.4.1 and 3.4.4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int
from scipy.special import logsumexp, softmax

__all__ = ["LaplaceFit", "Regression", "log_posterior", "to_mode"]

MOST_STEPS = 100
"""Largest number of Newton's steps; the log posterior is concave, and about six suffice."""

SETTLED = 1e-10
"""Newton's decrement, nats, below which the mode is found, but for one more full step."""


class Regression(NamedTuple):
    """Tasks with known classes, their features and the prior."""

    features: scipy.sparse.csr_matrix
    """Features of (task, class), one row each, tasks first: (item x cls) x parameter."""
    classes: Int[np.ndarray, " item"]
    """Class of each task."""
    mean: Float[np.ndarray, " parameter"]
    """Prior mean of each parameter."""
    sd: Float[np.ndarray, " parameter"]
    """Prior standard deviation of each parameter."""

    def scores(self, theta: Float[np.ndarray, " parameter"]) -> Float[np.ndarray, "item cls"]:
        """f at these parameters."""
        return (self.features @ theta).reshape(len(self.classes), -1)


class LaplaceFit(NamedTuple):
    """The posterior of a `Regression`, as a normal distribution around its mode."""

    mode: Float[np.ndarray, " parameter"]
    """Most probable parameters."""
    sd: Float[np.ndarray, " parameter"]
    """Prior standard deviation of each parameter."""
    log_evidence: float
    """log P(classes), the parameters integrated out, nats."""
    n_steps: int
    """Number of Newton's steps."""
    vectors: Float[np.ndarray, "parameter direction"]
    """Orthonormal directions of eta in which the data say something."""
    values: Float[np.ndarray, " direction"]
    """Precision that the data add in each direction."""

    def spread(self, z: Float[np.ndarray, "draw parameter"]) -> Float[np.ndarray, "draw parameter"]:
        """Parameters at standard normal numbers z: mode + sd A^(-1/2) z."""
        shrink = 1 / np.sqrt(1 + self.values) - 1
        along = (z @ self.vectors) * shrink
        return self.mode + self.sd * (z + along @ self.vectors.T)


def log_posterior(regression: Regression, theta: Float[np.ndarray, " parameter"]) -> float:
    """log P(classes | theta) + log of the prior density relative to that at its mean, nats."""
    eta = (theta - regression.mean) / regression.sd
    scores = regression.scores(theta)
    chosen = scores[np.arange(len(scores)), regression.classes]
    return float((chosen - logsumexp(scores, axis=1)).sum() - 0.5 * eta @ eta)


def to_mode(regression: Regression, *, by_parameter: bool | None = None) -> LaplaceFit:
    """Find the mode by Newton's method, and Laplace's approximation there.

    Args:
        regression: the tasks with known classes.
        by_parameter: whether the matrix to factorise has a row per parameter, or one per task and
            class; by default, the smaller of the two is.

    Examples:
        >>> import numpy as np, scipy.sparse
        >>> one = scipy.sparse.csr_matrix(np.array([[1.0], [0.0]] * 4))
        >>> easy = Regression(one, np.array([0, 0, 0, 1]), np.zeros(1), np.ones(1))
        >>> to_mode(easy).mode.round(3)
        array([0.505])
    """
    n_items = len(regression.classes)
    if n_items == 0:
        nothing = np.empty((len(regression.mean), 0))
        return LaplaceFit(regression.mean, regression.sd, 0.0, 0, nothing, np.empty(0))
    table = (regression.features @ scipy.sparse.diags(regression.sd)).tocsr()
    n_rows, n_parameters = table.shape
    if by_parameter is None:
        by_parameter = n_parameters <= n_rows
    one_hot = np.zeros((n_items, n_rows // n_items))
    one_hot[np.arange(n_items), regression.classes] = 1.0
    eta, n_steps = np.zeros(n_parameters), 0
    value = log_posterior(regression, regression.mean)
    while n_steps < MOST_STEPS:
        probas = softmax(regression.scores(regression.mean + regression.sd * eta), axis=1)
        gradient = table.T @ (one_hot - probas).ravel() - eta
        step = _solve(table, probas, gradient, by_parameter)
        decrement = float(gradient @ step)
        if decrement < SETTLED:
            eta = eta + step
            break
        n_steps += 1
        length = 1.0
        # The full step is almost always taken; halving it makes the climb certain.
        while True:
            candidate = eta + length * step
            reached = log_posterior(regression, regression.mean + regression.sd * candidate)
            if reached >= value + 1e-4 * length * decrement or length < 1e-10:
                break
            length /= 2
        eta, value = candidate, reached
    mode = regression.mean + regression.sd * eta
    value = log_posterior(regression, mode)
    values, vectors = _added_precision(
        table, softmax(regression.scores(mode), axis=1), by_parameter
    )
    log_evidence = value - 0.5 * float(np.log1p(values).sum())
    return LaplaceFit(mode, regression.sd, log_evidence, n_steps, vectors, values)


def _solve(
    table: scipy.sparse.csr_matrix,
    probas: Float[np.ndarray, "item cls"],
    gradient: Float[np.ndarray, " parameter"],
    by_parameter: bool,
) -> Float[np.ndarray, " parameter"]:
    """A^-1 times the gradient."""
    if by_parameter:
        precision = _outer(table, probas)
        precision[np.diag_indices_from(precision)] += 1.0
        return np.linalg.solve(precision, gradient)
    root = _root(table, probas)
    inner = root.T @ root
    inner[np.diag_indices_from(inner)] += 1.0
    return gradient - root @ np.linalg.solve(inner, root.T @ gradient)


def _added_precision(
    table: scipy.sparse.csr_matrix, probas: Float[np.ndarray, "item cls"], by_parameter: bool
) -> tuple[Float[np.ndarray, " direction"], Float[np.ndarray, "parameter direction"]]:
    """Eigenvalues above zero of T T^T, with their eigenvectors."""
    if by_parameter:
        values, vectors = np.linalg.eigh(_outer(table, probas))
        kept = values > _negligible(values)
        return values[kept], vectors[:, kept]
    root = _root(table, probas)
    values, inner = np.linalg.eigh(root.T @ root)
    kept = values > _negligible(values)
    return values[kept], (root @ inner[:, kept]) / np.sqrt(values[kept])


def _negligible(values: Float[np.ndarray, " direction"]) -> float:
    """Eigenvalues up to this are rounding errors of zero."""
    return 1e-12 * max(1.0, float(values.max(initial=0.0)))


def _outer(
    table: scipy.sparse.csr_matrix, probas: Float[np.ndarray, "item cls"]
) -> Float[np.ndarray, "parameter parameter"]:
    """T T^T = X^T (diag(pi) - pi pi^T) X."""
    weighted = scipy.sparse.diags(probas.ravel()) @ table
    means = _task_sums(probas.shape) @ weighted
    return np.asarray((table.T @ weighted - means.T @ means).todense())


def _root(
    table: scipy.sparse.csr_matrix, probas: Float[np.ndarray, "item cls"]
) -> Float[np.ndarray, "parameter row"]:
    """T = X^T R."""
    roots = scipy.sparse.diags(np.sqrt(probas).ravel())
    means = _task_sums(probas.shape) @ scipy.sparse.diags(probas.ravel()) @ table
    spread = roots @ (table - _task_sums(probas.shape).T @ means)
    return np.asarray(spread.todense()).T


def _task_sums(shape: tuple[int, ...]) -> scipy.sparse.csr_matrix:
    """The sums over the classes of each task, as a matrix task x (task, class)."""
    n_items, n_classes = shape
    place = np.arange(n_items * n_classes)
    ones = np.ones(len(place))
    return scipy.sparse.csr_matrix((ones, (place // n_classes, place)), shape=(n_items, len(place)))
