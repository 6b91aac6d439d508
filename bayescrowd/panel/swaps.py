"""Swap consistency: whether a judge says the same when the answers are shown in the other order.

A judge that compares two answers is often asked twice, with the answers in either order, and the
two kinds of verdicts are kept as two raters, 'GPT-4/plain' and 'GPT-4/swap'. What remains of the
name without its ending is the judge.

Verdicts name the *content* by default: 'A' is the same answer in both orders, and a consistent
judge gives the same verdict twice. Where verdicts name the *position* ('first', 'second'), a
consistent judge gives the two different ones, which is defined for two classes only.

On a task with inconsistent verdicts, order decided. The most frequent pair of such verdicts says in
which direction: with content, 'A' under the first order and 'B' under the second is a preference
for the place where A stands in the first order; with positions, 'first' twice is one for the first
place. The interval of the consistency is that of Clopper and Pearson (1934), which covers at least
as often as it says. A rater who judged a task several times counts by its most frequent verdict,
and not at all if there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import betaincinv

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import natural_key

__all__ = ["Naming", "exact_interval", "paired_orders", "swap_consistency"]

Naming = Literal["content", "position"]
"""What a verdict names: an answer, wherever it is shown, or a place."""


def swap_consistency(
    ann: Annotations,
    orders: Sequence[str] = ("/plain", "/swap"),
    *,
    naming: Naming = "content",
    level: float = 0.9,
) -> pd.DataFrame:
    """How often each judge says the same in both orders.

    Args:
        ann: the verdicts.
        orders: the endings of the raters' names for the two orders.
        naming: whether verdicts name the 'content' or the 'position'.
        level: probability of the intervals.

    Returns:
        A row per judge with both orders, the most consistent first: n_shared (tasks judged in both
        orders), n_consistent, consistency (their ratio), lower and upper (ends of its interval),
        and the most frequent pair of inconsistent verdicts: first_verdict, second_verdict and
        n_verdicts, missing if all are consistent.

    Raises:
        ValueError: `orders` are not two different endings, or verdicts that name positions have
            not two classes.

    Examples:
        >>> import bayescrowd as bc
        >>> pairs = {"gpt/plain": list("AABB"), "gpt/swap": list("AABA"), "other": list("AABB")}
        >>> ann = bc.Annotations.from_matrix(pd.DataFrame(pairs))
        >>> found = swap_consistency(ann)
        >>> found.loc["gpt", "n_shared"].item(), found.loc["gpt", "consistency"].item()
        (4, 0.75)
    """
    if naming == "position" and ann.n_classes != 2:
        raise ValueError(
            f"verdicts that name positions have {ann.n_classes:,} classes; expected 2, the first "
            "and the second position"
        )
    pairs = paired_orders(ann.workers, orders)
    verdict = _verdicts(ann, np.unique(np.array(list(pairs.values()), dtype=np.int64)))
    rows = [
        _compare(verdict[first], verdict[second], ann, naming) for first, second in pairs.values()
    ]
    columns = ["n_shared", "n_consistent", "first_verdict", "second_verdict", "n_verdicts"]
    table = pd.DataFrame(rows, columns=columns, index=pd.Index(pairs, name="judge", dtype=object))
    n_shared, n_consistent = (table[name].to_numpy(dtype=float) for name in columns[:2])
    lower, upper = exact_interval(n_consistent, n_shared, level)
    with np.errstate(invalid="ignore"):
        table.insert(2, "consistency", n_consistent / n_shared)
    table.insert(3, "lower", lower)
    table.insert(4, "upper", upper)
    table["n_verdicts"] = table["n_verdicts"].astype(int)
    return table.sort_values("consistency", ascending=False, kind="stable")


def paired_orders(workers: pd.Index, orders: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Codes of the two raters of each judge whose name occurs with both endings.

    Raises:
        ValueError: `orders` are not two different endings.

    Examples:
        >>> paired_orders(pd.Index(["a/plain", "a/swap", "b/swap"]), ("/plain", "/swap"))
        {'a': (0, 1)}
    """
    if len(orders) != 2 or not all(orders) or orders[0] == orders[1]:
        raise ValueError(
            f"orders are {list(orders)!r}; expected two different endings of names, such as "
            "'/plain' and '/swap'"
        )
    found: dict[str, dict[int, int]] = {}
    longest_first = sorted((0, 1), key=lambda i: -len(orders[i]))
    for code, worker in enumerate(map(str, workers)):
        for order in longest_first:  # one ending may end in the other
            if worker.endswith(orders[order]):
                found.setdefault(worker.removesuffix(orders[order]), {}).setdefault(order, code)
                break
    both = sorted((name for name, codes in found.items() if len(codes) == 2), key=natural_key)
    return {name: (found[name][0], found[name][1]) for name in both}


def exact_interval(
    n_true: Float[np.ndarray, " share"], n: Float[np.ndarray, " share"], level: float
) -> tuple[Float[np.ndarray, " share"], Float[np.ndarray, " share"]]:
    """Ends of the interval of Clopper and Pearson for shares; from 0 to 1 where n is 0.

    Examples:
        >>> lower, upper = exact_interval(np.array([4.0, 0.0]), np.array([4.0, 0.0]), 0.9)
        >>> [round(float(end), 3) for end in (*lower, *upper)]
        [0.473, 0.0, 1.0, 1.0]
    """
    tail = (1 - level) / 2
    lower = np.where(n_true > 0, betaincinv(np.maximum(n_true, 1), n - n_true + 1, tail), 0.0)
    upper = betaincinv(n_true + 1, np.maximum(n - n_true, 1), 1 - tail)
    return lower, np.where(n_true < n, upper, 1.0)


def _verdicts(
    ann: Annotations, raters: Int[np.ndarray, " rater"]
) -> dict[int, Int[np.ndarray, " task"]]:
    """The verdict of each of these raters on each task, -1 for none or for several."""
    found: dict[int, Int[np.ndarray, " task"]] = {}
    order = np.argsort(ann.worker_codes, kind="stable")
    ends = np.searchsorted(ann.worker_codes[order], np.arange(ann.n_workers + 1))
    for rater in raters:
        rows = order[ends[rater] : ends[rater + 1]]
        cell = ann.task_codes[rows].astype(np.int64) * ann.n_classes + ann.label_codes[rows]
        cells, count = np.unique(cell, return_counts=True)
        task, label = np.divmod(cells, ann.n_classes)
        most = np.zeros(ann.n_tasks, dtype=np.int64)
        np.maximum.at(most, task, count)
        leads = count == most[task]
        is_one = np.bincount(task[leads], minlength=ann.n_tasks) == 1
        verdict = np.full(ann.n_tasks, -1, dtype=np.int64)
        verdict[task[leads]] = label[leads]
        found[int(rater)] = np.where(is_one, verdict, -1)
    return found


def _compare(
    first: Int[np.ndarray, " task"],
    second: Int[np.ndarray, " task"],
    ann: Annotations,
    naming: Naming,
) -> tuple[int, int, object, object, int]:
    shared = (first >= 0) & (second >= 0)
    first, second = first[shared], second[shared]
    consistent = (first == second) if naming == "content" else (first != second)
    n_shared, n_consistent = len(first), int(consistent.sum())
    if n_consistent == n_shared:
        return n_shared, n_consistent, None, None, 0
    pair = first[~consistent] * ann.n_classes + second[~consistent]
    pairs, count = np.unique(pair, return_counts=True)
    one, other = divmod(int(pairs[count.argmax()]), ann.n_classes)
    return n_shared, n_consistent, ann.classes[one], ann.classes[other], int(count.max())
