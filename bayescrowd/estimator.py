"""scikit-learn's conventions for estimators, without importing scikit-learn.

Importing `sklearn.base` loads `scipy.stats` and takes longer than most fits. `ParameterMixin`
gives an estimator the methods with which `sklearn.base.clone`, pipelines and searches read and set
parameters. Its text and HTML representations, its tags and `NotFittedError` are scikit-learn's own
and are imported when they are needed.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any, TypeVar

from bayescrowd.checks.parameters import validate_arguments

__all__ = ["ParameterMixin", "check_is_fitted"]

_REPRESENTATIONS = (
    "__repr__",
    "_repr_html_",
    "_repr_mimebundle_",
    "_get_params_html",
    "_get_fitted_attr_html",
)
"""Methods with which scikit-learn displays an estimator; older versions lack the last two."""

LONGEST_VALUE = 40
"""Characters of a parameter's value, after which the line of a fitted estimator leaves it out."""

# beartype supports `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="ParameterMixin")


class ParameterMixin:
    """Parameters in scikit-learn's style: constructor arguments, stored as attributes.

    Examples:
        >>> import bayescrowd as bc
        >>> bc.Wawa(seed=3)
        Wawa(seed=3)
        >>> bc.Wawa().set_params(seed=4).get_params()["seed"]
        4
    """

    @validate_arguments
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, in alphabetical order.

        Args:
            deep: whether to include the parameters of nested estimators, as `name__parameter`.
        """
        params: dict[str, Any] = {}
        for name in _parameter_names(type(self)):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": part for inner, part in value.get_params().items()}
            params[name] = value
        return params

    def set_params(self: Itself, **params: Any) -> Itself:
        """Set parameters by name; `name__parameter` sets a parameter of a nested estimator.

        Raises:
            ValueError: the estimator has no parameter of this name.
        """
        names = _parameter_names(type(self))
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, is_nested, inner = key.partition("__")
            if name not in names:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. "
                    f"Valid parameters are: {names!r}."
                )
            if is_nested:
                nested[name][inner] = value
            else:
                setattr(self, name, value)
        for name, inner_params in nested.items():
            getattr(self, name).set_params(**inner_params)
        return self

    def _summary(self) -> str:
        """What the fit has found, in a few words; empty before it."""
        return ""

    def _summary_html(self) -> str:
        """The same for notebooks, as a small table."""
        return ""

    def __repr__(self) -> str:
        if summary := self._summary():
            return f"{_short_call(self)}: {summary}"
        return repr(_as_scikit_learn(self))

    def _repr_html_(self) -> str:
        """For notebooks: what the fit has found, or before it the diagram of scikit-learn."""
        from sklearn.utils import estimator_html_repr

        return self._summary_html() or estimator_html_repr(_as_scikit_learn(self))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """For notebooks; before a fit, as `sklearn.set_config(display=...)` asks for."""
        if html := self._summary_html():
            return {"text/plain": repr(self), "text/html": html}
        return _as_scikit_learn(self)._repr_mimebundle_(**options)

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        """Table of parameters, which the diagram of a pipeline requests from each step."""
        return _as_scikit_learn(self)._get_params_html(*args, **options)

    def _get_fitted_attr_html(self, *args: Any, **options: Any) -> Any:
        """Table of fitted attributes, which the diagram of a pipeline requests from each step."""
        return _as_scikit_learn(self)._get_fitted_attr_html(*args, **options)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


def check_is_fitted(estimator: ParameterMixin) -> None:
    """Raise `sklearn.exceptions.NotFittedError` if `fit` has set no attribute such as `labels_`."""
    if any(name.endswith("_") and not name.startswith("__") for name in vars(estimator)):
        return
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
        "arguments before using this estimator."
    )


def _parameter_names(kind: type) -> list[str]:
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return sorted(set(inspect.signature(kind).parameters))


def _short_call(estimator: ParameterMixin) -> str:
    """The call that made an estimator, on one line, with the parameters that are not the default.

    Values are compared as they are printed, since arrays do not compare to one truth value.
    """
    given = []
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        value = getattr(estimator, name)
        if repr(value) != repr(parameter.default):
            text = " ".join(repr(value).split())
            given.append(f"{name}={text if len(text) <= LONGEST_VALUE else '...'}")
    return f"{type(estimator).__name__}({', '.join(given)})"


def _as_scikit_learn(estimator: ParameterMixin) -> Any:
    """The same estimator as a `sklearn.base.BaseEstimator`, which can display itself."""
    from sklearn.base import BaseEstimator

    kind = type(estimator)
    displays = {
        name: getattr(BaseEstimator, name)
        for name in _REPRESENTATIONS
        if hasattr(BaseEstimator, name)
    }
    names = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__init__": kind.__init__}
    twin: Any = object.__new__(type(kind.__name__, (kind, BaseEstimator), displays | names))
    twin.__dict__.update(vars(estimator))
    return twin
