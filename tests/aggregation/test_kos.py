"""KOS: messages against a reference with loops, the SVD variant against published errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation.kos import pass_messages
from bayescrowd.aggregation.ordinal import signed_pairs


def random_labels(rng, n_tasks, accuracy, n_classes=2, density=1.0):
    """Labels (-1 where none) of workers who are right with their accuracy, and the truth."""
    truth = rng.integers(n_classes, size=n_tasks)
    shape = (n_tasks, len(accuracy))
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=shape)) % n_classes
    labels = np.where(rng.random(shape) < accuracy, truth[:, None], wrong)
    return np.where(rng.random(shape) < density, labels, -1), truth


def annotations_of(labels, n_classes=2):
    tasks, workers = np.nonzero(labels >= 0)
    n_tasks, n_workers = labels.shape
    return bc.Annotations.from_codes(
        tasks, workers, labels[tasks, workers], tasks=n_tasks, workers=n_workers, classes=n_classes
    )


# By hand


def test_one_round_by_hand():
    # Tasks 0, 1 and workers u, v; A = [[+1, -1], [+1, +1]]; all first messages are 1.
    # x_0u = A_0v = -1, x_0v = +1, x_1u = +1, x_1v = +1;
    # y_0u = A_1u x_1u = 1, y_0v = A_1v x_1v = 1, y_1u = A_0u x_0u = -1, y_1v = A_0v x_0v = -1.
    pairs = signed_pairs(bc.Annotations.from_matrix([[1, 0], [1, 1]]))
    found = pass_messages(pairs, np.ones((4, 1)), n_iter=1, tol=0.0)
    assert found.state.to_worker[:, 0].tolist() == [-1, 1, 1, 1]
    assert found.state.to_task[:, 0].tolist() == [1, 1, -1, -1]
    assert found.trace == pytest.approx([np.sqrt(2)])


# Invariants


def test_labels_do_not_depend_on_row_order():
    labels, _ = random_labels(np.random.default_rng(0), 60, np.full(20, 0.8), density=0.6)
    frame = annotations_of(labels).to_frame()
    mixed = frame.sample(frac=1.0, random_state=1)
    pd.testing.assert_frame_equal(bc.KOS().fit(frame).probas_, bc.KOS().fit(mixed).probas_)


def test_settled_answers_do_not_depend_on_the_seed_or_on_the_names_of_workers():
    rng = np.random.default_rng(1)
    labels, _ = random_labels(rng, 200, rng.uniform(0.55, 0.9, 20), density=0.5)
    first = bc.KOS().fit(annotations_of(labels))
    others = [
        bc.KOS(init="random", seed=seed).fit(annotations_of(labels[:, rng.permutation(20)]))
        for seed in range(3)
    ]
    assert first.converged_
    for other in others:
        assert other.converged_
        pd.testing.assert_frame_equal(first.probas_, other.probas_)


@pytest.mark.parametrize("variant", ["messages", "svd"])
def test_swapping_the_two_classes_swaps_the_answer(variant):
    labels, _ = random_labels(np.random.default_rng(2), 80, np.linspace(0.5, 0.9, 15))
    one, other = (bc.KOS(variant=variant).fit(annotations_of(c)) for c in (labels, 1 - labels))
    assert (one.labels_.to_numpy() == 1 - other.labels_.to_numpy()).all()


def test_messages_never_overflow():
    # Unscaled messages grow by about the product of both degrees per round: 1e5 to the 400th.
    labels, truth = random_labels(np.random.default_rng(3), 60, np.full(1600, 0.55))
    est = bc.KOS(n_iter=400, tol=0).fit(annotations_of(labels))
    assert est.n_iter_ == 400
    assert np.isfinite(est.trace_).all()
    assert np.isfinite(est.weights_.to_numpy()).all()
    assert (est.labels_.to_numpy() == truth).mean() > 0.95


def test_no_message_no_nan():
    # Every task has one label: nothing can be said about anybody, and the labels stand.
    ann = bc.Annotations.from_matrix([["a", None], ["b", None], [None, "b"]])
    est = bc.KOS().fit(ann)
    assert est.labels_.to_list() == ["a", "b", "b"]
    assert (est.weights_.to_numpy() == 0).all()


# Reference


def messages_by_loops(signed, first, n_iter):
    """The algorithm as printed, with dictionaries, without scaling."""
    y = {edge: first[edge] for edge in zip(*np.nonzero(signed), strict=True)}
    for _ in range(n_iter):
        x = {(t, w): sum(signed[t, v] * y[t, v] for (s, v) in y if s == t and v != w) for t, w in y}
        y = {(t, w): sum(signed[s, w] * x[s, w] for (s, v) in x if v == w and s != t) for t, w in x}
    return np.array(
        [sum(signed[t, w] * y[t, w] for (s, w) in y if s == t) for t in range(len(signed))]
    )


@pytest.mark.parametrize("n_iter", [1, 2, 5])
def test_scores_agree_with_loops(n_iter):
    rng = np.random.default_rng(4)
    labels, _ = random_labels(rng, 14, np.full(7, 0.7), density=0.7)
    signed = np.where(labels < 0, 0, 2 * labels - 1)
    first = rng.normal(1, 1, signed.shape)
    expected = messages_by_loops(signed, first, n_iter)
    pairs = signed_pairs(annotations_of(labels))
    found = pass_messages(pairs, first[signed != 0][:, None], n_iter=n_iter, tol=0.0)
    ours = pairs.matrix(pairs.signs[:, 0] * found.state.to_task[:, 0]).sum(axis=1)
    ours = np.asarray(ours).ravel()
    np.testing.assert_allclose(ours / np.abs(ours).max(), expected / np.abs(expected).max())


def test_svd_variant_agrees_with_a_dense_centred_svd():
    rng = np.random.default_rng(5)
    labels, _ = random_labels(rng, 120, rng.uniform(0.4, 0.9, 50), density=0.5)
    signed = np.where(labels < 0, 0.0, 2 * labels - 1)
    left, _, right = np.linalg.svd(signed - signed.mean(axis=0))
    sign = 1 if (right[0][right[0] > 0] ** 2).sum() >= 0.5 else -1
    est = bc.KOS(variant="svd").fit(annotations_of(labels))
    assert (est.labels_.to_numpy() == (sign * left[:, 0] > 0)).all()
    weights = est.weights_.to_numpy()[:, 0]
    np.testing.assert_allclose(weights / np.linalg.norm(weights), sign * right[0], atol=1e-10)


@pytest.mark.parametrize(
    ("name", "published_percent"),
    # Zhang, Chen, Zhou and Jordan 2014, error table on real data, column KOS.
    [("bluebird", 11.11), ("rte", 39.75), ("trec", 51.96), ("dog", 31.72), ("web", 42.93)],
)
def test_published_errors_of_the_svd_variant(published, name, published_percent):
    data = published(name)
    probas = bc.KOS(variant="svd").fit(data.annotations).probas_
    percent = 100 * bc.metrics.error_rate(probas, data.truth)
    assert percent == pytest.approx(published_percent, abs=0.0051)


# Recovery


def test_spammers_and_hammers():
    # Karger, Oh and Shah's example: a worker is always right or guesses. With 10 labels per task
    # of which half are right by skill, the majority errs more than twice as often.
    rng = np.random.default_rng(6)
    n_tasks, n_workers = 3000, 300
    accuracy = np.where(rng.random(n_workers) < 0.4, 1.0, 0.5)
    labels, truth = random_labels(rng, n_tasks, accuracy, density=10 / n_workers)
    ann = annotations_of(labels)
    kos = np.mean(bc.KOS().fit_predict(ann).to_numpy() != truth)
    majority = np.mean(bc.MajorityVote().fit_predict(ann).to_numpy() != truth)
    noise = np.sqrt(majority / n_tasks)
    assert kos < majority / 2 - 3 * noise


def test_ordered_classes_are_recovered():
    rng = np.random.default_rng(7)
    labels, truth = random_labels(rng, 500, np.full(25, 0.7), n_classes=4)
    for variant in ("messages", "svd"):
        est = bc.KOS(variant=variant).fit(annotations_of(labels, n_classes=4))
        assert (est.labels_.to_numpy() == truth).mean() > 0.95


# Control


def test_control_shuffled_labels_are_guessed():
    rng = np.random.default_rng(8)
    labels, truth = random_labels(rng, 2000, np.full(15, 0.8))
    right = (bc.KOS().fit_predict(annotations_of(rng.permutation(labels))) == truth).mean()
    assert abs(right - 0.5) < 4 * 0.5 / np.sqrt(2000)


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"variant": "power"}, "variant='power': expected 'messages' or 'svd'"),
        ({"init": "zeros"}, "init='zeros': expected 'ones' or 'random'"),
        ({"n_iter": 0}, "n_iter=0"),
        ({"tol": -1.0}, "tol=-1.0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        bc.KOS().set_params(**parameters).fit(bc.Annotations.from_matrix([["a", "b"]]))


def test_too_few_rounds_warn():
    labels, _ = random_labels(np.random.default_rng(9), 50, np.full(20, 0.8))
    with pytest.warns(ConvergenceWarning, match="raise n_iter"):
        est = bc.KOS(n_iter=1).fit(annotations_of(labels))
    assert not est.converged_


def test_messages_that_never_settle_are_warned_of():
    # Spammers, many tasks: the strongest modes are 'one worker is unlike the others'.
    labels, _ = random_labels(np.random.default_rng(10), 400, np.full(6, 0.5))
    with pytest.warns(ConvergenceWarning, match="too few or too noisy"):
        est = bc.KOS().fit(annotations_of(labels))
    assert np.isfinite(est.weights_.to_numpy()).all()


def test_alternating_messages_by_hand():
    # Two workers contradict each other on n tasks: x_tu = A_tv y_tv and y_tu = (n - 1) times
    # A_tu A_tv = -1 times the other's y, so that (1, 1) is multiplied by 1 - n in each round.
    pairs = signed_pairs(bc.Annotations.from_matrix([[0, 1], [1, 0], [0, 1]]))
    found = pass_messages(pairs, np.ones((6, 1)), n_iter=3, tol=0.0)
    np.testing.assert_allclose(found.state.to_task, -1.0)
    np.testing.assert_allclose(found.trace, 2.0)
