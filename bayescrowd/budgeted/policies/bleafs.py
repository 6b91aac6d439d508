"""B-LEAFS: budgeted learning and feature selection, one feature search after another.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, algorithm 1. The k-th search may spend b_k = B / 2^k (the last
one as much as the one before it). Until the feature asked about last is credible (`credibility`):
draw a model from the posterior, find the feature that gains most information given those selected,
draw a class y ~ P(Y), and ask for that feature of an instance of y. Then the feature is selected.

What the paper leaves open, or prints otherwise than its own example behaves, is an argument; the
defaults are its text, and where that is silent the reading nearest to its table 1:

* `delta`: the printed rule is negative, so that nothing is ever credible; the midpoint is meant.
* `carry`: whether what a search leaves over goes to the next one. Table 1 spends 60, 85, 32 and 23
  of 200, and no reading allows that: shares of 100, 50, 25 and 25 do not, nor do halvings of what
  is left of B (line 18 of the algorithm), and carrying allows 175 labels in the first three
  searches, of which the table spends 177. Carrying comes nearest, so it is the default.
* `pick`: the printed i* is the last draw's; the posterior mean's best is the steadier choice. It
  is also taken where a search has no budget, and i* does not exist.
* `revisit`: the printed algorithm leaves unspent what it does not need for credibility; here it
  may go to the selected features, the least observed first.
* A feature none of whose instances is left cannot become more credible: its search ends with it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from bayescrowd.budgeted.beliefs.credibility import Delta, Measure, delta_of, thresholds
from bayescrowd.budgeted.information_gain import extend, first_best, greedy, information_gains
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.query_book import ROUNDING, Entry
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import Count, NonNegative, OpenFraction, Seed, validate_arguments

__all__ = ["BLeafs"]


class BLeafs(Policy):
    """Budgeted learning and feature selection (Nushi et al. 2016).

    Args:
        space: classes, features, priors, costs.
        budget: what the labels may cost in all (B).
        n_features: how many features the classifier may use (K).
        model: how labels depend on the class; 'naive_bayes' reads the majority of the labels,
            'access_path' all of them, as noisy reports of a hidden value.
        labels_per_query: labels of the same feature of the same instance per query (W).
        epsilon: half width of the credible interval.
        delta: how credible a feature must be; see the module `credibility`. A number holds for
            all features.
        measure: of credibility.
        carry: give what a search leaves over to the next.
        pick: which feature a search ends with.
        revisit: spend what is left in the end on the selected features.
        seed: of every random choice.

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
        epsilon: OpenFraction = 0.05,
        delta: Delta | float = "midpoint",
        measure: Measure = "interval",
        carry: bool = True,
        pick: Literal["last-draw", "posterior-mean"] = "last-draw",
        revisit: bool = False,
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            space, budget, n_features, model=model, labels_per_query=labels_per_query, seed=seed
        )
        self.epsilon = epsilon
        self.delta = delta
        self.measure: Measure = measure
        self.carry = carry
        self.pick = pick
        self.revisit = revisit
        limits = thresholds(
            self._space,
            budget=budget,
            n_features=n_features,
            labels_per_query=labels_per_query,
            epsilon=epsilon,
            measure=measure,
        )
        self._delta = delta_of(delta, limits)
        self._chosen: list[int] = []
        self._last = -1
        """The feature asked about last in this search (i*), -1 if none."""
        self._search_of_query: dict[int, int] = {}
        self._ceilings = _ceilings(budget, n_features)
        self._ceiling = self._ceilings[0]
        """What may have been spent when the present search ends."""
        self._begin_search()

    def _choose(self, candidates: Bool[np.ndarray, " feature"]) -> int | None:
        if self._is_complete():
            return self._revisited(candidates)
        searched = candidates.copy()
        searched[self._chosen] = False
        drawn = self._belief.draw(self._rng)
        return first_best(self._gains(drawn), ~searched)

    def _asked(self, feature: int, cls: int) -> None:
        if not self._is_complete():
            self._last = feature
            self._search_of_query[max(self._ledger.open)] = len(self._chosen)

    def _observed(self, entry: Entry) -> None:
        search = self._search_of_query.pop(entry.query.id, -1)
        if search != len(self._chosen) or self._is_complete():
            return  # an answer that came after its search had ended
        if self._is_credible(entry.feature):
            self._end_search(entry.feature)
        else:
            self._end_search_without_budget()

    def _withdrawn(self, entry: Entry) -> None:
        search = self._search_of_query.pop(entry.query.id, -1)
        if search == len(self._chosen) and not self._is_complete():
            if not self._ledger.available[entry.feature].any():
                self._end_search(entry.feature)
            else:
                self._end_search_without_budget()

    def _select(self) -> list[int]:
        return greedy(
            self._space.class_prior,
            self._belief.mean(),
            self._belief.n_outcomes,
            self.n_features,
            start=self._chosen,
        )

    def _now(self) -> Bool[np.ndarray, " feature"]:
        if self._is_complete():
            return super()._now()
        ledger = self._ledger
        within = min(self._ceiling, ledger.budget) - ledger.spent - ledger.reserved
        now: Bool[np.ndarray, " feature"] = ledger.askable() & (ledger.prices <= within + ROUNDING)
        for f in self._chosen:
            now[f] = False
        return now

    def _is_complete(self) -> bool:
        return len(self._chosen) == self.n_features

    def _is_credible(self, feature: int) -> bool:
        known = self._credibility_of(feature, epsilon=self.epsilon, measure=self.measure)
        return known >= 1 - float(self._delta[feature])

    def _gains(
        self, channels: Float[np.ndarray, "feature cls outcome"]
    ) -> Float[np.ndarray, " feature"]:
        joint = self._space.class_prior[:, None]
        for f in self._chosen:
            joint = extend(joint, channels[f, :, : self._belief.n_outcomes[f]], self._rng)
        return information_gains(joint, channels)

    def _begin_search(self) -> None:
        """Set the ceiling of the next search, and end it at once if it has no budget."""
        if self._is_complete():
            if not self.revisit:
                self._stop_reason = "all features selected"
            return
        k = len(self._chosen)
        if self.carry:
            self._ceiling = self._ceilings[k]
        else:
            share = self._ceilings[k] - (self._ceilings[k - 1] if k else 0)
            self._ceiling = self._ledger.spent + self._ledger.reserved + share
        self._last = -1
        self._end_search_without_budget()

    def _end_search_without_budget(self) -> None:
        is_asking = len(self._chosen) in self._search_of_query.values()
        if not is_asking and not self._now().any():
            self._end_search(self._last)

    def _end_search(self, feature: int) -> None:
        if self.pick == "posterior-mean" or feature < 0:
            barred = np.zeros(len(self._space.features), dtype=bool)
            barred[self._chosen] = True
            feature = first_best(self._gains(self._belief.mean()), barred)
        self._chosen.append(feature)
        self._begin_search()

    def _revisited(self, candidates: Bool[np.ndarray, " feature"]) -> int | None:
        members = [f for f in self._chosen if candidates[f]]
        if not members:
            if not self._ledger.open:
                self._stop_reason = "nothing left to ask about the selected features"
            return None
        asked = (self._ledger.observed + self._ledger.pending).sum(axis=1)
        return min(members, key=lambda f: int(asked[f]))


def _ceilings(budget: float, n_features: int) -> list[float]:
    """Sums of b_k = floor(B / 2^k) up to each search; the last ends at B.

    Examples:
        >>> _ceilings(200, 4)
        [100.0, 150.0, 175.0, 200.0]
    """
    shares = [float(np.floor(budget / 2**k)) for k in range(1, n_features)]
    return [*np.cumsum(shares).tolist(), float(budget)]
