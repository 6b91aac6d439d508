"""One posterior for all tests that look at a result: sampling compiles, which takes seconds."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def awkward():
    """A good crowd with a class nobody uses, a task and a worker without labels, one with one."""
    import bayescrowd as bc

    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=40)
    is_right = rng.random((40, 6)) < 0.85
    matrix = np.where(is_right, truth[:, None], 1 - truth[:, None]).astype(float)
    matrix[rng.random((40, 6)) < 0.2] = np.nan
    matrix[39] = np.nan
    extra = np.full((40, 2), np.nan)
    extra[3, 0] = truth[3]
    matrix = np.column_stack([matrix, extra])
    names = np.array(["no", "yes"], dtype=object)
    table = [[None if np.isnan(code) else names[int(code)] for code in row] for row in matrix]
    return bc.Annotations.from_matrix(table, classes=["maybe", "no", "yes"]), names[truth]


@pytest.fixture(scope="session")
def post(awkward):
    """Its posterior under Dawid and Skene's model."""
    import bayescrowd as bc

    return bc.sample_posterior(bc.models.dawid_skene, awkward[0], chains=3, draws=1000, seed=1)
