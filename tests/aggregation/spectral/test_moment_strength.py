"""sigma_min and D-bar against closed forms, simulation and direct sums."""

import numpy as np
import pytest
from scipy.stats import entropy

import bayescrowd as bc
from bayescrowd.aggregation.spectral.moment_strength import (
    class_divergence,
    least_singular_value,
)
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

PRIORS = np.array([0.5, 0.3, 0.2])


def coin(accuracy):
    other = (1 - accuracy) / 2
    return np.full((3, 3), other) + (accuracy - other) * np.eye(3)


def drawn_votes(rng, n_tasks, accuracies=(0.8, 0.7, 0.6), density=1.0):
    """One worker per group."""
    truth = rng.choice(3, size=n_tasks, p=PRIORS)
    votes = []
    for accuracy in accuracies:
        below = coin(accuracy).cumsum(axis=1)[truth, :-1]
        labels = (rng.random(n_tasks)[:, None] > below).sum(axis=1)
        votes.append(np.eye(3)[labels] * (rng.random(n_tasks) < density)[:, None])
    return votes


def population_sigma(accuracies):
    pairs = [(0, 1), (0, 2), (1, 2)]
    moments = [
        coin(accuracies[a]).T * PRIORS @ coin(accuracies[b]) for a, b in pairs
    ]  # E[Z_a Z_b'] = C_a W C_b'
    return min(np.linalg.svd(moment, compute_uv=False)[-1] for moment in moments)


def test_large_samples_give_the_population_value():
    accuracies = (0.8, 0.7, 0.6)
    found = least_singular_value(drawn_votes(np.random.default_rng(0), 200_000), np.arange(3))
    assert abs(found.sigma_min - population_sigma(accuracies)) < 4 * found.standard_error
    assert not found.is_weak


def test_standard_error_is_the_spread_over_samples():
    found = [
        least_singular_value(drawn_votes(np.random.default_rng(seed), 2000), np.arange(3))
        for seed in range(200)
    ]
    spread = np.std([one.sigma_min for one in found])
    # A standard deviation from 200 draws has a relative error of 1 / sqrt(400) = 0.05: four of
    # them. Two of the three pairs are far from being the least.
    assert np.mean([one.standard_error for one in found]) == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize("seed", range(10))
def test_guesses_are_weak(seed):
    # Three coins of accuracy 1/3: the population value is zero.
    votes = drawn_votes(np.random.default_rng(seed), 500, (1 / 3, 1 / 3, 1 / 3))
    assert least_singular_value(votes, np.arange(3)).is_weak


def test_votes_are_averaged_in_the_group():
    votes = drawn_votes(np.random.default_rng(1), 300)
    one, two = (least_singular_value(votes, np.repeat(np.arange(3), n)) for n in (1, 2))
    assert two.sigma_min == pytest.approx(one.sigma_min / 4)
    assert two.standard_error == pytest.approx(one.standard_error / 4)


def divergence_of(counts, n_tasks):
    """`class_divergence` of counts [worker, true, observed], of which some pairs have none."""
    worker, label = np.nonzero(counts.sum(axis=1))
    ann = bc.Annotations.from_codes(
        np.arange(len(worker)) % n_tasks,
        worker,
        label,
        tasks=range(n_tasks),
        workers=range(len(counts)),
        classes=range(counts.shape[1]),
    )
    pairs = WorkerLabelPairs(ann)
    return class_divergence(pairs, counts[pairs.worker, :, pairs.label])


def test_divergence_is_the_sum_of_the_definition():
    rng = np.random.default_rng(2)
    counts = rng.gamma(1.0, size=(7, 4, 4)) * rng.integers(0, 30, size=(7, 1, 1))
    counts *= rng.random((7, 1, 4)) < 0.7  # labels that some workers never give
    rows = counts + 0.25
    rows /= rows.sum(axis=2, keepdims=True)
    shares = counts.sum(axis=(1, 2)) / 50
    expected = {
        (h, g): np.mean(
            [share * entropy(row[h], row[g]) for share, row in zip(shares, rows, strict=True)]
        )
        for h in range(4)
        for g in range(4)
        if h != g
    }
    found, pair = divergence_of(counts, 50)
    assert pair == min(expected, key=expected.get)
    assert found == pytest.approx(expected[pair])


def test_classes_nobody_tells_apart_have_no_divergence():
    counts = np.tile([[8.0, 1.0, 1.0], [2.0, 4.0, 4.0], [2.0, 4.0, 4.0]], (5, 1, 1))
    found, pair = divergence_of(counts, 30)
    assert found == pytest.approx(0, abs=1e-12)
    assert set(pair) == {1, 2}
