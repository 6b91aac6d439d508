"""How much budget is enough: where an error curve comes close to the error of all data.

The *gap* at a budget is the policy's error minus the error of a classifier with as many features
that learned from all training labels, on the same test rows. The mean gap over repeats is made
monotone by isotonic regression (more budget cannot be expected to hurt) and interpolated on the
logarithm of the budget; the answer is where it first falls to the tolerance. The interval comes
from resampling the repeats, each with all its budgets.

A pilot can be too small to answer, in two ways, and the verdict then says so. The gap at the
largest budget may be less certain than the tolerance is wide. Or the best error itself may be
unknown: if all data of half the rows give a classifier that is worse by more than the tolerance,
twice the rows would give a better one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA, check_curve
from bayescrowd.checks.parameters import OpenFraction, Seed, validate_arguments
from bayescrowd.data.notebook_table import Bar, notebook_table

__all__ = ["BudgetPlan", "plan_budget"]

N_RESAMPLES = 2_000
"""Number of resamples of the repeats behind the interval."""

LEAST_REPEATS = 4
"""Resampling fewer repeats than this says nothing about their spread."""

Verdict = Literal["reached", "not reached", "pilot too small"]
"""Whether the budget is known, is beyond the largest one, or cannot be known from this pilot."""


class BudgetPlan(NamedTuple):
    """The budget that brings a policy close to the best classifier."""

    verdict: Verdict
    """Whether there is an answer."""
    budget: float
    """The answer; infinite if the tolerance is not reached at the largest budget."""
    lower: float
    """Lower end of the interval; 0 if the smallest budget may be enough."""
    upper: float
    """Upper end of the interval; infinite if the largest budget may not be enough."""
    reason: str
    """The verdict in words."""
    best_error: float
    """Mean error of all data."""
    gaps: pd.DataFrame
    """Table by budget of the gap, its standard_error, and the gap made monotone."""

    def __repr__(self) -> str:
        return (
            f"BudgetPlan: {self.verdict}, budget {self.budget:g} ({self.lower:g} to "
            f"{self.upper:g}); {self.reason}"
        )

    def _repr_html_(self) -> str:
        """For notebooks: how far each budget is from the best classifier."""
        gaps = self.gaps["gap"].clip(lower=0.0)
        most = max(float(gaps.max()), 1e-12)  # all of them may be 0
        rows = [[f"{budget:g}", Bar(gap / most, f"{gap:.3f}")] for budget, gap in gaps.items()]
        return notebook_table(repr(self), ["budget", "errors above the best"], rows)


@validate_arguments
def plan_budget(
    curve: pd.DataFrame,
    *,
    policy: str,
    within: OpenFraction,
    half: pd.DataFrame | None = None,
    probability: OpenFraction = 0.9,
    seed: Seed = 0,
) -> BudgetPlan:
    """Find the budget at which a policy's mean error is within a tolerance of that of all data.

    Args:
        curve: the table of `budget_curve` with `all_data=True` and one number of features.
        policy: name of the policy in the curve.
        within: the tolerance, a share of test rows.
        half: the table of `budget_curve` with half the `train_share`, as many repeats and
            `all_data=True`; without it the pilot's size is judged by the repeats alone.
        probability: probability of the interval.
        seed: seed of the resampling.

    Raises:
        ValueError: `within` is not between 0 and 1, or the curve lacks the policy or all data,
            has several numbers of features, or has too few repeats.

    Examples:
        >>> import pandas as pd
        >>> from bayescrowd.budgeted.evaluation.planning import plan_budget
        >>> rows = [
        ...     (name, 1, budget, repeat, error + 0.01 * (repeat % 2))
        ...     for name, errors in {"mine": (0.3, 0.2, 0.1), "all data": (0.1, 0.1, 0.1)}.items()
        ...     for budget, error in zip((50, 100, 200), errors, strict=True)
        ...     for repeat in range(4)
        ... ]
        >>> columns = ["policy", "n_features", "budget", "repeat", "error"]
        >>> plan = plan_budget(pd.DataFrame(rows, columns=columns), policy="mine", within=0.05)
        >>> plan.verdict, round(plan.budget)  # halfway from .2 to .1, in logarithms
        ('reached', 141)
    """
    check_curve("curve", curve, {"policy", "n_features", "budget", "repeat", "error"})
    if half is not None:
        check_curve("half", half, {"policy", "repeat", "error"})
    errors, best = _paired_errors(curve, policy)
    budgets = np.array(errors.columns, dtype=float)
    gaps = errors.to_numpy() - best.to_numpy()[:, None]
    n_repeats = len(gaps)
    if n_repeats < LEAST_REPEATS:
        raise ValueError(f"{n_repeats} repeats: expected at least {LEAST_REPEATS}")
    rng = np.random.default_rng(seed)
    resampled = gaps[rng.integers(n_repeats, size=(N_RESAMPLES, n_repeats))].mean(axis=1)
    tail = (1 - probability) / 2
    monotone = _antitonic(gaps.mean(axis=0)[None, :])
    budget = float(_crossings(budgets, monotone, within)[0])
    found = np.sort(_crossings(budgets, _antitonic(resampled), within))
    lower, upper = (float(found[int(q * (N_RESAMPLES - 1))]) for q in (tail, 1 - tail))
    low, high = np.quantile(resampled[:, -1], [tail, 1 - tail]).tolist()
    verdict, reason = _verdict(
        budget,
        largest=float(budgets[-1]),
        within=within,
        left=float(monotone[0, -1]),
        half_width=(high - low) / 2,
        gain_of_rows=0.0 if half is None else _gain_of_rows(half, best),
    )
    table = pd.DataFrame(
        {
            "gap": gaps.mean(axis=0),
            "standard_error": gaps.std(axis=0, ddof=1) / np.sqrt(n_repeats),
            "monotone": monotone[0],
        },
        index=pd.Index(errors.columns, name="budget"),
    )
    return BudgetPlan(
        verdict=verdict,
        budget=budget,
        lower=0.0 if lower <= budgets[0] else lower,
        upper=upper,
        reason=reason,
        best_error=float(best.mean()),
        gaps=table,
    )


def _paired_errors(curve: pd.DataFrame, policy: str) -> tuple[pd.DataFrame, pd.Series]:
    """Errors of the policy by repeat and budget, and errors of all data by repeat."""
    if curve["n_features"].nunique() != 1:
        raise ValueError("the curve has several numbers of features; expected a single one")
    names = curve["policy"].unique().tolist()
    for name in (policy, ALL_DATA):
        if name not in names:
            raise ValueError(
                f"there is no policy {name!r} in the curve; expected one of {', '.join(names)}"
            )
    mine, all_data = (curve[curve["policy"] == name] for name in (policy, ALL_DATA))
    errors = mine.pivot(index="repeat", columns="budget", values="error")
    best = all_data.groupby("repeat")["error"].first()
    return errors.sort_index(axis=1), best.reindex(errors.index)


def _antitonic(means: Float[np.ndarray, "draw budget"]) -> Float[np.ndarray, "draw budget"]:
    """The nearest sequences that never rise: min over j <= i of max over k >= i of mean(j..k)."""
    n = means.shape[1]
    sums = np.concatenate([np.zeros((len(means), 1)), np.cumsum(means, axis=1)], axis=1)
    fitted = np.empty_like(means)
    for i in range(n):
        candidates = [
            np.max([(sums[:, k + 1] - sums[:, j]) / (k + 1 - j) for k in range(i, n)], axis=0)
            for j in range(i + 1)
        ]
        fitted[:, i] = np.min(candidates, axis=0)
    return fitted


def _crossings(
    budgets: Float[np.ndarray, " budget"], gaps: Float[np.ndarray, "draw budget"], within: float
) -> Float[np.ndarray, " draw"]:
    """The budget at which each sequence first reaches the tolerance; infinite if none does."""
    at = np.argmax(gaps <= within, axis=1)
    is_reached = (gaps <= within).any(axis=1)
    found = np.full(len(gaps), np.inf)
    found[is_reached & (at == 0)] = budgets[0]
    between = np.flatnonzero(is_reached & (at > 0))
    i = at[between]
    before, after = gaps[between, i - 1], gaps[between, i]
    share = (before - within) / (before - after)
    steps = np.log(budgets)
    found[between] = np.exp(steps[i - 1] + share * (steps[i] - steps[i - 1]))
    return found


def _gain_of_rows(half: pd.DataFrame, best: pd.Series) -> float:
    """How much lower the error of all data is than that of all data of half the rows."""
    errors = half[half["policy"] == ALL_DATA].groupby("repeat")["error"].first()
    return float(errors.mean() - best.mean())


def _verdict(
    budget: float,
    *,
    largest: float,
    within: OpenFraction,
    left: float,
    half_width: float,
    gain_of_rows: float,
) -> tuple[Verdict, str]:
    if half_width > within:
        return "pilot too small", (
            f"at the largest budget the gap to the best is only known to ±{half_width:.3f}, which "
            f"is more than {within:g}: more repeats or more rows are needed"
        )
    if gain_of_rows > within:
        return "pilot too small", (
            f"the best classifier of half the rows is worse by {gain_of_rows:.3f}, which is more "
            f"than {within:g}: with more rows, the best would be better than it seems here"
        )
    if not np.isfinite(budget):
        return "not reached", (
            f"at the largest simulated budget, {largest:g}, the error is still {left:.3f} above "
            "the best"
        )
    return "reached", f"the mean error comes within {within:g} of the best"
