"""Votes on tasks: shares of the labels, weighted or not, and ties between classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayescrowd.data.annotations import Annotations

__all__ = [
    "TIE",
    "decide",
    "leading_shares",
    "shares",
    "vote_shares",
    "weighted_votes",
    "with_known",
]

TIE = 1e-9
"""Classes whose probability is within this distance of the largest are tied."""


def vote_shares(ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Float[np.ndarray, "item cls"]:
    """Share of each class among the labels of each task.

    Shares are uniform for a task without labels; a known truth replaces them.
    """
    return with_known(shares(weighted_votes(ann, np.ones(ann.n_labels))), fixed)


def weighted_votes(
    ann: Annotations, weights: Float[np.ndarray, " label"]
) -> Float[np.ndarray, "item cls"]:
    """Sum of the weights of each task's labels, by class."""
    cell = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    votes = np.bincount(cell, weights, minlength=ann.n_tasks * ann.n_classes)
    return votes.reshape(ann.n_tasks, ann.n_classes)


def shares(votes: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """Rows scaled to sum to one; empty rows become uniform."""
    totals = votes.sum(axis=1)
    scaled = votes / np.where(totals > 0, totals, 1.0)[:, None]
    scaled[totals == 0] = 1.0 / votes.shape[1]
    return scaled


def leading_shares(votes: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """One for the class with the most votes, or 1/t for each of t tied classes."""
    leading = votes >= votes.max(axis=1, keepdims=True) - TIE
    return leading / leading.sum(axis=1, keepdims=True)


def with_known(
    posterior: Float[np.ndarray, "item cls"], fixed: Int[np.ndarray, " item"]
) -> Float[np.ndarray, "item cls"]:
    """The posterior, certain where the truth is known."""
    known = np.flatnonzero(fixed >= 0)
    if len(known) == 0:
        return posterior
    posterior = posterior.copy()
    posterior[known] = np.eye(posterior.shape[1])[fixed[known]]
    return posterior


def decide(probas: pd.DataFrame, seed: int) -> tuple[pd.Series, int]:
    """Most probable class of each task, with ties broken at random, and the number of ties."""
    values = probas.to_numpy()
    largest = values.max(axis=1, keepdims=True)
    first: Bool[np.ndarray, "item cls"] = values >= largest - TIE
    codes = values.argmax(axis=1)
    tied = np.flatnonzero(first.sum(axis=1) > 1)
    if len(tied):
        draw = np.random.default_rng(seed).random((len(tied), values.shape[1]))
        codes[tied] = np.where(first[tied], draw, -1.0).argmax(axis=1)
    labels = pd.Series(probas.columns.take(codes), index=probas.index, name="label")
    return labels, len(tied)
