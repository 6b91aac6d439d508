"""Names of the classes: label switching is found, undone where it can be, and reported.

A likelihood of confusion matrices is the same under every renaming of the true classes, and only
the prior tells the names apart. One chain may therefore say 'cat' where another says 'dog', and an
average over both says nothing. The names that users expect are those under which the crowd is
mostly right: of all namings, the one under which most labels agree with the true classes (found by
the Hungarian method from expected counts, as for EM).

- A chain whose draws, on average, have another naming is renamed. With a prior that prefers right
  answers that is a repair: the chain sat in a mode that the prior makes improbable, and its draws
  are those of that mode. The result says which chains were renamed.
- Draws whose naming differs from that of their chain cannot be repaired, since the boundary between
  two modes has no names: their share is reported.
- Subtypes of a class (`bayescrowd.models.task_subtypes`) have no names at all. In each draw they
  are numbered by how often labels are right on them, the easiest first.
- Where labels hardly tell classes apart, all namings agree with the labels about equally well. The
  kappa of labels and classes says how far the crowd is above guessing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.posterior.conditionals.names import TIE

__all__ = ["Alignment", "align_chains", "complaints", "order_subtypes", "rename_classes"]

MOST_UNSTABLE = 0.01
"""Largest share of draws named differently from their chain before names are in doubt."""

LEAST_KAPPA = 0.15
"""Kappa below which labels do not identify the classes: 200 tasks of noise give 0.05 to 0.11."""


class Alignment(NamedTuple):
    """How the classes of each chain were named."""

    naming: Int[np.ndarray, "chain cls"]
    """Class k of the user is the class naming[chain, k] that the chain had sampled."""
    is_renamed: Bool[np.ndarray, " chain"]
    """Whether the naming changed anything."""
    unstable: Float[np.ndarray, " chain"]
    """Share of draws that another naming would suit better."""
    kappa: Float[np.ndarray, " chain"]
    """Cohen's kappa of labels and classes: 0 for a crowd that guesses, 1 for a perfect one."""


def align_chains(
    agreement: Float[np.ndarray, "chain draw cls observed"], *, can_rename: bool
) -> Alignment:
    """Name the classes of each chain so that most labels agree with them.

    Args:
        agreement: expected number of labels of each class on items of each true class.
        can_rename: whether the model's classes may be renamed at all; if not, all draws of a chain
            that would need it count as unstable.

    Examples:
        The second chain calls 'a' what the labels call 'b':

        >>> import numpy as np
        >>> right = np.array([[8.0, 2.0], [1.0, 9.0]])
        >>> alignment = align_chains(np.array([[right], [right[::-1]]]), can_rename=True)
        >>> alignment.naming.tolist(), alignment.is_renamed.tolist()
        ([[0, 1], [1, 0]], [False, True])
    """
    n_chains, _, n_classes, _ = agreement.shape
    best = np.array([_best_naming(mean) for mean in agreement.mean(axis=1)])
    naming = best if can_rename else np.tile(np.arange(n_classes), (n_chains, 1))
    aligned = agreement[np.arange(n_chains)[:, None], :, naming].swapaxes(1, 2)
    identity = np.arange(n_classes)
    unstable = [
        np.mean([(_best_naming(draw) != identity).any() for draw in chain]) for chain in aligned
    ]
    return Alignment(
        naming=naming,
        is_renamed=(naming != identity).any(axis=1),
        unstable=np.array(unstable),
        kappa=_kappa(aligned.mean(axis=1)),
    )


def rename_classes(
    values: Float[np.ndarray, "chain ..."],
    dims: Sequence[str],
    naming: Int[np.ndarray, "chain cls"],
) -> Float[np.ndarray, "chain ..."]:
    """Bring the axis 'cls' of the values, if any, to the user's order, chain by chain.

    Args:
        values: an array whose first axis is the chain.
        dims: names of the axes.
        naming: the namings of the chains, see `Alignment`.
    """
    if "cls" not in dims:
        return values
    axis = list(dims).index("cls") - 1
    return np.stack(
        [np.take(chain, order, axis=axis) for chain, order in zip(values, naming, strict=True)]
    )


def order_subtypes(
    params: Mapping[str, tuple[Sequence[str], np.ndarray]], n_labels: Float[np.ndarray, " worker"]
) -> dict[str, tuple[Sequence[str], np.ndarray]]:
    """Number the subtypes of each class and draw by how often labels are right, easiest first.

    Args:
        params: dimensions and values of the parameters of a model with the site
            `subtype_confusion`, classes named as the user names them.
        n_labels: number of labels of each worker, the weight of a worker in the average.
    """
    rows = params["subtype_confusion"][1]
    weight = n_labels / max(n_labels.sum(), 1)
    right = np.einsum("cdwkmk,w->cdkm", rows, weight.astype(rows.dtype))
    order = np.argsort(-right, axis=-1, kind="stable")
    axes = ("chain", "draw", "cls", "subtype")
    ordered = {}
    for name, (dims, values) in params.items():
        if "subtype" in dims:
            shape = [order.shape[axes.index(dim)] if dim in axes else 1 for dim in dims]
            axis = list(dims).index("subtype")
            values = np.take_along_axis(values, order.reshape(shape), axis=axis)
        ordered[name] = (dims, values)
    return ordered


def complaints(alignment: Alignment) -> list[str]:
    """Warnings that a user has to know before averaging over these draws, if any."""
    found = []
    if alignment.is_renamed.any():
        chains = ", ".join(str(chain) for chain in np.flatnonzero(alignment.is_renamed))
        found.append(
            f"label switching: the classes of chain {chains} were renamed to agree with the crowd; "
            "its draws come from a mode that the prior disfavours"
        )
    if (alignment.unstable > MOST_UNSTABLE).any():
        worst = int(alignment.unstable.argmax())
        found.append(
            f"label switching: in chain {worst}, {alignment.unstable[worst]:.0%} of the draws "
            "would agree better with the crowd under other names of the classes"
        )
    if (alignment.kappa < LEAST_KAPPA).any():
        found.append(
            "the crowd is hardly better than guessing (kappa "
            f"{alignment.kappa.min():.2f}, where 1 is perfect): its labels do not "
            "determine the classes"
        )
    return found


def _best_naming(agreement: Float[np.ndarray, "cls observed"]) -> Int[np.ndarray, " cls"]:
    """For each label, the class that it agrees with most in the best one-to-one naming."""
    hidden, observed = linear_sum_assignment(agreement, maximize=True)
    gain = agreement[hidden, observed].sum() - agreement.trace()
    if gain <= TIE * agreement.sum():
        return np.arange(len(agreement))
    return hidden[np.argsort(observed)]


def _kappa(agreement: Float[np.ndarray, "chain cls observed"]) -> Float[np.ndarray, " chain"]:
    """Cohen's kappa of labels and true classes; classes that nobody uses weigh nothing."""
    joint = agreement / agreement.sum(axis=(-2, -1), keepdims=True)
    expected = (joint.sum(axis=-1) * joint.sum(axis=-2)).sum(axis=-1)
    right = np.trace(joint, axis1=-2, axis2=-1)
    return (right - expected) / np.maximum(1 - expected, 1e-12)
