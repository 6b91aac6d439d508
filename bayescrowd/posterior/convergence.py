"""R-hat and effective sample sizes of many quantities at once.

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner (2021), "Rank-normalization,
folding, and localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis
16(2): chains are split in halves and draws replaced by normal scores of their ranks (their eq. 14);
R-hat is the larger one of these scores and of those of the folded draws (section 4.2); the ESS of
the bulk is that of the scores, the ESS of the tails the smaller one of the two 5 % tails (section
4.3). Autocorrelations are summed by Geyer's initial monotone sequence (section 3.2).

The numbers are those of ArviZ, which computes them entry by entry and takes three times as long.
Sampling that goes on until chains agree asks for them again and again.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import fft
from scipy.special import ndtri
from scipy.stats import rankdata

__all__ = [
    "APART_RHAT",
    "LEAST_ESS_PER_CHAIN",
    "MOST_RHAT",
    "Convergence",
    "Verdict",
    "convergence_of",
    "effective_size",
    "entries_to_watch",
    "has_converged",
    "is_at_rest",
    "judge",
]

MOST_RHAT = 1.01
"""R-hat above which chains disagree (Vehtari et al. 2021, section 4)."""

LEAST_ESS_PER_CHAIN = 100
"""ESS per chain below which R-hat and ESS are themselves unreliable (Vehtari et al. 2021)."""

APART_RHAT = 1.1
"""R-hat above which chains have not met; between 1.01 and this, draws are mostly too few."""

SPENT_SHARE = 0.5
"""Effective share of the kept draws from which on thinning them further gains next to nothing."""

MOST_QUANTITIES = 2_000
"""Largest number of entries of a variable to watch, evenly spaced; each takes 1 ms."""

TAIL = 0.05
"""Probability of each tail whose ESS is measured."""

LEAST_DRAWS = 4
"""Draws per chain below which nothing can be computed."""

_N_TOGETHER = 256
"""Number of entries whose Fourier transforms are in memory together."""


class Convergence(NamedTuple):
    """What chains say about each of several quantities; NaN where draws are too few to tell."""

    rhat: Float[np.ndarray, " entry"]
    """Rank-normalised split R-hat."""
    ess_bulk: Float[np.ndarray, " entry"]
    """Effective sample size of the bulk, all chains together."""
    ess_tail: Float[np.ndarray, " entry"]
    """Effective sample size of the worse tail."""


class Verdict(Enum):
    """What a look at the draws says."""

    CONVERGED = "chains agree and know enough"
    FEW = "chains know too little"
    APART = "chains disagree"
    SPENT = "the kept draws are nearly independent: sweeps between them would add nothing"


def entries_to_watch(
    values: Float[np.ndarray, "chain draw ..."],
) -> Float[np.ndarray, "chain draw entry"]:
    """The entries of a variable in one axis, evenly thinned where they are very many."""
    flat = values.reshape(*values.shape[:2], -1)
    return flat[:, :, :: max(-(-flat.shape[2] // MOST_QUANTITIES), 1)]


def judge(variables: Iterable[Float[np.ndarray, "chain draw ..."]]) -> Verdict:
    """Look at variables, small ones first, until one has not converged."""
    verdict = Verdict.CONVERGED
    for values in sorted(variables, key=lambda values: values.size):
        found = convergence_of(entries_to_watch(values))
        is_bad = ~has_converged(found, n_chains=len(values))
        if not is_bad.any():
            continue
        if not (found.rhat <= APART_RHAT).all():
            return Verdict.APART
        effective = np.minimum(found.ess_bulk, found.ess_tail)[is_bad]
        if not (effective >= SPENT_SHARE * values.shape[0] * values.shape[1]).all():
            return Verdict.FEW
        verdict = Verdict.SPENT
    return verdict


def convergence_of(draws: Float[np.ndarray, "chain draw entry"]) -> Convergence:
    """Measure each entry.

    Examples:
        The second quantity differs from chain to chain:

        >>> import numpy as np
        >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
        >>> draws[2, :, 1] += 3
        >>> (convergence_of(draws).rhat < 1.01).tolist()
        [True, False]
    """
    n_chains, n_draws, n_entries = draws.shape
    if n_draws < LEAST_DRAWS or n_entries == 0:
        return Convergence(*np.full((3, n_entries), np.nan))
    parts = [
        _measure(np.moveaxis(draws[:, :, first : first + _N_TOGETHER], -1, 0))
        for first in range(0, n_entries, _N_TOGETHER)
    ]
    found = Convergence(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return found._replace(rhat=np.full(n_entries, np.nan)) if n_chains < 2 else found


def effective_size(draws: Float[np.ndarray, "chain draw entry"]) -> Float[np.ndarray, " entry"]:
    """Effective number of draws behind the mean of each entry."""
    return _ess(_split(np.moveaxis(draws.astype(float), -1, 0)))


def has_converged(found: Convergence, *, n_chains: int) -> Bool[np.ndarray, " entry"]:
    """Whether chains agree about an entry and know it well enough; False where unknown."""
    least = LEAST_ESS_PER_CHAIN * n_chains
    enough = (found.ess_bulk >= least) & (found.ess_tail >= least)
    return np.asarray((found.rhat <= MOST_RHAT) & enough)


def is_at_rest(draws: Float[np.ndarray, "chain draw entry"]) -> bool:
    """Whether chains, or a single one, stay where they are rather than drift.

    The halves of each chain count as chains of their own: they agree to an R-hat of `APART_RHAT`,
    and together have the ESS of `LEAST_ESS_PER_CHAIN` in every entry's bulk, without which R-hat
    itself means little.

    Examples:
        >>> import numpy as np
        >>> steps = np.random.default_rng(0).normal(size=(1, 1000, 1))
        >>> is_at_rest(steps), is_at_rest(steps.cumsum(axis=1))
        (True, False)
    """
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])
    found = convergence_of(halves)
    # Comparisons with NaN are false: what draws are too few to tell is not at rest.
    return bool(((found.rhat <= APART_RHAT) & (found.ess_bulk >= LEAST_ESS_PER_CHAIN)).all())


def _measure(draws: Float[np.ndarray, "entry chain draw"]) -> Convergence:
    # Ranks and quantiles in double precision, so that ties are those of ArviZ.
    values = draws.astype(float)
    split = _split(values)
    flat = split.reshape(len(split), -1)
    scores = _normal_scores(flat).reshape(split.shape)
    folded = np.abs(flat - np.median(flat, axis=1, keepdims=True))
    rhat = np.maximum(_rhat(scores), _rhat(_normal_scores(folded).reshape(split.shape)))
    ends = np.quantile(values, [TAIL, 1 - TAIL], axis=(1, 2))[:, :, None, None]
    tails = [_ess((split <= end).astype(float)) for end in ends]
    usable = np.isfinite(values).all(axis=(1, 2))
    measures = (rhat, _ess(scores), np.minimum(*tails))
    return Convergence(*(np.where(usable, measure, np.nan) for measure in measures))


def _split(values: Float[np.ndarray, "entry chain draw"]) -> Float[np.ndarray, "entry half part"]:
    """Halves of all chains; of an odd number of draws the middle one is left out."""
    half = values.shape[2] // 2
    return np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1)


def _normal_scores(flat: Float[np.ndarray, "entry draw"]) -> Float[np.ndarray, "entry draw"]:
    order = flat.argsort(axis=1)
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, flat.shape[1] + 1)[None], axis=1)
    # Ranks of ties are averaged, which takes four times as long and is seldom needed.
    in_order = np.take_along_axis(flat, order, axis=1)
    has_ties = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
    if has_ties.any():
        ranks[has_ties] = rankdata(flat[has_ties], axis=1)
    return np.asarray(ndtri((ranks - 0.375) / (flat.shape[1] + 0.25)))


def _rhat(split: Float[np.ndarray, "entry half part"]) -> Float[np.ndarray, " entry"]:
    n_draws = split.shape[2]
    between = split.mean(axis=2).var(axis=1, ddof=1)
    within = split.var(axis=2, ddof=1).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # constant chains
        return np.asarray(np.sqrt(between / within + (n_draws - 1) / n_draws))


def _ess(split: Float[np.ndarray, "entry half part"]) -> Float[np.ndarray, " entry"]:
    _, n_halves, n_draws = split.shape
    autocovariance = _autocovariance(split).mean(axis=1)
    within = autocovariance[:, :1] * n_draws / (n_draws - 1)
    between = split.mean(axis=2).var(axis=1, ddof=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # constant quantities, set below
        rho = 1 - (within - autocovariance) / (autocovariance[:, :1] + between)
    rho[:, 0] = 1.0
    # Sums of an even and the next odd lag are positive and decrease; the last one is noise.
    n_pairs = max((n_draws - 2) // 2, 1)
    pairs = rho[:, 0 : 2 * n_pairs : 2] + rho[:, 1 : 2 * n_pairs : 2]
    is_noise = ~(pairs > 0)
    is_noise[:, -1] = True
    last = is_noise.argmax(axis=1)
    before = np.arange(n_pairs) < last[:, None]
    monotone = np.minimum.accumulate(np.where(before, pairs, np.inf), axis=1)
    even = rho[np.arange(len(rho)), 2 * last]
    tau = -1 + 2 * np.where(before, monotone, 0.0).sum(axis=1) + np.maximum(even, 0.0)
    n_all = n_halves * n_draws
    ess = n_all / np.maximum(tau, 1 / np.log10(n_all))
    is_constant = np.ptp(split, axis=(1, 2)) < np.finfo(float).resolution
    return np.asarray(np.where(is_constant, n_all, ess))


def _autocovariance(
    split: Float[np.ndarray, "entry half part"],
) -> Float[np.ndarray, "entry half part"]:
    n_draws = split.shape[2]
    width = fft.next_fast_len(2 * n_draws, real=True)
    spectrum = fft.rfft(split - split.mean(axis=2, keepdims=True), n=width, axis=2)
    power = spectrum.real**2 + spectrum.imag**2
    return np.asarray(fft.irfft(power, n=width, axis=2)[:, :, :n_draws] / n_draws)
