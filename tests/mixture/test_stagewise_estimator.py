import pickle
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import bayescrowd as bc
from bayescrowd import datasets
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.aggregation.votes import shares
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.mixture.stagewise_estimator import StagewiseEM
from bayescrowd.mixture.vote_start import WorseThanVotesWarning, match_votes

PAPER = {"pseudo_counts": 0.0, "n_iter": 20, "tol": 0.0}
"""Twenty iterations without smoothing, as in the paper."""


def error(est, data):
    return 100 * bc.metrics.error_rate(est.probas_, data.truth)


def true_model_error(data):
    """Error in per cent of Bayes' rule with the parameters that the crowd was drawn from."""
    given, ann = data.parameters, data.annotations
    log_confusions = np.log(given.confusions)
    scores = np.tile(np.log(given.prevalence), (ann.n_tasks, 1))
    np.add.at(scores, ann.task_codes, log_confusions[ann.worker_codes, :, ann.label_codes])
    posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
    probas = pd.DataFrame(posterior / posterior.sum(axis=1, keepdims=True), ann.tasks, ann.classes)
    return 100 * bc.metrics.error_rate(probas, data.truth)


@pytest.fixture(scope="module")
def sparse():
    return bc.simulate.sparse_crowd(400, 30, alpha=0.2, accuracy=0.8, seed=2)


@pytest.fixture(scope="module")
def est(sparse):
    return StagewiseEM(3).fit(sparse.annotations)


def survey(seed=0, n_items=600, missing=0.0):
    """Two kinds of people; four telling questions of different sizes, eight that tell nothing."""
    rng = np.random.default_rng(seed)
    kind = rng.random(n_items) < 0.35
    columns = {}
    for name, size in (("a", 2), ("b", 3), ("c", 2), ("d", 4)):
        likely = np.where(kind, 0, size - 1)
        columns[name] = np.where(
            rng.random(n_items) < 0.8, likely, rng.integers(size, size=n_items)
        )
    for place in range(8):
        columns[f"noise {place}"] = rng.integers(2 + place % 2, size=n_items)
    table = pd.DataFrame(columns).mask(rng.random((n_items, 12)) < missing)
    return table, pd.Series(kind)


# Closed form and invariants.


def test_first_iteration_is_one_component_of_marginals(sparse):
    est = StagewiseEM(3, **PAPER).fit(sparse.annotations)
    first = est.history_.iloc[0]
    votes = sparse.annotations.to_frame().groupby("worker")["label"].value_counts()
    marginal = votes / votes.groupby("worker").transform("sum")
    assert first["log_likelihood"] == pytest.approx((votes * np.log(marginal)).sum(), rel=1e-9)
    information = bc.pairwise_mutual_information(sparse.annotations)
    assert first["entry"] == pytest.approx(information.to_numpy().max(), rel=1e-9)
    assert information.loc[first["first"], first["second"]] == pytest.approx(first["entry"])
    assert (first["n_components"], first["n_informative"], first["is_split"]) == (1, 0, True)


def test_history_tells_the_course(est):
    history = est.history_
    assert history.index.name == "iteration"
    assert len(history) == est.n_iter_ + 1 == len(est.trace_) + 1
    np.testing.assert_array_equal(history["log_likelihood"].to_numpy()[1:], est.trace_)
    assert history["n_components"].to_list()[:4] == [1, 2, 3, 3]
    assert history["is_split"].to_list()[:3] == [True, True, False]
    assert history["n_informative"].is_monotonic_increasing
    assert history["n_informative"].iloc[-1] == len(est.informative_)
    entered = pd.unique(history.loc[:, ["first", "second"]].iloc[:-1].to_numpy().ravel())
    assert set(est.informative_) == set(entered)
    assert est.log_likelihood_ == pytest.approx(history["log_likelihood"].iloc[-1], rel=1e-9)
    assert est.converged_


def test_informative_workers_come_first(sparse, est):
    kinds = pd.Series(sparse.parameters.kinds)
    assert (kinds[est.informative_[:4]] == "informative").all()


def test_level_keeps_noise_out(sparse, est):
    strict = StagewiseEM(3, level=0.01).fit(sparse.annotations)
    kinds = pd.Series(sparse.parameters.kinds)
    assert (kinds[strict.informative_] == "informative").all()
    assert len(strict.informative_) <= len(est.informative_)


def test_nothing_is_random(sparse, est):
    again = StagewiseEM(3, seed=7).fit(sparse.annotations)
    pd.testing.assert_frame_equal(again.history_, est.history_)
    pd.testing.assert_frame_equal(again.probas_, est.probas_)


def test_refinement_is_em_from_the_stagewise_mixture(sparse, est):
    refined = StagewiseEM(3, refine=True).fit(sparse.annotations)
    assert refined.log_likelihood_ > est.log_likelihood_
    assert list(refined.informative_) == list(est.informative_)
    mixture = bc.MDPD(
        3, init=est.responsibilities_.to_numpy(), n_init=1, pseudo_counts=est.pseudo_counts
    ).fit(sparse.annotations)
    assert refined.log_likelihood_ == pytest.approx(mixture.log_likelihood_, rel=1e-6)


# Judgements.


def test_on_judgements_it_is_an_aggregator(sparse, est):
    ann = sparse.annotations
    assert isinstance(est.aggregator_, Aggregator)
    pd.testing.assert_frame_equal(est.probas_, est.responsibilities_, check_names=False)
    assert list(est.probas_.columns) == list(est.weights_.index) == list(ann.classes)
    assert est.labels_.index.equals(ann.tasks)
    np.testing.assert_allclose(est.confusions_.sum(axis=1), 1)
    confusion = est.confusions_.loc[(3, 1), 2]
    assert confusion == pytest.approx(est.profiles_.loc[(3, 2), 1])
    assert est.worker_quality_["accuracy"][:6].min() > 0.7
    pd.testing.assert_frame_equal(est.predict_proba(ann), est.probas_, check_names=False)
    pd.testing.assert_series_equal(est.predict(ann), est.labels_)
    pd.testing.assert_series_equal(StagewiseEM(3).fit_predict(ann), est.labels_)
    np.testing.assert_array_equal(StagewiseEM(3).fit_predict_proba(ann), est.probas_)


def test_classes_are_matched_without_truth(sparse, est):
    # Bayes' rule with the true model errs by 3 %; a wrong match by at least a third.
    assert error(est, sparse) < true_model_error(sparse) + 3


def test_table_of_judgements_is_read_as_such(sparse, est):
    frame = sparse.annotations.to_frame().sample(frac=1, random_state=0)
    other = StagewiseEM(3).fit(frame)
    pd.testing.assert_frame_equal(other.probas_, est.probas_)
    pd.testing.assert_frame_equal(other.predict_proba(frame), est.predict_proba(sparse.annotations))


@pytest.mark.parametrize("predict_with", ["all", "informative"])
def test_new_tasks_and_strangers(sparse, predict_with):
    est = StagewiseEM(3, predict_with=predict_with).fit(sparse.annotations)
    new = pd.DataFrame(
        {"task": ["x", "x", "y"], "worker": [0, "stranger", "stranger"], "label": [1, 1, 2]}
    ).astype(object)
    probas = est.predict_proba(new)
    np.testing.assert_allclose(probas.sum(axis=1), 1)
    if predict_with == "informative":
        np.testing.assert_allclose(probas.loc["y"], est.weights_)
        heard = 0 in est.informative_
        expected = est.weights_ * (est.confusions_.loc[0][1] if heard else 1)
        np.testing.assert_allclose(probas.loc["x"], expected / expected.sum())


def test_prediction_with_informative_workers_hears_nobody_else(sparse):
    est = StagewiseEM(3, predict_with="informative").fit(sparse.annotations)
    few = sparse.annotations.select_workers(est.informative_)
    np.testing.assert_allclose(est.predict_proba(few), est.probas_, atol=1e-9)


def test_silent_worker_is_one_of_the_crowd(sparse):
    ann = sparse.annotations
    larger = bc.Annotations.from_codes(
        ann.task_codes,
        ann.worker_codes,
        ann.label_codes,
        tasks=[*ann.tasks, "unseen"],
        workers=[*ann.workers, "silent"],
        classes=ann.classes,
    )
    est = StagewiseEM(3).fit(larger)
    assert (est.worker_quality_.loc["silent", ["n_labels", "flag"]] == [0, ""]).all()
    accuracy = est.worker_quality_["accuracy"]
    assert accuracy.min() < accuracy["silent"] < accuracy.max()
    np.testing.assert_allclose(est.probas_.loc["unseen"], est.weights_, rtol=1e-6)


def test_components_need_not_be_classes(sparse):
    est = StagewiseEM(2).fit(sparse.annotations)
    assert not hasattr(est, "labels_")
    assert list(est.responsibilities_.columns) == [0, 1]
    assert set(est.predict(sparse.annotations)) <= {0, 1}
    est.set_params(n_components=3).fit(sparse.annotations)
    assert hasattr(est, "labels_")
    est.set_params(n_components=2).fit(sparse.annotations)
    assert not hasattr(est, "labels_")


def test_votes_are_matched_by_covariance():
    # Everybody says 'a' most of the time; the small component is the one with more 'b'.
    ann = bc.Annotations.from_matrix([list("aaaa")] * 3 + [list("aaab")] * 2)
    posterior = np.repeat([[0.0, 1.0], [1.0, 0.0]], [3, 2], axis=0)
    assert match_votes(posterior, ann).tolist() == [1, 0]
    assert match_votes(posterior[:, ::-1], ann).tolist() == [0, 1]


# Votes that know better.


@pytest.fixture(scope="module")
def few_labels():
    """Three labels per task of a hundred workers: hardly two have a task in common."""
    return bc.simulate.crowd(300, 100, 5, labels_per_task=3, seed=0)


@pytest.mark.parametrize("refine", [False, True])
def test_warns_where_votes_explain_the_labels_better(few_labels, refine):
    est = StagewiseEM(5, refine=refine)
    with pytest.warns(WorseThanVotesWarning, match=r"log-likelihood -\d+\.\d against -\d+"):
        est.fit(few_labels.annotations)
    vote = error(bc.MajorityVote().fit(few_labels.annotations), few_labels)
    assert error(est, few_labels) > vote + 30
    assert est.start_ == "stages"
    # The numbers are those that the same model has in `MDPD`.
    ann, options = few_labels.annotations, {"pseudo_counts": est.pseudo_counts, "n_init": 1}
    votes = MDPD(5, init=shares(ann.votes.astype(float)), **options).fit(ann)
    own = MDPD(5, init=est.responsibilities_.to_numpy(), **options).fit(ann)
    assert est.comparison_.votes_maximum == pytest.approx(votes.log_likelihood_, rel=1e-6)
    assert est.comparison_.fitted_maximum == pytest.approx(own.log_likelihood_, rel=1e-3)
    assert est.comparison_.fitted == pytest.approx(est.log_likelihood_)
    assert est.comparison_.fitted < est.comparison_.votes


@pytest.mark.parametrize("predict_with", ["all", "informative"])
def test_fallback_starts_from_votes(few_labels, predict_with):
    ann = few_labels.annotations
    est = StagewiseEM(5, fallback="votes", predict_with=predict_with).fit(ann)
    assert est.start_ == "votes"
    one = MDPD(
        5,
        init=shares(ann.votes.astype(float)),
        n_init=1,
        pseudo_counts=est.pseudo_counts,
        n_iter=1,
        tol=0,
    ).fit(ann)
    np.testing.assert_allclose(est.probas_, one.responsibilities_, atol=1e-9)
    np.testing.assert_allclose(est.predict_proba(ann), est.probas_, atol=1e-9)
    assert est.log_likelihood_ == est.comparison_.votes
    assert (est.n_iter_, len(est.trace_)) == (1, 1)
    # Seventeen per cent of the votes are wrong; one M-step weighs them by worker.
    vote = error(bc.MajorityVote().fit(ann), few_labels)
    assert error(est, few_labels) < vote + 4


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_no_fallback_where_the_stages_are_right(alpha):
    data = bc.simulate.sparse_crowd(alpha=alpha, seed=0)
    own, kept = (StagewiseEM(3, fallback=f).fit(data.annotations) for f in (None, "votes"))
    assert kept.start_ == "stages"
    pd.testing.assert_frame_equal(own.probas_, kept.probas_)


def test_trec_and_web_are_no_worse_than_a_vote_with_the_fallback():
    for name in ("trec", "web"):
        if not datasets.is_local(name):
            pytest.skip(f"{name} is not on this machine")
        data = bc.load_dataset(name)
        est = StagewiseEM(data.annotations.n_classes, fallback="votes").fit(data.annotations)
        assert est.start_ == "votes"
        assert error(est, data) < error(bc.MajorityVote().fit(data.annotations), data)


def test_fallback_needs_votes(sparse):
    table, _ = survey(7, n_items=100)
    with pytest.raises(ValueError, match="fallback='votes': expected None"):
        StagewiseEM(2, fallback="votes").fit(table)
    with pytest.raises(ValueError, match="fallback='votes': expected None"):
        StagewiseEM(2, fallback="votes").fit(sparse.annotations)


# Values that hardly occur.


def wrong(responsibilities, truth):
    """Percentage of items in a wrong component, components named by the best permutation."""
    found, truth = responsibilities.to_numpy().argmax(axis=1), truth.to_numpy()
    names = np.array(list(permutations(range(3))))
    return 100 * (names[:, found] != truth).mean(axis=1).min()


@pytest.mark.parametrize("pseudo_counts", [0.0, 0.01])
@pytest.mark.parametrize("coordinates", ["probability", "fisher", "best"])
def test_a_class_that_nobody_uses_changes_nothing(pseudo_counts, coordinates):
    options = {"pseudo_counts": pseudo_counts, "coordinates": coordinates}
    data = bc.simulate.one_coin_crowd(400, 10, 3, accuracy=0.7, seed=1)
    three = StagewiseEM(3, **options).fit(data.annotations)
    declared = bc.Annotations.from_frame(data.annotations.to_frame(), classes=[0, 1, 2, 3])
    four = StagewiseEM(3, **options).fit(declared)
    as_classes = StagewiseEM(4, **options).fit(declared)
    assert error(as_classes, data) == pytest.approx(error(three, data), abs=0.5)
    assert as_classes.weights_[3] == pytest.approx(0, abs=1e-12)
    assert error(three, data) < true_model_error(data) + 1
    assert wrong(four.responsibilities_, data.truth) == pytest.approx(error(three, data), abs=0.5)


@pytest.mark.parametrize(("n_tasks", "n_workers", "share"), [(1000, 20, 0.002), (2000, 12, 0.01)])
def test_a_value_of_few_labels_does_not_attract_the_splits(n_tasks, n_workers, share):
    # Mean and worst of eight crowds: without the value, at most 0.4 and 1.2 % for both sizes.
    errors = []
    for seed in range(8):
        data = bc.simulate.one_coin_crowd(
            n_tasks, n_workers, 3, accuracy=0.75 if n_workers == 12 else 0.7, seed=seed
        )
        frame = data.annotations.to_frame()
        rare = np.random.default_rng(seed).random(len(frame)) < share
        frame["label"] = frame["label"].where(~rare, 3)
        crowd = bc.Annotations.from_frame(frame, classes=[0, 1, 2, 3])
        errors.append(wrong(StagewiseEM(3).fit(crowd).responsibilities_, data.truth))
    assert np.mean(errors) < 1
    assert max(errors) < 2


# Tables.


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_survey_with_questions_of_different_sizes(missing):
    table, kind = survey(missing=missing)
    est = StagewiseEM(2, level=0.05).fit(table)
    assert set(est.informative_) <= set("abcd")
    assert len(est.informative_) >= 3
    found = est.predict(table)
    agreement = (found == kind.astype(int)).mean()
    assert max(agreement, 1 - agreement) > 0.9
    assert est.observed_rate_["a"] == pytest.approx(1 - missing, abs=0.06)
    np.testing.assert_allclose(est.profiles_.groupby(level="feature").sum(), 1)
    pd.testing.assert_series_equal(StagewiseEM(2, level=0.05).fit_predict(table), found)
    assert np.isfinite(est.score(table))
    assert est.sample(10).features.shape == (10, 12)
    assert est.lack_of_fit_ < bc.MDPD(1).fit(table).lack_of_fit_


def test_order_of_features_changes_nothing():
    table, _ = survey(3)
    one = StagewiseEM(2).fit(table)
    other = StagewiseEM(2).fit(table[table.columns[::-1]])
    assert set(one.informative_) == set(other.informative_)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-9)


def test_missing_entries_say_nothing():
    # Two questions asked together or not at all, answered independently: no information.
    rng = np.random.default_rng(0)
    table, _ = survey(4)
    asked = rng.random(len(table)) < 0.3
    for name in ("noise 0", "noise 1"):
        table[name] = table[name].where(asked)
    est = StagewiseEM(2, level=0.05).fit(table)
    assert set(est.informative_) <= set("abcd")


def test_goodness_of_fit_of_a_true_and_of_a_wrong_model():
    table, _ = survey(5, n_items=300)
    kept = table[["a", "b", "c", "noise 0"]]
    est = StagewiseEM(2).fit(kept)
    assert est.goodness_of_fit(n_bootstrap=19).p_value > 0.05
    twins = kept.assign(twin=kept["noise 0"])
    assert StagewiseEM(2).fit(twins).goodness_of_fit(n_bootstrap=19).p_value == 0.05


# The paper's numbers.


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"predict_with": "informative"}, 12.04),
        ({"refine": True}, 10.19),
    ],
)
def test_bluebird_as_published(options, expected):
    if not datasets.is_local("bluebird"):
        pytest.skip("bluebird is not on this machine")
    data = bc.load_dataset("bluebird")
    for settings in (PAPER, {}):
        est = StagewiseEM(2, **settings, **options).fit(data.annotations)
        assert len(est.informative_) == 11
        assert round(error(est, data), 2) == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_figure_3_is_reached(seed):
    data = bc.simulate.sparse_crowd(alpha=0.3, accuracy=np.linspace(0.7, 0.45, 30), seed=seed)
    est = StagewiseEM(3, **PAPER).fit(data.annotations)
    given, ann = data.parameters, data.annotations
    scores = np.tile(np.log(given.prevalence), (ann.n_tasks, 1))
    np.add.at(
        scores, ann.task_codes, np.log(given.confusions)[ann.worker_codes, :, ann.label_codes]
    )
    assert est.log_likelihood_ > np.logaddexp.reduce(scores, axis=1).sum()
    assert len(est.informative_) <= 15
    assert error(est, data) < true_model_error(data) + 1


@pytest.mark.parametrize("seed", [0, 2])
def test_few_experts_of_many_are_found(seed):
    # Five workers of a hundred: means over ten draws are 25.8 % here, 33 % for EM from votes.
    data = bc.simulate.sparse_crowd(alpha=0.05, seed=seed)
    est = StagewiseEM(3, **PAPER).fit(data.annotations)
    assert error(est, data) < true_model_error(data) + 4
    vote = bc.DawidSkene(prior="uniform").fit(data.annotations)
    assert error(est, data) < error(vote, data)


def test_printed_rule_can_stick():
    # After the first split the largest entry stays between the two members of S.
    rng = np.random.default_rng(1)
    first = rng.integers(3, size=400)
    table = pd.DataFrame({"a": first, "b": first})
    table["c"] = np.where(rng.random(400) < 0.5, first, rng.integers(3, size=400))
    printed = StagewiseEM(3, split="printed", n_iter=3, tol=0)
    with pytest.warns(ConvergenceWarning, match="split='printed' found 2 of n_components=3"):
        printed.fit(table)
    assert printed.weights_.round(9).min() == 0
    assert (StagewiseEM(3).fit(table).weights_ > 0.2).all()


# The estimator's protocol and bad input.


def test_parameters_and_pickling(sparse, est):
    twin = clone(est)
    assert twin.get_params() == est.get_params()
    copy = pickle.loads(pickle.dumps(est))
    pd.testing.assert_frame_equal(
        copy.predict_proba(sparse.annotations), est.predict_proba(sparse.annotations)
    )
    with pytest.raises(NotFittedError):
        twin.predict_proba(sparse.annotations)


def test_warns_before_it_has_settled(sparse):
    with pytest.warns(ConvergenceWarning, match="n_iter=3 iterations before the largest"):
        StagewiseEM(3, n_iter=3).fit(sparse.annotations)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 1}, "n_components=1: expected at least 2"),
        ({"split": "never"}, "split='never'"),
        ({"predict_with": "some"}, "predict_with='some'"),
        ({"level": 1.0}, "level=1.0"),
        ({"coordinates": "polar"}, "coordinates='polar'"),
        ({"step": 0.0}, "step=0.0"),
        ({"pseudo_counts": -1.0}, "pseudo_counts=-1.0"),
        ({"fallback": "mean"}, "fallback='mean'"),
        ({"n_iter": 0}, "n_iter=0"),
        ({"tol": -1.0}, "tol=-1.0"),
    ],
)
def test_bad_parameters(options, words, sparse):
    with pytest.raises(ValueError, match=words):
        StagewiseEM(3).set_params(**options).fit(sparse.annotations)


def test_independent_features_have_nothing_to_explain():
    table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    with pytest.raises(ValueError, match="no two features depend on each other"):
        StagewiseEM(2).fit(table)


def test_unknown_features_and_values_are_refused():
    table, _ = survey(6, n_items=200)
    est = StagewiseEM(2).fit(table)
    with pytest.raises(ValueError, match="feature 'other'"):
        est.predict_proba(pd.DataFrame({"other": [1]}))
    with pytest.raises(ValueError, match="value 9 of feature 'a'"):
        est.predict_proba(pd.DataFrame({"a": [9]}))
