"""BudgetedSelection: buy what is most likely to change the final classifier for the better.

There is no switch from exploring to exploiting and no threshold. A set S of features is worth the
accuracy expected of its classifier,

    value(S) = sum over x of max over y of p(y, x_S)  +  .02 sum over x, y of p(y, x_S)^2 / p(x_S),

the second term, a Brier score, telling sets apart whose most probable classes agree. For a feature
f let G be the best set without it, T all but the last of G, and R the budget left. The gain of f is
how much better T with f could become than what there is now, if a K-th of R were spent on f:
answers are imagined under channels drawn from the posterior, f is learned again with them, and the
better of G and T + f is taken, averaged over draws. The feature of the largest gain is asked about,
for the class that it knows least of, compared with the classes' prior.

Gains are compared at equal cost: a feature of twice the price gets half the imagined answers.

Features are independent a posteriori given the model, so the value at the posterior mean is the
posterior expectation of the accuracy: no averaging over models is needed there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bayescrowd.budgeted.beliefs.noisy_shrinkage import NoisyShrunkBelief
from bayescrowd.budgeted.beliefs.shrinkage import Imagining, ShrunkBelief
from bayescrowd.budgeted.information_gain import extend, first_best, greedy
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import Count, NonNegative, Seed, validate_arguments

__all__ = ["BudgetedSelection", "expected_accuracy"]

BRIER_WEIGHT = 0.02

N_DRAWS = 16
"""Imagined futures per feature."""

N_BEST = 3
"""Features with the largest gains whose gains are computed again before every purchase."""

REFRESH = 0.3
"""Probability that the gain of another feature is."""

N_DRAWS_TO_STOP = 128
"""Imagined futures per feature before the policy stops early."""

MOST_CONFIGURATIONS = 1_024
"""Columns of the joint table beyond which it is sampled."""

BULK = 0.01
"""Share of the budget left that is bought at once; .06 was worse."""


IMAGINING: dict[str, Callable[[FeatureSpace, int], Imagining]] = {
    "naive_bayes": lambda space, labels_per_query: ShrunkBelief(space),
    "access_path": NoisyShrunkBelief,
}
"""What is believed before the first answer, given space and labels per query; by model."""


def expected_accuracy(
    joint: Float[np.ndarray, "cls configuration"],
    channels: Float[np.ndarray, "feature cls outcome"],
) -> Float[np.ndarray, " feature"]:
    """Value of the chosen features with each candidate, from the joint table of those chosen.

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


class BudgetedSelection(Policy):
    """Look ahead: ask where answers would improve the final classifier most. The default.

    Mean test errors over 64 fresh paired splits, beside the best of `RoundRobin`, `BiasedRobin`,
    `TsGreedy` and `BLeafs`, picked afterwards for each budget, on breast-cancer with two features:
    .088, .082, .064, .053 against .124, .102, .077, .062 at budgets of 50, 100, 200, 400; and on
    nursery with two features: .268, .223, .189 against .314, .243, .192 at 100, 200, 400; with
    four: .218, .176 against .242, .189 at 200, 400. With five labels per query, 30 % of them wrong,
    and the access path model: .366, .315 against .440, .354 at 500, 1000. On a simulated table with
    a rare class (one in ten) it was as good as they were, not better.

    Args:
        space: classes, features, costs. Its prior's strength is not used: `shrinkage` has priors
            of its own.
        budget: what the labels may cost in all.
        n_features: how many features the classifier may use (K).
        model: how labels depend on the class.
        labels_per_query: labels of the same feature of the same instance per query.
        target: ask about instances of 'any' class, the one least known; or with the classes'
            'prior' probabilities, as the paper does, where instances cannot be chosen.
        stop: 'never' before the budget is spent; or as soon as all purchases are 'worthless':
            a K-th of the budget left, spent on any one feature, is expected to raise the accuracy
            by less than `least_gain`.
        least_gain: see `stop`.
        seed: of every random choice.

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

    @validate_arguments
    def __init__(
        self,
        space: FeatureSpace,
        budget: NonNegative,
        n_features: Count,
        *,
        model: str = "naive_bayes",
        labels_per_query: Count = 1,
        target: Literal["any", "prior"] = "any",
        stop: Literal["never", "worthless"] = "never",
        least_gain: NonNegative = 0.001,
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            space, budget, n_features, model=model, labels_per_query=labels_per_query, seed=seed
        )
        self.target = target
        self.stop = stop
        self.least_gain = least_gain
        self._gain = np.full(len(space.features), np.inf)
        self._bulk: list[int] = []
        """Features whose purchase is decided already."""
        self._last = -1

    def gains(self) -> pd.Series:
        """Expected rise of accuracy from a K-th of the budget left, by feature, as last computed.

        Infinite before the first purchase.
        """
        by_name = pd.Series(self._gain, index=pd.Index(self._space.names), name="gain")
        return by_name.reindex(pd.Index(self.space.names))

    def _first_belief(self) -> Imagining:
        if self.model not in IMAGINING:
            raise ValueError(f"model={self.model!r}: expected one of {', '.join(IMAGINING)}")
        self._imagining = IMAGINING[self.model](self._space, self.labels_per_query)
        return self._imagining

    def _choose(self, candidates: Bool[np.ndarray, " feature"]) -> int | None:
        while self._bulk:
            feature = self._bulk.pop()
            if candidates[feature]:
                return feature
        before = (self._rng.bit_generator.state, self._gain.copy()) if self._may_stop() else None
        chosen = self._select()
        self._refresh(chosen, self._to_refresh(candidates), N_DRAWS)
        if before is not None and self._is_worthless(chosen, candidates):
            if not self._ledger.open:
                self._stop_reason = "no purchase is worth its price"
            else:  # wait for the answers, as if nothing had been asked
                self._rng.bit_generator.state, self._gain = before
            return None
        feature = self._best(chosen, candidates)
        self._last = feature
        n_affordable = self._left() / float(self._ledger.prices[feature])
        self._bulk = [feature] * (int(BULK * n_affordable) - 1)
        return feature

    def _next_class(self, feature: int) -> int:
        if self.target == "prior":
            return super()._next_class(feature)
        known = self._ledger.observed[feature] + self._ledger.pending[feature]
        lacking = self._space.class_prior * (known.sum() + 1) - known
        return first_best(lacking, ~self._ledger.available[feature])

    def _select(self) -> list[int]:
        return self._greedy(self.n_features)

    def _best(self, chosen: Sequence[int], candidates: Bool[np.ndarray, " feature"]) -> int:
        # answers that are on their way leave less to be learned by further ones
        pending = self._ledger.pending.sum(axis=1)
        n_imagined = self._n_imagined()
        gain = self._gain * n_imagined / (n_imagined + pending)
        feature = first_best(gain, ~candidates)
        if gain[feature] > 0:
            return feature
        asked = self._ledger.observed.sum(axis=1) + pending
        members = [f for f in chosen if candidates[f]] or np.flatnonzero(candidates).tolist()
        return min(members, key=lambda f: int(asked[f]))

    def _may_stop(self) -> bool:
        return self.stop == "worthless"

    def _is_worthless(
        self, chosen: Sequence[int], candidates: Bool[np.ndarray, " feature"]
    ) -> bool:
        if self._gain[candidates].max() >= self.least_gain:
            return False
        self._refresh(chosen, np.flatnonzero(candidates).tolist(), N_DRAWS_TO_STOP)
        return bool(self._gain[candidates].max() < self.least_gain)

    def _to_refresh(self, candidates: Bool[np.ndarray, " feature"]) -> list[int]:
        gain = np.where(candidates, self._gain, -np.inf)
        again = self._rng.random(len(gain)) < REFRESH
        again |= np.isinf(self._gain)
        again[np.argsort(-gain, kind="stable")[:N_BEST]] = True
        if self._last >= 0:
            again[self._last] = True
        return np.flatnonzero(again & candidates).tolist()

    def _refresh(self, chosen: Sequence[int], features: Sequence[int], n_draws: int) -> None:
        """Compute the gains of some features again."""
        n_observations = self._n_imagined()[features][:, None] * self._space.class_prior
        imagined = self._imagining.imagine(self._rng, features, n_observations, n_draws)
        members = [place for place, f in enumerate(features) if f in chosen]
        others = [place for place, f in enumerate(features) if f not in chosen]
        for place in members:
            f, only = features[place], slice(place, place + 1)
            n_rest = min(self.n_features, len(self._gain) - 1)
            rest = self._greedy(n_rest, start=chosen[: chosen.index(f)], excluded=[f])
            cut = self.n_features - 1
            without = self._without(rest[:cut], rest[cut:])
            self._gain[f] = self._rises(*without, features[only], imagined[only])[0]
        if others:
            without = self._without(chosen[:-1], chosen[-1:])
            named = [features[place] for place in others]
            self._gain[named] = self._rises(*without, named, imagined[others])

    def _rises(
        self,
        joint: Float[np.ndarray, "cls configuration"],
        value: float,
        features: Sequence[int],
        futures: Float[np.ndarray, "feature draw cls outcome"],
    ) -> Float[np.ndarray, " feature"]:
        """By how much each feature raises the better of G and T with it, from now to its futures.

        Args:
            joint: of T.
            value: of G.
            features: which ones.
            futures: their channels as imagined.
        """
        now = self._belief.mean()[features][:, None]
        channels = np.concatenate([now, futures], axis=1)
        n_features, n_draws = channels.shape[:2]
        found = expected_accuracy(joint, channels.reshape(-1, *channels.shape[2:]))
        better = np.maximum(value, found).reshape(n_features, n_draws)
        return better[:, 1:].mean(axis=1) - better[:, 0]

    def _without(
        self, others: Sequence[int], last: Sequence[int]
    ) -> tuple[Float[np.ndarray, "cls configuration"], float]:
        """The joint table of T, and the value of G: T and at most one feature more."""
        mean, widths = self._belief.mean(), self._belief.n_outcomes
        joint = self._space.class_prior[:, None]
        for f in others:
            joint = extend(joint, mean[f, :, : widths[f]], most=MOST_CONFIGURATIONS)
        nothing = np.ones((1, len(joint), 1))
        channel = mean[[last[0]], :, : widths[last[0]]] if last else nothing
        return joint, float(expected_accuracy(joint, channel)[0])

    def _greedy(
        self, n_chosen: int, *, start: Sequence[int] = (), excluded: Sequence[int] = ()
    ) -> list[int]:
        return greedy(
            self._space.class_prior,
            self._belief.mean(),
            self._belief.n_outcomes,
            n_chosen,
            score=expected_accuracy,
            start=start,
            excluded=excluded,
            most=MOST_CONFIGURATIONS,
        )

    def _n_imagined(self) -> Float[np.ndarray, " feature"]:
        """Observations of each feature that a K-th of the budget left buys, at least one."""
        return np.maximum(1, self._left() / self.n_features / self._ledger.prices)

    def _left(self) -> float:
        """What is neither spent nor reserved."""
        return self._ledger.left - self._ledger.reserved
