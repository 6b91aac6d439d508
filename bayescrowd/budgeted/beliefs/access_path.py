"""Belief of the access path model: several noisy labels of a value that nobody sees.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 3 and algorithm 3. An outcome is the multiset of the W
labels of one observation (`label_multisets`). Information gain and predictions both use its channel
alone, so neither changes when the hidden values z are renamed.

Classes are known, so the features are independent a posteriori: an answer changes the posterior of
its feature alone. `N_CHAINS` Gibbs chains of each feature are kept warm, and an answer moves the
chains of its own feature by `N_SWEEPS` sweeps (`sweep_chains` of the model's conditionals); the
others remain draws from their posteriors. A chain is kept as Dirichlet concentrations: the prior's,
plus counts of the values that it gives to the readings. Therefore

* a draw picks a chain for each feature and draws its tables anew: every draw has new tables of all
  features, as after a full sweep, and an answer costs nothing for the other features;
* the mean of a channel given the values has a closed form, E theta times a Dirichlet-multinomial,
  and only the values are averaged over chains. Neither theta_y nor theta_z is averaged by itself.

A whole table is learned at once by longer runs of chains in which equal readings count together
(`sweep_groups`).

The chains' seeds are the numbers of their sweeps: the same readings give the same belief.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from bayescrowd.budgeted.beliefs.access_path_credibility import joint_credibility
from bayescrowd.budgeted.beliefs.credibility import Credibility, Measure
from bayescrowd.budgeted.beliefs.label_multisets import (
    MultisetReader,
    Multisets,
    log_predictive,
    multisets,
)
from bayescrowd.budgeted.beliefs.naive_bayes import PointEstimate, Reader
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.access_path_feature import (
    Groups,
    Mode,
    draw_dirichlet,
    group_readings,
    posterior_mode,
    sweep_chains,
    sweep_groups,
)
from bayescrowd.posterior.conditionals.access_path_sweep import FeatureReadings, Tables

__all__ = ["AccessPathBelief", "FeatureChains"]

N_CHAINS = 32
"""Number of Gibbs chains of each feature."""

N_SWEEPS = 1
"""Number of sweeps of a feature's chains after each of its answers."""

FEWEST_SLOTS, SLOT_GROWTH = 32, 8
"""Number of readings that a feature has room for at first, and the factor by which it grows."""

N_BURN_IN = 100
"""Number of sweeps before the first one kept, when a whole table is learned at once.

Nursery with four labels in five wrong needs this many; 1,000 give the same errors."""

LARGE = 2_048
"""Number of readings above which chains are few and long instead of many and short."""

N_LONG_CHAINS = 4
"""Number of chains if readings are many; the last sweeps of each are kept."""


RIGHT = access_path.Prior()
"""The prior under which workers are more often right than wrong."""

# beartype knows `typing.Self` only where it decorates whole classes.
Chains = TypeVar("Chains", bound="FeatureChains")


class AccessPathBelief:
    """Posterior of the access path model given known classes, by Gibbs chains kept warm.

    Args:
        space: the features, in the policy's order; its strength is that of the prior of the values
            given the class.
        labels_per_query: number of labels of an observation (W).
        prior: prior of the rows of the confusion matrices.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.budgeted.space import FeatureSpace
        >>> space = FeatureSpace(classes=["yes", "no"], features={"x": ["a", "b"]})
        >>> labels = np.array([[[0, 0, 0]], [[1, 1, 0]]] * 8)  # 16 rows, 1 feature, 3 labels
        >>> belief = AccessPathBelief(space, labels_per_query=3)
        >>> belief = belief.observe_all(np.array([0, 1] * 8), labels)
        >>> belief.n_outcomes
        (4,)
        >>> belief.mean()[0].argmax(axis=1).tolist()  # of aaa, aab, abb, bbb
        [0, 2]
    """

    def __init__(
        self,
        space: FeatureSpace,
        labels_per_query: int,
        prior: access_path.Prior = RIGHT,
    ) -> None:
        outcomes = [multisets(v, labels_per_query) for v in space.n_values]
        self.n_outcomes = tuple(len(found.counts) for found in outcomes)
        self._outcomes = Multisets(
            _pad([found.counts for found in outcomes], 0.0),
            _pad([found.log_orders for found in outcomes], -np.inf),
        )
        prior, widths = prior._replace(conditional=space.strength), space.n_values
        conditional = np.asarray(
            access_path.conditional_concentration(
                prior, n_classes=space.n_classes, n_values=widths
            ),
            dtype=np.float32,
        )
        confusion = np.asarray(
            access_path.confusion_concentration(prior, n_values=widths), dtype=np.float32
        )
        self.features = tuple(
            FeatureChains.before_readings(Tables(conditional[f], confusion[f]), found)
            for f, found in enumerate(outcomes)
        )
        """The chains of each feature."""
        self._mean: Float[np.ndarray, "feature cls outcome"] | None = None

    def observe(
        self, feature: int, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> AccessPathBelief:
        """The belief with a reading added and the chains of its feature moved on."""
        changed = self.features[feature].observe(cls, labels, workers)
        return self._copy_with((*self.features[:feature], changed, *self.features[feature + 1 :]))

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> AccessPathBelief:
        """The belief with a whole table added and all chains run until they forget their start."""
        return self._copy_with(
            tuple(
                chains.observe_all(target, labels[:, f]) for f, chains in enumerate(self.features)
            )
        )

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of tables drawn from the posterior: values of a chain, then Dirichlet rows."""
        picked = rng.integers(N_CHAINS, size=len(self.features)).tolist()
        pairs = list(zip(self.features, picked, strict=True))
        conditionals = np.stack([of.chains.conditional[chain] for of, chain in pairs])
        confusions = np.stack([of.chains.confusion[chain] for of, chain in pairs])
        conditional = draw_dirichlet(rng, conditionals)
        confusion = draw_dirichlet(rng, confusions)
        log_confusion = np.log(confusion + 1e-300)
        log_given = self._outcomes.counts @ log_confusion.swapaxes(1, 2)
        given_value = np.exp(log_given + self._outcomes.log_orders[..., None])
        return conditional @ given_value.swapaxes(1, 2)

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the channels."""
        if self._mean is None:
            self._mean = _pad([chains.channel for chains in self.features], 0.0)
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
        """Mass near the means under the joint posterior; see `access_path_credibility`."""
        return self.features[feature].credibility(
            prior, epsilon=epsilon, measure=measure, required=required
        )

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: PointEstimate
    ) -> Reader:
        """A reader of labels by their posterior predictive probability, or at the mode."""
        return self.features[feature].reader(slots, estimate)

    def _copy_with(self, features: tuple[FeatureChains, ...]) -> AccessPathBelief:
        belief = copy(self)
        belief.features = features
        belief._mean = None
        return belief


@dataclass(frozen=True, eq=False)
class FeatureChains:
    """The Gibbs chains of one feature, as a value. Tables are padded to the widest feature.

    Args:
        outcomes: the multisets of the feature's labels.
        prior: concentrations of the tables before any reading.
        chains: concentrations of the tables by chain; without readings they are the prior's.
        readings: class and counts of labels of each reading, then empty slots.
        n_readings: number of readings.
        n_seen: number of slots that the readings have shown.
        n_sweeps: number of sweeps so far.
    """

    outcomes: Multisets
    prior: Tables
    chains: Tables
    readings: FeatureReadings
    n_readings: int
    n_seen: int
    n_sweeps: int

    @classmethod
    def before_readings(cls, prior: Tables, outcomes: Multisets) -> FeatureChains:
        """The chains before the first reading."""
        return cls(
            outcomes=outcomes,
            prior=prior,
            chains=Tables(*(np.repeat(rows[None], N_CHAINS, axis=0) for rows in prior)),
            readings=_empty_slots(prior.conditional.shape[1], FEWEST_SLOTS),
            n_readings=0,
            n_seen=0,
            n_sweeps=0,
        )

    @cached_property
    def tables(self) -> Tables:
        """Concentrations by chain, without padding."""
        v = self.outcomes.counts.shape[1]
        conditional, confusion = self.chains
        return Tables(conditional[:, :, :v].astype(float), confusion[:, :v, :v].astype(float))

    @cached_property
    def channel(self) -> Float[np.ndarray, "cls outcome"]:
        """Posterior mean of P(outcome | class)."""
        counts, log_orders = self.outcomes
        return np.exp(log_predictive(self.tables, counts) + log_orders[:, None]).T

    def credibility(
        self,
        class_prior: Float[np.ndarray, " cls"],
        *,
        epsilon: float,
        measure: Measure,
        required: tuple[float, float] | None = None,
    ) -> Credibility:
        """How well both tables are known; the chains themselves stay where they are."""
        rng = np.random.default_rng([self.n_readings, self.n_sweeps])
        return joint_credibility(
            rng,
            self._states(rng),
            class_prior,
            epsilon=epsilon,
            measure=measure,
            required=required,
        )

    def reader(self, slots: Int[np.ndarray, " value"], estimate: PointEstimate) -> Reader:
        """A reader of labels by their posterior predictive probability, or at the mode."""
        model = self.mode() if estimate == "map" else self.tables
        return MultisetReader(model, slots, self.n_seen)

    def mode(self) -> Mode:
        """The tables at the posterior mode that is nearest to the chains."""
        return posterior_mode(self.tables, *self._unpadded())

    def observe(
        self, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> FeatureChains:
        """The chains with one more reading, moved on; all workers are alike."""
        counts = np.bincount(labels, minlength=self.readings.counts.shape[1])
        chains = self.add(np.array([cls]), counts[None])
        for _ in range(N_SWEEPS):
            chains = chains.sweep()
        return chains

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row label"]
    ) -> FeatureChains:
        """The chains with a whole table of readings, run until they have forgotten their start."""
        values = np.arange(self.readings.counts.shape[1])
        counts = (labels[:, :, None] == values).sum(axis=1)
        is_read = counts.any(axis=1)
        if not is_read.any():
            return self
        return self.add(target[is_read], counts[is_read]).settle()

    def add(
        self: Chains, cls: Int[np.ndarray, " row"], counts: Int[np.ndarray, "row value"]
    ) -> Chains:
        """The same chains with more readings, which they have not seen yet."""
        start, stop = self.n_readings, self.n_readings + len(cls)
        n_slots = len(self.readings.target)
        if stop > n_slots:
            n_slots = _n_slots(stop, n_slots)
        readings = _copy_readings(self.readings, n_slots)
        readings.target[start:stop] = cls
        readings.counts[start:stop] = counts
        n_shown = 1 + int(np.flatnonzero(counts.any(axis=0)).max(initial=-1))
        return replace(self, readings=readings, n_readings=stop, n_seen=max(self.n_seen, n_shown))

    def sweep(self: Chains) -> Chains:
        """The chains after one more sweep."""
        seed = self.n_sweeps + 1
        found = _sweep_from_seed(seed, self.chains, self.readings, self.prior)
        return replace(self, chains=Tables(*map(np.asarray, found)), n_sweeps=seed)

    def settle(self) -> FeatureChains:
        """The chains run on until they have forgotten where they were."""
        groups, rng = self._groups(), np.random.default_rng(self.n_readings)
        n_chains = N_LONG_CHAINS if self.n_readings > LARGE else N_CHAINS
        chains = Tables(*(rows[:n_chains] for rows in self.chains))
        for _ in range(N_BURN_IN):
            chains = sweep_groups(rng, chains, groups, self.prior)
        kept = []
        for _ in range(0, N_CHAINS, n_chains):
            chains = sweep_groups(rng, chains, groups, self.prior)
            kept.append(chains)
        parts = zip(*kept, strict=True)
        return replace(
            self, chains=Tables(*(np.concatenate(rows).astype(np.float32) for rows in parts))
        )

    def _states(self, rng: np.random.Generator) -> Iterator[Tables]:
        """The chains as they are, then as they would be after each further sweep."""
        chains = self.tables
        yield chains
        groups, prior = self._unpadded()
        while True:
            chains = sweep_groups(rng, chains, groups, prior)
            yield chains

    def _unpadded(self) -> tuple[Groups, Tables]:
        """The readings and the prior without padding."""
        v = self.outcomes.counts.shape[1]
        (target, counts), n_equal = self._groups()
        conditional, confusion = self.prior
        prior = Tables(conditional[:, :v].astype(float), confusion[:v, :v].astype(float))
        return Groups(FeatureReadings(target, counts[:, :v]), n_equal), prior

    def _groups(self) -> Groups:
        n = self.n_readings
        target, counts = self.readings
        return group_readings(FeatureReadings(target[:n], counts[:n]))


@jax.jit
def _sweep_from_seed(
    seed: int | Int[Array, ""], chains: Tables, readings: FeatureReadings, prior: Tables
) -> Tables:
    return sweep_chains(jax.random.key(seed), chains, readings, prior)


def _empty_slots(n_values: int, n_slots: int) -> FeatureReadings:
    return FeatureReadings(
        target=np.full(n_slots, -1, dtype=np.int32),
        counts=np.zeros((n_slots, n_values), dtype=np.float32),
    )


def _n_slots(n_readings: int, n_before: int) -> int:
    """Room for more readings: few different sizes, since each is compiled, and few empty slots.

    After a whole table at most a quarter of the slots are empty.
    """
    if n_readings <= SLOT_GROWTH * n_before:
        return SLOT_GROWTH * n_before
    step = 2 ** (n_readings.bit_length() - 3)
    return -(-n_readings // step) * step


def _copy_readings(readings: FeatureReadings, n_slots: int) -> FeatureReadings:
    """A copy of the readings, followed by empty slots."""
    copied = _empty_slots(readings.counts.shape[1], n_slots)
    for field, rows in zip(copied, readings, strict=True):
        field[: len(rows)] = rows
    return copied


def _pad(tables: list[np.ndarray], value: float) -> np.ndarray:
    """Tables of different sizes in one array, filled up with a value."""
    shape = np.max([table.shape for table in tables], axis=0)
    stacked = np.full((len(tables), *shape), value)
    for into, table in zip(stacked, tables, strict=True):
        into[tuple(map(slice, table.shape))] = table
    return stacked
