"""The default: an average of a small pool of models, weighted by how well they foresee labels.

No model is the best on every crowd, and without truth there is no telling which is the best on this
one: how well a model foresees withheld labels says a little about it, enough to weigh models and
not enough to pick one. So the answer is the average

    P(class)  proportional to  ((1 - a) sum_m weight_m P_m(class) + a (share of votes))^(1 / T)

over the models of `pool.py`, with weights by `held_out_scores.py` and a = 0.03. The votes and the
temperature T, which changes no label, keep probabilities from the certainty that models reach when
they take the errors on a task for independent. How far they are from it shows in withheld labels,
by how much better the model with hard tasks foresees them than the best without, in standard
errors:

    T = 1.6 + 0.1 (z of the model with hard tasks - largest z of the others), from 1 to 2.5.

Where errors are independent, simulated crowds want a T around 1.1, public ones 2 and more. a and
the two numbers of T were chosen on the development half of `benchmarks/crowds.py`, by error and by
log loss.

Beyond `LARGE` labels, weights come from a sample of tasks (`task_sample.py`), and the models that
carry most weight are fitted to all labels: two million take three to seven times as long as one fit
of Dawid–Skene.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.held_out_scores import model_weights, score_held_out_labels
from bayescrowd.aggregation.auto.pool import POOL, fit_members, fit_predictors
from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.protocol import Gold
from bayescrowd.aggregation.shrunken.ability import ability_rows, implied_rows
from bayescrowd.aggregation.shrunken.aggregator import (
    CompactAggregation,
    RowAggregator,
    posterior_of_new,
)
from bayescrowd.aggregation.shrunken.rows import Fit, by_class, log_rows
from bayescrowd.aggregation.task_sample import sampled_tasks
from bayescrowd.aggregation.votes import shares, vote_shares, with_known
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Seed
from bayescrowd.data.annotations import Annotations

__all__ = ["AutoAggregator", "aggregate"]

VOTE_SHARE = 0.03
"""Weight of the votes in the answer."""

TOL = 1e-4
"""Change of a probability below which a model has settled."""

TEMPERATURE, TEMPERATURE_PER_Z = 1.6, 0.1
"""Of the answer's probabilities: as likely as not that tasks are hard, and more per z."""

TEMPERATURES = 1.0, 2.5
"""Lowest and highest."""

LARGE = 100_000
"""Labels beyond which models are chosen on a sample."""

CHOICE_LABELS = 50_000
"""Labels of that sample."""

MOST_MODELS, LARGE_N_ITER = 3, 20
"""Models that are fitted to all labels of such a crowd, and iterations of each fit."""

FEW_LABELS, MANY_LABELS = 40, 200
"""Labels per worker, in the median, that are called few and many."""


class AutoAggregator(RowAggregator):
    """The method to start with: an average of models that needs no choice.

    One coin per worker, full, pooled and typed confusion matrices, and easy and hard tasks are
    fitted and weighted by how well each foresees labels withheld from it.

    Args:
        n_iter: most iterations of each model.
        seed: decides ties.

    Attributes:
        weights_: weight of each model in the answer; the votes' is beside them.
        scores_: per model: score (mean log probability of a withheld label, nats), below_best,
            standard_error (of that difference), z (the difference in standard errors), weight,
            n_iter and converged (iterations of the fit to all labels, 0 for models that are left
            out, and whether it settled within them; the average hardly depends on it).
        temperature_: of the answer's probabilities, T of the module.
        why_: in words, which models carry the answer and what the crowd is like.

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
        average = sum(
            self._shares[name] * by_class(fit.posterior, ann.n_classes)
            for name, fit in fits.items()
        )
        posterior = with_known(_answer(average, votes, self.temperature_), pairs.fixed)
        self._fits = {name: fit._replace(posterior=fit.posterior[:0]) for name, fit in fits.items()}
        self.why_ = _why(self.scores_, ann)
        # Votes and tempering make the answer careful; workers judged by it would all look worse.
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
        """The models that carry the answer, and what speaks for each."""
        is_large = ann.n_labels > LARGE
        n_iter = min(self.n_iter, LARGE_N_ITER) if is_large else self.n_iter
        sample, fixed = ann, pairs.fixed
        if is_large:
            tasks = sampled_tasks(ann, CHOICE_LABELS)
            sample, fixed = ann.select_tasks(ann.tasks[tasks]), fixed[tasks]
            # Workers without labels in the sample would cost as much as the others.
            sample = sample.select_workers(sample.workers[sample.labels_per_worker > 0])
        fit_models = partial(fit_predictors, POOL, n_iter=n_iter, tol=TOL)
        held_out = score_held_out_labels(fit_models, sample, fixed)
        n_tasks = int((sample.labels_per_task > 0).sum())
        self.scores_ = model_weights(
            held_out,
            {member.name: member.prior_weight(sample.n_labels, n_tasks) for member in POOL},
        )
        self.temperature_ = _temperature(self.scores_)
        weights = self.scores_["weight"]
        if is_large:
            weights = weights.nlargest(MOST_MODELS)
        weights = weights[weights > 0] / weights.sum()
        self._shares = weights.to_dict()
        carried = {member.name: (1 - VOTE_SHARE) * weights.get(member.name, 0.0) for member in POOL}
        self.weights_ = pd.Series({**carried, "votes": VOTE_SHARE}, name="weight")
        kept = [member for member in POOL if member.name in self._shares]
        fits = fit_members(kept, pairs, votes, n_iter=n_iter, tol=TOL)
        self.scores_["n_iter"] = [
            len(fits[name].trace) if name in fits else 0 for name in self.scores_.index
        ]
        self.scores_["converged"] = [
            name in fits and fits[name].converged for name in self.scores_.index
        ]
        return fits

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        pairs, new = WorkerLabelPairs(self._annotations), WorkerLabelPairs(ann)
        average = sum(
            self._shares[name] * posterior_of_new(fit, fit.log_prior, pairs, new, known)
            for name, fit in self._fits.items()
        )
        return _answer(average, shares(ann.votes.astype(float)), self.temperature_)


def aggregate(data: Any, gold: Gold = None, *, seed: Seed = 0) -> AutoAggregator:
    """Aggregate the labels of a crowd with the default method.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        gold: task -> label for tasks whose truth is known and may be used.
        seed: decides ties.

    Returns:
        The fitted estimator: `labels_`, `probas_`, `worker_quality_`, `why_` and the rest.

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
    """The models' average with the votes, tempered."""
    mixed = ((1 - VOTE_SHARE) * average + VOTE_SHARE * votes) ** (1 / temperature)
    return mixed / mixed.sum(axis=1, keepdims=True)


def _temperature(scores: pd.DataFrame) -> float:
    """The higher, the more withheld labels speak for hard tasks."""
    z = scores["z"]
    has_hard_tasks = np.array([member.model.n_levels > 1 for member in POOL])
    gain = z[has_hard_tasks].max() - z[~has_hard_tasks].max()
    return float(np.clip(TEMPERATURE + TEMPERATURE_PER_Z * gain, *TEMPERATURES))


def _log_likelihood(pairs: WorkerLabelPairs, rows: Fit) -> float:
    """log P(labels) under the rows and their prior, nats."""
    table = log_rows(rows.base, rows.counts, rows.totals, pairs.worker, pairs.label)
    n_classes = pairs.n_classes
    table = np.concatenate([table, np.zeros((n_classes, n_classes))])  # known or not
    estimate = EMEstimate(table, floored_log(rows.posterior.mean(axis=0)), 0.0, None)
    sweep = pairs.incidence(n_classes).sweep(estimate, np.empty_like(rows.posterior))
    return sweep.log_likelihood


def _why(scores: pd.DataFrame, ann: Annotations) -> str:
    families = [member.family for member in POOL]
    by_family = scores["weight"].groupby(families, sort=False).sum().sort_values(ascending=False)
    leading = [f"{name} {share:.0%}" for name, share in by_family.items() if share >= 0.1]
    per_worker = ann.labels_per_worker[ann.labels_per_worker > 0]
    median = float(np.median(per_worker))
    amount = "Few" if median < FEW_LABELS else "Many" if median > MANY_LABELS else "Enough"
    found = f"{amount} labels per worker ({median:,.0f} in the median): the answer rests on "
    found += f"{', '.join(leading)}."
    if not (scores["standard_error"] > 0).any():  # a single task, or all foreseen alike
        return f"{found} Withheld labels say nothing about the models."
    best = next(member for member in POOL if member.name == scores["score"].idxmax())
    return f"{found} Withheld labels are foreseen best if {best.story}."
