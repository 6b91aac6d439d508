"""Whether there are enough labels for the method of moments: sigma_min and D-bar.

Zhang, Chen, Zhou and Jordan (2014) prove that EM from the spectral start finds the true labels if
there are enough tasks and workers. Two quantities of the crowd determine how many are enough. With
Z_g, the mean label of group g on a task (eq. 1), and pi_i, the share of tasks that worker i labels,

    sigma_min = least singular value of E[Z_a Z_b'] over pairs of groups,
    D-bar     = min over classes h != h' of  (1 / m) sum_i pi_i KL(mu_ih || mu_ih')        (eq. 6)

The number of tasks has to grow with sigma_min^-13, and the number of workers m with 1 / D-bar.

The constants of the theorem are not known, so sigma_min alone says little: it depends on how many
labels the groups give, and noise alone makes it positive. It is therefore compared with its
standard error: with left and right singular vectors u and v, sigma_min is the mean over tasks of
(u'Z_a)(v'Z_b), and to first order the error of a singular value is that of this mean. m D-bar is
the evidence of a task's labels for its class against the most similar one, in nats.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.aggregation.spectral.worker_groups import N_GROUPS
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

__all__ = ["MomentStrength", "class_divergence", "least_singular_value"]

WEAK_MOMENTS = 4.0
"""A least singular value below this many standard errors is too close to noise.

On 362 crowds (public, thinned and simulated ones), EM from the moments had on average as many
errors as EM from the votes where the least singular value was above 4 standard errors, a quarter of
a point more between 3 and 4, and 2.5 points more below 1.
"""


class MomentStrength(NamedTuple):
    """The least singular value of the second moments of three groups, and its standard error."""

    sigma_min: float
    """Least singular value over the pairs of groups."""
    standard_error: float
    """Standard error of the least singular value."""

    @property
    def is_weak(self) -> bool:
        """Whether the least singular value is too close to noise to be relied on."""
        return self.sigma_min <= WEAK_MOMENTS * self.standard_error


def least_singular_value(
    votes: list[Float[np.ndarray, "item cls"]], groups: Int[np.ndarray, " worker"]
) -> MomentStrength:
    """The least singular value over the pairs of groups, with its standard error.

    Args:
        votes: labels per task and class of each group.
        groups: group 0, 1 or 2 of each worker.

    Examples:
        >>> import numpy as np
        >>> votes = [np.tile(np.eye(2), (50, 1))] * 3  # three perfect workers, equal classes
        >>> found = least_singular_value(votes, np.arange(3))
        >>> found.sigma_min, round(found.standard_error, 3)
        (0.5, 0.05)
    """
    sizes = np.maximum(np.bincount(groups, minlength=N_GROUPS), 1)
    means = [vote / size for vote, size in zip(votes, sizes, strict=True)]
    return min(_strength_of_pair(first, second) for first, second in combinations(means, 2))


def _strength_of_pair(
    first: Float[np.ndarray, "item cls"], second: Float[np.ndarray, "item cls"]
) -> MomentStrength:
    n_tasks = len(first)
    left, sizes, right = np.linalg.svd(first.T @ second / n_tasks)
    products = (first @ left[:, -1]) * (second @ right[-1])
    return MomentStrength(float(sizes[-1]), float(products.std() / np.sqrt(n_tasks)))


def class_divergence(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
) -> tuple[float, tuple[int, int]]:
    """D-bar in nats, and the two most similar classes, the true one first.

    The theorem bounds all confusion entries away from zero. Estimates are not bounded, so each row
    gets one pseudo-label, spread evenly, without which a single zero would make the divergence
    infinite.

    Args:
        pairs: the pairs of a worker and a label that occur.
        counts: expected number of labels of each pair on tasks of each class.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a"]] * 9 + [["b"]] * 9)  # one worker
        >>> counts = np.array([[7.5, 1.5], [1.5, 7.5]])  # rows (0.8, 0.2) and (0.2, 0.8)
        >>> divergence, pair = class_divergence(WorkerLabelPairs(ann), counts)
        >>> round(divergence, 6), round(0.6 * float(np.log(4)), 6)
        (0.831777, 0.831777)
    """
    n_classes = pairs.n_classes
    totals = pairs.by_worker(counts)
    share = totals.sum(axis=1) / pairs.n_tasks
    rows = (counts + 1.0 / n_classes) / (totals + 1.0)[pairs.worker]
    cross = (rows * share[pairs.worker, None]).T @ np.log(rows)
    # All labels that a worker never gave have the same share of the pseudo-label.
    unseen = 1.0 / n_classes / (totals + 1.0)
    n_unseen = n_classes - np.bincount(pairs.worker, minlength=pairs.n_workers)
    cross += (unseen * (share * n_unseen)[:, None]).T @ np.log(unseen)
    divergence = (np.diagonal(cross)[:, None] - cross) / pairs.n_workers
    np.fill_diagonal(divergence, np.inf)
    true, other = np.unravel_index(int(divergence.argmin()), divergence.shape)
    return float(divergence[true, other]), (int(true), int(other))
