"""Policies and tables for the tests of budgeted learning."""

import inspect

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.policy import Policy


def exported_policies():
    found = [getattr(bc, name) for name in bc.__all__ if name[0].isupper()]
    return [c for c in found if inspect.isclass(c) and issubclass(c, Policy)]


@pytest.fixture(scope="session", params=exported_policies(), ids=lambda c: c.__name__)
def kind(request):
    """Every policy that the package exports."""
    return request.param


@pytest.fixture(scope="session")
def published():
    """Loads a published table without its incomplete rows; skips if it is not on this machine."""
    loaded = {}

    def load(name):
        if not bc.datasets.is_local(name):
            pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder with it")
        if name not in loaded:
            table = bc.load_table(name)
            whole = table.features.notna().all(axis=1)
            features = table.features[whole].reset_index(drop=True)
            target = table.target[whole].reset_index(drop=True)
            loaded[name] = table._replace(features=features, target=target)
        return loaded[name]

    return load


@pytest.fixture(scope="session")
def birds():
    """300 birds: `beak` is informative, `wing` a little, `song` and `day` not at all."""
    rng = np.random.default_rng(7)
    kind = rng.choice(["finch", "owl", "wren"], 300, p=[0.5, 0.3, 0.2])
    noise = rng.random((300, 2))
    beak = {"finch": "short", "owl": "hooked", "wren": "thin"}
    return pd.DataFrame(
        {
            "song": rng.choice(["high", "low"], 300),
            "beak": [
                beak[k] if u < 0.85 else w
                for k, u, w in zip(
                    kind, noise[:, 0], rng.choice(list(beak.values()), 300), strict=True
                )
            ],
            "wing": np.where((kind == "owl") ^ (noise[:, 1] < 0.25), "long", "short"),
            "day": rng.choice(["mon", "tue", "wed", "thu"], 300),
            "kind": kind,
        }
    )
