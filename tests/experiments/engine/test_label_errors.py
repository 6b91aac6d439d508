import pandas as pd
import pytest

from bayescrowd.experiments.engine.label_errors import CROWDS, label_error, loaded_crowd


@pytest.mark.parametrize("each", CROWDS, ids=lambda each: each.name)
def test_number_of_scored_tasks(each, crowd):
    crowd(each.name)
    assert len(loaded_crowd(each.name).truth) == each.n_scored


def test_error_is_the_share_of_wrong_labels(crowd):
    crowd("bluebird")
    truth = loaded_crowd("bluebird").truth
    probas = pd.get_dummies(truth).astype(float)
    probas.iloc[:3] = 1 - probas.iloc[:3]
    probas.iloc[3] = 0.5
    assert label_error(probas, "bluebird") == pytest.approx(100 * 3.5 / 108)
