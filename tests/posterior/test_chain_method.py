"""Chains make the same draws however they advance."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.posterior.container import group_of

OPTIONS = {"chains": 2, "draws": 20, "warmup": 20, "n_predictive": 0, "progress": False}

PARALLEL = """
import numpyro
numpyro.set_host_device_count(2)
import numpy as np
import bayescrowd as bc
ann = bc.simulate.crowd(20, 4, accuracy=0.9, seed=0).annotations
for method in ("gibbs", "nuts"):
    first, second = (
        bc.sample_posterior("one_coin", ann, method, chains=2, draws=20, warmup=20, n_predictive=0,
                            chain_method=chains).posterior["accuracy"].to_numpy()
        for chains in ("sequential", "parallel")
    )
    np.testing.assert_allclose(first, second, rtol=1e-3)
"""


@pytest.mark.parametrize(
    ("method", "other"), [("gibbs", "vectorized"), ("gibbs", "threads"), ("nuts", "vectorized")]
)
@pytest.mark.filterwarnings("ignore:the crowd is hardly", "ignore:label switching")
def test_chains_together_are_those_that_run_one_after_another(method, other):
    ann = bc.simulate.crowd(20, 4, accuracy=0.9, seed=0).annotations
    first, second = (
        bc.sample_posterior("one_coin", ann, method, chain_method=chains, **OPTIONS)
        for chains in ("sequential", other)
    )
    accuracy = [group_of(post, "posterior")["accuracy"].to_numpy() for post in (first, second)]
    if method == "gibbs":
        # the same numbers in another order of operations
        np.testing.assert_allclose(*accuracy, rtol=1e-3)
    else:
        # Rounding grows along trajectories; the first draws of the adaptation are discarded, so
        # only what cannot drift is compared: 40 draws of a probability each, 4 standard errors.
        gap = np.abs(accuracy[0].mean(axis=(0, 1)) - accuracy[1].mean(axis=(0, 1)))
        spread = np.hypot(*(values.std(axis=(0, 1)) for values in accuracy))
        assert (gap < 4 * spread / np.sqrt(10)).all()


@pytest.mark.slow
def test_parallel_chains_are_those_that_run_one_after_another():
    # In a process of its own: the number of devices is fixed when JAX is first used.
    subprocess.run([sys.executable, "-W", "ignore", "-c", PARALLEL], check=True)


@pytest.mark.filterwarnings("ignore:the crowd is hardly", "ignore:label switching")
def test_draws_do_not_depend_on_the_number_of_threads(monkeypatch):
    ann = bc.simulate.crowd(20, 4, accuracy=0.9, seed=0).annotations
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr(
            "bayescrowd.posterior.chains.threads_of_chains",
            lambda n_chains, n_threads=n_threads: ThreadPoolExecutor(n_threads),
        )
        post = bc.sample_posterior("one_coin", ann, **(OPTIONS | {"chains": 3}))
        found.append(group_of(post, "posterior")["accuracy"].to_numpy())
    np.testing.assert_array_equal(*found)
