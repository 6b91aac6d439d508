"""Where to break the symmetry of a duplicated component (Zhao and Zucker, SL, section 3.2).

Duplicating component k of a mixture changes neither the distribution nor the conditional mutual
information (theorem 4). To make the twins differ, their profiles on two features i and j are moved
apart, to mu_k + d and mu_k - d, along the direction in which I(Xi; Xj | Y) falls fastest. Moving
the twins by opposite amounts is the same as moving them the other way round, so that the gradient
is zero and the curvature decides: the direction is the eigenvector of the most negative eigenvalue
of the Hessian.

The Hessian has a closed form. Which of the twins an item of component k belongs to is a fair coin
with a small bias e(x) = d_i[x_i] / mu_ki[x_i] + d_j[x_j] / mu_kj[x_j]. To second order, the
information of a coin with bias e about a variable is half the variance of E[e | variable], hence

    change of I(Xi; Xj | Y) among these items
        = 1/2 (Var e - Var E[e | Xi] - Var E[e | Xj])                               (apart)

with moments over the items that have both features. In addition, the twins together explain an item
better by the factor 1 + e_i e_j, which draws items from the other components:

    change = sum over components m, values a, b of pmi_m(a, b) dJ_m(a, b),          (drawn)
    dJ_m(a, b) = e_i(a) e_j(b) * sum over items with (a, b) of r_k ([m = k] - r_m)

where pmi_m is the pointwise mutual information in component m; with a single component there is
nothing to draw.

'Fastest' depends on how a change is measured. In the paper's coordinates, probabilities, a value
with probability mu_v has the weight 1 / mu_v: a single coincidence of two values of frequency f has
a curvature of the order of 1 / (n f^2) and wins over any dependence of frequent values. In Fisher's
coordinates, d / sqrt(mu), lengths are those of Fisher's information metric, the weight is
1 / sqrt(mu_v), and no curvature (apart) exceeds that of two equal features. In both, a value that
the component is not expected to show on `SHOWN` of its items is not moved. (Its log probability is
floored, not minus infinity, so comparing the probability with zero would not exclude it.)

Departure from the paper, which sums the information of all pairs: here the function is the
information of the chosen pair, the largest term. The other terms depend on the twins only through
the items that they take, and most of them are sampling noise.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["SHOWN", "Coordinates", "Direction", "move_apart", "split_direction", "split_hessian"]

Coordinates = Literal["probability", "fisher"]

SHOWN = 0.5
"""Least expected number of items of a component, with both features, on which a value is moved."""

_ABSENT = 1e-15
"""A component with next to no items shows a value if the value's share of them is above this."""


class Direction(NamedTuple):
    """How to move the twins of a component apart: one along the changes, the other against them.

    Both changes together have length one in the coordinates, or zero if the component shows no two
    values of either feature.
    """

    first: Float[np.ndarray, " first_value"]
    """Change of the profile on feature i; sums to zero."""
    second: Float[np.ndarray, " second_value"]
    """Change of the profile on feature j; sums to zero."""
    curvature: float
    """Second derivative of I(Xi; Xj | Y) along the changes, nats; negative if i depends on j."""


def split_direction(
    first: Float[np.ndarray, "item first_value"],
    second: Float[np.ndarray, "item second_value"],
    responsibilities: Float[np.ndarray, "item component"],
    component: int,
    profiles: tuple[Float[np.ndarray, " first_value"], Float[np.ndarray, " second_value"]],
    *,
    coordinates: Coordinates = "probability",
) -> Direction:
    """The direction in which the conditional information of two features falls fastest.

    Args:
        first: the value of feature i on each item, one-hot; zero where it is missing.
        second: the value of feature j on each item, likewise.
        responsibilities: P(component | item) before the duplication; both features must be among
            those that assign items, because the changes act on nothing else.
        component: the component to duplicate.
        profiles: P(value | component) of the two features in this component.
        coordinates: coordinates in which changes are measured: 'probability', as in the paper, or
            'fisher'.

    Examples:
        Of two equal coins, one twin takes the heads of both, the other the tails:

        >>> import numpy as np
        >>> coin = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> fair = np.array([0.5, 0.5])
        >>> found = split_direction(coin, coin, np.ones((4, 1)), 0, (fair, fair))
        >>> found.first, found.second
        (array([ 0.5, -0.5]), array([ 0.5, -0.5]))
        >>> round(found.curvature, 6)
        -4.0
    """
    hessian = split_hessian(
        first, second, responsibilities, component, profiles, coordinates=coordinates
    )
    curvatures, directions = np.linalg.eigh(hessian)
    # An eigenvector of curvature zero may point out of the simplex.
    unit, tangent = _frame(first, second, responsibilities, component, profiles, coordinates)
    direction = tangent @ directions[:, 0]
    # Either sign will do; take the one that raises the first of the largest changes.
    largest = np.abs(direction).max()
    if largest > 0:
        direction *= np.sign(direction[np.abs(direction) > 0.9 * largest][0])
    change = unit * direction
    n_first = first.shape[1]
    return Direction(change[:n_first], change[n_first:], float(curvatures[0]))


def split_hessian(
    first: Float[np.ndarray, "item first_value"],
    second: Float[np.ndarray, "item second_value"],
    responsibilities: Float[np.ndarray, "item component"],
    component: int,
    profiles: tuple[Float[np.ndarray, " first_value"], Float[np.ndarray, " second_value"]],
    *,
    coordinates: Coordinates = "probability",
) -> Float[np.ndarray, "value value"]:
    """Second derivatives of I(Xi; Xj | Y), nats, in the changes (d_i, d_j) of the profiles.

    Changes that do not sum to zero over the values of a feature, and changes of values that the
    component does not show, are projected out. The arguments are those of `split_direction`.
    """
    unit, tangent = _frame(first, second, responsibilities, component, profiles, coordinates)
    n_items = len(first)
    both = (first.sum(axis=1) > 0) & (second.sum(axis=1) > 0)
    first, second, responsibilities = first[both], second[both], responsibilities[both]
    form = _change_apart(_joint(first, second, responsibilities[:, component]))
    form += _change_by_draw(first, second, responsibilities, component)
    # One unit of a coordinate biases the coin of the twins by this much.
    bias = np.divide(unit, np.concatenate(profiles), out=np.zeros_like(unit), where=unit > 0)
    return tangent @ (bias[:, None] * form * bias) @ tangent / n_items


def move_apart(
    profile: Float[np.ndarray, " value"], change: Float[np.ndarray, " value"], step: float
) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " value"]]:
    """The profiles of the twins on one feature, a step along the change and a step against it.

    A step that would leave the simplex is shortened to half the distance to its boundary.

    Examples:
        >>> import numpy as np
        >>> forth, back = move_apart(np.array([0.5, 0.5]), np.array([0.7, -0.7]), 0.1)
        >>> forth.round(2), back.round(2)
        (array([0.57, 0.43]), array([0.43, 0.57]))
    """
    moving = np.abs(change) > 1e-12
    room = np.min(profile[moving] / np.abs(change[moving]), initial=np.inf)
    shift = min(step, 0.5 * room) * change
    forth, back = np.maximum(profile + shift, 0.0), np.maximum(profile - shift, 0.0)
    return forth / forth.sum(), back / back.sum()


def _frame(
    first: Float[np.ndarray, "item first_value"],
    second: Float[np.ndarray, "item second_value"],
    responsibilities: Float[np.ndarray, "item component"],
    component: int,
    profiles: tuple[Float[np.ndarray, " first_value"], Float[np.ndarray, " second_value"]],
    coordinates: str,
) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, "value value"]]:
    """Probability per unit of each coordinate, and the projection on the allowed changes."""
    joint = _joint(first, second, responsibilities[:, component])
    shown = [_shows(joint.sum(axis=1)), _shows(joint.sum(axis=0))]
    units = [
        np.where(has, np.sqrt(profile) if coordinates == "fisher" else 1.0, 0.0)
        for has, profile in zip(shown, profiles, strict=True)
    ]
    n_first = first.shape[1]
    tangent = np.zeros((n_first + second.shape[1],) * 2)
    tangent[:n_first, :n_first] = _centring(shown[0], units[0])
    tangent[n_first:, n_first:] = _centring(shown[1], units[1])
    return np.concatenate(units), tangent


def _shows(expected: Float[np.ndarray, " value"]) -> Bool[np.ndarray, " value"]:
    """Which values a component shows on enough items; the top two if it has few items."""
    second_largest = np.sort(expected)[-2:][0]
    least = max(min(SHOWN, second_largest), _ABSENT * expected.sum(), np.finfo(float).tiny)
    return expected >= least


def _joint(
    first: Float[np.ndarray, "item first_value"],
    second: Float[np.ndarray, "item second_value"],
    weights: Float[np.ndarray, " item"],
) -> Float[np.ndarray, "first_value second_value"]:
    return first.T @ (second * weights[:, None])


def _change_apart(
    joint: Float[np.ndarray, "first_value second_value"],
) -> Float[np.ndarray, "value value"]:
    """Quadratic form of Var e - Var E[e | Xi] - Var E[e | Xj] in the biases (e_i, e_j)."""
    total = joint.sum()
    left, right = joint.sum(axis=1), joint.sum(axis=0)
    given_left = joint / np.where(left > 0, left, 1.0)[:, None]
    given_right = joint.T / np.where(right > 0, right, 1.0)[:, None]
    expected_left = np.hstack([np.eye(len(left)), given_left])
    expected_right = np.hstack([given_right, np.eye(len(right))])
    mean = np.concatenate([left, right]) / np.sqrt(max(total, np.finfo(float).tiny))
    second_moments = np.block([[np.diag(left), joint], [joint.T, np.diag(right)]])
    return (
        second_moments
        - expected_left.T @ (left[:, None] * expected_left)
        - expected_right.T @ (right[:, None] * expected_right)
        + np.outer(mean, mean)
    )


def _change_by_draw(
    first: Float[np.ndarray, "item first_value"],
    second: Float[np.ndarray, "item second_value"],
    responsibilities: Float[np.ndarray, "item component"],
    component: int,
) -> Float[np.ndarray, "value value"]:
    """Quadratic form in (e_i, e_j) of twice the change due to items drawn from other components."""
    gain = np.zeros((first.shape[1], second.shape[1]))
    own = responsibilities[:, component]
    for other in range(responsibilities.shape[1]):
        theirs = responsibilities[:, other]
        taken = own * ((other == component) - theirs)
        gain += _pointwise(_joint(first, second, theirs)) * _joint(first, second, taken)
    return np.block(
        [
            [np.zeros((len(gain), len(gain))), gain],
            [gain.T, np.zeros((gain.shape[1], gain.shape[1]))],
        ]
    )


def _pointwise(
    joint: Float[np.ndarray, "first_value second_value"],
) -> Float[np.ndarray, "first_value second_value"]:
    """log [J J.. / (J_a. J_.b)], zero where J is zero."""
    occurs = joint > 0
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    ratio = np.where(occurs, joint * joint.sum(), 1.0) / np.where(occurs, expected, 1.0)
    return np.log(ratio)


def _centring(
    shown: Bool[np.ndarray, " value"], unit: Float[np.ndarray, " value"]
) -> Float[np.ndarray, "value value"]:
    """Projection on the changes of the shown values that sum to zero in probability."""
    return np.diag(shown.astype(float)) - np.outer(unit, unit) / max(
        float(unit @ unit), np.finfo(float).tiny
    )
