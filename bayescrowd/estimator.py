"""What an estimator owes scikit-learn, without importing scikit-learn.

Importing `sklearn.base` loads `scipy.stats` and takes longer than most fits. `ParameterMixin`
gives an estimator the parameters that `sklearn.base.clone`, pipelines and searches read and set;
its representation, its tags and `NotFittedError` are scikit-learn's own and are imported when they
are needed.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any, TypeVar

__all__ = ["ParameterMixin", "check_is_fitted"]

_SHOWN = (
    "__repr__",
    "_repr_html_",
    "_repr_mimebundle_",
    "_get_params_html",
    "_get_fitted_attr_html",
)
"""The methods with which scikit-learn shows an estimator; older versions lack the last two."""

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="ParameterMixin")


class ParameterMixin:
    """Parameters as in scikit-learn: the arguments of the constructor, kept as attributes.

    Examples:
        >>> import bayescrowd as bc
        >>> bc.Wawa(seed=3)
        Wawa(seed=3)
        >>> bc.Wawa().set_params(seed=4).get_params()["seed"]
        4
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, in alphabetical order.

        Args:
            deep: include those of parameters that are estimators, as `name__parameter`.
        """
        params: dict[str, Any] = {}
        for name in _parameter_names(type(self)):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": part for inner, part in value.get_params().items()}
            params[name] = value
        return params

    def set_params(self: Itself, **params: Any) -> Itself:
        """Set parameters by name; `name__parameter` sets one of a parameter that is an estimator.

        Raises:
            ValueError: there is no parameter of this name.
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

    def __repr__(self) -> str:
        return repr(_as_scikit_learn(self))

    def _repr_html_(self) -> str:
        """The estimator as a diagram with a table of its parameters, for notebooks."""
        from sklearn.utils import estimator_html_repr

        return estimator_html_repr(_as_scikit_learn(self))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What notebooks choose from, according to `sklearn.set_config(display=...)`."""
        return _as_scikit_learn(self)._repr_mimebundle_(**options)

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        """The table of parameters, which the diagram of a pipeline asks its members for."""
        return _as_scikit_learn(self)._get_params_html(*args, **options)

    def _get_fitted_attr_html(self, *args: Any, **options: Any) -> Any:
        """The table of fitted attributes, likewise."""
        return _as_scikit_learn(self)._get_fitted_attr_html(*args, **options)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


def check_is_fitted(estimator: ParameterMixin) -> None:
    """Raise `sklearn.exceptions.NotFittedError` unless `fit` has set attributes like `labels_`."""
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


def _as_scikit_learn(estimator: ParameterMixin) -> Any:
    """The same estimator as a `sklearn.base.BaseEstimator`, which knows how to show itself."""
    from sklearn.base import BaseEstimator

    kind = type(estimator)
    shown = {name: getattr(BaseEstimator, name) for name in _SHOWN if hasattr(BaseEstimator, name)}
    names = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__init__": kind.__init__}
    twin: Any = object.__new__(type(kind.__name__, (kind, BaseEstimator), shown | names))
    twin.__dict__.update(vars(estimator))
    return twin
