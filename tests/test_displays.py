"""What a user sees of a fitted object: one line in a terminal, a small table in a notebook."""

import inspect
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.evaluation.planning import BudgetPlan
from bayescrowd.budgeted.policy import Policy
from bayescrowd.estimator import ParameterMixin

EVIL = "<script>alert(1)</script>"
"""Name of a task, a worker, a class and a feature."""

EXPORTED = [
    value
    for value in (getattr(bc, name) for name in bc.__all__ if name[0].isupper())
    if inspect.isclass(value)
]
ESTIMATORS = [kind for kind in EXPORTED if issubclass(kind, ParameterMixin)]
POLICIES = [kind for kind in EXPORTED if issubclass(kind, Policy)]


@cache
def labels():
    frame = bc.simulate.crowd(30, 8, 2, labels_per_task=6, accuracy=0.8, seed=1).annotations
    frame = frame.to_frame().astype(object)
    for column in ("task", "worker", "label"):
        frame[column] = [EVIL if value == 0 else str(value) for value in frame[column]]
    return bc.Annotations.from_frame(frame)


@cache
def judgements():
    rng = np.random.default_rng(0)
    target = rng.normal(size=40)
    return target[:, None, None] + rng.normal(size=(40, 3, 4)), target


@cache
def fitted(kind):
    """A fitted estimator of each kind."""
    made = (
        kind(2)
        if "n_components" in inspect.signature(kind).parameters
        and (inspect.signature(kind).parameters["n_components"].default is inspect.Parameter.empty)
        else kind(6)
        if hasattr(kind, "repeats_at")
        else kind()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not hasattr(kind, "repeats_at"):
            return made.fit(labels())
        features, target = judgements()
        frame = pd.DataFrame(
            [
                (item, name, value)
                for item, of_item in enumerate(features)
                for name, values in zip((EVIL, "b", "c"), of_item, strict=True)
                for value in values
            ],
            columns=["object", "attribute", "value"],
        )
        is_classifier = kind is bc.MultiSelectionClassifier
        return made.fit(frame, pd.Series(target > 0 if is_classifier else target))


@cache
def table():
    rng = np.random.default_rng(0)
    kind = np.array(["s", EVIL])[np.arange(60) % 2]
    size = np.where(rng.random(60) < 0.8, kind, "s")
    return pd.DataFrame({EVIL: size, "b": rng.choice(["x", "y"], 60), "kind": kind})


def space():
    return bc.FeatureSpace.from_table(table(), target="kind")


@cache
def plan():
    rows = [("A", 1, b, r, 0.2 / b + 0.01 * r) for b in (1, 2, 4) for r in range(4)]
    rows += [("all data", 1, b, r, 0.01 * r) for b in (1, 2, 4) for r in range(4)]
    columns = ["policy", "n_features", "budget", "repeat", "error"]
    return bc.plan_budget(pd.DataFrame(rows, columns=columns), policy="A", within=0.1)


def result():
    return bc.simulate_budget(bc.TsGreedy(space(), 12, 1, seed=1), table(), target="kind")


OBJECTS = {
    **{kind.__name__: lambda kind=kind: fitted(kind) for kind in ESTIMATORS},
    **{kind.__name__: lambda kind=kind: kind(space(), 12, 1) for kind in POLICIES},
    "Annotations": labels,
    "BudgetResult": result,
    "BudgetPlan": plan,
}


def test_all_kinds_are_tried():
    assert {bc.AutoAggregator, bc.MDPD, bc.StagewiseEM, bc.MultiSelection} <= set(ESTIMATORS)
    assert {bc.BLeafs, bc.BudgetedSelection, bc.RoundRobin} <= set(POLICIES)


@pytest.mark.parametrize("name", OBJECTS)
def test_one_line_that_begins_with_the_name(name):
    line = repr(OBJECTS[name]())
    assert line.startswith(name)
    assert "\n" not in line
    assert str(OBJECTS[name]()) == line
    assert 20 < len(line) < 400


@pytest.mark.parametrize("name", OBJECTS)
def test_a_table_with_a_bar_that_runs_nothing(name):
    html = OBJECTS[name]()._repr_html_()
    assert html.count("<table") in (1, 2)
    assert "background:currentColor" in html
    assert "<script" not in html
    # as text, wherever the table names features or classes
    assert "alert(1)" in html or name in ("Averages", "BudgetPlan", "MDPD")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_notebooks_get_both(kind):
    bundle = fitted(kind)._repr_mimebundle_()
    assert bundle["text/plain"] == repr(fitted(kind))
    assert bundle["text/html"] == fitted(kind)._repr_html_()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_looking_changes_nothing(kind):
    before = set(vars(fitted(kind)))
    repr(fitted(kind)), fitted(kind)._repr_html_()
    assert set(vars(fitted(kind))) == before


def test_an_unfitted_estimator_shows_its_parameters():
    assert repr(bc.DawidSkene(n_init=3)) == "DawidSkene(n_init=3)"
    assert "sk-" in bc.DawidSkene()._repr_html_()


def test_a_fit_by_hand():
    ann = bc.Annotations.from_matrix([list("aab"), list("bbb")])
    line = repr(bc.MajorityVote(seed=4).fit(ann))
    assert line == (
        "MajorityVote(seed=4): 2 tasks of 2 classes, 6 labels by 3 workers; 50% of the labels at "
        "least 95% sure"
    )


def test_the_default_says_what_votes_are_worth():
    est = fitted(bc.AutoAggregator)
    low, high = est.dependence_.effective_votes
    assert f"; 6 labels worth {low:.1f} to {high:.1f} independent votes per task" in repr(est)
    assert ("gold labels are needed" in repr(est)) == est.alarm_.buy_gold


def test_what_did_not_settle_is_said():
    with pytest.warns(Warning, match="before it settled"):
        est = bc.DawidSkene(n_iter=1, tol=1e-12).fit(labels())
    assert repr(est).endswith("; NOT converged")


def test_a_policy_counts_what_it_has_spent():
    policy = bc.RoundRobin(space(), 12, 1, seed=1)
    assert repr(policy) == "RoundRobin: 0 of 12 spent on 0 labels; 1 of 2 features to select"
    query = policy.ask()
    assert repr(policy).endswith("; 1 of 2 features to select; 1 open query")
    policy.tell(query, next(iter(space().features[query.feature])))
    assert repr(policy) == "RoundRobin: 1 of 12 spent on 1 label; 1 of 2 features to select"


def test_a_result_counts_what_was_spent():
    found = result()
    assert isinstance(found.selected, tuple)
    assert repr(found).startswith("BudgetResult: 1 feature (")
    assert " selected; 12 spent on 12 labels, 0 left; " in repr(found)


def test_a_plan_says_how_sure_it_is():
    found = plan()
    assert isinstance(found, BudgetPlan)
    assert repr(found).startswith(f"BudgetPlan: {found.verdict}, budget {found.budget:g} (")


def test_long_parameters_are_left_out_of_the_line():
    init = np.tile([0.3, 0.7], (30, 1))
    est = bc.MDPD(2, init=init, n_init=1, n_iter=500).fit(labels())
    assert repr(est).startswith(
        "MDPD(n_components=2, init=..., n_init=1): 30 items with 8 features"
    )
