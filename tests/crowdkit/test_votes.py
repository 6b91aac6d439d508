"""Votes with crowd-kit's names: what crowd-kit's tests expect, and crowd-kit in the same run."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.crowdkit import GoldMajorityVote, MajorityVote, Wawa, ZeroBasedSkill


def skills(**by_worker):
    return pd.Series(by_worker, name="skill", dtype=float).rename_axis("worker")


TOY_SKILLS = skills(w1=0.6, w2=0.8, w3=1.0, w4=0.4, w5=0.8)
ANIMAL_SKILLS = skills(brief=1, calm=1, careless=2 / 3, fraudster=1 / 3, quick=1, steady=1)


def yes_shares(**by_task):
    yes = pd.Series(by_task, dtype=float).rename_axis("task")
    return pd.DataFrame({"no": 1 - yes, "yes": yes}).rename_axis(columns="label")


TOY_SHARES = yes_shares(t1=0.5, t2=0.6, t3=0.4, t4=1, t5=0.2)
# votes weighted by TOY_SKILLS: t1 is (0.8 + 0.4) / 2.6
TOY_WEIGHTED = yes_shares(t1=1.2 / 2.6, t2=2.4 / 3.6, t3=1 / 3.6, t4=1, t5=0.6 / 3.6)


def by_vote(truth, **changed):
    """What a vote answers: the tie of t1 goes to 'no', which comes first."""
    return pd.concat([truth, pd.Series(changed)])[lambda s: ~s.index.duplicated(keep="last")]


def check_labels(found, expected):
    expected = expected.reindex(found.index).rename("agg_label").rename_axis("task")
    pd.testing.assert_series_equal(found, expected)


@pytest.mark.parametrize("method", ["fit_predict", "fit_predict_proba"])
def test_majority_vote_of_the_toy_table(toy, toy_truth, method):
    vote = MajorityVote()
    found = getattr(vote, method)(toy)
    assert found is (vote.labels_ if method == "fit_predict" else vote.probas_)
    check_labels(vote.labels_, by_vote(toy_truth, t1="no"))
    pd.testing.assert_frame_equal(vote.probas_, TOY_SHARES)
    pd.testing.assert_series_equal(vote.skills_, TOY_SKILLS)


@pytest.mark.parametrize("kind", [Wawa, ZeroBasedSkill])
@pytest.mark.parametrize("method", ["fit_predict", "fit_predict_proba"])
def test_self_taught_vote_of_the_toy_table(toy, toy_truth, kind, method):
    vote = kind()
    found = getattr(vote, method)(toy)
    assert found is (vote.labels_ if method == "fit_predict" else vote.probas_)
    check_labels(vote.labels_, by_vote(toy_truth, t1="no"))
    pd.testing.assert_frame_equal(vote.probas_, TOY_WEIGHTED, rtol=1e-5)
    pd.testing.assert_series_equal(vote.skills_, TOY_SKILLS, rtol=1e-5)


@pytest.mark.parametrize("kind", [MajorityVote, Wawa, ZeroBasedSkill])
def test_votes_of_the_animals(animals, animals_truth, kind):
    vote = kind()
    check_labels(vote.fit_predict(animals), animals_truth)
    pd.testing.assert_series_equal(vote.skills_, ANIMAL_SKILLS, rtol=1e-5)
    assert list(vote.probas_) == ["chicken", "goose", "parrot"]


def test_weighted_shares_of_the_animals(animals):
    shares = Wawa().fit_predict_proba(animals)
    # chicken by quick (1), goose by careless (2/3), parrot by the fraudster (1/3)
    np.testing.assert_allclose(shares.loc["a4"], [1 / 2, 1 / 3, 1 / 6])
    np.testing.assert_allclose(shares.loc["a1"], [9 / 11, 2 / 11, 0])


def test_gold_vote_of_the_toy_table(toy, toy_truth):
    vote = GoldMajorityVote().fit(toy, pd.Series({"t1": "yes", "t2": "yes"}))
    assert isinstance(vote, GoldMajorityVote)
    expected = skills(w1=0.5, w2=1, w3=1, w4=0.5, w5=0)
    pd.testing.assert_series_equal(vote.skills_, expected)
    check_labels(vote.predict(toy), toy_truth)
    assert vote.predict_proba(toy) is vote.probas_
    weighted = yes_shares(t1=0.75, t2=5 / 6, t3=1 / 3, t4=1, t5=1 / 6)
    pd.testing.assert_frame_equal(vote.probas_, weighted)


def test_gold_vote_of_the_animals(animals, animals_truth):
    vote = GoldMajorityVote()
    check_labels(vote.fit_predict(animals, animals_truth[["a1", "a2", "a3"]]), animals_truth)
    expected = ANIMAL_SKILLS.replace({2 / 3: 0.5, 1 / 3: 0.5})
    pd.testing.assert_series_equal(vote.skills_, expected)


def test_gold_may_list_several_right_labels(toy):
    gold = pd.Series(["yes", "no", "yes"], index=["t1", "t1", "t2"])
    vote = GoldMajorityVote().fit(toy, gold)
    # everybody who labelled t1 is right there
    assert vote.skills_.to_dict() == {"w1": 1.0, "w2": 1.0, "w3": 1.0, "w4": 0.5, "w5": 0.5}


def test_repeated_labels_count_once_in_skills_and_each_time_in_votes():
    rows = [
        ("t1", "u", "a"),
        ("t1", "u", "a"),
        ("t1", "v", "b"),
        ("t2", "u", "b"),
        ("t2", "v", "b"),
    ]
    vote = MajorityVote().fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert vote.labels_.to_dict() == {"t1": "a", "t2": "b"}
    assert vote.skills_.to_dict() == {"u": 1.0, "v": 0.5}


def test_skills_step_toward_the_agreement_by_hand():
    rows = [("t1", "u", "a"), ("t1", "v", "a"), ("t1", "w", "b")]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    found = ZeroBasedSkill(n_iter=2, lr_init=0.5, lr_steps_to_reduce=2, eps=0.0).fit(table)
    # from 1/2: a step of half the way to 1, 1 and 0, then one of a quarter of the way
    assert found.skills_.to_dict() == {"u": 0.8125, "v": 0.8125, "w": 0.1875}


def test_a_missing_skill_is_an_error_ignored_or_given(animals):
    known = ANIMAL_SKILLS.drop("fraudster")
    with pytest.raises(ValueError, match="worker 'fraudster' has no skill"):
        MajorityVote().fit(animals, skills=known)
    ignoring = MajorityVote(on_missing_skill="ignore").fit(animals, skills=known)
    assert "fraudster" not in ignoring.skills_.index
    believing = MajorityVote(on_missing_skill="value", default_skill=1e6)
    fraud = believing.fit_predict(animals, skills=known)
    labelled = animals.loc[animals["worker"] == "fraudster", "task"]
    assert set(fraud[labelled]) == {"parrot"}


def test_bad_skills(animals):
    with pytest.raises(ValueError, match="no worker selected"):
        MajorityVote(on_missing_skill="ignore").fit(animals, skills=pd.Series(dtype=float))
    with pytest.raises(ValueError, match="such as 'a0', have no worker with a skill"):
        MajorityVote(on_missing_skill="ignore").fit(animals, skills=skills(calm=1))
    with pytest.raises(ValueError, match=r"default_skill=2.0 with on_missing_skill='error'"):
        MajorityVote(default_skill=2.0).fit(animals, skills=ANIMAL_SKILLS)
    with pytest.raises(ValueError, match="list worker 'calm' twice"):
        MajorityVote().fit(animals, skills=pd.concat([ANIMAL_SKILLS, skills(calm=1)]))


def test_prediction_needs_the_skill_of_every_worker(toy, animals):
    with pytest.raises(ValueError, match="has no skill"):
        Wawa().fit(toy).predict(animals)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ZeroBasedSkill().predict(toy)


def test_gold_must_be_a_series(toy):
    with pytest.raises(TypeError, match="true_labels"):
        GoldMajorityVote().fit(toy, {"t1": "yes"})


def test_the_largest_sum_decides_where_the_total_is_negative():
    rows = [("t", "u", "a"), ("t", "v", "b")]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    vote = MajorityVote().fit(table, skills=skills(u=-3, v=1))
    assert vote.labels_.to_dict() == {"t": "b"}
    assert vote.probas_.loc["t"].to_dict() == {"a": -1.5, "b": 0.5}


def test_workers_without_weight_leave_even_shares():
    rows = [("t", "u", "a"), ("s", "v", "b"), ("s", "u", "a")]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    vote = MajorityVote().fit(table, skills=skills(u=0, v=1))
    assert vote.probas_.loc["t"].to_dict() == {"a": 0.5, "b": 0.5}


@pytest.fixture
def crowd():
    """Rows in a random order, and weights under which no votes tie."""
    data = bc.simulate.crowd(80, 9, 3, labels_per_task=4, seed=5)
    return data.annotations.to_frame().sample(frac=1, random_state=0), data.truth


@pytest.fixture
def quiet_peer(peer, monkeypatch):
    """crowd-kit without the check that fails with scikit-learn 1.7 and later."""
    for name in ("wawa", "zero_based_skill", "gold_majority_vote"):
        home = f"crowdkit.aggregation.classification.{name}"
        monkeypatch.setattr(f"{home}.check_is_fitted", lambda *args, **kwargs: None)
    return peer


def check_equal(ours, theirs):
    shares = theirs.probas_.sort_index(axis=0).sort_index(axis=1)
    pd.testing.assert_frame_equal(ours.probas_, shares)
    top = np.sort(shares, axis=1)
    decided = top[:, -1] - top[:, -2] > 1e-6  # theirs breaks ties by the order of rows
    assert decided.sum() > 50
    pd.testing.assert_series_equal(
        ours.labels_[decided], theirs.labels_.sort_index()[decided], check_index_type=False
    )


def test_majority_vote_equals_crowd_kit(quiet_peer, crowd):
    table, _ = crowd
    check_equal(MajorityVote().fit(table), quiet_peer.MajorityVote().fit(table))
    weights = pd.Series(np.linspace(0.2, 1.7, 9), index=range(9))
    ours, theirs = MajorityVote(), quiet_peer.MajorityVote()
    check_equal(ours.fit(table, weights), theirs.fit(table, weights))
    pd.testing.assert_series_equal(ours.skills_, theirs.skills_)


@pytest.mark.parametrize("name", ["Wawa", "ZeroBasedSkill"])
def test_self_taught_votes_equal_crowd_kit(quiet_peer, crowd, name):
    # Without ties: crowd-kit breaks those of the first vote by the order of rows.
    table = crowd[0]
    counts = table.groupby("task")["label"].value_counts().unstack(fill_value=0).to_numpy()
    top = np.sort(counts, axis=1)
    table = table[table["task"].isin(np.flatnonzero(top[:, -1] > top[:, -2]))]
    ours, theirs = (
        {"Wawa": Wawa, "ZeroBasedSkill": ZeroBasedSkill}[name](),
        getattr(quiet_peer, name)(),
    )
    ours.fit_predict(table), theirs.fit_predict(table)
    pd.testing.assert_series_equal(ours.skills_, theirs.skills_)
    pd.testing.assert_frame_equal(
        ours.probas_, theirs.probas_.sort_index(axis=0).sort_index(axis=1)
    )


def test_gold_vote_equals_crowd_kit(quiet_peer, crowd):
    table, truth = crowd
    ours, theirs = GoldMajorityVote(), quiet_peer.GoldMajorityVote()
    ours.fit_predict(table, truth[:40]), theirs.fit_predict(table, truth[:40])
    check_equal(ours, theirs)
    pd.testing.assert_series_equal(ours.skills_, theirs.skills_)
