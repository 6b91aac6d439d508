"""What can be bought: classes, and features with the values that an answer may take.

A numeric column of a table becomes a feature with few values: with more than ten distinct numbers
it is cut at its quantiles into five intervals that hold about as many rows each (fewer if ties
leave fewer cuts); with ten or fewer, each number is a value. A column with a single value, or with
none, carries nothing: it is not a feature, and the space lists it as constant.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.checks.parameters import Positive, check_parameters, validate_arguments
from bayescrowd.data.columns import (
    as_pandas,
    code_found,
    code_known,
    constant_columns,
    refuse_missing,
    refuse_repeats,
    require_columns,
    rows_by_label,
)
from bayescrowd.data.table_dataset import TableDataset
from bayescrowd.data.text import quantity
from bayescrowd.data.vocabulary import Where, comma_list, natural_key, plain

__all__ = ["CodedTable", "FeatureSpace", "features_and_target", "sorted_positions"]

MOST_NUMBERS = 10
"""A numeric column with more distinct numbers than this is cut into intervals."""

N_INTERVALS = 5
"""Number of intervals into which a numeric column is cut."""

N_PSEUDO_INSTANCES = 1.0
"""Pseudo-instances of each class before any is known (alpha), as in `models.naive_bayes`."""


class CodedTable(NamedTuple):
    """A labelled table in the codes of a space."""

    values: Int[np.ndarray, "row feature"]
    """Position of each value among its feature's values; -1 where it is missing."""
    target: Int[np.ndarray, " row"]
    """Position of each row's class."""


@dataclass(frozen=True, eq=False, repr=False)
class FeatureSpace:
    """The classes to tell apart and the features that may be asked about.

    Args:
        classes: names of at least two classes.
        features: the possible values of each feature, at least two, by the feature's name.
        prior: probability of each class, in the order of `classes`, which is then fixed. If neither
            this nor `class_counts` is given, it is fixed and uniform.
        class_counts: known number of instances of each class, in the order of `classes`. The
            classes' probabilities then have the posterior Dirichlet(1 + class_counts): policies
            draw from it where they draw a model, and use its mean, `prior`, elsewhere.
        strength: number of pseudo-observations of each value given the class, in the symmetric
            Dirichlet priors. The paper leaves it open; 1 or .5 do well, 3 and more hurt.
        costs: what one label of a feature costs, by name; 1 for features that are not named.
        cuts: the numbers at which numeric features are cut into intervals, by name; a number at a
            cut belongs to the interval above it.
        constant: columns of the table that the space was made from that are not features, since
            they hold a single value or none; tables may have them, and nothing is asked about them.

    Examples:
        >>> import bayescrowd as bc
        >>> space = bc.FeatureSpace(
        ...     classes=["sparrow", "finch"],
        ...     features={"beak": ["short", "long"], "crown": ["red", "grey", "brown"]},
        ...     costs={"crown": 2},
        ... )
        >>> space
        FeatureSpace(2 classes, 2 features of 2 to 3 values)
    """

    classes: Sequence[Hashable]
    features: Mapping[Hashable, Sequence[Hashable]]
    prior: Sequence[float] | Float[np.ndarray, " cls"] | None = None
    strength: Positive = 1.0
    costs: Mapping[Hashable, float] = field(default_factory=dict)
    cuts: Mapping[Hashable, Sequence[float]] = field(default_factory=dict)
    constant: Sequence[Hashable] = ()
    class_counts: Sequence[int] | Int[np.ndarray, " cls"] | None = None

    def __post_init__(self) -> None:
        check_parameters(self)
        classes = tuple(plain(name) for name in self.classes)
        features = {plain(f): tuple(map(plain, values)) for f, values in self.features.items()}
        if len(classes) < 2:
            raise ValueError(
                f"a space needs two or more classes, got {comma_list(classes) or 'none'}"
            )
        refuse_repeats(pd.Index(classes, dtype=object), "class")
        if not features:
            raise ValueError("a space needs at least one feature")
        for name, values in features.items():
            refuse_repeats(pd.Index(values, dtype=object), "value", f"feature {name!r}: ")
            if len(values) < 2:
                raise ValueError(
                    f"feature {name!r} has {quantity(len(values), 'value')} "
                    f"({comma_list(values)}) and says nothing; expected two or more"
                )
        costs = dict.fromkeys(features, 1.0)
        for name, cost in self.costs.items():
            if name not in features:
                raise ValueError(
                    f"costs: there is no feature {name!r}; expected one of {comma_list(features)}"
                )
            if not 0 < cost < np.inf:
                raise ValueError(f"costs: feature {name!r} costs {cost}; expected more than 0")
            costs[name] = float(cost)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "features", features)
        counts = _checked_counts(self.class_counts, classes)
        prior = _checked_prior(self.prior, classes)
        if counts is not None:
            mean = (counts + N_PSEUDO_INSTANCES) / (counts + N_PSEUDO_INSTANCES).sum()
            if self.prior is not None and not np.allclose(prior, mean):
                raise ValueError(
                    "prior fixes the classes' probabilities and class_counts leaves them open; "
                    "expected one of the two"
                )
            prior = mean
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "class_counts", counts)
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "cuts", {f: tuple(c) for f, c in self.cuts.items()})
        object.__setattr__(self, "constant", tuple(plain(name) for name in self.constant))

    @classmethod
    @validate_arguments
    def from_table(
        cls,
        table: Any,
        *,
        target: Hashable | None = None,
        prior: Sequence[float] | Float[np.ndarray, " cls"] | None = None,
        strength: Positive = 1.0,
        costs: Mapping[Hashable, float] | None = None,
    ) -> FeatureSpace:
        """The space of a labelled table: its columns, their values, how many rows each class has.

        Columns with a single value, or with none, are left out and listed in `constant`.

        Args:
            table: a `TableDataset`, or a data frame whose column `target` holds the class.
            target: name of the class column of a data frame; not needed for a `TableDataset`.
            prior: probability of each class, in the order of `classes`, which is then fixed. By
                default the table's rows are the known instances of each class (`class_counts`).
            strength: strength of the priors; see `FeatureSpace`.
            costs: what one label of a feature costs; see `FeatureSpace`. It may name constant
                columns.

        Raises:
            ValueError: no column has two values.

        Examples:
            >>> import pandas as pd
            >>> import bayescrowd as bc
            >>> frame = pd.DataFrame(
            ...     {"size": [1.5, 2.5, 9.0], "wet": ["no", "no", "yes"], "kind": ["a", "a", "b"]}
            ... )
            >>> space = bc.FeatureSpace.from_table(frame, target="kind")
            >>> space.features
            {'size': (1.5, 2.5, 9.0), 'wet': ('no', 'yes')}
            >>> space.class_counts, space.prior
            (array([2, 1]), array([0.6, 0.4]))
        """
        frame, classes = features_and_target(table, target)
        where = rows_by_label(frame.index)
        class_codes, names = code_found(classes, _name_of(classes), where)
        values: dict[Hashable, Sequence[Hashable]] = {}
        cuts: dict[Hashable, Sequence[float]] = {}
        constant = constant_columns(frame, where)
        if len(constant) == frame.shape[1] > 0:
            raise ValueError(
                f"each column of the table has a single value or none ({comma_list(constant)}); "
                "expected one with two or more"
            )
        for name in frame.columns.difference(constant, sort=False):
            _, found = code_found(frame[name], name, where)
            if _is_number(frame[name]) and len(found) > MOST_NUMBERS:
                cuts[name] = _quantile_cuts(frame[name].dropna())
                values[name] = _interval_names(cuts[name])
            else:
                values[name] = list(found)
        return cls(
            classes=list(names),
            features=values,
            prior=prior,
            class_counts=np.bincount(class_codes) if prior is None else None,
            strength=strength,
            costs={name: cost for name, cost in (costs or {}).items() if name not in constant},
            cuts=cuts,
            constant=constant,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the features."""
        return tuple(self.features)

    @property
    def n_values(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(values) for values in self.features.values())

    @property
    def class_prior(self) -> Float[np.ndarray, " cls"]:
        """Probability of each class; its posterior mean if it is not fixed."""
        return np.asarray(self.prior)

    @validate_arguments
    def draw_class_prior(self, rng: np.random.Generator) -> Float[np.ndarray, " cls"]:
        """Probability of each class, drawn from its posterior; nothing is drawn if it is fixed."""
        if self.class_counts is None:
            return self.class_prior
        drawn: Float[np.ndarray, " cls"] = rng.dirichlet(
            np.asarray(self.class_counts) + N_PSEUDO_INSTANCES
        )
        return drawn

    def label_costs(self) -> Float[np.ndarray, " feature"]:
        """What one label of each feature costs."""
        return np.array([self.costs[name] for name in self.features], dtype=float)

    @validate_arguments
    def take(self, features: Sequence[int], classes: Sequence[int]) -> FeatureSpace:
        """The space of the features and classes at these positions, in this order."""
        names = self.names
        kept = [names[f] for f in features]
        kept_classes = list(classes)
        prior, counts = self.class_prior[kept_classes], self.class_counts
        is_open = counts is not None
        return FeatureSpace(
            classes=[self.classes[y] for y in classes],
            features={name: self.features[name] for name in kept},
            prior=None if is_open else prior / prior.sum(),
            class_counts=np.asarray(counts)[kept_classes] if is_open else None,
            strength=self.strength,
            costs={name: self.costs[name] for name in kept},
            cuts={name: self.cuts[name] for name in kept if name in self.cuts},
            constant=self.constant,
        )

    @validate_arguments
    def code_of(self, feature: Hashable, value: Any) -> int:
        """Position of a value among a feature's values; a number falls into its interval.

        Raises:
            ValueError: the feature has no such value.
        """
        code = self._find(feature, plain(value))
        if code is None:
            raise ValueError(
                f"feature {feature!r} has no value {plain(value)!r}; expected one of "
                f"{comma_list(self.features[feature])}"
            )
        return code

    @validate_arguments
    def code_column(self, feature: Hashable, column: pd.Series) -> Int[np.ndarray, " row"]:
        """Positions of a column's values, -1 where missing.

        Raises:
            ValueError: an entry is not a value of the feature.
        """
        return code_known(
            column,
            feature,
            rows_by_label(column.index),
            code_of=partial(self._find, feature),
            expected=self.features[feature],
        )

    @validate_arguments
    def code(self, table: Any, *, target: Hashable | None = None) -> CodedTable:
        """A labelled table in the codes of this space.

        Raises:
            ValueError: a feature is absent, or a value or class is not in this space.
        """
        frame, classes = features_and_target(table, target)
        require_columns(frame, self.features, Where())
        known = {name: y for y, name in enumerate(self.classes)}
        return CodedTable(
            np.stack([self.code_column(name, frame[name]) for name in self.features], axis=1),
            code_known(
                classes,
                _name_of(classes),
                rows_by_label(classes.index),
                code_of=known.get,
                expected=self.classes,
            ),
        )

    def _find(self, feature: Hashable, value: Any) -> int | None:
        """Position of a value among a feature's values; None if it is not one of them."""
        values = self.features[feature]
        if value in values:
            return values.index(value)
        if feature in self.cuts and _is_finite_number(value):
            return int(np.searchsorted(self.cuts[feature], value, side="right"))
        return None

    def __repr__(self) -> str:
        low, high = min(self.n_values), max(self.n_values)
        values = f"{low}" if low == high else f"{low} to {high}"
        left_out = f"; constant: {comma_list(self.constant)}" if self.constant else ""
        return (
            f"FeatureSpace({self.n_classes} classes, {len(self.features)} features of "
            f"{values} values{left_out})"
        )


def sorted_positions(names: Sequence[Hashable]) -> list[int]:
    """Positions of the names in the order of the names."""
    try:
        return sorted(range(len(names)), key=lambda i: natural_key(plain(names[i])))
    except TypeError:  # names of types that do not compare
        return sorted(range(len(names)), key=lambda i: repr(names[i]))


def features_and_target(
    table: Any, target: Hashable | None = None
) -> tuple[pd.DataFrame, pd.Series]:
    """Features and class of each row of a labelled table.

    Raises:
        ValueError: there is no such class column or no row, or a row has no class.
        TypeError: `table` is neither a `TableDataset` nor a data frame.
    """
    if isinstance(table, TableDataset):
        features, classes = table.features, table.target
    else:
        frame = as_pandas(table, "instances", "a TableDataset or a data frame")
        if target is None or target not in frame.columns:
            raise ValueError(
                f"target={target!r}: expected the column that holds the class, one of "
                f"{comma_list(frame.columns)}"
            )
        features, classes = frame.drop(columns=[target]), frame[target]
    if len(features) == 0:
        raise ValueError("the table has no rows; expected one per instance")
    refuse_missing(classes, _name_of(classes), "class", rows_by_label(classes.index))
    return features, classes


def _name_of(classes: pd.Series) -> Hashable:
    return "class" if classes.name is None else classes.name


def _checked_prior(
    prior: Sequence[float] | Float[np.ndarray, " cls"] | None, classes: tuple[Hashable, ...]
) -> Float[np.ndarray, " cls"]:
    if prior is None:
        return np.full(len(classes), 1 / len(classes))
    shares = np.array(prior, dtype=float)
    if shares.shape != (len(classes),):
        raise ValueError(f"prior: expected {len(classes)} numbers, one per class, got {prior!r}")
    for name, share in zip(classes, shares, strict=True):
        if not share > 0:
            raise ValueError(f"prior of class {name!r} is {share}; expected more than 0")
    if abs(shares.sum() - 1) > 1e-6:
        raise ValueError(f"prior: the probabilities sum to {shares.sum():.6g}; expected 1")
    return shares / shares.sum()


def _checked_counts(
    counts: Sequence[int] | Int[np.ndarray, " cls"] | None, classes: tuple[Hashable, ...]
) -> Int[np.ndarray, " cls"] | None:
    if counts is None:
        return None
    found = np.array(counts)
    if found.shape != (len(classes),):
        raise ValueError(
            f"class_counts: expected {len(classes)} numbers, one per class, got {counts!r}"
        )
    for name, count in zip(classes, found.tolist(), strict=True):
        if count < 0 or count != int(count):
            raise ValueError(
                f"class_counts of class {name!r} is {count}; expected a whole number of instances"
            )
    return found.astype(np.int64)


def _is_number(column: pd.Series) -> bool:
    is_bool = pd.api.types.is_bool_dtype(column.dtype)
    return pd.api.types.is_numeric_dtype(column.dtype) and not is_bool


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def _quantile_cuts(column: pd.Series) -> list[float]:
    shares = np.arange(1, N_INTERVALS) / N_INTERVALS
    cuts = np.unique(np.quantile(column.to_numpy(dtype=float), shares))
    cuts = cuts[cuts > column.min()]
    if len(cuts) == 0:  # four rows in five hold the smallest number
        cuts = np.sort(column.unique())[1:2]
    return [float(cut) for cut in cuts]


def _interval_names(cuts: Sequence[float]) -> list[str]:
    shown = [f"{cut:g}" for cut in cuts]
    if len({*shown}) < len(cuts):
        shown = [repr(cut) for cut in cuts]
    inner = [f"{low} to {high}" for low, high in pairwise(shown)]
    return [f"< {shown[0]}", *inner, f">= {shown[-1]}"]
