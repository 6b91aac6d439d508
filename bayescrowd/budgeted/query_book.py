"""The books of a policy: what was asked, what was answered, what was paid.

Money moves in `Ledger.tell` alone. Open queries reserve what their missing labels will cost, so
that several can be open at a time and the budget still holds. Everything is checked before
anything is written: a refused answer changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.data.vocabulary import comma_list, plain

__all__ = ["Entry", "Event", "Ledger", "Query"]

ROUNDING = 1e-9
"""By how much sums of costs may be off."""


class Query(NamedTuple):
    """A question: the labels of one feature on some instance of a class."""

    feature: Hashable
    """The feature to label."""
    target: Hashable
    """Class of the instance to label it on."""
    n_labels: int
    """How many labels to ask for, all about the same instance."""
    id: int
    """1, 2, ... in the order of asking."""


class Event(NamedTuple):
    """A line of a policy's journal."""

    kind: Literal["asked", "told", "exhausted", "withdrawn"]
    """What happened."""
    query: Query
    """The query that it happened to."""
    answers: tuple[Hashable, ...]
    """The labels told; empty for the other kinds."""


class Entry(NamedTuple):
    """A query in the books."""

    query: Query
    """The query as it was asked."""
    feature: int
    """Position of its feature."""
    cls: int
    """Position of its class."""
    answers: list[Hashable]
    """The labels told so far."""


class Ledger:
    """Queries and money of one policy; positions are those of `space`.

    Args:
        space: the policy's space.
        budget: what may be spent.
        labels_per_query: labels of each query.
    """

    def __init__(self, space: FeatureSpace, budget: float, labels_per_query: int) -> None:
        self.space = space
        self.budget = budget
        self.labels_per_query = labels_per_query
        self.label_costs = space.label_costs()
        self.prices = self.label_costs * labels_per_query
        self.spent = 0.0
        self.reserved = 0.0
        self.events: list[Event] = []
        self.open: dict[int, Entry] = {}
        self.closed: dict[int, Entry] = {}
        shape = (len(self.prices), space.n_classes)
        self.available: Bool[np.ndarray, "feature cls"] = np.ones(shape, dtype=bool)
        self.pending: Int[np.ndarray, "feature cls"] = np.zeros(shape, dtype=np.int64)
        self.observed: Int[np.ndarray, "feature cls"] = np.zeros(shape, dtype=np.int64)
        self.labels: Int[np.ndarray, " feature"] = np.zeros(shape[0], dtype=np.int64)
        self._askable: Bool[np.ndarray, " feature"] = np.ones(shape[0], dtype=bool)
        self._positions = {name: f for f, name in enumerate(space.features)}
        self._class_positions = {name: y for y, name in enumerate(space.classes)}
        self._n_asked = 0

    @property
    def left(self) -> float:
        """Budget not spent yet."""
        return self.budget - self.spent

    def askable(self) -> Bool[np.ndarray, " feature"]:
        """Which features have an instance left."""
        return self._askable

    def affordable(self) -> Bool[np.ndarray, " feature"]:
        """Which features' queries can be paid from what is neither spent nor reserved."""
        return self.prices <= self.left - self.reserved + ROUNDING

    def ask(self, feature: int, cls: int) -> Query:
        """Open a query."""
        self._n_asked += 1
        query = Query(
            feature=self.space.names[feature],
            target=self.space.classes[cls],
            n_labels=self.labels_per_query,
            id=self._n_asked,
        )
        self.open[query.id] = Entry(query, feature, cls, [])
        self.reserved += self.prices[feature]
        self.pending[feature, cls] += 1
        self.events.append(Event("asked", query, ()))
        return query

    def tell(self, query: Query | int, answers: Any) -> tuple[Entry, bool] | None:
        """Record labels and pay for them.

        Returns:
            The entry and whether it is complete now; None if the labels were told before.

        Raises:
            ValueError: the query was never asked, or an answer is impossible, superfluous or
                another than the one told before.
        """
        told = _as_answers(answers)
        entry = self._find(query)
        name = f"query {entry.query.id} ({entry.query.feature!r} of {entry.query.target!r})"
        if entry.query.id in self.closed:
            if Counter(told) == Counter(entry.answers):
                return None
            raise ValueError(
                f"{name} is closed with the answers {comma_list(entry.answers) or 'none'}; "
                f"got {comma_list(told)}"
            )
        if not told:
            raise ValueError(f"{name}: no answer given")
        n_missing = entry.query.n_labels - len(entry.answers)
        if len(told) > n_missing:
            raise ValueError(f"{name} lacks {n_missing} labels; got {len(told)}")
        for value in told:
            try:
                self.space.code_of(entry.query.feature, value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        entry.answers.extend(told)
        cost = len(told) * float(self.label_costs[entry.feature])
        self.spent += cost
        self.reserved -= cost
        self.labels[entry.feature] += len(told)
        self.events.append(Event("told", entry.query, told))
        is_complete = len(told) == n_missing
        if is_complete:
            self._close(entry)
            self.observed[entry.feature, entry.cls] += 1
        return entry, is_complete

    def exhaust(self, query: Query | int) -> Entry:
        """Close a query for which there is no instance, and ask for none like it again."""
        entry = self._still_open(query)
        if entry.answers:
            raise ValueError(f"query {entry.query.id} has answers, hence an instance")
        self.available[entry.feature, entry.cls] = False
        self._askable[entry.feature] = self.available[entry.feature].any()
        self._close(entry)
        self.events.append(Event("exhausted", entry.query, ()))
        return entry

    def withdraw(self, query: Query | int) -> Entry:
        """Close a query that will have no further answers; what was told stays."""
        entry = self._still_open(query)
        self._close(entry)
        self.observed[entry.feature, entry.cls] += bool(entry.answers)
        self.events.append(Event("withdrawn", entry.query, ()))
        return entry

    def forget(self, query: Query) -> None:
        """Take back the query asked last, as if it had not been."""
        entry = self.open[query.id]
        self._close(entry)
        del self.closed[query.id]
        self.events.pop()
        self._n_asked -= 1

    def position(self, query: Query) -> tuple[int, int]:
        """Positions of a query's feature and class."""
        return self._positions[query.feature], self._class_positions[query.target]

    def costs_by_feature(self) -> Float[np.ndarray, " feature"]:
        """What was paid for each feature."""
        return self.labels * self.label_costs

    def _find(self, query: Query | int) -> Entry:
        id_ = query.id if isinstance(query, Query) else query
        entry = self.open.get(id_) or self.closed.get(id_)
        if entry is None or (isinstance(query, Query) and query != entry.query):
            raise ValueError(f"query={query}: never asked; expected one that `ask` returned")
        return entry

    def _still_open(self, query: Query | int) -> Entry:
        entry = self._find(query)
        if entry.query.id in self.closed:
            raise ValueError(f"query {entry.query.id} is closed already")
        return entry

    def _close(self, entry: Entry) -> None:
        n_missing = entry.query.n_labels - len(entry.answers)
        self.reserved -= n_missing * float(self.label_costs[entry.feature])
        self.pending[entry.feature, entry.cls] -= 1
        del self.open[entry.query.id]
        self.closed[entry.query.id] = entry


def _as_answers(answers: Any) -> tuple[Hashable, ...]:
    """One answer or several as a tuple."""
    if isinstance(answers, str) or not hasattr(answers, "__iter__"):
        return (plain(answers),)
    return tuple(plain(value) for value in answers)
