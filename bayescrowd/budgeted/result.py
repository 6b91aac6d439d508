"""What a policy has learned, and the tables of what was spent and told."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.budgeted.classifier import Classifier
from bayescrowd.budgeted.purchase_summary import html_of_purchases, named_features
from bayescrowd.budgeted.purchases import Purchases
from bayescrowd.budgeted.query_book import Event, QueryBook
from bayescrowd.checks.parameters import Count, Seed, validate_arguments
from bayescrowd.data.text import quantity

__all__ = ["BudgetResult", "history_table", "spending_table"]


class _Fields(NamedTuple):
    selected: tuple[Hashable, ...]
    """The K features to use, in the order in which they were chosen."""
    classifier: Classifier
    """Predicts the class from the selected features."""
    spending: pd.DataFrame
    """By feature: observations, labels, cost, and whether it is selected."""
    history: pd.DataFrame
    """By query id: feature, target, answers, their workers, and what had been spent when it was
    complete."""
    spent: float
    """Cost of all labels."""
    left: float
    """Budget not spent."""
    stopped: str
    """Why no more is asked; 'not finished' while there is more to ask."""


class BudgetResult(_Fields):
    """What a policy has learned: a named tuple that also has the posterior behind it."""

    purchases: Purchases
    """What was bought, and under which model the policy learned from it."""

    @classmethod
    def of(cls, purchases: Purchases, **fields: Any) -> BudgetResult:
        """A result with what `posterior` needs."""
        result = cls(**fields)
        result.purchases = purchases
        return result

    def __repr__(self) -> str:
        selected, n_labels = named_features(self.selected), int(self.spending["labels"].sum())
        return (
            f"BudgetResult: {selected} selected; {self.spent:g} spent on "
            f"{quantity(n_labels, 'label')}, {self.left:g} left; {self.stopped}"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the selected features, then those with the most labels."""
        return html_of_purchases(repr(self), self.spending, show_selected=True)

    def _replace(self, **fields: Any) -> BudgetResult:
        """The result with other fields, and what `posterior` needs as it is."""
        return BudgetResult.of(self.purchases, **(self._asdict() | fields))

    @validate_arguments
    def posterior(
        self,
        *,
        chains: Count = 4,
        draws: Count = 1000,
        warmup: Count | None = None,
        method: Literal["gibbs", "nuts"] | None = None,
        seed: Seed = 0,
        progress: bool = True,
    ) -> Any:
        """Draws of the NumPyro model given what was bought; see `Policy.posterior`."""
        # ArviZ and the samplers take a second to load
        from bayescrowd.budgeted.purchase_draws import posterior_of

        return posterior_of(
            self.purchases,
            chains=chains,
            draws=draws,
            warmup=warmup,
            method=method,
            seed=seed,
            progress=progress,
        )


def spending_table(
    book: QueryBook,
    label_costs: Float[np.ndarray, " feature"],
    features: tuple[Hashable, ...],
    selected: Sequence[int],
) -> pd.DataFrame:
    """Observations, labels and cost of each feature, in the order of the book's positions."""
    return pd.DataFrame(
        {
            "observations": book.observed.sum(axis=1),
            "labels": book.n_labels,
            "cost": book.n_labels * label_costs,
            "selected": np.isin(np.arange(len(book.n_labels)), selected),
        },
        index=pd.Index(features, name="feature"),
    )


def history_table(events: Iterable[Event], costs: Mapping[Hashable, float]) -> pd.DataFrame:
    """The queries that have all their labels, in the order in which they were completed."""
    spent, rows = 0.0, []
    told: dict[int, list[tuple[Hashable, Hashable | None]]] = {}
    for event in events:
        if event.kind != "told":
            continue
        query = event.query
        spent += len(event.answers) * costs[query.feature]
        labels = told.setdefault(query.id, [])
        labels += zip(event.answers, event.workers or [None] * len(event.answers), strict=True)
        if len(labels) == query.n_labels:
            answers, workers = zip(*labels, strict=True)
            rows.append((query.id, query.feature, query.target, answers, workers, spent))
    columns = ["id", "feature", "target", "answers", "workers", "spent"]
    return pd.DataFrame(rows, columns=columns).set_index("id")
