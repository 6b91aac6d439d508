"""The ask/tell protocol that all policies share: a thin shell over a policy's `Core`.

The shell keeps the current state and the log of events, checks what the user reports, and answers
questions about what was learned. All decisions are the core's. The state is a function of the
policy's arguments and events alone: `Policy.replay` runs a list of events again and leaves a fresh
policy where the first one stood, so that both go on with the same questions. An `ask` that returns
None changes nothing.

Neither the order of features, values or classes in the space nor the names of the values matter:
features and classes are sorted by name, then the features take an order drawn from the seed, which
breaks ties. (A fixed order would favour whatever comes first.) With a model of the user's own,
everything keeps the user's order, which that model may give a meaning to.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import pandas as pd

from bayescrowd.budgeted.beliefs.credibility import Measure
from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler
from bayescrowd.budgeted.beliefs.naive_bayes import PointEstimate
from bayescrowd.budgeted.beliefs.options import (
    BELIEFS,
    BeliefOptions,
    FirstBelief,
    Sampler,
    WorkerPrior,
    check_options,
    fewest_labels,
    model_prior,
)
from bayescrowd.budgeted.classifier import Classifier, slots_of_values
from bayescrowd.budgeted.core import Core, Problem
from bayescrowd.budgeted.policy_summary import PolicySummary
from bayescrowd.budgeted.purchases import Purchases
from bayescrowd.budgeted.query_book import Event, Query
from bayescrowd.budgeted.query_log import QueryLog
from bayescrowd.budgeted.result import BudgetResult, history_table, spending_table
from bayescrowd.budgeted.space import FeatureSpace, sorted_positions
from bayescrowd.budgeted.state import Ask, Decision, Position, State, Stop
from bayescrowd.checks.parameters import Count, NonNegative, Positive, Seed, validate_arguments
from bayescrowd.data.vocabulary import comma_list

__all__ = ["BudgetResult", "ModelName", "Policy"]

ModelName = Literal["naive_bayes", "access_path"]

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="Policy")


class _Moment(NamedTuple):
    """All that changes in a policy, as one value.

    An event replaces it by a single assignment: whatever interrupts the work on an event, it has
    either happened or not.
    """

    state: State
    """What decisions depend on."""
    log: QueryLog
    """The events that led there."""
    decision: Decision | None
    """What the core decides in this state; None until it has been asked."""


class Policy(PolicySummary):
    """Decides what to ask next, and which features to use in the end.

    Args:
        space: classes, features, priors and costs.
        budget: what the labels may cost in all.
        n_features: number of features that the classifier may use (K).
        model: name of the model of how labels depend on the class.
        labels_per_query: number of labels that each query asks for, all of the same feature of the
            same instance (W).
        sampler: how the posterior is drawn from: 'conjugate', exact Dirichlet rows for naive Bayes
            and warm Gibbs chains for the access path model; 'nuts', warm NUTS chains on the NumPyro
            model; or a `ModelSampler` with a NumPyro model of one's own.
        worker_prior: prior of the workers' confusion matrices, for the access path model: 'right'
            favours right answers; 'uniform' is the paper's; or a `models.access_path.Prior`, of
            which `right`, `wrong` and `pooling` are used.
        worker_parameters: whose confusion matrices there are, for the access path model: one per
            feature, 'shared' by all workers; or besides it, where `tell` names the workers, those
            of workers with five or more labels of a feature, their 'own', partially pooled toward
            the shared one.
        seed: seed of every random choice.

    Raises:
        ValueError: the budget does not pay for a single query, there are fewer features than are
            to be selected, or an argument is out of range.
    """

    _beliefs: ClassVar[Mapping[str, FirstBelief]] = BELIEFS
    """How each model's belief is made for this policy."""

    @validate_arguments
    def __init__(
        self,
        space: FeatureSpace,
        budget: NonNegative,
        n_features: Count,
        *,
        model: str = "naive_bayes",
        labels_per_query: Count = 1,
        sampler: Sampler = "conjugate",
        worker_prior: WorkerPrior = "right",
        worker_parameters: str = "shared",
        seed: Seed = 0,
    ) -> None:
        if model not in self._beliefs:
            raise ValueError(f"model={model!r}: expected one of {', '.join(self._beliefs)}")
        options = BeliefOptions(labels_per_query, sampler, worker_prior, worker_parameters)
        check_options(options)
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
        self.sampler = sampler
        self.worker_prior = worker_prior
        self.worker_parameters = worker_parameters
        self.seed = seed
        rng = np.random.default_rng(seed)
        features = rng.permutation(sorted_positions(space.names)).tolist()
        own_space = space
        if not isinstance(sampler, ModelSampler):
            own_space = space.take(features, sorted_positions(space.classes))
        problem = Problem(own_space, budget, n_features, labels_per_query)
        self._core = self._make_core(problem)
        belief = self._beliefs[model](own_space, options)
        state = self._core.begin(belief, Position.after(rng))
        if isinstance(sampler, ModelSampler):
            # such a model may know its values apart before they have been seen
            state = state._replace(slots=tuple(tuple(range(v)) for v in space.n_values))
        self._now = _Moment(state, QueryLog(problem.code_of), None)

    @abstractmethod
    def _make_core(self, problem: Problem) -> Core:
        """The pure functions that this policy consists of."""

    # -- asking and telling ------------------------------------------------------------------

    def ask(self) -> Query | None:
        """The next query; None when there is nothing to ask before more answers come, or ever.

        `stopped` says which of the two it is.
        """
        decision = self._decide()
        if not isinstance(decision, Ask):
            return None
        query = self._core.query(self._state, decision)
        self._record_question(query)
        return query

    @validate_arguments
    def ask_batch(self, n: Count) -> list[Query]:
        """Up to n queries at once, none of them waiting for the others' answers."""
        queries: list[Query] = []
        while len(queries) < n and (query := self.ask()) is not None:
            queries.append(query)
        return queries

    @validate_arguments
    def tell(self, query: Query | int, answers: Any, workers: Any = None) -> None:
        """Report answers to a query: all its labels or some of them, whenever they come.

        This is the only place where budget is spent. A call that is interrupted, even by Ctrl-C
        while the model learns, has happened as a whole or not at all, and may be repeated: labels
        that were reported before are not counted again.

        * With `workers`, the same label by the same worker is one label however often it is
          reported; another label by the same worker is an error.
        * Without, the same labels in any order as in an earlier call about the query, or exactly
          those that it has, are taken as the same report. If the query still lacks labels, a
          warning says so: another worker may have given an equal label. Report such labels all at
          once, or name the workers.

        Args:
            query: the query, or its id.
            answers: a value or several.
            workers: who gave the answers: a name, or as many as there are answers.

        Raises:
            ValueError: the query was never asked, or an answer is impossible, superfluous, or
                differs from the one reported before; nothing is spent then.

        Examples:
            >>> import bayescrowd as bc
            >>> space = bc.FeatureSpace(classes=["yes", "no"], features={"x": ["a", "b"]})
            >>> policy = bc.RoundRobin(space, budget=6, n_features=1, labels_per_query=3)
            >>> query = policy.ask()
            >>> policy.tell(query, "a", workers="Ann")
            >>> policy.tell(query, ["a", "b"], workers=["Ann", "Bob"])  # Ann's is not new
            >>> policy.spent
            2.0
        """
        event = self._now.log.check_answers(query, answers, workers, self._state.book)
        if event is not None:
            self._record(event)

    @validate_arguments
    def exhausted(self, query: Query | int) -> None:
        """Report that no instance of the query's class is left whose feature is unlabelled.

        Nothing is spent. The next query is about the same feature and another class.

        Raises:
            ValueError: the query is not open, or has an answer.
        """
        self._record(self._now.log.check_exhausted(query, self._state.book))

    @validate_arguments
    def withdraw(self, query: Query | int) -> None:
        """Close a query that will have no further answers; those it has stay in use.

        Raises:
            ValueError: the query is not open.
        """
        self._record(self._now.log.check_withdrawn(query, self._state.book))

    @validate_arguments
    def replay(self: Itself, events: Iterable[Event], *, strict: bool = True) -> Itself:
        """Run through the events of another policy with the same arguments.

        Args:
            events: the other policy's `events`, or the first of them.
            strict: refuse questions that this policy would not ask; otherwise the recorded
                questions are asked instead. (Another release of NumPy may draw other numbers.)

        Raises:
            ValueError: this policy has events of its own, or would ask another question.
        """
        if len(self._now.log):
            raise ValueError("replay: expected a policy that has not asked anything yet")
        for number, event in enumerate(events, start=1):
            if event.kind == "asked":
                self._replay_question(event.query, number, strict=strict)
            elif event.kind == "told":
                self.tell(event.query, event.answers, event.workers or None)
            elif event.kind == "exhausted":
                self.exhausted(event.query)
            else:
                self.withdraw(event.query)
        return self

    def _decide(self) -> Decision:
        decision = self._decision
        if decision is None:
            decision = self._core.decide(self._state)
            self._now = self._now._replace(decision=decision)
        return decision

    def _replay_question(self, query: Query, number: int, *, strict: bool) -> None:
        decision = self._decide()
        own = self._core.query(self._state, decision) if isinstance(decision, Ask) else None
        if own != query and strict:
            raise ValueError(
                f"event {number}: this policy asks {own}, where {query} was asked; does it have "
                "other arguments, or was another release of NumPy used?"
            )
        if own != query:
            self._core.check_recorded(self._state, query, number)
        self._record_question(query)

    def _record_question(self, query: Query) -> None:
        followed = self._core.follow(self._state, self._decide())
        self._record(Event("asked", query, ()), followed)

    def _record(self, event: Event, state: State | None = None) -> None:
        """Move on from the present state, or from the one given, by an event."""
        after = self._core.tell(self._state if state is None else state, event)
        self._now = _Moment(after, self._now.log.add(event), None)

    @property
    def _state(self) -> State:
        return self._now.state

    @property
    def _decision(self) -> Decision | None:
        return self._now.decision

    # -- what there is to see ----------------------------------------------------------------

    @property
    def core(self) -> Core:
        """The pure functions that make this policy's decisions."""
        return self._core

    @property
    def state(self) -> State:
        """Everything that the next decision depends on, as a value."""
        return self._state

    @property
    def events(self) -> tuple[Event, ...]:
        """All that has happened, in order: with the arguments, it determines the state."""
        return self._now.log.events

    @property
    def open_queries(self) -> tuple[Query, ...]:
        """Queries that are waiting for answers, the oldest first."""
        return tuple(entry.query for entry in self._state.book.open_queries.values())

    @property
    def spent(self) -> float:
        """Cost of the labels received so far."""
        return self._state.book.spent

    @property
    def left(self) -> float:
        """Budget not spent yet; part of it may be reserved for open queries."""
        return self._core.budget_left(self._state)

    @property
    def stopped(self) -> str:
        """Why nothing more will be asked; empty while there is more to ask."""
        decision = self._decide()
        return decision.reason if isinstance(decision, Stop) else ""

    @validate_arguments
    def result(self, *, estimate: PointEstimate = "mean") -> BudgetResult:
        """What has been learned so far; available at any time.

        Args:
            estimate: parameters of the classifier: the posterior's 'mean', or its mode, 'map'.
        """
        selected = self._core.select(self._state)
        names = self._core.problem.feature_names
        chosen = tuple(names[f] for f in selected)
        return BudgetResult.of(
            self._purchases(chosen),
            selected=chosen,
            classifier=self._make_classifier(selected, estimate),
            spending=spending_table(
                self._state.book, self._core.problem.label_costs, names, selected
            ).reindex(pd.Index(self.space.names, name="feature")),
            history=history_table(self.events, self.space.costs),
            spent=self.spent,
            left=self.left,
            stopped=self.stopped or "not finished",
        )

    @validate_arguments
    def posterior(
        self,
        *,
        chains: Count = 4,
        draws: Count = 1000,
        warmup: Count | None = None,
        method: Literal["gibbs", "nuts"] | None = None,
        seed: Seed = 0,
        progress: bool = True,
    ) -> Any:
        """Draws of the NumPyro model given what was bought so far, as `sample_posterior` has them.

        The model is that of the policy's `model`, or the user's own; all features and values of the
        space are there, those never bought or seen included. A task is a query that has been
        learned from, by its id. `prevalence` are the classes' probabilities as the space knows
        them; log-likelihoods and predictions are of labels given the class. The policy's arguments
        and what it has done are attributes.

        Args:
            chains: number of chains.
            draws: draws per chain.
            warmup: draws per chain to discard first; by default those of `sample_posterior`.
            method: 'gibbs' or 'nuts'; by default Gibbs sampling, and NUTS for a model of one's own.
            seed: seed of all random numbers.
            progress: whether to show a progress bar on a terminal.

        Returns:
            ArviZ's container; see `sample_posterior`. For a model of one's own it has the model's
            sites as they are and the `channel`, P(outcome | class), or P(label | class) where the
            model states tables.
        """
        return self.result().posterior(
            chains=chains, draws=draws, warmup=warmup, method=method, seed=seed, progress=progress
        )

    def _purchases(self, selected: Sequence[Hashable]) -> Purchases:
        arguments = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        options = BeliefOptions(*(arguments[name] for name in BeliefOptions._fields))
        return Purchases.of(
            arguments,
            self.events,
            prior=model_prior(self.model, self.space, options),
            fewest_labels=fewest_labels(options),
            policy=type(self).__name__,
            spent=self.spent,
            left=self.left,
            selected=comma_list(selected, most=self.n_features),
            stopped=self.stopped or "not finished",
        )

    @validate_arguments
    def classifier(self, *, estimate: PointEstimate = "mean") -> Classifier:
        """The classifier of `result` alone, without its tables."""
        return self._make_classifier(self._core.select(self._state), estimate)

    @validate_arguments
    def credibility(self, *, epsilon: Positive = 0.05, measure: Measure = "interval") -> pd.Series:
        """How well each feature's parameters are known, 0 to 1 (equation 1 of the paper).

        With noisy labels it is the smaller of two: how well the feature's values are known given
        the class, and the workers' labels given the value. It is then estimated by Monte Carlo,
        with a standard error below .01.

        Args:
            epsilon: half-width of the interval around the mean.
            measure: 'interval', as in the paper; 'variance' or 'hdi'.
        """
        belief, prior = self._state.belief, self._core.problem.prior
        known = [
            belief.credibility(f, prior, epsilon=epsilon, measure=measure).least
            for f in range(len(belief.n_outcomes))
        ]
        return self._by_feature(known, "credibility")

    def _by_feature(self, numbers: Any, name: str) -> pd.Series:
        """Numbers of the core's features, in the order of the user's space."""
        by_name = pd.Series(numbers, index=pd.Index(self._core.problem.feature_names), name=name)
        return by_name.reindex(pd.Index(self.space.names))

    def _make_classifier(self, selected: Sequence[int], estimate: PointEstimate) -> Classifier:
        if estimate not in get_args(PointEstimate):
            raise ValueError(
                f"estimate={estimate!r}: expected one of {', '.join(get_args(PointEstimate))}"
            )
        names, belief = self._core.problem.feature_names, self._state.belief
        slots, n_values = self._state.slots, self._core.problem.space.n_values
        readers = {
            names[f]: belief.reader(f, slots_of_values(slots[f], n_values[f]), estimate)
            for f in selected
        }
        return Classifier(self._core.problem.space, readers, self._state.workers)
