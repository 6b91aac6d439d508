"""Posterior predictive checks of crowds: do simulated labels look like the observed ones?

A. Gelman, X.-L. Meng and H. Stern (1996), "Posterior predictive assessment of model fitness via
realized discrepancies", Statistica Sinica 6. Labels are drawn from the fitted model for the same
pairs of tasks and workers, and three things that a model of crowds may get wrong are compared:
how often each pair of workers agrees (workers who copy, or share a misunderstanding), how divided
the votes on tasks are (tasks that are harder than others), and how often each worker gives each
label. A p-value near 0 or 1 says that the model cannot produce what was observed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.posterior.container import Container, group_of

__all__ = ["CrowdChecks", "check_crowd"]

MOST_PAIRS = 2_000
"""Largest number of pairs of workers compared, those with most tasks in common."""


class CrowdChecks(NamedTuple):
    """Observed statistics beside their posterior predictive distributions.

    Every table has the columns observed, mean, lower and upper (the central 90 % of simulated
    values) and p_value (share of simulated values above the observed one, ties counting half).
    """

    agreement: pd.DataFrame
    """Share of common tasks on which two workers agree, by pair; n_tasks counts them."""
    vote_entropy: pd.DataFrame
    """Mean, standard deviation, and share of zeros of the tasks' vote entropies (nats)."""
    label_frequency: pd.DataFrame
    """Share of each label among a worker's labels, by worker and label."""


class _Judgements(NamedTuple):
    task: Int[np.ndarray, " judgement"]
    worker: Int[np.ndarray, " judgement"]
    n_tasks: int
    n_workers: int
    n_classes: int


def check_crowd(post: Container) -> CrowdChecks:
    """Compare the observed labels with labels simulated from the posterior.

    Args:
        post: the result of `sample_posterior`.

    Examples:
        >>> import bayescrowd as bc
        >>> labels = bc.simulate.crowd(30, 5, accuracy=0.9, seed=0).annotations
        >>> post = bc.sample_posterior(bc.models.dawid_skene, labels, chains=2, draws=50, warmup=10)
        >>> list(bc.check_crowd(post).vote_entropy.index)
        ['mean', 'standard deviation', 'share unanimous']
    """
    codes = group_of(post, "constant_data")
    probability = group_of(post, "label_posterior")["probability"]
    posterior = group_of(post, "posterior")
    workers = posterior.indexes["worker"]
    classes = probability.indexes["cls"]
    judgements = _Judgements(
        codes["task_code"].to_numpy(),
        codes["worker_code"].to_numpy(),
        n_tasks=probability.sizes["task"],
        n_workers=len(workers),
        n_classes=len(classes),
    )
    observed = group_of(post, "observed_data")["label"].to_numpy()
    drawn = group_of(post, "posterior_predictive")["label"].to_numpy()
    simulated = drawn.reshape(-1, drawn.shape[-1])

    pairs, first, second = _common_judgements(judgements)
    n_common = np.bincount(pairs, minlength=pairs.max(initial=-1) + 1)
    members = _pair_members(judgements, pairs, first, second)
    agreement = _compare_with_simulated(
        lambda label: np.bincount(pairs, label[first] == label[second]) / n_common,
        observed,
        simulated,
        pd.MultiIndex.from_arrays(
            [workers.take(members[:, 0]), workers.take(members[:, 1])], names=["worker", "other"]
        ),
    )
    agreement["n_tasks"] = n_common
    has_labels = np.bincount(judgements.worker, minlength=judgements.n_workers) > 0
    return CrowdChecks(
        agreement=agreement,
        vote_entropy=_compare_with_simulated(
            lambda label: _entropy_summary(judgements, label),
            observed,
            simulated,
            pd.Index(["mean", "standard deviation", "share unanimous"]),
        ),
        label_frequency=_compare_with_simulated(
            lambda label: _label_shares(judgements, label)[has_labels].ravel(),
            observed,
            simulated,
            pd.MultiIndex.from_product([workers[has_labels], classes], names=["worker", "label"]),
        ),
    )


def _compare_with_simulated(
    statistic: Callable[[Int[np.ndarray, " judgement"]], Float[np.ndarray, " entry"]],
    observed: Int[np.ndarray, " judgement"],
    simulated: Int[np.ndarray, "draw judgement"],
    index: pd.Index,
) -> pd.DataFrame:
    value = statistic(observed)
    draws = np.stack([statistic(label) for label in simulated])
    above = (draws > value).mean(axis=0) + (draws == value).mean(axis=0) / 2
    return pd.DataFrame(
        {
            "observed": value,
            "mean": draws.mean(axis=0),
            "lower": np.quantile(draws, 0.05, axis=0),
            "upper": np.quantile(draws, 0.95, axis=0),
            "p_value": above,
        },
        index=index,
    )


def _common_judgements(
    judgements: _Judgements,
) -> tuple[Int[np.ndarray, " common"], Int[np.ndarray, " common"], Int[np.ndarray, " common"]]:
    """Pairs of judgements of one task by two workers: index of the pair of workers, first, second.

    Judgements are sorted by task and worker, so the first worker always precedes the second.
    """
    n = len(judgements.task)
    firsts, seconds = [], []
    offset = 1
    while offset < n:
        first = np.flatnonzero(judgements.task[:-offset] == judgements.task[offset:])
        if len(first) == 0:
            break
        firsts.append(first)
        seconds.append(first + offset)
        offset += 1
    first = np.concatenate([*firsts, np.zeros(0, dtype=int)])
    second = np.concatenate([*seconds, np.zeros(0, dtype=int)])
    differ = judgements.worker[first] != judgements.worker[second]
    first, second = first[differ], second[differ]
    flat = judgements.worker[first].astype(np.int64) * judgements.n_workers
    flat += judgements.worker[second]
    ids, pairs, counts = np.unique(flat, return_inverse=True, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_PAIRS])
    number = np.full(len(ids), -1)
    number[kept] = np.arange(len(kept))
    chosen = number[pairs] >= 0
    return number[pairs][chosen], first[chosen], second[chosen]


def _pair_members(
    judgements: _Judgements,
    pairs: Int[np.ndarray, " common"],
    first: Int[np.ndarray, " common"],
    second: Int[np.ndarray, " common"],
) -> Int[np.ndarray, "pair 2"]:
    members = np.zeros((pairs.max(initial=-1) + 1, 2), dtype=int)
    members[pairs] = np.column_stack([judgements.worker[first], judgements.worker[second]])
    return members


def _entropy_summary(
    judgements: _Judgements, label: Int[np.ndarray, " judgement"]
) -> Float[np.ndarray, " entry"]:
    flat = judgements.task.astype(np.int64) * judgements.n_classes + label
    votes = np.bincount(flat, minlength=judgements.n_tasks * judgements.n_classes)
    votes = votes.reshape(judgements.n_tasks, judgements.n_classes)
    votes = votes[votes.sum(axis=1) > 1]  # a single vote is never divided
    if len(votes) == 0:
        return np.full(3, np.nan)
    shares = votes / votes.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    return np.array([entropy.mean(), entropy.std(), (entropy == 0).mean()])


def _label_shares(
    judgements: _Judgements, label: Int[np.ndarray, " judgement"]
) -> Float[np.ndarray, "worker cls"]:
    flat = judgements.worker.astype(np.int64) * judgements.n_classes + label
    counts = np.bincount(flat, minlength=judgements.n_workers * judgements.n_classes)
    counts = counts.reshape(judgements.n_workers, judgements.n_classes)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
