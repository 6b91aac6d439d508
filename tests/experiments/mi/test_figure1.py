import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.experiments.engine.command import run_in_folder
from bayescrowd.experiments.mi.figure1 import (
    EXPERIMENT,
    agreement,
    information_of_agreement,
    joint_of_two,
    mutual_information,
    printed_agreement,
)

ACCURACIES = (0.0, 0.2, 1 / 3, 0.5, 0.8, 1.0)


def summed(p, q, n_classes):
    """P(X_i, X_j), one term at a time."""

    def says(accuracy, label, truth):
        return accuracy if label == truth else (1 - accuracy) / (n_classes - 1)

    joint = np.zeros((n_classes, n_classes))
    for truth, one, other in product(range(n_classes), repeat=3):
        joint[one, other] += says(p, one, truth) * says(q, other, truth) / n_classes
    return joint


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("p", ACCURACIES)
@pytest.mark.parametrize("q", ACCURACIES)
def test_formulae_of_section_3_by_enumeration(p, q, n_classes):
    joint = summed(p, q, n_classes)
    np.testing.assert_allclose(joint_of_two(p, q, n_classes), joint, atol=1e-14)
    # one value on the diagonal and one beside it, and marginals that are uniform
    alpha, rest = joint[0, 0], joint[0, 1]
    np.testing.assert_allclose(np.diag(joint), alpha, atol=1e-14)
    assert rest == pytest.approx((1 - n_classes * alpha) / (n_classes * (n_classes - 1)), abs=1e-14)
    assert printed_agreement(p, q, n_classes) == pytest.approx(alpha, abs=1e-14)
    nats = sum(
        cell * math.log(cell / (joint[i].sum() * joint[:, j].sum()))
        for (i, j), cell in np.ndenumerate(joint)
        if cell > 0
    )
    assert information_of_agreement(alpha, n_classes) == pytest.approx(nats, abs=1e-13)
    assert mutual_information(joint) == pytest.approx(nats, abs=1e-13)


def test_saddle_by_hand():
    assert agreement(1 / 3, 1 / 3) == pytest.approx(1 / 9)
    # uv / (K - 1) above it, where u and v are the distances from chance
    assert agreement(2 / 3, 1.0) - 1 / 9 == pytest.approx((1 / 3) * (2 / 3) / 2)
    assert agreement(1.0, 0.0) == 0


def population(accuracies, denominator):
    """A table whose rows have exactly the shares of a one-coin crowd with these accuracies."""
    rows = []
    for truth in range(3):
        for labels in product(range(3), repeat=len(accuracies)):
            share = math.prod(
                a if label == truth else (1 - a) / 2
                for a, label in zip(accuracies, labels, strict=True)
            )
            number = share * denominator
            assert number == pytest.approx(round(number))
            rows += [labels] * round(number)
    return pd.DataFrame(rows, columns=[f"w{i}" for i in range(len(accuracies))])


def test_the_selector_ranks_a_population_by_accuracy():
    # accuracies in eighths: errors are in sixteenths, and 16^3 rows per class hold all shares
    accuracies = (6 / 8, 4 / 8, 7 / 8)
    table = population(accuracies, 16**3)
    found = bc.pairwise_mutual_information(table)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        expected = information_of_agreement(agreement(accuracies[i], accuracies[j]))
        assert found.iloc[i, j] == pytest.approx(expected, abs=1e-12)
    # equation 1, of which the paper says that it orders workers above chance by accuracy
    scores = found.sum(axis=1)
    assert scores.sort_values(ascending=False).index.tolist() == ["w2", "w0", "w1"]


def test_every_claim_of_the_paper_holds(tmp_path, capsys):
    outcomes = run_in_folder(EXPERIMENT, tmp_path, n_seeds=1, n_jobs=1)
    claims = EXPERIMENT.claims(outcomes)
    assert len(claims) == 5
    assert all(claim.holds for claim in claims)
    assert "0.1111" in capsys.readouterr().out
    assert (tmp_path / "mi-figure1.png").stat().st_size > 10_000


def test_control_a_wrong_surface_is_noticed(tmp_path):
    outcomes = run_in_folder(EXPERIMENT, tmp_path, n_seeds=1, n_jobs=1)
    flat = [outcome._replace(measured=1 / 9) for outcome in outcomes]
    assert [claim.holds for claim in EXPERIMENT.claims(flat)] == [False] * 4 + [True]
