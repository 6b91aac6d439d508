"""Beliefs by NUTS on `bayescrowd.models.naive_bayes` and `bayescrowd.models.access_path`.

SAMPLEMODEL of Nushi et al. 2016 (HCOMP, algorithms 2 and 3), drawn with the NumPyro model that the
posterior of a policy is inspected with. Classes are known, so the features are independent a
posteriori: each has chains of its own, of the model of that one feature, and an answer moves the
chains of its feature alone (`warm_nuts`). The classes' probabilities are independent of the
features as well and are held fixed in these models.

A draw picks one of the kept draws for each feature; the mean averages the channels over all of
them. Chains are seeded with the number of their readings: the same readings give the same belief.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpyro import handlers

from bayescrowd.budgeted.beliefs.credibility import Credibility, Measure
from bayescrowd.budgeted.beliefs.drawn_tables import (
    DrawnTables,
    credibility_of_batches,
    evened,
    padded,
    read_tables,
    refuse_mode,
)
from bayescrowd.budgeted.beliefs.feature_readings import (
    Reading,
    noisy_observations,
    observations,
)
from bayescrowd.budgeted.beliefs.label_multisets import MultisetReader, Multisets, multisets
from bayescrowd.budgeted.beliefs.majorities import first_majority
from bayescrowd.budgeted.beliefs.naive_bayes import ChannelReader, PointEstimate, Reader
from bayescrowd.budgeted.beliefs.warm_nuts import (
    N_CHAINS,
    N_KEPT,
    Chains,
    Target,
    advance,
    draw_from_prior,
    further_seed,
    n_slots,
    needs_adapting,
)
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import access_path, naive_bayes
from bayescrowd.posterior.chains import FeatureSizes, ReadingSizes

__all__ = ["FeatureDraws", "NutsBelief"]


class NutsBelief:
    """Posterior of naive Bayes or of the access path model, by NUTS chains kept warm.

    Args:
        space: the features, in the policy's order.
        labels_per_query: number of labels of an observation (W).
        prior: the prior of the model, whose type says which model it is.
    """

    def __init__(
        self,
        space: FeatureSpace,
        labels_per_query: int,
        prior: naive_bayes.Prior | access_path.Prior,
    ) -> None:
        first = {
            v: FeatureDraws.before_readings(space.n_classes, v, labels_per_query, prior)
            for v in sorted({*space.n_values})
        }
        self.features = tuple(first[v] for v in space.n_values)
        """The draws of each feature."""
        self.n_outcomes = tuple(drawn.mean.shape[1] for drawn in self.features)
        self._mean: Float[np.ndarray, "feature cls outcome"] | None = None

    def observe(
        self, feature: int, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> NutsBelief:
        """The belief with a reading added and the chains of its feature moved on."""
        changed = self.features[feature].observe([(cls, labels)])
        return self._copy_with((*self.features[:feature], changed, *self.features[feature + 1 :]))

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> NutsBelief:
        """The belief with a whole table added and all chains moved on."""
        classes = target.tolist()
        changed = []
        for f, drawn in enumerate(self.features):
            said = [tuple(row[row >= 0].tolist()) for row in labels[:, f]]
            new = [(cls, row) for cls, row in zip(classes, said, strict=True) if row]
            changed.append(drawn.observe(new) if new else drawn)
        return self._copy_with(tuple(changed))

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of one draw of each feature."""
        picked = rng.integers(N_KEPT, size=len(self.features)).tolist()
        pairs = zip(self.features, picked, strict=True)
        return padded([drawn.channel_of(place) for drawn, place in pairs])

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Mean of the channels over the draws."""
        if self._mean is None:
            self._mean = padded([drawn.mean for drawn in self.features])
        return self._mean

    def credibility(
        self,
        feature: int,
        prior: Float[np.ndarray, " cls"],
        *,
        epsilon: float,
        measure: Measure,
        required: tuple[float, float] | None = None,
    ) -> Credibility:
        """How well the feature's tables are known, from the draws and as many more as it takes."""
        return credibility_of_batches(
            self.features[feature].batches(),
            N_CHAINS,
            prior,
            epsilon=epsilon,
            measure=measure,
            required=required,
        )

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: PointEstimate
    ) -> Reader:
        """A reader of labels by their probability averaged over the draws."""
        refuse_mode(estimate)
        drawn = self.features[feature]
        if drawn.outcomes is None:
            return ChannelReader(drawn.mean[:, slots], first_majority)
        return MultisetReader(drawn.tables, slots, drawn.n_seen)

    def _copy_with(self, features: tuple[FeatureDraws, ...]) -> NutsBelief:
        changed = copy(self)
        changed.features = features
        changed._mean = None
        return changed


@dataclass(frozen=True, eq=False)
class FeatureDraws:
    """Chains and draws of one feature, as a value.

    Args:
        n_classes: number of classes.
        n_values: number of values of the feature.
        labels_per_query: number of labels of a reading.
        prior: the model's prior, whose type says which model it is.
        readings: the readings so far.
        chains: where the chains stand.
        tables: the draws.
    """

    n_classes: int
    n_values: int
    labels_per_query: int
    prior: naive_bayes.Prior | access_path.Prior
    readings: tuple[Reading, ...]
    chains: Chains
    tables: DrawnTables

    @classmethod
    def before_readings(
        cls,
        n_classes: int,
        n_values: int,
        labels_per_query: int,
        prior: naive_bayes.Prior | access_path.Prior,
    ) -> FeatureDraws:
        """Draws from the prior."""
        target, data, sizes = _posed(n_classes, n_values, labels_per_query, prior, ())
        found = draw_from_prior(0, data, {"prior": prior}, target=target, sizes=sizes)
        chains, tables = _as_values(found)
        return cls(n_classes, n_values, labels_per_query, prior, (), chains, tables)

    @property
    def n_seen(self) -> int:
        """Number of slots that the readings have shown."""
        return 1 + max((max(reading.labels) for reading in self.readings), default=-1)

    @cached_property
    def outcomes(self) -> Multisets | None:
        """The multisets of labels that are the outcomes; None if the values are."""
        if isinstance(self.prior, naive_bayes.Prior):
            return None
        return multisets(self.n_values, self.labels_per_query)

    @cached_property
    def mean(self) -> Float[np.ndarray, "cls outcome"]:
        """Mean of the channels."""
        mean = self.tables.channels(self.outcomes).mean(axis=0)
        return evened(mean, self.n_seen) if self.outcomes is None else mean

    def channel_of(self, draw: int) -> Float[np.ndarray, "cls outcome"]:
        """The channel of one draw."""
        conditional, confusion = self.tables
        only = slice(draw, draw + 1)
        one = DrawnTables(conditional[only], None if confusion is None else confusion[only])
        return one.channels(self.outcomes)[0]

    def observe(self, new: list[tuple[int, tuple[int, ...]]]) -> FeatureDraws:
        """The draws after further readings, each a class and labels."""
        readings = (*self.readings, *(Reading(0, cls, self._read(said)) for cls, said in new))
        shape = (self.n_classes, self.n_values, self.labels_per_query)
        target, data, sizes = _posed(*shape, self.prior, readings)
        n = len(readings)
        adapts = needs_adapting(n) or len(new) > 1
        arguments = {"prior": self.prior}
        found = advance(n, self.chains, data, arguments, adapts, target=target, sizes=sizes)
        chains, tables = _as_values(found)
        return replace(self, readings=readings, chains=chains, tables=tables)

    def batches(self) -> Iterator[DrawnTables]:
        """The draws, and further draws of the same chains, which stay where they are."""
        yield self.tables
        n, chains = len(self.readings), self.chains
        shape = (self.n_classes, self.n_values, self.labels_per_query)
        target, data, sizes = _posed(*shape, self.prior, self.readings)
        arguments = {"prior": self.prior}
        for batch in count(1):
            seed = further_seed(n, batch)
            if n == 0:
                found = draw_from_prior(seed, data, arguments, target=target, sizes=sizes)
            else:
                found = advance(seed, chains, data, arguments, False, target=target, sizes=sizes)
            chains, tables = _as_values(found)
            yield tables

    def _read(self, labels: tuple[int, ...]) -> tuple[int, ...]:
        """The labels that the model sees: for naive Bayes, the one that most workers gave."""
        if self.outcomes is not None or len(labels) == 1:
            return labels
        return (int(first_majority(np.array([labels]), self.n_values)[0].argmax()),)


def _posed(
    n_classes: int,
    n_values: int,
    labels_per_query: int,
    prior: naive_bayes.Prior | access_path.Prior,
    readings: tuple[Reading, ...],
) -> tuple[Target, Any, Any]:
    """The model of one feature, its padded observations, and their sizes."""
    slots = n_slots(len(readings))
    if isinstance(prior, naive_bayes.Prior):
        sizes = FeatureSizes(slots, n_classes, (n_values,))
        return _NAIVE_BAYES, observations(readings, slots), sizes
    data = noisy_observations(readings, slots, labels_per_query)
    return _ACCESS_PATH, data, ReadingSizes(slots, 1, n_classes, (n_values,))


def _as_values(found: tuple[Chains, dict[str, Array]]) -> tuple[Chains, DrawnTables]:
    """Chains and the tables of the only feature, as NumPy's arrays."""
    chains, kept = found
    arrays = {name: np.asarray(table[:, 0], dtype=float) for name, table in kept.items()}
    confusion = arrays["confusion"][:, 0] if "confusion" in arrays else None
    return jax.tree.map(np.asarray, chains), DrawnTables(arrays["conditional"], confusion)


def _with_even_classes(model: Any, data: Any, n_classes: int, keywords: dict[str, Any]) -> None:
    even = jnp.full(n_classes, 1 / n_classes)
    with handlers.condition(data={"prevalence": even}):
        model(data, n_classes=n_classes, **keywords)


def _naive_bayes(data: naive_bayes.Observations, *, n_classes: int, **keywords: Any) -> None:
    _with_even_classes(naive_bayes.model, data, n_classes, keywords)


def _access_path(data: access_path.Observations, *, n_classes: int, **keywords: Any) -> None:
    _with_even_classes(access_path.model, data, n_classes, keywords)


_NAIVE_BAYES = Target(_naive_bayes, read_tables)
_ACCESS_PATH = Target(_access_path, read_tables)
