"""All events of a policy, and the checks of what its user reports.

Everything is checked before anything changes: a refused report changes nothing. What was reported
before is recognised, so that a caller who does not know whether a report has arrived can repeat it:

* Labels of named workers are told apart by query and worker. The same label by the same worker is
  one label however often it is reported; another one is an error.
* Labels without workers are told apart by report: the same labels, in any order, as in an earlier
  report about the query are that report again, as are exactly the labels that the query has. Two
  workers may well give equal labels, so a repeat about a query that still lacks labels is ignored
  with a warning; who reports such labels one by one has to name the workers.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from bayescrowd.budgeted.query_book import Event, Query, QueryBook
from bayescrowd.data.text import quantity
from bayescrowd.data.vocabulary import comma_list, plain

__all__ = ["QueryLog"]

Answers = tuple[Hashable, ...]


class QueryLog:
    """The events of one policy up to some moment: a value.

    `add` returns a longer log that shares the memory of this one, which stays as long as it was.

    Args:
        code_of: gives the position of a value among those of a feature, or raises a ValueError.
    """

    def __init__(self, code_of: Callable[[Hashable, Hashable], int]) -> None:
        self._code_of = code_of
        self._n_events = 0
        # Shared with other logs, whose events follow; places of a query's events by its id.
        self._shared: list[Event] = []
        self._places: dict[int, list[int]] = {}

    @property
    def events(self) -> tuple[Event, ...]:
        """The events in their order."""
        return tuple(self._shared[: self._n_events])

    def __len__(self) -> int:
        return self._n_events

    def add(self, event: Event) -> QueryLog:
        """The log with an event more, which has been checked."""
        longer = QueryLog(self._code_of)
        longer._n_events = self._n_events + 1
        if len(self._shared) == self._n_events:
            longer._shared, longer._places = self._shared, self._places
        else:  # another log went on from here, or an interrupted call did
            for earlier in self.events:
                _append(longer._shared, longer._places, earlier)
        _append(longer._shared, longer._places, event)
        return longer

    def check_answers(
        self, query: Query | int, answers: Any, workers: Any, book: QueryBook
    ) -> Event | None:
        """The event of what is new among the answers to a query; None if nothing is.

        Raises:
            ValueError: the query was never asked, the answers are impossible or too many, or they
                differ from those reported before.
        """
        known = self._find(query)
        name = f"query {known.id} ({known.feature!r} of {known.target!r})"
        reported = _as_tuple(answers)
        if not reported:
            raise ValueError(f"{name}: no answer given")
        for value in reported:
            try:
                self._code_of(known.feature, value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        told = [event for event in self._events_of(known.id) if event.kind == "told"]
        so_far = tuple(value for event in told for value in event.answers)
        is_open = known.id in book.open_queries
        event = Event("told", known, reported)
        if workers is not None:
            event = _unknown_labels(event, _names(workers, reported, name), told, name)
            if not event.answers:
                return None
        elif _is_repeat(reported, told, so_far):
            if is_open:
                _warn_of_repeat(reported, name)
            return None
        if not is_open:
            raise ValueError(
                f"{name} is closed with the answers {comma_list(so_far) or 'none'}; "
                f"got {comma_list(event.answers)}"
            )
        n_missing = known.n_labels - len(so_far)
        if len(event.answers) > n_missing:
            raise ValueError(f"{name} lacks {n_missing} labels; got {len(event.answers)}")
        return event

    def check_exhausted(self, query: Query | int, book: QueryBook) -> Event:
        """The event of a query for which there is no instance.

        Raises:
            ValueError: the query is not open, or has an answer.
        """
        known = self._find_open(query, book)
        if book.open_queries[known.id].answers:
            raise ValueError(f"query {known.id} has answers, hence an instance")
        return Event("exhausted", known, ())

    def check_withdrawn(self, query: Query | int, book: QueryBook) -> Event:
        """The event of a query that will have no further answers.

        Raises:
            ValueError: the query is not open.
        """
        return Event("withdrawn", self._find_open(query, book), ())

    def _events_of(self, id_: int) -> list[Event]:
        places = self._places.get(id_, ())
        return [self._shared[place] for place in places if place < self._n_events]

    def _find(self, query: Query | int) -> Query:
        events = self._events_of(query.id if isinstance(query, Query) else query)
        if not events or (isinstance(query, Query) and query != events[0].query):
            raise ValueError(f"query={query}: never asked; expected one that `ask` returned")
        return events[0].query

    def _find_open(self, query: Query | int, book: QueryBook) -> Query:
        known = self._find(query)
        if known.id not in book.open_queries:
            raise ValueError(f"query {known.id} is closed already")
        return known


def _append(events: list[Event], places: dict[int, list[int]], event: Event) -> None:
    # The event first: a list that is too long tells `add` that this was interrupted.
    place = len(events)
    events.append(event)
    places.setdefault(event.query.id, []).append(place)


def _unknown_labels(event: Event, names: Answers, told: list[Event], name: str) -> Event:
    """The event with those labels alone that their workers have not given before."""
    given = {
        worker: value
        for earlier in told
        for worker, value in zip(earlier.workers, earlier.answers, strict=False)
    }
    new = []
    for worker, value in zip(names, event.answers, strict=True):
        if worker not in given:
            given[worker] = value
            new.append((worker, value))
        elif given[worker] != value:
            raise ValueError(
                f"{name}: worker {worker!r} answered {given[worker]!r} before; got {value!r}"
            )
    return event._replace(
        answers=tuple(value for _, value in new), workers=tuple(worker for worker, _ in new)
    )


def _is_repeat(reported: Answers, told: list[Event], so_far: Answers) -> bool:
    """Whether these labels, without workers, were reported before."""
    labels = Counter(reported)
    reports = [event.answers for event in told if not event.workers]
    return any(labels == Counter(known) for known in (*reports, so_far))


def _warn_of_repeat(reported: Answers, name: str) -> None:
    warnings.warn(
        f"{name}: {comma_list(reported)} was reported before and is not counted again; to report "
        "equal labels of several workers, tell them all at once or name the workers",
        stacklevel=2,
    )


def _names(workers: Any, reported: Answers, name: str) -> Answers:
    names = _as_tuple(workers)
    if len(names) != len(reported):
        raise ValueError(
            f"{name}: got {quantity(len(reported), 'answer')} of "
            f"{quantity(len(names), 'worker')}; expected one worker per answer"
        )
    if None in names:
        raise ValueError(f"{name}: a worker is None; expected every worker's name, or no workers")
    return names


def _as_tuple(values: Any) -> Answers:
    """One value or several as a tuple."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        return (plain(values),)
    return tuple(plain(value) for value in values)
