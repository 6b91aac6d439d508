"""Summaries of the table of runs that `budget_curve` returns."""

from __future__ import annotations

import pandas as pd

__all__ = ["ALL_DATA", "check_curve", "curve_means", "paired_differences"]

ALL_DATA = "all data"
"""Name of the reference that learns from all labels of all training rows."""


def check_curve(name: str, table: pd.DataFrame, columns: set[str]) -> None:
    """Raise ValueError unless the table has these columns of `budget_curve`'s."""
    absent = columns - {*table.columns}
    if absent:
        raise ValueError(f"{name}: no column {min(absent)!r}; expected the table of budget_curve")


def curve_means(curve: pd.DataFrame) -> pd.DataFrame:
    """Mean error of each policy with its standard error over repeats, and the mean amount spent.

    Args:
        curve: the table that `budget_curve` returns.

    Returns:
        A table indexed by policy, n_features and budget with the columns error, standard_error,
        spent and repeats.
    """
    groups = curve.groupby(["policy", "n_features", "budget"], sort=False)
    return pd.DataFrame(
        {
            "error": groups["error"].mean(),
            "standard_error": groups["error"].sem(),
            "spent": groups["spent"].mean(),
            "repeats": groups["error"].size(),
        }
    )


def paired_differences(curve: pd.DataFrame, against: str) -> pd.DataFrame:
    """How much the errors of the other policies exceed that of one policy, repeat by repeat.

    Args:
        curve: the table that `budget_curve` returns.
        against: name of the policy with which all others are compared.

    Returns:
        A table indexed by policy, n_features and budget with the columns difference, the mean of
        that policy's error minus the error of `against` in the same repeat, and standard_error.

    Raises:
        ValueError: there is no such policy.
    """
    wide = curve.pivot(index=["n_features", "budget", "repeat"], columns="policy", values="error")
    if against not in wide:
        raise ValueError(f"against={against!r}: expected one of {', '.join(wide.columns)}")
    others = [name for name in curve["policy"].unique() if name != against]
    differences = wide[others].sub(wide[against], axis=0)
    groups = differences.groupby(level=["n_features", "budget"])
    both = {"difference": groups.mean(), "standard_error": groups.sem()}
    table = pd.concat({name: part.stack() for name, part in both.items()}, axis=1)
    return table.reorder_levels(["policy", "n_features", "budget"]).sort_index()
