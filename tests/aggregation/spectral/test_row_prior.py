"""The crowd's accuracy and the learned strength, against closed forms and simulation."""

import numpy as np
import pytest
from scipy.stats import dirichlet_multinomial

import bayescrowd as bc
from bayescrowd.aggregation.shrunken.ability import USUAL_STRENGTH
from bayescrowd.aggregation.spectral.row_prior import (
    STRENGTHS,
    PulledDawidSkene,
    accuracy_rows,
    crowd_accuracy,
    learned_pseudo_counts,
    prior_rows,
)
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

# Closed form


@pytest.mark.parametrize(("n_classes", "accuracy"), [(2, 0.7), (3, 0.6), (5, 0.8)])
def test_accuracy_of_equal_workers_is_found_from_agreement(n_classes, accuracy):
    rng = np.random.default_rng(0)
    n_tasks = 40_000
    confusions = np.broadcast_to(accuracy_rows(accuracy, n_classes), (3, n_classes, n_classes))
    truth = rng.integers(0, n_classes, n_tasks)
    chances = confusions[0].cumsum(axis=1)[truth]
    labels = np.stack([(rng.random(n_tasks)[:, None] > chances).sum(axis=1) for _ in range(3)])
    ann = bc.Annotations.from_matrix(labels.T)
    # The share of agreeing pairs, three per task that go together at most, has a standard error
    # below sqrt(0.25 / n); dA/dp = 2 (p - (1 - p) / (K - 1)) carries it to p. Four of them.
    slope = 2 * (accuracy - (1 - accuracy) / (n_classes - 1))
    assert crowd_accuracy(ann) == pytest.approx(accuracy, abs=4 * 0.5 / np.sqrt(n_tasks) / slope)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["a", "a"], ["b", "b"]], 1.0),  # all agree
        ([["a", "b"], ["b", "a"]], 0.5),  # all disagree: no better than guessing
        ([["a", None], [None, "b"]], 1.0),  # nobody contradicts
    ],
)
def test_accuracy_at_the_edges(rows, expected):
    ann = bc.Annotations.from_matrix(rows)
    assert crowd_accuracy(ann) == expected
    np.testing.assert_allclose(prior_rows(ann).sum(axis=1), 1)


def counted(matrices):
    """WorkerLabelPairs and counts of workers whose labels on tasks of each class are given."""
    n_workers, n_classes, _ = matrices.shape
    worker, label = (axis.ravel() for axis in np.indices((n_workers, n_classes)))
    ann = bc.Annotations.from_codes(
        np.arange(len(worker)), worker, label, tasks=len(worker), workers=n_workers,
        classes=n_classes,
    )  # fmt: skip
    pairs = WorkerLabelPairs(ann)
    return pairs, matrices[pairs.worker, :, pairs.label].astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_strength_maximises_the_density_of_the_counts(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet([6.0, 2.0, 1.0], size=(8, 3))
    matrices = rng.multinomial(6, np.stack([np.roll(rows[:, k], k, axis=1) for k in range(3)], 1))
    base = accuracy_rows(np.einsum("wkk->", matrices) / matrices.sum(), 3)
    scores = [
        sum(
            dirichlet_multinomial.logpmf(matrices[:, k], strength * base[k], 6).sum()
            for k in range(3)
        )
        - 0.5 * np.log(strength / USUAL_STRENGTH) ** 2
        for strength in STRENGTHS
    ]
    pairs, counts = counted(matrices)
    assert learned_pseudo_counts(pairs, counts) == STRENGTHS[int(np.argmax(scores))] - 1


# Recovery


@pytest.mark.parametrize("strength", [2.0, 16.0])
def test_strength_of_simulated_rows_is_found(strength):
    # 400 rows of 30 labels: the nearest other value of the grid is a factor of two away, and a
    # Dirichlet distribution's strength has a relative standard error of about sqrt(2 / 400).
    rng = np.random.default_rng(1)
    base = accuracy_rows(0.7, 2)
    rows = np.stack([rng.dirichlet(strength * base[k], size=200) for k in range(2)], axis=1)
    pairs, counts = counted(rng.multinomial(30, rows))
    assert learned_pseudo_counts(pairs, counts) == strength - 1


def test_labels_that_say_nothing_leave_the_usual_strength():
    # One label per row, all of the same accuracy: its density does not depend on the strength.
    pairs, counts = counted(np.eye(2, dtype=int)[None])
    assert learned_pseudo_counts(pairs, counts) == 8 - 1  # of the grid the nearest to 6 in logs


# The estimator


def test_rows_are_pulled_toward_the_base():
    ann = bc.simulate.crowd(60, 9, 3, labels_per_task=4, seed=0).annotations
    for smoothing, base in (("diagonal", np.eye(3)), ("flat", np.full((3, 3), 1 / 3))):
        expected = bc.DawidSkene(smoothing=smoothing, pseudo_counts=2.0).fit(ann)
        found = PulledDawidSkene(base, pseudo_counts=2.0)._aggregate(ann, np.full(ann.n_tasks, -1))
        np.testing.assert_allclose(found.posterior, expected.probas_, atol=1e-12)
