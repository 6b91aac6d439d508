"""Dawid–Skene against sums on paper, enumeration, other implementations and published tables."""

import warnings
from itertools import product
from math import log

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc

# Three patients and two doctors: they agree on the first and on the last.
PAPER = bc.Annotations.from_matrix([["a", "a"], ["a", "b"], ["b", "b"]])

# Twelve tasks (rows) and four workers (columns), nobody's label where there is a dot.
# fmt: off
TABLE = [
    "aab.", "abba", "cccb", "bbb.", "a.aa", "cca.", "bbcb", "aaaa", "c.cc", "bab.", "ccac", "abab",
]
# fmt: on


def table_crowd():
    rows = [(t, w, label) for t, row in enumerate(TABLE) for w, label in enumerate(row)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return bc.Annotations.from_frame(frame[frame["label"] != "."].reset_index(drop=True))


def small_crowd():
    """Five tasks, one of them without labels, three workers, and repeated judgements."""
    return bc.Annotations.from_codes(
        task=np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 4, 4]),
        worker=np.array([0, 0, 1, 2, 0, 1, 2, 0, 1, 1, 1, 2]),
        label=np.array([0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 2, 0]),
        tasks=5,
        workers=3,
        classes=3,
    )


def matrices(model):
    n_classes = len(model.classes_)
    return model.confusions_.to_numpy().reshape(-1, n_classes, n_classes)


def joint_log_probability(ann, truth, priors, confusions):
    total = sum(log(priors[cls]) for cls in truth)
    for task, worker, label in zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True):
        total += log(confusions[worker, truth[task], label])
    return total


def log_likelihood(ann, priors, confusions):
    """log P(labels), task by task."""
    total = 0.0
    for task in range(ann.n_tasks):
        rows = slice(ann.task_offsets[task], ann.task_offsets[task + 1])
        workers, labels = ann.worker_codes[rows], ann.label_codes[rows]
        total += log((priors * confusions[workers, :, labels].prod(axis=0)).sum())
    return total


def expected_error(probas, truth):
    """Percentage of wrong labels when ties are drawn; ties are shares equal to nine digits."""
    error = 0.0
    for task, true in truth.items():
        row = probas.loc[task]
        first = list(row.index[row > row.max() - 1e-9])
        error += 1 - (1 / len(first) if true in first else 0)
    return 100 * error / len(truth)


# By hand.


def test_one_iteration_by_hand():
    model = bc.DawidSkene(pseudo_counts=0.0, n_iter=1, tol=0.0).fit(PAPER)
    # Vote shares are (1, 0), (1/2, 1/2), (0, 1). Of the tasks that count as 'a' (3/2 in all), the
    # first doctor called all 'a' and the second two thirds.
    np.testing.assert_allclose(model.priors_, [0.5, 0.5])
    expected = [[[1, 0], [1 / 3, 2 / 3]], [[2 / 3, 1 / 3], [0, 1]]]
    np.testing.assert_allclose(matrices(model), expected, rtol=1e-12, atol=1e-290)
    np.testing.assert_allclose(model.probas_, [[1, 0], [0.5, 0.5], [0, 1]], atol=1e-290)
    assert model.log_likelihood_ == pytest.approx(3 * log(1 / 3), rel=1e-12)


def test_skipped_zeros_by_hand():
    model = bc.DawidSkene(pseudo_counts=0.0, zeros="skip", n_iter=1, tol=0.0).fit(PAPER)
    # The matrices of `test_one_iteration_by_hand`, a zero counting as a one: the first task is
    # 'a' as 1 * 2/3 to 1/3 * 1.
    np.testing.assert_allclose(
        model.probas_, [[2 / 3, 1 / 3], [1 / 2, 1 / 2], [1 / 3, 2 / 3]], rtol=1e-12
    )
    # Where nobody has a zero there is nothing to skip.
    options = {"n_iter": 5, "tol": 0.0, "smoothing": "flat"}
    skipped = bc.DawidSkene(zeros="skip", **options).fit(PAPER)
    pd.testing.assert_frame_equal(skipped.probas_, bc.DawidSkene(**options).fit(PAPER).probas_)


def test_prediction_by_hand():
    model = bc.DawidSkene(pseudo_counts=0.0, n_iter=1, tol=0.0).fit(PAPER)
    new = pd.DataFrame(
        {"task": ["x", "y", "y", "z"], "worker": [0, 0, 1, "stranger"], "label": list("abaa")}
    )
    probas = model.predict_proba(new)
    assert list(probas.index) == ["x", "y", "z"]
    assert list(probas.columns) == ["a", "b"]
    np.testing.assert_allclose(probas.loc["x"], [3 / 4, 1 / 4], rtol=1e-9)  # as 1 to 1/3
    # 'y' has one impossible label in either class: the other, 2/3 in both, decides nothing.
    np.testing.assert_allclose(probas.loc["y"], [0.5, 0.5], rtol=1e-9)
    # The stranger has the crowd's mean matrix: of three labels on tasks of class 'a', 5/2 are 'a'.
    np.testing.assert_allclose(probas.loc["z"], [5 / 6, 1 / 6], rtol=1e-9)
    assert model.predict(new)[["x", "z"]].to_list() == ["a", "a"]


def test_prediction_on_the_fitted_labels_is_the_fitted_posterior():
    ann = table_crowd()
    model = bc.DawidSkene().fit(ann)
    pd.testing.assert_frame_equal(model.predict_proba(ann), model.probas_, rtol=1e-9)


def test_given_matrices_by_hand():
    start = np.array([[0.9, 0.1], [0.2, 0.8]])
    model = bc.DawidSkene(init=start, pseudo_counts=0.0, n_iter=1, tol=0.0).fit(PAPER)
    # Even prior: .81 against .04, .09 against .16, .01 against .64; then one M-step.
    share = np.array([0.81 / 0.85, 0.09 / 0.25, 0.01 / 0.65])
    np.testing.assert_allclose(model.priors_["a"], share.mean(), rtol=1e-12)
    np.testing.assert_allclose(
        model.confusions_.loc[(0, "a"), "a"], share[:2].sum() / share.sum(), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.confusions_.loc[(1, "b"), "b"], (1 - share[1:]).sum() / (1 - share).sum(), rtol=1e-12
    )


# Closed form: enumeration of all true labels.


@pytest.mark.parametrize("smoothing", ["flat", "diagonal", "pooled"])
@pytest.mark.parametrize("prior", ["learned", "uniform"])
def test_likelihood_and_posterior_equal_enumeration(smoothing, prior):
    ann = small_crowd()
    model = bc.DawidSkene(smoothing=smoothing, prior=prior, n_iter=7, tol=0.0).fit(ann)
    # An exact zero would be log 0 in the enumeration; the smallest float is as impossible.
    priors = np.maximum(model.priors_.to_numpy(), 1e-300)
    confusions = np.maximum(matrices(model), 1e-300)
    truths = list(product(range(3), repeat=5))
    joint = np.array([joint_log_probability(ann, z, priors, confusions) for z in truths])
    assert model.log_likelihood_ == pytest.approx(logsumexp(joint), rel=1e-12)
    weights = np.exp(joint - logsumexp(joint))
    marginals = np.zeros((5, 3))
    for truth, weight in zip(truths, weights, strict=True):
        marginals[np.arange(5), truth] += weight
    np.testing.assert_allclose(model.probas_, marginals, atol=1e-12)


def objective(ann, priors, confusions, *, smoothing, pseudo_counts):
    """What EM climbs, in a form of its own: the pooled centre is maximised out."""
    log_rows = np.log(confusions)
    n_classes = len(priors)
    penalty = 0.0
    if pseudo_counts and smoothing == "flat":
        penalty = pseudo_counts * log_rows.mean(axis=2).sum()
    elif pseudo_counts and smoothing == "diagonal":
        penalty = pseudo_counts * log_rows[:, range(n_classes), range(n_classes)].sum()
    elif pseudo_counts:
        # min over B of sum_w KL(B || row_w) is -n log of the geometric mean's sum.
        penalty = pseudo_counts * len(confusions) * logsumexp(log_rows.mean(axis=0), axis=1).sum()
    return log_likelihood(ann, priors, confusions) + penalty


def perturbed_objectives(ann, model, *, smoothing, pseudo_counts, distance):
    """The objective where EM stopped, and around: there and back in 30 directions, and inwards."""
    rng = np.random.default_rng(8)
    here = model.priors_.to_numpy(), matrices(model)
    around = []
    for _ in range(30):
        steps = [rng.normal(size=parameter.shape) for parameter in here]
        for signed in (distance, -distance):
            moved = [p * np.exp(signed * step) for p, step in zip(here, steps, strict=True)]
            around.append([p / p.sum(axis=-1, keepdims=True) for p in moved])
        inner = [rng.dirichlet(np.ones(p.shape[-1]), size=p.shape[:-1]) for p in here]
        mixed = [(1 - distance) * p + distance * q for p, q in zip(here, inner, strict=True)]
        around.append(mixed)
    options = {"smoothing": smoothing, "pseudo_counts": pseudo_counts}
    values = [objective(ann, *parameters, **options) for parameters in around]
    return objective(ann, *here, **options), np.array(values)


SMOOTHINGS = [("flat", 0.0), ("flat", 1.0), ("diagonal", 0.5), ("pooled", 1.0), ("pooled", 8.0)]


@pytest.mark.parametrize(("smoothing", "pseudo_counts"), SMOOTHINGS)
def test_fixed_point_is_a_local_maximum(smoothing, pseudo_counts):
    ann = bc.simulate.crowd(40, 4, 2, accuracy=0.75, seed=6).annotations
    options = {"smoothing": smoothing, "pseudo_counts": pseudo_counts}
    model = bc.DawidSkene(**options, n_iter=20_000, tol=1e-13).fit(ann)
    here, around = perturbed_objectives(ann, model, **options, distance=1e-3)
    assert here == pytest.approx(model.trace_[-1], rel=1e-9)
    assert (around <= here + 1e-9).all()
    # Control: one iteration from the start there is somewhere to climb to.
    early = bc.DawidSkene(**options, n_iter=1, tol=0.0).fit(ann)
    here, around = perturbed_objectives(ann, early, **options, distance=1e-3)
    assert (around > here + 1e-9).any()


# Reference.

# From crowd-kit 1.4.2, on `frame` made of TABLE as in `table_crowd`:
#   model = crowdkit.aggregation.DawidSkene(n_iter=2, tol=-np.inf).fit(frame)
#   model.probas_[["a", "b", "c"]].round(8)
CROWD_KIT_PROBAS = [
    [0.82250590, 0.17749410, 0.00000000],
    [0.82309767, 0.17690233, 0.00000000],
    [0.00000000, 0.00000314, 0.99999686],
    [0.01918375, 0.98081625, 0.00000000],
    [0.98614329, 0.01385671, 0.00000000],
    [0.00034171, 0.00000068, 0.99965761],
    [0.00000000, 0.99995623, 0.00004377],
    [0.99330402, 0.00669598, 0.00000000],
    [0.00000000, 0.00000000, 1.00000000],
    [0.07005315, 0.92994685, 0.00000000],
    [0.00000106, 0.00000000, 0.99999894],
    [0.68788845, 0.31211155, 0.00000000],
]


def test_equals_crowd_kits_stored_numbers():
    model = bc.DawidSkene(pseudo_counts=0.0, n_iter=2, tol=0.0).fit(table_crowd())
    np.testing.assert_allclose(model.probas_, CROWD_KIT_PROBAS, atol=1e-8)


@pytest.mark.parametrize("n_iter", [1, 10])
@pytest.mark.parametrize("with_gold", [False, True])
def test_equals_crowd_kit(n_iter, with_gold):
    reason = "crowd-kit is in the benchmark extra only"
    aggregation = pytest.importorskip("crowdkit.aggregation", reason=reason)
    data = bc.simulate.crowd(60, 8, 3, labels_per_task=5, seed=2)
    frame = data.annotations.to_frame()
    gold = data.truth.iloc[:10] if with_gold else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, about pandas
        peer = aggregation.DawidSkene(n_iter=n_iter, tol=-np.inf).fit(frame, true_labels=gold)
    model = bc.DawidSkene(pseudo_counts=0.0, n_iter=n_iter, tol=0.0).fit(frame, gold)
    # They floor expected counts at 1e-10, we at 1e-300; a few labels of a task multiply it.
    np.testing.assert_allclose(
        model.probas_, peer.probas_.loc[model.probas_.index, model.probas_.columns], atol=1e-6
    )


def test_1979_from_the_average_votes(published):
    ann = published("anaesthetist").annotations
    model = bc.DawidSkene(pseudo_counts=0.0, n_iter=2000, tol=1e-10).fit(ann)
    assert model.log_likelihood_ == pytest.approx(-190.731, abs=5e-4)
    np.testing.assert_allclose(model.priors_, [0.400, 0.422, 0.112, 0.067], atol=5e-4)


def test_1979_restarts_find_a_better_maximum(published):
    ann = published("anaesthetist").annotations
    model = bc.DawidSkene(pseudo_counts=0.0, n_iter=2000, tol=1e-10, n_init=20).fit(ann)
    assert model.log_likelihood_ == pytest.approx(-189.405, abs=5e-4)
    np.testing.assert_allclose(model.priors_, [0.400, 0.447, 0.087, 0.067], atol=5e-4)
    assert model.trace_[-1] == model.log_likelihood_
    # A random start names its classes by chance; they are named by the labels in the end.
    votes = ann.votes.argmax(axis=1)
    assert (model.classes_.get_indexer(model.labels_) == votes).mean() > 0.8


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("bluebird", {}, 10.19),
        ("rte", {}, 7.25),
        ("trec", {"n_iter": 20, "tol": 0.0}, 29.76),
        ("dog", {}, 15.74),
        ("web", {"n_iter": 100, "tol": 0.0}, 17.15),
    ],
)
def test_published_errors(published, name, options, error):
    data = published(name)
    model = bc.DawidSkene(pseudo_counts=0.0, **options).fit(data.annotations)
    assert expected_error(model.probas_, data.truth) == pytest.approx(error, abs=0.005)


@pytest.mark.parametrize(
    ("name", "n_iter", "error"), [("bluebird", 10, 11.11), ("rte", 10, 7.12), ("trec", 20, 30.02)]
)
def test_published_errors_with_zeros_skipped(published, name, n_iter, error):
    """Zhang, Chen, Zhou and Jordan (2014), table 2; its cells of dog and web are averages."""
    data = published(name)
    model = bc.DawidSkene(
        pseudo_counts=0.0, prior="uniform", zeros="skip", n_iter=n_iter, tol=0.0
    ).fit(data.annotations)
    # rte's 7.125 is printed as 7.12.
    assert expected_error(model.probas_, data.truth) == pytest.approx(error, abs=0.0051)


@pytest.mark.parametrize(
    ("name", "error"), [("bluebird", 10.19), ("rte", 7.25), ("trec", 29.8), ("dog", 15.8)]
)
def test_defaults_are_not_worse_than_the_published_errors(published, name, error):
    data = published(name)
    model = bc.DawidSkene().fit(data.annotations)
    assert model.converged_
    assert expected_error(model.probas_, data.truth) < error + 0.005


# Recovery, with its control.

RECOVERY = {"n_tasks": 2000, "n_workers": 8, "n_classes": 3, "prevalence": [0.5, 0.3, 0.2]}


def largest_error(model, parameters, n_tasks):
    """Largest error of any parameter, in standard errors if the truth were known.

    Eight workers leave the truth of about one task in a hundred open, so that the standard
    errors are hardly larger.
    """
    p, rows = parameters.prevalence, parameters.confusions
    prior_z = (model.priors_.to_numpy() - p) / np.sqrt(p * (1 - p) / n_tasks)
    row_z = (matrices(model) - rows) / np.sqrt(rows * (1 - rows) / (n_tasks * p)[:, None])
    return max(np.abs(prior_z).max(), np.abs(row_z).max())


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("pseudo_counts", [0.0, 1.0])
def test_recovers_the_crowd(seed, pseudo_counts):
    data = bc.simulate.full_confusion_crowd(**RECOVERY, accuracy=0.75, seed=seed)
    model = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(data.annotations)
    # The largest of 75 errors exceeds 4.5 standard errors once in two thousand crowds.
    assert largest_error(model, data.parameters, 2000) < 4.5


def test_control_shuffled_labels_are_not_recovered():
    data = bc.simulate.full_confusion_crowd(**RECOVERY, accuracy=0.75, seed=0)
    frame = data.annotations.to_frame()
    frame["label"] = np.random.default_rng(0).permutation(frame["label"].to_numpy())
    model = bc.DawidSkene(n_iter=20, tol=0.0).fit(frame)
    assert largest_error(model, data.parameters, 2000) > 45


def test_repeated_judgements_help():
    # Five workers judge each of 300 tasks three times, independently.
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=300)
    right = np.array([0.6, 0.65, 0.7, 0.7, 0.75])
    task, worker, copy = (axis.ravel() for axis in np.indices((300, 5, 3)))
    label = np.where(rng.random(len(task)) < right[worker], truth[task], 1 - truth[task])
    errors = []
    for n_copies in (1, 3):
        kept = copy < n_copies
        ann = bc.Annotations.from_codes(
            task[kept], worker[kept], label[kept], tasks=300, workers=5, classes=2
        )
        assert ann.n_labels == 1500 * n_copies
        errors.append((bc.DawidSkene().fit(ann).labels_ != truth).mean())
    # The best rule errs on 18 % of tasks with five of these labels and on 6 % with fifteen.
    assert errors[1] < 0.6 * errors[0]


# Known labels.


def test_gold_is_respected_exactly():
    ann = table_crowd()
    gold = pd.Series({0: "c", 1: "b", 7: "c"})
    model = bc.DawidSkene().fit(ann, gold)
    assert model.labels_[gold.index].to_list() == gold.to_list()
    np.testing.assert_array_equal(model.probas_.loc[gold.index], np.eye(3)[[2, 1, 2]])


def test_gold_turns_an_adversarial_majority():
    data = bc.simulate.crowd(400, 10, 2, labels_per_task=5, accuracy=0.75, adversaries=0.6)
    rest = data.truth.index[100:]
    without = bc.DawidSkene().fit(data.annotations).labels_[rest]
    with_gold = bc.DawidSkene().fit(data.annotations, data.truth.iloc[:100]).labels_[rest]
    assert (without != data.truth[rest]).mean() > 0.8
    assert (with_gold != data.truth[rest]).mean() < 0.15


# Starts.


def test_given_matrices_in_every_form_agree():
    ann = table_crowd()
    one = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    index = pd.MultiIndex.from_product([ann.workers, ann.classes])
    table = pd.DataFrame(np.tile(one, (4, 1)), index=index, columns=ann.classes)
    shuffled = table.sample(frac=1, random_state=0)[["c", "a", "b"]]
    without_one = table.drop(index=2, level=0)  # who then has the mean of the others'
    fits = [
        bc.DawidSkene(init=init, n_iter=3, tol=0.0).fit(ann).probas_
        for init in (one, np.tile(one, (4, 1, 1)), table, shuffled, without_one)
    ]
    for other in fits[1:]:
        pd.testing.assert_frame_equal(fits[0], other, rtol=1e-12)


@pytest.mark.parametrize("classes", [[False, True], [0, 1], ["no", "yes"]])
def test_a_fit_continues_from_its_own_confusions(classes):
    data = bc.simulate.crowd(100, 5, 2, seed=3)
    frame = data.annotations.to_frame()
    frame["label"] = [classes[label] for label in frame["label"]]
    first = bc.DawidSkene(prior="uniform", pseudo_counts=0.0, n_iter=4, tol=0.0).fit(frame)
    second = bc.DawidSkene(
        init=first.confusions_, prior="uniform", pseudo_counts=0.0, n_iter=3, tol=0.0
    ).fit(frame)
    whole = bc.DawidSkene(prior="uniform", pseudo_counts=0.0, n_iter=7, tol=0.0).fit(frame)
    np.testing.assert_allclose(
        np.concatenate([first.trace_, second.trace_]), whole.trace_, rtol=1e-12
    )


def test_given_matrices_name_the_classes():
    # An adversarial crowd, known to be one: nobody's name for a class is to be turned round.
    data = bc.simulate.one_coin_crowd(200, 7, accuracy=[0.2, 0.25, 0.3, 0.2, 0.25, 0.3, 0.2])
    start = np.array([[0.3, 0.7], [0.7, 0.3]])
    known = bc.DawidSkene(init=start).fit(data.annotations)
    guessed = bc.DawidSkene().fit(data.annotations)
    assert (known.labels_ == data.truth).mean() > 0.9
    assert (guessed.labels_ == data.truth).mean() < 0.1


def test_random_starts_are_named_by_the_labels():
    data = bc.simulate.crowd(150, 8, 2, accuracy=0.8, seed=1)
    models = [bc.DawidSkene(init="random", seed=seed).fit(data.annotations) for seed in range(8)]
    for model in models:
        assert (model.labels_ == data.truth).mean() > 0.9
        parameters = model.priors_.to_numpy(), matrices(model)
        expected = log_likelihood(data.annotations, *parameters)
        assert model.log_likelihood_ == pytest.approx(expected, rel=1e-9)


def test_more_starts_never_do_worse():
    ann = bc.simulate.crowd(40, 6, 4, labels_per_task=3, accuracy=0.5, seed=0).annotations
    objectives = [
        bc.DawidSkene(n_init=n, n_iter=300, tol=1e-5).fit(ann).trace_[-1] for n in (1, 4, 16)
    ]
    assert objectives == sorted(objectives)
    assert objectives[-1] > objectives[0]


# Thin data.


def test_a_class_nobody_chose():
    frame = table_crowd().to_frame()
    ann = bc.Annotations.from_frame(frame, classes=["a", "b", "never", "c"])
    for pseudo_counts in (0.0, 1.0):
        model = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(ann)
        three = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(frame)
        assert model.priors_["never"] < 1e-200
        assert not (model.labels_ == "never").any()
        assert np.isfinite(model.confusions_).all(axis=None)
        if pseudo_counts == 0:
            np.testing.assert_allclose(
                model.probas_[["a", "b", "c"]], three.probas_, rtol=1e-9, atol=1e-200
            )


def test_a_worker_who_never_used_a_class_vetoes_nothing():
    # Worker 'w' says 'a' to everything; the others are right about a task of class 'b'.
    rows = [["a", "a", "a"], ["a", "b", "b"], ["a", "a", "a"], ["a", "b", "b"]]
    wide = pd.DataFrame(rows, columns=["w", "x", "y"])
    for pseudo_counts in (0.0, 1.0):
        model = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(bc.Annotations.from_matrix(wide))
        assert model.labels_.to_list() == ["a", "b", "a", "b"]
        # A label 'b' of this worker is news, not an impossibility.
        news = pd.DataFrame({"task": [9, 9, 9], "worker": list("wxy"), "label": list("baa")})
        probas = model.predict_proba(news)
        assert np.isfinite(probas).all(axis=None)
        assert probas.loc[9].sum() == pytest.approx(1)


def test_two_thousand_labels_on_one_task():
    rng = np.random.default_rng(1)
    truth = np.array([0, 1, 0, 1, 1])
    task, worker = (axis.ravel() for axis in np.indices((5, 2000)))
    label = np.where(rng.random(10_000) < 0.7, truth[task], 1 - truth[task])
    ann = bc.Annotations.from_codes(task, worker, label, tasks=5, workers=2000, classes=2)
    for pseudo_counts in (0.0, 1.0):
        model = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(ann)
        assert model.labels_.to_list() == truth.tolist()
        assert np.isfinite(model.log_likelihood_)


def test_a_worker_with_one_label_and_a_task_without():
    data = bc.simulate.crowd(50, 5, 2, accuracy=0.85, seed=0)
    ann = data.annotations
    more = bc.Annotations.from_codes(
        np.append(ann.task_codes, 0),
        np.append(ann.worker_codes, 5),
        np.append(ann.label_codes, 0),
        tasks=51,
        workers=6,
        classes=2,
    )
    for pseudo_counts in (0.0, 1.0):
        model = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(more)
        np.testing.assert_allclose(model.probas_.loc[50], model.priors_, rtol=1e-9)
        assert np.isfinite(model.confusions_.loc[5]).all(axis=None)
        assert model.worker_quality_.loc[5, "flag"] == ""
        before = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(ann)
        assert (model.labels_[:50] == before.labels_).mean() > 0.95


def test_a_worker_without_labels_has_the_crowds_mean_matrix():
    ann = table_crowd()
    silent = bc.Annotations.from_codes(
        ann.task_codes, ann.worker_codes, ann.label_codes, tasks=12, workers=5, classes=3
    )
    for pseudo_counts in (0.0, 1.0):
        model = bc.DawidSkene(pseudo_counts=pseudo_counts).fit(silent)
        probas = model.probas_.to_numpy()
        total = np.zeros((3, 3))
        for task, label in zip(ann.task_codes, ann.label_codes, strict=True):
            total[:, label] += probas[task]
        mean = total / total.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.confusions_.loc[4], mean, rtol=1e-9, atol=1e-12)
        assert model.worker_quality_.loc[4, "n_labels"] == 0
        assert model.worker_quality_.loc[4, "flag"] == ""
        # So has a stranger.
        new = pd.DataFrame({"task": [0], "worker": [99], "label": [1]})
        posterior = model.priors_ * mean[:, 1]
        np.testing.assert_allclose(
            model.predict_proba(new).loc[0], posterior / posterior.sum(), rtol=1e-9, atol=1e-12
        )


# Convergence.


def test_warns_only_when_asked_to_converge_and_did_not():
    ann = bc.simulate.crowd(40, 6, 3, labels_per_task=4, seed=0).annotations
    with pytest.warns(ConvergenceWarning, match=r"stopped after n_iter=2 .*raise n_iter"):
        model = bc.DawidSkene(n_iter=2).fit(ann)
    assert not model.converged_
    # Warnings are errors here: none of these warns.
    assert not bc.DawidSkene(n_iter=2, tol=0.0).fit(ann).converged_
    assert bc.DawidSkene(n_iter=1000).fit(ann).converged_


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"init": "median"},
            "init='median': expected 'majority', 'random', a DataFrame or an array",
        ),
        ({"prior": "flat"}, "prior='flat': expected 'learned' or 'uniform'"),
        ({"zeros": "keep"}, "zeros='keep': expected 'floor' or 'skip'"),
        ({"smoothing": "none"}, "smoothing='none': expected one of flat, diagonal, pooled"),
        ({"pseudo_counts": -1.0}, "pseudo_counts=-1.0: expected a finite number >= 0"),
        ({"pseudo_counts": np.nan}, "pseudo_counts=nan: expected a finite number >= 0"),
        ({"pseudo_counts": np.inf}, "pseudo_counts=inf: expected a finite number >= 0"),
        ({"n_init": 0}, "n_init=0: expected at least 1"),
        ({"n_iter": 0}, "n_iter=0: expected at least 1"),
        ({"tol": -1e-3}, "tol=-0.001: expected a number >= 0"),
        ({"tol": np.nan}, "tol=nan: expected a number >= 0"),
        ({"init": np.eye(3)}, r"init has shape \(3, 3\); expected \(2, 2\) or \(2, 2, 2\)"),
        ({"init": np.ones(4)}, r"init has shape \(4,\); expected \(2, 2\) or \(2, 2, 2\)"),
        (
            {"init": np.array([[0.9, 0.1], [0.6, 0.6]])},
            "row of worker 0, true class 'b' sums to 1.2; expected probabilities that sum to 1",
        ),
        ({"init": np.array([[1.5, -0.5], [0.5, 0.5]])}, "row of worker 0, true class 'a'"),
        ({"init": np.full((2, 2, 2), np.nan)}, "row of worker 0, true class 'a' sums to nan"),
        ({"init": pd.DataFrame(np.eye(2))}, r"indexed \(worker, true\) with one column per class"),
        (
            {
                "init": pd.DataFrame(
                    np.eye(2),
                    index=pd.MultiIndex.from_product([["nobody"], ["a", "b"]]),
                    columns=["a", "b"],
                )
            },
            "the table has a complete matrix for none of the workers",
        ),
    ],
)
def test_bad_parameters(parameters, message):
    # set_params, since the constructor's types are checked in the tests.
    with pytest.raises(ValueError, match=message):
        bc.DawidSkene().set_params(**parameters).fit(PAPER)


def test_unknown_label_in_new_data():
    model = bc.DawidSkene().fit(PAPER)
    new = pd.DataFrame({"task": [1, 2], "worker": [0, 1], "label": ["a", "zebra"]})
    with pytest.raises(ValueError, match=r"row 2.*'zebra' is not one of the classes 'a', 'b'"):
        model.predict_proba(new)
    with pytest.raises(ValueError, match="label 'zebra' is not one of the fitted classes"):
        model.predict_proba(bc.Annotations.from_frame(new))


def test_new_annotations_with_fewer_or_other_classes_are_recoded():
    model = bc.DawidSkene().fit(table_crowd())
    new = bc.Annotations.from_frame(
        pd.DataFrame({"task": [1, 2], "worker": [0, 1], "label": ["c", "a"]}),
        classes=["unused", "c", "a"],
    )
    frame = model.predict_proba(new.to_frame())
    pd.testing.assert_frame_equal(model.predict_proba(new), frame)
    assert list(frame.columns) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("gold", "message"),
    [({7: "a"}, "1 of 1 gold task has no labels"), ({1: "z"}, "nobody chose the class 'z'")],
)
def test_gold_that_does_not_fit_is_reported_and_left_out(gold, message):
    with pytest.warns(bc.TruthWarning, match=message):
        est = bc.DawidSkene().fit(PAPER, gold)
    pd.testing.assert_frame_equal(est.probas_, bc.DawidSkene().fit(PAPER).probas_)
