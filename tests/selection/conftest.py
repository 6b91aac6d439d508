"""Published crowds for the tests of selection."""

import pytest


@pytest.fixture(scope="session")
def published():
    """Loads a published crowd, or skips the test where its files are not on this machine."""
    import bayescrowd as bc

    loaded = {}

    def load(name):
        if not bc.datasets.is_local(name):
            pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder with it")
        if name not in loaded:
            loaded[name] = bc.load_dataset(name)
        return loaded[name]

    return load
