"""Gibbs sweeps against EM iterations and against NUTS, in one run.

    python benchmarks/posterior.py [--labels 1000000] [--ess bluebird rte] [--no-nuts]

`sweep` is the best time of one compiled Gibbs sweep of Dawid and Skene's model over labels of
n/5 tasks, n/200 workers and 4 classes, beside four iterations of our EM on the same labels, timed
by turns so that a busy machine slows both. `ESS/s` is the smallest bulk effective sample size of
any parameter over the seconds of sampling, compilation left out (a second run of the same
shapes for Gibbs; for NUTS, the draws after warm-up and compilation). Data sets need
`BAYESCROWD_DATA` or a network.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import bayescrowd as bc
from bayescrowd.aggregation.em import maximise
from bayescrowd.aggregation.protocol import incidence, vote_shares
from bayescrowd.models import dawid_skene
from bayescrowd.posterior import chains, gibbs, nuts

N_EM = 4


def sweep_against_em(n_labels: int, repeats: int = 7) -> dict[str, float]:
    accuracy = np.random.default_rng(2).uniform(0.4, 0.95, n_labels // 200)
    ann = bc.simulate.one_coin_crowd(
        n_labels // 5, n_labels // 200, 4, labels_per_task=5, accuracy=accuracy, seed=0
    ).annotations
    estimator = bc.DawidSkene()
    matrix = incidence(ann)
    shares = vote_shares(ann, np.full(ann.n_tasks, -1, dtype=np.int32))

    def em() -> object:
        return maximise(matrix, shares, estimator._m_step, n_iter=N_EM, tol=0.0)

    labels = _labels(ann)
    prior = dawid_skene.Prior()
    state = gibbs.start(
        jax.random.key(0),
        gibbs.vote_shares(labels, n_items=ann.n_tasks, n_classes=4),
        prior,
        model=dawid_skene,
        n_workers=ann.n_workers,
    )
    step = jax.jit(partial(gibbs.sweep, model=dawid_skene))

    def sweep() -> object:
        return jax.block_until_ready(step(jax.random.key(1), state, labels, prior))

    sweep(), em()  # compilation
    times = [(_seconds(sweep), _seconds(em)) for _ in range(repeats)]
    best_sweep, best_em = np.min(times, axis=0)
    return {
        "labels": ann.n_labels,
        "sweep ms": 1e3 * best_sweep,
        f"{N_EM} EM iterations ms": 1e3 * best_em,
        "ratio": best_sweep / best_em,
    }


def effective_draws(name: str, method: str, *, draws: int = 1000) -> dict[str, float | str]:
    ann = bc.load_dataset(name).annotations
    labels = _labels(ann)
    sizes = chains.Sizes(n_items=ann.n_tasks, n_workers=ann.n_workers, n_classes=ann.n_classes)
    prior = dawid_skene.Prior()
    is_gibbs = method == "gibbs"
    kernel = gibbs.Gibbs(dawid_skene) if is_gibbs else nuts.nuts_kernel(dawid_skene)
    warmup = 200 if is_gibbs else 500
    state = kernel.init(
        jax.random.split(jax.random.key(0), 4),
        warmup,
        None,
        (labels,),
        {**sizes._asdict(), "prior": prior},
    )
    read = gibbs.read_draw if is_gibbs else nuts.read_draw

    def advance(state: object, n_draws: int) -> tuple:
        return jax.block_until_ready(
            chains._advance(
                state,
                labels,
                prior,
                n_draws,
                kernel=kernel,
                read=read,
                sizes=sizes,
                keep_log_likelihood=False,
            )
        )

    started = time.perf_counter()
    for _ in range(warmup // chains.BLOCK):
        state, _, _ = advance(state, chains.BLOCK)
    warm_seconds = time.perf_counter() - started
    recorded = []
    started = time.perf_counter()
    for _ in range(draws // chains.BLOCK):
        state, block, _ = advance(state, chains.BLOCK)
        recorded.append(np.asarray(block.params["confusion"]))
    seconds = time.perf_counter() - started
    ess = _smallest_ess(np.concatenate(recorded).swapaxes(0, 1))
    return {
        "data": name,
        "method": method,
        "warm-up s": warm_seconds,
        "draws s": seconds,
        "min ESS": ess,
        "ESS/s": ess / seconds,
    }


def _smallest_ess(draws: np.ndarray) -> float:
    import arviz as az

    flat = draws.reshape(*draws.shape[:2], -1).astype(float)
    chosen = np.linspace(0, flat.shape[2] - 1, min(flat.shape[2], 200)).astype(int)
    return min(float(az.ess(np.ascontiguousarray(flat[:, :, i]))) for i in chosen)


def _labels(ann: bc.Annotations) -> dawid_skene.Labels:
    codes = (ann.task_codes, ann.worker_codes, ann.label_codes)
    return dawid_skene.Labels(*map(jnp.asarray, codes))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=1_000_000, help="0 leaves the sweep out")
    parser.add_argument("--ess", nargs="*", default=["bluebird", "rte", "dog"])
    parser.add_argument("--no-nuts", action="store_true")
    arguments = parser.parse_args()
    if arguments.labels:
        row = sweep_against_em(arguments.labels)
        print(pd.DataFrame([row]).to_string(index=False, float_format="%.3g"), flush=True)
    methods = ["gibbs"] if arguments.no_nuts else ["gibbs", "nuts"]
    for name in arguments.ess:
        for method in methods:
            row = effective_draws(name, method)
            print(pd.DataFrame([row]).to_string(index=False, float_format="%.3g"), flush=True)


if __name__ == "__main__":
    main()
