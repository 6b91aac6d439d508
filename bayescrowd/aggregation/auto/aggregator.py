"""The default: an average of a small pool of models, weighted by how well they predict labels.

No model is the best on every crowd, and without truth nobody can tell which is the best on this
one: how well a model predicts held-out labels says a little about it, enough to weigh models and
not enough to pick one. So the answer is the average

    P(class)  proportional to  ((1 - a) sum_m weight_m P_m(class) + a (share of votes))^(1 / T)

over the models of `pool.py`, with weights by `held_out_scores.py` and a = 0.03. The votes and the
temperature T, which changes no label, temper the certainty that models reach when they take the
errors on a task to be independent. How dependent errors are shows in the held-out labels, by how
much better the model with hard tasks predicts them than the best model without, in standard errors:

    T = 1.6 + 0.1 (z of the model with hard tasks - largest z of the others), from 1 to 2.5.

Where errors are independent, as in simulated crowds, the best T is about 1.1; on public crowds it
is 2 or more. a and the two numbers of T were chosen on the development half of
`benchmarks/crowds.py`, by error and by log loss.

On large crowds only the best models are fitted to all labels (`pool.py`): two million labels take
three to seven times as long as one fit of Dawid–Skene.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.held_out_scores import posterior_of_new
from bayescrowd.aggregation.auto.pool import (
    POOL,
    TOL,
    affordable_iterations,
    fit_members,
    weigh_pool,
)
from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.protocol import Gold
from bayescrowd.aggregation.shrunken.ability import ability_rows, implied_rows
from bayescrowd.aggregation.shrunken.aggregator import CompactAggregation, RowAggregator
from bayescrowd.aggregation.shrunken.base import Fit, by_class, log_rows
from bayescrowd.aggregation.votes import shares, vote_shares, with_known
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Seed
from bayescrowd.data.annotations import Annotations

__all__ = ["AutoAggregator", "aggregate"]

VOTE_SHARE = 0.03
"""Weight of the votes in the answer (a)."""

TEMPERATURE = 1.6
"""Temperature where models with and without hard tasks predict equally well."""

TEMPERATURE_PER_Z = 0.1
"""Rise of the temperature per standard error by which the model with hard tasks is better."""

TEMPERATURES = 1.0, 2.5
"""Lowest and highest temperature."""

FEW_LABELS, MANY_LABELS = 40, 200
"""Median labels per worker below which `why_` speaks of few, and above which of many."""


class AutoAggregator(RowAggregator):
    """The method to start with: an average of models that needs no choice.

    The models have one accuracy per worker, full, pooled or typed confusion matrices, or easy and
    hard tasks. Each is weighted by how well it predicts labels that were held out from it.

    Args:
        n_iter: largest number of iterations of each model.
        seed: seed of the draw that breaks ties.

    Attributes:
        weights_: weight of each model in the answer, and of the votes.
        scores_: per model: score (mean log probability of a held-out label, nats), below_best (how
            much lower than the best score), standard_error (of that difference), z (the difference
            in standard errors), weight, n_iter (iterations of the fit to all labels, 0 for a model
            that is left out) and converged (whether that fit settled, on which the average hardly
            depends).
        temperature_: temperature of the answer's probabilities (T).
        why_: which models the answer averages and what the crowd is like, in words.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(300, 30, 2, labels_per_task=5, accuracy=0.8, seed=1)
        >>> est = bc.AutoAggregator().fit(data.annotations)
        >>> bool((est.labels_ == data.truth).mean() > 0.9)
        True
        >>> est.weights_.index[0], bool(est.weights_.sum().round(9) == 1)
        ('one coin, even classes', True)
    """

    _n_tables = 8

    def __init__(self, *, n_iter: Count = 50, seed: Seed = 0) -> None:
        self.n_iter = n_iter
        self.seed = seed

    def _compact(self, pairs: WorkerLabelPairs, ann: Annotations) -> CompactAggregation:
        votes = vote_shares(ann, pairs.fixed)
        fits = self._weighted_fits(pairs, ann, votes)
        average = np.zeros_like(votes)
        for name, fit in fits.items():
            average += self._shares[name] * by_class(fit.posterior, ann.n_classes)
        posterior = with_known(_answer(average, votes, self.temperature_), pairs.fixed)
        self._fits = {name: fit._replace(posterior=fit.posterior[:0]) for name, fit in fits.items()}
        self.why_ = _why(self.scores_, ann)
        # The answer is tempered; workers judged by it would all look worse than they are.
        rows = implied_rows(pairs, with_known(average, pairs.fixed))
        return CompactAggregation(
            posterior=posterior,
            priors=rows.posterior.mean(axis=0),
            base=rows.base,
            counts=rows.counts,
            totals=rows.totals,
            log_likelihood=_log_likelihood(pairs, rows),
            trace=np.empty(0),
            converged=True,
        )

    def _worker_rows(self, pairs: WorkerLabelPairs, found: CompactAggregation) -> SparseRows:
        return ability_rows(pairs, found)

    def _weighted_fits(
        self, pairs: WorkerLabelPairs, ann: Annotations, votes: Float[np.ndarray, "item cls"]
    ) -> dict[str, Fit]:
        """Fit the models that have a share in the answer, and set what is known about all."""
        weighed = weigh_pool(ann, pairs.fixed, n_iter=self.n_iter)
        self.temperature_ = _temperature(weighed.scores)
        self._shares = weighed.shares
        carried = {member.name: self._shares.get(member.name, 0.0) for member in POOL}
        self.weights_ = pd.Series(
            {
                **{name: (1 - VOTE_SHARE) * share for name, share in carried.items()},
                "votes": VOTE_SHARE,
            },
            name="weight",
        )
        n_iter = affordable_iterations(ann.n_labels, self.n_iter)
        fits = fit_members(weighed.members, pairs, votes, n_iter=n_iter, tol=TOL)
        names = weighed.scores.index
        self.scores_ = weighed.scores.assign(
            n_iter=[len(fits[name].trace) if name in fits else 0 for name in names],
            converged=[name in fits and fits[name].converged for name in names],
        )
        return fits

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        pairs, new = WorkerLabelPairs(self._annotations), WorkerLabelPairs(ann)
        average = np.zeros((ann.n_tasks, ann.n_classes))
        for name, fit in self._fits.items():
            average += self._shares[name] * posterior_of_new(fit, pairs, new, known)
        return _answer(average, shares(ann.votes.astype(float)), self.temperature_)


def aggregate(data: Any, gold: Gold = None, *, seed: Seed = 0) -> AutoAggregator:
    """Aggregate the labels of a crowd with the default method.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        gold: task -> label for tasks whose truth is known and may be used.
        seed: seed of the draw that breaks ties.

    Returns:
        The fitted estimator, with `labels_`, `probas_`, `worker_quality_`, `why_` and more.

    Examples:
        >>> import bayescrowd as bc
        >>> table = bc.simulate.crowd(100, 10, accuracy=0.8).annotations.to_frame()
        >>> bc.aggregate(table).labels_.head(3).to_list()
        [1, 0, 1]
    """
    return AutoAggregator(seed=seed).fit(data, gold)


def _answer(
    average: Float[np.ndarray, "item cls"],
    votes: Float[np.ndarray, "item cls"],
    temperature: float,
) -> Float[np.ndarray, "item cls"]:
    """The average of the models, mixed with the votes and tempered."""
    mixed = ((1 - VOTE_SHARE) * average + VOTE_SHARE * votes) ** (1 / temperature)
    return mixed / mixed.sum(axis=1, keepdims=True)


def _temperature(scores: pd.DataFrame) -> float:
    """The temperature, which rises with the evidence of held-out labels for hard tasks."""
    z = scores["z"]
    has_hard_tasks = np.array([member.model.n_levels > 1 for member in POOL])
    gain = z[has_hard_tasks].max() - z[~has_hard_tasks].max()
    return float(np.clip(TEMPERATURE + TEMPERATURE_PER_Z * gain, *TEMPERATURES))


def _log_likelihood(pairs: WorkerLabelPairs, rows: Fit) -> float:
    """log P(labels) under the rows and their prior, nats."""
    table = log_rows(rows.base, rows.counts, rows.totals, pairs.worker, pairs.label)
    n_classes = pairs.n_classes
    # The likelihood is that of the labels alone: known truths rule nothing out.
    table = np.concatenate([table, np.zeros((n_classes, n_classes))])
    estimate = EMEstimate(table, floored_log(rows.posterior.mean(axis=0)), 0.0, None)
    sweep = pairs.incidence(n_classes).sweep(estimate, np.empty_like(rows.posterior))
    return sweep.log_likelihood


def _why(scores: pd.DataFrame, ann: Annotations) -> str:
    families = [member.family for member in POOL]
    by_family = scores["weight"].groupby(families, sort=False).sum().sort_values(ascending=False)
    leading = [f"{name} ({share:.0%})" for name, share in by_family.items() if share >= 0.1]
    per_worker = ann.labels_per_worker[ann.labels_per_worker > 0]
    median = float(np.median(per_worker))
    amount = "Few" if median < FEW_LABELS else "Many" if median > MANY_LABELS else "Enough"
    found = f"{amount} labels per worker (median {median:,.0f}): the answer averages models with "
    found += f"{', '.join(leading)}."
    if not (scores["standard_error"] > 0).any():  # a single task, or equal predictions
        return f"{found} Held-out labels say nothing about the models."
    best = next(member for member in POOL if member.name == scores["score"].idxmax())
    return f"{found} Held-out labels are predicted best if {best.story}."
