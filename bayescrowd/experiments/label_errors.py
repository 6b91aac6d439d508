"""Label errors of aggregators on the five public crowds."""

from __future__ import annotations

import warnings
from functools import cache
from typing import NamedTuple

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.annotations import Annotations
from bayescrowd.dataset import Dataset
from bayescrowd.datasets import load_dataset
from bayescrowd.metrics import error_rate

__all__ = ["CROWDS", "Crowd", "fitted_probas", "label_error", "loaded_crowd", "settings_of"]


class Crowd(NamedTuple):
    """A public crowd as the papers call it."""

    name: str
    """Name to load it by."""
    title: str
    """Name in the tables."""
    n_scored: int
    """Number of its tasks that have a truth, on which errors are counted."""


CROWDS = (
    Crowd("bluebird", "Bird", 108),
    Crowd("rte", "RTE", 800),
    Crowd("trec", "TREC", 2275),
    Crowd("dog", "Dog", 807),
    Crowd("web", "Web", 2653),
)
"""In the order of the papers' tables."""


@cache
def loaded_crowd(name: str) -> Dataset:
    """The crowd, read once."""
    return load_dataset(name)


def fitted_probas(estimator: Aggregator, labels: Annotations) -> pd.DataFrame:
    """P(class) of each task with the settings of a paper.

    That few iterations do not settle, or that moments are weak, is part of what a table shows.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit_predict_proba(labels)


def label_error(probas: pd.DataFrame, name: str) -> float:
    """Expected percentage of wrong labels on the tasks with a truth; ties are split evenly."""
    truth = loaded_crowd(name).truth
    if truth is None:
        raise ValueError(f"{name} has no truth to score by")
    return 100 * error_rate(probas, truth)


def settings_of(estimator: Aggregator) -> str:
    """Class and all parameters of an estimator but the seed, defaults written out."""
    options = estimator.get_params()
    told = ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "seed")
    return f"{type(estimator).__name__}({told})"
