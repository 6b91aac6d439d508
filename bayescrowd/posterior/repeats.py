"""What draws of the model of numeric judgements say about attributes and repeat vectors.

For every draw the loss of a repeat vector is known in closed form: the variance of the target that
averages of that many judgements leave unexplained. The spread of the loss over draws is what the
judgements leave open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.data.judgements import as_judgements, numeric_target
from bayescrowd.data.vocabulary import plain
from bayescrowd.posterior.container import Container, assemble, dataset_of
from bayescrowd.posterior.judgements import JudgementDraws, sample_judgements

__all__ = ["RepeatPosterior", "posterior_of_repeats"]

MOST_ATTRIBUTES = 64
"""With more attributes than this, the model leaves out those that the path never asks for."""


@dataclass(frozen=True, eq=False, repr=False)
class RepeatPosterior:
    """What the judgements leave open about attributes and repeat vectors.

    Args:
        draws: draws of the parameters.
        repeats: the path: repeat vectors by budget.

    Attributes:
        container: draws of the reported quantities in ArviZ's container, for
            `bayescrowd.diagnose`.
    """

    draws: JudgementDraws
    repeats: pd.DataFrame

    def attributes(self, *, probability: float = 0.9) -> pd.DataFrame:
        """Internal variance and reliability of each attribute: posterior mean and interval.

        Args:
            probability: probability of the interval, whose tails are equal.
        """
        tables = {
            name: _summarise(values, self.draws.attributes, probability)
            for name, values in (
                ("internal_variance", self.draws.internal_variance),
                ("reliability", self.draws.reliability),
            )
        }
        return pd.concat(tables, axis="columns")

    def loss_curve(self, *, probability: float = 0.9) -> pd.DataFrame:
        """Loss along the path: mean and interval by budget, and P(lower than one step before).

        Args:
            probability: probability of the interval, whose tails are equal.
        """
        losses = np.stack(
            [self.loss_draws(vector) for _, vector in self.repeats.iterrows()], axis=2
        )
        table = _summarise(losses, self.repeats.index, probability)
        falls = (np.diff(losses, axis=2) < 0).mean(axis=(0, 1))
        return table.assign(falls=np.concatenate([[np.nan], falls]))

    def compare(
        self,
        first: pd.Series | Mapping[Any, int] | float,
        second: pd.Series | Mapping[Any, int] | float,
        *,
        probability: float = 0.9,
    ) -> pd.DataFrame:
        """Compare the losses of two repeat vectors.

        Args:
            first: how often to ask for each attribute, or a budget of the path.
            second: the same for the vector that `first` is compared with.
            probability: probability of the intervals, whose tails are equal.

        Returns:
            A table with the rows first, second and difference (first minus second): mean loss,
            interval, and for the difference the probability that the first vector has the lower
            loss (`first_better`).
        """
        one, other = self.loss_draws(first), self.loss_draws(second)
        losses = np.stack([one, other, one - other], axis=2)
        names = pd.Index(["first", "second", "difference"], name="loss of")
        better = [np.nan, np.nan, float((one < other).mean())]
        return _summarise(losses, names, probability).assign(first_better=better)

    def loss_draws(
        self, repeats: pd.Series | Mapping[Any, int] | float
    ) -> Float[np.ndarray, "chain draw"]:
        """Loss of a repeat vector in each draw.

        Args:
            repeats: how often to ask for each attribute, or a budget of the path.

        Raises:
            ValueError: an attribute is not in the model.
        """
        if isinstance(repeats, int | float | np.number):
            place = self.repeats.index.searchsorted(repeats * (1 + 1e-9), side="right") - 1
            repeats = self.repeats.iloc[max(int(place), 0)]
        vector = pd.Series(dict(repeats), dtype=int)
        vector = vector[vector > 0]
        unknown = vector.index.difference(self.draws.attributes, sort=False)
        if len(unknown):
            raise ValueError(f"attribute {plain(unknown[0])!r} is not in the model")
        return self.draws.loss(vector.reindex(self.draws.attributes, fill_value=0).to_numpy())

    @property
    def container(self) -> Container:
        """Draws of internal variance, reliability and the loss at the whole budget, for ArviZ."""
        last = self.loss_draws(self.repeats.iloc[-1])
        variables = {
            "internal_variance": (("chain", "draw", "attribute"), self.draws.internal_variance),
            "reliability": (("chain", "draw", "attribute"), self.draws.reliability),
            "loss": (("chain", "draw"), last),
        }
        coords = {"attribute": self.draws.attributes}
        return assemble({"posterior": dataset_of(variables, coords=coords)})


def posterior_of_repeats(
    repeats: pd.DataFrame, judgements: Any, y: Any, **options: Any
) -> RepeatPosterior:
    """Draw the parameters behind the judgements, to judge the repeat vectors of a path.

    Args:
        repeats: the path: repeat vectors by budget, attributes in columns.
        judgements: a long table, or an array objects x attributes x k; see `as_judgements`.
        y: the target of each object.
        **options: passed to `sample_judgements`.
    """
    data = as_judgements(judgements)
    if data.n_attributes > MOST_ATTRIBUTES:
        data = data.select_attributes(repeats.columns[(repeats > 0).any(axis=0)])
    draws = sample_judgements(data, numeric_target(y, data), **options)
    return RepeatPosterior(draws, repeats)


def _summarise(
    values: Float[np.ndarray, "chain draw entry"], names: pd.Index, probability: float
) -> pd.DataFrame:
    if not 0 < probability < 1:
        raise ValueError(f"probability={probability}: expected a number between 0 and 1")
    tail = (1 - probability) / 2
    flat = values.reshape(-1, values.shape[2])
    low, high = np.quantile(flat, [tail, 1 - tail], axis=0)
    return pd.DataFrame({"mean": flat.mean(axis=0), "lower": low, "upper": high}, index=names)
