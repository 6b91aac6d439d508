"""A few gold labels, without letting them turn the answer over.

A fit to all labels with a few known classes among them can end far from the fit without them: the
known tasks are few, the labels are many, and a model that takes errors as independent settles
where the labels agree with each other. Here the fit **without** gold, P, stays as it is, and the
gold tasks say how to correct it. Their classes are regressed on what the labels say,

    f_ik = tau l_ik + nu c_ik + b_k + sum_j delta_j [y_ij = k],    P(class k) = softmax(f_i)_k,

* l: logarithm of .99 P + .01 / K, centred over the K classes: how far is P to be trusted?
* c: mean over the task's raters of log theta_j(y_ij | k), centred, where theta_j is the confusion
  matrix of rater j under P, with two more labels by the mean rater. It counts a panel of raters
  who repeat each other as one vote.
* b: classes that the fit has found too often or too seldom.
* delta: raters who are better or worse than the fit has found.

Priors: tau ~ N(.5, .5^2), nu ~ N(1.5, 1), b_k ~ N(0, .5^2), delta_j ~ N(0, (2 / sqrt n)^2) for n
labels per task. They say that P is over-confident and otherwise right, so that a single gold label
changes little. `gold_regression` finds the posterior, and the tilt is the average of the softmax
over 40 draws from it. The answer is a P + (1 - a) tilt, where a is the posterior probability that
P alone has produced the n gold labels,

    a = 1 / (1 + n/10 exp(E - sum_gold log(.99 P + .01 / K))),    E the log evidence.

The prior odds n/10 of the tilt let it come in slowly: one or two gold labels change little, and
none change nothing.

Nothing depends on ids or on the order of rows: the draws belong to fingerprints (`task_sample`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Bool, Float, Int
from scipy.special import expit, softmax

from bayescrowd.aggregation.auto.gold_regression import LaplaceFit, Regression, to_mode
from bayescrowd.aggregation.task_sample import fingerprints
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = ["GoldTilt", "fit_tilt"]

FLOOR = 0.01
"""Share of the uniform distribution in what is taken as P where its logarithm is needed."""

PSEUDO_LABELS = 2.0
"""Labels by the mean rater that are added to each row of a rater's confusion matrix."""

TRUST, EVIDENCE = (0.5, 0.5), (1.5, 1.0)
"""Prior mean and standard deviation of tau and of nu."""

CLASS_SD = 0.5
"""Prior standard deviation of b."""

RATER_SD = 2.0
"""Prior standard deviation of delta for one label per task; it falls with the root of their number,
so that the sum over a task's raters has this standard deviation."""

EVEN_ODDS = 10
"""Number of gold labels at which tilt and P are equally credible before their evidence."""

MOST_RATERS = 1_000
"""At most so many raters have a delta of their own: those with the most labels on gold tasks."""

N_PAIRS = 20
"""Pairs of antithetic draws from the posterior."""

SEED = 20
"""Seed of the draws."""


@dataclass(frozen=True, eq=False)
class GoldTilt:
    """How gold labels correct the probabilities of a fit that has not seen them.

    Args:
        classes: the classes, in the order of the columns of probabilities.
        workers: ids of the raters of the fit.
        rows: the raters' confusion matrices under the fit.
        fit: the posterior of tau, nu, b and delta.
        raters: codes of the raters who have a delta, in the order of their parameters.
        draws: draws from the posterior, one per row.
        weight: share of the tilt in the answer, 1 - a.
        n_gold: number of gold tasks.
    """

    classes: pd.Index
    workers: pd.Index
    rows: RaterRows
    fit: LaplaceFit
    raters: Int[np.ndarray, " rater"]
    draws: Float[np.ndarray, "draw parameter"]
    weight: float
    n_gold: int

    def apply(
        self, probas: Float[np.ndarray, "item cls"], ann: Annotations
    ) -> Float[np.ndarray, "item cls"]:
        """The corrected probabilities of tasks, those of the fit or new ones.

        Gold tasks are treated as all others: their class is not filled in. Raters whom the fit
        has not seen have the mean rater's matrix and no delta.

        Args:
            probas: P of these tasks by the fit without gold.
            ann: the labels of these tasks, with the classes of the fit.

        Raises:
            ValueError: the labels have other classes than the fit.
        """
        if not ann.classes.equals(self.classes):
            raise ValueError(
                f"the labels have the classes {list(ann.classes)}; expected those of the fit, "
                f"{list(self.classes)}"
            )
        return (1 - self.weight) * probas + self.weight * self.tilted(probas, ann)

    def tilted(
        self, probas: Float[np.ndarray, "item cls"], ann: Annotations
    ) -> Float[np.ndarray, "item cls"]:
        """The tilt alone: the average of the softmax over the draws."""
        known = self.workers.get_indexer(ann.workers)
        trust, evidence = _centred_log(probas), self.rows.evidence(ann, known)
        n_classes = len(self.classes)
        of_worker = np.full(len(self.workers) + 1, -1)  # the last stands for unknown raters
        of_worker[self.raters] = np.arange(len(self.raters))
        delta = of_worker[known][ann.worker_codes]
        judged = np.flatnonzero(delta >= 0)
        cell = ann.task_codes[judged].astype(np.int64) * n_classes + ann.label_codes[judged]
        total = np.zeros_like(probas)
        for draw in self.draws:
            scores = draw[0] * trust + draw[1] * evidence + draw[2 : 2 + n_classes]
            given = draw[2 + n_classes :][delta[judged]]
            scores += np.bincount(cell, given, minlength=scores.size).reshape(scores.shape)
            total += softmax(scores, axis=1)
        return total / len(self.draws)


@dataclass(frozen=True, eq=False)
class RaterRows:
    """Confusion matrices under given probabilities, pulled toward the mean rater's.

    Args:
        pairs: the pairs of a rater and a label that occur.
        counts: expected number of labels of each pair on tasks of each class.
        totals: the same, summed over labels.
        mean: the mean rater's matrix, as [observed, true].
    """

    pairs: WorkerLabelPairs
    counts: Float[np.ndarray, "symbol cls"]
    totals: Float[np.ndarray, "worker cls"]
    mean: Float[np.ndarray, "cls true"]

    @classmethod
    def of(cls, probas: Float[np.ndarray, "item cls"], ann: Annotations) -> RaterRows:
        """The matrices that the probabilities imply."""
        pairs = WorkerLabelPairs(ann)
        counts = pairs.labels().counts(probas)
        crowd = pairs.by_label(counts)
        # The row of a class without tasks, such as a gold class that nobody chose, is that of
        # all tasks: labels then say nothing about it, and l and b decide.
        overall = crowd.sum(axis=1) + 1 / ann.n_classes
        mean = (crowd + (overall / overall.sum())[:, None]) / (crowd.sum(axis=0) + 1)
        return cls(pairs, counts, pairs.by_worker(counts), mean)

    def evidence(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        """c: mean of log theta over the labels of each task, centred; 0 for a task without labels.

        Args:
            ann: the labels, of these or other tasks.
            known: code of each rater of `ann` in the fit, -1 for raters whom it has not seen.
        """
        new = WorkerLabelPairs(ann)
        of_fit = known[new.worker]
        place = self.pairs.find(of_fit, new.label)
        counts = np.where((place >= 0)[:, None], self.counts[place], 0.0)
        totals = np.where((of_fit >= 0)[:, None], self.totals[of_fit], 0.0)
        rows = (counts + PSEUDO_LABELS * self.mean[new.label]) / (totals + PSEUDO_LABELS)
        logs = np.log(rows)
        logs -= logs.mean(axis=1, keepdims=True)
        ones = np.ones(ann.n_labels)
        shape = (ann.n_tasks, len(new))
        sums = scipy.sparse.csr_matrix((ones, new.of_label, ann.task_offsets), shape=shape) @ logs
        return sums / np.maximum(ann.labels_per_task, 1)[:, None]


def fit_tilt(
    probas: Float[np.ndarray, "item cls"], ann: Annotations, fixed: Int[np.ndarray, " item"]
) -> GoldTilt:
    """Learn from gold how to correct the probabilities of a fit that has not seen it.

    Args:
        probas: P(class) of each task by that fit.
        ann: the labels, with the classes of `probas`.
        fixed: class of the gold tasks, -1 elsewhere.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(200, 10, accuracy=0.7, seed=1)
        >>> ann, probas = crowd.annotations, bc.MajorityVote().fit(crowd.annotations).probas_
        >>> fixed = ann.code_truth(crowd.truth.iloc[:20])
        >>> tilt = fit_tilt(probas.to_numpy(), ann, fixed)
        >>> tilt.n_gold, tilt.apply(probas.to_numpy(), ann).shape
        (20, (200, 2))
    """
    known = np.flatnonzero(fixed >= 0)
    rows = RaterRows.of(probas, ann)
    raters = _raters_with_delta(ann, fixed >= 0)
    trust, evidence = _centred_log(probas), rows.evidence(ann, np.arange(ann.n_workers))
    regression = Regression(
        _features(trust[known], evidence[known], ann, known, raters),
        fixed[known],
        *_prior(ann, len(raters)),
    )
    fit = to_mode(regression)
    log_plain = np.log((1 - FLOOR) * probas + FLOOR / ann.n_classes)[known, fixed[known]].sum()
    log_odds = np.log(len(known) / EVEN_ODDS) if len(known) else -np.inf
    z = _normals(ann, fixed, raters)
    return GoldTilt(
        classes=ann.classes,
        workers=ann.workers,
        rows=rows,
        fit=fit,
        raters=raters,
        draws=np.concatenate([fit.spread(z), fit.spread(-z)]),
        weight=float(expit(fit.log_evidence - log_plain + log_odds)),
        n_gold=len(known),
    )


def _centred_log(probas: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """l: the logarithm of P, kept away from 0 and centred over the classes."""
    logs = np.log((1 - FLOOR) * probas + FLOOR / probas.shape[1])
    return logs - logs.mean(axis=1, keepdims=True)


def _raters_with_delta(
    ann: Annotations, is_gold: Bool[np.ndarray, " item"]
) -> Int[np.ndarray, " rater"]:
    """Codes of the raters with labels on gold tasks; of too many, those with the most of them."""
    n_gold = np.bincount(ann.worker_codes[is_gold[ann.task_codes]], minlength=ann.n_workers)
    least = 1
    if (n_gold > 0).sum() > MOST_RATERS:
        # Raters with the same number stay or go together, whatever their ids.
        least = int(np.sort(n_gold)[-MOST_RATERS - 1]) + 1
    return np.flatnonzero(n_gold >= least)


def _features(
    trust: Float[np.ndarray, "gold cls"],
    evidence: Float[np.ndarray, "gold cls"],
    ann: Annotations,
    known: Int[np.ndarray, " gold"],
    raters: Int[np.ndarray, " rater"],
) -> scipy.sparse.csr_matrix:
    """The factors of tau, nu, b and delta in f, for the gold tasks."""
    n_gold, n_classes = trust.shape
    shared = scipy.sparse.csr_matrix(np.stack([trust.ravel(), evidence.ravel()], axis=1))
    classes = scipy.sparse.vstack(
        [scipy.sparse.identity(n_classes)] * n_gold + [scipy.sparse.csr_matrix((0, n_classes))]
    )
    place = np.full(ann.n_tasks, -1)
    place[known] = np.arange(n_gold)
    of_worker = np.full(ann.n_workers, -1)
    of_worker[raters] = np.arange(len(raters))
    here = np.flatnonzero((place[ann.task_codes] >= 0) & (of_worker[ann.worker_codes] >= 0))
    row = place[ann.task_codes[here]] * n_classes + ann.label_codes[here]
    cells = (np.ones(len(here)), (row, of_worker[ann.worker_codes[here]]))
    given = scipy.sparse.csr_matrix(cells, shape=(n_gold * n_classes, len(raters)))
    return scipy.sparse.hstack([shared, classes, given]).tocsr()


def _prior(
    ann: Annotations, n_raters: int
) -> tuple[Float[np.ndarray, " parameter"], Float[np.ndarray, " parameter"]]:
    """Mean and standard deviation of tau, nu, b and delta."""
    n_labelled = int((ann.labels_per_task > 0).sum())
    rater_sd = RATER_SD / np.sqrt(max(ann.n_labels / max(n_labelled, 1), 1.0))
    (tau, tau_sd), (nu, nu_sd), n_classes = TRUST, EVIDENCE, ann.n_classes
    mean = np.array([tau, nu] + [0.0] * (n_classes + n_raters))
    return mean, np.array([tau_sd, nu_sd] + [CLASS_SD] * n_classes + [rater_sd] * n_raters)


def _normals(
    ann: Annotations, fixed: Int[np.ndarray, " item"], raters: Int[np.ndarray, " rater"]
) -> Float[np.ndarray, "half parameter"]:
    """Standard normal numbers for each parameter, tied to fingerprints instead of to positions."""
    prints = fingerprints(ann, fixed, n_rounds=1)
    n_gold = np.bincount(fixed[fixed >= 0], minlength=ann.n_classes)
    by_class = np.lexsort((prints.cls, n_gold))
    by_rater = np.argsort(prints.worker[raters], kind="stable")
    drawn = np.random.default_rng(SEED).standard_normal(
        (2 + len(by_class) + len(by_rater), N_PAIRS)
    )
    z = np.empty_like(drawn)
    z[:2] = drawn[:2]
    z[2 + by_class] = drawn[2 : 2 + len(by_class)]
    z[2 + len(by_class) + by_rater] = drawn[2 + len(by_class) :]
    return z.T
