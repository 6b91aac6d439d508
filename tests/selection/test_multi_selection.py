"""Multi-selection: closed forms, scikit-learn's protocol, prediction, and every bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

import bayescrowd as bc
from bayescrowd.selection.repeat_moments import nearest_psd

SIGMA = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.0]])
WEIGHTS = np.array([1.0, 0.5, -1.0])
INTERNAL = np.array([0.1, 1.0, 3.0])
RESIDUAL = 0.25
SELECTORS = [bc.MultiSelection, bc.MultiSelectionClassifier, bc.Averages, bc.Copies]


def drawn(seed, m, k=2, means=(0, 0, 0)):
    rng = np.random.default_rng(seed)
    truth = rng.multivariate_normal(np.zeros(3), SIGMA, size=m)
    y = truth @ WEIGHTS + np.sqrt(RESIDUAL) * rng.normal(size=m)
    noise = np.sqrt(INTERNAL)[:, None] * rng.normal(size=(m, 3, k))
    return truth[:, :, None] + np.array(means)[:, None] + noise, y


def true_loss(repeats):
    """The closed form with the true Sigma, v and b."""
    asked = np.flatnonzero(repeats)
    b = SIGMA @ WEIGHTS
    matrix = SIGMA[np.ix_(asked, asked)] + np.diag(INTERNAL[asked] / repeats[asked])
    total = WEIGHTS @ SIGMA @ WEIGHTS + RESIDUAL
    return total - b[asked] @ np.linalg.solve(matrix, b[asked])


def as_table(values):
    place = np.argwhere(~np.isnan(values))
    return pd.DataFrame(
        {
            "object": [f"o{i}" for i in place[:, 0]],
            "attribute": np.array(["smooth", "bright", "old"])[place[:, 1]],
            "value": values[tuple(place.T)],
        }
    )


@pytest.fixture(scope="module")
def pilot():
    return drawn(0, 200)


# Known truth


def test_projected_loss_converges_at_the_root_of_m():
    """Root mean squared errors fall by 4 from m to 16 m; 15 draws of three tell that to 50 %."""
    vectors = np.array([[1, 1, 1], [2, 0, 3], [5, 5, 5]])
    errors = {}
    for m in (300, 4800):
        found = []
        for seed in range(15):
            est = bc.MultiSelection(budget=1).fit(*drawn(seed, m))
            moments, external = est._moments, est.external_covariance_.to_numpy()
            for vector in vectors:
                asked = np.flatnonzero(vector)
                noise = np.diag(moments.internal_variance[asked] / vector[asked])
                b = moments.correlation[asked, 0]
                projected = moments.target_variance - b @ np.linalg.solve(
                    external[np.ix_(asked, asked)] + noise, b
                )
                found.append(projected - true_loss(vector))
        errors[m] = np.sqrt(np.mean(np.square(found)))
    assert 2.6 < errors[300] / errors[4800] < 6


def test_projected_loss_is_the_closed_form_of_a_large_sample():
    est = bc.MultiSelection(budget=12).fit(*drawn(1, 20_000))
    expected = [true_loss(vector) for vector in est.repeats_.to_numpy()[1:]]
    # sd of a variance of 2.4 from 20,000 objects: 0.024
    np.testing.assert_allclose(est.projected_loss_[1:], expected, atol=0.08)
    np.testing.assert_allclose(est.internal_variance_, INTERNAL, rtol=0.05)
    np.testing.assert_allclose(est.external_covariance_, SIGMA, atol=0.07)
    np.testing.assert_allclose(est.correlation_, SIGMA @ WEIGHTS, atol=0.08)
    np.testing.assert_allclose(est.reliability_, 1 / (1 + INTERNAL), atol=0.03)


def test_the_chosen_repeats_reach_the_optimum():
    """With the true moments nearly at hand, 98 % of what the best vector explains."""
    est = bc.MultiSelection(budget=6).fit(*drawn(2, 20_000))
    vectors = [np.array(r) for r in np.ndindex(7, 7, 7) if 0 < sum(r) <= 6]
    total = WEIGHTS @ SIGMA @ WEIGHTS + RESIDUAL
    best = max(total - true_loss(vector) for vector in vectors)
    assert total - true_loss(est.repeats_.iloc[-1].to_numpy()) > 0.98 * best


def test_the_free_constant_feature():
    """Removing means is what a constant feature without cost does, and shifts do nothing."""
    values, y = drawn(3, 80, means=(50, -20, 5))
    est = bc.MultiSelection(budget=8).fit(values, y + 100)
    shifted = bc.MultiSelection(budget=8).fit(values + 7.5, y - 3)
    pd.testing.assert_frame_equal(est.repeats_, shifted.repeats_)
    np.testing.assert_allclose(est.projected_loss_, shifted.projected_loss_, rtol=1e-6)
    # second moments with the constant in front, not centred, as printed
    x = np.column_stack([np.ones(80), values.mean(axis=2)])
    v = values.var(axis=2, ddof=1).mean(axis=0)
    raw = x.T @ x / 80 - np.diag([0, *(v / 2)])
    schur = raw[1:, 1:] - np.outer(raw[1:, 0], raw[0, 1:])
    assert np.linalg.eigvalsh(schur).min() > 0  # or rounding would not commute with centring
    b = x.T @ (y + 100) / 80
    for repeats, loss in zip(est.repeats_.to_numpy()[1:], est.projected_loss_[1:], strict=True):
        asked = np.flatnonzero([1, *repeats])
        noise = np.diag([0, *(v[repeats > 0] / repeats[repeats > 0])])
        explained = b[asked] @ np.linalg.solve(raw[np.ix_(asked, asked)] + noise, b[asked])
        assert np.mean((y + 100) ** 2) - explained == pytest.approx(loss, rel=1e-6)


def test_external_covariance_is_rounded():
    values = np.random.default_rng(0).normal(size=(12, 5, 2))  # nothing between objects
    est = bc.MultiSelection(budget=3).fit(values, values[:, 0, 0])
    raw = est._moments.external
    assert np.linalg.eigvalsh(raw).min() < -0.05
    assert np.linalg.eigvalsh(est.external_covariance_).min() > -1e-12
    np.testing.assert_allclose(est.external_covariance_, nearest_psd(raw))


# Prediction


def test_refit_is_least_squares_on_the_averages(pilot):
    values, y = pilot
    est = bc.MultiSelection(budget=6).fit(values, y)
    more, target = drawn(7, 150, k=int(est.selected_.max()))
    exact = more.copy()
    for a in range(3):
        exact[:, a, est.selected_.get(a, 0) :] = np.nan
    est.refit(exact, target)
    averages = np.column_stack([np.nanmean(exact[:, a], axis=1) for a in est.selected_.index])
    expected = LinearRegression().fit(averages, target)
    np.testing.assert_allclose(est.coef_, expected.coef_, rtol=1e-8)
    assert est.intercept_ == pytest.approx(expected.intercept_, rel=1e-8)
    np.testing.assert_allclose(est.predict(exact), expected.predict(averages), rtol=1e-8)


def test_refit_allows_for_more_judgements_than_are_used_later():
    """Fitted on averages of 20, used on averages of 2: the slope is that for 2."""
    values, y = drawn(3, 3000)
    est = bc.MultiSelection(budget=2).fit(values[:, 1:2], y)
    assert est.selected_.tolist() == [2]
    many, y = drawn(4, 20_000, k=20)
    est.refit(many[:, 1:2], y)
    b = (SIGMA @ WEIGHTS)[1]
    # standard error of the slope about 0.01
    assert est.coef_[0] == pytest.approx(b / (1 + INTERNAL[1] / 2), abs=0.05)
    assert abs(est.coef_[0] - b / (1 + INTERNAL[1] / 20)) > 0.05


def test_missing_judgements_are_named_and_done_without(pilot):
    values, y = pilot
    table, target = as_table(values), pd.Series(y, index=[f"o{i}" for i in range(200)])
    est = bc.MultiSelection(budget=8).fit(table, target)
    assert est.selected_.max() > 2
    missing = est.missing(table)
    assert list(missing.columns) == ["object", "attribute", "judged", "wanted", "missing"]
    wanted = est.selected_[est.selected_ > 2]
    assert len(missing) == 200 * len(wanted)
    assert missing["missing"].sum() == 200 * (wanted - 2).sum()
    with pytest.raises(ValueError, match=r"object 'o0' has 2 of \d judgements of attribute"):
        est.refit(table, target)
    with pytest.warns(UserWarning, match="predicted from those that are there"):
        predicted = est.predict(table)
    assert isinstance(predicted, pd.Series)
    assert predicted.index.equals(pd.Index(sorted(target.index), name="object"))
    with pytest.warns(UserWarning, match="are missing in all"):
        score = est.score(table, target)
    assert 0.6 < score < 1


def test_fewer_judgements_have_smaller_coefficients(pilot):
    est = bc.MultiSelection(budget=9, method="scoring").fit(*pilot)
    full = est._predictor.coefficients(est.selected_.to_numpy())
    one = est._predictor.coefficients(np.ones(len(est.selected_), dtype=int))
    none = est._predictor.coefficients(np.zeros(len(est.selected_), dtype=int))
    assert (np.abs(one) <= np.abs(full) + 1e-12).any()
    assert (none == 0).all()


def test_budget_on_the_way(pilot):
    values, y = pilot
    est = bc.MultiSelection(budget=10).fit(values, y)
    small = bc.MultiSelection(budget=4).fit(values, y)
    pd.testing.assert_series_equal(est.repeats_at(4), small.repeats_.iloc[-1])
    assert est.repeats_.sum(axis=1).tolist() == list(range(11))
    est.refit(values, y, budget=2)
    assert est._predictor.repeats.sum() == 2
    with pytest.raises(ValueError, match="budget=11: expected 0 to 10"):
        est.repeats_at(11)


def test_shopping_list_adds_up(pilot):
    est = bc.MultiSelection(budget=10, costs=[1, 1, 4]).fit(*pilot)
    table = est.shopping_list()
    assert table["cost"].sum() == pytest.approx(est.repeats_.index[-1])
    fall = est.projected_loss_.iloc[0] - est.projected_loss_.iloc[-1]
    assert table["adds"].sum() == pytest.approx(fall, rel=1e-9)
    assert (table["adds"].diff().dropna() <= 0).all()


# Options


def test_exact_search_is_never_worse(pilot):
    for method in ("full", "scoring"):
        greedy, exact = (
            bc.MultiSelection(7, method=method, costs=[1, 2, 3], search=search).fit(*pilot)
            for search in ("cost-benefit", "exact")
        )
        assert exact.projected_loss_.iloc[-1] <= greedy.projected_loss_.iloc[-1] + 1e-12


def test_ridge_shrinks(pilot):
    plain, ridged = (bc.MultiSelection(5, ridge=r).fit(*pilot) for r in (0.0, 0.5))
    assert ridged.coef_.abs().sum() < plain.coef_.abs().sum()
    assert (ridged.projected_loss_[1:] > plain.projected_loss_[1:]).all()


def test_medians_resist_wild_judgements():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 2))
    y = truth.sum(axis=1)
    crowd = truth[:, :, None] + rng.standard_t(1.5, size=(400, 2, 11))
    by_mean, by_median = (
        bc.MultiSelection(22, average=average).fit(crowd[:200], y[:200])
        for average in ("mean", "median")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # more than eleven of one may be wanted
        assert by_median.score(crowd[200:], y[200:]) > by_mean.score(crowd[200:], y[200:]) + 0.1


def test_scoring_does_without_pairs():
    values = np.full((20, 2, 2), np.nan)
    values[:10, 0] = np.random.default_rng(0).normal(size=(10, 2))
    values[10:, 1] = np.random.default_rng(1).normal(size=(10, 2))
    y = np.arange(20.0)
    with pytest.raises(ValueError, match="never judged on the same object"):
        bc.MultiSelection(2).fit(values, y)
    assert bc.MultiSelection(2, method="scoring").fit(values, y).repeats_.shape == (3, 2)


# Classification


def test_classifier_takes_the_same_path_and_is_logistic():
    values, y = drawn(5, 300)
    is_high = y > 0
    est = bc.MultiSelectionClassifier(budget=4, ridge=0.01).fit(values, is_high)
    by_number = bc.MultiSelection(budget=4, ridge=0.01).fit(values, is_high.astype(float))
    pd.testing.assert_frame_equal(est.repeats_, by_number.repeats_)
    many, target = drawn(6, 300, k=4)
    est.refit(many, target > 0)
    averages = many.mean(axis=2)[:, est.selected_.index]
    scaled = (averages - averages.mean(axis=0)) / averages.std(axis=0)
    expected = LogisticRegression(C=1 / (0.01 * 300), max_iter=10_000).fit(scaled, target > 0)
    np.testing.assert_allclose(est.predict_proba(many), expected.predict_proba(scaled), atol=1e-4)
    assert est.score(many, target > 0) > 0.8


def test_three_classes_and_tables():
    values, y = drawn(8, 300)
    kinds = np.array(["low", "middle", "high"])[np.digitize(y, [-0.7, 0.7])]
    target = pd.Series(kinds, index=[f"o{i}" for i in range(300)])
    est = bc.MultiSelectionClassifier(budget=4).fit(as_table(values), target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        probabilities = est.predict_proba(as_table(values))
        assert est.score(as_table(values), target) > 0.5
    assert list(probabilities.columns) == ["high", "low", "middle"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    with pytest.raises(ValueError, match="y holds the classes"):
        est.refit(as_table(drawn(9, 300, k=4)[0]), target.replace("middle", "low"))


# scikit-learn


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize(
    "check",
    [
        "check_no_attributes_set_in_init",
        "check_get_params_invariance",
        "check_set_params",
        "check_parameters_default_constructible",
        "check_estimator_cloneable",
        "check_estimator_repr",
    ],
)
def test_scikit_learns_own_checks(selector, check):
    getattr(estimator_checks, check)(selector.__name__, selector())


@pytest.mark.parametrize("selector", SELECTORS)
def test_fit_returns_itself_and_repeats(selector, pilot):
    values, y = pilot
    target = y > 0 if selector is bc.MultiSelectionClassifier else y
    before = values.copy(), np.array(target)
    est = selector(budget=4)
    assert est.fit(values, target) is est
    np.testing.assert_array_equal(values, before[0])
    again = clone(est).fit(values, target)
    pd.testing.assert_frame_equal(est.repeats_, again.repeats_)
    np.testing.assert_array_equal(est.predict(values[:5, :, :4]), again.predict(values[:5]))
    assert est.n_features_in_ == 3


def test_grid_search_over_budgets(pilot):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search = GridSearchCV(bc.MultiSelection(), {"budget": [1, 4]}, cv=3).fit(*pilot)
    assert search.best_params_ == {"budget": 4}


# Bad and odd input


def test_constant_attribute_and_constant_target(pilot):
    values, y = pilot
    flat = values.copy()
    flat[:, 1] = 3.0
    est = bc.MultiSelection(budget=5).fit(flat, y)
    assert 1 not in est.selected_.index
    assert est.reliability_[1] == 0
    nothing = bc.MultiSelection(budget=5).fit(values, np.ones(len(y)))
    assert nothing.selected_.empty
    assert len(nothing.repeats_) == 6
    assert nothing.predict(values).tolist() == [1.0] * len(y)
    assert nothing.shopping_list().empty


def test_collinear_attributes_change_nothing(pilot):
    values, y = pilot
    exact = np.repeat(values[:, :, :1], 2, axis=2)  # judges who agree
    double = np.concatenate([exact, 2 * exact[:, :1]], axis=1)
    alone = bc.MultiSelection(budget=5).fit(exact, y)
    both = bc.MultiSelection(budget=5).fit(double, y)
    np.testing.assert_allclose(both.projected_loss_, alone.projected_loss_, rtol=1e-8)
    assert not {0, 3} <= set(both.selected_.index)
    np.testing.assert_allclose(both.predict(double), alone.predict(exact), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget=0: expected a finite number above 0"),
        ({"budget": -3}, "budget=-3"),
        ({"budget": float("nan")}, "budget=nan"),
        ({"budget": 3, "costs": [4, 5, 6]}, "buys nothing: the cheapest attribute, 0, costs 4"),
        ({"budget": 0.5}, "expected at least 1"),
        ({"method": "best"}, "method='best': expected 'full' or 'scoring'"),
        ({"search": "random"}, "search='random'"),
        ({"average": "mode"}, "average='mode'"),
        ({"ridge": -1.0}, "ridge=-1"),
        ({"budget": 1e9}, "buys more than"),
    ],
)
def test_bad_parameters(pilot, options, message):
    with pytest.raises(ValueError, match=message):
        bc.MultiSelection().set_params(**options).fit(*pilot)


def test_bad_data(pilot):
    values, y = pilot
    with pytest.raises(ValueError, match="1 object only"):
        bc.MultiSelection(2).fit(values[:1], y[:1])
    with pytest.raises(ValueError, match="attribute 0 is never judged twice"):
        bc.MultiSelection(2).fit(values[:, :, :1], y)
    with pytest.raises(ValueError, match="the target of object 4 is missing"):
        bc.MultiSelection(2).fit(values, np.where(np.arange(200) == 4, np.nan, y))
    with pytest.raises(ValueError, match="2 attributes; 3 were fitted"):
        bc.MultiSelection(2).fit(values, y).predict(values[:, :2])
