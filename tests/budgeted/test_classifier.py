"""The classifier: Bayes' rule by hand, several labels, missing ones, and contributions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import CategoricalNB

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.majorities import first_majority, majority_shares
from bayescrowd.budgeted.beliefs.naive_bayes import ChannelReader
from bayescrowd.budgeted.classifier import Classifier
from bayescrowd.budgeted.evaluation.paired_runs import classification_error, learn_from_all
from bayescrowd.budgeted.space import FeatureSpace

SPACE = FeatureSpace(
    classes=["cat", "dog"], features={"ear": ["up", "down"], "tail": [1, 2, 3]}, prior=[0.8, 0.2]
)
EAR = np.array([[0.9, 0.1], [0.5, 0.5]])
TAIL = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
READERS = {"tail": ChannelReader(TAIL, majority_shares), "ear": ChannelReader(EAR, majority_shares)}
CLASSIFIER = Classifier(SPACE, READERS)


def test_by_hand():
    frame = pd.DataFrame({"ear": ["down"], "tail": [1], "other": ["?"]}, index=["rex"])
    cat, dog = 0.8 * 0.1 * 0.2, 0.2 * 0.5 * 0.6
    found = CLASSIFIER.predict_proba(frame)
    assert found.loc["rex"].to_list() == pytest.approx([cat / (cat + dog), dog / (cat + dog)])
    assert CLASSIFIER.predict(frame).to_dict() == {"rex": "dog"}


def test_missing_and_several_labels():
    frame = pd.DataFrame(
        {"ear": [None, ["down", "up", "down"], []], "tail": [np.nan, 2, [1, 3, None]]}, dtype=object
    )
    found = CLASSIFIER.predict_proba(frame)["cat"]
    assert found[0] == pytest.approx(0.8)  # nothing known: the prior
    assert found[1] == pytest.approx(0.8 * 0.1 * 0.3 / (0.8 * 0.1 * 0.3 + 0.2 * 0.5 * 0.3))
    tied = np.array([0.8, 0.2]) * (TAIL[:, 0] + TAIL[:, 2])
    assert found[2] == pytest.approx(tied[0] / tied.sum())


def test_ties_go_to_the_first_label_of_a_list_or_the_least_of_a_set():
    first = Classifier(SPACE, {"tail": ChannelReader(TAIL, first_majority)})
    cells = [[3, 1], [1, 3], {3, 1}, 3, 1]
    found = first.predict_proba(pd.DataFrame({"tail": pd.Series(cells, dtype=object)}))["cat"]
    assert found[[0, 1, 2]].tolist() == found[[3, 4, 4]].tolist()
    assert found[3] != found[4]


def test_contributions_sum_to_the_log_odds():
    frame = pd.DataFrame({"ear": ["up", "down"], "tail": [3, 1]})
    parts = CLASSIFIER.contributions(frame, target="dog", against="cat")
    assert list(parts.columns) == ["prior", "tail", "ear"]
    probas = CLASSIFIER.predict_proba(frame)
    odds = np.log(probas["dog"]) - np.log(probas["cat"])
    np.testing.assert_allclose(parts.sum(axis=1), odds)
    assert parts.loc[1, "ear"] == pytest.approx(np.log(0.5 / 0.1))


def test_a_feature_may_be_called_prior():
    space = FeatureSpace(classes=["a", "b"], features={"prior": [0, 1]}, prior=[0.8, 0.2])
    channel = np.array([[0.9, 0.1], [0.3, 0.7]])
    named = Classifier(space, {"prior": ChannelReader(channel, majority_shares)})
    parts = named.contributions(pd.DataFrame({"prior": [1]}), target="a", against="b")
    assert parts.loc[0].to_dict() == pytest.approx(
        {"class prior": np.log(4), "prior": np.log(0.1 / 0.7)}
    )


def test_impossible_labels_leave_the_prior():
    channel = np.array([[1.0, 0.0], [1.0, 0.0]])
    sure = Classifier(SPACE, {"ear": ChannelReader(channel, majority_shares)})
    found = sure.predict_proba(pd.DataFrame({"ear": ["down", "up"]}))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.8, 0.2]])


def test_agrees_with_scikit_learn_on_a_whole_table(birds):
    # scikit-learn takes the classes' frequencies as they are, without a prior
    shares = birds["kind"].value_counts(normalize=True)
    classes = FeatureSpace.from_table(birds, target="kind").classes
    space = FeatureSpace.from_table(birds, target="kind", prior=shares[list(classes)].to_list())
    coded = space.code(birds, target="kind")
    (classifier,) = learn_from_all(space, coded.target, coded.values[:, :, None], [4])
    reference = CategoricalNB(alpha=1.0).fit(coded.values, coded.target)
    found = classifier.predict_proba(birds)
    np.testing.assert_allclose(found, reference.predict_proba(coded.values), rtol=1e-6)
    error = classification_error(classifier, space, coded.target, coded.values[:, :, None])
    assert error == pytest.approx(1 - reference.score(coded.values, coded.target))


def test_intervals_are_found_for_new_numbers():
    frame = pd.DataFrame({"size": np.arange(40.0), "kind": ["small"] * 20 + ["large"] * 20})
    space = FeatureSpace.from_table(frame, target="kind")
    policy = bc.RoundRobin(space, 40, 1)
    classifier = bc.simulate_budget(policy, frame, target="kind").classifier
    new = pd.DataFrame({"size": [-3.5, 77.7]})
    assert classifier.predict(new).to_list() == ["small", "large"]


def test_bad_instances():
    with pytest.raises(ValueError, match="no column 'tail'"):
        CLASSIFIER.predict_proba(pd.DataFrame({"ear": ["up"]}))
    with pytest.raises(ValueError, match="row 'b', column 'ear': 'left' is not one of"):
        CLASSIFIER.predict_proba(
            pd.DataFrame({"ear": ["up", "left"], "tail": [1, 1]}, index=["a", "b"])
        )
    with pytest.raises(ValueError, match="no class 'cow'"):
        CLASSIFIER.contributions(
            pd.DataFrame({"ear": ["up"], "tail": [1]}), target="cow", against="cat"
        )
