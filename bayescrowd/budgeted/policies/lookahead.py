"""BudgetedSelection: buy what is most likely to change the final classifier for the better.

There is no switch from exploring to exploiting and no threshold. A set S of features is worth the
accuracy expected of its classifier,

    value(S) = sum over x of max over y of p(y, x_S)  +  .02 sum over x, y of p(y, x_S)^2 / p(x_S),

where the second term, a Brier score, distinguishes sets whose most probable classes agree. For a
feature f let G be the best set without it, T all of G but its last feature, and R the budget left.
The gain of f is how much better than now T with f could become if a K-th of R were spent on f:
answers are imagined under channels drawn from the posterior, f is learned again with them, and the
better of G and T + f is taken, averaged over draws. The feature with the largest gain is asked
about, for the class with the fewest observations compared with the classes' prior.

Gains are compared at equal cost: a feature of twice the price gets half the imagined answers.

Features are independent a posteriori given the model, so the value at the posterior mean is the
posterior expectation of the accuracy, and no averaging over models is needed there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bayescrowd.budgeted.beliefs.naive_bayes import Belief
from bayescrowd.budgeted.beliefs.noisy_shrinkage import NoisyShrunkBelief
from bayescrowd.budgeted.beliefs.options import (
    MAJORITIES,
    BeliefOptions,
    FirstBelief,
    Sampler,
    WorkerPrior,
    access_path_belief,
    refuse_worker_options,
)
from bayescrowd.budgeted.beliefs.shrinkage import ImaginingBelief, ShrunkBelief
from bayescrowd.budgeted.core import Core, Problem, least_asked
from bayescrowd.budgeted.information_gain import extend, first_best, greedy
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.budgeted.state import Choice, State, Stop, Wait
from bayescrowd.checks.parameters import Count, NonNegative, Seed, validate_arguments

__all__ = ["BudgetedSelection", "expected_accuracy"]

BRIER_WEIGHT = 0.02
"""Weight of the Brier score in the value of a set of features."""

N_DRAWS = 16
"""Number of imagined futures per feature."""

N_BEST = 3
"""Number of features with the largest gains whose gains are recomputed before every purchase."""

REFRESH = 0.3
"""Probability that the gain of any other feature is recomputed before a purchase."""

N_DRAWS_TO_STOP = 128
"""Number of imagined futures per feature before the policy stops early."""

MOST_CONFIGURATIONS = 1_024
"""Number of columns of the joint table above which it is sampled."""

BULK = 0.01
"""Share of the budget left that one decision spends; .06 was worse."""


def expected_accuracy(
    joint: Float[np.ndarray, "cls configuration"],
    channels: Float[np.ndarray, "feature cls outcome"],
) -> Float[np.ndarray, " feature"]:
    """Value of the chosen features together with each candidate, given their joint table.

    Examples:
        >>> import numpy as np
        >>> prior = np.array([[0.5], [0.5]])
        >>> perfect, useless = np.eye(2), np.full((2, 2), 0.5)
        >>> expected_accuracy(prior, np.stack([perfect, useless]))
        array([1.02, 0.51])
    """
    n_features, n_classes, n_outcomes = channels.shape
    flat = channels.swapaxes(0, 1).reshape(n_classes, -1)
    best = np.multiply.outer(joint[0], flat[0])
    other = np.empty_like(best)
    for y in range(1, n_classes):
        np.multiply.outer(joint[y], flat[y], out=other)
        np.maximum(best, other, out=best)
    squares = np.square(joint).T @ np.square(flat)
    squares /= joint.T @ flat + 1e-300
    total = best.sum(axis=0) + BRIER_WEIGHT * squares.sum(axis=0)
    return total.reshape(n_features, n_outcomes).sum(axis=1)


def _majorities(space: FeatureSpace, options: BeliefOptions) -> ShrunkBelief:
    refuse_worker_options(options, MAJORITIES)
    return ShrunkBelief(space)


class BudgetedSelection(Policy):
    """Look ahead: ask where answers would improve the final classifier most. The default.

    Mean test errors over 64 fresh paired splits, against the best of `RoundRobin`, `BiasedRobin`,
    `TsGreedy` and `BLeafs`, picked afterwards for each budget: on breast-cancer with two features
    .088, .082, .064, .053 against .124, .102, .077, .062 at budgets of 50, 100, 200, 400; on
    nursery with two features .268, .223, .189 against .314, .243, .192 at 100, 200, 400, and with
    four .218, .176 against .242, .189 at 200, 400. With five labels per query, 30 % of them wrong,
    and the access path model: .366, .315 against .440, .354 at 500, 1000. On a simulated table with
    a rare class (one in ten) it was as good as they were, not better.

    Args:
        space: classes, features and costs. The strength of its prior is not used: `shrinkage` has
            priors of its own.
        budget: what the labels may cost in all.
        n_features: number of features that the classifier may use (K).
        model: name of the model of how labels depend on the class.
        labels_per_query: number of labels that each query asks for, all of the same feature of the
            same instance.
        sampler: 'conjugate'. Other samplers draw from other posteriors than this policy's, whose
            prior learns how much the classes differ (`shrinkage`) and is part of no NumPyro model.
        worker_prior: prior of the workers' confusion matrices, for the access path model: 'right'
            favours right answers; 'uniform' is the paper's; or a `models.access_path.Prior`, of
            which `right`, `wrong` and `pooling` are used.
        worker_parameters: whose confusion matrices there are, for the access path model: one per
            feature, 'shared' by all workers; or besides it, where `tell` names the workers, those
            of workers with five or more labels of a feature, their 'own', partially pooled toward
            the shared one.
        target: which class to ask about: 'any', the one with the fewest observations compared with
            its prior; or one drawn with the classes' 'prior' probabilities, as in the paper, for
            when instances cannot be chosen.
        stop: when to stop: 'never' before the budget is spent; or as soon as all purchases are
            'worthless': a K-th of the budget left, spent on any one feature, is expected to raise
            the accuracy by less than `least_gain`.
        least_gain: smallest rise of the accuracy that is worth its price; see `stop`.
        seed: seed of every random choice.

    Examples:
        >>> import bayescrowd as bc
        >>> space = bc.FeatureSpace(
        ...     classes=["spam", "ham"],
        ...     features={"link": ["no", "yes"], "greeting": ["no", "yes"], "length": [1, 2, 3]},
        ... )
        >>> policy = bc.BudgetedSelection(space, budget=20, n_features=1)
        >>> while (query := policy.ask()) is not None:
        ...     is_spam = query.target == "spam"
        ...     says = {"link": "yes" if is_spam else "no", "greeting": "no", "length": 2}
        ...     policy.tell(query, says[query.feature])
        >>> policy.result().selected
        ('link',)
    """

    _beliefs: ClassVar[Mapping[str, FirstBelief]] = {
        "naive_bayes": _majorities,
        "access_path": lambda space, options: NoisyShrunkBelief(
            space, access_path_belief(space, options)
        ),
    }

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
        target: Literal["any", "prior"] = "any",
        stop: Literal["never", "worthless"] = "never",
        least_gain: NonNegative = 0.001,
        seed: Seed = 0,
    ) -> None:
        if sampler != "conjugate":
            raise ValueError(
                f"sampler={sampler!r:.60}: expected 'conjugate'; BudgetedSelection has a prior of "
                "its own, which learns how much the classes differ and is part of no NumPyro "
                "model; every other policy takes other samplers"
            )
        self.target = target
        self.stop = stop
        self.least_gain = least_gain
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

    def gains(self) -> pd.Series:
        """Expected rise of accuracy from a K-th of the budget left, by feature, as last computed.

        Infinite before the first purchase.
        """
        decision = self._decision
        memory = decision.memory if isinstance(decision, Stop) else self._state.memory
        return self._by_feature(memory.gains, "gain")

    def _make_core(self, problem: Problem) -> LookaheadCore:
        least_gain = self.least_gain if self.stop == "worthless" else None
        return LookaheadCore(problem, by_prior=self.target == "prior", least_gain=least_gain)


class Outlook(NamedTuple):
    """What `BudgetedSelection` remembers."""

    gains: Float[np.ndarray, " feature"]
    """Gain of each feature as last computed, infinite before that."""
    last: int
    """The feature that was decided on last, -1 if none."""
    n_more: int
    """Number of further queries about that feature that are decided on already."""


@dataclass(frozen=True, eq=False)
class LookaheadCore(Core):
    """The decisions of `BudgetedSelection`.

    Args:
        problem: what is given.
        by_prior: whether classes are drawn from their prior.
        least_gain: gain below which a purchase is worthless and the policy stops; None: never.
    """

    by_prior: bool
    least_gain: float | None

    def first_memory(self, belief: Belief) -> Outlook:
        """No gain has been computed."""
        return Outlook(np.full(len(self.problem.prices), np.inf), -1, 0)

    def choose_feature(
        self,
        rng: np.random.Generator,
        state: State,
        candidates: Bool[np.ndarray, " feature"],
    ) -> Choice | Wait | Stop:
        """The feature decided on before, or the one whose imagined answers help most."""
        memory: Outlook = state.memory
        if memory.n_more > 0 and candidates[memory.last]:
            return Choice(memory.last, memory._replace(n_more=memory.n_more - 1))
        chosen = self.select(state)
        drawn = self._draw_refreshed(rng, memory, candidates)
        gains = self._refresh(rng, state, memory.gains, chosen, drawn, N_DRAWS)
        if self.least_gain is not None and gains[candidates].max() < self.least_gain:
            features = np.flatnonzero(candidates).tolist()
            gains = self._refresh(rng, state, gains, chosen, features, N_DRAWS_TO_STOP)
            if gains[candidates].max() < self.least_gain:
                if state.book.open_queries:
                    return Wait()
                return Stop("no purchase is worth its price", memory._replace(gains=gains))
        feature = self._best(state, gains, chosen, candidates)
        n_affordable = self._free(state) / float(self.problem.prices[feature])
        return Choice(feature, Outlook(gains, feature, max(0, int(BULK * n_affordable) - 1)))

    def choose_class(self, rng: np.random.Generator, state: State, feature: int) -> int:
        """The class with the fewest observations compared with its prior, or a drawn one."""
        if self.by_prior:
            return super().choose_class(rng, state, feature)
        book = state.book
        n_queries = book.observed[feature] + book.pending[feature]
        lacking = self.problem.prior * (n_queries.sum() + 1) - n_queries
        return first_best(lacking, ~book.available[feature])

    def select(self, state: State) -> list[int]:
        """The features that add most to the expected accuracy, one by one."""
        return self._greedy(state, self.problem.n_features)

    def _best(
        self,
        state: State,
        gains: Float[np.ndarray, " feature"],
        chosen: Sequence[int],
        candidates: Bool[np.ndarray, " feature"],
    ) -> int:
        # answers that are on their way leave less to be learned by further ones
        pending = state.book.pending.sum(axis=1)
        n_imagined = self._n_imagined(state)
        discounted = gains * n_imagined / (n_imagined + pending)
        feature = first_best(discounted, ~candidates)
        if discounted[feature] > 0:
            return feature
        members = [f for f in chosen if candidates[f]] or np.flatnonzero(candidates).tolist()
        return least_asked(members, state.book)

    def _draw_refreshed(
        self, rng: np.random.Generator, memory: Outlook, candidates: Bool[np.ndarray, " feature"]
    ) -> list[int]:
        """Candidates whose gains to recompute: the best, the last, new ones, and some at random."""
        is_refreshed = rng.random(len(candidates)) < REFRESH
        is_refreshed |= np.isinf(memory.gains)
        gains = np.where(candidates, memory.gains, -np.inf)
        is_refreshed[np.argsort(-gains, kind="stable")[:N_BEST]] = True
        if memory.last >= 0:
            is_refreshed[memory.last] = True
        return np.flatnonzero(is_refreshed & candidates).tolist()

    def _refresh(
        self,
        rng: np.random.Generator,
        state: State,
        gains: Float[np.ndarray, " feature"],
        chosen: Sequence[int],
        features: Sequence[int],
        n_draws: int,
    ) -> Float[np.ndarray, " feature"]:
        """The gains with those of some features computed again."""
        refreshed = gains.copy()
        belief = cast("ImaginingBelief", state.belief)
        n_observations = self._n_imagined(state)[features][:, None] * self.problem.prior
        imagined = belief.imagine(rng, features, n_observations, n_draws)
        members = [place for place, f in enumerate(features) if f in chosen]
        others = [place for place, f in enumerate(features) if f not in chosen]
        n_features = self.problem.n_features
        for place in members:
            f, only = features[place], slice(place, place + 1)
            n_rest = min(n_features, len(gains) - 1)
            rest = self._greedy(state, n_rest, start=chosen[: chosen.index(f)], excluded=[f])
            alternative = self._alternative(state, rest[: n_features - 1], rest[n_features - 1 :])
            refreshed[f] = _rises(belief, *alternative, features[only], imagined[only])[0]
        if others:
            alternative = self._alternative(state, chosen[:-1], chosen[-1:])
            named = [features[place] for place in others]
            refreshed[named] = _rises(belief, *alternative, named, imagined[others])
        return refreshed

    def _alternative(
        self, state: State, others: Sequence[int], last: Sequence[int]
    ) -> tuple[Float[np.ndarray, "cls configuration"], float]:
        """The joint table of T, and the value of G: T and at most one more feature."""
        mean, widths = state.belief.mean(), state.belief.n_outcomes
        joint = self.problem.prior[:, None]
        for f in others:
            joint = extend(joint, mean[f, :, : widths[f]], most=MOST_CONFIGURATIONS)
        nothing = np.ones((1, len(joint), 1))
        channel = mean[[last[0]], :, : widths[last[0]]] if last else nothing
        return joint, float(expected_accuracy(joint, channel)[0])

    def _greedy(
        self,
        state: State,
        n_chosen: int,
        *,
        start: Sequence[int] = (),
        excluded: Sequence[int] = (),
    ) -> list[int]:
        return greedy(
            self.problem.prior,
            state.belief.mean(),
            state.belief.n_outcomes,
            n_chosen,
            score=expected_accuracy,
            start=start,
            excluded=excluded,
            most=MOST_CONFIGURATIONS,
        )

    def _n_imagined(self, state: State) -> Float[np.ndarray, " feature"]:
        """Number of observations that a K-th of the free budget buys, by feature; at least 1."""
        return np.maximum(1, self._free(state) / self.problem.n_features / self.problem.prices)

    def _free(self, state: State) -> float:
        """Budget that is neither spent nor reserved."""
        return self.budget_left(state) - state.book.reserved


def _rises(
    belief: Belief,
    joint: Float[np.ndarray, "cls configuration"],
    value: float,
    features: Sequence[int],
    futures: Float[np.ndarray, "feature draw cls outcome"],
) -> Float[np.ndarray, " feature"]:
    """By how much each feature raises the better of G and T with it, from now to its futures.

    Args:
        belief: what is believed now.
        joint: joint table of the class and T.
        value: value of G.
        features: the features to add to T.
        futures: their channels as imagined.
    """
    now = belief.mean()[features][:, None]
    channels = np.concatenate([now, futures], axis=1)
    n_features, n_draws = channels.shape[:2]
    found = expected_accuracy(joint, channels.reshape(-1, *channels.shape[2:]))
    better = np.maximum(value, found).reshape(n_features, n_draws)
    return better[:, 1:].mean(axis=1) - better[:, 0]
