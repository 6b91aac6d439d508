import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescrowd.simulate import assignment
from bayescrowd.simulate.assignment import Design, judged_pairs, make_design

K_SIGMA = 5  # two-sided chance of 6e-7 per comparison


def design(n_tasks: int, n_workers: int, **given) -> Design:
    every = {"labels_per_task": None, "density": None, "mask": None, "activity": 0.0}
    return make_design(n_tasks, n_workers, **(every | given))


def pairs(chosen: Design, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """All judged pairs at once."""
    blocks = list(judged_pairs(chosen, np.random.default_rng(seed)))
    task = np.concatenate([task for task, _ in blocks])
    worker = np.concatenate([worker for _, worker in blocks])
    return task, worker


# By hand


def test_every_pair() -> None:
    task, worker = pairs(design(2, 3))
    assert task.tolist() == [0, 0, 0, 1, 1, 1]
    assert worker.tolist() == [0, 1, 2, 0, 1, 2]


def test_mask() -> None:
    mask = np.array([[True, False, True], [False, False, False], [False, True, False]])
    task, worker = pairs(design(3, 3, mask=mask))
    assert task.tolist() == [0, 0, 2]
    assert worker.tolist() == [0, 2, 1]


def test_workers_of_rate_zero_and_one() -> None:
    _, worker = pairs(design(50, 3, density=[0.0, 1.0, 0.5]))
    counts = np.bincount(worker, minlength=3)
    assert counts[0] == 0
    assert counts[1] == 50


def test_nobody() -> None:
    assert list(judged_pairs(design(5, 3, density=0.0), np.random.default_rng(0))) == []


# Closed form: frequencies


def test_density() -> None:
    n_tasks, n_workers, density = 2_000, 50, 0.1
    task, worker = pairs(design(n_tasks, n_workers, density=density))
    for counts, n in (
        (np.array([len(task)]), n_tasks * n_workers),
        (np.bincount(worker, minlength=n_workers), n_tasks),
    ):
        se = np.sqrt(n * density * (1 - density))
        assert np.all(np.abs(counts - n * density) < K_SIGMA * se)
    per_task = np.bincount(task, minlength=n_tasks)
    # Bernoulli variances add up; the variance of a sample variance is nearly 2 s^4 / n.
    variance = n_workers * density * (1 - density)
    assert abs(per_task.var() - variance) < K_SIGMA * variance * np.sqrt(2 / n_tasks)


def test_rates_of_workers() -> None:
    n_tasks, rates = 20_000, np.array([0.02, 0.2, 0.5, 0.9])
    _, worker = pairs(design(n_tasks, 4, density=rates))
    se = np.sqrt(n_tasks * rates * (1 - rates))
    assert np.all(np.abs(np.bincount(worker) - n_tasks * rates) < K_SIGMA * se)


@pytest.mark.parametrize("draw", [assignment._workers_by_redrawing, assignment._workers_by_keys])
def test_two_of_three_workers_by_weight(draw) -> None:
    """Without replacement, P{a, b} = a b / (1 - a) + a b / (1 - b) for weights a and b."""
    weights = np.array([0.5, 0.3, 0.2])
    n = 50_000
    drawn = draw(n, 2, weights, np.random.default_rng(1))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        expected = weights[a] * weights[b] * (1 / (1 - weights[a]) + 1 / (1 - weights[b]))
        observed = np.mean((drawn == [a, b]).all(axis=1))
        assert abs(observed - expected) < K_SIGMA * np.sqrt(expected * (1 - expected) / n)


def test_activity_is_a_power_law() -> None:
    """With one label per task, the r-th worker's share is r**-activity, up to a factor."""
    n_tasks, n_workers = 100_000, 20
    _, worker = pairs(design(n_tasks, n_workers, labels_per_task=1, activity=1.0))
    shares = np.sort(np.bincount(worker, minlength=n_workers))[::-1] / n_tasks
    expected = 1 / np.arange(1, n_workers + 1)
    expected /= expected.sum()
    # Sorting exchanges neighbours of nearly equal share, hence the slack of one standard error.
    assert np.all(np.abs(shares - expected) < (K_SIGMA + 1) * np.sqrt(expected / n_tasks))


def test_given_weights() -> None:
    n_tasks, weights = 30_000, np.array([1.0, 2.0, 7.0])
    _, worker = pairs(design(n_tasks, 3, labels_per_task=1, activity=weights))
    se = np.sqrt(weights / 10 * (1 - weights / 10) / n_tasks)
    assert np.all(np.abs(np.bincount(worker) / n_tasks - weights / 10) < K_SIGMA * se)


# Invariants


@given(
    n_tasks=st.integers(1, 60),
    n_workers=st.integers(1, 30),
    labels_per_task=st.integers(1, 30),
    activity=st.sampled_from([0.0, 1.0, 3.0]),
    seed=st.integers(0, 1_000),
)
def test_fixed_number_of_different_workers(
    n_tasks: int, n_workers: int, labels_per_task: int, activity: float, seed: int
) -> None:
    k = min(labels_per_task, n_workers)
    task, worker = pairs(design(n_tasks, n_workers, labels_per_task=k, activity=activity), seed)
    assert np.bincount(task, minlength=n_tasks).tolist() == [k] * n_tasks
    assert worker.max() < n_workers
    assert np.all(np.diff(task.astype(np.int64) * n_workers + worker) > 0)  # ascending, no repeat


@given(
    n_tasks=st.integers(1, 60),
    rates=st.lists(st.floats(0.001, 1), min_size=1, max_size=10),
    seed=st.integers(0, 1_000),
)
def test_random_pairs_ascend(n_tasks: int, rates: list[float], seed: int) -> None:
    task, worker = pairs(design(n_tasks, len(rates), density=rates), seed)
    assert np.all(np.diff(task.astype(np.int64) * len(rates) + worker) > 0)
    assert np.all((task >= 0) & (task < n_tasks) & (worker < len(rates)))


@pytest.mark.parametrize(
    "given",
    [{"labels_per_task": 3}, {"labels_per_task": 9}, {"density": 0.3}, {"density": [0.5] * 10}, {}],
)
def test_blocks_join_without_a_seam(given: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "BLOCK", 64)
    task, worker = pairs(design(500, 10, **given))
    assert np.all(np.diff(task.astype(np.int64) * 10 + worker) > 0)
    expected = 500 * (given.get("labels_per_task") or 10 * np.mean(given.get("density", 1.0)))
    assert abs(len(task) - expected) <= K_SIGMA * np.sqrt(expected)
    assert task[-1] >= 490  # the last block came too


# Bad input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels_per_task": 0}, "labels_per_task=0: expected at least 1"),
        ({"labels_per_task": 4}, r"labels_per_task=4 is outside 1\.\.3"),
        ({"labels_per_task": 2, "density": 0.5}, "labels_per_task and density were given"),
        ({"density": 1.5}, "density=1.5: expected a number from 0 to 1"),
        ({"density": [0.5, 0.5]}, "density has shape .*expected one number per worker, 3"),
        ({"density": [0.5, -0.1, 0.5]}, "density of worker 1 is -0.1; expected 0 to 1"),
        ({"density": [0.5, float("nan"), 0.5]}, r"density\[1\]=nan: expected a finite number"),
        ({"mask": np.ones((3, 2), dtype=bool)}, r"mask has shape \(3, 2\); expected .*\(2, 3\)"),
        ({"activity": 1.0}, "activity was given without labels_per_task"),
        ({"labels_per_task": 1, "activity": -1.0}, "activity=-1.0: expected a number from 0 to 10"),
        ({"labels_per_task": 1, "activity": [1.0, 0.0, 1.0]}, "activity of worker 1 is 0.0"),
    ],
)
def test_bad_design(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        design(2, 3, **given)
