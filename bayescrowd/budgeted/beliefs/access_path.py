"""Belief of the access path model: several noisy labels of a value that nobody sees.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 3 and algorithm 3. An outcome is the multiset of the W
labels of one observation, since workers share a confusion matrix per feature:

    P(multiset | y) = sum over z of theta_y[z] n! / prod m_x!  prod over x of theta_z[x]^m_x.

Information gain and predictions both use this channel alone, so neither changes when the hidden
values z are renamed. Where there would be more than `MOST_OUTCOMES` multisets, an outcome is the
multiset of the first few labels instead, as many as stay within that number: the channel of fewer
labels, which is exact as well and carries less information. (A classifier reads all labels.)

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

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import gammaln

from bayescrowd.budgeted.beliefs.naive_bayes import Estimate
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

__all__ = ["AccessPathBelief", "MultisetReader", "log_predictive", "multisets"]

N_CHAINS = 32
"""Gibbs chains of each feature."""

N_SWEEPS = 1
"""Sweeps of a feature's chains after each of its answers."""

MOST_OUTCOMES = 256
"""Most multisets of all labels; where there are more, an outcome is that of fewer labels."""

FEWEST_SLOTS, SLOT_GROWTH = 32, 8
"""Readings that a feature has room for at first, and the factor by which that room grows."""

N_BURN_IN = 100
"""Sweeps before the first one kept, where a whole table is learned at once.

Nursery with four labels in five wrong needs this many; 1,000 give the same errors."""

LARGE = 2_048
"""Number of readings above which chains are few and long instead of many and short."""

N_LONG_CHAINS = 4
"""Number of chains where readings are many; the last sweeps of each are kept."""

_BLOCK = 4_096
"""Number of rows of labels that are read at once."""


class Multisets(NamedTuple):
    """All multisets of a number of labels."""

    counts: Int[np.ndarray, "outcome value"]
    """How many labels name each value."""
    log_orders: Float[np.ndarray, " outcome"]
    """Logarithm of the number of orders in which these labels can come."""


@lru_cache(maxsize=64)
def multisets(n_values: int, n_labels: int) -> Multisets:
    """All multisets of the labels, or of the first few of them where there would be too many.

    Examples:
        >>> found = multisets(2, 3)
        >>> found.counts.tolist()
        [[3, 0], [2, 1], [1, 2], [0, 3]]
        >>> import numpy as np
        >>> np.exp(found.log_orders).round().tolist()
        [1.0, 3.0, 3.0, 1.0]
    """
    n_read = n_labels
    while n_read > 1 and comb(n_values + n_read - 1, n_read) > MOST_OUTCOMES:
        n_read -= 1
    named = np.array(list(combinations_with_replacement(range(n_values), n_read)))
    counts = (named[:, :, None] == np.arange(n_values)).sum(axis=1)
    return Multisets(counts, gammaln(n_read + 1) - gammaln(counts + 1).sum(axis=1))


def log_predictive(
    chains: Tables, counts: Int[np.ndarray, "row value"]
) -> Float[np.ndarray, "row cls"]:
    """Log P(labels | class) of labels in a given order, averaged over chains.

    Given a chain's values it is the sum over z of E theta_y[z] times the Dirichlet-multinomial
    probability of the labels.

    Args:
        chains: concentrations of one feature's tables, without padding.
        counts: how many labels of a row name each value.
    """
    conditional, confusion = chains
    mean = conditional / conditional.sum(axis=-1, keepdims=True)
    n_labels = counts.sum(axis=1)
    log_steps = _log_rising(confusion, int(counts.max(initial=0)))
    log_total = np.zeros((*confusion.shape[:2], n_labels.max(initial=0) + 1))
    log_total[..., 1:] = _log_rising(confusion.sum(axis=-1), log_total.shape[-1] - 1).cumsum(-1)
    n_chains, n_values = confusion.shape[:2]
    exceeds = counts[:, :, None] > np.arange(log_steps.shape[-1])
    log_given = log_steps.reshape(n_chains, n_values, -1) @ exceeds.reshape(len(counts), -1).T
    log_given -= log_total[..., n_labels]
    highest = log_given.max(axis=(0, 1))
    given = np.exp(log_given - highest)
    return (np.log((mean @ given).mean(axis=0)) + highest).T


def _log_rising(
    concentration: Float[np.ndarray, "*row"], n_steps: int
) -> Float[np.ndarray, "*row step"]:
    """log(a), log(a + 1), ...: their sum over n steps is log Gamma(a + n) / Gamma(a)."""
    return np.log(concentration[..., None] + np.arange(n_steps))


class MultisetReader(NamedTuple):
    """Reads any number of labels at once, whatever their order."""

    model: Tables | Mode
    """The feature's chains to average over, or its tables at the mode, without padding."""
    slots: Int[np.ndarray, " value"]
    """Slot of each value."""
    n_seen: int
    """Slots that the answers so far have shown."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class), the labels in their order; 0 where a row has none."""
        n_values = len(self.slots)
        counts = np.zeros((len(labels), n_values + 1), dtype=np.int64)
        slots = np.append(self.slots, n_values)[labels]
        np.add.at(counts, (np.arange(len(labels))[:, None], slots), 1)
        # Unseen values are exchangeable, but few chains are not quite symmetric in them.
        counts[:, self.n_seen : -1] = -np.sort(-counts[:, self.n_seen : -1], axis=1)
        distinct, inverse = np.unique(counts[:, :-1], axis=0, return_inverse=True)
        blocks = [
            self._of_counts(distinct[start : start + _BLOCK])
            for start in range(0, len(distinct), _BLOCK)
        ]
        return np.concatenate(blocks)[inverse.reshape(-1)]

    def _of_counts(self, counts: Int[np.ndarray, "row value"]) -> Float[np.ndarray, "row cls"]:
        if isinstance(self.model, Mode):
            return self.model.log_likelihood(counts)
        return log_predictive(self.model, counts)


class AccessPathBelief:
    """Posterior of the access path model given known classes, by Gibbs chains kept warm.

    Args:
        space: the features, in the policy's order; its strength is that of the prior of the values
            given the class.
        labels_per_query: number of labels of an observation (W).

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.budgeted.space import FeatureSpace
        >>> space = FeatureSpace(classes=["yes", "no"], features={"x": ["a", "b"]})
        >>> belief = AccessPathBelief(space, labels_per_query=3)
        >>> labels = np.array([[[0, 0, 0]], [[1, 1, 0]]] * 8)  # 16 rows, 1 feature, 3 labels
        >>> belief.observe_all(np.array([0, 1] * 8), labels)
        >>> belief.n_outcomes
        (4,)
        >>> belief.mean()[0].argmax(axis=1).tolist()  # of aaa, aab, abb, bbb
        [0, 2]
    """

    def __init__(self, space: FeatureSpace, labels_per_query: int) -> None:
        self._widths = space.n_values
        self._n_labels = labels_per_query
        of_feature = [multisets(v, labels_per_query) for v in self._widths]
        self.n_outcomes = tuple(len(found.counts) for found in of_feature)
        self._outcomes = Multisets(
            _pad([found.counts for found in of_feature], 0.0),
            _pad([found.log_orders for found in of_feature], -np.inf),
        )
        prior, widths = access_path.Prior(conditional=space.strength), self._widths
        conditional = access_path.conditional_concentration(
            prior, n_classes=space.n_classes, n_values=widths
        )
        confusion = access_path.confusion_concentration(prior, n_values=widths)
        self._prior = Tables(
            np.asarray(conditional, dtype=np.float32), np.asarray(confusion, dtype=np.float32)
        )
        # [feature, chain, ...]: a chain without readings is the prior itself
        self._chains = Tables(*(np.repeat(rows[:, None], N_CHAINS, axis=1) for rows in self._prior))
        self._readings = [_empty_slots(max(self._widths), FEWEST_SLOTS) for _ in self._widths]
        self._n_readings = [0 for _ in self._widths]
        self._n_seen = [0 for _ in self._widths]
        self._n_sweeps = [0 for _ in self._widths]
        self._mean = np.zeros((len(self._widths), space.n_classes, max(self.n_outcomes)))
        for f in range(len(self._widths)):
            self._refresh_mean(f)

    def observe(self, feature: int, cls: int, labels: tuple[int, ...]) -> None:
        """Add a reading and move the chains of its feature on."""
        counts = np.bincount(labels, minlength=max(self._widths))
        self._add(feature, np.array([cls]), counts[None])
        for _ in range(N_SWEEPS):
            self._keep(feature, self._sweep(feature, self._chains_of(feature)))
        self._refresh_mean(feature)

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> None:
        """Add a whole table and run the chains until they have forgotten their start."""
        width = max(self._widths)
        for f in range(len(self._widths)):
            counts = (labels[:, f, :, None] == np.arange(width)).sum(axis=1)
            is_read = counts.any(axis=1)
            if is_read.any():
                self._add(f, target[is_read], counts[is_read])
                self._settle(f)
                self._refresh_mean(f)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of tables drawn from the posterior: values of a chain, then Dirichlet rows."""
        features = np.arange(len(self._widths))
        chain = rng.integers(N_CHAINS, size=len(features))
        conditional = draw_dirichlet(rng, self._chains.conditional[features, chain])
        confusion = draw_dirichlet(rng, self._chains.confusion[features, chain])
        log_confusion = np.log(confusion + 1e-300)
        log_given = self._outcomes.counts @ log_confusion.swapaxes(1, 2)
        given_value = np.exp(log_given + self._outcomes.log_orders[..., None])
        return conditional @ given_value.swapaxes(1, 2)

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the channels."""
        return self._mean

    def rows(self, feature: int) -> list[Float[np.ndarray, "row value"]]:
        """Expected concentrations: values given each class, and labels given each value."""
        found = self._without_padding(feature)
        return [np.mean(found.conditional, axis=0), np.mean(found.confusion, axis=0)]

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: Estimate
    ) -> MultisetReader:
        """A reader of labels by their posterior predictive probability or at the mode."""
        model = self._mode(feature) if estimate == "map" else self._without_padding(feature)
        return MultisetReader(model, slots, self._n_seen[feature])

    def _mode(self, feature: int) -> Mode:
        v = self._widths[feature]
        (target, counts), n_equal = self._groups(feature)
        groups = Groups(FeatureReadings(target, counts[:, :v]), n_equal)
        conditional, confusion = self._prior_of(feature)
        prior = Tables(conditional[:, :v], confusion[:v, :v])
        return posterior_mode(self._without_padding(feature), groups, prior)

    def _groups(self, feature: int) -> Groups:
        n = self._n_readings[feature]
        target, counts = self._readings[feature]
        return group_readings(FeatureReadings(target[:n], counts[:n]))

    def _without_padding(self, feature: int) -> Tables:
        v = self._widths[feature]
        conditional, confusion = self._chains_of(feature)
        return Tables(conditional[:, :, :v].astype(float), confusion[:, :v, :v].astype(float))

    def _chains_of(self, feature: int) -> Tables:
        return Tables(self._chains.conditional[feature], self._chains.confusion[feature])

    def _prior_of(self, feature: int) -> Tables:
        return Tables(self._prior.conditional[feature], self._prior.confusion[feature])

    def _refresh_mean(self, feature: int) -> None:
        counts, log_orders = multisets(self._widths[feature], self._n_labels)
        log_channel = log_predictive(self._without_padding(feature), counts) + log_orders[:, None]
        self._mean[feature, :, : len(counts)] = np.exp(log_channel).T

    def _add(
        self, feature: int, cls: Int[np.ndarray, " row"], counts: Int[np.ndarray, "row value"]
    ) -> None:
        start, stop = self._n_readings[feature], self._n_readings[feature] + len(cls)
        readings = self._readings[feature]
        if stop > len(readings.target):
            readings = _grow(readings, _n_slots(stop, len(readings.target)))
        readings.target[start:stop] = cls
        readings.counts[start:stop] = counts
        self._readings[feature] = readings
        self._n_readings[feature] = stop
        n_shown = 1 + int(np.flatnonzero(counts.any(axis=0)).max(initial=-1))
        self._n_seen[feature] = max(self._n_seen[feature], n_shown)

    def _sweep(self, feature: int, chains: Tables) -> Tables:
        """The chains after one more sweep."""
        self._n_sweeps[feature] += 1
        seed, readings = self._n_sweeps[feature], self._readings[feature]
        found = _sweep_from_seed(seed, chains, readings, self._prior_of(feature))
        return Tables(*map(np.asarray, found))

    def _keep(self, feature: int, chains: Tables, start: int = 0) -> None:
        for kept, rows in zip(self._chains, chains, strict=True):
            kept[feature, start : start + len(rows)] = rows

    def _settle(self, feature: int) -> None:
        """Run the chains from where they are until they have forgotten it."""
        groups, rng = self._groups(feature), np.random.default_rng(self._n_readings[feature])
        prior = self._prior_of(feature)
        is_large = self._n_readings[feature] > LARGE
        n_chains = N_LONG_CHAINS if is_large else N_CHAINS
        chains = Tables(*(rows[:n_chains] for rows in self._chains_of(feature)))
        for _ in range(N_BURN_IN):
            chains = sweep_groups(rng, chains, groups, prior)
        for start in range(0, N_CHAINS, n_chains):
            chains = sweep_groups(rng, chains, groups, prior)
            self._keep(feature, chains, start)


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
    """Room for more readings; sizes are few, since each is compiled, with few slots empty.

    After a whole table at most a quarter of the slots are empty.
    """
    if n_readings <= SLOT_GROWTH * n_before:
        return SLOT_GROWTH * n_before
    step = 2 ** (n_readings.bit_length() - 3)
    return -(-n_readings // step) * step


def _grow(readings: FeatureReadings, n_slots: int) -> FeatureReadings:
    """The same readings followed by empty slots."""
    more = _empty_slots(readings.counts.shape[1], n_slots)
    for empty, field in zip(more, readings, strict=True):
        empty[: len(field)] = field
    return more


def _pad(tables: list[np.ndarray], value: float) -> np.ndarray:
    """Stack tables of different sizes, filling them up with a value."""
    shape = np.max([table.shape for table in tables], axis=0)
    stacked = np.full((len(tables), *shape), value)
    for into, table in zip(stacked, tables, strict=True):
        into[tuple(map(slice, table.shape))] = table
    return stacked
