"""Zero-based skill, counted on paper, against Wawa and crowd-kit."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc

ROWS = [
    *("aabca", "bbbcb", "cccca", "aaabb", "bcbcb", "cacca", "aaaba", "bbacb"),
    *("ccbcc", "abaca", "bbbab", "cccbc", "aaaca", "bbbba", "accaa", "bbcab"),
]
SMALL = bc.Annotations.from_matrix([list(row) for row in ROWS])

# Votes: a, b, b, a.
PAPER = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("abb"), list("baa")])


# By hand.


def test_a_full_step_and_a_half_step_by_hand():
    # Agreements with the vote: 2, 4 and 3 of 4. Skills start at 1/2.
    full = bc.ZeroBasedSkill(n_iter=1, tol=0.0).fit(PAPER)
    np.testing.assert_allclose(full.skills_, [0.5, 1.0, 0.75], rtol=1e-12)
    np.testing.assert_allclose(full.trace_, [(0 + 0.5**2 + 0.25**2) / 3], rtol=1e-12)
    half = bc.ZeroBasedSkill(learning_rate=0.5, n_iter=2, tol=0.0).fit(PAPER)
    np.testing.assert_allclose(half.skills_, [0.5, 0.875, 0.6875], rtol=1e-12)
    np.testing.assert_allclose(half.probas_.loc[0, "a"], 1.375 / 2.0625, rtol=1e-12)


def test_the_rate_falls_by_hand():
    # The rate is 1/2 in the first iteration, 1/8 in the second and third, 1/32 in the fourth.
    model = bc.ZeroBasedSkill(
        learning_rate=0.5, steps_to_reduce=2, reduction=0.25, n_iter=4, tol=0.0
    ).fit(PAPER)
    left = (1 - 1 / 2) * (1 - 1 / 8) ** 2 * (1 - 1 / 32)
    np.testing.assert_allclose(model.skills_, [0.5, 1 - 0.5 * left, 0.75 - 0.25 * left])


def test_a_tie_counts_half_by_hand():
    ann = bc.Annotations.from_matrix([list("ab"), list("aa")])
    model = bc.ZeroBasedSkill(n_iter=1, tol=0.0).fit(ann)
    np.testing.assert_allclose(model.skills_, [0.75, 0.75])
    assert model.n_ties_ == 1


# Closed form.


def test_the_first_iteration_is_wawa():
    data = bc.simulate.crowd(80, 9, 3, labels_per_task=4, seed=3)
    model = bc.ZeroBasedSkill(n_iter=1, tol=0.0).fit(data.annotations)
    wawa = bc.Wawa().fit(data.annotations)
    np.testing.assert_allclose(model.skills_, wawa.skills_, rtol=1e-12)
    np.testing.assert_allclose(model.probas_, wawa.probas_, rtol=1e-12)


def test_the_end_is_a_vote_weighted_by_agreement_with_it():
    data = bc.simulate.crowd(80, 9, 3, labels_per_task=4, accuracy=0.5, seed=3)
    model = bc.ZeroBasedSkill().fit(data.annotations)
    assert model.converged_
    frame = data.annotations.to_frame()
    first = model.probas_.ge(model.probas_.max(axis=1) - 1e-9, axis=0)
    share = first.div(first.sum(axis=1), axis=0)
    agrees = [share.loc[task, label] for task, label in zip(frame.task, frame.label, strict=True)]
    agreement = frame.assign(agrees=agrees).groupby("worker")["agrees"].mean()
    np.testing.assert_allclose(model.skills_, agreement, atol=1e-5)


# Invariants.


def test_gold_stands_in_for_the_vote():
    gold = {0: "b", 1: "b", 2: "b", 3: "b"}
    model = bc.ZeroBasedSkill().fit(PAPER, gold)
    np.testing.assert_allclose(model.skills_, [0.5, 0.5, 0.75])
    assert (model.labels_ == "b").all()
    # New tasks are voted on with these skills.
    new = bc.Annotations.from_matrix([["a", None, "b"]])
    np.testing.assert_allclose(model.predict_proba(new), [[0.4, 0.6]])


def test_strangers_have_the_mean_skill():
    model = bc.ZeroBasedSkill().fit(PAPER)
    new = bc.Annotations.from_matrix([["a", "b"]]).to_frame().assign(worker=["stranger", 1])
    np.testing.assert_allclose(model.predict_proba(new), [[0.75 / 1.75, 1 / 1.75]])


# Reference: crowd-kit 1.4.2, ZeroBasedSkill().fit(SMALL.to_frame()).skills_ (its `predict` raises
# under scikit-learn 1.9).


def test_agrees_with_crowd_kit():
    model = bc.ZeroBasedSkill().fit(SMALL)
    np.testing.assert_allclose(model.skills_, [1.0, 0.75, 0.6875, 0.3125, 0.75], rtol=1e-9)


# Recovery.


def test_spammers_lose_their_say():
    """Seven workers at 0.75 and eight guessing among four classes."""
    accuracy = np.array([0.75] * 7 + [0.25] * 8)
    data = bc.simulate.one_coin_crowd(1_000, 15, 4, accuracy=accuracy, seed=2)
    model = bc.ZeroBasedSkill().fit(data.annotations)
    # Agreement with nearly true labels; the vote leans to the voter by less than its error, which
    # is added to four standard errors.
    error = (model.labels_ != data.truth).mean()
    bound = 4 * np.sqrt(accuracy * (1 - accuracy) / 1_000) + error
    assert (np.abs(model.skills_ - accuracy) < bound).all()
    plain = (bc.MajorityVote().fit(data.annotations).labels_ != data.truth).mean()
    assert plain - error > 2 * np.sqrt((plain + error) / 1_000)
    # Control: shuffled labels.
    frame = data.annotations.to_frame()
    frame["label"] = np.random.default_rng(0).permutation(frame["label"].to_numpy())
    control = bc.ZeroBasedSkill(n_iter=20, tol=0.0).fit(frame)
    assert not (np.abs(control.skills_ - accuracy) < bound).all()


# Published crowds.


@pytest.mark.parametrize(("name", "error"), [("bluebird", 0.2407), ("rte", 0.0787)])
def test_errors_on_published_crowds(published, name, error):
    data = published(name)
    model = bc.ZeroBasedSkill().fit(data.annotations)
    measured = bc.metrics.error_rate(model.probas_, data.truth)
    assert measured == pytest.approx(error, abs=2.1 / len(data.truth))


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning_rate": 0.0}, r"learning_rate=0.0: expected a number in \(0, 1\]"),
        ({"learning_rate": 1.5}, r"learning_rate=1.5: expected a number in \(0, 1\]"),
        ({"reduction": 0.0}, r"reduction=0.0: expected a number in \(0, 1\]"),
        ({"steps_to_reduce": 0}, "steps_to_reduce=0: expected at least 1"),
        ({"n_iter": 0}, "n_iter=0: expected at least 1"),
        ({"tol": -1.0}, "tol=-1.0: expected a number >= 0"),
    ],
)
def test_bad_parameters(parameters, message):
    # set_params, since the constructor's types are checked in the tests.
    with pytest.raises(ValueError, match=message):
        bc.ZeroBasedSkill().set_params(**parameters).fit(PAPER)


def test_stopping_early_warns():
    with pytest.warns(ConvergenceWarning, match="ZeroBasedSkill stopped after n_iter=1"):
        model = bc.ZeroBasedSkill(n_iter=1).fit(PAPER)
    assert not model.converged_
