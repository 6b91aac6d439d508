"""Dawid–Skene and one coin with crowd-kit's names: by hand, by crowd-kit's tests, by crowd-kit."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.crowdkit import DawidSkene, OneCoinDawidSkene
from bayescrowd.data.truth import TruthWarning

SETTINGS = [{"n_iter": 10, "tol": 0}, {"n_iter": 100500, "tol": 1e-5}]


def zero_counts():
    index = pd.MultiIndex.from_product(
        [["w1", "w2", "w3", "w4", "w5"], ["yes", "no"]], names=["worker", "label"]
    )
    return pd.DataFrame(0.0, index=index, columns=["no", "yes"])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", [DawidSkene, OneCoinDawidSkene])
def test_both_tables_are_solved(toy, toy_truth, animals, animals_truth, kind, settings):
    for table, truth in ((toy, toy_truth), (animals, animals_truth)):
        labels = kind(**settings).fit_predict(table)
        pd.testing.assert_series_equal(labels.sort_index(), truth)


def test_no_iteration_leaves_the_votes_and_their_matrices(toy):
    est = DawidSkene(0).fit(toy)
    np.testing.assert_allclose(est.probas_["yes"], [0.5, 0.6, 0.4, 1.0, 0.2])
    assert est.priors_.to_dict() == pytest.approx({"no": 0.46, "yes": 0.54})
    assert est.labels_.to_dict() == {"t1": "no", "t2": "yes", "t3": "no", "t4": "yes", "t5": "no"}
    # w1 says no to t1 and yes to the rest: no has .5 of the 2.3 expected no's, and .5 of 2.7 yes's
    np.testing.assert_allclose(est.errors_.loc[("w1", "no")], [0.5 / 2.3, 0.5 / 2.7])
    np.testing.assert_allclose(est.errors_.loc[("w5", "yes")], [0.0, 1.0 / 2.7], atol=1e-9)
    assert est.errors_.index.names == ["worker", "label"]
    assert est.loss_history_ == []


def test_one_iteration_by_hand(toy):
    votes, est = DawidSkene(0).fit(toy), DawidSkene(1).fit(toy)
    answers = {"w1": "no", "w2": "yes", "w4": "yes", "w5": "no"}
    odds = votes.priors_.copy()
    for worker, label in answers.items():
        odds = odds * votes.errors_.loc[(worker, label)]
    np.testing.assert_allclose(est.probas_.loc["t1"], odds / odds.sum(), rtol=1e-8)
    assert est.probas_.loc["t1", "yes"] == pytest.approx(0.65, abs=0.005)
    assert est.priors_.to_dict() == pytest.approx(est.probas_.mean().to_dict())
    np.testing.assert_allclose(est.errors_.loc[("w4", "yes")], [0.50, 0.69], atol=0.005)
    assert len(est.loss_history_) == 1


def test_log_likelihood_never_falls(animals):
    history = DawidSkene(30, tol=0).fit(animals).loss_history_
    assert len(history) == 30
    assert (np.diff(history) > -1e-9).all()


@pytest.mark.parametrize("settings", SETTINGS)
def test_gold_holds_in_every_iteration(toy, toy_truth, settings):
    gold = pd.Series({"t1": "yes", "t2": "yes"})
    assert DawidSkene(**settings).fit_predict(toy, gold).sort_index().equals(toy_truth)
    for n_iter in (0, 1, 2):
        est = DawidSkene(n_iter).fit(toy, gold)
        np.testing.assert_allclose(est.probas_.loc[["t1", "t2"], "yes"], 1.0, atol=1e-8)
        np.testing.assert_allclose(est.probas_.sum(axis=1), 1.0)


def test_unknown_gold_is_reported(toy):
    with pytest.warns(TruthWarning):
        DawidSkene(3).fit(toy, pd.Series({"t1": "yes", "t9": "no"}))


@pytest.mark.parametrize("overlap", [3, 300])
def test_workers_of_two_kinds(overlap):
    table = pd.DataFrame(
        [(t, w, "yes" if (w - t) % 3 else "no") for w in range(overlap) for t in range(3)],
        columns=["task", "worker", "label"],
    )
    est = DawidSkene(20).fit(table)
    np.testing.assert_allclose(est.probas_, np.tile([1 / 3, 2 / 3], (3, 1)), atol=0.005)
    assert est.labels_.to_list() == ["yes"] * 3
    assert est.priors_.to_dict() == pytest.approx({"no": 1 / 3, "yes": 2 / 3}, abs=0.005)


@pytest.mark.parametrize("kind", [DawidSkene, OneCoinDawidSkene])
def test_truth_values_as_labels(booleans, kind):
    labels = kind(20).fit_predict(booleans)
    assert labels.dtype == bool
    assert labels.to_dict() == {"t1": True, "t2": True}


def test_counts_from_elsewhere_are_added(toy):
    known = zero_counts()
    # w2's expected counts in the votes are .9 and 2.1 (yes), 1.4 and .6 (no)
    known.loc[("w2", "yes")] = [1.1, 0.9]
    known.loc[("w2", "no")] = [0.6, 0.4]
    est = DawidSkene(0, 0.0, "addition").fit(toy, initial_error=known)
    np.testing.assert_allclose(est.errors_.loc[("w2", "yes")], [0.5, 0.75])
    np.testing.assert_allclose(est.errors_.loc[("w2", "no")], [0.5, 0.25])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_rows", [3, 10])
def test_adding_nothing_changes_nothing(toy, toy_truth, settings, n_rows):
    est = DawidSkene(**settings, initial_error_strategy="addition")
    plain = DawidSkene(**settings).fit(toy)
    est.fit(toy, initial_error=zero_counts()[:n_rows])
    pd.testing.assert_frame_equal(est.probas_, plain.probas_)
    assert est.labels_.sort_index().equals(toy_truth)


@pytest.mark.parametrize("settings", SETTINGS)
def test_counts_from_elsewhere_can_decide(toy, settings):
    known = zero_counts()
    for worker, label in zip(known.index.levels[0], ["yes", "yes", "yes", "no", "no"], strict=True):
        known.loc[(worker, label), "no"] = 99  # what each said of t2 is what they say of a no
    est = DawidSkene(**settings, initial_error_strategy="addition")
    assert est.fit(toy, initial_error=known).labels_["t2"] == "no"


def test_matrices_from_elsewhere_are_assigned(toy):
    known = zero_counts() + 0.2
    known.loc[(slice(None), "yes"), "yes"] = known.loc[(slice(None), "no"), "no"] = 0.8
    est = DawidSkene(1, 0.0, "assign").fit(toy, initial_error=known)
    # t2 has three yes and two no: the odds of a yes are those of one vote and of the prior
    assert est.probas_.loc["t2", "yes"] == pytest.approx(0.54 * 4 / (0.54 * 4 + 0.46))


@pytest.mark.parametrize(
    ("strategy", "change", "message"),
    [
        (None, lambda e: e, "initial_error_strategy is None"),
        ("assign", lambda e: e, "probabilities of each worker and true label to sum to 1"),
        ("assign", lambda e: e[:3], r"no row for worker and label \('w2', 'no'\)"),
        ("addition", lambda e: e.rename_axis(["who", "label"]), "expected worker and label"),
        ("addition", lambda e: e[["no"]], "expected one for each of the labels"),
        ("addition", lambda e: e - 1, "finite numbers >= 0"),
    ],
)
def test_bad_initial_errors(toy, strategy, change, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene(initial_error_strategy=strategy).fit(toy, initial_error=change(zero_counts()))


@pytest.mark.parametrize("n_iter", [0, 1, 12])
@pytest.mark.parametrize("with_gold", [False, True])
@pytest.mark.parametrize("name", ["DawidSkene", "OneCoinDawidSkene"])
def test_equals_crowd_kit(peer, n_iter, with_gold, name):
    data = bc.simulate.crowd(60, 8, 3, labels_per_task=5, seed=2)
    table = data.annotations.to_frame().sample(frac=1, random_state=0)
    gold = (data.truth.iloc[:10],) if with_gold and name == "DawidSkene" else ()
    ours = {"DawidSkene": DawidSkene, "OneCoinDawidSkene": OneCoinDawidSkene}[name](n_iter, 0.0)
    ours.fit(table, *gold)
    theirs = getattr(peer, name)(n_iter=n_iter, tol=-np.inf).fit(table, *gold)
    if n_iter:
        assert ours.probas_.index.equals(theirs.probas_.index)
    assert ours.errors_.index.equals(theirs.errors_.index)
    # crowd-kit raises the probabilities that it reports to 1e-10.
    for key in ("probas_", "errors_"):
        expected = getattr(theirs, key).loc[getattr(ours, key).index, getattr(ours, key).columns]
        np.testing.assert_allclose(getattr(ours, key), expected, atol=1e-9)
    np.testing.assert_allclose(ours.priors_, theirs.priors_[ours.priors_.index], atol=1e-9)
    if name == "OneCoinDawidSkene":
        pd.testing.assert_series_equal(ours.skills_, theirs.skills_)


def test_initial_counts_equal_crowd_kit(peer, toy):
    known = zero_counts() + np.arange(20).reshape(10, 2) / 7
    ours = DawidSkene(6, 0.0, "addition").fit(toy, initial_error=known)
    theirs = peer.DawidSkene(6, -np.inf, "addition").fit(toy, initial_error=known)
    np.testing.assert_allclose(ours.probas_, theirs.probas_[["no", "yes"]], atol=1e-9)
