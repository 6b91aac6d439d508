"""The regression on gold: mode, evidence and draws against independent computations."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.special import logsumexp, softmax

from bayescrowd.aggregation.auto.gold_regression import Regression, log_posterior, to_mode


def random_regression(seed, *, n_items=7, n_classes=3, n_parameters=5):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items * n_classes, n_parameters))
    return Regression(
        scipy.sparse.csr_matrix(features),
        rng.integers(n_classes, size=n_items),
        rng.normal(size=n_parameters),
        rng.uniform(0.3, 2, n_parameters),
    )


def own_log_posterior(regression, theta):
    """Written from the model's definition, task by task."""
    features = regression.features.toarray().reshape(len(regression.classes), -1, len(theta))
    total = 0.0
    for x, k in zip(features, regression.classes, strict=True):
        f = x @ theta
        total += f[k] - np.log(np.exp(f).sum())
    return total - 0.5 * (((theta - regression.mean) / regression.sd) ** 2).sum()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by_parameter", [True, False])
def test_mode_is_that_of_a_general_optimiser(seed, by_parameter):
    regression = random_regression(seed)
    found = to_mode(regression, by_parameter=by_parameter)
    best = scipy.optimize.minimize(
        lambda theta: -own_log_posterior(regression, theta), regression.mean, tol=1e-12
    )
    np.testing.assert_allclose(found.mode, best.x, atol=1e-4)  # BFGS with numerical gradients
    assert log_posterior(regression, found.mode) >= -best.fun - 1e-9
    assert log_posterior(regression, found.mode) == pytest.approx(
        own_log_posterior(regression, found.mode)
    )


def test_gradient_at_the_mode_is_zero_by_finite_differences():
    regression = random_regression(4)
    mode = to_mode(regression).mode
    for step in 1e-5 * np.eye(len(mode)):
        slope = own_log_posterior(regression, mode + step)
        slope -= own_log_posterior(regression, mode - step)
        assert abs(slope / 2e-5) < 1e-5


@pytest.mark.parametrize(("n_items", "n_parameters"), [(7, 5), (2, 30), (1, 2), (40, 8)])
def test_both_forms_agree(n_items, n_parameters):
    regression = random_regression(1, n_items=n_items, n_parameters=n_parameters)
    one, other = (to_mode(regression, by_parameter=form) for form in (True, False))
    np.testing.assert_allclose(one.mode, other.mode, atol=1e-8)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-8)
    z = np.random.default_rng(0).normal(size=(6, n_parameters))
    np.testing.assert_allclose(one.spread(z), other.spread(z), atol=1e-6)


def test_evidence_is_near_the_integral():
    """Two parameters on a grid. Laplace's error falls as 1 / tasks: .08 nats of 12, .01 of 100."""
    n_items = 100
    regression = random_regression(2, n_items=n_items, n_parameters=2)
    grid = np.linspace(-6, 6, 401)
    theta = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = regression.mean + regression.sd * theta
    features = regression.features.toarray().reshape(n_items, 3, 2)
    f = np.einsum("ikp,gp->gik", features, theta)
    chosen = f[:, np.arange(n_items), regression.classes]
    eta = (theta - regression.mean) / regression.sd
    log_joint = (chosen - logsumexp(f, axis=2)).sum(axis=1) - 0.5 * (eta**2).sum(axis=1)
    cell = (grid[1] - grid[0]) ** 2 / (2 * np.pi)
    exact = logsumexp(log_joint) + np.log(cell)
    assert to_mode(regression).log_evidence == pytest.approx(exact, abs=0.03)


def test_draws_have_the_inverse_hessian_as_covariance():
    regression = random_regression(3)
    found = to_mode(regression)
    features = regression.features.toarray().reshape(7, 3, 5)
    probas = softmax(features @ found.mode, axis=1)
    hessian = np.diag(regression.sd**-2.0)
    for x, p in zip(features, probas, strict=True):
        hessian += x.T @ (np.diag(p) - np.outer(p, p)) @ x
    root = found.spread(np.eye(5)) - found.mode
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(hessian), atol=1e-8)


def test_without_gold_the_posterior_is_the_prior():
    empty = Regression(
        scipy.sparse.csr_matrix((0, 3)), np.zeros(0, dtype=np.int64), np.arange(3.0), np.ones(3)
    )
    found = to_mode(empty)
    np.testing.assert_array_equal(found.mode, np.arange(3.0))
    assert found.log_evidence == 0
    np.testing.assert_allclose(found.spread(np.ones((1, 3))), [[1, 2, 3]])
