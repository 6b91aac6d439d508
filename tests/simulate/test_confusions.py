"""Confusion matrices of simulated workers: shapes, means, spreads and kinds."""

import numpy as np
import pytest

from bayescrowd import simulate
from bayescrowd.simulate.confusions import (
    normalise_confusions,
    one_coin_confusions,
    prevalence_of,
    replace_by_spammers,
)

K_SIGMA = 5  # two-sided chance of 6e-7 per comparison


# By hand


def test_one_coin_matrices_spread_errors_evenly() -> None:
    matrices = one_coin_confusions(np.array([0.7, 1.0]), 3)
    np.testing.assert_allclose(
        matrices[0], [[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]]
    )
    np.testing.assert_array_equal(matrices[1], np.eye(3))


def test_prevalence_is_uniform_unless_given() -> None:
    np.testing.assert_allclose(prevalence_of(None, 4), 0.25)
    np.testing.assert_allclose(prevalence_of([0.2, 0.8], 2), [0.2, 0.8])


def test_rows_are_normalised() -> None:
    nearly = np.array([[[0.7 + 1e-8, 0.3], [0.1, 0.9]]])
    sums = normalise_confusions(nearly, 1, 2).sum(axis=2)
    np.testing.assert_allclose(sums, 1, rtol=1e-15)


def test_kinds_of_workers() -> None:
    honest = np.tile([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]], (20, 1, 1))
    data = simulate.crowd(10, 20, 3, confusions=honest, spammers=0.25, adversaries=0.1, seed=3)
    _, matrices, kinds = data.parameters
    names, counts = np.unique(kinds, return_counts=True)
    assert dict(zip(names, counts, strict=True)) == {
        "adversary": 2,
        "honest": 13,
        "one-class spammer": 2,
        "uniform spammer": 3,
    }
    np.testing.assert_allclose(matrices[kinds == "honest"], honest[:13])
    np.testing.assert_allclose(matrices[kinds == "uniform spammer"], 1 / 3)
    # An adversary names the class after the one an honest worker would name.
    np.testing.assert_allclose(
        matrices[kinds == "adversary"],
        np.tile([[0.0, 0.9, 0.1], [0.2, 0.0, 0.8], [0.7, 0.3, 0.0]], (2, 1, 1)),
    )
    for matrix in matrices[kinds == "one-class spammer"]:
        assert sorted(matrix.sum(axis=0)) == [0, 0, 3]


# Closed form


def test_drawn_matrices_have_the_stated_mean_and_spread() -> None:
    accuracy, concentration, n = 0.7, 12.0, 4_000
    full = simulate.full_confusion_crowd(1, n, 3, accuracy=accuracy, concentration=concentration)
    coin = simulate.one_coin_crowd(1, n, 3, accuracy=accuracy, concentration=concentration)
    variance = accuracy * (1 - accuracy) / (concentration + 1)  # of a beta distribution
    for diagonal in (
        np.diagonal(full.parameters.confusions, axis1=1, axis2=2).T,
        coin.parameters.confusions[:, :1, 0].T,
    ):
        assert np.all(np.abs(diagonal.mean(axis=1) - accuracy) < K_SIGMA * np.sqrt(variance / n))
        # The distribution is short-tailed: its sample variance is less spread than a normal's.
        spread = np.abs(diagonal.var(axis=1) - variance)
        assert np.all(spread < K_SIGMA * variance * np.sqrt(2 / n))
    off_diagonal = full.parameters.confusions[:, 0, 1:]
    wrong = (1 - accuracy) / 2
    se = np.sqrt(wrong * (1 - wrong) / (concentration + 1) / n)
    assert np.all(np.abs(off_diagonal.mean(axis=0) - wrong) < K_SIGMA * se)


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_extreme_mean_accuracy(accuracy: float) -> None:
    for simulator in (simulate.one_coin_crowd, simulate.full_confusion_crowd):
        data = simulator(20, 3, 3, accuracy=accuracy)
        diagonal = np.diagonal(data.parameters.confusions, axis1=1, axis2=2)
        np.testing.assert_allclose(diagonal, accuracy, atol=1e-9)


# Bad input


def test_more_spammers_and_adversaries_than_workers() -> None:
    honest = one_coin_confusions(np.full(5, 0.8), 2)
    with pytest.raises(ValueError, match="sum to more than 1, the whole crowd"):
        replace_by_spammers(honest, 0.7, 0.4, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("confusions", "message"),
    [
        (np.full((3, 2, 2), 0.5), r"confusions have shape \(3, 2, 2\); expected workers x true"),
        (np.full((4, 2, 2), 0.4), "confusions of worker 0, true class 0 are .*sum to 1"),
    ],
)
def test_bad_confusions(confusions: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normalise_confusions(confusions, 4, 2)
