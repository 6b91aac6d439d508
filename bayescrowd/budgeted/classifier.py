"""The classifier that a policy leaves behind: naive Bayes over the selected features' channels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayescrowd.budgeted.beliefs.naive_bayes import Reader
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.vocabulary import comma_list, plain

__all__ = ["Classifier"]


class Classifier:
    """Predicts the class of an instance from noisy labels of a few features.

    A cell of a table of instances holds a label; or a list of several labels of the same feature of
    the same instance; or nothing (None, NaN, an empty list) if the feature is not known.

    Args:
        space: classes, their prior, and the features' values.
        readers: reader of the labels of each selected feature, by the feature's name.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> space = bc.FeatureSpace(classes=["cat", "dog"], features={"says": ["meow", "woof"]})
        >>> policy = bc.RoundRobin(space, budget=8, n_features=1)
        >>> while (query := policy.ask()) is not None:
        ...     policy.tell(query, {"cat": "meow", "dog": "woof"}[query.target])
        >>> classifier = policy.result().classifier
        >>> classifier.predict(pd.DataFrame({"says": ["woof", "meow"]})).to_list()
        ['dog', 'cat']
    """

    def __init__(self, space: FeatureSpace, readers: Mapping[Hashable, Reader]) -> None:
        self.classes = tuple(space.classes)
        self.features = tuple(readers)
        self._space = space
        self._readers = dict(readers)

    @validate_arguments
    def predict_proba(self, instances: pd.DataFrame) -> pd.DataFrame:
        """Probability of each class for each row; other columns are ignored.

        Raises:
            ValueError: a selected feature has no column, or a label is not among its values.
        """
        labels = self._labels(instances)
        return pd.DataFrame(
            self.probabilities(labels), index=instances.index, columns=list(self.classes)
        )

    @validate_arguments
    def predict(self, instances: pd.DataFrame) -> pd.Series:
        """The most probable class of each row; the first among equals."""
        best = self.predict_proba(instances).to_numpy().argmax(axis=1)
        names = pd.Series(list(self.classes)).take(best)
        return pd.Series(names.to_numpy(), index=instances.index, name="class")

    @validate_arguments
    def contributions(
        self, instances: pd.DataFrame, *, target: Hashable, against: Hashable
    ) -> pd.DataFrame:
        """What each feature adds to the log-odds of one class against another, in nats.

        The columns, one of which is `prior` (`class prior` if a feature has that name), sum to
        log P(target) - log P(against) in each row.

        Raises:
            ValueError: there is no such class, a selected feature has no column, or a label is not
                among its values.
        """
        for name in (target, against):
            if name not in self.classes:
                raise ValueError(f"no class {name!r}; there are {comma_list(self.classes)}")
        one, other = self.classes.index(target), self.classes.index(against)
        log_prior = np.log(self._space.class_prior)
        own = "class prior" if "prior" in self.features else "prior"
        columns: dict[Hashable, Any] = {own: log_prior[one] - log_prior[other]}
        for name, labels in self._labels(instances).items():
            said = self._readers[name].log_likelihood(labels)
            columns[name] = said[:, one] - said[:, other]
        return pd.DataFrame(columns, index=instances.index)

    @validate_arguments
    def probabilities(
        self, labels: Mapping[Hashable, Int[np.ndarray, "row label"]]
    ) -> Float[np.ndarray, "row cls"]:
        """Probability of each class, from labels by feature as positions of values.

        A feature that is absent, or whose labels are -1, contributes nothing. Labels that are
        impossible in every class leave the prior as it is.
        """
        known = [name for name in self._readers if name in labels]
        if not known:
            raise ValueError(f"expected labels of at least one of {comma_list(self._readers)}")
        log_prior = np.log(self._space.class_prior)
        log_joint = log_prior + sum(self._readers[f].log_likelihood(labels[f]) for f in known)
        log_joint[np.isneginf(log_joint).all(axis=1)] = log_prior
        return np.exp(log_softmax(log_joint, axis=1))

    def _labels(self, instances: pd.DataFrame) -> dict[Hashable, Int[np.ndarray, "row label"]]:
        if not isinstance(instances, pd.DataFrame):
            raise TypeError(
                f"instances came as {type(instances).__name__}; expected a pandas table with the "
                f"columns {comma_list(self.features)}"
            )
        for name in self.features:
            if name not in instances.columns:
                raise ValueError(
                    f"the instances have no column {name!r}; expected {comma_list(self.features)}"
                )
        return {name: self._code(name, instances[name]) for name in self.features}

    def _code(self, name: Hashable, column: pd.Series) -> Int[np.ndarray, "row label"]:
        if not any(_has_several(cell) for cell in column):
            return self._space.code_column(name, column)[:, None]
        lists = [_ordered_labels(cell) if _has_several(cell) else [cell] for cell in column]
        flat = pd.Series(
            [plain(value) for cell in lists for value in cell],
            index=[row for row, cell in zip(column.index, lists, strict=True) for _ in cell],
            dtype=object,
        )
        sizes = np.array([len(cell) for cell in lists])
        codes = np.full((len(lists), max(1, sizes.max(initial=0))), -1)
        codes[np.arange(codes.shape[1]) < sizes[:, None]] = self._space.code_column(name, flat)
        return codes

    def __repr__(self) -> str:
        return f"Classifier({len(self.classes)} classes from {comma_list(self.features)})"


def _ordered_labels(cell: Any) -> list[Any]:
    """Labels in their order; a set has none that is the same in every process, so it is sorted."""
    return sorted(cell, key=repr) if isinstance(cell, set) else list(cell)


def _has_several(cell: Any) -> bool:
    return isinstance(cell, list | tuple | set | np.ndarray)
