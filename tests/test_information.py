"""Mutual information: by hand, against loops, on closed forms, and its error on noise."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import bayescrowd as bc
from bayescrowd import information
from bayescrowd.data.features import as_feature_table
from bayescrowd.information import conditional_mutual_information, information_matrix

ESTIMATORS = ["paper", "co-labelled", "miller-madow", "chi-square"]


def random_table(seed, n_items=60, sizes=(2, 3, 4, 2), missing=0.3):
    """Dependent features of different sizes with holes."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(3, size=n_items)
    columns = {}
    for f, size in enumerate(sizes):
        noise = rng.integers(size, size=n_items)
        values = np.where(rng.random(n_items) < 0.6, hidden % size, noise).astype(float)
        columns[f"x{f}"] = np.where(rng.random(n_items) < missing, np.nan, values)
    return pd.DataFrame(columns)


# By hand.


def test_paper_by_hand():
    # a: 0 0 1 1 -, b: 0 1 1 - 1. P(0, 0) = P(0, 1) = P(1, 1) = 1/5; P(a) = 2/5 each;
    # P(b = 0) = 1/5, P(b = 1) = 3/5.
    table = pd.DataFrame({"a": [0, 0, 1, 1, None], "b": [0, 1, 1, None, 1]})
    expected = (np.log(0.2 / (0.4 * 0.2)) + 2 * np.log(0.2 / (0.4 * 0.6))) / 5
    found = bc.pairwise_mutual_information(table)
    assert found.loc["a", "b"] == pytest.approx(expected, rel=1e-12)
    assert found.loc["a", "a"] == 0


def test_co_labelled_by_hand():
    # Among the first three items P(a = 0) = 2/3, P(b = 0) = 1/3.
    table = pd.DataFrame({"a": [0, 0, 1, 1, None], "b": [0, 1, 1, None, 1]})
    expected = (np.log(3 / 2) + np.log(3 / 4) + np.log(3 / 2)) / 3
    found = information_matrix(as_feature_table(table), "co-labelled")[0, 1]
    assert found == pytest.approx(expected, rel=1e-12)
    # Two values each and three of the four pairs occur: bias (3 + 1 - 2 - 2) / (2 * 3) = 0.
    corrected = information_matrix(as_feature_table(table), "miller-madow")[0, 1]
    assert corrected == pytest.approx(expected * 3 / 5, rel=1e-12)


def test_repeated_judgements_by_hand():
    # Worker 0 says a and b of task 0, and so agrees half with worker 1.
    frame = pd.DataFrame(
        {"task": [0, 0, 0, 1, 1], "worker": [0, 0, 1, 0, 1], "label": list("abaab")}
    )
    joint = np.array([[0.5, 1.0], [0.5, 0.0]]) / 2
    left, right = np.array([0.75, 0.25]), np.array([0.5, 0.5])
    terms = [
        joint[a, b] * np.log(joint[a, b] / (left[a] * right[b]))
        for a, b in ((0, 0), (0, 1), (1, 0))
    ]
    found = bc.pairwise_mutual_information(bc.Annotations.from_frame(frame)).iloc[0, 1]
    assert found == pytest.approx(sum(terms), rel=1e-12)


# Against loops.


def brute_force(table, weights, normalise):
    """Every pair by loops over items and values; features as lists with None."""
    columns = [[None if pd.isna(v) else v for v in table[name]] for name in table.columns]
    out = np.zeros((len(columns), len(columns)))
    for i, j in itertools.permutations(range(len(columns)), 2):
        items = range(len(table))
        if normalise:
            items = [n for n in items if columns[i][n] is not None and columns[j][n] is not None]
        total = sum(weights[n] for n in items)
        for a, b in itertools.product(set(columns[i]) - {None}, set(columns[j]) - {None}):
            both = sum(weights[n] for n in items if columns[i][n] == a and columns[j][n] == b)
            left = sum(weights[n] for n in items if columns[i][n] == a)
            right = sum(weights[n] for n in items if columns[j][n] == b)
            if both > 0:
                out[i, j] += both / total * np.log(both * total / (left * right))
        out[i, j] *= 1.0 if normalise else total / len(table)
    return out


@pytest.mark.parametrize("seed", range(3))
def test_loops_agree(seed):
    table = random_table(seed)
    ones = np.ones(len(table))
    np.testing.assert_allclose(
        bc.pairwise_mutual_information(table), brute_force(table, ones, False), atol=1e-12
    )
    np.testing.assert_allclose(
        bc.pairwise_mutual_information(table, "co-labelled"),
        brute_force(table, ones, True),
        atol=1e-12,
    )


@pytest.mark.parametrize("seed", range(2))
def test_conditional_loops_agree(seed):
    table = random_table(seed, n_items=30)
    posterior = np.random.default_rng(seed).dirichlet(np.ones(2), size=30)
    found = conditional_mutual_information(table, posterior)
    for k in range(2):
        np.testing.assert_allclose(
            found.by_component[k], brute_force(table, posterior[:, k], False), atol=1e-12
        )
    np.testing.assert_allclose(found.total, found.by_component.sum(axis=0))


def test_one_component_gives_the_mutual_information():
    # Proposition 1 of Zhao and Zucker.
    table = random_table(0)
    found = conditional_mutual_information(table, np.ones((len(table), 1)))
    np.testing.assert_allclose(found.total, bc.pairwise_mutual_information(table), atol=1e-14)


# Closed forms: the one-coin model.


def alpha(p, q, n_classes):
    """P(both workers say c) of two one-coin workers."""
    return p * q / n_classes + (1 - p) * (1 - q) / (n_classes * (n_classes - 1))


def one_coin_information(p, q, n_classes):
    """Equation (3), with x log x = 0 at x = 0."""
    k, a = n_classes, alpha(p, q, n_classes)
    rest = 1 - k * a
    information = k * a * np.log(a) + np.log(k**2)
    return information + (rest * np.log(rest / (k * (k - 1))) if rest > 0 else 0.0)


def one_coin_table(counts_of_agreement, n_classes):
    """Two features with given counts of items on agreeing pairs and one item on each other pair."""
    pairs = []
    for a, b in itertools.product(range(n_classes), repeat=2):
        pairs += [(a, b)] * (counts_of_agreement if a == b else 1)
    return np.array(pairs)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_equation_3_is_the_information_of_a_table(n_classes):
    pairs = one_coin_table(7, n_classes)
    a = 7 / len(pairs)
    expected = n_classes * a * np.log(a) + np.log(n_classes**2)
    rest = 1 - n_classes * a
    expected += rest * np.log(rest / (n_classes * (n_classes - 1)))
    for estimator in ("paper", "co-labelled"):
        found = information_matrix(as_feature_table(pairs), estimator)[0, 1]
        assert found == pytest.approx(expected, rel=1e-12)


@given(st.integers(2, 9), st.floats(0, 1), st.floats(0, 1))
def test_alpha_is_the_hyperbolic_paraboloid(n_classes, p, q):
    k = n_classes
    paraboloid = ((p + q - 2 / k) ** 2 - (p - q) ** 2) / (4 * (k - 1)) + 1 / k**2
    assert alpha(p, q, k) == pytest.approx(paraboloid, abs=1e-12)


@given(
    st.integers(2, 8),
    st.lists(st.integers(1, 200), min_size=3, max_size=10, unique=True),
)
def test_ordering_by_score_is_ordering_by_accuracy(n_classes, steps):
    # Accuracies above chance, at least 1/200 of the way to 1 apart.
    accuracy = 1 / n_classes + np.array(steps) / 200 * (1 - 1 / n_classes)
    matrix = np.array([[one_coin_information(p, q, n_classes) for q in accuracy] for p in accuracy])
    np.fill_diagonal(matrix, 0.0)
    assert (np.argsort(matrix.sum(axis=1)) == np.argsort(accuracy)).all()


def test_the_estimate_meets_equation_3():
    accuracy = np.array([0.9, 0.7, 0.5])
    n_items = 40_000
    data = bc.simulate.one_coin_crowd(n_items, 3, 4, accuracy=accuracy, seed=0)
    found = bc.pairwise_mutual_information(data.annotations).to_numpy()
    for i, j in ((0, 1), (0, 2), (1, 2)):
        expected = one_coin_information(accuracy[i], accuracy[j], 4)
        # The variance of the mean of log-ratios, none of which exceeds log 16, plus the bias.
        a = alpha(accuracy[i], accuracy[j], 4)
        chances = np.where(np.eye(4) > 0, a, (1 - 4 * a) / 12)
        variance = (chances * np.log(16 * chances) ** 2).sum() - expected**2
        assert abs(found[i, j] - expected) < 5 * np.sqrt(variance / n_items) + 9 / (2 * n_items)


# Invariants.


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_symmetric_with_a_zero_diagonal(estimator):
    found = bc.pairwise_mutual_information(random_table(4), estimator).to_numpy()
    np.testing.assert_allclose(found, found.T, atol=1e-14)
    np.testing.assert_array_equal(np.diag(found), 0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_renaming_values_changes_nothing(estimator):
    table = random_table(5)
    renamed = table.assign(
        x1=table["x1"].map({0: "z", 1: "a", 2: "m"}), x2=table["x2"].map(lambda v: -v)
    )
    np.testing.assert_allclose(
        bc.pairwise_mutual_information(table, estimator),
        bc.pairwise_mutual_information(renamed, estimator),
        atol=1e-14,
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("cells", [1, 200, 10**6])
def test_blocks_change_nothing(estimator, cells, monkeypatch):
    table = random_table(6, sizes=(2, 3, 4, 2, 5, 3, 2))
    whole = bc.pairwise_mutual_information(table, estimator)
    monkeypatch.setattr(information, "_BLOCK_CELLS", cells)
    pd.testing.assert_frame_equal(
        bc.pairwise_mutual_information(table, estimator), whole, rtol=0, atol=1e-15
    )


def test_pairs_without_common_items_share_nothing():
    table = pd.DataFrame({"a": [0, 1, None, None], "b": [None, None, 1, 0]})
    for estimator in ESTIMATORS:
        assert bc.pairwise_mutual_information(table, estimator).loc["a", "b"] == 0


# Bias and level on independent features.


def independent_table(n_items, n_features, n_values, seed):
    return np.random.default_rng(seed).integers(n_values, size=(n_items, n_features))


def pairs_of(table, estimator):
    found = bc.pairwise_mutual_information(table, estimator).to_numpy()
    return found[np.triu_indices(len(found), k=1)]


def test_miller_madow_takes_the_bias_away():
    n_items, n_values = 200, 3
    table = independent_table(n_items, 80, n_values, seed=1)
    freedom = (n_values - 1) ** 2
    plain, corrected = pairs_of(table, "co-labelled"), pairs_of(table, "miller-madow")
    # 2 n I is chi-square with 4 degrees of freedom; the 3,160 pairs are independent of one
    # another. Its mean is 4 / (2 n) and its standard deviation sqrt(8) / (2 n).
    error = np.sqrt(2 * freedom) / (2 * n_items) / np.sqrt(len(plain))
    assert abs(plain.mean() - freedom / (2 * n_items)) < 4 * error
    assert abs(corrected.mean()) < 4 * error
    # Control: the uncorrected mean is far outside.
    assert plain.mean() > 40 * error


@pytest.mark.parametrize("n_values", [2, 3])
def test_chi_square_screen_keeps_its_level(n_values):
    kept = pairs_of(independent_table(300, 90, n_values, seed=2), "chi-square") > 0
    test = binomtest(int(kept.sum()), len(kept), information.CHI_SQUARE_LEVEL)
    assert test.pvalue > 1e-4


def test_chi_square_screen_keeps_what_depends():
    data = bc.simulate.one_coin_crowd(300, 10, 3, accuracy=[0.8] * 10, seed=0)
    assert (pairs_of(as_feature_table(data.annotations), "chi-square") > 0).all()


# Bad input.


def test_bad_input():
    unchecked = inspect.unwrap(information_matrix)  # without the tests' check of types
    with pytest.raises(ValueError, match="estimator='plug-in': expected one of paper"):
        unchecked(as_feature_table(np.eye(3)), "plug-in")
    with pytest.raises(ValueError, match="responsibilities have 2 rows; expected 3 items"):
        conditional_mutual_information(np.eye(3), np.ones((2, 1)))
