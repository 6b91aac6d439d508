"""What each feature says about the hidden class, judged on held-out items.

Pairwise information grows with the number of items that two workers share. Summed over all others,
as in Zhao and Zucker's score, it rewards many labels more than good ones. The score here is the
information of one label about the class of its task,

    score_f = I(value of f; class) = sum over k and v of P(k) P(v | k) log [P(v | k) / P(v)],

in nats. It does not grow with the number of labels, and it must not be fooled by few labels:

* P(class | item) comes from models that were fitted without the item, part by part, so that no
  label is judged by a model that has learned it;
* P(v | k) is shrunk by empirical Bayes, because the plug-in estimate of a worker with few labels is
  too large by about (values - 1)(classes - 1) / 2n nats. A worker with few labels is judged like
  the crowd, and stays in the middle of the ranking until there are more.

For workers, whose values are the classes, the models are those of the default aggregator. The score
is the mean, with the default's weights, over the classes that each model finds. A worker is
described twice: by one accuracy, and by a matrix that is pulled toward the crowd's errors at the
worker's ability. The two descriptions are weighted as the default weighs models with one accuracy
against the others, by how well they predict held-out labels.

For other features, the model is a mixture of discrete product distributions, whose rows are pulled
toward the feature's own shares: P(v | k) = (n_kv + s P(v)) / (n_k + s). The strength s maximises
the Dirichlet-multinomial evidence of each feature; where the best is s = inf, the feature says
nothing.

How many features are enough is decided by predictions of held-out items (`held_out_gains.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln, xlogy

from bayescrowd.aggregation.auto.held_out_scores import log_rows_of_new, posterior_of_new
from bayescrowd.aggregation.auto.pool import affordable_iterations, fit_members, weigh_pool
from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.shrunken.ability import STRENGTHS, implied_rows
from bayescrowd.aggregation.shrunken.base import Counted, by_class, log_rows_at
from bayescrowd.aggregation.shrunken.baselines import CoinModel
from bayescrowd.aggregation.task_sample import task_folds
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.features import FeatureTable
from bayescrowd.iteration import ignore_not_converged
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.selection.workers.held_out_gains import TEMPERATURES, HeldOutItems, path_gains

__all__ = ["ClassInformation", "as_crowd", "mean_gains", "measure_class_information"]

N_FOLDS = 5
"""Number of parts of the items, each of which is held out once."""

N_ITER = 50
"""Largest number of iterations of each model."""

TOL = 1e-3
"""A model fitted without a part has settled when every probability changes by less than this.

Rankings do not depend on the fourth digit.
"""

_BLOCK_CELLS = 2**22
"""Largest number of cells of a temporary array of workers x classes x classes."""


class ClassInformation(NamedTuple):
    """Result of `measure_class_information`."""

    scores: Float[np.ndarray, " feature"]
    """Information about the class in one value of each feature, nats."""
    gains: Float[np.ndarray, "size item"]
    """Equation 1 of `held_out_gains.py`, summed over the entries of each item."""
    n_entries: Int[np.ndarray, " item"]
    """Number of entries of each item."""


def measure_class_information(
    table: FeatureTable, *, n_components: int, seed: int, sizes: Sequence[int] = ()
) -> ClassInformation:
    """Score features by what they say about the hidden class; see the module.

    Args:
        table: items x features.
        n_components: number of classes.
        seed: seed of the parts and starts for features that are not workers.
        sizes: ascending numbers of features from which held-out entries are predicted.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.data.features import as_feature_table
        >>> data = bc.simulate.sparse_crowd(300, 6, 2, alpha=0.5, accuracy=0.9, seed=0)
        >>> table = as_feature_table(data.annotations)
        >>> found = measure_class_information(table, n_components=2, seed=0)
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
            gains[:, :, fold] = path_gains(part, sizes)
    scores = source.information(posteriors)
    best = gains.sum(axis=2).argmax(axis=0)
    return ClassInformation(scores, gains[best, np.arange(len(sizes))], np.diff(table.offsets))


def mean_gains(
    found: ClassInformation,
) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
    """Gain of each size and the standard error of its distance from the largest, nats per entry.

    Entries of one item are correlated: the standard error is that of sums over items.
    """
    n_entries = found.n_entries.sum()
    means = found.gains.sum(axis=1) / n_entries
    best = int(means.argmax())
    below = found.gains[best] - found.gains
    centred = below - (means[best] - means)[:, None] * found.n_entries
    return means, np.sqrt((centred**2).sum(axis=1)) / n_entries


def as_crowd(table: FeatureTable, n_components: int) -> Annotations | None:
    """The table as labels if its features are workers, whose values are the classes; else None."""
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


class _Source(Protocol):
    """Models of a table that can be fitted without a part of it."""

    n_models: int
    """Number of models that find the classes."""

    def folds(self) -> list[Int[np.ndarray, " _part"]]:
        """Parts of the items that have entries."""
        ...

    def without(self, fold: Int[np.ndarray, " part"]) -> HeldOutItems:
        """Fit the models to the other items, and apply them to these."""
        ...

    def information(
        self, posteriors: Float[np.ndarray, "model item cls"]
    ) -> Float[np.ndarray, " feature"]:
        """Scores that the classes found by each model imply, averaged over models."""
        ...


class _Crowd:
    """Workers, with the models of the default aggregator."""

    def __init__(self, ann: Annotations) -> None:
        self._ann, self._pairs = ann, WorkerLabelPairs(ann)
        weighed = weigh_pool(ann, self._pairs.fixed, n_iter=N_ITER)
        self._members = weighed.members
        self.n_models = len(self._members)
        self._weights = np.array([weighed.shares[member.name] for member in self._members])
        is_coin = np.array([isinstance(member.model, CoinModel) for member in self._members])
        self._coin_share = float(self._weights[is_coin].sum())
        self._n_iter = affordable_iterations(ann.n_labels, N_ITER)

    def folds(self) -> list[Int[np.ndarray, " _part"]]:
        return task_folds(self._ann, self._pairs.fixed, N_FOLDS)

    def without(self, fold: Int[np.ndarray, " part"]) -> HeldOutItems:
        ann = self._ann
        rest = np.setdiff1d(np.arange(ann.n_tasks), fold)
        others, held = (ann.select_tasks(ann.tasks[part]) for part in (rest, fold))
        pairs, new = WorkerLabelPairs(others), WorkerLabelPairs(held)
        is_known = others.labels_per_worker > 0
        known = np.where(is_known, np.arange(ann.n_workers), -1)
        votes = vote_shares(others, pairs.fixed)
        fits = fit_members(self._members, pairs, votes, n_iter=self._n_iter, tol=TOL)
        seen = np.stack([by_class(fit.posterior, ann.n_classes) for fit in fits.values()])
        unseen = np.stack([posterior_of_new(fit, pairs, new, known) for fit in fits.values()])
        rows = implied_rows(pairs, np.tensordot(self._weights, seen, axes=1))
        return HeldOutItems(
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
        # Information is averaged, not classes: a model that has gone astray finds next to no
        # information, but would spoil the average of the classes.
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
    """Information of labels that are right with one probability, whose errors are even."""
    right = accuracy[:, None]
    wrong = (1 - right) / (len(priors) - 1)
    observed = priors * right + (1 - priors) * wrong
    of_row = xlogy(right, right) + (len(priors) - 1) * xlogy(wrong, wrong)
    return np.maximum(of_row[:, 0] - xlogy(observed, observed).sum(axis=1), 0.0)


def _matrix_information(
    pairs: WorkerLabelPairs, rows: Counted, priors: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, " worker"]:
    """Information of labels that follow the workers' rows, some workers at a time."""
    n_classes = len(priors)
    out = np.empty(pairs.n_workers)
    size = max(1, _BLOCK_CELLS // n_classes**2)
    for first in range(0, pairs.n_workers, size):
        block = np.arange(first, min(first + size, pairs.n_workers))
        worker, label = np.repeat(block, n_classes), np.tile(np.arange(n_classes), len(block))
        table = np.exp(log_rows_at(rows, pairs.find(worker, label), worker, label))
        table = table.reshape(len(block), n_classes, n_classes)
        table /= table.sum(axis=1, keepdims=True)
        out[block] = _information_terms(table, priors).sum(axis=1)
    return np.maximum(out, 0.0)


def _information_terms(
    rows: Float[np.ndarray, "*value cls"], priors: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, "*value"]:
    """Contribution of each value: sum over k of P(k) P(v | k) log [P(v | k) / P(v)]."""
    shares = rows @ priors
    return xlogy(rows, rows) @ priors - xlogy(shares, shares)


class _Mixture:
    """Features of any kind, with a mixture of discrete product distributions."""

    def __init__(self, table: FeatureTable, n_components: int, seed: int) -> None:
        self._table, self._n_components, self._seed = table, n_components, seed
        self.n_models = 1
        # Components have no names: all parts start here, so that they mean the same everywhere.
        self._start = _responsibilities(
            table, MDPD(n_components, n_init=3, n_iter=100, tol=1e-5, seed=seed)
        )

    def folds(self) -> list[Int[np.ndarray, " _part"]]:
        present = np.flatnonzero(np.diff(self._table.offsets))
        order = np.random.default_rng(self._seed).permutation(present)
        n_folds = min(N_FOLDS, len(order))
        return [np.sort(order[first::n_folds]) for first in range(n_folds)]

    def without(self, fold: Int[np.ndarray, " part"]) -> HeldOutItems:
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
        return HeldOutItems(
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
        # Even before EM settles, features that tell the components apart stand out.
        return mixture.fit(table).responsibilities_.to_numpy()


def _shrunken_rows(
    table: FeatureTable, posterior: Float[np.ndarray, "item cls"]
) -> tuple[Float[np.ndarray, "symbol cls"], Bool[np.ndarray, " feature"]]:
    """P(value | class), pulled toward each feature's shares, and whether a feature is present."""
    counts = np.asarray(table.matrix.T @ posterior)
    starts, feature = table.feature_offsets[:-1], table.feature_of_symbol
    totals = np.add.reduceat(counts, starts, axis=0)
    # One flat pseudo-observation, so that a value that these items do not show is possible.
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
