"""Conditionals of the model of numeric judgements, and the sweep that draws from them in turn.

The model is `bayescrowd.models.judgements`. Given the items' values every parameter has a conjugate
distribution, and given the parameters the values do too, so that a sweep draws, in turn: values
(normal), internal variances (inverse gamma), means (normal), the precision between items (Wishart)
and its scales (inverse gamma; Huang and Wand 2013, section 3), and the regression of the target on
the values (normal and inverse gamma). Two moves then change several of them at once, because values
and covariances that hold each other in place would otherwise mix slowly. The priors are meant for
attributes and targets of unit variance, to which `standardise_judgements` brings the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.data.judgements import Judgements
from bayescrowd.models.judgements import DEGREES, Prior
from bayescrowd.selection.repeats.moments import centre

__all__ = [
    "JudgementState",
    "JudgementStatistics",
    "first_judgement_state",
    "standardise_judgements",
    "sweep_judgements",
]

N_SHEARED = 6
"""Number of attributes per sweep whose covariances are moved together with their values; each of
them costs one regression."""


class JudgementStatistics(NamedTuple):
    """Sufficient statistics of the judgements, in units of standard deviations."""

    counts: Float[np.ndarray, "object attribute"]
    """Number of judgements."""
    sums: Float[np.ndarray, "object attribute"]
    """Sum of the centred judgements."""
    squares: Float[np.ndarray, "object attribute"]
    """Sum of squared deviations from the mean judgement of the object."""
    target: Float[np.ndarray, " object"]
    """Centred target of each object."""
    patterns: Float[np.ndarray, "pattern attribute"]
    """Distinct rows of `counts`."""
    members: list[Int[np.ndarray, " member"]]
    """Objects of each pattern."""
    scale: Float[np.ndarray, " joint"]
    """The user's units: standard deviation of each attribute, and last of the target."""


class JudgementState(NamedTuple):
    """Parameters after a sweep; see `bayescrowd.models.judgements.Params`."""

    mean: Float[np.ndarray, " joint"]
    """Mean over objects, with the target last."""
    precision: Float[np.ndarray, "attribute attribute"]
    """Inverse of the covariance between objects (Sigma^-1)."""
    internal_variance: Float[np.ndarray, " attribute"]
    """Variance of a judgement around the object's value (v)."""
    scale: Float[np.ndarray, " attribute"]
    """Scale of the prior on each attribute's variance (Huang and Wand's a)."""
    coefficient: Float[np.ndarray, " attribute"]
    """Regression coefficients of the target on the values (w)."""
    coefficient_variance: float
    """Prior variance of the coefficients."""
    residual_variance: float
    """Variance of the target given the values (s)."""

    @property
    def joint_precision(self) -> Float[np.ndarray, "joint joint"]:
        """Precision of values and target together."""
        weight = self.coefficient / self.residual_variance
        own = self.precision + np.outer(self.coefficient, weight)
        last = np.array([[1 / self.residual_variance]])
        return np.block([[own, -weight[:, None]], [-weight[None], last]])

    @property
    def joint_covariance(self) -> Float[np.ndarray, "joint joint"]:
        """Covariance of values and target together."""
        values = np.linalg.inv(self.precision)
        across = (values @ self.coefficient)[:, None]
        last = np.array([[self.residual_variance]]) + self.coefficient @ across
        return np.block([[values, across], [across.T, last]])


def standardise_judgements(
    judgements: Judgements, target: Float[np.ndarray, " object"]
) -> JudgementStatistics:
    """Centre attributes and target, bring them to unit variance, and sum them up.

    Args:
        judgements: any number of judgements per object and attribute.
        target: target of each object.
    """
    counts = judgements.counts.astype(float)
    means = centre(judgements.means, judgements.magnitudes)
    within = judgements.squared_deviations.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    total = means.spread**2 + within
    spread = np.sqrt(np.where(total > 0, total, 1.0))
    targets = centre(target[:, None], np.abs(target).max(keepdims=True))
    unit = float(targets.spread[0]) or 1.0
    patterns, which = np.unique(counts, axis=0, return_inverse=True)
    return JudgementStatistics(
        counts=counts,
        sums=counts * means.deviations / spread,
        squares=judgements.squared_deviations / spread**2,
        target=targets.deviations[:, 0] / unit,
        patterns=patterns,
        members=[np.flatnonzero(which.ravel() == p) for p in range(len(patterns))],
        scale=np.append(spread, unit),
    )


def first_judgement_state(rng: np.random.Generator, n_attributes: int) -> JudgementState:
    """A state to start a chain from, with variances drawn at random."""
    return JudgementState(
        mean=np.zeros(n_attributes + 1),
        precision=np.diag(rng.uniform(0.5, 4.0, size=n_attributes)),
        internal_variance=rng.uniform(0.2, 1.0, size=(n_attributes,)),
        scale=np.ones(n_attributes),
        coefficient=np.zeros(n_attributes),
        coefficient_variance=0.1,
        residual_variance=float(rng.uniform(0.2, 1.0)),
    )


def sweep_judgements(
    rng: np.random.Generator, state: JudgementState, data: JudgementStatistics, prior: Prior
) -> JudgementState:
    """Draw the objects' values and then every parameter once."""
    values = _draw_values(rng, state, data)
    internal = _draw_internal(rng, values, data, prior)
    joint = np.column_stack([values, data.target])
    mean = _draw_mean(rng, joint, state.joint_precision, prior)
    deviations = joint - mean
    precision = _draw_precision(rng, deviations[:, :-1], state.scale)
    scale = _draw_scale(rng, precision, prior)
    state = JudgementState(
        mean, precision, internal, scale, *_draw_regression(rng, deviations, state, prior)
    )
    state, own = _stretch(rng, deviations[:, :-1], state, data, prior)
    return _shear(rng, own, state, data)


def _draw_values(
    rng: np.random.Generator, state: JudgementState, data: JudgementStatistics
) -> Float[np.ndarray, "object attribute"]:
    """Values of the attributes given target and judgements: precision Sigma^-1 + Diag(n / v)."""
    joint = state.joint_precision
    own, across = joint[:-1, :-1], joint[:-1, -1]
    centred = data.target - state.mean[-1]
    linear = own @ state.mean[:-1] - np.outer(centred, across)
    linear = linear + data.sums / state.internal_variance
    values = np.empty_like(linear)
    for pattern, members in zip(data.patterns, data.members, strict=True):
        lower = np.linalg.cholesky(own + np.diag(pattern / state.internal_variance))
        inverse = np.linalg.inv(lower)
        noise = rng.normal(size=(len(members), len(own)))
        values[members] = (linear[members] @ inverse.T + noise) @ inverse
    return values


def _draw_internal(
    rng: np.random.Generator,
    values: Float[np.ndarray, "object attribute"],
    data: JudgementStatistics,
    prior: Prior,
) -> Float[np.ndarray, " attribute"]:
    means = data.sums / np.maximum(data.counts, 1)
    squares = data.squares + data.counts * (means - values) ** 2
    return _draw_variance(rng, squares.sum(axis=0), data.counts.sum(axis=0), prior)


def _draw_mean(
    rng: np.random.Generator,
    joint: Float[np.ndarray, "object joint"],
    precision: Float[np.ndarray, "joint joint"],
    prior: Prior,
) -> Float[np.ndarray, " joint"]:
    total = len(joint) * precision + np.eye(len(precision)) / prior.mean**2
    inverse = np.linalg.inv(np.linalg.cholesky(total))
    return inverse.T @ (inverse @ (precision @ joint.sum(axis=0)) + rng.normal(size=len(total)))


def _draw_precision(
    rng: np.random.Generator,
    deviations: Float[np.ndarray, "object attribute"],
    scale: Float[np.ndarray, " attribute"],
) -> Float[np.ndarray, "attribute attribute"]:
    """A draw from the Wishart distribution, by Bartlett's decomposition."""
    n_values = len(scale)
    rate = deviations.T @ deviations + np.diag(2 * DEGREES / scale)
    degrees = DEGREES + n_values - 1 + len(deviations)
    lower = np.tril(rng.normal(size=(n_values, n_values)), -1)
    lower[np.diag_indices(n_values)] = np.sqrt(rng.chisquare(degrees - np.arange(n_values)))
    # rate = L L', so that (L^-1)' is a root of its inverse
    root = np.linalg.solve(np.linalg.cholesky(rate).T, lower)
    return root @ root.T


def _draw_scale(
    rng: np.random.Generator, precision: Float[np.ndarray, "attribute attribute"], prior: Prior
) -> Float[np.ndarray, " attribute"]:
    shape = (DEGREES + len(precision)) / 2
    rate = DEGREES * np.diag(precision) + 1 / prior.spread**2
    return rate / rng.standard_gamma(shape, size=len(precision))


def _draw_regression(
    rng: np.random.Generator,
    deviations: Float[np.ndarray, "object joint"],
    state: JudgementState,
    prior: Prior,
) -> tuple[Float[np.ndarray, " attribute"], float, float]:
    """Coefficients of the target on the values, their variance, and the residual variance."""
    own, target = deviations[:, :-1], deviations[:, -1]
    total = own.T @ own / state.residual_variance
    total[np.diag_indices(len(total))] += 1 / state.coefficient_variance
    inverse = np.linalg.inv(np.linalg.cholesky(total))
    linear = inverse @ (own.T @ target) / state.residual_variance
    coefficient = inverse.T @ (linear + rng.normal(size=len(linear)))
    squares = np.array([(coefficient**2).sum(), ((target - own @ coefficient) ** 2).sum()])
    numbers = np.array([len(coefficient), len(target)], dtype=float)
    variances = _draw_variance(rng, squares, numbers, prior)
    return coefficient, float(variances[0]), float(variances[1])


def _draw_variance(
    rng: np.random.Generator,
    squares: Float[np.ndarray, " entry"],
    numbers: Float[np.ndarray, " entry"],
    prior: Prior,
) -> Float[np.ndarray, " entry"]:
    """Variances given the numbers of deviations and their sums of squares: inverse gamma."""
    rate = (prior.n_pseudo * prior.pseudo_variance + squares) / 2
    return np.asarray(rate / rng.standard_gamma((prior.n_pseudo + numbers) / 2))


def _stretch(
    rng: np.random.Generator,
    deviations: Float[np.ndarray, "object attribute"],
    state: JudgementState,
    data: JudgementStatistics,
    prior: Prior,
) -> tuple[JudgementState, Float[np.ndarray, "object attribute"]]:
    """Stretch each attribute's values about their mean, and the parameters with them, by a factor.

    Where judges hardly agree, values and their variance keep each other small or large for many
    sweeps. Under value - mean -> c (value - mean), Sigma[a, a] -> c^2 Sigma[a, a],
    scale[a] -> scale[a] / c^2 and w[a] -> w[a] / c the densities of values, precision and target
    do not change (generalised Gibbs: Liu and Sabatti 2000, theorem 1). The remaining factors, of
    the judgements and the scale, are normal in c; the prior of w[a] decides whether to accept.
    """
    weight = data.counts / state.internal_variance
    pull = data.sums / state.internal_variance - weight * state.mean[:-1]
    tightness = (weight * deviations**2).sum(axis=0) + 2 / (prior.spread**2 * state.scale)
    location = (pull * deviations).sum(axis=0) / tightness
    factor = location + rng.normal(size=len(location)) / np.sqrt(tightness)
    strain = state.coefficient**2 / (2 * state.coefficient_variance)
    log_ratio = strain * (1 - 1 / factor**2) - np.log(np.abs(factor))
    factor = np.where(np.log(rng.random(len(factor))) < log_ratio, factor, 1.0)
    stretched = state._replace(
        precision=state.precision / np.outer(factor, factor),
        scale=state.scale / factor**2,
        coefficient=state.coefficient / factor,
    )
    return stretched, deviations * factor


def _shear(
    rng: np.random.Generator,
    deviations: Float[np.ndarray, "object attribute"],
    state: JudgementState,
    data: JudgementStatistics,
) -> JudgementState:
    """Add a combination of the other attributes' values to one attribute's, parameters included.

    This is the counterpart of `_stretch` for `N_SHEARED` attributes: value[a] -> value[a] + sum of
    g[b] (value[b] - mean[b]), the precision follows, and w[b] -> w[b] - w[a] g[b]. The remaining
    factors are normal in g: a regression of the judgements' deviations from the value of a.
    """
    precision, coefficient = state.precision, state.coefficient.copy()
    for a in rng.permutation(len(coefficient))[:N_SHEARED]:
        others = np.delete(np.arange(len(coefficient)), a)
        weight = data.counts[:, a] / state.internal_variance[a]
        left = data.sums[:, a] / state.internal_variance[a] - weight * (
            state.mean[a] + deviations[:, a]
        )
        regressors = deviations[:, others]
        pull = 2 * DEGREES / state.scale[others]
        total = (regressors * weight[:, None]).T @ regressors
        total[np.diag_indices(len(others))] += (
            pull * precision[a, a] + coefficient[a] ** 2 / state.coefficient_variance
        )
        inverse = np.linalg.inv(np.linalg.cholesky(total))
        linear = regressors.T @ left + pull * precision[a, others]
        linear = linear + coefficient[a] * coefficient[others] / state.coefficient_variance
        shear = np.zeros(len(coefficient))
        shear[others] = inverse.T @ (inverse @ linear + rng.normal(size=len(others)))
        deviations[:, a] += deviations @ shear
        coefficient -= coefficient[a] * shear
        precision = precision - np.outer(shear, precision[a])
        precision = precision - np.outer(precision[:, a], shear)
    return state._replace(precision=(precision + precision.T) / 2, coefficient=coefficient)
