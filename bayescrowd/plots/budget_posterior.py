"""Pictures of what a policy knows, from posterior draws: credibility, and Thompson's draws."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.stats import gaussian_kde

from bayescrowd.budgeted.information_gain import extend, first_best, information_gains
from bayescrowd.budgeted.policy import Policy
from bayescrowd.checks.parameters import Count, OpenFraction, Seed, validate_arguments
from bayescrowd.data.text import shorten
from bayescrowd.data.vocabulary import comma_list
from bayescrowd.plots.canvas import BLUE, GREY, ORANGE, axes_or_new, tidy
from bayescrowd.plots.policy_lines import COLOURS, DASHES
from bayescrowd.plots.posterior import draws_of

__all__ = ["credibility_density", "thompson_gains"]

N_PLACES = 512
"""Number of places at which densities are drawn."""

_TAIL = 0.055
"""Share of the draws beyond either end of the intervals of gains: 89 % are inside."""


@validate_arguments
def credibility_density(
    posteriors: Any,
    ax: Axes | None = None,
    *,
    at: Mapping[str, Any],
    variable: str = "conditional",
    epsilon: OpenFraction = 0.05,
) -> Axes:
    """Draw the density of a probability, and shade what is within epsilon of its mean.

    The shaded mass is the credibility of this one parameter (Nushi et al. 2016, figure 4; equation
    1 averages it over the values and classes of a feature). It grows as the density narrows; a
    density near 0 or 1 is narrower than one in the middle after the same number of observations.

    Args:
        posteriors: the result of `Policy.posterior`, or a dict of several by name, such as
            {"after 20 labels": post}.
        ax: where to draw.
        at: ids that pick one probability, such as {"cls": "spam", "feature_value": "link=yes"}.
        variable: the parameter; `channel` has no hidden values that could swap names.
        epsilon: half-width of the band.

    Raises:
        ValueError: there is no such variable, or it has several entries.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.container import assemble, dataset_of
        >>> draws = np.random.default_rng(0).dirichlet([90, 10], size=(2, 500))
        >>> table = {"conditional": (("chain", "draw", "feature_value"), draws)}
        >>> ids = {"feature_value": ["link=yes", "link=no"]}
        >>> post = assemble({"posterior": dataset_of(table, coords=ids)})
        >>> ax = bc.plots.credibility_density(post, at={"feature_value": "link=yes"})
        >>> ax.get_title(loc="left")
        'Within ±0.05 of the mean with probability 0.92'
    """
    # ArviZ's containers are mappings, too
    named = posteriors if isinstance(posteriors, dict) else {"": posteriors}
    if not named:
        raise ValueError("posteriors: expected at least one")
    ax = axes_or_new(ax)
    masses, parameter = [], ""
    for number, (name, post) in enumerate(named.items()):
        drawn, parameter = draws_of(post, variable, at)
        draws = drawn.ravel()
        if draws.min() < 0 or draws.max() > 1:
            raise ValueError(f"{variable} is not a probability: it has draws outside 0..1")
        masses.append(float((np.abs(draws - draws.mean()) <= epsilon).mean()))
        colour, dashes = COLOURS[number % len(COLOURS)], DASHES[1:][number % 7]
        places = np.linspace(0, 1, N_PLACES)
        label = f"{name}: {masses[-1]:.2f}" if name else None
        heights = _density(draws, places)
        ax.plot(places, heights, color=colour, linestyle=dashes, label=label)
        mean = float(draws.mean())
        inside = np.linspace(max(mean - epsilon, 0.0), min(mean + epsilon, 1.0), N_PLACES)
        ax.fill_between(inside, _density(draws, inside), color=colour, alpha=0.25, linewidth=0)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(5))
    if isinstance(posteriors, dict):
        ax.legend(frameon=False, fontsize="small", title="shaded mass", title_fontsize="small")
    return tidy(
        ax,
        title=f"Within ±{epsilon:g} of the mean with probability {masses[-1]:.2f}",
        xlabel=parameter,
        ylabel="posterior density",
    )


@validate_arguments
def thompson_gains(
    policy: Policy,
    ax: Axes | None = None,
    *,
    given: Sequence[Hashable] = (),
    n_draws: Count = 200,
    seed: Seed = 0,
) -> Axes:
    """Draw the information gain of each feature under draws of the posterior.

    Thompson sampling asks about the feature with the highest gain under one draw. Each faint dot is
    a draw, each bar holds 89 % of them, each ring is the gain at the posterior mean. The share at
    the right is that of the draws in which the feature is the best.

    Args:
        policy: a policy, at any time; it is not changed.
        ax: where to draw.
        given: features that are selected already; the gain is what a feature adds to them.
        n_draws: number of draws.
        seed: seed of the draws.

    Raises:
        ValueError: there is no such feature, or no other one.

    Examples:
        >>> import bayescrowd as bc
        >>> space = bc.FeatureSpace(classes=["a", "b"], features={"x": [0, 1], "y": [0, 1]})
        >>> policy = bc.RoundRobin(space, budget=40, n_features=1)
        >>> while (query := policy.ask()) is not None:
        ...     policy.tell(query, int(query.feature == "x" and query.target == "b"))
        >>> bc.plots.thompson_gains(policy).get_title(loc="left")
        'x has the highest gain in 100% of the draws'
    """
    names = policy.core.problem.feature_names
    for name in given:
        if name not in names:
            raise ValueError(
                f"given: there is no feature {name!r}; expected some of "
                f"{comma_list(policy.space.names)}"
            )
    chosen = [names.index(name) for name in given]
    if len(set(chosen)) >= len(names):
        raise ValueError("given: expected fewer features than there are")
    found = _gains(policy, chosen, n_draws, seed)
    others = [f for f in range(len(names)) if f not in chosen]
    order = sorted(others, key=lambda f: (-found.is_best[f], -found.at_mean[f]))
    ax = axes_or_new(ax, (6.4, 1.4 + 0.34 * len(order)))
    rng = np.random.default_rng(seed)
    for row, f in enumerate(order):
        colour = ORANGE if row == 0 else BLUE
        draws = found.drawn[:, f]
        ax.hlines(row, *np.quantile(draws, [_TAIL, 1 - _TAIL]), color=colour, linewidth=2)
        heights = row + rng.uniform(-0.28, 0.28, size=n_draws)
        ax.scatter(draws, heights, color=colour, s=6, alpha=0.3, linewidths=0)
        ax.scatter(found.at_mean[f], row, s=30, facecolor="white", edgecolor=colour, zorder=3)
        ax.annotate(
            f"{found.is_best[f]:.0%}",
            (1.02, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
            color=GREY,
        )
    ax.annotate(
        "best in",
        (1.02, -0.8),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize="small",
        color=GREY,
        annotation_clip=False,
    )
    ax.set_yticks(range(len(order)), [shorten(names[f], 20) for f in order])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.grid(axis="x", color="#EEEEEE")
    beyond = f" beyond {comma_list(given)}" if given else ""
    return tidy(
        ax,
        title=f"{shorten(names[order[0]], 20)} has the highest gain in "
        f"{found.is_best[order[0]]:.0%} of the draws",
        xlabel=f"information about the class{beyond} (nats)",
        ylabel="",
    )


class _Gains(NamedTuple):
    """Information gains of all features, in the order of the policy's core."""

    drawn: Float[np.ndarray, "draw feature"]
    """Under each draw of the posterior."""
    at_mean: Float[np.ndarray, " feature"]
    """At the posterior mean."""
    is_best: Float[np.ndarray, " feature"]
    """Share of the draws in which the feature has the highest gain of those not chosen."""


def _gains(policy: Policy, chosen: list[int], n_draws: int, seed: int) -> _Gains:
    """Gains beyond the chosen features, under draws of channels and of the classes' prior."""
    rng = np.random.default_rng(seed)
    belief, problem = policy.state.belief, policy.core.problem

    def gains(
        prior: Float[np.ndarray, " cls"], channels: Float[np.ndarray, "feature cls outcome"]
    ) -> Float[np.ndarray, " feature"]:
        joint = prior[:, None]
        for f in chosen:
            joint = extend(joint, channels[f, :, : belief.n_outcomes[f]], rng)
        return information_gains(joint, channels)

    drawn = np.stack(
        [gains(problem.space.draw_class_prior(rng), belief.draw(rng)) for _ in range(n_draws)]
    )
    is_barred = np.zeros(drawn.shape[1], dtype=bool)
    is_barred[chosen] = True
    best = [first_best(row, is_barred) for row in drawn]
    shares = np.bincount(best, minlength=drawn.shape[1]) / n_draws
    return _Gains(drawn, gains(problem.prior, belief.mean()), shares)


def _density(
    draws: Float[np.ndarray, " draw"], places: Float[np.ndarray, " place"]
) -> Float[np.ndarray, " place"]:
    """Kernel density between 0 and 1; what would spill over an end is reflected at it."""
    if np.ptp(draws) == 0:
        raise ValueError("all draws are equal; expected a parameter that is not fixed")
    kernel = gaussian_kde(draws)
    mirrored: Float[np.ndarray, " place"] = kernel(places) + kernel(-places) + kernel(2 - places)
    return mirrored
