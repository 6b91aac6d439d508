"""Dawid–Skene on the workers who carry information, found without truth.

Workers whose labels do not depend on the truth are not harmless: each adds a confusion matrix that
is fitted to noise, and where most workers are like that, EM climbs to a maximum that explains them.
Zhao and Zucker ('Feature selection facilitates learning mixtures of discrete product
distributions') leave them out by rank, which says who comes first but not where to stop, and costs
good workers with few labels. Here every worker is judged individually, against the crowd:

* The labels of the *other* kept workers give class probabilities q_t of each of the worker's tasks.
* An informative worker has a confusion matrix whose rows have Dirichlet priors around the crowd's
  mean matrix. Any other worker gives labels with the same probabilities whatever the class, with a
  Dirichlet prior around the crowd's label shares. Both priors have `strength` pseudo-counts. The
  log ratio of the two marginal likelihoods is the worker's evidence. The first is a sum over the
  classes of all tasks; its variational lower bound is

      sum_t [- KL(r_t || q_t)] + sum_k log DM(counts_k; prior_k),   counts_kl = sum of r_tk, label l

  with r_t proportional to q_t exp(E log p(label | k)), updated in turns. (With r = q, which treats
  expected counts as data, workers would pay for tasks of which the others are unsure: on trec,
  thinned to two labels per task, nearly everybody is then left out.)
* The share of informative workers is learned from the evidence of all, and a worker is kept if they
  are more probably informative than not. A worker with few labels has little evidence and is
  treated like the majority of the crowd.

EM on the kept workers and this judgement alternate until nobody changes sides. They start from
everybody, and once more from the workers who depend on another one beyond doubt (by a test of the
pairwise mutual information), because EM from everybody may miss a very small minority. The result
with the larger evidence of the whole crowd is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Bool, Float, Int
from scipy.special import digamma, expit, gammaln, logit

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.smoothing import mean_rows
from bayescrowd.aggregation.whole_matrices import counts_by_worker, estimate_of, incidence
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import DenseRows
from bayescrowd.checks.memory import check_fits
from bayescrowd.checks.parameters import Count, NonNegative, Positive, Seed, Tolerance
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.features import as_feature_table
from bayescrowd.information import independence_p_values
from bayescrowd.iteration import ignore_not_converged

__all__ = ["SelectiveDawidSkene", "informative_evidence"]

PAIR_LEVEL = 0.01
"""Probability that the second start includes any pair of workers who are in fact independent."""

MOST_PAIRED_WORKERS = 2_000
"""Largest crowd with a second start; a table of its pairs of workers takes 32 MB."""

LEAST_WORKERS = 3
"""Least number of kept workers; the confusion matrices of fewer are not identified."""

N_UPDATES = 5
"""Updates of the bound on a worker's evidence.

With thirty updates, no worker of the five public crowds changes sides.
"""

MATRIX_TABLES = 6
"""Number of tables of all workers' matrices that are in memory while workers are judged."""

TINY = 1e-9
"""Pseudo-counts of a label that nobody gives."""


class SelectiveDawidSkene(Aggregator):
    """Dawid–Skene EM that leaves out workers whose labels say nothing about the truth.

    Its errors, with those of `DawidSkene` on all workers in brackets, are 10.2 (10.2) % on
    bluebird, 7.2 (7.2) % on rte, 29.1 (29.3) % on trec and 15.7 (15.7) % on dog. Where five of a
    hundred workers know anything (`simulate.sparse_crowd(alpha=0.05)`), they are 23.4 (34.4) %;
    the true model has 23.0 %.

    Args:
        strength: pseudo-counts of the priors by which workers are judged; see the module.
        pseudo_counts: pseudo-counts of the kept workers' confusion rows, pooled toward their
            mean.
        n_rounds: largest number of rounds of EM and judgement.
        n_iter: largest number of iterations of each EM.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        informative_: P(informative) of each worker.
        selected_: the workers who were kept.
        trace_: objective of the last EM, on the labels of the kept workers.
        confusions_: as of every aggregator; a worker who was left out has the same row for every
            true class.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.sparse_crowd(300, 40, alpha=0.2, seed=0)
        >>> est = bc.SelectiveDawidSkene().fit(data.annotations)
        >>> est.selected_.to_list()
        [0, 1, 2, 3, 4, 5, 6, 7]
    """

    def __init__(
        self,
        *,
        strength: Positive = 4.0,
        pseudo_counts: NonNegative = 1.0,
        n_rounds: Count = 20,
        n_iter: Count = 200,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.strength = strength
        self.pseudo_counts = pseudo_counts
        self.n_rounds = n_rounds
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        check_fits(
            MATRIX_TABLES * 8.0 * ann.n_workers * ann.n_classes**2,
            f"confusion matrices of {ann.n_workers:,} workers and {ann.n_classes:,} classes",
            "DawidSkene does without a table of them",
        )
        everybody = ann.labels_per_worker > 0
        starts = [everybody]
        if LEAST_WORKERS < everybody.sum() <= MOST_PAIRED_WORKERS:
            dependent = _dependent_workers(ann)
            if LEAST_WORKERS <= dependent.sum() < everybody.sum():
                starts.append(dependent)
        best = max((self._alternate(ann, fixed, kept) for kept in starts), key=_total_evidence)
        self.informative_ = pd.Series(best.informative, index=ann.workers, name="informative")
        self.selected_ = ann.workers[best.kept]
        return self._aggregation(ann, fixed, best)

    def _alternate(
        self,
        ann: Annotations,
        fixed: Int[np.ndarray, " item"],
        kept: Bool[np.ndarray, " worker"],
    ) -> _Judgement:
        """Alternate EM and judgement until nobody changes sides."""
        judgement = self._judge(ann, fixed, kept)
        for _ in range(self.n_rounds - 1):
            kept = (judgement.informative > 0.5) & (ann.labels_per_worker > 0)
            if kept.sum() < LEAST_WORKERS or (kept == judgement.kept).all():
                break
            judgement = self._judge(ann, fixed, kept)
        return judgement

    def _judge(
        self,
        ann: Annotations,
        fixed: Int[np.ndarray, " item"],
        kept: Bool[np.ndarray, " worker"],
    ) -> _Judgement:
        """Fit the labels of the kept workers, and judge everybody by the result."""
        estimator = self._fit_kept(ann, fixed, kept)
        confusions = np.full((ann.n_workers, ann.n_classes, ann.n_classes), 1.0)
        confusions[kept] = estimator.confusions_.to_numpy().reshape(-1, *confusions.shape[1:])
        evidence = informative_evidence(
            _log_others(ann, fixed, confusions, estimator.priors_.to_numpy()),
            ann.worker_codes,
            ann.label_codes,
            kept,
            self.strength,
        )
        share = _informative_share(evidence)
        return _Judgement(kept, estimator, evidence, share, expit(evidence + logit(share)))

    def _fit_kept(
        self,
        ann: Annotations,
        fixed: Int[np.ndarray, " item"],
        kept: Bool[np.ndarray, " worker"],
    ) -> DawidSkene:
        known = np.flatnonzero(fixed >= 0)
        gold = pd.Series(ann.classes.take(fixed[known]), index=ann.tasks.take(known))
        estimator = DawidSkene(
            pseudo_counts=self.pseudo_counts, n_iter=self.n_iter, tol=self.tol, seed=self.seed
        )
        with ignore_not_converged():
            # Of all these fits only the last one counts, and `fit` warns about that one.
            return estimator.fit(
                ann if kept.all() else ann.select_workers(ann.workers[kept]),
                gold if len(known) else None,
            )

    def _aggregation(
        self, ann: Annotations, fixed: Int[np.ndarray, " item"], found: _Judgement
    ) -> Aggregation:
        estimator, kept = found.estimator, found.kept
        n_classes = ann.n_classes
        flat = ann.worker_codes.astype(np.int64) * n_classes + ann.label_codes
        given = np.bincount(flat, minlength=ann.n_workers * n_classes).reshape(-1, n_classes)
        habit = given + self.strength * given.sum(axis=0) / ann.n_labels
        habit = habit / habit.sum(axis=1, keepdims=True)
        confusions = np.repeat(habit[:, None, :], n_classes, axis=1)
        confusions[kept] = estimator.confusions_.to_numpy().reshape(-1, n_classes, n_classes)
        priors = estimator.priors_.to_numpy()
        labels = incidence(ann, fixed)
        posterior = np.empty((ann.n_tasks, n_classes))
        sweep = labels.sweep(estimate_of(floored_log(confusions), priors), posterior)
        crowd = mean_rows(counts_by_worker(sweep.counts, n_classes))
        confusions[ann.labels_per_worker == 0] = crowd
        pairs = WorkerLabelPairs(ann)
        return Aggregation(
            posterior,
            priors,
            DenseRows(confusions, crowd),
            pairs,
            sweep.counts[pairs.keys],
            sweep.log_likelihood,
            estimator.trace_,
            estimator.converged_,
        )


class _Judgement(NamedTuple):
    """A fit to the labels of some workers, and what it says about all workers."""

    kept: Bool[np.ndarray, " worker"]
    """Whether the labels of the worker were fitted."""
    estimator: DawidSkene
    """The fit."""
    evidence: Float[np.ndarray, " worker"]
    """log P(labels | informative) - log P(labels | not) of each worker, nats."""
    share: float
    """Share of the workers who are informative."""
    informative: Float[np.ndarray, " worker"]
    """P(informative) of each worker."""


def informative_evidence(
    log_others: Float[np.ndarray, "label cls"],
    worker: Int[np.ndarray, " label"],
    label: Int[np.ndarray, " label"],
    kept: Bool[np.ndarray, " worker"],
    strength: float,
) -> Float[np.ndarray, " worker"]:
    """A lower bound on log P(labels | informative) - log P(labels | not) of each worker, nats.

    Args:
        log_others: log P(class of the task | labels of the others), for each label.
        worker: worker of each label.
        label: the labels.
        kept: the workers whose mean confusion matrix is the centre of the informative workers'
            prior.
        strength: pseudo-counts of the Dirichlet priors.

    Examples:
        The others are sure of ten tasks, five of each class. The first worker is right on all of
        them, the second gives all of them the same label:

        >>> import numpy as np
        >>> sure = np.log(np.tile(np.repeat([[0.999, 0.001], [0.001, 0.999]], 5, axis=0), (2, 1)))
        >>> labels = np.array([0] * 5 + [1] * 5 + [0] * 10)
        >>> workers = np.repeat([0, 1], 10)
        >>> informative_evidence(sure, workers, labels, np.array([True, False]), 4.0).round(1)
        array([ 8.1, -9.7])
    """
    n_workers, n_classes = len(kept), log_others.shape[1]
    symbol = worker.astype(np.int64) * n_classes + label
    parts = (np.ones(len(symbol)), symbol, np.arange(len(symbol) + 1))
    shown = scipy.sparse.csr_matrix(parts, shape=(len(symbol), n_workers * n_classes))
    counts = counts_by_worker(shown.T @ np.exp(log_others), n_classes)
    given = counts.sum(axis=1)
    centre = mean_rows(counts[kept])
    pseudo = np.maximum(strength * centre, TINY)
    gain = np.tile(np.log(np.maximum(centre, TINY)), (n_workers, 1, 1))
    bound: np.ndarray = np.zeros(n_workers)
    for _ in range(N_UPDATES):
        # With r = q exp(gain) / Z, sum r (log q - log r) = log Z - sum r gain.
        joint = log_others + gain.transpose(0, 2, 1).reshape(-1, n_classes)[symbol]
        largest = joint.max(axis=1, keepdims=True)
        joint = np.exp(joint - largest)
        total = joint.sum(axis=1, keepdims=True)
        log_normaliser = (largest + np.log(total))[:, 0]
        counts = counts_by_worker(shown.T @ (joint / total), n_classes)
        bound = np.bincount(worker, log_normaliser, minlength=n_workers) - (counts * gain).sum(
            axis=(1, 2)
        )
        gain = digamma(counts + pseudo) - digamma((counts + pseudo).sum(axis=2, keepdims=True))
    shares = np.maximum(strength * given.sum(axis=0) / max(len(symbol), 1), TINY)
    informed = bound + _log_dirichlet_multinomial(counts, pseudo).sum(axis=1)
    return informed - _log_dirichlet_multinomial(given, shares)


def _log_dirichlet_multinomial(
    counts: Float[np.ndarray, "*rows observed"], pseudo: Float[np.ndarray, "*any observed"]
) -> Float[np.ndarray, "*rows"]:
    """log P(a sequence of labels with these counts) under a Dirichlet prior."""
    totals = gammaln(pseudo.sum(axis=-1)) - gammaln((counts + pseudo).sum(axis=-1))
    return totals + (gammaln(counts + pseudo) - gammaln(pseudo)).sum(axis=-1)


def _informative_share(evidence: Float[np.ndarray, " worker"]) -> float:
    """The share of informative workers under which all labels are most probable, by EM."""
    share = 0.5
    for _ in range(100):
        share = float(np.clip(expit(evidence + logit(share)).mean(), 0.01, 0.99))
    return share


def _total_evidence(judgement: _Judgement) -> float:
    """log P(all labels) - log P(all labels | nobody is informative), nats."""
    log_share = np.log([judgement.share, 1 - judgement.share])
    return float(np.logaddexp(judgement.evidence + log_share[0], log_share[1]).sum())


def _log_others(
    ann: Annotations,
    fixed: Int[np.ndarray, " item"],
    confusions: Float[np.ndarray, "worker cls observed"],
    priors: Float[np.ndarray, " cls"],
) -> Float[np.ndarray, "label cls"]:
    """log P(class of the task | its other labels), for each label.

    A worker whose matrix is all ones has no influence.
    """
    log_table = floored_log(confusions)
    scores = incidence(ann).scores(estimate_of(log_table, priors))
    by_symbol = log_table.transpose(0, 2, 1).reshape(-1, ann.n_classes)
    symbol = ann.worker_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    others = scores[ann.task_codes] - by_symbol[symbol]
    known = np.flatnonzero(fixed[ann.task_codes] >= 0)
    truth = np.eye(ann.n_classes)[fixed[ann.task_codes[known]]]
    others[known] = floored_log(truth)
    others -= others.max(axis=1, keepdims=True)
    others -= np.log(np.exp(others).sum(axis=1, keepdims=True))
    return others


def _dependent_workers(ann: Annotations) -> Bool[np.ndarray, " worker"]:
    """Workers who depend on another one, by a test of all pairs at once (Bonferroni)."""
    n_pairs = ann.n_workers * (ann.n_workers - 1) / 2
    return independence_p_values(as_feature_table(ann)).min(axis=1) < PAIR_LEVEL / n_pairs
