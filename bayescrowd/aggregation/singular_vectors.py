"""Workers weighted by leading singular vectors: GhoshSVD and EigenRatio.

Let O be the signed labels, tasks x workers: +1, -1, and 0 where there is no label; let G count the
labels. If worker w is right with probability (1 + a_w) / 2 on either of two classes, then O given
the truth has the expectation y_t g_tw a_w: one singular vector carries the truth y, the other the
workers' reliabilities a.

* Ghosh, Kale and McAfee 2011, 'Who moderates the moderators?': the signs of the leading left
  singular vector of O.
* Dalvi, Dasgupta, Kumar and Rastogi 2013, 'Aggregating crowdsourced binary ratings'. Workers who
  labelled more stand out in O whatever their reliability, so it is divided out. Algorithm 1: the
  leading eigenvector of O'O over that of G'G, entry by entry. Algorithm 2: the same with each
  pair's agreement divided by the number of their common tasks first, (O'O) / (G'G) and [G'G > 0].

A singular vector does not tell which of its two signs is right. As Zhang, Chen, Zhou and Jordan
(2014, 'Spectral methods meet EM') do, we take the one that agrees with most labels; their numbers
for both methods are reproduced.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse
from jaxtyping import Float

from bayescrowd.aggregation.eigenvectors import gram_operator, leading_eigenvector
from bayescrowd.aggregation.ordinal import CutScores, OrdinalAggregator, Pairs, linear_scores
from bayescrowd.checks.parameters import Seed

__all__ = ["EigenRatio", "GhoshSVD"]

_OUTSIDE = 1e-10
"""Workers below this share of the largest entry are outside the leading vector's component."""


class GhoshSVD(OrdinalAggregator):
    """Signs of the leading singular vector of the signed labels (Ghosh, Kale and McAfee 2011).

    The method is binary; more than two classes are treated as ordered and decided cut by cut.
    `probas_` is 1 for the class found (see `bayescrowd.aggregation.ordinal`). Known labels (`gold`)
    decide their own tasks; they do not change the vector.

    Args:
        seed: seed of the draw that breaks ties.

    Attributes:
        weights_: entry of each worker in the right singular vector, workers x cuts, scaled so that
            the largest is 1; the cut named c asks whether a class is above c.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aab"), list("bba")])
        >>> bc.GhoshSVD().fit_predict(ann).to_list()
        ['a', 'b', 'a', 'b']
    """

    def __init__(self, *, seed: Seed = 0) -> None:
        self.seed = seed

    def _score(self, pairs: Pairs) -> CutScores:
        weights = np.empty((pairs.n_workers, pairs.signs.shape[1]))
        for cut, signs in enumerate(pairs.signs.T):
            signed = pairs.matrix(signs)
            vector = leading_eigenvector(gram_operator(signed))
            agreement = np.sign(signed @ vector) @ _row_sums(signed)
            weights[:, cut] = vector if agreement >= 0 else -vector
        return _score_unshifted(pairs, weights)


class EigenRatio(OrdinalAggregator):
    """Votes weighted by a ratio of eigenvectors (Dalvi et al. 2013).

    The method is binary; more than two classes are treated as ordered and decided cut by cut.
    `probas_` is 1 for the class found (see `bayescrowd.aggregation.ordinal`). Workers outside the
    largest group of workers linked by common tasks get the weight 0. Known labels (`gold`) decide
    their own tasks; they do not change the vectors.

    Args:
        algorithm: 2 divides the agreement of each pair by the number of their common tasks and
            needs a sparse matrix workers x workers; 1 divides the vectors only and needs none.
        seed: seed of the draw that breaks ties.

    Attributes:
        weights_: weight of each worker, workers x cuts, scaled so that the largest is 1; the cut
            named c asks whether a class is above c.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aab"), list("bba")])
        >>> est = bc.EigenRatio().fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'a', 'b']
        >>> bool(est.weights_.loc[0, "a"] > est.weights_.loc[2, "a"])
        True
    """

    def __init__(self, *, algorithm: Literal[1, 2] = 2, seed: Seed = 0) -> None:
        self.algorithm = algorithm
        self.seed = seed

    def _score(self, pairs: Pairs) -> CutScores:
        counts = pairs.matrix(pairs.n_labels)
        common = (counts.T @ counts).tocsc() if self.algorithm == 2 else None
        activity = leading_eigenvector(
            gram_operator(counts) if common is None else (common > 0).astype(float)
        )
        weights = np.empty((pairs.n_workers, pairs.signs.shape[1]))
        for cut, signs in enumerate(pairs.signs.T):
            signed = pairs.matrix(signs)
            vector = leading_eigenvector(
                gram_operator(signed) if common is None else _mean_agreement(signed, common)
            )
            ratio = _ratio_within_component(vector, activity)
            agreement = (signed @ ratio) @ _row_sums(signed)
            weights[:, cut] = ratio if agreement >= 0 else -ratio
        return _score_unshifted(pairs, weights)


def _mean_agreement(
    signed: scipy.sparse.csr_matrix, common: scipy.sparse.csc_matrix
) -> scipy.sparse.csr_matrix:
    """Agreements minus disagreements of each pair, divided by the number of common labels."""
    inverse = common.copy()
    inverse.data = 1.0 / inverse.data
    return (signed.T @ signed).multiply(inverse).tocsr()


def _ratio_within_component(
    vector: Float[np.ndarray, " worker"], activity: Float[np.ndarray, " worker"]
) -> Float[np.ndarray, " worker"]:
    """The ratio of the vectors within the component of the second, 0 outside."""
    inside = np.abs(activity) > _OUTSIDE * np.abs(activity).max()
    return np.where(inside, vector / np.where(inside, activity, 1.0), 0.0)


def _row_sums(matrix: scipy.sparse.csr_matrix) -> Float[np.ndarray, " item"]:
    return np.asarray(matrix.sum(axis=1)).ravel()


def _score_unshifted(pairs: Pairs, weights: Float[np.ndarray, "worker cut"]) -> CutScores:
    offsets = np.zeros(weights.shape[1])
    scores = linear_scores(pairs, weights, offsets)
    return CutScores(scores, weights, offsets, np.empty(0), True)
