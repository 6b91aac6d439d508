"""The access path model at its posterior mode: one set of tables instead of an average.

EM with the classes known (Dempster, Laird and Rubin 1977; Nushi et al. 2016, 'Access Path model'):

    E-step: P(z | y, labels)  proportional to  theta_y[z] prod over labels of theta_z[x]
    M-step: each row is proportional to its concentration less one, prior and expected counts in it

from the tables of every Gibbs chain at once; the start that ends highest is kept. Concentrations
below one have no inner mode: their values get none, as in naive Bayes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

__all__ = ["Mode", "posterior_mode"]

N_EM = 200
"""Steps of EM from each start; the tables of a feature move by less than 1e-4 long before."""

_LEAST = 1e-300
"""Under logarithms: a value that the mode rules out."""


class Mode(NamedTuple):
    """Tables at the mode."""

    conditional: Float[np.ndarray, "cls value"]
    """P(value | class)."""
    confusion: Float[np.ndarray, "value label"]
    """P(label | value)."""

    def log_likelihood(self, counts: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) in their order, from how many of a row's labels name each value."""
        log_given = counts @ np.log(self.confusion + _LEAST).T
        return logsumexp(log_given[:, None, :] + np.log(self.conditional + _LEAST), axis=-1)


def posterior_mode(
    conditional: Float[np.ndarray, "start cls value"],
    confusion: Float[np.ndarray, "start value label"],
    prior: tuple[Float[np.ndarray, "cls value"], Float[np.ndarray, "value label"]],
    target: Int[np.ndarray, " reading"],
    counts: Float[np.ndarray, "reading label"],
) -> Mode:
    """The best mode that EM finds from several starts.

    Args:
        conditional: P(value | class) of each start.
        confusion: P(label | value) of each start.
        prior: Dirichlet concentrations of both tables.
        target: class of each reading.
        counts: how many of a reading's labels name each value.
    """
    both, n_equal = np.unique(np.column_stack([target, counts]), axis=0, return_counts=True)
    cls, counts = both[:, 0].astype(int), both[:, 1:]
    is_class = (cls[:, None] == np.arange(conditional.shape[1])) * n_equal[:, None]
    weights = [np.maximum(rows - 1, 0) for rows in prior]
    for _ in range(N_EM):
        log_joint = _log_joint(conditional, confusion, cls, counts)
        share = np.exp(log_joint - logsumexp(log_joint, axis=-1, keepdims=True))
        conditional = _mode_rows(prior[0] - 1 + is_class.T @ share)
        labels = np.swapaxes(share * n_equal[:, None], 1, 2) @ counts
        confusion = _mode_rows(prior[1] - 1 + labels)
    log_readings = logsumexp(_log_joint(conditional, confusion, cls, counts), axis=-1) @ n_equal
    log_prior = sum(
        (weight * np.log(rows + _LEAST)).sum(axis=(1, 2))
        for weight, rows in zip(weights, (conditional, confusion), strict=True)
    )
    best = int((log_readings + log_prior).argmax())
    return Mode(conditional[best], confusion[best])


def _log_joint(
    conditional: Float[np.ndarray, "start cls value"],
    confusion: Float[np.ndarray, "start value label"],
    cls: Int[np.ndarray, " reading"],
    counts: Float[np.ndarray, "reading label"],
) -> Float[np.ndarray, "start reading value"]:
    log_labels = counts @ np.log(confusion + _LEAST).swapaxes(1, 2)
    return np.log(conditional + _LEAST)[:, cls] + log_labels


def _mode_rows(
    excess: Float[np.ndarray, "start row value"],
) -> Float[np.ndarray, "start row value"]:
    """Rows proportional to concentrations less one; even where none is above one."""
    rows = np.maximum(excess, 0)
    rows = np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, 1.0)
    return rows / rows.sum(axis=-1, keepdims=True)
