"""Pairs of raters against loops over pairs and tasks, closed forms, and simulated panels."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayescrowd as bc
from bayescrowd.aggregation import rater_pairs
from bayescrowd.aggregation.dependence import measure_dependence
from bayescrowd.aggregation.rater_pairs import (
    PairTable,
    cluster_raters,
    excess_at_limit,
    label_habits,
    pair_raters,
)
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

TABLE = [  # one letter per rater, a dot where the rater has no label
    "aab.",
    "abb.",
    "cccc",
    "a.ab",
    "bb.b",
    ".cac",
    "ccc.",
    "...a",
]


def matrix_of(rows):
    return bc.Annotations.from_matrix([[None if c == "." else c for c in row] for row in rows])


def some_posterior(ann, seed=0):
    # No class is so improbable that equation 2 leaves it out.
    return np.random.default_rng(seed).dirichlet(np.full(ann.n_classes, 4.0), ann.n_tasks)


def pair_table(ann, posterior):
    """The table, and the confusion matrices of equation 2 by a loop over labels."""
    pairs = WorkerLabelPairs(ann)
    counts = pairs.labels().counts(posterior)
    crowd = np.full((ann.n_classes, ann.n_classes), 1 / ann.n_classes)
    table = pair_raters(ann, posterior, pairs, counts, crowd)
    matrices = np.full((ann.n_workers, ann.n_classes, ann.n_classes), 2 / ann.n_classes)
    codes = zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True)
    for task, worker, label in codes:
        matrices[worker, label] += posterior[task]
    return table, matrices / matrices.sum(axis=1, keepdims=True)


def said(ann):
    """Labels by task and worker, for raters with one label per task."""
    codes = zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True)
    return {(task, worker): label for task, worker, label in codes}


# Against loops.


def test_a_pair_by_hand():
    ann = matrix_of(["aa", "ab", "bb", "bb"])
    posterior = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    table, _ = pair_table(ann, posterior)
    assert table.n_shared[0, 1] == 4
    assert table.agreement[0, 1] == 0.75
    # With two pseudo-labels, one of each class, the first rater's rows are 3/4, 1/4 twice; the
    # second rater said one a and one b on class a.
    on_a = 0.75 * 0.5 + 0.25 * 0.5
    on_b = 0.75**2 + 0.25**2
    assert table.expected[0, 1] == pytest.approx((on_a + on_b) / 2)


def test_every_statistic_is_the_mean_over_shared_tasks():
    ann = matrix_of(TABLE)
    posterior = some_posterior(ann)
    table, matrices = pair_table(ann, posterior)
    labels, habits = said(ann), label_habits(ann)
    for a, b in itertools.combinations(range(ann.n_workers), 2):
        shared = [i for i in range(ann.n_tasks) if (i, a) in labels and (i, b) in labels]
        agreement = np.mean([labels[i, a] == labels[i, b] for i in shared])
        expected = np.mean([posterior[i] @ (matrices[a] * matrices[b]).sum(axis=0) for i in shared])
        error_a, error_b, both = np.mean(
            [
                [
                    1 - posterior[i, labels[i, a]],
                    1 - posterior[i, labels[i, b]],
                    sum(
                        posterior[i, k]
                        for k in range(ann.n_classes)
                        if k not in (labels[i, a], labels[i, b])
                    ),
                ]
                for i in shared
            ],
            axis=0,
        )
        spread = np.sqrt(error_a * (1 - error_a) * error_b * (1 - error_b))
        by_chance = habits[a] @ habits[b]
        largest = np.sqrt((1 - habits[a] @ habits[a]) * (1 - habits[b] @ habits[b]))
        found = [matrix[a, b] for matrix in table[1:]]
        wanted = [
            len(shared),
            agreement,
            expected,
            (agreement - by_chance) / largest,
            (both - error_a * error_b) / spread,
        ]
        np.testing.assert_allclose(found, wanted, err_msg=f"raters {a} and {b}")
        np.testing.assert_allclose([matrix[b, a] for matrix in table[1:]], wanted)


def test_habits_are_shares_with_two_labels_of_the_crowd():
    ann = matrix_of(TABLE)
    crowd = np.bincount(ann.label_codes, minlength=3) / ann.n_labels
    for worker in range(ann.n_workers):
        own = np.bincount(ann.label_codes[ann.worker_codes == worker], minlength=3)
        np.testing.assert_allclose(
            label_habits(ann)[worker], (own + 2 * crowd) / (own.sum() + 2), err_msg=str(worker)
        )


def test_excess_is_that_at_the_limit_of_clopper_and_pearson():
    n_shared = np.array([[50.0, 40, 0], [40, 50, 30], [0, 30, 50]])
    agreement = np.array([[1, 0.9, np.nan], [0.9, 1, 0.2], [np.nan, 0.2, 1]])
    expected = np.array([[0.5, 0.5, np.nan], [0.5, 0.5, 0.4], [np.nan, 0.4, 0.5]])
    table = PairTable(np.arange(3), n_shared, agreement, expected, agreement, agreement)
    found = excess_at_limit(table)
    # Two pairs have shared tasks; the limit is one-sided, so that a two-sided interval has twice
    # the level.
    level = 1 - 2 * rater_pairs.ERROR_LEVEL / 2
    limit = scipy.stats.binomtest(36, 40).proportion_ci(level, "exact").low
    assert found[0, 1] == found[1, 0] == pytest.approx((limit - 0.5) / 0.5)
    assert found[1, 2] == 0  # they agree less than independent raters would
    assert found[0, 2] == 0  # nothing is known


def test_raters_with_several_labels_on_a_task_share_it_once():
    frame = pd.DataFrame(
        {"task": [0, 0, 0, 0, 1, 1], "worker": list("aaabab"), "label": list("xxyxyy")}
    )
    ann = bc.Annotations.from_frame(frame)
    table, _ = pair_table(ann, some_posterior(ann))
    assert table.n_shared[0, 1] == 2
    # Every label of the one is compared with every label of the other.
    assert table.agreement[0, 1] == pytest.approx((2 + 1) / (3 + 1))


# Closed forms.


def test_the_excess_is_the_share_of_copied_labels():
    """A = c + (1 - c) E: both raters copy with probability .8, so that c = .64."""
    data = bc.simulate.panel(20_000, 6, clusters=[2], copying=0.8, accuracy=[0.7] * 6, seed=3)
    ann = data.annotations
    table, _ = pair_table(ann, np.eye(2)[data.truth])
    excess = (table.agreement - table.expected) / (1 - table.expected)
    # The standard error of an agreement of about .85 is sqrt(.85 * .15 / 20,000) = .0025, over 1 -
    # E = .42 it is .006, and that of the estimated rows is smaller; four of them.
    assert excess[0, 1] == pytest.approx(0.64, abs=0.025)
    assert excess[3, 4] == pytest.approx(0.0, abs=0.04)
    # Without confounders, the correlation of the errors is c as well.
    assert table.error_correlation[0, 1] == pytest.approx(0.64, abs=0.025)


# Clusters.


def test_clusters_of_a_panel_are_found():
    data = bc.simulate.panel(
        600, 9, 3, clusters=[4, 2], copying=0.9, accuracy=[0.7] * 9, labels_per_task=8, seed=5
    )
    votes = bc.MajorityVote().fit(data.annotations).probas_.to_numpy()
    assert measure_dependence(data.annotations, votes).clusters == ((0, 1, 2, 3), (4, 5))


@pytest.mark.parametrize(
    "kind",
    [
        {"n_tasks": 60, "n_workers": 8, "accuracy": 0.7},
        {"n_tasks": 200, "n_workers": 30, "accuracy": 0.8, "labels_per_task": 6},
        {"n_tasks": 150, "n_workers": 6, "n_classes": 4, "accuracy": 0.6, "concentration": 4.0},
        {"n_tasks": 100, "n_workers": 10, "accuracy": 0.8, "prevalence": [0.95, 0.05]},
    ],
    ids=["small", "sparse", "four classes", "rare class"],
)
def test_independent_raters_hardly_ever_form_clusters(kind):
    n_seeds = 40
    n_found = 0
    for seed in range(n_seeds):
        ann = bc.simulate.crowd(**kind, seed=seed).annotations
        posterior = bc.DawidSkene().fit(ann).probas_.to_numpy()
        n_found += bool(measure_dependence(ann, posterior).clusters)
    # At a level of 5 %, more than 6 crowds of 40 have clusters with a probability below 1 %.
    assert n_found <= scipy.stats.binom(n_seeds, rater_pairs.ERROR_LEVEL).ppf(0.99)


def test_without_the_limit_independent_raters_would_form_clusters(monkeypatch):
    """Control: the limit is what keeps few shared tasks from making clusters."""
    monkeypatch.setattr(rater_pairs, "betaincinv", lambda a, b, level: a / (a + b - 1))
    n_found = 0
    for seed in range(10):
        ann = bc.simulate.crowd(40, 30, 3, accuracy=0.6, labels_per_task=4, seed=seed).annotations
        posterior = bc.DawidSkene().fit(ann).probas_.to_numpy()
        n_found += bool(measure_dependence(ann, posterior).clusters)
    assert n_found >= 9


def test_a_single_rater_has_no_clusters():
    ann = matrix_of(["a", "b"])
    table, _ = pair_table(ann, some_posterior(ann))
    assert cluster_raters(table) == []


# Large crowds.


def test_the_raters_with_the_most_labels_are_paired(monkeypatch):
    monkeypatch.setattr(rater_pairs, "MOST_RATERS", 5)
    ann = bc.simulate.crowd(300, 12, labels_per_task=4, activity=1.0, seed=2).annotations
    table, _ = pair_table(ann, some_posterior(ann))
    given = ann.labels_per_worker
    assert len(table.raters) == 5
    left_out = np.setdiff1d(np.arange(12), table.raters)
    assert given[table.raters].min() >= given[left_out].max()
    every = bc.agreement.pairwise_agreement(ann).to_numpy()[np.ix_(table.raters, table.raters)]
    above = np.triu_indices(5, 1)
    np.testing.assert_allclose(table.agreement[above], every[above])


def test_the_size_of_the_matrices_limits_the_raters(monkeypatch):
    monkeypatch.setattr(rater_pairs, "MOST_CELLS", 4 * 3**2)
    ann = bc.simulate.crowd(100, 12, 3, labels_per_task=4, seed=2).annotations
    assert len(pair_table(ann, some_posterior(ann))[0].raters) == 4


def test_many_labels_are_sampled(monkeypatch):
    monkeypatch.setattr(rater_pairs, "MOST_LABELS", 2_000)
    data = bc.simulate.panel(2_000, 6, accuracy=[0.8] * 6, seed=2)
    table, _ = pair_table(data.annotations, np.eye(2)[data.truth])
    n_shared = table.n_shared[0, 1]
    assert 2_000 / 6 / 1.5 < n_shared < 2_000 / 6 * 1.5
    above = np.triu_indices(6, 1)
    # Agreement is .68; four standard errors of a share of about 330 tasks.
    np.testing.assert_allclose(table.agreement[above], 0.68, atol=4 * np.sqrt(0.68 * 0.32 / 330))


def test_very_many_improbable_classes():
    classes = [f"c{k}" for k in range(1_200)]
    frame = pd.DataFrame({"task": [0, 0, 1, 1], "worker": list("abab"), "label": classes[:4]})
    ann = bc.Annotations.from_frame(frame, classes=classes)
    posterior = np.full((2, len(classes)), 1 / len(classes))
    table, matrices = pair_table(ann, posterior)
    wanted = (matrices[0] * matrices[1]).sum(axis=0).mean()
    assert table.expected[0, 1] == pytest.approx(wanted)
