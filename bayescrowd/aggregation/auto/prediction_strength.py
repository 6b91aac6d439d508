"""How much the probabilities of a classifier say beyond its most probable class.

In the fit, a classifier is one more rater: it gives each task its most probable class, and its
confusions are learned like anybody's. That leaves out how sure it was, which may be worth much, or
nothing: classifiers are often over-confident. Here the mixture P of the fit, before it is tempered,
is corrected by

    P(class k)  proportional to  P_ik g_ik / h_s(i)k,                                           (1)
    g_i = softmax(log h_s(i) + D_s(i) + beta x_i),                                              (2)

where s(i) is the classifier's label of task i, h_s the mean of P over the tasks with that label,
which is what the label alone says about the class, and x_i the logarithms of the probabilities
minus their mean over the tasks with the same label. g is what the probabilities say. P / h is what
the crowd says about the task, and the parameters maximise the marginal likelihood of the crowd's
answers given the probabilities,

    sum over tasks of log sum_k (P_ik / h_s(i)k) g_ik,                                          (3)

with the priors beta ~ N(0, 1), beta >= 0, and D_sk ~ N(0, 4). Calibrated probabilities have a
strength beta near 1, over-confident ones less, and at beta = D = 0 nothing changes: where the
probabilities say no more than the label, the classifier stays a rater among others. D is needed
because the mean of a softmax is not the softmax of a mean.

A task without labels of the crowd has the answer g, since there is nothing to combine it with; one
without probabilities keeps P.

The form and its constants were chosen on simulated crowds whose classifiers are good, bad, useless,
over-confident, or surely wrong on a quarter of each class (`benchmarks/predictions.py` has others).
Without h, with one offset per class, errors in the last case rise from 11 % to 19 %, since
equation 1 then undoes the confusions that the fit has learned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

__all__ = ["PredictionStrength", "fit_strength"]

STRENGTH_SD, OFFSET_SD = 1.0, 2.0
"""Prior standard deviations of beta and D."""

START, MOST = 0.3, 4.0
"""First value of beta and its upper bound."""

FLOOR = 1e-6
"""Smallest probability of a classifier that is told apart from 0."""

PSEUDO_TASKS = 2.0
"""Tasks of the mean answer that are added to the mean of P over the tasks with the same label."""

N_ITER = 200
"""Largest number of iterations of the search."""


class PredictionStrength(NamedTuple):
    """What a classifier's probabilities say."""

    value: float
    """Strength of the probabilities (beta)."""
    ratio: Float[np.ndarray, "item cls"]
    """g / h, and 1 for tasks without probabilities."""
    only: Int[np.ndarray, " alone"]
    """Tasks that the classifier has predicted and the crowd has not labelled."""
    alone: Float[np.ndarray, "alone cls"]
    """P(class) of these tasks (g)."""

    def correct(self, mixed: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
        """Equation 1."""
        corrected = mixed * self.ratio
        return self.fill(corrected / corrected.sum(axis=1, keepdims=True))

    def fill(self, probas: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
        """Put g into the tasks without labels of the crowd; the array is changed."""
        probas[self.only] = self.alone
        return probas


def fit_strength(
    mixed: Float[np.ndarray, "item cls"],
    probas: Float[np.ndarray, "item cls"],
    leading: Int[np.ndarray, " item"],
    is_labelled: Bool[np.ndarray, " item"],
) -> PredictionStrength:
    """Learn what a classifier's probabilities say from a fit that has its labels.

    Args:
        mixed: P(class) of each task by the fit (P).
        probas: probabilities of the classifier, rows of NaN where there are none.
        leading: label of the classifier, -1 where it gives none.
        is_labelled: whether the crowd has labelled the task.
    """
    n_classes = mixed.shape[1]
    is_predicted = ~np.isnan(probas).any(axis=1)
    used = is_labelled[is_predicted]
    answer, symbol = mixed[is_predicted], leading[is_predicted]
    symbol = np.where(symbol >= 0, symbol, n_classes)  # no label is a symbol, too
    logs = np.log(np.maximum(probas[is_predicted], FLOOR))
    by_symbol = _one_hot(symbol[used], n_classes + 1)
    n_tasks = np.maximum(by_symbol.sum(axis=1), 1.0).reshape(-1, 1)
    logs -= (by_symbol @ logs[used] / n_tasks)[symbol]
    sums = by_symbol @ answer[used] + PSEUDO_TASKS * answer[used].mean(axis=0)
    of_symbol = (sums / sums.sum(axis=1, keepdims=True))[symbol]
    features = _Features(by_symbol, symbol[used], np.log(of_symbol[used]), logs[used])
    found = _fit(answer[used] / of_symbol[used], features)
    everywhere = features._replace(symbol=symbol, offset=np.log(of_symbol), logs=logs)
    alone = everywhere.predict(found)
    ratio = np.ones(mixed.shape)
    ratio[is_predicted] = alone / of_symbol
    return PredictionStrength(
        float(found[0]), ratio, np.flatnonzero(is_predicted & ~is_labelled), alone[~used]
    )


class _Features(NamedTuple):
    """What equation 2 takes."""

    by_symbol: scipy.sparse.csr_matrix
    """Sums over the tasks with the same label."""
    symbol: Int[np.ndarray, " item"]
    """Label of the classifier (s)."""
    offset: Float[np.ndarray, "item cls"]
    """log h."""
    logs: Float[np.ndarray, "item cls"]
    """x."""

    def predict(self, parameters: Float[np.ndarray, " parameter"]) -> Float[np.ndarray, "item cls"]:
        """Equation 2; the parameters are beta and the rows of D."""
        by_label = parameters[1:].reshape(-1, self.logs.shape[1])
        return softmax(self.offset + by_label[self.symbol] + parameters[0] * self.logs, axis=1)


def _fit(
    crowd: Float[np.ndarray, "item cls"], features: _Features
) -> Float[np.ndarray, " parameter"]:
    """Maximise equation 3 with its priors."""
    n_offsets = features.by_symbol.shape[0] * crowd.shape[1]
    sds = np.concatenate([[STRENGTH_SD], np.full(n_offsets, OFFSET_SD)])

    def loss(
        parameters: Float[np.ndarray, " parameter"],
    ) -> tuple[float, Float[np.ndarray, " parameter"]]:
        predicted = features.predict(parameters)
        joint = crowd * predicted
        evidence = joint.sum(axis=1, keepdims=True)
        residual = joint / evidence - predicted
        slope = (features.by_symbol @ residual).ravel()
        slope = np.concatenate([[(residual * features.logs).sum()], slope])
        value = 0.5 * ((parameters / sds) ** 2).sum() - np.log(evidence).sum()
        return float(value), parameters / sds**2 - slope

    start = np.concatenate([[START], np.zeros(n_offsets)])
    bounds = [(0.0, MOST)] + [(None, None)] * n_offsets
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": N_ITER}
    )
    return found.x


def _one_hot(symbol: Int[np.ndarray, " item"], n_symbols: int) -> scipy.sparse.csr_matrix:
    """A matrix symbols x tasks with a one where the task has the symbol."""
    cells = (np.ones(len(symbol)), (symbol, np.arange(len(symbol))))
    return scipy.sparse.csr_matrix(cells, shape=(n_symbols, len(symbol)))
