"""Spaces: what is accepted, how tables become codes, how numbers become intervals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.space import FeatureSpace


def small(**changes):
    arguments = {"classes": ["a", "b"], "features": {"x": [0, 1], "y": ["u", "v", "w"]}}
    return FeatureSpace(**(arguments | changes))


def test_defaults_by_hand():
    space = small(costs={"y": 3})
    assert space.class_prior.tolist() == [0.5, 0.5]
    assert space.label_costs().tolist() == [1, 3]
    assert space.n_values == (2, 3)


def test_codes_of_a_table():
    frame = pd.DataFrame({"y": ["w", "u", None], "x": [1, 0, 1], "t": ["b", "a", "b"]})
    coded = small().code(frame, target="t")
    assert coded.values.tolist() == [[1, 2], [0, 0], [1, -1]]
    assert coded.target.tolist() == [1, 0, 1]


def test_few_numbers_stay_and_many_are_cut_at_quantiles():
    frame = pd.DataFrame(
        {"few": np.arange(100) % 10, "many": np.arange(100.0), "t": ["a", "b"] * 50}
    )
    space = FeatureSpace.from_table(frame, target="t")
    assert space.features["few"] == tuple(range(10))
    assert space.features["many"] == (
        "< 19.8", "19.8 to 39.6", "39.6 to 59.4", "59.4 to 79.2", ">= 79.2"
    )  # fmt: skip
    codes = space.code(frame, target="t").values[:, 1]
    assert np.bincount(codes).tolist() == [20] * 5


def test_a_number_at_a_cut_belongs_above_it_and_new_numbers_find_their_interval():
    space = small(features={"x": ["low", "high"]}, cuts={"x": [2.0]})
    assert [space.code_of("x", v) for v in (1.9, 2.0, 99, "low")] == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="feature 'x' has no value 'mid'"):
        space.code_of("x", "mid")


def test_a_column_of_zeros_and_a_few_numbers_has_two_intervals():
    frame = pd.DataFrame({"x": [0.0] * 90 + list(range(1, 13)), "t": ["a", "b"] * 51})
    assert FeatureSpace.from_table(frame, target="t").features["x"] == ("< 1", ">= 1")


def test_rows_are_known_instances_and_other_libraries_frames_are_read():
    frame = pl.DataFrame({"x": ["p", "q", "p", "p"], "t": [1, 1, 1, 2]})
    space = FeatureSpace.from_table(frame, target="t")
    assert space.classes == (1, 2)
    assert space.class_counts.tolist() == [3, 1]
    # one pseudo-instance of each class: (3 + 1) / 6
    np.testing.assert_allclose(space.class_prior, [4 / 6, 2 / 6])
    fixed = FeatureSpace.from_table(frame, target="t", prior=[0.5, 0.5])
    assert fixed.class_counts is None
    assert fixed.class_prior.tolist() == [0.5, 0.5]


def test_class_probabilities_are_drawn_from_their_posterior_unless_they_are_fixed():
    rng = np.random.default_rng(0)
    space = small(class_counts=[2, 5])
    drawn = np.array([space.draw_class_prior(rng) for _ in range(4_000)])[:, 0]
    # Beta(3, 6): mean 1/3 and variance 2/90; four standard errors of 4,000 draws
    assert abs(drawn.mean() - 1 / 3) < 4 * np.sqrt(2 / 90 / 4_000)
    assert abs(drawn.std() - np.sqrt(2 / 90)) < 4 * np.sqrt(2 / 90) / np.sqrt(2 * 4_000)
    assert space.take([1, 0], [1, 0]).class_counts.tolist() == [5, 2]
    before = rng.bit_generator.state
    for fixed in (small(), small(prior=[0.2, 0.8])):
        assert fixed.draw_class_prior(rng).tolist() == fixed.class_prior.tolist()
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"class_counts": [1]}, "expected 2 numbers"),
        ({"class_counts": [1, -1]}, "is -1; expected a whole number"),
        ({"class_counts": [1, 3], "prior": [0.5, 0.5]}, "expected one of the two"),
    ],
)
def test_class_counts_are_checked(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        small(**wrong)


def test_taking_keeps_what_belongs_to_a_feature():
    space = small(prior=[0.2, 0.8], costs={"x": 2}).take([1, 0], [1, 0])
    assert space.names == ("y", "x")
    assert space.classes == ("b", "a")
    assert space.class_prior.tolist() == [0.8, 0.2]
    assert space.label_costs().tolist() == [1, 2]


def mushrooms(n=60):
    rng = np.random.default_rng(0)
    edible = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "veil-type": "partial",
            "odour": np.where(edible == 1, "none", "foul"),
            "ring": [None] * n,
            "cap": rng.choice(["flat", "bell"], n),
            "spores": [2.5, np.nan] * (n // 2),
            "kind": np.where(edible == 1, "edible", "poisonous"),
        }
    )


def test_constant_columns_are_listed_and_nothing_else_is_different():
    frame = mushrooms()
    space = FeatureSpace.from_table(frame, target="kind", costs={"veil-type": 3, "cap": 2})
    assert space.constant == ("veil-type", "ring", "spores")
    assert space.costs == {"odour": 1, "cap": 2}
    assert repr(space) == (
        "FeatureSpace(2 classes, 2 features of 2 values; constant: 'veil-type', 'ring', 'spores')"
    )
    plain = FeatureSpace.from_table(frame.drop(columns=[*space.constant]), target="kind")
    assert (plain.constant, plain.features) == ((), space.features)
    for one, other in zip(
        space.code(frame, target="kind"), plain.code(frame, target="kind"), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert space.take([1], [0, 1]).constant == space.constant


def test_a_table_with_constant_columns_is_learned_from():
    frame = mushrooms()
    space = FeatureSpace.from_table(frame, target="kind")
    result = bc.simulate_budget(bc.RoundRobin(space, 30, 1), frame, target="kind")
    assert result.selected == ("odour",)
    assert (result.classifier.predict(frame) == frame["kind"]).all()
    curve = bc.budget_curve(
        [bc.RoundRobin], frame, target="kind", budgets=[10], n_features=1, repeats=2, n_jobs=1
    )
    assert len(curve) > 0
    with pytest.raises(ValueError, match="n_features=3: expected 1 to 2"):
        bc.RoundRobin(space, 30, 3)


def test_a_table_of_constant_columns_alone_is_refused():
    frame = mushrooms()[["veil-type", "ring", "kind"]]
    with pytest.raises(ValueError, match=r"single value or none \('veil-type', 'ring'\); expected"):
        FeatureSpace.from_table(frame, target="kind")


BAD = [
    ({"classes": ["a"]}, "two or more classes, got 'a'"),
    ({"classes": ["a", "a"]}, "class 'a' is listed twice"),
    ({"features": {}}, "at least one feature"),
    ({"features": {"x": ["only"]}}, "feature 'x' has 1 value"),
    ({"features": {"x": [0, 0]}}, "feature 'x': value 0 is listed twice"),
    ({"prior": [0.5, 0.4]}, "sum to 0.9"),
    ({"prior": [1.0, 0.0]}, "prior of class 'b' is 0.0"),
    ({"prior": [1.0]}, "expected 2 numbers"),
    ({"strength": 0.0}, "strength=0.0"),
    ({"costs": {"z": 1}}, "no feature 'z'"),
    ({"costs": {"x": 0}}, "feature 'x' costs 0"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_spaces(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes)


FRAME = pd.DataFrame({"x": [0, 1], "y": ["u", "v"], "t": ["a", "b"]})
BAD_TABLES = [
    (FRAME.rename(columns={"t": "kind"}), "target='t': expected the column"),
    (FRAME.drop(columns="y"), "no column 'y'"),
    (FRAME.assign(x=[0, 7]), "row 1, column 'x': 7 is not one of 0, 1"),
    (FRAME.assign(t=["a", "c"]), "row 1, column 't': 'c' is not one of 'a', 'b'"),
    (FRAME.assign(t=["a", None]), "row 1, column 't': the class is missing"),
    (FRAME.iloc[:0], "no rows"),
]


@pytest.mark.parametrize(("frame", "message"), BAD_TABLES, ids=[m for _, m in BAD_TABLES])
def test_bad_tables(frame, message):
    with pytest.raises(ValueError, match=message):
        small().code(frame, target="t")
