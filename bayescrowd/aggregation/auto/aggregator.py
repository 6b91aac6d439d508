"""The default: models weighted by how well they predict, kept safe where raters err together.

No model is the best on every crowd, and without truth nobody can tell which is the best on this
one: how well a model predicts held-out labels says a little about it, enough to weigh models and
not enough to pick one. So the models of `pool.py` are averaged, with weights by
`held_out_scores.py`. Where raters err together, that average can be surely wrong, and others take
part: fits under random weights of the raters, subtypes of tasks, weighted votes and, where labels
alone cannot decide, the votes themselves. `blend.py` says how much of each, and by what.

Gold labels do not enter these fits. They correct the answer afterwards (`gold_tilt.py`), so that a
few of them cannot turn it over. A classifier is one more rater in these fits, and its probabilities
correct the answer, too (`prediction_strength.py`).

On large crowds only the best models are fitted to all labels (`pool.py`); random weights of the
raters are tried on a sample of the tasks, and EBCC is left out of very large ones.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.alarm import Alarm, raise_alarm
from bayescrowd.aggregation.auto.blend import Blend, blend_for, pool_reliance, smoothed_votes
from bayescrowd.aggregation.auto.gold_regression import LaplaceFit
from bayescrowd.aggregation.auto.gold_report import GoldReport, make_gold_report
from bayescrowd.aggregation.auto.gold_tilt import GoldTilt, RaterRows, fit_tilt
from bayescrowd.aggregation.auto.held_out_scores import posterior_of_new
from bayescrowd.aggregation.auto.next_steps import next_step
from bayescrowd.aggregation.auto.pool import (
    LARGE,
    POOL,
    TOL,
    affordable_iterations,
    fit_members,
    weigh_pool,
)
from bayescrowd.aggregation.auto.rater_bootstrap import Replicates, Target, bootstrap_raters
from bayescrowd.aggregation.auto.rater_intervals import (
    accuracies_in,
    rater_accuracies,
    with_intervals,
)
from bayescrowd.aggregation.auto.reasons import why_answer, why_predictions
from bayescrowd.aggregation.bwa_iteration import Judgements, Precision, weighted_average
from bayescrowd.aggregation.dependence import Dependence, measure_dependence
from bayescrowd.aggregation.ebcc_subtypes import ebcc_posteriors
from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.post_strata import Share
from bayescrowd.aggregation.protocol import Gold
from bayescrowd.aggregation.shrunken.ability import AbilityBase, ability_rows, implied_rows
from bayescrowd.aggregation.shrunken.aggregator import CompactAggregation, RowAggregator
from bayescrowd.aggregation.shrunken.base import Fit, by_class, log_rows
from bayescrowd.aggregation.shrunken.baselines import CoinBase, MeanRows
from bayescrowd.aggregation.shrunken.type_mixture import TypeBase
from bayescrowd.aggregation.task_sample import sampled_tasks
from bayescrowd.aggregation.votes import shares, vote_shares, with_known
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.checks.parameters import Count, Seed
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.classifier import Classified, add_classifier
from bayescrowd.data.row_truth import gold_of, labels_of
from bayescrowd.data.truth import known_labels

__all__ = ["AutoAggregator", "aggregate"]

Itself = TypeVar("Itself", bound="AutoAggregator")

REPLICATED = ("pooled", "difficulty")
"""Models of the pool that are fitted under random weights of the raters."""

N_STARTS, N_SUBTYPES, EBCC_N_ITER, EBCC_TOL = 6, 10, 60, 1e-2
"""Starts, subtypes, iterations and tolerance of EBCC; starts are averaged and need not settle."""

MOST_STATES = 1 << 20
"""Entries of a table of (tasks + pairs) x states of EBCC, above which there are fewer subtypes."""

LABELS_OF_STARTS = 250_000
"""Labels over all starts of EBCC, above which there are fewer starts, but one at least."""

VERY_LARGE = 500_000
"""Crowds with more labels than this do without EBCC, for which BWA stands in."""

BWA_N_ITER, LARGE_BWA_N_ITER = 500, 10
"""Largest number of iterations of BWA, and the same on a very large crowd."""

RELIABLE = 0.9
"""Where the pool is relied on more than this, a large crowd is spared the other candidates."""

LARGE_REPLICATES, LARGE_SAMPLE = 8, 20_000
"""Replicates of each model on a large crowd, and labels of the sample that they are fitted to."""


class AutoAggregator(RowAggregator):
    """The method to start with: models that need no choice, safe where raters err together.

    The models have one accuracy per worker, full, pooled or typed confusion matrices, or easy and
    hard tasks. Each is weighted by how well it predicts labels that were held out from it. Where
    raters err together, fits under random weights of the raters, EBCC, BWA and the votes join.

    Args:
        n_iter: largest number of iterations of each model.
        seed: seed of the random weights and starts, and of the draw that breaks ties.

    Attributes:
        weights_: weight of each model in the answer, and of the votes.
        scores_: per model: score (mean log probability of a held-out label, nats), below_best (how
            much lower than the best score), standard_error (of that difference), z (the difference
            in standard errors), weight, n_iter (iterations of the fit to all labels, 0 for a model
            that is left out) and converged (whether that fit settled, on which the average hardly
            depends).
        temperature_: temperature of the answer's probabilities.
        dependence_: how far raters err together: `effective_votes`, `clusters`, `instability`.
        alarm_: whether labels alone can decide, or gold is needed, and why.
        gold_report_: what gold labels changed, and what they say about the accuracy of the fit
            and of each rater; None without gold.
        prediction_strength_: how much the probabilities of the predictions count: 1 if they are
            calibrated, less if they are over-confident, 0 if they say no more than the most
            probable class; None without predictions.
        worker_quality_: as for every method, with a 90 % interval of the accuracy (lower, upper).
            The accuracy is the share of right labels among those that the worker has given.
        why_: which models the answer averages, what the crowd is like, and what to try next.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.crowd(300, 30, 2, labels_per_task=5, accuracy=0.8, seed=1)
        >>> est = bc.AutoAggregator().fit(data.annotations)
        >>> bool((est.labels_ == data.truth).mean() > 0.9)
        True
        >>> est.weights_.index[0], bool(est.weights_.sum().round(9) == 1)
        ('one coin, even classes', True)
    """

    dependence_: Dependence
    alarm_: Alarm
    why_: str
    _accuracies: Share
    _n_tables = 8
    _state_classes = (
        *RowAggregator._state_classes,
        *(Alarm, Blend, Dependence, Precision, Share, WorkerLabelPairs),
        *(Fit, AbilityBase, CoinBase, MeanRows, TypeBase),
        *(GoldReport, GoldTilt, LaplaceFit, RaterRows),
    )
    _classified: Classified | None = None

    def __init__(self, *, n_iter: Count = 50, seed: Seed = 0) -> None:
        self.n_iter = n_iter
        self.seed = seed

    def fit(
        self: Itself,
        data: Any,
        y: Any = None,
        *,
        gold: Gold = None,
        predictions: pd.DataFrame | None = None,
    ) -> Itself:
        """Learn from labels.

        Args:
            data: the labels; see `Aggregator.fit`.
            y: the same as `gold`, if it is by task; truth by row is not used.
            gold: task -> label for tasks whose truth is known and may be used. A class that no
                worker chose becomes a class.
            predictions: probabilities of a classifier, tasks x classes. It becomes one more
                worker, named predictions, who gives its most probable classes; how much its
                probabilities say beyond that is learned. Tasks may be absent, and tasks that
                nobody labelled get probabilities, too. The probabilities should come from a
                classifier that was not trained on these tasks, for instance by cross-validation.
        """
        gold = gold_of(data, y, gold)
        ann = labels_of(data)
        if gold is not None:
            known = known_labels(gold, "gold")
            is_here = known.index.isin(ann.tasks)
            if predictions is not None:
                is_here |= known.index.isin(predictions.index)
            ann = ann.with_classes(known[is_here])
        classified = None if predictions is None else add_classifier(ann, predictions)
        self._classified = classified
        super().fit(ann if classified is None else classified.annotations, gold=gold)
        self._classified = None
        self.worker_quality_ = with_intervals(self.worker_quality_, self._accuracies)
        step = next_step(
            ann,
            self.probas_,
            self.worker_quality_,
            n_in_clusters=sum(map(len, self.dependence_.clusters)),
            needs_gold=self.alarm_.buy_gold,
            accuracy=None if self.gold_report_ is None else self.gold_report_.accuracy,
        )
        self.why_ = f"{self.why_} {step}".rstrip()
        return self

    def _summary(self) -> str:
        summary = super()._summary()
        if not summary or self.dependence_.n_votes <= 1:
            return summary
        low, high = self.dependence_.effective_votes
        gold = "; gold labels are needed" if self.alarm_.buy_gold else ""
        worth = f"{low:.1f} to {high:.1f} independent votes per task"
        return f"{summary}; {self.dependence_.n_votes:.3g} labels worth {worth}{gold}"

    def _compact(self, pairs: WorkerLabelPairs, ann: Annotations) -> CompactAggregation:
        known, pairs = pairs.fixed, WorkerLabelPairs(ann)
        mixed, replicates = self._mix_candidates(ann)
        self.prediction_strength_: float | None = None
        if (classified := self._classified) is not None:
            # Its optimiser is not loaded for those who have no predictions.
            from bayescrowd.aggregation.auto.prediction_strength import fit_strength

            strength = fit_strength(mixed, *classified[1:])
            mixed = strength.correct(mixed)
            self.prediction_strength_ = strength.value
        blend, answer = self._blend, self._blend.temper(mixed)
        if classified is not None:  # temperature allows for raters who err together, not for one
            answer = strength.fill(answer)
        instability = float("nan") if replicates is None else replicates.instability
        self.dependence_ = _dependence(ann, answer, instability)
        self.alarm_ = raise_alarm(
            answer, ann, instability=instability, vote_weight=blend.vote_weight
        )
        # The answer is tempered; workers judged by it would all look worse than they are.
        judge = mixed
        self._tilt: GoldTilt | None = None
        self.gold_report_: GoldReport | None = None
        posterior = answer
        if (known >= 0).any():
            self._tilt = fit_tilt(answer, ann, known)
            judge = posterior = with_known(self._tilt.apply(answer, ann), known)
            self.gold_report_ = make_gold_report(answer, posterior, ann, known, self._tilt)
            self._accuracies = accuracies_in(self.gold_report_.judges, ann.labels_per_worker)
        else:
            self._accuracies = rater_accuracies(
                ann,
                mixed,
                answer,
                self.dependence_.clusters,
                vote_weight=blend.vote_weight,
                replicated=None if replicates is None else replicates.accuracies,
            )
        self.why_ = why_answer(
            self.scores_, self.weights_, ann, self.dependence_.summary, self.alarm_, pool=POOL
        )
        if classified is not None:
            self.why_ += f" {why_predictions(classified, answer, strength.value)}"
        if self.gold_report_ is not None:
            self.why_ += f" {self.gold_report_.summary}"
        rows = implied_rows(pairs, judge)
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

    def _mix_candidates(
        self, ann: Annotations
    ) -> tuple[Float[np.ndarray, "item cls"], Replicates | None]:
        """The mixture of the candidates and the votes, before it is tempered."""
        pairs = WorkerLabelPairs(ann)
        candidates = {"pool": self._pool_average(pairs, ann)}
        replicates = self._replicate(ann, None)
        if replicates is not None:
            candidates["rater bootstrap"] = replicates.mean
        instability = float("nan") if replicates is None else replicates.instability
        blend = self._blend = blend_for(_n_raters(ann), ann.n_labels, self._gain, instability)
        self._precision: Precision | None = None
        if replicates is not None or ann.n_labels <= VERY_LARGE:
            n_iter = LARGE_BWA_N_ITER if ann.n_labels > VERY_LARGE else BWA_N_ITER
            votes = Judgements(ann)
            averaged = weighted_average(votes, pairs.fixed, n_iter=n_iter).state
            candidates["BWA"] = shares(averaged.z)
            self._precision = Precision.of(averaged, votes)
        if ann.n_labels <= VERY_LARGE:
            candidates["EBCC"] = self._subtypes(ann, pairs)
        self._set_weights(candidates)
        mixed = blend.with_votes(blend.mix(candidates), smoothed_votes(ann.votes))
        return mixed, replicates

    def _worker_rows(self, pairs: WorkerLabelPairs, found: CompactAggregation) -> SparseRows:
        return ability_rows(pairs, found)

    def _pool_average(
        self, pairs: WorkerLabelPairs, ann: Annotations
    ) -> Float[np.ndarray, "item cls"]:
        """The average of the pool; sets what is known about its models."""
        weighed = weigh_pool(ann, pairs.fixed, n_iter=self.n_iter)
        self._shares, self._gain = weighed.shares, _gain_of_hard_tasks(weighed.scores)
        n_iter = affordable_iterations(ann.n_labels, self.n_iter)
        votes = vote_shares(ann, pairs.fixed)
        fits = fit_members(weighed.members, pairs, votes, n_iter=n_iter, tol=TOL)
        names = weighed.scores.index
        self.scores_ = weighed.scores.assign(
            n_iter=[len(fits[name].trace) if name in fits else 0 for name in names],
            converged=[name in fits and fits[name].converged for name in names],
        )
        average = np.zeros_like(votes)
        for name, fit in fits.items():
            average += self._shares[name] * by_class(fit.posterior, ann.n_classes)
        self._fits = {name: fit._replace(posterior=fit.posterior[:0]) for name, fit in fits.items()}
        return average

    def _replicate(self, ann: Annotations, target: Target | None) -> Replicates | None:
        """Fits under random weights of the raters; None for a large crowd that can do without.

        Args:
            ann: the labels of the fit.
            target: the tasks to judge; those of the fit if it is None.
        """
        models = [(member.model, member.prior) for member in POOL if member.name in REPLICATED]
        if ann.n_labels <= LARGE:
            return bootstrap_raters(models, ann, target=target, seed=self.seed)
        if pool_reliance(_n_raters(ann), self._gain) > RELIABLE:
            return None
        sample = ann.select_tasks(ann.tasks[sampled_tasks(ann, LARGE_SAMPLE)])
        active = sample.labels_per_worker > 0
        sample = sample.select_workers(sample.workers[active])
        place = np.append(np.where(active, np.cumsum(active) - 1, -1), -1)
        known = place[:-1] if target is None else place[target.known]
        target = Target(ann if target is None else target.ann, known)
        return bootstrap_raters(
            models, sample, n_replicates=LARGE_REPLICATES, target=target, seed=self.seed
        )

    def _subtypes(self, ann: Annotations, pairs: WorkerLabelPairs) -> Float[np.ndarray, "item cls"]:
        """EBCC, averaged over starts."""
        n_affordable = MOST_STATES // (ann.n_classes * (ann.n_tasks + len(pairs)))
        fits = ebcc_posteriors(
            ann,
            pairs,
            n_subtypes=int(np.clip(n_affordable, 2, N_SUBTYPES)),
            n_starts=int(np.clip(LABELS_OF_STARTS // ann.n_labels, 1, N_STARTS)),
            n_iter=EBCC_N_ITER,
            tol=EBCC_TOL,
            seed=self.seed,
        )
        return fits.posteriors.mean(axis=0)

    def _set_weights(self, candidates: Collection[str]) -> None:
        blend = self._blend
        present, scale = blend.shares(candidates), 1 - blend.vote_weight
        of_pool = scale * present.pop("pool")
        carried = {member.name: self._shares.get(member.name, 0.0) for member in POOL}
        self.weights_ = pd.Series(
            {
                **{name: of_pool * share for name, share in carried.items()},
                **{name: scale * weight for name, weight in present.items()},
                "votes": blend.vote_weight,
            },
            name="weight",
        )
        self.temperature_ = blend.temperature

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        pairs, new = WorkerLabelPairs(self._annotations), WorkerLabelPairs(ann)
        average = np.zeros((ann.n_tasks, ann.n_classes))
        for name, fit in self._fits.items():
            average += self._shares[name] * posterior_of_new(fit, pairs, new, known)
        candidates = {"pool": average}
        replicates = self._replicate(self._annotations, Target(ann, known))
        if replicates is not None:
            candidates["rater bootstrap"] = replicates.mean
        if self._precision is not None:
            candidates["BWA"] = self._precision.average(Judgements(ann), known)
        blend = self._blend
        answer = blend.temper(blend.with_votes(blend.mix(candidates), smoothed_votes(ann.votes)))
        return answer if self._tilt is None else self._tilt.apply(answer, ann)


def aggregate(
    data: Any, gold: Gold = None, predictions: pd.DataFrame | None = None, *, seed: Seed = 0
) -> AutoAggregator:
    """Aggregate the labels of a crowd with the default method.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        gold: task -> label for tasks whose truth is known and may be used.
        predictions: probabilities of a classifier, tasks x classes; see `AutoAggregator.fit`.
        seed: seed of the draw that breaks ties.

    Returns:
        The fitted estimator, with `labels_`, `probas_`, `worker_quality_`, `why_` and more.

    Examples:
        >>> import bayescrowd as bc
        >>> table = bc.simulate.crowd(100, 10, accuracy=0.8).annotations.to_frame()
        >>> bc.aggregate(table).labels_.head(3).to_list()
        [1, 0, 1]
    """
    return AutoAggregator(seed=seed).fit(data, gold=gold, predictions=predictions)


def _gain_of_hard_tasks(scores: pd.DataFrame) -> float:
    """Standard errors by which the model with hard tasks predicts held-out labels better."""
    z = scores["z"]
    has_hard_tasks = np.array([member.model.n_levels > 1 for member in POOL])
    return float(z[has_hard_tasks].max() - z[~has_hard_tasks].max())


def _dependence(
    ann: Annotations, answer: Float[np.ndarray, "item cls"], instability: float
) -> Dependence:
    """How far raters err together, on a sample of the tasks of a very large crowd."""
    if ann.n_labels > VERY_LARGE:
        tasks = sampled_tasks(ann, LARGE)
        ann, answer = ann.select_tasks(ann.tasks[tasks]), answer[tasks]
    return measure_dependence(ann, answer, instability=instability)


def _n_raters(ann: Annotations) -> int:
    return int((ann.labels_per_worker > 0).sum())


def _log_likelihood(pairs: WorkerLabelPairs, rows: Fit) -> float:
    """log P(labels) under the rows and their prior, nats."""
    table = log_rows(rows.base, rows.counts, rows.totals, pairs.worker, pairs.label)
    n_classes = pairs.n_classes
    # The likelihood is that of the labels alone: known truths rule nothing out.
    table = np.concatenate([table, np.zeros((n_classes, n_classes))])
    estimate = EMEstimate(table, floored_log(rows.posterior.mean(axis=0)), 0.0, None)
    sweep = pairs.incidence(n_classes).sweep(estimate, np.empty_like(rows.posterior))
    return sweep.log_likelihood
