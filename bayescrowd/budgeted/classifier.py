"""The classifier that a policy leaves behind: naive Bayes over the selected features' channels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayescrowd.budgeted.beliefs.naive_bayes import Reader, ReaderOfWorkers
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.checks.parameters import validate_arguments
from bayescrowd.data.text import quantity
from bayescrowd.data.vocabulary import comma_list, plain

__all__ = ["Classifier", "slots_of_values"]


class Classifier:
    """Predicts the class of an instance from noisy labels of a few features.

    A cell of a table of instances holds a label; or a list of several labels of the same feature of
    the same instance; or nothing (None, NaN, an empty list) if the feature is not known.

    Where workers have parameters of their own, a second table may say who gave each label; workers
    whom nothing is known of are taken for an average one. A cell of it holds a worker, or a list of
    them in the order of the labels (None for one who is not known), or nothing.

    Args:
        space: classes, their prior, and the features' values.
        readers: reader of the labels of each selected feature, by the feature's name.
        workers: number of each worker whom the readers may know.

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

    def __init__(
        self,
        space: FeatureSpace,
        readers: Mapping[Hashable, Reader],
        workers: Mapping[Hashable, int] | None = None,
    ) -> None:
        self.classes = tuple(space.classes)
        self.features = tuple(readers)
        self._space = space
        self._readers = dict(readers)
        self._workers = dict(workers or {})

    @validate_arguments
    def predict_proba(
        self, instances: pd.DataFrame, workers: pd.DataFrame | None = None
    ) -> pd.DataFrame:
        """Probability of each class for each row; other columns are ignored.

        Args:
            instances: the labels.
            workers: who gave them, with the same index; nobody is known of features without a
                column.

        Raises:
            ValueError: a selected feature has no column, a label is not among its values, or a cell
                has not as many workers as labels.
        """
        labels = self._labels(instances)
        found = self.probabilities(labels, self._givers(instances, workers, labels))
        return pd.DataFrame(found, index=instances.index, columns=list(self.classes))

    @validate_arguments
    def predict(self, instances: pd.DataFrame, workers: pd.DataFrame | None = None) -> pd.Series:
        """The most probable class of each row; the first among equals."""
        best = self.predict_proba(instances, workers).to_numpy().argmax(axis=1)
        names = pd.Series(list(self.classes)).take(best)
        return pd.Series(names.to_numpy(), index=instances.index, name="class")

    @validate_arguments
    def contributions(
        self,
        instances: pd.DataFrame,
        *,
        target: Hashable,
        against: Hashable,
        workers: pd.DataFrame | None = None,
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
        labels = self._labels(instances)
        givers = self._givers(instances, workers, labels)
        for name in labels:
            said = self._read(name, labels, givers)
            columns[name] = said[:, one] - said[:, other]
        return pd.DataFrame(columns, index=instances.index)

    @validate_arguments
    def probabilities(
        self,
        labels: Mapping[Hashable, Int[np.ndarray, "row label"]],
        workers: Mapping[Hashable, Int[np.ndarray, "row label"]] | None = None,
    ) -> Float[np.ndarray, "row cls"]:
        """Probability of each class, from labels by feature as positions of values.

        A feature that is absent, or whose labels are -1, contributes nothing. Labels that are
        impossible in every class leave the prior as it is. Workers are numbers; -1, like a feature
        that is absent, stands for somebody who is not known.
        """
        known = [name for name in self._readers if name in labels]
        if not known:
            raise ValueError(f"expected labels of at least one of {comma_list(self._readers)}")
        log_prior = np.log(self._space.class_prior)
        log_joint = log_prior + sum(self._read(f, labels, workers or {}) for f in known)
        log_joint[np.isneginf(log_joint).all(axis=1)] = log_prior
        return np.exp(log_softmax(log_joint, axis=1))

    def _read(
        self,
        name: Hashable,
        labels: Mapping[Hashable, Int[np.ndarray, "row label"]],
        workers: Mapping[Hashable, Int[np.ndarray, "row label"]],
    ) -> Float[np.ndarray, "row cls"]:
        reader = self._readers[name]
        if name in workers and isinstance(reader, ReaderOfWorkers):
            return reader.of_workers(labels[name], workers[name])
        return reader.log_likelihood(labels[name])

    def _givers(
        self,
        instances: pd.DataFrame,
        workers: pd.DataFrame | None,
        labels: Mapping[Hashable, Int[np.ndarray, "row label"]],
    ) -> dict[Hashable, Int[np.ndarray, "row label"]]:
        """Numbers of the workers who gave the labels, -1 for those who are not known."""
        if workers is None:
            return {}
        if not workers.index.equals(instances.index):
            raise ValueError("workers: expected a table with the index of the instances")
        return {
            name: self._number(name, instances[name], workers[name], codes.shape)
            for name, codes in labels.items()
            if name in workers.columns
        }

    def _number(
        self, name: Hashable, cells: pd.Series, givers: pd.Series, shape: tuple[int, ...]
    ) -> Int[np.ndarray, "row label"]:
        numbers = np.full(shape, -1)
        for row, (cell, giver) in enumerate(zip(cells, givers, strict=True)):
            names = list(giver) if _has_several(giver) else [giver]
            if not names or (len(names) == 1 and pd.isna(names[0])):
                continue
            n_labels = len(cell) if _has_several(cell) else 1
            if len(names) != n_labels:
                raise ValueError(
                    f"workers, row {plain(cells.index[row])!r}, column {name!r}: "
                    f"{quantity(len(names), 'worker')} for {quantity(n_labels, 'label')}; expected "
                    "one per label"
                )
            numbers[row, :n_labels] = [self._workers.get(plain(giver), -1) for giver in names]
        return numbers

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


def slots_of_values(seen: Sequence[int], n_values: int) -> Int[np.ndarray, " value"]:
    """Slot of each value of a feature; values never seen take the slots that are left.

    Examples:
        >>> slots_of_values((2, 0), 4)
        array([1, 2, 0, 3])
    """
    unseen = [value for value in range(n_values) if value not in seen]
    slots = np.empty(n_values, dtype=np.int64)
    slots[[*seen, *unseen]] = np.arange(n_values)
    return slots
