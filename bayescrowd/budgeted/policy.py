"""The ask/tell protocol that all policies share.

A policy's state is a function of its arguments and its events alone: what was asked, told,
exhausted and withdrawn, in that order. `Policy.replay` runs a list of events again and leaves a
fresh policy where the first one stood, so that both go on with the same questions. An `ask` that
returns None changes nothing.

Neither the order of features, values or classes in the space nor the names of the values matter:
features and classes are sorted by name, then the features take an order drawn from the seed, which
breaks ties. (A fixed order would favour whatever comes first.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.credibility import Measure, credibility
from bayescrowd.budgeted.beliefs.naive_bayes import Belief, Estimate, NaiveBayesBelief
from bayescrowd.budgeted.classifier import Classifier
from bayescrowd.budgeted.information_gain import greedy
from bayescrowd.budgeted.query_book import Entry, Event, Ledger, Query
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import Count, NonNegative, Positive, Seed, validate_arguments
from bayescrowd.data.vocabulary import natural_key, plain

__all__ = ["BELIEFS", "BudgetResult", "ModelName", "Policy"]

ModelName = Literal["naive_bayes", "access_path"]

Beliefs = Callable[[FeatureSpace, int], Belief]

BELIEFS: dict[str, Beliefs] = {
    "naive_bayes": lambda space, labels_per_query: NaiveBayesBelief(space),
    "access_path": AccessPathBelief,
}
"""What is believed before the first answer, given space and labels per query; by model."""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="Policy")


class BudgetResult(NamedTuple):
    """What a policy has learned."""

    selected: tuple[Hashable, ...]
    """The K features to use, the first chosen first."""
    classifier: Classifier
    """Tells the class from the selected features."""
    spending: pd.DataFrame
    """By feature: observations, labels, cost, and whether it is selected."""
    history: pd.DataFrame
    """By query id: feature, target, answers, and what had been spent when it was complete."""
    spent: float
    """Cost of all labels."""
    left: float
    """Budget not spent."""
    stopped: str
    """Why no more is asked; 'not finished' while there is more to ask."""


class Policy(ABC):
    """Decides what to ask next, and which features to use in the end.

    Args:
        space: classes, features, priors, costs.
        budget: what the labels may cost in all.
        n_features: how many features the classifier may use (K).
        model: how labels depend on the class.
        labels_per_query: labels of the same feature of the same instance per query (W).
        seed: of every random choice.

    Raises:
        ValueError: the budget does not pay for a single query, there are fewer features than are
            to be selected, or an argument is out of range.
    """

    @validate_arguments
    def __init__(
        self,
        space: FeatureSpace,
        budget: NonNegative,
        n_features: Count,
        *,
        model: str = "naive_bayes",
        labels_per_query: Count = 1,
        seed: Seed = 0,
    ) -> None:
        if model not in BELIEFS:
            raise ValueError(f"model={model!r}: expected one of {', '.join(BELIEFS)}")
        if n_features > len(space.features):
            raise ValueError(
                f"n_features={n_features}: expected 1 to {len(space.features)}, the number of "
                "features there are"
            )
        cheapest = float(space.label_costs().min()) * labels_per_query
        if budget < cheapest:
            raise ValueError(
                f"budget={budget}: expected at least {cheapest:g}, the price of one query"
            )
        self.space = space
        self.budget = budget
        self.n_features = n_features
        self.model = model
        self.labels_per_query = labels_per_query
        self.seed = seed
        self._rng = np.random.default_rng(seed)
        features = self._rng.permutation(_sorted_positions(space.names))
        self._space = space.take(features.tolist(), _sorted_positions(space.classes))
        self._shares = self._space.class_prior.cumsum()
        self._ledger = Ledger(self._space, budget, labels_per_query)
        self._slots: list[dict[int, int]] = [{} for _ in self._space.features]
        self._belief = self._first_belief()
        self._stop_reason = ""
        self._again = -1
        """Feature to ask about with another class: the last one had no instance left."""

    # -- what users call ---------------------------------------------------------------------

    def ask(self) -> Query | None:
        """The next query; None when there is nothing to ask before more answers come, or ever.

        `stopped` tells which.
        """
        if self._stop_reason:
            return None
        now = self._now()
        if not now.any():
            return None
        is_again = self._again >= 0 and now[self._again]
        feature = self._again if is_again else self._choose(now)
        if feature is None:
            return None
        self._again = -1
        cls = self._next_class(feature)
        query = self._ledger.ask(feature, cls)
        self._asked(feature, cls)
        return query

    @validate_arguments
    def ask_batch(self, n: Count) -> list[Query]:
        """Up to n queries at once, none of them waiting for the others' answers."""
        queries: list[Query] = []
        while len(queries) < n and (query := self.ask()) is not None:
            queries.append(query)
        return queries

    @validate_arguments
    def tell(self, query: Query | int, answers: Any) -> None:
        """Hand in answers to a query: all its labels or some of them, whenever they come.

        The only place where budget is spent. The same answers again are ignored.

        Args:
            query: the query, or its id.
            answers: a value or several.

        Raises:
            ValueError: see `Ledger.tell`; nothing is spent then.
        """
        told = self._ledger.tell(query, answers)
        if told is not None and told[1]:
            self._take_in(told[0])

    @validate_arguments
    def exhausted(self, query: Query | int) -> None:
        """Say that no instance of the query's class is left whose feature is not labelled yet.

        Nothing is spent. The next query is about the same feature and another class.
        """
        entry = self._ledger.exhaust(query)
        self._again = entry.feature
        self._withdrawn(entry)

    @validate_arguments
    def withdraw(self, query: Query | int) -> None:
        """Close a query that will not be answered any further; what was told stays in use."""
        entry = self._ledger.withdraw(query)
        if entry.answers:
            self._take_in(entry)
        self._withdrawn(entry)

    @validate_arguments
    def replay(self: Itself, events: Iterable[Event], *, strict: bool = True) -> Itself:
        """Run through the events of another policy with the same arguments.

        Args:
            events: what the other one's `events` held.
            strict: refuse events that this policy would not have caused; otherwise the recorded
                queries are taken as they are. (Another release of NumPy may draw otherwise.)

        Raises:
            ValueError: this policy has events of its own, or asks otherwise.
        """
        if self._ledger.events:
            raise ValueError("replay: expected a policy that has not asked anything yet")
        for number, event in enumerate(events, start=1):
            if event.kind == "asked":
                self._ask_again(event.query, number, strict=strict)
            elif event.kind == "told":
                self.tell(event.query, event.answers)
            elif event.kind == "exhausted":
                self.exhausted(event.query)
            else:
                self.withdraw(event.query)
        return self

    @property
    def events(self) -> tuple[Event, ...]:
        """All that happened so far, in order: with the arguments, the policy's whole state."""
        return tuple(self._ledger.events)

    @property
    def open_queries(self) -> tuple[Query, ...]:
        """Queries that wait for answers, the oldest first."""
        return tuple(entry.query for entry in self._ledger.open.values())

    @property
    def spent(self) -> float:
        """Cost of the labels told so far."""
        return self._ledger.spent

    @property
    def left(self) -> float:
        """Budget not spent yet; part of it may be reserved for open queries."""
        return self._ledger.left

    @property
    def stopped(self) -> str:
        """Why nothing more will be asked; empty while there is more to ask."""
        if self._stop_reason:
            return self._stop_reason
        askable = self._ledger.askable()
        if not askable.any():
            return "nothing left to ask"
        if (self._ledger.prices[askable] > self._ledger.left + 1e-9).all():
            return "budget spent"
        return ""

    @validate_arguments
    def result(self, *, estimate: Estimate = "mean") -> BudgetResult:
        """What was learned so far; may be asked for at any time.

        Args:
            estimate: parameters of the classifier: the posterior's 'mean', or its mode, 'map'.
        """
        selected = self._select()
        names = self._space.names
        return BudgetResult(
            selected=tuple(names[f] for f in selected),
            classifier=self._classifier_of(selected, estimate),
            spending=self._spending(selected),
            history=self._history(),
            spent=self.spent,
            left=self.left,
            stopped=self.stopped or "not finished",
        )

    @validate_arguments
    def classifier(self, *, estimate: Estimate = "mean") -> Classifier:
        """The classifier of `result` alone, without its tables."""
        return self._classifier_of(self._select(), estimate)

    @validate_arguments
    def credibility(self, *, epsilon: Positive = 0.05, measure: Measure = "interval") -> pd.Series:
        """How well each feature's parameters are known, 0 to 1 (equation 1 of the paper).

        Args:
            epsilon: half width of the interval around the mean.
            measure: 'interval', the paper's; 'variance' or 'hdi'.
        """
        known = [
            self._credibility_of(f, epsilon=epsilon, measure=measure)
            for f in range(len(self._space.features))
        ]
        by_name = pd.Series(known, index=pd.Index(self._space.names), name="credibility")
        return by_name.reindex(pd.Index(self.space.names))

    # -- what policies decide ----------------------------------------------------------------

    def _first_belief(self) -> Belief:
        """What is believed before the first answer."""
        return BELIEFS[self.model](self._space, self.labels_per_query)

    @abstractmethod
    def _choose(self, candidates: Bool[np.ndarray, " feature"]) -> int | None:
        """Position of the feature to ask about, or None to wait for answers.

        Must not change the state if it returns None, but for setting `_stop_reason`.
        """

    def _next_class(self, feature: int) -> int:
        """Position of the class to ask about: y ~ P(Y) among those with instances left."""
        available = self._ledger.available[feature]
        shares = self._shares
        if not available.all():
            shares = np.where(available, self._space.class_prior, 0.0).cumsum()
        place = self._rng.random() * shares[-1]
        return int(min(np.searchsorted(shares, place, side="right"), len(shares) - 1))

    def _asked(self, feature: int, cls: int) -> None:
        """A query was opened."""

    def _observed(self, entry: Entry) -> None:
        """An observation has reached the belief."""

    def _withdrawn(self, entry: Entry) -> None:
        """A query was closed without its labels."""

    def _select(self) -> list[int]:
        """Positions of the features to use, given what is believed now."""
        prior, mean = self._space.class_prior, self._belief.mean()
        return greedy(prior, mean, self._belief.n_outcomes, self.n_features)

    # -- for policies to use -----------------------------------------------------------------

    def _credibility_of(self, feature: int, *, epsilon: float, measure: Measure) -> float:
        """The least credibility of the feature's tables."""
        by_class, *others = self._belief.rows(feature)
        known = [credibility(by_class, self._space.class_prior, epsilon=epsilon, measure=measure)]
        for rows in others:
            even = np.full(len(rows), 1 / len(rows))
            known.append(credibility(rows, even, epsilon=epsilon, measure=measure))
        return min(known)

    def _now(self) -> Bool[np.ndarray, " feature"]:
        """Features that can be asked about now."""
        return self._ledger.askable() & self._ledger.affordable()

    def _take_in(self, entry: Entry) -> None:
        slots = self._slots[entry.feature]
        codes = [self._space.code_of(entry.query.feature, value) for value in entry.answers]
        labels = tuple(slots.setdefault(code, len(slots)) for code in codes)
        self._belief.observe(entry.feature, entry.cls, labels)
        self._observed(entry)

    # -- results -----------------------------------------------------------------------------

    def _ask_again(self, query: Query, number: int, *, strict: bool) -> None:
        found = self.ask()
        if found == query:
            return
        if strict:
            raise ValueError(
                f"event {number}: this policy asks {found}, where {query} was asked; were its "
                "arguments others, or another release of NumPy at work?"
            )
        if found is not None:
            self._ledger.forget(found)
        feature, cls = self._ledger.position(query)
        self._ledger.ask(feature, cls)
        self._asked(feature, cls)

    def _classifier_of(self, selected: Sequence[int], estimate: Estimate) -> Classifier:
        if estimate not in get_args(Estimate):
            raise ValueError(
                f"estimate={estimate!r}: expected one of {', '.join(get_args(Estimate))}"
            )
        names = self._space.names
        readers = {
            names[f]: self._belief.reader(f, self._slots_of_values(f), estimate) for f in selected
        }
        return Classifier(self._space, readers)

    def _slots_of_values(self, feature: int) -> Int[np.ndarray, " value"]:
        """Slot of each value; those never seen take the slots that are left."""
        slots = self._slots[feature]
        n_values = self._space.n_values[feature]
        unseen = iter(range(len(slots), n_values))
        return np.array([slots[v] if v in slots else next(unseen) for v in range(n_values)])

    def _spending(self, selected: Sequence[int]) -> pd.DataFrame:
        ledger = self._ledger
        table = pd.DataFrame(
            {
                "observations": ledger.observed.sum(axis=1),
                "labels": ledger.labels,
                "cost": ledger.costs_by_feature(),
                "selected": np.isin(np.arange(len(ledger.labels)), selected),
            },
            index=pd.Index(self._space.names, name="feature"),
        )
        return table.reindex(pd.Index(self.space.names, name="feature"))

    def _history(self) -> pd.DataFrame:
        spent, rows = 0.0, []
        answers: dict[int, tuple[Hashable, ...]] = {}
        for event in self._ledger.events:
            if event.kind != "told":
                continue
            query = event.query
            spent += len(event.answers) * self._space.costs[query.feature]
            told = answers[query.id] = answers.get(query.id, ()) + event.answers
            if len(told) == query.n_labels:
                rows.append((query.id, query.feature, query.target, told, spent))
        columns = ["id", "feature", "target", "answers", "spent"]
        return pd.DataFrame(rows, columns=columns).set_index("id")


def _sorted_positions(names: Sequence[Hashable]) -> list[int]:
    try:
        return sorted(range(len(names)), key=lambda i: natural_key(plain(names[i])))
    except TypeError:  # names of types that do not compare
        return sorted(range(len(names)), key=lambda i: repr(names[i]))
