"""Pictures of posteriors: chains, workers, comparisons of models and predictive checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bayescrowd.checks.parameters import Count, OpenFraction, validate_arguments
from bayescrowd.data.text import quantity, shorten
from bayescrowd.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    axes_or_new,
    draw_gaps_to_best,
    tidy,
)
from bayescrowd.plots.tasks import reliability

__all__ = [
    "chain_ranks",
    "chain_traces",
    "draws_of",
    "loo_comparison",
    "posterior_overview",
    "predictive_check",
    "worker_forest",
]

LOG_LIKELIHOOD = "marginal_log_likelihood"
"""The quantity to look at first: it depends on all parameters, and on no names of classes."""

N_RANK_BINS = 20
"""Number of bins of rank histograms, as in ArviZ."""

EXTREME = 0.01
"""Predictive p-values below this or above its complement are marked."""

_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE)


@validate_arguments
def chain_traces(
    post: Any,
    ax: Axes | None = None,
    *,
    variable: str = LOG_LIKELIHOOD,
    at: Mapping[str, Any] | None = None,
) -> Axes:
    """Every chain's draws in their order.

    Chains that have converged overlap and have no trend; one that sits elsewhere has found another
    mode, or has not converged.

    Args:
        post: the result of `sample_posterior`.
        ax: where to draw.
        variable: a parameter, or a statistic of the sampler.
        at: ids that pick one entry of a parameter, such as {"worker": "ann", "cls": "cat"}.

    Raises:
        ValueError: there is no such variable, or it has several entries.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).normal(size=(2, 50))
        >>> post = assemble({"posterior": dataset_of({"rate": (("chain", "draw"), draws)})})
        >>> bc.plots.chain_traces(post, variable="rate").get_xlabel()
        'draw'
    """
    draws, name = draws_of(post, variable, at)
    ax = axes_or_new(ax)
    for chain, values in enumerate(draws):
        colour = _COLOURS[chain % len(_COLOURS)]
        ax.plot(values, color=colour, linewidth=0.6, alpha=0.8, label=f"chain {chain}")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    ax.set_xlim(0, draws.shape[1])
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
    for line in legend.get_lines():
        line.set_linewidth(2.0)
    return tidy(ax, title=f"Traces of {len(draws)} chains", xlabel="draw", ylabel=name)


@validate_arguments
def chain_ranks(
    post: Any,
    ax: Axes | None = None,
    *,
    variable: str = LOG_LIKELIHOOD,
    at: Mapping[str, Any] | None = None,
) -> Axes:
    """Histograms of the ranks that each chain's draws have among all draws.

    Vehtari et al. (2021), section 6. Chains from one distribution have flat histograms. A histogram
    that leans to one side belongs to a chain whose values are higher or lower than the others', and
    one that is high at both ends or in the middle to a chain with another spread. The dashed lines
    are the expected heights.

    Args:
        post: the result of `sample_posterior`.
        ax: where to draw.
        variable: a parameter, or a statistic of the sampler.
        at: ids that pick one entry of a parameter, such as {"worker": "ann", "cls": "cat"}.

    Raises:
        ValueError: there is no such variable, or it has several entries.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).normal(size=(2, 50))
        >>> post = assemble({"posterior": dataset_of({"rate": (("chain", "draw"), draws)})})
        >>> ax = bc.plots.chain_ranks(post, variable="rate")
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['chain 0', 'chain 1']
    """
    draws, name = draws_of(post, variable, at)
    ax = axes_or_new(ax)
    n_chains, n_draws = draws.shape
    ranks = draws.ravel().argsort(kind="stable").argsort(kind="stable").reshape(draws.shape)
    n_bins = min(N_RANK_BINS, n_draws)
    edges = np.linspace(0, draws.size, n_bins + 1)
    expected = n_draws / n_bins
    counts = np.stack([np.histogram(chain, bins=edges)[0] for chain in ranks])
    gap = 1.15 * max(counts.max(), 1.6 * expected)
    for chain, heights in enumerate(counts):
        base = (n_chains - 1 - chain) * gap
        colour = _COLOURS[chain % len(_COLOURS)]
        ax.bar(edges[:-1], heights, np.diff(edges), base, align="edge", color=colour, alpha=0.75)
        ax.axhline(base + expected, color=GREY, linestyle="--", linewidth=1)
        ax.axhline(base, color=GREY, linewidth=0.5)
    places = (np.arange(n_chains)[::-1] * gap + expected / 2).tolist()
    ax.set_yticks(places, [f"chain {chain}" for chain in range(n_chains)])
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, draws.size)
    ax.set_ylim(0, n_chains * gap)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return tidy(ax, title="Ranks: flat if chains agree", xlabel=f"rank of the {name}", ylabel="")


@validate_arguments
def worker_forest(
    post: Any, ax: Axes | None = None, *, most: Count = 40, probability: OpenFraction = 0.89
) -> Axes:
    """Accuracy of workers with intervals, the best at the top.

    Args:
        post: the result of `sample_posterior`.
        ax: where to draw.
        most: largest number of workers shown; of more, the best and the worst are.
        probability: probability of the intervals.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).beta(8, 2, size=(2, 50, 3))
        >>> params = {
        ...     "prevalence": (("chain", "draw", "cls"), np.full((2, 50, 2), 0.5)),
        ...     "accuracy": (("chain", "draw", "worker"), draws),
        ... }
        >>> posterior = dataset_of(params, coords={"worker": ["ann", "bob", "eve"]})
        >>> codes = dataset_of({"worker_code": (("judgement",), [0, 0, 1, 2])})
        >>> groups = {"posterior": posterior, "constant_data": codes}
        >>> post = assemble(groups, attrs={"model": "one_coin"})
        >>> bc.plots.worker_forest(post).get_title(loc="left")
        '3 workers, 89% intervals'
    """
    from bayescrowd.posterior.workers import worker_posterior

    table = worker_posterior(post, probability=probability)
    table = table.sort_values("accuracy", ascending=False, kind="stable")
    title = f"{len(table):,} workers, {probability:.0%} intervals"
    if len(table) > most:
        best = most // 2
        title = f"{best} best and {most - best} worst of {title}"
        table = pd.concat([table.head(best), table.tail(most - best)])
    ax = axes_or_new(ax, (5.6, 1.2 + 0.17 * len(table)))
    rows = np.arange(len(table))
    ax.hlines(rows, table["lower"], table["upper"], color=BLUE, linewidth=2, alpha=0.6)
    ax.scatter(table["accuracy"], rows, color=BLUE, s=14, zorder=3)
    names = [
        f"{shorten(worker, 16)} ({n:,})"
        for worker, n in zip(table.index, table["n_labels"], strict=True)
    ]
    ax.set_yticks(rows, names, fontsize="x-small" if len(table) > 15 else "small")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(table) - 0.4, -0.6)
    ax.set_xlim(max(0.0, table["lower"].min() - 0.03), 1.01)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.grid(axis="x", color="#EEEEEE")
    return tidy(
        ax, title=title, xlabel="accuracy (share of right labels)", ylabel="worker (labels)"
    )


@validate_arguments
def loo_comparison(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How far the models fall short of the best in predicting left-out tasks.

    Args:
        table: the result of `compare`.
        ax: where to draw.

    Raises:
        ValueError: a column is absent.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> columns = {"elpd_diff": [0.0, -7.0], "dse": [0.0, 3.0], "weight": [0.9, 0.1]}
        >>> table = pd.DataFrame(columns, index=["pooled", "one coin"]).assign(n_bad=[0, 2])
        >>> [text.get_text() for text in bc.plots.loo_comparison(table).get_yticklabels()]
        ['pooled', 'one coin']
    """
    absent = {"elpd_diff", "dse", "weight", "n_bad"} - {*table.columns}
    if absent:
        raise ValueError(f"no column {min(absent)!r}; expected the table of compare")
    ax = axes_or_new(ax, (6.4, 1.6 + 0.5 * len(table)))
    notes = [
        f"weight {weight:.2f}" + (f", {n_bad:,} unreliable" if n_bad else "")
        for weight, n_bad in zip(table["weight"], table["n_bad"], strict=True)
    ]
    colours = [VERMILLION if n_bad else GREY for n_bad in table["n_bad"]]
    draw_gaps_to_best(ax, table["elpd_diff"], table["dse"], notes, colours)
    return tidy(
        ax,
        title="Prediction of left-out tasks",
        xlabel="difference from the best ± 2 standard errors (nats)",
        ylabel="",
    )


@validate_arguments
def predictive_check(
    checks: Any,
    ax: Axes | None = None,
    *,
    what: Literal["agreement", "vote_entropy", "label_frequency"] = "agreement",
) -> Axes:
    """Observed statistics of the labels against what the fitted model would have produced.

    Bars are the central 90 % of the model's values. For pairs and workers, observed values are
    drawn against simulated ones; on the diagonal, model and labels agree. Values that fewer than
    one simulation in a hundred reaches have another colour and marker; 2 % of them do by chance.

    Args:
        checks: the result of `bayescrowd.posterior.checks.check_crowd`.
        ax: where to draw.
        what: 'agreement' of pairs of workers, 'vote_entropy' of tasks, or 'label_frequency' of
            workers.

    Raises:
        ValueError: there is nothing to compare, as for workers without common tasks.

    Examples:
        >>> import pandas as pd
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.checks import CrowdChecks
        >>> row = {"observed": 0.7, "mean": 0.6, "lower": 0.5, "upper": 0.8, "p_value": 0.2}
        >>> table = pd.DataFrame([row], index=[("ann", "bob")])
        >>> ax = bc.plots.predictive_check(CrowdChecks(table, table, table))
        >>> ax.get_title(loc="left")
        'Agreement in 1 pair, 0 marked'
    """
    if not hasattr(checks, what):
        raise TypeError(
            f"checks is a {type(checks).__name__}; expected the result of "
            "bayescrowd.posterior.checks.check_crowd"
        )
    table: pd.DataFrame = getattr(checks, what).dropna()
    if table.empty:
        raise ValueError(f"no {what.replace('_', ' ')} to check")
    ax = axes_or_new(ax, (4.8, 4.4))
    is_far = ~table["p_value"].between(EXTREME, 1 - EXTREME).to_numpy()
    if what == "vote_entropy":
        _draw_intervals(ax, table, is_far)
        return tidy(ax, title="Entropy of tasks' votes", xlabel="nats, or share", ylabel="")
    _draw_against(ax, table, is_far)
    noun = {"agreement": "pair", "label_frequency": "label share"}[what]
    title = {"agreement": "Agreement in ", "label_frequency": ""}[what]
    title += f"{quantity(len(table), noun)}, {is_far.sum():,} marked"
    return tidy(ax, title=title, xlabel="simulated from the model", ylabel="observed")


@validate_arguments
def posterior_overview(
    post: Any, *, probas: pd.DataFrame | None = None, truth: pd.Series | None = None
) -> Figure:
    """Workers, chains and, where the truth is known, the calibration of the labels, in one figure.

    Args:
        post: the result of `sample_posterior`.
        probas: probabilities of the labels; by default `label_posterior(post)`.
        truth: true class by task.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).beta(8, 2, size=(2, 50, 3))
        >>> params = {
        ...     "prevalence": (("chain", "draw", "cls"), np.full((2, 50, 2), 0.5)),
        ...     "accuracy": (("chain", "draw", "worker"), draws),
        ... }
        >>> posterior = dataset_of(params, coords={"worker": ["ann", "bob", "eve"]})
        >>> codes = dataset_of({"worker_code": (("judgement",), [0, 0, 1, 2])})
        >>> statistics = {"marginal_log_likelihood": (("chain", "draw"), draws.sum(axis=2))}
        >>> groups = {"posterior": posterior, "constant_data": codes}
        >>> groups |= {"sample_stats": dataset_of(statistics)}
        >>> post = assemble(groups, attrs={"model": "one_coin"})
        >>> len(bc.plots.posterior_overview(post).axes)
        3
    """
    from bayescrowd.posterior.container import group_of

    n_workers = min(group_of(post, "posterior").sizes["worker"], 40)
    height = max(6.0, 1.6 + 0.17 * n_workers)
    width = 11.0 if truth is None else 15.0
    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    parts: Any = figure.subfigures(1, 2 if truth is None else 3)
    worker_forest(post, parts[0].subplots())
    above, below = parts[1].subplots(2, 1)
    chain_traces(post, above)
    chain_ranks(post, below)
    if truth is not None:
        if probas is None:
            from bayescrowd.posterior.sample import label_posterior

            probas = label_posterior(post)
        reliability(probas, truth, parts[2].subplots())
    return figure


def _draw_against(ax: Axes, table: pd.DataFrame, is_far: Bool[np.ndarray, " entry"]) -> None:
    """Draw observed against simulated values, the marked ones on top."""
    values = table[["lower", "upper", "observed"]].to_numpy()
    room = 0.05 * max(float(np.ptp(values)), 0.02)
    limits = (float(values.min()) - room, float(values.max()) + room)
    crowded = len(table) > 100
    for far, colour, marker in ((False, BLUE, "o"), (True, VERMILLION, "v")):
        chosen = table[is_far == far]
        spread = np.abs(chosen[["lower", "upper"]].to_numpy().T - chosen["mean"].to_numpy())
        ax.errorbar(
            chosen["mean"],
            chosen["observed"],
            xerr=spread,
            fmt=marker,
            color=colour,
            markersize=3 if crowded else 5,
            linewidth=0.5,
            alpha=0.35 if crowded and not far else 0.9,
        )
    ax.plot(limits, limits, color=GREY, linestyle="--", linewidth=1, zorder=4)
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))


def _draw_intervals(ax: Axes, table: pd.DataFrame, is_far: Bool[np.ndarray, " entry"]) -> None:
    """Draw one row per statistic: the model's interval and the observed value."""
    rows = np.arange(len(table))
    ax.hlines(
        rows, table["lower"], table["upper"], color=GREY, linewidth=5, alpha=0.6, label="model, 90%"
    )
    for far, colour, marker, name in (
        (False, BLUE, "o", "observed"),
        (True, VERMILLION, "v", "observed, marked"),
    ):
        if (is_far == far).any():
            observed = table["observed"][is_far == far]
            ax.scatter(observed, rows[is_far == far], color=colour, marker=marker, s=40, label=name)
    ax.set_yticks(rows, [str(name).replace(" ", "\n") for name in table.index])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(table) - 0.2, -0.6)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.grid(axis="x", color="#EEEEEE")
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="lower right")


def draws_of(
    post: Any, variable: str, at: Mapping[str, Any] | None
) -> tuple[Float[np.ndarray, "chain draw"], str]:
    """Draws of one number, and its name."""
    # ArviZ takes seconds to import, which other pictures need not wait for.
    from bayescrowd.posterior.container import group_names, group_of

    groups = [name for name in ("posterior", "sample_stats") if name in group_names(post)]
    found = [group_of(post, name)[variable] for name in groups if variable in group_of(post, name)]
    if not found:
        there = [str(name) for group in groups for name in group_of(post, group).data_vars]
        raise ValueError(f"no variable {variable!r}; there are {', '.join(there)}")
    picked = found[0].sel({} if at is None else dict(at)).transpose("chain", "draw", ...)
    if picked.ndim > 2:
        dims = ", ".join(map(str, picked.dims[2:]))
        raise ValueError(f"{variable} has several entries; expected ids of {dims} in at=")
    ids = "" if at is None else f"[{', '.join(str(value) for value in at.values())}]"
    return picked.to_numpy().astype(float), f"{variable.replace('_', ' ')}{ids}"
