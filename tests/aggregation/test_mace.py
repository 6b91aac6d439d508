"""MACE against sums on paper, brute force, integrals and crowd-kit."""

from math import exp, log

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import digamma
from scipy.stats import beta
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation import mace
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

ROWS = [
    *("aabca", "bbbcb", "cccca", "aaabb", "bcbcb", "cacca", "aaaba", "bbacb"),
    *("ccbcc", "abaca", "bbbab", "cccbc", "aaaca", "bbbba", "accaa", "bbcab"),
]
SMALL = bc.Annotations.from_matrix([list(row) for row in ROWS])


def simulated(seed, n_tasks, competences, strategies):
    """Everybody labels every task, as the model says."""
    rng = np.random.default_rng(seed)
    n_workers, n_classes = strategies.shape
    truth = rng.integers(n_classes, size=n_tasks)
    knows = rng.random((n_tasks, n_workers)) < competences
    spam = np.stack([rng.choice(n_classes, size=n_tasks, p=row) for row in strategies], axis=1)
    label = np.where(knows, truth[:, None], spam)
    return bc.Annotations.from_matrix(label, classes=range(n_classes)), truth


def confusion(competence, strategy):
    return competence * np.eye(len(strategy)) + (1 - competence) * np.tile(
        strategy, (len(strategy), 1)
    )


def brute_force(ann, confusions, priors):
    """log P(labels of the task, class), label by label."""
    scores = np.tile(np.log(priors), (ann.n_tasks, 1))
    for t, w, label in zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True):
        scores[t] += np.log(confusions[w][:, label])
    return scores


# By hand.


def test_known_and_spammed_labels_by_hand():
    # One worker, two classes. Of 6 expected labels 'a' 4 are right, of 5 'b' 2 are.
    counts = np.array([[4.0, 2.0], [3.0, 2.0]])  # [label, true]
    pairs = WorkerLabelPairs(bc.Annotations.from_matrix([["a"], ["b"]]))
    first = mace.tallies(pairs, counts, None)
    # Before anything is known: theta = 1/2 and xi = 1/2, so a right label is known 2 times in 3.
    np.testing.assert_allclose(first.knowing, [[11 - 4, 4]])
    np.testing.assert_allclose(first.strategy, [[6 - 8 / 3, 5 - 4 / 3]])
    # With theta = 0.6, xi = (1/4, 3/4): 'a' was known with 0.6 / 0.7, 'b' with 0.6 / 0.9.
    weights = mace.Weights(np.array([[0.4, 0.6]]), np.array([[0.25, 0.75]]), 0.0)
    later = mace.tallies(pairs, counts, weights)
    known = 4 * 6 / 7, 2 * 6 / 9
    np.testing.assert_allclose(later.knowing, [[11 - sum(known), sum(known)]])
    np.testing.assert_allclose(later.strategy, [[6 - known[0], 5 - known[1]]])


def test_one_iteration_by_hand():
    ann = bc.Annotations.from_matrix([list("aab"), list("bbb")])
    model = bc.MACE(method="em", smoothing=0.2, n_iter=1, tol=0.0).fit(ann)
    # Shares of (2/3, 1/3) and (0, 1). Worker 2 said 'b' twice, right 1/3 + 1 times, of which
    # two in three were known.
    known = (1 / 3 + 1) * 2 / 3
    competence = (known + 0.1) / (2 + 0.2)
    strategy = np.array([0.1, 2 - known + 0.1]) / (2 - known + 0.2)
    assert model.competences_[2] == pytest.approx(competence, rel=1e-12)
    np.testing.assert_allclose(model.strategies_.loc[2], strategy, rtol=1e-12)
    np.testing.assert_allclose(
        model.confusions_.loc[2], confusion(competence, strategy), rtol=1e-12
    )


def test_one_variational_iteration_by_hand():
    ann = bc.Annotations.from_matrix([list("aab"), list("bbb")])
    model = bc.MACE(n_iter=1, tol=0.0).fit(ann)
    known = (1 / 3 + 1) * 2 / 3
    knowing = exp(digamma(known + 0.5) - digamma(3))
    spamming = exp(digamma(2 - known + 0.5) - digamma(3))
    says_b = exp(digamma(10 + 2 - known) - digamma(20 + 2 - known))
    of_b = model._weighted_rows.at(np.array([2]), np.array([1]))[0]
    assert of_b[1] == pytest.approx(knowing + spamming * says_b, rel=1e-12)
    assert of_b[0] == pytest.approx(spamming * says_b, rel=1e-12)


# Closed form.


@pytest.mark.parametrize("prior", ["uniform", "learned"])
def test_posterior_and_log_likelihood_are_the_models(prior):
    model = bc.MACE(method="em", prior=prior, n_iter=9, tol=0.0).fit(SMALL)
    confusions = [
        confusion(model.competences_[w], model.strategies_.loc[w].to_numpy()) for w in range(5)
    ]
    np.testing.assert_allclose(model.confusions_, np.concatenate(confusions), rtol=1e-9)
    scores = brute_force(SMALL, confusions, model.priors_)
    total = np.logaddexp.reduce(scores, axis=1)
    np.testing.assert_allclose(model.probas_, np.exp(scores - total[:, None]), rtol=1e-9)
    assert model.log_likelihood_ == pytest.approx(total.sum(), rel=1e-12)


def test_the_end_of_em_is_a_maximum():
    model = bc.MACE(method="em", n_iter=5_000, tol=1e-14).fit(SMALL)
    priors = np.full(3, 1 / 3)

    def objective(worker, competence, strategy):
        confusions = [
            confusion(model.competences_[w], model.strategies_.loc[w].to_numpy()) for w in range(5)
        ]
        confusions[worker] = confusion(competence, strategy)
        likelihood = np.logaddexp.reduce(brute_force(SMALL, confusions, priors), axis=1).sum()
        density = 0.0
        for w in range(5):
            theta = competence if w == worker else model.competences_[w]
            xi = strategy if w == worker else model.strategies_.loc[w].to_numpy()
            density += 0.1 / 3 * (log(theta) + log(1 - theta) + np.log(xi).sum())
        return likelihood + density

    for worker in range(5):
        competence, strategy = model.competences_[worker], model.strategies_.loc[worker].to_numpy()
        reached = objective(worker, competence, strategy)
        assert reached == pytest.approx(model.trace_[-1], rel=1e-9)
        for move in (-1e-3, 1e-3):
            odds = competence / (1 - competence) * exp(move)
            assert objective(worker, odds / (1 + odds), strategy) < reached + 1e-9
            tilted = strategy * np.exp(move * np.array([1, -1, 0]))
            assert objective(worker, competence, tilted / tilted.sum()) < reached + 1e-9


def test_the_variational_objective_bounds_the_evidence():
    # One worker, two classes, two tasks of known class; a flat prior on the competence.
    ann = bc.Annotations.from_matrix([["a"], ["b"]])
    gold = {0: "a", 1: "a"}
    model = bc.MACE(competence_prior=1.0, tol=1e-12, n_iter=1000).fit(ann, gold)

    def joint(strategy, competence):
        right, wrong = competence + (1 - competence) * strategy, (1 - competence) * (1 - strategy)
        return beta.pdf(strategy, 10, 10) * 0.25 * right * wrong

    evidence = dblquad(joint, 0, 1, 0, 1)[0]
    assert model.trace_[-1] < log(evidence)
    assert model.trace_[-1] > log(evidence) - 0.5  # mean-field on three hidden quantities
    # Control: the plug-in likelihood is no such bound.
    assert model.log_likelihood_ > log(evidence)


def test_a_spammer_has_no_say_on_new_tasks():
    ann, _ = simulated(1, 300, np.array([0.9, 0.9, 0.9, 0.0]), np.full((4, 2), 0.5))
    model = bc.MACE(method="em", smoothing=0.0).fit(ann)
    new = bc.Annotations.from_matrix([[0, 0, 1, 1], [0, 1, None, 1]], classes=[0, 1])
    without = new.select_workers([0, 1, 2])
    np.testing.assert_allclose(model.predict_proba(new), model.predict_proba(without), atol=0.1)
    confusions = model.confusions_.to_numpy().reshape(4, 2, 2)
    scores = brute_force(new, confusions, [0.5, 0.5])
    expected = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-9)


# Invariants.


@pytest.mark.parametrize("method", ["em", "vb"])
@pytest.mark.parametrize("prior", ["uniform", "learned"])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_falls(method, prior, seed):
    data = bc.simulate.crowd(60, 12, 2 + seed, labels_per_task=4, accuracy=0.6, seed=seed)
    gold = data.truth[:6] if seed else None
    model = bc.MACE(method=method, prior=prior, n_iter=60, tol=0.0).fit(data.annotations, gold)
    assert np.diff(model.trace_).min() >= -1e-10 * abs(model.trace_[-1])


@pytest.mark.parametrize("method", ["em", "vb"])
def test_predicting_the_tasks_of_the_fit_repeats_it(method):
    model = bc.MACE(method=method).fit(SMALL)
    np.testing.assert_allclose(model.predict_proba(SMALL), model.probas_, rtol=1e-9)


def test_more_starts_never_end_lower():
    # A crowd with several maxima.
    data = bc.simulate.crowd(40, 8, 3, labels_per_task=3, accuracy=0.4, seed=15)
    ends = [
        bc.MACE(method="em", n_init=n, tol=1e-9, n_iter=2_000).fit(data.annotations).trace_[-1]
        for n in (1, 2, 6)
    ]
    assert ends == sorted(ends)
    assert ends[-1] > ends[0] + 0.5


def test_two_thousand_labels_on_a_task_do_not_underflow():
    rng = np.random.default_rng(0)
    n = 2_000
    task = np.concatenate([np.zeros(n, dtype=int), np.arange(n) % 40 + 1])
    worker = np.tile(np.arange(n), 2)
    first = np.where(rng.random(n) < 0.55, 2, rng.integers(3, size=n))
    label = np.concatenate([first, task[n:] % 3])
    ann = bc.Annotations.from_codes(task, worker, label, tasks=41, workers=n, classes=3)
    for method in ("em", "vb"):
        model = bc.MACE(method=method, n_iter=500).fit(ann)
        assert np.isfinite(model.trace_).all()
        assert np.isfinite(model.probas_).all(axis=None)
        assert model.labels_[0] == 2


@pytest.mark.parametrize("method", ["em", "vb"])
def test_a_worker_without_labels_changes_nothing(method):
    alone = bc.MACE(method=method).fit(SMALL)
    wide = bc.Annotations.from_codes(
        SMALL.task_codes, SMALL.worker_codes, SMALL.label_codes, tasks=16, workers=6, classes=3
    )
    model = bc.MACE(method=method).fit(wide)
    np.testing.assert_allclose(model.trace_, alone.trace_, rtol=1e-12)
    np.testing.assert_allclose(model.competences_[:5], alone.competences_, rtol=1e-12)
    assert model.competences_[5] == pytest.approx(alone.competences_.mean())


def test_certain_workers_need_no_smoothing():
    ann = bc.Annotations.from_matrix([list("aa"), list("bb")])
    model = bc.MACE(method="em", smoothing=0.0).fit(ann)
    np.testing.assert_allclose(model.competences_, 1, atol=1e-3)
    np.testing.assert_allclose(model.confusions_.groupby("worker").sum(), 2 * np.ones((2, 2)) / 2)
    assert np.isfinite(model.trace_).all()


# Reference: crowd-kit 1.4.2, MACE(n_restarts=1, n_iter=400, method=...).fit(SMALL.to_frame()). Its
# smoothing is 0.01 / K. Workers and labels must first appear in sorted order, as here: crowd-kit
# 1.4.2 assigns expected counts in sorted order to parameters in order of appearance.


@pytest.mark.parametrize(
    ("method", "competences", "probas"),
    [
        (
            "em",
            [0.99938, 0.633452, 0.536745, 0.002321, 0.59909],
            [[0.999948, 0.000041, 0.000011], [0.998267, 0.000081, 0.001652]],
        ),
        (
            "vb",
            [0.960274, 0.617055, 0.520071, 0.027152, 0.605778],
            [[0.999187, 0.000655, 0.000158], [0.975401, 0.000857, 0.023742]],
        ),
    ],
)
def test_agrees_with_crowd_kit(method, competences, probas):
    model = bc.MACE(method=method, smoothing=0.01, n_iter=5_000, tol=1e-14).fit(SMALL)
    weights = model._weighted_rows.at(np.arange(5), np.zeros(5, dtype=int))
    np.testing.assert_allclose(weights[:, 0] - weights[:, 1], competences, atol=2e-6)
    np.testing.assert_allclose(model.probas_.loc[[0, 14]], probas, atol=2e-6)


# Recovery.


@pytest.mark.parametrize("method", ["em", "vb"])
def test_recovers_competences_and_strategies(method):
    competences = np.linspace(0.1, 0.9, 9)
    strategies = np.random.default_rng(5).dirichlet([5.0, 3.0, 2.0], size=9)
    n_tasks = 3_000
    ann, truth = simulated(0, n_tasks, competences, strategies)
    # With the classes known: Fisher's information of a competence when the strategy is known is
    # the sum over (k, l) of (dP/dtheta)^2 / P; not knowing the strategy costs more, allowed for
    # by two standard errors on top of four for nine numbers.
    matrices = np.stack([confusion(*pair) for pair in zip(competences, strategies, strict=True)])
    slopes = np.eye(3) - strategies[:, None, :]
    information = n_tasks / 3 * (slopes**2 / matrices).sum(axis=(1, 2))

    def worst(model):
        return np.abs((model.competences_ - competences) * np.sqrt(information)).max()

    model = bc.MACE(method=method).fit(ann)
    assert worst(model) < 6
    spammed = n_tasks * (1 - competences)
    standard_error = np.sqrt(strategies * (1 - strategies) / spammed[:, None])
    # Half of the spammed labels of the best workers hide among the known ones.
    assert np.abs((model.strategies_ - strategies) / standard_error).max(axis=None) < 6
    assert (model.labels_ == truth).mean() > 0.97
    # Control: shuffled labels.
    frame = ann.to_frame()
    frame["label"] = np.random.default_rng(1).permutation(frame["label"].to_numpy())
    control = bc.MACE(method=method, n_iter=50, tol=0.0).fit(frame)
    assert worst(control) > 20


def test_sees_through_spammers_who_agree_by_habit():
    """Spammers who mostly say the same outvote the few who know; MACE learns who spams."""
    competences = np.array([0.8] * 3 + [0.0] * 6)
    strategies = np.vstack([np.full((3, 2), 0.5), np.tile([0.9, 0.1], (6, 1))])
    ann, truth = simulated(3, 500, competences, strategies)
    errors = [(model.fit(ann).labels_ != truth).mean() for model in (bc.MACE(), bc.MajorityVote())]
    # The three who know: right unless two of them guess wrongly at least.
    assert errors[0] < 0.05
    assert errors[1] > 0.3


# Published crowds.


@pytest.mark.parametrize(
    ("name", "method", "error"),
    [
        ("bluebird", "em", 0.1111),
        ("bluebird", "vb", 0.1389),
        ("rte", "em", 0.0713),
        ("rte", "vb", 0.0738),
        ("dog", "em", 0.1673),
        ("dog", "vb", 0.1698),
    ],
)
def test_errors_on_published_crowds(published, name, method, error):
    data = published(name)
    model = bc.MACE(method=method).fit(data.annotations)
    assert model.converged_
    # crowd-kit has the same, to one task, where its order of workers is right.
    measured = bc.metrics.error_rate(model.probas_, data.truth)
    assert measured == pytest.approx(error, abs=2.1 / len(data.truth))


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "gibbs"}, "method='gibbs': expected 'vb' or 'em'"),
        ({"prior": "flat"}, "prior='flat': expected 'learned' or 'uniform'"),
        ({"smoothing": -1.0}, "smoothing=-1.0: expected a finite number >= 0"),
        ({"smoothing": np.inf}, "smoothing=inf: expected a finite number >= 0"),
        ({"competence_prior": 0.0}, "competence_prior=0.0: expected a finite number above 0"),
        ({"strategy_prior": np.nan}, "strategy_prior=nan: expected a finite number above 0"),
        ({"n_init": 0}, "n_init=0: expected at least 1"),
        ({"n_iter": 0}, "n_iter=0: expected at least 1"),
        ({"tol": -1.0}, "tol=-1.0: expected a number >= 0"),
    ],
)
def test_bad_parameters(parameters, message):
    # set_params, since the constructor's types are checked in the tests.
    with pytest.raises(ValueError, match=message):
        bc.MACE().set_params(**parameters).fit(SMALL)


def test_stopping_early_warns():
    with pytest.warns(ConvergenceWarning, match="MACE stopped after n_iter=2 iterations"):
        model = bc.MACE(n_iter=2, tol=1e-12).fit(SMALL)
    assert not model.converged_
