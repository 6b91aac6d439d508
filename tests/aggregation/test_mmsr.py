"""M-MSR against counts on paper, exact rank-one matrices, adversaries and crowd-kit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation import mmsr

ROWS = [
    *("aabca", "bbbcb", "cccca", "aaabb", "bcbcb", "cacca", "aaaba", "bbacb"),
    *("ccbcc", "abaca", "bbbab", "cccbc", "aaaca", "bbbba", "accaa", "bbcab"),
]
SMALL = bc.Annotations.from_matrix([list(row) for row in ROWS])


def pairs_of(matrix, seen):
    """The entries of a matrix where `seen`, as `agreement` would give them."""
    first, second = np.nonzero(seen)
    offsets = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    return mmsr.WorkerPairs(first, second, np.ones(len(first)), matrix[first, second], offsets)


def adversarial_crowd(seed, *, n_adversaries):
    """A sparse one-coin crowd with a cabal that tells the same lies.

    Forty workers, of whom each task asks twelve; one busy pair has only each other.
    """
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = 600, 40
    accuracy = rng.uniform(0.6, 0.95, n_workers)
    truth = rng.integers(2, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), 12)
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :12].ravel()
    label = np.where(rng.random(len(task)) < accuracy[worker], truth[task], 1 - truth[task])
    lies = np.where(rng.random(n_tasks) < 0.8, 1 - truth, truth)
    label = np.where(worker < n_adversaries, lies[task], label)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    # The pair with one neighbour each: the smallest degree says nothing about the others.
    aside = pd.DataFrame({"task": [n_tasks] * 2, "worker": [98, 99], "label": [0, 0]})
    return pd.concat([frame, aside]), truth, accuracy


# By hand.


def test_agreement_by_hand():
    ann = bc.Annotations.from_matrix(
        [["a", "a", None], ["b", "c", "c"], ["c", "c", "a"], ["a", "a", None]]
    )
    pairs = mmsr.agreement(ann)
    np.testing.assert_array_equal(pairs.first, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(pairs.second, [1, 2, 0, 2, 0, 1])
    np.testing.assert_array_equal(pairs.n_common, [4, 2, 4, 2, 2, 2])
    # Shares 3/4, 0, 1/2 and (3 C - 1) / 2.
    np.testing.assert_allclose(pairs.value, [0.625, -0.5, 0.625, 0.25, -0.5, 0.25])
    np.testing.assert_array_equal(pairs.degree, [2, 2, 2])


def test_trimmed_means_by_hand():
    seen = ~np.eye(6, dtype=bool)
    seen[2:] = False
    pairs = pairs_of(np.zeros((6, 6)), seen)
    values = np.array([9.0, 1.0, 5.0, 2.0, 3.0, 8.0, 1.0, 7.0, 6.0, 4.0])
    present = np.array([4.0, 0.5, 3.0, 3.0, 3.0, 3.0])
    # Worker 0: 1, 2, 3 are below and 5, 9 above the present 4; one of each end goes: 2, 3, 5.
    # Worker 1: none of 1, 4, 6, 7, 8 is below 0.5; two of the others go: 1, 4, 6.
    means = mmsr._trimmed_means(pairs, values, present, np.array([1, 2, 0, 0, 0, 0]))
    np.testing.assert_allclose(means, [10 / 3, 11 / 3, 3, 3, 3, 3])
    # Trimming everything leaves the present value.
    means = mmsr._trimmed_means(pairs, values, present, np.full(6, 9))
    np.testing.assert_allclose(means[0], 4.0)


def test_trimming_by_degree_by_hand():
    seen = np.zeros((9, 9), dtype=bool)
    seen[0, 1:] = seen[1:, 0] = True
    seen[1, 2:6] = seen[2:6, 1] = True
    pairs = pairs_of(np.zeros((9, 9)), seen)
    np.testing.assert_array_equal(pairs.degree, [8, 5, 2, 2, 2, 2, 1, 1, 1])
    np.testing.assert_array_equal(
        mmsr._trimmed_neighbours(pairs, "own"), [3, 1, 0, 0, 0, 0, 0, 0, 0]
    )
    np.testing.assert_array_equal(mmsr._trimmed_neighbours(pairs, "common"), np.zeros(9))
    np.testing.assert_array_equal(mmsr._trimmed_neighbours(pairs, 2), np.full(9, 2))


# Closed form.


@pytest.mark.parametrize("n_corrupt", [0, 1, 2])
def test_completes_a_rank_one_matrix_with_corrupt_rows(n_corrupt):
    """The paper's theorem: at most F corrupt neighbours each, F trimmed, recovery exact."""
    rng = np.random.default_rng(1)
    skills = rng.uniform(0.2, 0.9, 15)
    matrix = np.outer(skills, skills)
    matrix[:n_corrupt] = rng.uniform(0.0, 1.0, (n_corrupt, 15))
    matrix[:, :n_corrupt] = matrix[:n_corrupt].T
    seen = ~np.eye(15, dtype=bool)
    seen[[4, 9, 5, 12], [9, 4, 12, 5]] = False
    pairs = pairs_of(matrix, seen)

    def complete(trim):
        found = mmsr.complete(pairs, trim=np.full(15, trim), floor=1e-3, n_iter=5_000, tol=1e-12)
        honest = found.state.u[n_corrupt:]
        # The common factor between u and its twin is settled by the corrupt rows as well.
        return np.abs(honest / honest[0] * skills[n_corrupt] - skills[n_corrupt:]).max()

    assert complete(trim=2) < 1e-8
    if n_corrupt:  # control: without trimming
        assert complete(trim=0) > 1e-3


def test_signs_in_every_part_of_the_crowd():
    skills = np.array([0.8, 0.7, -0.6, 0.5, 0.9, -0.4, 0.6, 0.3])
    seen = np.zeros((8, 8), dtype=bool)
    seen[:4, :4] = seen[4:7, 4:7] = True  # worker 7 is alone
    np.fill_diagonal(seen, False)
    signs = mmsr._signs(pairs_of(np.outer(skills, skills), seen))
    np.testing.assert_array_equal(signs[:7], np.sign(skills[:7]))


def test_probas_are_the_one_coin_posterior():
    model = bc.MMSR().fit(SMALL)
    right = (2 * model.skills_.to_numpy() + 1) / 3
    odds = np.log(2 * right / (1 - right))
    for task, row in enumerate(ROWS):
        scores = np.array([sum(odds[w] for w in range(5) if row[w] == k) for k in "abc"])
        expected = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(model.probas_.loc[task], expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(SMALL), model.probas_, rtol=1e-9)


# Invariants.


def test_workers_without_company_have_the_mean_skill():
    frame = SMALL.to_frame()
    extra = pd.DataFrame({"task": [77], "worker": [9], "label": ["b"]})
    alone = bc.MMSR().fit(pd.concat([frame, extra]))
    assert alone.skills_[9] == pytest.approx(alone.skills_[:5].mean(), abs=1e-9)
    assert alone.labels_[77] == "b"
    # Nobody has company: a vote.
    model = bc.MMSR().fit(bc.Annotations.from_matrix([["a", None], [None, "b"]]))
    assert model.labels_.to_list() == ["a", "b"]
    assert model.converged_


def test_gold_decides_its_own_tasks():
    model = bc.MMSR().fit(SMALL, gold={0: "c"})
    assert model.probas_.loc[0, "c"] == 1
    np.testing.assert_allclose(model.skills_, bc.MMSR().fit(SMALL).skills_, rtol=1e-12)


def test_the_order_of_workers_does_not_matter():
    frame, *_ = adversarial_crowd(1, n_adversaries=8)
    one = bc.MMSR().fit(frame)
    other = bc.MMSR().fit(frame.assign(worker=1_000 - frame["worker"]))
    np.testing.assert_allclose(one.skills_, other.skills_[::-1], atol=1e-5)


# Reference: crowd-kit 1.4.2, MMSR().fit(SMALL.to_frame()).skills_, which are weights
# log((K - 1) p / (1 - p)). It starts at random, and trimmed means have more than one fixed point:
# they agree to 1e-4.


def test_agrees_with_crowd_kit():
    model = bc.MMSR(trim="common", tol=1e-12).fit(SMALL)
    right = (2 * model.skills_ + 1) / 3
    expected = [2.302585, 1.854171, 1.527578, -0.916291, 1.951202]
    np.testing.assert_allclose(np.log(2 * right / (1 - right)), expected, rtol=1e-4)


def test_agrees_with_crowd_kit_on_bluebird(published):
    model = bc.MMSR(trim="common", tol=1e-10).fit(published("bluebird").annotations)
    weights = np.log((1 + model.skills_) / (1 - model.skills_))
    expected = [1.59980438, 0.69618108, -0.74676931, -1.12147916, -0.5090062]
    np.testing.assert_allclose(weights[:5], expected, rtol=1e-4)


# Recovery.


def test_recovers_skills():
    accuracy = np.linspace(0.35, 0.9, 12)
    n_tasks = 4_000
    data = bc.simulate.one_coin_crowd(n_tasks, 12, 3, accuracy=accuracy, seed=4)
    skills = (3 * accuracy - 1) / 2
    model = bc.MMSR().fit(data.annotations)
    # An entry of the matrix has standard error 3/2 sqrt(C (1 - C) / n) < 0.75 / sqrt(n), a ratio
    # by the neighbour's skill more; a trimmed mean of eleven is no worse than one ratio by a
    # typical neighbour. Four of them.
    bound = 4 * 0.75 / np.sqrt(n_tasks) / np.median(skills)
    assert np.abs(model.skills_ - skills).max() < bound
    frame = data.annotations.to_frame()
    frame["label"] = np.random.default_rng(0).permutation(frame["label"].to_numpy())
    control = bc.MMSR(n_iter=50, tol=0.0).fit(frame)
    assert np.abs(control.skills_ - skills).max() > bound


def test_withstands_a_cabal():
    """A quarter of the crowd tells the same lies; the smallest degree must not stop trimming."""
    errors = {"own": 0, "common": 0, "vote": 0}
    for seed in range(4):
        frame, truth, _ = adversarial_crowd(seed, n_adversaries=10)
        for name in errors:
            model = bc.MajorityVote() if name == "vote" else bc.MMSR(trim=name)
            labels = model.fit(frame).labels_[:600]
            errors[name] += int((labels != truth).sum())
    assert errors["own"] < 0.5 * errors["vote"]
    assert errors["own"] < errors["common"]


# Published crowds.


@pytest.mark.parametrize(
    ("name", "error"), [("bluebird", 0.2870), ("rte", 0.0725), ("dog", 0.1747)]
)
def test_errors_on_published_crowds(published, name, error):
    data = published(name)
    model = bc.MMSR().fit(data.annotations)
    assert model.converged_
    # crowd-kit's MMSR() has 28.70, 14.25 (it takes the wrong sign for 64 of rte's 164 workers)
    # and 17.22 %.
    measured = bc.metrics.error_rate(model.probas_, data.truth)
    assert measured == pytest.approx(error, abs=3.1 / len(data.truth))


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"trim": "all"}, "trim='all': expected at least 0 .*, 'own' or 'common'"),
        ({"trim": -1}, "trim=-1: expected at least 0"),
        ({"n_iter": 0}, "n_iter=0: expected at least 1"),
        ({"tol": -1.0}, "tol=-1.0: expected a number >= 0"),
    ],
)
def test_bad_parameters(parameters, message):
    # set_params, since the constructor's types are checked in the tests.
    with pytest.raises(ValueError, match=message):
        bc.MMSR().set_params(**parameters).fit(SMALL)


def test_stopping_early_warns():
    with pytest.warns(ConvergenceWarning, match="MMSR stopped after n_iter=1 iterations"):
        model = bc.MMSR(n_iter=1).fit(SMALL)
    assert not model.converged_
