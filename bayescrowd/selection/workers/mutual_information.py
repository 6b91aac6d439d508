"""Ranking and selecting workers, or any discrete features, by pairwise mutual information.

Zhao and Zucker, 'Feature selection facilitates learning mixtures of discrete product
distributions', algorithm 1. A feature that depends on others is discriminative of the hidden
class; one that is independent of the class is independent of everything. No truth is needed, and
it does not matter how a worker names the classes.

    (a) 'subset': the subset of size L with the largest sum of I(Xi; Xj) among its pairs
    (b) 'score':  the L features with the largest score_i = sum over j of I(Xi; Xj)   (equation 1)

Equation 1 grows with the number of items that features share: on crowds, whose workers give from
one to thousands of labels, it ranks by diligence first, and spammers with many labels come high. By
default features are therefore ranked by the information of one value about the hidden class
(estimator 'class', see `class_information.py`). The paper's estimator and three more that work by
pairs are there for comparison; (a) needs one of them.

The paper leaves L open: its table reports the best one by truth. Three rules choose it without:

* 'held-out', by estimator 'class': the number of features that predicts entries of held-out items
  best, less those at its end that hardly add to the gain: a standard error of it, but at least
  0.2 and at most 1 % of it. By pairs: a mixture of the selected features, the others being
  independent of everything, is scored on items that it has not seen; the fewest features whose
  likelihood is within one standard error of the best, over items, are taken;
* 'knee': where the curve of falling scores is farthest below its chord;
* '95%': the fewest features that have 95 % of the sum of all (positive) scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.aggregation.votes import shares
from bayescrowd.checks.parameters import Count, Seed, check_parameters, validate_arguments
from bayescrowd.data.annotations import Annotations, as_annotations
from bayescrowd.data.features import FeatureTable, as_feature_table, is_long
from bayescrowd.estimator import ParameterMixin, check_is_fitted, ignore_not_converged
from bayescrowd.information import Estimator as PairEstimator
from bayescrowd.information import information_matrix
from bayescrowd.metrics import error_rate
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.selection.workers.class_information import as_crowd, class_information, mean_gains
from bayescrowd.selection.workers.subsets import best_subset, greedy_order

__all__ = ["MutualInformationSelector", "selection_curve", "supervised_ranking"]

Estimator = Literal["class", PairEstimator]
Heuristic = Literal["score", "subset"]
Rule = Literal["held-out", "knee", "95%"]

N_FOLDS = 3
N_SIZES = 25
"""Most numbers of features at which the held-out likelihood is computed, a constant ratio apart;
for estimator 'class', as many again a constant distance apart."""

LEAST_FEATURES = 3
"""A mixture of fewer features is not identified."""

SCORE_SHARE = 0.95

NEGLIGIBLE, NOTICEABLE = 0.002, 0.01
"""Shares of the held-out gain, for estimator 'class': losing less is always allowed, losing more
never, and in between a standard error decides. By itself it would allow too much where items are
few, and too little where the ranking ends with workers who guess, who hardly change a thing."""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="MutualInformationSelector")


class MutualInformationSelector(ParameterMixin):
    """Select the features that say most about a hidden class, without any truth.

    Features may be workers: the class is then the true label.

    Args:
        n_features: how many to select, or 'auto' to let `rule` decide.
        heuristic: 'score' ranks features by their information; 'subset' looks for the subset with
            the most information among itself, by an estimator that works by pairs: exactly up to 20
            features, else greedily with exchanges.
        estimator: 'class', the information of one value about the hidden class; or one of
            `pairwise_mutual_information`, summed over all other features.
        rule: how 'auto' decides; see the module. The held-out likelihood is the most reliable.
        n_components: number of hidden classes; 'values' is the largest number of values that a
            feature has: with workers, the number of labels to choose from.
        seed: folds and starts of mixtures. Workers ranked by 'class' need none.

    Attributes:
        scores_: information by feature, nats: of one value about the class, or summed over all
            other features.
        ranking_: all features, the best first. For 'subset', in the order in which each adds
            most to those before.
        selected_: those selected, in the order of `ranking_`.
        curve_: by number of features: the feature that comes in, its score, the information
            within the top features (`within`; by pairs only), and where they were computed, the
            log-likelihood of held-out entries above that of independent features (`held_out`) and
            the standard error of its distance from the best (`held_out_error`), in nats per entry
            for 'class' and per item for the others.

    Examples:
        Five of twenty workers know anything. With so few tasks, one who guesses may slip in.

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
            data: `Annotations`, a table task/worker/label, or a table of items x features.
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
                "heuristic='subset' compares pairs of features; expected an estimator by pairs: "
                f"{', '.join(get_args(PairEstimator))}"
            )
        self.features_ = table.features
        if self.estimator == "class":
            self._fit_class(table)
        else:
            self._fit_pairs(table, self.estimator)
        n_selected = self._rule() if self.n_features == "auto" else self.n_features
        chosen = np.zeros(table.n_features, dtype=bool)
        chosen[self._members(n_selected)] = True
        self._support = chosen
        self.selected_ = self.ranking_[chosen[self._order]]
        return self

    @validate_arguments
    def members(self, n_features: Count) -> pd.Index:
        """The features that would be selected if so many were asked for."""
        check_is_fitted(self)
        if not 1 <= n_features <= len(self.features_):
            raise ValueError(f"n_features={n_features}: expected 1 to {len(self.features_)}")
        return self.features_.take(np.sort(self._members(n_features)))

    @validate_arguments
    def get_support(self, indices: bool = False) -> Bool[np.ndarray, " feature"] | Any:
        """Which features are selected: a mask, or their positions."""
        check_is_fitted(self)
        return np.flatnonzero(self._support) if indices else self._support.copy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the selected features in the order of the data."""
        return self.features_[self.get_support()].to_numpy(dtype=object)

    def transform(self, data: Any) -> Any:
        """The data with the selected features only, in the form in which they came."""
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
            f"transform: expected what was fitted, with {len(self._support)} features, got "
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
        found = class_information(
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

    def _asks_held_out(self) -> bool:
        return self.n_features == "auto" and self.rule == "held-out"

    def _n_components(self, table: FeatureTable) -> int:
        if self.n_components == "values":
            return max(len(values) for values in table.values)
        return self.n_components

    def _rule(self) -> int:
        if self.rule == "held-out":
            computed = self.curve_[["held_out", "held_out_error"]].dropna()
            held_out, error = computed.to_numpy().T
            if self.estimator == "class":
                return int(computed.index[_last_step(held_out, error)])
            return int(computed.index[(held_out >= held_out.max() - error).argmax()])
        falling = np.sort(self.scores_.to_numpy())[::-1]
        return _knee(falling) if self.rule == "knee" else _share_of_scores(falling)


@validate_arguments
def selection_curve(
    data: Any,
    truth: pd.Series | Mapping[Any, Any],
    selectors: Mapping[str, MutualInformationSelector],
    aggregators: Mapping[str, Aggregator],
    *,
    sizes: Iterable[int] | None = None,
    supervised: bool = True,
) -> pd.DataFrame:
    """Label error against the number of workers.

    A task that no selected worker has labelled is answered by a fair guess: it costs (K - 1) / K.

    Args:
        data: `Annotations`, or a table task/worker/label.
        truth: true class by task; scores the labels, and ranks the workers of 'supervised'.
        selectors: by name; their number of features is not looked at.
        aggregators: by name; fitted anew on the labels of the selected workers.
        sizes: numbers of workers; all from 1 to everybody if None.
        supervised: also select by each worker's error, which needs the truth: what could be
            reached.

    Returns:
        One row per selector, aggregator and size: selector, aggregator, n_workers, error.

    Examples:
        >>> import bayescrowd as bc
        >>> data = bc.simulate.sparse_crowd(300, 20, alpha=0.25, accuracy=0.8, seed=1)
        >>> curve = bc.selection_curve(
        ...     data.annotations,
        ...     data.truth,
        ...     {"score": bc.MutualInformationSelector()},
        ...     {"MV": bc.MajorityVote()},
        ...     sizes=[5, 20],
        ... )
        >>> curve.round(2)
             selector aggregator  n_workers  error
        0       score         MV          5   0.05
        1       score         MV         20   0.30
        2  supervised         MV          5   0.05
        3  supervised         MV         20   0.30
    """
    from sklearn.base import clone

    ann = as_annotations(data)
    numbers = list(range(1, ann.n_workers + 1) if sizes is None else sizes)
    if not numbers or min(numbers) < 1 or max(numbers) > ann.n_workers:
        raise ValueError(f"sizes: expected numbers from 1 to {ann.n_workers} workers")
    paths: dict[str, list[pd.Index]] = {}
    for name, selector in selectors.items():
        fitted = clone(selector).set_params(n_features=1).fit(ann)
        paths[name] = [fitted.members(size) for size in numbers]
    if supervised:
        ranking = supervised_ranking(ann, truth)
        paths["supervised"] = [ranking[:size] for size in numbers]
    rows = [
        (name, method, size, _error_of_workers(ann, workers, aggregator, truth))
        for name, path in paths.items()
        for method, aggregator in aggregators.items()
        for size, workers in zip(numbers, path, strict=True)
    ]
    return pd.DataFrame(rows, columns=["selector", "aggregator", "n_workers", "error"])


def supervised_ranking(data: Any, truth: pd.Series | Mapping[Any, Any]) -> pd.Index:
    """Workers by the error that each alone makes on all tasks with a truth, least first.

    A task that the worker has not labelled counts as a guess, so that a worker with one right
    label does not come first.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "b", "a"], ["b", "a", None]])
        >>> supervised_ranking(ann, {0: "a", 1: "b"}).to_list()
        [0, 2, 1]
    """
    ann = as_annotations(data)
    known = ann.code_truth(truth, name="truth", unchosen="wrong")
    task, worker = ann.task_codes, ann.worker_codes
    is_known = known != -1
    scored = is_known[task]
    # Repeated judgements of a task are votes of one worker.
    pair = task.astype(np.int64) * ann.n_workers + worker
    repeats = np.unique(pair, return_inverse=True, return_counts=True)
    share = 1.0 / repeats[2][repeats[1]]
    right = scored & (ann.label_codes == known[task])
    n_right = np.bincount(worker, share * right, minlength=ann.n_workers)
    n_scored = np.bincount(worker, share * scored, minlength=ann.n_workers)
    expected = n_right + (is_known.sum() - n_scored) / ann.n_classes
    return ann.workers.take(np.argsort(-expected, kind="stable"))


def _error_of_workers(
    ann: Annotations, workers: pd.Index, aggregator: Aggregator, truth: Any
) -> float:
    from sklearn.base import clone

    try:
        selected = ann.select_workers(workers)
    except ValueError:  # workers of the vocabulary who have no label
        return 1 - 1 / ann.n_classes
    probas = clone(aggregator).fit_predict_proba(selected)
    probas.loc[selected.labels_per_task == 0] = np.nan  # scored as a fair guess
    return error_rate(probas, truth)


def _path_sizes(n_features: int, n_even: int = 0) -> list[int]:
    """Numbers of features, a constant ratio apart, and so many a constant distance apart."""
    least = min(LEAST_FEATURES, n_features)
    ratio, even = np.geomspace(least, n_features, N_SIZES), np.linspace(least, n_features, n_even)
    return sorted({int(size) for size in np.round(np.concatenate([ratio, even]))})


def _held_out_gains(
    table: FeatureTable, paths: list[Int[np.ndarray, " _"]], n_components: int, seed: int
) -> Float[np.ndarray, "size item"]:
    """Log-likelihood of each item above that of independent features, when it is held out."""
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
        # A size at which EM has not settled is only less likely to be chosen.
        together, apart = (model.fit(training).score_samples(testing) for model in (mixture, alone))
    return (together - apart).to_numpy()


def _vote_start(
    table: FeatureTable, n_components: int
) -> Float[np.ndarray, "item component"] | None:
    """Vote shares, where the features are workers."""
    crowd = as_crowd(table, n_components)
    return None if crowd is None else shares(crowd.votes.astype(float))


def _last_step(held_out: Float[np.ndarray, " size"], error: Float[np.ndarray, " size"]) -> int:
    """Place of the fewest features from which on, up to the best number, more of them add nothing.

    A smaller number that happens to do well among numbers that do not is passed over.
    """
    best = int(held_out.argmax())
    gain = max(held_out[best], 0.0)
    allowed = np.clip(error, NEGLIGIBLE * gain, NOTICEABLE * gain)
    too_few = np.flatnonzero((held_out < held_out[best] - allowed)[:best])
    return int(too_few[-1]) + 1 if len(too_few) else 0


def _knee(falling: Float[np.ndarray, " feature"]) -> int:
    """The number of scores before the point farthest below the chord of the curve, at least 1."""
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
