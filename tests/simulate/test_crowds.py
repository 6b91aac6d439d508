import itertools

import numpy as np
import pytest

from bayescrowd import Annotations, simulate
from bayescrowd.data.dataset import Dataset

K_SIGMA = 5  # two-sided chance of 6e-7 per comparison

SIMULATORS = {
    "crowd": lambda **options: simulate.crowd(40, 12, 3, spammers=0.25, adversaries=0.2, **options),
    "full_confusion_crowd": lambda **options: simulate.full_confusion_crowd(40, 12, 3, **options),
    "one_coin_crowd": lambda **options: simulate.one_coin_crowd(40, 12, 3, **options),
    "sparse_crowd": lambda **options: simulate.sparse_crowd(40, 12, 3, alpha=0.3, **options),
}


def label_counts(data: Dataset) -> np.ndarray:
    """Counts of the labels [worker, true, observed]."""
    ann, truth = data.annotations, data.truth
    n = ann.n_classes
    cells = (ann.worker_codes.astype(int) * n + truth.to_numpy()[ann.task_codes]) * n
    counts = np.bincount(cells + ann.label_codes, minlength=ann.n_workers * n * n)
    return counts.reshape(ann.n_workers, n, n)


def assert_frequencies(counts: np.ndarray, probabilities: np.ndarray) -> None:
    """Assert that counts along the last axis match the probabilities, to `K_SIGMA` errors."""
    n = counts.sum(axis=-1, keepdims=True)
    se = np.sqrt(n * probabilities * (1 - probabilities))
    # The normal tail is wrong for small expected counts, hence a slack of one count.
    assert np.all(np.abs(counts - n * probabilities) <= K_SIGMA * se + 1)


# By hand


def test_certain_workers_leave_nothing_to_chance() -> None:
    right = np.eye(3)
    always_last = np.tile([0.0, 0.0, 1.0], (3, 1))
    data = simulate.full_confusion_crowd(
        50, 2, 3, confusions=np.stack([right, always_last]), prevalence=[0.5, 0.5, 0.0]
    )
    labels = data.annotations.label_codes.reshape(50, 2)
    assert labels[:, 0].tolist() == data.truth.tolist()
    assert set(labels[:, 1]) == {2}
    assert set(data.truth) == {0, 1}


def test_sparse_crowd_of_figure_3() -> None:
    accuracy = np.linspace(0.7, 0.45, 30)
    data = simulate.sparse_crowd(alpha=0.3, accuracy=accuracy)
    _, matrices, kinds = data.parameters
    assert kinds.tolist() == ["informative"] * 30 + ["uninformative"] * 70
    np.testing.assert_allclose(np.diagonal(matrices[:30], axis1=1, axis2=2).T, [accuracy] * 3)
    np.testing.assert_allclose(matrices[30:, 0], matrices[30:, 1])
    np.testing.assert_allclose(matrices[30:, 0], matrices[30:, 2])


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.05, 5), (0.07, 7), (0.071, 8), (0.0, 0), (1.0, 100)]
)
def test_sparse_crowd_rounds_up(alpha: float, expected: int) -> None:
    data = simulate.sparse_crowd(10, alpha=alpha)
    assert (data.parameters.kinds == "informative").sum() == expected


# Closed form: frequencies against the parameters


@pytest.mark.parametrize("name", SIMULATORS)
def test_labels_follow_the_confusions(name: str) -> None:
    wide = {
        "crowd": lambda: simulate.crowd(
            20_000, 12, 3, density=0.5, spammers=0.25, adversaries=0.2, seed=5
        ),
        "full_confusion_crowd": lambda: simulate.full_confusion_crowd(20_000, 8, 4, seed=6),
        "one_coin_crowd": lambda: simulate.one_coin_crowd(20_000, 8, 5, labels_per_task=3, seed=7),
        "sparse_crowd": lambda: simulate.sparse_crowd(20_000, 10, 3, alpha=0.25, seed=8),
    }
    data = wide[name]()
    assert_frequencies(label_counts(data), data.parameters.confusions)


def test_truth_follows_the_prevalence() -> None:
    prevalence = np.array([0.7, 0.25, 0.05])
    data = simulate.one_coin_crowd(100_000, 2, 3, prevalence=prevalence)
    assert_frequencies(np.bincount(data.truth, minlength=3), prevalence)
    np.testing.assert_allclose(data.parameters.prevalence, prevalence)


# Invariants


@pytest.mark.parametrize("name", SIMULATORS)
@pytest.mark.parametrize(
    "design",
    [
        {},
        {"labels_per_task": 4},
        {"labels_per_task": 4, "activity": 1.0},
        {"density": 0.3},
        {"density": np.linspace(0.1, 1, 12)},
        {"mask": np.arange(480).reshape(40, 12) % 7 == 0},
    ],
    ids=["all", "fixed", "long tail", "density", "rates", "mask"],
)
def test_every_simulator_with_every_design(name: str, design: dict) -> None:
    data = SIMULATORS[name](**design, seed=11)
    ann = data.annotations
    assert (ann.n_tasks, ann.n_workers, ann.n_classes) == (40, 12, 3)
    assert data.name == name
    assert data.truth.index.equals(ann.tasks)
    prevalence, matrices, kinds = data.parameters
    np.testing.assert_allclose(prevalence.sum(), 1)
    np.testing.assert_allclose(matrices.sum(axis=2), 1)
    assert matrices.shape == (12, 3, 3)
    assert len(kinds) == 12
    frame = ann.to_frame()
    assert not frame.duplicated(["task", "worker"]).any()
    # The checked constructor gives the same columns.
    again = Annotations.from_codes(
        ann.task_codes, ann.worker_codes, ann.label_codes, tasks=40, workers=12, classes=3
    )
    assert again.to_frame().equals(frame)
    for ours, theirs in zip(
        (ann.task_codes, ann.worker_codes, ann.label_codes),
        (again.task_codes, again.worker_codes, again.label_codes),
        strict=True,
    ):
        assert ours.dtype == theirs.dtype
        assert not ours.flags.writeable


@pytest.mark.parametrize("name", SIMULATORS)
def test_same_seed_same_crowd(name: str) -> None:
    one, same, other = (SIMULATORS[name](labels_per_task=4, seed=seed) for seed in (1, 1, 2))
    assert one.annotations.to_frame().equals(same.annotations.to_frame())
    assert one.truth.equals(same.truth)
    np.testing.assert_array_equal(one.parameters.confusions, same.parameters.confusions)
    assert not one.annotations.to_frame().equals(other.annotations.to_frame())
    assert not one.truth.equals(other.truth)


@pytest.mark.parametrize("name", SIMULATORS)
def test_design_changes_neither_truth_nor_workers(name: str) -> None:
    one, other = SIMULATORS[name](labels_per_task=4), SIMULATORS[name](density=0.5)
    assert one.truth.equals(other.truth)
    np.testing.assert_array_equal(one.parameters.confusions, other.parameters.confusions)


# Reference


def test_bayes_error_of_figure_5() -> None:
    """Five workers of accuracy 0.6 and three classes have a Bayes error of 22.8 %.

    That is the benchmark of the paper's figure 5 at alpha = 0.05, as an independent
    implementation measured it (mean of ten simulations); enumerating their 3**5 answers to a
    task of class 0 gives the expectation.
    """
    expected = 0.0
    for answers in itertools.product(range(3), repeat=5):
        votes = np.bincount(answers, minlength=3)
        probability = np.prod([0.6 if answer == 0 else 0.2 for answer in answers])
        expected += probability * (votes[0] == votes.max()) / (votes == votes.max()).sum()
    expected = 1 - expected
    assert abs(expected - 0.228) < 0.005  # ten times 1,000 tasks: a standard error of 0.004

    data = simulate.sparse_crowd(20_000, alpha=0.05, seed=9)
    informative = data.annotations.select_workers(range(5)).votes
    best = informative == informative.max(axis=1, keepdims=True)
    chance = (best / best.sum(axis=1, keepdims=True))[np.arange(20_000), data.truth]
    assert abs(1 - chance.mean() - expected) < K_SIGMA * chance.std() / np.sqrt(20_000)


# Control


def test_wrong_parameters_fail_the_check_of_frequencies() -> None:
    data = simulate.full_confusion_crowd(20_000, 8, 4, seed=6)
    wrong = np.swapaxes(data.parameters.confusions, 1, 2)
    wrong /= wrong.sum(axis=2, keepdims=True)
    with pytest.raises(AssertionError):
        assert_frequencies(label_counts(data), wrong)


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tasks": 0}, "n_tasks=0: expected at least 1"),
        ({"n_workers": 0}, "n_workers=0: expected at least 1"),
        ({"n_classes": 1}, "n_classes=1: expected at least 2"),
        ({"prevalence": [0.5, 0.4]}, "prevalence sums to 0.9; expected 1"),
        ({"prevalence": [0.5, 0.3, 0.2]}, r"prevalence has shape \(3,\); expected one .*class, 2"),
        ({"accuracy": 1.2}, r"accuracy=1.2: expected a number from 0 to 1"),
        ({"concentration": 0.0}, "concentration=0.0: expected a finite number above 0"),
        ({"spammers": -0.1}, r"spammers=-0.1: expected a number from 0 to 1"),
        ({"spammers": 0.6, "adversaries": 0.6}, "sum to more than 1, the whole crowd"),
        ({"confusions": np.full((3, 2, 2), 0.5)}, r"confusions have shape \(3, 2, 2\)"),
        ({"confusions": np.full((4, 2, 2), 0.4)}, "confusions of worker 0, true class 0"),
        ({"density": 0.0}, "leaves no judged pair; expected at least one"),
        ({"seed": -1}, "seed=-1: expected a whole number from 0"),
    ],
)
def test_bad_crowd(options: dict, message: str) -> None:
    sizes = {"n_tasks": 5, "n_workers": 4, "n_classes": 2}
    with pytest.raises(ValueError, match=message):
        simulate.crowd(**(sizes | options))


def test_bad_accuracies() -> None:
    with pytest.raises(ValueError, match=r"accuracy has shape \(2,\); expected one .*worker, 3"):
        simulate.one_coin_crowd(5, 3, accuracy=[0.5, 0.6])
    with pytest.raises(ValueError, match=r"accuracy of worker 2 is 1.5"):
        simulate.one_coin_crowd(5, 3, accuracy=[0.5, 0.6, 1.5])
    with pytest.raises(ValueError, match="expected one number per informative worker, 10"):
        simulate.sparse_crowd(alpha=0.1, accuracy=[0.6] * 9)
    with pytest.raises(ValueError, match=r"alpha=1.1: expected a number from 0 to 1"):
        simulate.sparse_crowd(alpha=1.1)
