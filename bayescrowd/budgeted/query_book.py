"""Queries, their answers, and what they cost.

`QueryBook` is a value: what is open, spent and reserved. Asking, answering and closing a query
return a new book. Money is spent in `QueryBook.answer` alone. Open queries reserve the price of
their missing labels, so that several can be open at a time and the budget still holds.

What users report, and which of it was reported before, is the matter of `query_log`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

__all__ = ["ROUNDING", "Event", "OpenQuery", "Query", "QueryBook"]

ROUNDING = 1e-9
"""Largest rounding error that a sum of costs may have."""


class Query(NamedTuple):
    """A question: the labels of one feature of some instance of a class."""

    feature: Hashable
    """The feature to label."""
    target: Hashable
    """Class of the instance to label."""
    n_labels: int
    """How many labels to ask for, all about the same instance."""
    id: int
    """1, 2, ... in the order of asking."""


class Event(NamedTuple):
    """One entry of a policy's log."""

    kind: Literal["asked", "told", "exhausted", "withdrawn"]
    """What happened."""
    query: Query
    """The query that it happened to."""
    answers: tuple[Hashable, ...]
    """The labels that were reported; empty unless `kind` is 'told'."""
    workers: tuple[Hashable, ...] = ()
    """Who gave each of the labels; empty if that was not reported."""


class OpenQuery(NamedTuple):
    """A query with the answers received so far."""

    query: Query
    """The query as it was asked."""
    feature: int
    """Position of its feature."""
    cls: int
    """Position of its class."""
    label_cost: float
    """Cost of one label."""
    answers: tuple[Hashable, ...]
    """The labels received so far."""
    workers: tuple[Hashable | None, ...] = ()
    """Who gave each of them; None where that was not reported."""

    @property
    def n_missing(self) -> int:
        """Number of labels still to come."""
        return self.query.n_labels - len(self.answers)


class QueryBook(NamedTuple):
    """Money, open queries and counts after some events; a value, whose arrays are read-only."""

    spent: float
    """Cost of all labels received."""
    reserved: float
    """Cost of the labels that open queries still lack."""
    n_asked: int
    """Number of queries asked so far."""
    open_queries: Mapping[int, OpenQuery]
    """The open queries by id, the oldest first."""
    available: Bool[np.ndarray, "feature cls"]
    """Whether there may be an instance of the class whose feature is not labelled yet."""
    askable: Bool[np.ndarray, " feature"]
    """Whether the feature is available for any class."""
    pending: Int[np.ndarray, "feature cls"]
    """Number of open queries."""
    observed: Int[np.ndarray, "feature cls"]
    """Number of observations: closed queries that have answers."""
    n_labels: Int[np.ndarray, " feature"]
    """Number of labels received."""

    @classmethod
    def empty(cls, n_features: int, n_classes: int) -> QueryBook:
        """The book before the first query."""
        shape = (n_features, n_classes)
        return cls(
            spent=0.0,
            reserved=0.0,
            n_asked=0,
            open_queries={},
            available=_read_only(np.ones(shape, dtype=bool)),
            askable=_read_only(np.ones(n_features, dtype=bool)),
            pending=_read_only(np.zeros(shape, dtype=np.int64)),
            observed=_read_only(np.zeros(shape, dtype=np.int64)),
            n_labels=_read_only(np.zeros(n_features, dtype=np.int64)),
        )

    def ask(self, query: OpenQuery) -> QueryBook:
        """Open a query and reserve its price."""
        return self._replace(
            reserved=self.reserved + query.label_cost * query.query.n_labels,
            n_asked=self.n_asked + 1,
            open_queries={**self.open_queries, query.query.id: query},
            pending=_add(self.pending, (query.feature, query.cls), 1),
        )

    def answer(
        self, id_: int, answers: tuple[Hashable, ...], workers: tuple[Hashable, ...] = ()
    ) -> tuple[QueryBook, OpenQuery]:
        """Pay for answers to an open query, and close it if it lacks none then.

        Returns:
            The new book, and the query with all its answers.
        """
        before = self.open_queries[id_]
        query = before._replace(
            answers=before.answers + answers,
            workers=before.workers + (workers or (None,) * len(answers)),
        )
        cost = len(answers) * query.label_cost
        book = self._replace(
            spent=self.spent + cost,
            reserved=self.reserved - cost,
            open_queries={**self.open_queries, id_: query},
            n_labels=_add(self.n_labels, query.feature, len(answers)),
        )
        return (book if query.n_missing else book.close(id_)), query

    def exhaust(self, id_: int) -> QueryBook:
        """Close a query for which there is no instance, and rule out others like it."""
        query = self.open_queries[id_]
        available = self.available.copy()
        available[query.feature, query.cls] = False
        askable = self.askable.copy()
        askable[query.feature] = available[query.feature].any()
        book = self._replace(available=_read_only(available), askable=_read_only(askable))
        return book.close(id_)

    def close(self, id_: int) -> QueryBook:
        """Close a query that gets no further answers; those that it has are an observation."""
        others = {**self.open_queries}
        query = others.pop(id_)
        pair = (query.feature, query.cls)
        return self._replace(
            reserved=self.reserved - query.n_missing * query.label_cost,
            open_queries=others,
            pending=_add(self.pending, pair, -1),
            observed=_add(self.observed, pair, 1) if query.answers else self.observed,
        )


def _add(
    counts: Int[np.ndarray, "*axis"], at: int | tuple[int, int], amount: int
) -> Int[np.ndarray, "*axis"]:
    """The counts with an amount added at one place."""
    changed = counts.copy()
    changed[at] += amount
    return _read_only(changed)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
