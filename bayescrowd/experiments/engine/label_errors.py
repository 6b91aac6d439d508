"""Label errors of aggregators on the five public crowds."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pandas as pd

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.dataset import Dataset
from bayescrowd.datasets.registry import load_dataset
from bayescrowd.iteration import ignore_not_converged
from bayescrowd.metrics import error_rate

__all__ = ["CROWDS", "Crowd", "fitted_probas", "label_error", "loaded_crowd"]


class Crowd(NamedTuple):
    """A public crowd of the papers."""

    name: str
    """The name by which it is loaded."""
    title: str
    """Its name in the tables."""
    n_scored: int
    """Number of its tasks whose truth is known; errors are counted on these."""


CROWDS = (
    Crowd("bluebird", "Bird", 108),
    Crowd("rte", "RTE", 800),
    Crowd("trec", "TREC", 2275),
    Crowd("dog", "Dog", 807),
    Crowd("web", "Web", 2653),
)
"""The five crowds, in the order of the papers' tables."""


@cache
def loaded_crowd(name: str) -> Dataset:
    """The named crowd, read only once."""
    return load_dataset(name)


def fitted_probas(estimator: Aggregator, labels: Annotations) -> pd.DataFrame:
    """P(class) of each task, without warnings.

    A published table shows what its settings yield, even if the iterations do not converge or the
    moments are weak.
    """
    with ignore_not_converged():
        return estimator.fit_predict_proba(labels)


def label_error(probas: pd.DataFrame, name: str) -> float:
    """Expected percentage of wrong labels on the tasks with known truth; ties are split evenly."""
    truth = loaded_crowd(name).truth
    if truth is None:
        raise ValueError(f"{name} has no truth to score by")
    return 100 * error_rate(probas, truth)
