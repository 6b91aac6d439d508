"""Observed sites against the factors that state the same density, as ratios of CPU time.

    python benchmarks/observed_sites.py [--labels 20000] [--repeats 40]

NUTS and variational inference spend their time on the gradient of the potential energy. It is timed
for each model and for its twin, in which `numpyro.factor` takes the place of the observed sites;
the two take turns, and the ratio is that of the medians. `trace` is the ratio of the times in which
JAX traces the two gradients, which a first call pays before the compiler starts.

Measured with 20,000 labels on two cores that other jobs kept busy, site / factor: dawid_skene .99,
hierarchical_dawid_skene 1.02, item_difficulty .99, naive_bayes 1.19 (.33 ms against .28),
access_path 1.07. The densities differ by at most 5e-7 of their size.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
from jax.scipy.special import logsumexp
from numpyro import handlers
from numpyro.infer import init_to_mean
from numpyro.infer.util import initialize_model, potential_energy

from bayescrowd.models import (
    access_path,
    dawid_skene,
    hierarchical_dawid_skene,
    item_difficulty,
    naive_bayes,
)

OBSERVED = ("target", "labels")


def twin_of(module: ModuleType) -> Callable[..., None]:
    """The model with factors in place of its observed sites."""

    def model(data: Any, **arguments: Any) -> None:
        with handlers.block(hide=OBSERVED), handlers.trace() as trace:
            module.model(data, **arguments)
        params = module.Params(*(trace[name]["value"] for name in module.Params._fields))
        log_joint = module.label_log_joint(params, data, n_items=arguments["n_items"])
        with numpyro.plate("item", arguments["n_items"], dim=-1):
            numpyro.factor("labels", logsumexp(log_joint, axis=-1))

    return model


def case_of(module: ModuleType, n_labels: int) -> tuple[Any, dict[str, Any]]:
    """Data of random labels, ten of each item."""
    rng = np.random.default_rng(0)
    n_items = n_labels // 10
    item, place = np.divmod(np.arange(n_labels), 10)
    sizes: dict[str, Any] = {"n_items": n_items, "n_classes": 3}
    if module not in (naive_bayes, access_path):
        worker, label = rng.integers(100, size=n_labels), rng.integers(3, size=n_labels)
        labels = dawid_skene.Labels(*map(jnp.asarray, (item, worker, label)))
        return labels, {**sizes, "n_workers": 100}
    target, value = rng.integers(-1, 3, size=n_items), rng.integers(4, size=n_labels)
    columns = [target, item, place]
    sizes["n_values"] = (4,) * 10
    if module is access_path:
        columns += [np.arange(n_labels), np.zeros(n_labels, int)]
        sizes["n_groups"] = 1
    return module.Observations(*map(jnp.asarray, [*columns, value])), sizes


def gradient_of(model: Callable[..., None], data: Any, sizes: dict[str, Any], z: Any) -> Any:
    """The compiled gradient, and the seconds in which it was traced."""
    gradient = jax.jit(
        jax.value_and_grad(lambda z, data: potential_energy(model, (data,), sizes, z))
    )
    started = time.process_time()
    lowered = gradient.lower(z, data)
    seconds = time.process_time() - started
    return lowered.compile(), seconds


def measure(module: ModuleType, n_labels: int, repeats: int) -> dict[str, float | str]:
    data, sizes = case_of(module, n_labels)
    start = initialize_model(
        jax.random.key(0),
        module.model,
        init_strategy=init_to_mean,
        model_args=(data,),
        model_kwargs=sizes,
    )
    z = start.param_info.z
    both, traced = {}, {}
    for name, model in (("site", module.model), ("factor", twin_of(module))):
        both[name], traced[name] = gradient_of(model, data, sizes, z)
    values = {name: float(gradient(z, data)[0]) for name, gradient in both.items()}
    seconds: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(repeats):
        for name, gradient in both.items():
            started = time.process_time()
            jax.block_until_ready(gradient(z, data))
            seconds[name].append(time.process_time() - started)
    median = {name: float(np.median(times)) for name, times in seconds.items()}
    return {
        "model": module.__name__.rpartition(".")[2],
        "labels": n_labels,
        "site ms": 1e3 * median["site"],
        "factor ms": 1e3 * median["factor"],
        "site / factor": median["site"] / median["factor"],
        "trace": traced["site"] / traced["factor"],
        "relative difference": abs(values["site"] / values["factor"] - 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=20_000, help="number of labels")
    parser.add_argument("--repeats", type=int, default=40, help="number of timed gradients")
    arguments = parser.parse_args()
    modules = (dawid_skene, hierarchical_dawid_skene, item_difficulty, naive_bayes, access_path)
    rows = [measure(module, arguments.labels, arguments.repeats) for module in modules]
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
