"""Opt-D&S: moments and factors in closed form, published errors, the rate, where it is needed."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation.spectral.method_of_moments import (
    DegenerateMoments,
    _align,
    _factors_of_view,
    _pair_moments,
    _third_moment,
    spectral_start,
)
from bayescrowd.checks import memory

PRIORS = np.array([0.5, 0.3, 0.2])


def draw(rng, confusions, n_tasks, *, priors=None, density=1.0):
    """Labels of the model of Dawid and Skene, and the truth."""
    n_workers, n_classes, _ = confusions.shape
    truth = rng.choice(n_classes, size=n_tasks, p=priors)
    tasks, workers = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    below = confusions.cumsum(axis=2)[workers, truth[tasks], :-1]
    labels = (rng.random(len(tasks))[:, None] > below).sum(axis=1)
    ann = bc.Annotations.from_codes(
        tasks, workers, labels, tasks=n_tasks, workers=n_workers, classes=n_classes
    )
    return ann, truth


def right_with(accuracy, n_classes=3):
    """Confusion matrix of one accuracy."""
    other = (1 - accuracy) / (n_classes - 1)
    return np.full((n_classes, n_classes), other) + (accuracy - other) * np.eye(n_classes)


def population_moments(columns, priors):
    """Exact moments of three views with the given columns [observed, true]."""
    pairs = {
        (a, b): columns[a] * priors @ columns[b].T for a in range(3) for b in range(3) if a != b
    }
    return pairs, np.einsum("h,ih,jh,kh->ijk", priors, *columns)


def three_views(rng):
    """Columns of three groups whose columns sum to the group's labels per task."""
    sizes = (2.0, 3.5, 1.0)
    return [size * rng.dirichlet(np.ones(3), size=3).T for size in sizes]


# By hand


def test_moments_by_hand():
    votes = [np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]), np.eye(2)]
    np.testing.assert_allclose(_pair_moments(votes)[0, 1], [[0.5, 0.5], [0.0, 1.0]])
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0] = expected[0, 1, 0] = 0.5  # first task: 1, (1, 1), first class
    expected[1, 1, 1] = 1.0  # second task: 2, 1, second class
    np.testing.assert_allclose(_third_moment(votes), expected)


# Closed form


@pytest.mark.parametrize("view", [0, 1, 2])
def test_exact_moments_give_exact_factors(view):
    columns = three_views(np.random.default_rng(1))
    pairs, third = population_moments(columns, PRIORS)
    found, priors = _factors_of_view(np.random.default_rng(0), view, pairs, third)
    order = linear_sum_assignment(((found[:, :, None] - columns[view][:, None]) ** 2).sum(axis=0))
    np.testing.assert_allclose(found, columns[view][:, order[1]], rtol=1e-6)
    np.testing.assert_allclose(priors, PRIORS[order[1]], rtol=1e-6)


def test_views_are_aligned_even_where_a_whole_group_errs():
    # The second group answers the next class: its largest entries name the wrong columns.
    honest = right_with(0.7).T
    columns = [3 * honest, 2 * np.roll(honest, 1, axis=0), 4 * honest]
    pairs, third = population_moments(columns, PRIORS)
    rng = np.random.default_rng(2)
    factors = [_factors_of_view(rng, view, pairs, third) for view in range(3)]
    aligned, priors = _align(factors, pairs)
    for ours, expected in zip(aligned, columns, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)
    np.testing.assert_allclose(priors, PRIORS, rtol=1e-6)


def test_perfect_workers():
    truth = np.arange(60) % 3
    ann = bc.Annotations.from_matrix(np.tile(truth[:, None], (1, 6)))
    start = spectral_start(np.random.default_rng(0), ann, np.arange(6) % 3, clip=0.1)
    # Exactly the identity, lifted: (1, 0.1, 0.1) / 1.2.
    expected = (np.eye(3) + 0.1 * (1 - np.eye(3))) / 1.2
    np.testing.assert_allclose(start.confusions, np.broadcast_to(expected, (6, 3, 3)), rtol=1e-8)
    np.testing.assert_allclose(start.priors, 1 / 3, rtol=1e-8)


# Invariants


def permuted(frame, rng, columns):
    """The labels with ids permuted and rows shuffled, and the new name of each old one."""
    names = {}
    for column in columns:
        ids = np.sort(frame[column].unique())
        names[column] = dict(zip(ids, rng.permutation(ids), strict=True))
    renamed = frame.assign(**{column: frame[column].map(names[column]) for column in columns})
    return renamed.iloc[rng.permutation(len(frame))], names


def changes(frame, seed, **parameters):
    """Largest difference of a probability between fits under old and new names, by columns."""
    fitted = bc.SpectralDawidSkene(**parameters).fit(frame).probas_
    for columns in COLUMNS:
        renamed, names = permuted(frame, np.random.default_rng(seed), columns)
        before = fitted.rename(index=names.get("task", {}), columns=names.get("label", {}))
        after = bc.SpectralDawidSkene(**parameters).fit(renamed).probas_
        after = after.loc[before.index, before.columns]
        yield columns, float((before - after).abs().to_numpy().max())


COLUMNS = [(), ("task",), ("worker",), ("label",), ("task", "worker", "label")]

# Both runs add the same numbers in another order; EM's hundred iterations may amplify 1e-16.
ROUNDING = 1e-8


def small_crowds():
    """Fifty crowds of 4 to 39 tasks, some of them with symmetries."""
    for seed in range(50):
        rng = np.random.default_rng([9, seed])
        sizes = (int(rng.integers(4, 40)), int(rng.integers(3, 10)), int(rng.integers(2, 4)))
        crowd = bc.simulate.crowd(*sizes, labels_per_task=int(rng.integers(2, 4)), seed=seed)
        if np.unique(crowd.annotations.label_codes).size > 1:
            yield crowd.annotations.to_frame().astype(int)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["web", "rte"])
def test_names_and_order_do_not_matter_in_public_crowds(published, name):
    found = dict(changes(published(name).annotations.to_frame(), 1))
    assert max(found.values()) < ROUNDING, found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("start", ["auto", "spectral"])
def test_names_and_order_do_not_matter_in_small_crowds(start):
    for seed, frame in enumerate(small_crowds()):
        found = dict(changes(frame, seed, start=start))
        assert max(found.values()) < ROUNDING, (seed, found)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_control_another_partition_changes_small_crowds():
    """If names moved the partition, the tests above would see it."""
    n_changed = 0
    for frame in small_crowds():
        first, second = (
            bc.SpectralDawidSkene(start="spectral", seed=seed).fit(frame).probas_ for seed in (0, 1)
        )
        n_changed += bool((first - second).abs().to_numpy().max() > 100 * ROUNDING)
    assert n_changed >= 5


def test_start_is_a_distribution_above_the_threshold():
    confusions = np.stack([right_with(a) for a in np.linspace(0.4, 0.95, 9)])
    ann, _ = draw(np.random.default_rng(4), confusions, 300, density=0.5)
    for clip in (1e-6, 0.1):
        start = spectral_start(np.random.default_rng(0), ann, np.arange(9) % 3, clip=clip)
        np.testing.assert_allclose(start.confusions.sum(axis=2), 1, rtol=1e-12)
        assert start.confusions.min() > 0
        assert start.priors.sum() == pytest.approx(1)


def test_the_bound_never_falls():
    confusions = np.stack([right_with(a) for a in np.linspace(0.4, 0.95, 12)])
    ann, _ = draw(np.random.default_rng(5), confusions, 400, density=0.5)
    est = bc.SpectralDawidSkene().fit(ann)
    assert est.start_ == "spectral"
    assert np.diff(est.trace_).min() > -1e-6


@pytest.mark.filterwarnings("ignore:the moments are weak")
def test_more_partitions_never_lower_the_objective():
    confusions = np.stack([right_with(a) for a in np.linspace(0.3, 0.7, 12)])
    ann, _ = draw(np.random.default_rng(6), confusions, 200, density=0.4)
    objectives = [
        bc.SpectralDawidSkene(n_partitions=n, tol=0, n_iter=30).fit(ann).trace_[-1]
        for n in (1, 2, 4)
    ]
    assert objectives == sorted(objectives)


def test_a_given_partition_is_used_whatever_its_names():
    confusions = np.stack([right_with(0.7)] * 9)
    ann, _ = draw(np.random.default_rng(7), confusions, 300)
    groups = pd.Series(list("xyzxyzxyz"), index=ann.workers)
    est = bc.SpectralDawidSkene(partition=groups).fit(ann)
    assert est.partition_.to_list() == [0, 1, 2] * 3
    expected = spectral_start(
        np.random.default_rng([0, 0]), ann, np.arange(9) % 3, clip=est.clip
    ).confusions
    np.testing.assert_allclose(est.initial_confusions_, expected.reshape(-1, 3))
    again = bc.SpectralDawidSkene(partition=groups.to_dict()).fit(ann)
    pd.testing.assert_frame_equal(again.probas_, est.probas_)


# Reference


@pytest.mark.parametrize(
    ("name", "most_wrong_at_median"),
    # Zhang, Chen, Zhou and Jordan 2014, error table on real data: 10.09, 7.12, 29.80 and 16.89 %,
    # of which the first and the last are no multiples of one item.
    [("bluebird", 12), ("rte", 57), ("trec", 678), ("dog", 128)],
)
def test_published_errors_over_twenty_partitions(published, name, most_wrong_at_median):
    data = published(name)
    ann, n_scored = data.annotations, len(data.truth)
    wrong = [
        bc.metrics.error_rate(bc.SpectralDawidSkene(seed=seed).fit(ann).probas_, data.truth)
        * n_scored
        for seed in range(20)
    ]
    majority = bc.metrics.error_rate(bc.MajorityVote().fit(ann).probas_, data.truth) * n_scored
    assert np.median(wrong) <= most_wrong_at_median + 0.01
    assert max(wrong) < majority


@pytest.mark.parametrize(
    ("name", "percent"), [("bluebird", (11.11, 11.11)), ("rte", (7.12, 7.13)), ("trec", (30, 30.2))]
)
def test_published_errors_of_the_majority_start(published, name, percent):
    # The same table's MV-D&S: uniform prior, log 0 left out, ten iterations.
    data = published(name)
    est = bc.DawidSkene(prior="uniform", pseudo_counts=0, zeros="skip", n_iter=10, tol=0)
    error = 100 * bc.metrics.error_rate(est.fit(data.annotations).probas_, data.truth)
    assert percent[0] - 0.005 < error < percent[1] + 0.005


def test_skipped_zeros_by_hand():
    # Vote shares of the last task are (1/2, 1/2, 0). The M-step has P(a | a) = 1, P(a | b) = 1/3
    # and P(a | c) = 0 for the first worker; P(b | a) = 1/3, P(b | b) = 1 and P(b | c) = 0 for the
    # second. The products for classes a, b and c are 1/3, 1/3 and 0, or without the zeros 1.
    ann = bc.Annotations.from_matrix([list("aa"), list("bb"), list("cc"), list("ab")])
    settings = {"prior": "uniform", "pseudo_counts": 0, "n_iter": 1, "tol": 0}
    floored = bc.DawidSkene(**settings).fit(ann)
    np.testing.assert_allclose(np.sort(floored.probas_.loc[3]), [0, 0.5, 0.5], atol=1e-12)
    skipped = bc.DawidSkene(**settings, zeros="skip").fit(ann)
    np.testing.assert_allclose(np.sort(skipped.probas_.loc[3]), [0.2, 0.2, 0.6])
    np.testing.assert_allclose(skipped.confusions_.sum(axis=1), 1)


# Recovery


def start_error(confusions, n_tasks, seed, clip=1e-6):
    """Root mean square error of the starting matrices' entries."""
    rng = np.random.default_rng(seed)
    ann, _ = draw(rng, confusions, n_tasks, priors=PRIORS)
    groups = np.arange(len(confusions)) % 3
    start = spectral_start(rng, ann, groups, clip=clip)
    return np.sqrt(np.mean((start.confusions - confusions) ** 2))


def rate(clip):
    """Slope of log error against log n, over n from 2,000 to 128,000."""
    confusions = np.stack([right_with(a) for a in np.tile([0.6, 0.7, 0.8], 3)])
    sizes = [2_000, 8_000, 32_000, 128_000]
    errors = [np.mean([start_error(confusions, n, seed, clip) for seed in range(6)]) for n in sizes]
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


def test_error_of_the_start_falls_with_the_square_root_of_n():
    # An error is a root mean square over 54 free entries that share 12 free moments of their
    # group: a relative standard deviation of about 1 / sqrt(2 * 12) = 0.2, of the mean of six
    # 0.08; a slope over four sizes of log-spacing 1.39 has then a standard error of
    # 0.08 / (1.39 * sqrt(5)) = 0.026. Four of them; moments are ratios, whence terms of order 1/n.
    assert rate(clip=1e-6) == pytest.approx(-0.5, abs=0.1)


def test_control_a_threshold_above_the_entries_does_not_converge():
    assert rate(clip=0.3) > -0.1


def careless_crowd():
    """Fifteen workers who tell three classes apart among sixty who tell one from the others.

    The sixty call a task of the first class by the first or the second name, as it comes, and the
    others by the third: votes split the first class in two and unite the other two.
    """
    careless = np.array([[0.45, 0.45, 0.1], [0.05, 0.05, 0.9], [0.05, 0.05, 0.9]])
    return np.stack([right_with(0.8)] * 15 + [careless] * 60)


def true_model_error(ann, confusions, truth):
    """Share of tasks that the most probable class under the true parameters gets wrong."""
    logs = np.zeros((ann.n_tasks, ann.n_classes))
    np.add.at(logs, ann.task_codes, np.log(confusions)[ann.worker_codes, :, ann.label_codes])
    return np.mean(logs.argmax(axis=1) != truth)


@pytest.mark.filterwarnings("ignore:the moments are weak")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reaches_the_true_model_where_the_majority_start_fails(seed):
    confusions, n_tasks = careless_crowd(), 4000
    ann, truth = draw(np.random.default_rng(seed), confusions, n_tasks, density=0.3)
    best = true_model_error(ann, confusions, truth)
    spectral = bc.SpectralDawidSkene(seed=seed).fit(ann)
    error = np.mean(spectral.labels_.to_numpy() != truth)
    assert abs(error - best) < 3 * np.sqrt(best * (1 - best) / n_tasks)
    # Control: EM from the majority vote, even with the best names. The uniform prior of the
    # paper loses two tasks in five and more; the learned one still ten times the best error.
    for prior, most in (("uniform", 0.6), (spectral.prior, 1 - 10 * best)):
        majority = bc.DawidSkene(prior=prior, smoothing="diagonal", pseudo_counts=2.0, tol=1e-6)
        agreement = np.zeros((3, 3))
        np.add.at(agreement, (majority.fit_predict(ann).to_numpy(), truth), 1)
        assert agreement[linear_sum_assignment(agreement, maximize=True)].sum() < most * n_tasks


def test_gold_names_the_classes_where_most_workers_mislead():
    honest = right_with(0.8, 2)
    confusions = np.stack([honest] * 5 + [1 - honest] * 10)
    ann, truth = draw(np.random.default_rng(8), confusions, 400)
    gold = {task: int(truth[task]) for task in range(5)}
    with_gold = bc.SpectralDawidSkene().fit(ann, gold=gold)
    assert (with_gold.labels_.to_numpy() == truth).mean() > 0.97
    assert set(with_gold.worker_quality_["flag"][5:]) == {"adversary"}
    # Control: nothing else says which of the two names is right.
    assert (bc.SpectralDawidSkene().fit_predict(ann).to_numpy() == truth).mean() < 0.03


# Degenerate moments


def degenerate_cases():
    two_workers = bc.Annotations.from_matrix([["a", "a"], ["b", "b"], ["a", "b"]])
    codes = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30), np.repeat(np.arange(30) % 2, 4)
    unused_class = bc.Annotations.from_codes(*codes, tasks=30, workers=4, classes=3)
    alike, unlike = (
        bc.Annotations.from_codes(
            np.arange(60),
            np.repeat(np.arange(3), n_labels),
            np.arange(60) % 2,
            tasks=60,
            workers=3,
            classes=2,
        )
        for n_labels in (20, [10, 20, 30])
    )
    return {
        "two workers": (two_workers, "fewer than three groups of workers have labels"),
        "a class that nobody uses": (unused_class, "rank 2, below the 3 classes"),
        "no common task": (unlike, "rank 0, below the 2 classes"),
        # Nothing but the names of their tasks tells the three apart: they are one group.
        "no common task, workers alike": (alike, "fewer than three groups of workers have labels"),
    }


@pytest.mark.parametrize("case", degenerate_cases())
def test_degenerate_moments_fall_back_to_the_majority_and_say_so(case):
    ann, reason = degenerate_cases()[case]
    with pytest.warns(ConvergenceWarning, match=f"starts from the majority vote.*{reason}"):
        est = bc.SpectralDawidSkene(smoothing="diagonal", pseudo_counts=2.0).fit(ann)
    assert est.start_ == "majority"
    assert est.initial_confusions_ is None
    assert est.partition_ is None
    majority = bc.DawidSkene(smoothing=est.smoothing, pseudo_counts=est.pseudo_counts).fit(ann)
    pd.testing.assert_frame_equal(est.probas_, majority.probas_)


def test_too_many_classes_are_not_cubed():
    labels = np.arange(300)
    ann = bc.Annotations.from_codes(
        np.repeat(labels, 3), np.tile(np.arange(3), 300), np.repeat(labels, 3),
        tasks=300, workers=3, classes=300,
    )  # fmt: skip
    with pytest.raises(DegenerateMoments, match="third moments of 300 classes"):
        spectral_start(np.random.default_rng(0), ann, np.arange(3), clip=0.1)


# Weak moments


def sparse_crowd(seed, n_classes=5):
    """Nine labels per worker and three per task."""
    return bc.simulate.crowd(300, 100, n_classes, labels_per_task=3, seed=seed)


def errors_on(crowds, estimator):
    """Share of errors on each crowd."""
    fits = [estimator.fit(crowd.annotations).probas_ for crowd in crowds]
    return np.array(
        [
            bc.metrics.error_rate(probas, crowd.truth)
            for probas, crowd in zip(fits, crowds, strict=True)
        ]
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_crowds_are_no_worse_than_a_vote():
    estimators = {
        "default": bc.SpectralDawidSkene(),
        "vote": bc.MajorityVote(),
        # Control: the moments alone, a pseudo-label spread evenly.
        "even": bc.SpectralDawidSkene(start="spectral", smoothing="flat", pseudo_counts=1.0),
    }
    crowds = [sparse_crowd(seed, n_classes) for seed in range(8) for n_classes in (3, 5)]
    errors = {name: errors_on(crowds, est) for name, est in estimators.items()}
    difference = errors["default"] - errors["vote"]
    assert difference.mean() < 2 * difference.std() / np.sqrt(len(crowds))
    assert errors["even"].mean() > errors["vote"].mean() + 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_classes_and_nine_labels_per_worker_are_no_worse_than_a_vote():
    # The true matrices would have 1.8 points fewer errors than a vote, and nine labels do not find
    # them. Two pseudo-labels on the right answer have about two points more. Where the default
    # changes no vote the standard error is zero, so that one task of a crowd is allowed beside it.
    crowds = [sparse_crowd(seed, n_classes=2) for seed in range(20)]
    vote = errors_on(crowds, bc.MajorityVote())

    def excess(estimator):
        difference = errors_on(crowds, estimator) - vote
        return difference.mean(), difference.std(ddof=1) / np.sqrt(len(crowds))

    mean, standard_error = excess(bc.SpectralDawidSkene())
    assert mean < 2 * standard_error + 1 / 300
    # Control: rows that move freely.
    mean, standard_error = excess(bc.SpectralDawidSkene(smoothing="diagonal", pseudo_counts=2.0))
    assert mean > 2 * standard_error + 1 / 300


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learned_pseudo_counts_are_those_that_the_fit_had():
    ann = sparse_crowd(0, n_classes=2).annotations
    learned = bc.SpectralDawidSkene().fit(ann)
    given = bc.SpectralDawidSkene(pseudo_counts=learned.pseudo_counts_).fit(ann)
    assert given.pseudo_counts_ == learned.pseudo_counts_
    pd.testing.assert_frame_equal(given.probas_, learned.probas_)


def test_without_pseudo_counts_it_does_not_matter_where_they_go():
    ann = bc.simulate.crowd(300, 12, 3, spammers=0.3, seed=0).annotations
    fits = [
        bc.SpectralDawidSkene(smoothing=smoothing, pseudo_counts=0.0).fit(ann).probas_
        for smoothing in ("accuracy", "flat", "diagonal")
    ]
    for other in fits[1:]:
        pd.testing.assert_frame_equal(fits[0], other)


def test_starting_matrices_that_do_not_fit_are_refused_with_their_size(monkeypatch):
    ann = bc.simulate.crowd(200, 60, 4, labels_per_task=30, accuracy=0.9, seed=0).annotations
    needed = 4 * 8 * 60 * 4**2
    groups = np.arange(60) % 3
    monkeypatch.setattr(memory, "available_bytes", lambda: needed - 1)
    with pytest.raises(ValueError, match=r"of 60 workers and 4 classes: 30\.7 kB .*DawidSkene"):
        spectral_start(np.random.default_rng(0), ann, groups, clip=0.1)
    monkeypatch.setattr(memory, "available_bytes", lambda: needed)
    assert spectral_start(np.random.default_rng(0), ann, groups, clip=0.1).confusions.shape[0] == 60


def test_so_many_tables_exist_at_the_same_time():
    # The check refuses by what is allocated: sixty megabytes of matrices against labels of one.
    n_workers, n_classes, n_tasks = 6000, 20, 400
    rng = np.random.default_rng(0)
    task, worker = rng.integers(0, n_tasks, 6 * n_workers), np.repeat(np.arange(n_workers), 6)
    random = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < 0.8, task % n_classes, random)
    ann = bc.Annotations.from_codes(
        task, worker, label, tasks=n_tasks, workers=n_workers, classes=n_classes
    )
    tracemalloc.start()
    spectral_start(np.random.default_rng(0), ann, np.arange(n_workers) % 3, clip=0.1)
    peak = tracemalloc.get_traced_memory()[1] / (8 * n_workers * n_classes**2)
    tracemalloc.stop()
    assert 3.5 < peak < 4.5


def test_weak_moments_are_reported_and_votes_compared():
    ann = sparse_crowd(0).annotations
    settings = {"smoothing": "diagonal", "pseudo_counts": 2.0}
    with pytest.warns(ConvergenceWarning, match=r"the moments are weak.*majority vote is kept"):
        est = bc.SpectralDawidSkene(**settings).fit(ann)
    assert est.start_ == "majority"
    assert est.partition_ is None
    assert 0 < est.sigma_min_ < 4 * est.sigma_min_error_
    with pytest.warns(ConvergenceWarning, match=r"the moments are weak.*from the moments is kept"):
        moments = bc.SpectralDawidSkene(start="spectral", **settings).fit(ann)
    assert moments.start_ == "spectral"
    assert moments.trace_[-1] < est.trace_[-1]
    # The votes' EM is Dawid and Skene's with the same pseudo-counts.
    votes = bc.DawidSkene(**settings).fit(ann)
    pd.testing.assert_frame_equal(est.probas_, votes.probas_)


def test_strong_moments_are_reported_without_a_warning():
    confusions = np.stack([right_with(a) for a in np.linspace(0.5, 0.9, 12)])
    ann, _ = draw(np.random.default_rng(5), confusions, 2000, density=0.5)
    est = bc.SpectralDawidSkene().fit(ann)  # warnings are errors here
    assert est.start_ == "spectral"
    votes = [np.zeros((2000, 3)) for _ in range(3)]
    groups = est.partition_.to_numpy()
    for task, worker, label in zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True):
        votes[groups[worker]][task, label] += 1 / (groups == groups[worker]).sum()
    moments = [votes[a].T @ votes[b] / 2000 for a, b in ((0, 1), (0, 2), (1, 2))]
    expected = min(np.linalg.svd(moment, compute_uv=False)[-1] for moment in moments)
    assert est.sigma_min_ == pytest.approx(expected)
    # D-bar of the model that made the labels: symmetric rows, so that all pairs of classes are
    # alike and KL = (a - b) log(a / b) with a right and b a given wrong answer. 1,000 labels per
    # worker leave relative errors of about 2 sqrt(2 / 1,000) = 0.09, twelve workers less.
    right = np.linspace(0.5, 0.9, 12)
    wrong = (1 - right) / 2
    assert est.d_bar_ == pytest.approx(
        0.5 * np.mean((right - wrong) * np.log(right / wrong)), rel=0.1
    )


def test_too_little_evidence_per_task_is_reported_with_the_classes():
    crowd = bc.simulate.crowd(300, 300, 3, labels_per_task=2, accuracy=0.6, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"class [012] hold 0\.\d+ nats .* against [012]"):
        est = bc.SpectralDawidSkene().fit(crowd.annotations)
    assert est.d_bar_ * 300 < 1


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"start": "votes"}, "start='votes': expected 'auto' or 'spectral'"),
        ({"partition": "thirds"}, "partition='thirds': expected 'random'"),
        ({"partition": {0: "x", 1: "y"}}, "partition names no group for worker 2"),
        ({"partition": {0: "x", 1: "y", 2: "x"}}, "partition has 2 groups"),
        ({"partition": {0: 0, 1: 1, 2: 2}, "n_partitions": 2}, "expected 1 for a given"),
        ({"n_partitions": 0}, "n_partitions=0: expected at least 1"),
        ({"clip": 0.0}, "clip=0.0: expected a number between 0 and 0.5"),
        ({"clip": 0.7}, "clip=0.7"),
        ({"n_iter": 0}, "n_iter=0: expected at least 1"),
        ({"pseudo_counts": -1.0}, "pseudo_counts=-1.0"),
        ({"pseudo_counts": "many"}, "pseudo_counts='many': expected .*'learned'"),
        ({"smoothing": "none"}, "smoothing='none': expected .*'accuracy'"),
    ],
)
def test_bad_parameters(parameters, message):
    ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aba"), list("bab")])
    with pytest.raises(ValueError, match=message):
        bc.SpectralDawidSkene().set_params(**parameters).fit(ann)
