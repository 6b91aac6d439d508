"""Pictures of what a fitted model predicts beside what was observed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Integer
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bayescrowd.checks.parameters import Count, OpenFraction, Seed, validate_arguments
from bayescrowd.data.text import quantity, shorten
from bayescrowd.plots.canvas import BLUE, GREY, PALE, VERMILLION, axes_or_new, tidy

__all__ = ["label_shares", "loo_pit"]

N_STEPS = 100
"""Number of steps at which the distribution function of the places is compared."""

N_SIMULATED = 4000
"""Simulated sets of uniform places: a band of 99 % is then known to about 0.2 %."""


@validate_arguments
def label_shares(
    post: Any, ax: Axes | None = None, *, most: Count = 40, probability: OpenFraction = 0.89
) -> Axes:
    """Share of each label among those observed, and among those that the model predicts.

    Bars are the central part of the model's predictions, of as many labels as were observed. An
    observed share outside its bar has another colour and marker; a few lie outside by chance.

    Args:
        post: the result of `sample_posterior` or of a policy's `posterior`, with predictions.
        ax: where to draw.
        most: largest number of labels shown; of more, the most frequent are.
        probability: probability of the bars.

    Raises:
        ValueError: the container has no predictions or no observed labels.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> rng = np.random.default_rng(0)
        >>> drawn = rng.integers(2, size=(2, 50, 9))
        >>> predicted = {"label": (("chain", "draw", "judgement"), drawn)}
        >>> observed = {"label": (("judgement",), [0, 1, 1, 0, 0, 1, 0, 1, 1])}
        >>> groups = {
        ...     "posterior": dataset_of({"accuracy": (("chain", "draw"), np.ones((2, 50)))}),
        ...     "posterior_predictive": dataset_of(predicted),
        ...     "observed_data": dataset_of(observed),
        ... }
        >>> bc.plots.label_shares(assemble(groups)).get_title(loc="left")
        'The model predicts the shares of 2 labels'
    """
    predicted, observed, names = _named_labels(post)
    n_labels = len(names)
    # Label k of draw d has number d * n_labels + k, so that one count serves all draws.
    numbers = np.arange(len(predicted), dtype=np.int64)[:, None] * n_labels + predicted
    counts = np.bincount(numbers.ravel(), minlength=len(predicted) * n_labels)
    shares = counts.reshape(-1, n_labels) / max(predicted.shape[1], 1)
    share = np.bincount(observed, minlength=n_labels) / max(len(observed), 1)
    tail = (1 - probability) / 2
    # A bar has an end at each side: linear interpolation would cut off steps of one label.
    low = np.quantile(shares, tail, axis=0, method="lower")
    high = np.quantile(shares, 1 - tail, axis=0, method="higher")
    is_far = (share < low) | (share > high)
    shown = np.sort(np.argsort(-share, kind="stable")[:most])
    ax = axes_or_new(ax, (6.0, 1.4 + 0.22 * len(shown)))
    rows = np.arange(len(shown))
    ax.hlines(rows, low[shown], high[shown], color=PALE, linewidth=6, label="predicted")
    for far, colour, marker in ((False, BLUE, "o"), (True, VERMILLION, "v")):
        chosen = is_far[shown] == far
        if chosen.any():
            name = "observed" + (", outside" if far else "")
            places = share[shown][chosen]
            ax.scatter(
                places, rows[chosen], color=colour, marker=marker, s=24, zorder=3, label=name
            )
    ax.set_yticks(
        rows,
        [shorten(names[k], 24) for k in shown],
        fontsize="x-small" if len(shown) > 15 else "small",
    )
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=None))
    ax.grid(axis="x", color="#EEEEEE")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    said = quantity(n_labels, "label")
    title = f"The model predicts the shares of {said}"
    if is_far.any():
        title = f"Shares of {is_far.sum():,} of {said} lie outside the predictions"
    if len(shown) < n_labels:
        title += f" ({len(shown)} shown)"
    return tidy(ax, title=title, xlabel=f"share of labels, {probability:.0%} intervals", ylabel="")


@validate_arguments
def loo_pit(
    post: Any,
    ax: Axes | None = None,
    *,
    draws: Count = 400,
    seed: Seed = 0,
    probability: OpenFraction = 0.99,
) -> Axes:
    """Whether labels lie where the model expects them, given the other labels.

    The line is the distribution function of the labels' places in their predictions
    (`bayescrowd.loo_pit`), minus that of uniform numbers. If the model is right, it stays inside
    the band all along with the given probability. A line that rises above the band at the left and
    falls below it at the right belongs to labels more extreme than predicted, the opposite to
    labels less extreme.

    The band has the same number of standard errors everywhere, as many as independent places
    need. Those of one crowd are not quite independent: of 80 simulated crowds whose model was
    right, 8 left a band of 94 %, and one the band of 99 %.

    Args:
        post: the result of `sample_posterior` or of a policy's `posterior`.
        ax: where to draw.
        draws: number of draws to use.
        seed: seed of the predictions.
        probability: probability of the band.

    Raises:
        ValueError: the draws are not those of a model of labels or features.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(60, 5, accuracy=0.8, seed=0)
        >>> post = bc.sample_posterior(
        ...     "one_coin", crowd.annotations, chains=2, draws=100, warmup=20
        ... )
        >>> bc.plots.loo_pit(post).get_title(loc="left")
        'Labels lie where the model expects them'
    """
    from bayescrowd.posterior.leave_one_out import loo_pit as places_of

    places = places_of(post, draws=draws, seed=seed)
    at = np.linspace(0, 1, N_STEPS + 1)
    gap = np.searchsorted(np.sort(places), at, side="right") / len(places) - at
    variance = at * (1 - at) / len(places)
    half = _half_width(len(places), probability) * np.sqrt(variance)
    ax = axes_or_new(ax, (6.0, 3.6))
    ax.fill_between(at, -half, half, color=PALE, alpha=0.5, linewidth=0)
    ax.axhline(0, color=GREY, linestyle="--", linewidth=1)
    # The function is known at the ends, where the band has no width.
    leaves = bool((np.abs(gap) > half)[1:-1].any())
    ax.plot(at, gap, color=VERMILLION if leaves else BLUE, linewidth=1.5)
    ax.set_xlim(0, 1)
    ax.yaxis.set_major_locator(MaxNLocator(5))
    title = "Labels lie where the model expects them"
    if leaves:
        title = "Labels are not where the model expects them"
    return tidy(
        ax,
        title=title,
        xlabel=f"place of a label in its prediction ({quantity(len(places), 'label')})",
        ylabel=f"difference from uniform, {probability:.0%} band",
    )


@cache
def _half_width(n: int, probability: float) -> float:
    """Standard errors that uniform numbers' distribution function keeps to at all steps at once."""
    rng = np.random.default_rng(0)
    at = np.arange(1, N_STEPS) / N_STEPS
    counts = rng.multinomial(n, np.full(N_STEPS, 1 / N_STEPS), size=N_SIMULATED)
    gaps = counts.cumsum(axis=1)[:, :-1] / n - at
    return float(np.quantile(np.abs(gaps / np.sqrt(at * (1 - at) / n)).max(axis=1), probability))


def _named_labels(
    post: Any,
) -> tuple[Integer[np.ndarray, "draw judgement"], Integer[np.ndarray, " judgement"], list[str]]:
    """Labels predicted in each draw, those observed, and what their codes mean.

    Labels of features are numbered through all features: the same code means another value in
    another feature.
    """
    from bayescrowd.posterior.container import group_names, group_of

    predicted = group_of(post, "posterior_predictive")["label"].to_numpy()
    predicted = predicted.reshape(-1, predicted.shape[-1])
    observed = group_of(post, "observed_data")["label"].to_numpy()
    posterior = group_of(post, "posterior")
    if "feature_value" in posterior.dims and "constant_data" in group_names(post):
        _, first = np.unique(pd.factorize(posterior["feature"].to_numpy())[0], return_index=True)
        offset = first[group_of(post, "constant_data")["feature_code"].to_numpy()]
        predicted, observed = predicted + offset, observed + offset
        names = posterior["feature_value"].to_numpy()
    elif "cls" in posterior.coords:
        names = posterior["cls"].to_numpy()
    else:
        names = np.arange(1 + max(predicted.max(initial=0), observed.max(initial=0)))
    return predicted, observed, [str(name) for name in names]
