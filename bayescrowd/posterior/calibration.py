"""Simulation-based calibration: is a sampler right for a model, on average over its prior?

S. Talts, M. Betancourt, D. Simpson, A. Vehtari and A. Gelman (2018), "Validating Bayesian inference
algorithms with simulation-based calibration", arXiv:1804.06788. Parameters are drawn from the
prior, data from the parameters, and draws from the posterior given the data. If the sampler is
right, the rank of the simulated parameter among L independent posterior draws is uniform on 0..L
(their theorem 1). The ranks of an overconfident sampler pile up at both ends, those of a biased one
at one end.

The first entry of each parameter and the log-likelihood of all data are ranked; the latter reveals
mistakes that single parameters hide, such as data that are ignored (M. Modrák, A. H. Moon, S. Kim,
P. Bürkner, N. Huurre, K. Faltejsková, A. Gelman and A. Vehtari 2023, "Simulation-based calibration
checking for Bayesian computation: the choice of test quantities shapes sensitivity", Bayesian
Analysis).

Two tests of uniformity: chi-square of binned ranks, and the simultaneous band of the ranks'
distribution function of T. Säilynoja, P.-C. Bürkner and A. Vehtari (2022), "Graphical test for
discrete uniformity and its applications in goodness-of-fit evaluation and multiple sample
comparison", Statistics and Computing 32: pointwise binomial intervals, narrowed until all points
together hold with the stated probability, which is computed exactly by their recursion (section
2.2). Departure: the band is evaluated at all L possible ranks.

Both need independent draws: chains are thinned, and `Calibration.autocorrelation` shows whether
they are thinned enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel
from scipy import stats

from bayescrowd.posterior.chains import AnySizes, FeatureSizes, ReadingSizes, Sizes

__all__ = [
    "Band",
    "Calibration",
    "Case",
    "Simulated",
    "calibrate",
    "chi_square_p_values",
    "crowd_case",
    "ecdf",
    "ecdf_band",
    "is_outside",
    "simulate_prior",
    "standard_case",
]


class Case(NamedTuple):
    """A model and who is asked about what, the same in all simulations."""

    model: ModuleType
    """A module of `bayescrowd.models`."""
    sizes: AnySizes
    """The sizes among the model's arguments."""
    design: tuple[Array, ...]
    """Arguments of the model's `simulate` that say which data are observed."""
    is_known: Bool[Array, " item"] | None
    """Whether the sampler knows an item's class; None for models of crowd labels."""


class Simulated(NamedTuple):
    """Simulated data; the first axis of every field is the simulation."""

    params: Any
    """The model's `Params`, drawn from the prior."""
    data: Any
    """What the sampler is given: the model's `Labels` or `Observations`."""


class Calibration(NamedTuple):
    """Simulated quantities and the posterior draws of each simulation."""

    quantities: tuple[str, ...]
    """Names of the ranked quantities."""
    truth: Float[np.ndarray, "simulation quantity"]
    """Values from which the data were simulated."""
    draws: Float[np.ndarray, "simulation draw quantity"]
    """Thinned draws from the posterior."""

    @property
    def ranks(self) -> Int[np.ndarray, "simulation quantity"]:
        """Number of draws below the truth, 0..n_draws."""
        return (self.draws < self.truth[:, None]).sum(axis=1)

    @property
    def autocorrelation(self) -> Float[np.ndarray, " quantity"]:
        """Correlation of consecutive draws, over all simulations.

        Draws are centred in each simulation, so that independent ones have the expected
        correlation -1 / n_draws.
        """
        centred = self.draws - self.draws.mean(axis=1, keepdims=True)
        products = (centred[:, 1:] * centred[:, :-1]).mean(axis=(0, 1))
        return products / np.maximum((centred**2).mean(axis=(0, 1)), 1e-30)


class Band(NamedTuple):
    """The band of the distribution function of uniform ranks, as shares of the simulations."""

    position: Float[np.ndarray, " position"]
    """P(rank < r) of uniform ranks, for r = 1..n_draws."""
    lower: Float[np.ndarray, " position"]
    """Smallest share of ranks below r."""
    upper: Float[np.ndarray, " position"]
    """Largest share of ranks below r."""


_THIN = {
    "mace": 60,
    "hierarchical_dawid_skene": 40,
    "task_subtypes": 40,
    "ability_dawid_skene": 12,
    "worker_types": 8,
    "item_difficulty": 4,
}
"""Measured numbers of draws to thin by, for models that `_USUAL_THIN` does not suit."""

_USUAL_THIN = 20
"""Number of draws to thin by in all other models."""

_WARMUP = 200
"""Number of draws to discard in the standard cases."""


def crowd_case(
    model: ModuleType, *, n_items: int = 12, n_workers: int = 4, n_classes: int = 2
) -> Case:
    """A crowd in which everyone labels everything."""
    item, worker = np.divmod(np.arange(n_items * n_workers), n_workers)
    sizes = Sizes(n_items=n_items, n_workers=n_workers, n_classes=n_classes)
    return Case(model, sizes, (jnp.asarray(item), jnp.asarray(worker)), is_known=None)


def standard_case(model: ModuleType) -> tuple[Case, int, int]:
    """A small case for each model of classes, with the draws to thin by and to discard.

    Crowds of four workers who label twelve items, with three classes for `item_difficulty`, whose
    modes would be hard to cross with two; tables of two features, of two and three values, with the
    class of every other item known, read by three workers in two groups where readings are noisy.
    Thinning brings the correlation of consecutive draws below 0.05, except for that of abilities in
    `ability_dawid_skene`: 0.14, and still 0.11 if draws are thinned by 40.
    """
    name = model.__name__.rpartition(".")[2]
    thin = _THIN.get(name, _USUAL_THIN)
    if model.FACTS.subject == "labels":
        n_classes = 3 if name == "item_difficulty" else 2
        return crowd_case(model, n_classes=n_classes), thin, _WARMUP
    item, feature = (jnp.asarray(codes) for codes in np.divmod(np.arange(24), 2))
    is_known = jnp.arange(12) % 2 == 0
    if "group" not in model.Observations._fields:
        sizes = FeatureSizes(n_items=12, n_classes=2, n_values=(2, 3))
        return Case(model, sizes, (item, feature), is_known), thin, _WARMUP
    reading, worker = (jnp.asarray(codes) for codes in np.divmod(np.arange(72), 3))
    read = ReadingSizes(n_items=12, n_groups=2, n_classes=2, n_values=(2, 3))
    return Case(model, read, (item, feature, reading, worker % 2), is_known), thin, _WARMUP


def simulate_prior(
    rng_key: PRNGKeyArray, case: Case, *, n_simulations: int, prior: Any = None
) -> Simulated:
    """Draw parameters from the prior and data from the parameters, in each simulation.

    Args:
        rng_key: the source of randomness.
        case: the model and who is asked about what.
        n_simulations: number of simulations.
        prior: the model's `Prior`; by default with the model's own values.
    """
    keys = jax.random.split(rng_key, n_simulations)
    prior = case.model.Prior() if prior is None else prior
    return _simulate(keys, case.design, case.is_known, prior, model=case.model, sizes=case.sizes)


def calibrate(
    rng_key: PRNGKeyArray,
    kernel: MCMCKernel,
    case: Case,
    simulated: Simulated,
    *,
    n_draws: int = 31,
    warmup: int = 100,
    thin: int = 5,
    prior: Any = None,
) -> Calibration:
    """Sample the posterior of each simulation, in one program that is compiled once.

    Args:
        rng_key: the source of randomness.
        kernel: a kernel of NumPyro for the model, such as `bayescrowd.posterior.gibbs.Gibbs`.
        case: the model and who is asked about what.
        simulated: the result of `simulate_prior`.
        n_draws: draws among which a true value is ranked; one less than a power of two suits bins.
        warmup: draws to discard, during which the kernel adapts.
        thin: every `thin`-th draw is kept.
        prior: the sampler's `Prior`; by default with the model's own values.
    """
    truth, draws = _sample(
        jax.random.split(rng_key, len(simulated.params.prevalence)),
        simulated,
        case.model.Prior() if prior is None else prior,
        thin,
        kernel=kernel,
        model=case.model,
        sizes=case.sizes,
        n_draws=n_draws,
        warmup=warmup,
    )
    names = [
        f"{name}[{','.join('0' * (field.ndim - 1))}]"
        for name, field in simulated.params._asdict().items()
    ]
    return Calibration((*names, "log_likelihood"), np.asarray(truth), np.asarray(draws))


def chi_square_p_values(found: Calibration, *, n_bins: int = 8) -> Float[np.ndarray, " quantity"]:
    """P-value of the hypothesis that a quantity's ranks are uniform, from binned ranks.

    Args:
        found: the result of `calibrate`.
        n_bins: number of bins, a divisor of the number of possible ranks; the p-values are valid
            with at least five simulations per bin.
    """
    n_ranks = found.draws.shape[1] + 1
    if n_ranks % n_bins:
        raise ValueError(f"n_bins={n_bins}: expected a divisor of {n_ranks}, the number of ranks")
    bins = found.ranks.T * n_bins // n_ranks
    counts = np.stack([np.bincount(row, minlength=n_bins) for row in bins])
    return np.asarray(stats.chisquare(counts, axis=1).pvalue)


def is_outside(found: Calibration, *, level: float) -> Bool[np.ndarray, " quantity"]:
    """Whether each quantity's ranks leave the band; uniform ones do with probability `level`."""
    band = ecdf_band(len(found.truth), found.draws.shape[1], level=level)
    shares = ecdf(found)
    return np.asarray(((shares < band.lower) | (shares > band.upper)).any(axis=1))


def ecdf(found: Calibration) -> Float[np.ndarray, "quantity position"]:
    """Share of each quantity's ranks below r, for r = 1..n_draws."""
    below = np.arange(1, found.draws.shape[1] + 1)
    return (found.ranks.T[:, :, None] < below).mean(axis=1)


@lru_cache
def ecdf_band(n_simulations: int, n_draws: int, *, level: float = 0.05) -> Band:
    """The band that the distribution function of uniform ranks leaves with probability `level`.

    The probability of leaving it is at most `level`; binomial intervals change in jumps.

    Args:
        n_simulations: number of ranks.
        n_draws: largest possible rank.
        level: probability of leaving the band somewhere.

    Examples:
        One draw, one position: the interval of a fair coin's 95 %.

        >>> band = ecdf_band(100, 1, level=0.05)
        >>> band.lower.tolist(), band.upper.tolist()
        ([0.4], [0.6])
    """
    position = np.arange(1, n_draws + 1) / (n_draws + 1)
    low, high = level / n_draws / 4, level
    while high / low > 1.001:
        middle = np.sqrt(low * high)
        inside = _probability_inside(*_intervals(n_simulations, position, middle), position)
        low, high = (middle, high) if inside >= 1 - level else (low, middle)
    _, lower, upper = _intervals(n_simulations, position, low)
    return Band(position, lower / n_simulations, upper / n_simulations)


_Counts = Int[np.ndarray, " position"]


def _intervals(
    n_simulations: int, position: Float[np.ndarray, " position"], level: float
) -> tuple[int, _Counts, _Counts]:
    """Intervals of counts that each position's binomial leaves with at most `level`."""
    counts = stats.binom(n_simulations, position)
    lower, upper = counts.ppf(level / 2), counts.ppf(1 - level / 2)
    return n_simulations, np.asarray(lower, dtype=int), np.asarray(upper, dtype=int)


def _probability_inside(
    n_simulations: int,
    lower: _Counts,
    upper: _Counts,
    position: Float[np.ndarray, " position"],
) -> float:
    """P(all counts within their intervals): given one count, the increment is binomial."""
    counts, probability, last = np.array([0]), np.array([1.0]), 0.0
    for low, high, here in zip(lower, upper, position, strict=True):
        following = np.arange(low, high + 1)
        share = (here - last) / (1 - last)
        step = stats.binom.pmf(following[:, None] - counts, n_simulations - counts, share)
        counts, probability, last = following, step @ probability, here
    return float(probability.sum())


@partial(jax.jit, static_argnames=("model", "sizes"))
def _simulate(
    keys: Key[Array, " simulation"],
    design: tuple[Array, ...],
    is_known: Bool[Array, " item"] | None,
    prior: Any,
    *,
    model: ModuleType,
    sizes: AnySizes,
) -> Simulated:
    def simulate_one(key: PRNGKeyArray) -> Simulated:
        drawn = model.simulate(key, *design, **sizes._asdict(), prior=prior)
        if is_known is None:
            return Simulated(drawn.params, drawn.labels)
        target = jnp.where(is_known, drawn.truth, -1)
        return Simulated(drawn.params, drawn.observations._replace(target=target))

    return jax.lax.map(simulate_one, keys)


@partial(jax.jit, static_argnames=("kernel", "model", "sizes", "n_draws", "warmup"))
def _sample(
    keys: Key[Array, " simulation"],
    simulated: Simulated,
    prior: Any,
    thin: Any,
    *,
    kernel: MCMCKernel,
    model: ModuleType,
    sizes: AnySizes,
    n_draws: int,
    warmup: int,
) -> tuple[Float[Array, "simulation quantity"], Float[Array, "simulation draw quantity"]]:
    arguments = {**sizes._asdict(), "prior": prior}

    def quantities(params: Any, data: Any) -> Float[Array, " quantity"]:
        log_joint = model.label_log_joint(params, data, n_items=sizes.n_items)
        log_likelihood = logsumexp(log_joint, axis=-1).sum()
        return jnp.stack([*(field.ravel()[0] for field in params), log_likelihood])

    def sample_one(
        simulation: tuple[PRNGKeyArray, Simulated],
    ) -> tuple[Float[Array, " quantity"], Float[Array, "draw quantity"]]:
        key, (params, data) = simulation
        state = kernel.init(key, warmup, None, (data,), arguments)
        constrain: Callable[[Any], dict[str, Array]] = kernel.postprocess_fn((data,), arguments)

        def advance(_: Any, state: Any) -> Any:
            return kernel.sample(state, (data,), arguments)

        def draw_after(state: Any, n_steps: Any) -> tuple[Any, Float[Array, " quantity"]]:
            state = jax.lax.fori_loop(0, n_steps, advance, state)
            sites = constrain(state.z)
            drawn = model.Params(**{name: sites[name] for name in model.Params._fields})
            return state, quantities(drawn, data)

        # The first entry is the end of the warm-up: one loop, compiled once.
        n_steps = jnp.full(n_draws + 1, thin).at[0].set(warmup)
        _, draws = jax.lax.scan(draw_after, state, n_steps)
        return quantities(params, data), draws[1:]

    # Not vmap, which takes twice the compilation and makes chains of NUTS wait for the slowest.
    return jax.lax.map(sample_one, (keys, simulated))
