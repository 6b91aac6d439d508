"""Dawid–Skene on the workers who carry information."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation.em import floored_log
from bayescrowd.aggregation.whole_matrices import estimate_of, incidence
from bayescrowd.selection.workers.selective_dawid_skene import _log_others, informative_evidence


def percent_wrong(probas, data):
    return 100 * bc.metrics.error_rate(probas, data.truth)


def true_model_error(data):
    """Error of the posterior under the true parameters: nothing does better in expectation."""
    ann, parameters = data.annotations, data.parameters
    posterior = np.empty((ann.n_tasks, ann.n_classes))
    estimate = estimate_of(floored_log(parameters.confusions), parameters.prevalence)
    incidence(ann).sweep(estimate, posterior)
    return percent_wrong(pd.DataFrame(posterior, ann.tasks, ann.classes), data)


# By hand.


def certain(classes, n_classes=2):
    """log P(class) of tasks of which others are sure."""
    return floored_log(np.eye(n_classes)[classes])


def test_evidence_by_hand_where_others_are_sure():
    # Worker 0 sees classes 0 0 0 1 and says 0 0 1 1; worker 1 makes the crowd's matrix.
    classes = np.array([0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1])
    labels = np.array([0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    workers = np.repeat([0, 1], [4, 8])
    kept = np.array([False, True])
    # Label after label: (pseudo-counts of it + times seen) / (all of them + labels seen), with
    # pseudo-counts of (3, 1) and (1, 3); the crowd's labels are half and half.
    informed = (3 / 4) * (4 / 5) * (1 / 6) * (3 / 4)
    ignorant = (2 / 4) * (3 / 5) * (2 / 6) * (3 / 7)
    found = informative_evidence(certain(classes), workers, labels, kept, 4.0)
    assert found[0] == pytest.approx(np.log(informed / ignorant), abs=1e-9)


def test_evidence_is_a_lower_bound():
    # Three labels of one worker: the sum over all classes of their tasks can be done by hand.
    others = np.log([[0.7, 0.3], [0.4, 0.6], [0.8, 0.2], *[[0.9, 0.1]] * 4, *[[0.2, 0.8]] * 4])
    labels = np.array([0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1])
    workers = np.repeat([0, 1], [3, 8])
    found = informative_evidence(others, workers, labels, np.array([False, True]), 4.0)[0]
    counts = np.zeros((2, 2))
    np.add.at(counts.T, labels[3:], np.exp(others[3:]))
    prior = 4 * counts / counts.sum(axis=1, keepdims=True)
    informed = 0.0
    for classes in product((0, 1), repeat=3):
        chance, seen = 1.0, np.zeros((2, 2))
        for task, (k, label) in enumerate(zip(classes, labels, strict=False)):
            chance *= np.exp(others[task, k])
            chance *= (prior[k, label] + seen[k, label]) / (4 + seen[k].sum())
            seen[k, label] += 1
        informed += chance
    shares = 4 * np.bincount(labels) / len(labels)
    ignorant = shares[0] / 4 * shares[1] / 5 * (shares[0] + 1) / 6
    exact = np.log(informed / ignorant)
    assert exact - 0.15 < found < exact


def test_nothing_is_held_against_workers_of_whose_tasks_others_know_nothing():
    # Every task has one other label, or none: nobody can be judged, and nobody is left out.
    data = bc.simulate.one_coin_crowd(150, 30, 3, labels_per_task=2, accuracy=0.7, seed=0)
    found = bc.SelectiveDawidSkene(n_iter=2000).fit(data.annotations)
    assert len(found.selected_) >= 28


def test_what_others_say_by_hand():
    # Two workers, one task, labels 0 and 1; each is judged by the other's label alone.
    ann = bc.Annotations.from_matrix([[0, 1]], classes=[0, 1])
    confusions = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.9, 0.1], [0.4, 0.6]]])
    priors = np.array([0.5, 0.5])
    others = np.exp(_log_others(ann, np.array([-1]), confusions, priors))
    np.testing.assert_allclose(others, [[0.1 / 0.7, 0.6 / 0.7], [0.8 / 1.1, 0.3 / 1.1]])
    known = np.exp(_log_others(ann, np.array([1]), confusions, priors))
    np.testing.assert_allclose(known, [[0, 1], [0, 1]], atol=1e-12)


# Sparse crowds.


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_closes_the_gap_to_the_true_model(alpha):
    # Figure 5 of the stagewise paper; four of its seeds, ten in the benchmark of the methods.
    truly, voted, found = [], [], []
    for seed in range(4):
        data = bc.simulate.sparse_crowd(alpha=alpha, seed=seed)
        plain = bc.DawidSkene(prior="uniform", pseudo_counts=0).fit(data.annotations)
        ours = bc.SelectiveDawidSkene().fit(data.annotations)
        truly.append(true_model_error(data))
        voted.append(percent_wrong(plain.probas_, data))
        found.append(percent_wrong(ours.probas_, data))
        assert ours.selected_.to_list() == list(range(round(100 * alpha)))
    gap = np.mean(voted) - np.mean(truly)
    assert gap > 2
    assert np.mean(voted) - np.mean(found) > 0.8 * gap


def test_the_second_start_finds_a_very_small_minority():
    # Three of a hundred: from everybody, EM ends elsewhere.
    data = bc.simulate.sparse_crowd(alpha=0.03, seed=0)
    found = bc.SelectiveDawidSkene().fit(data.annotations)
    assert found.selected_.to_list() == [0, 1, 2]
    assert bc.DawidSkene().fit(data.annotations).labels_.eq(data.truth).mean() < 0.5


def test_who_was_left_out_has_no_say():
    data = bc.simulate.sparse_crowd(300, 30, alpha=0.2, accuracy=0.75, seed=1)
    found = bc.SelectiveDawidSkene().fit(data.annotations)
    assert found.selected_.to_list() == [0, 1, 2, 3, 4, 5]
    rows = found.confusions_.loc[20].to_numpy()
    np.testing.assert_allclose(rows, np.tile(rows[0], (3, 1)))
    assert found.worker_quality_.loc[20, "information"] == pytest.approx(0, abs=1e-12)
    only = data.annotations.select_workers([20, 25])
    np.testing.assert_allclose(found.predict_proba(only), np.tile(found.priors_, (300, 1)))
    kept = bc.DawidSkene().fit(data.annotations.select_workers(found.selected_))
    np.testing.assert_allclose(found.probas_, kept.probas_, atol=1e-9)
    assert (found.informative_[found.selected_] > 0.99).all()
    assert (found.informative_.drop(found.selected_) < 0.5).all()


# Crowds without anybody to leave out.


def test_good_crowds_are_left_alone():
    data = bc.simulate.one_coin_crowd(200, 15, 3, labels_per_task=5, accuracy=0.75, seed=2)
    found = bc.SelectiveDawidSkene().fit(data.annotations)
    assert len(found.selected_) == 15
    plain = bc.DawidSkene().fit(data.annotations)
    np.testing.assert_allclose(found.probas_, plain.probas_, atol=1e-9)


def test_adversaries_are_informative():
    confusions = np.array([[[0.85, 0.15], [0.15, 0.85]]] * 6 + [[[0.1, 0.9], [0.9, 0.1]]])
    data = bc.simulate.full_confusion_crowd(200, 7, 2, confusions=confusions, seed=0)
    assert 6 in bc.SelectiveDawidSkene().fit(data.annotations).selected_


def test_a_worker_with_few_labels_is_kept_in_a_good_crowd():
    frame = bc.simulate.one_coin_crowd(200, 8, 2, accuracy=[0.8] * 8, seed=1).annotations.to_frame()
    frame = pd.concat([frame, pd.DataFrame({"task": [0, 1], "worker": 99, "label": [0, 0]})])
    assert 99 in bc.SelectiveDawidSkene().fit(frame).selected_


def test_nobody_informative_is_everybody():
    labels = np.random.default_rng(0).integers(2, size=(40, 6))
    found = bc.SelectiveDawidSkene().fit(bc.Annotations.from_matrix(labels))
    assert len(found.selected_) >= 3


@pytest.mark.parametrize("name", ["bluebird", "rte", "dog"])
def test_no_worse_than_everybody_on_real_crowds(published, name):
    data = published(name)
    ours = percent_wrong(bc.SelectiveDawidSkene().fit(data.annotations).probas_, data)
    everybody = percent_wrong(bc.DawidSkene().fit(data.annotations).probas_, data)
    assert ours <= everybody + 0.2


@pytest.mark.slow
def test_no_worse_than_everybody_on_trec(published):
    data = published("trec")
    ours = percent_wrong(bc.SelectiveDawidSkene().fit(data.annotations).probas_, data)
    everybody = percent_wrong(bc.DawidSkene().fit(data.annotations).probas_, data)
    assert ours <= everybody + 0.2


# Known labels, warnings, bad input.


def test_gold_helps_to_judge():
    data = bc.simulate.sparse_crowd(150, 40, alpha=0.1, accuracy=0.6, seed=5)
    gold = data.truth.sample(75, random_state=0)
    rest = data.truth.drop(gold.index)
    with_gold = bc.SelectiveDawidSkene(n_iter=2000).fit(data.annotations, gold)
    assert (with_gold.labels_[gold.index] == gold).all()
    assert {0, 1, 2, 3} & set(with_gold.selected_)
    without = bc.SelectiveDawidSkene(n_iter=2000).fit(data.annotations)
    # The same tasks scored, once with half of the others known.
    assert (with_gold.labels_[rest.index] == rest).mean() >= (
        without.labels_[rest.index] == rest
    ).mean()


def test_says_when_it_has_not_settled():
    data = bc.simulate.crowd(100, 10, 3, labels_per_task=4, seed=0)
    with pytest.warns(ConvergenceWarning, match="n_iter=2"):
        bc.SelectiveDawidSkene(n_iter=2).fit(data.annotations)


def test_bad_parameters():
    ann = bc.simulate.crowd(20, 5, seed=0).annotations
    with pytest.raises(ValueError, match="strength=0"):
        bc.SelectiveDawidSkene(strength=0).fit(ann)
    with pytest.raises(ValueError, match="n_rounds=0"):
        bc.SelectiveDawidSkene(n_rounds=0).fit(ann)
