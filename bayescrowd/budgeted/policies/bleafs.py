"""B-LEAFS: budgeted learning and feature selection, one feature search after another.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, algorithm 1. The k-th search may spend b_k = B / 2^k (the last
one as much as the one before it). Until the feature asked about last is credible (`credibility`):
draw a model from the posterior, find the feature with the highest information gain given those
selected, draw a class y ~ P(Y), and ask about that feature of an instance of y. Then that feature
is selected.

Where the paper leaves something open, or prints a rule that contradicts its own example, there is
an argument. The defaults follow its text and, where that is silent, the reading nearest to its
table 1:

* `delta`: the printed rule is negative, so that nothing is ever credible; the midpoint is meant.
  With noisy labels both kinds of parameters must be credible, those of the feature and those of the
  crowd, by the same rule unless `crowd_delta` is another. The paper's guideline counts
  observations whose values are known. Readings of noisy labels tell less, so that the same delta
  asks for more of them than the guideline says, and where labels are mostly guesses no number of
  readings that the budget allows makes a feature credible: then every search spends all it may, as
  under the printed rule.
* `carry`: whether what a search leaves unspent goes to the next one. Table 1 spends 60, 85, 32 and
  23 of 200, which no reading allows: neither shares of 100, 50, 25 and 25, nor halvings of what is
  left of B (line 18 of the algorithm); carrying allows 175 labels in the first three searches,
  where the table spends 177. Carrying comes nearest, so it is the default.
* `pick`: the printed i* is the last draw's; the posterior mean's best is the steadier choice. The
  latter is also taken when a search has no budget, since there is no i* then.
* `revisit`: the printed algorithm leaves unspent what credibility does not require; this argument
  spends it on the selected features, the least observed first.
* A feature without any instances left cannot become more credible: its search ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayescrowd.budgeted.beliefs.credibility import Measure
from bayescrowd.budgeted.beliefs.credibility_thresholds import Requirement, delta_of, thresholds
from bayescrowd.budgeted.beliefs.naive_bayes import Belief
from bayescrowd.budgeted.beliefs.options import Sampler, WorkerPrior
from bayescrowd.budgeted.core import Core, Problem, least_asked
from bayescrowd.budgeted.information_gain import extend, first_best, greedy, information_gains
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.query_book import ROUNDING, OpenQuery
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.budgeted.state import Choice, Position, State, Stop, Wait
from bayescrowd.checks.parameters import Count, NonNegative, OpenFraction, Seed, validate_arguments

__all__ = ["BLeafs"]


class BLeafs(Policy):
    """Budgeted learning and feature selection (Nushi et al. 2016).

    Args:
        space: classes, features, priors and costs.
        budget: what the labels may cost in all (B).
        n_features: number of features that the classifier may use (K).
        model: name of the model of how labels depend on the class; 'naive_bayes' reads the
            majority of the labels, 'access_path' all of them, as noisy reports of a hidden value.
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
        epsilon: half-width of the credible interval.
        delta: how far below 1 the credibility of a selected feature may be: a rule of the module
            `credibility_thresholds`, or a number for all features.
        crowd_delta: the same for the crowd's parameters, which the model 'access_path' alone has:
            `delta` is then for the feature's values given the class, `crowd_delta` for the labels
            given the values. The paper uses the same for both.
        measure: measure of credibility.
        carry: whether what a search leaves unspent goes to the next one.
        pick: which feature a search ends with.
        revisit: whether what is left in the end is spent on the selected features.
        seed: seed of every random choice.

    Examples:
        >>> import bayescrowd as bc
        >>> space = bc.FeatureSpace(
        ...     classes=["spam", "ham"],
        ...     features={"link": ["no", "yes"], "greeting": ["no", "yes"], "length": [1, 2, 3]},
        ... )
        >>> policy = bc.BLeafs(space, budget=40, n_features=1, seed=0)
        >>> while (query := policy.ask()) is not None:
        ...     is_spam = query.target == "spam"
        ...     says = {"link": "yes" if is_spam else "no", "greeting": "no", "length": 2}
        ...     policy.tell(query, says[query.feature])
        >>> policy.result().selected
        ('link',)
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
        sampler: Sampler = "conjugate",
        worker_prior: WorkerPrior = "right",
        worker_parameters: str = "shared",
        epsilon: OpenFraction = 0.05,
        delta: Requirement = "midpoint",
        crowd_delta: Requirement | Literal["same"] = "same",
        measure: Measure = "interval",
        carry: bool = True,
        pick: Literal["last-draw", "posterior-mean"] = "last-draw",
        revisit: bool = False,
        seed: Seed = 0,
    ) -> None:
        if crowd_delta != "same" and model != "access_path":
            raise ValueError(
                f"crowd_delta={crowd_delta!r}: expected 'same', since model={model!r} has no "
                "parameters of the crowd"
            )
        self.epsilon = epsilon
        self.delta = delta
        self.crowd_delta = crowd_delta
        self.measure: Measure = measure
        self.carry = carry
        self.pick = pick
        self.revisit = revisit
        super().__init__(
            space,
            budget,
            n_features,
            model=model,
            labels_per_query=labels_per_query,
            sampler=sampler,
            worker_prior=worker_prior,
            worker_parameters=worker_parameters,
            seed=seed,
        )

    def _make_core(self, problem: Problem) -> BLeafsCore:
        limits = thresholds(
            problem.space,
            budget=problem.budget,
            n_features=problem.n_features,
            labels_per_query=problem.labels_per_query,
            epsilon=self.epsilon,
            measure=self.measure,
        )
        of_crowd = self.delta if self.crowd_delta == "same" else self.crowd_delta
        return BLeafsCore(
            problem,
            epsilon=self.epsilon,
            delta=delta_of(self.delta, limits),
            crowd_delta=delta_of(of_crowd, limits),
            measure=self.measure,
            ceilings=_ceilings(problem.budget, problem.n_features),
            carry=self.carry,
            pick_mean=self.pick == "posterior-mean",
            revisit=self.revisit,
        )


class Search(NamedTuple):
    """What `BLeafs` remembers."""

    chosen: tuple[int, ...]
    """The features selected so far; their number is that of the present search."""
    last: int
    """The feature asked about last in this search (i*), -1 if none."""
    ceiling: float
    """How much may have been spent when this search ends."""
    search_of_query: Mapping[int, int]
    """Number of the search that asked each open query, by the query's id."""


@dataclass(frozen=True, eq=False)
class BLeafsCore(Core):
    """The decisions of `BLeafs`.

    Args:
        problem: what is given.
        epsilon: half-width of the credible interval.
        delta: how far below 1 the credibility of each feature's values given the class may be.
        crowd_delta: the same for the labels given the values, if the model has such parameters.
        measure: measure of credibility.
        ceilings: how much may have been spent at the end of each search.
        carry: whether what a search leaves unspent goes to the next one.
        pick_mean: whether a search ends with the best feature at the posterior mean.
        revisit: whether what is left in the end is spent on the selected features.
    """

    epsilon: float
    delta: Float[np.ndarray, " feature"]
    crowd_delta: Float[np.ndarray, " feature"]
    measure: Measure
    ceilings: list[float]
    carry: bool
    pick_mean: bool
    revisit: bool

    def begin(self, belief: Belief, position: Position) -> State:
        """The state at the start of the first search that has a budget."""
        return self._begin_search(super().begin(belief, position))

    def first_memory(self, belief: Belief) -> Search:
        """Nothing is selected or asked."""
        return Search((), -1, self.ceilings[0], {})

    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice | Wait | Stop:
        """The feature of the highest gain under a draw; after the last search, one to revisit."""
        if not self._is_complete(state):
            drawn = state.belief.draw(rng)
            prior = self.problem.space.draw_class_prior(rng)
            feature = first_best(self._gains(rng, state, prior, drawn), ~candidates)
            return Choice(feature, state.memory)
        memory: Search = state.memory
        members = [f for f in memory.chosen if candidates[f]]
        if members:
            return Choice(least_asked(members, state.book), memory)
        if state.book.open_queries:
            return Wait()
        return Stop("nothing left to ask about the selected features", memory)

    def candidates(self, state: State) -> Bool[np.ndarray, " feature"]:
        """Features that the budget of the present search allows and that are not selected yet.

        After the last search there are none, unless selected features are revisited.
        """
        if self._is_complete(state):
            found = super().candidates(state)
            return found if self.revisit else np.zeros_like(found)
        book = state.book
        memory: Search = state.memory
        free = min(memory.ceiling, self.problem.budget) - book.spent - book.reserved
        allowed: Bool[np.ndarray, " feature"] = self.problem.prices <= free + ROUNDING
        allowed &= book.askable
        allowed[list(memory.chosen)] = False
        return allowed

    def stop_reason(self, state: State) -> str:
        """Why there will be no candidate any more; empty if there may be one."""
        if self._is_complete(state) and not self.revisit:
            return "all features selected"
        return super().stop_reason(state)

    def after_question(self, state: State, query: OpenQuery) -> State:
        """The query belongs to the present search, if there is one."""
        if self._is_complete(state):
            return state
        memory: Search = state.memory
        searches = {**memory.search_of_query, query.query.id: len(memory.chosen)}
        return state._replace(memory=memory._replace(last=query.feature, search_of_query=searches))

    def after_observation(self, state: State, query: OpenQuery) -> State:
        """The search ends if the feature has become credible or the search has no budget left."""
        state, is_current = self._close(state, query)
        if not is_current:
            return state
        if self._is_credible(state, query.feature):
            return self._end_search(state, query.feature)
        return self._end_search_without_budget(state)

    def after_withdrawal(self, state: State, query: OpenQuery) -> State:
        """The search ends if the feature has no instances left or the search has no budget."""
        state, is_current = self._close(state, query)
        if not is_current:
            return state
        if not state.book.askable[query.feature]:
            return self._end_search(state, query.feature)
        return self._end_search_without_budget(state)

    def select(self, state: State) -> list[int]:
        """The features of the finished searches, then greedily chosen ones."""
        return greedy(
            self.problem.prior,
            state.belief.mean(),
            state.belief.n_outcomes,
            self.problem.n_features,
            start=state.memory.chosen,
        )

    def _is_complete(self, state: State) -> bool:
        memory: Search = state.memory
        return len(memory.chosen) == self.problem.n_features

    def _is_credible(self, state: State, feature: int) -> bool:
        required = 1 - float(self.delta[feature]), 1 - float(self.crowd_delta[feature])
        if max(required) > 1:  # the printed rule
            return False
        known = state.belief.credibility(
            feature,
            self.problem.prior,
            epsilon=self.epsilon,
            measure=self.measure,
            required=required,
        )
        return known.conditional >= required[0] and known.confusion >= required[1]

    def _close(self, state: State, query: OpenQuery) -> tuple[State, bool]:
        """Forget the search of a closed query, and say whether it is the present one."""
        memory: Search = state.memory
        search = memory.search_of_query.get(query.query.id, -1)
        if search >= 0:
            others = {**memory.search_of_query}
            del others[query.query.id]
            state = state._replace(memory=memory._replace(search_of_query=others))
        return state, search == len(memory.chosen) and not self._is_complete(state)

    def _begin_search(self, state: State) -> State:
        """Set the ceiling of the next search, and end it at once if it has no budget."""
        if self._is_complete(state):
            return state
        book = state.book
        memory: Search = state.memory
        k = len(memory.chosen)
        ceiling = self.ceilings[k]
        if not self.carry:
            share = ceiling - (self.ceilings[k - 1] if k else 0)
            ceiling = book.spent + book.reserved + share
        memory = memory._replace(ceiling=ceiling, last=-1)
        return self._end_search_without_budget(state._replace(memory=memory))

    def _end_search_without_budget(self, state: State) -> State:
        """End the search if it can ask nothing more and is not waiting for answers."""
        memory: Search = state.memory
        is_waiting = len(memory.chosen) in memory.search_of_query.values()
        if is_waiting or self.candidates(state).any():
            return state
        return self._end_search(state, memory.last)

    def _end_search(self, state: State, feature: int) -> State:
        """Select the feature that a search ends with, and begin the next one."""
        memory: Search = state.memory
        chosen = memory.chosen
        if self.pick_mean or feature < 0:
            rng = state.position.generator()
            is_barred = np.zeros(len(self.problem.prices), dtype=bool)
            is_barred[list(chosen)] = True
            gains = self._gains(rng, state, self.problem.prior, state.belief.mean())
            feature = first_best(gains, is_barred)
            state = state._replace(position=Position.after(rng))
        memory = memory._replace(chosen=(*chosen, feature))
        return self._begin_search(state._replace(memory=memory))

    def _gains(
        self,
        rng: np.random.Generator,
        state: State,
        prior: Float[np.ndarray, " cls"],
        channels: Float[np.ndarray, "feature cls outcome"],
    ) -> Float[np.ndarray, " feature"]:
        """Information gain of every feature given the selected ones."""
        joint = prior[:, None]
        for f in state.memory.chosen:
            joint = extend(joint, channels[f, :, : state.belief.n_outcomes[f]], rng)
        return information_gains(joint, channels)


def _ceilings(budget: float, n_features: int) -> list[float]:
    """Sums of b_k = floor(B / 2^k) up to each search; the last one is B.

    Examples:
        >>> _ceilings(200, 4)
        [100.0, 150.0, 175.0, 200.0]
    """
    shares = [float(np.floor(budget / 2**k)) for k in range(1, n_features)]
    return [*np.cumsum(shares).tolist(), float(budget)]
