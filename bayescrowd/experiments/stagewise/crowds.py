"""What the experiments on stagewise EM share: settings, simulated crowds and the true model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayescrowd import simulate
from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.whole_matrices import estimate_of, incidence
from bayescrowd.data.dataset import Dataset
from bayescrowd.metrics import error_rate
from bayescrowd.mixture.stagewise_estimator import StagewiseEM

__all__ = ["TrueModel", "figure3_crowd", "percent_wrong", "stagewise_em", "true_model"]


class TrueModel(NamedTuple):
    """What the parameters of a simulated crowd imply about its labels."""

    log_likelihood: float
    """log P(labels) in nats per task."""
    probas: pd.DataFrame
    """P(class) of each task."""


def stagewise_em(n_components: int, **options: Any) -> StagewiseEM:
    """Stagewise EM with the settings of the paper: 20 iterations, no pseudo-counts.

    The two halves of a split component are moved apart in the coordinates of the paper. It does not
    say how far; with a step of 0.1 the informative sets of both crowds of table 1 are as large as
    published.
    """
    settings: dict[str, Any] = {
        "n_iter": 20,
        "tol": 0.0,
        "pseudo_counts": 0.0,
        "coordinates": "probability",
        "step": 0.1,
    }
    return StagewiseEM(n_components, **{**settings, **options})


def figure3_crowd(seed: int) -> Dataset:
    """100 workers, 1000 tasks, 3 classes; 30 workers have accuracies from 0.7 down to 0.45."""
    return simulate.sparse_crowd(alpha=0.3, accuracy=np.linspace(0.7, 0.45, 30), seed=seed)


def true_model(data: Dataset) -> TrueModel:
    """Apply Bayes' rule with the true parameters.

    Examples:
        >>> from bayescrowd import simulate
        >>> data = simulate.one_coin_crowd(50, 9, accuracy=0.9, seed=1)
        >>> percent_wrong(true_model(data).probas, data)
        0.0
    """
    ann, given = data.annotations, data.parameters
    if given is None:
        raise ValueError(f"{data.name} was not simulated, so its parameters are unknown")
    scores = incidence(ann).scores(estimate_of(floored_log(given.confusions), given.prevalence))
    evidence = logsumexp(scores, axis=1, keepdims=True)
    probas = pd.DataFrame(np.exp(scores - evidence), index=ann.tasks, columns=ann.classes)
    return TrueModel(float(evidence.mean()), probas)


def percent_wrong(probas: pd.DataFrame, data: Dataset) -> float:
    """Expected percentage of wrong labels; ties are split evenly."""
    if data.truth is None:
        raise ValueError(f"{data.name} has no truth to score by")
    return 100 * error_rate(probas, data.truth)
