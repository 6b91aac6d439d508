"""Estimators behave like scikit-learn's, although they do not inherit from its base class."""

import inspect
import pickle
import re

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted as check_by_scikit_learn

import bayescrowd as bc
from bayescrowd.estimator import ParameterMixin, check_is_fitted

ESTIMATORS = [
    value
    for value in (getattr(bc, name) for name in bc.__all__)
    if isinstance(value, type) and issubclass(value, ParameterMixin)
]


class Ours(ParameterMixin):
    """An estimator of ours.

    Args:
        size: how large.
        kind: of which kind.
        inner: another estimator.
    """

    def __init__(self, size=1, *, kind="small", inner=None):
        self.size, self.kind, self.inner = size, kind, inner

    def fit(self, X, y=None):
        self.mean_ = np.mean(X)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_ * self.size)

    def score(self, X, y):
        return -float(np.abs(self.predict(X) - y).mean())


Theirs = type("Ours", (BaseEstimator,), dict(vars(Ours)))
"""The same estimator on the base class of scikit-learn."""

SETTINGS = [
    {},
    {"size": 2},
    {"size": 1, "kind": "small"},
    {"kind": "large " * 30, "size": list(range(100))},
    {"size": np.arange(3), "kind": None},
]


def pair(settings, inner=None):
    """The same estimator, with its inner one, on either base class."""
    made = []
    for kind in (Ours, Theirs):
        options = settings if inner is None else settings | {"inner": kind(**inner)}
        made.append(kind(**options))
    return made


def make(kind):
    """An estimator with its defaults, and two components if their number has no default."""
    return kind(2) if kind in (bc.MDPD, bc.StagewiseEM) else kind()


def plain(html):
    """HTML without the numbers that distinguish diagrams on one page."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", html)


def test_every_estimator_is_covered():
    assert {bc.AutoAggregator, bc.MDPD, bc.MultiSelection, bc.StagewiseEM} <= set(ESTIMATORS)
    assert len(ESTIMATORS) >= 20


# Parameters


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("deep", [True, False])
def test_get_params(settings, deep):
    ours, theirs = pair(settings, inner={"size": 3})
    found, expected = ours.get_params(deep), theirs.get_params(deep)
    assert list(found) == list(expected)
    assert [found[name] for name in found if name != "inner"] == [
        expected[name] for name in found if name != "inner"
    ]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_are_those_of_the_constructor(kind):
    names = list(inspect.signature(kind).parameters)
    assert list(make(kind).get_params()) == sorted(names)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_clones(kind):
    estimator = make(kind)
    copied = clone(estimator)
    assert type(copied) is kind
    assert copied is not estimator
    assert copied.get_params() == estimator.get_params()


def test_clones_have_clones_of_their_parameters_and_no_fit():
    estimator = Ours(2, inner=Ours(3)).fit([1.0])
    copied = clone(estimator)
    assert copied.inner is not estimator.inner
    assert copied.inner.size == 3
    assert not hasattr(copied, "mean_")


def test_set_params():
    estimator = Ours(inner=Ours())
    assert estimator.set_params(size=2, inner__kind="large", inner__size=4) is estimator
    assert (estimator.size, estimator.inner.kind, estimator.inner.size) == (2, "large", 4)
    assert estimator.set_params() is estimator


def test_set_params_goes_to_the_estimator_that_the_same_call_sets():
    estimator = Ours(inner=Ours()).set_params(inner__size=5, inner=Ours(kind="new"))
    assert (estimator.inner.kind, estimator.inner.size) == ("new", 5)


@pytest.mark.parametrize("name", ["weight", "weight__size"])
def test_unknown_parameters_are_refused_as_by_scikit_learn(name):
    messages = []
    for estimator in pair({"size": 2}):
        with pytest.raises(ValueError, match="Invalid parameter 'weight'") as caught:
            estimator.set_params(**{name: 1})
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_an_estimator_without_a_constructor_has_no_parameters():
    class Bare(ParameterMixin):
        pass

    assert Bare().get_params() == {}
    assert repr(Bare()) == "Bare()"


# Representations


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("inner", [None, {"size": 3}])
@pytest.mark.parametrize("changed_only", [True, False])
def test_repr(settings, inner, changed_only):
    ours, theirs = pair(settings, inner)
    with sklearn.config_context(print_changed_only=changed_only):
        assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_repr_of_the_default(kind):
    shown = {bc.MDPD: "n_components=2", bc.StagewiseEM: "n_components=2"}.get(kind, "")
    assert repr(make(kind)) == f"{kind.__name__}({shown})"


@pytest.mark.parametrize("is_fitted", [False, True])
@pytest.mark.parametrize("settings", SETTINGS)
def test_html(settings, is_fitted):
    ours, theirs = pair(settings, {"size": 3})
    if is_fitted:
        ours, theirs = ours.fit([1.0, 2.0]), theirs.fit([1.0, 2.0])
    assert plain(ours._repr_html_()) == plain(theirs._repr_html_())
    shown, expected = ours._repr_mimebundle_(), theirs._repr_mimebundle_()
    assert {name: plain(text) for name, text in shown.items()} == {
        name: plain(text) for name, text in expected.items()
    }


def test_no_html_if_text_is_configured():
    with sklearn.config_context(display="text"):
        assert Ours(2)._repr_mimebundle_() == {"text/plain": "Ours(size=2)"}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_html_of_every_estimator(kind):
    html = make(kind)._repr_html_()
    assert kind.__name__ in html
    assert all(name in html for name in make(kind).get_params())


# Inside scikit-learn


def test_tags_are_those_of_a_plain_estimator():
    ours, theirs = pair({})
    assert sklearn.utils.get_tags(ours) == sklearn.utils.get_tags(theirs)
    assert not is_classifier(bc.MDPD(2))
    assert is_classifier(bc.DawidSkene())  # so that searches stratify the tasks by class
    assert is_classifier(bc.MultiSelectionClassifier())
    assert is_regressor(bc.MultiSelection())


def test_in_a_pipeline_and_a_search():
    values, target = np.arange(12.0)[:, None], np.full(12, 11.0)
    for kind in (Ours, Theirs):
        steps = make_pipeline(FunctionTransformer(), kind())
        search = GridSearchCV(steps, {"ours__size": [1, 2, 5]}, cv=3).fit(values, target)
        assert search.best_params_ == {"ours__size": 2}
        assert "Ours" in steps._repr_html_()


def test_pickles():
    estimator = pickle.loads(pickle.dumps(bc.MajorityVote(seed=3)))
    assert estimator.get_params() == bc.MajorityVote(seed=3).get_params()


# Errors are scikit-learn's own


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_unfitted_estimators_are_noticed_as_by_scikit_learn(kind):
    messages = []
    for check in (check_is_fitted, check_by_scikit_learn):
        with pytest.raises(NotFittedError) as caught:
            check(make(kind))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_fitted_estimators_pass():
    fitted = Ours().fit([1.0])
    check_is_fitted(fitted)
    check_by_scikit_learn(fitted)
