import numpy as np
import pytest

from bayescrowd import simulate
from bayescrowd.data.dataset import Dataset

K_SIGMA = 5  # two-sided chance of 6e-7 per comparison
N = 20_000


def wide(data: Dataset) -> np.ndarray:
    """Labels of a panel in which every rater labels every task, tasks x raters."""
    return data.annotations.label_codes.reshape(data.annotations.n_tasks, -1)


def agreement(data: Dataset, a: int, b: int) -> float:
    labels = wide(data)
    return float((labels[:, a] == labels[:, b]).mean())


def error_correlation(data: Dataset, a: int, b: int) -> float:
    errors = wide(data) != data.truth.to_numpy()[:, None]
    return float(np.corrcoef(errors[:, a], errors[:, b])[0, 1])


def assert_share(share: float, expected: float, n: int = N) -> None:
    """Assert that a share of n independent tasks matches its probability to `K_SIGMA` errors."""
    assert abs(share - expected) <= K_SIGMA * np.sqrt(expected * (1 - expected) / n) + 1e-12


def assert_correlation(found: float, expected: float, n: int = N) -> None:
    # The standard error of a correlation of binary variables is of order 1 / sqrt(n); rare errors
    # (here at least 10 %) have heavier tails, which a factor of 1.5 covers.
    assert abs(found - expected) <= 1.5 * K_SIGMA / np.sqrt(n)


# By hand


def test_judges_who_always_copy_give_the_same_labels() -> None:
    data = simulate.panel(100, 5, 3, clusters=[3, 2], copying=1.0, accuracy=0.6, seed=1)
    labels = wide(data)
    assert (labels[:, :3] == labels[:, :1]).all()
    assert (labels[:, 3] == labels[:, 4]).all()
    assert (labels[:, 0] != labels[:, 3]).any()
    assert data.parameters.kinds.tolist() == ["cluster 0"] * 3 + ["cluster 1"] * 2


def test_tasks_that_mislead_certainly_make_all_err_together() -> None:
    data = simulate.panel(400, 4, 3, misleading=[1, 0, 0], pull=1.0, accuracy=[1.0] * 4)
    labels, truth = wide(data), data.truth.to_numpy()
    assert ((labels == truth[:, None]) == (truth != 0)[:, None]).all()
    assert (labels == labels[:, :1]).all()


def test_full_position_bias_names_the_position() -> None:
    data = simulate.panel(20, 2, 3, position_bias=[1.0, 0.0], accuracy=[1.0] * 2, swapped=True)
    assert data.annotations.workers.to_list() == [
        "judge0/plain",
        "judge0/swap",
        "judge1/plain",
        "judge1/swap",
    ]
    assert (wide(data)[:, :2] == [0, 2]).all()
    assert (wide(data)[:, 2:] == data.truth.to_numpy()[:, None]).all()


# Closed form


def test_errors_of_a_cluster_correlate_by_the_product_of_copying() -> None:
    accuracy, copying = 0.7, [0.9, 0.6, 0.8, 0.8]
    data = simulate.panel(
        N, 4, 3, clusters=[2, 2], copying=copying, accuracy=[accuracy] * 4, seed=2
    )
    same_by_chance = accuracy**2 + (1 - accuracy) ** 2 / 2
    for (a, b), both_copy in {(0, 1): 0.54, (2, 3): 0.64, (0, 2): 0.0, (1, 3): 0.0}.items():
        assert_share(agreement(data, a, b), both_copy + (1 - both_copy) * same_by_chance)
        assert_correlation(error_correlation(data, a, b), both_copy)
    for j in range(4):
        assert_share(float((wide(data)[:, j] == data.truth).mean()), accuracy)


def test_a_confounder_correlates_errors_of_judges_who_are_alone() -> None:
    # Two classes: a judge of accuracy .9 errs with probability .1 on an ordinary task and, with
    # pull .8, with .2 * .1 + .8 * .9 = .74 on a misleading one, of which there are 25 %.
    data = simulate.panel(
        N, 2, misleading=0.25, pull=0.8, accuracy=[0.9, 0.9], prevalence=[0.3, 0.7], seed=3
    )
    error = 0.75 * 0.1 + 0.25 * 0.74
    both = 0.75 * 0.1**2 + 0.25 * 0.74**2
    assert_share(float((wide(data)[:, 0] != data.truth).mean()), error)
    assert_share(agreement(data, 0, 1), 1 - 2 * (error - both))
    expected = (both - error**2) / (error * (1 - error))
    assert_correlation(error_correlation(data, 0, 1), expected)


def test_hard_tasks_are_guessed() -> None:
    data = simulate.panel(N, 2, 4, hard=0.4, accuracy=[0.95, 0.95], seed=4)
    right = 0.6 * 0.95 + 0.4 / 4
    both_right = 0.6 * 0.95**2 + 0.4 / 16
    same_error = 0.6 * 0.05**2 / 3 + 0.4 * 3 / 16
    assert_share(float((wide(data)[:, 1] == data.truth).mean()), right)
    assert_share(agreement(data, 0, 1), both_right + same_error)


def test_swap_consistency_and_position_bias() -> None:
    # The two orders share the judge's verdict: they agree if neither is biased, or if one is and
    # its favourite is the verdict; if both are, they name opposite ends.
    bias, prevalence = 0.3, np.array([0.2, 0.3, 0.5])
    data = simulate.panel(
        N, 1, 3, position_bias=bias, swapped=True, prevalence=prevalence, accuracy=[0.8], seed=5
    )
    named = 0.8 * prevalence + 0.1 * (1 - prevalence)
    expected = (1 - bias) ** 2 + bias * (1 - bias) * (named[0] + named[2])
    assert_share(agreement(data, 0, 1), expected)
    first = float((wide(data)[:, 0] == 0).mean())
    assert_share(first, bias + (1 - bias) * named[0])


def test_labels_follow_the_parameters() -> None:
    data = simulate.panel(
        N,
        4,
        3,
        clusters=[2],
        copying=0.7,
        misleading=[0.3, 0.1, 0.0],
        pull=[0.9, 0.5, 0.2, 0.7],
        hard=0.2,
        position_bias=[0.2, 0.1, 0.0, 0.3],
        swapped=True,
        density=0.6,
        prevalence=[0.5, 0.3, 0.2],
        seed=6,
    )
    ann, n = data.annotations, 3
    cells = (ann.worker_codes.astype(int) * n + data.truth.to_numpy()[ann.task_codes]) * n
    counts = np.bincount(cells + ann.label_codes, minlength=8 * n * n).reshape(8, n, n)
    totals = counts.sum(axis=2, keepdims=True)
    expected = data.parameters.confusions
    np.testing.assert_allclose(expected.sum(axis=2), 1)
    se = np.sqrt(totals * expected * (1 - expected))
    assert (np.abs(counts - totals * expected) <= K_SIGMA * se + 1).all()
    assert_share(ann.n_labels / (8 * N), 0.6, 8 * N)


# Invariants


def test_a_seed_fixes_the_panel_and_the_design_leaves_the_truth() -> None:
    draws = [
        simulate.panel(50, 6, clusters=[3], misleading=0.2, density=density, seed=seed)
        for density, seed in [(0.5, 7), (0.5, 7), (0.9, 7), (0.5, 8)]
    ]
    np.testing.assert_array_equal(
        draws[0].annotations.label_codes, draws[1].annotations.label_codes
    )
    np.testing.assert_array_equal(draws[0].truth, draws[2].truth)
    np.testing.assert_array_equal(draws[0].parameters.confusions, draws[2].parameters.confusions)
    assert (draws[0].truth != draws[3].truth).any()


def test_codes_are_in_order_and_unique() -> None:
    ann = simulate.panel(40, 5, 3, swapped=True, labels_per_task=4, seed=9).annotations
    key = ann.task_codes.astype(int) * ann.n_workers + ann.worker_codes
    assert (np.diff(key) > 0).all()
    assert (ann.labels_per_task == 4).all()


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clusters": [3, 4]}, r"clusters=\[3, 4\] have 7 judges in all; expected at most 6"),
        ({"clusters": [1]}, "clusters"),
        ({"copying": [0.5, 0.5]}, "copying"),
        ({"misleading": [0.1, 0.1, 0.1]}, "misleading"),
        ({"position_bias": -0.5}, "position_bias"),
        ({"density": 0.0}, "leaves no judged pair"),
        ({"mask": np.ones((10, 5), bool)}, "mask has shape"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate.panel(10, 6, **options)
