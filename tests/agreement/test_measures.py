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
from bayescrowd.agreement.class_scale import Metric

MEASURES = [
    agreement.percent_agreement,
    agreement.fleiss_kappa,
    agreement.gwet_ac1,
    agreement.krippendorff_alpha,
]
METRICS = ["nominal", "ordinal", "interval"]

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

PSYCHIATRISTS = [
    *([0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0]),
    *([2, 0, 4, 0, 0], [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6]),
    *([1, 0, 0, 5, 0], [1, 1, 0, 4, 0], [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1]),
    *([0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0], [0, 2, 0, 4, 0], [1, 0, 2, 0, 3]),
    *([0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0], [1, 0, 0, 4, 1]),
    *([0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6]),
]
"""Diagnoses of thirty patients by six psychiatrists each (Fleiss 1971, table 1): depression,
personality disorder, schizophrenia, neurosis, other."""

ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
"""Pregnancies by two abstractors (Gwet 2014): data `cont3x3abstractors` of the R package irrCAC."""


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
    # AC1 takes the mean over all four tasks of the share of 'a': 1, 2/3, 1/2 and 0.
    share = (1 + 2 / 3 + 1 / 2 + 0) / 4
    chance = 2 * share * (1 - share)
    assert agreement.gwet_ac1(ann) == pytest.approx((observed - chance) / (1 - chance))


def test_ordinal_and_interval_by_hand() -> None:
    ann = Annotations.from_matrix([[1, 1], [2, 3], [3, 3], [1, 2]])
    # Ordered pairs: 2 of the classes 2 and 3, 2 of the classes 1 and 2. Of the eight labels, three
    # are 1, two are 2, three are 3; 8 * 7 ordered pairs are expected.
    interval = (2 * 1 + 2 * 1) / (2 * (3 * 2 * 1 + 2 * 3 * 1 + 3 * 3 * 4) / 7)
    assert agreement.krippendorff_alpha(ann, metric="interval") == pytest.approx(1 - interval)
    near, far = (3 / 2 + 2 / 2) ** 2, (3 / 2 + 2 + 3 / 2) ** 2  # labels between classes, squared
    ordinal = (2 * near + 2 * near) / (2 * (3 * 2 * near + 2 * 3 * near + 3 * 3 * far) / 7)
    assert agreement.krippendorff_alpha(ann, metric="ordinal") == pytest.approx(1 - ordinal)


# Closed form


def test_perfect_agreement() -> None:
    ann = Annotations.from_matrix([["a", "a", "a"], ["b", "b", None]])
    assert agreement.percent_agreement(ann) == 1
    assert agreement.fleiss_kappa(ann) == 1
    assert agreement.krippendorff_alpha(ann) == 1
    assert agreement.gwet_ac1(ann) == 1


@pytest.mark.parametrize("metric", METRICS[1:])
def test_perfect_agreement_whatever_the_metric(metric: Metric) -> None:
    ann = Annotations.from_matrix([[1, 1], [7, 7], [2, None]])
    assert agreement.krippendorff_alpha(ann, metric=metric) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_distances_between_two_classes_do_not_matter(metric: Metric) -> None:
    data = simulate.crowd(60, 8, 2, labels_per_task=4, seed=3).annotations
    found = agreement.krippendorff_alpha(data, metric=metric)
    assert found == pytest.approx(agreement.krippendorff_alpha(data), rel=1e-9)


def test_alpha_of_two_values_per_task_is_a_correlation_within_tasks() -> None:
    """With interval distances and n pairs, D is the mean squared difference and E twice the
    variance with divisor 2n - 1."""
    rng = np.random.default_rng(4)
    pairs = rng.integers(0, 40, size=(300, 1)) + rng.integers(0, 15, size=(300, 2))
    expected = 1 - np.mean((pairs[:, 0] - pairs[:, 1]) ** 2) / (2 * pairs.var(ddof=1))
    ann = Annotations.from_matrix(pairs.tolist())
    found = agreement.krippendorff_alpha(ann, metric="interval")
    assert found == pytest.approx(expected, rel=1e-9)


def test_gwet_ac1_with_one_class_used_has_no_chance_agreement() -> None:
    ann = Annotations.from_matrix([["a", "a"], ["a", "a"]], classes=["a", "b"])
    assert agreement.gwet_ac1(ann) == 1


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
    assert abs(agreement.gwet_ac1(uniform)) < 5 * se
    for metric in METRICS:
        # Distances weigh pairs unequally: at most by a factor of the largest over the mean one.
        assert abs(agreement.krippendorff_alpha(uniform, metric=metric)) < 15 * se


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
    for measure in MEASURES:
        one = measure(Annotations.from_matrix(matrix))
        other = measure(Annotations.from_matrix(renamed))
        assert one == pytest.approx(other, rel=1e-9)
        assert one <= 1


@pytest.mark.parametrize("metric", METRICS)
def test_alpha_ignores_the_names_of_tasks_and_the_direction_of_the_scale(metric: Metric) -> None:
    matrix = pd.DataFrame(np.random.default_rng(1).integers(1, 6, size=(20, 4)))
    one = agreement.krippendorff_alpha(Annotations.from_matrix(matrix), metric=metric)
    turned = 3 * (9 - matrix.iloc[::-1])
    other = agreement.krippendorff_alpha(Annotations.from_matrix(turned), metric=metric)
    assert one == pytest.approx(other, rel=1e-9)


def test_very_large_numbers_lose_no_precision() -> None:
    matrix = pd.DataFrame(np.random.default_rng(1).integers(1, 6, size=(20, 4)))
    one = agreement.krippendorff_alpha(Annotations.from_matrix(matrix), metric="interval")
    far = Annotations.from_matrix(matrix + 1_700_000_000)
    assert agreement.krippendorff_alpha(far, metric="interval") == pytest.approx(one, rel=1e-9)


# Reference: published examples and another implementation


@pytest.mark.parametrize(
    ("metric", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_published(metric: Metric, published: float) -> None:
    ann = Annotations.from_matrix(KRIPPENDORFF)
    found = agreement.krippendorff_alpha(ann, metric=metric)
    assert found == pytest.approx(published, abs=5e-4)


def test_gwet_published() -> None:
    """Gwet's Handbook (2014) uses the same data; values as printed by irrCAC's `gwet.ac1.raw`."""
    ann = Annotations.from_matrix(KRIPPENDORFF)
    assert agreement.percent_agreement(ann) == pytest.approx(0.8181818, abs=5e-8)
    assert agreement.gwet_ac1(ann) == pytest.approx(0.77544, abs=5e-6)
    # Fleiss' kappa there is 0.76117: it takes the mean over tasks of the shares of the classes.
    assert agreement.fleiss_kappa(ann) == pytest.approx(0.76117, abs=1e-3)


def test_gwet_published_for_a_rare_class() -> None:
    """Gwet (2008), section 1: two raters agree on 118 of 125 persons, nearly always on '+'."""
    rows = [["+", "+"]] * 118 + [["+", "-"]] * 5 + [["-", "+"]] * 2
    ann = Annotations.from_matrix(rows)
    share = (118 + (5 + 2) / 2) / 125
    chance = 2 * share * (1 - share)
    expected = (118 / 125 - chance) / (1 - chance)
    assert agreement.gwet_ac1(ann) == pytest.approx(expected, rel=1e-9)
    assert expected == pytest.approx(0.94, abs=5e-3)
    assert agreement.fleiss_kappa(ann) < 0  # the paradox that AC1 is made for


def test_two_abstractors_published() -> None:
    """Values as printed by irrCAC's `pa2.table`, `scott2.table`, `gwet.ac1.table`, `krippen2`."""
    pairs = [[i, j] for i in range(3) for j in range(3) for _ in range(ABSTRACTORS[i][j])]
    ann = Annotations.from_matrix(pairs)
    assert agreement.percent_agreement(ann) == pytest.approx(0.89, rel=1e-9)
    assert agreement.fleiss_kappa(ann) == pytest.approx(0.7962397, abs=5e-8)
    assert agreement.gwet_ac1(ann) == pytest.approx(0.8493305, abs=5e-8)
    assert agreement.krippendorff_alpha(ann) == pytest.approx(0.7972585, abs=5e-8)


def test_fleiss_published_for_psychiatrists() -> None:
    votes = np.array(PSYCHIATRISTS)
    assert votes.sum(axis=0).tolist() == [26, 26, 30, 55, 43]  # as printed below the table
    ann = from_votes(PSYCHIATRISTS)
    assert agreement.percent_agreement(ann) == pytest.approx(0.556, abs=5e-4)
    assert agreement.fleiss_kappa(ann) == pytest.approx(0.430, abs=5e-4)


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
    for measure in MEASURES:
        with pytest.raises(ValueError, match="no task has two labels"):
            measure(lonely)
