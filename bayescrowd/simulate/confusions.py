"""Confusion matrices of simulated workers: honest ones, spammers and adversaries."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Shaped

from bayescrowd.simulate.assignment import TINY, Vector, bounded_vector

__all__ = [
    "HONEST",
    "INFORMATIVE",
    "UNINFORMATIVE",
    "dirichlet_confusions",
    "normalise_confusions",
    "one_coin_confusions",
    "prevalence_of",
    "replace_by_spammers",
]

HONEST = "honest"
UNIFORM_SPAMMER = "uniform spammer"
ONE_CLASS_SPAMMER = "one-class spammer"
ADVERSARY = "adversary"
INFORMATIVE = "informative"
UNINFORMATIVE = "uninformative"


def dirichlet_confusions(
    n_workers: int,
    n_classes: int,
    accuracy: float,
    concentration: float,
    rng: np.random.Generator,
) -> Float[np.ndarray, "worker cls cls"]:
    """Matrices with independent Dirichlet rows whose mean is a one-coin worker of this accuracy."""
    mean = one_coin_confusions(np.array([accuracy]), n_classes)[0]
    rows = [rng.dirichlet(np.maximum(concentration * row, TINY), n_workers) for row in mean]
    return np.stack(rows, axis=1)


def one_coin_confusions(
    right: Float[np.ndarray, " worker"], n_classes: int
) -> Float[np.ndarray, "worker cls cls"]:
    """Matrices of workers who are right with one probability and err uniformly otherwise."""
    wrong = (1 - right) / (n_classes - 1)
    diagonal = np.eye(n_classes, dtype=bool)
    return np.where(diagonal, right[:, None, None], wrong[:, None, None])


def replace_by_spammers(
    honest: Float[np.ndarray, "worker cls cls"],
    spammers: float,
    adversaries: float,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "worker cls cls"], Shaped[np.ndarray, " worker"]]:
    """Replace some honest workers by spammers and adversaries; return matrices and kinds.

    Args:
        honest: matrices of the honest workers.
        spammers: fraction of spammers among the workers; half of the spammers answer uniformly at
            random, and each of the others always gives the same class.
        adversaries: fraction of adversaries among the workers; each names the class after the one
            that the honest worker would name.
        rng: random generator that draws who is replaced and the class of each one-class spammer.

    Raises:
        ValueError: the two fractions sum to more than 1.
    """
    n_workers, n_classes, _ = honest.shape
    if spammers + adversaries > 1 + TINY:
        raise ValueError(
            f"spammers={spammers} and adversaries={adversaries} sum to more than 1, the whole crowd"
        )
    n_spammers = round(spammers * n_workers)
    n_dishonest = round((spammers + adversaries) * n_workers)
    uniform, one_class, adversary, _ = np.split(
        rng.permutation(n_workers), [(n_spammers + 1) // 2, n_spammers, n_dishonest]
    )
    matrices = honest.copy()
    matrices[uniform] = 1 / n_classes
    habit = rng.integers(n_classes, size=len(one_class))
    matrices[one_class] = np.eye(n_classes)[habit][:, None, :]
    matrices[adversary] = np.roll(honest[adversary], 1, axis=2)
    kinds = np.full(n_workers, HONEST, dtype=f"<U{len(ONE_CLASS_SPAMMER)}")
    kinds[uniform], kinds[one_class], kinds[adversary] = (
        UNIFORM_SPAMMER,
        ONE_CLASS_SPAMMER,
        ADVERSARY,
    )
    return matrices, kinds


def prevalence_of(prevalence: Vector | None, n_classes: int) -> Float[np.ndarray, " cls"]:
    """Probabilities of the classes, which must sum to 1; uniform if `prevalence` is None."""
    if prevalence is None:
        return np.full(n_classes, 1 / n_classes)
    values = bounded_vector("prevalence", prevalence, n_classes, "class", low=0, high=1)
    if abs(values.sum() - 1) > 1e-6:
        raise ValueError(f"prevalence sums to {values.sum():.6g}; expected 1")
    return values / values.sum()


def normalise_confusions(
    confusions: Float[np.ndarray, "n true observed"], n_workers: int, n_classes: int
) -> Float[np.ndarray, "worker cls cls"]:
    """The matrices [worker, true, observed] with rows that sum to 1 up to rounding.

    Raises:
        ValueError: the shape is wrong, or a row does not consist of probabilities that sum to 1.
    """
    expected = (n_workers, n_classes, n_classes)
    if confusions.shape != expected:
        raise ValueError(
            f"confusions have shape {confusions.shape}; expected workers x true x observed, "
            f"{expected}"
        )
    sums = confusions.sum(axis=2)
    bad = np.argwhere((np.abs(sums - 1) > 1e-6) | ~(confusions >= 0).all(axis=2))
    if len(bad):
        worker, true = bad[0]
        raise ValueError(
            f"confusions of worker {worker}, true class {true} are {confusions[worker, true]}; "
            "expected probabilities that sum to 1"
        )
    return confusions / sums[:, :, None]
