"""Baseline policies: those of Nushi et al. 2016, section 'Baselines', and two more simple ones.

Each buys in its own way; the features are then selected greedily, by information gain, at the
posterior mean given what was bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayescrowd.budgeted.beliefs.naive_bayes import Belief
from bayescrowd.budgeted.core import Core, Problem, least_asked
from bayescrowd.budgeted.information_gain import greedy, information_gains
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.query_book import ROUNDING, OpenQuery
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.budgeted.state import Choice, Memory, State, Stop, Wait
from bayescrowd.checks.parameters import Count, Fraction, NonNegative, validate_arguments

__all__ = ["BiasedRobin", "ExploreThenCommit", "PosteriorMeanGreedy", "RoundRobin", "TsGreedy"]


class RoundRobin(Policy):
    """Ask about all features in turn (Lizotte, Madani and Greiner 2003).

    The arguments are those of every policy; see `BLeafs`.

    Examples:
        >>> import bayescrowd as bc
        >>> space = bc.FeatureSpace(
        ...     classes=["a", "b"], features={"x": [0, 1], "y": [0, 1], "z": [0, 1]}
        ... )
        >>> policy = bc.RoundRobin(space, budget=6, n_features=1)
        >>> for query in policy.ask_batch(6):
        ...     policy.tell(query, 0)
        >>> policy.result().spending["labels"].to_list()
        [2, 2, 2]
    """

    def _make_core(self, problem: Problem) -> RoundRobinCore:
        return RoundRobinCore(problem)


class RoundRobinCore(Core):
    """The decisions of `RoundRobin`, which needs no memory."""

    def first_memory(self, belief: Belief) -> None:
        """Nothing."""

    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice:
        """The feature asked about least."""
        return Choice(least_asked(np.flatnonzero(candidates).tolist(), state.book), None)


class BiasedRobin(Policy):
    """Stay with a feature while its observations help (Lizotte, Madani and Greiner 2003).

    As long as each observation lowers H(Y | X_i) at the posterior mean, the feature taken alone,
    the next query is about the same feature; then it is the next feature's turn. The arguments are
    those of every policy; see `BLeafs`.
    """

    def _make_core(self, problem: Problem) -> BiasedRobinCore:
        return BiasedRobinCore(problem)


class Turn(NamedTuple):
    """What `BiasedRobin` remembers."""

    feature: int
    """The feature whose turn it is."""
    information: Float[np.ndarray, " feature"]
    """I(Y; X_i) of every feature at the posterior mean."""


class BiasedRobinCore(Core):
    """The decisions of `BiasedRobin`."""

    def first_memory(self, belief: Belief) -> Turn:
        """It is the first feature's turn."""
        return Turn(0, self._information(belief))

    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice:
        """The feature whose turn it is, or the next candidate after it, round the table."""
        turn: int = state.memory.feature
        feature = int((turn + np.roll(candidates, -turn).argmax()) % len(candidates))
        return Choice(feature, state.memory)

    def after_question(self, state: State, query: OpenQuery) -> State:
        """It is the turn of the feature asked about."""
        return state._replace(memory=state.memory._replace(feature=query.feature))

    def after_observation(self, state: State, query: OpenQuery) -> State:
        """It is the next feature's turn if the observation has not helped."""
        memory: Turn = state.memory
        turn, information = memory.feature, self._information(state.belief)
        # a lower H(Y | X_i) is a higher I(Y; X_i)
        has_helped = information[query.feature] > memory.information[query.feature] + 1e-12
        if query.feature == turn and not has_helped:
            turn = (turn + 1) % len(information)
        return state._replace(memory=Turn(turn, information))

    def _information(self, belief: Belief) -> Float[np.ndarray, " feature"]:
        return information_gains(self.problem.prior[:, None], belief.mean())


class TsGreedy(Policy):
    """Thompson sampling of whole sets (Schnitzler, Yu and Mannor 2015).

    A model is drawn from the posterior, K features are chosen greedily under it, and each of them
    is asked about once; then a new model is drawn. The arguments are those of every policy; see
    `BLeafs`.
    """

    def _make_core(self, problem: Problem) -> TsGreedyCore:
        return TsGreedyCore(problem)


class TsGreedyCore(Core):
    """The decisions of `TsGreedy`, which remembers the features still to be asked about."""

    def first_memory(self, belief: Belief) -> tuple[int, ...]:
        """No features are waiting to be asked about."""
        return ()

    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice:
        """The next candidate of the queue, or the first of a new one."""
        queue: tuple[int, ...] = state.memory
        for place, feature in enumerate(queue):
            if candidates[feature]:
                return Choice(feature, queue[place + 1 :])
        channels = self.channels(rng, state.belief)
        first, *others = greedy(
            self.class_prior(rng),
            channels,
            state.belief.n_outcomes,
            min(self.problem.n_features, int(candidates.sum())),
            excluded=np.flatnonzero(~candidates).tolist(),
        )
        return Choice(first, tuple(others))

    def channels(
        self, rng: np.random.Generator, belief: Belief
    ) -> Float[np.ndarray, "feature cls outcome"]:
        """The channels under which features are chosen: a draw from the posterior."""
        return belief.draw(rng)

    def class_prior(self, rng: np.random.Generator) -> Float[np.ndarray, " cls"]:
        """The classes' probabilities under which features are chosen: a draw as well."""
        return self.problem.space.draw_class_prior(rng)


class PosteriorMeanGreedy(TsGreedy):
    """`TsGreedy` without exploration: the posterior mean instead of a draw."""

    def _make_core(self, problem: Problem) -> PosteriorMeanGreedyCore:
        return PosteriorMeanGreedyCore(problem)


class PosteriorMeanGreedyCore(TsGreedyCore):
    """The decisions of `PosteriorMeanGreedy`."""

    def channels(
        self, rng: np.random.Generator, belief: Belief
    ) -> Float[np.ndarray, "feature cls outcome"]:
        """The channels under which features are chosen: the posterior mean."""
        return belief.mean()

    def class_prior(self, rng: np.random.Generator) -> Float[np.ndarray, " cls"]:
        """The classes' probabilities under which features are chosen: their mean as well."""
        return self.problem.prior


class ExploreThenCommit(Policy):
    """Explore with a share of the budget, then buy only what looks best.

    After exploring, the rest of the budget goes to the features that would be selected if it ended
    now, the least observed of them first. They are chosen anew with every answer: one that only
    seemed good loses its place as it becomes known. (Keeping the first choice to the end costs .02
    to .07 more test error on nursery with two features.)

    Args:
        space: classes, features, priors and costs.
        budget: what the labels may cost in all.
        n_features: number of features that the classifier may use (K).
        explore: how to explore: as `TsGreedy`, `BiasedRobin` or `RoundRobin` do.
        share: share of the budget that is spent on exploring.
        options: further arguments of every policy; see `BLeafs`.
    """

    @validate_arguments
    def __init__(
        self,
        space: FeatureSpace,
        budget: NonNegative,
        n_features: Count,
        *,
        explore: Literal["thompson", "biased-robin", "round-robin"] = "thompson",
        share: Fraction = 0.5,
        **options: Any,
    ) -> None:
        self.explore = explore
        self.share = share
        super().__init__(space, budget, n_features, **options)

    def _make_core(self, problem: Problem) -> ExploreThenCommitCore:
        return ExploreThenCommitCore(problem, _EXPLORERS[self.explore](problem), self.share)


class Commitment(NamedTuple):
    """What `ExploreThenCommit` remembers."""

    has_explored: bool
    """Whether exploring is over."""
    best: tuple[int, ...]
    """The features that look best; empty after an answer, until they are chosen anew."""
    explorer: Memory
    """What the policy that explores remembers."""


@dataclass(frozen=True, eq=False)
class ExploreThenCommitCore(Core):
    """The decisions of `ExploreThenCommit`.

    Args:
        problem: what is given.
        explorer: decides what to ask while exploring.
        share: share of the budget that is spent on exploring.
    """

    explorer: Core
    share: float

    def first_memory(self, belief: Belief) -> Commitment:
        """Exploring has not begun."""
        return Commitment(False, (), self.explorer.first_memory(belief))

    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice | Wait | Stop:
        """What the explorer chooses, or the least observed of the features that look best."""
        book = state.book
        memory: Commitment = state.memory
        if not memory.has_explored:
            price = float(self.problem.prices[candidates].min())
            if book.spent + book.reserved + price <= self.share * self.problem.budget + ROUNDING:
                choice = self.explorer.choose_feature(rng, _for_explorer(state), candidates)
                if not isinstance(choice, Choice):
                    return choice
                return Choice(choice.feature, memory._replace(explorer=choice.memory))
            if book.open_queries:
                return Wait()
        best = memory.best or tuple(self.select(state))
        members = [f for f in best if candidates[f]]
        if members:
            memory = memory._replace(has_explored=True, best=best)
            return Choice(least_asked(members, book), memory)
        if book.open_queries:
            return Wait()
        return Stop("nothing left to ask about the selected features", memory)

    def after_question(self, state: State, query: OpenQuery) -> State:
        """The explorer is informed of the question."""
        return _from_explorer(state, self.explorer.after_question(_for_explorer(state), query))

    def after_observation(self, state: State, query: OpenQuery) -> State:
        """The explorer is informed of the observation, and the best features are open again."""
        memory: Commitment = state.memory
        state = state._replace(memory=memory._replace(best=()))
        return _from_explorer(state, self.explorer.after_observation(_for_explorer(state), query))


def _for_explorer(state: State) -> State:
    """The state as the explorer sees it: with its own memory."""
    return state._replace(memory=state.memory.explorer)


def _from_explorer(state: State, explored: State) -> State:
    """The explorer's state with its memory put back into that of `ExploreThenCommit`."""
    memory: Commitment = state.memory
    return explored._replace(memory=memory._replace(explorer=explored.memory))


_EXPLORERS: dict[str, type[Core]] = {
    "thompson": TsGreedyCore,
    "biased-robin": BiasedRobinCore,
    "round-robin": RoundRobinCore,
}
