"""Ranking and selecting workers, or any discrete features, by pairwise mutual information.

Zhao and Zucker, 'Feature selection facilitates learning mixtures of discrete product
distributions', algorithm 1. A feature that depends on others is discriminative of the hidden
class; a feature that is independent of the class is independent of all others. No truth is needed,
and it does not matter how a worker names the classes.

    (a) 'subset': the subset of size L with the largest sum of I(Xi; Xj) among its pairs
    (b) 'score':  the L features with the largest score_i = sum over j of I(Xi; Xj)   (equation 1)

Equation 1 grows with the number of items that features share: on crowds, whose workers give from
one to thousands of labels, it ranks by diligence first, and spammers with many labels rank high. By
default, features are therefore ranked by the information of one value about the hidden class
(estimator 'class', see `class_information.py`). The paper's estimator and three others that compare
pairs are there for comparison; (a) needs one of them.

The paper leaves L open: its table reports the best L by truth. Three rules choose L without truth:

* 'held-out' with estimator 'class' takes the number of features that predicts entries of held-out
  items best, less the last ones as long as they hardly add to the gain: together they may add one
  standard error, but at least 0.2 and at most 1 % of the gain. With the other estimators, a mixture
  of the selected features, all others being independent, is scored on items that it has not seen,
  and the fewest features are taken whose likelihood is within one standard error, over items, of
  the best;
* 'knee' cuts where the curve of falling scores is farthest below its chord;
* '95%' takes the fewest features that have 95 % of the sum of all (positive) scores.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.votes import shares
from bayescrowd.checks.parameters import Count, Seed, check_parameters, validate_arguments
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.features import FeatureTable, as_feature_table, is_long
from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table
from bayescrowd.data.text import quantity, shorten
from bayescrowd.estimator import ParameterMixin, check_is_fitted
from bayescrowd.information import Estimator as PairEstimator
from bayescrowd.information import information_matrix
from bayescrowd.iteration import ignore_not_converged
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.selection.workers.class_information import (
    as_crowd,
    mean_gains,
    measure_class_information,
)
from bayescrowd.selection.workers.subsets import best_subset, greedy_order

__all__ = ["MutualInformationSelector"]

Estimator = Literal["class", PairEstimator]
Heuristic = Literal["score", "subset"]
Rule = Literal["held-out", "knee", "95%"]

N_FOLDS = 3
"""Number of parts of the items, each of which is held out once, for estimators by pairs."""

N_SIZES = 25
"""Largest number of sizes, a constant ratio apart, at which the held-out likelihood is computed.

Estimator 'class' adds as many sizes at a constant distance.
"""

LEAST_FEATURES = 3
"""A mixture of fewer features is not identified."""

SCORE_SHARE = 0.95
"""Share of the sum of all positive scores that rule '95%' asks for."""

NEGLIGIBLE, NOTICEABLE = 0.002, 0.01
"""Shares of the held-out gain that the last features may always and may never add, for 'class'.

In between a standard error decides. Alone, it would drop too many features where there are few
items, and too few where the ranking ends with workers who guess and hardly change anything.
"""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="MutualInformationSelector")


class MutualInformationSelector(ParameterMixin):
    """Select the features that say most about a hidden class, without any truth.

    Features may be workers: the class is then the true label.

    Args:
        n_features: number of features to select, or 'auto' to let `rule` decide.
        heuristic: 'score' ranks features by their information; 'subset' looks for the subset with
            the most information among its pairs, which needs an estimator by pairs. The search is
            exact up to 20 features, else greedy with exchanges.
        estimator: 'class', the information of one value about the hidden class; or an estimator of
            `pairwise_mutual_information`, summed over all other features.
        rule: how 'auto' decides; see the module. The held-out likelihood is the most reliable.
        n_components: number of hidden classes; 'values' is the largest number of values of a
            feature, which for workers is the number of labels to choose from.
        seed: seed of the folds and of the starts of mixtures; workers ranked by 'class' need none.

    Attributes:
        scores_: information by feature, nats: of one value about the class, or summed over all
            other features.
        ranking_: all features, the best first. For 'subset', each one adds most to those before.
        selected_: the selected features, in the order of `ranking_`.
        curve_: by number of features: the feature that comes in, its score and the information
            among the first features (`within`, for estimators by pairs); and at the sizes that were
            scored, the log-likelihood of held-out entries above that of independent features
            (`held_out`) and the standard error of its distance from the best (`held_out_error`), in
            nats per entry for 'class' and per item for the others.

    Examples:
        Only five of twenty workers know anything.

        >>> import bayescrowd as bc
        >>> data = bc.simulate.sparse_crowd(300, 20, alpha=0.25, accuracy=0.8, seed=2)
        >>> selector = bc.MutualInformationSelector().fit(data.annotations)
        >>> sorted(selector.selected_)
        [0, 1, 2, 3, 4]
        >>> selector.transform(data.annotations)
        Annotations(1,500 labels: 300 tasks, 5 workers, 3 classes)
    """

    def __init__(
        self,
        n_features: Count | Literal["auto"] = "auto",
        *,
        heuristic: Heuristic = "score",
        estimator: Estimator = "class",
        rule: Rule = "held-out",
        n_components: Count | Literal["values"] = "values",
        seed: Seed = 0,
    ) -> None:
        self.n_features = n_features
        self.heuristic = heuristic
        self.estimator = estimator
        self.rule = rule
        self.n_components = n_components
        self.seed = seed

    def fit(self: Itself, data: Any, y: Any = None) -> Itself:
        """Rank and select the features.

        Args:
            data: `Annotations`, a table with the columns task, worker and label, or a table of
                items x features.
            y: ignored; for scikit-learn's pipelines.
        """
        check_parameters(self)
        table = as_feature_table(data)
        if self.n_features != "auto" and self.n_features > table.n_features:
            raise ValueError(
                f"n_features={self.n_features!r}: expected 'auto' or 1 to {table.n_features}"
            )
        if self.heuristic == "subset" and self.estimator == "class":
            raise ValueError(
                "heuristic='subset' needs an estimator that compares pairs of features: "
                f"{', '.join(get_args(PairEstimator))}"
            )
        self.features_ = table.features
        if self.estimator == "class":
            self._fit_class(table)
        else:
            self._fit_pairs(table, self.estimator)
        n_selected = self._choose_size() if self.n_features == "auto" else self.n_features
        chosen = np.zeros(table.n_features, dtype=bool)
        chosen[self._members(n_selected)] = True
        self._support = chosen
        self.selected_ = self.ranking_[chosen[self._order]]
        return self

    @validate_arguments
    def members(self, n_features: Count) -> pd.Index:
        """The features that would be selected if this many were asked for."""
        check_is_fitted(self)
        if not 1 <= n_features <= len(self.features_):
            raise ValueError(f"n_features={n_features}: expected 1 to {len(self.features_)}")
        return self.features_.take(np.sort(self._members(n_features)))

    @validate_arguments
    def get_support(self, indices: bool = False) -> Bool[np.ndarray, " feature"] | Any:
        """The selected features as a mask, or as positions if `indices`."""
        check_is_fitted(self)
        return np.flatnonzero(self._support) if indices else self._support.copy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the selected features, in the order of the data."""
        return self.features_[self.get_support()].to_numpy(dtype=object)

    def transform(self, data: Any) -> Any:
        """The data with the selected features only, in the form in which they were given."""
        kept = self.features_[self.get_support()]
        if isinstance(data, Annotations):
            return data.select_workers(kept.intersection(data.workers, sort=False))
        if is_long(data):
            return data[data["worker"].isin(kept)]
        if isinstance(data, FeatureTable):
            return data.select_features(np.flatnonzero(data.features.isin(kept)))
        if isinstance(data, pd.DataFrame):
            return data[[name for name in data.columns if name in kept]]
        if np.ndim(data) == 2 and np.shape(data)[1] == len(self._support):
            return np.asarray(data)[:, self._support]
        raise ValueError(
            f"transform: expected data with the {len(self._support)} features of the fit, got "
            f"{type(data).__name__} of shape {np.shape(data)}"
        )

    def fit_transform(self, data: Any, y: Any = None) -> Any:
        """Fit, and return the data with the selected features only."""
        return self.fit(data).transform(data)

    def _members(self, n_features: int) -> Int[np.ndarray, " member"]:
        if self.heuristic == "score":
            return self._order[:n_features]
        return best_subset(self._matrix, n_features)

    def _fit_class(self, table: FeatureTable) -> None:
        """Rank by the information of one value about the hidden class."""
        n_features = table.n_features
        sizes = _path_sizes(n_features, n_even=N_SIZES) if self._asks_held_out() else []
        found = measure_class_information(
            table, n_components=self._n_components(table), seed=self.seed, sizes=sizes
        )
        self._set_ranking(found.scores, np.argsort(-found.scores, kind="stable"))
        self.curve_["within"] = np.nan
        if sizes:
            means, errors = mean_gains(found)
            self.curve_.loc[sizes, "held_out"] = means
            self.curve_.loc[sizes, "held_out_error"] = errors

    def _fit_pairs(self, table: FeatureTable, estimator: PairEstimator) -> None:
        """Rank by the information that features share with each other."""
        self._matrix = information_matrix(table, estimator)
        scores = self._matrix.sum(axis=1)
        by_score = self.heuristic == "score"
        order = np.argsort(-scores, kind="stable") if by_score else greedy_order(self._matrix)
        self._set_ranking(scores, order)
        ordered = self._matrix[np.ix_(order, order)]
        self.curve_["within"] = np.tril(ordered).sum(axis=1).cumsum()
        if self._asks_held_out():
            sizes = _path_sizes(table.n_features)
            members = [self._members(size) for size in sizes]
            gains = _held_out_gains(table, members, self._n_components(table), self.seed)
            behind = gains[gains.mean(axis=1).argmax()] - gains
            self.curve_.loc[sizes, "held_out"] = gains.mean(axis=1)
            self.curve_.loc[sizes, "held_out_error"] = behind.std(axis=1) / np.sqrt(table.n_items)

    def _set_ranking(
        self, scores: Float[np.ndarray, " feature"], order: Int[np.ndarray, " feature"]
    ) -> None:
        self.scores_ = pd.Series(scores, index=self.features_, name="score")
        self.ranking_ = self.features_.take(order)
        self._order = order
        columns = ["feature", "score", "within", "held_out", "held_out_error"]
        index = pd.RangeIndex(1, len(order) + 1, name="n_features")
        values = {"feature": self.ranking_, "score": scores[order]}
        self.curve_ = pd.DataFrame(
            {name: values.get(name, np.full(len(order), np.nan)) for name in columns}, index=index
        )

    def _summary(self) -> str:
        if "selected_" not in vars(self):
            return ""
        named = [shorten(name, 24) for name in self.selected_[:MOST_ROWS]]
        more = ", ..." if len(self.selected_) > len(named) else ""
        of = quantity(len(self.ranking_), "feature")
        return f"{len(self.selected_):,} of {of} selected: {', '.join(named)}{more}"

    def _summary_html(self) -> str:
        if "selected_" not in vars(self):
            return ""
        most = max(float(self.scores_.max()), 1e-12)  # all of them may be 0
        rows = [
            [name, Bar(score / most, f"{score:.3f}"), "yes" if name in self.selected_ else ""]
            for name, score in self.scores_.loc[self.ranking_[:MOST_ROWS]].items()
        ]
        header = ["feature", "score (nats)", "selected"]
        return notebook_table(
            repr(self), header, rows, note=first_rows(len(self.ranking_), "feature")
        )

    def _asks_held_out(self) -> bool:
        return self.n_features == "auto" and self.rule == "held-out"

    def _n_components(self, table: FeatureTable) -> int:
        if self.n_components == "values":
            return max(len(values) for values in table.values)
        return self.n_components

    def _choose_size(self) -> int:
        if self.rule == "held-out":
            computed = self.curve_[["held_out", "held_out_error"]].dropna()
            held_out, error = computed.to_numpy().T
            if self.estimator == "class":
                return int(computed.index[_last_useful_size(held_out, error)])
            return int(computed.index[(held_out >= held_out.max() - error).argmax()])
        falling = np.sort(self.scores_.to_numpy())[::-1]
        return _knee(falling) if self.rule == "knee" else _share_of_scores(falling)


def _path_sizes(n_features: int, n_even: int = 0) -> list[int]:
    """Numbers of features: some a constant ratio apart, `n_even` a constant distance apart."""
    least = min(LEAST_FEATURES, n_features)
    ratio, even = np.geomspace(least, n_features, N_SIZES), np.linspace(least, n_features, n_even)
    return sorted({int(size) for size in np.round(np.concatenate([ratio, even]))})


def _held_out_gains(
    table: FeatureTable, paths: list[Int[np.ndarray, " _"]], n_components: int, seed: int
) -> Float[np.ndarray, "size item"]:
    """Log-likelihood of each held-out item above that of independent features, by size."""
    n_folds = min(N_FOLDS, table.n_items)
    if n_folds < 2:
        raise ValueError("rule='held-out' needs at least 2 items")
    fold = np.random.default_rng(seed).permutation(table.n_items) % n_folds
    gains = np.empty((len(paths), table.n_items))
    for f in range(n_folds):
        held_out = np.flatnonzero(fold == f)
        training = table.select_items(np.flatnonzero(fold != f))
        testing = table.select_items(held_out)
        for place, members in enumerate(paths):
            gains[place, held_out] = _gains(
                training.select_features(members),
                testing.select_features(members),
                n_components,
                seed,
            )
    return gains


def _gains(
    training: FeatureTable, testing: FeatureTable, n_components: int, seed: int
) -> Float[np.ndarray, " item"]:
    options: dict[str, Any] = {"n_iter": 100, "tol": 1e-5, "seed": seed}
    alone = MDPD(1, n_init=1, **options)
    start = _vote_start(training, n_components)
    if start is None:
        mixture = MDPD(n_components, n_init=3, **options)
    else:
        mixture = MDPD(n_components, init=start, n_init=1, **options)
    with ignore_not_converged():
        # If EM has not settled for some size, that size is merely less likely to be chosen.
        together, apart = (model.fit(training).score_samples(testing) for model in (mixture, alone))
    return (together - apart).to_numpy()


def _vote_start(
    table: FeatureTable, n_components: int
) -> Float[np.ndarray, "item component"] | None:
    """The shares of votes, if the features are workers."""
    crowd = as_crowd(table, n_components)
    return None if crowd is None else shares(crowd.votes.astype(float))


def _last_useful_size(
    held_out: Float[np.ndarray, " size"], error: Float[np.ndarray, " size"]
) -> int:
    """Position of the smallest size from which on, up to the best size, features add too little.

    A smaller size that happens to do well is passed over if a larger one, below the best, does not.
    """
    best = int(held_out.argmax())
    gain = max(held_out[best], 0.0)
    allowed = np.clip(error, NEGLIGIBLE * gain, NOTICEABLE * gain)
    too_few = np.flatnonzero((held_out < held_out[best] - allowed)[:best])
    return int(too_few[-1]) + 1 if len(too_few) else 0


def _knee(falling: Float[np.ndarray, " feature"]) -> int:
    """The number of scores up to the point farthest below the chord of the curve."""
    if len(falling) < 3 or falling[0] == falling[-1]:
        return len(falling)
    height = (falling - falling[-1]) / (falling[0] - falling[-1])
    along = np.linspace(0.0, 1.0, len(falling))
    return int(np.argmax(1 - along - height)) + 1


def _share_of_scores(falling: Float[np.ndarray, " feature"]) -> int:
    positive = np.maximum(falling, 0.0)
    if positive.sum() == 0:
        return len(falling)
    reached = positive.cumsum() / positive.sum()
    return int(np.searchsorted(reached, SCORE_SHARE * (1 - 1e-12))) + 1
