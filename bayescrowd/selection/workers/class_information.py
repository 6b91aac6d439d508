"""What each feature says about the hidden class, judged on items that were held out.

Pairwise information grows with the number of items that two workers share: summed over all others,
as in Zhao and Zucker's score, it counts labels more than it weighs them. The score here is the
information of one label about the class of its task,

    score_f = I(value of f; class) = sum over k and v of P(k) P(v | k) log [P(v | k) / P(v)],

in nats. It does not grow with the number of labels, and it must not be fooled by their scarcity:

* P(class | item) comes from models that were fitted without the item, part by part, so that no
  label is judged by a model that has learned it;
* P(v | k) is shrunken by empirical Bayes, since the plug-in estimate of a worker with few labels is
  too large by about (values - 1)(classes - 1) / 2n nats. A worker with few labels is judged as the
  crowd is, and stands in the middle of the ranking until there is more to go by.

Workers, whose values are the classes, take the models of the default aggregator; the score is the
average over the classes that each of them finds, with its weights. A worker is described twice: by
one accuracy, and by a matrix that is pulled toward the crowd's errors at the worker's ability. The
two are weighted as the default weighs models with one accuracy against the others, by how well they
predict held-out labels.

Other features take a mixture of discrete product distributions, and rows that are pulled toward the
feature's own shares: P(v | k) = (n_kv + s P(v)) / (n_k + s). The strength s maximises the
Dirichlet-multinomial evidence of each feature; where that is s = inf, the feature says nothing.

How many features are enough is asked of the held-out items, too. The model and the ranking come
from the other items; then each label is predicted from the labels that the first L features of that
ranking, other than its own, give the item,

    gain(L) = mean over labels of log [sum_k P_T(k | first L, other than f) P(v | k) / P(v)],   (1)
    P_T(k | labels)  proportional to  P(k) prod P(label | k)^(1 / T),

whoever gave the label. Labels of workers outside the first L are predicted, but do not predict. The
temperature T is the best of a few for each L. Without it, workers who err together make the model
overconfident, and a panel would seem to predict worse with every member, good ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln, xlogy

from bayescrowd.aggregation.auto.aggregator import LARGE, LARGE_N_ITER, AutoAggregator
from bayescrowd.aggregation.auto.pool import POOL, fit_members
from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.shrunken.ability import STRENGTHS, implied_rows
from bayescrowd.aggregation.shrunken.aggregator import posterior_of_new
from bayescrowd.aggregation.shrunken.baselines import CoinModel
from bayescrowd.aggregation.shrunken.rows import Counted, by_class, log_rows, log_rows_of_new
from bayescrowd.aggregation.task_sample import task_folds
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.features import FeatureTable
from bayescrowd.estimator import ignore_not_converged
from bayescrowd.mixture.mdpd import MDPD

__all__ = ["ClassInformation", "as_crowd", "class_information", "mean_gains"]

N_FOLDS = 5
"""Parts of the items, one of which is held out at a time."""

N_ITER, TOL = 50, 1e-3
"""Most iterations of a model that is fitted without a part, and the change of a probability below
which it has settled: rankings do not depend on the fourth digit."""

TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 5.0)
"""Divisors of the log-likelihood of what others say, to choose from (T of equation 1)."""

_BLOCK_CELLS = 2**22
"""Most entries of a temporary array of labels x classes or workers x classes x classes."""


class ClassInformation(NamedTuple):
    """Result of `class_information`."""

    scores: Float[np.ndarray, " feature"]
    """Information about the class in one value of each feature, nats."""
    gains: Float[np.ndarray, "size item"]
    """Equation 1 at the best temperature, summed over the entries of each item."""
    n_entries: Int[np.ndarray, " item"]
    """Number of entries of each item."""


def class_information(
    table: FeatureTable, *, n_components: int, seed: int, sizes: Sequence[int] = ()
) -> ClassInformation:
    """Score features by what they say about the hidden class; see the module.

    Args:
        table: items x features.
        n_components: number of classes, of features that are not workers.
        seed: parts and starts, of features that are not workers.
        sizes: ascending numbers of features for which held-out entries are predicted.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.data.features import as_feature_table
        >>> data = bc.simulate.sparse_crowd(300, 6, 2, alpha=0.5, accuracy=0.9, seed=0)
        >>> found = class_information(as_feature_table(data.annotations), n_components=2, seed=0)
        >>> (found.scores > 0.1).tolist()
        [True, True, True, False, False, False]
    """
    crowd = as_crowd(table, n_components)
    source = _Mixture(table, n_components, seed) if crowd is None else _Crowd(crowd)
    folds = source.folds()
    if len(folds) < 2:
        raise ValueError(f"estimator='class' needs at least 2 items, got {len(folds)} with entries")
    posteriors = np.full((source.n_models, table.n_items, n_components), 1 / n_components)
    gains = np.zeros((len(TEMPERATURES), len(sizes), table.n_items))
    for fold in folds:
        part = source.without(fold)
        posteriors[:, fold] = part.posteriors
        if len(sizes):
            gains[:, :, fold] = _path_gains(part, sizes)
    scores = source.information(posteriors)
    best = gains.sum(axis=2).argmax(axis=0)
    return ClassInformation(scores, gains[best, np.arange(len(sizes))], np.diff(table.offsets))


def mean_gains(
    found: ClassInformation,
) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
    """Equation 1, and the standard error of its distance from the largest, nats per entry.

    Entries of one item go together: the standard error is that of sums over items.
    """
    n_entries = found.n_entries.sum()
    means = found.gains.sum(axis=1) / n_entries
    best = int(means.argmax())
    below = found.gains[best] - found.gains
    centred = below - (means[best] - means)[:, None] * found.n_entries
    return means, np.sqrt((centred**2).sum(axis=1)) / n_entries


def as_crowd(table: FeatureTable, n_components: int) -> Annotations | None:
    """The table as labels if its features are workers: the same values, and a class for each."""
    values = table.values[0]
    if n_components < 2 or len(values) != n_components:
        return None
    if not all(v is values or v.equals(values) for v in table.values):
        return None
    return Annotations.from_codes(
        table.item_of_entry,
        table.symbols // n_components,
        table.symbols % n_components,
        tasks=range(table.n_items),
        workers=range(table.n_features),
        classes=range(n_components),
    )


class _HeldOut(NamedTuple):
    """Items that a model has not seen, and what it makes of them."""

    n_items: int
    """Number of items."""
    item: Int[np.ndarray, " entry"]
    """Item of each entry, from 0."""
    feature: Int[np.ndarray, " entry"]
    """Feature of each entry."""
    symbol: Int[np.ndarray, " entry"]
    """Row of `log_rows` of each entry."""
    log_rows: Float[np.ndarray, "symbol cls"]
    """log P(value | class)."""
    log_prior: Float[np.ndarray, " cls"]
    """log P(class)."""
    posteriors: Float[np.ndarray, "model item cls"]
    """P(class | entries) of each item, by each model."""
    scores: Float[np.ndarray, " feature"]
    """Information of each feature on the other items; -inf where it is absent from them."""


class _Source(Protocol):
    """A model of the table that can be fitted without a part of it."""

    n_models: int
    """How many models find the classes."""

    def folds(self) -> list[Int[np.ndarray, " _part"]]:
        """Parts of the items that have entries."""
        ...

    def without(self, fold: Int[np.ndarray, " part"]) -> _HeldOut:
        """Fit the other items, and look at these."""
        ...

    def information(
        self, posteriors: Float[np.ndarray, "model item cls"]
    ) -> Float[np.ndarray, " feature"]:
        """Scores that each model's classes of the items imply, averaged."""
        ...


class _Crowd:
    """Workers, by the models of the default aggregator."""

    def __init__(self, ann: Annotations) -> None:
        self._ann, self._pairs = ann, WorkerLabelPairs(ann)
        weights = AutoAggregator().fit(ann).weights_.drop("votes")
        self._members = [member for member in POOL if weights[member.name] > 0]
        self.n_models = len(self._members)
        self._weights = weights[weights > 0].to_numpy() / weights.sum()
        is_coin = np.array([isinstance(member.model, CoinModel) for member in self._members])
        self._coin_share = float(self._weights[is_coin].sum())
        self._n_iter = N_ITER if ann.n_labels <= LARGE else LARGE_N_ITER

    def folds(self) -> list[Int[np.ndarray, " _part"]]:
        return task_folds(self._ann, self._pairs.fixed, N_FOLDS)

    def without(self, fold: Int[np.ndarray, " part"]) -> _HeldOut:
        ann = self._ann
        rest = np.setdiff1d(np.arange(ann.n_tasks), fold)
        others, held = (ann.select_tasks(ann.tasks[part]) for part in (rest, fold))
        pairs, new = WorkerLabelPairs(others), WorkerLabelPairs(held)
        is_known = others.labels_per_worker > 0
        known = np.where(is_known, np.arange(ann.n_workers), -1)
        votes = vote_shares(others, pairs.fixed)
        fits = fit_members(self._members, pairs, votes, n_iter=self._n_iter, tol=TOL)
        seen = np.stack([by_class(fit.posterior, ann.n_classes) for fit in fits.values()])
        unseen = np.stack(
            [posterior_of_new(fit, fit.log_prior, pairs, new, known) for fit in fits.values()]
        )
        rows = implied_rows(pairs, np.tensordot(self._weights, seen, axes=1))
        return _HeldOut(
            held.n_tasks,
            held.task_codes,
            held.worker_codes,
            new.of_label,
            log_rows_of_new(rows, pairs, new, known),
            rows.log_prior,
            unseen,
            np.where(is_known, self._scores(pairs, seen), -np.inf),
        )

    def information(
        self, posteriors: Float[np.ndarray, "model item cls"]
    ) -> Float[np.ndarray, " worker"]:
        scores = self._scores(self._pairs, posteriors)
        return np.where(self._ann.labels_per_worker > 0, scores, 0.0)

    def _scores(
        self, pairs: WorkerLabelPairs, posteriors: Float[np.ndarray, "model item cls"]
    ) -> Float[np.ndarray, " worker"]:
        # Information is averaged, not classes: of a model that lost its way, next to nothing is
        # left of the former, whereas the latter would be spoilt for all.
        scores = np.zeros(pairs.n_workers)
        for weight, posterior in zip(self._weights, posteriors, strict=True):
            rows, priors = implied_rows(pairs, posterior), posterior.mean(axis=0)
            accuracy = CoinModel().base(pairs, rows.counts, None).accuracy
            coin = _coin_information(accuracy, priors)
            matrix = _matrix_information(pairs, rows, priors)
            scores += weight * (self._coin_share * coin + (1 - self._coin_share) * matrix)
        return scores


def _coin_information(
    accuracy: Float[np.ndarray, " worker"], priors: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, " worker"]:
    """Information of labels that are right with one probability, and wrong evenly."""
    right = accuracy[:, None]
    wrong = (1 - right) / (len(priors) - 1)
    observed = priors * right + (1 - priors) * wrong
    of_row = xlogy(right, right) + (len(priors) - 1) * xlogy(wrong, wrong)
    return np.maximum(of_row[:, 0] - xlogy(observed, observed).sum(axis=1), 0.0)


def _matrix_information(
    pairs: WorkerLabelPairs, rows: Counted, priors: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, " worker"]:
    """Information of labels that come from the workers' rows, some workers at a time."""
    n_classes = len(priors)
    out = np.empty(pairs.n_workers)
    size = max(1, _BLOCK_CELLS // n_classes**2)
    for first in range(0, pairs.n_workers, size):
        block = np.arange(first, min(first + size, pairs.n_workers))
        worker, label = np.repeat(block, n_classes), np.tile(np.arange(n_classes), len(block))
        place = pairs.find(worker, label)
        counts = np.where(place[:, None] >= 0, rows.counts[place], 0.0)
        table = np.exp(log_rows(rows.base, counts, rows.totals, worker, label))
        table = table.reshape(len(block), n_classes, n_classes)
        table /= table.sum(axis=1, keepdims=True)
        out[block] = _information_terms(table, priors).sum(axis=1)
    return np.maximum(out, 0.0)


def _information_terms(
    rows: Float[np.ndarray, "*value cls"], priors: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, "*value"]:
    """sum over k of P(k) P(v | k) log [P(v | k) / P(v)], the part of each value."""
    shares = rows @ priors
    return xlogy(rows, rows) @ priors - xlogy(shares, shares)


class _Mixture:
    """Any features, by a mixture of discrete product distributions."""

    def __init__(self, table: FeatureTable, n_components: int, seed: int) -> None:
        self._table, self._n_components, self._seed = table, n_components, seed
        self.n_models = 1
        # Components have no names: every part starts here, so that they mean the same in each.
        self._start = _responsibilities(
            table, MDPD(n_components, n_init=3, n_iter=100, tol=1e-5, seed=seed)
        )

    def folds(self) -> list[Int[np.ndarray, " _part"]]:
        present = np.flatnonzero(np.diff(self._table.offsets))
        order = np.random.default_rng(self._seed).permutation(present)
        n_folds = min(N_FOLDS, len(order))
        return [np.sort(order[first::n_folds]) for first in range(n_folds)]

    def without(self, fold: Int[np.ndarray, " part"]) -> _HeldOut:
        table = self._table
        rest = np.setdiff1d(np.arange(table.n_items), fold)
        others, held = table.select_items(rest), table.select_items(fold)
        options = {"init": self._start[rest], "n_init": 1, "n_iter": N_ITER, "tol": 1e-5}
        seen = _responsibilities(others, MDPD(self._n_components, **options, seed=self._seed))
        rows, is_known = _shrunken_rows(others, seen)
        log_table, log_prior = floored_log(rows), floored_log(seen.mean(axis=0))
        log_joint = held.matrix @ log_table + log_prior
        log_joint -= log_joint.max(axis=1, keepdims=True)
        joint = np.exp(log_joint)
        return _HeldOut(
            len(fold),
            held.item_of_entry,
            held.feature_of_symbol[held.symbols],
            held.symbols,
            log_table,
            log_prior,
            (joint / joint.sum(axis=1, keepdims=True))[None],
            np.where(is_known, _table_information(table, rows, seen.mean(axis=0)), -np.inf),
        )

    def information(
        self, posteriors: Float[np.ndarray, "model item cls"]
    ) -> Float[np.ndarray, " feature"]:
        rows, _ = _shrunken_rows(self._table, posteriors[0])
        return _table_information(self._table, rows, posteriors[0].mean(axis=0))


def _responsibilities(table: FeatureTable, mixture: MDPD) -> Float[np.ndarray, "item cls"]:
    with ignore_not_converged():
        # Where EM has not settled, features that tell the components apart already stand out.
        return mixture.fit(table).responsibilities_.to_numpy()


def _shrunken_rows(
    table: FeatureTable, posterior: Float[np.ndarray, "item cls"]
) -> tuple[Float[np.ndarray, "symbol cls"], Bool[np.ndarray, " feature"]]:
    """P(value | class), pulled toward each feature's shares, and which features are present."""
    counts = np.asarray(table.matrix.T @ posterior)
    starts, feature = table.feature_offsets[:-1], table.feature_of_symbol
    totals = np.add.reduceat(counts, starts, axis=0)
    # A value that these items do not show is worth one observation with the others like it.
    n_values = np.diff(table.feature_offsets)[feature]
    shares = (counts.sum(axis=1) + 1 / n_values) / (totals.sum(axis=1)[feature] + 1)
    rows = np.repeat(shares[:, None], counts.shape[1], axis=1)
    best = np.add.reduceat((counts * np.log(rows)).sum(axis=1), starts)
    for strength in STRENGTHS[::-1]:
        if np.isinf(strength):
            continue
        pseudo = strength * shares[:, None]
        by_value = (gammaln(counts + pseudo) - gammaln(pseudo)).sum(axis=1)
        by_class = (gammaln(strength) - gammaln(totals + strength)).sum(axis=1)
        evidence = np.add.reduceat(by_value, starts) + by_class
        better = (evidence > best)[feature]
        rows[better] = ((counts + pseudo) / (totals[feature] + strength))[better]
        best = np.maximum(best, evidence)
    return rows, totals.sum(axis=1) > 0


def _table_information(
    table: FeatureTable,
    rows: Float[np.ndarray, "symbol cls"],
    priors: Float[np.ndarray, " cls"],
) -> Float[np.ndarray, " feature"]:
    terms = _information_terms(rows, priors)
    return np.maximum(np.add.reduceat(terms, table.feature_offsets[:-1]), 0.0)


def _path_gains(part: _HeldOut, sizes: Sequence[int]) -> Float[np.ndarray, "temperature size item"]:
    """Equation 1 summed over the entries of each item, for the first features of a ranking."""
    rank = np.empty(len(part.scores), dtype=np.int64)
    rank[np.argsort(-part.scores, kind="stable")] = np.arange(len(rank))
    gains = np.empty((len(TEMPERATURES), len(sizes), part.n_items))
    offsets = np.searchsorted(part.item, np.arange(part.n_items + 1))  # entries stand by item
    most = max(1, _BLOCK_CELLS // len(part.log_prior))
    first = 0
    while first < part.n_items:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + most, "right")) - 1)
        entries = slice(int(offsets[first]), int(offsets[last]))
        gains[:, :, first:last] = _block_gains(
            part.log_rows[part.symbol[entries]],
            part.log_prior,
            part.item[entries] - first,
            part.feature[entries],
            rank,
            sizes,
            last - first,
        )
        first = last
    return gains


def _block_gains(
    log_rows: Float[np.ndarray, "entry cls"],
    log_prior: Float[np.ndarray, " cls"],
    item: Int[np.ndarray, " entry"],
    feature: Int[np.ndarray, " entry"],
    rank: Int[np.ndarray, " feature"],
    sizes: Sequence[int],
    n_items: int,
) -> Float[np.ndarray, "temperature size item"]:
    rows, rank_of_entry = np.exp(log_rows), rank[feature]
    # A feature that shows an item several values does not predict one of them by the others.
    pairs, pair = np.unique(item.astype(np.int64) * len(rank) + feature, return_inverse=True)
    own = log_rows if len(pairs) == len(pair) else _sums(log_rows, pair, len(pairs))[pair]
    alone = floored_log(rows @ np.exp(log_prior))
    evidence = np.zeros((n_items, len(log_prior)))
    gains, n_before = np.empty((len(TEMPERATURES), len(sizes), n_items)), 0
    for place, size in enumerate(sizes):
        entering = (rank_of_entry >= n_before) & (rank_of_entry < size)
        evidence += _sums(log_rows[entering], item[entering], n_items)
        n_before = size
        said = evidence[item] - np.where((rank_of_entry < size)[:, None], own, 0.0)
        for step, temperature in enumerate(TEMPERATURES):
            others = said / temperature + log_prior
            others = np.exp(others - others.max(axis=1, keepdims=True))
            predicted = (others * rows).sum(axis=1) / others.sum(axis=1)
            gain = floored_log(predicted) - alone
            gains[step, place] = np.bincount(item, gain, minlength=n_items)
    return gains


def _sums(
    values: Float[np.ndarray, "value cls"], group: Int[np.ndarray, " value"], n_groups: int
) -> Float[np.ndarray, "group cls"]:
    ones, place = np.ones(len(group)), np.arange(len(group))
    by_group = scipy.sparse.csr_matrix((ones, (group, place)), shape=(n_groups, len(group)))
    return np.asarray(by_group @ values)
