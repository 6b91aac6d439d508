"""Plans: the closed form of the error against drawn objects, and the choice that must come out."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.data.judgements import as_judgements
from bayescrowd.selection.repeats.moments import judgement_moments
from bayescrowd.selection.repeats.plan import Population, _expected_error, population_of

SPREAD = np.array([0.3, 1.0, 1.5, 1.0])


def pilot(seed=0, m=150):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, 4))
    values = truth[:, :, None] + SPREAD[:, None] * rng.normal(size=(m, 4, 2))
    return values, truth @ [1.0, 1.0, 0.5, 0.0] + 0.5 * rng.normal(size=m)


def test_expected_error_is_that_of_drawn_objects():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3))
    population = Population(root @ root.T, np.array([0.5, 2.0]))
    asked, repeats = np.array([0, 1]), np.array([2, 3])

    def draw(n):
        joint = rng.normal(size=(n, 3)) @ root.T
        noise = np.sqrt(population.internal_variance / repeats) * rng.normal(size=(n, 2))
        return joint[:, :2] + noise, joint[:, 2]

    averages, target = draw(20)
    expected = _expected_error(averages, target, population, asked, repeats)
    design = np.column_stack([np.ones(20), averages])
    weights = np.linalg.lstsq(design, target, rcond=None)[0]
    new, truth = draw(200_000)
    squares = (truth - np.column_stack([np.ones(len(new)), new]) @ weights) ** 2
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - expected) < 4 * error


def test_population_is_that_of_the_pilot():
    values, y = pilot(m=20_000)
    moments = judgement_moments(as_judgements(values), y[:, None], most_repeats=1)
    found = population_of(moments)
    np.testing.assert_allclose(found.internal_variance, SPREAD**2, rtol=0.05)
    np.testing.assert_allclose(found.covariance[:4, :4], np.eye(4), atol=0.08)
    np.testing.assert_allclose(found.covariance[4, :4], [1, 1, 0.5, 0], atol=0.08)


def test_few_judgements_of_many_objects_are_best():
    """The paper's finding, which must come out where objects are few: k = 2 before k = 8."""
    plan = bc.MultiSelection(6).plan(*pilot(), 640, repeats=[8, 2], n_splits=20, seed=1)
    assert plan.index.tolist() == [2, 8]
    assert plan["n_objects"].tolist() == [80, 20]
    assert plan.loc[2, "behind"] == 0
    assert plan.loc[8, "behind"] > 2 * plan.loc[8, "behind_error"]
    assert (plan["standard_error"] > 0).all()
    again = bc.MultiSelection(6).plan(*pilot(), 640, repeats=[2, 8], n_splits=20, seed=1)
    assert again.equals(plan)


def test_ways_with_too_few_objects_are_left_out():
    plan = bc.MultiSelection(6).plan(*pilot(), 64, repeats=[2, 8], n_splits=2)
    assert plan.index.tolist() == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_judgements": 20}, "4 attributes, twice each, of 5 objects take 40"),
        ({"repeats": [1, 2]}, r"repeats=\[1, 2\]: expected numbers of at least 2"),
        ({"n_splits": 1}, "n_splits=1"),
    ],
)
def test_bad_plans(options, message):
    with pytest.raises(ValueError, match=message):
        bc.MultiSelection(6).plan(*pilot(), **({"n_judgements": 400} | options))


def test_plans_are_for_means():
    with pytest.raises(ValueError, match="average='median'"):
        bc.MultiSelection(6, average="median").plan(*pilot(), 400)
