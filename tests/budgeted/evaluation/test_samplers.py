"""B-LEAFS by NUTS and by conjugate draws: the same errors, spending and features but for chance."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.beliefs import nuts

N_REPEATS = 6
N_ERRORS = 4.0
"""Student's t with 5 degrees of freedom is beyond 4 with a probability of .01, and errors of runs
that tie have none; seeds are fixed."""


def table():
    """Two features that tell the class and three that do not, with two values each."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 600)
    rates = np.array([[0.1, 0.9], [0.3, 0.8], [0.5, 0.5], [0.4, 0.4], [0.7, 0.7]])
    values = rng.random((5, 600)) < rates[:, target]
    return pd.DataFrame({f"x{f}": values[f].astype(int) for f in range(5)} | {"class": target})


def differences():
    """Error and amount spent by NUTS minus those by conjugate draws, and how often x0 is chosen."""
    factories = {name: partial(bc.BLeafs, sampler=name) for name in ("conjugate", "nuts")}
    options = {"target": "class", "repeats": N_REPEATS, "n_jobs": 1}
    curve = bc.budget_curve(factories, table(), [40], 2, **options).set_index(["repeat", "policy"])
    wide = curve[["error", "spent"]].unstack("policy")
    apart = {name: wide[name]["nuts"] - wide[name]["conjugate"] for name in ("error", "spent")}
    has_best = curve["selected"].map(lambda names: "x0" in names).groupby("policy").mean()
    return apart, has_best


@pytest.mark.slow
def test_runs_agree_whatever_the_sampler(monkeypatch):
    apart, has_best = differences()
    for name, least in (("error", 0.01), ("spent", 1.0)):
        error = max(apart[name].std(ddof=1) / np.sqrt(N_REPEATS), least)
        assert abs(apart[name].mean()) < N_ERRORS * error
    assert (has_best >= 4 / 6).all()
    # control: NUTS that never learns draws from the prior, and such runs are found out
    monkeypatch.setattr(nuts.FeatureDraws, "observe", lambda drawn, new: drawn)
    apart, has_best = differences()
    error = max(apart["error"].std(ddof=1) / np.sqrt(N_REPEATS), 0.01)
    assert apart["error"].mean() > 2 * error
