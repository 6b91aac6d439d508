import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import bayescrowd as bc
from bayescrowd.mixture.stagewise_estimator import StagewiseEM
from bayescrowd.plots.stagewise import information_map, stagewise_course

QUANTITIES = ("log_likelihood", "max_information", "n_informative")


@pytest.fixture(scope="module")
def est():
    crowd = bc.simulate.sparse_crowd(300, 20, alpha=0.3, accuracy=0.8, seed=0)
    return StagewiseEM(3).fit(crowd.annotations)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_course_is_that_of_the_history(est, quantity):
    axes = Figure().subplots()
    assert stagewise_course(est, quantity, axes, reference=1.5) is axes
    course, splits, reference = axes.lines
    expected = est.history_[quantity].to_numpy(float)
    if quantity == "log_likelihood":
        expected = expected / 300
    np.testing.assert_allclose(course.get_ydata(), expected)
    np.testing.assert_array_equal(splits.get_xdata(), [0, 1])
    assert set(reference.get_ydata()) == {1.5}
    assert axes.get_xlabel() == "iteration"


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_course_on_axes_of_its_own(est, quantity):
    axes = stagewise_course(est, quantity)
    FigureCanvasAgg(axes.figure).draw()
    assert plt.get_fignums() == []


def test_unknown_quantity(est):
    with pytest.raises(Exception, match="quantity"):
        stagewise_course(est, "error")


@pytest.mark.parametrize("n_features", [2, 40])
def test_map_blanks_the_diagonal_and_names_some_features(n_features):
    names = [f"f{place}" for place in range(n_features)]
    table = pd.DataFrame(np.full((n_features, n_features), 0.1), names, names)
    axes = information_map(table, largest=0.4)
    (image,) = axes.images
    assert np.isnan(np.diag(image.get_array().filled(np.nan))).all()
    assert image.get_clim() == (0.0, 0.4)
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert (shown[0], shown[-1]) == (names[0], names[-1])
    assert len(shown) <= 12
    assert (table == 0.1).all(axis=None)
    FigureCanvasAgg(axes.figure).draw()


def test_map_of_a_fit(est):
    axes = information_map(est.unexplained())
    assert axes.images[0].get_clim()[1] == pytest.approx(est.unexplained().to_numpy().max())
