"""Draws of the model of judgements by Gibbs sampling, and what they say about repeat vectors.

The model is `bayescrowd.models.judgements`. Given the items' values every parameter has a conjugate
distribution, and given the parameters so have the values, so that a sweep draws, in turn: values
(normal), internal variances (inverse gamma), means (normal), the precision between items (Wishart)
and its scales (inverse gamma; Huang and Wand 2013, section 3), and the regression of the target on
the values (normal and inverse gamma). Attributes and target are brought to unit variance first, for
which the priors are made, and draws are given in the user's units.

For every draw the loss of a repeat vector is known in closed form: the variance of the target that
averages of so many judgements leave. The draws' spread is what the judgements leave open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.models.judgements import DEGREES, Prior
from bayescrowd.posterior.container import Container, assemble, dataset_of
from bayescrowd.selection.judgements import Judgements, as_judgements, numeric_target
from bayescrowd.selection.repeat_moments import centre
from bayescrowd.selection.repeat_paths import explained_variance
from bayescrowd.vocabulary import plain

if TYPE_CHECKING:
    from bayescrowd.selection.multi_selection import MultiSelection

__all__ = ["JudgementDraws", "RepeatPosterior", "posterior_of_selection", "sample_judgements"]

MOST_ATTRIBUTES = 64
"""Of more attributes, those that the path never asks for are left out of the model."""


N_SHEARED = 6
"""Attributes in a sweep whose covariances are moved with their values; each costs a regression."""


class JudgementDraws(NamedTuple):
    """Draws of the parameters, in the user's units."""

    internal_variance: Float[np.ndarray, "chain draw attribute"]
    """v."""
    covariance: Float[np.ndarray, "chain draw joint joint"]
    """Sigma between objects, of the target last."""
    attributes: pd.Index
    """Names of the attributes."""

    @property
    def reliability(self) -> Float[np.ndarray, "chain draw attribute"]:
        """Share of a single judgement's variance that lies between objects."""
        between = np.diagonal(self.covariance, axis1=2, axis2=3)[:, :, :-1]
        return between / (between + self.internal_variance)

    def loss(self, repeats: Int[np.ndarray, " attribute"]) -> Float[np.ndarray, "chain draw"]:
        """Variance of the target that averages of so many judgements leave."""
        asked = np.flatnonzero(repeats)
        covariance = self.covariance
        flat = covariance.reshape(-1, *covariance.shape[2:])
        noise = self.internal_variance.reshape(len(flat), -1)[:, asked] / repeats[asked]
        explained = explained_variance(flat[:, asked[:, None], asked], flat[:, asked, -1:], noise)
        return (flat[:, -1, -1] - explained).reshape(covariance.shape[:2])


@dataclass(frozen=True, eq=False, repr=False)
class RepeatPosterior:
    """What the judgements leave open about attributes and repeat vectors.

    Args:
        draws: of the parameters.
        repeats: the path: repeat vectors by budget.

    Attributes:
        container: draws of what is reported, in ArviZ's container; `bayescrowd.diagnose` judges
            them.
    """

    draws: JudgementDraws
    repeats: pd.DataFrame

    def attributes(self, *, probability: float = 0.9) -> pd.DataFrame:
        """Internal variance and reliability of each attribute: mean and interval.

        Args:
            probability: of the interval, with equal tails.
        """
        tables = {
            name: _summary(values, self.draws.attributes, probability)
            for name, values in (
                ("internal_variance", self.draws.internal_variance),
                ("reliability", self.draws.reliability),
            )
        }
        return pd.concat(tables, axis="columns")

    def loss_curve(self, *, probability: float = 0.9) -> pd.DataFrame:
        """Loss along the path: mean and interval by budget, and P(lower than one step before)."""
        losses = np.stack(
            [self.loss_draws(vector) for _, vector in self.repeats.iterrows()], axis=2
        )
        table = _summary(losses, self.repeats.index, probability)
        falls = (np.diff(losses, axis=2) < 0).mean(axis=(0, 1))
        return table.assign(falls=np.concatenate([[np.nan], falls]))

    def compare(
        self,
        first: pd.Series | Mapping[Any, int] | float,
        second: pd.Series | Mapping[Any, int] | float,
        *,
        probability: float = 0.9,
    ) -> pd.DataFrame:
        """Is the difference between two repeat vectors real?

        Args:
            first: how often to ask for each attribute, or a budget of the path.
            second: the same.
            probability: of the intervals.

        Returns:
            Rows first, second and difference (first minus second): mean loss, interval, and for
            the difference the probability that the first one has the lower loss (`first_better`).
        """
        one, other = self.loss_draws(first), self.loss_draws(second)
        losses = np.stack([one, other, one - other], axis=2)
        names = pd.Index(["first", "second", "difference"], name="loss of")
        better = [np.nan, np.nan, float((one < other).mean())]
        return _summary(losses, names, probability).assign(first_better=better)

    def loss_draws(
        self, repeats: pd.Series | Mapping[Any, int] | float
    ) -> Float[np.ndarray, "chain draw"]:
        """Loss of a repeat vector, or of that of a budget, in each draw.

        Raises:
            ValueError: an attribute is not in the model.
        """
        if isinstance(repeats, int | float | np.number):
            place = self.repeats.index.searchsorted(repeats * (1 + 1e-9), side="right") - 1
            repeats = self.repeats.iloc[max(int(place), 0)]
        vector = pd.Series(dict(repeats), dtype=int)
        vector = vector[vector > 0]
        unknown = vector.index.difference(self.draws.attributes, sort=False)
        if len(unknown):
            raise ValueError(f"attribute {plain(unknown[0])!r} is not in the model")
        return self.draws.loss(vector.reindex(self.draws.attributes, fill_value=0).to_numpy())

    @property
    def container(self) -> Container:
        """Draws of internal variance, reliability and the whole budget's loss for ArviZ."""
        last = self.loss_draws(self.repeats.iloc[-1])
        variables = {
            "internal_variance": (("chain", "draw", "attribute"), self.draws.internal_variance),
            "reliability": (("chain", "draw", "attribute"), self.draws.reliability),
            "loss": (("chain", "draw"), last),
        }
        coords = {"attribute": self.draws.attributes}
        return assemble({"posterior": dataset_of(variables, coords=coords)})


def posterior_of_selection(
    selector: MultiSelection, judgements: Any, y: Any, **options: Any
) -> RepeatPosterior:
    """Draws for a fitted selector; see `MultiSelection.posterior`."""
    data = as_judgements(judgements)
    repeats = selector.repeats_
    if data.n_attributes > MOST_ATTRIBUTES:
        data = data.select_attributes(repeats.columns[(repeats > 0).any(axis=0)])
    draws = sample_judgements(data, numeric_target(y, data), **options)
    return RepeatPosterior(draws, repeats)


def sample_judgements(
    judgements: Judgements,
    target: Float[np.ndarray, " object"],
    *,
    draws: int = 500,
    warmup: int = 300,
    chains: int = 2,
    thin: int = 2,
    seed: int = 0,
    prior: Prior | None = None,
) -> JudgementDraws:
    """Draw from the posterior of the model of judgements.

    Args:
        judgements: of any number per object and attribute.
        target: of each object.
        draws: kept per chain.
        warmup: sweeps before the first one.
        chains: independent runs, each from a start of its own.
        thin: sweeps from one kept draw to the next.
        seed: of the draws.
        prior: scales of the priors, in standard deviations; the model's own if None.
    """
    if min(draws, chains, thin) < 1 or warmup < 0:
        raise ValueError(
            f"draws={draws}, chains={chains}, thin={thin}, warmup={warmup}: expected at least 1 "
            "of each, and no negative warmup"
        )
    data = _standardised(judgements, target)
    prior = Prior() if prior is None else prior
    runs = [
        _run(np.random.default_rng((seed, chain)), data, prior, draws, warmup, thin)
        for chain in range(chains)
    ]
    scale = data.scale
    return JudgementDraws(
        internal_variance=np.stack([internal for internal, _ in runs]) * scale[:-1] ** 2,
        covariance=np.stack([covariance for _, covariance in runs]) * np.outer(scale, scale),
        attributes=judgements.attributes,
    )


class _Data(NamedTuple):
    """Sufficient statistics in units of standard deviations."""

    counts: Float[np.ndarray, "object attribute"]
    sums: Float[np.ndarray, "object attribute"]
    squares: Float[np.ndarray, "object attribute"]
    target: Float[np.ndarray, " object"]
    patterns: Float[np.ndarray, "pattern attribute"]
    """Different rows of `counts`."""
    members: list[Int[np.ndarray, " member"]]
    """Objects of each pattern."""
    scale: Float[np.ndarray, " joint"]
    """The user's units."""


class _State(NamedTuple):
    """Parameters after a sweep."""

    mean: Float[np.ndarray, " joint"]
    precision: Float[np.ndarray, "attribute attribute"]
    internal_variance: Float[np.ndarray, " attribute"]
    scale: Float[np.ndarray, " attribute"]
    coefficient: Float[np.ndarray, " attribute"]
    coefficient_variance: float
    residual_variance: float

    @property
    def joint_precision(self) -> Float[np.ndarray, "joint joint"]:
        """Of values and target together."""
        weight = self.coefficient / self.residual_variance
        own = self.precision + np.outer(self.coefficient, weight)
        last = np.array([[1 / self.residual_variance]])
        return np.block([[own, -weight[:, None]], [-weight[None], last]])

    @property
    def joint_covariance(self) -> Float[np.ndarray, "joint joint"]:
        """Of values and target together."""
        values = np.linalg.inv(self.precision)
        across = (values @ self.coefficient)[:, None]
        last = np.array([[self.residual_variance]]) + self.coefficient @ across
        return np.block([[values, across], [across.T, last]])


def _standardised(judgements: Judgements, target: Float[np.ndarray, " object"]) -> _Data:
    counts = judgements.counts.astype(float)
    means = centre(judgements.means, judgements.magnitudes)
    within = judgements.squared_deviations.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    total = means.spread**2 + within
    spread = np.sqrt(np.where(total > 0, total, 1.0))
    targets = centre(target[:, None], np.abs(target).max(keepdims=True))
    unit = float(targets.spread[0]) or 1.0
    patterns, which = np.unique(counts, axis=0, return_inverse=True)
    return _Data(
        counts=counts,
        sums=counts * means.deviations / spread,
        squares=judgements.squared_deviations / spread**2,
        target=targets.deviations[:, 0] / unit,
        patterns=patterns,
        members=[np.flatnonzero(which.ravel() == p) for p in range(len(patterns))],
        scale=np.append(spread, unit),
    )


def _run(
    rng: np.random.Generator, data: _Data, prior: Prior, draws: int, warmup: int, thin: int
) -> tuple[Float[np.ndarray, "draw attribute"], Float[np.ndarray, "draw joint joint"]]:
    n_attributes = data.counts.shape[1]
    state = _State(
        mean=np.zeros(n_attributes + 1),
        precision=np.diag(rng.uniform(0.5, 4.0, size=n_attributes)),
        internal_variance=rng.uniform(0.2, 1.0, size=(n_attributes,)),
        scale=np.ones(n_attributes),
        coefficient=np.zeros(n_attributes),
        coefficient_variance=0.1,
        residual_variance=float(rng.uniform(0.2, 1.0)),
    )
    internal = np.empty((draws, n_attributes))
    covariance = np.empty((draws, n_attributes + 1, n_attributes + 1))
    for sweep in range(warmup + draws * thin):
        state = _sweep(rng, state, data, prior)
        place, rest = divmod(sweep - warmup, thin)
        if sweep >= warmup and rest == thin - 1:
            internal[place] = state.internal_variance
            covariance[place] = state.joint_covariance
    return internal, covariance


def _sweep(rng: np.random.Generator, state: _State, data: _Data, prior: Prior) -> _State:
    values = _draw_values(rng, state, data)
    internal = _draw_internal(rng, values, data, prior)
    joint = np.column_stack([values, data.target])
    mean = _draw_mean(rng, joint, state.joint_precision, prior)
    deviations = joint - mean
    precision = _draw_precision(rng, deviations[:, :-1], state.scale)
    scale = _draw_scale(rng, precision, prior)
    state = _State(
        mean, precision, internal, scale, *_draw_regression(rng, deviations, state, prior)
    )
    state, own = _stretched(rng, deviations[:, :-1], state, data, prior)
    return _sheared(rng, own, state, data)


def _draw_values(
    rng: np.random.Generator, state: _State, data: _Data
) -> Float[np.ndarray, "object attribute"]:
    """Values of the attributes given target and judgements: precision Lambda + Diag(n / v)."""
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
    data: _Data,
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
    """A Wishart variable, by Bartlett's decomposition."""
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
    state: _State,
    prior: Prior,
) -> tuple[Float[np.ndarray, " attribute"], float, float]:
    """Coefficients of the target on the values, their variance, and that of the residuals."""
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
    """Variances behind so many deviations with these sums of squares."""
    rate = (prior.n_pseudo * prior.pseudo_variance + squares) / 2
    return np.asarray(rate / rng.standard_gamma((prior.n_pseudo + numbers) / 2))


def _stretched(
    rng: np.random.Generator,
    deviations: Float[np.ndarray, "object attribute"],
    state: _State,
    data: _Data,
    prior: Prior,
) -> tuple[_State, Float[np.ndarray, "object attribute"]]:
    """Stretch values about their mean, and all that goes with them, by a factor per attribute.

    Where judges hardly agree, values and their variance keep each other small or large for many
    sweeps. Under value - mean -> c (value - mean), Sigma[a, a] -> c^2 Sigma[a, a],
    scale[a] -> scale[a] / c^2 and w[a] -> w[a] / c the densities of values, precision and target
    stay (generalised Gibbs: Liu and Sabatti 2000, theorem 1). What is left, of the judgements and
    the scale, is normal in c; the prior of w[a] decides whether the draw is taken.
    """
    weight = data.counts / state.internal_variance
    aimed = data.sums / state.internal_variance - weight * state.mean[:-1]
    tightness = (weight * deviations**2).sum(axis=0) + 2 / (prior.spread**2 * state.scale)
    centre = (aimed * deviations).sum(axis=0) / tightness
    factor = centre + rng.normal(size=len(centre)) / np.sqrt(tightness)
    strain = state.coefficient**2 / (2 * state.coefficient_variance)
    log_ratio = strain * (1 - 1 / factor**2) - np.log(np.abs(factor))
    factor = np.where(np.log(rng.random(len(factor))) < log_ratio, factor, 1.0)
    stretched = state._replace(
        precision=state.precision / np.outer(factor, factor),
        scale=state.scale / factor**2,
        coefficient=state.coefficient / factor,
    )
    return stretched, deviations * factor


def _sheared(
    rng: np.random.Generator,
    deviations: Float[np.ndarray, "object attribute"],
    state: _State,
    data: _Data,
) -> _State:
    """Add to an attribute's values a combination of the others', with all that goes with them.

    As `_stretched`, of `N_SHEARED` attributes: value[a] -> value[a] + sum of g[b] (value[b] -
    mean[b]), the precision following, and w[b] -> w[b] - w[a] g[b]. What is left is normal in g:
    a regression of what the judgements of a differ from its value by.
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


def _summary(
    values: Float[np.ndarray, "chain draw entry"], names: pd.Index, probability: float
) -> pd.DataFrame:
    if not 0 < probability < 1:
        raise ValueError(f"probability={probability}: expected a number between 0 and 1")
    tail = (1 - probability) / 2
    flat = values.reshape(-1, values.shape[2])
    low, high = np.quantile(flat, [tail, 1 - tail], axis=0)
    return pd.DataFrame({"mean": flat.mean(axis=0), "lower": low, "upper": high}, index=names)
