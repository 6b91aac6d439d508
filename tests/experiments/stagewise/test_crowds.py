import numpy as np
import pytest

from bayescrowd import simulate
from bayescrowd.experiments.stagewise.crowds import (
    figure3_crowd,
    percent_wrong,
    stagewise_em,
    true_model,
)


def test_settings_of_the_paper_can_be_overridden():
    assert stagewise_em(3).n_iter == 20
    assert stagewise_em(3, n_iter=5).n_iter == 5
    assert stagewise_em(3, n_iter=5).step == 0.1


def test_true_model_by_hand():
    data = simulate.one_coin_crowd(1, 2, accuracy=[0.9, 0.6], seed=0)
    first, second = data.annotations.label_codes
    chances = [0.5 * (0.9 if first == k else 0.1) * (0.6 if second == k else 0.4) for k in range(2)]
    model = true_model(data)
    assert model.log_likelihood == pytest.approx(np.log(sum(chances)))
    np.testing.assert_allclose(model.probas.loc[0], np.array(chances) / sum(chances))


def test_true_model_needs_parameters():
    data = simulate.one_coin_crowd(5, 3, seed=0)
    with pytest.raises(ValueError, match="was not simulated"):
        true_model(data._replace(parameters=None))
    with pytest.raises(ValueError, match="has no truth"):
        percent_wrong(true_model(data).probas, data._replace(truth=None))


def test_figure_3_crowd_is_the_papers():
    data = figure3_crowd(0)
    assert (data.annotations.n_tasks, data.annotations.n_workers) == (1000, 100)
    assert data.parameters.confusions[0, 0, 0] == pytest.approx(0.7)
    assert data.parameters.confusions[29, 0, 0] == pytest.approx(0.45)
