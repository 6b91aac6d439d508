"""The posterior draws behind a policy: the NumPyro model given what has been bought.

Every observation that the policy has learned from is an item of known class with one reading; its
id is that of the query. Items of known class tell a model nothing about the parameters but those of
their class, so it does not matter whether two readings are of the same instance.

The classes' probabilities theta_y are independent of the other parameters, given the classes. They
are what the policy believes: fixed where the space fixes them, otherwise Dirichlet(1 + known
instances of each class). Instances were chosen by their class; they are not evidence about theta_y
for a second time. For the same reason the log-likelihood and the predictions of the labels are
given the class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.budgeted.beliefs.majorities import first_majority
from bayescrowd.budgeted.query_book import Event
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import access_path, naive_bayes

__all__ = ["Purchase", "Purchases", "purchases_of", "settings_of"]


class Purchase(NamedTuple):
    """One observation that was bought, in codes of the user's space."""

    query: int
    """Id of the query."""
    feature: int
    """Position of the feature."""
    cls: int
    """Position of the class."""
    labels: tuple[int, ...]
    """Positions of the labels' values."""
    workers: tuple[Hashable | None, ...]
    """Who gave each label; None where that was not told."""


@dataclass(frozen=True, eq=False)
class Purchases:
    """What a policy has bought, and under which model it learned from it.

    Args:
        space: the user's space.
        model: name of the model.
        sampler: the policy's sampler.
        prior: prior of the model.
        fewest_labels: number of labels of a feature with which a worker has rows of their own; None
            if all workers share theirs.
        bought: the observations, in the order in which they were learned from.
        settings: the policy's arguments and state, by name, for the container's attributes.
    """

    space: FeatureSpace
    model: str
    sampler: Any
    prior: naive_bayes.Prior | access_path.Prior
    fewest_labels: int | None
    bought: tuple[Purchase, ...]
    settings: Mapping[str, str | float | int]

    @classmethod
    def of(
        cls,
        arguments: Mapping[str, Any],
        events: Iterable[Event],
        *,
        prior: naive_bayes.Prior | access_path.Prior,
        fewest_labels: int | None,
        **course: str | float,
    ) -> Purchases:
        """The purchases of a policy.

        Args:
            arguments: the policy's arguments, by name.
            events: the policy's events.
            prior: prior of the model.
            fewest_labels: number of labels of a feature with which a worker has rows of their own.
            course: what has become of the policy so far, by name.
        """
        space = arguments["space"]
        settings = {name: value for name, value in arguments.items() if name != "space"}
        return cls(
            space=space,
            model=arguments["model"],
            sampler=arguments["sampler"],
            prior=prior,
            fewest_labels=fewest_labels,
            bought=purchases_of(events, space),
            settings=settings_of(settings | course),
        )

    @property
    def target(self) -> Int[np.ndarray, " task"]:
        """Class of each observation."""
        return np.array([one.cls for one in self.bought])

    @property
    def is_noisy(self) -> bool:
        """Whether the model sees all labels, and not the value that most of them name."""
        return self.model == "access_path"

    def draw_class_prior(
        self, rng: np.random.Generator, n_draws: int
    ) -> Float[np.ndarray, "draw cls"]:
        """Draws of the classes' probabilities; the same ones if they are fixed."""
        return np.array([self.space.draw_class_prior(rng) for _ in range(n_draws)])

    def read(self, one: Purchase) -> tuple[int, ...]:
        """The labels that the model sees of an observation."""
        if self.is_noisy or len(one.labels) == 1:
            return one.labels
        n_values = self.space.n_values[one.feature]
        return (int(first_majority(np.array([one.labels]), n_values)[0].argmax()),)

    def coded(self) -> Any:
        """The observations and the names of everything, as the models of features take them.

        All features and values of the space are there, those never bought or seen included.

        Returns:
            `bayescrowd.posterior.feature_data.FeatureData`.
        """
        from bayescrowd.posterior.feature_data import FeatureData

        labels = [self.read(one) for one in self.bought]
        sizes = [len(said) for said in labels]
        reading = np.repeat(np.arange(len(labels)), sizes)
        value = np.concatenate(labels).astype(np.int64)
        feature = np.array([one.feature for one in self.bought])
        item = np.arange(len(self.bought))
        observations: naive_bayes.Observations | access_path.Observations
        groups = pd.Index([])
        if self.is_noisy:
            group, groups = self._groups(feature[reading])
            noisy = (self.target, item, feature, reading, group, value)
            observations = access_path.Observations(*map(jnp.asarray, noisy))
        else:
            exact = (self.target, item, feature, value)
            observations = naive_bayes.Observations(*map(jnp.asarray, exact))
        space = self.space
        return FeatureData(
            observations=observations,
            tasks=pd.Index([one.query for one in self.bought]),
            classes=pd.Index(space.classes),
            features=pd.Index(space.names),
            values=tuple(pd.Index(values) for values in space.features.values()),
            groups=groups,
            task_code=reading,
            feature_code=feature[reading],
            worker_code=self._worker_codes(sizes),
        )

    def _worker_codes(self, sizes: list[int]) -> Int[np.ndarray, " judgement"]:
        """Number of the worker who gave each label, in order of appearance; 0 if none is told."""
        if not self.is_noisy:
            return np.zeros(sum(sizes), dtype=np.int64)
        codes: dict[Hashable | None, int] = {}
        given = [worker for one in self.bought for worker in one.workers]
        return np.array([codes.setdefault(worker, len(codes)) for worker in given])

    def _groups(
        self, feature: Int[np.ndarray, " judgement"]
    ) -> tuple[Int[np.ndarray, " judgement"], pd.Index]:
        """Whose confusion matrix each label comes from: the shared one, or its worker's own."""
        given = [worker for one in self.bought for worker in one.workers]
        labels = list(zip(feature.tolist(), given, strict=True))
        n_labels = Counter(labels)
        own: dict[Hashable, int] = {}
        group = np.zeros(len(labels), dtype=np.int64)
        for place, (f, worker) in enumerate(labels):
            if self.fewest_labels is None or worker is None:
                continue
            if n_labels[f, worker] >= self.fewest_labels:
                group[place] = own.setdefault(worker, 1 + len(own))
        return group, pd.Index(["all", *own], dtype=object)


def purchases_of(events: Iterable[Event], space: FeatureSpace) -> tuple[Purchase, ...]:
    """The observations that a policy has learned from: closed queries with their answers."""
    features = {name: f for f, name in enumerate(space.names)}
    classes = {name: y for y, name in enumerate(space.classes)}
    told: dict[int, list[tuple[int, Hashable | None]]] = {}
    bought = []
    for event in events:
        query = event.query
        labels = told.setdefault(query.id, [])
        workers = event.workers or (None,) * len(event.answers)
        for answer, worker in zip(event.answers, workers, strict=True):
            labels.append((space.code_of(query.feature, answer), worker))
        is_closed = event.kind == "withdrawn" or len(labels) == query.n_labels
        if labels and is_closed and event.kind in ("told", "withdrawn"):
            codes, names = zip(*labels, strict=True)
            place = (features[query.feature], classes[query.target])
            bought.append(Purchase(query.id, *place, codes, names))
    return tuple(bought)


def settings_of(values: Mapping[str, Any]) -> dict[str, str | float | int]:
    """Values as attributes that a NetCDF file can hold."""
    found: dict[str, str | float | int] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            found[name] = int(value)
        else:
            found[name] = value if isinstance(value, str | int | float) else str(value)
    return found
