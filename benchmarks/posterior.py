"""Samplers of Dawid and Skene's model against EM, against each other and against plain NumPyro.

    python benchmarks/posterior.py [--labels 1000000] [--ess bluebird rte dog] [--seconds 40]

Everything runs on one core if the system allows it. Otherwise, CPU seconds include idle threads,
several per second of wall time, which favours no sampler in particular.

`sweep` is the shortest time of one compiled Gibbs sweep over labels of n/5 tasks, n/200 workers and
4 classes, next to four iterations of our EM on the same labels, timed alternately so that a busy
machine slows both. `svi` is one whole call of `sample_posterior` with a single fit to these labels.

`ESS/s` is the smallest bulk effective sample size of 400 evenly spaced confusion entries, divided
by the seconds of sampling with four chains, for Gibbs, our NUTS, and NUTS on the dense model of
`dense_nuts.py`, which has the same posterior. One driver runs all three. Compilation is printed but
not counted; `with warm-up` also counts the seconds of warm-up, which is never optional. Seconds are
CPU time of the process. NUTS stops after `--seconds` of sampling even if draws are left. Data sets
need `BAYESCROWD_DATA` or a network.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from dense_nuts import dense_arguments, dense_dawid_skene
from numpyro.infer import NUTS, init_to_mean
from numpyro.infer.mcmc import MCMCKernel

import bayescrowd as bc
from bayescrowd.aggregation.em import maximise
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.models import dawid_skene
from bayescrowd.posterior import gibbs, nuts
from bayescrowd.posterior.conditionals import crowd_labels

N_EM = 4
BLOCK = 25
WARMUP = {"gibbs": 200, "nuts": 200, "dense nuts": 200}
DRAWS = {"gibbs": 1000, "nuts": 200, "dense nuts": 200}


def large_crowd(n_labels: int) -> bc.Dataset:
    accuracy = np.random.default_rng(2).uniform(0.4, 0.95, n_labels // 200)
    return bc.simulate.one_coin_crowd(
        n_labels // 5, n_labels // 200, 4, labels_per_task=5, accuracy=accuracy, seed=0
    )


def sweep_against_em(ann: bc.Annotations, repeats: int = 7) -> dict[str, float]:
    estimator = bc.DawidSkene()
    pairs = WorkerLabelPairs(ann)
    matrix, m_step = pairs.labels(), partial(estimator._m_step, pairs)
    shares = vote_shares(ann, np.full(ann.n_tasks, -1, dtype=np.int32))

    def em() -> object:
        return maximise(matrix, shares, m_step, n_iter=N_EM, tol=0.0)

    labels = _labels(ann)
    prior = dawid_skene.Prior()
    state = gibbs.start(
        jax.random.key(0),
        crowd_labels.vote_shares(labels, n_items=ann.n_tasks, n_classes=4),
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


def svi_fit(crowd: bc.Dataset, steps: int = 4000) -> dict[str, float]:
    """One fit with its label posterior, and the error of EM on the same labels."""
    wall, cpu = time.perf_counter(), time.process_time()
    post = bc.sample_posterior(
        bc.models.dawid_skene,
        crowd.annotations,
        "svi",
        chains=1,
        draws=20,
        warmup=steps,
        log_likelihood=False,
        predictive=False,
        progress=False,
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    elbo = post["optimisation"]["elbo"].to_numpy()[0]
    em = bc.DawidSkene().fit(crowd.annotations)
    return {
        "labels": crowd.annotations.n_labels,
        "svi steps": steps,
        "seconds": wall,
        "CPU seconds": cpu,
        "last rise of the ELBO, nats": elbo[-20:].mean() - elbo[-40:-20].mean(),
        "error %": 100 * bc.metrics.error_rate(bc.label_posterior(post), crowd.truth),
        "EM error %": 100 * bc.metrics.error_rate(em.probas_, crowd.truth),
    }


def effective_draws(name: str, method: str, *, seconds: float) -> dict[str, float | str]:
    ann = bc.load_dataset(name).annotations
    kernel, arguments, options = _sampler(ann, method)
    warmup = WARMUP[method]
    state = kernel.init(
        jax.random.split(jax.random.key(0), 4), warmup, None, arguments, dict(options)
    )
    # A weakly typed number would become strongly typed after a block and trigger recompilation.
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=leaf.dtype), state)

    @jax.jit
    def advance(state: object) -> tuple:
        def step(state: object, _: None) -> tuple:
            state = kernel.sample(state, arguments, options)
            sites = jax.vmap(kernel.postprocess_fn(arguments, options))(state.z)
            return state, sites["confusion"]

        return jax.lax.scan(step, state, None, length=BLOCK)

    started = time.process_time()
    jax.block_until_ready(advance(state))
    compile_seconds = time.process_time() - started
    started = time.process_time()
    for _ in range(warmup // BLOCK):
        state, _ = jax.block_until_ready(advance(state))
    warm_seconds = time.process_time() - started
    recorded: list[np.ndarray] = []
    started = time.process_time()
    spent = 0.0
    while len(recorded) < DRAWS[method] // BLOCK and (spent < seconds or len(recorded) < 4):
        state, block = jax.block_until_ready(advance(state))
        recorded.append(np.asarray(block))
        spent = time.process_time() - started
    ess = _smallest_ess(np.concatenate(recorded).swapaxes(0, 1))
    return {
        "data": name,
        "method": method,
        "compile s": compile_seconds,
        "warm-up s": warm_seconds,
        "draws": len(recorded) * BLOCK,
        "draws s": spent,
        "min ESS": ess,
        "ESS/s": ess / spent,
        "with warm-up": ess / (spent + warm_seconds),
    }


def _sampler(ann: bc.Annotations, method: str) -> tuple[MCMCKernel, tuple, dict]:
    if method == "dense nuts":
        return NUTS(dense_dawid_skene, init_strategy=init_to_mean), dense_arguments(ann), {}
    sizes = {"n_items": ann.n_tasks, "n_workers": ann.n_workers, "n_classes": ann.n_classes}
    kernel = gibbs.Gibbs(dawid_skene) if method == "gibbs" else nuts.nuts_kernel(dawid_skene)
    return kernel, (_labels(ann),), {**sizes, "prior": dawid_skene.Prior()}


def _smallest_ess(draws: np.ndarray) -> float:
    import arviz as az

    flat = draws.reshape(*draws.shape[:2], -1).astype(float)
    chosen = np.linspace(0, flat.shape[2] - 1, min(flat.shape[2], 400)).astype(int)
    return min(float(az.ess(np.ascontiguousarray(flat[:, :, i]))) for i in chosen)


def _labels(ann: bc.Annotations) -> dawid_skene.Labels:
    codes = (ann.task_codes, ann.worker_codes, ann.label_codes)
    return dawid_skene.Labels(*map(jnp.asarray, codes))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _stay_on_one_core() -> None:
    """Restrict the process to one core; call this before the first computation of JAX."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _print(rows: list[dict]) -> None:
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--labels",
        type=int,
        default=1_000_000,
        help="number of labels for sweep and svi; 0 skips both",
    )
    parser.add_argument("--ess", nargs="*", default=["bluebird", "rte", "dog"])
    parser.add_argument(
        "--seconds", type=float, default=40, help="largest number of CPU seconds for sampling"
    )
    arguments = parser.parse_args()
    _stay_on_one_core()
    if arguments.labels:
        crowd = large_crowd(arguments.labels)
        _print([sweep_against_em(crowd.annotations)])
        _print([svi_fit(crowd)])
    ratios = []
    for name in arguments.ess:
        rows = [
            effective_draws(name, method, seconds=arguments.seconds)
            for method in ("gibbs", "nuts", "dense nuts")
        ]
        _print(rows)
        for measure in ("ESS/s", "with warm-up"):
            speed = {row["method"]: row[measure] for row in rows}
            ratios.append(
                {
                    "data": name,
                    "measure": measure,
                    "gibbs / nuts": speed["gibbs"] / speed["nuts"],
                    "nuts / dense nuts": speed["nuts"] / speed["dense nuts"],
                    "gibbs / dense nuts": speed["gibbs"] / speed["dense nuts"],
                }
            )
    if ratios:
        _print(ratios)


if __name__ == "__main__":
    main()
