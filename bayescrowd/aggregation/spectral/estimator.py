"""Opt-D&S: Dawid–Skene EM from confusion matrices found by the method of moments.

Zhang, Chen, Zhou and Jordan 2014, 'Spectral methods meet EM: a provably optimal algorithm for
crowdsourcing', algorithm 1. The workers are divided into three groups. Z_g are the votes of group g
per task and class (eq. 1), a view of the truth y that is independent of the other two given y:
E[Z_g | y = h] is column h of C_g, and P(y = h) = w_h. With M_ab = mean of Z_a Z_b' over tasks,

    M_cb M_ab^-1 = C_c C_a^-1   carries view a to view c               (eqs. 2a, 2b)
    M2 = sum_h w_h mu_h mu_h',  M3 = sum_h w_h mu_h x mu_h x mu_h      (eqs. 2c, 2d)

where mu_h are the columns of C_c and M2, M3 are means of products of the carried views. M2 whitens
M3 into an orthogonal tensor whose eigenvectors (`orthogonal_tensor.py`) give C_c and w. A worker's
matrix follows from the mean product of their labels with the other groups' votes (eq. 3):

    [observed, true] = normalise( (mean of z_i Z_a') (W C_a')^-1 )

Three views give three sets of columns in three orders. Naming each column after its largest entry
fails for groups that err; here the columns of view a are matched by the Hungarian method to
M_ac (W C_c')^-1, the same matrix as seen from view c. Other departures: in eq. 3, 'a' is both other
groups together; random groups have about equally many labels and do not depend on ids
(`worker_groups.py`); hidden classes are named by gold if there is any, else so that most labels
agree with the result of EM; where the moments are weak, EM also starts from the votes
(`moment_strength.py`); and rows have pseudo-counts, whose number is learned from the crowd
(`row_prior.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.smoothing import Smoothing
from bayescrowd.aggregation.spectral.method_of_moments import (
    DegenerateMoments,
    SpectralStart,
    spectral_start,
)
from bayescrowd.aggregation.spectral.moment_strength import (
    MomentStrength,
    class_divergence,
    least_singular_value,
)
from bayescrowd.aggregation.spectral.row_prior import (
    FIRST_PSEUDO_COUNTS,
    PulledDawidSkene,
    learned_pseudo_counts,
    prior_rows,
)
from bayescrowd.aggregation.spectral.worker_groups import (
    given_groups,
    group_votes,
    random_groups,
    worker_units,
)
from bayescrowd.aggregation.task_sample import FOLD_ROUNDS, fingerprints
from bayescrowd.aggregation.votes import TIE
from bayescrowd.aggregation.whole_matrices import confusion_frame, estimate_of, incidence
from bayescrowd.checks.parameters import Count, NonNegative, Real, Seed, Tolerance
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import warn_not_converged

__all__ = ["SpectralDawidSkene"]

_MAX_DRAWS = 10
"""Largest number of draws per random partition, which is drawn again if moments are degenerate."""

_SAME = 1e-5
"""Objectives within this many nats per label are equal, because EM may stop a little early."""

_LEAST_EVIDENCE = 1.0
"""Least evidence between the most similar classes without a warning, in nats per task.

The theorem asks that n_workers * D-bar exceed a constant times a logarithm.
"""


class _Origin(NamedTuple):
    """The spectral start of one partition."""

    groups: Int[np.ndarray, " worker"]
    """Group 0, 1 or 2 of each worker."""
    start: SpectralStart
    """Where EM starts."""
    strength: MomentStrength
    """Strength of the moments behind the start."""


class _Run(NamedTuple):
    """EM from a spectral start."""

    origin: _Origin
    """The partition and its start."""
    start: SpectralStart
    """Where EM started, with classes named as in its result."""
    found: Aggregation
    """Where EM stopped."""


class SpectralDawidSkene(Aggregator):
    """Dawid–Skene EM from a spectral start (opt-D&S of Zhang et al. 2014).

    The start does not need a majority that is right: where many workers are careless in the same
    way, EM from a majority vote ends in a poor maximum, and EM from this start does not. It needs
    three groups of workers who each tell all classes apart, and enough tasks labelled by all three.
    A random partition with degenerate moments is drawn again; if all are degenerate (fewer than
    three workers, a class that nobody uses, groups without common tasks), EM starts from the
    majority vote. If the moments are weak, EM runs from the moments and from the majority vote, and
    the higher objective wins. A `ConvergenceWarning` says so in either case. The answer does not
    depend on the order of rows or on the names of tasks, workers and classes.

    The defaults are made for crowds with few labels per worker, where the published settings can
    do far worse than a vote. On 20 simulated crowds of 300 tasks, 100 workers and five classes with
    three labels per task, errors are 14.9 % with the defaults, 16.6 % with a vote, and 39 % with
    the paper's start and one pseudo-label spread evenly. With two classes it is hard to do as well
    as a vote (22.18 %, on 40 crowds): the defaults have 0.16 points more, with a standard error of
    0.07; two pseudo-labels on the right answer have 2.3 more, and `AutoAggregator`, `DawidSkene`,
    `EmpiricalBayesDawidSkene` and `OneCoinDawidSkene` between 4.7 and 9.0. The true matrices would
    have about 1.8 less. Over 24 designs with two, three or five classes, two, three or five labels
    per task, equal or unequal activity, with or without spammers, errors are 18.6 %, and 20.3 %
    with a vote.

    Args:
        start: 'auto', or 'spectral' to use the moments however weak they are, as in the paper.
        partition: 'random', or a mapping from every worker to one of three groups.
        n_partitions: number of random partitions; EM runs from each, and the highest objective
            wins.
        clip: lower threshold on the entries of the starting matrices, below one half. The errors of
            estimates for workers with few labels are larger than the default.
        prior: class prior in EM: 'learned', or 'uniform' as in the paper (eq. 4), which does badly
            where classes are unequal.
        smoothing: how the pseudo-counts of a confusion row are distributed. 'accuracy' takes
            workers to be at least as accurate as the agreement of the crowd implies, until their
            labels say otherwise (`row_prior.py`); for the others see `DawidSkene`.
        pseudo_counts: pseudo-counts per row; 0 is the paper's. 'learned' takes 1, 3, 7 or 15 after
            a first fit with 3, more if workers are more alike (`row_prior.py`). The default has
            median errors of 10.2, 7.1, 29.2 and 15.7 % on bluebird, rte, trec and dog over 20
            seeds, and of 22.8 % on web, where two labels on the right answer have 21.0 %. One label
            spread evenly has 10.2, 7.1, 29.5, 15.7 and 16.6 %, but see above.
        zeros: how to treat a label of probability zero; see `DawidSkene`.
        n_iter: largest number of EM iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the partitions, of the starts of the power method and of the draw that breaks
            ties.

    Attributes:
        start_: the start of EM that led to this result, 'spectral' or 'majority'.
        partition_: group 0, 1 or 2 of each worker; None if `start_` is 'majority'. If several
            workers gave the same labels to the same tasks, their groups depend on their ids; the
            votes of the groups do not.
        initial_confusions_: the matrices from which EM started, indexed like `confusions_`; None if
            `start_` is 'majority'.
        pseudo_counts_: pseudo-counts of each row.
        sigma_min_: least singular value of the second moments of two groups (see
            `moment_strength.py`); NaN if the moments were degenerate. The moments are weak if it is
            below four standard errors.
        sigma_min_error_: standard error of `sigma_min_`.
        d_bar_: D-bar of the fit, in nats: `n_workers * d_bar_` is the mean evidence of a task's
            labels for its class against the most similar one. The fit overestimates it where there
            are few labels.
        trace_: log-likelihood plus log prior density after each iteration, nats.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(300, 12, 3, spammers=0.3, seed=0)
        >>> est = bc.SpectralDawidSkene(seed=1).fit(crowd.annotations)
        >>> est.start_
        'spectral'
        >>> bool((est.labels_ == crowd.truth).mean() > 0.95)
        True
    """

    _model_name = "dawid_skene"

    def __init__(
        self,
        *,
        start: Literal["auto", "spectral"] = "auto",
        partition: Literal["random"] | pd.Series | Mapping[Any, Any] = "random",
        n_partitions: Count = 1,
        clip: Annotated[float, Real(0, 0.5, without_least=True, without_most=True)] = 0.1,
        prior: Literal["learned", "uniform"] = "learned",
        smoothing: Smoothing | Literal["accuracy"] = "accuracy",
        pseudo_counts: NonNegative | Literal["learned"] = "learned",
        zeros: Literal["floor", "skip"] = "floor",
        n_iter: Count = 200,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.start = start
        self.partition = partition
        self.n_partitions = n_partitions
        self.clip = clip
        self.prior = prior
        self.smoothing = smoothing
        self.pseudo_counts = pseudo_counts
        self.zeros = zeros
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        if self.n_partitions > 1 and not isinstance(self.partition, str):
            raise ValueError(f"n_partitions={self.n_partitions}: expected 1 for a given partition")
        origins, trouble = self._origins(ann, fixed)
        is_learned = isinstance(self.pseudo_counts, str)
        self.pseudo_counts_ = FIRST_PSEUDO_COUNTS if is_learned else float(self.pseudo_counts)
        found, best = self._best_fit(ann, fixed, origins)
        if is_learned:
            learned = learned_pseudo_counts(found.pairs, found.counts)
            if learned != self.pseudo_counts_:
                self.pseudo_counts_ = learned
                found, best = self._best_fit(ann, fixed, origins)
        is_spectral = best is not None and found is best.found
        self.start_ = "spectral" if is_spectral else "majority"
        self.partition_ = self.initial_confusions_ = None
        if best is not None and is_spectral:
            self.partition_ = pd.Series(best.origin.groups, index=ann.workers, name="group")
            self.initial_confusions_ = confusion_frame(best.start.confusions, ann)
        self.d_bar_, pair = class_divergence(found.pairs, found.counts)
        self.sigma_min_, self.sigma_min_error_ = best.origin.strength if best else (np.nan, np.nan)
        self._warn_of_weak_moments(ann, best, pair, trouble)
        return found

    def _origins(
        self, ann: Annotations, fixed: Int[np.ndarray, " item"]
    ) -> tuple[list[_Origin], str]:
        """The starts of the partitions, and why the last one that failed did so."""
        origins: list[_Origin] = []
        given = None if isinstance(self.partition, str) else given_groups(self.partition, ann)
        marks = fingerprints(ann, n_rounds=FOLD_ROUNDS)
        units = worker_units(ann, marks.worker)
        # The power method starts at random, in an order of the classes that does not depend on ids.
        order = np.argsort(marks.cls, kind="stable")
        ordered = _with_classes_in(order, ann)
        n_draws = 1 if given is not None else self.n_partitions * _MAX_DRAWS
        trouble = ""
        for draw in range(n_draws):
            # Draw d of seed r is the same whatever n_partitions is.
            rng = np.random.default_rng([self.seed, draw])
            groups = random_groups(rng, units) if given is None else given
            try:
                start = spectral_start(rng, ordered, groups, clip=self.clip)
            except DegenerateMoments as error:
                trouble = str(error)
                continue
            start = _with_names(start, np.argsort(order))
            if (fixed >= 0).any():
                start = _name_by_gold(start, ann, fixed)
            strength = least_singular_value(group_votes(ann, groups), groups)
            origins.append(_Origin(groups, start, strength))
            if len(origins) == self.n_partitions:
                break
        return origins, trouble

    def _best_fit(
        self, ann: Annotations, fixed: Int[np.ndarray, " item"], origins: list[_Origin]
    ) -> tuple[Aggregation, _Run | None]:
        """The best result of EM with `pseudo_counts_`, and the best from the moments."""
        em = self._em(ann)
        runs = [_Run(origin, *self._name_run(em, ann, fixed, origin.start)) for origin in origins]
        best = max(runs, key=lambda run: run.found.trace[-1], default=None)
        if best is not None and (self.start == "spectral" or not best.origin.strength.is_weak):
            return best.found, best
        found = em(init="majority")._aggregate(ann, fixed)
        if best is not None and found.trace[-1] <= best.found.trace[-1] + _SAME * ann.n_labels:
            found = best.found
        return found, best

    def _name_run(
        self,
        em: Callable[..., DawidSkene],
        ann: Annotations,
        fixed: Int[np.ndarray, " item"],
        start: SpectralStart,
    ) -> tuple[SpectralStart, Aggregation]:
        """Run EM from a start, and name the hidden classes so that most labels agree with them.

        The names follow from the result of EM. If pseudo-counts go to the right answer, names are
        part of the objective, and EM has to start again with the new ones.
        """
        found = em(init=start.confusions)._aggregate(ann, fixed)
        if (fixed >= 0).any():
            return start, found
        hidden = _hidden_by_name(found.crowd_counts)
        start = SpectralStart(start.confusions[:, hidden], start.priors[hidden])
        if self.smoothing in ("flat", "pooled") or self.pseudo_counts_ == 0:
            return start, found.rename_classes(hidden)
        if (hidden != np.arange(len(hidden))).any():
            found = em(init=start.confusions)._aggregate(ann, fixed)
        return start, found

    def _warn_of_weak_moments(
        self, ann: Annotations, best: _Run | None, pair: tuple[int, int], trouble: str
    ) -> None:
        """Issue one warning if the paper's conditions are far from met."""
        reasons = []
        if best is None:
            reasons.append(
                f"EM starts from the majority vote, not from a spectral estimate: {trouble}"
            )
        elif best.origin.strength.is_weak:
            origin = "moments" if self.start_ == "spectral" else "majority vote"
            reasons.append(
                f"the moments are weak: the least singular value, sigma_min_={self.sigma_min_:.2g},"
                f" has a standard error of {self.sigma_min_error_:.2g}; the result of EM from the "
                f"{origin} is kept"
            )
        evidence = self.d_bar_ * ann.n_workers
        if evidence < _LEAST_EVIDENCE:
            true, other = (ann.classes[code] for code in pair)
            reasons.append(
                f"the labels of a task of class {true!r} hold {evidence:.2g} nats of evidence "
                f"against {other!r} on average (n_workers * d_bar_), too little to tell them apart"
            )
        if reasons:
            warn_not_converged("; ".join(reasons), stacklevel=4)

    def _em(self, ann: Annotations) -> Callable[..., DawidSkene]:
        """A function that makes the EM estimator for a given start."""
        settings: dict[str, Any] = {
            "prior": self.prior,
            "pseudo_counts": self.pseudo_counts_,
            "zeros": self.zeros,
            "n_iter": self.n_iter,
            "tol": self.tol,
            "seed": self.seed,
        }
        if self.smoothing == "accuracy":
            return partial(PulledDawidSkene, prior_rows(ann), **settings)
        return partial(DawidSkene, smoothing=self.smoothing, **settings)


def _with_classes_in(order: Int[np.ndarray, " cls"], ann: Annotations) -> Annotations:
    """The same labels with the classes in this order."""
    return Annotations.from_codes(
        ann.task_codes,
        ann.worker_codes,
        np.argsort(order)[ann.label_codes],
        tasks=ann.tasks,
        workers=ann.workers,
        classes=ann.classes[order],
    )


def _with_names(start: SpectralStart, place: Int[np.ndarray, " cls"]) -> SpectralStart:
    """The start with class `place[k]` renamed to class k, both as true and as observed class."""
    confusions = start.confusions[:, place][:, :, place]
    return SpectralStart(np.ascontiguousarray(confusions), start.priors[place])


def _name_by_gold(
    start: SpectralStart, ann: Annotations, fixed: Int[np.ndarray, " item"]
) -> SpectralStart:
    """Name the hidden classes by the tasks whose class is known; the crowd adds one nat at most."""
    known = np.flatnonzero(fixed >= 0)
    scores = incidence(ann).scores(estimate_of(floored_log(start.confusions), start.priors))[known]
    scores -= scores.max(axis=1, keepdims=True)
    evidence = np.zeros((ann.n_classes, ann.n_classes))
    np.add.at(evidence, fixed[known], scores)
    crowd = np.einsum("who,w->oh", start.confusions, ann.labels_per_worker / ann.n_labels)
    hidden = linear_sum_assignment(evidence + crowd * start.priors, maximize=True)[1]
    return SpectralStart(start.confusions[:, hidden], start.priors[hidden])


def _hidden_by_name(crowd: Float[np.ndarray, "hidden observed"]) -> Int[np.ndarray, " cls"]:
    """The hidden class of each name, so that most labels agree with them."""
    hidden = linear_sum_assignment(crowd.T, maximize=True)[1]
    gain = crowd[hidden, np.arange(len(hidden))].sum() - crowd.trace()
    # If the gain is zero, rounding must not swap names.
    return hidden if gain > TIE * crowd.sum() else np.arange(len(hidden))
