"""How often two one-coin workers agree on a class (Zhao and Zucker, figure 1, equations 2 and 3).

Of K equally frequent classes, a one-coin worker reports the true one with probability p_i and each
other with probability (1 - p_i) / (K - 1). (Equation 2 prints k - 1, which must be K - 1.) The
figure shows the probability alpha that two workers both report one particular class, for K = 3: a
hyperbolic paraboloid with its saddle at p_i = p_j = 1/3, where alpha = 1/9. Here alpha is not
computed from the printed formula but by enumeration, as a sum over true classes; the formula, the
saddle, monotonicity and the information of equation 3 are then checked as claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.special import xlogy

from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.plots.canvas import PALE, tidy

__all__ = [
    "EXPERIMENT",
    "agreement",
    "information_of_agreement",
    "joint_of_two",
    "mutual_information",
    "printed_agreement",
]

K = 3
SHARES = (0, 1, 2, 3, 4, 5, 6)
"""Accuracies of the grid, in sixths; two sixths are chance."""
SADDLE = 1 / K
_ROUNDING = 1e-12


def joint_of_two(p: float, q: float, n_classes: int = K) -> Float[np.ndarray, "cls cls"]:
    """P(X_i, X_j) of two one-coin workers with accuracies p and q, summed over the true class.

    Examples:
        >>> joint_of_two(1.0, 0.5, 2)
        array([[0.25, 0.25],
               [0.25, 0.25]])
    """
    one, other = (_confusion(accuracy, n_classes) for accuracy in (p, q))
    return one.T @ other / n_classes


def _confusion(accuracy: float, n_classes: int) -> Float[np.ndarray, "cls cls"]:
    rows = np.full((n_classes, n_classes), (1 - accuracy) / (n_classes - 1))
    np.fill_diagonal(rows, accuracy)
    return rows


def agreement(p: float, q: float, n_classes: int = K) -> float:
    """alpha: the probability that both report one particular class, the same for every class."""
    return float(joint_of_two(p, q, n_classes)[0, 0])


def printed_agreement(p: float, q: float, n_classes: int = K) -> float:
    """alpha by the formula that the paper prints, a difference of squares.

    Examples:
        >>> round(printed_agreement(1 / 3, 1 / 3), 9) == round(1 / 9, 9)
        True
    """
    squares = (p + q - 2 / n_classes) ** 2 - (p - q) ** 2
    return squares / (4 * (n_classes - 1)) + 1 / n_classes**2


def mutual_information(joint: Float[np.ndarray, "row column"]) -> float:
    """I(X_i, X_j) of a joint distribution, nats."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float((xlogy(joint, joint) - xlogy(joint, product)).sum())


def information_of_agreement(alpha: float, n_classes: int = K) -> float:
    """Equation 3: I(X_i, X_j) of two one-coin workers as a function of alpha, nats."""
    rest = 1 - n_classes * alpha
    spread = rest / (n_classes * (n_classes - 1))
    both = n_classes * xlogy(alpha, alpha) + xlogy(rest, spread)
    return float(both + np.log(n_classes**2))


def _column(sixths: int) -> str:
    return f"p_j={sixths}/6"


def _id(row: int, column: int) -> CellId:
    return CellId(f"p_i={row}/6", _column(column))


def _measure(part: str, seed: int) -> dict[CellId, float]:
    return {_id(i, j): agreement(i / 6, j / 6) for i in SHARES for j in SHARES}


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    alpha = np.reshape([outcome.measured for outcome in outcomes], (len(SHARES), len(SHARES)))
    printed = np.array([[printed_agreement(i / 6, j / 6) for j in SHARES] for i in SHARES])
    information = np.array(
        [[mutual_information(joint_of_two(i / 6, j / 6)) for j in SHARES] for i in SHARES]
    )
    formula = np.array([[information_of_agreement(a) for a in row] for row in alpha])
    middle = SHARES.index(2)
    level = np.concatenate([alpha[middle], alpha[:, middle]])
    diagonal, crossing = np.diag(alpha), np.array([alpha[1, 3], alpha[3, 1]])
    better = slice(middle + 1, None)
    rising = np.diff(alpha[better, better], axis=0)
    more = np.diff(information[better, better], axis=0)
    return [
        Claim(
            "alpha is the printed function of p_i and p_j",
            bool(np.abs(alpha - printed).max() < _ROUNDING),
            f"largest difference from enumeration {np.abs(alpha - printed).max():.0e}",
        ),
        Claim(
            "p_i = p_j = 1/3 is a saddle point with alpha = 1/9",
            bool(
                np.abs(level - SADDLE**2).max() < _ROUNDING
                and np.delete(diagonal, middle).min() > SADDLE**2 > crossing.max()
            ),
            f"alpha is {alpha[middle, middle]:.4f} there and constant along both axes; next to it "
            f"{diagonal[middle - 1]:.4f} and {diagonal[middle + 1]:.4f} along the diagonal, "
            f"{crossing.max():.4f} across it",
        ),
        Claim(
            "alpha rises with either accuracy where both are above chance",
            bool((rising > 0).all()),
            f"least step of 1/6: {rising.min():+.4f}",
        ),
        Claim(
            "the mutual information is that of equation 3, zero at alpha = 1/9 and rising above it",
            bool(
                np.abs(information - formula).max() < _ROUNDING
                and abs(information_of_agreement(SADDLE**2)) < _ROUNDING
                and all(
                    information_of_agreement(a) < information_of_agreement(b)
                    for a, b in pairwise(np.linspace(SADDLE**2, SADDLE, 100).tolist())
                )
            ),
            f"largest difference from enumeration {np.abs(information - formula).max():.0e}",
        ),
        Claim(
            "of two workers above chance, the more accurate shares more information with any third",
            bool((more > 0).all()),
            f"least step of 1/6: {more.min():+.4f} nats; not so below chance: a worker who is "
            f"always wrong shares {information[0, -1]:.3f} nats with one who is always right, "
            f"and a worker with p = 1/2 shares {information[3, -1]:.3f}",
        ),
    ]


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the surface with its saddle point, and the information over the same square."""
    figure = Figure(figsize=(10.5, 4.6), dpi=150, layout="constrained")
    accuracies = np.linspace(0, 1, 41)
    alpha = np.array([[agreement(p, q) for q in accuracies] for p in accuracies])
    nats = np.array([[information_of_agreement(a) for a in row] for row in alpha])
    across, along = np.meshgrid(accuracies, accuracies)
    # Drawn in the order of the calls, or the surface would hide the point that lies in it.
    surface = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    surface.plot_surface(across, along, alpha, cmap="viridis", alpha=0.75, linewidth=0)
    surface.scatter([SADDLE], [SADDLE], [SADDLE**2], color="red", s=40, depthshade=False)
    surface.set(xlabel="$p_i$", ylabel="$p_j$", zlabel=r"$\alpha$")
    surface.view_init(elev=22, azim=-125)
    surface.set_title("Agreement on one class, K = 3", loc="left", fontsize="medium", weight="bold")
    plane = figure.add_subplot(1, 2, 2)
    lines = plane.contour(across, along, nats, levels=[0.01, 0.05, 0.1, 0.2, 0.4, 0.8])
    plane.clabel(lines, fontsize=7)
    plane.plot(SADDLE, SADDLE, "o", color="red", label="saddle; no information on grey lines")
    plane.axvline(SADDLE, color=PALE, linewidth=0.8)
    plane.axhline(SADDLE, color=PALE, linewidth=0.8)
    plane.set_aspect("equal")
    plane.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize="small", frameon=False)
    tidy(plane, title="Mutual information in nats", xlabel="$p_i$", ylabel="$p_j$")
    return figure


EXPERIMENT = Experiment(
    name="mi-figure1",
    title="Agreement of two one-coin workers, K = 3 (Zhao and Zucker, figure 1)",
    parts=(Part("one-coin", f"enumeration over the true class, K={K}", is_random=False),),
    cells=tuple(
        Cell(
            id=_id(i, j),
            part="one-coin",
            published=None,
            unit="",
            decimals=4,
            n_items=None,
            reason=None,
        )
        for i in SHARES
        for j in SHARES
    ),
    measure=_measure,
    draw=_draw,
    claims=_claims,
    notes=(
        "The paper prints one value of the surface, 1/9 at its saddle; it is among the claims.",
    ),
)
