"""GLAD: worker abilities and task difficulties, found by EM.

Whitehill, Ruvolo, Wu, Bergsma and Movellan 2009, 'Whose vote should count more: optimal
integration of labels from labelers of unknown expertise'. The model and both steps of EM are in
`glad_em.py`. Departure from the paper: the class prior may be learned.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.glad_em import (
    State,
    index_labels,
    initial_state,
    integrated_posterior,
    step,
)
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.smoothing import crowd_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import CoinRows
from bayescrowd.checks.parameters import Count, Seed, Tolerance
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import ascend

__all__ = ["GLAD"]

_EASINESS_NODES = 256
"""Number of quantiles that represent the easinesses of all tasks."""


class GLAD(Aggregator):
    """GLAD: one ability per worker and one difficulty per task.

    The posterior of a task weighs each vote by alpha beta. Errors on bluebird, rte, trec, dog and
    web are 27.8, 7.5, 42.1, 16.6 and 17.7 %: like the one-coin model, it cannot express that
    workers mistake some classes more often than others, which matters on bluebird and trec.

    Abilities and difficulties are a joint mode. Accuracies and rankings are recovered well, but the
    common scale of the abilities is too small, by 10 to 20 % on labels drawn from the model.

    `predict_proba` knows the workers of new tasks but not the difficulties of the tasks, and
    integrates over their prior. For the tasks of the fit it therefore does not quite repeat
    `probas_`, which is the posterior under the fitted difficulties.

    Args:
        prior: class prior, 'uniform' (the paper's) or 'learned'. With a learned prior, a model with
            one number per worker tends to put everything into the more common class: 42.6 % errors
            on bluebird.
        n_iter: largest number of iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        abilities_: alpha of each worker. A worker of ability 0 is right as often as wrong; a
            negative ability is adversarial. A worker without labels has the mean over labels.
        difficulties_: 1 / beta of each task, above 0; exp(-1) for a task without labels.
        confusions_: P(observed | true), averaged over the difficulties of all tasks.
        log_likelihood_: log P(labels) under the fitted abilities and difficulties, nats.
        trace_: log-likelihood plus log prior density after each iteration, nats; it never falls.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aaa"), list("bba")])
        >>> est = bc.GLAD().fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'a', 'b']
        >>> est.abilities_.round(1).to_list()
        [1.3, 1.3, 0.2]
        >>> est.difficulties_.round(2).to_list()
        [0.4, 0.26, 0.26, 0.4]
    """

    _model_name = "item_difficulty"

    def __init__(
        self,
        *,
        prior: Literal["learned", "uniform"] = "uniform",
        n_iter: Count = 200,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.prior = prior
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        labels = index_labels(ann, fixed)

        def climb(state: State) -> tuple[State, float]:
            state = step(labels, state, learn_prior=self.prior == "learned")
            return state, state.objective

        tol = self.tol * ann.n_labels
        course = ascend(climb, initial_state(labels), n_iter=self.n_iter, tol=tol)
        state = course.state
        self._crowd_ability = float(state.abilities[ann.worker_codes].mean())
        abilities = np.where(labels.labelled_workers, state.abilities, self._crowd_ability)
        self.abilities_ = pd.Series(abilities, index=ann.workers, name="ability")
        self.difficulties_ = pd.Series(
            np.exp(-state.log_easiness), index=ann.tasks, name="difficulty"
        )
        pairs = WorkerLabelPairs(ann)
        counts = pairs.labels().counts(state.posterior)
        right = _mean_accuracies(abilities, state.log_easiness)[:, None]
        rows = CoinRows(
            right,
            (1.0 - right) / (ann.n_classes - 1),
            stranger=crowd_rows(pairs, counts),
            silent=pairs.silent,
        )
        return Aggregation(
            state.posterior,
            np.exp(state.log_prior),
            rows,
            pairs,
            counts,
            state.log_likelihood,
            course.trace,
            course.converged,
        )

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        labels = index_labels(ann, np.full(ann.n_tasks, -1, dtype=np.int32))
        abilities = np.append(self.abilities_.to_numpy(), self._crowd_ability)[known]
        return integrated_posterior(labels, abilities, floored_log(self.priors_.to_numpy()))


def _mean_accuracies(
    abilities: Float[np.ndarray, " worker"], log_easiness: Float[np.ndarray, " item"]
) -> Float[np.ndarray, " worker"]:
    """Mean over tasks of P(right) of each worker.

    Evenly spaced quantiles of the easiness represent many tasks: workers x tasks numbers would
    cost more than the fit.
    """
    n_nodes = min(len(log_easiness), _EASINESS_NODES)
    levels = (np.arange(n_nodes) + 0.5) / n_nodes
    nodes = np.exp(np.quantile(log_easiness, levels, method="inverted_cdf"))
    accuracy = np.zeros(len(abilities))
    for beta in nodes:
        accuracy += 0.5 + 0.5 * np.tanh(0.5 * abilities * beta)  # the sigmoid
    return accuracy / n_nodes
