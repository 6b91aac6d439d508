"""Effective votes against loops over pairs of labels, closed forms, and simulated panels."""

import itertools

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.dependence import (
    effective_votes,
    error_correlation,
    label_correlation,
    measure_dependence,
    tempered_posterior,
)
from bayescrowd.aggregation.rater_pairs import label_habits
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs


@pytest.fixture(scope="module")
def crowd():
    data = bc.simulate.crowd(40, 8, 3, labels_per_task=4, accuracy=0.6, seed=1)
    return data.annotations


def some_posterior(ann, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(ann.n_classes), ann.n_tasks)


def pairs_of_labels(ann):
    """Pairs of the positions of two labels on the same task."""
    for task in range(ann.n_tasks):
        yield from itertools.combinations(np.flatnonzero(ann.task_codes == task), 2)


# Against loops.


def test_label_correlation_is_the_ratio_of_sums_over_pairs(crowd):
    habits, unit = label_habits(crowd), np.eye(crowd.n_classes)
    worker, label = crowd.worker_codes, crowd.label_codes
    covariance = product = 0.0
    for s, t in pairs_of_labels(crowd):
        a, b = habits[worker[s]], habits[worker[t]]
        covariance += (unit[label[s]] - a) @ (unit[label[t]] - b)
        product += np.sqrt((1 - a @ a) * (1 - b @ b))
    assert label_correlation(crowd) == pytest.approx(covariance / product)


def test_error_correlation_is_the_ratio_of_sums_over_pairs(crowd):
    posterior = some_posterior(crowd)
    task, worker, label = crowd.task_codes, crowd.worker_codes, crowd.label_codes
    wrong = np.array([1 - posterior[i, y] for i, y in zip(task, label, strict=True)])
    rate = [
        (wrong[worker == w].sum() + 2 * wrong.mean()) / ((worker == w).sum() + 2)
        for w in range(crowd.n_workers)
    ]
    covariance = product = 0.0
    for s, t in pairs_of_labels(crowd):
        a, b = rate[worker[s]], rate[worker[t]]
        for k in range(crowd.n_classes):
            covariance += posterior[task[s], k] * ((label[s] != k) - a) * ((label[t] != k) - b)
        product += np.sqrt(a * (1 - a) * b * (1 - b))
    assert error_correlation(crowd, posterior) == pytest.approx(covariance / product)


def test_the_tempered_posterior_by_a_loop_over_tasks(crowd):
    posterior = some_posterior(crowd)
    task, worker, label = crowd.task_codes, crowd.worker_codes, crowd.label_codes
    n_classes = crowd.n_classes
    counts = np.zeros((crowd.n_workers, n_classes, n_classes))  # worker, label, class
    for i, w, y in zip(task, worker, label, strict=True):
        counts[w, y] += posterior[i]
    of_crowd = counts.sum(axis=0) + 1 / n_classes
    of_crowd /= of_crowd.sum(axis=0)
    rows = (counts + 2 * of_crowd) / (counts.sum(axis=1, keepdims=True) + 2)
    found = tempered_posterior(crowd, posterior, WorkerLabelPairs(crowd))
    for i in range(crowd.n_tasks):
        mine = np.flatnonzero(task == i)
        by_label = np.mean([np.log(rows[worker[s], label[s]]) for s in mine], axis=0)
        log = 0.5 * np.log(0.99 * posterior[i] + 0.01 / n_classes) + 1.5 * by_label
        wanted = np.exp(log - log.max())
        np.testing.assert_allclose(found[i], wanted / wanted.sum())


def test_effective_votes_follow_from_the_correlations(crowd):
    posterior = some_posterior(crowd)
    n = crowd.n_labels / crowd.n_tasks
    rhos = [label_correlation(crowd), error_correlation(crowd, posterior)]
    ends = sorted(n / (1 + (n - 1) * max(rho, 0)) for rho in rhos)
    found = effective_votes(crowd, posterior)
    assert found == pytest.approx(ends)
    assert all(type(end) is float for end in found)


# Closed forms.


def test_raters_who_repeat_each_other_are_one_vote():
    labels = np.random.default_rng(0).choice(list("abc"), 200, p=[0.5, 0.3, 0.2])
    ann = bc.Annotations.from_matrix(np.repeat(labels[:, None], 5, axis=1))
    # Whatever the posterior says: its error, too, is that of one rater.
    for seed in range(3):
        assert effective_votes(ann, some_posterior(ann, seed)) == pytest.approx((1, 1))


def test_independent_raters_with_known_truth_are_worth_their_number():
    n, n_tasks = 7, 4_000
    data = bc.simulate.panel(n_tasks, n, accuracy=[0.75] * n, seed=2)
    rho = error_correlation(data.annotations, np.eye(2)[data.truth])
    # A correlation of errors has the standard error 1 / sqrt(tasks) for one pair of raters, and the
    # pairs are nearly uncorrelated.
    standard_error = 1 / np.sqrt(n_tasks * n * (n - 1) / 2)
    assert abs(rho) < 4 * standard_error
    low, high = effective_votes(data.annotations, np.eye(2)[data.truth])
    assert n / (1 + 4 * (n - 1) * standard_error) < high <= n
    assert low < 4  # labels agree because they are right: .5 ^ 2 is their correlation
    assert label_correlation(data.annotations) == pytest.approx(0.25, abs=0.03)


def test_a_cluster_counts_as_the_correlation_of_its_errors_says():
    """All six judges copy with probability .8: rho = .64, and Kish's n_eff = 6 / (1 + 5 rho)."""
    data = bc.simulate.panel(8_000, 6, clusters=[6], copying=0.8, accuracy=[0.7] * 6, seed=4)
    _, high = effective_votes(data.annotations, np.eye(2)[data.truth])
    # The standard error of rho over 8,000 tasks is about .01, since pairs are one in effect.
    assert high == pytest.approx(6 / (1 + 5 * 0.64), abs=4 * 0.01 * 5 * 6 / (1 + 5 * 0.64) ** 2)


def test_the_bracket_holds_the_true_number_on_a_panel_that_is_misled():
    data = bc.simulate.panel(1_500, 8, misleading=0.2, pull=0.9, accuracy=[0.85] * 8, seed=1)
    ann = data.annotations
    answer = bc.MajorityVote().fit(ann).probas_.to_numpy()
    low, high = measure_dependence(ann, answer).effective_votes
    _, true = effective_votes(ann, np.eye(2)[data.truth])
    assert low < true < high


# Invariance.


def test_names_and_order_do_not_matter():
    data = bc.simulate.panel(
        300, 7, 3, clusters=[3], copying=0.9, accuracy=[0.7] * 7, labels_per_task=5, seed=3
    )
    ann, rng = data.annotations, np.random.default_rng(0)
    posterior = bc.MajorityVote().fit(ann).probas_
    found = measure_dependence(ann, posterior.to_numpy())
    task, worker, label = (rng.permutation(n) for n in (300, 7, 3))
    frame = ann.to_frame()
    frame = frame.assign(
        task=task[frame["task"]], worker=worker[frame["worker"]], label=label[frame["label"]]
    ).sample(frac=1, random_state=1)
    renamed = bc.Annotations.from_frame(frame)
    moved = posterior.set_axis(task[posterior.index]).set_axis(label[posterior.columns], axis=1)
    moved = moved.loc[renamed.tasks, renamed.classes]
    other = measure_dependence(renamed, moved.to_numpy())
    assert other.effective_votes == pytest.approx(found.effective_votes)
    assert {frozenset(group) for group in other.clusters} == {
        frozenset(worker[list(group)].tolist()) for group in found.clusters
    }
    assert len(found.clusters) == 1
    for (a, b), row in found.pairs.iterrows():
        key = tuple(sorted((worker[a], worker[b])))
        pd.testing.assert_series_equal(other.pairs.loc[key], row, check_names=False)
    np.testing.assert_allclose(
        other.agreement.loc[worker, worker].to_numpy(), found.agreement.to_numpy()
    )


def test_pairs_have_the_statistics_of_their_raters(crowd):
    found = measure_dependence(crowd, some_posterior(crowd), instability=0.3)
    assert found.instability == 0.3
    assert found.pairs.index.names == ["rater", "other"]
    for (a, b), row in found.pairs.iterrows():
        assert a < b
        assert row["agreement"] == pytest.approx(found.agreement.loc[a, b])
    frame = crowd.to_frame()
    tasks = {w: set(frame.loc[frame["worker"] == w, "task"]) for w in crowd.workers}
    wanted = {
        (a, b): len(tasks[a] & tasks[b])
        for a, b in itertools.combinations(crowd.workers, 2)
        if tasks[a] & tasks[b]
    }
    assert found.pairs["n_shared"].to_dict() == wanted


# Crowds that say little.


def test_one_label_per_task():
    ann = bc.simulate.crowd(50, 10, labels_per_task=1, seed=0).annotations
    found = measure_dependence(ann, some_posterior(ann))
    assert found.n_votes == 1
    assert found.effective_votes == (1, 1)
    assert found.clusters == ()
    assert found.pairs.empty
    assert found.summary.startswith("Tasks have one label each")


def test_one_class_only():
    ann = bc.Annotations.from_matrix([["a"] * 4] * 6, classes=["a", "b"])
    found = measure_dependence(ann, np.tile([1.0, 0.0], (6, 1)))
    # Nobody can tell four raters who are right from one whom the others repeat.
    assert found.effective_votes == pytest.approx((1, 4))
    assert found.clusters == ()
    assert (found.agreement == 1).all(axis=None)


def test_tasks_without_labels_change_nothing(crowd):
    posterior = some_posterior(crowd)
    found = measure_dependence(crowd, posterior)
    more = bc.Annotations.from_codes(
        crowd.task_codes,
        crowd.worker_codes,
        crowd.label_codes,
        tasks=pd.RangeIndex(crowd.n_tasks + 3, name="task"),
        workers=crowd.workers,
        classes=crowd.classes,
    )
    other = measure_dependence(more, np.concatenate([posterior, np.full((3, 3), 1 / 3)]))
    assert other.n_votes == found.n_votes
    assert other.effective_votes == pytest.approx(found.effective_votes)
    pd.testing.assert_frame_equal(other.pairs, found.pairs)


# Words.


def test_the_summary_names_votes_and_clusters():
    ann = bc.simulate.panel(
        400, 12, clusters=[5, 2], copying=1.0, accuracy=[0.75] * 12, seed=2
    ).annotations
    found = measure_dependence(ann, bc.MajorityVote().fit(ann).probas_.to_numpy())
    low, high = found.effective_votes
    assert found.summary == (
        f"12 labels per task amount to about {low:.1f} to {high:.1f} independent votes; "
        "0, 1, 2 and 2 more repeat each other; 5 and 6 repeat each other."
    )


# Bad input.


def test_the_matrix_of_very_many_raters_is_refused():
    n_workers = 2_001
    frame = pd.DataFrame(
        {"task": np.arange(n_workers) // 3, "worker": np.arange(n_workers), "label": "a"}
    )
    frame.loc[::2, "label"] = "b"
    ann = bc.Annotations.from_frame(frame)
    found = measure_dependence(ann, some_posterior(ann))
    with pytest.raises(ValueError, match=r"matrix of 2,001 raters.*at most 2,000.*`pairs`"):
        _ = found.agreement
