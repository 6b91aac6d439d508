"""The Full algorithm by rank-one updates against the algorithm as printed.

    python benchmarks/multi_selection.py [--attributes 500] [--budget 200] [--naive-steps 0]
        [--json results.json]

The algorithm as printed decomposes a matrix for each of d candidates at each of B steps.
`--naive-steps n` runs only its first n steps; 0 runs all. Times are CPU seconds. `difference` is
the largest relative difference between the explained losses.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from bayescrowd.selection.repeats.paths import greedy_path, repeated_steps


def problem(d: int, budget: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(d, d // 2)) * rng.uniform(0.3, 2.0, size=(d, 1))
    covariance = root @ root.T / root.shape[1]
    correlation = covariance @ rng.normal(size=(d, 1))
    with np.errstate(divide="ignore"):
        noise = rng.gamma(2.0, 2.0, size=(d, 1)) / np.arange(budget + 1)
    return covariance, correlation, noise


def naive_path(
    covariance: np.ndarray, correlation: np.ndarray, noise: np.ndarray, n_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run lines 11 to 18 of algorithm 1, with a pseudo-inverse for each candidate."""
    repeats = np.zeros(len(covariance), dtype=int)
    explained = [0.0]
    for _ in range(n_steps):
        values = np.empty(len(repeats))
        for i in range(len(repeats)):
            repeats[i] += 1
            asked = np.flatnonzero(repeats)
            matrix = covariance[np.ix_(asked, asked)] + np.diag(noise[asked, repeats[asked]])
            b = correlation[asked, 0]
            values[i] = b @ np.linalg.pinv(matrix, hermitian=True) @ b
            repeats[i] -= 1
        repeats[int(values.argmax())] += 1
        explained.append(float(values.max()))
    return repeats, np.array(explained)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attributes", type=int, default=500)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--naive-steps", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file to which the row is also written")
    arguments = parser.parse_args()
    covariance, correlation, noise = problem(arguments.attributes, arguments.budget)
    steps = repeated_steps(noise, 1.0)
    begun = time.process_time()
    path = greedy_path(covariance, correlation, steps, budget=arguments.budget)
    ours = time.process_time() - begun
    n_steps = arguments.naive_steps or arguments.budget
    begun = time.process_time()
    repeats, explained = naive_path(covariance, correlation, noise, n_steps)
    naive = time.process_time() - begun
    row = {
        "attributes": arguments.attributes,
        "budget": arguments.budget,
        "asked for": int((path.repeats[-1] > 0).sum()),
        "seconds": ours,
        "naive seconds": naive,
        "naive steps": n_steps,
        "ratio": naive / ours,
        "same repeats": float((path.repeats[n_steps] == repeats).all()),
        "difference": float(np.abs(path.explained[1 : n_steps + 1] / explained[1:] - 1).max()),
    }
    for name, value in row.items():
        print(f"{name:16} {value:,.4g}")
    if arguments.json:
        arguments.json.write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
