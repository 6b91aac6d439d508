"""Mutual information between discrete features, pair by pair, from co-occurrence counts.

For the matrix A of items x symbols (`FeatureTable.matrix`), A' A counts how often every two symbols
occur on the same item; with the weights of a mixture component on the items, A' diag(r_k) A counts
it within the component. Everything here is computed from these products, in blocks of features, so
that memory grows with the square of the features and not with that of their symbols.

Equations are numbered as in Zhao and Zucker, 'Feature selection facilitates learning mixtures of
discrete product distributions' (FS) and 'Stagewise learning for sparse clustering of
discretely-valued data' (SL). All information is in nats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Float, Int
from scipy.special import chdtrc, xlogy

from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.features import FeatureTable, as_feature_table

__all__ = [
    "ConditionalInformation",
    "Estimator",
    "conditional_mutual_information",
    "independence_p_values",
    "information_matrix",
    "pairwise_mutual_information",
]

Estimator = Literal["paper", "co-labelled", "miller-madow", "chi-square"]

CHI_SQUARE_LEVEL = 0.01
"""Estimator 'chi-square' takes pairs as independent unless a test rejects it at this level."""

_BLOCK_CELLS = 2**24
"""Largest number of cells of a block of the symbols x symbols table."""


class ConditionalInformation(NamedTuple):
    """Result of `conditional_mutual_information`."""

    total: Float[np.ndarray, "feature feature"]
    """I(Xi; Xj | Y); zero on the diagonal."""
    by_component: Float[np.ndarray, "component feature feature"]
    """P(Y = k) I(Xi; Xj | Y = k), which sum to `total`."""


@validate_arguments
def pairwise_mutual_information(data: Any, estimator: Estimator = "paper") -> pd.DataFrame:
    """Mutual information of every two features: features x features, zero on the diagonal.

    Args:
        data: Annotations, or a table of items x discrete features.
        estimator: how missing entries are treated.

            * 'paper': probabilities are shares of all items, and terms with a missing entry are
              left out of the sum (FS, after section 5.2). For two features that are seldom present
              together it can be small, or even negative.
            * 'co-labelled': the information on the items that have both features.
            * 'miller-madow': the same minus its bias to first order, weighted by the share of
              items that have both features.
            * 'chi-square': 'co-labelled' weighted by that share, and zero where a likelihood-ratio
              test does not reject independence at 1 %.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
        >>> bc.pairwise_mutual_information(table).round(3)
               a      b    c
        a  0.000  0.693  0.0
        b  0.693  0.000  0.0
        c  0.000  0.000  0.0
    """
    table = as_feature_table(data)
    matrix = information_matrix(table, estimator)
    return pd.DataFrame(matrix, index=table.features, columns=table.features)


def information_matrix(
    table: FeatureTable, estimator: Estimator = "paper"
) -> Float[np.ndarray, "feature feature"]:
    """`pairwise_mutual_information` as a plain array."""
    if estimator not in get_args(Estimator):
        raise ValueError(
            f"estimator={estimator!r}: expected one of {', '.join(get_args(Estimator))}"
        )
    if estimator == "paper":
        return _information(table, np.ones(table.n_items))
    out = np.zeros((table.n_features, table.n_features))
    for rows, joint in _joint_counts(table, np.ones(table.n_items)):
        out[rows] = _co_present_information(_co_present(joint), estimator, table.n_items)
    np.fill_diagonal(out, 0.0)
    return out


def conditional_mutual_information(
    data: Any, responsibilities: Float[np.ndarray, "item component"]
) -> ConditionalInformation:
    """Information that two features share given the component (FS eq. 10, SL eq. 12).

    The hybrid distribution combines the observed items with the responsibilities of components:
    P(x, k) = sum over items with x of r[item, k] / n. Missing entries are left out as in the
    paper's estimator.

    Args:
        data: Annotations, or a table of items x discrete features.
        responsibilities: P(component | item); rows sum to one.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]})
        >>> explained = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> float(conditional_mutual_information(table, explained).total.max())
        0.0
    """
    table = as_feature_table(data)
    if responsibilities.shape[0] != table.n_items:
        raise ValueError(
            f"responsibilities have {len(responsibilities)} rows; expected {table.n_items} items"
        )
    by_component = np.stack(
        [_information(table, responsibilities[:, k]) for k in range(responsibilities.shape[1])]
    )
    return ConditionalInformation(by_component.sum(axis=0), by_component)


def independence_p_values(table: FeatureTable) -> Float[np.ndarray, "feature feature"]:
    """p-value of the likelihood-ratio test of independence of every two features.

    Twice the log-likelihood ratio, 2 n I on the n items that have both, is compared with the
    chi-square distribution; values that do not occur there add no degrees of freedom. The diagonal
    is 1.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.data.features import as_feature_table
        >>> twins = as_feature_table(np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]))
        >>> independence_p_values(twins).round(3)
        array([[1.   , 0.019, 1.   ],
               [0.019, 1.   , 1.   ],
               [1.   , 1.   , 1.   ]])
    """
    out = np.ones((table.n_features, table.n_features))
    for rows, joint in _joint_counts(table, np.ones(table.n_items)):
        out[rows] = _p_value(_co_present(joint))
    np.fill_diagonal(out, 1.0)
    return out


def _information(
    table: FeatureTable, weights: Float[np.ndarray, " item"]
) -> Float[np.ndarray, "feature feature"]:
    """sum P(a, b, k) log [P(a, b | k) / (P(a | k) P(b | k))], items weighted by P(k | item)."""
    total = weights.sum()
    out = np.zeros((table.n_features, table.n_features))
    if total <= 0:
        return out
    marginal = _by_value(table, np.asarray(table.matrix.T @ weights) / total)
    # Logarithms are subtracted: the product of two tiny marginals would underflow to zero.
    log_marginal = np.log(np.where(marginal > 0, marginal, 1.0))
    for rows, joint in _joint_counts(table, weights):
        joint /= total
        terms = xlogy(joint, joint)
        terms -= joint * log_marginal[rows, :, None, None]
        terms -= joint * log_marginal[None, None]
        out[rows] = terms.sum(axis=(1, 3))
    np.fill_diagonal(out, 0.0)
    return out * (total / table.n_items)


class _CoPresent(NamedTuple):
    """Pairs of features on the items that have both."""

    information: Float[np.ndarray, "row feature"]
    """Plug-in mutual information, nats; 0 where no item has both."""
    n_both: Float[np.ndarray, "row feature"]
    """Number of items that have both."""
    n_left: Int[np.ndarray, "row feature"]
    """Number of values of the first feature that occur on these items."""
    n_right: Int[np.ndarray, "row feature"]
    """Number of values of the second feature that occur on these items."""
    n_joint: Int[np.ndarray, "row feature"]
    """Number of pairs of values that occur on these items."""


def _co_present(joint: Float[np.ndarray, "row value feature value"]) -> _CoPresent:
    both = joint.sum(axis=(1, 3), keepdims=True)
    left, right = joint.sum(axis=3, keepdims=True), joint.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(joint > 0, joint * both / (left * right), 1.0)
        information = (xlogy(joint, ratio) / both).sum(axis=(1, 3))
    n_both = both[:, 0, :, 0]
    return _CoPresent(
        np.where(n_both > 0, np.maximum(information, 0.0), 0.0),
        n_both,
        (left > 0).sum(axis=(1, 3)),
        (right > 0).sum(axis=(1, 3)),
        (joint > 0).sum(axis=(1, 3)),
    )


def _co_present_information(
    pairs: _CoPresent, estimator: Estimator, n_items: int
) -> Float[np.ndarray, "row feature"]:
    information = pairs.information
    if estimator == "co-labelled":
        return information
    if estimator == "miller-madow":
        # Miller and Madow: the plug-in entropy of m values is too small by (m - 1) / 2n.
        surplus = pairs.n_left + pairs.n_right - pairs.n_joint - 1
        correction = surplus / (2 * np.maximum(pairs.n_both, 1))
        information = np.where(pairs.n_both > 0, information + correction, 0.0)
    else:
        information = np.where(_p_value(pairs) < CHI_SQUARE_LEVEL, information, 0.0)
    return information * (pairs.n_both / n_items)


def _p_value(pairs: _CoPresent) -> Float[np.ndarray, "row feature"]:
    freedom = (pairs.n_left - 1) * (pairs.n_right - 1)
    p_value = chdtrc(np.maximum(freedom, 1), 2 * pairs.n_both * pairs.information)
    return np.where(freedom > 0, p_value, 1.0)


def _joint_counts(
    table: FeatureTable, weights: Float[np.ndarray, " item"]
) -> Iterator[tuple[slice, Float[np.ndarray, "row value feature value"]]]:
    """Weighted co-occurrence counts of a block of features with all, padded to equal sizes."""
    n_values = int(np.diff(table.feature_offsets).max())
    padded = _pad(table, n_values)
    weighted = scipy.sparse.diags(weights) @ padded if (weights != 1).any() else padded
    columns = padded.shape[1]
    block = max(1, _BLOCK_CELLS // (n_values * columns))
    by_symbol = padded.T.tocsr()
    for first in range(0, table.n_features, block):
        rows = slice(first, min(first + block, table.n_features))
        joint = by_symbol[rows.start * n_values : rows.stop * n_values] @ weighted
        yield (
            rows,
            joint.toarray().reshape(rows.stop - rows.start, n_values, table.n_features, n_values),
        )


def _pad(table: FeatureTable, n_values: int) -> scipy.sparse.csr_matrix:
    """The matrix of items x symbols with `n_values` columns for each feature."""
    feature = table.feature_of_symbol
    place = feature * n_values + np.arange(table.n_symbols) - table.feature_offsets[feature]
    matrix = table.matrix
    return scipy.sparse.csr_matrix(
        (matrix.data, place[matrix.indices], matrix.indptr),
        shape=(table.n_items, table.n_features * n_values),
    )


def _by_value(
    table: FeatureTable, per_symbol: Float[np.ndarray, " symbol"]
) -> Float[np.ndarray, "feature value"]:
    """Numbers per symbol as features x values, zero where a feature has fewer values."""
    sizes = np.diff(table.feature_offsets)
    out = np.zeros((table.n_features, int(sizes.max())))
    feature = table.feature_of_symbol
    out[feature, np.arange(table.n_symbols) - table.feature_offsets[feature]] = per_symbol
    return out
