"""How well a mixture explains its data: the dependence between features that it leaves over.

Within a component of a mixture of product distributions, features are independent. Zhao and
Zucker, 'Feature selection facilitates learning mixtures of discrete product distributions', turn
this into a measure (their equation 10): the sum over pairs of the conditional mutual information
I(Xi; Xj | Y), the items taken as they are and the components by their responsibilities. It is
their bound on the divergence from the data's distribution, with Bethe's approximation.

The plug-in estimate is never quite zero, and missing entries shift it: two features that are
present together more often than by chance add to it whatever they say. Both are the same in data
that the model has generated at the same places, so that the parametric bootstrap, which keeps the
places, gives it a scale: an expectation and a p-value, and a z-score for every pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.data.features import FeatureTable
from bayescrowd.information import conditional_mutual_information

__all__ = ["GoodnessOfFit", "lack_of_fit", "surprising_pairs"]


class GoodnessOfFit(NamedTuple):
    """A fit held against data that the fitted model generates."""

    lack_of_fit: float
    """Sum over pairs of I(Xi; Xj | Y), nats per item."""
    expected: float
    """Its mean where the fitted model is true."""
    p_value: float
    """Share of the generated data with at least as much, the data themselves included."""
    pairs: pd.DataFrame
    """One row per pair: feature, other, information, expected, z; the least explained first."""


def lack_of_fit(
    table: FeatureTable, responsibilities: Float[np.ndarray, "item component"]
) -> float:
    """Sum over pairs of features of I(Xi; Xj | Y), nats per item (equation 10).

    Examples:
        With one component it is the pairs' mutual information, here that of two equal coins:

        >>> import numpy as np
        >>> from bayescrowd.data.features import as_feature_table
        >>> coins = as_feature_table(np.array([[0, 0], [1, 1], [0, 0], [1, 1]]))
        >>> round(lack_of_fit(coins, np.ones((4, 1))), 4)
        0.6931
    """
    return float(conditional_mutual_information(table, responsibilities).total.sum() / 2)


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
