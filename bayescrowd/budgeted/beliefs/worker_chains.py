"""Belief of the access path model in which workers with enough answers have their own parameters.

The extension that B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), HCOMP, name: worker j's
confusion matrix theta_zij is their own. A worker with `FEWEST_LABELS` labels of a feature has rows
of their own for that feature, partially pooled toward the shared ones; all other labels are by the
shared rows (`access_path.Prior.pooling`). Features thus stay independent a posteriori.

* What to buy is decided with the shared matrix alone: who will answer is not known.
* A label whose worker is known to have a matrix of their own is read by that matrix. Tables are
  drawn from each chain `N_TABLES` times for it, since there is no closed form as for the shared
  matrix.

Until a worker has enough labels of a feature, its chains are those of `access_path`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from bayescrowd.budgeted.beliefs.access_path import (
    N_BURN_IN,
    N_SWEEPS,
    RIGHT,
    AccessPathBelief,
    FeatureChains,
)
from bayescrowd.budgeted.beliefs.naive_bayes import PointEstimate, Reader
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.access_path_sweep import LEAST, FeatureReadings, Tables
from bayescrowd.posterior.conditionals.access_path_workers import (
    PooledTables,
    draw_groups,
    sweep_pooled,
)

__all__ = ["FEWEST_LABELS", "POOLING", "WorkerChains", "WorkerPathBelief", "WorkerReader"]

FEWEST_LABELS = 5
"""Number of labels of a feature from which on a worker has their own rows for it."""

POOLING = 8.0
"""Pseudo-labels of a row with which workers' own rows are drawn toward the shared ones."""

N_TABLES = 4
"""Number of tables drawn from each chain to read labels of workers with their own rows."""

FEWEST_GROUPS, GROUP_GROWTH = 4, 4
"""Number of workers with own rows that there is room for at first, and the factor of growth."""

_BLOCK = 1_024
"""Number of rows of labels that are read at once."""


class WorkerPathBelief(AccessPathBelief):
    """Posterior of the access path model in which workers have partially pooled rows of their own.

    Args:
        space: the features, in the policy's order; its strength is that of the prior of the values
            given the class.
        labels_per_query: number of labels of an observation (W).
        prior: prior of the shared rows; its `pooling` is `POOLING` if None.
    """

    def __init__(
        self,
        space: FeatureSpace,
        labels_per_query: int,
        prior: access_path.Prior = RIGHT,
    ) -> None:
        super().__init__(space, labels_per_query, prior)
        pooling = POOLING if prior.pooling is None else float(prior.pooling)
        self.features = tuple(
            WorkerChains.of(chains, pooling, labels_per_query) for chains in self.features
        )


class NamedLabels(NamedTuple):
    """Labels whose workers are known."""

    reading: Int[np.ndarray, " label"]
    """Number of the reading that the label is about."""
    worker: Int[np.ndarray, " label"]
    """Code of the worker."""
    label: Int[np.ndarray, " label"]
    """Slot of the value that the worker named."""


@dataclass(frozen=True, eq=False)
class WorkerChains(FeatureChains):
    """The Gibbs chains of one feature, with rows of some workers' own.

    Args:
        pooling: pseudo-labels with which these workers' rows are drawn toward the shared ones.
        labels_per_query: largest number of labels of a reading (W).
        named: the labels whose workers are known.
        groups: group of each worker with own rows, 1, 2, ..., by code; 0 is everybody else's.
        own: labels of these groups by chain, followed by empty groups.
    """

    pooling: float
    labels_per_query: int
    named: NamedLabels
    groups: Mapping[int, int]
    own: Float[np.ndarray, "chain group value value"]

    @classmethod
    def of(cls, chains: FeatureChains, pooling: float, labels_per_query: int) -> WorkerChains:
        """Chains none of whose labels has a known worker."""
        nothing = np.zeros(0, dtype=np.int64)
        n_chains, width, _ = chains.chains.confusion.shape
        return cls(
            **{field.name: getattr(chains, field.name) for field in fields(FeatureChains)},
            pooling=pooling,
            labels_per_query=labels_per_query,
            named=NamedLabels(nothing, nothing, nothing),
            groups={},
            own=np.zeros((n_chains, 0, width, width), dtype=np.float32),
        )

    def observe(
        self, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> WorkerChains:
        """The chains with one more reading, moved on."""
        counts = np.bincount(labels, minlength=self.readings.counts.shape[1])
        chains = self.add(np.array([cls]), counts[None]).add_workers(labels, workers)
        for _ in range(N_SWEEPS):
            chains = chains.sweep()
        return chains

    def add_workers(self, labels: tuple[int, ...], workers: tuple[int, ...]) -> WorkerChains:
        """The same chains, knowing who gave the labels of the last reading; -1 is nobody known."""
        new = [pair for pair in zip(workers, labels, strict=False) if pair[0] >= 0]
        if not new:
            return self
        added = NamedLabels(np.full(len(new), self.n_readings - 1), *np.array(new).T)
        named = NamedLabels(*map(np.append, self.named, added))
        n_given = Counter(named.worker.tolist())
        groups = dict(self.groups)
        for worker in dict.fromkeys(worker for worker, _ in new):
            if worker not in groups and n_given[worker] >= FEWEST_LABELS:
                groups[worker] = len(groups) + 1
        n_before = self.own.shape[1]
        room = max(n_before, FEWEST_GROUPS if groups else 0)
        while room < len(groups):
            room *= GROUP_GROWTH
        padding = ((0, 0), (0, room - n_before), (0, 0), (0, 0))
        return replace(self, named=named, groups=groups, own=np.pad(self.own, padding))

    def sweep(self) -> WorkerChains:
        """The chains after one more sweep."""
        if not self.groups:
            return super().sweep()
        seed = self.n_sweeps + 1
        readings = FeatureReadings(self.readings.target, self.counts_by_group)
        found = _sweep_from_seed(
            seed,
            PooledTables(self.chains, self.own),
            readings,
            self.prior,
            self.pooling,
            n_labels=len(readings.target) * self.labels_per_query,
        )
        chains, own = jax.tree.map(np.asarray, found)
        return replace(self, chains=chains, own=own, n_sweeps=seed)

    def settle(self) -> FeatureChains:
        """The chains run on until they have forgotten where they were."""
        if not self.groups:
            return super().settle()
        chains = self
        for _ in range(N_BURN_IN):
            chains = chains.sweep()
        return chains

    def _states(self, rng: np.random.Generator) -> Iterator[Tables]:
        """The chains as they are, then as they would be after each further sweep."""
        if not self.groups:
            yield from super()._states(rng)
        chains = self
        while True:
            yield chains.tables
            chains = chains.sweep()

    @cached_property
    def counts_by_group(self) -> Float[np.ndarray, "reading column"]:
        """Labels of each reading, [reading, group * value], those of the first group first."""
        n_slots, width = self.readings.counts.shape
        counts = np.zeros((n_slots, 1 + self.own.shape[1], width), dtype=np.float32)
        counts[:, 0] = self.readings.counts
        group = np.array([self.groups.get(w, 0) for w in self.named.worker.tolist()], dtype=int)
        reading, _, label = self.named
        np.add.at(counts, (reading, group, label), 1)
        np.subtract.at(counts, (reading, np.zeros_like(label), label), 1)
        return counts.reshape(n_slots, -1)

    def reader(self, slots: Int[np.ndarray, " value"], estimate: PointEstimate) -> Reader:
        """A reader of labels by their posterior predictive probability, or at the mode."""
        shared = super().reader(slots, estimate)
        if not self.groups:
            return shared
        if estimate == "map":
            raise ValueError(
                "estimate='map': the mode is known for matrices that all workers share; expected "
                "'mean' where workers have their own"
            )
        v = self.outcomes.counts.shape[1]
        tables = [self._draw_tables(seed) for seed in range(N_TABLES)]
        log_conditional, log_groups = map(np.concatenate, zip(*tables, strict=True))
        log_groups = log_groups[..., :v, :v][..., slots]
        return WorkerReader(shared, self.groups, log_conditional, log_groups)

    def _draw_tables(
        self, seed: int
    ) -> tuple[Float[np.ndarray, "chain cls value"], Float[np.ndarray, "chain group value value"]]:
        """Logarithms of E theta_y of each chain and of the groups' rows, drawn once."""
        rng = np.random.default_rng([seed, self.n_sweeps])
        conditional = self.tables.conditional
        mean = conditional / conditional.sum(axis=-1, keepdims=True)
        state = PooledTables(Tables(*(rows.astype(float) for rows in self.chains)), self.own)
        return np.log(mean), np.log(draw_groups(rng, state, self.pooling) + LEAST)


@partial(jax.jit, static_argnames="n_labels")
def _sweep_from_seed(seed: int | Int[Array, ""], *arguments: Any, n_labels: int) -> PooledTables:
    return sweep_pooled(jax.random.key(seed), *arguments, n_labels=n_labels)


class WorkerReader(NamedTuple):
    """Reads labels by their workers' own matrices, where there are such, or by the shared one."""

    shared: Reader
    """Reads labels of workers without own rows."""
    groups: Mapping[int, int]
    """Group of each worker with own rows, by code."""
    log_conditional: Float[np.ndarray, "draw cls hidden"]
    """Log P(hidden value | class)."""
    log_groups: Float[np.ndarray, "draw group hidden value"]
    """Log P(label | hidden value), the first group's being the shared matrices."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) of unknown workers, the labels in their order; 0 without labels."""
        return self.shared.log_likelihood(labels)

    def of_workers(
        self, labels: Int[np.ndarray, "row label"], workers: Int[np.ndarray, "row label"]
    ) -> Float[np.ndarray, "row cls"]:
        """The same of labels by these workers; -1 is a worker who is not known."""
        said = self.log_likelihood(labels)
        known = np.zeros(1 + max(workers.max(initial=-1), *self.groups) + 1, dtype=int)
        known[[*self.groups]] = [*self.groups.values()]
        group = np.where(labels >= 0, known[workers], 0)  # the last place is for -1
        rows = np.flatnonzero(group.any(axis=1))
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            said[block] = self._read(labels[block], group[block])
        return said

    def _read(
        self, labels: Int[np.ndarray, "row label"], group: Int[np.ndarray, "row label"]
    ) -> Float[np.ndarray, "row cls"]:
        by_place = np.moveaxis(self.log_groups, 2, 0)
        log_given = sum(
            np.where(labels[:, i] >= 0, by_place[:, :, group[:, i], labels[:, i]], 0.0)
            for i in range(labels.shape[1])
        )
        given = np.moveaxis(np.asarray(log_given), 0, -1)  # draw, row, hidden
        highest = given.max(axis=(0, 2), keepdims=True)
        shares = np.exp(given - highest) @ np.exp(self.log_conditional).swapaxes(1, 2)
        return np.log(shares.mean(axis=0) + LEAST) + highest[0]
