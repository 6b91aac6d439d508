"""Summaries of the table of runs that `budget_curve` returns."""

from __future__ import annotations

import pandas as pd

from bayescrowd.checks.parameters import validate_arguments

__all__ = ["ALL_DATA", "check_curve", "curve_means", "paired_differences"]

ALL_DATA = "all data"
"""Name of the reference that learns from all labels of all training rows."""


def check_curve(name: str, table: pd.DataFrame, columns: set[str]) -> None:
    """Raise ValueError unless the table has these columns of `budget_curve`'s."""
    absent = columns - {*table.columns}
    if absent:
        raise ValueError(f"{name}: no column {min(absent)!r}; expected the table of budget_curve")


@validate_arguments
def curve_means(curve: pd.DataFrame) -> pd.DataFrame:
    """Mean error of each policy with its standard error over repeats, and the mean amount spent.

    Args:
        curve: the table that `budget_curve` returns.

    Returns:
        A table indexed by policy, n_features and budget with the columns error, standard_error,
        spent and repeats.

    Raises:
        ValueError: the table lacks a column of `budget_curve`.

    Examples:
        >>> rows = [("A", 1, 50, repeat, error, 49) for repeat, error in enumerate((0.2, 0.4))]
        >>> columns = ["policy", "n_features", "budget", "repeat", "error", "spent"]
        >>> means = curve_means(pd.DataFrame(rows, columns=columns))
        >>> means.loc[("A", 1, 50)].round(2).to_dict()
        {'error': 0.3, 'standard_error': 0.1, 'spent': 49.0, 'repeats': 2.0}
    """
    check_curve("curve", curve, {"policy", "n_features", "budget", "error", "spent"})
    groups = curve.groupby(["policy", "n_features", "budget"], sort=False)
    return pd.DataFrame(
        {
            "error": groups["error"].mean(),
            "standard_error": groups["error"].sem(),
            "spent": groups["spent"].mean(),
            "repeats": groups["error"].size(),
        }
    )


@validate_arguments
def paired_differences(curve: pd.DataFrame, against: str) -> pd.DataFrame:
    """How much the errors of the other policies exceed that of one policy, repeat by repeat.

    Args:
        curve: the table that `budget_curve` returns.
        against: name of the policy with which all others are compared.

    Returns:
        A table indexed by policy, n_features and budget with the columns difference, the mean of
        that policy's error minus the error of `against` in the same repeat, and standard_error.

    Raises:
        ValueError: there is no such policy, or the table lacks a column of `budget_curve`.

    Examples:
        >>> errors = {"A": (0.2, 0.4), "B": (0.1, 0.2)}
        >>> rows = [(p, 1, 50, r, error) for p, of in errors.items() for r, error in enumerate(of)]
        >>> columns = ["policy", "n_features", "budget", "repeat", "error"]
        >>> table = paired_differences(pd.DataFrame(rows, columns=columns), against="B")
        >>> table.loc[("A", 1, 50)].round(2).to_dict()
        {'difference': 0.15, 'standard_error': 0.05}
    """
    check_curve("curve", curve, {"policy", "n_features", "budget", "repeat", "error"})
    wide = curve.pivot(index=["n_features", "budget", "repeat"], columns="policy", values="error")
    if against not in wide:
        raise ValueError(f"against={against!r}: expected one of {', '.join(wide.columns)}")
    others = [name for name in curve["policy"].unique() if name != against]
    differences = wide[others].sub(wide[against], axis=0)
    groups = differences.groupby(level=["n_features", "budget"])
    both = {"difference": groups.mean(), "standard_error": groups.sem()}
    table = pd.concat({name: part.stack() for name, part in both.items()}, axis=1)
    return table.reorder_levels(["policy", "n_features", "budget"]).sort_index()
