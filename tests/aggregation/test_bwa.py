"""BWA against a program with loops, its objective, and the published accuracies."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation.bwa_iteration import Judgements, weighted_average

ROWS = [
    *("aabca", "bbbcb", "cccca", "aaabb", "bcbcb", "cacca", "aaaba", "bbacb"),
    *("ccbcc", "abaca", "bbbab", "cccbc", "aaaca", "bbbba", "accaa", "bbcab"),
]
SMALL = bc.Annotations.from_matrix([list(row) for row in ROWS])


def with_repeats():
    """Some workers judge a task twice: once the same, twice differently."""
    frame = SMALL.to_frame()
    again = frame.iloc[[3, 10, 22]].copy()
    again["label"] = [again["label"].iloc[0], "c", "a"]
    return bc.Annotations.from_frame(pd.concat([frame, again], ignore_index=True))


def looped(ann, n_iter, fixed=()):
    """z of each class and the objective of each iteration, judgement by judgement."""
    fixed = dict(fixed)
    named = {}
    for t, w, label in zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True):
        named.setdefault((int(t), int(w)), set()).add(int(label))
    z = np.zeros((ann.n_tasks, ann.n_classes))
    trace = np.zeros(n_iter)
    for k in range(ann.n_classes):
        votes = [(t, w, float(k in labels)) for (t, w), labels in named.items()]
        on_task = [[vote for vote in votes if vote[0] == t] for t in range(ann.n_tasks)]
        by_worker = [[vote for vote in votes if vote[1] == w] for w in range(ann.n_workers)]
        plain = np.array([np.mean([y for _, _, y in some]) for some in on_task])
        variance = np.mean([plain[t] * (1 - plain[t]) for t, _, _ in votes])
        b = 15 * variance * 4 * (1 - 1 / ann.n_classes)
        truth = {t: float(cls == k) for t, cls in fixed.items()}
        x = np.array([truth.get(t, plain[t]) for t in range(ann.n_tasks)])
        for i in range(n_iter):
            mu = x.mean()
            v = np.array(
                [
                    (15 + len(some)) / (b + sum((x[t] - y) ** 2 for t, _, y in some))
                    for some in by_worker
                ]
            )
            x = np.array(
                [
                    truth.get(
                        t,
                        (mu + sum(v[w] * y for _, w, y in some))
                        / (1 + sum(v[w] for _, w, _ in some)),
                    )
                    for t, some in enumerate(on_task)
                ]
            )
            trace[i] += objective(x, mu, v, b, by_worker)
        z[:, k] = x
    return z, trace


def objective(z, mu, v, b, by_worker):
    """Log density of votes and tasks, and of precisions by their logarithms."""
    value = -((z - mu) ** 2).sum() / 2
    for w, some in enumerate(by_worker):
        value += (15 + len(some)) / 2 * np.log(v[w])
        value -= v[w] / 2 * (b + sum((z[t] - y) ** 2 for t, _, y in some))
    return value


def accuracy(probas, truth):
    """Share of right labels, where ties count in part, as the authors count them."""
    values = probas.loc[truth.index]
    first = values.eq(values.max(axis=1), axis=0)
    shares = first.div(first.sum(axis=1), axis=0)
    return np.mean([shares.loc[task, label] for task, label in truth.items()])


# By hand.


def test_one_iteration_by_hand():
    # Two workers, two tasks, who agree on the first: z = (1, 1/2) for 'a'.
    ann = bc.Annotations.from_matrix([list("aa"), list("ab")])
    state = weighted_average(Judgements(ann), np.full(2, -1), n_iter=1, tol=0).state
    # b / 15 = 4 (1 - 1/2) x mean of (0, 0, 1/4, 1/4) = 1/4; errors are 1/4 each.
    v = 17 / (15 / 4 + 1 / 4)
    np.testing.assert_allclose(state.precision, v)
    np.testing.assert_allclose(state.mu, [3 / 4, 1 / 4])
    np.testing.assert_allclose(
        state.z[:, 0], [(3 / 4 + 2 * v) / (1 + 2 * v), (3 / 4 + v) / (1 + 2 * v)]
    )


def test_judgement_that_names_two_classes_counts_for_both():
    frame = pd.DataFrame({"task": [0, 0, 0], "worker": list("uuv"), "label": list("xyx")})
    votes = Judgements(bc.Annotations.from_frame(frame))
    assert votes.per_worker.tolist() == [1, 1]
    assert votes.shares().tolist() == [[1.0, 0.5]]
    np.testing.assert_allclose(votes.errors(np.array([[0.9, 0.3]])), [[0.01, 0.49], [0.01, 0.09]])


# Reference.


@pytest.mark.parametrize("n_iter", [1, 2, 30])
@pytest.mark.parametrize("crowd", [SMALL, with_repeats()], ids=["plain", "repeats"])
@pytest.mark.parametrize("fixed", [{}, {0: 2, 5: 1}], ids=["no gold", "gold"])
def test_iterations_are_those_of_the_loops(n_iter, crowd, fixed):
    gold = {crowd.tasks[t]: crowd.classes[cls] for t, cls in fixed.items()}
    est = bc.BWA(n_iter=n_iter, tol=0).fit(crowd, gold)
    z, trace = looped(crowd, n_iter, fixed)
    np.testing.assert_allclose(est.probas_, z / z.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(est.trace_, trace, rtol=1e-12)


@pytest.mark.parametrize(
    ("crowd", "published"),
    [
        # Accuracies that the authors print in the notebook beside their program.
        ("cf_amt", 0.86),
        ("sp_amt", 0.946),
        ("zencrowd_in", 0.763725),
        ("zencrowd_us", 0.910784),
        ("d_product", 0.919423),
    ],
)
def test_published_accuracy(development_crowd, crowd, published):
    ann, truth = development_crowd(crowd)
    assert accuracy(bc.BWA().fit(ann).probas_, truth) == pytest.approx(published, abs=1e-6)


@pytest.mark.parametrize(
    ("crowd", "accuracy_"),
    [
        ("bluebird", 0.759259),
        ("dog", 0.831475),
        ("rte", 0.9275),
        ("trec", 0.604396),
        ("web", 0.822465),
    ],
)
def test_published_accuracy_of_published_crowds(published, crowd, accuracy_):
    data = published(crowd)
    found = accuracy(bc.BWA().fit(data.annotations).probas_, data.truth)
    assert found == pytest.approx(accuracy_, abs=1e-3)  # ties, and tasks without truth


# Invariants.


@pytest.mark.parametrize("seed", range(5))
def test_objective_never_falls(seed):
    ann = bc.simulate.crowd(60, 9, 3, labels_per_task=4, accuracy=0.6, seed=seed).annotations
    est = bc.BWA(n_iter=60, tol=0).fit(ann)
    assert np.diff(est.trace_).min() > -1e-12 * abs(est.trace_[-1])  # rounding of a sum


def test_two_classes_are_one_question():
    ann = bc.simulate.one_coin_crowd(80, 9, 2, accuracy=0.7, seed=0).annotations
    # Classes that stop one by one would differ by the tolerance.
    state = weighted_average(Judgements(ann), np.full(80, -1), n_iter=20, tol=0).state
    np.testing.assert_allclose(state.z.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(state.precision[:, 0], state.precision[:, 1], rtol=1e-10)


def test_end_is_a_stationary_point():
    """No optimiser finds a better place near the one where the iteration ends."""
    ann = bc.Annotations.from_matrix([list(row) for row in ("aab", "abb", "bbb", "aaa", "bab")])
    votes = Judgements(ann)
    state = weighted_average(votes, np.full(5, -1), n_iter=5000, tol=1e-13).state
    y = np.array([[float(x == "a") for x in row] for row in ("aab", "abb", "bbb", "aaa", "bab")])
    plain = y.mean(axis=1)
    b = 15 * (plain * (1 - plain)).mean() * 2
    by_worker = [[(t, w, y[t, w]) for t in range(5)] for w in range(3)]

    def negative(x):
        return -objective(x[:5], x[5], np.exp(x[6:]), b, by_worker)

    start = np.concatenate([state.z[:, 0], state.mu[:1], np.log(state.precision[:, 0])])
    found = minimize(negative, start, options={"gtol": 1e-8})
    np.testing.assert_allclose(found.x, start, atol=1e-5)


def test_unanimous_crowd_is_certain():
    est = bc.BWA().fit(bc.Annotations.from_matrix([list("aaa"), list("bbb"), list("aaa")]))
    assert est.probas_.max(axis=1).min() > 0.999
    assert np.isfinite(est.precisions_).all(axis=None)


# Prediction and warnings.


def test_new_tasks_have_the_weights_of_the_fit():
    est = bc.BWA(n_iter=5000, tol=1e-13).fit(SMALL)
    np.testing.assert_allclose(est.predict_proba(SMALL), est.probas_, atol=1e-9)


def test_warns_when_it_has_not_settled():
    with pytest.warns(ConvergenceWarning, match="BWA stopped after n_iter=1"):
        est = bc.BWA(n_iter=1).fit(SMALL)
    assert not est.converged_
