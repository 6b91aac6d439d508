"""Stagewise EM: a mixture grown from one component, driven by its informative features.

Zhao and Zucker, 'Stagewise learning for sparse clustering of discretely-valued data', algorithm 1.
Where most features are noise, the result of EM on all of them depends on its start. Stagewise EM
needs no start: it begins with one component, equal to the marginals of the features, and an empty
informative set S. Each iteration takes these steps:

    1. P(k | item) from the features in S alone           (the regularised E-step, theorem 3);
    2. the largest entry (i, j, k) of I(Xi; Xj | Y = k)   (eq. 13; `pair_information.py`);
    3. i and j enter S; while components are missing, component k is duplicated and the twins are
       moved apart on i and j                             (section 3.2; `splitting.py`);
    4. P(k | item) from S again, and an M-step on all features (theorem 3).

Nothing is random. Where the paper leaves a choice, or we depart from it:

* The printed rule splits only when i or j is new to S. It gets stuck with a component missing when
  the largest entry stays between two members. By default, a component is split in every iteration
  until all are there (`split`).
* The algorithm has converged when S has not grown and the largest I(Xi; Xj | Y), the max norm of
  figure 3, has settled (`tol`).
* Late members of S are often noise, as the paper remarks of its own run. `level` keeps out pairs
  that independent features would show by chance. S is then smaller and purer, but the mixture is no
  better, because a few wrong members do little harm.
* The paper perturbs 'with regard to the free parameters', that is, probabilities, which lets rare
  values win (`splitting.py`). In Fisher's coordinates they do not, but on the dog crowd only steps
  near 0.2 end in a good maximum (0.1: 34 % errors, 0.2: 17 %, 0.4: 35 %). By default the algorithm
  runs in both coordinates and keeps the mixture with the higher likelihood (`coordinates`).
* The Hessian of a split is computed after i and j have entered S, in the order of the paper,
  because only then does it describe how moving the twins on i and j changes the E-step.
* A few pseudo-counts keep values possible that a component has not shown (`pseudo_counts`).

A missing entry says nothing: it is left out of the products, and a pair is judged on the items that
have both features. The paper's fixed rate of missing entries is the same in all components and
cancels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple, get_args

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int
from scipy.special import logsumexp, softmax

from bayescrowd.aggregation.em import EMEstimate, Incidence, Sweep, floored_log
from bayescrowd.data.features import FeatureTable
from bayescrowd.iteration import Step, settle
from bayescrowd.mixture.pair_information import PairInformation, Scan, scan_cost
from bayescrowd.mixture.splitting import Coordinates, move_apart, split_direction

__all__ = [
    "ExpensiveFitWarning",
    "Record",
    "StagewiseResult",
    "State",
    "incidence_of",
    "maximisation",
    "stagewise_em",
]

MUCH_MEMORY = 10**9
"""A fit that needs at least this many bytes warns before it begins."""

MUCH_TIME = 120.0
"""A fit that may take at least this many seconds warns before it begins."""

_NOTHING = 1e-12
"""An entry that is not above this, in nats, is rounding."""

_ROUNDING = 1e-9
"""Likelihoods that differ by less than this fraction are equal."""


class ExpensiveFitWarning(UserWarning):
    """A fit that is about to begin will take much memory or time."""


class _NothingToSplit(ValueError):
    """A component is missing, but features are independent within those that were found."""


class State(NamedTuple):
    """A mixture while it grows, and the features that assign its items."""

    estimate: EMEstimate
    """Log profiles and log weights of the components so far."""
    informative: tuple[int, ...]
    """Features of the informative set S, in the order in which they entered."""


class Record(NamedTuple):
    """The mixture that an iteration found, and what the iteration chose to do."""

    log_likelihood: float
    """Log-likelihood of all entries, nats."""
    scan: Scan
    """The largest entry of the conditional mutual information, and its norms."""
    n_informative: int
    """Number of features in S."""
    n_components: int
    """Number of components."""
    is_split: bool
    """Whether the iteration split a component."""


class StagewiseResult(NamedTuple):
    """Where stagewise EM stopped."""

    posterior: Float[np.ndarray, "item component"]
    """P(component | item) that the last M-step saw; zero for components that were not found."""
    informative: tuple[int, ...]
    """Positions of the features in S, in the order in which they entered."""
    records: tuple[Record, ...]
    """One record per iteration, and one of the end."""
    converged: bool
    """Whether S had stopped growing and the max norm had settled."""


def stagewise_em(
    table: FeatureTable,
    n_components: int,
    *,
    split: str = "while-missing",
    level: float = 0.0,
    coordinates: str = "best",
    step: float = 0.2,
    pseudo_counts: float = 0.01,
    n_iter: int = 100,
    tol: float = 1e-4,
) -> StagewiseResult:
    """Run algorithm 1; the arguments are those of `bayescrowd.StagewiseEM`.

    Raises:
        ValueError: no two features depend on each other before all components are found.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.data.features import as_feature_table
        >>> rng = np.random.default_rng(0)
        >>> kind = rng.integers(2, size=(400, 1))
        >>> experts = np.where(rng.random((400, 4)) < 0.9, kind, 1 - kind)
        >>> noise = rng.integers(2, size=(400, 20))
        >>> found = stagewise_em(as_feature_table(np.hstack([noise, experts])), 2, level=0.05)
        >>> sorted(found.informative), found.converged
        ([20, 21, 22, 23], True)
    """
    _warn_of_cost(table, n_components, n_iter * (2 if coordinates == "best" else 1))
    pairs = PairInformation(table)
    symbols = _SymbolMatrix(table)
    m_step = maximisation(table, pseudo_counts)
    runs: list[StagewiseResult] = []
    failures: list[_NothingToSplit] = []
    for metric in get_args(Coordinates):
        if coordinates not in (metric, "best"):
            continue
        try:
            run = _grow(
                symbols,
                pairs,
                m_step,
                n_components,
                split=split,
                level=level,
                coordinates=metric,
                step=step,
                n_iter=n_iter,
                tol=tol,
            )
        except _NothingToSplit as failure:
            failures.append(failure)
        else:
            runs.append(run)
    if not runs:
        raise failures[0]
    best = runs[0]
    for run in runs[1:]:
        before, now = (result.records[-1].log_likelihood for result in (best, run))
        if now > before + _ROUNDING * abs(before):
            best = run
    return best


def _warn_of_cost(table: FeatureTable, n_components: int, n_scans: int) -> None:
    cost = scan_cost(table, n_components)
    if cost.memory < MUCH_MEMORY and n_scans * cost.seconds < MUCH_TIME:
        return
    what = "pairs of entries on one item" if cost.is_listed else "pairs of features"
    warnings.warn(
        f"stagewise EM is about to look at {cost.n_pairs:,} {what} in each iteration, which takes "
        f"about {cost.memory / 1e9:.1f} GB of memory and {cost.seconds:.1f} seconds each time, at "
        f"most {n_scans * cost.seconds / 60:.0f} minutes for {n_scans} iterations. Fewer features "
        "(bayescrowd.MutualInformationSelector), coordinates='probability' or a smaller n_iter "
        "take less",
        ExpensiveFitWarning,
        stacklevel=4,
    )


class _Growth(NamedTuple):
    """Where algorithm 1 stands."""

    state: State
    """The mixture."""
    posterior: Float[np.ndarray, "item component"]
    """P(component | item) that the last M-step saw."""
    records: tuple[Record, ...]
    """One record per iteration so far."""


def _grow(
    symbols: _SymbolMatrix,
    pairs: PairInformation,
    m_step: Callable[[Sweep, EMEstimate | None], EMEstimate],
    n_components: int,
    *,
    split: str,
    level: float,
    coordinates: Coordinates,
    step: float,
    n_iter: int,
    tol: float,
) -> StagewiseResult:
    """Algorithm 1, with twins moved apart in the given coordinates."""

    def grow(growth: _Growth) -> Step[_Growth]:
        state = growth.state
        now = symbols.posterior(state)
        n_missing = n_components - now.shape[1]
        # A component that was asked for is split off even if its pair may be due to chance.
        scan = pairs.scan(now, level=0.0 if n_missing else level)
        if scan.value <= _NOTHING and n_missing:
            raise _NothingToSplit(
                f"no two features depend on each other within the {now.shape[1]} components found; "
                f"there is nothing left for n_components={n_components} to explain"
            )
        new = _new_features(scan, state)
        is_split = n_missing > 0 and (split == "while-missing" or len(new) > 0)
        record = _record(symbols, state, scan, is_split=is_split)
        records = (*growth.records, record)
        state = state._replace(informative=state.informative + new)
        if is_split:
            state = _split(symbols, state, scan, coordinates, step)
        posterior = symbols.posterior(state)
        state = state._replace(estimate=m_step(symbols.sweep(posterior), state.estimate))
        change = math.nan if n_missing or new else _change_of_max_norm(records)
        return Step(_Growth(state, posterior, records), record.log_likelihood, change)

    posterior = np.ones((symbols.table.n_items, 1))
    marginals = State(m_step(symbols.sweep(posterior), None), ())
    course = settle(grow, _Growth(marginals, posterior, ()), n_iter=n_iter, tol=tol)
    state, posterior, records = course.state
    scan = pairs.scan(symbols.posterior(state), level=level)
    end = _record(symbols, state, scan, is_split=False)
    # The printed rule may leave components missing: they have no items.
    posterior = np.pad(posterior, [(0, 0), (0, n_components - posterior.shape[1])])
    return StagewiseResult(posterior, state.informative, (*records, end), course.converged)


def maximisation(
    table: FeatureTable, pseudo_counts: float
) -> Callable[[Sweep, EMEstimate | None], EMEstimate]:
    """The M-step for one table (theorem 3), with the pseudo-counts of `MDPD`."""
    starts, feature = table.feature_offsets[:-1], table.feature_of_symbol
    sizes = np.diff(table.feature_offsets)[feature]
    # One flat count, so that a value of the vocabulary that does not occur remains possible.
    base = table.counts + 1.0 / sizes
    base = (base / np.add.reduceat(base, starts)[feature])[:, None]

    def maximise_table(sweep: Sweep, previous: EMEstimate | None) -> EMEstimate:
        counts = sweep.counts + pseudo_counts * base
        totals = np.add.reduceat(counts, starts, axis=0)[feature]
        # A component none of whose items has the feature gets the marginals.
        log_table = floored_log(
            np.where(totals > 0, counts / np.where(totals > 0, totals, 1), base)
        )
        weights = sweep.class_counts / sweep.class_counts.sum()
        penalty = pseudo_counts * float((base * log_table).sum())
        return EMEstimate(log_table, floored_log(weights), penalty, None)

    return maximise_table


def incidence_of(table: FeatureTable, n_components: int) -> Incidence:
    """The entries as items x symbols, for EM."""
    return Incidence(
        table.offsets, table.symbols, n_symbols=table.n_symbols, n_classes=n_components
    )


class _SymbolMatrix:
    """The table as items x symbols: by rows for all features, by columns for some of them."""

    def __init__(self, table: FeatureTable) -> None:
        self.table = table
        ones = np.ones(table.n_entries)
        by_row = scipy.sparse.csr_matrix(
            (ones, table.symbols, table.offsets), shape=(table.n_items, table.n_symbols)
        )
        self._by_column = by_row.tocsc()
        self._incidences: dict[int, Incidence] = {}

    def sweep(self, posterior: Float[np.ndarray, "item component"]) -> Sweep:
        """Expected counts of all symbols."""
        return self._incidence(posterior.shape[1]).start(posterior)

    def log_likelihood(self, estimate: EMEstimate) -> float:
        """Log-likelihood of all entries, nats."""
        scores = self._incidence(len(estimate.log_prior)).scores(estimate)
        return float(logsumexp(scores, axis=1).sum())

    def posterior(self, state: State) -> Float[np.ndarray, "item component"]:
        """The regularised E-step: P(component | features in S)."""
        chosen = self.of_features(state.informative)
        scores = self._by_column[:, chosen] @ state.estimate.log_table[chosen]
        return softmax(scores + state.estimate.log_prior, axis=1)

    def one_hot(self, feature: int) -> Float[np.ndarray, "item value"]:
        """The value of one feature on each item, one-hot; zero where it is missing."""
        counts = self._by_column[:, self.of_features((feature,))].toarray()
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)

    def of_features(self, features: tuple[int, ...]) -> Int[np.ndarray, " symbol"]:
        """The symbols of some features."""
        offsets = self.table.feature_offsets
        ranges = [np.arange(offsets[f], offsets[f + 1]) for f in features]
        return np.concatenate([np.zeros(0, dtype=np.int64), *ranges])

    def _incidence(self, n_components: int) -> Incidence:
        if n_components not in self._incidences:
            self._incidences = {n_components: incidence_of(self.table, n_components)}
        return self._incidences[n_components]


def _split(
    symbols: _SymbolMatrix,
    state: State,
    scan: Scan,
    coordinates: Coordinates,
    step: float,
) -> State:
    """Duplicate the chosen component, halve its weight, and move the twins apart.

    The chosen pair of features is in S already and takes part in the assignment of items.
    """
    chosen = [symbols.of_features((f,)) for f in (scan.first, scan.second)]
    old = state.estimate
    profiles = np.exp(old.log_table[:, scan.component])
    first, second = (profiles[own] / profiles[own].sum() for own in chosen)
    direction = split_direction(
        symbols.one_hot(scan.first),
        symbols.one_hot(scan.second),
        symbols.posterior(state),
        scan.component,
        (first, second),
        coordinates=coordinates,
    )
    log_table = np.column_stack([old.log_table, old.log_table[:, scan.component]])
    for own, profile, change in zip(chosen, (first, second), direction[:2], strict=True):
        forth, back = move_apart(profile, change, step)
        log_table[own, scan.component] = floored_log(forth)
        log_table[own, -1] = floored_log(back)
    log_prior = np.append(old.log_prior, old.log_prior[scan.component])
    log_prior[[scan.component, -1]] -= np.log(2)
    return state._replace(estimate=EMEstimate(log_table, log_prior, 0.0, None))


def _new_features(scan: Scan, state: State) -> tuple[int, ...]:
    """Features of the largest entry that are not in S yet; none if there is no entry."""
    if scan.value <= _NOTHING:
        return ()
    return tuple(f for f in (scan.first, scan.second) if f not in state.informative)


def _change_of_max_norm(records: tuple[Record, ...]) -> float:
    """Change of the max norm in the last iteration as a fraction of it; NaN if it is not known."""
    if len(records) < 2:
        return math.nan
    before, now = (record.scan.max_norm for record in records[-2:])
    return abs(now - before) / before if before > 0 else math.nan


def _record(symbols: _SymbolMatrix, state: State, scan: Scan, *, is_split: bool) -> Record:
    return Record(
        symbols.log_likelihood(state.estimate),
        scan,
        len(state.informative),
        len(state.estimate.log_prior),
        is_split,
    )
