"""Paired runs: splits by hand, the same questions for every policy, the reference."""

from functools import partial

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.evaluation.paired_runs import (
    Problem,
    make_policy,
    run_on_all_data,
    run_policy,
    split_problem,
)
from bayescrowd.budgeted.space import CodedTable, FeatureSpace


def problem_of(birds):
    space = FeatureSpace.from_table(birds, target="kind")
    return Problem(space, space.code(birds, target="kind"), labels=None)


def split_of(problem, seed=0, **options):
    arguments = {"train_share": 0.8, "n_labels": 1} | options
    return split_problem(problem, np.random.SeedSequence(seed), **arguments)


def test_a_split_holds_every_row_once(birds):
    problem = problem_of(birds)
    split = split_of(problem)
    assert len(split.train_target) == round(0.8 * len(birds))
    rows = np.concatenate([split.train_labels, split.test_labels])[:, :, 0]
    target = np.concatenate([split.train_target, split.test_target])
    both = np.column_stack([rows, target])
    expected = np.column_stack([problem.table.values, problem.table.target])
    assert sorted(map(tuple, both)) == sorted(map(tuple, expected))
    shares = np.bincount(split.train_target) / len(split.train_target)
    np.testing.assert_allclose(split.space.class_counts, shares * len(split.train_target))


def test_workers_labels_are_taken_as_they_are(birds):
    problem = problem_of(birds)
    labels = np.repeat(1 - problem.table.values[:, :, None] % 2, 5, axis=2)
    split = split_of(problem._replace(labels=labels), n_labels=3)
    assert split.train_labels.shape[2] == split.test_labels.shape[2] == 3
    assert split.train_labels.sum() + split.test_labels.sum() == labels[:, :, :3].sum()


def test_the_same_run_again_is_the_same(birds):
    split = split_of(problem_of(birds), seed=3)
    runs = [run_policy(split, bc.TsGreedy, budget=40, n_features=2) for _ in range(2)]
    assert runs[0] == runs[1]
    assert sum(runs[0].observations.values()) == runs[0].spent == 40
    again = run_policy(split_of(problem_of(birds), seed=3), bc.TsGreedy, budget=40, n_features=2)
    assert again == runs[0]


def test_the_reference_pays_for_all_training_labels(birds):
    split = split_of(problem_of(birds), n_labels=2)
    one, two = run_on_all_data(split, [1, 2])
    assert one.spent == two.spent == split.train_labels.size
    assert one.selected == two.selected[:1]
    assert one.observations == {}


def test_a_partial_keeps_its_own_model(birds):
    space = FeatureSpace.from_table(birds, target="kind")
    options = {"model": "naive_bayes", "labels_per_query": 3, "seed": 0}
    own = make_policy(partial(bc.TsGreedy, model="access_path"), space, 30, 1, **options)
    assert (own.model, make_policy(bc.TsGreedy, space, 30, 1, **options).model) == (
        "access_path",
        "naive_bayes",
    )


def test_training_rows_of_one_class_are_refused():
    space = FeatureSpace(classes=["a", "b"], features={"x": [0, 1]})
    table = CodedTable(np.array([[0], [1], [0]]), np.array([0, 0, 0]))
    with pytest.raises(ValueError, match="the training rows have a single class"):
        split_of(Problem(space, table, labels=None))
