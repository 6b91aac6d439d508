"""Pictures of budgeted learning show the numbers that they are given."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import bayescrowd as bc
from bayescrowd import plots
from bayescrowd.budgeted.evaluation.planning import BudgetPlan
from bayescrowd.plots.policy_lines import line_style


@pytest.fixture(scope="module")
def policy():
    rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
    table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
    policy = bc.BLeafs(bc.FeatureSpace.from_table(table, target="kind"), 30, 1, seed=2)
    bc.simulate_budget(policy, table, target="kind")
    return policy


def test_curves_are_means_with_standard_errors():
    rows = [("TsGreedy", 2, b, r, 0.4 - b / 1000 + 0.02 * r, b) for b in (50, 100) for r in (0, 1)]
    rows += [("all data", 2, b, r, 0.1, 0) for b in (50, 100) for r in (0, 1)]
    columns = ["policy", "n_features", "budget", "repeat", "error", "spent"]
    curve = pd.DataFrame(rows, columns=columns)
    ax = plots.budget_curves(curve)
    line, level = ax.lines
    np.testing.assert_allclose(line.get_ydata(), [0.36, 0.31])
    np.testing.assert_allclose(level.get_ydata(), 0.1)
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    # two values .02 apart have a standard error of .01
    assert (heights.min(), heights.max()) == pytest.approx((0.30, 0.37))
    both = pd.concat([curve, curve.assign(n_features=3)])
    with pytest.raises(ValueError, match="expected one of 2, 3"):
        plots.budget_curves(both)
    assert "3 features" in plots.budget_curves(both, n_features=3).get_title(loc="left")
    with pytest.raises(ValueError, match="no column 'error'"):
        plots.budget_curves(curve.drop(columns="error"))


def test_spending_ends_at_the_table_of_spending(policy):
    result = policy.result()
    ax = plots.spending_course(result)
    ends = {line.get_label(): line.get_ydata()[-1] for line in ax.lines}
    (chosen,) = result.selected
    assert ends[chosen] == result.spending.loc[chosen, "observations"]
    assert sum(ends.values()) == len(result.history)
    assert ax.lines[0].get_xdata()[-1] == result.spent


def test_posteriors_are_beta_distributions(policy):
    result, space = policy.result(), policy.space
    ax = plots.posterior_course(result, space, "colour", value="red", probability=0.5)
    asked = result.history[result.history["feature"] == "colour"]
    for line, band, name in zip(ax.lines, ax.collections, space.classes, strict=True):
        answers = asked.loc[asked["target"] == name, "answers"]
        a, b = (1 + sum(given == (value,) for given in answers) for value in ("red", "green"))
        assert line.get_ydata()[-1] == pytest.approx(a / (a + b))
        corners = band.get_paths()[0].vertices
        last = corners[corners[:, 0] == corners[:, 0].max()][:, 1]
        for quantile in beta(a, b).ppf([0.25, 0.75]):
            assert np.isclose(last, quantile, rtol=0, atol=1e-9).any()
    with pytest.raises(ValueError, match="no feature 'shape'; expected one of"):
        plots.posterior_course(result, space, "shape")


def test_credibility_ends_where_the_policy_is(policy):
    ax = plots.credibility_course(policy)
    shares = {line.get_label(): line.get_ydata()[-1] for line in ax.lines[1:]}
    (chosen,) = policy.result().selected
    known = policy.credibility()
    # both features have two values, hence one threshold: the shares stand as the credibilities do
    (other,) = (value for name, value in shares.items() if name != chosen)
    rest = known.drop(chosen).iloc[0]
    assert shares[chosen] / other == pytest.approx(known[chosen] / rest)
    assert shares[chosen] >= 1
    with pytest.raises(ValueError, match="expected a policy with the naive Bayes model"):
        plots.credibility_course(
            bc.BLeafs(policy.space, 30, 1, model="access_path", labels_per_query=3)
        )


def test_nothing_bought_is_nothing_to_draw(policy):
    fresh = bc.BLeafs(policy.space, 30, 1)
    for draw in (
        lambda: plots.spending_course(fresh.result()),
        lambda: plots.credibility_course(fresh),
    ):
        with pytest.raises(ValueError, match="nothing was bought yet"):
            draw()


def test_a_plan_says_what_it_answers():
    columns = {"gap": [0.1, 0.0], "standard_error": 0.01, "monotone": [0.1, 0.0]}
    gaps = pd.DataFrame(columns, index=pd.Index([50, 100], name="budget"))
    reached = BudgetPlan("reached", 80.0, 0.0, np.inf, "", 0.2, gaps)
    for plan, title in (
        (reached, "Within 0.04 of the best: about 80"),
        (reached._replace(verdict="not reached", budget=np.inf), "Not within 0.04 of the best"),
        (reached._replace(verdict="pilot too small"), "The pilot is too small to tell"),
    ):
        assert plots.budget_plan(plan, within=0.04).get_title(loc="left") == title


def test_a_policy_looks_the_same_however_it_is_spelt():
    assert line_style("B-LEAFS") == line_style("BLeafs") == line_style("b-leafs")
    looks = {(s["color"], s["marker"]) for s in (line_style("", place) for place in range(8))}
    assert len(looks) == 8
