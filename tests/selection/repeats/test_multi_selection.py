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
from bayescrowd.selection.repeats.moments import nearest_psd
from bayescrowd.selection.repeats.selector import InfeasibleProjectionWarning

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
    with pytest.warns(UserWarning, match="predictions use those that are there"):
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


# Projections that cannot be


def correlated(m=100):
    """Six attributes with much in common."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(m, 1)) + 0.3 * rng.normal(size=(m, 6))
    return truth[:, :, None] + 0.5 * rng.normal(size=(m, 6, 2)), truth.sum(axis=1)


def test_scoring_reports_an_infeasible_projection():
    """Equation 1 sums b^2 / (sigma^2 + v/r): above Var y, it is not shown as a loss of 0."""
    values, y = correlated()
    with pytest.warns(InfeasibleProjectionWarning, match="treats attributes as uncorrelated"):
        est = bc.MultiSelection(20, method="scoring").fit(values, y)
    table = est.attributes_
    for repeats, loss in zip(est.repeats_.to_numpy(), est.projected_loss_, strict=True):
        asked = repeats > 0
        spread = table["external_variance"] + table["internal_variance"] / np.maximum(repeats, 1)
        explained = (table["correlation"] ** 2 / spread)[asked].sum()
        if explained > y.var():
            assert np.isnan(loss)
        else:
            assert loss == pytest.approx(y.var() - explained)
    assert est.projected_loss_.isna().sum() == 19
    assert "from a budget of 2 on" in est.projection_problem_
    shopping = est.shopping_list()
    assert shopping[["adds", "share"]].isna().all(axis=None)
    assert shopping["times"].sum() == 20
    assert est.shopping_list(1)["share"].sum() == pytest.approx(
        1 - est.projected_loss_[1] / est.projected_loss_[0]
    )
    full = bc.MultiSelection(20).fit(values, y)  # no warning
    assert full.projection_problem_ is None
    assert full.projected_loss_.between(0, y.var(), inclusive="neither")[1:].all()


def test_few_objects_report_an_infeasible_projection():
    rng = np.random.default_rng(199)
    truth = rng.normal(size=(15, 8))
    values = truth[:, :, None] + rng.normal(size=(15, 8, 2))
    with pytest.warns(InfeasibleProjectionWarning, match=r"15 objects, contradict.*ridge above 0"):
        est = bc.MultiSelection(20).fit(values, truth.sum(axis=1))
    assert np.isnan(est.projected_loss_.iloc[-1])
    est.set_params(ridge=0.5).fit(values, truth.sum(axis=1))
    assert est.projected_loss_.iloc[-1] > 0


def test_a_target_that_is_explained_in_full_is_feasible():
    """All of the variance and a rounding error more: a loss of 0, which is right."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        truth = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3))
        values = np.repeat(truth[:, :, None], 2, axis=2)
        est = bc.MultiSelection(3).fit(values, truth @ [1.0, 0.1, -3.0])
        assert est.projection_problem_ is None
        # what is left is judged against the variance of single attributes: VANISHING
        assert est.projected_loss_.iloc[-1] == pytest.approx(0, abs=1e-8)


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


def with_constant(seed, constant, k=2, m=60):
    """Three attributes, of which the second is replaced by a constant; and the other two alone."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, 3))
    values = truth[:, :, None] + 0.5 * rng.normal(size=(m, 3, k))
    values[:, 1] = constant
    return values, values[:, [0, 2]], truth @ [1, 0.5, 2.0]


def assert_never_chosen(selector, values, others, y):
    est, alone = clone(selector).fit(values, y), clone(selector).fit(others, y)
    np.testing.assert_array_equal(est.repeats_[1], 0)
    np.testing.assert_array_equal(est.repeats_[[0, 2]], alone.repeats_)
    np.testing.assert_allclose(est.projected_loss_, alone.projected_loss_, rtol=1e-9)
    assert est.internal_variance_[1] == est.correlation_[1] == est.reliability_[1] == 0
    np.testing.assert_allclose(est.shopping_list()["adds"], alone.shopping_list()["adds"])


def test_a_constant_attribute_is_never_chosen():
    """Of 200 such crowds, judging it by its own rounding errors goes wrong in about 30."""
    for seed in range(200):
        assert_never_chosen(bc.MultiSelection(8), *with_constant(seed, 4.7))


@pytest.mark.parametrize("constant", [4.7, 1e6 + 0.1, 1e-8, 0.1, -1e15 - 0.3, 0.0])
@pytest.mark.parametrize(
    "selector",
    [
        bc.MultiSelection(8, ridge=0.1),
        bc.MultiSelection(8, method="scoring"),
        bc.MultiSelection(8, average="median"),
        bc.MultiSelection(8, search="exact"),
        bc.MultiSelection(8, search="gain"),
        bc.Averages(8),
        bc.Copies(8),
    ],
    ids=str,
)
# Two attributes that correlate by chance, as happens with 60 objects, are too much for 'scoring'.
@pytest.mark.filterwarnings(
    "ignore::bayescrowd.selection.repeats.multi_selection.InfeasibleProjectionWarning"
)
def test_constants_of_every_magnitude(selector, constant):
    for seed in range(6):
        assert_never_chosen(selector, *with_constant(seed, constant, k=3))


def test_a_constant_that_users_computed_themselves():
    """0.3, 0.1 + 0.2 and the next floats: constant but for rounding."""
    near = np.nextafter([0.3, 0.3, 0.1 + 0.2], [0.0, 1.0, 1.0])
    for seed in range(40):
        values, others, y = with_constant(seed, 0.3)
        values[:, 1] = np.random.default_rng(seed).choice(near, size=(60, 2))
        assert_never_chosen(bc.MultiSelection(8), values, others, y)


def test_a_constant_in_long_sums():
    """A sum of 30,000 tenths is wrong in the twelfth digit."""
    values, others, y = with_constant(0, 0.1, m=30_000)
    assert_never_chosen(bc.MultiSelection(8), values, others, y)
    values, others, y = with_constant(0, 0.1, m=20, k=3_000)
    assert_never_chosen(bc.MultiSelection(8), values, others, y)


def test_judges_who_agree_are_asked_once():
    """Constant within objects, though not between them: one judgement is as good as any."""
    for seed in range(40):
        values, _, y = with_constant(seed, 0.0, k=3)
        values[:, 1] = 0.1 * np.random.default_rng(seed).integers(0, 30, size=(60, 1))
        est = bc.MultiSelection(8).fit(values, y + values[:, 1, 0])
        assert est.internal_variance_[1] == 0
        assert est.reliability_[1] == 1
        assert est.selected_[1] == 1


def test_objects_that_do_not_differ_are_not_asked_about():
    """The same three judgements of every object, in any order: no difference between objects."""
    for seed in range(40):
        values, others, y = with_constant(seed, 0.0, k=3)
        values[:, 1] = np.random.default_rng(seed).permuted([[0.1, 0.2, 0.3]] * 60, axis=1)
        est, alone = bc.MultiSelection(8).fit(values, y), bc.MultiSelection(8).fit(others, y)
        assert est.correlation_[1] == est.reliability_[1] == 0
        np.testing.assert_array_equal(est.repeats_[[0, 2]], alone.repeats_)


@pytest.mark.parametrize("constant", [4.7, 1e6 + 0.1, 1e-8, -0.1])
@pytest.mark.parametrize("selector", [bc.MultiSelection, bc.Averages, bc.Copies])
def test_a_constant_target_buys_nothing(pilot, selector, constant):
    values, _ = pilot
    est = selector(5).fit(values, np.full(len(values), constant))
    assert est.selected_.empty
    assert (est.projected_loss_ == 0).all()
    np.testing.assert_allclose(est.predict(values), constant, rtol=1e-14)
    assert est.score(values, np.full(len(values), constant)) == 1
    assert est.score(values, np.full(len(values), constant + 1)) == 0


def test_a_target_that_nothing_is_about_buys_nothing():
    """A factorial design: the target is orthogonal to both attributes, up to rounding."""
    design = np.array(list(np.ndindex(2, 2, 2, 2))) * 0.2 - 0.1
    values = np.repeat(design[:, :2, None], 2, axis=2)
    est = bc.MultiSelection(4).fit(values + 0.7, design[:, 2] + 0.1 * design[:, 3])
    assert est.selected_.empty


def test_small_differences_of_large_numbers_are_used():
    """1e6 + N(0, 1), and even one part in 10^12, are data: as good as without the offset."""
    for seed in range(10):
        values, y = drawn(seed, 200)
        plain = bc.MultiSelection(8).fit(values, y)
        for offset in (1e6, 1e12):
            far = bc.MultiSelection(8).fit(values + offset, y + offset)
            pd.testing.assert_frame_equal(far.repeats_, plain.repeats_)
            # a unit in the last place of 1e12 is 1e-4
            np.testing.assert_allclose(far.projected_loss_, plain.projected_loss_, rtol=1e-2)


@pytest.mark.parametrize("search", ["cost-benefit", "exact"])
def test_units_of_measurement_change_nothing(search):
    """Metres beside micrometres: neither is negligible for being written in large units."""
    values, y = drawn(3, 2_000)
    units = np.array([1e6, 1.0, 1e-6])
    plain = bc.MultiSelection(6, search=search).fit(values, y)
    assert np.linalg.eigvalsh(plain._moments.external).min() > 0
    scaled = bc.MultiSelection(6, search=search).fit(values * units[:, None], y)
    pd.testing.assert_frame_equal(scaled.repeats_, plain.repeats_)
    np.testing.assert_allclose(scaled.projected_loss_, plain.projected_loss_, rtol=1e-9)
    np.testing.assert_allclose(scaled.coef_ * units[scaled.coef_.index], plain.coef_, rtol=1e-7)


def test_a_classifier_is_learned_where_an_attribute_has_become_constant():
    values, y = drawn(5, 300, k=4)
    est = bc.MultiSelectionClassifier(budget=4).fit(values, y > 0)
    values[:, est.selected_.index[0]] = 4.7
    est.refit(values, y > 0)
    assert np.isfinite(est.predict_proba(values)).all()


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
    with pytest.raises(ValueError, match="judgements of 1 object; expected at least two"):
        bc.MultiSelection(2).fit(values[:1], y[:1])
    with pytest.raises(ValueError, match="attribute 0 is never judged twice"):
        bc.MultiSelection(2).fit(values[:, :, :1], y)
    with pytest.raises(ValueError, match="the target of object 4 is missing"):
        bc.MultiSelection(2).fit(values, np.where(np.arange(200) == 4, np.nan, y))
    with pytest.raises(ValueError, match="2 attributes; 3 were fitted"):
        bc.MultiSelection(2).fit(values, y).predict(values[:, :2])
