"""Agreement among workers: by hand, in closed form, and as published."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescrowd import Annotations, agreement, simulate

MEASURES = [agreement.percent_agreement, agreement.fleiss_kappa, agreement.krippendorff_alpha]

KRIPPENDORFF = [
    [1, 1, None, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [None, 5, 5, 5],
    [None, None, 1, 1],
    [None, None, 3, None],
]
"""Labels of twelve units by four observers, from Krippendorff (2011), section C."""

FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""Votes of fourteen raters on ten subjects, a much-used worked example with kappa 0.210."""


def from_votes(votes: list[list[int]]) -> Annotations:
    """Each row's labels in the order of the classes, from workers 0, 1, ..."""
    return Annotations.from_matrix([np.repeat(np.arange(len(row)), row).tolist() for row in votes])


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("measure", MEASURES)
def test_agreement_accepts_the_same_data_as_estimators(
    measure: Callable, convert: Callable
) -> None:
    columns = {"task": [1, 1, 2, 2, 3, 3], "worker": [*"abacbc"], "label": [*"xxyyxy"]}
    ann = Annotations.from_frame(pd.DataFrame(columns))
    assert measure(convert(columns)) == measure(ann)


def test_agreement_by_hand() -> None:
    # Agreeing pairs: 3 of 3, 1 of 3, 0 of 1; the last task has no pair.
    ann = Annotations.from_matrix(
        [["a", "a", "a"], ["a", "a", "b"], ["a", "b", None], ["b", None, None]]
    )
    observed = (1 + 1 / 3 + 0) / 3
    assert agreement.percent_agreement(ann) == pytest.approx(observed)
    chance = (6 / 8) ** 2 + (2 / 8) ** 2
    assert agreement.fleiss_kappa(ann) == pytest.approx((observed - chance) / (1 - chance))
    # Coincidences of different classes: 4 / 2 of the second task, 2 / 1 of the third.
    expected_disagreement = 2 * 6 * 2 / 7
    assert agreement.krippendorff_alpha(ann) == pytest.approx(1 - 4 / expected_disagreement)


# Closed form


def test_perfect_agreement() -> None:
    ann = Annotations.from_matrix([["a", "a", "a"], ["b", "b", None]])
    assert agreement.percent_agreement(ann) == 1
    assert agreement.fleiss_kappa(ann) == 1
    assert agreement.krippendorff_alpha(ann) == 1


def test_one_class_used_is_undefined() -> None:
    ann = Annotations.from_matrix([["a", "a"], ["a", "a"]], classes=["a", "b"])
    assert np.isnan(agreement.fleiss_kappa(ann))
    assert np.isnan(agreement.krippendorff_alpha(ann))


def test_independent_judgements_agree_by_chance_only() -> None:
    n = 20_000
    data = simulate.crowd(n, 10, 3, labels_per_task=4, spammers=1.0, seed=2)
    uniform = data.annotations.select_workers(
        np.flatnonzero(data.parameters.kinds == "uniform spammer")
    )
    # A task of m judgements has m (m - 1) / 2 uncorrelated pairs, each agreeing with
    # probability 1/3, so that kappa has at most the standard error of one pair per task.
    se = np.sqrt(1 / 3 * 2 / 3 / (uniform.labels_per_task >= 2).sum()) / (2 / 3)
    assert abs(agreement.fleiss_kappa(uniform)) < 5 * se
    assert abs(agreement.krippendorff_alpha(uniform)) < 5 * se


# Invariants


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_agreement_ignores_order_and_names(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = pd.DataFrame(rng.integers(n_classes, size=(8, 5))).astype(object)
    matrix = matrix.mask(pd.DataFrame(rng.random((8, 5)) < 0.3))
    matrix.iloc[0] = [0, 1, 0, 0, 1]  # a pair, and two classes, in any case
    names = dict(enumerate("zyxw"[:n_classes]))
    renamed = matrix.iloc[rng.permutation(8), rng.permutation(5)].map(names.get, na_action="ignore")
    for measure in (
        agreement.percent_agreement,
        agreement.fleiss_kappa,
        agreement.krippendorff_alpha,
    ):
        one = measure(Annotations.from_matrix(matrix))
        other = measure(Annotations.from_matrix(renamed))
        assert one == pytest.approx(other, rel=1e-9)
        assert one <= 1


# Reference: published examples and another implementation


def test_krippendorff_published() -> None:
    ann = Annotations.from_matrix(KRIPPENDORFF)
    assert agreement.krippendorff_alpha(ann) == pytest.approx(0.743, abs=5e-4)


def test_fleiss_published() -> None:
    ann = from_votes(FLEISS)
    assert agreement.percent_agreement(ann) == pytest.approx(0.378, abs=5e-4)
    assert agreement.fleiss_kappa(ann) == pytest.approx(0.210, abs=5e-4)


def test_two_raters_by_scikit_learn() -> None:
    """With two raters of equal class shares, Fleiss' kappa equals Cohen's."""
    first = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2])
    second = np.array([0, 1, 1, 0, 2, 2, 0, 2, 1])
    assert np.bincount(first).tolist() == np.bincount(second).tolist()
    ann = Annotations.from_matrix(np.stack([first, second], axis=1))
    expected = sklearn.metrics.cohen_kappa_score(first, second)
    assert agreement.fleiss_kappa(ann) == pytest.approx(expected, rel=1e-9)


# Bad input


def test_no_task_with_two_labels() -> None:
    lonely = Annotations.from_matrix([["a", None], [None, "b"]])
    for measure in (
        agreement.percent_agreement,
        agreement.fleiss_kappa,
        agreement.krippendorff_alpha,
    ):
        with pytest.raises(ValueError, match="no task has two labels"):
            measure(lonely)
