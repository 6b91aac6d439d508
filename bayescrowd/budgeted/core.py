"""The pure half of a policy: `choose(rng, state) -> Decision`, `tell(state, event) -> State`.

A `Core` holds the arguments of a policy and no state. It never changes its arguments, except that
it draws from the generator it is given; `decide` makes that generator from the position in the
state. A policy is then run, or run again from a log of its events, by three functions:

    state = core.begin(belief, position)
    state = core.follow(state, core.decide(state))   # before an event of kind 'asked'
    state = core.tell(state, event)                  # for every event

Positions of features and classes are those of `Problem.space`, the policy's own space. Values are
slots, numbered in the order in which they first appear (`State.slots`), as are the workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from bayescrowd.budgeted.beliefs.naive_bayes import Belief
from bayescrowd.budgeted.information_gain import greedy
from bayescrowd.budgeted.query_book import ROUNDING, Event, OpenQuery, Query, QueryBook
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.budgeted.state import Ask, Choice, Decision, Memory, Position, State, Stop, Wait

__all__ = ["Core", "Problem", "least_asked"]


@dataclass(frozen=True, eq=False)
class Problem:
    """What a policy is given: what can be bought, with how much, for how many features.

    Args:
        space: classes and features in the policy's own order.
        budget: what the labels may cost in all.
        n_features: number of features that the classifier may use (K).
        labels_per_query: number of labels of each query (W).
    """

    space: FeatureSpace
    budget: float
    n_features: int
    labels_per_query: int

    @cached_property
    def prior(self) -> Float[np.ndarray, " cls"]:
        """Probability of each class."""
        return self.space.class_prior

    @cached_property
    def cumulative_prior(self) -> Float[np.ndarray, " cls"]:
        """Probability of each class and those before it."""
        return self.prior.cumsum()

    @cached_property
    def label_costs(self) -> Float[np.ndarray, " feature"]:
        """Cost of one label of each feature."""
        return self.space.label_costs()

    @cached_property
    def prices(self) -> Float[np.ndarray, " feature"]:
        """Cost of one query about each feature."""
        return self.label_costs * self.labels_per_query

    @cached_property
    def feature_names(self) -> tuple[Hashable, ...]:
        """Name of each feature."""
        return self.space.names

    @cached_property
    def feature_positions(self) -> dict[Hashable, int]:
        """Position of each feature by its name."""
        return {name: f for f, name in enumerate(self.feature_names)}

    @cached_property
    def class_positions(self) -> dict[Hashable, int]:
        """Position of each class by its name."""
        return {name: y for y, name in enumerate(self.space.classes)}

    @cached_property
    def _codes(self) -> dict[Hashable, dict[Hashable, int]]:
        features = self.space.features.items()
        return {name: {v: code for code, v in enumerate(values)} for name, values in features}

    def code_of(self, feature: Hashable, value: Hashable) -> int:
        """Position of a value among a feature's values; a number falls into its interval.

        Raises:
            ValueError: the feature has no such value.
        """
        code = self._codes[feature].get(value)
        return self.space.code_of(feature, value) if code is None else code


@dataclass(frozen=True, eq=False)
class Core(ABC):
    """How a policy begins, chooses, and takes in events, without any state of its own.

    A policy states `first_memory` and `choose_feature`. It may state which features are
    `candidates`, why it stops, `choose_class`, `select`, and what follows a question, an
    observation or a withdrawal.

    Args:
        problem: what is given.
    """

    problem: Problem

    # -- what runs a policy ------------------------------------------------------------------

    def begin(self, belief: Belief, position: Position) -> State:
        """The state before the first event."""
        n_features, n_classes = len(self.problem.prices), len(self.problem.prior)
        return State(
            book=QueryBook.empty(n_features, n_classes),
            belief=belief,
            slots=((),) * n_features,
            workers={},
            memory=self.first_memory(belief),
            retry=-1,
            position=position,
        )

    def decide(self, state: State) -> Decision:
        """What to do now: `choose` with the random numbers that follow the state's position."""
        return self.choose(state.position.generator(), state)

    def choose(self, rng: np.random.Generator, state: State) -> Decision:
        """What to do now, given a generator at the state's position."""
        candidates = self.candidates(state)
        if not candidates.any():
            reason = self.stop_reason(state)
            return Stop(reason, state.memory) if reason else Wait()
        if state.retry >= 0 and candidates[state.retry]:
            feature, memory = state.retry, state.memory
        else:
            choice = self.choose_feature(rng, state, candidates)
            if not isinstance(choice, Choice):
                return choice
            feature, memory = choice
        cls = self.choose_class(rng, state, feature)
        return Ask(feature, cls, memory, Position.after(rng))

    def follow(self, state: State, decision: Decision) -> State:
        """The state once a decision is made; its question, if any, is an event of its own."""
        if not isinstance(decision, Ask):
            return state
        return state._replace(memory=decision.memory, position=decision.position)

    def query(self, state: State, decision: Ask) -> Query:
        """The question of a decision, in the user's names."""
        return Query(
            feature=self.problem.feature_names[decision.feature],
            target=self.problem.space.classes[decision.cls],
            n_labels=self.problem.labels_per_query,
            id=state.book.n_asked + 1,
        )

    def tell(self, state: State, event: Event) -> State:
        """The state after an event, which has been checked (`query_log`)."""
        if event.kind == "asked":
            query = self._open(event.query)
            state = state._replace(book=state.book.ask(query), retry=-1)
            return self.after_question(state, query)
        if event.kind == "told":
            book, query = state.book.answer(event.query.id, event.answers, event.workers)
            state = state._replace(book=book)
            return state if query.n_missing else self._observe(state, query)
        query = state.book.open_queries[event.query.id]
        if event.kind == "exhausted":
            book = state.book.exhaust(event.query.id)
            return self.after_withdrawal(state._replace(book=book, retry=query.feature), query)
        state = state._replace(book=state.book.close(event.query.id))
        if query.answers:
            state = self._observe(state, query)
        return self.after_withdrawal(state, query)

    def check_recorded(self, state: State, query: Query, number: int) -> None:
        """Raise a ValueError unless a recorded question can be asked in this state.

        Args:
            state: the state before the question.
            query: the question, which the policy itself would not ask.
            number: number of its event, for the message.
        """
        problem = self.problem
        expected = query._replace(n_labels=problem.labels_per_query, id=state.book.n_asked + 1)
        is_known = (
            query.feature in problem.feature_positions and query.target in problem.class_positions
        )
        if not is_known or query != expected:
            raise ValueError(
                f"event {number}: {query} is not a question of this policy; expected query "
                f"{expected.id}, about {expected.n_labels} labels, with a feature and a class of "
                "its space"
            )

    # -- what a policy states ----------------------------------------------------------------

    @abstractmethod
    def first_memory(self, belief: Belief) -> Memory:
        """What the policy remembers before the first event."""

    @abstractmethod
    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice | Wait | Stop:
        """Which of the candidates, of which there is at least one, to ask about."""

    def choose_class(self, rng: np.random.Generator, state: State, feature: int) -> int:
        """Position of the class to ask about: y ~ P(Y) among those with instances left."""
        available = state.book.available[feature]
        cumulative = self.problem.cumulative_prior
        if not available.all():
            cumulative = np.where(available, self.problem.prior, 0.0).cumsum()
        place = rng.random() * cumulative[-1]
        return int(min(np.searchsorted(cumulative, place, side="right"), len(cumulative) - 1))

    def candidates(self, state: State) -> Bool[np.ndarray, " feature"]:
        """Features that can be asked about now: there are instances, and money for a query."""
        free = self.budget_left(state) - state.book.reserved
        return state.book.askable & (self.problem.prices <= free + ROUNDING)

    def stop_reason(self, state: State) -> str:
        """Why there will be no candidate any more; empty if there may be one."""
        askable = state.book.askable
        if not askable.any():
            return "nothing left to ask"
        if (self.problem.prices[askable] > self.budget_left(state) + ROUNDING).all():
            return "budget spent"
        return ""

    def after_question(self, state: State, query: OpenQuery) -> State:
        """The state after a query was opened."""
        return state

    def after_observation(self, state: State, query: OpenQuery) -> State:
        """The state after an observation has reached the belief."""
        return state

    def after_withdrawal(self, state: State, query: OpenQuery) -> State:
        """The state after a query was closed without all its labels."""
        return state

    def select(self, state: State) -> list[int]:
        """Positions of the features to use, the best first, given what is believed now."""
        belief = state.belief
        return greedy(self.problem.prior, belief.mean(), belief.n_outcomes, self.problem.n_features)

    # -- for policies to use -----------------------------------------------------------------

    def budget_left(self, state: State) -> float:
        """Budget not spent yet; part of it may be reserved for open queries."""
        return self.problem.budget - state.book.spent

    def _open(self, query: Query) -> OpenQuery:
        feature = self.problem.feature_positions[query.feature]
        cls = self.problem.class_positions[query.target]
        return OpenQuery(query, feature, cls, float(self.problem.label_costs[feature]), ())

    def _observe(self, state: State, query: OpenQuery) -> State:
        """Take the answers of a closed query into the belief."""
        feature = query.feature
        codes = [self.problem.code_of(query.query.feature, answer) for answer in query.answers]
        slots = state.slots
        seen = tuple(dict.fromkeys((*slots[feature], *codes)))
        if len(seen) > len(slots[feature]):
            slots = (*slots[:feature], seen, *slots[feature + 1 :])
        labels = tuple(seen.index(code) for code in codes)
        workers, known = _number_workers(state.workers, query.workers)
        belief = state.belief.observe(feature, query.cls, labels, known)
        state = state._replace(belief=belief, slots=slots, workers=workers)
        return self.after_observation(state, query)


def _number_workers(
    numbers: Mapping[Hashable, int], names: Sequence[Hashable | None]
) -> tuple[Mapping[Hashable, int], tuple[int, ...]]:
    """All workers' numbers, with newcomers, and those of some names; -1 is for None.

    There is none for anybody if nobody is named.
    """
    if all(name is None for name in names):
        return numbers, ()
    new = [name for name in dict.fromkeys(names) if name is not None and name not in numbers]
    if new:
        numbers = {**numbers, **{name: n for n, name in enumerate(new, start=len(numbers))}}
    return numbers, tuple(-1 if name is None else numbers[name] for name in names)


def least_asked(features: Sequence[int], book: QueryBook) -> int:
    """Which of some features has been asked about least; the first among equals."""
    n_queries = (book.observed + book.pending).sum(axis=1)
    return min(features, key=lambda f: int(n_queries[f]))
