"""The first call of `sample_posterior` in a process, and what it compiles.

    python benchmarks/cold_call.py [--models dawid_skene one_coin] [--methods gibbs nuts]

Each row is a fresh process without a cache of compiled programs: 40 tasks, 8 workers, 2 classes and
320 labels, four chains, the default numbers of draws. Seconds are CPU time of the process: `cold`
is the first call with its imports, `warm` the second one with the same arguments. `wall` is the
wall time of the first. `programs` counts what XLA compiled in the first call.

Measured on two cores of an AMD EPYC that other jobs kept busy (a load of 8 to 11 lengthens CPU
time), before and after first states, keys, the check of the prior and predictions became one
program each and kernels of NUTS could be found again:

    model                       method    cold           warm          programs
    dawid_skene                 gibbs      9.6 ->  7.1    .90 -> .16    84 -> 11
    hierarchical_dawid_skene    gibbs     14.9 -> 10.9   1.42 -> .75

and with nothing else running before, but a load of 11 after:

    one_coin                    gibbs      8.0 ->  7.1    .64 -> .14
    mace                        gibbs      9.7 ->  6.2    .51 -> .20
    task_subtypes               gibbs     13.1 -> 13.6   1.03 -> .61
    dawid_skene                 nuts      14.3 -> 11.8   6.58 -> .64
    one_coin                    nuts      14.9 -> 10.4   7.39 -> .66
    ability_dawid_skene         nuts      31.1 -> 19.1  20.41 -> 3.61

Imports take 1.8 to 2.5 s of each cold call, half of it for ArviZ. To pay for compilation only once
per machine, keep what JAX compiles between processes, before the first call:

    jax.config.update("jax_compilation_cache_dir", "/a/folder/of/yours")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

or the environment variables JAX_COMPILATION_CACHE_DIR and
JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS. The package never sets them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

CALL = """
import sys, time, warnings
warnings.simplefilter("ignore")
import bayescrowd as bc
crowd = bc.simulate.crowd(40, 8, accuracy=0.8, seed=0)
name, method = sys.argv[1], sys.argv[2]
clock, wall, n_programs = [time.process_time()], [time.perf_counter()], []
import jax
programs = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: programs.append(event) if "backend_compile" in event else None
)
for _ in range(2):
    bc.sample_posterior(name, crowd.annotations, method, progress=False)
    clock.append(time.process_time())
    wall.append(time.perf_counter())
    n_programs.append(len(programs))
print(clock[1] - clock[0], clock[2] - clock[1], wall[1] - wall[0], n_programs[0])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["dawid_skene", "one_coin", "mace"])
    parser.add_argument("--methods", nargs="+", default=["gibbs"])
    args = parser.parse_args()
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    print(f"{'model':28}{'method':8}{'cold':>8}{'warm':>8}{'wall':>8}{'programs':>10}")
    for model in args.models:
        for method in args.methods:
            run = subprocess.run(
                [sys.executable, "-c", CALL, model, method],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            )
            cold, warm, wall, programs = run.stdout.split()[-4:]
            seconds = "".join(f"{float(value):8.2f}" for value in (cold, warm, wall))
            print(f"{model:28}{method:8}{seconds}{programs:>10}")


if __name__ == "__main__":
    main()
