"""A classifier takes part in the default."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import bayescrowd as bc


def predicted(truth, *, signal, sharpness=1.0, seed=0, n_classes=4):
    """Probabilities of a classifier that is calibrated at sharpness 1, tasks x classes."""
    rng = np.random.default_rng(seed)
    features = signal * np.eye(n_classes)[truth] + rng.normal(size=(len(truth), n_classes))
    values = softmax(sharpness * signal * features, axis=1)
    return pd.DataFrame(values, index=truth.index)


@pytest.fixture(scope="module")
def data():
    return bc.simulate.crowd(300, 30, 4, labels_per_task=2, accuracy=0.65, seed=7)


@pytest.fixture(scope="module")
def alone(data):
    return bc.AutoAggregator().fit(data.annotations)


@pytest.fixture(scope="module")
def helped(data):
    """A fit with a calibrated classifier."""
    return bc.aggregate(data.annotations, predictions=predicted(data.truth, signal=1.7))


def error(est, truth):
    return bc.metrics.error_rate(est.probas_.loc[truth.index], truth)


def log_loss(est, truth):
    probas = est.probas_.loc[truth.index, range(4)].to_numpy()
    return -np.log(probas[np.arange(len(truth)), truth]).mean()


def test_no_predictions_change_nothing(data, alone):
    est = bc.aggregate(data.annotations, None, None)
    pd.testing.assert_frame_equal(est.probas_, alone.probas_, check_exact=True)
    assert est.prediction_strength_ is None
    assert "predictions" not in est.why_


@pytest.mark.parametrize(("sharpness", "least", "most"), [(1.0, 0.7, 1.6), (4.0, 0.15, 0.6)])
def test_a_classifier_helps_whether_or_not_it_is_over_confident(
    data, alone, helped, sharpness, least, most
):
    predictions = predicted(data.truth, signal=1.7, sharpness=sharpness)
    est = helped if sharpness == 1 else bc.aggregate(data.annotations, predictions=predictions)
    by_itself = (predictions.to_numpy().argmax(axis=1) != data.truth).mean()
    # Errors halve: with 300 tasks and errors of 24 and 33 %, 7 points are three standard errors.
    assert error(est, data.truth) < min(error(alone, data.truth), by_itself) - 0.07
    assert log_loss(est, data.truth) < 0.6 * log_loss(alone, data.truth)
    assert least < est.prediction_strength_ < most


def test_a_useless_classifier_does_no_harm(data, alone):
    shuffled = predicted(data.truth.sample(frac=1, random_state=1), signal=2.0, sharpness=4.0)
    predictions = shuffled.set_axis(data.truth.index)
    est = bc.aggregate(data.annotations, predictions=predictions)
    # It moves the answer by less than the standard error of an error rate of 33 % on 300 tasks.
    assert error(est, data.truth) < error(alone, data.truth) + 0.027
    assert log_loss(est, data.truth) < log_loss(alone, data.truth) + 0.05
    assert est.worker_quality_.loc["predictions", "flag"] == "spammer"


def test_a_classifier_that_names_the_wrong_class_is_understood():
    crowd = bc.simulate.crowd(300, 30, 4, labels_per_task=6, accuracy=0.75, seed=7)
    predictions = predicted(crowd.truth, signal=2.5)
    turned = predictions.set_axis([1, 2, 3, 0], axis=1)  # each class is called the next one
    without = bc.aggregate(crowd.annotations)
    est = bc.aggregate(crowd.annotations, predictions=turned)
    assert error(est, crowd.truth) <= error(without, crowd.truth)
    assert est.worker_quality_.loc["predictions", "flag"] == "adversary"


def test_tasks_of_one_side_only(data):
    predictions = predicted(data.truth, signal=1.7)
    labelled = data.annotations.select_tasks(data.annotations.tasks[:250])
    est = bc.aggregate(labelled, predictions=predictions.iloc[50:])
    assert list(est.probas_.index) == list(data.truth.index)
    unseen = data.truth.iloc[250:]
    wrong = (est.labels_[unseen.index] != unseen).mean()
    by_itself = (predictions.loc[unseen.index].idxmax(axis=1) != unseen).mean()
    assert wrong <= by_itself + 0.06  # three labels of fifty
    assert est.worker_quality_.loc["predictions", "n_labels"] == 250


def test_gold_of_a_task_that_nobody_labelled_is_known(data):
    predictions = predicted(data.truth, signal=1.7)
    labelled = data.annotations.select_tasks(data.annotations.tasks[:290])
    gold = data.truth.iloc[[0, 1, 2, 295, 299]]
    est = bc.aggregate(labelled, gold, predictions)
    assert est.labels_[gold.index].equals(gold.rename("label"))
    assert est.gold_report_ is not None


def test_the_order_of_rows_and_classes_does_not_matter(data, helped):
    predictions = predicted(data.truth, signal=1.7)
    shuffled = predictions.sample(frac=1, random_state=0)[[2, 0, 3, 1]]
    table = data.annotations.to_frame().sample(frac=1, random_state=0)
    again = bc.aggregate(table, predictions=shuffled)
    np.testing.assert_allclose(again.probas_, helped.probas_, atol=1e-6)


def test_the_fit_says_what_the_predictions_are_worth(data, helped):
    est = helped
    right = (predicted(data.truth, signal=1.7).to_numpy().argmax(axis=1) == data.truth).mean()
    quality = est.worker_quality_.loc["predictions"]
    assert quality["lower"] < right < quality["upper"]
    assert "The predictions take part as one more rater ('predictions')" in est.why_
    assert f"strength {est.prediction_strength_:.2f}" in est.why_


def test_new_tasks_are_predicted_by_the_raters_of_the_fit(data, helped):
    new = data.annotations.to_frame().assign(task=lambda table: table["task"] + 1000)
    probas = helped.predict_proba(new)
    np.testing.assert_allclose(probas.sum(axis=1), 1.0)
    assert len(probas) == 300


def test_a_second_fit_forgets_the_predictions():
    crowd = bc.simulate.crowd(40, 6, 4, seed=1)
    est = bc.AutoAggregator().fit(crowd.annotations, predictions=predicted(crowd.truth, signal=2.0))
    est.fit(crowd.annotations)
    assert est.prediction_strength_ is None
    again = bc.AutoAggregator().fit(crowd.annotations)
    pd.testing.assert_frame_equal(est.probas_, again.probas_, check_exact=True)


def test_bad_predictions_are_refused(data):
    with pytest.raises(ValueError, match="predictions: none of the 3 predicted tasks"):
        bc.aggregate(data.annotations, predictions=pd.DataFrame(np.eye(4)[:3], index=list("xyz")))
