"""Simulation-based calibration of every model's sampler, with a picture.

    python benchmarks/calibration.py [notebooks/sbc.png] [--simulations 500] [--models mace ...]

Each model is simulated from its prior and sampled by Gibbs or, if it has no conditionals, by NUTS;
see `bayescrowd.posterior.calibration`. Of the models without a Gibbs sampler, only
`item_difficulty` is included by default, since the others take ten times as long; `judgements`, a
model of numbers instead of classes, has its own tests. The script prints the p-values and draws,
for each model, the histogram of the ranks and the difference between their distribution function
and the uniform one, with the bands that contain a correct sampler (95 % of the time for each
quantity). It exits with code 1 if a sampler fails at a level of 1 %, divided among all quantities.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import bayescrowd as bc
from bayescrowd.posterior import calibration
from bayescrowd.posterior.gibbs import Gibbs
from bayescrowd.posterior.nuts import nuts_kernel

N_DRAWS, N_BINS = 63, 16
LEVEL = 0.01


def default_models() -> list[str]:
    conjugate = [name for name, facts in bc.models.catalogue().items() if facts.has_conditionals]
    return [*conjugate, "item_difficulty"]


def rank(name: str, n_simulations: int) -> calibration.Calibration:
    model = getattr(bc.models, name)
    case, thin, warmup = calibration.standard_case(model)
    kernel = Gibbs(model) if model.FACTS.has_conditionals else nuts_kernel(model)
    key_simulate, key_sample = jax.random.split(jax.random.key(2018))
    simulated = calibration.simulate_prior(key_simulate, case, n_simulations=n_simulations)
    return calibration.calibrate(
        key_sample, kernel, case, simulated, n_draws=N_DRAWS, thin=thin, warmup=warmup
    )


def picture(found: dict[str, calibration.Calibration]) -> Figure:
    figure = Figure(figsize=(9, 1.75 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 2, sharex="col", width_ratios=(1, 1.3), squeeze=False)
    for row, (name, one) in zip(axes, found.items(), strict=True):
        n_simulations = len(one.truth)
        counts = stats.binom(n_simulations, 1 / N_BINS)
        row[0].axhspan(*counts.ppf([0.025, 0.975]), color="0.9")
        edges = np.linspace(0, N_DRAWS + 1, N_BINS + 1) - 0.5
        band = calibration.ecdf_band(n_simulations, N_DRAWS, level=0.05)
        row[1].fill_between(
            N_DRAWS * band.position,
            band.lower - band.position,
            band.upper - band.position,
            color="0.9",
        )
        for quantity, ranks, shares in zip(
            one.quantities, one.ranks.T, calibration.ecdf(one), strict=True
        ):
            heights, _ = np.histogram(ranks, edges)
            row[0].stairs(heights, edges)
            row[1].plot(N_DRAWS * band.position, shares - band.position, label=quantity, lw=1.2)
        sampler = "Gibbs" if getattr(bc.models, name).FACTS.has_conditionals else "NUTS"
        title = f"{name}, {sampler}, {n_simulations} simulations"
        row[0].set_title(title, loc="left", fontsize=9)
        row[0].set_ylim(0, 2 * n_simulations / N_BINS)
        row[1].legend(fontsize=6, frameon=False, ncols=3, loc="upper right")
        widest = (band.upper - band.position).max()
        row[1].set_ylim(-1.15 * widest, 1.6 * widest)
        for axis in row:
            axis.tick_params(labelsize=7)
            axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("rank of the truth among 63 draws", fontsize=8)
    axes[-1, 1].set_xlabel("rank", fontsize=8)
    axes[0, 1].set_title("share of ranks below, minus the uniform share", loc="left", fontsize=9)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", type=Path, default=Path("notebooks/sbc.png"))
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--models", nargs="+", default=default_models())
    arguments = parser.parse_args()
    found: dict[str, calibration.Calibration] = {}
    for name in sorted(arguments.models):
        started = time.process_time()
        one = found[name] = rank(name, arguments.simulations)
        p_values = calibration.chi_square_p_values(one, n_bins=N_BINS)
        print(f"{name}: {time.process_time() - started:.0f} CPU seconds")
        for i, quantity in enumerate(one.quantities):
            correlation = one.autocorrelation[i]
            print(f"  {quantity:20} p={p_values[i]:.3f} autocorrelation={correlation:.3f}")
        sys.stdout.flush()
    picture(found).savefig(arguments.path, dpi=100)
    n_tests = sum(len(one.quantities) for one in found.values())
    failed = [
        name
        for name, one in found.items()
        if (calibration.chi_square_p_values(one, n_bins=N_BINS) < LEVEL / 2 / n_tests).any()
        or calibration.is_outside(one, level=LEVEL / 2 / n_tests).any()
    ]
    print(f"{n_tests} quantities; not calibrated: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
