"""How well a mixture explains its data: the dependence between features that it leaves unexplained.

Within a component of a mixture of product distributions, features are independent. Zhao and
Zucker, 'Feature selection facilitates learning mixtures of discrete product distributions', turn
this into a measure (their equation 10): the sum over pairs of the conditional mutual information
I(Xi; Xj | Y), with items as they are and components by their responsibilities. It is their bound on
the divergence from the distribution of the data, with Bethe's approximation.

The plug-in estimate is never quite zero, and missing entries shift it: two features that are
present together more often than by chance add to it, whatever their values. Both effects are the
same in data that the model generates at the same places. The parametric bootstrap, which keeps the
places, therefore gives the measure a scale: an expectation, a p-value, and a z-score for each pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

__all__ = ["GoodnessOfFit", "surprising_pairs", "total_information"]


class GoodnessOfFit(NamedTuple):
    """A fit compared with data that the fitted model generates."""

    lack_of_fit: float
    """Sum over pairs of I(Xi; Xj | Y), nats per item."""
    expected: float
    """Mean of that sum where the fitted model is true."""
    p_value: float
    """Share of the generated data with at least as large a sum, the data themselves included."""
    pairs: pd.DataFrame
    """One row per pair: feature, other, information, expected, z; the least explained first."""


def total_information(information: Float[np.ndarray, "feature feature"]) -> float:
    """Sum over pairs of features (equation 10), from I(Xi; Xj | Y) of every two features.

    Examples:
        >>> import numpy as np
        >>> total_information(np.array([[0.0, 0.7], [0.7, 0.0]]))
        0.7
    """
    return float(information.sum() / 2)


def surprising_pairs(
    information: Float[np.ndarray, "feature feature"],
    expected: Float[np.ndarray, "feature feature"],
    deviation: Float[np.ndarray, "feature feature"],
    features: pd.Index,
) -> pd.DataFrame:
    """Pairs by how far their information lies above its expectation, in standard deviations."""
    one, other = np.triu_indices(len(features), k=1)
    excess = (information - expected)[one, other]
    spread = deviation[one, other]
    table = pd.DataFrame(
        {
            "feature": features.take(one),
            "other": features.take(other),
            "information": information[one, other],
            "expected": expected[one, other],
            "z": np.divide(excess, spread, out=np.zeros_like(excess), where=spread > 0),
        }
    )
    return table.sort_values("z", ascending=False, kind="stable", ignore_index=True)
