"""Mixtures of discrete product distributions (MDPD) by EM.

An item has the hidden component k with probability w_k; given k, each of its features takes the
value v with probability mu_fvk, independently of the others (Zhao and Zucker, 'Feature selection
facilitates learning mixtures of discrete product distributions', section 2). Dawid and Skene's
model is the special case in which features are workers, values are labels, and there are as many
components as classes. Neither is assumed here: features may have different numbers of values, and
the number of components is free.

    E-step:  P(k | item)  proportional to  w_k prod mu_fvk  over the values that the item shows
    M-step:  mu_fvk = expected share of value v among the items of component k that have feature f

A missing entry carries no information about the component (their section 5.2) and is left out of
the product. How often each feature is present is estimated once and then fixed; it matters only for
the likelihood of the pattern of missing entries and for samples. EM runs in
`bayescrowd.aggregation.em`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import logsumexp

from bayescrowd.aggregation.em import (
    EMEstimate,
    EMResult,
    Incidence,
    Sweep,
    floored_log,
    maximise,
)
from bayescrowd.checks.parameters import (
    Count,
    NonNegative,
    Seed,
    Tolerance,
    as_numbers,
    check_parameters,
    validate_arguments,
)
from bayescrowd.data.features import FeatureTable, as_feature_table
from bayescrowd.estimator import check_is_fitted
from bayescrowd.information import conditional_mutual_information
from bayescrowd.iteration import warn_not_settled
from bayescrowd.mixture.goodness import GoodnessOfFit, surprising_pairs, total_information
from bayescrowd.mixture.mixture_summary import MixtureSummary

__all__ = ["MDPD", "MixtureSample"]

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="MDPD")


class MixtureSample(NamedTuple):
    """Items drawn from a mixture."""

    features: pd.DataFrame
    """Items x features, with missing entries."""
    components: pd.Series
    """The component of each item."""


class MDPD(MixtureSummary):
    """Mixture of discrete product distributions.

    Args:
        n_components: number of components.
        init: 'random', or P(component | item) to start from, items x components.
        n_init: number of starts: the first as `init` says, the others random. The highest
            objective wins.
        prior: whether component weights are 'learned' or 'uniform'.
        pseudo_counts: pseudo-observations per feature and component, distributed like the values
            of the feature over all items; 0 is maximum likelihood. With the default, one, a value
            that a component has not shown does not rule the component out.
        n_iter: largest number of iterations per start.
        tol: stop when the objective rises by less than this, in nats per entry; 0 runs n_iter.
        seed: seed of the random starts.

    Attributes:
        weights_: P(component), the largest first unless `init` determines the order.
        profiles_: P(value | component), indexed (feature, value), a column per component.
        responsibilities_: P(component | item), items x components.
        observed_rate_: share of the items on which each feature is present.
        log_likelihood_: log P(values), given which entries are present, nats.
        n_parameters_: number of free parameters.
        bic_: Bayesian information criterion; lower is better.
        trace_, n_iter_, converged_: the course of the best start.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> rng = np.random.default_rng(0)
        >>> kind = rng.integers(2, size=300)
        >>> table = np.where(rng.random((300, 6)) < 0.9, kind[:, None], 1 - kind[:, None])
        >>> mixture = bc.MDPD(2).fit(table)
        >>> bool(mixture.lack_of_fit_ < bc.MDPD(1).fit(table).lack_of_fit_ / 50)
        True
        >>> agreement = (mixture.predict(table) == kind).mean()
        >>> bool(max(agreement, 1 - agreement) > 0.97)
        True
    """

    def __init__(
        self,
        n_components: Count,
        *,
        init: Literal["random"] | np.ndarray | pd.DataFrame = "random",
        n_init: Count = 10,
        prior: Literal["learned", "uniform"] = "learned",
        pseudo_counts: NonNegative = 1.0,
        n_iter: Count = 500,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.n_init = n_init
        self.prior = prior
        self.pseudo_counts = pseudo_counts
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def fit(self: Itself, data: Any, y: None = None) -> Itself:
        """Learn from a table of items x discrete features, or from `Annotations`.

        Args:
            data: see `bayescrowd.data.features.as_feature_table`.
            y: ignored; scikit-learn's pipelines pass it.
        """
        check_parameters(self)
        table = as_feature_table(data)
        labels = _incidence(table, self.n_components)
        results = (self._run(labels, table, start) for start in range(self.n_init))
        winner, best = max(enumerate(results), key=lambda numbered: numbered[1].trace[-1])
        if winner > 0 or isinstance(self.init, str):
            best = _by_weight(best)
        if not best.converged and self.tol > 0:
            warn_not_settled(
                type(self).__name__,
                n_iter=self.n_iter,
                tol=self.tol,
                quantity="the objective",
                unit="nats per entry",
            )
        return self._set_fit(table, best)

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """P(component | item), items x components; absent features count as missing."""
        table = self._recode(data)
        posterior = np.empty((table.n_items, self.n_components))
        _incidence(table, self.n_components).sweep(self._estimate, posterior)
        return pd.DataFrame(posterior, index=table.items, columns=self.weights_.index)

    def predict(self, data: Any) -> pd.Series:
        """The most probable component of each item."""
        probas = self.predict_proba(data)
        codes = probas.to_numpy().argmax(axis=1)
        return pd.Series(codes, index=probas.index, name="component")

    @validate_arguments
    def score_samples(self, data: Any, *, missing: bool = False) -> pd.Series:
        """Log-likelihood of each item, nats.

        Args:
            data: a table with features of the fit.
            missing: include the likelihood of which entries are present, given `observed_rate_`.
        """
        table = self._recode(data)
        scores = _incidence(table, self.n_components).scores(self._estimate)
        log_likelihood = logsumexp(scores, axis=1)
        if missing:
            rate = self.observed_rate_.to_numpy()
            log_present, log_missing = floored_log(rate), floored_log(1 - rate)
            log_likelihood += _presence(table) @ (log_present - log_missing) + log_missing.sum()
        return pd.Series(log_likelihood, index=table.items, name="log_likelihood")

    def score(self, data: Any, y: None = None) -> float:
        """Mean log-likelihood per item, nats; higher is better."""
        return float(self.score_samples(data).mean())

    @validate_arguments
    def sample(self, n: Count, *, seed: Seed = 0) -> MixtureSample:
        """Draw items; each feature is present with the probability `observed_rate_`.

        Args:
            n: number of items.
            seed: seed of the draws.

        Examples:
            >>> import numpy as np
            >>> import bayescrowd as bc
            >>> mixture = bc.MDPD(1).fit(np.array([[0.0, 1.0], [1.0, np.nan]]))
            >>> drawn = mixture.sample(1000, seed=1)
            >>> bool(0.4 < drawn.features[1].isna().mean() < 0.6)
            True
        """
        check_is_fitted(self)
        if n < 1:
            raise ValueError(f"n={n}: expected at least 1 item")
        rng = np.random.default_rng(seed)
        n_features = len(self.features_)
        components = rng.choice(self.n_components, size=n, p=self.weights_.to_numpy())
        present = rng.random((n, n_features)) < self.observed_rate_.to_numpy()
        feature = np.tile(np.arange(n_features), n)
        codes = self._draw_values(feature, np.repeat(components, n_features), rng)
        codes = codes.reshape(n, n_features)
        columns = {
            name: pd.Series(self.values_[f].take(codes[:, f])).where(present[:, f])
            for f, name in enumerate(self.features_)
        }
        return MixtureSample(pd.DataFrame(columns), pd.Series(components, name="component"))

    @property
    def lack_of_fit_(self) -> float:
        """Sum over pairs of features of I(Xi; Xj | Y) on the fitted data, nats per item.

        Where the model is true, its expectation is zero up to the bias of the estimate;
        `goodness_of_fit` computes what to expect of a true model.
        """
        check_is_fitted(self)
        return total_information(
            self._information_left(self._table, self.responsibilities_.to_numpy())
        )

    def unexplained(self) -> pd.DataFrame:
        """I(Xi; Xj | Y) of every two features on the fitted data, features x features, nats."""
        check_is_fitted(self)
        return pd.DataFrame(
            self._information_left(self._table, self.responsibilities_.to_numpy()),
            index=self.features_,
            columns=self.features_,
        )

    @validate_arguments
    def goodness_of_fit(self, *, n_bootstrap: Count = 99, seed: Seed = 0) -> GoodnessOfFit:
        """Compare `lack_of_fit_` with that of refits to data drawn from the fitted model.

        The drawn data have entries at the same places as the fitted data, and each refit starts
        from the fit.

        Args:
            n_bootstrap: number of data sets; p-values are multiples of 1 / (n_bootstrap + 1).
            seed: seed of the draws.

        Examples:
            >>> import numpy as np
            >>> import bayescrowd as bc
            >>> rng = np.random.default_rng(0)
            >>> coins = rng.integers(2, size=(100, 4))
            >>> bc.MDPD(1).fit(coins).goodness_of_fit(n_bootstrap=19).p_value > 0.05
            True
            >>> twins = np.column_stack([coins, coins[:, 0]])
            >>> result = bc.MDPD(1).fit(twins).goodness_of_fit(n_bootstrap=19)
            >>> result.p_value, result.pairs.loc[0, ["feature", "other"]].to_list()
            (0.05, [0, 4])
        """
        check_is_fitted(self)
        if n_bootstrap < 1:
            raise ValueError(f"n_bootstrap={n_bootstrap}: expected at least 1")
        found = self._information_left(self._table, self.responsibilities_.to_numpy())
        rng = np.random.default_rng(seed)
        total, total_square = np.zeros_like(found), np.zeros_like(found)
        n_larger = 0
        for _ in range(n_bootstrap):
            drawn = self._redraw(rng)
            labels = _incidence(drawn, self.n_components)
            posterior = np.empty((drawn.n_items, self.n_components))
            result = maximise(
                labels,
                posterior,
                _m_step(drawn, self.pseudo_counts, self.prior),
                n_iter=self.n_iter,
                tol=self.tol,
                estimate=self._estimate,
            )
            again = self._information_left(drawn, result.posterior)
            n_larger += int(again.sum() >= found.sum())
            total += again
            total_square += again**2
        mean = total / n_bootstrap
        deviation = np.sqrt(np.maximum(total_square / n_bootstrap - mean**2, 0.0))
        return GoodnessOfFit(
            lack_of_fit=total_information(found),
            expected=total_information(mean),
            p_value=(1 + n_larger) / (1 + n_bootstrap),
            pairs=surprising_pairs(found, mean, deviation, self.features_),
        )

    def _run(self, labels: Incidence, table: FeatureTable, start: int) -> EMResult:
        if start > 0 or isinstance(self.init, str):
            # Start s of seed r is the same whatever n_init is. The rows are concentrated because
            # the averages of flat ones are nearly equal, and EM would begin at a saddle.
            rng = np.random.default_rng([self.seed, start])
            alpha = np.full(self.n_components, 0.1)
            posterior = rng.dirichlet(alpha, size=table.n_items)
        else:
            posterior = _given_posterior(self.init, table, self.n_components)
        m_step = _m_step(table, self.pseudo_counts, self.prior)
        return maximise(labels, posterior, m_step, n_iter=self.n_iter, tol=self.tol)

    def _set_fit(self: Itself, table: FeatureTable, result: EMResult) -> Itself:
        components = pd.RangeIndex(self.n_components, name="component")
        weights = np.exp(result.estimate.log_prior)
        index = pd.MultiIndex.from_arrays(
            [
                table.features.take(table.feature_of_symbol),
                [value for values in table.values for value in values],
            ],
            names=["feature", "value"],
        )
        self.features_, self.values_ = table.features, table.values
        self.weights_ = pd.Series(weights / weights.sum(), index=components, name="weight")
        self.profiles_ = pd.DataFrame(
            np.exp(result.estimate.log_table), index=index, columns=components
        )
        self.responsibilities_ = pd.DataFrame(
            result.posterior, index=table.items, columns=components
        )
        self.observed_rate_ = pd.Series(
            np.minimum(table.observed_share, 1.0), index=table.features, name="observed_rate"
        )
        self.log_likelihood_ = result.log_likelihood
        self.trace_ = result.trace
        self.n_iter_ = len(result.trace)
        self.converged_ = result.converged
        # A value that does not occur adds no parameter: its probability is zero.
        n_values = np.add.reduceat(table.counts > 0, table.feature_offsets[:-1], dtype=int)
        n_free = int(np.maximum(n_values - 1, 0).sum())
        learned = self.n_components - 1 if self.prior == "learned" else 0
        self.n_parameters_ = learned + self.n_components * n_free
        self.bic_ = -2 * self.log_likelihood_ + self.n_parameters_ * float(np.log(table.n_items))
        self._estimate, self._table = result.estimate, table
        return self

    def _recode(self, data: Any) -> FeatureTable:
        """New data with the features and values of the fit."""
        check_is_fitted(self)
        return as_feature_table(data).recode(self.features_, self.values_)

    def _information_left(
        self, table: FeatureTable, posterior: Float[np.ndarray, "item component"]
    ) -> Float[np.ndarray, "feature feature"]:
        return conditional_mutual_information(table, posterior).total

    def _redraw(self, rng: np.random.Generator) -> FeatureTable:
        """Draw new values at the places of the fitted table."""
        table = self._table
        components = rng.choice(self.n_components, size=table.n_items, p=self.weights_.to_numpy())
        feature = table.feature_of_symbol[table.symbols]
        codes = self._draw_values(feature, components[table.item_of_entry], rng)
        return FeatureTable(
            table.offsets,
            table.feature_offsets[feature] + codes,
            table.feature_offsets,
            table.items,
            table.features,
            table.values,
        )

    def _draw_values(
        self,
        feature: Int[np.ndarray, " entry"],
        component: Int[np.ndarray, " entry"],
        rng: np.random.Generator,
    ) -> Int[np.ndarray, " entry"]:
        """Draw a value for each entry, as its position among the values of the feature."""
        sizes = np.array([len(values) for values in self.values_])
        first = np.concatenate([[0], np.cumsum(sizes)])
        chances = self.profiles_.to_numpy()
        draw = rng.random(len(feature))
        codes = np.zeros(len(feature), dtype=np.int64)
        below = np.zeros(len(feature))
        for place in range(int(sizes.max()) - 1):
            inside = place < sizes[feature] - 1  # the last value takes what is left
            symbol = np.where(inside, first[feature] + place, 0)
            below += np.where(inside, chances[symbol, component], 0.0)
            codes += inside & (draw >= below)
        return codes


def _m_step(
    table: FeatureTable, pseudo_counts: float, prior: str
) -> Callable[[Sweep, EMEstimate | None], EMEstimate]:
    """The M-step for one table."""
    starts, feature = table.feature_offsets[:-1], table.feature_of_symbol
    sizes = np.diff(table.feature_offsets)[feature]
    # One flat count, so that a value of the vocabulary that does not occur remains possible.
    base = table.counts + 1.0 / sizes
    base = (base / np.add.reduceat(base, starts)[feature])[:, None]

    def maximise_table(sweep: Sweep, previous: EMEstimate | None) -> EMEstimate:
        counts = sweep.counts + pseudo_counts * base
        totals = np.add.reduceat(counts, starts, axis=0)[feature]
        shares = counts / np.where(totals > 0, totals, 1.0)
        log_table = floored_log(np.where(totals > 0, shares, 1.0 / sizes[:, None]))
        weights = sweep.class_counts / sweep.class_counts.sum()
        if prior == "uniform":
            weights = np.full_like(weights, 1.0 / len(weights))
        penalty = pseudo_counts * float((base * log_table).sum())
        return EMEstimate(log_table, floored_log(weights), penalty, None)

    return maximise_table


def _incidence(table: FeatureTable, n_components: int) -> Incidence:
    return Incidence(
        table.offsets, table.symbols, n_symbols=table.n_symbols, n_classes=n_components
    )


def _by_weight(result: EMResult) -> EMResult:
    """The result with the heaviest component first."""
    order = np.argsort(-result.estimate.log_prior, kind="stable")
    estimate = result.estimate._replace(
        log_table=result.estimate.log_table[:, order],
        log_prior=result.estimate.log_prior[order],
    )
    return result._replace(
        estimate=estimate, posterior=result.posterior[:, order], counts=result.counts[:, order]
    )


def _given_posterior(
    init: Any, table: FeatureTable, n_components: int
) -> Float[np.ndarray, "item component"]:
    posterior = as_numbers("init", init)
    if posterior.shape != (table.n_items, n_components):
        raise ValueError(
            f"init has shape {posterior.shape}; expected ({table.n_items}, {n_components})"
        )
    if not ((posterior >= 0).all() and np.allclose(posterior.sum(axis=1), 1.0)):
        raise ValueError("init: expected rows of probabilities that sum to 1")
    return posterior


def _presence(table: FeatureTable) -> Float[np.ndarray, "item feature"]:
    """One where an item has a feature, zero elsewhere."""
    present = np.zeros((table.n_items, table.n_features))
    present[table.item_of_entry, table.feature_of_symbol[table.symbols]] = 1.0
    return present
