import inspect
import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.iteration import (
    Iteration,
    Step,
    ascend,
    ignore_not_converged,
    report_iteration,
    settle,
    warn_not_converged,
    warn_not_settled,
    watch_iterations,
)

ITERATING = [
    kind
    for kind in (getattr(bc, name) for name in bc.__all__)
    if isinstance(kind, type)
    and hasattr(kind, "fit")
    and "n_iter" in inspect.signature(kind).parameters
]
"""Every exported estimator that iterates."""


def halve(x):
    """Moves half of the way to zero; the change is that half."""
    return Step(x / 2, x, x / 2)


def approach(x):
    """Halves the distance to the objective's maximum, 1."""
    return x / 2, 1 - x / 2


# By hand.


def test_settles_below_the_tolerance():
    course = settle(halve, 1.0, n_iter=100, tol=0.1)
    # Changes are 1/2, 1/4, 1/8 and 1/16, the first below 0.1.
    assert course.state == 1 / 16
    np.testing.assert_array_equal(course.trace, [1, 1 / 2, 1 / 4, 1 / 8])
    assert course.converged is True


def test_a_change_that_equals_the_tolerance_is_not_below_it():
    assert len(settle(halve, 1.0, n_iter=100, tol=0.125).trace) == 4


def test_ascends_until_the_objective_hardly_rises():
    course = ascend(approach, 1.0, n_iter=100, tol=0.1)
    # Objectives 1/2, 3/4, 7/8, 15/16: the last rise is 1/16.
    np.testing.assert_array_equal(course.trace, [1 / 2, 3 / 4, 7 / 8, 15 / 16])
    assert (course.state, course.converged) == (1 / 16, True)


def test_the_first_step_has_no_rise_to_stop_at():
    flat = ascend(lambda x: (x, 0.0), 1.0, n_iter=100, tol=1e6)
    assert (len(flat.trace), flat.converged) == (2, True)


def test_a_falling_objective_ends_the_ascent():
    course = ascend(lambda x: (x + 1, -float(x)), 0, n_iter=100, tol=1e-9)
    assert (len(course.trace), course.converged) == (2, True)


@pytest.mark.parametrize("run", [settle, ascend])
def test_without_a_tolerance_all_iterations_run(run):
    step = halve if run is settle else approach
    course = run(step, 0.0, n_iter=7, tol=0.0)  # a fixed point from the start
    assert (len(course.trace), course.converged) == (7, False)


@pytest.mark.parametrize("run", [settle, ascend])
def test_the_limit_comes_before_the_tolerance(run):
    step = halve if run is settle else approach
    course = run(step, 1.0, n_iter=2, tol=1e-9)
    assert (len(course.trace), course.converged) == (2, False)


def test_an_unknown_change_does_not_settle():
    course = settle(lambda x: Step(x, 0.0, math.nan), 1.0, n_iter=3, tol=1e9)
    assert (len(course.trace), course.converged) == (3, False)


# Observers.


def test_an_observer_sees_every_iteration_and_only_inside_the_block():
    seen = []
    with watch_iterations(seen.append):
        settle(halve, 1.0, n_iter=2, tol=0.1)
        report_iteration(5, 3.0)
    settle(halve, 1.0, n_iter=2, tol=0.1)
    assert seen[:2] == [Iteration(1, 1.0, 0.5, 0.1), Iteration(2, 0.5, 0.25, 0.1)]
    number, value, change, tol = seen[2]
    assert (number, value, tol) == (5, 3.0, 0.0)
    assert math.isnan(change)
    assert len(seen) == 3


def test_an_observer_of_an_inner_block_is_put_back():
    outer, inner = [], []
    with watch_iterations(outer.append):
        with watch_iterations(inner.append):
            report_iteration(1, 0.0)
        report_iteration(2, 0.0)
    assert ([i.number for i in outer], [i.number for i in inner]) == ([2], [1])


def test_an_observer_may_interrupt():
    def interrupt(iteration):
        raise KeyboardInterrupt

    seen = []
    with watch_iterations(seen.append):
        with pytest.raises(KeyboardInterrupt), watch_iterations(interrupt):
            settle(halve, 1.0, n_iter=2, tol=0.0)
        settle(halve, 1.0, n_iter=2, tol=0.0)
    assert len(seen) == 2


# Estimators.


@pytest.mark.parametrize("kind", ITERATING)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::bayescrowd.WorseThanVotesWarning")
def test_every_estimator_that_iterates_reports_its_iterations(kind):
    crowd = bc.simulate.crowd(60, 8, 2, labels_per_task=6, accuracy=0.85, seed=1)
    required = {"n_components": 2} if "n_components" in inspect.signature(kind).parameters else {}
    seen = []
    with watch_iterations(seen.append):
        fitted = kind(n_iter=3, **required).fit(crowd.annotations)
    assert {iteration.number for iteration in seen} >= {1, 2, 3}
    assert np.isfinite([iteration.value for iteration in seen]).all()
    # What led to the result was reported; an average of models has no trace of its own. Some
    # methods report the objective before each step, and so not the last one.
    assert {iteration.value for iteration in seen} >= set(fitted.trace_[:2].tolist())


# The warning.


def test_the_warning_names_the_method_and_the_way_out():
    with pytest.warns(ConvergenceWarning) as caught:
        warn_not_settled("KOS", n_iter=7, tol=1e-6)
    assert str(caught[0].message) == (
        "KOS stopped after n_iter=7 iterations before it settled to tol=1e-06; raise n_iter, or "
        "set tol=0 to ask for exactly n_iter"
    )


def test_the_warning_may_say_what_did_not_settle():
    with pytest.warns(ConvergenceWarning, match="before the objective settled to tol=0.1 nats per"):
        warn_not_settled("EM", n_iter=7, tol=0.1, quantity="the objective", unit="nats per label")
    with pytest.warns(ConvergenceWarning, match="exactly n_iter; the labels are too few$"):
        warn_not_settled("EM", n_iter=7, tol=0.1, hint="the labels are too few")


def test_convergence_warnings_point_at_the_caller():
    with pytest.warns(ConvergenceWarning, match="too early") as caught:
        inspect.unwrap(warn_not_converged)("too early", stacklevel=1)
    assert caught[0].filename == __file__


def test_convergence_warnings_can_be_ignored():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ignore_not_converged():
            warn_not_converged("too early", stacklevel=1)
            warnings.warn("another", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["another"]
