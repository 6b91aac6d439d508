"""Which tasks to send for gold: random ones first, then random and uncertain ones.

The first ten gold tasks are drawn uniformly. Of the further ones, half are uniform, and half are
drawn in proportion to the entropy of the fit's probabilities; 'the most uncertain tasks' alone
would teach the fit about exceptions. Task i enters with a probability known beforehand,

    pi_i = u / N + v h_i / sum h,    at most 1,

for u uniform and v other tasks out of the N that have no gold, and a systematic draw along a random
order takes exactly n tasks with these probabilities (Madow 1949). With the weights 1 / pi_i, and 1
for gold that was there before, which stands for itself, weighted shares of classes are unbiased,
however the earlier gold was chosen (Horvitz and Thompson 1952).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import entr

from bayescrowd.aggregation.protocol import Aggregator, Gold
from bayescrowd.aggregation.task_sample import task_fingerprints
from bayescrowd.checks.parameters import Count, Seed, validate_arguments
from bayescrowd.estimator import check_is_fitted

__all__ = ["inclusion", "suggest_gold"]

N_RANDOM = 10
"""Number of gold tasks that are drawn uniformly before uncertainty counts."""


@validate_arguments
def suggest_gold(est: Any, n: Count, *, seed: Seed = 0, gold: Gold = None) -> pd.DataFrame:
    """Choose tasks whose true label is worth knowing.

    Args:
        est: a fitted aggregator.
        n: number of tasks.
        seed: seed of the draw. The choice depends neither on ids nor on the order of rows.
        gold: task -> label of the gold that is there already; these tasks are not chosen again.

    Returns:
        A row per chosen task: weight (inverse of the probability of being chosen, for
        `prevalence`), reason ('random' or 'uncertain').

    Raises:
        TypeError: `est` is no aggregator.
        ValueError: fewer than `n` tasks have no gold yet.

    Examples:
        >>> import bayescrowd as bc
        >>> est = bc.aggregate(bc.simulate.crowd(100, 10, accuracy=0.8).annotations)
        >>> chosen = suggest_gold(est, 12)
        >>> chosen.shape, chosen["reason"].isin(["random", "uncertain"]).all().item()
        ((12, 2), True)
    """
    if not isinstance(est, Aggregator):
        raise TypeError(f"est came as {type(est).__name__}; expected a fitted aggregator")
    check_is_fitted(est)
    ann = est._annotations
    fixed = np.full(ann.n_tasks, -1, dtype=np.int32)
    if gold is not None:
        known = [task for task, label in gold.items() if not pd.isna(label)]
        places = ann.tasks.get_indexer(pd.Index(known, dtype=ann.tasks.dtype if known else object))
        fixed[places[places >= 0]] = 0
    left = np.flatnonzero(fixed < 0)
    if n > len(left):
        raise ValueError(
            f"n is {n:,}, but {len(left):,} tasks have no gold yet; expected at most that many"
        )
    n_random = min(n, max(N_RANDOM - (ann.n_tasks - len(left)), 0))
    n_uniform = n_random + (n - n_random) / 2
    # Rounded, since equal tasks must have equal probabilities whatever the order of sums.
    entropy = np.round(entr(est.probas_.to_numpy()[left]).sum(axis=1), 9)
    uniform, chance = inclusion(entropy, n_uniform, n - n_uniform)
    order = np.argsort(task_fingerprints(ann, n_rounds=1)[left], kind="stable")
    rng = np.random.default_rng(seed)
    order = order[rng.permutation(len(left))]
    taken = np.sort(order[_systematic(chance[order], n, rng.random())])
    share = np.divide(uniform, chance)
    of_place = np.empty(len(left))
    of_place[order] = rng.random(len(left))
    reason = np.where(of_place[taken] < share[taken], "random", "uncertain")
    return pd.DataFrame(
        {"weight": 1 / chance[taken], "reason": reason}, index=ann.tasks.take(left[taken])
    )


def inclusion(
    entropy: Float[np.ndarray, " item"], n_uniform: float, n_uncertain: float
) -> tuple[Float[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Each task's probability of being chosen uniformly, and that of being chosen at all.

    Examples:
        >>> import numpy as np
        >>> inclusion(np.array([0.0, 0.1, 0.1]), 1, 1)[1].round(3)
        array([0.333, 0.833, 0.833])
    """
    n_items, total = len(entropy), entropy.sum()
    uniform = np.full(n_items, n_uniform / n_items)
    by_entropy = entropy / total if total > 0 else np.full(n_items, 1 / n_items)
    chance = uniform + n_uncertain * by_entropy
    n = n_uniform + n_uncertain
    # What exceeds certainty goes to the other tasks, in proportion.
    for _ in range(n_items):
        sure = chance >= 1
        chance[sure] = 1.0
        rest = chance[~sure].sum()
        if not (chance > 1).any() and abs(sure.sum() + rest - n) < 1e-9:
            break
        chance[~sure] *= (n - sure.sum()) / max(rest, 1e-300)
    return np.minimum(uniform, chance), np.minimum(chance, 1.0)


def _systematic(
    chance: Float[np.ndarray, " item"], n: int, start: float
) -> Int[np.ndarray, " taken"]:
    """Positions of n tasks, each taken with its probability: one per unit of the running sum."""
    running = np.cumsum(chance) * (n / chance.sum())
    return np.minimum(np.searchsorted(running, start + np.arange(n), side="right"), len(chance) - 1)
