"""The goodness of fit G between two divergences (Zhao and Zucker, figure 2, lemma 1, eqs. 4-11).

EM moves from parameters Theta^t to Theta^(t+1), which maximise the bound F(Theta; Theta^t) on the
likelihood. G, the gap between that maximum and the negative entropy of the data, is below the
divergence of Theta^t from the data and above that of Theta^(t+1); lemma 1 expresses it as the
information that the features still share within components. The figure is a sketch. Here it is
computed, and the equations are checked, for distributions small enough to enumerate: three features
with 2, 3 and 4 values, whose joint distribution is a random mixture of four products, fitted by two
components. The data are the population itself, as in the paper's section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import xlogy

from bayescrowd.experiments.engine.experiment import Cell, CellId, Claim, Experiment, Part
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.experiments.mi.figure1 import mutual_information
from bayescrowd.plots.canvas import BLUE, GREEN, GREY, ORANGE, VERMILLION, tidy

__all__ = [
    "EXPERIMENT",
    "Mixture",
    "bound",
    "divergence",
    "em_step",
    "expected_joint",
    "gap",
    "gap_by_lemma_1",
    "gap_by_pairs",
    "joint",
    "log_likelihood",
    "negative_entropy",
    "random_mixture",
]

N_VALUES = (2, 3, 4)
N_TRUE, N_FITTED = 4, 2
N_STEPS = 8
N_SEEDS = 20
N_OTHERS = 50
"""Number of parameters per step with which the maximum of the bound is compared. They lie between
the maximum and random parameters, from a hundredth of the way to all of it."""

_ROUNDING = 1e-12


class Mixture(NamedTuple):
    """Parameters of a mixture of discrete products (Theta)."""

    weights: Float[np.ndarray, " component"]
    """omega_k = P(Y = k)."""
    profiles: tuple[Float[np.ndarray, "component value"], ...]
    """mu_irk = P(X_i = r | Y = k), one array per feature."""


# In the arrays below, the axis of Y, if there is one, comes before the axes of the features.


def random_mixture(
    rng: np.random.Generator, n_components: int, n_values: Sequence[int] = N_VALUES
) -> Mixture:
    """Parameters drawn from flat Dirichlet distributions."""
    weights = rng.dirichlet(np.ones(n_components))
    profiles = tuple(rng.dirichlet(np.ones(v), size=n_components) for v in n_values)
    return Mixture(weights, profiles)


def joint(mixture: Mixture) -> Float[np.ndarray, "component ..."]:
    """P(Y, X) of every combination of values."""
    table = mixture.weights
    for profile in mixture.profiles:
        middle = (1,) * (table.ndim - 1)
        table = table[..., None] * profile.reshape(len(profile), *middle, -1)
    return table


def log_likelihood(data: Float[np.ndarray, "*config"], mixture: Mixture) -> float:
    """l(Theta) = sum over x of P_0(x) log P_Theta(x)."""
    return float(xlogy(data, joint(mixture).sum(axis=0)).sum())


def negative_entropy(data: Float[np.ndarray, "*config"]) -> float:
    """-H(X) under P_0."""
    return float(xlogy(data, data).sum())


def divergence(data: Float[np.ndarray, "*config"], mixture: Mixture) -> float:
    """D_KL(P_0 || P_Theta) = -H - l(Theta)."""
    return negative_entropy(data) - log_likelihood(data, mixture)


def expected_joint(
    data: Float[np.ndarray, "*config"], mixture: Mixture
) -> Float[np.ndarray, "component ..."]:
    """P~(x, y) = P_0(x) P_Theta(y | x), the E-step."""
    both = joint(mixture)
    return data * both / both.sum(axis=0)


def em_step(data: Float[np.ndarray, "*config"], mixture: Mixture) -> Mixture:
    """Equation 4: P(Y) = P~(Y) and P(X_i | Y) = P~(X_i | Y), the maximum of the bound."""
    expected = expected_joint(data, mixture)
    weights = expected.reshape(len(expected), -1).sum(axis=1)
    pairs = [_marginal(expected, feature) for feature in range(data.ndim)]
    return Mixture(weights, tuple(pair / weights[:, None] for pair in pairs))


def bound(data: Float[np.ndarray, "*config"], at: Mixture, mixture: Mixture) -> float:
    """F(Theta; Theta^t) for Theta = `at`: the bound on l(Theta) that is tight at Theta^t."""
    expected = expected_joint(data, mixture)
    posterior = expected / data
    return float((xlogy(expected, joint(at)) - xlogy(expected, posterior)).sum())


def gap(data: Float[np.ndarray, "*config"], at: Mixture, mixture: Mixture) -> float:
    """G(Theta; Theta^t) = -H - F(Theta; Theta^t), equation 5."""
    return negative_entropy(data) - bound(data, at, mixture)


def gap_by_equation_8(data: Float[np.ndarray, "*config"], mixture: Mixture) -> float:
    """G(Theta^(t+1); Theta^t) as the divergence of P_(Theta^(t+1))(x, y) from P~(x, y)."""
    expected = expected_joint(data, mixture)
    return float((xlogy(expected, expected) - xlogy(expected, joint(em_step(data, mixture)))).sum())


def gap_by_equation_9(data: Float[np.ndarray, "*config"], mixture: Mixture) -> float:
    """The same from P~ alone: its divergence from P~(y) times the product of the P~(x_i | y)."""
    expected = expected_joint(data, mixture)
    weights = expected.reshape(len(expected), -1).sum(axis=1)
    product = joint(Mixture(weights, _conditionals(expected)))
    return float((xlogy(expected, expected) - xlogy(expected, product)).sum())


def gap_by_lemma_1(data: Float[np.ndarray, "*config"], mixture: Mixture) -> float:
    """Equation 6: the mean multi-information of the features within a component of P~."""
    expected = expected_joint(data, mixture)
    weights = expected.reshape(len(expected), -1).sum(axis=1)
    within = expected / weights.reshape(-1, *(1,) * data.ndim)
    product = joint(Mixture(np.ones(len(weights)), _conditionals(expected)))
    return float((xlogy(expected, within) - xlogy(expected, product)).sum())


def gap_by_pairs(data: Float[np.ndarray, "*config"], mixture: Mixture) -> float:
    """Equation 10: the sum over pairs of I(X_i, X_j | Y) under P~, which approximates G."""
    expected = expected_joint(data, mixture)
    total = 0.0
    for component in expected:
        weight = component.sum()
        for i in range(data.ndim):
            for j in range(i):
                others = tuple(axis for axis in range(data.ndim) if axis not in (i, j))
                total += weight * mutual_information(component.sum(axis=others) / weight)
    return float(total)


def _marginal(
    expected: Float[np.ndarray, "component ..."], feature: int
) -> Float[np.ndarray, "component value"]:
    others = tuple(axis for axis in range(1, expected.ndim) if axis != feature + 1)
    return np.asarray(expected.sum(axis=others))


def _conditionals(
    expected: Float[np.ndarray, "component ..."],
) -> tuple[Float[np.ndarray, "component value"], ...]:
    """P~(x_i | y) of each feature."""
    pairs = [_marginal(expected, feature) for feature in range(expected.ndim - 1)]
    return tuple(pair / pair.sum(axis=1, keepdims=True) for pair in pairs)


BEFORE, GAP, AFTER = "D_KL at t", "G", "D_KL at t+1"
PAIRS = "pairs (10)"
SPLIT = "disagreement of 5, 6, 8 and 9"
OTHERS = "least G elsewhere less G"
TOUCH = "F less l at t"
ONE = "one component: pairs less (11)"
_ROWS = (BEFORE, GAP, AFTER, PAIRS, SPLIT, OTHERS, TOUCH, ONE)


def _start(seed: int) -> tuple[Float[np.ndarray, "*config"], Mixture, np.random.Generator]:
    """The distribution of the data, the starting parameters, and the generator for later draws."""
    rng = np.random.default_rng([seed, 2])
    data = joint(random_mixture(rng, N_TRUE)).sum(axis=0)
    return data, random_mixture(rng, N_FITTED), rng


def _measure(part: str, seed: int) -> dict[CellId, float]:
    data, mixture, rng = _start(seed)
    sums = [data.sum(axis=axis) for axis in range(data.ndim)]  # one per pair of three features
    information = sum(mutual_information(pair) for pair in sums)
    values: dict[CellId, float] = {}
    for step in range(N_STEPS):
        after = em_step(data, mixture)
        least = gap(data, after, mixture)
        forms = (
            gap_by_lemma_1(data, mixture),
            gap_by_equation_8(data, mixture),
            gap_by_equation_9(data, mixture),
        )
        elsewhere = min(
            gap(data, _between(after, random_mixture(rng, N_FITTED), share), mixture)
            for share in np.geomspace(0.01, 1, N_OTHERS).tolist()
        )
        found = {
            BEFORE: divergence(data, mixture),
            GAP: least,
            AFTER: divergence(data, after),
            PAIRS: gap_by_pairs(data, mixture),
            SPLIT: max(abs(form - least) for form in forms),
            OTHERS: elsewhere - least,
            TOUCH: bound(data, mixture, mixture) - log_likelihood(data, mixture),
            ONE: gap_by_pairs(data, _one_component(data)) - information,
        }
        values |= {CellId(row, str(step)): value for row, value in found.items()}
        mixture = after
    return values


def _one_component(data: Float[np.ndarray, "*config"]) -> Mixture:
    """The model with one component of proposition 1."""
    expected = data[None]
    return Mixture(np.ones(1), _conditionals(expected))


def _claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    values = {row: np.array([o.values for o in outcomes if o.cell.id.row == row]) for row in _ROWS}
    n = values[GAP].size
    ratio = values[PAIRS] / values[GAP]
    return [
        Claim(
            "G lies between the divergences at t and t+1",
            bool(
                (values[BEFORE] >= values[GAP] - _ROUNDING).all()
                and (values[GAP] >= values[AFTER] - _ROUNDING).all()
            ),
            f"in all {n} steps; means at step 0: {values[BEFORE][0].mean():.4f}, "
            f"{values[GAP][0].mean():.4f} and {values[AFTER][0].mean():.4f} nats",
        ),
        Claim(
            "lemma 1 and equations 5, 8 and 9 define the same quantity",
            bool(values[SPLIT].max() < _ROUNDING),
            f"largest difference {values[SPLIT].max():.0e} nats",
        ),
        Claim(
            "the M-step minimises G",
            bool(values[OTHERS].min() > 0),
            f"{N_OTHERS} other parameters per step, near and far, have at least "
            f"{values[OTHERS].min():.0e} nats more",
        ),
        Claim(
            "the bound equals the likelihood at t",
            bool(np.abs(values[TOUCH]).max() < _ROUNDING),
            f"largest difference {np.abs(values[TOUCH]).max():.0e} nats",
        ),
        Claim(
            "with one component the sum over pairs (10) is the sum of mutual information (11)",
            bool(np.abs(values[ONE]).max() < _ROUNDING),
            f"largest difference {np.abs(values[ONE]).max():.0e} nats",
        ),
        Claim(
            "the sum over pairs (10) approximates G, which we take to mean within a tenth",
            bool(np.abs(ratio - 1).max() <= 0.1),
            f"pairs are {ratio.min():.2f} to {ratio.max():.2f} times G, median "
            f"{np.median(ratio):.2f}",
        ),
    ]


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw likelihood and bound on the line through Theta^t and Theta^(t+1), and EM's progress."""
    figure = Figure(figsize=(11, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_bound(left)
    steps = np.arange(N_STEPS)
    lines = ((BEFORE, BLUE, "-"), (GAP, VERMILLION, "--"), (AFTER, GREEN, "-."), (PAIRS, GREY, ":"))
    for row, colour, style in lines:
        curve = [outcome.measured for outcome in outcomes if outcome.cell.id.row == row]
        right.plot(steps, curve, style, color=colour, marker="o", markersize=3, label=row)
    right.legend(frameon=False)
    right.set_yscale("log")
    tidy(right, title="Medians over the draws", xlabel="EM step t", ylabel="nats")
    return figure


def _draw_bound(axes: Axes) -> None:
    data, mixture, _ = _start(0)
    after = em_step(data, mixture)
    places = np.linspace(-0.3, 1.7, 101)
    inside = [(place, _between(mixture, after, place)) for place in places.tolist()]
    kept = [(place, there) for place, there in inside if _is_valid(there)]
    line = [place for place, _ in kept]
    top = negative_entropy(data)
    axes.plot(
        line, [log_likelihood(data, there) for _, there in kept], color=BLUE, label="likelihood l"
    )
    axes.plot(
        line,
        [bound(data, there, mixture) for _, there in kept],
        "--",
        color=ORANGE,
        label="bound F",
    )
    axes.axhline(top, color=GREY, linewidth=1, label="negative entropy")
    reached = log_likelihood(data, after)
    axes.hlines(reached, 1.0, 1.3, color=BLUE, linestyle=":", linewidth=1)
    gaps = (
        (0.0, log_likelihood(data, mixture), "left", "$D_{{KL}}$ at $t$: {:.3f}"),
        (1.0, bound(data, after, mixture), "right", "G: {:.3f}"),
        (1.3, reached, "left", "$D_{{KL}}$ at $t+1$: {:.3f}"),
    )
    style = {"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0}
    for place, low, side, words in gaps:
        axes.annotate("", (place, top), (place, low), arrowprops=style)
        shift = 0.04 if side == "left" else -0.04
        text = words.format(top - low)
        axes.text(place + shift, (top + low) / 2, text, ha=side, va="center", fontsize=8)
    axes.legend(frameon=False, loc="lower center")
    axes.set_xticks([0, 1], [r"$\Theta^t$", r"$\Theta^{t+1}$"])
    tidy(axes, title="One step of EM, enumerated", xlabel="", ylabel="nats")


def _between(one: Mixture, other: Mixture, place: float) -> Mixture:
    """The parameters at a place on the line through `one` (place 0) and `other` (place 1)."""
    weights = (1 - place) * one.weights + place * other.weights
    pairs = zip(one.profiles, other.profiles, strict=True)
    return Mixture(weights, tuple((1 - place) * a + place * b for a, b in pairs))


def _is_valid(mixture: Mixture) -> bool:
    return min(mixture.weights.min(), *(float(p.min()) for p in mixture.profiles)) > 0


EXPERIMENT = Experiment(
    name="mi-figure2",
    title="Goodness of fit between two divergences (Zhao and Zucker, figure 2 and lemma 1)",
    parts=(
        Part(
            "population",
            f"features of {N_VALUES} values, a mixture of {N_TRUE} products fitted by {N_FITTED}, "
            f"{N_STEPS} steps of EM, {N_OTHERS} other parameters",
            is_random=True,
        ),
    ),
    cells=tuple(
        Cell(
            id=CellId(row, str(step)),
            part="population",
            published=None,
            unit="nats",
            decimals=4,
            n_items=None,
            reason=None,
        )
        for row in _ROWS
        for step in range(N_STEPS)
    ),
    measure=_measure,
    draw=_draw,
    n_seeds=N_SEEDS,
    claims=_claims,
    notes=("The figure is a sketch without numbers; the columns here are steps of EM.",),
)
