import numpy as np
import pytest

from bayescrowd.datasets import ct_slices
from bayescrowd.experiments.multiselection.errors import errors_by_budget
from bayescrowd.experiments.multiselection.figure3 import EXPERIMENT, STAND_IN, slices, stand_in


def test_claims(claims):
    order = {"Full": 1.0, "Scoring": 2.0, "Averages": 1.5, "Copies": 3.0}

    def value(row, column, seed):
        k = int(column[2:]) if column.startswith("k=") else 0
        return order[row.split(", ")[0]] + 0.1 * seed + k

    assert all(claim.holds for claim in claims(EXPERIMENT, value).values())
    flipped = claims(EXPERIMENT, lambda row, column, seed: -value(row, column, seed))
    assert not any(claim.holds for text, claim in flipped.items() if "small budgets" not in text)


def test_slices_are_judged_by_one_of_eight_bins():
    simulated = slices(STAND_IN)
    bins, target = stand_in()
    assert simulated.n_attributes == 48
    np.testing.assert_array_equal(simulated.target, target)
    judged = simulated.judge(np.random.default_rng(0), 5, 3)
    own = bins[:, 40:48]
    assert all(np.isin(judged[i], own[i]).all() for i in range(0, 2000, 97))


def test_the_order_of_methods_on_the_first_rows():
    """One tenth of figure 3: the paper's order at budgets where splits differ little."""
    if not ct_slices.is_local(ct_slices.EXCERPT):
        pytest.skip("the first 682 rows are not on this machine: set BAYESCROWD_DATA")
    excerpt = slices(ct_slices.EXCERPT)
    errors = [
        errors_by_budget(
            excerpt,
            n_training=300,
            n_test=500,
            k=2,
            budgets=(30, 80),
            methods=("Full", "Scoring", "Averages", "Copies"),
            seed=(seed,),
        )
        for seed in range(4)
    ]
    mean = {key: np.mean([e[key] for e in errors]) for key in errors[0]}
    # Independent reference: 26.3, 29.6, 31.8 at 30; 20.3, 27.5, 28.2 at 80; errors of four
    # splits 1.2 each, and a difference of the same splits 0.6.
    assert mean["Full", 30] == pytest.approx(26.3, abs=4)
    assert mean["Full", 80] == pytest.approx(20.3, abs=4)
    assert mean["Full", 80] < mean["Averages", 80] < 35
    assert mean["Full", 30] < mean["Averages", 30] < mean["Copies", 30] + 2


def test_means_over_50_splits_and_picture(drawn):
    assert (EXPERIMENT.average, EXPERIMENT.n_seeds) == ("mean", 50)
    assert len(drawn(EXPERIMENT).axes) == 2
