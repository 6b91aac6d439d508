"""EM for GLAD's model: abilities of workers, easinesses of tasks, and classes.

Worker w of ability alpha_w answers task t of easiness beta_t > 0 correctly with probability
sigma(x), x = alpha_w beta_t (Whitehill et al. 2009, eq. 1), and otherwise picks one of the K - 1
wrong classes evenly (the paper's section on many classes). Abilities and log easinesses
b_t = log beta_t have the priors N(1, 1) (section 3.1). With r the probability that a label is
correct,

    E-step:  log P(k | labels of t) = log p_k + sum over labels k of (x + log(K - 1)) + constant
    M-step:  maximise  sum over labels of (r x - log(1 + e^x)) - |alpha - 1|^2/2 - |b - 1|^2/2

The E-step is a weighted vote, because log sigma(x) - log(1 - sigma(x)) = x. The paper leaves the
M-step to gradient ascent. Given the easinesses, the abilities do not interact, nor do the
easinesses given the abilities: Newton's method is one division per worker, then one per task. Each
step is halved until the objective of its worker or task does not fall, so the whole never falls. A
third move costs nothing: scaling all abilities up and all easinesses down leaves every x unchanged,
so the priors alone determine the best scale, which removes the slowest direction of the
alternation. One such round per E-step is enough: on the five public sets the objective settles to
1e-7 nats per label in 9 to 28 iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.em import floored_log
from bayescrowd.data.annotations import Annotations

__all__ = [
    "IndexedLabels",
    "Logits",
    "State",
    "index_labels",
    "initial_state",
    "integrated_posterior",
    "step",
]

PRIOR_MEAN = 1.0
"""Mean of the Gaussian priors of abilities and log easinesses; their variance is 1."""

_HALVINGS = 10
"""Largest number of times that a Newton step is halved."""

_ROUNDING = 1e-12
"""A relative fall of an objective by less than this is rounding."""

_LONGEST_STEP = 1.0
"""Largest change of a log easiness in one iteration."""

_QUADRATURE_NODES = 41
"""Number of nodes of the integral over the easiness of a new task."""


class IndexedLabels(NamedTuple):
    """The labels as both steps take them."""

    worker: Int[np.ndarray, " label"]
    """Worker of each label."""
    task: Int[np.ndarray, " label"]
    """Task of each label."""
    cell: Int[np.ndarray, " label"]
    """Position of (task, label) in a flat table of tasks x classes."""
    constant: Float[np.ndarray, "item cls"]
    """log(K - 1) for each vote for the class, the part of the scores that never changes."""
    fixed: Int[np.ndarray, " item"]
    """Class of tasks whose truth is known, -1 elsewhere."""
    labelled_workers: Bool[np.ndarray, " worker"]
    """Whether the worker has a label."""
    labelled_tasks: Bool[np.ndarray, " item"]
    """Whether the task has a label."""


class Logits(NamedTuple):
    """The log odds that labels are right, and what follows from them."""

    x: Float[np.ndarray, " label"]
    """alpha beta of each label."""
    softplus: Float[np.ndarray, " label"]
    """log(1 + e^x) = -log P(wrong)."""
    sigmoid: Float[np.ndarray, " label"]
    """P(right)."""


class State(NamedTuple):
    """Where EM stands."""

    abilities: Float[np.ndarray, " worker"]
    """Ability of each worker (alpha); positive if they are right more often than wrong."""
    log_easiness: Float[np.ndarray, " item"]
    """Log easiness of each task (b = log beta)."""
    log_prior: Float[np.ndarray, " cls"]
    """log P(class)."""
    logits: Logits
    """Log odds of the labels under these parameters."""
    posterior: Float[np.ndarray, "item cls"]
    """P(class | labels) under these parameters."""
    log_likelihood: float
    """log P(labels) under these parameters, nats."""

    @property
    def objective(self) -> float:
        """Log-likelihood plus log prior density up to a constant, nats."""
        return self.log_likelihood + float(
            _log_normal(self.abilities).sum() + _log_normal(self.log_easiness).sum()
        )


def initial_state(labels: IndexedLabels) -> State:
    """Abilities and easinesses at the mean of their priors, and the classes by an E-step."""
    n_classes = labels.constant.shape[1]
    abilities = np.full(len(labels.labelled_workers), PRIOR_MEAN)
    log_easiness = np.full(len(labels.labelled_tasks), PRIOR_MEAN)
    log_prior = np.full(n_classes, -np.log(n_classes))
    logits = _logits(labels, abilities, log_easiness)
    return _e_step(labels, abilities, log_easiness, log_prior, logits)


def step(labels: IndexedLabels, state: State, *, learn_prior: bool) -> State:
    """One iteration of EM: the M-step's three moves, then the E-step."""
    right = state.posterior.ravel()[labels.cell]
    abilities, logits = _improve_abilities(
        labels, right, state.abilities, state.log_easiness, state.logits
    )
    log_easiness, logits = _improve_easiness(labels, right, abilities, state.log_easiness, logits)
    abilities, log_easiness = _rescale(labels, abilities, log_easiness)
    log_prior = floored_log(state.posterior.mean(axis=0)) if learn_prior else state.log_prior
    return _e_step(labels, abilities, log_easiness, log_prior, logits)


def index_labels(ann: Annotations, fixed: Int[np.ndarray, " item"]) -> IndexedLabels:
    """Index the labels; `fixed` is the class of tasks whose truth is known, -1 elsewhere."""
    return IndexedLabels(
        ann.worker_codes,
        ann.task_codes,
        ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes,
        ann.votes * np.log(ann.n_classes - 1),
        fixed,
        ann.labels_per_worker > 0,
        ann.labels_per_task > 0,
    )


def integrated_posterior(
    labels: IndexedLabels,
    abilities: Float[np.ndarray, " worker"],
    log_prior: Float[np.ndarray, " cls"],
) -> Float[np.ndarray, "item cls"]:
    """P(class | labels) with each task's easiness integrated over its prior.

    The trapezoidal rule covers four standard deviations on each side. For a smooth integrand that
    vanishes at the ends, its error falls faster than any power of the spacing.

    Args:
        labels: the labels.
        abilities: ability of each worker.
        log_prior: log P(class).
    """
    votes = _class_sums(labels, abilities[labels.worker])
    scores = np.full_like(votes, -np.inf)
    nodes = PRIOR_MEAN + np.linspace(-4.0, 4.0, _QUADRATURE_NODES)
    for b, log_weight in zip(nodes, _log_normal(nodes), strict=True):
        softplus = np.logaddexp(0.0, np.exp(b) * abilities)[labels.worker]
        wrong = _sums(labels.task, softplus, len(votes))
        np.logaddexp(scores, log_weight + np.exp(b) * votes - wrong[:, None], out=scores)
    return _softmax(scores + labels.constant + log_prior)[0]


def _logits(
    labels: IndexedLabels,
    abilities: Float[np.ndarray, " worker"],
    log_easiness: Float[np.ndarray, " item"],
) -> Logits:
    x = abilities[labels.worker] * np.exp(log_easiness)[labels.task]
    small = np.exp(-np.abs(x))  # never overflows
    softplus = np.maximum(x, 0.0) + np.log1p(small)
    return Logits(x, softplus, np.where(x >= 0, 1.0, small) / (1.0 + small))


def _e_step(
    labels: IndexedLabels,
    abilities: Float[np.ndarray, " worker"],
    log_easiness: Float[np.ndarray, " item"],
    log_prior: Float[np.ndarray, " cls"],
    logits: Logits,
) -> State:
    """The state with P(class | labels) and the log-likelihood under these parameters."""
    votes = _class_sums(labels, abilities[labels.worker])
    scores = np.exp(log_easiness)[:, None] * votes + labels.constant + log_prior
    known = np.flatnonzero(labels.fixed >= 0)
    if len(known):
        kept = scores[known, labels.fixed[known]]
        scores[known] = -np.inf
        scores[known, labels.fixed[known]] = kept
    posterior, log_evidence = _softmax(scores)
    n_classes = len(log_prior)
    all_wrong = logits.softplus.sum() + len(logits.x) * np.log(n_classes - 1)
    return State(
        abilities,
        log_easiness,
        log_prior,
        logits,
        posterior,
        float(log_evidence.sum() - all_wrong),
    )


def _improve_abilities(
    labels: IndexedLabels,
    right: Float[np.ndarray, " label"],
    abilities: Float[np.ndarray, " worker"],
    log_easiness: Float[np.ndarray, " item"],
    logits: Logits,
) -> tuple[Float[np.ndarray, " worker"], Logits]:
    """One Newton step for every ability, given the easinesses."""

    def evaluate(
        moved: Float[np.ndarray, " worker"],
    ) -> tuple[Float[np.ndarray, " worker"], Logits]:
        at = _logits(labels, moved, log_easiness)
        gains = _sums(labels.worker, right * at.x - at.softplus, len(moved))
        return gains + _log_normal(moved), at

    before = _sums(labels.worker, right * logits.x - logits.softplus, len(abilities))
    slope, curvature = _ability_derivatives(labels, right, abilities, log_easiness, logits)
    newton = slope / curvature
    return _climb(abilities, newton, before + _log_normal(abilities), evaluate)


def _improve_easiness(
    labels: IndexedLabels,
    right: Float[np.ndarray, " label"],
    abilities: Float[np.ndarray, " worker"],
    log_easiness: Float[np.ndarray, " item"],
    logits: Logits,
) -> tuple[Float[np.ndarray, " item"], Logits]:
    """One Newton step for every log easiness, given the abilities."""

    def evaluate(moved: Float[np.ndarray, " item"]) -> tuple[Float[np.ndarray, " item"], Logits]:
        at = _logits(labels, abilities, moved)
        gains = _sums(labels.task, right * at.x - at.softplus, len(moved))
        return gains + _log_normal(moved), at

    before = _sums(labels.task, right * logits.x - logits.softplus, len(log_easiness))
    slope, curvature = _easiness_derivatives(labels, right, log_easiness, logits)
    newton = np.clip(slope / curvature, -_LONGEST_STEP, _LONGEST_STEP)
    return _climb(log_easiness, newton, before + _log_normal(log_easiness), evaluate)


def _ability_derivatives(
    labels: IndexedLabels,
    right: Float[np.ndarray, " label"],
    abilities: Float[np.ndarray, " worker"],
    log_easiness: Float[np.ndarray, " item"],
    logits: Logits,
) -> tuple[Float[np.ndarray, " worker"], Float[np.ndarray, " worker"]]:
    """Slope and negative second derivative of the M-step's objective in each ability."""
    beta = np.exp(log_easiness)[labels.task]
    spread = logits.sigmoid * (1.0 - logits.sigmoid) * beta**2
    slope = _sums(labels.worker, (right - logits.sigmoid) * beta, len(abilities))
    return slope + PRIOR_MEAN - abilities, _sums(labels.worker, spread, len(abilities)) + 1.0


def _easiness_derivatives(
    labels: IndexedLabels,
    right: Float[np.ndarray, " label"],
    log_easiness: Float[np.ndarray, " item"],
    logits: Logits,
) -> tuple[Float[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Slope in each log easiness, and a positive curvature to divide it by.

    The objective is not concave in b: where the second derivative has the wrong sign, or nearly so,
    its expected value (Fisher's) replaces it.
    """
    slope = _sums(labels.task, (right - logits.sigmoid) * logits.x, len(log_easiness))
    spread = logits.sigmoid * (1.0 - logits.sigmoid) * logits.x**2
    expected = _sums(labels.task, spread, len(log_easiness)) + 1.0
    exact = expected - slope
    return (
        slope + PRIOR_MEAN - log_easiness,
        np.where(exact > 0.5 * expected, exact, expected),
    )


def _climb(
    values: Float[np.ndarray, " coordinate"],
    move: Float[np.ndarray, " coordinate"],
    before: Float[np.ndarray, " coordinate"],
    evaluate: Callable[
        [Float[np.ndarray, " coordinate"]], tuple[Float[np.ndarray, " coordinate"], Logits]
    ],
) -> tuple[Float[np.ndarray, " coordinate"], Logits]:
    """Move each coordinate, but less far or not at all where its own objective would fall."""
    floor = before - _ROUNDING * (1.0 + np.abs(before))
    for attempt in range(_HALVINGS):
        reached, logits = evaluate(values + move)
        fallen = reached < floor
        if not fallen.any():
            return values + move, logits
        move = np.where(fallen, 0.5 * move if attempt < _HALVINGS - 1 else 0.0, move)
    return values + move, evaluate(values + move)[1]


def _rescale(
    labels: IndexedLabels,
    abilities: Float[np.ndarray, " worker"],
    log_easiness: Float[np.ndarray, " item"],
) -> tuple[Float[np.ndarray, " worker"], Float[np.ndarray, " item"]]:
    """The scale c that is best under the priors; c alpha and b - log c leave alpha beta unchanged.

    With s = log c, the log prior density is  -|e^s alpha - 1|^2/2 - |b - s - 1|^2/2.
    """
    alpha, b = abilities[labels.labelled_workers], log_easiness[labels.labelled_tasks]
    first, second = PRIOR_MEAN * alpha.sum(), (alpha**2).sum()
    excess = (b - PRIOR_MEAN).sum()

    def density(s: float) -> float:
        return -0.5 * np.exp(2 * s) * second + np.exp(s) * first + s * excess - 0.5 * len(b) * s**2

    s = 0.0
    for _ in range(_HALVINGS):
        slope = -np.exp(2 * s) * second + np.exp(s) * first + excess - len(b) * s
        curvature = 2 * np.exp(2 * s) * second - np.exp(s) * first + len(b)
        # Without the middle term, the only one that may be negative, the curvature is safe.
        safe = curvature if curvature > 0.5 * len(b) else 2 * np.exp(2 * s) * second + len(b)
        s += float(np.clip(slope / safe, -_LONGEST_STEP, _LONGEST_STEP))
    if not density(s) > density(0.0):
        return abilities, log_easiness
    return (
        np.where(labels.labelled_workers, np.exp(s) * abilities, abilities),
        np.where(labels.labelled_tasks, log_easiness - s, log_easiness),
    )


def _softmax(
    scores: Float[np.ndarray, "item cls"],
) -> tuple[Float[np.ndarray, "item cls"], Float[np.ndarray, " item"]]:
    """Softmax over classes, and the log normaliser of each row."""
    largest = scores.max(axis=1, keepdims=True)
    posterior = np.exp(scores - largest)
    total = posterior.sum(axis=1, keepdims=True)
    return posterior / total, (largest + np.log(total))[:, 0]


def _class_sums(
    labels: IndexedLabels, values: Float[np.ndarray, " label"]
) -> Float[np.ndarray, "item cls"]:
    """Sum of the values of each task's labels, by class."""
    shape = labels.constant.shape
    return _sums(labels.cell, values, shape[0] * shape[1]).reshape(shape)


def _sums(
    group: Int[np.ndarray, " label"], values: Float[np.ndarray, " label"], n_groups: int
) -> Float[np.ndarray, " group"]:
    return np.bincount(group, values, minlength=n_groups)


def _log_normal(values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Log density of the prior, up to a constant."""
    return -0.5 * (values - PRIOR_MEAN) ** 2
